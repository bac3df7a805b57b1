"""ComfyUI's pictures and masks as PNGs for a server, and back."""

import base64
import io

import numpy as np
import torch
from PIL import Image

from .process import Refused

MOST_CHANNELS = 4


def bytes_of(tensor):
    return np.rint(tensor.detach().cpu().float().numpy().clip(0, 1) * 255).astype(np.uint8)


def pictures_in(name, image):
    """Pillow's pictures of [B, H, W, C]."""
    if image.ndim != 4 or not 1 <= image.shape[-1] <= MOST_CHANNELS:
        raise Refused(f"{name} should be pictures [batch, height, width, channels] of 1 to {MOST_CHANNELS} channels, it is {list(image.shape)}")
    if not len(image):
        raise Refused(f"{name} should be one picture or several, it has none")
    pixels = bytes_of(image)
    if pixels.shape[-1] == 1:  # Pillow has grey pictures without channels
        pixels = pixels[..., 0]
    return [Image.fromarray(one) for one in pixels]


def one_in(name, image):
    if len(image) != 1:
        raise Refused(f"{name} should be one picture to start from, a batch of {len(image)} was given: ImageFromBatch chooses one")
    return pictures_in(name, image)[0]


def mask_in(mask):
    """Pillow's grey picture of [H, W] or [1, H, W]: white is redrawn."""
    if mask.ndim == 2:
        mask = mask[None]
    if mask.ndim != 3 or len(mask) != 1:
        raise Refused(f"mask should be one mask [1, height, width], it is {list(mask.shape)}")
    return Image.fromarray(bytes_of(mask)[0])


def scaled_down(picture, width, height):
    """To the size asked for, if it is smaller: what the server does with pictures to start from and to follow, by Lanczos. It
    lays what is transparent on white before."""
    if 0 < width * height < picture.width * picture.height and picture.mode in ("L", "RGB"):
        return picture.resize((width, height), Image.Resampling.LANCZOS)
    return picture


def base64_of(picture):
    made = io.BytesIO()
    picture.save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


def made_of(files):
    """([B, H, W, C], [B, H, W]) in 0 to 1, of PNGs: pictures, with alpha if one of them has it, and what is transparent in them."""
    pictures = []
    for data in files:
        with Image.open(io.BytesIO(data)) as picture:
            pictures.append(picture.convert("RGBA" if "A" in picture.getbands() else "RGB"))
    mode = "RGBA" if any(picture.mode == "RGBA" for picture in pictures) else "RGB"
    pixels = np.stack([np.asarray(picture.convert(mode), np.float32) for picture in pictures]) / 255
    masks = 1 - pixels[..., 3] if mode == "RGBA" else np.zeros(pixels.shape[:3], np.float32)
    return torch.from_numpy(pixels), torch.from_numpy(masks)


def preview_in(data):
    """What ComfyUI's progress bars take, of a file in base64."""
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        return "JPEG", picture.convert("RGB"), None
