"""The transformers that take the place of diffusers', by their classes: the same arguments, Braid's arithmetic."""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from . import _core
from ._core import InputError

PATCH = 2  # latents per side of a token


def floats(tensor: Any) -> Any:
    return np.ascontiguousarray(tensor.detach().to("cpu", torch.float32).numpy())


def without_batch(ids: Any) -> Any:
    """Positions [tokens, axes], which all pictures of a batch share."""
    return ids[0] if ids.ndim == 3 else ids


def refuse(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None and value is not False and value != {}:
            raise InputError(f"Braid's model takes no {name}: leave it out, or use diffusers' own model")


def by_text(seen: Any) -> Iterator[tuple[slice, Any]]:
    """Of `seen` [batch, tokens], which tokens of its text each picture sees: neighbours that see the same, and the
    places of these tokens. Texts of unequal lengths are padded, each picture is to see those of its own."""
    first = 0
    for end in range(1, len(seen) + 1):
        if end == len(seen) or (seen[end] != seen[first]).any():
            yield slice(first, end), np.flatnonzero(seen[first])
            first = end


def seen_of(mask: Any, text: Any) -> Any:
    """[batch, tokens]; without a mask all are seen."""
    return np.ones(text.shape[:2], bool) if mask is None else mask.bool().cpu().numpy()


def grid(*axes: Any) -> Any:
    """Positions [tokens, axes], the last axis fastest."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes)).astype(np.float32)


def around_centre(count: int) -> Any:
    return np.arange(count) - (count - count // 2)


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


class Replacement(torch.nn.Module):
    """In place of a model of diffusers, whose configuration it keeps."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.config = original.config
        # Follows the pipeline to devices and dtypes, as parameters would. From "meta", where an original is that was freed,
        # nothing can be moved.
        device = "cpu" if original.device.type == "meta" else original.device
        self.register_buffer("place", torch.empty(0, dtype=original.dtype, device=device), persistent=False)

    def load_lora_adapter(self, *_: Any, **__: Any) -> None:
        """What diffusers' load_lora_weights() comes to."""
        raise InputError("Braid reads adapters from files: give accelerate() loras={file: scale} instead")

    @property
    def dtype(self) -> Any:
        return self.place.dtype

    @property
    def device(self) -> Any:
        return self.place.device


class Accelerated(Replacement):
    """In place of a transformer of diffusers: its arguments, Braid's arithmetic."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.forward = torch.compiler.disable(cls.forward)  # it cannot be traced, which torch.compile() would try

    def __init__(self, original: Any, engine: _core.Transformer, pixels_per_latent: int) -> None:
        super().__init__(original)
        self.in_channels = original.config.get("in_channels")
        self.out_channels = original.config.get("out_channels")
        self.engine = engine
        self.pixels_per_latent = pixels_per_latent

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

    def by_text(
        self, tokens: Any, text: Any, seen: Any, timestep: Any, complete: Callable[[_core.TransformerInput, slice, Any], None]
    ) -> Any:
        """The velocities of pictures, of which each sees the tokens `seen` of its text. complete(evaluation, pictures, places
        of their tokens of text) sets what remains."""
        made, times = [], timestep.float().expand(len(tokens))
        for some, places in by_text(seen):
            evaluation = _core.TransformerInput(floats(tokens[some]), floats(text[some, places]))
            evaluation.timesteps = times[some].tolist()
            complete(evaluation, some, places)
            made.append(self.velocity(evaluation, tokens))
        return torch.cat(made)


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
        controlnet_block_samples: Any = None,
        controlnet_single_block_samples: Any = None,
        return_dict: bool = True,
        controlnet_blocks_repeat: bool = False,
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
        doubles = [floats(residual) for residual in controlnet_block_samples or ()]
        # XLabs' nets go through theirs again and again, one for each block.
        for i in range(self.config.num_layers if controlnet_blocks_repeat and doubles else len(doubles)):
            evaluation.add_double_residual(doubles[i % len(doubles)])
        for residual in controlnet_single_block_samples or ():
            evaluation.add_single_residual(floats(residual))
        return self.answer(self.velocity(evaluation, hidden_states), return_dict)


class AcceleratedZImage(Accelerated):
    """Z-Image, whose pictures come in a list, each with a text of its own length."""

    def forward(
        self, x: Any, t: Any, cap_feats: Any, return_dict: bool = True, patch_size: int = 2, f_patch_size: int = 1, **others: Any
    ) -> Any:
        refuse(**others)
        if (patch_size, f_patch_size) != (PATCH, 1):
            raise InputError(f"tokens should be 2 x 2 latents, patch sizes {patch_size} and {f_patch_size} were given")
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
        text = np.zeros((num_text, 3), np.float32)
        if getattr(self.config, "rope_type", "rope") == "mrope":
            text += np.arange(num_text, dtype=np.float32)[:, None] + max(sizes)
        return grid(*map(np.arange, sizes)), text


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
            raise InputError("layers with alpha are drawn: additional_t_cond should be 0 for each picture")
        shapes = img_shapes[0] if isinstance(img_shapes[0], list) else [img_shapes[0]]

        def complete(evaluation: _core.TransformerInput, some: slice, places: Any) -> None:
            evaluation.set_ids(*self.positions(shapes, places))
            evaluation.num_references = sum(math.prod(shape) for shape in self.references(shapes))
            for residual in controlnet_block_samples or ():
                evaluation.add_double_residual(floats(residual[some]))

        seen = seen_of(encoder_hidden_states_mask, encoder_hidden_states)
        return self.answer(self.by_text(hidden_states, encoder_hidden_states, seen, timestep, complete), return_dict)

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
            pictures.append(grid(np.arange(frames) + first, around_centre(rows), around_centre(columns)))
        end = max(end, len(shapes) - 1) if self.is_layered else end
        text = np.repeat(places[:, None] + end, 3, axis=1)
        return np.concatenate(pictures), text.astype(np.float32)


class AcceleratedKrea2(Accelerated):
    """Krea 2, whose text comes as several hidden states of each token."""

    def forward(
        self,
        hidden_states: Any,
        encoder_hidden_states: Any,
        timestep: Any,
        position_ids: Any,
        encoder_attention_mask: Any = None,
        attention_kwargs: Any = None,
        return_dict: bool = True,
    ) -> Any:
        refuse(attention_kwargs=attention_kwargs)
        text = encoder_hidden_states.flatten(2)
        text_ids, latent_ids = np.split(floats(position_ids), [text.shape[1]])

        def complete(evaluation: _core.TransformerInput, some: slice, places: Any) -> None:
            evaluation.set_ids(latent_ids, text_ids[places])

        seen = seen_of(encoder_attention_mask, text)
        return self.answer(self.by_text(hidden_states, text, seen, timestep, complete), return_dict)


class AcceleratedQwenImage21(Accelerated):
    """Qwen-Image-2.1, which reads references amid the text and answers for what is drawn alone. It computes the keys of
    both anew in each step, with a cache and without."""

    def __init__(self, original: Any, engine: _core.Transformer, pixels_per_latent: int) -> None:
        super().__init__(original, engine, pixels_per_latent)
        self.transformer_blocks = range(original.config.num_layers)  # the pipeline counts them

    def forward(
        self,
        hidden_states: Any,
        encoder_hidden_states: Any,
        timestep: Any,
        img_shapes: Any,
        img_mask: Any,
        encoder_hidden_states_mask: Any = None,
        attention_kwargs: Any = None,
        kv_cache: Any = None,
        kv_cache_mode: str | None = None,
        return_dict: bool = True,
    ) -> Any:
        refuse(attention_kwargs=attention_kwargs)
        is_slot = img_mask[0].bool().cpu().numpy()
        slot_ids, picture_ids, starts = self.positions(is_slot, img_shapes[0])
        counts = [len(ids) for ids in picture_ids[:-1]]
        tokens = torch.cat([hidden_states[:, sum(counts) :], hidden_states[:, : sum(counts)]], dim=1)
        latent_ids = np.concatenate(picture_ids[-1:] + picture_ids[:-1])
        seen = seen_of(encoder_hidden_states_mask, encoder_hidden_states) & ~is_slot[: encoder_hidden_states.shape[1]]

        def complete(evaluation: _core.TransformerInput, some: slice, places: Any) -> None:
            evaluation.set_ids(latent_ids, slot_ids[places])
            evaluation.num_references = sum(counts)
            for count, start in zip(counts, starts, strict=False):
                evaluation.add_reference_place(count, int((places < start).sum()))

        return self.answer(self.by_text(tokens, encoder_hidden_states, seen, timestep, complete), return_dict)

    def positions(self, is_slot: Any, shapes: list[tuple[int, int, int]]) -> tuple[Any, list[Any], list[int]]:
        """Of the text encoder's tokens, of each picture's, and the token at which each picture stands. Text advances by
        one, padding also; a picture by its longer side, and its rows and columns have the centre at 0."""
        ids, pictures, starts = np.zeros((len(is_slot), 3), np.float32), [], []
        token = position = 0
        for _, rows, columns in shapes:
            start = token + int(is_slot[token:].argmax())
            ids[token:start] = position + np.arange(start - token)[:, None]
            position += start - token
            pictures.append(grid([position], around_centre(rows), around_centre(columns)))
            starts.append(start)
            position += max(rows, columns)
            token = start + rows * columns // PATCH**2  # the text encoder sees 2 x 2 latents as one
        return ids, pictures, starts


class AcceleratedFlux3(Accelerated):
    """FLUX.3, whose pipelines bring references apart from what is drawn."""

    def forward(
        self,
        hidden_states: Any,
        encoder_hidden_states: Any,
        timestep: Any,
        img_ids: Any,
        txt_ids: Any,
        image_cond_hidden_states: Any = None,
        image_cond_ids: Any = None,
        target_timestep: Any = None,
        attention_kwargs: Any = None,
        return_dict: bool = True,
    ) -> Any:
        refuse(attention_kwargs=attention_kwargs)
        tokens, ids = hidden_states, img_ids
        if image_cond_hidden_states is not None:
            tokens, ids = torch.cat([tokens, image_cond_hidden_states], dim=1), torch.cat([ids, image_cond_ids])
        evaluation = _core.TransformerInput(floats(tokens), floats(encoder_hidden_states))
        evaluation.set_ids(floats(ids), floats(txt_ids))
        evaluation.num_references = tokens.shape[1] - hidden_states.shape[1]
        evaluation.timesteps = timestep.float().expand(len(tokens)).tolist()
        if target_timestep is not None:
            evaluation.target_timesteps = target_timestep.float().expand(len(tokens)).tolist()
        return self.answer(self.velocity(evaluation, hidden_states), return_dict)


KINDS: dict[str, type[Accelerated]] = {
    "FluxTransformer2DModel": AcceleratedFlux,
    "Flux2Transformer2DModel": AcceleratedFlux,
    "ZImageTransformer2DModel": AcceleratedZImage,
    "JoyImageEditTransformer3DModel": AcceleratedJoy,
    "QwenImageTransformer2DModel": AcceleratedQwenImage,
    "QwenImage21Transformer2DModel": AcceleratedQwenImage21,
    "Krea2Transformer2DModel": AcceleratedKrea2,
    "Flux3Transformer2DModel": AcceleratedFlux3,
}
