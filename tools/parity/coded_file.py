"""Transformers and text encoders in the codes that people have them in, and the numbers that these
stand for, as the packages that write such files make them.

A kind is "gguf" (every type that fits a row, mixed), "float8" (a scale a row or one for all,
mixed) or "comfy" (nvfp4, mxfp8, int8, ConvRot, as comfy-kitchen writes them, mixed).
"""
import json
import re
import zlib

import comfy_kitchen
import gguf
import numpy as np
import torch
from comfy_kitchen.tensor import TensorCoreNVFP4Layout
from comfy_kitchen.tensor.int8 import TensorWiseINT8Layout
from diffusers.quantizers.bfl.utils import dequantize_fp8r, quantize_fp8r
from gguf import GGMLQuantizationType as T
from safetensors.torch import load_file, save_file

GGUF = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.BF16, T.F16, T.F32]
# gguf writes no K-quants: their scales and codes are drawn. Where halves stand in a block.
K_QUANTS = {T.Q2_K: (80, 82), T.Q3_K: (108,), T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,),
            T.IQ4_XS: (0,)}


def choice(name, choices):
    return choices[zlib.crc32(name.encode()) % len(choices)]


def drawn_blocks(kind, rows, columns, seed):
    """Blocks of random codes as large as a layer's numbers."""
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (rows, columns // numbers, size), dtype=np.uint8)
    for at in K_QUANTS[kind]:
        blocks[:, :, at:at + 2] = random.normal(0, 1, blocks.shape[:2] + (1,)).astype(
            np.float16).view(np.uint8)
    meant = gguf.dequantize(blocks.reshape(rows, -1), kind)
    for at in K_QUANTS[kind]:  # the numbers are linear in the halves
        halves = blocks[:, :, at:at + 2].copy().view(np.float16)
        blocks[:, :, at:at + 2] = (halves / meant.std() / columns ** 0.5).astype(
            np.float16).view(np.uint8)
    return blocks.reshape(rows, -1)


def gguf_coded(name, tensor):
    """(bytes, numbers, type)."""
    data = tensor.float().numpy()
    if tensor.ndim != 2:
        kind = choice(name, [T.F32, T.F16, T.BF16]) if name.endswith(".bias") else T.F32
    elif data.shape[1] % 256 == 0:
        kind = choice(name, list(K_QUANTS))
    else:
        kind = choice(name, [k for k in GGUF if data.shape[1] % gguf.GGML_QUANT_SIZES[k][0] == 0])
    if kind in K_QUANTS:
        codes = drawn_blocks(kind, *data.shape, zlib.crc32(name.encode()))
    else:
        codes = gguf.quantize(data, kind)
    return codes, torch.from_numpy(gguf.dequantize(codes, kind)).view(tensor.shape), kind


def write_gguf(path, tensors):
    """Returns the numbers."""
    writer, numbers = gguf.GGUFWriter(path, "flux"), {}
    for name, tensor in tensors.items():
        codes, numbers[name], kind = gguf_coded(name, tensor)
        writer.add_tensor(name, np.ascontiguousarray(codes), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return numbers


def float8_coded(name, tensor):
    if choice(name, [True, False]):
        codes, scales = quantize_fp8r(tensor)
        return {"": codes, "_scale": scales}, dequantize_fp8r(codes, scales)
    dtype = choice(name + "dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
    scale = tensor.abs().max() / torch.finfo(dtype).max
    codes = (tensor / scale).to(dtype)
    return {"": codes, "_scale": scale}, codes.float() * scale


def comfy_coded(name, tensor):
    """(parts, numbers, what ComfyUI says of it)."""
    rows, columns = tensor.shape
    ways = ["int8", "rows"]
    if columns % 16 == 0:
        ways += ["turned"] * 2 + (["nvfp4"] * 3 if rows % 16 == 0 else [])
    if columns % 32 == 0:
        ways += ["mxfp8"] * 3
    way = choice(name, ways)
    if way == "nvfp4":
        codes, params = TensorCoreNVFP4Layout.quantize(tensor)
        return ({"": codes, "_scale": params.block_scale, "_scale_2": params.scale},
                TensorCoreNVFP4Layout.dequantize(codes, params), {"format": way})
    if way == "mxfp8":
        codes, scales = comfy_kitchen.quantize_mxfp8(tensor)
        return ({"": codes, "_scale": scales.view(torch.uint8)},
                comfy_kitchen.dequantize_mxfp8(codes, scales, torch.float32), {"format": way})
    turned = {"convrot": True, "convrot_groupsize": 16} if way == "turned" else {}
    codes, params = TensorWiseINT8Layout.quantize(tensor, per_channel=way != "int8", **turned)
    return ({"": codes, "_scale": params.scale}, TensorWiseINT8Layout.dequantize(codes, params),
            {"format": "int8_tensorwise"} | turned)


def write_scaled(path, tensors, kind, note):
    """Returns the numbers."""
    out, numbers, marks = {}, {}, {}
    for name, tensor in tensors.items():
        if tensor.ndim != 2 or not name.endswith(".weight"):
            out[name] = numbers[name] = tensor
            continue
        base = name.removesuffix(".weight")
        if kind == "float8":
            parts, numbers[name] = float8_coded(name, tensor)
        else:
            parts, numbers[name], marks[base] = comfy_coded(name, tensor)
        out |= {name + suffix: part for suffix, part in parts.items()}
    metadata = None
    if note:
        metadata = {"_quantization_metadata": json.dumps({"layers": marks})}
    else:
        out |= {base + ".comfy_quant": torch.tensor(list(json.dumps(mark).encode()),
                                                    dtype=torch.uint8)
                for base, mark in marks.items()}
    save_file({name: t.contiguous() for name, t in out.items()}, path, metadata)
    return numbers


def read(folder):
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors |= {name: tensor.float() for name, tensor in load_file(path).items()}
    return tensors


def replace_numbers(folder, tensors):
    """In the one file of a part."""
    path, = folder.glob("*.safetensors")
    save_file({name: t.contiguous() for name, t in tensors.items()}, path, {"format": "pt"})


def unfused(tensors, converter, numbers):
    """Numbers of fused tensors as those that they were made of: rows are only moved."""
    start, ids = 0, {}
    for name, tensor in tensors.items():
        ids[name] = torch.arange(start, start + len(tensor))
        start += len(tensor)
    rows = {}
    for name, moved in converter(ids).items():
        if moved.dtype == torch.int64:
            rows |= zip(moved.tolist(), numbers[name])
    return {name: torch.stack([rows[i] for i in own.tolist()]) for name, own in ids.items()}


def code_transformer(folder, out, kind, converter=lambda tensors: tensors):
    """Writes the file `out`.gguf or .safetensors, whose name it returns, and puts its numbers in the
    place of the transformer's in `folder`."""
    tensors = read(folder)
    fused = converter(tensors)
    if kind == "gguf":
        path = out.with_suffix(".gguf")
        numbers = write_gguf(path, fused)
    else:
        path = out.with_suffix(".safetensors")
        numbers = write_scaled(path, fused, kind.removesuffix(" note"), kind.endswith(" note"))
    replace_numbers(folder, unfused(tensors, converter, numbers))
    return path


LLAMA_CPP = {  # of a language model's layer
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm"}
OUTSIDE = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}


def name_of_qwen3(name):
    """As llama.cpp calls it."""
    name = name.removeprefix("model.")
    found = re.match(r"layers\.(\d+)\.(.*)\.weight$", name)
    if found:
        return f"blk.{found[1]}.{LLAMA_CPP[found[2]]}.weight"
    return OUTSIDE.get(name, name)


def code_text(folder, out, rename):
    """As code_transformer, in GGUF, with llama.cpp's names."""
    tensors = read(folder)
    numbers = write_gguf(out, {rename(name): tensor for name, tensor in tensors.items()})
    replace_numbers(folder, {name: numbers[rename(name)] for name in tensors})
    return out
