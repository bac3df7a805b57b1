"""Rebuild the fixtures and compare them with the committed ones.

usage: python compare_fixtures.py

Machines round differently: a tensor may differ by TOLERANCE of its largest value, a picture by 1
anywhere and by more on PIXELS of its values. Token ids, names and shapes must be equal. An error of
bfloat16 may differ by ERRORS of itself, on the instruction sets that this machine has.
"""
import json
import sys
import tempfile
from pathlib import Path

import make_denoisers
import make_fixtures
import torch
from safetensors.torch import load_file

COMMITTED = make_fixtures.ROOT / "tests/data/parity"
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 2e-3}  # integers: none
PIXELS = 1e-3
ERRORS = 0.25


def tensor_difference(name, got, expected):
    """A sentence if they differ too much, else None."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{name} has another shape or type"
    apart = (got.double() - expected.double()).abs()
    if got.dtype == torch.uint8:
        share = (apart > 1).double().mean().item()
        return f"{name}: {share:.1e} of the values differ" if share > PIXELS else None
    error = (apart.max() / expected.double().abs().max().clamp(min=1e-30)).item()
    most = TOLERANCE[got.dtype] if got.is_floating_point() else 0
    return f"{name} differs by {error:.1e}" if error > most else None


def file_differences(path, committed):
    got, expected = load_file(path), load_file(committed)
    if got.keys() != expected.keys():
        return [f"other tensors: {sorted(got.keys() ^ expected.keys())}"]
    found = (tensor_difference(name, got[name], expected[name]) for name in expected)
    return [sentence for sentence in found if sentence]


def folder_differences(made, committed):
    paths = [{p.relative_to(root) for p in root.rglob("*.safetensors")}
             for root in (made, committed)]
    found = [f"{path} is not in both" for path in sorted(paths[0] ^ paths[1])]
    for path in sorted(paths[0] & paths[1]):
        wrong = file_differences(made / path, committed / path)
        found += [f"{path}: {sentence}" for sentence in wrong]
    return [f"{made.name}/{sentence}" for sentence in found]


def error_differences(folder, committed):
    """Compares a fixture's bfloat16 errors."""
    got, expected = (json.loads((path / "manifest.json").read_text())["bfloat16_errors"]
                     for path in (folder, committed))
    for part, errors in got.items():
        for name, error in errors.items():
            if abs(error - expected[part][name]) > ERRORS * expected[part][name]:
                yield f"{part} has error {error} on {name}, not {expected[part][name]}"


def differences(work):
    """One sentence per difference, after building all cases in the folder `work`."""
    found = []
    make_fixtures.make_all(make_fixtures.CASES, work)
    for name in make_fixtures.CASES:
        wrong = error_differences(work / name, COMMITTED / name)
        found += [f"{name}: {sentence}" for sentence in wrong]
        found += folder_differences(work / name, COMMITTED / name)
    for name in make_fixtures.WITH_PICTURES:
        make_fixtures.make_with_pictures(name, work)
        found += folder_differences(work / name, COMMITTED / name)
    for name in make_denoisers.CASES:
        make_denoisers.make(name, work / "denoisers")
        found += folder_differences(work / "denoisers" / name, COMMITTED / "denoisers" / name)
    return found


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        found = differences(Path(work).resolve())
    print("\n".join(found) or "the committed fixtures are what diffusers computes")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
