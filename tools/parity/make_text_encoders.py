"""Make tests/data/parity/text_encoders: tiny random language models and their hidden states.

usage: python make_text_encoders.py [--only qwen3 ...] [--out tests/data/parity/text_encoders]

Each case is a folder: model/, as in a pipeline's text_encoder/, with bfloat16 weights;
expected.safetensors: for every kind of padding the ids, the mask, and the wanted hidden states of
transformers side by side, in float32 and in bfloat16 (NAME.bfloat16); manifest.json.

Processors differ in bfloat16. Of the instruction sets that this processor has, the run farthest from
float32 is kept, so that a bound taken from it holds on all of them.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import torch
import transformers
from made_with import versions
from safetensors.torch import load_file, save_file

transformers.utils.logging.disable_progress_bar()

ROOT = Path(__file__).resolve().parents[2]
PAD = 3  # the token
HAS_AVX512 = " avx512f" in Path("/proc/cpuinfo").read_text()
INSTRUCTION_SETS = (("default", "SSE41"), ("avx2", "AVX2")) + (
    ("avx512", "AVX512_CORE"), ("avx512", "AVX512_CORE_BF16"), ("avx512", "ALL")) * HAS_AVX512


@dataclass
class Case:
    cls: str
    config: dict
    states: tuple               # of output.hidden_states
    paddings: dict              # "left", "right" or "none" -> the prompts' lengths
    older_config: bool = False  # with rope_theta at the top level


QWEN3 = {"vocab_size": 50, "hidden_size": 40, "intermediate_size": 64, "num_hidden_layers": 5,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
MISTRAL = {"model_type": "mistral", "vocab_size": 60, "hidden_size": 40, "intermediate_size": 48,
           "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 1,
           "head_dim": 16, "rms_norm_eps": 1e-5, "sliding_window": None,
           "rope_parameters": {"rope_type": "default", "rope_theta": 1e9}}
VISION = {"model_type": "pixtral", "hidden_size": 8, "intermediate_size": 8, "head_dim": 4,
          "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}

CASES = {
    # like FLUX.2 klein: three states, right padding; one layer more than needed
    "qwen3": Case("Qwen3ForCausalLM", QWEN3, (1, 2, 4), {"right": (40, 14), "none": (20, 20)}),
    # like Z-Image: the last state but one; four query heads per key/value head
    "qwen3_bare": Case(
        "Qwen3Model", QWEN3 | {"num_attention_heads": 8, "num_hidden_layers": 4, "head_dim": 8},
        (-2,), {"right": (30, 47), "left": (7, 50)}, older_config=True),
    # attention's layers have biases, which no published model's have; heads of keys are shared out
    "qwen3_biased": Case(
        "Qwen3ForCausalLM", QWEN3 | {"hidden_size": 24, "intermediate_size": 32,
                                     "num_hidden_layers": 4, "attention_bias": True},
        (1, 2), {"right": (9, 5)}),
    # the last state, which is normed, beside others
    "qwen3_last": Case(
        "Qwen3Model", QWEN3 | {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2},
        (-1, 1, 2), {"right": (9, 5)}),
    # like FLUX.2 dev: a nested language model, no head norms, left padding
    "mistral3": Case(
        "Mistral3ForConditionalGeneration", {"text_config": MISTRAL, "vision_config": VISION},
        (1, 2, 4), {"left": (14, 33), "right": (26, 12), "none": (30, 30)},
        older_config=True),
}


def generator(name):
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


@torch.no_grad()
def fill(model, case):
    """Activations keep a size of about 1; no norm weight stays at 1."""
    for name, parameter in model.named_parameters():
        draw = torch.randn(parameter.shape, generator=generator(f"{case}/{name}"))
        if parameter.dim() == 1:
            parameter.copy_(1.2 + 0.3 * draw)
            continue
        gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
        parameter.copy_(draw if "embed" in name else gain * parameter.shape[1] ** -0.5 * draw)
    return model.bfloat16().eval()


def write_model(name, folder):
    case = CASES[name]
    cls = getattr(transformers, case.cls)
    fill(cls(cls.config_class(**case.config)), name).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    text = config.get("text_config", config)
    if case.older_config:
        text["rope_theta"] = text.pop("rope_parameters")["rope_theta"]
        text["rope_scaling"] = None
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def tokens(name, padding, vocab_size):
    """Ids and mask of some prompts; if padded at all, the longest has three pads."""
    lengths = CASES[name].paddings[padding]
    length = max(lengths) + (0 if padding == "none" else 3)
    ids = torch.randint(PAD + 1, vocab_size, (len(lengths), length),
                        generator=generator(f"{name}/{padding}"))
    mask = torch.zeros_like(ids)
    for row, count in enumerate(lengths):
        begin = length - count if padding == "left" else 0
        mask[row, begin:begin + count] = 1
    return torch.where(mask == 1, ids, PAD), mask


@torch.no_grad()
def hidden_states(name, folder, dtype):
    """For every kind of padding: ids, mask, states."""
    case = CASES[name]
    model = getattr(transformers, case.cls).from_pretrained(folder, dtype=dtype).eval()
    found = {}
    for padding in case.paddings:
        ids, mask = tokens(name, padding, model.config.get_text_config().vocab_size)
        all_states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True,
                           use_cache=False).hidden_states
        states = torch.cat([all_states[k] for k in case.states], -1)
        found |= {f"{padding}.ids": ids, f"{padding}.mask": mask, f"{padding}.states": states}
    return found


def run_elsewhere(name, folder, instruction_set):
    """hidden_states() in bfloat16, in a process limited to these instructions."""
    aten, onednn = instruction_set
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out.safetensors"
        subprocess.run([sys.executable, __file__, "--only", name, "--bfloat16", folder, out],
                       env=os.environ | {"ATEN_CPU_CAPABILITY": aten, "ONEDNN_MAX_CPU_ISA": onednn},
                       check=True)
        return load_file(out)


def error(got, expected):
    """L2 norm of the difference, relative to that of `expected`."""
    return ((got.float() - expected).norm() / expected.norm()).item()


def make(name, out):
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    model = folder / "model"
    write_model(name, model)
    expected = hidden_states(name, model, torch.float32)
    runs = {" ".join(s): run_elsewhere(name, model, s) for s in INSTRUCTION_SETS}
    errors = {}
    for key in [k for k in expected if k.endswith(".states")]:
        errors[key] = {s: error(run[key], expected[key]) for s, run in runs.items()}
        worst = max(errors[key], key=errors[key].get)
        expected[key + ".bfloat16"] = runs[worst][key]
    save_file({n: t.contiguous() for n, t in expected.items()}, folder / "expected.safetensors")
    (folder / "manifest.json").write_text(json.dumps(
        {"states": CASES[name].states, "paddings": list(CASES[name].paddings),
         "bfloat16_errors": errors, "made_with": versions(("torch", "transformers"))}, indent=1) + "\n")
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{name}: {size / 1e3:.0f} kB, {errors}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--out", type=Path, default=ROOT / "tests/data/parity/text_encoders")
    parser.add_argument("--bfloat16", nargs=2, type=Path, metavar=("MODEL", "OUT"),
                        help="only write MODEL's states in bfloat16 to OUT")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.bfloat16:
        model, out = args.bfloat16
        found = hidden_states(args.only[0], model, torch.bfloat16)
        save_file({n: t.contiguous() for n, t in found.items()}, out)
        return
    for name in args.only:
        make(name, args.out.resolve())


if __name__ == "__main__":
    main()
