"""LoRAs by name equal those that the program computes beside the weights."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
from braid_engine import Pipeline
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

    def test_are_added_weighed_and_removed(self) -> None:
        plain = self.drawn()
        self.pipe.load_lora_weights(self.files[0], adapter_name="a")
        np.testing.assert_array_equal(self.drawn(), self.of_program(str(self.files[0])))
        self.assertFalse(np.array_equal(self.drawn(), plain))
        self.pipe.load_lora_weights(self.folder.name, weight_name="b.safetensors", adapter_name="b")
        self.pipe.set_adapters(["a", "b"], [0.5, -1.0])
        both = self.of_program(f"{self.files[0]}=0.5", f"{self.files[1]}=-1")
        np.testing.assert_array_equal(self.drawn(), both)
        halved = self.of_program(f"{self.files[0]}=0.25", f"{self.files[1]}=-0.5")
        np.testing.assert_array_equal(self.drawn(joint_attention_kwargs={"scale": 0.5}), halved)
        self.pipe.set_adapters("b")
        self.assertEqual(self.pipe.get_active_adapters(), ["b"])
        self.pipe.unload_lora_weights()
        np.testing.assert_array_equal(self.drawn(), plain)

    def test_that_are_not_there_are_named(self) -> None:
        for call in (
            lambda: self.pipe.load_lora_weights("/nowhere.safetensors"),
            lambda: self.pipe.set_adapters("ink"),
            lambda: self.pipe.load_lora_weights({"a.weight": np.zeros(3)}),
        ):
            with self.assertRaisesRegex(ValueError, "nowhere|ink|dictionary"):
                call()
        self.assertEqual(self.pipe.get_active_adapters(), [])
        self.assertEqual(self.drawn().shape, (48, 64, 3))


if __name__ == "__main__":
    unittest.main()
