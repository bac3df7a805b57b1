"""How far the reference deviates from a fixture on each instruction set that this processor has.

usage: python spread.py FOLDER...

Each adds sums in another order. That moves the bfloat16 error of a tiny part by up to a third, and
float32 by a few units in the last place. MKL's exp() also differs by such a unit, which times a
guidance of 4000 is 1e-4 of an angle. So a figure from one processor is no bound for another.

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


def instruction_sets():
    """Environment settings by name, oldest first."""
    rows = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    cpu = Path("/proc/cpuinfo").read_text()
    return {name: dict(setting.split("=") for setting in settings)
            for name, *settings in rows if name == "baseline" or f" {name}" in cpu}


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
    """For each folder, bfloat16_errors for every instruction set and the largest float32_spread."""
    found = {}
    for name, settings in instruction_sets().items():
        done = subprocess.run([sys.executable, __file__, *folders], check=True, text=True,
                              stdout=subprocess.PIPE, env=os.environ | settings)
        found[name] = json.loads(done.stdout)
    merged = []
    for i in range(len(folders)):
        of_sets = {name: results[i] for name, results in found.items()}
        first = next(iter(of_sets.values()))
        errors = {part: {name: four_digits(r["bfloat16_errors"][part]) for name, r in of_sets.items()}
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
