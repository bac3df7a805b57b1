"""LoRAs by name equal those that the program computes beside the weights."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings
from pathlib import Path

import numpy as np
from braid_engine import InputError, Pipeline
from braid_engine._adapters import Adapters
from braid_engine._options import MODELS
from braid_engine._program import PROGRAM
from PIL import Image
from shared import PROMPT, RUN, written_lora


class Loras(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.files = [written_lora(Path(self.folder.name) / f"{name}.safetensors", seed) for seed, name in enumerate("ab")]
        self.pipe = Pipeline.from_pretrained(dtype="float32")

    def tearDown(self) -> None:
        self.folder.cleanup()

    def drawn(self, **arguments: object) -> np.ndarray:
        return np.asarray(self.pipe(PROMPT, generator=7, **RUN, **arguments).images[0])

    def of_program(self, *loras: str) -> np.ndarray:
        output = f"{self.folder.name}/picture.png"
        flags = [flag for lora in loras for flag in ("--lora", lora)]
        subprocess.run(
            [str(PROGRAM), "generate", PROMPT, "--size", "64x48", "--steps", "3", "--seed", "7", "--dtype", "float32", "-q"]
            + ["--lora-mode", "unmerged", "--overwrite", "always", "-o", output, *flags],
            check=True,
        )
        return np.asarray(Image.open(output))

    def test_get_names_that_are_free(self) -> None:
        for file in self.files:
            self.pipe.load_lora_weights(file)
        self.pipe.delete_adapters("default_0")
        self.pipe.load_lora_weights(self.files[0])
        self.assertEqual(self.pipe.get_list_adapters(), {"transformer": ["default_1", "default_0"]})

    def test_may_change_while_other_threads_draw(self) -> None:
        adapters, names = Adapters(), ["a", "b", "c"]
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        until = time.monotonic() + 1

        def change() -> None:
            while time.monotonic() < until:
                for name in names:
                    adapters.add(name, name)
                adapters.activate(names, None)
                adapters.remove(names)

        changing = threading.Thread(target=change)
        with warnings.catch_warnings(action="ignore"):
            changing.start()
            while changing.is_alive():
                self.assertLessEqual(len(adapters.active()), len(names))
            changing.join()

    def test_are_added_weighed_and_removed(self) -> None:
        plain = self.drawn()
        self.pipe.load_lora_weights(self.files[0], adapter_name="a", local_files_only=True, use_safetensors=True)
        np.testing.assert_array_equal(self.drawn(), self.of_program(str(self.files[0])))
        self.assertFalse(np.array_equal(self.drawn(), plain))
        self.pipe.load_lora_weights(self.folder.name, weight_name="b.safetensors", adapter_name="b")
        self.pipe.set_adapters(["a", "b"], [0.5, -1.0])
        both = self.of_program(f"{self.files[0]}=0.5", f"{self.files[1]}=-1")
        np.testing.assert_array_equal(self.drawn(), both)
        halved = self.of_program(f"{self.files[0]}=0.25", f"{self.files[1]}=-0.5")
        for name in ("joint_attention_kwargs", "attention_kwargs"):  # FLUX.1's pipelines call it so, and FLUX.2's
            np.testing.assert_array_equal(self.drawn(**{name: {"scale": 0.5}}), halved)
        np.testing.assert_array_equal(self.drawn(joint_attention_kwargs=None, attention_kwargs=None), both)
        self.pipe.set_adapters("b")
        self.assertEqual(self.pipe.get_active_adapters(), ["b"])
        self.pipe.unload_lora_weights()
        np.testing.assert_array_equal(self.drawn(), plain)

    def test_of_which_the_newest_is_active(self) -> None:
        for name, file in zip("ab", self.files, strict=True):
            self.pipe.load_lora_weights(file, adapter_name=name)
        self.assertEqual(self.pipe.get_active_adapters(), ["b"])
        np.testing.assert_array_equal(self.drawn(), self.of_program(str(self.files[1])))
        self.pipe.set_adapters("a", 0.5)
        with self.assertRaisesRegex(InputError, "already an adapter 'a'"):
            self.pipe.load_lora_weights(self.files[1], adapter_name="a")
        with self.assertRaisesRegex(InputError, "nowhere"):
            self.pipe.load_lora_weights("/nowhere.safetensors")
        np.testing.assert_array_equal(self.drawn(), self.of_program(f"{self.files[0]}=0.5"))

    def test_that_are_none_are_refused_when_they_are_loaded(self) -> None:
        rubbish = Path(self.folder.name) / "rubbish.safetensors"
        rubbish.write_bytes(b"rubbish")
        model = MODELS / "demo/vae/diffusion_pytorch_model.safetensors"
        for source in (rubbish, model):
            with self.assertRaisesRegex(InputError, source.name):
                self.pipe.load_lora_weights(source, adapter_name="a")
            self.assertEqual(self.pipe.get_list_adapters(), {"transformer": []})
        self.pipe.load_lora_weights(self.files[0], adapter_name="a")
        with self.assertRaisesRegex(InputError, "rubbish"):
            self.pipe.load_lora_weights(rubbish, adapter_name="b")
        self.assertEqual(self.pipe.get_active_adapters(), ["a"])
        with self.assertRaisesRegex(TypeError, "an adapter's weight should be a number, it is 'x'"):
            self.pipe.set_adapters("a", "x")
        with self.assertRaisesRegex(InputError, "adapter_names should have each name once, it has 'a' 2 times"):
            self.pipe.set_adapters(["a", "a"], [0.5, 0.2])

    def test_leave_the_first_name_active_when_the_active_one_is_deleted(self) -> None:
        for name in "cab":
            self.pipe.load_lora_weights(self.files[0], adapter_name=name)
        self.pipe.set_adapters(["a", "b"], [0.5, 1.0])
        self.pipe.set_adapters(["b", "c"])
        self.pipe.delete_adapters("c")
        self.assertEqual(self.pipe.get_active_adapters(), ["b"])
        with self.assertWarnsRegex(UserWarning, "'b' was the only active one: 'a' is active now") as caught:
            self.pipe.delete_adapters("b")
        self.assertEqual((caught.filename, self.pipe.get_active_adapters()), (__file__, ["a"]))
        np.testing.assert_array_equal(self.drawn(), self.of_program(f"{self.files[0]}=0.5"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.pipe.delete_adapters("a")  # the last
        self.assertEqual(self.pipe.get_active_adapters(), [])

    def test_may_be_deleted_by_names_that_stand_twice(self) -> None:
        for name in "abc":
            self.pipe.load_lora_weights(self.files[0], adapter_name=name)
        self.pipe.delete_adapters(["a", "b", "a"])
        self.assertEqual(self.pipe.get_list_adapters(), {"transformer": ["c"]})

    def test_are_found_after_the_folder_is_changed(self) -> None:
        self.addCleanup(os.chdir, Path.cwd())
        os.chdir(self.folder.name)
        self.pipe.load_lora_weights("a.safetensors")
        os.chdir("/")
        np.testing.assert_array_equal(self.drawn(), self.of_program(str(self.files[0])))

    def test_come_back_as_they_were_active(self) -> None:
        plain = self.drawn()
        for name, file in zip("ab", self.files, strict=True):
            self.pipe.load_lora_weights(file, adapter_name=name)
        self.pipe.set_adapters("a", 0.5)
        wanted = self.drawn()
        self.pipe.disable_lora()
        self.assertEqual(self.pipe.get_active_adapters(), ["a"])
        np.testing.assert_array_equal(self.drawn(), plain)
        self.pipe.enable_lora()
        np.testing.assert_array_equal(self.drawn(), wanted)
        self.pipe.disable_lora()
        self.pipe.set_adapters("b")
        np.testing.assert_array_equal(self.drawn(), plain)
        self.pipe.unload_lora_weights()
        self.pipe.load_lora_weights(self.files[1])
        np.testing.assert_array_equal(self.drawn(), self.of_program(str(self.files[1])))

    def test_that_the_model_has_no_use_for_are_warned_of_by_the_call(self) -> None:
        pipe = Pipeline.from_pretrained(dtype="float32", adapter_mode="unmerged")
        pipe.load_lora_weights(written_lora(Path(self.folder.name) / "c.safetensors", 3, ("to_q", "to_nothing")))
        with self.assertWarnsRegex(UserWarning, "no use for: .*to_nothing"):
            pipe(PROMPT, generator=7, **RUN)
        pipe.load_lora_weights(written_lora(Path(self.folder.name) / "d.safetensors", 4, ("to_q", "to_less")))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(UserWarning, "no use for"):
                pipe(PROMPT, generator=7, **RUN)
        with self.assertWarnsRegex(UserWarning, "no use for: .*to_less"):
            pipe(PROMPT, generator=7, **RUN)

    def test_in_files_whose_names_are_no_utf_8_are_named(self) -> None:
        folder = Path(os.fsdecode(os.fsencode(self.folder.name) + b"/na\xffme"))
        folder.mkdir()
        self.pipe.load_lora_weights(written_lora(folder / "a.safetensors", 1, ("to_q", "to_nothing")))
        with self.assertWarnsRegex(UserWarning, r"na\\xffme/a.safetensors holds .* no use for: .*to_nothing"):
            self.drawn()
        (folder / "b.safetensors").write_bytes(b"rubbish")
        with self.assertRaisesRegex(InputError, r"na\\xffme/b.safetensors"):
            self.pipe.load_lora_weights(folder / "b.safetensors")
        with self.assertRaisesRegex(InputError, r"there is no model at .*na\\xffme/c"):
            Pipeline.from_pretrained(folder / "c")

    def test_of_repositories_are_found_in_the_cache(self) -> None:
        hub = Path(self.folder.name) / "hub"
        for revision in ("a", "b"):
            snapshot = hub / "models--org--ink" / "snapshots" / (revision * 40)
            (snapshot / "kinds").mkdir(parents=True)
            shutil.copy(self.files[revision == "b"], snapshot / "kinds" / "ink.safetensors")
            (snapshot.parents[1] / "refs").mkdir(exist_ok=True)
            (snapshot.parents[1] / "refs" / {"a": "main", "b": "v2"}[revision]).write_text(revision * 40)
        wanted = [self.of_program(str(file)) for file in self.files]
        with unittest.mock.patch.dict(os.environ, {"HF_HUB_CACHE": str(hub)}):
            for source, options, which in (
                ("org/ink/kinds", {}, 0),
                ("org/ink", {"subfolder": "kinds"}, 0),
                ("org/ink", {"weight_name": "kinds/ink.safetensors", "revision": "v2"}, 1),
                ("org/ink@v2", {"weight_name": "ink.safetensors", "subfolder": "kinds"}, 1),
                (hub / "models--org--ink" / "snapshots" / ("b" * 40), {"subfolder": "kinds"}, 1),
            ):
                self.pipe.load_lora_weights(source, **options)
                np.testing.assert_array_equal(self.drawn(), wanted[which])
                self.pipe.unload_lora_weights()
            with self.assertRaisesRegex(InputError, "no adapter at org/none, .* 'braid pull org/none' loads it"):
                self.pipe.load_lora_weights("org/none")

    def test_of_other_kinds_are_named(self) -> None:
        load, file = self.pipe.load_lora_weights, self.files[0]
        for words, call in {
            "a LoRA should be a path, it is None": lambda: load(None),
            "a LoRA should be a path, it is 5": lambda: load(5),
            "weight_name should be a path, it is 5": lambda: load(self.folder.name, weight_name=5),
            "revision should be a string, it is 5": lambda: load(file, revision=5),
            "adapter_name should be a string, it is 5": lambda: load(file, adapter_name=5),
            "adapter_names should be a name or a list of names, it is 5": lambda: self.pipe.set_adapters(5),
            "a list of names, it is None": lambda: self.pipe.delete_adapters(None),
            r"a list of names, it is \['a', 5\]": lambda: self.pipe.set_adapters(["a", 5]),
        }.items():
            with self.subTest(words), self.assertRaisesRegex(TypeError, words):
                call()
        with self.assertRaisesRegex(InputError, "revision goes with a name in Hugging Face's cache, .*a.safetensors is none"):
            load(file, revision="main")

    def test_may_have_arrays_of_weights(self) -> None:
        for file, name in zip(self.files, "ab", strict=True):
            self.pipe.load_lora_weights(file, adapter_name=name)
        self.pipe.set_adapters(["a", "b"], np.array([0.5, -1.0]))
        both = self.of_program(f"{self.files[0]}=0.5", f"{self.files[1]}=-1")
        np.testing.assert_array_equal(self.drawn(), both)

    def test_that_are_not_there_are_named(self) -> None:
        for call in (
            lambda: self.pipe.load_lora_weights("/nowhere.safetensors"),
            lambda: self.pipe.set_adapters("ink"),
            lambda: self.pipe.load_lora_weights({"a.weight": np.zeros(3)}),
        ):
            with self.assertRaisesRegex(InputError, "nowhere|ink|dictionary"):
                call()
        self.assertEqual(self.pipe.get_active_adapters(), [])
        self.assertEqual(self.drawn().shape, (48, 64, 3))


if __name__ == "__main__":
    unittest.main()
