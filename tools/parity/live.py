"""Compare `braid generate` with diffusers, number for number, on the cases of live_cases.py.

usage: python live.py [BRAID] [--only WORD ...] [--random N --seed S [--family krea2]] [--threads 2]
                      [--keep FOLDER]

BRAID is the program (build/release/bin/braid). Prints one line per case; exits 1 if any fails.
Without --only and --random the committed fixtures are first rebuilt and compared too. --random takes N
cases that seeds S, S + 1, ... draw: even ones usual (random_cases.py), odd ones in turn unusual,
focused, and of the newer families (unusual_families.py); --family takes only the last, of one. A case that diffusers itself cannot run is counted apart.
float32: latents_initial (noise), sigmas and timesteps bit for bit, the rest within the tolerances below.
bfloat16: velocity_first's error against float32 from the same latents, compared with diffusers' own.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import coded_file
import compare_fixtures
import control_lora
import dump
import dump_blocks
import focused_cases
import gguf
import merged
import numpy as np
import random_cases
import random_families
import random_flux3
import random_joy
import random_krea2
import random_pipeline
import random_qwen21
import random_qwen_image
import respelt
import rounded
import single_file
import text_rounding
import torch
import unusual_cases
import unusual_families
from live_cases import CASES
from PIL import Image
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
EXACT = ("latents_initial", "sigmas", "timesteps")
ENCODED = 1e-5     # an encoded picture, relative to the largest value
EMBEDDINGS = 1e-5  # relative L2, and largest difference relative to the largest value
ROUNDED = 4        # beyond that, times diffusers' own distance from float64
VELOCITY = 1e-4    # largest difference relative to the largest value
FLIPPED = 1e-3     # where merged weights are rounded to 8 bits: one on the border of two codes may flip
PIXELS = 1e-3      # share of the values that may differ by more than 1/255
BFLOAT16 = 1.1     # error relative to diffusers' own
TIMEOUT = 120      # seconds per run of braid
TRULY_GUIDED = (random_families.KleinShape, random_families.ZImagePipelineShape,
                random_flux3.Flux3Shape, random_joy.JoyShape, random_krea2.Krea2Shape,
                random_qwen21.Qwen21Shape, random_qwen_image.QwenImageShape)


class Mismatch(Exception):
    """Why a case fails, in one sentence."""


class NoReference(Exception):
    """Why diffusers does not run a case."""


def pipeline_of(case, folder):
    """The pipeline's directory, and the flags of braid that select it."""
    if case.shape is None:
        return random_pipeline.DEMO, ["-m", random_pipeline.DEMO]
    model = folder / "model"
    random_families.make(model, case.shape)
    respelt.apply(case.respelt, model)
    if case.wan_vae:
        single_file.write_wan_vae(model / "vae", folder / "wan_2.1_vae.safetensors")
        return model, ["-m", model, "--vae-file", folder / "wan_2.1_vae.safetensors"]
    if case.coded:
        return model, coded_flags(case, model, folder)
    if case.single_file is None:
        return model, ["-m", model]
    # The other parts are in a directory without a transformer.
    components = folder / "components"
    components.mkdir()
    for part in model.iterdir():
        if part.name != "transformer":
            (components / part.name).symlink_to(part)
    single_file.write(model / "transformer", folder / "transformer.safetensors", case.single_file)
    return model, ["-m", folder / "transformer.safetensors", "--components", components]


def coded_flags(case, model, folder):
    """Flags that select coded files; the model in the directory gets their decoded numbers."""
    converter = dict
    if case.single_file is not None:
        convert = single_file.converter_of(model / "transformer")

        def converter(tensors):
            return {case.single_file + name: tensor for name, tensor in convert(tensors).items()}
    path = coded_file.code_transformer(model / "transformer", folder / "coded", case.coded,
                                       converter, case.coding_seed)
    flags = ["-m", path, "--components", model]
    if case.coded_text:
        is_t5 = (model / "text_encoder_2").exists()
        text = coded_file.code_text(
            model / ("text_encoder_2" if is_t5 else "text_encoder"), folder / "text.gguf",
            dump_blocks.name_in_llama if is_t5 else coded_file.name_of_language_model)
        flags += ["--text-encoder-file", text]
    return flags


