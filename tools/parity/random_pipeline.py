"""Make a FluxPipeline directory of any shape with random weights.

usage: python random_pipeline.py OUT [--seed 3] [--heads 4] [--axes 4,6,6] [--dtype bfloat16] ...

Every field of Shape is an option. The tokenizers are those of the bundled model, copied or linked.
Default initialisations hide bugs (norm weights of 1, biases of 0, adaLN near 0), so every tensor is
redrawn, wide enough that each of them affects the picture (alive.py checks that).
"""
import argparse
import dataclasses
import json
import os
import shutil
import zlib
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import diffusers
import redux
import torch
import transformers
from diffusers import (
    AutoencoderKL,
    FlowMatchEulerDiscreteScheduler,
    FluxControlNetModel,
    FluxTransformer2DModel,
)
from redux import ReduxShape
from safetensors.torch import load_file, save_file
from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel

diffusers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

DEMO = Path(__file__).resolve().parents[2] / "models/demo"
CLASSES = {"scheduler": ("diffusers", "FlowMatchEulerDiscreteScheduler"),
           "text_encoder": ("transformers", "CLIPTextModel"),
           "text_encoder_2": ("transformers", "T5EncoderModel"),
           "tokenizer": ("transformers", "CLIPTokenizer"),
           "tokenizer_2": ("transformers", "T5TokenizerFast"),
           "transformer": ("diffusers", "FluxTransformer2DModel"),
           "vae": ("diffusers", "AutoencoderKL"),
           "image_encoder": (None, None), "feature_extractor": (None, None)}
# FLUX.1's pipelines, and the parts of their token widths: latents, a picture's latents, a mask.
WIDTHS = {"FluxPipeline": lambda s: 4 * s.latent_channels,
          "FluxKontextPipeline": lambda s: 4 * s.latent_channels,
          "FluxControlPipeline": lambda s: 8 * s.latent_channels,
          "FluxFillPipeline": lambda s: 8 * s.latent_channels + 4 * 4 ** (len(s.vae_widths) - 1)}


@dataclass
class NetShape:
    """A ControlNet with the widths of its pipeline."""
    double_blocks: int = 1
    single_blocks: int = 1
    guidance: bool = True
    modes: int | None = None        # of a union
    pixels: bool = False            # sees pictures through its own layers, like XLabs'


@dataclass
class Shape:
    seed: int = 0
    pipeline: str = "FluxPipeline"
    heads: int = 2
    head_dim: int = 16
    axes: tuple = (4, 6, 6)         # RoPE dimensions of (-, row, column); their sum is head_dim
    double_blocks: int = 1
    single_blocks: int = 2
    guidance: bool = True           # a guidance embedder, as in FLUX.1-dev
    clip_width: int = 32
    clip_layers: int = 2
    clip_heads: int = 2
    clip_ff: int = 64
    clip_act: str = "quick_gelu"
    clip_eos: int = 2               # 2: pools at the largest token id; 669: at the tokenizer's EOS
    clip_prefix: bool = False       # tensor names begin with text_model., as in FLUX.1's files
    t5_width: int = 32
    t5_layers: int = 2
    t5_heads: int = 2
    t5_head_dim: int = 12
    t5_ff: int = 48
    t5_buckets: int = 32
    t5_max_distance: int = 128
    t5_embedding: str = "shared"    # the embedding's name: shared, encoder or both
    vae_widths: tuple = (8, 8, 16, 16)
    vae_layers: int = 1
    vae_groups: int = 4
    vae_attention: bool = True
    vae_quant_convs: bool = False
    vae_sample_size: int = 64       # the tile, once tiling is on
    latent_channels: int = 16
    scaling: float = 0.3611
    shift: float = 0.1159
    scheduler: dict = field(default_factory=lambda: {"shift": 3.0, "use_dynamic_shifting": True})
    dtype: str = "float32"
    controlnets: tuple = ()         # NetShapes, in folders controlnet_1, ...
    redux: ReduxShape | None = None  # in the folder redux
    shard: str = ""                 # the largest shard, like 100KB; empty: one file per part
    configs: dict = field(default_factory=dict)  # other fields of configs, by part


