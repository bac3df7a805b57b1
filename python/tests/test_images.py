"""Pictures that are given mean what they mean to `braid generate`, in every form that Pillow opens."""

import io
import subprocess
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from braid_engine import InputError, Pipeline
from braid_engine._options import MODELS
from braid_engine._program import PROGRAM
from PIL import Image
from shared import PROMPT, RUN, pipeline

CONTROLLED = Path(__file__).resolve().parents[2] / "tests/data/parity/control/model"
ORIENTATION = 0x112  # of EXIF
A_QUARTER_TURN = 6


def mandelbrot(width: int = 64, height: int = 48) -> Image.Image:
    return Image.effect_mandelbrot((width, height), (-2, -1, 1, 1), 50)


class TensorLike:
    def __init__(self, array: np.ndarray) -> None:
        self.array, self.ndim = array, array.ndim

    def __iter__(self) -> Iterator["TensorLike"]:
        return map(TensorLike, self.array)

    def detach(self) -> "TensorLike":
        return self

    cpu = detach

    def is_floating_point(self) -> bool:
        return np.issubdtype(self.array.dtype, np.floating)

    def float(self) -> "TensorLike":
        return TensorLike(self.array.astype(np.float32))

    def numpy(self, force: bool) -> np.ndarray:
        return self.array


