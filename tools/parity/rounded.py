"""A pipeline whose transformer has the numbers that Braid's 8-bit weights stand for (docs/numerics.md)."""
import coded_file
import torch
from safetensors.torch import save_file


def of_codes(weight):
    """One scale per row, half to even."""
    scale = (weight.abs().amax(1, keepdim=True) / 127.5).clamp(min=torch.finfo(torch.float32).eps)
    return (weight * (1 / scale)).round().clamp(-128, 127) * scale


def is_coded(name, tensor):
    """Whether Braid holds the tensor in 8 bits. Krea 2's mixer of taps, a number for each, stays as it is."""
    return tensor.ndim == 2 and name.endswith(".weight") and "projector" not in name


def round_module(module):
    """Round the weights of `module` in place."""
    with torch.no_grad():
        for name, tensor in module.named_parameters():
            if is_coded(name, tensor):
                tensor.copy_(of_codes(tensor))


def write(model, out):
    """Write the pipeline of the folder `model` to the new folder `out`, which is returned."""
    (out / "transformer").mkdir(parents=True)
    for part in model.iterdir():
        if part.name != "transformer":
            (out / part.name).symlink_to(part)
    source = model / "transformer"
    tensors = {name: of_codes(tensor) if is_coded(name, tensor) else tensor
               for name, tensor in coded_file.read(source).items()}
    save_file({name: t.contiguous() for name, t in tensors.items()},
              out / "transformer/diffusion_pytorch_model.safetensors", {"format": "pt"})
    (out / "transformer/config.json").write_text((source / "config.json").read_text())
    return out
