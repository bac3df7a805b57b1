"""Braid's transformer inside a pipeline of diffusers, which goes on with its own schedulers and callbacks.

    import braid_engine.diffusers  # before torch, so that waiting threads sleep
    pipe = diffusers.FluxPipeline.from_pretrained(folder)
    braid_engine.diffusers.accelerate(pipe, devices=[0, 1], layout="tp=2")
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from . import _core, _options
from .pipeline import warn

PATCH = 2  # latents per side of a token


def floats(tensor: Any) -> Any:
    return np.ascontiguousarray(tensor.detach().to("cpu", torch.float32).numpy())


def without_batch(ids: Any) -> Any:
    """Positions [tokens, axes], which all pictures of a batch share."""
    return ids[0] if ids.ndim == 3 else ids


def refuse(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None and value is not False and value != {}:
            raise ValueError(f"Braid's transformer takes no {name}: leave it out, or use diffusers' own transformer")


def packed(latents: Any) -> Any:
    """[batch, channels, rows, columns] -> [batch, tokens, channels x 2 x 2]."""
    batch, channels, rows, columns = latents.shape
    patches = latents.reshape(batch, channels, rows // PATCH, PATCH, columns // PATCH, PATCH)
    return patches.permute(0, 2, 4, 1, 3, 5).reshape(batch, (rows // PATCH) * (columns // PATCH), channels * PATCH**2)


def unpacked(tokens: Any, rows: int, columns: int) -> Any:
    """The inverse, for latents of so many rows and columns."""
    batch, _, width = tokens.shape
    channels = width // PATCH**2
    patches = tokens.reshape(batch, rows // PATCH, columns // PATCH, channels, PATCH, PATCH)
    return patches.permute(0, 3, 1, 4, 2, 5).reshape(batch, channels, rows, columns)


def channels_last(tokens: Any) -> Any:
    """[..., channels x 4] -> [..., 4 x channels], as Z-Image's tokens are."""
    return tokens.unflatten(-1, (-1, PATCH**2)).transpose(-1, -2).flatten(-2)


def channels_first(tokens: Any) -> Any:
    return tokens.unflatten(-1, (PATCH**2, -1)).transpose(-1, -2).flatten(-2)


class Accelerated(torch.nn.Module):
    """In place of a transformer of diffusers: its configuration and arguments, Braid's arithmetic."""

    def __init__(self, original: Any, engine: _core.Transformer, pixels_per_latent: int) -> None:
        super().__init__()
        self.config = original.config
        self.in_channels = original.config.get("in_channels")
        self.out_channels = original.config.get("out_channels")
        # Follows the pipeline to devices and dtypes, as parameters would.
        self.register_buffer("place", torch.empty(0, dtype=original.dtype, device=original.device), persistent=False)
        self.engine = engine
        self.pixels_per_latent = pixels_per_latent

    @property
    def dtype(self) -> Any:
        return self.place.dtype

    @property
    def device(self) -> Any:
        return self.place.device

    @contextlib.contextmanager
    def cache_context(self, name: str) -> Iterator[None]:
        yield

    def answer(self, sample: Any, return_dict: bool) -> Any:
        if not return_dict:
            return (sample,)
        from diffusers.models.modeling_outputs import Transformer2DModelOutput  # noqa: PLC0415

        return Transformer2DModelOutput(sample=sample)

    def velocity(self, evaluation: _core.TransformerInput, like: Any) -> Any:
        return torch.from_numpy(self.engine.velocity(evaluation)).to(like.device, like.dtype)


class AcceleratedFlux(Accelerated):
    """FLUX.1 and FLUX.2, whose pipelines bring positions along."""

    def forward(
        self,
        hidden_states: Any,
        encoder_hidden_states: Any = None,
        pooled_projections: Any = None,
        timestep: Any = None,
        img_ids: Any = None,
        txt_ids: Any = None,
        guidance: Any = None,
        joint_attention_kwargs: Any = None,
        return_dict: bool = True,
        **others: Any,
    ) -> Any:
        refuse(joint_attention_kwargs=joint_attention_kwargs, **others)
        evaluation = _core.TransformerInput(floats(hidden_states), floats(encoder_hidden_states))
        if pooled_projections is not None:
            evaluation.set_pooled(floats(pooled_projections))
        evaluation.set_ids(floats(without_batch(img_ids)), floats(without_batch(txt_ids)))
        evaluation.timesteps = timestep.float().expand(len(hidden_states)).tolist()
        if guidance is not None and getattr(self.config, "guidance_embeds", True):
            evaluation.guidance = guidance.float().expand(len(hidden_states)).tolist()
        return self.answer(self.velocity(evaluation, hidden_states), return_dict)