class ElsewhereLike(TensorLike):
    """A tensor without numbers, as on torch's device meta."""

    layout, device = "torch.strided", "meta"

    def cpu(self) -> TensorLike:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def clear_on_the_left(image: Image.Image) -> Image.Image:
    alpha = Image.new("L", image.size, 255)
    alpha.paste(0, (0, 0, image.width // 2, image.height))
    image = image.convert("RGB")
    image.putalpha(alpha)
    return image


class Forms(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def saved(self, image: Image.Image, **options: Any) -> Path:
        path = Path(self.folder.name) / f"{len(list(Path(self.folder.name).iterdir()))}.png"
        image.save(path, **options)
        return path

    def of_program(self, *flags: str | Path, model: Path = MODELS / "demo") -> np.ndarray:
        out = f"{self.folder.name}/drawn.png"
        line = [str(PROGRAM), "generate", PROMPT, "-m", str(model), "--size", "64x48", "--steps", "3", "--seed", "7", "-q"]
        line += ["--overwrite", "always", "-o", out]
        subprocess.run([*line, *map(str, flags)], check=True, capture_output=True)
        return np.asarray(Image.open(out))

    def drawn(self, pipe: Pipeline | None = None, **arguments: Any) -> np.ndarray:
        return np.asarray((pipe or pipeline())(PROMPT, generator=7, **RUN, **arguments).images[0])

    def check_start(self, path: Path, *forms: Any) -> None:
        wanted = self.of_program("--init", path, "--strength", "0.5")
        for form in (path, str(path), *forms):
            np.testing.assert_array_equal(self.drawn(image=form, strength=0.5), wanted)

    def test_of_files_are_turned_upright(self) -> None:
        exif = Image.Exif()
        exif[ORIENTATION] = A_QUARTER_TURN
        path = self.saved(mandelbrot(48, 64).convert("RGB"), exif=exif)
        self.check_start(path)
        mask = Image.new("L", (48, 64))
        mask.paste(255, (0, 0, 48, 20))
        mask_path = self.saved(mask, exif=exif)
        wanted = self.of_program("--init", path, "--mask", mask_path)
        np.testing.assert_array_equal(self.drawn(image=path, mask_image=mask_path), wanted)

    def test_in_16_bits_are_rounded_to_8(self) -> None:
        grey = (np.arange(48)[:, None] * 1000 + np.arange(64) * 277 + 5).astype(np.uint16)
        wide = Image.fromarray(grey)
        self.assertEqual(wide.mode, "I;16")
        path = self.saved(wide)
        older = Image.fromarray(grey.astype(np.int32))  # as a Pillow before 10.2 opens it
        older.format = "PNG"
        self.check_start(path, wide, older)
        self.check_start(self.saved(wide, transparency=int(grey[20, 30])))

    def test_multiplied_by_their_alpha_are_as_before(self) -> None:
        clear = clear_on_the_left(mandelbrot())
        grey = clear.convert("LA")
        for image, multiplied in ((clear, clear.convert("RGBa")), (grey, grey.convert("La"))):
            with self.subTest(multiplied.mode):
                self.check_start(self.saved(image), image, multiplied)

    def test_in_modes_without_a_white_are_named(self) -> None:
        for mode in ("I", "F"):
            with self.assertRaisesRegex(InputError, f"it has Pillow's mode '{mode}', whose white is not known"):
                self.drawn(image=Image.new(mode, (64, 48)))

    def test_follow_colours_where_they_are_transparent(self) -> None:
        image = clear_on_the_left(mandelbrot())
        path = self.saved(image)
        pipe = Pipeline.from_pretrained(CONTROLLED)
        wanted = self.of_program("--control", path, model=CONTROLLED)
        for form in (path, image):
            np.testing.assert_array_equal(self.drawn(pipe, control_image=form), wanted)

    def test_of_masks_are_their_colours(self) -> None:
        image = self.saved(mandelbrot().convert("RGB"))
        colours = Image.merge("RGB", [mandelbrot(), mandelbrot().rotate(180), Image.linear_gradient("L").resize((64, 48))])
        mask = clear_on_the_left(colours)
        path = self.saved(mask)
        wanted = self.of_program("--init", image, "--mask", path)
        for form in (path, mask):
            np.testing.assert_array_equal(self.drawn(image=image, mask_image=form), wanted)

    def test_of_masks_are_those_of_diffusers(self) -> None:
        """Which tells from bytes only whether they are 0."""
        image = self.saved(mandelbrot().convert("RGB"))
        is_drawn = np.zeros((48, 64), bool)
        is_drawn[:, 20:] = True
        path = self.saved(Image.fromarray(is_drawn.astype(np.uint8) * 255))
        wanted = self.of_program("--init", image, "--mask", path)
        ones = is_drawn.astype(np.uint8)
        forms = [is_drawn, ones, ones * 255, ones[None], ones[None, ..., None], ones.astype(np.float32)[..., None], [ones], [path]]
        for form in forms:
            with self.subTest(form=np.shape(form)):
                np.testing.assert_array_equal(self.drawn(image=image, mask_image=form), wanted)
        for form, words in (([ones, ones], "by one mask, 2 were given"), (ones * 0.5 + 1, "from 1.0 to 1.5")):
            with self.assertRaisesRegex(InputError, words):
                self.drawn(image=image, mask_image=form)

    def test_of_masks_in_floats_are_greys(self) -> None:
        image = self.saved(mandelbrot().convert("RGB"))
        dark = self.saved(Image.new("L", (64, 48), 1))
        wanted = self.of_program("--init", image, "--mask", dark)
        form = np.full((48, 64), 0.004, np.float32)
        for mask in (form, form.astype(np.float64)[None], TensorLike(form[None])):
            np.testing.assert_array_equal(self.drawn(image=image, mask_image=mask), wanted)

    def test_of_tensors_without_numbers_are_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "numbers densely, it has the layout torch.strided on the device meta"):
            self.drawn(image=ElsewhereLike(np.zeros((3, 8, 8), np.uint8)))

    def test_of_tensors_may_be_bytes(self) -> None:
        """Of a class that stands for torch's, which the package does not need."""
        image = mandelbrot().convert("RGB")
        path = self.saved(image)
        self.check_start(path, TensorLike(np.asarray(image).transpose(2, 0, 1)))
        ones = np.zeros((48, 64), np.uint8)
        ones[:, 20:] = 1
        wanted = self.of_program("--init", path, "--mask", self.saved(Image.fromarray(ones * 255)))
        for form in (ones, ones[None], ones[None, None], ones[None].astype(bool), ones[None].astype(np.float32)):
            np.testing.assert_array_equal(self.drawn(image=path, mask_image=TensorLike(form)), wanted)

    def test_are_read_from_open_files(self) -> None:
        path = self.saved(mandelbrot().convert("RGB"))
        with path.open("rb") as file:
            self.check_start(path, file, file)

    def test_that_cannot_be_read_are_named(self) -> None:
        whole = self.saved(mandelbrot().convert("RGB"))
        cut, text = whole.with_name("cut.png"), whole.with_name("text.png")
        cut.write_bytes(whole.read_bytes()[:-200])
        text.write_text("no picture")
        closed = mandelbrot()
        closed.close()
        for image, words in (
            (str(whole.with_name("nowhere.png")), "nowhere.png' cannot be read: No such file or directory"),
            (whole.parent, "cannot be read: Is a directory"),
            (text, "Pillow knows no picture in '.*text.png'"),
            (io.BytesIO(b"no picture"), "Pillow knows no picture in the open file"),
            (cut, "cut.png' cannot be read: .*truncated"),
            (self.enterContext(Image.open(cut)), "cut.png' cannot be read: .*truncated"),
            (closed, "the picture cannot be read: Operation on closed image"),
        ):
            with self.subTest(words), self.assertRaisesRegex(InputError, words) as caught:
                self.drawn(image=image)
            self.assertIsNotNone(caught.exception.__cause__)

    def test_with_numbers_that_are_none_are_refused(self) -> None:
        image = np.zeros((8, 8, 3), np.float32)
        image[3, 3, 1] = np.nan
        with self.assertRaisesRegex(InputError, "floats should lie between 0 and 1, they go from nan"):
            self.drawn(image=image)

    def test_of_other_shapes_are_named(self) -> None:
        for shape in ((8,), (8, 8, 5), (1, 1, 8, 8, 3)):
            with self.assertRaisesRegex(InputError, f"it is uint8 of shape .{', '.join(map(str, shape))}"):
                self.drawn(image=np.zeros(shape, np.uint8))
        with self.assertRaisesRegex(InputError, r"it is uint8 of shape \[32, 16, 3\]"):
            self.drawn(image=TensorLike(np.zeros((32, 16, 3), np.uint8)))


if __name__ == "__main__":
    unittest.main()
