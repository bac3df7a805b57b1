"""How far the reference deviates from a fixture on each instruction set that this processor has.

usage: python spread.py FOLDER...

Each adds sums in another order. That moves the bfloat16 error of a tiny part by up to a third, and
float32 by a few units in the last place. MKL's exp() also differs by such a unit, which times a
guidance of 4000 is 1e-4 of an angle. So a figure from one processor is no bound for another, and
new figures are merged with those of other processors (larger()).

FOLDER is one of make_fixtures.py's, which calls measure().
"""
import json
import os
import subprocess
import sys
from pathlib import Path

import dump
import torch
from dump import Request
from parts import outputs
from random_pipeline import DEMO
from safetensors.torch import load_file

TABLE = Path(__file__).resolve().parents[1] / "shell/instruction_sets.txt"
# MKL computes otherwise on processors of other makers than Intel, whatever instructions these have.
# With these settings it comes near to that beside the newest loops of LibTorch and oneDNN.
MKL_PATHS = ("COMPATIBLE", "AVX2")


def instruction_sets():
    """Environment settings by name, oldest first."""
    rows = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    cpu = Path("/proc/cpuinfo").read_text()
    return {name: dict(setting.split("=") for setting in settings)
            for name, *settings in rows if name == "baseline" or f" {name}" in cpu}


def all_settings():
    """Those of instruction_sets(), and MKL's code paths."""
    return instruction_sets() | {f"mkl_{path.lower()}": {"MKL_CBWR": path} for path in MKL_PATHS}


def larger(old, new):
    """The larger of both figures, or of each in dicts. A bound must hold on every processor, and no
    machine has them all."""
    if not isinstance(new, dict):
        return max(old, new)
    return old | {name: larger(old[name], value) if name in old else value
                  for name, value in new.items()}


def largest(got, expected):
    """The largest difference, relative to the largest value."""
    return ((got - expected).abs().max() / expected.abs().max()).item()


def first_velocity(pipe, request, start):
    return dump.run(pipe, request, latents=start.to(pipe.transformer.dtype))["velocity_first"]


def known_outputs(pipe, parts):
    return outputs(pipe, parts) if parts else {}


def of_fixture(folder):
    """bfloat16's errors (relative L2) and float32's largest differences, by part."""
    manifest = json.loads((folder / "manifest.json").read_text())
    request = Request(**manifest["request"])
    whole, components = (folder / f"{name}.safetensors" for name in ("expected", "components"))
    whole, parts = load_file(whole), load_file(components) if components.exists() else {}
    model = folder / manifest["model"]
    model = model if model.exists() else DEMO
    exact, rounded = dump.load(model), dump.load(model, "bfloat16")
    errors = {n: dump.relative_error(t.float(), parts[n])
              for n, t in known_outputs(rounded, parts).items() if not n.endswith("_tiled")}
    differences = {n: largest(t, parts[n]) for n, t in known_outputs(exact, parts).items()}
    if not parts:  # else the text models' outputs are among them
        differences["prompt_embeds"] = largest(
            dump.run(exact, request)["prompt_embeds"], whole["prompt_embeds"])
    velocity = first_velocity(rounded, request, whole["bfloat16.latents_initial"])
    errors["velocity_first"] = dump.relative_error(
        velocity, whole["bfloat16.velocity_first_float32"])
    return {"bfloat16_errors": errors, "float32_differences": differences}


def four_digits(value):
    return float(f"{value:.4g}")


def measure(folders):
    """For each folder, bfloat16_errors for every instruction set and the largest float32_spread, also
    with MKL's code paths."""
    found = {}
    for name, settings in all_settings().items():
        done = subprocess.run([sys.executable, __file__, *folders], check=True, text=True,
                              stdout=subprocess.PIPE, env=os.environ | settings)
        found[name] = json.loads(done.stdout)
    merged = []
    for i in range(len(folders)):
        of_sets = {name: results[i] for name, results in found.items()}
        first = next(iter(of_sets.values()))
        errors = {part: {name: four_digits(of_sets[name]["bfloat16_errors"][part])
                         for name in instruction_sets()}
                  for part in first["bfloat16_errors"]}
        spread = {part: four_digits(max(r["float32_differences"][part] for r in of_sets.values()))
                  for part in first["float32_differences"]}
        merged.append({"bfloat16_errors": errors, "float32_spread": spread})
    return merged


def main():
    torch.set_num_threads(1)
    print(json.dumps([of_fixture(Path(folder)) for folder in sys.argv[1:]]))


if __name__ == "__main__":
    main()
