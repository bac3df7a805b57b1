"""Transformers and text encoders in the codings of published files, and the numbers that the codes
stand for, according to the packages that write such files.

A kind is "gguf" (every type that fits a row, mixed), "float8" (a scale a row or one for all,
mixed), "comfy" (nvfp4, mxfp8, int8, ConvRot, as comfy-kitchen writes them, mixed), or ComfyUI's
float8 with one scale: "comfy float8", "old comfy float8", and "plain float8" without one.
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

WRITTEN = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.BF16, T.F16, T.F32]
# gguf cannot write these: their scales and codes are drawn. Offsets of halves in a block.
DRAWN = {T.Q2_K: (80, 82), T.Q3_K: (108,), T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,),
         T.IQ4_XS: (0,), T.IQ4_NL: (0,)}


def choice(name, choices):
    return choices[zlib.crc32(name.encode()) % len(choices)]


def gguf_type(name, columns):
    """Any type whose blocks fit a row."""
    return choice(name, [k for k in (*WRITTEN, *DRAWN)
                         if columns % gguf.GGML_QUANT_SIZES[k][0] == 0])


def drawn_blocks(kind, rows, columns, seed):
    """Blocks of random codes, scaled to the size of a layer's numbers."""
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    random = np.random.default_rng(seed)
    blocks = random.integers(0, 256, (rows, columns // numbers, size), dtype=np.uint8)
    for at in DRAWN[kind]:
        blocks[:, :, at:at + 2] = random.normal(0, 1, blocks.shape[:2] + (1,)).astype(
            np.float16).view(np.uint8)
    meant = gguf.dequantize(blocks.reshape(rows, -1), kind)
    for at in DRAWN[kind]:  # the numbers are linear in the halves
        halves = blocks[:, :, at:at + 2].copy().view(np.float16)
        blocks[:, :, at:at + 2] = (halves / meant.std() / columns ** 0.5).astype(
            np.float16).view(np.uint8)
    return blocks.reshape(rows, -1)


def gguf_coded(name, tensor, seed):
    """(bytes, numbers, type); `seed`, a text, and the name choose the type."""
    data = tensor.float().numpy()
    if tensor.ndim != 2:
        kind = choice(name, [T.F32, T.F16, T.BF16]) if name.endswith(".bias") else T.F32
    else:
        kind = gguf_type(seed + name, data.shape[1])
    if kind in DRAWN:
        codes = drawn_blocks(kind, *data.shape, zlib.crc32(name.encode()))
    else:
        codes = gguf.quantize(data, kind)
    return codes, torch.from_numpy(gguf.dequantize(codes, kind)).view(tensor.shape), kind


def write_gguf(path, tensors, seed=""):
    """Returns the numbers."""
    writer, numbers = gguf.GGUFWriter(path, "flux"), {}
    for name, tensor in tensors.items():
        codes, numbers[name], kind = gguf_coded(name, tensor, seed)
        writer.add_tensor(name, np.ascontiguousarray(codes), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return numbers


def float8_coded(name, tensor):
    if choice(name, [True, False]):
        codes, scales = quantize_fp8r(tensor)
        return {".weight": codes, ".weight_scale": scales}, dequantize_fp8r(codes, scales)
    codes, scale = float8_codes(name, tensor)
    return {".weight": codes, ".weight_scale": scale}, codes.float() * scale


def float8_codes(name, tensor):
    """(codes, the scale of all)."""
    dtype = choice(name + "dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
    scale = tensor.abs().max() / torch.finfo(dtype).max
    return (tensor / scale).to(dtype), scale


def block_float8_coded(name, tensor):
    """One scale per 128 x 128 numbers, as DeepSeek's and Qwen's files have them; the last ones are fewer."""
    grid = [-(-extent // 128) for extent in tensor.shape]
    scales = torch.empty(grid)
    codes = torch.empty(tensor.shape, dtype=torch.float8_e4m3fn)
    numbers = torch.empty(tensor.shape)
    for row in range(grid[0]):
        for column in range(grid[1]):
            at = slice(128 * row, 128 * row + 128), slice(128 * column, 128 * column + 128)
            scale = tensor[at].abs().max() / 448
            scales[row, column] = scale
            codes[at] = (tensor[at] / scale).to(torch.float8_e4m3fn)
            numbers[at] = codes[at].float() * scale
    suffix = choice(name + "scales", [".weight_scale_inv", ".weight_scale"])
    return {".weight": codes, suffix: scales}, numbers


def comfy_float8_coded(name, tensor, kind):
    """(parts, numbers, what ComfyUI says of it)."""
    if kind == "plain float8":
        codes = tensor.to(choice(name, [torch.float8_e4m3fn, torch.float8_e5m2]))
        return {".weight": codes}, codes.float(), None
    codes, scale = float8_codes(name, tensor)
    of_x = torch.tensor(0.5)  # of activations, which are multiplied as they are
    numbers = codes.float() * scale
    if kind == "old comfy float8":
        return {".weight": codes, ".scale_weight": scale, ".scale_input": of_x}, numbers, None
    mark = {"format": {torch.float8_e4m3fn: "float8_e4m3fn"}.get(codes.dtype, "float8_e5m2")}
    return {".weight": codes, ".weight_scale": scale, ".input_scale": of_x}, numbers, mark


def comfy_coded(name, tensor):
    """(parts, numbers, ComfyUI's mark)."""
    rows, columns = tensor.shape
    ways = ["int8", "rows"]
    if columns % 16 == 0:
        ways += ["turned"] * 2 + (["nvfp4"] * 3 if rows % 16 == 0 else [])
    if columns % 32 == 0:
        ways += ["mxfp8"] * 3
    way = choice(name, ways)
    if way == "nvfp4":
        codes, params = TensorCoreNVFP4Layout.quantize(tensor)
        return ({".weight": codes, ".weight_scale": params.block_scale,
                 ".weight_scale_2": params.scale},
                TensorCoreNVFP4Layout.dequantize(codes, params), {"format": way})
    if way == "mxfp8":
        codes, scales = comfy_kitchen.quantize_mxfp8(tensor)
        return ({".weight": codes, ".weight_scale": scales.view(torch.uint8)},
                comfy_kitchen.dequantize_mxfp8(codes, scales, torch.float32), {"format": way})
    turned = {"convrot": True, "convrot_groupsize": 16} if way == "turned" else {}
    codes, params = TensorWiseINT8Layout.quantize(tensor, per_channel=way != "int8", **turned)
    return ({".weight": codes, ".weight_scale": params.scale},
            TensorWiseINT8Layout.dequantize(codes, params), {"format": "int8_tensorwise"} | turned)


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
        elif kind == "block float8":
            parts, numbers[name] = block_float8_coded(name, tensor)
        elif kind == "comfy":
            parts, numbers[name], marks[base] = comfy_coded(name, tensor)
        else:
            parts, numbers[name], marks[base] = comfy_float8_coded(name, tensor, kind)
        out |= {base + suffix: part for suffix, part in parts.items()}
    if kind == "old comfy float8":
        out["scaled_fp8"] = torch.zeros(2, dtype=torch.float8_e4m3fn)
    metadata = None
    if note:
        metadata = {"_quantization_metadata": json.dumps({"layers": marks})}
    else:
        out |= {base + ".comfy_quant": torch.tensor(list(json.dumps(mark).encode()),
                                                    dtype=torch.uint8)
                for base, mark in marks.items() if mark}
    save_file({name: t.contiguous() for name, t in out.items()}, path, metadata)
    return numbers


def read(folder):
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors |= {name: tensor.float() for name, tensor in load_file(path).items()}
    return tensors


def replace_numbers(folder, tensors):
    """In the single file of a part."""
    path, = folder.glob("*.safetensors")
    save_file({name: t.contiguous() for name, t in tensors.items()}, path, {"format": "pt"})


def unfused(tensors, converter, numbers):
    """Splits fused numbers into the tensors they were fused from: the converter moves rows, and may join
    those of a tensor end to end."""
    start, ids = 0, {}
    for name, tensor in tensors.items():
        ids[name] = torch.arange(start, start + len(tensor))
        start += len(tensor)
    rows = {}
    for name, moved in converter(ids).items():
        if moved.dtype == torch.int64:
            joined = len(numbers[name]) != len(moved)
            of_rows = numbers[name].view(len(moved), -1) if joined else numbers[name]
            rows |= zip(moved.tolist(), of_rows)
    return {name: torch.stack([rows[i] for i in own.tolist()]) for name, own in ids.items()}


def code_transformer(folder, out, kind, converter=lambda tensors: tensors, seed=""):
    """Writes the file `out`.gguf or .safetensors and returns its name. The transformer in `folder` gets
    the decoded numbers."""
    tensors = read(folder)
    fused = converter(tensors)
    if kind == "gguf":
        path = out.with_suffix(".gguf")
        numbers = write_gguf(path, fused, seed)
    else:
        path = out.with_suffix(".safetensors")
        numbers = write_scaled(path, fused, kind.removesuffix(" note"), kind.endswith(" note"))
    replace_numbers(folder, unfused(tensors, converter, numbers))
    return path


LLAMA_CPP = {  # names in a language model's layer
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm"}
OUTSIDE = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}


def name_of_language_model(name):
    """As llama.cpp calls it; None of what it has in another file."""
    if "vision_tower" in name or "multi_modal_projector" in name:
        return None
    for prefix in ("language_model.", "model.", "language_model."):
        name = name.removeprefix(prefix)
    found = re.match(r"layers\.(\d+)\.(.*)\.weight$", name)
    if found:
        return f"blk.{found[1]}.{LLAMA_CPP[found[2]]}.weight"
    return OUTSIDE.get(name, name)


def pair_rows(rows, heads):
    """What is rotated together beside each other, as LlamaModel.permute of convert_hf_to_gguf.py."""
    return rows.view(heads, 2, -1, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)


def unpair_rows(rows, heads):
    return rows.view(heads, -1, 2, rows.shape[-1]).transpose(1, 2).reshape(rows.shape)


def paired_heads(folder):
    """name -> the heads whose rows llama.cpp pairs, or 0."""
    config = json.loads((folder / "config.json").read_text())
    config = config.get("text_config", config)
    is_mistral = config["model_type"] == "mistral"
    heads = {"attn_q.weight": "num_attention_heads", "attn_k.weight": "num_key_value_heads"}

    def heads_of(name):
        key = heads.get(".".join(name.split(".")[-2:]))
        return config[key] if is_mistral and key else 0
    return heads_of


def code_text(folder, out, rename):
    """As code_transformer, in GGUF, with llama.cpp's names."""
    tensors, heads = read(folder), paired_heads(folder)
    names = {name: rename(name) for name in tensors if rename(name)}

    def turned(turn, name, tensor):
        return turn(tensor, heads(name)) if heads(name) else tensor
    numbers = write_gguf(out, {theirs: turned(pair_rows, theirs, tensors[name])
                               for name, theirs in names.items()})
    replace_numbers(folder, tensors | {name: turned(unpair_rows, theirs, numbers[theirs])
                                       for name, theirs in names.items()})
    return out
