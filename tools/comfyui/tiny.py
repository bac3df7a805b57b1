"""Tiny random models with the shapes that ComfyUI recognises, and LoRAs for them.

FLUX.1's heads have 128 numbers and there are hidden / 128 of them; ComfyUI takes the hidden size of
the published model for granted where the names say which one it is, so `nodes/` tells it tiny ones.
"""

import json
import math
import shutil
from dataclasses import dataclass

import torch
from safetensors.torch import save_file

HEAD = 128
TIME = 256  # width of the embedded time


@dataclass
class Flux1:
    hidden: int = 256
    doubles: int = 2
    singles: int = 2
    channels: int = 64   # of a token, with what lies beside it
    has_guidance: bool = True
    published: str = "FLUX.1-dev"
    text: int = 4096
    pooled: int = 768

    def config(self):
        return {"num_attention_heads": self.hidden // HEAD, "num_layers": self.doubles,
                "num_single_layers": self.singles, "in_channels": self.channels}

    def shapes(self):
        h = self.hidden
        yield from linear("img_in", h, self.channels)
        yield from linear("txt_in", h, self.text)
        yield from embedder("time_in", h, TIME)
        yield from embedder("vector_in", h, self.pooled)
        if self.has_guidance:
            yield from embedder("guidance_in", h, TIME)
        for i in range(self.doubles):
            for stream in ("img", "txt"):
                name = f"double_blocks.{i}.{stream}"
                yield from linear(f"{name}_mod.lin", 6 * h, h)
                yield from linear(f"{name}_attn.qkv", 3 * h, h)
                yield from norms(f"{name}_attn.norm")
                yield from linear(f"{name}_attn.proj", h, h)
                yield from linear(f"{name}_mlp.0", 4 * h, h)
                yield from linear(f"{name}_mlp.2", h, 4 * h)
        for i in range(self.singles):
            name = f"single_blocks.{i}"
            yield from linear(f"{name}.modulation.lin", 3 * h, h)
            yield from linear(f"{name}.linear1", 7 * h, h)
            yield from linear(f"{name}.linear2", h, 5 * h)
            yield from norms(f"{name}.norm")
        yield from linear("final_layer.adaLN_modulation.1", 2 * h, h)
        yield from linear("final_layer.linear", 64, h)


@dataclass
class Flux2:
    hidden: int = 256
    doubles: int = 1
    singles: int = 2
    published: str = "FLUX.2-klein-4B"
    text: int = 7680

    def config(self):
        return {"num_attention_heads": self.hidden // HEAD, "num_layers": self.doubles,
                "num_single_layers": self.singles}

    def shapes(self):
        h = self.hidden
        yield "img_in.weight", [h, HEAD]
        yield "txt_in.weight", [h, self.text]
        yield "time_in.in_layer.weight", [h, TIME]
        yield "time_in.out_layer.weight", [h, h]
        yield "double_stream_modulation_img.lin.weight", [6 * h, h]
        yield "double_stream_modulation_txt.lin.weight", [6 * h, h]
        yield "single_stream_modulation.lin.weight", [3 * h, h]
        for i in range(self.doubles):
            for stream in ("img", "txt"):
                name = f"double_blocks.{i}.{stream}"
                yield f"{name}_attn.qkv.weight", [3 * h, h]
                yield from norms(f"{name}_attn.norm")
                yield f"{name}_attn.proj.weight", [h, h]
                yield f"{name}_mlp.0.weight", [6 * h, h]
                yield f"{name}_mlp.2.weight", [h, 3 * h]
        for i in range(self.singles):
            name = f"single_blocks.{i}"
            yield f"{name}.linear1.weight", [9 * h, h]
            yield f"{name}.linear2.weight", [h, 4 * h]
            yield from norms(f"{name}.norm")
        yield "final_layer.adaLN_modulation.1.weight", [2 * h, h]
        yield "final_layer.linear.weight", [HEAD, h]


@dataclass
class ZImage:
    # At least the 1024 of its embedded time, and eight thirds of it a multiple of 256, or ComfyUI and
    # diffusers make other layers of it.
    hidden: int = 1152
    layers: int = 1
    published: str = "Z-Image-Turbo"
    text: int = 2560

    def config(self):
        heads = self.hidden // HEAD
        return {"dim": self.hidden, "n_heads": heads, "n_kv_heads": heads, "n_layers": self.layers}

    def block(self, name, has_modulation):
        h, inner = self.hidden, self.hidden * 8 // 3
        yield f"{name}.attention.qkv.weight", [3 * h, h]
        yield f"{name}.attention.out.weight", [h, h]
        yield f"{name}.attention.q_norm.weight", [HEAD]
        yield f"{name}.attention.k_norm.weight", [HEAD]
        for norm in ("attention_norm1", "attention_norm2", "ffn_norm1", "ffn_norm2"):
            yield f"{name}.{norm}.weight", [h]
        yield f"{name}.feed_forward.w1.weight", [inner, h]
        yield f"{name}.feed_forward.w2.weight", [h, inner]
        yield f"{name}.feed_forward.w3.weight", [inner, h]
        if has_modulation:
            yield from linear(f"{name}.adaLN_modulation.0", 4 * h, TIME)

    def shapes(self):
        h = self.hidden
        yield from linear("x_embedder", h, 64)
        yield "cap_embedder.0.weight", [self.text]
        yield from linear("cap_embedder.1", h, self.text)
        yield from linear("t_embedder.mlp.0", 1024, TIME)
        yield from linear("t_embedder.mlp.2", TIME, 1024)
        yield "x_pad_token", [1, h]
        yield "cap_pad_token", [1, h]
        for i in range(2):
            yield from self.block(f"noise_refiner.{i}", True)
            yield from self.block(f"context_refiner.{i}", False)
        for i in range(self.layers):
            yield from self.block(f"layers.{i}", True)
        yield from linear("final_layer.adaLN_modulation.1", h, TIME)
        yield from linear("final_layer.linear", 64, h)


