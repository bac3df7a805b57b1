"""Random Qwen-Image-2.1 transformers, autoencoders and directories of their pipelines of any shape.

Like random_families.py for other families. The weight of the text's norm is stored minus one. Latents
have a sixteenth of the picture's sides, so that pictures of few pixels are few tokens.
"""
import json
from dataclasses import dataclass, field, replace

import random_joy
import random_pipeline
import tiny_tokenizers
import torch
from diffusers import (
    AutoencoderKLQwenImage21,
    FlowMatchEulerDiscreteScheduler,
    QwenImage21Transformer2DModel,
)
from transformers import AutoTokenizer

# As published: the shift grows with the picture up to 8192 tokens, and the grid ends at 0.02.
DYNAMIC = {"use_dynamic_shifting": True, "max_shift": 0.9, "max_image_seq_len": 8192,
           "shift_terminal": 0.02}


@dataclass
class Qwen21TransformerShape:
    seed: int = 0
    heads: int = 4
    axes: tuple = (2, 4, 2)         # RoPE dimensions of (token, row, column); they sum to a head
    layers: int = 2
    mlp_ratio: int = 3
    channels: int = 8               # of a latent
    text_width: int = 24
    eps: float = 1e-6
    dtype: str = "bfloat16"
    config: dict = field(default_factory=dict)


@dataclass
class Qwen21VaeShape:
    seed: int = 0
    base: int = 4
    decoder_base: int | None = 6
    mult: tuple = (1, 2, 2, 4, 4)
    layers: int = 1
    temporal: tuple = (False, True, True, True)
    latent_channels: int = 8
    dtype: str = "bfloat16"
    config: dict = field(default_factory=dict)  # other fields of its config


@dataclass
class Qwen21Shape:
    seed: int = 0
    transformer: Qwen21TransformerShape = field(default_factory=Qwen21TransformerShape)
    vae: Qwen21VaeShape = field(default_factory=Qwen21VaeShape)
    sigmas: tuple = ()              # Turbo's grid
    text_layers: int = 4
    text_heads: int = 4
    text_kv_heads: int = 2
    text_head_dim: int = 16
    text_ff: int = 32
    sections: tuple = (4, 2, 2)     # MRoPE's of (time, row, column); half of text_head_dim
    vision_width: int = 24
    vision_heads: int = 2
    vision_depth: int = 4
    vision_ff: int = 32
    vision_positions: int = 36
    deepstack: tuple = (0, 1, 2)
    scheduler: dict = field(default_factory=lambda: DYNAMIC)
    dtype: str = "float32"
    configs: dict = field(default_factory=dict)  # other fields of configs: text, vision, processor; added: tokens


def transformer(s):
    return QwenImage21Transformer2DModel(
        **{"in_channels": s.channels, "out_channels": s.channels} | s.config, num_layers=s.layers,
        attention_head_dim=sum(s.axes), num_attention_heads=s.heads, context_in_dim=s.text_width,
        mlp_ratio=s.mlp_ratio, axes_dims_rope=s.axes, eps=s.eps)


def vae(s):
    channel = torch.arange(s.latent_channels) / s.latent_channels
    return AutoencoderKLQwenImage21(**{
        "base_dim": s.base, "decoder_base_dim": s.decoder_base, "z_dim": s.latent_channels,
        "dim_mult": list(s.mult), "num_res_blocks": s.layers,
        "temperal_downsample": list(s.temporal),
        "latents_mean": (channel - 0.4).tolist(), "latents_std": (0.7 + channel).tolist(),
        "scale_factor_spatial": 2 ** (len(s.mult) - 1)} | s.config)


def spread(name, shape, s):
    """(mean, standard deviation) of a tensor: activations keep a size of about 1."""
    if name.endswith("bias"):
        return 0.0, 0.4
    if name.endswith("text_norm.weight"):  # plus one
        return 0.2, 0.3
    if name.endswith("gamma") or len(shape) == 1:  # those of queries and keys sharpen attention
        return (1.6 if ".norm_" in name else 1.0), 0.3
    gain = 1.0
    if any(part in name for part in ("time_text_embed", "modulation", "norm_out", "to_q.", "to_k.")):
        gain = 1.5
    elif name.endswith("conv_out.weight"):
        gain = 0.6
    return 0.0, gain * torch.Size(shape[1:]).numel() ** -0.5


def matched(s):
    """The transformer and autoencoder, matched to each other."""
    common = {"seed": s.seed, "dtype": s.dtype}
    return (replace(s.transformer, channels=s.vae.latent_channels, **common),
            replace(s.vae, **common))


def text_encoder(s, tokens):
    joy = random_joy.JoyShape(
        text_width=s.transformer.text_width, text_layers=s.text_layers, text_heads=s.text_heads,
        text_kv_heads=s.text_kv_heads, text_head_dim=s.text_head_dim, text_ff=s.text_ff,
        sections=s.sections, vision_width=s.vision_width, vision_heads=s.vision_heads,
        vision_depth=s.vision_depth, vision_ff=s.vision_ff, vision_positions=s.vision_positions,
        deepstack=s.deepstack, configs=s.configs)
    return random_joy.text_encoder(joy, tokens)


def write_processor(out, s):
    """Its folder also has the tokenizer, there is no other."""
    from transformers import Qwen2VLImageProcessor, Qwen3VLVideoProcessor  # they need torchvision
    folder = out / "processor"
    tiny_tokenizers.write_qwen(folder, more=tiny_tokenizers.QWEN_VISION,
                               chat=tiny_tokenizers.QWEN_PARTS_CHAT,
                               added=s.configs.get("added", ()))
    half = [0.5] * 3
    size = {"shortest_edge": 65536, "longest_edge": 16777216}
    Qwen2VLImageProcessor(**{"patch_size": 16, "size": size, "image_mean": half, "image_std": half}
                          | s.configs.get("processor", {})).save_pretrained(folder)
    Qwen3VLVideoProcessor().save_pretrained(folder)


def make(out, s):
    """Write the pipeline of Qwen21Shape `s` to the new folder `out`."""
    out.mkdir(parents=True)
    write_processor(out, s)
    tokens = AutoTokenizer.from_pretrained(out / "processor")
    of_transformer, of_vae = matched(s)
    parts = {
        "transformer": random_pipeline.fill(
            transformer(of_transformer), "transformer", of_transformer, spread),
        "vae": random_pipeline.fill(vae(of_vae), "vae", of_vae, spread),
        "text_encoder": random_pipeline.fill(
            text_encoder(s, tokens), "text_encoder", s, random_joy.spread)}
    for name, part in parts.items():
        part.save_pretrained(out / name)
    FlowMatchEulerDiscreteScheduler.from_config(s.scheduler).save_pretrained(out / "scheduler")
    index = {"_class_name": "QwenImage21Pipeline", "_diffusers_version": "0.42.1",
             "processor": ("transformers", "Qwen3VLProcessor"),
             "scheduler": ("diffusers", "FlowMatchEulerDiscreteScheduler")}
    index |= {name: (type(part).__module__.split(".")[0], type(part).__name__)
              for name, part in parts.items()}
    index |= {"sample_sigmas": list(s.sigmas)} if s.sigmas else {}
    (out / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")
