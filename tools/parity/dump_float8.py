"""Dump torchao's float8 codes and scales of a few rows.

usage: python dump_float8.py [--out tests/data/parity/float8]

Writes rows.safetensors with int8_requirements.txt's torchao. It rounds the scales of bfloat16 weights
to bfloat16 and Braid does not, so the file is made from float32 weights.
"""
import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file
from torchao.quantization import PerRow
from torchao.quantization.quantize_.workflows.float8.float8_tensor import Float8Tensor

ROWS, COLUMNS = 24, 64


def weights():
    """Rows as models have them, and rows that test the formula's corners."""
    w = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(5)) * 0.02
    w[0] = 1e-30 * (torch.arange(COLUMNS) - 20)
    w[1] = torch.arange(COLUMNS) - 31.5
    w[2, 0] = 100.0  # one value dominates the row: subnormal codes
    w[3] = 448 * torch.linspace(-1, 1, COLUMNS)  # the scale is 1: ties of codes
    w[4] = torch.arange(COLUMNS) * 2.0 ** -10
    w[4, 0] = 448.0
    w[5] = 6e4 * torch.linspace(-1, 1, COLUMNS)
    return w


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("tests/data/parity/float8"))
    out = parser.parse_args().out
    tensors = {"weights": weights()}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        made = Float8Tensor.from_hp(weights().to(dtype).float(), granularity=PerRow())
        tensors[f"{name}.codes"] = made.qdata.view(torch.uint8).clone()
        tensors[f"{name}.scales"] = made.scale.clone()
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "rows.safetensors")


if __name__ == "__main__":
    main()
