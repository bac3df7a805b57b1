"""Files of coded weights, and the numbers that their codes stand for by the formulas of docs/numerics.md and of ggml."""

import struct

import numpy as np
import torch

GGUF_VERSION, ALIGNMENT = 3, 32
F32, Q8_0 = 0, 8
BLOCK = 32  # numbers of Q8_0 with one scale


def is_matrix(name, tensor):
    return tensor.ndim == 2 and name.endswith(".weight")


def int8_numbers(tensors):
    """What `weight_form` int8 makes of matrices: rows of codes, one scale each."""
    numbers = {}
    for name, tensor in tensors.items():
        numbers[name] = tensor
        if is_matrix(name, tensor):
            scale = (tensor.abs().amax(1, keepdim=True) / 127.5).clamp(min=torch.finfo(torch.float32).eps)
            numbers[name] = (tensor * (1 / scale)).round().clamp(-128, 127) * scale
    return numbers


def q8_0(matrix):
    """(bytes, numbers): a half and 32 codes for each block."""
    blocks = matrix.numpy().reshape(-1, BLOCK)
    scales = (np.abs(blocks).max(1, keepdims=True) / 127).astype(np.float16)
    codes = np.round(blocks / scales.astype(np.float32)).clip(-127, 127).astype(np.int8)
    data = np.concatenate([scales.view(np.uint8), codes.view(np.uint8)], 1)
    return data.tobytes(), torch.from_numpy(codes.astype(np.float32) * scales.astype(np.float32)).view(matrix.shape)


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def write_gguf(tensors, file):
    """Writes matrices as Q8_0 and the rest as numbers; returns the numbers that the file stands for."""
    header, data, numbers = b"GGUF" + struct.pack("<IQQ", GGUF_VERSION, len(tensors), 0), b"", {}
    for name, tensor in tensors.items():
        kind = Q8_0 if is_matrix(name, tensor) and tensor.shape[1] % BLOCK == 0 else F32
        coded, numbers[name] = q8_0(tensor) if kind == Q8_0 else (tensor.numpy().tobytes(), tensor)
        sizes = tuple(reversed(tensor.shape))
        header += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, len(data))
        data += coded + padding(len(coded))
    file.write_bytes(header + padding(len(header)) + data)
    return numbers
