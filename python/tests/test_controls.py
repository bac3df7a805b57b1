"""Pictures that ControlNets follow: what says how is refused where none is followed, as the program refuses it."""

import unittest
from pathlib import Path
from typing import Any

import numpy as np
from braid_engine import InputError, Pipeline
from PIL import Image
from shared import PROMPT, RUN, pipeline

CASES = Path(__file__).resolve().parents[2] / "tests/data/parity"
HOW = {"controlnet_conditioning_scale": 0.3, "control_guidance_start": 0.1, "control_guidance_end": 0.2, "control_mode": 0}


def with_net(case: str) -> Pipeline:
    model = CASES / case / "model"
    return Pipeline.from_pretrained(model, controlnets=model / "controlnet_1")


def mandelbrot() -> Image.Image:
    return Image.effect_mandelbrot((64, 48), (-2, -1, 1, 1), 50).convert("RGB")


class Controls(unittest.TestCase):
    def refusal(self, pipe: Pipeline, kind: type[Exception] = InputError, **arguments: Any) -> str:
        with self.assertRaises(kind) as caught:
            pipe(PROMPT, **RUN, **arguments)
        return str(caught.exception)

    def test_that_are_not_there_are_followed_in_no_way(self) -> None:
        for name, value in HOW.items():
            wanted = f"{name} says how control_image is followed, and there is none: leave it out"
            self.assertEqual(self.refusal(pipeline(), **{name: value}), wanted)
            for listed in ([value], np.array([value])):
                self.assertIn("there are 0 control images, but 1 values", self.refusal(pipeline(), **{name: listed}))
        said = self.refusal(pipeline(), TypeError, control_guidance_end="late")
        self.assertEqual(said, "control_guidance_end should be a number, it is 'late'")
        usual = {"controlnet_conditioning_scale": 1, "control_guidance_start": 0.0, "control_guidance_end": 1.0}
        pipeline()(PROMPT, control_mode=None, **usual, **RUN)

    def test_are_needed_by_nets(self) -> None:
        pipe = with_net("controlnets")
        for more in ({}, HOW):
            self.assertIn("control_image should be given: the ControlNet follows a picture", self.refusal(pipe, **more))

    def test_may_have_arrays_of_scales(self) -> None:
        pipe = with_net("controlnets")
        arguments = {"control_image": [mandelbrot()] * 2, "control_mode": 2, "generator": 7, **RUN}
        wanted = pipe(PROMPT, controlnet_conditioning_scale=[0.3, 0.4], **arguments).images[0]
        drawn = pipe(PROMPT, controlnet_conditioning_scale=np.array([0.3, 0.4]), **arguments).images[0]
        np.testing.assert_array_equal(np.asarray(drawn), np.asarray(wanted))

    def test_that_nets_fill_in_are_of_one_kind(self) -> None:
        pipe = with_net("qwen-image-inpaint")
        mask = Image.new("L", (64, 48), 255)
        said = self.refusal(pipe, InputError, image=mandelbrot(), mask_image=mask, control_mode=7)
        self.assertIn("follows one kind of pictures: its mode is 0, not 7", said)
        self.assertIn("image and mask_image should be given: the ControlNet fills", self.refusal(pipe))


if __name__ == "__main__":
    unittest.main()
