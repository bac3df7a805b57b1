"""Write tests/data/pictures: small pictures of many kinds, and what Pillow makes of them.

usage: python dump_pictures.py [OUT]

NAME: a picture; NAME.expected.png: its pixels, upright, over white.
resized.json: checksums of pixels that Pillow resizes, of the picture that colours() makes.
"""
import json
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

ROOT = Path(__file__).resolve().parents[2]
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
SIZES = [((7, 5), (16, 16)), ((64, 48), (32, 16)), ((33, 65), (64, 32)), ((100, 3), (7, 48)),
         ((1, 1), (5, 9)), ((31, 17), (31, 40)), ((31, 17), (12, 17)), ((257, 129), (128, 64)),
         ((19, 23), (1, 1)), ((120, 90), (119, 91)),
         ((40, 52), (31, 15)), ((27, 55), (6, 7)), ((44, 44), (15, 38))]


def colours(width, height):
    """Waves, and values that jump, so that sums leave 0..255; the same in tests/image."""
    i = np.arange(width * height * 3, dtype=np.int64)
    return Image.fromarray(((i * i * 31 + i * 7) % 65537 % 256).astype(np.uint8)
                           .reshape(height, width, 3))


def scene(width, height, alpha=False):
    """Smooth, as cameras see."""
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
    save(out, "palette.png", scene(17, 9).quantize(13), transparency=3)
    frames = [scene(12, 8), scene(12, 8).rotate(180)]
    frames[0].save(out / "animated.webp", save_all=True, append_images=frames[1:])
    frames[0].save(out / "animated.png", save_all=True, append_images=frames[1:])
    frames[0].save(out / "animated.gif", save_all=True, append_images=frames[1:])
    cases = [{"from": old, "to": new, "filter": name,
              "crc32": zlib.crc32(colours(*old).resize(new, resample).tobytes())}
             for old, new in SIZES for name, resample in FILTERS.items()]
    (out / "resized.json").write_text("\n".join(["[", ",\n".join(map(json.dumps, cases)), "]\n"]))


if __name__ == "__main__":
    main()
