"""plan, verify and info return what the program prints; words become options."""

import contextlib
import dataclasses
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import typing
import unittest
from pathlib import Path
from unittest import mock

import braid_engine
import numpy as np
from braid_engine import InputError, _core, _options, _program
from braid_engine._call_arguments import CallArguments
from braid_engine._requests import OTHER_NAMES, Call
from shared import PROMPT, RUN, pipeline


class Program(unittest.TestCase):
    def test_plans(self) -> None:
        plan = braid_engine.plan("flux1-dev", "4xrx-7800-xt", size=(512, 512), text_encoder="tp")
        self.assertEqual(plan["layouts"][0]["degrees"]["tp"], 4)

    def test_plans_with_shares(self) -> None:
        for shares in ("tp=3:2", {"tp": [3, 2]}):
            plan = braid_engine.plan("flux1-dev", ["rtx-5090", "rtx-4090"], shares=shares, quantize="int8")
            found = [layout for layout in plan["layouts"] if layout["layout"] == "tp 2 (3:2)"]
            self.assertEqual([layout["shares"] for layout in found], [{"tp": [3, 2]}], shares)

    def test_plans_with_lists(self) -> None:
        lists = {"quantize": "int8", "quantize_skip": ["img_in", "txt_in"], "sigmas": (1, 0.5, 0.25)}
        plan = braid_engine.plan("flux1-dev", "h100", **lists)
        self.assertEqual((plan["flags"], plan["steps"]), ("--quantize int8 --quantize-skip img_in,txt_in", 3))
        self.assertEqual(_program.arguments_of({"lora": ["a", Path("b")], "blocks": [1, 2], "sigmas": np.array([1, 0.5])}),
                         ["--lora", "a", "--lora", "b", "--blocks", "1,2", "--sigmas", "1.0,0.5"])
        for options in ({"tp": [2, 3]}, {"quantize": {"int8": 1}}):
            with self.assertRaisesRegex(InputError, r"(tp|quantize) should be one value, it is \["):
                braid_engine.plan("flux1-dev", "h100", **options)

    def test_plans_what_does_not_fit(self) -> None:
        plan = braid_engine.plan("flux1-dev", "rtx-4090")
        self.assertIn("would_fit", plan)

    def test_brings_the_published_models_along(self) -> None:
        source, brought = Path(__file__).resolve().parents[2] / "models/published", _options.MODELS / "published"
        for folder, _, files in os.walk(source, followlinks=True):
            for name in files:
                path = (Path(folder) / name).relative_to(source)
                self.assertTrue((brought / path).is_file(), path)

    def test_is_no_rank_of_a_launcher(self) -> None:
        launched = {"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}  # which a rank would refuse
        with mock.patch.dict(os.environ, launched):
            verdict = braid_engine.verify(tp=2, size="64x64", max_sequence_length=16)
        self.assertTrue(verdict["right"])

    def test_verifies(self) -> None:
        model = _options.MODELS / "demo"
        verdict = braid_engine.verify(model, tp=2, size=(64, 64), max_sequence_length=16)
        self.assertTrue(verdict["right"])
        wrong = braid_engine.verify(model, tp=2, size="64x64", max_sequence_length=16, inject="skip-reduce")
        self.assertFalse(wrong["right"])

    def test_describes_models_and_pictures(self) -> None:
        for model in (_options.MODELS / "demo", bytes(_options.MODELS / "demo")):
            self.assertIn("FLUX.1", str(braid_engine.info(model)))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plain.png"
            pipeline()(PROMPT, **RUN).images[0].save(path)
            with self.assertRaisesRegex(InputError, "does not say how it was made"):
                braid_engine.info(path)
            with contextlib.chdir(folder), self.assertRaisesRegex(InputError, "does not say how it was made"):
                braid_engine.info(path.rename("-plain.png").name)
        with self.assertRaisesRegex(TypeError, "what should be a path, it is 5"):
            braid_engine.info(5)
        with self.assertRaisesRegex(braid_engine.InputError, "there is no model at flux9"):
            braid_engine.plan(b"flux9", "1xrx-7800-xt")

    def test_refuses_with_the_programs_sentence(self) -> None:
        with self.assertRaisesRegex(braid_engine.InputError, "there is no model at flux9"):
            braid_engine.plan("flux9", "1xrx-7800-xt")
        for name in ("a\0b", "\ud800"):
            with self.assertRaisesRegex(InputError, "the arguments of plan should be text, they are"):
                braid_engine.plan(name, "cpu")

    def test_is_read_by_its_own_encoding(self) -> None:
        code = "import braid_engine, sys\ntry: braid_engine.info(bytes.fromhex(sys.argv[1]))\nexcept ValueError as e: print(ascii(str(e)))"
        for name, shown in ((b"gr\xc3\xb6\xc3\x9fe", "gr\\xf6\\xdfe"), (b"gr\xf6", "gr?")):
            for locale in ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {}):
                done = subprocess.run([sys.executable, "-c", code, name.hex()], capture_output=True, text=True, check=False,
                                      env={**os.environ, **locale})
                self.assertIn(f"there is no model at {shown}", done.stdout, done.stderr)

    def test_is_a_command_of_the_environment(self) -> None:
        (command,) = importlib.metadata.entry_points(group="console_scripts", name="braid")
        self.assertEqual(command.value, "braid_engine.__main__:main")
        line = [Path(sys.executable).parent / "braid", "--version"]
        self.assertIn(braid_engine.version(), subprocess.run(line, capture_output=True, text=True, check=True).stdout)


