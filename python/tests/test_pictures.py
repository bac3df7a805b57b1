"""Pictures have the bytes of `braid generate`, in every form."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from braid_engine import InputError, Pipeline
from braid_engine._numbers import flag_if_given
from braid_engine._options import MODELS
from braid_engine._program import PROGRAM
from PIL import Image
from shared import PROMPT, RUN, pipeline


def generated(*flags: str) -> list[np.ndarray]:
    """What the program draws."""
    with tempfile.TemporaryDirectory() as folder:
        line = [str(PROGRAM), "generate", PROMPT, "--size", "64x48", "--steps", "3", "-q", "-o", f"{folder}/", *flags]
        subprocess.run(line, check=True, capture_output=True)
        return [np.asarray(Image.open(file)) for file in sorted(Path(folder).iterdir())]


class Awaited:
    """What would never run as a callback."""

    async def __call__(self, *_: object) -> None: ...


class Pictures(unittest.TestCase):
    def test_equal_those_of_the_program(self) -> None:
        for threads in (1, 2):
            images = pipeline(threads=threads)(PROMPT, generator=7, num_images_per_prompt=2, **RUN).images
            wanted = generated("--seed", "7", "-n", "2", "--threads", str(threads))
            self.assertEqual([image.mode for image in images], ["RGB", "RGB"])
            for image, want in zip(images, wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(image), want)

    def test_equal_those_of_the_program_under_a_layout(self) -> None:
        image = pipeline(devices=["cpu", "cpu"], layout="tp=2")(PROMPT, generator=7, **RUN).images[0]
        np.testing.assert_array_equal(np.asarray(image), generated("--seed", "7", "--tp", "2")[0])

    def test_equal_those_of_the_program_with_shares(self) -> None:
        image = pipeline(devices=["cpu", "cpu"], layout="tp=2", shares={"tp": [3, 1]})(PROMPT, generator=7, **RUN).images[0]
        np.testing.assert_array_equal(np.asarray(image), generated("--seed", "7", "--tp", "2", "--shares", "tp=3:1")[0])

    def test_equal_those_of_the_program_with_guidance_and_quantized(self) -> None:
        pipe = pipeline(quantization="int8")
        image = pipe(PROMPT, negative_prompt="a star", true_cfg_scale=2.0, guidance_scale=2.5, generator=7, **RUN).images[0]
        flags = ["--negative-prompt", "a star", "--true-cfg", "2", "--guidance", "2.5", "--quantize", "int8"]
        np.testing.assert_array_equal(np.asarray(image), generated("--seed", "7", *flags)[0])

    def test_start_from_pictures_as_the_program(self) -> None:
        image = Image.effect_mandelbrot((64, 48), (-2, -1, 1, 1), 50).convert("RGB")
        mask = Image.new("L", (64, 48))
        mask.paste(255, (32, 0, 64, 48))
        arguments = {"image": image, "mask_image": mask, "strength": 0.7, "mask_blur": 2.0, "generator": 7, **RUN}
        with tempfile.TemporaryDirectory() as folder:
            image.save(f"{folder}/image.png")
            mask.save(f"{folder}/mask.png")
            flags = ["--init", f"{folder}/image.png", "--mask", f"{folder}/mask.png"]
            wanted = generated("--seed", "7", "--strength", "0.7", "--mask-blur", "2", *flags)[0]
        for form in (image, np.asarray(image), np.asarray(image).astype(np.float64) / 255):
            drawn = pipeline()(PROMPT, **{**arguments, "image": form}).images[0]
            np.testing.assert_array_equal(np.asarray(drawn), wanted)

    def test_come_as_arrays_and_latents(self) -> None:
        pipe = pipeline()
        bytes_ = np.asarray(pipe(PROMPT, generator=7, **RUN).images[0])
        (values,) = pipe(PROMPT, generator=7, output_type="np", return_dict=False, **RUN)[0]
        self.assertEqual((values.dtype, values.shape), (np.float32, (48, 64, 3)))
        np.testing.assert_array_equal(np.round(values * 255).astype(np.uint8), bytes_)
        latents = pipe(PROMPT, generator=7, output_type="latent", **RUN).images
        self.assertEqual(tuple(latents.shape), (1, 12, 64))

    def test_are_found_in_an_output_as_in_diffusers(self) -> None:
        output = pipeline()(PROMPT, generator=7, **RUN)
        for images in (output[0], output["images"], output.to_tuple()[0], output[:1][0]):
            self.assertIs(images, output.images)
        for missing in (1, "latents"):
            with self.assertRaises(LookupError):
                output[missing]

    def test_start_from_given_latents(self) -> None:
        noise = np.random.default_rng(3).normal(size=(1, 12, 64)).astype(np.float32)
        pipe = pipeline()
        one, other = (pipe(PROMPT, latents=noise, generator=seed, **RUN).images[0] for seed in (1, 2))
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))

    def test_of_several_prompts_have_seeds_of_their_own(self) -> None:
        pipe = pipeline()
        both = pipe([PROMPT, "a blue star"], generator=[9, 4], **RUN).images
        np.testing.assert_array_equal(np.asarray(both[0]), np.asarray(pipe(PROMPT, generator=9, **RUN).images[0]))
        alone = pipe("a blue star", generator=4, **RUN).images[0]
        np.testing.assert_array_equal(np.asarray(both[1]), np.asarray(alone))

    def test_with_seeds_of_their_own_are_counted_through(self) -> None:
        shown, covered = [], []
        pipe = Pipeline.from_pretrained(progress=lambda told: covered.append((str(told.phase), told.first_picture)))
        covered.clear()
        arguments = {"preview": lambda preview: shown.append(preview.picture), "num_images_per_prompt": 2, **RUN}
        with self.assertWarnsRegex(UserWarning, "batch size 2 is not used: with generators") as caught:
            apart = pipe(PROMPT, generator=[5, 9], batch_size=2, **arguments).images
        self.assertEqual(caught.filename, __file__)
        self.assertEqual(shown, [0] * 3 + [1] * 3)
        self.assertEqual([first for phase, first in covered if phase == "Phase.decode"], [0, 0, 1, 1])
        self.assertEqual([first for phase, first in covered if phase == "Phase.denoise"], [0] * 4 + [1] * 4)
        np.testing.assert_array_equal(np.asarray(apart[1]), np.asarray(pipe(PROMPT, generator=9, **RUN).images[0]))

    def test_of_drawn_seeds_differ(self) -> None:
        pipe = pipeline()
        one, other = (np.asarray(pipe(PROMPT, **RUN).images[0]) for _ in range(2))
        self.assertFalse(np.array_equal(one, other))

    def test_take_sigmas_through_the_shift(self) -> None:
        pipe = pipeline()
        run = {**RUN, "generator": 7}
        usual = np.asarray(pipe(PROMPT, **run).images[0])
        del run["num_inference_steps"]
        np.testing.assert_array_equal(np.asarray(pipe(PROMPT, sigmas=[1.0, 2 / 3, 1 / 3], **run).images[0]), usual)
        self.assertFalse(np.array_equal(np.asarray(pipe(PROMPT, sigmas=[1.0, 0.5, 0.2], **run).images[0]), usual))


class Refusals(unittest.TestCase):
    def refusal(self, kind: type[Exception], **arguments: object) -> str:
        with self.assertRaises(kind) as caught:
            pipeline()(**{"prompt": PROMPT, **RUN, **arguments})
        return str(caught.exception)

    def test_are_sentences_of_braid_and_value_errors(self) -> None:
        self.assertTrue(issubclass(InputError, ValueError))
        self.assertIn("number of steps should lie between 1", self.refusal(InputError, num_inference_steps=0))
        for prompt in (None, []):
            for seeds in ({}, {"generator": 5}, {"num_images_per_prompt": 2, "generator": [5, 9]}):
                self.assertIn("there is no prompt", self.refusal(InputError, prompt=prompt, **seeds))
        self.assertIn("base sigmas should fall", self.refusal(InputError, sigmas=[0.5, 0.5]))

    def test_name_what_is_not_taken(self) -> None:
        self.assertIn("no 'promt'", self.refusal(TypeError, promt="a"))
        self.assertIn("give the prompt", self.refusal(InputError, prompt_embeds=np.zeros((1, 4, 8))))
        self.assertIn("give the prompt", self.refusal(InputError, prompt=None, use_en_prompt=True))
        self.assertIn("it is to be drawn", self.refusal(InputError, caption_upsample_temperature=0.15))
        twice = {"joint_attention_kwargs": {"scale": 1}, "attention_kwargs": {"scale": 1}}
        self.assertIn("are the same argument", self.refusal(InputError, **twice))
        self.assertIn("cfg_truncation should be a number, it is 'a'", self.refusal(TypeError, cfg_truncation="a"))
        pictures = [np.zeros((8, 8, 3), np.uint8)] * 2  # as JoyAI-Image-Edit-Plus has them
        self.assertIn("starts from one image, 2 were given", self.refusal(InputError, images=pictures))
        self.assertIn("it is 'jpeg'", self.refusal(InputError, output_type="jpeg"))
        self.assertIn("it is ['pil']", self.refusal(InputError, output_type=["pil"]))
        self.assertIn("generator should be a seed", self.refusal(TypeError, generator="7"))
        self.assertIn("2 generators for 1", self.refusal(InputError, generator=[1, 2]))
        self.assertIn("floats should lie between 0 and 1", self.refusal(InputError, image=np.full((8, 8, 3), 7.0)))

    def test_name_seeds_scales_and_noise_levels_that_are_none(self) -> None:
        two = {"num_images_per_prompt": 2}
        self.assertIn("2^64 - 1, it is -1", self.refusal(InputError, generator=[3, -1], **two))
        self.assertIn(f"2^64 - 1, it is {1 << 64}", self.refusal(InputError, generator=[1 << 64, 3], **two))
        self.assertIn("2^64 - 1, it is one of thousands", self.refusal(InputError, generator=10**5000))
        self.assertIn("it is 1.5", self.refusal(TypeError, generator=[3, 1.5], **two))
        self.assertIn("it has 'bogus'", self.refusal(TypeError, joint_attention_kwargs={"scale": 1, "bogus": 1}))
        for height in (48.5, float("nan"), "48"):
            self.assertIn(f"height should be a whole number, it is {height!r}", self.refusal(TypeError, height=height))
        self.assertIn("the list is empty", self.refusal(InputError, sigmas=[]))
        self.assertIn("it has 'timestep'", self.refusal(InputError, callback_on_step_end_tensor_inputs=["timestep"]))
        for inputs in (None, "latents"):
            said = self.refusal(TypeError, callback_on_step_end_tensor_inputs=inputs)
            self.assertEqual(said, f"callback_on_step_end_tensor_inputs should be ['latents'] or [], it is {inputs!r}")

    def test_name_arguments_of_other_kinds(self) -> None:
        a_number = ("guidance_scale", "true_cfg_scale", "guidance_rescale", "cfg_norm_cap", "cfg_until", "strength", "mask_blur")
        for name in a_number:
            for wrong in ("a", "3", [1, 2]):
                self.assertIn(f"{name} should be a number, it is {wrong!r}", self.refusal(TypeError, **{name: wrong}))
        for name in ("width", "num_inference_steps", "num_images_per_prompt", "padding_mask_crop", "layers"):
            self.assertIn(f"{name} should be a whole number, it is 'a'", self.refusal(TypeError, **{name: "a"}))
            for large in (1 << 40, 10**400, 10**5000):
                self.assertIn(f"{name} should be a whole number of 32 bits", self.refusal(InputError, **{name: large}))
        for name in ("sigmas", "reference_scales"):
            self.assertIn(f"{name} should be a list of numbers, it is 3", self.refusal(TypeError, **{name: 3}))
            self.assertIn(f"each of {name} should be a number, it is 'a'", self.refusal(TypeError, **{name: ["a"]}))
        scale = {"control_image": np.zeros((8, 8, 3), np.uint8), "controlnet_conditioning_scale": "a"}
        self.assertIn("controlnet_conditioning_scale should be a number", self.refusal(TypeError, **scale))
        self.assertIn("joint_attention_kwargs should be a", self.refusal(TypeError, joint_attention_kwargs={"scale": "a"}))
        for wrong in (5, []):
            self.assertIn("should be a dictionary with a scale, it is", self.refusal(TypeError, joint_attention_kwargs=wrong))
        self.assertIn("guidance_scale should be a number", self.refusal(TypeError, guidance_scale=np.complex64(3)))
        self.assertIn("latents should be real numbers", self.refusal(TypeError, latents=np.zeros((1, 12, 64), complex)))
        self.assertIn("boxes should be a string with a JSON array, it is 3", self.refusal(TypeError, boxes=3))
        self.assertIn("latents should be an array or a tensor of numbers", self.refusal(TypeError, latents="x"))
        for name in ("callback_on_step_end", "preview"):
            self.assertIn(f"{name} should be a function, it is 3", self.refusal(TypeError, **{name: 3}))
            for function in (Awaited().__call__, Awaited()):
                self.assertIn(f"{name} should be a function, it is a coroutine's", self.refusal(TypeError, **{name: function}))

    def test_name_switches_that_are_none(self) -> None:
        for wrong in ("off", "", 2, 0.5, [], np.zeros(2)):
            self.assertIn("cfg_normalize should be True or False, it is", self.refusal(TypeError, cfg_normalize=wrong))
        for switch in (True, False, 1, np.int64(0), np.True_, np.False_):
            self.assertIs(flag_if_given("cfg_normalize", switch), bool(switch))
        self.assertIsNone(flag_if_given("cfg_normalize", None))

    def test_name_texts_that_are_none(self) -> None:
        half = "\ud800"
        for name in ("prompt", "prompt_2", "negative_prompt", "boxes"):
            self.assertIn(f"{name} should be text, it has half of a surrogate", self.refusal(InputError, **{name: half}))
        self.assertIn("prompt should be text", self.refusal(InputError, prompt=[PROMPT, half]))

    def test_of_tensors_without_torch_come_before_the_drawing(self) -> None:
        steps: list[int] = []
        with mock.patch.dict(sys.modules, {"torch": None}):  # as if it were not installed
            said = self.refusal(ImportError, output_type="pt", callback_on_step_end=lambda *given: steps.append(given[1]))
        self.assertEqual((said, steps), ('output_type="pt" needs torch, which is not installed', []))

    def test_name_ways_to_read_files_that_would_change_them(self) -> None:
        for load, file in ((Pipeline.from_pretrained, MODELS / "demo"), (pipeline().load_lora_weights, "nowhere")):
            with self.assertRaisesRegex(InputError, "variant is not taken, it is 'fp16'"):
                load(file, variant="fp16")
            with self.assertRaisesRegex(InputError, "use_safetensors should be True or left out"):
                load(file, use_safetensors=False)
        same = {"variant": None, "use_safetensors": True, "low_cpu_mem_usage": True, "local_files_only": False}
        Pipeline.from_pretrained(**same).close()

    def test_count_second_prompts_whatever_the_seeds_are(self) -> None:
        for seeds in ([5, 6], [5, 9]):
            refused = self.refusal(InputError, prompt=[PROMPT, "a star"], prompt_2="a moon", generator=seeds)
            self.assertIn("there are 2 prompts but 1 second prompts", refused)

    def test_take_seeds_and_sizes_of_numpy(self) -> None:
        pipe = pipeline()
        wanted = np.asarray(pipe(PROMPT, generator=9, **RUN).images[0])
        run = {**RUN, "width": np.int64(64), "generator": np.uint64(9)}
        np.testing.assert_array_equal(np.asarray(pipe(PROMPT, **run).images[0]), wanted)
        run.update(width=64.0, height=np.float32(48), num_inference_steps=3.0)
        np.testing.assert_array_equal(np.asarray(pipe(PROMPT, **run).images[0]), wanted)
        for seeds in (np.array([4, 9]), list(np.array([4, 9]))):
            run["generator"] = seeds
            drawn = pipe(PROMPT, num_images_per_prompt=2, **run).images
            np.testing.assert_array_equal(np.asarray(drawn[1]), wanted)

    def test_name_models_devices_and_options_that_are_not_there(self) -> None:
        load = Pipeline.from_pretrained
        for match, arguments in {
            "nowhere": {"model": "/nowhere/at/all"},
            "cuda:7": {"devices": "cuda:7"},
            "it is 'int3'": {"quantization": "int3"},
            "it is 'tp by 2'": {"layout": "tp by 2"},
            "no 'pipes'": {"layout": {"pipes": 2}},
            "it is 'float12'": {"dtype": "float12"},
            "it is 'a lot'": {"memory": "a lot"},
            "memory should be a whole number of bytes .*, it is 1.5": {"memory": 1.5},
            "memory should be .*, it is '1.5'": {"memory": "1.5"},
            "host_memory should be .*, it is True": {"host_memory": True},
            "revision goes with a name in .*/demo is none": {"revision": "x"},
            "revision goes with a name in .*, / is none": {"model": "/", "revision": "x"},
        }.items():
            with self.subTest(match), self.assertRaisesRegex(InputError, match):
                load(**arguments)
        for match, arguments in {
            "no 'devises'": {"devises": [0]},
            "threads should be a whole number, it is 'a'": {"threads": "a"},
            "components should be a path, it is 3": {"components": 3},
            "controlnets should be a path, it is 3": {"controlnets": [3]},
            "layout.tp cannot be 'x'; it is 1": {"layout": {"tp": "x"}},
            "revision should be a string, it is 5": {"revision": 5},
            "progress should be a function, it is 3": {"progress": 3},
        }.items():
            with self.subTest(match), self.assertRaisesRegex(TypeError, match):
                load(**arguments)
        with self.assertRaisesRegex(TypeError, "file should be a path, it is 5"):
            Pipeline.from_single_file(5)
        for match, arguments in {
            "threads should be a whole number of 32 bits, it is 1099511627776": {"threads": 1 << 40},
            r"memory should be less than 2\^63 bytes": {"memory": 1 << 63},
            r"memory should be less than 2\^63 bytes, it is '999": {"memory": "9" * 400 + "GB"},
            r"host_memory should be less than 2\^63 bytes, it is one of": {"host_memory": 10**5000},
            "cache should have a number as its threshold, it is 'x'": {"cache": "accumulated:x"},
        }.items():
            with self.subTest(match), self.assertRaisesRegex(InputError, match):
                load(**arguments)


if __name__ == "__main__":
    unittest.main()
