"""Weights in codes against ComfyUI's own sampling with the numbers that they stand for."""

import coded
from jobs import FLUX1, QWEN
from safetensors.torch import load_file, save_file
from session import Case, changed, here, with_components
from workflows import drawn

JOBS = {"flux1": FLUX1, "qwen": QWEN}


class Coded(Case):
    @classmethod
    def setUpClass(cls):
        models = here.base / "models" / "diffusion_models"
        for name in JOBS:
            tensors = load_file(models / f"{name}.safetensors")
            save_file(coded.int8_numbers(tensors), models / f"{name}-int8-numbers.safetensors")
            save_file(coded.write_gguf(tensors, models / f"{name}.gguf"), models / f"{name}-gguf-numbers.safetensors")

    def check(self, name, job, form):
        """`job` against ComfyUI with the file of numbers, which differ from the uncoded ones."""
        wanted = drawn(here.comfy, changed(job, file=f"{name}-{form}-numbers.safetensors"), "comfy", "wanted")
        uncoded = drawn(here.comfy, changed(job, file=f"{name}.safetensors"), "comfy", "uncoded")
        self.assertGreater((wanted - uncoded).abs().max().item(), 1e-3)
        self.assert_close(drawn(here.comfy, job), wanted)

    def test_int8(self):
        for name, plain in JOBS.items():
            job = with_components(plain, name)
            for devices, split in (("cpu", "auto"), ("cpu,cpu", "tp=2")):
                with self.subTest(model=name, split=split):
                    self.check(name, changed(job, devices=devices, split=split, more={**job.more, "weight_form": "int8"}), "int8")

    def test_gguf(self):
        for name, plain in JOBS.items():
            for devices, split in (("cpu", "auto"), ("cpu,cpu", "tp=2")):
                with self.subTest(model=name, split=split):
                    self.check(name, changed(with_components(plain, name, ".gguf"), devices=devices, split=split), "gguf")
