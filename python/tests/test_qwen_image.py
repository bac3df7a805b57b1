"""Qwen-Image's kinds and Z-Image draw the bytes of `braid generate`, from arguments with the names of their pipelines."""

import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
from braid_engine import InputError, Pipeline
from braid_engine._program import PROGRAM
from PIL import Image
from shared import PROMPT

CASES = Path(__file__).resolve().parents[2] / "tests/data/parity"
RUN: dict[str, Any] = {"width": 96, "height": 64, "num_inference_steps": 2, "generator": 7, "max_sequence_length": 512}


def generated(case: str, *flags: str) -> list[np.ndarray]:
    """What the program draws."""
    with tempfile.TemporaryDirectory() as folder:
        line = [str(PROGRAM), "generate", PROMPT, "-m", str(CASES / case / "model"), "--size", "96x64", "--steps", "2"]
        line += ["--seed", "7", "--max-sequence-length", "512", "-q", "-o", f"{folder}/", *flags]
        subprocess.run(line, check=True, capture_output=True)
        return [np.asarray(Image.open(file)) for file in sorted(Path(folder).iterdir())]


def opened(case: str, **options: Any) -> Pipeline:
    return Pipeline.from_pretrained(CASES / case / "model", **options)


def mandelbrot(width: int, height: int) -> Image.Image:
    return Image.effect_mandelbrot((width, height), (-2, -1, 1, 1), 50).convert("RGB")


