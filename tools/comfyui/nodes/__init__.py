"""Nodes of ComfyUI for the tests alone: conditioning without text encoders, and faults."""

import importlib.util
import inspect
import sys
from pathlib import Path
from unittest import mock

import comfy.controlnet
import comfy.ldm.qwen_image.model
import comfy.model_detection
import comfy.patcher_extension
import comfy.supported_models
import torch
from aiohttp import web
from server import PromptServer

HEAD = 128
ZIMAGE = {
    "axes_dims": [32, 48, 48], "axes_lens": [1536, 512, 512], "rope_theta": 256.0, "ffn_dim_multiplier": 8.0 / 3.0,
    "z_image_modulation": True, "time_scale": 1000.0, "pad_tokens_multiple": 32,
}
published = comfy.model_detection.detect_unet_config


def tiny(state_dict, key_prefix, metadata=None):
    """As ComfyUI finds it; heads by the hidden size. Of published models ComfyUI knows both, 0.3.64 without a look at the file."""
    config = published(state_dict, key_prefix, metadata=metadata)
    if config is None:
        return config
    if config.get("image_model") in ("flux", "flux2"):
        config["hidden_size"] = len(state_dict[f"{key_prefix}img_in.weight"])
        config["num_heads"] = config["hidden_size"] // HEAD
    if config.get("image_model") == "lumina2" and "n_heads" not in config:
        heads = config["dim"] // HEAD
        config.update(ZIMAGE, n_heads=heads, n_kv_heads=heads)
    if config.get("image_model") == "qwen_image":
        config["num_attention_heads"] = len(state_dict[f"{key_prefix}img_in.weight"]) // HEAD
    return config


comfy.model_detection.detect_unet_config = tiny


class Conditioning:
    """Random embeddings."""

    RETURN_TYPES = ("CONDITIONING",)
    FUNCTION = "run"
    CATEGORY = "braid tests"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {name: ("INT", {"default": 1, "min": 0, "max": 100000})
                             for name in ("seed", "tokens", "width", "pooled", "masked")}}

    def run(self, seed, tokens, width, pooled, masked):
        generator = torch.Generator().manual_seed(seed)
        embeddings = torch.randn(1, tokens, width, generator=generator)
        extras = {"pooled_output": torch.randn(1, pooled, generator=generator) if pooled else None}
        if masked:
            extras["attention_mask"] = (torch.arange(tokens) < tokens - masked).long()[None]
        return ([[embeddings, extras]],)


