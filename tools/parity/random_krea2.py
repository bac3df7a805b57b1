"""Random Krea 2 transformers and directories of their pipelines of any shape.

Like random_families.py for other families. Norm weights are stored minus one.
"""
import json
from dataclasses import dataclass, field, replace

import random_joy
import random_pipeline
import tiny_tokenizers
import torch
from diffusers import (
    AutoencoderKLQwenImage,
    FlowMatchEulerDiscreteScheduler,
    Krea2Transformer2DModel,
)
from transformers import AutoTokenizer, Qwen3VLModel

# The shift grows with the picture up to 6400 tokens.
DYNAMIC = {"use_dynamic_shifting": True, "max_image_seq_len": 6400}


@dataclass
class Krea2TransformerShape:
    seed: int = 0
    heads: int = 4
    kv_heads: int = 2
    axes: tuple = (2, 2, 4)         # RoPE dimensions of (-, row, column); they sum to a head
    theta: float = 1000.0
    layers: int = 2
    ff: int = 40
    sinusoid: int = 256
    channels: int = 16              # of a token: a patch of the autoencoder's
    taps: int = 3
    text_width: int = 24
    text_heads: int = 3
    text_kv_heads: int = 3
    text_ff: int = 28
    layerwise_blocks: int = 2
    refiner_blocks: int = 2
    eps: float = 1e-5
    dtype: str = "bfloat16"


@dataclass
class Krea2Shape:
    seed: int = 0
    distilled: bool = False
    transformer: Krea2TransformerShape = field(default_factory=Krea2TransformerShape)
    taps: tuple = (1, 2, 4)         # hidden states of the text encoder
    text_layers: int = 5
    text_heads: int = 4
    text_kv_heads: int = 2
    text_head_dim: int = 8
    text_ff: int = 32
    sections: tuple = (2, 1, 1)     # MRoPE's of (time, row, column); half of text_head_dim
    latent_channels: int = 4
    patch: int = 2                  # side of a token, in latents
    vae_base: int = 4
    vae_mult: tuple = (1, 1, 2, 2)
    vae_layers: int = 1
    scheduler: dict = field(default_factory=lambda: DYNAMIC)
    dtype: str = "float32"
    configs: dict = field(default_factory=dict)  # other fields of configs: text, vae; added: tokens
    index: dict = field(default_factory=dict)    # other fields of model_index.json


def transformer(s):
    return Krea2Transformer2DModel(
        in_channels=s.channels, num_layers=s.layers, attention_head_dim=sum(s.axes),
        num_attention_heads=s.heads, num_key_value_heads=s.kv_heads, intermediate_size=s.ff,
        timestep_embed_dim=s.sinusoid, text_hidden_dim=s.text_width, num_text_layers=s.taps,
        text_num_attention_heads=s.text_heads, text_num_key_value_heads=s.text_kv_heads,
        text_intermediate_size=s.text_ff, num_layerwise_text_blocks=s.layerwise_blocks,
        num_refiner_text_blocks=s.refiner_blocks, axes_dims_rope=s.axes, rope_theta=s.theta,
        norm_eps=s.eps)


def spread(name, shape, s):
    """(mean, standard deviation) of a tensor: activations keep a size of about 1."""
    if name.endswith("bias"):
        return 0.0, 0.4
    if "scale_shift_table" in name:
        return 0.0, 0.5
    if "norm" in name and len(shape) == 1:  # plus one; those of queries and keys sharpen attention
        return (0.6 if ".norm_" in name else 0.2), 0.3
    if name == "text_fusion.projector.weight":
        return 0.3, 0.5
    gain = 1.0
    if any(part in name for part in ("time_", "to_q.", "to_k.", "to_gate.")):
        gain = 1.5
    return 0.0, gain * torch.Size(shape[1:]).numel() ** -0.5


def with_wide_norms(model):
    """diffusers keeps norms in float32 whatever it loads the rest in."""
    for name, tensor in model.named_parameters():
        if "norm" in name:
            tensor.data = tensor.data.float()
    return model


def matched(s):
    """The transformer matched to the other parts of `s`."""
    return replace(s.transformer, seed=s.seed, dtype=s.dtype, taps=len(s.taps),
                   channels=s.patch**2 * s.latent_channels)


def vae(s):
    channel = torch.arange(s.latent_channels) / s.latent_channels
    return AutoencoderKLQwenImage(**{
        "base_dim": s.vae_base, "z_dim": s.latent_channels, "dim_mult": list(s.vae_mult),
        "num_res_blocks": s.vae_layers,
        "temperal_downsample": [i % 2 == 1 for i in range(len(s.vae_mult) - 1)],
        "latents_mean": (channel - 0.4).tolist(), "latents_std": (0.7 + channel).tolist()}
        | s.configs.get("vae", {}))


def text_encoder(s, tokens):
    """Qwen3-VL without a head over the vocabulary; no prompt has pictures."""
    joy = random_joy.JoyShape(
        text_width=s.transformer.text_width, text_layers=s.text_layers, text_heads=s.text_heads,
        text_kv_heads=s.text_kv_heads, text_head_dim=s.text_head_dim, text_ff=s.text_ff,
        sections=s.sections, vision_width=8, vision_depth=3, vision_ff=8, vision_positions=4,
        configs=s.configs)
    return Qwen3VLModel(random_joy.text_encoder(joy, tokens).config)


def make(out, s):
    """Write the pipeline of Krea2Shape `s` to the new folder `out`."""
    out.mkdir(parents=True)
    tiny_tokenizers.write_qwen(out / "tokenizer", more=tiny_tokenizers.QWEN_VISION,
                               added=s.configs.get("added", ()))
    tokens = AutoTokenizer.from_pretrained(out / "tokenizer")
    shape = matched(s)
    parts = {"transformer": random_pipeline.fill(transformer(shape), "transformer", shape, spread),
             "vae": random_pipeline.fill(vae(s), "vae", s, random_joy.spread),
             "text_encoder": random_pipeline.fill(
                 text_encoder(s, tokens), "text_encoder", s, random_joy.spread)}
    for name, part in parts.items():
        part.save_pretrained(out / name)
    FlowMatchEulerDiscreteScheduler.from_config(s.scheduler).save_pretrained(out / "scheduler")
    index = {"_class_name": "Krea2Pipeline", "_diffusers_version": "0.42.1",
             "is_distilled": s.distilled, "patch_size": s.patch,
             "scheduler": ("diffusers", "FlowMatchEulerDiscreteScheduler"),
             "text_encoder_select_layers": list(s.taps),
             "tokenizer": ("transformers", "Qwen2TokenizerFast")}
    index |= {name: (type(part).__module__.split(".")[0], type(part).__name__)
              for name, part in parts.items()}
    (out / "model_index.json").write_text(json.dumps(index | s.index, indent=2) + "\n")