def prompts_of(request, folder):
    if len(request.prompts) == 1:
        return [request.prompts[0]]
    path = folder / "prompts.txt"
    path.write_text("".join(prompt + "\n" for prompt in request.prompts), encoding="utf-8")
    return ["--prompt-file", path]


def latents_of(case):
    """Packed latents of the request's size that no seed draws, or None."""
    request = case.request
    if not case.own_latents:
        return None
    tokens = (request.width // 16) * (request.height // 16)
    channels = random_families.token_channels(case.shape)
    count = request.num_images * tokens * channels
    return torch.linspace(-2, 2, count).view(-1, tokens, channels)


def request_flags(request, is_truly_guided, folder):
    """Flags that ask braid for the request, whose pictures are written to the folder. Where a family's own
    guidance is classifier-free, its scale is --guidance."""
    flags = [
        "--steps", request.steps,
        "--guidance", request.true_cfg if is_truly_guided else request.guidance,
        "--max-sequence-length", request.max_sequence_length,
        "--seed", request.seed, "-n", request.num_images,
        "--vae-tiling", "on" if request.vae_tiling else "off"]
    if request.width:  # else the references say it
        flags += ["--size", f"{request.width}x{request.height}"]
    if request.boxes:
        (folder / "boxes.json").write_text(json.dumps(request.boxes), encoding="utf-8")
        flags += ["--boxes", folder / "boxes.json"]
    if request.prompt_2 is not None:
        flags += ["--prompt-2", request.prompt_2]
    if request.negative_prompt is not None:
        flags += ["--negative-prompt", request.negative_prompt]
    if request.negative_prompt_2 is not None:
        flags += ["--negative-prompt-2", request.negative_prompt_2]
    if request.true_cfg != 1 and not is_truly_guided:
        flags += ["--true-cfg", request.true_cfg]
    if request.cfg_norm_cap != 0:
        flags += ["--cfg-norm-cap", request.cfg_norm_cap]
    if request.cfg_until != 1:
        flags += ["--cfg-until", request.cfg_until]
    if request.layers is not None:
        flags += ["--layers", request.layers]
    if request.resolution is not None:
        flags += ["--resolution", request.resolution]
    if request.cfg_normalize:
        flags += ["--cfg-normalize", "on"]
    for name, picture in dump.pictures_in(request).items():
        picture.save(folder / f"{name}.png")
        flags += [f"--{name}", folder / f"{name}.png"]
    if request.init:
        flags += ["--strength", request.strength]
    if request.mask_blur != 0:
        flags += ["--mask-blur", request.mask_blur]
    if request.padding_crop is not None:
        flags += ["--padding-crop", request.padding_crop]
    for i, picture in enumerate(dump.reference_pictures(request)):
        picture.save(folder / f"reference{i}.png")
        flags += ["--reference", folder / f"reference{i}.png"]
    return flags


EVERY_LAYER = ",".join(".".join("*" * n) for n in range(1, 7))


def flags_of(case, folder, threads):
    request = case.request
    flags = [
        "-o", folder / "out.png", "--dump", folder / "dump.safetensors", "-q", "--dtype", case.dtype,
        "--threads", threads, *case.flags,
        *request_flags(request, isinstance(case.shape, TRULY_GUIDED), folder)]
    for i, picture in enumerate(dump.looked_at_pictures(request)):
        picture.save(folder / f"looked{i}.png")
        scale = f"={request.looked_scales[i]}" if request.looked_scales else ""
        flags += ["--reference", f"{folder}/looked{i}.png{scale}"]
    if request.looked_at:
        flags += ["--redux", folder / "model" / "redux"]
    for i, picture in enumerate(dump.followed_pictures(request)):
        picture.save(folder / f"followed{i}.png")
        flags += ["--control", folder / f"followed{i}.png"]
    for name in ("scales", "from", "to", "modes"):
        for value in getattr(request, f"control_{name}"):
            flags += ["--control-" + name.removesuffix("s"), value]
    if request.followed or getattr(case.shape, "fills_in", False):
        for net in range(len(case.shape.controlnets)):
            flags += ["--controlnet", folder / "model" / f"controlnet_{net + 1}"]
    if (case.coded or "").startswith("comfy") and "--quantize" not in case.flags:
        # rotated int8 stands for its numbers, as in diffusers, and nothing else is quantized
        flags += ["--quantize", "int8", "--quantize-skip", EVERY_LAYER]
    if case.own_latents:
        save_file({"latents": latents_of(case)}, folder / "latents.safetensors")
        flags += ["--latents", folder / "latents.safetensors"]
    return flags


def braid(program, case, model_flags, folder, threads):
    """What braid dumps, plus the pictures named on stdout as `image`."""
    command = [program, "generate", *prompts_of(case.request, folder), *model_flags,
               *flags_of(case, folder, threads)]
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              cwd=folder, timeout=TIMEOUT, env=os.environ | case.env)
    except subprocess.TimeoutExpired:
        raise Mismatch(f"braid did not end within {TIMEOUT} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["(nothing on stderr)"])[-1]
        raise Mismatch(f"braid exited with {done.returncode}: {last[:300]}")
    pictures = [np.array(Image.open(folder / line)) for line in done.stdout.split("\n") if line]
    if not pictures:
        raise Mismatch("braid named no picture on stdout")
    tensors = load_file(folder / "dump.safetensors")
    return tensors | {"image": torch.from_numpy(np.stack(pictures))}


def check_names(got, expected):
    if got.keys() != expected.keys():
        raise Mismatch(f"the dump holds {sorted(got)}, expected {sorted(expected)}")
    for name, tensor in expected.items():
        if got[name].shape != tensor.shape or got[name].dtype != tensor.dtype:
            raise Mismatch(f"{name} is {got[name].dtype} {list(got[name].shape)}, "
                           f"expected {tensor.dtype} {list(tensor.shape)}")
        if not torch.isfinite(got[name].float()).all():
            raise Mismatch(f"{name} holds values that are not finite")


def check_exact(got, expected, request):
    """Initial latents are exact if they are noise alone."""
    noise_alone = expected["sigmas"][0] == 1  # not so with sigmas turned round
    is_encoded = request.init is not None and (request.strength < 1 or not noise_alone)
    if is_encoded:
        error = largest(got["latents_initial"], expected["latents_initial"])
        check_within({"latents_initial": error}, {"latents_initial": ENCODED})
    for name in EXACT[is_encoded:]:
        wrong = (got[name] != expected[name]).sum().item()
        if wrong:
            raise Mismatch(f"{name} is not bit-equal: {wrong} of {got[name].numel()} values differ")


def largest(got, expected):
    """The largest difference, relative to the largest value."""
    if torch.equal(got, expected):  # zeros, too
        return 0.0
    return ((got - expected).abs().max() / expected.abs().max()).item()


def check_within(figures, limits):
    for name, limit in limits.items():
        if not figures[name] <= limit:
            raise Mismatch(f"{name} is off by {figures[name]:.2e}, allowed are {limit:.0e}")


def check_embeddings(got, expected, pipe, request):
    """Returns how far they are apart. Deep text models that are narrow magnify roundings: where
    diffusers' own numbers are as far from float64's, Braid's may be, too (text_rounding.py)."""
    error = max(largest(got, expected), dump.relative_error(got, expected))
    if error > EMBEDDINGS and text_rounding.knows(pipe):
        exact = text_rounding.exact_embeds(pipe, request)
        ours, own = (text_rounding.distance(run, exact)[0] for run in (got, expected))
        if ours > ROUNDED * own:
            raise Mismatch(f"prompt_embeds is {ours:.1e} from float64's, diffusers' {own:.1e}")
    elif error > EMBEDDINGS:
        check_within({"an embedding": error}, {"an embedding": EMBEDDINGS})
    return error


def compare_float32(got, expected, pipe, request, velocity=VELOCITY):
    check_names(got, expected)
    check_exact(got, expected, request)
    embeddings = [name for name in expected if name.endswith("prompt_embeds")]
    figures = {name: largest(got[name], expected[name])
               for name in (*embeddings, "velocity_first", "latents_final")}
    for name in embeddings:
        figures[name] = check_embeddings(got[name], expected[name], pipe, request)
    apart = (got["image"].int() - expected["image"].int()).abs() > 1
    figures["image"] = apart.float().mean().item()
    check_within(figures, {"velocity_first": velocity, "image": PIXELS})
    return " ".join(f"{name} {figure:.0e}" for name, figure in figures.items())


def compare_bfloat16(got, model, request):
    low, high = dump.run_bfloat16(dump.load(model), dump.load(model, "bfloat16"), request)
    check_names(got, low)
    check_exact(got, low, request)
    error, own = (dump.relative_error(run["velocity_first"], high["velocity_first"])
                  for run in (got, low))
    figure = f"velocity error {error:.4f}, diffusers' own {own:.4f}"
    if not error <= BFLOAT16 * own:
        raise Mismatch(f"{figure}, allowed are {BFLOAT16} times that")
    return figure


def program_output(program, *arguments):
    """What the program prints, which must succeed."""
    done = subprocess.run([str(part) for part in (program, *arguments)], capture_output=True,
                          text=True, timeout=TIMEOUT)
    if done.returncode != 0 or not done.stdout + done.stderr:
        raise Mismatch(f"braid {arguments[0]} exited with {done.returncode}: {done.stderr[:300]}")
    return done.stdout


def stored(path):
    """(bytes, tensors of each type or None) in a file, by its header."""
    if path.suffix == ".gguf":
        tensors = gguf.GGUFReader(path).tensors
        return (sum(int(t.n_bytes) for t in tensors), Counter(t.tensor_type.name for t in tensors))
    content = path.read_bytes()
    return len(content) - 8 - int.from_bytes(content[:8], "little"), None


def check_info(program, path):
    said = json.loads(program_output(program, "info", path, "--json"))
    size, types = stored(path)
    if said["bytes"] != size:
        raise Mismatch(f"braid info says {said['bytes']} bytes of {path.name}, it holds {size}")
    if types and {name: row["tensors"] for name, row in said["types"].items()} != types:
        raise Mismatch(f"braid info says {said['types']} of {path.name}, it holds {types}")


def check_converted(folder, reference):
    """The weights that braid wrote are those of diffusers' transformer."""
    written = dump.load(folder).transformer.state_dict()
    for name, tensor in reference.transformer.state_dict().items():
        if largest(written[name].float(), tensor) > ENCODED:
            raise Mismatch(f"{name} is off by {largest(written[name].float(), tensor):.1e} as written")


def truth_of(case, model, folder):
    """The directory whose numbers braid must compute with, and braid's flags for its LoRA."""
    if case.int8 == "base":
        model = rounded.write(model, folder / "rounded")
    if not case.lora:
        return (rounded.write(model, folder / "rounded") if case.int8 == "merged" else model), []
    lora = folder / "lora.safetensors"
    merged.write(model, lora, folder / "merged", case.lora)
    model = folder / "merged"
    if case.int8 == "merged":
        model = rounded.write(model, folder / "rounded")
    return model, ["--lora", lora]


def reference_of(case, model, truth, folder):
    """diffusers' pipeline in float32, and braid's flags for a control LoRA."""
    pipe = dump.load(truth)
    if not case.control_lora:
        return pipe, []
    lora = folder / "lora.safetensors"
    transformer = control_lora.write(model, lora)
    if case.int8:  # braid adds the LoRA before it rounds
        rounded.round_module(transformer)
    return control_lora.pipeline(pipe, transformer), ["--lora", lora]


def compare_as_published(program, case, model, folder, threads):
    """What published.py says of the model."""
    request, out = case.request, folder / "report"
    is_true = case.shape is not None and isinstance(case.shape, TRULY_GUIDED)
    command = [
        sys.executable, Path(__file__).with_name("published.py"), "-m", model, "--braid", program,
        "--dtype", case.dtype, "--size", f"{request.width}x{request.height}", "--steps", request.steps,
        "--seed", request.seed, "-n", request.num_images, "--threads", threads, "--out", out,
        "--max-sequence-length", request.max_sequence_length,
        "--guidance", request.true_cfg if is_true else request.guidance, *case.published]
    command += [word for prompt in request.prompts for word in ("--prompt", prompt)]
    command += ["--negative-prompt", request.negative_prompt] if request.negative_prompt else []
    command += [word for width, height in request.references
                for word in ("--reference", f"{width}x{height}")]
    command += [word for i in request.transparent for word in ("--transparent", i)]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Mismatch(f"published.py exited with {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
    rows = json.loads((out / "report.json").read_text())
    if not any(row["what"] == "velocity_first" and row["holds"] for row in rows):
        raise Mismatch(f"published.py promises nothing of the velocity: {rows}")
    return "; ".join(f"{row['what']} {row['figure']}" for row in rows[3:])


def compare(program, case, folder, threads):
    model, flags = pipeline_of(case, folder)
    if case.published is not None:
        return compare_as_published(program, case, model, folder, threads)
    truth, of_lora = truth_of(case, model, folder)
    reference, of_control = reference_of(case, model, truth, folder)
    flags = [*flags, *of_lora, *of_control]
    for path in sorted([*folder.glob("lora.safetensors"), *folder.glob("*.gguf")]):
        check_info(program, path)
    if case.converted:
        out = folder / "converted"
        program_output(program, "convert", *flags, "-o", out, "--dtype", case.dtype, "-q")
        check_converted(out, reference)
        flags = ["-m", out]
    got = braid(program, case, flags, folder, threads)
    if case.dtype == "bfloat16":
        return compare_bfloat16(got, truth, case.request)
    try:
        expected = dump.run(reference, case.request, latents_of(case))
    except (ArithmeticError, AttributeError, IndexError, RuntimeError, TypeError, ValueError) as wrong:
        raise NoReference(f"{type(wrong).__name__}: {str(wrong)[:200]}") from wrong
    is_rounded_late = case.int8 == "merged" or (case.int8 and case.control_lora)
    limit = FLIPPED if is_rounded_late else VELOCITY
    return compare_float32(got, expected, reference, case.request, limit)


def run(program, cases, work, threads):
    """Returns the numbers of failed cases and of those without a reference."""
    failed = lone = 0
    for i, case in enumerate(cases):
        folder = work / f"{i:02d}"
        folder.mkdir()
        start = time.time()
        try:
            line = "ok      " + compare(program, case, folder, threads)
        except Mismatch as wrong:
            failed += 1
            line = f"FAILED  {wrong}"
        except NoReference as wrong:
            lone += 1
            line = f"ALONE   diffusers ends with {wrong}"
        print(f"{case.name:34} {time.time() - start:5.1f} s  {line}", flush=True)
    return failed, lone


def drawn(seeds, family):
    usual = random_cases.draw_case
    draws = (usual, unusual_cases.draw_unusual, usual, focused_cases.draw_focused, usual,
             unusual_families.draw_family)
    if family:
        return [unusual_families.draw_family(seed, family) for seed in seeds]
    return [draws[seed % len(draws)](seed) for seed in seeds]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("braid", nargs="?", type=Path, default=ROOT / "build/release/bin/braid")
    parser.add_argument("--only", nargs="+", default=[], help="cases whose names hold a word")
    parser.add_argument("--random", type=int, metavar="N", help="N cases that --seed draws instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=unusual_families.FAMILIES, help="with --random")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="leave pipelines, dumps and pictures here")
    args = parser.parse_args()
    if not args.braid.is_file():
        parser.error(f"there is no program {args.braid}; build it first")
    torch.set_num_threads(args.threads)
    cases = CASES
    if args.random:
        cases = drawn(range(args.seed, args.seed + args.random), args.family)
    if args.only:
        cases = [case for case in cases if any(word in case.name for word in args.only)]
    has_all = not args.only and not args.random
    with tempfile.TemporaryDirectory() as temporary:
        work = args.keep or Path(temporary)
        work = work.resolve()
        work.mkdir(parents=True, exist_ok=True)
        stale = compare_fixtures.differences(work / "fixtures") if has_all else []
        print("\n".join(stale) or f"fixtures {'equal' if has_all else 'not compared'}")
        failed, lone = run(args.braid.resolve(), cases, work, args.threads)
    note = f", which cannot run {lone} more" if lone else ""
    print(f"{len(cases) - failed - lone} of {len(cases)} cases equal diffusers{note}")
    sys.exit(1 if failed or stale or not cases or (lone and not args.random) else 0)


if __name__ == "__main__":
    main()
