"""Files of coded weights, and the numbers that their codes stand for, by the formula of docs/numerics.md and by ggml's package."""

import gguf
import torch

Q8_0 = gguf.GGMLQuantizationType.Q8_0
BLOCK = gguf.GGML_QUANT_SIZES[Q8_0][0]


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


def write_gguf(tensors, file):
    """Writes matrices as Q8_0 and the rest as numbers; returns the numbers that the file stands for."""
    writer, numbers = gguf.GGUFWriter(file, "tests"), {}
    for name, tensor in tensors.items():
        data, numbers[name] = tensor.numpy(), tensor
        if is_matrix(name, tensor) and tensor.shape[1] % BLOCK == 0:
            codes = gguf.quantize(data, Q8_0)
            writer.add_tensor(name, codes, raw_dtype=Q8_0)
            numbers[name] = torch.from_numpy(gguf.dequantize(codes, Q8_0))
        else:
            writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return numbers
