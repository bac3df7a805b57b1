"""Compare Braid with diffusers on a model that you have: embedded prompt, velocity, latents, picture.

usage: python published.py -m DIRECTORY [--dtype bfloat16] [--prompt "..."] [--size 512x512] [--steps 2]
                           [--reference 640x480 ...] [--memory 32GB] [--out FOLDER] [-- FLAGS OF BRAID]

DIRECTORY is a model in the diffusers layout. Says first what it needs, then runs both programs on a CPU,
one after the other, with the same request, and writes report.md (a table, to send to Braid's issues),
report.json, both programs' dumps and pictures to FOLDER. Exits 1 if a promise of docs/numerics.md is broken.

--dtype float32 (the default) compares number for number. bfloat16 compares both with diffusers in float32,
which takes its time; --without-float32 leaves that run out, and with it the verdict.
--memory bounds the weights in memory, by default to 7/10 of what is free: diffusers then reads layers from
files (those of another dtype are first written to FOLDER/weights), and Braid reads blocks from there.
References have random colours; a size of 0x0 follows from them. It needs tools/parity/requirements.txt.
"""
import argparse
import gc
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import dump
import live
import numpy as np
import torch
from made_with import versions
from PIL import Image
from safetensors.torch import load_file, save_file

GUIDED = {"Flux2KleinPipeline", "Flux2KleinKVPipeline", "ZImagePipeline", "Krea2Pipeline",
          "QwenImage21Pipeline", "JoyImageEditPipeline", "JoyImageEditPlusPipeline",
          "Flux3ModularPipeline", "Flux3DistilledModularPipeline", "QwenImagePipeline",
          "QwenImageEditPipeline", "QwenImageEditPlusPipeline", "QwenImageLayeredPipeline"}
OFF = {"Krea2Pipeline": 0.0, "ZImagePipeline": 0.0}  # guidance that is none; 1 for the others
TOKENS = {"Flux3ModularPipeline": 8192, "Flux3DistilledModularPipeline": 8192,
          "QwenImage21Pipeline": 4096, "JoyImageEditPipeline": 4096, "JoyImageEditPlusPipeline": 4096,
          "QwenImagePipeline": 512, "QwenImageEditPipeline": 1024, "QwenImageEditPlusPipeline": 1024,
          "QwenImageLayeredPipeline": 1024}
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
UNITS = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
WEIGHTS = ("transformer", "text_encoder", "text_encoder_2", "vae")


class Unusable(Exception):
    """Why a model or a request cannot be compared, in one sentence."""


def bytes_of(text):
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * factor)
    raise argparse.ArgumentTypeError(f"{text} should end in one of {', '.join(UNITS)}")


def size_of(text):
    width, height = (int(side) for side in text.split("x"))
    return width, height


def available_bytes():
    try:
        rows = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return int(rows["MemAvailable"].split()[0]) * 1024
    except (FileNotFoundError, KeyError):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def index_of(folder):
    for name in ("modular_model_index.json", "model_index.json"):
        if (folder / name).exists():
            return json.loads((folder / name).read_text())
    raise Unusable(f"{folder} has no model_index.json: it should be a model in the diffusers layout")