class Words(unittest.TestCase):
    def test_of_layouts(self) -> None:
        for words in ("tp=2,cfg=2", "tp2 cfg2", "cfg 2 x tp 2", {"tp": 2, "cfg": 2}):
            layout = _options.layout_of(words, 4)
            self.assertEqual((layout.tp, layout.cfg, layout.ring), (2, 2, 1), words)
        self.assertEqual(_options.layout_of("pp=3", 3).pp, 3)
        self.assertEqual(_options.layout_of(None, 2).fit, _core.Fit.auto)
        self.assertEqual(_options.layout_of(None, 1).fit, _core.Fit.as_asked)
        for twice in ("tp=2,tp=3", "cfg=2 x cfg_parallel=2", {"cfg": 2, "cfg_parallel": 2}):
            with self.assertRaisesRegex(InputError, "layout should name each axis once"):
                _options.layout_of(twice, 4)

    def test_of_dtypes(self) -> None:
        for value in ("float32", "torch.float32", np.float32, np.dtype("float32"), _core.Dtype.float32):
            self.assertIs(_options.dtype_of(value), _core.Dtype.float32)
            self.assertTrue(_options.is_dtype(value))
        for name in ("cpu", "cuda:1", 0, None):
            self.assertFalse(_options.is_dtype(name))
        with self.assertRaisesRegex(InputError, "dtype should be .*, it is 'float64'"):
            pipeline().to(np.float64)

    def test_of_shares(self) -> None:
        for words in ("tp=3:2,ring=1:4", {"tp": [3, 2], "ring": [1, 4]}):
            shares = _options.layout_of("tp=2,ring=2", 4, words).shares
            self.assertEqual((shares.tp, shares.ring, shares.dp), ([3, 2], [1, 4], []), words)
        self.assertEqual(_options.layout_of("tp=2", 2, "auto").shares_fit, _core.Fit.auto)
        self.assertEqual(_options.layout_of("tp=2", 2).shares_fit, _core.Fit.as_asked)
        for wrong in ("tp", "tp=", "tp=3:2,tp=1:1", "tp=3,2"):
            with self.assertRaisesRegex(InputError, "such as 'tp=3:2,ring=1:1'"):
                _options.layout_of("tp=2", 2, wrong)
        with self.assertRaisesRegex(InputError, "no 'cfg'"):
            _options.layout_of("cfg=2", 2, {"cfg": [1, 2]})
        with self.assertRaisesRegex(InputError, "set them there"):
            _options.layout_of(_core.Layout(), 2, "tp=3:2")

    def test_of_bytes(self) -> None:
        sizes = [_options.bytes_of("memory", text) for text in ("6GB", "6GiB", "1.5 M", "12", 7)]
        self.assertEqual(sizes, [6 * 10**9, 6 * 2**30, 1_500_000, 12, 7])

    def test_of_devices(self) -> None:
        self.assertEqual(_options.devices_of([0, 1]), ["cuda:0", "cuda:1"])
        four = ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
        for given in ("cuda:0-3,cpu", " cuda:0-1, cuda:2,cuda:3 ,cpu", ["cuda:0-3", "cpu"], [np.int64(0), "cuda:1-3", "cpu"]):
            self.assertEqual(_options.devices_of(given), [*four, "cpu"])
        for none in ("cuda:3-1", "cuda:0-", "cuda:1-2-3", "cuda:0-1000000"):
            self.assertEqual(_options.devices_of(none), [none])
        self.assertEqual(_options.devices_of(None), [])

    def test_of_several_devices_imply_a_layout(self) -> None:
        self.assertEqual(_options.layout_of(None, len(_options.devices_of("cuda:0-1"))).fit, _core.Fit.auto)
        pipe = braid_engine.Pipeline.from_pretrained(devices="cpu, cpu")
        self.assertEqual(len(pipe(PROMPT, **RUN).images), 1)

    def test_of_memory(self) -> None:
        memory = _options.memory_of("8GB", None, "int8-dynamic", "auto", {"transformer": "block", "blocks": 2})
        self.assertEqual(memory.quantize, _core.Quantize.int8_dynamic)
        self.assertTrue(memory.budget.may_quantize_text)
        self.assertEqual((memory.offload.transformer, memory.offload.blocks), (_core.OffloadMode.block, 2))
        self.assertEqual(memory.budget.device, 8 * 10**9)
        self.assertTrue(_options.memory_of(None, "8GB", "auto", None, None).budget.may_quantize)
        for forms in (("auto", None), (None, "auto")):
            with self.assertRaisesRegex(InputError, "'auto' needs a budget, .*: give memory or host_memory, too"):
                _options.memory_of(None, None, *forms, None)


