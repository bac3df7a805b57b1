"""Names and shapes of a file's tensors, without its numbers: .safetensors and .gguf."""

import json
import os
import struct
from pathlib import Path

import torch

from .process import Refused

MOST_HEADER = 100 << 20  # bytes, as in the safetensors library
DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}
# Beside a coded matrix: its scales and marks, which are no tensors of the model.
CODES = ("comfy_quant", "weight_scale", "weight_scale_2", "weight_scale_inv", "input_scale", "scale_weight", "scale_input",
         "activation_scale")
MARKS = ("scaled_fp8",)

GGUF_MAGIC = b"GGUF"
GGUF_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value of each type
GGUF_STRING, GGUF_ARRAY = 8, 9
GGUF_MOST_DIMS = 4


def safetensors_shapes(file):
    with open(file, "rb") as opened:
        (size,) = struct.unpack("<Q", opened.read(8))
        if size > min(MOST_HEADER, os.path.getsize(file)):
            raise ValueError
        header = json.loads(opened.read(size))
    header.pop("__metadata__", None)
    return {name: (DTYPES.get(t["dtype"], torch.uint8), list(t["shape"])) for name, t in header.items()}


class GgufReader:
    def __init__(self, opened):
        self.opened = opened

    def bytes(self, count):
        data = self.opened.read(count)
        if len(data) != count:
            raise ValueError
        return data

    def number(self, code):
        return struct.unpack("<" + code, self.bytes(struct.calcsize("<" + code)))[0]

    def text(self):
        size = self.number("Q")
        if size > MOST_HEADER:
            raise ValueError
        return self.bytes(size).decode()

    def skip_value(self, kind):
        if kind == GGUF_STRING:
            self.text()
        elif kind == GGUF_ARRAY:
            kind, count = self.number("I"), self.number("Q")
            if kind in GGUF_SIZES:
                self.opened.seek(GGUF_SIZES[kind] * count, os.SEEK_CUR)
            else:
                for _ in range(count):
                    self.skip_value(kind)
        else:
            self.bytes(GGUF_SIZES[kind])


def gguf_shapes(file):
    with open(file, "rb") as opened:
        read = GgufReader(opened)
        read.bytes(len(GGUF_MAGIC))
        read.number("I")  # the version, which Braid checks
        tensors, values = read.number("Q"), read.number("Q")
        for _ in range(values):
            read.text()
            read.skip_value(read.number("I"))
        shapes = {}
        for _ in range(tensors):
            name, dims = read.text(), read.number("I")
            if dims > GGUF_MOST_DIMS:
                raise ValueError
            shape = [read.number("Q") for _ in range(dims)][::-1]
            read.number("I"), read.number("Q")  # the type, the place
            shapes[name] = (torch.float32, shape)
        return shapes


def tensors_of(file):
    """Meta tensors by name. Raises Refused for a file that is neither, or is damaged."""
    try:
        with open(file, "rb") as opened:
            is_gguf = opened.read(len(GGUF_MAGIC)) == GGUF_MAGIC
        shapes = gguf_shapes(file) if is_gguf else safetensors_shapes(file)
        return {
            name: torch.empty(shape, dtype=dtype, device="meta")
            for name, (dtype, shape) in shapes.items()
            if name.rpartition(".")[2] not in CODES and name not in MARKS
        }
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, struct.error) as error:
        raise Refused(f"{Path(file).name} should be a .safetensors or .gguf file, its header is not") from error
