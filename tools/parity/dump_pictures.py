"""Write tests/data/pictures: small pictures of many kinds, and what Pillow decodes.

usage: python dump_pictures.py [OUT]

NAME: a picture; NAME.expected.png: its pixels, upright, over white.
clear.png.transparency.png: how transparent its pixels are.
NAME.levels.png: what a mask or a picture to follow means, Pillow's convert("L").
resized.json: checksums of colours()'s picture resized by Pillow, with_alpha.json with its alpha.
nearest.json: the same by the nearest pixel, with sizes whose pixels' middles fall on edges.
blurred.json: the same, blurred.
masks.json: how diffusers crops what a mask of grey steps marks from colours()'s picture, and pastes
the crop's negative back.
"""
import json
import sys
import zlib
from pathlib import Path

import numpy as np
from diffusers.image_processor import VaeImageProcessor
from PIL import Image, ImageFilter, ImageOps

ROOT = Path(__file__).resolve().parents[2]
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
SIZES = [((7, 5), (16, 16)), ((64, 48), (32, 16)), ((33, 65), (64, 32)), ((100, 3), (7, 48)),
         ((1, 1), (5, 9)), ((31, 17), (31, 40)), ((31, 17), (12, 17)), ((257, 129), (128, 64)),
         ((19, 23), (1, 1)), ((120, 90), (119, 91)),
         ((40, 52), (31, 15)), ((27, 55), (6, 7)), ((44, 44), (15, 38)),
         # sides of one pixel, whole and nearly whole ratios, order of the two passes
         ((1, 9), (4, 3)), ((9, 1), (3, 4)), ((1, 40), (1, 13)), ((40, 1), (13, 1)),
         ((2, 2), (3, 1)), ((3, 3), (2, 2)), ((15, 15), (5, 3)), ((21, 35), (7, 5)),
         ((5, 3), (35, 15)), ((17, 64), (17, 63)), ((20, 40), (15, 30)), ((20, 40), (16, 31)),
         ((6, 6), (1, 18)), ((300, 2), (2, 300))]

# What is nearest depends on rounding: middles that fall between two pixels, or nearly so.
TIES = [((64, 48), (104, 78)), ((8, 8), (12, 20)), ((48, 33), (100, 77)), ((1000, 3), (777, 6)),
        ((90, 60), (36, 24)), ((7, 49), (98, 14)), ((96, 10), (42, 35))]

# The mask's size, its marked box (left, top, right, bottom), the size to draw, the padding.
MASKS = [((60, 50), (20, 10, 30, 25), (64, 64), 4), ((60, 50), (0, 0, 60, 3), (48, 32), 0),
         ((61, 47), (55, 40, 61, 47), (32, 64), 7), ((61, 47), (0, 12, 2, 40), (80, 48), 3),
         ((90, 30), (10, 5, 80, 25), (64, 96), 5), ((30, 90), (5, 10, 25, 80), (96, 64), 5),
         ((33, 77), (8, 8, 9, 9), (64, 64), 0), ((100, 20), (3, 2, 97, 18), (35, 33), 50)]


def colours(width, height):
    """Waves, and jumping values that make sums leave 0..255; the same as in tests/pictures.h."""
    i = np.arange(width * height * 3, dtype=np.int64)
    return Image.fromarray(((i * i * 31 + i * 7) % 65537 % 256).astype(np.uint8)
                           .reshape(height, width, 3))


def with_alpha(picture):
    """Its colours, and alpha that jumps as they do; the same as in tests/pictures.h."""
    i = np.arange(picture.width * picture.height, dtype=np.int64)
    alpha = ((i * i * 17 + i * 5) % 65521 % 256).astype(np.uint8)
    picture.putalpha(Image.fromarray(alpha.reshape(picture.height, picture.width)))
    return picture


def scene(width, height, alpha=False):
    """Smooth, like a photograph."""
    y, x = np.mgrid[:height, :width] / 8
    planes = [128 + 100 * np.sin(x + k) * np.cos(y * (k + 1) / 2) for k in range(4 if alpha else 3)]
    return Image.fromarray(np.stack(planes, -1).astype(np.uint8))


