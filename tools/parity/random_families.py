"""Directories of FLUX.2 (klein, dev), Z-Image and other pipelines of any shape with random weights.

Like random_pipeline.py for FLUX.1. Text encoders have as many layers as the pipelines' choice of hidden
states needs, and narrow ones.
"""
import json
from dataclasses import dataclass, field, replace

import random_denoisers
import random_flux3
import random_joy
import random_krea2
import random_pipeline
import random_qwen21
import random_qwen_image
import tiny_tokenizers
import torch
from diffusers import FlowMatchEulerDiscreteScheduler
from random_denoisers import Flux2Shape, Flux2VaeShape, ZImageShape
from transformers import (
    Mistral3Config,
    Mistral3ForConditionalGeneration,
    MistralConfig,
    PixtralVisionConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3Model,
)

DYNAMIC = {"shift": 3.0, "use_dynamic_shifting": True}


@dataclass
class TextShape:
    """A language model whose hidden states a pipeline uses."""
    width: int = 10
    layers: int = 28
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 6
    ff: int = 20
    theta: float = 1e6
    causal_lm: bool = True          # names begin with model.
    chat_in_config: bool = False    # the chat template is in tokenizer_config.json
    config: dict = field(default_factory=dict)  # other fields of its config
    tokenizer: dict = field(default_factory=dict)  # other fields of Qwen's tokenizer_config.json
    added: tuple = ()               # further tokens of it, as AddedToken's arguments


@dataclass
class KleinShape:
    seed: int = 0
    distilled: bool = True
    kept: bool = False              # sees references once, before the first step
    transformer: Flux2Shape = field(default_factory=Flux2Shape)
    vae: Flux2VaeShape = field(default_factory=Flux2VaeShape)
    text: TextShape = field(default_factory=TextShape)
    scheduler: dict = field(default_factory=lambda: DYNAMIC)
    dtype: str = "float32"


@dataclass
class DevShape:
    seed: int = 0
    transformer: Flux2Shape = field(default_factory=lambda: Flux2Shape(guidance=True))
    vae: Flux2VaeShape = field(default_factory=Flux2VaeShape)
    # Wide enough that float32's own rounding stays some 4e-6 of the largest embedding.
    text: TextShape = field(
        default_factory=lambda: TextShape(width=16, head_dim=8, layers=31, theta=1e9))
    scheduler: dict = field(default_factory=lambda: DYNAMIC)
    dtype: str = "float32"


@dataclass
class ZImagePipelineShape:
    seed: int = 0
    transformer: ZImageShape = field(default_factory=ZImageShape)
    vae: random_pipeline.Shape = field(
        default_factory=lambda: random_pipeline.Shape(latent_channels=4))
    text: TextShape = field(default_factory=lambda: TextShape(layers=4, causal_lm=False))
    scheduler: dict = field(default_factory=lambda: {"shift": 3.0})
    dtype: str = "float32"


def spread(name, shape, s):
    if "embed_tokens" in name:
        return 0.0, 1.0
    if len(shape) > 1 and any(part in name for part in ("q_proj", "k_proj")):
        return 0.0, 1.5 * shape[1] ** -0.5
    return random_denoisers.spread(name, shape, s)


def language_fields(s, vocabulary):
    return {"vocab_size": vocabulary, "hidden_size": s.width, "intermediate_size": s.ff,
            "num_hidden_layers": s.layers, "num_attention_heads": s.heads,
            "num_key_value_heads": s.kv_heads, "head_dim": s.head_dim,
            "rope_parameters": {"rope_type": "default", "rope_theta": s.theta},
            "max_position_embeddings": 4096}


def qwen3(s, vocabulary):
    config = Qwen3Config(**language_fields(s, vocabulary) | {"tie_word_embeddings": True} | s.config)
    return (Qwen3ForCausalLM if s.causal_lm else Qwen3Model)(config)


def mistral3(s, vocabulary):
    text = MistralConfig(**language_fields(s, vocabulary)
                         | {"rms_norm_eps": 1e-5, "sliding_window": None} | s.config)
    vision = PixtralVisionConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                 num_attention_heads=2, image_size=28, patch_size=14)
    return Mistral3ForConditionalGeneration(Mistral3Config(
        vision_config=vision, text_config=text,
        image_token_index=tiny_tokenizers.MISTRAL_TOKENS.index("[IMG]")))


