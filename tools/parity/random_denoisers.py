"""Random FLUX.2 and Z-Image transformers and FLUX.2 autoencoders of any shape.

As in random_pipeline.py every tensor is redrawn, so that each of them affects the output.
"""
from dataclasses import dataclass, field

import random_pipeline
import torch
from diffusers import AutoencoderKLFlux2, Flux2Transformer2DModel, ZImageTransformer2DModel


@dataclass
class Flux2Shape:
    seed: int = 0
    heads: int = 3
    head_dim: int = 16
    axes: tuple = (4, 4, 4, 4)      # RoPE dimensions of (picture, row, column, token)
    theta: int = 2000
    double_blocks: int = 1
    single_blocks: int = 2
    mlp_ratio: float = 3.0
    guidance: bool = False          # a guidance embedder, as in FLUX.2-dev
    sinusoid: int = 256
    channels: int = 32              # of a token: 2 x 2 of the autoencoder's
    out_channels: int | None = None
    text_width: int = 30
    dtype: str = "bfloat16"


@dataclass
class ZImageShape:
    seed: int = 0
    heads: int = 3
    axes: tuple = (4, 6, 6)         # RoPE dimensions of (caption, row, column); they sum to a head
    theta: float = 256.0
    refiners: int = 1
    layers: int = 2
    latent_channels: int = 4
    text_width: int = 30
    t_scale: float = 1000.0
    dtype: str = "bfloat16"
    config: dict = field(default_factory=dict)  # other fields of its config


@dataclass
class Flux2VaeShape:
    seed: int = 0
    widths: tuple = (4, 8, 8, 12)
    decoder_widths: tuple | None = None
    layers: int = 1
    groups: int = 2
    attention: bool = True
    latent_channels: int = 8
    batch_norm_eps: float = 1e-4
    sample_size: int = 32           # the tile, once tiling is on
    dtype: str = "bfloat16"
    config: dict = field(default_factory=dict)  # other fields of its config


def flux2_transformer(s):
    return Flux2Transformer2DModel(
        in_channels=s.channels, out_channels=s.out_channels, num_layers=s.double_blocks,
        num_single_layers=s.single_blocks, attention_head_dim=s.head_dim,
        num_attention_heads=s.heads, joint_attention_dim=s.text_width,
        timestep_guidance_channels=s.sinusoid, mlp_ratio=s.mlp_ratio, axes_dims_rope=s.axes,
        rope_theta=s.theta, guidance_embeds=s.guidance)


def zimage_transformer(s):
    return ZImageTransformer2DModel(**{
        "in_channels": s.latent_channels, "dim": s.heads * sum(s.axes), "n_layers": s.layers,
        "n_refiner_layers": s.refiners, "n_heads": s.heads, "n_kv_heads": s.heads,
        "cap_feat_dim": s.text_width, "rope_theta": s.theta, "t_scale": s.t_scale,
        "axes_dims": list(s.axes)} | s.config)


def flux2_vae(s):
    return AutoencoderKLFlux2(**{
        "down_block_types": ("DownEncoderBlock2D",) * len(s.widths),
        "up_block_types": ("UpDecoderBlock2D",) * len(s.widths), "block_out_channels": s.widths,
        "decoder_block_out_channels": s.decoder_widths, "layers_per_block": s.layers,
        "latent_channels": s.latent_channels, "norm_num_groups": s.groups,
        "sample_size": s.sample_size, "mid_block_add_attention": s.attention,
        "batch_norm_eps": s.batch_norm_eps} | s.config)


BUILDERS = {Flux2Shape: flux2_transformer, ZImageShape: zimage_transformer,
            Flux2VaeShape: flux2_vae}


def build(s, part):
    """The random part of shape `s`, in its dtype; `part` is its name in a pipeline."""
    return random_pipeline.fill(BUILDERS[type(s)](s), part, s, spread)


def spread(name, shape, s):
    """(mean, standard deviation) of a tensor: activations keep a size of about 1."""
    if name == "bn.running_mean":
        return 0.0, 0.5
    if name == "bn.running_var":
        return 2.0, 0.4
    if name.endswith("pad_token"):
        return 0.0, 1.0
    if name.endswith("bias"):
        return 0.0, 0.4
    if len(shape) == 1:  # norms; those of queries and keys also set how sharp attention is
        return (1.6 if ".norm_" in name or "_norm." in name else 1.0), 0.3
    gain = 1.0
    if "time_guidance_embed" in name or "t_embedder" in name:  # SiLU shrinks its input
        gain = 1.5
    elif any(part in name for part in ("to_q.", "to_k.", "add_q_proj", "add_k_proj")):
        gain = 1.5
    elif name.endswith("conv_out.weight"):
        gain = 0.7
    return 0.0, gain * torch.Size(shape[1:]).numel() ** -0.5
