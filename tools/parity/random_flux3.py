"""Random FLUX.3 transformers and directories of their pipelines of any shape.

Like random_families.py for other families. The pipelines are modular: their directories have a
modular_model_index.json, or a plain one.
"""
import json
from dataclasses import dataclass, field, replace

import random_denoisers
import random_joy
import random_pipeline
import tiny_tokenizers
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, Flux3Transformer2DModel
from random_denoisers import Flux2VaeShape
from transformers import AutoTokenizer


@dataclass
class Flux3TransformerShape:
    seed: int = 0
    heads: int = 4
    axes: tuple = (2, 2, 2, 2)      # RoPE dimensions of (-, row, column, token); they sum to a head
    theta: int = 10000
    layers: int = 2                 # of each mode
    single_layers: int = 2
    mlp_ratio: float = 3.0
    sinusoid: int = 256
    channels: int = 32              # of a token: 2 x 2 of the autoencoder's
    text_width: int = 30
    flow_map: bool = False
    eps: float = 1e-6
    dtype: str = "bfloat16"


@dataclass
class Flux3Shape:
    seed: int = 0
    transformer: Flux3TransformerShape = field(default_factory=Flux3TransformerShape)
    vae: Flux2VaeShape = field(default_factory=Flux2VaeShape)
    text_width: int = 16
    text_layers: int = 33
    text_heads: int = 4
    text_kv_heads: int = 2
    text_head_dim: int = 8
    text_ff: int = 24
    sections: tuple = (2, 1, 1)     # MRoPE's of (time, row, column); half of text_head_dim
    scheduler: dict | None = None   # none: the blocks' own
    modular: bool = True
    dtype: str = "float32"
    configs: dict = field(default_factory=dict)  # other fields of configs: text; added: tokens
    index: dict = field(default_factory=dict)    # other fields of the index


def transformer(s):
    return Flux3Transformer2DModel(
        in_channels=s.channels, cond_in_channels=s.channels, num_layers=s.layers,
        num_single_layers=s.single_layers, attention_head_dim=sum(s.axes),
        num_attention_heads=s.heads, joint_attention_dim=s.text_width,
        timestep_channels=s.sinusoid, mlp_ratio=s.mlp_ratio, axes_dims_rope=s.axes,
        rope_theta=s.theta, eps=s.eps, flow_map=s.flow_map)


def spread(name, shape, s):
    """(mean, standard deviation) of a tensor: activations keep a size of about 1."""
    if len(shape) == 1:  # norms of queries and keys, which also set how sharp attention is
        return 1.6, 0.3
    gain = 1.0
    if any(part in name for part in ("timestep_embedder", "to_q.", "to_k.")):
        gain = 1.5
    return 0.0, gain * torch.Size(shape[1:]).numel() ** -0.5


def with_wide_norms(model):
    """diffusers keeps norms in float32 whatever it loads the rest in."""
    for name, tensor in model.named_parameters():
        if "norm_q" in name or "norm_k" in name:
            tensor.data = tensor.data.float()
    return model


def matched(s):
    """The transformer and autoencoder, matched to the other parts of `s`."""
    common = {"seed": s.seed, "dtype": s.dtype}
    return (replace(s.transformer, text_width=8 * s.text_width,
                    channels=4 * s.vae.latent_channels, **common),
            replace(s.vae, **common))


def text_encoder(s, tokens):
    """A Qwen3-VL; no prompt has pictures."""
    joy = random_joy.JoyShape(
        text_width=s.text_width, text_layers=s.text_layers, text_heads=s.text_heads,
        text_kv_heads=s.text_kv_heads, text_head_dim=s.text_head_dim, text_ff=s.text_ff,
        sections=s.sections, vision_width=8, vision_depth=3, vision_ff=8, vision_positions=4,
        configs=s.configs)
    return random_joy.text_encoder(joy, tokens)


def index_of(s, parts):
    kind = "Flux3Distilled" if s.transformer.flow_map else "Flux3"
    classes = {name: (type(part).__module__.split(".")[0], type(part).__name__)
               for name, part in parts.items()}
    classes["tokenizer"] = ("transformers", "Qwen2TokenizerFast")
    if s.scheduler is not None:
        classes["scheduler"] = ("diffusers", "FlowMatchEulerDiscreteScheduler")
    index = {"_class_name": kind + "ModularPipeline", "_diffusers_version": "0.42.1"}
    if not s.modular:
        return index | classes
    hub = f"black-forest-labs/flux-3-image-klein{'' if s.transformer.flow_map else '-base'}"
    return index | {"_blocks_class_name": kind + "AutoBlocks"} | {
        name: [library, cls, {"pretrained_model_name_or_path": hub, "subfolder": name,
                              "variant": None, "revision": None, "type_hint": [library, cls]}]
        for name, (library, cls) in classes.items()}


def make(out, s):
    """Write the pipeline of Flux3Shape `s` to the new folder `out`."""
    out.mkdir(parents=True)
    tiny_tokenizers.write_qwen(out / "tokenizer", more=tiny_tokenizers.QWEN_VISION,
                               added=s.configs.get("added", ()))
    tokens = AutoTokenizer.from_pretrained(out / "tokenizer")
    shape, vae = matched(s)
    parts = {"transformer": random_pipeline.fill(transformer(shape), "transformer", shape, spread),
             "vae": random_denoisers.build(vae, "vae"),
             "text_encoder": random_pipeline.fill(
                 text_encoder(s, tokens), "text_encoder", s, random_joy.spread)}
    for name, part in parts.items():
        part.save_pretrained(out / name)
    if s.scheduler is not None:
        FlowMatchEulerDiscreteScheduler.from_config(s.scheduler).save_pretrained(out / "scheduler")
    name = "modular_model_index.json" if s.modular else "model_index.json"
    (out / name).write_text(json.dumps(index_of(s, parts) | s.index, indent=2) + "\n")
