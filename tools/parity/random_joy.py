"""Directories of JoyAI-Image-Edit and Edit-Plus pipelines of any shape with random weights.

Like random_families.py for other families. Pictures have about a megapixel, whatever size is requested;
an autoencoder of six levels turns them into few latents.
"""
import json
from dataclasses import dataclass, field

import random_pipeline
import tiny_tokenizers
import torch
from diffusers import (
    AutoencoderKLWan,
    FlowMatchEulerDiscreteScheduler,
    JoyImageEditPlusTransformer3DModel,
    JoyImageEditTransformer3DModel,
)
from transformers import AutoTokenizer, Qwen3VLConfig, Qwen3VLForConditionalGeneration


@dataclass
class JoyShape:
    seed: int = 0
    plus: bool = False
    heads: int = 2
    axes: tuple = (4, 6, 6)         # RoPE dimensions of (item, row, column); they sum to a head
    layers: int = 2
    mlp_ratio: float = 4.0
    rope_type: str = "rope"
    latent_channels: int = 16
    vae_base: int = 4
    vae_mult: tuple = (1, 1, 2, 2, 2, 2)
    vae_layers: int = 1
    text_width: int = 24
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
    scheduler: dict = field(default_factory=lambda: {"shift": 4.0})
    dtype: str = "float32"
    configs: dict = field(default_factory=dict)  # other fields of configs: transformer, vae, ...


def transformer(s):
    cls = JoyImageEditPlusTransformer3DModel if s.plus else JoyImageEditTransformer3DModel
    return cls(**{
        "in_channels": s.latent_channels, "hidden_size": s.heads * sum(s.axes),
        "num_attention_heads": s.heads, "text_dim": s.text_width, "mlp_width_ratio": s.mlp_ratio,
        "num_layers": s.layers, "rope_dim_list": list(s.axes), "rope_type": s.rope_type}
        | s.configs.get("transformer", {}))


def vae(s):
    levels = len(s.vae_mult)
    channel = torch.arange(s.latent_channels) / s.latent_channels
    return AutoencoderKLWan(**{
        "base_dim": s.vae_base, "z_dim": s.latent_channels, "dim_mult": list(s.vae_mult),
        "num_res_blocks": s.vae_layers,
        "temperal_downsample": [i % 2 == 1 for i in range(levels - 1)],
        "latents_mean": (channel - 0.4).tolist(), "latents_std": (0.7 + channel).tolist(),
        "scale_factor_spatial": 2 ** (levels - 1)} | s.configs.get("vae", {}))


def text_encoder(s, tokens):
    """`tokens` is the tokenizer."""
    text = {
        "vocab_size": len(tokens), "hidden_size": s.text_width, "intermediate_size": s.text_ff,
        "num_hidden_layers": s.text_layers, "num_attention_heads": s.text_heads,
        "num_key_value_heads": s.text_kv_heads, "head_dim": s.text_head_dim,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5e6,
                            "mrope_section": list(s.sections), "mrope_interleaved": True}}
    text |= s.configs.get("text", {})
    vision = {
        "depth": s.vision_depth, "hidden_size": s.vision_width, "num_heads": s.vision_heads,
        "intermediate_size": s.vision_ff, "out_hidden_size": s.text_width,
        "num_position_embeddings": s.vision_positions,
        "deepstack_visual_indexes": list(s.deepstack)} | s.configs.get("vision", {})
    ids = {name + "_token_id": tokens.convert_tokens_to_ids(f"<|{mark}|>") for name, mark in (
        ("image", "image_pad"), ("video", "video_pad"), ("vision_start", "vision_start"),
        ("vision_end", "vision_end"))}
    return Qwen3VLForConditionalGeneration(
        Qwen3VLConfig(text_config=text, vision_config=vision, **ids))


def spread(name, shape, s):
    """(mean, standard deviation) of a tensor: activations keep a size of about 1."""
    if name.endswith("bias"):
        return 0.0, 0.4
    if name.endswith("gamma") or len(shape) == 1:  # norms; sharper ones for queries and keys
        return (1.6 if "q_norm" in name or "k_norm" in name else 1.0), 0.3
    if "modulate_table" in name or "pos_embed" in name:
        return 0.0, 0.5
    if "embed_tokens" in name:
        return 0.0, 1.0
    gain = 1.0
    if "condition_embedder.time" in name or "q_proj" in name or "k_proj" in name:
        gain = 1.5
    elif name.endswith("decoder.conv_out.weight"):
        gain = 2.5
    fan_in = torch.Size(shape[1:]).numel()
    # For a single picture only the last temporal slice meets nonzero input.
    return 0.0, gain * (fan_in / 3 if shape[2:] == (3, 3, 3) else fan_in) ** -0.5


def write_processor(out, s):
    """Like published ones: how pictures are normalised, and links to the tokenizer's files."""
    from transformers import Qwen2VLImageProcessor, Qwen3VLVideoProcessor  # they need torchvision
    half = [0.5] * 3
    size = {"shortest_edge": 65536, "longest_edge": 16777216}
    Qwen2VLImageProcessor(**{"patch_size": 16, "size": size, "image_mean": half, "image_std": half}
                          | s.configs.get("processor", {})).save_pretrained(out / "processor")
    Qwen3VLVideoProcessor().save_pretrained(out / "processor")
    for path in (out / "tokenizer").iterdir():
        (out / "processor" / path.name).symlink_to(f"../tokenizer/{path.name}")


def make(out, s):
    """Write the pipeline of JoyShape `s` to the new folder `out`."""
    out.mkdir(parents=True)
    tiny_tokenizers.write_qwen(out / "tokenizer", more=tiny_tokenizers.QWEN_VISION)
    tokens = AutoTokenizer.from_pretrained(out / "tokenizer")
    parts = {"transformer": transformer(s), "vae": vae(s), "text_encoder": text_encoder(s, tokens)}
    for name, part in parts.items():
        random_pipeline.fill(part, name, s, spread).save_pretrained(out / name)
    write_processor(out, s)
    FlowMatchEulerDiscreteScheduler.from_config(s.scheduler).save_pretrained(out / "scheduler")
    index = {"_class_name": "JoyImageEditPlusPipeline" if s.plus else "JoyImageEditPipeline",
             "_diffusers_version": "0.42.1",
             "scheduler": ("diffusers", "FlowMatchEulerDiscreteScheduler"),
             "tokenizer": ("transformers", "Qwen2TokenizerFast"),
             "processor": ("transformers", "Qwen3VLProcessor"), "text_token_max_length": 2048}
    index |= {name: (type(part).__module__.split(".")[0], type(part).__name__)
              for name, part in parts.items()}
    (out / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")
