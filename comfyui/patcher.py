"""ComfyUI's patcher of a model whose weights are in Braid's process."""

import comfy.model_management
import comfy.model_patcher
from comfy.patcher_extension import CallbacksMP

from .denoiser import REACHES_INSIDE, refuse_patches
from .patches import PREFIX
from .process import Refused


EVERYTHING = 1e29  # bytes: "unload models" asks for more, no model needs as much


class Held(float):
    """Bytes of Braid's process. ComfyUI unloads parts of a model that is larger than what a neighbour needs, else the whole of
    it: this is larger than every need, so that only "unload models" ends the process."""

    def __gt__(self, need):
        return need < EVERYTHING


def refuse_saving(*args, **kwargs):
    raise Refused("ComfyUI cannot save a model whose weights are in Braid's process: its file has them, and 'braid convert --lora' "
                  "writes one with LoRAs in its weights")


class Patcher(comfy.model_patcher.ModelPatcher):
    """Loading starts Braid's process, unloading ends it. ComfyUI makes room for it as for a model of its own."""

    def model_size(self):
        return self.model.diffusion_model.device_bytes

    def loaded_size(self):
        denoiser = self.model.diffusion_model
        return Held(denoiser.device_bytes) if denoiser.is_running else 0

    def add_hook_patches(self, *args, **kwargs):
        raise Refused(f"a hook that changes weights while sampling {REACHES_INSIDE}")

    def set_model_compute_dtype(self, dtype):
        if dtype is not None:
            raise Refused("the node ModelComputeDtype does not reach Braid's process: Load Model (Braid) has an input dtype")
        super().set_model_compute_dtype(dtype)

    def state_dict_for_saving(self, *args, **kwargs):
        """Of a ComfyUI that asks its patcher; 0.3.64 asks the model."""
        refuse_saving()

    def refuse_unfit(self):
        refuse_patches(self.model_options.get("transformer_options", {}))
        for name in self.object_patches:
            if name.startswith(PREFIX):
                raise Refused(f"the patch of {name!r} {REACHES_INSIDE}")
        for name in self.weight_wrapper_patches:
            raise Refused(f"the wrapper of the weight {name!r} {REACHES_INSIDE}")
        for name, injections in self.injections.items():
            if injections:
                raise Refused(f"the injection {name!r} {REACHES_INSIDE}")

    def load(self, device_to=None, lowvram_model_memory=0, force_patch_weights=False, full_load=True, **kwargs):
        if not self.model.diffusion_model.is_running:
            comfy.model_management.soft_empty_cache()  # another process cannot use what torch keeps for this one
        self.model.diffusion_model.load(self.patches, self.patches_uuid if self.patches else "")
        self.model.device = device_to
        self.model.to(device_to)  # the tables of its sampling
        self.model.current_weight_patches_uuid = self.patches_uuid
        for callback in self.get_all_callbacks(CallbacksMP.ON_LOAD):
            callback(self, device_to, lowvram_model_memory, force_patch_weights, full_load)

    def partially_load(self, device_to, extra_memory=0, force_patch_weights=False):
        self.refuse_unfit()
        with self.use_ejected(skip_and_inject_on_exit_only=True):
            self.unpatch_model(self.offload_device, unpatch_weights=False)  # what another clone patched
            try:
                self.patch_model(device_to)
            except Exception:
                self.detach()
                raise
        return 0

    def partially_unload(self, device_to, memory_to_free=0, force_patch_weights=False):
        """Frees nothing: with another answer ComfyUI would unload the whole. It measures by itself what is free then."""
        return memory_to_free

    def unpatch_model(self, device_to=None, unpatch_weights=True):
        super().unpatch_model(device_to, unpatch_weights)
        if unpatch_weights:
            self.model.diffusion_model.unload()
