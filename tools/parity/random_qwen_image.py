"""Random Qwen-Image transformers and directories of their pipelines of any shape.

Like random_families.py for other families.
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
    QwenImageControlNetModel,
    QwenImageTransformer2DModel,
)
from transformers import AutoTokenizer, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

# As published: the shift grows with the picture up to 8192 tokens, and the grid ends at 0.02.
DYNAMIC = {"use_dynamic_shifting": True, "max_shift": 0.9, "max_image_seq_len": 8192,
           "shift_terminal": 0.02}


@dataclass
class QwenImageTransformerShape:
    seed: int = 0
    heads: int = 4
    axes: tuple = (2, 4, 2)         # RoPE dimensions of (item, row, column); they sum to a head
    layers: int = 2
    channels: int = 16              # of a token: 2 x 2 of the autoencoder's
    text_width: int = 24
    zero_time: bool = False         # of references, as in Edit-2511
    layered: bool = False           # as Layered's
    dtype: str = "bfloat16"


@dataclass
class QwenImageShape:
    seed: int = 0
    pipeline: str = "QwenImagePipeline"
    transformer: QwenImageTransformerShape = field(default_factory=QwenImageTransformerShape)
    text_layers: int = 4
    text_heads: int = 3
    text_kv_heads: int = 1
    text_ff: int = 32
    sections: tuple = (2, 1, 1)     # MRoPE's of (time, row, column); half of a head
    vision_width: int = 16
    vision_heads: int = 2
    vision_depth: int = 4
    vision_ff: int = 20
    whole: tuple = (1, 3)           # blocks of the tower that attend to the whole picture
    latent_channels: int = 4
    vae_base: int = 4
    vae_mult: tuple = (1, 1, 2, 2)
    vae_layers: int = 1
    older_config: bool = False      # of the text encoder: flat, as published
    controlnets: tuple = ()         # numbers of blocks, in folders controlnet_1, ...
    fills_in: bool = False          # the net does: its tokens have a mask
    scheduler: dict = field(default_factory=lambda: DYNAMIC)
    dtype: str = "float32"
    configs: dict = field(default_factory=dict)  # other fields of configs: text, vision, vae; added: tokens

    def layered(self):
        return self.pipeline == "QwenImageLayeredPipeline"


def transformer(s):
    return QwenImageTransformer2DModel(
        in_channels=s.channels, out_channels=s.channels // 4, num_layers=s.layers,
        attention_head_dim=sum(s.axes), num_attention_heads=s.heads,
        joint_attention_dim=s.text_width, axes_dims_rope=s.axes, zero_cond_t=s.zero_time,
        use_additional_t_cond=s.layered, use_layer3d_rope=s.layered)


def controlnet(s, layers, fills_in=False):
    """With the widths of transformer shape `s`."""
    return QwenImageControlNetModel(
        in_channels=s.channels, out_channels=s.channels // 4, num_layers=layers,
        attention_head_dim=sum(s.axes), num_attention_heads=s.heads,
        joint_attention_dim=s.text_width, axes_dims_rope=s.axes,
        extra_condition_channels=4 if fills_in else 0)


def spread(name, shape, s):
    """(mean, standard deviation) of a tensor: activations keep a size of about 1."""
    if name.endswith("bias"):
        return 0.0, 0.4
    if len(shape) == 1:  # norms; those of queries and keys sharpen attention
        return (1.6 if ".norm_" in name else 1.0), 0.3
    gain = 1.0
    if "addition_t_embedding" in name:
        return 0.0, 0.7
    if any(part in name for part in ("time_text_embed", "_mod.1", "norm_out", "to_q.", "to_k.",
                                     "add_q_proj", "add_k_proj")):
        gain = 1.5
    return 0.0, gain * torch.Size(shape[1:]).numel() ** -0.5


def matched(s):
    """The transformer matched to the other parts of `s`."""
    return replace(s.transformer, seed=s.seed, dtype=s.dtype, channels=4 * s.latent_channels,
                   layered=s.layered())


def vae(s):
    channel = torch.arange(s.latent_channels) / s.latent_channels
    return AutoencoderKLQwenImage(**{
        "base_dim": s.vae_base, "z_dim": s.latent_channels, "dim_mult": list(s.vae_mult),
        "num_res_blocks": s.vae_layers, "input_channels": 4 if s.layered() else 3,
        "temperal_downsample": [i % 2 == 1 for i in range(len(s.vae_mult) - 1)],
        "latents_mean": (channel - 0.4).tolist(), "latents_std": (0.7 + channel).tolist()}
        | s.configs.get("vae", {}))


def text_encoder(s, tokens):
    """`tokens` is the tokenizer."""
    text = {
        "vocab_size": len(tokens), "hidden_size": s.transformer.text_width,
        "intermediate_size": s.text_ff, "num_hidden_layers": s.text_layers,
        "num_attention_heads": s.text_heads, "num_key_value_heads": s.text_kv_heads,
        "rms_norm_eps": 1e-6, "rope_parameters": {
            "rope_type": "default", "rope_theta": 1e6, "mrope_section": list(s.sections)}}
    text |= s.configs.get("text", {})
    vision = {
        "depth": s.vision_depth, "hidden_size": s.vision_width, "num_heads": s.vision_heads,
        "intermediate_size": s.vision_ff, "out_hidden_size": s.transformer.text_width,
        "fullatt_block_indexes": list(s.whole)} | s.configs.get("vision", {})
    ids = {name + "_token_id": tokens.convert_tokens_to_ids(f"<|{mark}|>") for name, mark in (
        ("image", "image_pad"), ("video", "video_pad"), ("vision_start", "vision_start"),
        ("vision_end", "vision_end"))}
    return Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(text_config=text, vision_config=vision, **ids))


def flatten_config(path):
    """As published files of Qwen2.5-VL have it: the language model's fields beside the rest."""
    config = json.loads(path.read_text())
    text = config.pop("text_config")
    rope = text.pop("rope_parameters")
    text["rope_theta"] = rope.pop("rope_theta")
    text["rope_scaling"] = {"type": "mrope", "mrope_section": rope["mrope_section"]}
    text["model_type"] = "qwen2_5_vl"
    path.write_text(json.dumps(config | text, indent=2) + "\n")


