"""Dump files with every kind of coded weights, and the numbers that they stand for.

usage: python dump_blocks.py [--out tests/data/parity/blocks]

Writes blocks.gguf (each of the gguf package's types that Braid reads; blocks of random bits),
float8.safetensors (each spelling of scales), comfy.safetensors and comfy_note.safetensors (each
format that ComfyUI's own package writes, marked in tensors or in the header). numbers.safetensors
has what the gguf package, diffusers and comfy-kitchen decode. Also writes the transformer and T5 of
basic/model as such files.
"""
import argparse
import json
import re
from pathlib import Path

import comfy_kitchen
import gguf
import numpy as np
import torch
from diffusers.quantizers.bfl.utils import (dequantize_fp8r, dequantize_nvfp4, quantize_fp8r,
                                            quantize_nvfp4)
from comfy_kitchen.tensor import TensorCoreNVFP4Layout
from comfy_kitchen.tensor.int8 import TensorWiseINT8Layout
from comfy_kitchen.tensor.mxfp8 import TensorCoreMXFP8Layout
from gguf import GGMLQuantizationType as T
from safetensors.torch import load_file, save_file

ROWS, COLUMNS = 3, 512
# Offsets of float16 numbers in a block; all else is random bits.
HALVES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
          T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
          T.IQ4_NL: [0], T.IQ4_XS: [0]}