def text_encoder(s, out):
    """The language model of pipeline shape `s`, and its tokenizer in `out`."""
    if isinstance(s, DevShape):
        return mistral3(s.text, tiny_tokenizers.write_mistral(out / "tokenizer"))
    return qwen3(s.text, tiny_tokenizers.write_qwen(
        out / "tokenizer", s.text.chat_in_config, fields=s.text.tokenizer, added=s.text.added))


def matched(s):
    """The transformer and autoencoder, matched to the other parts of `s`."""
    common = {"seed": s.seed, "dtype": s.dtype}
    if isinstance(s, ZImagePipelineShape):
        return (replace(s.transformer, text_width=s.text.width,
                        latent_channels=s.vae.latent_channels, **common),
                replace(s.vae, **common))
    return (replace(s.transformer, text_width=3 * s.text.width,
                    channels=4 * s.vae.latent_channels, **common),
            replace(s.vae, **common))


CLASSES = {KleinShape: "Flux2KleinPipeline", DevShape: "Flux2Pipeline",
           ZImagePipelineShape: "ZImagePipeline"}


def index_of(s, parts):
    # Published dev directories name PixtralProcessor, which needs torchvision.
    tokenizer = "PreTrainedTokenizerFast" if isinstance(s, DevShape) else "Qwen2TokenizerFast"
    is_kept = isinstance(s, KleinShape) and s.kept
    index = {"_class_name": "Flux2KleinKVPipeline" if is_kept else CLASSES[type(s)], "_diffusers_version": "0.42.1",
             "scheduler": ("diffusers", "FlowMatchEulerDiscreteScheduler"),
             "tokenizer": ("transformers", tokenizer)}
    index |= {name: (type(part).__module__.split(".")[0], type(part).__name__)
              for name, part in parts.items()}
    has_flag = isinstance(s, KleinShape) and not s.kept
    return index | ({"is_distilled": s.distilled} if has_flag else {})


def token_channels(s):
    """The width of a latent token."""
    if isinstance(s, random_krea2.Krea2Shape):
        return s.patch**2 * s.latent_channels
    has_own = isinstance(s, (random_pipeline.Shape, random_qwen_image.QwenImageShape))
    return 4 * (s.latent_channels if has_own else s.vae.latent_channels)


def make(out, s, link=False):
    """Write the pipeline of shape `s` (also FLUX.1's) to the new folder `out`; FLUX.1's tokenizers are
    copied or linked."""
    if isinstance(s, random_pipeline.Shape):
        random_pipeline.make(out, s, link=link)
        return
    if isinstance(s, random_joy.JoyShape):
        random_joy.make(out, s)
        return
    if isinstance(s, random_krea2.Krea2Shape):
        random_krea2.make(out, s)
        return
    if isinstance(s, random_flux3.Flux3Shape):
        random_flux3.make(out, s)
        return
    if isinstance(s, random_qwen21.Qwen21Shape):
        random_qwen21.make(out, s)
        return
    if isinstance(s, random_qwen_image.QwenImageShape):
        random_qwen_image.make(out, s)
        return
    out.mkdir(parents=True)
    transformer, vae = matched(s)
    parts = {"transformer": random_denoisers.build(transformer, "transformer"),
             "text_encoder": random_pipeline.fill(text_encoder(s, out), "text_encoder", s, spread)}
    if isinstance(s, ZImagePipelineShape):
        parts["vae"] = random_pipeline.fill(random_pipeline.vae(vae), "vae", vae)
    else:
        parts["vae"] = random_denoisers.build(vae, "vae")
    for name, part in parts.items():
        part.to(getattr(torch, s.dtype)).save_pretrained(out / name)
    FlowMatchEulerDiscreteScheduler.from_config(s.scheduler).save_pretrained(out / "scheduler")
    (out / "model_index.json").write_text(json.dumps(index_of(s, parts), indent=2) + "\n")