def over_white(picture):
    picture = ImageOps.exif_transpose(picture)
    if picture.mode in ("P", "LA", "RGBA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        white = Image.new("RGB", picture.size, "white")
        white.paste(picture, mask=picture)
        return white
    return picture.convert("RGB")


def save(out, name, picture, **options):
    path = out / name
    picture.save(path, **options)
    over_white(Image.open(path)).save(out / (name + ".expected.png"))


def exif(orientation):
    data = Image.Exif()
    data[0x0112] = orientation
    return data.tobytes()


def checksum(picture):
    return zlib.crc32(picture.convert("RGB").tobytes())


def mask_case(size, box, drawn, padding):
    """The mask has steps of grey within its box, and black around it."""
    i = np.arange(size[0] * size[1]).reshape(size[1], size[0]) % 9
    mask = Image.new("L", size)
    mask.paste(Image.fromarray((255 - 31 * i).astype(np.uint8)).crop(box), box)
    processor, picture = VaeImageProcessor(vae_scale_factor=1), colours(*size)
    region = processor.get_crop_region(mask, *drawn, pad=padding)
    cut = processor.resize(picture.crop(region), drawn[1], drawn[0], resize_mode="fill")
    back = processor.apply_overlay(mask, picture, ImageOps.invert(cut), region)
    left, top, right, bottom = region
    return {"mask": size, "box": box, "size": drawn, "padding": padding,
            "region": (left, top, right - left, bottom - top),
            "filled_crc32": checksum(cut), "back_crc32": checksum(back)}


def write_cases(path, cases):
    path.write_text("\n".join(["[", ",\n".join(map(json.dumps, cases)), "]\n"]))


def write_nearest(out):
    write_cases(out / "nearest.json", [
        {"from": old, "to": new, "crc32": checksum(colours(*old).resize(new, Image.NEAREST))}
        for old, new in SIZES + TIES])


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/pictures"
    out.mkdir(parents=True, exist_ok=True)
    save(out, "plain.jpg", scene(37, 21), quality=85)
    save(out, "progressive.jpg", scene(40, 24), quality=70, progressive=True, subsampling=1)
    save(out, "grey.jpg", scene(20, 12).convert("L"))
    save(out, "inks.jpg", scene(24, 16).convert("CMYK"), quality=90)
    for turn in range(2, 9):
        save(out, f"turned{turn}.jpg", scene(21, 10), quality=60, exif=exif(turn))
    save(out, "lossy.webp", scene(33, 18), quality=80)
    save(out, "clear.webp", scene(19, 14, alpha=True), lossless=True)
    save(out, "turned.webp", scene(21, 10), quality=60, exif=exif(6))
    save(out, "turned.png", scene(13, 6), exif=exif(8))
    save(out, "clear.png", scene(17, 9, alpha=True))
    save(out, "clear_grey.png", scene(15, 11, alpha=True).convert("LA"))
    save(out, "palette.png", scene(17, 9).quantize(13), transparency=3)
    frames = [scene(12, 8), scene(12, 8).rotate(180)]
    frames[0].save(out / "animated.webp", save_all=True, append_images=frames[1:])
    frames[0].save(out / "animated.png", save_all=True, append_images=frames[1:])
    frames[0].save(out / "animated.gif", save_all=True, append_images=frames[1:])
    cases = [{"from": old, "to": new, "filter": name,
              "crc32": zlib.crc32(colours(*old).resize(new, resample).tobytes())}
             for old, new in SIZES for name, resample in FILTERS.items()]
    write_cases(out / "resized.json", cases)
    write_cases(out / "with_alpha.json", [
        {"from": old, "to": new, "filter": name,
         "crc32": zlib.crc32(with_alpha(colours(*old)).resize(new, resample).tobytes())}
        for old, new in SIZES[:10] for name, resample in FILTERS.items()])
    write_nearest(out)
    write_cases(out / "blurred.json", [
        {"size": size, "radius": radius,
         "crc32": checksum(colours(*size).filter(ImageFilter.GaussianBlur(radius)))}
        for size in ((1, 1), (7, 5), (64, 48), (3, 100), (50, 1))
        for radius in (0, 0.3, 1, 4, 7.7, 33, 120, 1000)])
    write_cases(out / "masks.json", [mask_case(*case) for case in MASKS])
    for name in ("clear.png", "clear.webp", "clear_grey.png", "palette.png"):
        Image.open(out / name).convert("L").save(out / (name + ".levels.png"))
    alpha = Image.open(out / "clear.png").getchannel("A")
    ImageOps.invert(alpha).convert("RGB").save(out / "clear.png.transparency.png")


if __name__ == "__main__":
    main()