def transformer(s):
    return FluxTransformer2DModel(
        in_channels=WIDTHS[s.pipeline](s), out_channels=4 * s.latent_channels,
        num_layers=s.double_blocks,
        num_single_layers=s.single_blocks, attention_head_dim=s.head_dim,
        num_attention_heads=s.heads, joint_attention_dim=s.t5_width,
        pooled_projection_dim=s.clip_width, guidance_embeds=s.guidance, axes_dims_rope=s.axes)


def controlnet(s, net):
    return FluxControlNetModel(
        in_channels=4 * s.latent_channels, num_layers=net.double_blocks,
        num_single_layers=net.single_blocks, attention_head_dim=s.head_dim,
        num_attention_heads=s.heads, joint_attention_dim=s.t5_width,
        pooled_projection_dim=s.clip_width, guidance_embeds=net.guidance, axes_dims_rope=s.axes,
        num_mode=net.modes, patch_size=2 if net.pixels else 1,
        conditioning_embedding_channels=s.latent_channels if net.pixels else None)


def clip(s):
    return CLIPTextModel(CLIPTextConfig(**{
        "vocab_size": 670, "hidden_size": s.clip_width, "intermediate_size": s.clip_ff,
        "num_hidden_layers": s.clip_layers, "num_attention_heads": s.clip_heads,
        "hidden_act": s.clip_act, "projection_dim": s.clip_width,
        "bos_token_id": 668 if s.clip_eos != 2 else 0, "eos_token_id": s.clip_eos,
        "pad_token_id": 1} | s.configs.get("text_encoder", {})))


def t5(s):
    return T5EncoderModel(T5Config(**{
        "vocab_size": 320, "d_model": s.t5_width, "d_kv": s.t5_head_dim, "d_ff": s.t5_ff,
        "num_layers": s.t5_layers, "num_heads": s.t5_heads, "feed_forward_proj": "gated-gelu",
        "relative_attention_num_buckets": s.t5_buckets, "tie_word_embeddings": False,
        "relative_attention_max_distance": s.t5_max_distance}
        | s.configs.get("text_encoder_2", {})))


def vae(s):
    return AutoencoderKL(**{
        "block_out_channels": s.vae_widths, "layers_per_block": s.vae_layers, "act_fn": "silu",
        "down_block_types": ("DownEncoderBlock2D",) * len(s.vae_widths),
        "up_block_types": ("UpDecoderBlock2D",) * len(s.vae_widths),
        "latent_channels": s.latent_channels, "norm_num_groups": s.vae_groups,
        "sample_size": s.vae_sample_size, "scaling_factor": s.scaling, "shift_factor": s.shift,
        "use_quant_conv": s.vae_quant_convs, "use_post_quant_conv": s.vae_quant_convs,
        "mid_block_add_attention": s.vae_attention} | s.configs.get("vae", {}))


def spread(name, shape, s):
    """(mean, standard deviation) of a tensor: activations keep a size of about 1."""
    if name.endswith("bias") and "relative_attention" not in name:
        return 0.0, 0.4
    if len(shape) == 1:  # norms; those of queries and keys also set how sharp attention is
        return (1.6 if "attn.norm_" in name else 1.0), 0.3
    if "embed_tokens" in name or name == "shared.weight" or "relative_attention" in name:
        return 0.0, 1.0
    if "embedding" in name and "time_text" not in name:  # CLIP's
        return 0.0, 0.5
    fan_in = torch.Size(shape[1:]).numel()
    gain = 1.0
    if "SelfAttention.q" in name:  # T5 does not divide by the root of the head size
        gain = 1.5 * s.t5_head_dim ** -0.5
    elif any(part in name for part in ("to_q", "to_k", "q_proj", "k_proj")):
        gain = 1.5
    elif name.endswith("conv_out.weight"):
        gain = 0.7
    return 0.0, gain * fan_in ** -0.5