def blocks(kind, random):
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    rows = random.integers(0, 256, (ROWS, COLUMNS // numbers, size), dtype=np.uint8)
    for at in HALVES[kind]:
        halves = random.normal(0, 0.02, rows.shape[:2]).astype(np.float16)
        halves[0, 0] = 3e-6  # subnormal
        rows[:, :, at:at + 2] = halves[..., None].view(np.uint8)
    return rows.reshape(ROWS, -1)


def dump_gguf(path, random, numbers):
    writer = gguf.GGUFWriter(path, "flux")
    writer.add_array("some.words", ["one", "two"])
    for kind in HALVES:
        data = blocks(kind, random)
        writer.add_tensor(kind.name, data, raw_dtype=kind)
        numbers[kind.name] = torch.from_numpy(gguf.dequantize(data, kind))
    plain = random.normal(0, 1, (2, 3)).astype(np.float32)
    writer.add_tensor("F32", plain)
    writer.add_tensor("F16", plain.astype(np.float16))
    writer.add_tensor("BF16", gguf.quantize(plain, T.BF16), raw_dtype=T.BF16)
    numbers |= {"F32": torch.from_numpy(plain), "F16": torch.from_numpy(plain).half(),
                "BF16": torch.from_numpy(gguf.dequantize(gguf.quantize(plain, T.BF16), T.BF16))}
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def dump_float8(path, numbers):
    w = torch.randn(ROWS, 64, generator=torch.Generator().manual_seed(2)) * 0.05
    by_row, row_scales = quantize_fp8r(w)
    one = w.abs().max() / 448
    by_one = (w / one).to(torch.float8_e4m3fn)
    wide = (w / one).to(torch.float8_e5m2)
    four, scales, outer = quantize_nvfp4(w)
    every = torch.arange(256, dtype=torch.uint8).view(4, 64)
    tensors = {
        "plain.weight": every.view(torch.float8_e4m3fn), "wide.weight": every.clone().view(torch.float8_e5m2),
        "rows.weight": by_row, "rows.weight_scale": row_scales,
        "one.weight": by_one, "one.scale_weight": one.clone().reshape(1), "one.scale_input": torch.ones(1),
        "e5m2.weight": wide, "e5m2.weight_scale": one, "e5m2.input_scale": torch.ones(()),
        "e5m2.comfy_quant": torch.tensor(list(json.dumps({"format": "float8_e5m2"}).encode()),
                                         dtype=torch.uint8),
        "four.weight": four, "four.weight_scale": scales, "four.weight_scale_2": outer,
        "four.input_scale": torch.ones(()),
        "scaled_fp8": torch.empty(2, dtype=torch.float8_e4m3fn)}
    save_file(tensors, path)
    numbers |= {"plain": tensors["plain.weight"].float(), "wide": tensors["wide.weight"].float(),
                "rows": dequantize_fp8r(by_row, row_scales), "one": by_one.float() * one,
                "e5m2": wide.float() * one, "four": dequantize_nvfp4(four, scales, outer)}


def comfy_layers():
    """For each format: ComfyUI's mark, its tensors and its numbers. There are more rows, and more scales
    per row, than a tile of scales has."""
    random = torch.Generator().manual_seed(3)
    draw = lambda rows, columns: torch.randn(rows, columns, generator=random) * 0.05
    w = draw(144, 80)
    q, params = TensorCoreNVFP4Layout.quantize(w)
    yield ("nvfp4", {"format": "nvfp4"},
           {"": q, "_scale": params.block_scale, "_scale_2": params.scale},
           TensorCoreNVFP4Layout.dequantize(q, params))
    w = draw(130, 160)
    q, scales = comfy_kitchen.quantize_mxfp8(w)
    yield ("mxfp8", {"format": "mxfp8"}, {"": q, "_scale": scales.view(torch.uint8)},
           comfy_kitchen.dequantize_mxfp8(q, scales, torch.float32))
    for name, choice, mark in (
            ("int8_one", {}, {}),
            ("int8_rows", {"per_channel": True}, {"per_row": True}),
            ("int8_turned", {"per_channel": True, "convrot": True, "convrot_groupsize": 16},
             {"convrot": True, "convrot_groupsize": 16})):
        q, params = TensorWiseINT8Layout.quantize(draw(3, 64), **choice)
        yield (name, {"format": "int8_tensorwise"} | mark, {"": q, "_scale": params.scale},
               TensorWiseINT8Layout.dequantize(q, params))


def dump_comfy(out, numbers):
    tensors, marked, said = {}, {}, {}
    for name, mark, parts, meant in comfy_layers():
        tensors |= {f"{name}.weight{suffix}": part for suffix, part in parts.items()}
        marked[f"{name}.comfy_quant"] = torch.tensor(list(json.dumps(mark).encode()), dtype=torch.uint8)
        said[name] = mark
        numbers[name] = meant
    save_file(tensors | marked, out / "comfy.safetensors")
    save_file(tensors, out / "comfy_note.safetensors",
              {"_quantization_metadata": json.dumps({"format_version": "1.0", "layers": said})})


def name_in_llama(name):
    """llama.cpp's name of a T5 tensor."""
    layer = re.sub(r"^encoder\.block\.(\d+)\.layer\.[01]\.", r"enc.blk.\1.", name)
    for theirs, ours in {"shared": "token_embd", "encoder.final_layer_norm": "enc.output_norm",
                         "SelfAttention.relative_attention_bias": "attn_rel_b",
                         "SelfAttention.": "attn_", "DenseReluDense.wi_0": "ffn_gate",
                         "DenseReluDense.wi_1": "ffn_up", "DenseReluDense.wo": "ffn_down"}.items():
        layer = layer.replace(theirs, ours)
    norm = "attn_norm" if ".layer.0." in name else "ffn_norm"
    return layer.replace("layer_norm", norm)


def dump_part(path, tensors, kinds):
    """Matrices whose rows are whole blocks, in each kind in turn; all else as numbers."""
    writer = gguf.GGUFWriter(path, "flux")
    matrices = sorted(name for name, tensor in tensors.items() if tensor.ndim == 2)
    for name, tensor in tensors.items():
        data = tensor.float().numpy()
        if name in matrices and data.shape[1] % 32 == 0:
            kind = kinds[matrices.index(name) % len(kinds)]
            writer.add_tensor(name, gguf.quantize(data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def dump_scaled(path, tensors):
    """Matrices alternate between ComfyUI's form and Black Forest Labs'."""
    out = {"scaled_fp8": torch.empty(2, dtype=torch.float8_e4m3fn)}
    matrices = sorted(name for name, tensor in tensors.items() if tensor.ndim == 2)
    for name, tensor in tensors.items():
        if name not in matrices:
            out[name] = tensor.bfloat16()
        elif matrices.index(name) % 2:
            out[name], out[name + "_scale"] = quantize_fp8r(tensor)
        else:
            scale = tensor.abs().max() / 448
            out[name] = (tensor / scale).to(torch.float8_e4m3fn)
            out[name.replace(".weight", ".scale_weight")] = scale
    save_file({"model.diffusion_model." + name: t for name, t in out.items()}, path)


def dump_model(out, basic):
    prefix = "model.diffusion_model."
    flux = {name.removeprefix(prefix): tensor
            for name, tensor in load_file(basic / "transformer.safetensors").items()}
    dump_part(out / "flux.gguf", flux, [T.Q4_0, T.Q8_0, T.Q5_1, T.Q4_1, T.Q5_0])
    dump_scaled(out / "flux_float8.safetensors", flux)
    t5 = load_file(basic / "model/text_encoder_2/model.safetensors")
    dump_part(out / "t5.gguf", {name_in_llama(n): t for n, t in t5.items()}, [T.Q8_0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("tests/data/parity/blocks"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    numbers = {}
    dump_model(out, Path(__file__).resolve().parents[2] / "tests/data/parity/basic")
    dump_gguf(out / "blocks.gguf", np.random.default_rng(1), numbers)
    dump_float8(out / "float8.safetensors", numbers)
    dump_comfy(out, numbers)
    save_file({name: t.contiguous() for name, t in numbers.items()}, out / "numbers.safetensors")


if __name__ == "__main__":
    main()
