"""The Qwen-Image family: text to picture, Edit, Edit-Plus and Layered, whose files ComfyUI tells apart by marks alone.

Positions are ComfyUI's, which differ from the published pipelines' where a side has an odd number of tokens or a reference is
larger than the picture.
"""

import json
from pathlib import Path

import comfy.ldm.common_dit
import torch

from .denoiser import Denoiser, beside, packed, refuse_arguments, refuse_patches, residuals_per_block, unpacked
from .process import Refused

AT_ZERO = "index_timestep_zero"  # ComfyUI's method for references that are modulated as at timestep 0, as Edit-2511's
MARK_AT_ZERO = "__index_timestep_zero__"
MARK_LAYERED = "time_text_embed.addition_t_embedding.weight"

PARTS = {
    "transformer": ["diffusers", "QwenImageTransformer2DModel"], "vae": ["diffusers", "AutoencoderKLQwenImage"],
    "text_encoder": ["transformers", "Qwen2_5_VLForConditionalGeneration"], "tokenizer": ["transformers", "Qwen2Tokenizer"],
    "processor": ["transformers", "Qwen2VLProcessor"], "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
}
# Qwen2.5-VL-7B, whose width is that of the embedded text.
TEXT_ENCODER = {
    "model_type": "qwen2_5_vl", "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
    "intermediate_size": 18944, "num_hidden_layers": 28, "vocab_size": 152064,
}


def in_tokens(latents, patch):
    """[B, C, items, rows, columns] -> [B, tokens, C x patch x patch], item by item."""
    batch, _, items = latents.shape[:3]
    return packed(latents.transpose(1, 2).flatten(0, 1), patch).unflatten(0, (batch, items)).flatten(1, 2)


def in_latents(tokens, items, rows, columns, patch):
    """The inverse, for so many items, and rows and columns of latents."""
    grids = unpacked(tokens.unflatten(1, (items, -1)).flatten(0, 1), rows, columns, patch)
    return grids.unflatten(0, (len(tokens), items)).transpose(1, 2)


def places(references, method):
    """(reference, index, top, left) of each: ComfyUI lays references of methods that it does not know beside each other."""
    if method in ("index", AT_ZERO, "negative_index"):
        sign = -1 if method == "negative_index" else 1
        return [(reference, sign * number, 0, 0) for number, reference in enumerate(references, 1)]
    return [(reference, 1, top, left) for reference, top, left in beside(references)]


def transformer_config(tensors, at_zero):
    """The configuration of diffusers' class, by the tensors' shapes."""
    head = len(tensors["transformer_blocks.0.attn.norm_q.weight"])
    hidden, channels = tensors["img_in.weight"].shape
    is_layered = MARK_LAYERED in tensors
    return {
        "_class_name": "QwenImageTransformer2DModel", "attention_head_dim": head, "num_attention_heads": hidden // head,
        "in_channels": channels, "out_channels": len(tensors["proj_out.weight"]) // 4,
        "joint_attention_dim": len(tensors["txt_norm.weight"]),
        "use_additional_t_cond": is_layered, "use_layer3d_rope": is_layered, "zero_cond_t": at_zero,
    }


def write_configurations(folder, tensors, at_zero):
    """What Braid reads beside a file: of the parts that stay ComfyUI's, no more than their kinds."""
    is_layered = MARK_LAYERED in tensors
    files = {
        "model_index.json": {"_class_name": "QwenImageLayeredPipeline" if is_layered else "QwenImagePipeline", **PARTS},
        "transformer/config.json": transformer_config(tensors, at_zero),
        "text_encoder/config.json": {**TEXT_ENCODER, "vision_config": {}},
        "vae/config.json": {"_class_name": "AutoencoderKLQwenImage", "input_channels": 4 if is_layered else 3},
        "scheduler/scheduler_config.json": {"_class_name": "FlowMatchEulerDiscreteScheduler"},
    }
    for part in PARTS:
        (folder / part).mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def link_configurations(folder, given, tensors):
    """Those of the folder `given`, with a transformer whose references are at timestep 0."""
    config = given / "transformer" / "config.json"
    content = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else transformer_config(tensors, True)
    (folder / "transformer").mkdir(parents=True)
    (folder / "transformer" / "config.json").write_text(json.dumps({**content, "zero_cond_t": True}), encoding="utf-8")
    for entry in given.iterdir():
        if entry.name != "transformer":
            (folder / entry.name).symlink_to(entry.resolve())