class Aliases(unittest.TestCase):
    def test_place_weights_without_changing_pictures(self) -> None:
        pipe = braid_engine.Pipeline.from_pretrained(dtype="float32")
        wanted = pipe(PROMPT, generator=1, **RUN).images[0].tobytes()
        with tempfile.TemporaryDirectory() as folder:
            pipe.enable_group_offload(num_blocks_per_group=2, offload_to_disk_path=folder)
            self.assertTrue(any(Path(folder).iterdir()))
            self.assertEqual(pipe(PROMPT, generator=1, **RUN).images[0].tobytes(), wanted)
        with self.assertRaisesRegex(TypeError, "offload_to_disk_path should be a path, it is 5"):
            pipe.enable_group_offload(offload_to_disk_path=5)
        with self.assertRaisesRegex(InputError, r"or 'leaf_level', it is \['a'\]"):
            pipe.enable_group_offload(offload_type=["a"])
        pipe.enable_vae_tiling()
        pipe.enable_vae_slicing()
        pipe.set_progress_bar_config(disable=None)  # as published examples have it
        self.assertIs(pipe.to("cpu"), pipe)
        self.assertRegex(repr(pipe), "^<braid_engine.Pipeline of '.*/demo' on cpu>$")
        pipe.close()
        with self.assertRaisesRegex(InputError, "closed"):
            pipe(PROMPT)
        self.assertRegex(repr(pipe), "on cpu, closed>$")


class Readable(unittest.TestCase):
    def test_calls_have_typed_arguments(self) -> None:
        known = {field.name for field in dataclasses.fields(Call)} - {"prompt", "extra"}
        others = {"preview", "callback_on_step_end", "callback_on_step_end_tensor_inputs", *OTHER_NAMES}
        self.assertEqual(set(CallArguments.__annotations__), known | others)

    def test_what_callbacks_get_has_names(self) -> None:
        reports: list[typing.Any] = []
        pipe = braid_engine.Pipeline.from_pretrained(progress=reports.append)
        pipe(PROMPT, preview=reports.append, **RUN)
        self.assertEqual({type(one) for one in reports}, {braid_engine.Progress, braid_engine.Preview})
        self.assertIsInstance(reports[0].phase, braid_engine.Phase)
        self.assertIsInstance(pipe.info, braid_engine.ModelInfo)

    def test_calls_have_types(self) -> None:
        for call in (braid_engine.Pipeline.__call__, braid_engine.Pipeline.generate):
            returned = [typing.get_type_hints(one)["return"] for one in typing.get_overloads(call)]
            self.assertEqual(returned, [braid_engine.PipelineOutput, braid_engine.PipelineOutput | tuple[typing.Any]])
        self.assertEqual(typing.get_type_hints(braid_engine.plan)["return"], dict[str, typing.Any])

    def test_the_package_has_its_license_and_no_links_out_of_it(self) -> None:
        package = importlib.metadata.distribution("braid_engine")
        self.assertIn("Apache License", package.read_text("licenses/LICENSE") or "")
        self.assertNotIn("](..", str(package.metadata.get_payload()))

    def test_a_model_shows_what_it_is(self) -> None:
        shown = repr(pipeline().info)
        for words in ("ModelInfo(family='FLUX.1', width=128, ", "pictures=PicturesTaken(takes_init=True, "):
            self.assertIn(words, shown)


if __name__ == "__main__":
    unittest.main()
