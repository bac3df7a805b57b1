"""Pictures as PIL images, numpy arrays and torch tensors, both ways."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from . import _core
from ._core import InputError

MOST_CHANNELS = 4
OUTPUTS = {"pil": "bytes", "np": "values", "pt": "values", "latent": "latents"}


def torch_if_loaded() -> Any:
    """torch, if it is imported: this package does not import it."""
    return sys.modules.get("torch")


def torch_for(purpose: str) -> Any:
    try:
        import torch  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ImportError(f"{purpose} needs torch, which is not installed") from error
    return torch


def output_of(output_type: str) -> _core.Output:
    if not isinstance(output_type, str) or output_type not in OUTPUTS:
        raise InputError(f"output_type should be 'pil', 'np', 'pt' or 'latent', it is {output_type!r}")
    if output_type == "pt":
        torch_for('output_type="pt"')  # before hours of drawing, not after
    return _core.Output.__members__[OUTPUTS[output_type]]


def is_many(image: object) -> bool:
    return isinstance(image, Sequence) and not isinstance(image, str | bytes)


def images_in(images: Any) -> list[Any]:
    """One image or several, as a list; arrays and tensors with a batch are several."""
    if images is None:
        return []
    if is_many(images):
        return list(images)
    if getattr(images, "ndim", 0) == 4:
        return list(images)
    return [images]


def is_tensor(value: object) -> bool:
    """Whether it is one of torch's. Open files can be detached, too."""
    return hasattr(value, "detach") and hasattr(value, "cpu")


def numpy_of(tensor: Any) -> Any:
    """Floats of any width become those of 32 bits, numpy lacks bfloat16."""
    try:
        there = tensor.detach().cpu()
        return (there.float() if there.is_floating_point() else there).numpy(force=True)
    except (NotImplementedError, TypeError):
        kind, device = (str(getattr(tensor, name, "unknown")) for name in ("layout", "device"))
        raise TypeError(f"a tensor should hold its numbers densely, it has the layout {kind} on the device {device}") from None


def array_in(image: Any) -> Any:
    """An array [height, width, channels] or [height, width] in 8 bits, or of bools or floats."""
    array = given = numpy_of(image) if is_tensor(image) else np.asarray(image)
    if is_tensor(image) and array.ndim == 3:
        array = array.transpose(1, 2, 0)
    is_picture = array.ndim == 2 or (array.ndim == 3 and 1 <= array.shape[2] <= MOST_CHANNELS)
    if not is_picture or not (array.dtype in (np.bool_, np.uint8) or np.issubdtype(array.dtype, np.floating)):
        raise InputError(
            "a picture should be a PIL image, an array [height, width, 3] in 8 bits or of floats from 0 to 1, or such a "
            f"tensor [3, height, width]; it is {given.dtype} of shape {list(given.shape)}"
        )
    return array


def in_bytes(array: Any) -> Any:
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.size and not (array.min() >= 0 and array.max() <= 1):  # a NaN is neither
        raise InputError(f"a picture's floats should lie between 0 and 1, they go from {array.min()} to {array.max()}")
    return (array * 255).round().astype(np.uint8)


def in_8_bits(picture: Any, file_format: str | None) -> Any:
    """16 bits are rounded as Braid does; Pillow's own conversions would make most of them white."""
    if picture.mode.startswith("I;16") or (picture.mode == "I" and file_format == "PNG"):
        wide = np.asarray(picture).astype(np.uint32)
        grey = Image.fromarray(((wide * 255 + 32895) >> 16).astype(np.uint8))
        if (clear := picture.info.get("transparency")) is not None:
            grey.putalpha(Image.fromarray(np.where(wide == clear, 0, 255).astype(np.uint8)))
        return grey
    if picture.mode in ("La", "RGBa"):  # multiplied by their alpha
        return picture.convert(picture.mode.upper())
    if picture.mode[0] in "IF":
        raise InputError(
            f"a picture should have 8 or 16 bits, it has Pillow's mode {picture.mode!r}, whose white is not known: convert "
            'it to "L"'
        )
    return picture


def name_of(image: Any) -> str:
    """Of a file as sentences show it: its path, if it has one."""
    path = image if isinstance(image, str | os.PathLike) else getattr(image, "filename", "") or getattr(image, "name", "")
    is_named = isinstance(path, str | os.PathLike) and bool(path)
    return repr(os.fspath(path)) if is_named else "the open file" if hasattr(image, "read") else "the picture"