class QwenImageDenoiser(Denoiser):
    def __init__(self, config, tensors, options):
        super().__init__(config, tensors, options)
        self.can_be_at_zero = MARK_AT_ZERO in tensors

    def options_in(self, folder):
        given, folder = self.options["components"], Path(folder) / "components"
        if given and (not self.can_be_at_zero or MARK_AT_ZERO in self.tensors):
            return self.options
        if given and Path(given).is_dir():
            link_configurations(folder, Path(given), self.tensors)
        else:
            write_configurations(folder, self.tensors, self.can_be_at_zero)
        return {**self.options, "components": str(folder)}

    def forward(self, x, timesteps, context, attention_mask=None, ref_latents=None, additional_t_cond=None, transformer_options={}, **others):
        return self.wrapped(transformer_options).execute(
            x, timesteps, context, attention_mask, ref_latents, additional_t_cond, transformer_options, **others
        )

    def evaluate(self, x, timesteps, context, attention_mask=None, ref_latents=None, additional_t_cond=None, transformer_options={}, **others):
        """ComfyUI's own model sees all tokens of the text, whatever `attention_mask` says, and so does this one."""
        refuse_patches(transformer_options)
        method = others.pop("ref_latents_method", None) or self.config.get("default_ref_method", "index")
        control = others.pop("control", None) or {}
        is_added = additional_t_cond is not None and bool(additional_t_cond.any())
        refuse_arguments({"additional_t_cond": additional_t_cond if is_added else None, **others})
        padded = self.padded(x)
        tokens, ids = [in_tokens(padded, self.patch_size)], [self.positions(padded)]
        for reference, index, top, left in places(ref_latents or [], method):
            reference = self.padded(reference).expand(len(x), -1, -1, -1, -1)
            tokens.append(in_tokens(reference, self.patch_size))
            ids.append(self.positions(reference, index, top, left))
        num_drawn, tokens, ids = len(ids[0]), torch.cat(tokens, 1), torch.cat(ids)
        at_zero = method == AT_ZERO and len(ids) > num_drawn
        if at_zero:
            self.be_at_zero()
        velocity = self.velocity(
            tokens, context, timesteps, ids=(ids, self.text_positions(x, context)), residuals=self.residuals(control, len(tokens), len(ids), at_zero),
            num_references=len(ids) - num_drawn if at_zero else 0,
        )[:, :num_drawn]
        made = in_latents(velocity, *padded.shape[2:], self.patch_size)
        return made[..., : x.shape[-2], : x.shape[-1]].to(x.dtype)

    def be_at_zero(self):
        if not self.can_be_at_zero:
            self.can_be_at_zero = True
            self.reload()

    def residuals(self, control, pictures, tokens, at_zero):
        """ComfyUI's own model takes those of the kind "input", and no others."""
        doubles = residuals_per_block(control.get("input", []), self.config["num_layers"], pictures, tokens)
        if at_zero and doubles[0]:
            raise Refused(f"Braid's denoiser takes no ControlNet beside references of the method {AT_ZERO!r}: leave one of them out")
        return {"doubles": doubles}

    def padded(self, latents):
        return comfy.ldm.common_dit.pad_to_patch_size(latents, (1, self.patch_size, self.patch_size))

    def positions(self, latents, index=0, top=0, left=0):
        """[tokens, 3]: an item, and a row and a column from the middle."""
        items, rows, columns = latents.shape[2], *(side // self.patch_size for side in latents.shape[3:])
        top, left = ((start + self.patch_size // 2) // self.patch_size for start in (top, left))
        ids = torch.zeros(items, rows, columns, 3)
        ids[..., 0] = torch.arange(items)[:, None, None] if items > 1 else index
        ids[..., 1] = torch.arange(rows)[:, None] + top - rows // 2
        ids[..., 2] = torch.arange(columns) + left - columns // 2
        return ids.flatten(0, 2)

    def text_positions(self, latents, context):
        """Behind the rows and columns of the picture, on all axes."""
        start = max((side + self.patch_size // 2) // self.patch_size // 2 for side in latents.shape[-2:])
        return torch.arange(start, start + context.shape[1]).float()[:, None].expand(-1, 3)