def header(path):
    with path.open("rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))


@dataclass
class Stored:
    """The weights of a part as stored."""
    numbers: int = 0
    dtypes: tuple = ()


def stored(folder):
    """Of each part with weights."""
    parts = {}
    for name in WEIGHTS:
        entries = [entry for path in sorted((folder / name).glob("*.safetensors"))
                   for key, entry in header(path).items() if key != "__metadata__"]
        if entries:
            parts[name] = Stored(sum(int(np.prod(entry["shape"])) for entry in entries),
                                 tuple(sorted({entry["dtype"] for entry in entries})))
    if not parts:
        raise Unusable(f"{folder} has no weights in safetensors files")
    return parts


def needs(parts, dtype):
    """Bytes of each part in the dtype."""
    size = 4 if dtype == "float32" else 2
    return {name: part.numbers * size for name, part in parts.items()}


def in_gigabytes(sizes):
    return ", ".join(f"{name} {size / 1e9:.1f} GB" for name, size in sizes.items())


def say_needs(parts, dtypes, budget):
    for dtype in dtypes:
        sizes = needs(parts, dtype)
        total = sum(sizes.values())
        print(f"{dtype}: {in_gigabytes(sizes)}; {total / 1e9:.1f} GB of weights in all")
        if total > budget:
            print(f"  {budget / 1e9:.1f} GB may be used: the rest is read from files for each evaluation, "
                  f"and up to {total / 1e9:.1f} GB may be written to disk")


class Loader:
    """diffusers' pipelines of a directory, in part read from files where they exceed the budget."""

    def __init__(self, folder, parts, budget, scratch):
        self.folder, self.parts, self.budget, self.scratch = folder, parts, budget, scratch

    def __call__(self, dtype):
        return dump.load(self.folder, dtype, self.paged(dtype))

    def paged(self, dtype):
        """The parts that are partly left in files, by name."""
        sizes = needs(self.parts, dtype)
        total = sum(sizes.values())
        if total <= self.budget:
            return {}
        index = index_of(self.folder)
        made = {}
        for name, size in sizes.items():
            if name == "vae":
                continue
            library, kind = index[name][:2]
            cls = getattr(sys.modules[library], kind)
            share = max(1, int(self.budget * size / total))
            key = "dtype" if library == "transformers" else "torch_dtype"
            scratch = self.scratch / f"{name} {dtype}"
            scratch.mkdir(parents=True, exist_ok=True)
            made[name] = cls.from_pretrained(
                self.folder / name, device_map="auto", max_memory={"cpu": share},
                offload_folder=scratch, **{key: getattr(torch, dtype)})
        return made


def run_braid(args, request, folder, is_over):
    """What braid dumps, plus its pictures."""
    prompts = live.prompts_of(request, folder)
    (folder / "weights").mkdir(exist_ok=True)
    command = [args.braid, "generate", *prompts, "-m", args.model.resolve(), "-o", folder / "braid.png",
               "--dump", folder / "braid.safetensors", "--dtype", args.dtype, "--threads", args.threads,
               *live.request_flags(request, class_of(args.model) in GUIDED, folder),
               *(["--offload", "block", "--offload-dir", folder / "weights"] if is_over else []),
               *args.flags]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        raise Unusable(f"braid exited with {done.returncode}: {done.stderr.strip()[-500:]}")
    pictures = [np.array(Image.open(folder / line)) for line in done.stdout.split("\n") if line]
    return load_file(folder / "braid.safetensors") | {"image": torch.from_numpy(np.stack(pictures))}


def class_of(folder):
    name = index_of(folder)["_class_name"]
    return name[1] if isinstance(name, list) else name


def check_known(folder):
    name = class_of(folder)
    if name not in dump.FAMILIES and "Flux3" not in name:
        raise Unusable(f"{folder} is a {name}, which this tool does not run; it knows "
                       f"{', '.join(sorted(dump.FAMILIES))} and FLUX.3's")
    return name


def request_of(args):
    name = check_known(args.model)
    width, height = args.size
    scale = args.guidance if args.guidance is not None else OFF.get(name, 1.0)
    guidance = {"true_cfg": scale} if name in GUIDED else {
        "guidance": 3.5 if args.guidance is None else args.guidance}
    return dump.Request(
        prompts=tuple(args.prompt or dump.Request.prompts), negative_prompt=args.negative_prompt,
        width=width, height=height, steps=args.steps, seed=args.seed, num_images=args.num_images,
        max_sequence_length=args.max_sequence_length or TOKENS.get(name, 512),
        references=tuple(args.reference), transparent=tuple(args.transparent), **guidance)


@dataclass
class Row:
    what: str
    figure: str
    promise: str
    holds: bool | None  # None: nothing is promised

    def line(self):
        verdict = {True: "yes", False: "**no**", None: "-"}[self.holds]
        return f"| {self.what} | {self.figure} | {self.promise} | {verdict} |"


def exact_row(name, got, expected):
    wrong = (got != expected).sum().item()
    figure = "equal bit for bit" if wrong == 0 else f"{wrong} of {got.numel()} values differ"
    return Row(name, figure, "equal bit for bit", wrong == 0)


def rows_of_float32(got, expected):
    live.check_names(got, expected)
    rows = [exact_row(name, got[name], expected[name]) for name in live.EXACT]
    limits = {"velocity_first": live.VELOCITY, "latents_final": None}
    limits = {name: live.EMBEDDINGS for name in expected if name.endswith("prompt_embeds")} | limits
    for name, limit in limits.items():
        error = live.largest(got[name], expected[name])
        rows.append(Row(name, f"{error:.1e} of the largest value",
                        f"{limit:.0e}" if limit else "nothing", error <= limit if limit else None))
    apart = ((got["image"].int() - expected["image"].int()).abs() > 1).float().mean().item()
    rows.append(Row("picture", f"{100 * (1 - apart):.3f} % of the values within 1/255", "99.9 %",
                    apart <= live.PIXELS))
    return rows


def rows_of_bfloat16(got, low, high):
    """`high` is diffusers in float32 from the latents of `low`, or None."""
    live.check_names(got, low)
    rows = [exact_row(name, got[name], low[name]) for name in live.EXACT]
    for name in [n for n in low if n.endswith("prompt_embeds")] + ["velocity_first", "latents_final"]:
        if high is None:
            gap = dump.relative_error(got[name], low[name])
            rows.append(Row(name, f"{gap:.4f} from diffusers' bfloat16 (relative L2)", "nothing", None))
            continue
        ours, own = (dump.relative_error(run[name], high[name]) for run in (got, low))
        is_bound = name != "latents_final"
        rows.append(Row(name, f"error {ours:.5f}, diffusers' own {own:.5f}",
                        f"at most {live.BFLOAT16} times" if is_bound else "nothing",
                        ours <= live.BFLOAT16 * own if is_bound else None))
    return rows


def machine():
    names = [line.split(":", 1)[1].strip() for line in (
        Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else [])
        if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores, {platform.system()}"


def report(args, request, parts, rows):
    version = live.program_output(args.braid, "--version").strip().splitlines()[0]
    sizes = ", ".join(f"{name} {part.numbers / 1e9:.3f} B in {'/'.join(part.dtypes)}"
                      for name, part in parts.items())
    packages = ", ".join(f"{name} {number}" for name, number in versions().items())
    return "\n".join([
        f"### {version} and diffusers on {args.model.resolve().name}, {args.dtype}", "",
        f"- model: {class_of(args.model)}; {sizes}", f"- request: {request}",
        f"- flags of braid: {' '.join(args.flags) or 'none'}", f"- machine: {machine()}",
        f"- packages: {packages}", "", "| what | found | promised | holds |", "|---|---|---|---|",
        *(row.line() for row in rows), ""])


def compare(args, parts, folder):
    request = request_of(args)
    is_over = sum(needs(parts, args.dtype).values()) > args.memory
    print("running braid", flush=True)
    got = run_braid(args, request, folder, is_over)
    load = Loader(args.model, parts, args.memory, folder / "weights")
    print(f"running diffusers in {args.dtype}", flush=True)
    expected = dump.run(load(args.dtype), request)
    save_file(expected, folder / "diffusers.safetensors")
    for i, picture in enumerate(expected["image"].numpy()):
        Image.fromarray(picture).save(folder / f"diffusers{i}.png")
    if args.dtype == "float32":
        return request, rows_of_float32(got, expected)
    gc.collect()
    if args.without_float32:
        return request, rows_of_bfloat16(got, expected, None)
    print("running diffusers in float32", flush=True)
    high = dump.run(load("float32"), request, latents=expected["latents_initial"])
    save_file(high, folder / "diffusers-float32.safetensors")
    return request, rows_of_bfloat16(got, expected, high)


def parse():
    words, flags = sys.argv[1:], []
    if "--" in words:
        cut = words.index("--")
        words, flags = words[:cut], words[cut + 1:]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", type=Path, required=True, help="a model in the diffusers layout")
    parser.add_argument("--braid", type=Path, default=live.ROOT / "build/release/bin/braid")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--without-float32", action="store_true")
    parser.add_argument("--prompt", action="append", help="once or more")
    parser.add_argument("--negative-prompt")
    parser.add_argument("--guidance", type=float, help="by default off, or 3.5 where it is embedded")
    parser.add_argument("--size", type=size_of, default=(256, 256), metavar="WxH")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-n", "--num-images", type=int, default=1)
    parser.add_argument("--max-sequence-length", type=int)
    parser.add_argument("--reference", type=size_of, action="append", default=[], metavar="WxH")
    parser.add_argument("--transparent", type=int, action="append", default=[], metavar="I",
                        help="reference I, from 0, has alpha")
    parser.add_argument("--memory", type=bytes_of, default=available_bytes() * 7 // 10, metavar="BYTES")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("published-report"))
    args = parser.parse_args(words)
    args.flags = flags
    return parser, args


def main():
    parser, args = parse()
    if not args.braid.is_file():
        parser.error(f"there is no program {args.braid}; build it first, or name it with --braid")
    args.braid, folder = args.braid.resolve(), args.out.resolve()
    torch.set_num_threads(args.threads)
    try:
        check_known(args.model)
        parts = stored(args.model)
        is_rounded = args.dtype == "bfloat16"
        say_needs(parts, [args.dtype] + ["float32"] * (is_rounded and not args.without_float32),
                  args.memory)
        folder.mkdir(parents=True, exist_ok=True)
        request, rows = compare(args, parts, folder)
    except (Unusable, live.Mismatch) as wrong:
        sys.exit(f"published.py: {wrong}")
    finally:
        shutil.rmtree(folder / "weights", ignore_errors=True)
    text = report(args, request, parts, rows)
    (folder / "report.md").write_text(text, encoding="utf-8")
    (folder / "report.json").write_text(json.dumps([vars(row) for row in rows], indent=2) + "\n")
    print(f"\n{text}\nwritten to {folder}")
    sys.exit(any(row.holds is False for row in rows))


if __name__ == "__main__":
    main()
