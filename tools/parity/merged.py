"""A LoRA of any spelling for a random pipeline, and the pipeline with its weights merged in float32."""
import json

import make_adapters
import torch
from safetensors.torch import load_file, save_file

OF_CLASS = {"FluxTransformer2DModel": "flux", "Flux2Transformer2DModel": "flux2",
            "ZImageTransformer2DModel": "zimage", "Krea2Transformer2DModel": "krea2",
            "Flux3Transformer2DModel": "flux3",
            "QwenImage21Transformer2DModel": "qwen21",
            "QwenImageTransformer2DModel": "qwen-image"}


# Of language models: prefix, what is between segments, the factors' names.
TEXT = {"text, diffusers": ("text_encoder.", ".", ("lora_A", "lora_B")),
        "text, kohya": ("lora_te_", "_", ("lora_down", "lora_up")),
        "text, comfyui": ("text_encoders.qwen3_4b.transformer.", ".", ("lora_A", "lora_B"))}
RANK = 2


def write_text(folder, out, prefix, between, words):
    """Writes the merged language model to the folder `out` and returns the LoRA's tensors."""
    tensors, factors = load_file(folder / "model.safetensors"), {}
    generator = torch.Generator().manual_seed(3000)
    for name in sorted(n for n in tensors if n.endswith("_proj.weight") and "vision" not in n):
        rows, columns = tensors[name].shape
        down = torch.randn(RANK, columns, generator=generator) * columns**-0.5
        up = torch.randn(rows, RANK, generator=generator) * 0.3
        key = prefix + name.removesuffix(".weight").replace(".", between)
        factors |= {f"{key}.{words[0]}.weight": down, f"{key}.{words[1]}.weight": up,
                    f"{key}.alpha": torch.tensor(3.0)}
        tensors[name] = tensors[name].float() + 3 / RANK * up @ down
    out.mkdir()
    (out / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text())))
    save_file(tensors, out / "model.safetensors", {"format": "pt"})
    return factors


def write(model, lora, merged, spelling):
    """Write the LoRA for the pipeline in the folder `model`, and the pipeline with it merged to `merged`."""
    merged.mkdir()
    part = "text_encoder" if spelling in TEXT else "transformer"
    for other in model.iterdir():
        if other.name != part:
            (merged / other.name).symlink_to(other)
    if spelling in TEXT:
        tensors = write_text(model / part, merged / part, *TEXT[spelling])
    else:
        base = make_adapters.Base(model, model / part, None)
        files = {"tucker": make_adapters.tucker(base, 3100)} if spelling == "tucker" else \
            make_adapters.files_of(OF_CLASS[base.config["_class_name"]], base)
        writer = files[spelling]
        base.changed(writer.changes).save_pretrained(merged / part)
        tensors = writer.tensors
    save_file({name: t.contiguous() for name, t in tensors.items()}, lora)