@dataclass
class QwenImage:
    hidden: int = 256
    layers: int = 2
    text: int = 3584      # ComfyUI takes it for granted
    is_at_zero: bool = False   # whether it has the mark of Edit-2511
    is_layered: bool = False
    published = None      # its configurations do not come with Braid: the node writes some

    def block(self, name):
        h = self.hidden
        for side in ("img", "txt"):
            yield from linear(f"{name}.{side}_mod.1", 6 * h, h)
            yield from linear(f"{name}.{side}_mlp.net.0.proj", 4 * h, h)
            yield from linear(f"{name}.{side}_mlp.net.2", h, 4 * h)
        for layer in ("to_q", "to_k", "to_v", "add_q_proj", "add_k_proj", "add_v_proj", "to_out.0", "to_add_out"):
            yield from linear(f"{name}.attn.{layer}", h, h)
        for norm in ("norm_q", "norm_k", "norm_added_q", "norm_added_k"):
            yield f"{name}.attn.{norm}.weight", [HEAD]

    def shapes(self):
        h = self.hidden
        yield from linear("img_in", h, 64)
        yield "txt_norm.weight", [self.text]
        yield from linear("txt_in", h, self.text)
        yield from linear("time_text_embed.timestep_embedder.linear_1", h, TIME)
        yield from linear("time_text_embed.timestep_embedder.linear_2", h, h)
        if self.is_layered:
            yield "time_text_embed.addition_t_embedding.weight", [2, h]
        for i in range(self.layers):
            yield from self.block(f"transformer_blocks.{i}")
        yield from linear("norm_out.linear", 2 * h, h)
        yield from linear("proj_out", 64, h)
        if self.is_at_zero:
            yield "__index_timestep_zero__", [0]


def linear(name, rows, columns):
    yield f"{name}.weight", [rows, columns]
    yield f"{name}.bias", [rows]


def embedder(name, hidden, width):
    yield from linear(f"{name}.in_layer", hidden, width)
    yield from linear(f"{name}.out_layer", hidden, hidden)


def norms(name):
    yield f"{name}.query_norm.scale", [HEAD]
    yield f"{name}.key_norm.scale", [HEAD]


def random_tensor(shape, generator):
    """Products keep the size of what they are given, norms and biases move it a little."""
    x = torch.randn(shape, generator=generator)
    return x / math.sqrt(shape[1]) if len(shape) == 2 and shape[0] > 1 else 0.1 * x


def make_model(shape, file, seed, dtype=torch.float32, prefix=""):
    """Writes the file of weights, and returns them."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, sizes in shape.shapes():
        value = random_tensor(sizes, generator)
        is_norm = len(sizes) == 1 and "norm" in name or name == "cap_embedder.0.weight"
        tensors[prefix + name] = (value + is_norm).to(dtype)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, file)
    return tensors


def make_components(shape, published, folder):
    """Copies a published model's configurations, with the tiny transformer's."""
    shutil.copytree(published / shape.published, folder)
    file = folder / "transformer" / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**config, **shape.config()}), encoding="utf-8")


def make_qwen_components(shape, folder):
    """Writes those of an Edit-Plus model, which do not come with Braid."""
    files = {
        "transformer/config.json": {"num_attention_heads": shape.hidden // HEAD, "num_layers": shape.layers, "out_channels": 16},
        "text_encoder/config.json": {"model_type": "qwen2_5_vl", "hidden_size": shape.text, "num_attention_heads": 28,
                                     "num_key_value_heads": 4, "vision_config": {"out_hidden_size": shape.text}},
        "vae/config.json": {"_class_name": "AutoencoderKLQwenImage"},
        "scheduler/scheduler_config.json": {"_class_name": "FlowMatchEulerDiscreteScheduler"},
        "tokenizer/tokenizer_config.json": {},
        "processor/preprocessor_config.json": {},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    index = {name.partition("/")[0]: ["diffusers", "Part"] for name in files}
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "QwenImageEditPlusPipeline", **index}), encoding="utf-8")


def make_lora(layers, file, seed, rank=4, alpha=2.0, has_magnitude=False):
    """`layers`: (name in the file, rows, columns); names without alpha of their own end with '!'."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, rows, columns in layers:
        down, up = ("lora_down", "lora_up") if name.startswith("lora_unet") else ("lora_A", "lora_B")
        plain = name.rstrip("!")
        tensors[f"{plain}.{down}.weight"] = torch.randn(rank, columns, generator=generator) / math.sqrt(columns)
        tensors[f"{plain}.{up}.weight"] = torch.randn(rows, rank, generator=generator) / 2
        if plain == name:
            tensors[f"{plain}.alpha"] = torch.tensor(alpha)
        if has_magnitude:
            tensors[f"{plain}.dora_scale"] = torch.ones(rows, 1)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, file)