class AcceleratedZImage(Accelerated):
    """Z-Image, whose pictures come in a list, each with a text of its own length."""

    def forward(
        self, x: Any, t: Any, cap_feats: Any, return_dict: bool = True, patch_size: int = 2, f_patch_size: int = 1, **others: Any
    ) -> Any:
        refuse(**others)
        if (patch_size, f_patch_size) != (PATCH, 1):
            raise ValueError(f"tokens should be 2 x 2 latents, patch sizes {patch_size} and {f_patch_size} were given")
        made = [self.one(latents[:, 0], time, text) for latents, time, text in zip(x, t, cap_feats, strict=True)]
        return self.answer(made, return_dict)

    def one(self, latents: Any, time: Any, text: Any) -> Any:
        rows, columns = latents.shape[-2:]
        tokens = channels_last(packed(latents[None]))
        evaluation = _core.TransformerInput(floats(tokens), floats(text[None]))
        evaluation.timesteps = [float(time)]
        evaluation.width, evaluation.height = self.pixels_per_latent * columns, self.pixels_per_latent * rows
        # Its transformer predicts the velocity with the other sign.
        velocity = -channels_first(self.velocity(evaluation, tokens))
        return unpacked(velocity, rows, columns)[0][:, None]


class AcceleratedJoy(Accelerated):
    """JoyAI-Image-Edit: items of one size, the drawn one last."""

    def forward(
        self, hidden_states: Any, timestep: Any, encoder_hidden_states: Any = None, return_dict: bool = True
    ) -> Any:
        items = hidden_states if hidden_states.ndim == 6 else hidden_states[:, None]
        items = torch.cat([items[:, -1:], items[:, :-1]], dim=1)
        batch, count, channels, frames, rows, columns = items.shape
        planes = items.permute(0, 1, 3, 2, 4, 5).reshape(batch * count * frames, channels, rows, columns)
        tokens = packed(planes).reshape(batch, -1, channels * PATCH**2)
        evaluation = _core.TransformerInput(floats(tokens), floats(encoder_hidden_states))
        evaluation.timesteps = timestep.float().expand(batch).tolist()
        evaluation.set_ids(*self.positions((count * frames, rows // PATCH, columns // PATCH), encoder_hidden_states.shape[1]))
        velocity = self.velocity(evaluation, hidden_states)
        planes = unpacked(velocity.reshape(batch * count * frames, -1, channels * PATCH**2), rows, columns)
        sample = planes.reshape(batch, count, frames, channels, rows, columns).permute(0, 1, 3, 2, 4, 5)
        sample = torch.cat([sample[:, 1:], sample[:, :1]], dim=1)
        return self.answer(sample if hidden_states.ndim == 6 else sample[:, 0], return_dict)

    def positions(self, sizes: tuple[int, int, int], num_text: int) -> tuple[Any, Any]:
        """Of pictures by item, row and column; of text at the origin, or behind all of them."""
        pictures = np.stack(np.meshgrid(*(np.arange(n, dtype=np.float32) for n in sizes), indexing="ij"), -1)
        text = np.zeros((num_text, 3), np.float32)
        if getattr(self.config, "rope_type", "rope") == "mrope":
            text += np.arange(num_text, dtype=np.float32)[:, None] + max(sizes)
        return np.ascontiguousarray(pictures.reshape(-1, 3)), text


class AcceleratedQwenImage(Accelerated):
    """Qwen-Image, whose pipelines bring items' sizes along: what is drawn, then references."""

    def forward(
        self,
        hidden_states: Any,
        encoder_hidden_states: Any = None,
        encoder_hidden_states_mask: Any = None,
        timestep: Any = None,
        img_shapes: Any = None,
        controlnet_block_samples: Any = None,
        additional_t_cond: Any = None,
        return_dict: bool = True,
        **others: Any,
    ) -> Any:
        refuse(**others)
        if additional_t_cond is not None and additional_t_cond.any():
            raise ValueError("layers with alpha are drawn: additional_t_cond should be 0 for each picture")
        shapes = img_shapes[0] if isinstance(img_shapes[0], list) else [img_shapes[0]]
        residuals = controlnet_block_samples or ()
        mask, batch = encoder_hidden_states_mask, len(hidden_states)
        # Texts of unequal lengths are padded: each picture then sees the tokens of its own.
        for one in [slice(None)] if mask is None else [slice(i, i + 1) for i in range(batch)]:
            places = np.arange(encoder_hidden_states.shape[1])
            if mask is not None:
                places = places[mask[one.start].bool().cpu().numpy()]
            evaluation = _core.TransformerInput(floats(hidden_states[one]), floats(encoder_hidden_states[one][:, places]))
            evaluation.timesteps = timestep.float().expand(batch)[one].tolist()
            evaluation.set_ids(*self.positions(shapes, places))
            evaluation.num_references = sum(math.prod(shape) for shape in self.references(shapes))
            for residual in residuals:
                evaluation.add_double_residual(floats(residual[one]))
            velocity = self.velocity(evaluation, hidden_states)
            made = velocity if one.start in (None, 0) else torch.cat([made, velocity])
        return self.answer(made, return_dict)

    @property
    def is_layered(self) -> bool:
        return bool(getattr(self.config, "use_layer3d_rope", False))

    def references(self, shapes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        return shapes[-1:] if self.is_layered else shapes[1:]

    def positions(self, shapes: list[tuple[int, int, int]], places: Any) -> tuple[Any, Any]:
        """Of pictures by item, and row and column from the centre; of text behind all of them. The picture that
        layers are taken from is item -1."""
        pictures, end = [], max(side // 2 for _, *sides in shapes for side in sides)
        for item, (frames, rows, columns) in enumerate(shapes):
            first = -1 if self.is_layered and item == len(shapes) - 1 else item
            axes = (np.arange(frames) + first, np.arange(rows) - (rows - rows // 2), np.arange(columns) - (columns - columns // 2))
            pictures.append(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3))
        end = max(end, len(shapes) - 1) if self.is_layered else end
        text = np.repeat(places[:, None] + end, 3, axis=1)
        return np.concatenate(pictures).astype(np.float32), text.astype(np.float32)


KINDS: dict[str, type[Accelerated]] = {
    "FluxTransformer2DModel": AcceleratedFlux,
    "Flux2Transformer2DModel": AcceleratedFlux,
    "ZImageTransformer2DModel": AcceleratedZImage,
    "JoyImageEditTransformer3DModel": AcceleratedJoy,
    "QwenImageTransformer2DModel": AcceleratedQwenImage,
}


def folder_of(pipe: Any) -> str:
    """Where the pipeline was loaded from."""
    name = getattr(pipe.config, "_name_or_path", "") or getattr(pipe, "name_or_path", "")
    if not name:
        raise ValueError("where the pipeline's files are is not known: give accelerate() model=, the folder or its name")
    return str(name)


def check_unchanged(pipe: Any) -> None:
    adapters = pipe.get_active_adapters() if hasattr(pipe, "get_active_adapters") and hasattr(pipe.transformer, "peft_config") else []
    if adapters:
        raise ValueError(
            f"the transformer has adapters ({', '.join(adapters)}), which Braid reads from files: unload them, and give "
            "accelerate() loras={file: scale}"
        )


def accelerate(
    pipe: Any,
    *,
    model: str | os.PathLike[str] | None = None,
    devices: Any = None,
    layout: Any = None,
    shares: Any = None,
    dtype: Any = None,
    quantization: str | None = None,
    memory: Any = None,
    offload: Any = None,
    threads: int = 0,
    loras: dict[str, float] | None = None,
    warning: Callable[[str], Any] = warn,
) -> Any:
    """Replaces the pipeline's transformer by Braid's, read from the pipeline's files; returns the pipeline.

    devices, layout, shares, dtype (None: the pipeline's), quantization, memory, offload, threads: as
    Pipeline.from_pretrained(). model: the folder or name, if the pipeline was not loaded from one. loras: files and
    their scales.

    Raises ValueError for a transformer that Braid does not have, and InputError with Braid's sentence.
    """
    original = pipe.transformer
    kind = KINDS.get(type(original).__name__)
    if kind is None:
        raise ValueError(f"Braid has no {type(original).__name__}; it has {', '.join(KINDS)}")
    check_unchanged(pipe)
    options = _core.PipelineOptions()
    options.model = os.fspath(model) if model is not None else folder_of(pipe)
    options.published = _options.MODELS / "published"
    options.dtype = _options.dtype_of(dtype if dtype is not None else original.dtype)
    options.devices = _options.devices_of(devices)
    options.threads = threads
    options.adapters = [_core.Adapter(file, scale) for file, scale in (loras or {}).items()]
    options.layout = _options.layout_of(layout, len(options.devices), shares)
    options.memory = _options.memory_of(memory, None, quantization, None, offload)
    pipe.transformer = kind(original, _core.Transformer(options, warning), getattr(pipe, "vae_scale_factor", 8))
    return pipe
