"""Braid's transformer inside a pipeline of diffusers, which goes on with its own schedulers and callbacks.

    import braid_engine.diffusers  # before torch, so that waiting threads sleep
    pipe = diffusers.FluxPipeline.from_pretrained(folder)
    braid_engine.diffusers.accelerate(pipe, devices=[0, 1], layout="tp=2")
"""

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from . import _core, _options
from ._core import InputError
from ._diffusers_autoencoders import KINDS as AUTOENCODERS
from ._diffusers_autoencoders import AcceleratedAutoencoder
from ._diffusers_sources import source_of
from ._diffusers_transformers import KINDS, Accelerated
from ._numbers import number, whole
from ._reports import warn

__all__ = ["Accelerated", "AcceleratedAutoencoder", "accelerate"]


def check_unchanged(pipe: Any) -> None:
    adapters = pipe.get_active_adapters() if hasattr(pipe, "get_active_adapters") and hasattr(pipe.transformer, "peft_config") else []
    if adapters:
        raise InputError(
            f"the transformer has adapters ({', '.join(adapters)}), which Braid reads from files: unload them, and give "
            "accelerate() loras={file: scale}"
        )
    if fused := getattr(pipe, "num_fused_loras", 0):
        loras = "1 LoRA is" if fused == 1 else f"{fused} LoRAs are"
        raise InputError(
            f"the transformer should have the weights of its files, {loras} fused into it: load the pipeline without, and "
            "give accelerate() loras={file: scale}"
        )


def check_known(original: Any, kinds: Collection[str]) -> None:
    if type(original).__name__ not in kinds:
        raise InputError(f"Braid has no {type(original).__name__}; it has {', '.join(kinds)}")


def refuse_to_save(*_: Any, **__: Any) -> None:
    raise InputError("a pipeline whose transformer Braid computes has no weights to save: save it before accelerate()")


def placed(model: str | os.PathLike[str]) -> str:
    """The model, also after os.chdir(), by its whole path; names in Hugging Face's cache have none."""
    return os.path.abspath(model) if os.path.exists(model) else os.fspath(model)


def adapters_of(loras: Any) -> list[_core.Adapter]:
    if loras is None:
        return []
    if not isinstance(loras, Mapping):
        raise TypeError(f"loras should be a dictionary of files and their scales, it is {loras!r}")
    return [_core.Adapter(_options.path_of("a LoRA", file), number(f"the scale of {file}", scale)) for file, scale in loras.items()]


def accelerate(
    pipe: Any,
    *,
    autoencoder: bool = False,
    model: str | os.PathLike[str] | None = None,
    devices: Any = None,
    layout: Any = None,
    shares: Any = None,
    dtype: Any = None,
    quantization: str | None = None,
    memory: Any = None,
    offload: Any = None,
    threads: int = 0,
    loras: Mapping[str | os.PathLike[str], float] | None = None,
    warning: Callable[[str], Any] = warn,
) -> Any:
    """Replaces the pipeline's transformer by Braid's, read from the files that it was loaded from; returns the pipeline.

    devices, layout, shares, dtype (None: the pipeline's), quantization, memory, offload, threads: as
    Pipeline.from_pretrained(). model: the folder or name, if the pipeline or its transformer was not loaded from
    one. loras: files and their scales. autoencoder: replaces the autoencoder as well, by one on the first of the devices.

    Raises InputError with a sentence, for a model that Braid does not have, too.
    """
    original = pipe.transformer
    check_known(original, KINDS)
    if autoencoder:
        check_known(pipe.vae, AUTOENCODERS)
    check_unchanged(pipe)
    options = _core.PipelineOptions()
    options.model = placed(model if model is not None else source_of(pipe, "transformer", warning))
    vae_model = "" if not autoencoder else placed(model if model is not None else source_of(pipe, "vae", warning))
    options.published = _options.MODELS / "published"
    options.dtype = _options.dtype_of(dtype if dtype is not None else original.dtype)
    options.devices = _options.devices_of(devices)
    options.threads = whole("threads", threads)
    options.adapters = adapters_of(loras)
    options.layout = _options.layout_of(layout, len(options.devices), shares)
    options.memory = _options.memory_of(memory, None, quantization, None, offload)
    engine = _core.Transformer(options, warning)
    transformer = KINDS[type(original).__name__](original, engine, getattr(pipe, "vae_scale_factor", 8))
    if autoencoder:
        options.model = vae_model
        options.adapters = []
        options.dtype = _options.dtype_of(dtype if dtype is not None else pipe.vae.dtype)
        pipe.vae = AcceleratedAutoencoder(pipe.vae, _core.PictureAutoencoder(options, warning))
    pipe.transformer = transformer
    pipe.save_pretrained = refuse_to_save
    return pipe