@contextlib.contextmanager
def reading(image: Any) -> Iterator[None]:
    """Raises InputError naming the file where Pillow fails, whose errors are of many types."""
    try:
        yield
    except UnidentifiedImageError as error:
        raise InputError(f"Pillow knows no picture in {name_of(image)}") from error
    except OSError as error:
        raise InputError(f"{name_of(image)} cannot be read: {error.strerror or error}") from error
    except (Image.DecompressionBombError, SyntaxError, ValueError, EOFError) as error:
        raise InputError(f"{name_of(image)} cannot be read: {error}") from error


def opened(image: Any) -> Any:
    if isinstance(image, str | os.PathLike) or hasattr(image, "read"):
        with reading(image), Image.open(image) as file:
            upright, file_format = ImageOps.exif_transpose(file), file.format
        return in_8_bits(upright, file_format)
    if isinstance(image, Image.Image):
        with reading(image):
            image.load()  # of a file, that is when it is read
        return in_8_bits(image, image.format)
    return Image.fromarray(np.ascontiguousarray(squeezed(in_bytes(array_in(image)))))


def squeezed(array: Any) -> Any:
    return array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array


def is_transparent(picture: Any) -> bool:
    return "A" in picture.getbands() or "transparency" in picture.info


def pixels_as(mode: str, picture: Any) -> _core.Pixels:
    return _core.Pixels(np.ascontiguousarray(np.asarray(picture.convert(mode))))


def pixels_of(image: object) -> _core.Pixels:
    """RGB in 8 bits; what is transparent lies over white."""
    picture = opened(image)
    if is_transparent(picture):
        over = picture.convert("RGBA")
        picture = Image.new("RGBA", over.size, "white")
        picture.alpha_composite(over)
    return pixels_as("RGB", picture)


def reference_of(image: object) -> _core.Pixels:
    """With alpha, if it has any: some models look at that."""
    picture = opened(image)
    return pixels_as("RGBA" if is_transparent(picture) else "RGB", picture)


def meaning_of(image: object) -> _core.Pixels:
    """The colours alone, of a mask or a control picture: they mean the same where they are transparent."""
    return pixels_as("RGB", opened(image))


def mask_of(masks: Any) -> _core.Pixels:
    """The mask of a call, in diffusers' forms: also arrays [1, height, width], and bytes of which the largest is 1."""
    listed = images_in(masks)
    if len(listed) != 1:
        raise InputError(f"a picture is filled in by one mask, {len(listed)} were given")
    (mask,) = listed
    if isinstance(mask, np.ndarray) and mask.ndim == 3 and len(mask) == 1 and mask.shape[2] > MOST_CHANNELS:
        mask = mask[0]
    if is_tensor(mask) or isinstance(mask, np.ndarray):
        mask = array_in(mask)
        are_ones = mask.dtype == np.uint8 and mask.size and mask.max() == 1
        mask = mask * np.uint8(255) if are_ones else in_bytes(mask)
    return meaning_of(mask)


def latents_array(latents: Any) -> Any:
    array = numpy_of(latents) if is_tensor(latents) else latents
    try:
        is_complex = np.iscomplexobj(array)
        real = None if is_complex else np.ascontiguousarray(array, dtype=np.float32)
    except (TypeError, ValueError):
        raise TypeError(f"latents should be an array or a tensor of numbers, they are {latents!r}") from None
    if is_complex:
        raise TypeError("latents should be real numbers, they are complex")
    return real


def tensor_of(array: Any) -> Any:
    """A torch tensor where torch is imported, else the array: what callbacks and output_type="latent" get."""
    torch = torch_if_loaded()
    return torch.from_numpy(array) if torch else array


def outputs_of(pictures: Sequence[_core.Picture], output_type: str) -> Any:
    if output_type == "pil":
        return [Image.fromarray(picture.pixels) for picture in pictures]
    if not pictures:  # on a process that is not the first rank
        return []
    values = np.stack([picture.values for picture in pictures])
    if output_type == "latent":
        return tensor_of(values)
    if output_type == "np":
        return np.ascontiguousarray(values.transpose(0, 2, 3, 1))
    return torch_for('output_type="pt"').from_numpy(values)
