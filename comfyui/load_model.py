"""Load Model (Braid): a MODEL of ComfyUI whose denoiser runs in Braid's ranks."""

import tempfile

import comfy.model_detection
import comfy.model_management
import comfy.utils
import torch

from . import header
from .denoiser import FluxDenoiser, ZImageDenoiser, interrupted
from .fields import AS_STORED, AUTO
from .model_files import path_of
from .patcher import Patcher, refuse_saving
from .process import Interrupted, Refused, Worker
from .qwen_image import MARK_AT_ZERO, MARK_LAYERED, QwenImageDenoiser


# A tensor that tells a model from an older one, what the configuration has in a ComfyUI that knows it, and the model's name.
NEWER = (
    ("double_stream_modulation_img.lin.weight", "global_modulation", "FLUX.2"),
    ("x_pad_token", "z_image_modulation", "Z-Image"),
    (MARK_AT_ZERO, "default_ref_method", "Qwen-Image-Edit-2511"),
    (MARK_LAYERED, "use_additional_t_cond", "Qwen-Image-Layered"),
)


def denoiser_of(config, tensors):
    for mark, setting, model in NEWER:
        if mark in tensors and setting not in config:
            raise Refused(f"this file is {model}, which this ComfyUI does not know and would draw otherwise: 0.8.0 knows it")
    kind = config.get("image_model")
    if kind in ("flux", "flux2"):
        return FluxDenoiser
    if kind == "lumina2" and config.get("z_image_modulation"):
        return ZImageDenoiser
    if kind == "qwen_image":
        return QwenImageDenoiser
    raise Refused(f"ComfyUI takes this file for a model of the kind {kind!r}, which Braid does not run as a MODEL: FLUX.1, "
                  "FLUX.2, Z-Image and Qwen-Image")


def own_device():
    device = comfy.model_management.get_torch_device()
    return "cpu" if device.type == "cpu" else f"{device.type}:{device.index or 0}"


def config_of(tensors, name):
    """ComfyUI's configuration of a model with such tensors, and them by the names that it uses."""
    config = comfy.model_detection.model_config_from_unet(dict(tensors), "")
    if config is None:
        try:
            tensors = comfy.model_detection.convert_diffusers_mmdit(dict(tensors), "")
        except (NotImplementedError, RuntimeError):  # it joins tensors, which are not there
            tensors = None
        config = tensors and comfy.model_detection.model_config_from_unet(dict(tensors), "")
    if config is None:
        raise Refused(f"{name} is no model that this ComfyUI knows by the names of its tensors")
    return config, tensors


def without_prefix(tensors):
    prefix = comfy.model_detection.unet_prefix_from_state_dict(tensors)
    inner = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    return inner or tensors


def load_model(file, devices, split, weight_form, offload, dtype, components, threads):
    """(MODEL, the plan's text). Raises Refused with Braid's sentence; nothing is left running then."""
    path = path_of(file)
    config, tensors = config_of(without_prefix(header.tensors_of(path)), file)
    kind = denoiser_of(config.unet_config, tensors)
    options = {
        "model": path,
        "components": components.strip(),
        "devices": [d.strip() for d in (devices.strip() or own_device()).split(",")],
        "split": split.strip() or AUTO,
        "quantization": None if weight_form == AS_STORED else weight_form,
        "offload": None if offload == AUTO else offload,
        "dtype": None if dtype == AUTO else dtype,
        "threads": threads,
    }
    denoiser = kind(config.unet_config, tensors, options)
    plan = planned(denoiser)
    options["split"], denoiser.device_bytes = plan["split"], plan["bytes"].get(own_device(), 0)
    return patcher_of(config, denoiser), plan["text"]


def planned(denoiser):
    """The plan's text, the split to run, and the bytes on each device. Braid's process ends with the answer: it holds
    nothing worth keeping."""
    worker = Worker()
    try:
        with tempfile.TemporaryDirectory(prefix="braid-plan-") as folder:
            answer, _ = worker.ask("plan", {"options": denoiser.options_in(folder)}, interrupted=interrupted)
        return answer
    except Interrupted:
        comfy.model_management.throw_exception_if_processing_interrupted()
        raise
    finally:
        worker.close()


def no_memory(input_shape, cond_shapes=None):
    """An evaluation takes none of ComfyUI's."""
    return 0


def patcher_of(config, denoiser):
    load_device = comfy.model_management.get_torch_device()
    offload_device = comfy.model_management.unet_offload_device()
    config.unet_config = {**config.unet_config, "disable_unet_model_creation": True}
    config.quant_config = None
    config.set_inference_dtype(torch.float32, None)
    model = config.get_model(denoiser.state_dict(), "")
    model.diffusion_model = denoiser
    model.memory_required = no_memory
    model.state_dict_for_saving = refuse_saving
    return Patcher(model.to(offload_device), load_device=load_device, offload_device=offload_device)