class QwenImage(unittest.TestCase):
    def check_equal(self, images: list[Any], wanted: list[np.ndarray]) -> None:
        self.assertEqual(len(images), len(wanted))
        for image, want in zip(images, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(image), want)

    def test_is_guided_by_the_scale_of_its_pipeline(self) -> None:
        pipe = opened("qwen-image")
        guided = {"negative_prompt": "a star", **RUN}
        wanted = generated("qwen-image", "--guidance", "3", "--negative-prompt", "a star")
        self.check_equal(pipe(PROMPT, true_cfg_scale=3.0, **guided).images, wanted)
        self.check_equal(pipe(PROMPT, guidance_scale=3.0, **guided).images, wanted)

    def test_takes_the_arguments_of_its_published_examples(self) -> None:
        """Qwen-Image-Edit-2509 gives a guidance_scale, too, which diffusers ignores with a warning; Qwen-Image-Layered the
        language of captions of pictures without a prompt."""
        wanted = generated("qwen-image", "--guidance", "3", "--negative-prompt", " ")
        arguments = {"negative_prompt": " ", "true_cfg_scale": 3.0, "num_images_per_prompt": 1, "use_en_prompt": True, **RUN}
        with self.assertWarnsRegex(UserWarning, "guidance_scale is not used: true_cfg_scale is the scale"):
            images = opened("qwen-image")(PROMPT, guidance_scale=1.0, **arguments).images
        self.check_equal(images, wanted)

    def test_looks_at_several_references(self) -> None:
        first, second = mandelbrot(60, 44), mandelbrot(40, 90)
        second.putalpha(Image.linear_gradient("L").resize(second.size))
        with tempfile.TemporaryDirectory() as folder:
            flags = []
            for i, image in enumerate((first, second)):
                image.save(f"{folder}/{i}.png")
                flags += ["--reference", f"{folder}/{i}.png"]
            wanted = generated("qwen-image-edit-plus", "--guidance", "2", "--negative-prompt", " ", *flags)
        pipe = opened("qwen-image-edit-plus")
        guided = {"negative_prompt": " ", "true_cfg_scale": 2.0, **RUN}
        self.check_equal(pipe(PROMPT, image=[first, second], **guided).images, wanted)
        with self.assertRaisesRegex(InputError, "it needs a reference"):
            pipe(PROMPT, **guided)
        with self.assertRaisesRegex(InputError, "looks at 1 reference at most, 2 were given"):
            opened("qwen-image-edit")(PROMPT, image=[first, second], **guided)

    def test_takes_a_transparent_picture_apart(self) -> None:
        reference = CASES / "qwen-image-layered/reference0.png"
        with Image.open(reference) as file:
            image = file.copy()
        self.assertIn("A", image.getbands())
        flags = ["--reference", str(reference), "--guidance", "2", "--cfg-normalize", "on"]
        wanted = generated("qwen-image-layered", "--layers", "3", *flags)
        pipe = opened("qwen-image-layered")
        arguments = {"image": image, "true_cfg_scale": 2.0, "cfg_normalize": True, **RUN}
        images = pipe(PROMPT, layers=3, **arguments).images
        self.assertEqual([image.mode for image in images], ["RGBA"] * 3)
        self.check_equal(images, wanted)
        self.assertEqual((pipe.info.layers.drawn, pipe.info.layers.most, pipe.info.layers.resolutions), (4, 20, [640, 1024]))
        self.assertTrue(pipe.info.draws_alpha)
        as_values = pipe(PROMPT, layers=1, output_type="np", **arguments).images
        self.assertEqual((as_values.dtype, as_values.shape), (np.float32, (1, 64, 96, 4)))
        opaque = pipe(PROMPT, layers=3, **{**arguments, "image": image.convert("RGB")}).images
        self.assertFalse(np.array_equal(np.asarray(opaque[0]), wanted[0]), "it looks at the alpha")
        with self.assertRaisesRegex(InputError, "the number of layers should lie between 1 and 20, it is 21"):
            pipe(PROMPT, layers=21, **arguments)
        with self.assertRaisesRegex(InputError, "both a resolution and a size were given"):
            pipe(PROMPT, layers=1, resolution=640, **arguments)
        with self.assertRaisesRegex(InputError, "this model draws no layers"):
            opened("qwen-image")(PROMPT, layers=2, **RUN)

    def test_fills_a_picture_in(self) -> None:
        net = CASES / "qwen-image-inpaint/model/controlnet_1"
        image, mask = mandelbrot(96, 64), Image.new("L", (96, 64))
        mask.paste(255, (48, 0, 96, 64))
        with tempfile.TemporaryDirectory() as folder:
            image.save(f"{folder}/image.png")
            mask.save(f"{folder}/mask.png")
            flags = ["--controlnet", str(net), "--init", f"{folder}/image.png", "--mask", f"{folder}/mask.png"]
            flags += ["--control-scale", "0.5", "--control-to", "0.5", "--guidance", "1"]
            wanted = generated("qwen-image-inpaint", *flags)
        pipe = opened("qwen-image-inpaint", controlnets=net)
        self.assertTrue(pipe.info.pictures.net_fills_in)
        said = {"controlnet_conditioning_scale": 0.5, "control_guidance_end": 0.5, "true_cfg_scale": 1.0, **RUN}
        self.check_equal(pipe(PROMPT, control_image=image, control_mask=mask, **said).images, wanted)
        self.check_equal(pipe(PROMPT, image=image, mask_image=mask, **said).images, wanted)
        with self.assertRaisesRegex(InputError, "give control_image or image, not both"):
            pipe(PROMPT, control_image=image, image=image, control_mask=mask, **said)
        with self.assertRaisesRegex(InputError, "it needs a mask"):
            pipe(PROMPT, control_image=image, **said)
        with self.assertRaisesRegex(InputError, "control_mask goes with a ControlNet that fills pictures in"):
            opened("qwen-image")(PROMPT, image=image, control_mask=mask, **RUN)

    def test_of_z_image_are_named_by_its_pipelines(self) -> None:
        pipe = opened("zimage-turbo")
        guided = {"negative_prompt": "a star", "guidance_scale": 3.0, **RUN}
        flags = ["--negative-prompt", "a star", "--guidance", "3"]
        plain, capped = generated("zimage-turbo", *flags), generated("zimage-turbo", *flags, "--cfg-norm-cap", "1")
        self.assertFalse(np.array_equal(plain[0], capped[0]))
        for cap, wanted in ((None, plain), (False, plain), (0.0, plain), (True, capped), (1.0, capped)):
            self.check_equal(pipe(PROMPT, cfg_normalization=cap, **guided).images, wanted)
        ended = generated("zimage-turbo", *flags, "--cfg-until", "0.1")
        self.assertFalse(np.array_equal(plain[0], ended[0]))
        for until, wanted in ((None, plain), (1, plain), (2.0, plain), (0.1, ended)):
            self.check_equal(pipe(PROMPT, cfg_truncation=until, **guided).images, wanted)
        with self.assertRaisesRegex(InputError, "true_cfg_scale or guidance_scale, not both"):
            pipe(PROMPT, true_cfg_scale=3.0, **guided)


if __name__ == "__main__":
    unittest.main()
