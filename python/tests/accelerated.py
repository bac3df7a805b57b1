"""Random pipelines of diffusers give the pictures with Braid's transformer that they give with their own.

Needs torch and diffusers; ./check --live runs it. Tolerances are those of docs/numerics.md for float32: latents
after each step within what velocities may be off, 1e-4 of the largest (seen: 1.1e-5, for a guided Z-Image), pictures
within 1/255 on 99.9 % of the values.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import braid_engine
import braid_engine.diffusers as braid
import diffusers
import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "parity"))

import modular_flux3  # noqa: E402
import random_families  # noqa: E402
import random_joy  # noqa: E402
import random_pipeline  # noqa: E402
from diffusers import (  # noqa: E402
    AutoencoderKL,
    DiffusionPipeline,
    Flux3Transformer2DModel,
    FluxPipeline,
    FluxTransformer2DModel,
    ModularPipeline,
    QwenImageControlNetModel,
    QwenImageControlNetPipeline,
    UniPCMultistepScheduler,
)
from PIL import Image  # noqa: E402
from random_flux3 import Flux3Shape, Flux3TransformerShape  # noqa: E402
from random_krea2 import Krea2Shape  # noqa: E402
from random_qwen21 import Qwen21Shape, Qwen21TransformerShape  # noqa: E402
from random_qwen_image import QwenImageShape, QwenImageTransformerShape  # noqa: E402

PROMPT = "a red circle on a blue background"
LONG = "a small green heart to the left of a large yellow ring on a striped background, and nothing else"
LATENTS, PICTURE, MOST = 1e-4, 1.5 / 255, 0.999
RUN: dict[str, Any] = {"height": 64, "width": 80, "num_inference_steps": 3, "output_type": "np"}


@contextlib.contextmanager
def made(make: Callable[..., Any], shape: Any) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        make(out, shape)
        yield out


def opened(folder: Path, kind: Any = DiffusionPipeline) -> Any:
    pipe = kind.from_pretrained(folder, torch_dtype=torch.float32)
    pipe.set_progress_bar_config(disable=True)
    return pipe


class Accelerated(unittest.TestCase):
    def drawn(self, pipe: Any, **arguments: Any) -> tuple[np.ndarray, list[Any]]:
        """A picture, and the latents after each step."""
        steps = []

        def note(_: Any, step: int, timestep: Any, inputs: dict[str, Any]) -> dict[str, Any]:
            steps.append(inputs["latents"].clone())
            return inputs

        # Z-Image's pipeline writes the chat around prompts back into the list that it was given.
        arguments = {name: list(given) if isinstance(given, list) else given for name, given in arguments.items()}
        generator = torch.Generator().manual_seed(4)
        torch.manual_seed(5)  # JoyAI's pipeline draws its reference's sample from the global generator
        images = pipe(generator=generator, callback_on_step_end=note, **arguments).images
        return np.asarray(images, np.float32), steps

    def check_pipeline(self, folder: Path, arguments: dict[str, Any], kind: Any = DiffusionPipeline, **layout: Any) -> None:
        plain = opened(folder, kind)
        want, want_steps = self.drawn(plain, **arguments)
        fast = braid.accelerate(opened(folder, kind), **layout)
        self.assertIsInstance(fast.transformer, braid.Accelerated)
        got, steps = self.drawn(fast, **arguments)
        self.assertEqual(len(steps), len(want_steps))
        for mine, theirs in zip(steps, want_steps, strict=True):
            self.assertLess(float((mine - theirs).abs().max() / theirs.abs().max()), LATENTS)
        self.assertGreater(float(want_steps[-1].abs().max()), 0)
        self.assertGreaterEqual(float((np.abs(got - want) <= PICTURE).mean()), MOST)

    def test_flux(self) -> None:
        with made(random_pipeline.make, random_pipeline.Shape(seed=11)) as folder:
            for layout in ({}, {"devices": ["cpu", "cpu"], "layout": "tp=2"}, {"layout": "ulysses=2"}):
                with self.subTest(layout):
                    self.check_pipeline(folder, {"prompt": PROMPT, "max_sequence_length": 32, **RUN}, **layout)
            guided = {"prompt": PROMPT, "negative_prompt": "a star", "true_cfg_scale": 2.0, "num_images_per_prompt": 2}
            self.check_pipeline(folder, {**guided, "max_sequence_length": 32, **RUN})

    def test_flux_without_guidance(self) -> None:
        shape = random_pipeline.Shape(seed=12, guidance=False, scheduler={"shift": 1.0})
        with made(random_pipeline.make, shape) as folder:
            self.check_pipeline(folder, {"prompt": PROMPT, "max_sequence_length": 32, **RUN})

    def test_fill_whose_tokens_are_wider(self) -> None:
        shape = random_pipeline.Shape(seed=13, pipeline="FluxFillPipeline")
        image = Image.effect_mandelbrot((80, 64), (-2, -1, 1, 1), 50).convert("RGB")
        mask = Image.new("L", (80, 64))
        mask.paste(255, (40, 0, 80, 64))
        with made(random_pipeline.make, shape) as folder:
            arguments = {"prompt": PROMPT, "image": image, "mask_image": mask, "max_sequence_length": 32, **RUN}
            self.check_pipeline(folder, arguments)

    def test_klein(self) -> None:
        image = Image.effect_mandelbrot((64, 64), (-2, -1, 1, 1), 50).convert("RGB")
        with made(random_families.make, random_families.KleinShape(seed=14, distilled=False)) as folder:
            arguments = {"prompt": PROMPT, "guidance_scale": 3.0, "max_sequence_length": 64, **RUN}
            self.check_pipeline(folder, arguments)
            self.check_pipeline(folder, {**arguments, "image": image}, layout="ring=2")

    def test_flux2_dev(self) -> None:
        with made(random_families.make, random_families.DevShape(seed=15)) as folder:
            self.check_pipeline(folder, {"prompt": PROMPT, "max_sequence_length": 64, **RUN})

    def test_zimage(self) -> None:
        with made(random_families.make, random_families.ZImagePipelineShape(seed=16)) as folder:
            arguments = {"prompt": PROMPT, "guidance_scale": 3.0, "max_sequence_length": 64, **RUN}
            self.check_pipeline(folder, arguments)
            self.check_pipeline(folder, arguments, layout="tp=2")

    def test_zimage_with_prompts_of_unequal_lengths(self) -> None:
        with made(random_families.make, random_families.ZImagePipelineShape(seed=16)) as folder:
            for scale in (0.0, 3.0):
                arguments = {"prompt": ["star", LONG], "guidance_scale": scale, "max_sequence_length": 64, **RUN}
                with self.subTest(scale):
                    self.check_pipeline(folder, arguments)

    def test_pictures_to_start_from(self) -> None:
        image = Image.effect_mandelbrot((80, 64), (-2, -1, 1, 1), 50).convert("RGB")
        mask = Image.new("L", (80, 64))
        mask.paste(255, (40, 0, 80, 64))
        start: dict[str, Any] = {"prompt": PROMPT, "image": image, "strength": 0.8, **RUN}
        inpaint, controlled = {**start, "mask_image": mask}, {**start, "control_image": image}
        short, longer, guided = {"max_sequence_length": 32}, {"max_sequence_length": 64}, {"guidance_scale": 3.0}
        true = {"negative_prompt": "a star", "true_cfg_scale": 2.0, **longer}
        whole = {"_auto_resize": False, "max_area": 64 * 80, **short}
        plain, kontext, control = (random_pipeline.Shape(seed=45, pipeline=f"Flux{kind}Pipeline") for kind in ("", "Kontext", "Control"))
        qwen = QwenImageShape(seed=46)
        edit = QwenImageShape(seed=47, pipeline="QwenImageEditPipeline", vae_mult=(1, 1, 2, 2, 2))
        klein, zimage = random_families.KleinShape(seed=48, distilled=False), random_families.ZImagePipelineShape(seed=49)
        for shape, kind, arguments in (
            (plain, diffusers.FluxImg2ImgPipeline, {**start, **short}),
            (plain, diffusers.FluxInpaintPipeline, {**inpaint, **short}),
            (kontext, diffusers.FluxKontextPipeline, {"prompt": PROMPT, "image": image, **RUN, **whole}),
            (kontext, diffusers.FluxKontextInpaintPipeline, {**inpaint, **whole}),
            (control, diffusers.FluxControlPipeline, {"prompt": PROMPT, "control_image": image, **RUN, **short}),
            (control, diffusers.FluxControlImg2ImgPipeline, {**controlled, **short}),
            (control, diffusers.FluxControlInpaintPipeline, {**controlled, "mask_image": mask, **short}),
            (klein, diffusers.Flux2KleinInpaintPipeline, {**inpaint, **guided, **longer}),
            (zimage, diffusers.ZImageImg2ImgPipeline, {**start, **guided, **longer}),
            (zimage, diffusers.ZImageInpaintPipeline, {**inpaint, **guided, **longer}),
            (qwen, diffusers.QwenImageImg2ImgPipeline, {**start, **true}),
            (qwen, diffusers.QwenImageInpaintPipeline, {**inpaint, **true}),
            (edit, diffusers.QwenImageEditInpaintPipeline, {**inpaint, **true, "width": 96, "max_sequence_length": 512}),
        ):
            make = random_pipeline.make if isinstance(shape, random_pipeline.Shape) else random_families.make
            with self.subTest(kind.__name__), made(make, shape) as folder:
                self.check_pipeline(folder, arguments, kind)

    def test_joy(self) -> None:
        image = Image.effect_mandelbrot((1024, 1024), (-2, -1, 1, 1), 50).convert("RGB")
        for rope in ("rope", "mrope"):
            with self.subTest(rope), made(random_joy.make, random_joy.JoyShape(seed=17, rope_type=rope)) as folder:
                arguments = {"prompt": PROMPT, "image": image, "num_inference_steps": 2, "guidance_scale": 3.0}
                self.check_pipeline(folder, {**arguments, "output_type": "np"})

    def test_qwen_image(self) -> None:
        with made(random_families.make, QwenImageShape(seed=21)) as folder:
            arguments = {"prompt": PROMPT, "negative_prompt": "a star", "true_cfg_scale": 3.0, "max_sequence_length": 64}
            for layout in ({}, {"layout": "tp=2"}, {"layout": "ring=2"}, {"layout": "pp=2"}):
                with self.subTest(layout):
                    self.check_pipeline(folder, {**arguments, **RUN}, **layout)
            # Masked: each picture's text has a length of its own.
            self.check_pipeline(folder, {**arguments, "prompt": ["star", LONG], "negative_prompt": ["a", LONG], **RUN})

    def test_qwen_image_edits(self) -> None:
        images = [Image.effect_mandelbrot(size, (-2, -1, 1, 1), 50).convert("RGB") for size in ((60, 44), (40, 90))]
        arguments = {"prompt": PROMPT, "negative_prompt": "a star", "true_cfg_scale": 2.0, "max_sequence_length": 512}
        for kind, count, zero_time in (("Edit", 1, False), ("EditPlus", 2, False), ("EditPlus", 2, True)):
            shape = QwenImageShape(
                seed=22,
                pipeline=f"QwenImage{kind}Pipeline",
                vae_mult=(1, 1, 2, 2, 2),
                transformer=QwenImageTransformerShape(zero_time=zero_time),
            )
            with self.subTest(kind, zero_time=zero_time), made(random_families.make, shape) as folder:
                given = images[0] if count == 1 else images
                for layout in ({}, {"layout": "ring=2"}):
                    run = {**RUN, "height": 64, "width": 96, "num_inference_steps": 2}
                    self.check_pipeline(folder, {**arguments, "image": given, **run}, **layout)

    def test_qwen_image_layered(self) -> None:
        image = Image.effect_mandelbrot((60, 44), (-2, -1, 1, 1), 50).convert("RGBA")
        image.putalpha(Image.linear_gradient("L").resize(image.size))
        shape = QwenImageShape(
            seed=23, pipeline="QwenImageLayeredPipeline", latent_channels=3, vae_mult=(1, 1, 2, 2, 2)
        )
        arguments = {"prompt": PROMPT, "negative_prompt": "a star", "true_cfg_scale": 2.0, "image": image, "layers": 2}
        with made(random_families.make, shape) as folder:
            self.check_pipeline(folder, {**arguments, "num_inference_steps": 2, "output_type": "np"})

    def check_controlled(self, folder: Path, kind: Any, net: Any, **arguments: Any) -> None:
        def controlled(change: Callable[[Any], Any]) -> tuple[np.ndarray, list[Any]]:
            pipe = kind(**change(opened(folder)).components, controlnet=net)
            pipe.set_progress_bar_config(disable=True)
            return self.drawn(pipe, **arguments)

        want, want_steps = controlled(lambda pipe: pipe)
        got, steps = controlled(braid.accelerate)
        plain, _ = self.drawn(opened(folder), **{name: arguments[name] for name in ("prompt", "max_sequence_length", *RUN)})
        difference = float((steps[-1] - want_steps[-1]).abs().max() / want_steps[-1].abs().max())
        self.assertLess(difference, LATENTS)
        self.assertGreaterEqual(float((np.abs(got - want) <= PICTURE).mean()), MOST)
        self.assertGreater(float(np.abs(plain - want).max()), PICTURE)

    def test_qwen_image_with_a_controlnet_of_diffusers(self) -> None:
        image = Image.effect_mandelbrot((80, 64), (-2, -1, 1, 1), 50).convert("RGB")
        with made(random_families.make, QwenImageShape(seed=24, controlnets=(1,))) as folder:
            net = QwenImageControlNetModel.from_pretrained(folder / "controlnet_1", torch_dtype=torch.float32)
            arguments = {"prompt": PROMPT, "control_image": image, "max_sequence_length": 64, **RUN}
            self.check_controlled(folder, QwenImageControlNetPipeline, net, **arguments)

    def test_flux_with_controlnets_of_diffusers(self) -> None:
        """Residuals for runs of blocks, XLabs' again and again for single ones, and those of two nets."""
        image = Image.effect_mandelbrot((80, 64), (-2, -1, 1, 1), 50).convert("RGB")
        shapes = (
            random_pipeline.NetShape(double_blocks=2, single_blocks=2),
            random_pipeline.NetShape(double_blocks=2, pixels=True),
            random_pipeline.NetShape(single_blocks=0, modes=4),
        )
        shape = random_pipeline.Shape(seed=51, double_blocks=5, single_blocks=3, controlnets=shapes)
        arguments = {"prompt": [PROMPT, LONG], "control_image": image, "max_sequence_length": 32, **RUN}
        kind = diffusers.FluxControlNetPipeline
        with made(random_pipeline.make, shape) as folder:
            nets = [
                diffusers.FluxControlNetModel.from_pretrained(folder / f"controlnet_{i}", torch_dtype=torch.float32)
                for i in range(1, len(shapes) + 1)
            ]
            for net in nets[:2]:
                self.check_controlled(folder, kind, net, **arguments)
            images = {"control_image": [image, image.rotate(90)], "control_mode": [None, 1], "controlnet_conditioning_scale": [0.5, 0.8]}
            several = diffusers.FluxMultiControlNetModel([nets[0], nets[2]])
            self.check_controlled(folder, kind, several, **{**arguments, "prompt": PROMPT, **images})

    def test_krea2(self) -> None:
        with made(random_families.make, Krea2Shape(seed=25)) as folder:
            arguments = {"prompt": PROMPT, "guidance_scale": 2.0, "max_sequence_length": 80, **RUN}
            for layout in ({}, {"layout": "tp=2"}, {"layout": "ring=2"}, {"layout": "pp=2"}):
                with self.subTest(layout):
                    self.check_pipeline(folder, arguments, **layout)
            several = {"prompt": ["star", LONG], "negative_prompt": ["blurry", "a"], "num_images_per_prompt": 2}
            self.check_pipeline(folder, {**arguments, **several})

    def test_krea2_without_guidance(self) -> None:
        with made(random_families.make, Krea2Shape(seed=26, distilled=True)) as folder:
            self.check_pipeline(folder, {"prompt": PROMPT, "guidance_scale": 0.0, "max_sequence_length": 80, **RUN})

    def test_qwen_image_21(self) -> None:
        run = {**RUN, "width": 96, "true_cfg_scale": 3.0}
        with made(random_families.make, Qwen21Shape(seed=27)) as folder:
            arguments = {"prompt": PROMPT, "negative_prompt": "a star", **run}
            for layout in ({}, {"layout": "tp=2"}, {"layout": "ring=2"}, {"layout": "pp=2"}):
                with self.subTest(layout):
                    self.check_pipeline(folder, arguments, **layout)
            self.check_pipeline(folder, {**arguments, "use_kv_cache": False})
            # Padding moves the picture behind a shorter text.
            self.check_pipeline(folder, {**arguments, "prompt": ["star", LONG], "negative_prompt": ["a", LONG]})

    def test_qwen_image_21_with_references(self) -> None:
        images = [Image.effect_mandelbrot(size, (-2, -1, 1, 1), 50).convert("RGB") for size in ((60, 44), (40, 90))]
        run = {**RUN, "width": 96, "num_inference_steps": 2, "output_resolution": 288}
        arguments = {"prompt": PROMPT, "negative_prompt": LONG, "true_cfg_scale": 2.0, **run}
        for is_causal in (True, False):
            transformer = Qwen21TransformerShape(config={"causal_condition": is_causal})
            with made(random_families.make, Qwen21Shape(seed=28, transformer=transformer)) as folder:
                for image, layout in ((images[:1], {}), (images, {"layout": "ring=2"})):
                    with self.subTest(is_causal=is_causal, references=len(image)):
                        self.check_pipeline(folder, {**arguments, "image": image}, **layout)

    def check_flux3(self, shape: Flux3Shape, arguments: dict[str, Any], **layout: Any) -> None:
        """FLUX.3's pipelines are modular, and have no callbacks: velocities are compared instead."""
        with made(random_families.make, shape) as folder:
            drawn = []
            for change in (lambda pipe: pipe, lambda pipe: braid.accelerate(pipe, model=folder, **layout)):
                pipe, velocities = change(modular_flux3.Pipeline(folder, "float32").pipe), []
                pipe.transformer.register_forward_hook(lambda *call, kept=velocities: kept.append(call[-1][0]))
                state = pipe(prompt=PROMPT, generator=torch.Generator().manual_seed(4), **arguments)
                drawn.append((velocities, np.stack([np.asarray(image) for image in state.get("images")]) / 255))
            self.assertIsInstance(pipe.transformer, braid.Accelerated)
            (want_velocities, want), (velocities, got) = drawn
            self.assertEqual(len(velocities), len(want_velocities))
            for mine, theirs in zip(velocities, want_velocities, strict=True):
                self.assertLess(float((mine - theirs).abs().max() / theirs.abs().max()), LATENTS)
            self.assertGreaterEqual(float((np.abs(got - want) <= PICTURE).mean()), MOST)

    def test_flux3(self) -> None:
        run = {"width": 80, "height": 64, "num_inference_steps": 3, "max_sequence_length": 8192}
        image = Image.effect_mandelbrot((91, 60), (-2, -1, 1, 1), 50).convert("RGB")
        base, klein = Flux3Shape(seed=29), Flux3Shape(seed=30, transformer=Flux3TransformerShape(flow_map=True))
        self.check_flux3(base, {"negative_prompt": "a star", **run})
        self.check_flux3(base, {"negative_prompt": "a star", "image": [image, image], **run}, layout="ring=2")
        self.check_flux3(klein, {"num_images_per_prompt": 2, **run}, layout="tp=2")
        self.check_flux3(klein, {"image": image, **run})

    def test_autoencoders(self) -> None:
        image = Image.effect_mandelbrot((96, 64), (-2, -1, 1, 1), 50).convert("RGB")
        fill = {"image": image, "mask_image": image.convert("L"), "max_sequence_length": 32}
        run = {**RUN, "width": 96, "prompt": PROMPT, "num_inference_steps": 2}
        for shape, arguments in (
            (random_pipeline.Shape(seed=31, pipeline="FluxFillPipeline"), fill),
            (random_families.KleinShape(seed=32), {"image": image}),
            (Krea2Shape(seed=33), {}),
            (Qwen21Shape(seed=34), {"image": image, "output_resolution": 288}),
        ):
            with self.subTest(type(shape).__name__), made(random_families.make, shape) as folder:
                self.check_pipeline(folder, {**arguments, **run}, autoencoder=True)

    def check_autoencoder(self, folder: Path, size: tuple[int, int], *, in_tiles: bool) -> None:
        """Random decoders amplify float32's own rounding, thin ones by thousands: JoyAI's is wider than elsewhere."""
        plain, fast = opened(folder).vae, braid.accelerate(opened(folder), autoencoder=True).vae
        self.assertIsInstance(fast, braid.AcceleratedAutoencoder)
        is_clip = "z_dim" in plain.config
        channels = plain.config.get("in_channels", plain.config.get("input_channels", 3))
        generator = torch.Generator().manual_seed(6)
        pictures = torch.rand((2, channels, *((1,) if is_clip else ()), *size), generator=generator) * 2 - 1
        if in_tiles:
            plain.enable_tiling()
            fast.enable_tiling()
        with torch.no_grad():
            want, got = plain.encode(pictures).latent_dist, fast.encode(pictures, return_dict=False)[0]
            latents = torch.randn(want.mean.shape, generator=generator)
            decoded, mine = plain.decode(latents, return_dict=False)[0], fast.decode(latents).sample
        for theirs, ours in ((want.mean, got.mean), (want.logvar, got.logvar)):
            self.assertEqual(ours.shape, theirs.shape)
            self.assertLess(float((ours - theirs).abs().max() / theirs.abs().max()), LATENTS)
        # QwenImage's leaves tiles unclamped, and no others; pipelines clamp what they get.
        difference = (mine - (decoded.clamp(-1, 1) if is_clip else decoded)).abs()
        self.assertEqual(mine.shape, decoded.shape)
        self.assertLess(float(difference.mean()), LATENTS / 10)
        self.assertLess(float(difference.max()), LATENTS)

    def test_autoencoders_alone_and_in_tiles(self) -> None:
        for shape in (
            random_pipeline.Shape(seed=35),
            random_families.KleinShape(seed=36),
            Krea2Shape(seed=37),
            Qwen21Shape(seed=38),
            random_joy.JoyShape(seed=39, vae_base=8),
        ):
            with made(random_families.make, shape) as folder:
                for in_tiles, size in ((False, (64, 96)), (True, (320, 288))):
                    with self.subTest(type(shape).__name__, in_tiles=in_tiles):
                        self.check_autoencoder(folder, size, in_tiles=in_tiles)

    def test_modular_pipelines(self) -> None:
        """Of models that have others, too."""
        for make, shape, more in (
            (random_pipeline.make, random_pipeline.Shape(seed=11), {"max_sequence_length": 32}),
            (random_families.make, random_families.KleinShape(seed=14, distilled=False), {"max_sequence_length": 64}),
            (random_families.make, random_families.ZImagePipelineShape(seed=16), {"max_sequence_length": 64}),
            (random_families.make, QwenImageShape(seed=21), {}),
        ):
            with self.subTest(type(shape).__name__), made(make, shape) as folder:
                drawn = []
                for change in (lambda pipe: pipe, braid.accelerate):
                    pipe = ModularPipeline.from_pretrained(str(folder))
                    pipe.load_components(torch_dtype=torch.float32)
                    arguments = {"prompt": PROMPT, "generator": torch.Generator().manual_seed(4), **RUN, **more}
                    drawn.append(np.asarray(change(pipe)(**arguments, output="images"), np.float32))
                self.assertIsInstance(pipe.transformer, braid.Accelerated)
                self.assertGreaterEqual(float((np.abs(drawn[1] - drawn[0]) <= PICTURE).mean()), MOST)

    def test_originals_may_be_freed_first(self) -> None:
        """The pipeline is then moved without them."""
        with made(random_pipeline.make, random_pipeline.Shape(seed=11)) as folder:
            arguments = {"prompt": PROMPT, "max_sequence_length": 32, **RUN}
            wanted, _ = self.drawn(opened(folder), **arguments)
            pipe = opened(folder)
            pipe.transformer.to("meta")
            got, _ = self.drawn(braid.accelerate(pipe).to("cpu"), **arguments)
        self.assertGreaterEqual(float((np.abs(got - wanted) <= PICTURE).mean()), MOST)

    def test_may_be_compiled(self) -> None:
        """torch.compile() leaves them as they are."""
        with made(random_pipeline.make, random_pipeline.Shape(seed=11)) as folder:
            arguments = {"prompt": PROMPT, "max_sequence_length": 32, **RUN}
            pipe = braid.accelerate(opened(folder), autoencoder=True)
            wanted, _ = self.drawn(pipe, **arguments)
            pipe.transformer = torch.compile(pipe.transformer)
            pipe.vae.decode = torch.compile(pipe.vae.decode)
            np.testing.assert_array_equal(self.drawn(pipe, **arguments)[0], wanted)

    def test_other_schedulers_go_on(self) -> None:
        pictures = []
        with made(random_pipeline.make, random_pipeline.Shape(seed=18, scheduler={"shift": 3.0})) as folder:
            for change in (lambda pipe: pipe, braid.accelerate):
                pipe = change(opened(folder))
                pipe.scheduler = UniPCMultistepScheduler(
                    prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
                )
                pictures.append(self.drawn(pipe, prompt=PROMPT, max_sequence_length=32, **RUN)[0])
        self.assertLess(float(np.abs(pictures[0] - pictures[1]).max()), PICTURE)

    def test_bfloat16_stays_as_near_as_diffusers(self) -> None:
        with made(random_pipeline.make, random_pipeline.Shape(seed=19, dtype="bfloat16")) as folder:
            exact, _ = self.drawn(opened(folder), prompt=PROMPT, max_sequence_length=32, **RUN)
            errors = []
            for change in (lambda pipe: pipe, braid.accelerate):
                pipe = DiffusionPipeline.from_pretrained(folder, torch_dtype=torch.bfloat16)
                pipe.set_progress_bar_config(disable=True)
                picture, _ = self.drawn(change(pipe), prompt=PROMPT, max_sequence_length=32, **RUN)
                errors.append(float(np.abs(picture - exact).mean()))
            self.assertLess(errors[1], 1.2 * errors[0])

    def test_what_it_cannot_do_is_named(self) -> None:
        with made(random_pipeline.make, random_pipeline.Shape(seed=20)) as folder:
            pipe = opened(folder)
            transformer = pipe.transformer
            pipe.transformer = torch.nn.Linear(1, 1)
            with self.assertRaisesRegex(braid_engine.InputError, "Braid has no Linear; it has FluxTransformer2DModel"):
                braid.accelerate(pipe)
            pipe.transformer = transformer
            with self.assertRaisesRegex(braid_engine.InputError, "nowhere"):
                braid.accelerate(pipe, model="/nowhere")
            for wrong in (["a.safetensors"], "a.safetensors"):
                with self.assertRaisesRegex(TypeError, "loras should be a dictionary of files and their scales, it is"):
                    braid.accelerate(pipe, loras=wrong)
            with self.assertRaisesRegex(TypeError, "the scale of a.safetensors should be a number, it is 'x'"):
                braid.accelerate(pipe, loras={"a.safetensors": "x"})
            self.assertIs(pipe.transformer, transformer)
            vae, pipe.vae = pipe.vae, torch.nn.Linear(1, 1)
            with self.assertRaisesRegex(braid_engine.InputError, "Braid has no Linear; it has AutoencoderKL"):
                braid.accelerate(pipe, autoencoder=True)
            self.assertIs(pipe.transformer, transformer)
            pipe.vae = vae
            fast = braid.accelerate(pipe, autoencoder=True)
            with self.assertRaisesRegex(braid_engine.InputError, "takes no tile_sample_min_height"):
                fast.vae.enable_tiling(tile_sample_min_height=64)
            with self.assertRaisesRegex(braid_engine.InputError, "latents should have [0-9]+ channels, they have 3"):
                fast.vae.decode(torch.zeros(1, 3, 4, 4))
            with self.assertRaisesRegex(braid_engine.InputError, "takes no joint_attention_kwargs"):
                fast(PROMPT, joint_attention_kwargs={"ip_adapter_image_embeds": []}, max_sequence_length=32, **RUN)
            with self.assertRaisesRegex(braid_engine.InputError, "has no weights to save"):
                fast.save_pretrained(folder / "saved")
            self.assertFalse((folder / "saved").exists())
            with self.assertRaisesRegex(braid_engine.InputError, "loras={file: scale}"):
                fast.transformer.load_lora_adapter({})