class Latent:
    """Random latents of a size in pixels, with the channels and scale of others."""

    RETURN_TYPES = ("LATENT",)
    FUNCTION = "run"
    CATEGORY = "braid tests"

    @classmethod
    def INPUT_TYPES(cls):
        numbers = {name: ("INT", {"default": 64, "min": 0, "max": 100000}) for name in ("seed", "width", "height", "items")}
        return {"required": {**numbers, "like": ("LATENT",)}}

    def run(self, seed, width, height, items, like):
        channels = like["samples"].shape[1]
        scale = 16 if channels == 128 else 8
        generator = torch.Generator().manual_seed(seed)
        between = [items] if items else []
        return ({"samples": torch.randn(1, channels, *between, height // scale, width // scale, generator=generator)},)


class RandomControl(comfy.controlnet.ControlBase):
    """Residuals as a ControlNet's: one for two double blocks and one single block, nothing for the others."""

    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden

    def get_control(self, x_noisy, t, cond, batched_number, transformer_options):
        generator = torch.Generator().manual_seed(9)
        tokens = (x_noisy.shape[-2] + 1) // 2 * ((x_noisy.shape[-1] + 1) // 2)
        first, second = (0.3 * torch.randn(1, tokens, self.hidden, generator=generator) for _ in range(2))
        batch = len(x_noisy)
        first, second = first.expand(batch, -1, -1), second.expand(batch, -1, -1)
        return {"input": [first, first], "output": [None, second]}

    def copy(self):
        return RandomControl(self.hidden)


class Control:
    RETURN_TYPES = ("CONDITIONING",)
    FUNCTION = "run"
    CATEGORY = "braid tests"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"conditioning": ("CONDITIONING",), "hidden": ("INT", {"default": 256})}}

    def run(self, conditioning, hidden):
        return ([[embeddings, {**extras, "control": RandomControl(hidden)}] for embeddings, extras in conditioning],)


class Fault:
    """What a custom node may do to a model."""

    RETURN_TYPES = ("MODEL",)
    FUNCTION = "run"
    CATEGORY = "braid tests"
    KINDS = ["raise", "attention", "replace", "object", "hook", "none"]

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",), "kind": (cls.KINDS,)}}

    def run(self, model, kind):
        model = model.clone()
        if kind == "raise":
            model.set_model_sampler_post_cfg_function(self.fail)
        if kind == "attention":
            model.set_model_attn1_patch(lambda q, k, v, options: (q, k, v))
        if kind == "replace":
            model.set_model_patch_replace(lambda args, more: args, "dit", "double_block", 0)
        if kind == "object":
            model.add_object_patch("diffusion_model.img_in", torch.nn.Identity())
        if kind == "hook":
            model.add_weight_wrapper("diffusion_model.img_in.weight", lambda w: w)
        return (model,)

    def fail(self, args):
        raise RuntimeError("a callback of the tests raises")


class Merge:
    """Patches that are no LoRA: another model's weights for this one ("into"), or this one's for another ("from")."""

    RETURN_TYPES = ("MODEL",)
    FUNCTION = "run"
    CATEGORY = "braid tests"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",), "kind": (["into", "from"],)}}

    def run(self, model, kind):
        model = model.clone()
        if kind == "from":
            model.get_key_patches("diffusion_model.img_in.")
        else:
            shape = model.model_state_dict()["diffusion_model.img_in.weight"].shape
            model.add_patches({"diffusion_model.img_in.weight": (torch.ones(shape),)}, 0.5, 0.5)
        return (model,)


class Choice:
    """A link to an input that has a list: ComfyUI does not compare what comes through it."""

    RETURN_TYPES = ("COMBO",)
    FUNCTION = "run"
    CATEGORY = "braid tests"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("STRING", {"default": ""})}}

    def run(self, value):
        return (value,)


class Age:
    """What Load Model (Braid) says in a ComfyUI that lacks what it builds upon."""

    RETURN_TYPES = ("MODEL",)
    FUNCTION = "run"
    CATEGORY = "braid tests"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",)}}

    def run(self, model):
        lacked = comfy.patcher_extension.WrapperExecutor
        del comfy.patcher_extension.WrapperExecutor
        try:
            NODE_CLASS_MAPPINGS["BraidLoadModelFirst"]().run(file="", devices="", split="", weight_form="", offload="")
        finally:
            comfy.patcher_extension.WrapperExecutor = lacked


def known():
    """What this ComfyUI knows, of what cases of the tests need: classes of models, and marks of Qwen-Image's files."""
    arguments = inspect.signature(comfy.ldm.qwen_image.model.QwenImageTransformer2DModel).parameters
    found = [model.__name__ for model in comfy.supported_models.models]
    found += [name for name in ("use_additional_t_cond", "default_ref_method") if name in arguments]
    return found


@PromptServer.instance.routes.get("/braid_tests/known")
async def answer_known(request):
    return web.json_response(known())


def in_the_first_api():
    """Braid's nodes as a ComfyUI without the API of version 3 finds them."""
    folder = Path(__file__).resolve().parents[3] / "comfyui"
    spec = importlib.util.spec_from_file_location("braid_in_the_first_api", folder / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with mock.patch.dict(sys.modules, {"comfy_api.latest": None}):
        spec.loader.exec_module(module)
    return {f"{name}First": node for name, node in module.NODE_CLASS_MAPPINGS.items()}


NODE_CLASS_MAPPINGS = {
    **in_the_first_api(),
    "TestConditioning": Conditioning, "TestLatent": Latent, "TestControl": Control, "TestFault": Fault, "TestMerge": Merge,
    "TestChoice": Choice, "TestAge": Age,
}
