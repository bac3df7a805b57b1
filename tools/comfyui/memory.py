"""ComfyUI's own memory management with Braid's patcher, on a simulated device: python memory.py COMFYUI

No process of Braid runs, and all weights are meta tensors.
"""

import sys
import types
import unittest
from pathlib import Path
from unittest import mock

GB = 10**9
TOTAL = 24 * GB
sys.path.insert(0, sys.argv[1])
sys.argv[1:] = ["--cpu"]

import comfy.options  # noqa: E402

comfy.options.enable_args_parsing()

import comfy.model_management as management  # noqa: E402
import comfy.model_patcher  # noqa: E402
import torch  # noqa: E402
from comfy.patcher_extension import CallbacksMP  # noqa: E402

package = sys.modules["braid_nodes"] = types.ModuleType("braid_nodes")
package.__path__ = [str(Path(__file__).resolve().parents[2] / "comfyui")]

from braid_nodes.denoiser import Denoiser, refuse_arguments  # noqa: E402
from braid_nodes.patcher import Patcher  # noqa: E402
from braid_nodes.process import Refused  # noqa: E402

DEVICE = torch.device("meta")


class SomeDenoiser(Denoiser):
    """Stands for one whose process holds `device_bytes`; `told` is what happened."""

    def __init__(self, device_bytes, told):
        super().__init__({}, {}, {})
        self.device_bytes, self.told = device_bytes, told

    def forward(self):
        pass

    def load(self, weight_patches, identity):
        self.told.append("starts" if not self.is_running else "goes on")
        self.worker = types.SimpleNamespace(is_alive=True, close=lambda: self.told.append("ends"))


class Model(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.diffusion_model = inner

    def get_dtype(self):
        return torch.float32


def own(size):
    """A model of ComfyUI's of so many bytes."""
    weights = torch.nn.Linear(1000, size // 4000, bias=False, device=DEVICE)
    return comfy.model_patcher.ModelPatcher(Model(weights), load_device=DEVICE, offload_device=DEVICE)


class Memory(unittest.TestCase):
    def setUp(self):
        self.told = []
        management.current_loaded_models.clear()
        self.addCleanup(management.current_loaded_models.clear)
        self.enterContext(mock.patch.object(management, "get_free_memory", self.free))
        self.enterContext(mock.patch.object(management, "soft_empty_cache", lambda *_: self.told.append("empties")))

    def free(self, device=None, torch_free_too=False):
        """Of the simulated device, in its place; torch keeps none."""
        taken = sum(loaded.model.loaded_size() for loaded in management.current_loaded_models if loaded.device == DEVICE)
        return (TOTAL - taken, 0) if torch_free_too else TOTAL - taken

    def braid(self, size):
        return Patcher(Model(SomeDenoiser(size, self.told)), load_device=DEVICE, offload_device=DEVICE)

    def loaded(self):
        return [loaded.model for loaded in management.current_loaded_models]

    def test_is_made_for_braid(self):
        text_encoder, braid = own(16 * GB), self.braid(12 * GB)
        management.load_models_gpu([text_encoder])
        self.assertEqual(text_encoder.loaded_size(), 16 * GB)
        management.load_models_gpu([braid])
        self.assertEqual((text_encoder.loaded_size(), braid.loaded_size()), (0, 12 * GB))

    def test_is_not_asked_for_twice(self):
        text_encoder, braid = own(8 * GB), self.braid(12 * GB)
        for _ in range(3):
            management.load_models_gpu([braid])
            management.load_models_gpu([text_encoder])
        management.load_models_gpu([braid.clone()])
        self.assertIn(text_encoder, self.loaded())
        self.assertEqual(self.told.count("starts"), 1)
        self.assertNotIn("ends", self.told)

    def test_that_torch_keeps_is_given_back_before_the_process_starts(self):
        management.load_models_gpu([self.braid(12 * GB)])
        self.assertEqual(self.told, ["empties", "starts"])

    def test_of_braid_is_never_a_neighbours(self):
        for need in (1 * GB, 13 * GB, 100 * GB):
            with self.subTest(need=need):
                braid, vae = self.braid(12 * GB), own(9 * GB)
                management.load_models_gpu([braid])
                management.load_models_gpu([vae])
                management.free_memory(TOTAL + need, DEVICE)
                self.assertEqual(self.loaded(), [braid])
                management.load_models_gpu([vae], memory_required=need)
                self.assertIn(braid, self.loaded())
                self.assertNotIn("ends", self.told)
                management.current_loaded_models.clear()

    def test_of_a_process_on_other_devices_is_none_and_safe(self):
        braid = self.braid(0)
        management.load_models_gpu([braid])
        management.free_memory(2 * TOTAL, DEVICE)
        self.assertEqual(self.loaded(), [braid])
        self.assertNotIn("ends", self.told)

    def test_is_given_back_by_unload_models(self):
        braid = self.braid(12 * GB)
        with mock.patch.object(management, "get_torch_device", lambda: DEVICE):
            management.load_models_gpu([braid])
            management.unload_all_models()
            self.assertEqual(self.loaded(), [])
            self.assertEqual((self.told.count("ends"), braid.loaded_size()), (1, 0))
            management.load_models_gpu([braid])
        self.assertEqual(self.told.count("starts"), 2)


class Callbacks(unittest.TestCase):
    def test_are_told_of_loading_as_by_comfyuis_patcher(self):
        self.addCleanup(management.current_loaded_models.clear)
        told = []
        cpu = torch.device("cpu")
        for patcher in (comfy.model_patcher.ModelPatcher(Model(torch.nn.Linear(2, 2)), load_device=cpu, offload_device=cpu),
                        Patcher(Model(SomeDenoiser(0, [])), load_device=cpu, offload_device=cpu)):
            patcher.add_callback(CallbacksMP.ON_LOAD, lambda *given: told.append(len(given)))
            management.load_models_gpu([patcher])
        self.assertEqual(len(told), 2)
        self.assertEqual(told[0], told[1])


class Arguments(unittest.TestCase):
    def test_meant_for_controlnets_are_left_out(self):
        refuse_arguments({"crossattn_controlnet": torch.zeros(1), "another": None})
        with self.assertRaisesRegex(Refused, "takes no 'another'"):
            refuse_arguments({"another": torch.zeros(1)})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
