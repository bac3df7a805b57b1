"""What ComfyUI calls as a diffusion model: it has names and shapes of weights, and evaluates in Braid's process."""

import logging
import tempfile

import comfy.ldm.common_dit
import comfy.model_management
import comfy.patcher_extension
import numpy as np
import torch

from . import patches
from .process import Failed, Interrupted, Refused, Worker

LATENT = 8  # pixels per latent
NOT_FOR_MODELS = ("crossattn_controlnet",)  # meant for ControlNets, ComfyUI's own models leave it out as well
REACHES_INSIDE = "reaches inside the model, which runs in Braid's process: use ComfyUI's own loader for it"


def floats(tensor):
    return np.ascontiguousarray(tensor.detach().to("cpu", torch.float32).numpy())


def interrupted():
    return comfy.model_management.processing_interrupted()


def packed(latents, patch):
    """[B, C, rows, columns] -> [B, tokens, C x patch x patch], channels first."""
    batch, channels, rows, columns = latents.shape
    patches_ = latents.reshape(batch, channels, rows // patch, patch, columns // patch, patch)
    return patches_.permute(0, 2, 4, 1, 3, 5).reshape(batch, -1, channels * patch * patch)


def unpacked(tokens, rows, columns, patch):
    """The inverse, for latents of so many rows and columns."""
    batch, _, width = tokens.shape
    grid = tokens.reshape(batch, rows // patch, columns // patch, width // patch**2, patch, patch)
    return grid.permute(0, 3, 1, 4, 2, 5).reshape(batch, width // patch**2, rows, columns)


def refuse_patches(options):
    """Raises Refused for patches in transformer_options that change what happens between the model's layers."""
    for kind in ("patches", "patches_replace"):
        for name, given in options.get(kind, {}).items():
            if given:
                raise Refused(f"the patch {name!r} {REACHES_INSIDE}")
    if options.get("optimized_attention_override") is not None:
        raise Refused(f"the patch 'optimized_attention_override' {REACHES_INSIDE}")


def refuse_arguments(given):
    for name, value in given.items():
        if value is not None and name not in NOT_FOR_MODELS:
            raise Refused(f"Braid's denoiser takes no {name!r}: leave out the node that adds it, or use ComfyUI's own loader")


def residuals_per_block(given, num_blocks, pictures, tokens):
    """(tensors, one index into them per block) of what a ControlNet of ComfyUI adds after blocks; none: ([], []).

    given: tensors [B, N, hidden] or None, where B may be 1 for all pictures; blocks beyond them get nothing. tokens: how
    many the model sees, which may be more than the N of the picture.
    """
    listed = [*given[:num_blocks], *[None] * (num_blocks - len(given))]
    shown = [tensor for tensor in listed if tensor is not None]
    if not shown:
        return [], []
    tensors = {}
    for tensor in listed:
        if id(tensor) not in tensors:
            whole = torch.zeros_like(shown[0]) if tensor is None else tensor
            whole = torch.nn.functional.pad(whole, (0, 0, 0, tokens - whole.shape[1]))
            whole = whole.expand(pictures, -1, -1) if len(whole) == 1 else whole
            tensors[id(tensor)] = len(tensors), whole
    return [whole for _, whole in tensors.values()], [tensors[id(tensor)][0] for tensor in listed]


def beside(references):
    """(reference, top, left) of each, in latents: below or right of those before it, whichever keeps the whole squarer."""
    height = width = 0
    for reference in references:
        rows, columns = reference.shape[-2:]
        is_tall = rows + height > columns + width
        top, left = (0, width) if is_tall else (height, 0)
        yield reference, top, left
        height, width = max(height, rows + top), max(width, columns + left)


class Denoiser(torch.nn.Module):
    """`tensors`: meta tensors of the file, by their names without prefix. `options`: how Braid is to load it."""

    def __init_subclass__(cls):
        super().__init_subclass__()
        cls.forward = torch.compiler.disable(cls.forward)  # it cannot be traced, which TorchCompileModel would try

    def __init__(self, config, tensors, options):
        super().__init__()
        self.dtype = torch.float32
        self.patch_size = config.get("patch_size", 2)
        self.in_channels = config.get("in_channels")  # guidance functions ask for it, as RenormCFG's
        self.config = config
        self.tensors = tensors
        self.options = options
        self.device_bytes = 0  # what the plan needs of ComfyUI's device
        self.worker = None
        self.loaded = None  # the patches' identity, once weights are in Braid's process
        self.asked = None   # the patches and their identity that were asked for last

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise AttributeError(f"Braid's denoiser has no {name!r} in ComfyUI's process: what asks for it {REACHES_INSIDE}") from None

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Names and shapes, for LoRA loaders: the numbers are in Braid's process."""
        found = {} if destination is None else destination
        found.update({prefix + name: tensor for name, tensor in self.tensors.items()})
        return found

    def options_in(self, folder):
        """How Braid is to load the file. What it reads besides may be written into `folder`."""
        return self.options

    @property
    def is_running(self):
        return self.worker is not None and self.worker.is_alive

    def load(self, weight_patches, identity):
        """Loads the weights, with ComfyUI's patches of weights, unless they are loaded. Raises Refused or Failed."""
        self.asked = weight_patches, identity
        if not self.is_running:
            self.worker, self.loaded = Worker(), None
        if self.loaded == identity:
            return
        self.loaded = None
        shapes = {patches.PREFIX + name: tensor.shape for name, tensor in self.tensors.items()}
        with tempfile.TemporaryDirectory(prefix="braid-patches-") as folder:
            adapters = patches.write(weight_patches, shapes, folder)
            answer, _ = self.ask("load", {"options": self.options_in(folder), "adapters": adapters})
        for sentence in answer["warnings"]:
            logging.warning("Braid: %s", sentence)
        self.loaded = identity

    def unload(self):
        """Ends Braid's process, and with it all that it holds of any device."""
        if self.worker is not None:
            self.worker.close()
        self.worker = self.loaded = self.asked = None

    def reload(self):
        """Loads what is loaded once more: options_in() has changed."""
        if self.asked is not None:
            self.loaded = None
            self.load(*self.asked)

    def ask(self, do, message, arrays=None):
        try:
            return self.worker.ask(do, message, arrays, interrupted)
        except Interrupted:
            comfy.model_management.throw_exception_if_processing_interrupted()
            raise Failed("the run was cancelled") from None

    def velocity(self, latents, text, timesteps, guidance=None, pooled=None, ids=None, size=(0, 0), residuals={}, num_references=0):
        """[B, N, width] of tokens [B, N, width], without the last `num_references`."""
        if self.loaded is None:
            raise Failed("the model is not loaded: ComfyUI evaluated it before its patcher loaded it")
        arrays = {"latents": floats(latents), "text": floats(text)}
        if pooled is not None:
            arrays["pooled"] = floats(pooled)
        if ids is not None:
            arrays["latent_ids"], arrays["text_ids"] = floats(ids[0]), floats(ids[1])
        batch = len(latents)
        message = {
            "timesteps": timesteps.float().expand(batch).tolist(),
            "guidance": [] if guidance is None else guidance.float().expand(batch).tolist(),
            "width": size[0], "height": size[1], "num_references": num_references,
        }
        for kind, (tensors, indices) in residuals.items():
            message[kind] = [f"{kind}_{i}" for i in indices]
            arrays.update({f"{kind}_{i}": floats(tensor) for i, tensor in enumerate(tensors)})
        _, made = self.ask("velocity", message, arrays)
        return torch.from_numpy(made["velocity"]).to(latents.device)

    def wrapped(self, transformer_options):
        """The evaluation with the wrappers around it that ComfyUI's own models run."""
        extension = comfy.patcher_extension
        wrappers = extension.get_all_wrappers(extension.WrappersMP.DIFFUSION_MODEL, transformer_options)
        return extension.WrapperExecutor.new_class_executor(self.evaluate, self, wrappers)


class FluxDenoiser(Denoiser):
    """FLUX.1 (also Fill, Canny, Depth, Kontext) and FLUX.2."""

    def __init__(self, config, tensors, options):
        super().__init__(config, tensors, options)
        self.in_channels *= self.patch_size**2  # ComfyUI's own class counts those of tokens

    def forward(self, x, timestep, context, y=None, guidance=None, ref_latents=None, control=None, transformer_options={}, **others):
        return self.wrapped(transformer_options).execute(
            x, timestep, context, y, guidance, ref_latents, control, transformer_options, **others
        )

    def evaluate(self, x, timestep, context, y=None, guidance=None, ref_latents=None, control=None, transformer_options={}, **others):
        refuse_patches(transformer_options)
        method = others.pop("ref_latents_method", None) or self.config.get("default_ref_method", "offset")
        refuse_arguments(others)
        if guidance is None and self.config.get("guidance_embed"):
            raise Refused("the node FluxDisableGuidance leaves out a scale that this model was distilled for, and Braid's denoiser "
                          "needs: leave out that node, or use ComfyUI's own loader")
        rows, columns = x.shape[-2:]
        padded = self.padded(x)
        tokens = [packed(padded, self.patch_size)]
        ids = [self.positions(padded, transformer_options.get("rope_options"))]
        for reference, index, top, left in self.places(ref_latents or [], method, padded):
            reference = self.padded(reference)
            tokens.append(self.reference_tokens(reference, padded))
            ids.append(self.positions(reference, None, index, top, left))
        tokens = torch.cat(tokens, 1)
        velocity = self.velocity(
            tokens, context, timestep, pooled=self.pooled(y, x), residuals=self.residuals(control or {}, *tokens.shape[:2]),
            guidance=guidance if self.config.get("guidance_embed") else None,
            ids=(torch.cat(ids), self.text_positions(context)),
        )[:, : len(ids[0])]
        return unpacked(velocity, *padded.shape[-2:], self.patch_size)[:, :, :rows, :columns].to(x.dtype)

    def residuals(self, control, pictures, tokens):
        refuse_arguments({f"control of the kind {kind!r}": given or None for kind, given in control.items() if kind not in ("input", "output")})
        doubles = residuals_per_block(control.get("input", []), self.config["depth"], pictures, tokens)
        singles = residuals_per_block(control.get("output", []), self.config["depth_single_blocks"], pictures, tokens)
        return {"doubles": doubles, "singles": singles}

    def padded(self, latents):
        return comfy.ldm.common_dit.pad_to_patch_size(latents, (self.patch_size, self.patch_size))

    def reference_tokens(self, reference, latents):
        return packed(reference.expand(len(latents), -1, -1, -1), self.patch_size)

    def pooled(self, y, x):
        width = self.config.get("vec_in_dim")
        if width is None:
            return None
        return torch.zeros(len(x), width) if y is None else y[:, :width]

    def positions(self, latents, rope=None, index=0.0, top=0, left=0):
        """[tokens, axes]: an index, a row and a column, which 'rope' scales about 0 and shifts."""
        rope = rope or {}
        rows, columns = (side // self.patch_size for side in latents.shape[-2:])
        ids = torch.zeros(rows, columns, len(self.config["axes_dim"]))

        def run(count, start, axis):
            start = (start + self.patch_size // 2) // self.patch_size + rope.get(f"shift_{axis}", 0.0)
            return torch.linspace(start, start + (count - 1) * rope.get(f"scale_{axis}", 1.0), count)

        ids[..., 0] = index + rope.get("shift_t", 0.0)
        ids[..., 1] = run(rows, top, "y")[:, None]
        ids[..., 2] = run(columns, left, "x")[None]
        return ids.flatten(0, 1)

    def text_positions(self, context):
        ids = torch.zeros(context.shape[1], len(self.config["axes_dim"]))
        for axis in self.config.get("txt_ids_dims", []):
            ids[:, axis] = torch.arange(context.shape[1])
        return ids

    def places(self, references, method, latents):
        """(reference, index, top, left) of each, in latents: behind one another, or beside the picture."""
        if not references:
            return
        if method == "index":
            for number, reference in enumerate(references, 1):
                yield reference, number * self.config.get("ref_index_scale", 1.0), 0, 0
        elif method == "uxo":
            top, left = latents.shape[-2:]
            for reference in references:
                yield reference, 0, top, left
                top, left = top + reference.shape[-2], left + reference.shape[-1]
        elif method == "offset":
            for reference, top, left in beside(references):
                yield reference, 1, top, left
        else:
            raise Refused(f"Braid's denoiser knows no reference_latents_method {method!r}: 'index', 'offset' or 'uxo'")


class ZImageDenoiser(Denoiser):
    """Z-Image, one picture at a time: captions are padded each for itself."""

    def forward(self, x, timesteps, context, num_tokens, attention_mask=None, **others):
        return self.wrapped(others.get("transformer_options", {})).execute(x, timesteps, context, num_tokens, attention_mask, **others)

    def evaluate(self, x, timesteps, context, num_tokens, attention_mask=None, transformer_options={}, **others):
        refuse_patches(transformer_options)
        others.pop("clip_text_pooled", None)  # of another model of this kind, ignored by Z-Image
        mask = None if attention_mask is None or bool(attention_mask.all()) else attention_mask
        refuse_arguments({"attention_mask": mask, "rope_options": transformer_options.get("rope_options"), **others})
        rows, columns = x.shape[-2:]
        padded = comfy.ldm.common_dit.pad_to_patch_size(x, (self.patch_size, self.patch_size))
        times = timesteps.float().expand(len(x))
        made = [self.one(padded[i : i + 1], times[i : i + 1], context[i : i + 1]) for i in range(len(x))]
        return torch.cat(made)[:, :, :rows, :columns].to(x.dtype)

    def one(self, latents, time, text):
        rows, columns = latents.shape[-2:]
        square = self.patch_size**2
        tokens = packed(latents, self.patch_size).unflatten(-1, (-1, square)).transpose(-1, -2).flatten(-2)
        velocity = self.velocity(tokens, text, 1 - time, size=(LATENT * columns, LATENT * rows))
        tokens = velocity.unflatten(-1, (square, -1)).transpose(-1, -2).flatten(-2)
        return unpacked(tokens, rows, columns, self.patch_size)
