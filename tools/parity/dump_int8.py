"""Dump torchao's int8 codes and scales of a few rows, and the outputs of its layers.

usage: python dump_int8.py [--out tests/data/parity/int8]

Writes v2.safetensors with torchao >= 0.15 (int8_requirements.txt) and v1.safetensors with torchao
0.14.1 (int8_v1_requirements.txt), the last release with version 1.
"""
import argparse
from pathlib import Path

import torch
import torchao
from safetensors.torch import save_file
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_

ROWS, COLUMNS, TOKENS = 24, 64, 5


def weights():
    """Rows as models have them, and rows that test the formula's corners."""
    w = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(5)) * 0.02
    w[0] = 0
    w[1] = 1e-30 * torch.arange(COLUMNS)
    w[2] = torch.arange(COLUMNS) - 31.5  # ties
    w[3, 0] = 100.0  # one value dominates the row
    w[4, 7] = -w[4].abs().max() * 1.5
    w[5] = torch.where(torch.arange(COLUMNS) % 2 == 0, 127.5, -127.5)
    w[6] = 6e4 * torch.linspace(-1, 1, COLUMNS)
    return w


def layer_of(weight, config):
    layer = torch.nn.Linear(COLUMNS, ROWS).to(weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(torch.linspace(-1, 1, ROWS))
    quantize_(layer, config)
    return layer


def fields(weight):
    """Codes [N C] and scales [N 1] of a tensor of either version."""
    inner = getattr(weight, "tensor_impl", None)
    codes, scale = (weight.qdata, weight.scale) if inner is None else (inner.int_data, inner.scale)
    return {"codes": codes.clone(), "scales": scale.reshape(-1, 1).clone()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("tests/data/parity/int8"))
    out = parser.parse_args().out
    is_v1 = torchao.__version__.startswith("0.14")
    tensors = {"weights": weights()}
    x = torch.randn(TOKENS, COLUMNS, generator=torch.Generator().manual_seed(6))
    tensors["x"] = x
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        w = weights().to(dtype)
        layer = layer_of(w, Int8WeightOnlyConfig(set_inductor_config=False))
        for field, value in fields(layer.weight.data).items():
            tensors[f"{name}.{field}"] = value
        with torch.no_grad():
            tensors[f"{name}.y"] = layer(x.to(dtype))
            if not is_v1:
                dynamic = layer_of(w, Int8DynamicActivationInt8WeightConfig(set_inductor_config=False))
                tensors[f"{name}.y_dynamic"] = dynamic(x.to(dtype))
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / ("v1.safetensors" if is_v1 else "v2.safetensors"))
    print(torchao.__version__, torch.__version__)


if __name__ == "__main__":
    main()