@torch.no_grad()
def fill(model, part, s, spread=spread):
    """Each tensor has its own generator, so that a new option leaves the others unchanged."""
    saved = model.state_dict()
    statistics = [(name, tensor) for name, tensor in model.named_buffers()
                  if name in saved and tensor.is_floating_point()]
    for name, tensor in [*model.named_parameters(), *statistics]:
        mean, std = spread(name, tensor.shape, s)
        generator = torch.Generator().manual_seed(zlib.crc32(f"{s.seed}/{part}/{name}".encode()))
        tensor.copy_(mean + std * torch.randn(tensor.shape, generator=generator))
    return model.to(getattr(torch, s.dtype)).eval()


def rename(folder, names):
    """Give the tensors of a saved part other names: `names` maps one to a list of them."""
    for path in folder.glob("*.safetensors"):
        tensors = load_file(path)
        save_file({new: t.clone() for old, t in tensors.items() for new in names(old)}, path,
                  metadata={"format": "pt"})
    for path in folder.glob("*.index.json"):
        index = json.loads(path.read_text())
        index["weight_map"] = {new: file for old, file in index["weight_map"].items()
                               for new in names(old)}
        path.write_text(json.dumps(index, indent=2) + "\n")


def t5_names(kind):
    both = ["shared.weight", "encoder.embed_tokens.weight"]
    chosen = {"shared": both[:1], "encoder": both[1:], "both": both}[kind]
    return lambda name: chosen if name in both else [name]


def add_tokenizers(out, source, link):
    for folder in ("tokenizer", "tokenizer_2"):
        target = out / folder
        if link:
            target.symlink_to(os.path.relpath(source / folder, out))
        else:
            shutil.copytree(source / folder, target)


def make(out, s, tokenizers=DEMO, link=False):
    """Write the pipeline of Shape `s` to the new folder `out`."""
    out.mkdir(parents=True)
    saving = {"max_shard_size": s.shard} if s.shard else {}
    for part, build in {"transformer": transformer, "text_encoder": clip, "text_encoder_2": t5,
                        "vae": vae}.items():
        fill(build(s), part, s).save_pretrained(out / part, **saving)
    for i, net in enumerate(s.controlnets, start=1):
        name = f"controlnet_{i}"
        fill(controlnet(s, net), name, s).save_pretrained(out / name, **saving)
    if s.redux:
        folder = out / "redux"
        fill(redux.encoder(s.redux), "image_encoder", s).save_pretrained(folder / "image_encoder")
        fill(redux.embedder(s.redux, s.t5_width), "image_embedder", s).save_pretrained(
            folder / "image_embedder")
        redux.processor(s.redux).save_pretrained(folder / "feature_extractor")
    FlowMatchEulerDiscreteScheduler.from_config(s.scheduler).save_pretrained(out / "scheduler")
    if s.clip_prefix:
        rename(out / "text_encoder", lambda name: ["text_model." + name])
    rename(out / "text_encoder_2", t5_names(s.t5_embedding))
    add_tokenizers(out, tokenizers, link)
    parts = {name: origin for name, origin in CLASSES.items()
             if origin[0] or s.pipeline in ("FluxPipeline", "FluxKontextPipeline")}
    index = {"_class_name": s.pipeline, "_diffusers_version": "0.42.1"} | parts
    (out / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")


def parsed(text, default):
    """An option's text converted to the type of its default."""
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "yes", "on")
    if isinstance(default, tuple):
        return tuple(int(part) for part in text.split(","))
    return json.loads(text) if isinstance(default, dict) else type(default)(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizers", type=Path, default=DEMO, help="a pipeline directory")
    parser.add_argument("--link", action="store_true", help="link the tokenizers, do not copy them")
    defaults = dataclasses.asdict(Shape())
    for name in defaults:
        parser.add_argument("--" + name.replace("_", "-"), help=f"default {defaults[name]}")
    args = vars(parser.parse_args())
    given = {n: parsed(args[n], d) for n, d in defaults.items() if args[n] is not None}
    make(args["out"], Shape(**given), args["tokenizers"], args["link"])


if __name__ == "__main__":
    main()