class Sources(unittest.TestCase):
    """Braid reads the weights that the pipeline holds, wherever they came from, or says what it cannot know."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name, seed in (("one", 41), ("other", 42)):
            random_pipeline.make(self.folder / name, random_pipeline.Shape(seed=seed))

    def drawn(self, pipe: Any) -> np.ndarray:
        pipe.set_progress_bar_config(disable=True)
        generator = torch.Generator().manual_seed(4)
        return np.asarray(pipe(PROMPT, generator=generator, max_sequence_length=32, **RUN).images, np.float32)

    def check(self, load: Callable[[], Any], **options: Any) -> Any:
        plain, fast = self.drawn(load()), self.drawn(braid.accelerate(load(), **options))
        self.assertGreaterEqual(float((np.abs(fast - plain) <= PICTURE).mean()), MOST)
        return plain

    def refusal(self, pipe: Any, **options: Any) -> str:
        with self.assertRaises(braid_engine.InputError) as caught:
            braid.accelerate(pipe, **options)
        return str(caught.exception)

    def transformer(self, *place: Any, **options: Any) -> Any:
        return FluxTransformer2DModel.from_pretrained(*place, torch_dtype=torch.float32, **options)

    def test_of_replaced_parts_are_their_own(self) -> None:
        one, other = self.folder / "one", self.folder / "other"
        usual = self.check(lambda: DiffusionPipeline.from_pretrained(one))
        for load in (
            lambda: DiffusionPipeline.from_pretrained(one, transformer=self.transformer(other / "transformer")),
            lambda: DiffusionPipeline.from_pretrained(one, transformer=self.transformer(other, subfolder="transformer")),
        ):
            self.assertGreater(float(np.abs(self.check(load) - usual).max()), PICTURE)
        vae = AutoencoderKL.from_pretrained(other / "vae")
        replaced = self.check(lambda: DiffusionPipeline.from_pretrained(one, vae=vae), autoencoder=True)
        self.assertGreater(float(np.abs(replaced - usual).max()), PICTURE)

    def test_of_a_revision_are_that_revisions(self) -> None:
        """Hugging Face's cache, where a name stands for its main branch."""
        cached = self.folder / "hub" / "models--tests--random"
        for name, revision in (("one", "a" * 40), ("other", "b" * 40)):
            shutil.copytree(self.folder / name, cached / "snapshots" / revision)
        for ref, revision in (("main", "a" * 40), ("tuned", "b" * 40)):
            (cached / "refs" / ref).parent.mkdir(exist_ok=True)
            (cached / "refs" / ref).write_text(revision)

        def load(revision: str | None) -> Any:
            given = {"cache_dir": self.folder / "hub", "local_files_only": True, "revision": revision}
            return FluxPipeline.from_pretrained("tests/random", **given)

        usual, tuned = (self.check(lambda revision=revision: load(revision)) for revision in (None, "tuned"))
        self.assertGreater(float(np.abs(usual - tuned).max()), PICTURE)

    def test_that_are_not_known_are_asked_for(self) -> None:
        one = self.folder / "one"
        alone = self.folder / "tuned"
        self.transformer(self.folder / "other" / "transformer").save_pretrained(alone)
        pipe = DiffusionPipeline.from_pretrained(one, transformer=self.transformer(alone))
        self.assertIn(f"the transformer was loaded from '{alone}', which", self.refusal(pipe))
        self.assertIn("give accelerate() model=", self.refusal(pipe))
        shutil.copytree(self.folder / "other" / "transformer", one / "transformer_tuned")
        pipe = DiffusionPipeline.from_pretrained(one, transformer=self.transformer(one, subfolder="transformer_tuned"))
        self.assertIn(f"the transformer was loaded from '{one}', which", self.refusal(pipe))
        AutoencoderKL.from_pretrained(self.folder / "other" / "vae").save_pretrained(alone)
        pipe = DiffusionPipeline.from_pretrained(one, vae=AutoencoderKL.from_pretrained(alone))
        self.assertIn(f"the vae was loaded from '{alone}', which", self.refusal(pipe, autoencoder=True))
        made = FluxTransformer2DModel(**{k: v for k, v in pipe.transformer.config.items() if not k.startswith("_")})
        pipe = DiffusionPipeline.from_pretrained(one, transformer=made)
        self.assertIn("the transformer should come from files", self.refusal(pipe))
        self.assertIsInstance(braid.accelerate(pipe, model=one).transformer, braid.Accelerated)
        self.assertIn("is not known", self.refusal(FluxPipeline(**DiffusionPipeline.from_pretrained(one).components)))

    def test_may_be_relative_until_the_folder_is_changed(self) -> None:
        self.addCleanup(os.chdir, Path.cwd())
        os.chdir(self.folder)
        pipe = DiffusionPipeline.from_pretrained("one")
        self.assertIsInstance(braid.accelerate(pipe).transformer, braid.Accelerated)
        pipe = DiffusionPipeline.from_pretrained("one")
        os.chdir("/")
        self.assertIn("'one/transformer', which is a relative path and not in /: give accelerate()", self.refusal(pipe))

    def test_that_files_do_not_have_are_refused(self) -> None:
        """diffusers keeps the name of the folder that a single file's configuration was saved from."""
        one = self.folder / "one"
        pipe = DiffusionPipeline.from_pretrained(one, torch_dtype=torch.bfloat16)
        self.assertIsInstance(braid.accelerate(pipe).transformer, braid.Accelerated)
        pipe = DiffusionPipeline.from_pretrained(one)
        with torch.no_grad():
            pipe.transformer.proj_out.bias.add_(0.5)
        self.assertIn(f"has other weights than {one}, as 'proj_out.bias' shows", self.refusal(pipe))
        pipe.transformer.save_pretrained(self.folder / "trained")
        file, config = self.folder / "trained" / "diffusion_pytorch_model.safetensors", self.folder / "trained"
        trained = FluxTransformer2DModel.from_single_file(str(file), config=str(config), torch_dtype=torch.float32)
        pipe = DiffusionPipeline.from_pretrained(one, transformer=trained)
        self.assertIn("give accelerate() model=", self.refusal(pipe))

    def test_that_loras_are_fused_into_are_refused(self) -> None:
        pipe = DiffusionPipeline.from_pretrained(self.folder / "one")
        hidden = pipe.transformer.inner_dim
        name = "transformer.transformer_blocks.0.attn.to_q"
        lora = {f"{name}.lora_A.weight": torch.ones(2, hidden), f"{name}.lora_B.weight": torch.ones(hidden, 2)}
        pipe.load_lora_weights(lora)
        pipe.fuse_lora()
        pipe.unload_lora_weights()
        self.assertIn("1 LoRA is fused into it", self.refusal(pipe))

    def test_of_modular_pipelines_are_those_they_load(self) -> None:
        for seed, name in ((43, "modular"), (44, "replaced")):
            random_families.make(self.folder / name, Flux3Shape(seed=seed))
        pipe = ModularPipeline.from_pretrained(str(self.folder / "modular"))
        pipe.load_components(names=["transformer"], torch_dtype=torch.float32)
        self.assertEqual(braid.source_of(pipe, "transformer", self.fail), str(self.folder / "modular"))
        place = self.folder / "replaced" / "transformer"
        pipe.update_components(transformer=Flux3Transformer2DModel.from_pretrained(place))
        self.assertEqual(braid.source_of(pipe, "transformer", self.fail), str(self.folder / "replaced"))
        pipe.transformer.register_to_config(_name_or_path="org/name")  # as from the hub
        said: list[str] = []
        self.assertEqual(braid.source_of(pipe, "transformer", said.append), "org/name")
        self.assertIn("loaded from org/name, whose main revision is read", said[0])
        pipe.transformer._diffusers_load_id = "org/name|transformer|null|tuned"
        self.assertEqual(braid.source_of(pipe, "transformer", self.fail), "org/name@tuned")


class Tensors(unittest.TestCase):
    def test_pictures_are_those_of_arrays(self) -> None:
        pipe = braid_engine.Pipeline.from_pretrained(ROOT / "models/demo")
        run = {"num_inference_steps": 2, "width": 64, "height": 48}
        tensors = pipe(PROMPT, generator=torch.Generator().manual_seed(3), output_type="pt", **run).images
        arrays = pipe(PROMPT, generator=3, output_type="np", **run).images
        self.assertEqual((tensors.shape, tensors.dtype), ((1, 3, 48, 64), torch.float32))
        np.testing.assert_array_equal(tensors.permute(0, 2, 3, 1).numpy(), np.asarray(arrays))


if __name__ == "__main__":
    unittest.main()
