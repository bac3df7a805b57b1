"""Braid's transformer inside a pipeline of diffusers, which goes on with its own schedulers and callbacks.

    import braid_engine.diffusers  # before torch, so that waiting threads sleep
    pipe = diffusers.FluxPipeline.from_pretrained(folder)
    braid_engine.diffusers.accelerate(pipe, devices=[0, 1], layout="tp=2")
"""

import os
from collections.abc import Callable, Collection
from typing import Any

from . import _core, _options
from ._diffusers_autoencoders import KINDS as AUTOENCODERS
from ._diffusers_autoencoders import AcceleratedAutoencoder
from ._diffusers_transformers import KINDS, Accelerated
from .pipeline import warn

__all__ = ["Accelerated", "AcceleratedAutoencoder", "accelerate"]


def folder_of(pipe: Any) -> str:
    """Where the pipeline was loaded from."""
    name = getattr(pipe.config, "_name_or_path", "") or getattr(pipe, "name_or_path", "")
    name = name or getattr(pipe, "_pretrained_model_name_or_path", "")  # of a modular pipeline
    if not name:
        raise ValueError("where the pipeline's files are is not known: give accelerate() model=, the folder or its name")
    return str(name)


def check_unchanged(pipe: Any) -> None:
    adapters = pipe.get_active_adapters() if hasattr(pipe, "get_active_adapters") and hasattr(pipe.transformer, "peft_config") else []
    if adapters:
        raise ValueError(
            f"the transformer has adapters ({', '.join(adapters)}), which Braid reads from files: unload them, and give "
            "accelerate() loras={file: scale}"
        )


def check_known(original: Any, kinds: Collection[str]) -> None:
    if type(original).__name__ not in kinds:
        raise ValueError(f"Braid has no {type(original).__name__}; it has {', '.join(kinds)}")


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
    loras: dict[str, float] | None = None,
    warning: Callable[[str], Any] = warn,
) -> Any:
    """Replaces the pipeline's transformer by Braid's, read from the pipeline's files; returns the pipeline.

    devices, layout, shares, dtype (None: the pipeline's), quantization, memory, offload, threads: as
    Pipeline.from_pretrained(). model: the folder or name, if the pipeline was not loaded from one. loras: files and
    their scales. autoencoder: replaces the autoencoder as well, by one on the first of the devices.

    Raises ValueError for a model that Braid does not have, and InputError with Braid's sentence.
    """
    original = pipe.transformer
    check_known(original, KINDS)
    if autoencoder:
        check_known(pipe.vae, AUTOENCODERS)
    check_unchanged(pipe)
    options = _core.PipelineOptions()
    options.model = os.fspath(model) if model is not None else folder_of(pipe)
    options.published = _options.MODELS / "published"
    options.dtype = _options.dtype_of(dtype if dtype is not None else original.dtype)
    options.devices = _options.devices_of(devices)
    options.threads = threads
    options.adapters = [_core.Adapter(file, scale) for file, scale in (loras or {}).items()]
    options.layout = _options.layout_of(layout, len(options.devices), shares)
    options.memory = _options.memory_of(memory, None, quantization, None, offload)
    engine = _core.Transformer(options, warning)
    if autoencoder:
        options.adapters = []
        options.dtype = _options.dtype_of(dtype if dtype is not None else pipe.vae.dtype)
        pipe.vae = AcceleratedAutoencoder(pipe.vae, _core.PictureAutoencoder(options, warning))
    pipe.transformer = KINDS[type(original).__name__](original, engine, getattr(pipe, "vae_scale_factor", 8))
    return pipe