def write_processor(out):
    """Like published ones: how pictures are normalised, and links to the tokenizer's files."""
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor  # they need torchvision
    size = {"shortest_edge": 3136, "longest_edge": 12845056}
    Qwen2VLImageProcessor(patch_size=14, size=size).save_pretrained(out / "processor")
    Qwen2VLVideoProcessor().save_pretrained(out / "processor")
    for path in (out / "tokenizer").iterdir():
        (out / "processor" / path.name).symlink_to(f"../tokenizer/{path.name}")


def mend(pipe, folder):
    """Makes a pipeline that edits do what its model was trained with: Pillow's filters resize, and a
    picture's tokens have places in rows and columns."""
    from transformers import Qwen2VLImageProcessorPil
    pipe.processor.image_processor = Qwen2VLImageProcessorPil.from_pretrained(folder / "processor")
    image = pipe.text_encoder.config.image_token_id

    def with_types(module, args, options):
        options["mm_token_type_ids"] = (options["input_ids"] == image).int()
        return args, options

    pipe.text_encoder.register_forward_pre_hook(with_types, with_kwargs=True)


def has_processor(pipeline):
    return "QwenImageEdit" in pipeline or "QwenImageLayered" in pipeline


def make(out, s):
    """Write the pipeline of QwenImageShape `s` to the new folder `out`."""
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
    for i, layers in enumerate(s.controlnets, 1):
        name = f"controlnet_{i}"
        net = controlnet(shape, layers, s.fills_in)
        random_pipeline.fill(net, name, shape, spread).save_pretrained(out / name)
    if has_processor(s.pipeline):
        write_processor(out)
    if s.older_config:
        flatten_config(out / "text_encoder/config.json")
    FlowMatchEulerDiscreteScheduler.from_config(s.scheduler).save_pretrained(out / "scheduler")
    index = {"_class_name": s.pipeline, "_diffusers_version": "0.42.1",
             "scheduler": ("diffusers", "FlowMatchEulerDiscreteScheduler"),
             "tokenizer": ("transformers", "Qwen2TokenizerFast")}
    index |= {name: (type(part).__module__.split(".")[0], type(part).__name__)
              for name, part in parts.items()}
    index |= {"processor": ("transformers", "Qwen2VLProcessor")} if has_processor(s.pipeline) else {}
    (out / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")
