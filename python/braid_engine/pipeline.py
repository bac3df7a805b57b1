"""Pipelines with the names that diffusers uses."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, Unpack, overload

from . import _core, _options
from ._adapters import Adapters, adapter_path, names_of, text_if_given
from ._call_arguments import CallArguments
from ._call_thread import CallThread
from ._core import InputError, is_launched
from ._images import outputs_of
from ._numbers import flag_if_given, whole
from ._output import PipelineOutput
from ._reports import counted_from, warn
from ._requests import Call, by_own_names, request_of, scale_of, seeds_of
from ._step_ends import check_callable, step_ends_of

Change = Callable[[_core.PipelineOptions], Any]
CALL_FIELDS = {field.name for field in fields(Call)} - {"extra"}
# Arguments that say how diffusers reads files, which Braid finds out by itself.
HOW_TO_READ = {"use_safetensors", "low_cpu_mem_usage", "local_files_only", "variant"}


def _check_how_to_read(function: str, kwargs: dict[str, Any]) -> None:
    """Raises for what would be read otherwise than it says."""
    for name in kwargs:
        if name not in HOW_TO_READ:
            raise TypeError(f"{function}() takes no {name!r}")
    if (variant := kwargs.get("variant")) is not None:
        raise InputError(
            f"variant is not taken, it is {variant!r}: files without one come first, then bf16 before fp16, and dtype= says what is "
            "computed in"
        )
    if (only := kwargs.get("use_safetensors")) is not None and flag_if_given("use_safetensors", only) is False:
        raise InputError("use_safetensors should be True or left out: pickled weights (.bin, .pt) are not read")


class Pipeline:
    """A loaded model. Any number of threads may share one; its calls run one at a time.

    Made by from_pretrained() and from_single_file().
    """

    def __init__(self, options: _core.PipelineOptions, *, progress: Callable[[_core.Progress], Any] | None = None) -> None:
        self._options = options  # of the engine; replaced, never changed
        self._progress = progress
        self._adapters = Adapters()
        self._tiling = _core.VaeTiling.auto
        self._engine: _core.Pipeline | None = None  # None also after a change that failed
        self._is_closed = self._is_loading = self._interrupt = False
        self._thread = CallThread()
        self._lock = threading.RLock()  # while it loads; not while it draws
        self._load(options)

    @classmethod
    def from_pretrained(
        cls,
        model: str | os.PathLike[str] | None = None,
        *,
        dtype: Any = None,
        torch_dtype: Any = None,
        devices: Any = None,
        layout: Any = None,
        shares: Any = None,
        quantization: str | None = None,
        text_quantization: str | None = None,
        memory: Any = None,
        host_memory: Any = None,
        offload: Any = None,
        threads: int = 0,
        cache: Any = None,
        components: str | os.PathLike[str] | None = None,
        comfy: str | os.PathLike[str] | None = None,
        controlnets: Any = None,
        redux: str | os.PathLike[str] | None = None,
        text_encoder_files: Any = None,
        vae_file: str | os.PathLike[str] | None = None,
        adapter_mode: str = "auto",
        graphs: str = "auto",
        revision: str | None = None,
        progress: Callable[[_core.Progress], Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Loads a model.

        model: a folder in the diffusers layout, a single file, or a name in Hugging Face's cache; None: the small
            model that comes with Braid.
        dtype: "float32", "bfloat16", "float16" or torch's; None: the one that the model is stored in.
        devices: one for all ranks or one per rank: "cuda:0-3", [0, 1], "cpu", ["cpu", "cpu"].
        layout: "tp=2,cfg=2", a dictionary, or "auto", which several devices imply. Ranks are threads, or the
            processes that torchrun, mpirun or srun started.
        shares: "tp=3:2", {"tp": [3, 2]}, or "auto": how ranks divide their work where devices are not alike; "auto"
            goes by the speed of a product that is measured once. Needs a layout that is given.
        quantization, text_quantization: "int8", "int8-dynamic", "int8-v1", "fp8"; "auto": if a budget needs it.
        memory, host_memory: budgets, such as "12GB". offload: "model", "block", "leaf", "sequential", or a dictionary.
        progress: called with phase, done and total while loading and in every call.

        Raises InputError (a ValueError) with a sentence that names the file and the fact.
        """
        _check_how_to_read("from_pretrained", kwargs)
        check_callable("progress", progress)
        options = _core.PipelineOptions()
        bundled = _options.MODELS / "demo" if comfy is None else ""
        name = _options.path_of("model", bundled if model is None else model)
        options.model = _options.with_revision(name, text_if_given("revision", revision))
        options.published = _options.MODELS / "published"
        options.components = _options.path_of("components", components)
        options.comfy = _options.path_of("comfy", comfy)
        options.redux = _options.path_of("redux", redux)
        options.vae_file = _options.path_of("vae_file", vae_file)
        options.controlnets = _options.paths_of("controlnets", controlnets)
        options.text_encoder_files = _options.paths_of("text_encoder_files", text_encoder_files)
        options.adapter_mode = _options.word(_core.AdapterMode, "adapter_mode", adapter_mode)
        options.graphs = _options.word(_core.Graphs, "graphs", graphs)
        options.dtype = _options.dtype_of(dtype if dtype is not None else torch_dtype)
        options.devices = _options.devices_of(devices)
        options.threads = whole("threads", threads)
        options.layout = _options.layout_of(layout, len(options.devices), shares)
        options.memory = _options.memory_of(memory, host_memory, quantization, text_quantization, offload)
        options.cache = _options.cache_of(cache)
        return cls(options, progress=progress)

    @classmethod
    def from_single_file(cls, file: str | os.PathLike[str], **kwargs: Any) -> Self:
        """Loads a .safetensors or .gguf file: a transformer, or a checkpoint with all parts. See from_pretrained()."""
        path = _options.path_of("file", file)
        if not os.path.isfile(path):
            raise InputError(f"{path} should be a file")
        return cls.from_pretrained(path, **kwargs)

    def _load(self, options: _core.PipelineOptions) -> _core.Pipeline:
        if self._is_loading:
            raise _core.Error("a callback of this pipeline cannot call it: it is loading")
        self._engine = None  # its memory is free before other weights come
        self._is_loading = True
        try:
            engine = _core.Pipeline(options, self._progress, warn)
        finally:
            self._is_loading = False
        self._options = options
        self._engine = None if self._is_closed else engine  # a callback may close it
        return engine

    def _change(self, change: Change) -> None:
        """Loads the model again with other options. If that fails, the next call loads it as it was."""
        with self._lock:
            self._check_open()
            options = self._options.copy()
            change(options)
            self._load(options)

    def _check_open(self) -> None:
        if self._is_closed:
            raise InputError("the pipeline is closed")

    def _loaded(self) -> _core.Pipeline:
        with self._lock:
            self._check_open()
            return self._engine or self._load(self._options)

    @property
    def info(self) -> _core.ModelInfo:
        """Defaults and limits: info.family, info.steps, info.pictures.takes_mask, ..."""
        return self._loaded().info()

    def __repr__(self) -> str:
        """What it was loaded from, and where to: as from_pretrained() takes it."""
        model, devices = str(self._options.model), list(self._options.devices) or [self._options.device]
        state = ", closed" if self._is_closed else ""
        return f"<braid_engine.Pipeline of {model!r} on {', '.join(map(str, devices))}{state}>"

    def __reduce__(self) -> NoReturn:
        """For pickle and copy."""
        raise TypeError("a pipeline cannot be pickled or copied: call from_pretrained() again, in the process that is to draw")

    @overload
    def __call__(self, prompt: Any = None, *, return_dict: Literal[True] = True, **kwargs: Unpack[CallArguments]) -> PipelineOutput: ...

    @overload
    def __call__(self, prompt: Any = None, *, return_dict: bool, **kwargs: Unpack[CallArguments]) -> PipelineOutput | tuple[Any]: ...

    def __call__(self, prompt: Any = None, **kwargs: Any) -> PipelineOutput | tuple[Any]:
        """Draws pictures: one call of diffusers' pipelines, with their arguments' names.

        prompt, prompt_2, negative_prompt, negative_prompt_2, true_cfg_scale, guidance_scale, height, width,
        num_inference_steps, sigmas (before the model's shift), num_images_per_prompt, max_sequence_length, latents,
        image, image_reference, mask_image, strength, padding_mask_crop, control_image and what goes with it,
        generator (a seed, a torch.Generator or a list of these), output_type ("pil", "np", "pt", "latent"),
        return_dict, joint_attention_kwargs={"scale": ...}, callback_on_step_end and its tensor inputs ("latents").
        Braid's own: boxes (a JSON array, for FLUX.3), batch_size, mask_blur, guidance_rescale, cfg_norm_cap, cfg_until, reference_scales, preview;
        layers, resolution and cfg_normalize, for Qwen-Image-Layered. images, attention_kwargs, cfg_normalization and
        cfg_truncation of other pipelines are image, joint_attention_kwargs, cfg_norm_cap and cfg_until.

        Unset arguments take the model's defaults. Raises InputError (a ValueError); an exception of a callback and
        Ctrl-C end the call within a step.
        """
        return self._run(prompt, kwargs)

    @overload
    async def generate(self, prompt: Any = None, *, return_dict: Literal[True] = True, **kwargs: Unpack[CallArguments]) -> PipelineOutput: ...

    @overload
    async def generate(self, prompt: Any = None, *, return_dict: bool, **kwargs: Unpack[CallArguments]) -> PipelineOutput | tuple[Any]: ...

    async def generate(self, prompt: Any = None, **kwargs: Any) -> PipelineOutput | tuple[Any]:
        """The same for asyncio: callbacks run on another thread, and cancelling the task ends the call."""
        stop, begun = _core.Stop(), threading.Event()
        task = self._thread.run(self._run, prompt, kwargs, stop, begun)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            stop.request()
            if not begun.is_set():
                task.cancel()  # it waits for a thread or for weights, and will draw nothing
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await task
            raise

    def _run(
        self, prompt: Any, kwargs: dict[str, Any], stop: _core.Stop | None = None, begun: threading.Event | None = None
    ) -> PipelineOutput | tuple[Any]:
        engine = self._loaded()
        if begun:
            begun.set()
        asked = by_own_names(kwargs)
        return_dict = asked.pop("return_dict", True)
        callback, inputs = asked.pop("callback_on_step_end", None), asked.pop("callback_on_step_end_tensor_inputs", ["latents"])
        step_end = step_ends_of(self, callback, inputs)
        preview = asked.pop("preview", None)
        check_callable("preview", preview)
        known = {name: asked.pop(name) for name in list(asked) if name in CALL_FIELDS}
        call = Call(prompt=prompt, **known, extra=asked)
        request = request_of(call, engine.info(), has_nets=bool(self._options.controlnets))
        request.vae_tiling = self._tiling
        scale = scale_of(call.joint_attention_kwargs)
        if self._adapters.files:
            request.adapters = self._adapters.active(scale)
        parts = self._with_seeds(request, call.generator)
        if len(parts) > 1 and request.batch_size > 1:
            warn(f"the batch size {request.batch_size} is not used: with generators of their own, pictures are drawn one by one")
        pictures: list[_core.Picture] = []
        for i, one in enumerate(parts):
            progress = counted_from(i, "first_picture", self._progress)
            pictures += engine.generate(one, progress, step_end, counted_from(i, "picture", preview), warn, stop)
        images = outputs_of(pictures, call.output_type)
        output = PipelineOutput(images=images)
        return output if return_dict else output.to_tuple()

    def _with_seeds(self, request: _core.Request, generator: Any) -> list[_core.Request]:
        """One request where seeds count up, else one for each picture."""
        prompts, per_prompt = request.prompts, request.num_images
        if not prompts:
            return [request]  # which is refused as a whole
        count = max(1, len(prompts) * per_prompt)
        seeds = seeds_of(generator, count, is_launched=is_launched())
        request.seed = seeds[0]
        if seeds == [seeds[0] + i for i in range(count)]:
            return [request]
        if len(request.prompts_2) not in (0, len(prompts)):
            return [request]  # which is refused as a whole
        if not request.takes_seeds_apart():
            raise InputError("with latents, generators should have seeds that count up: the first one's is used")
        apart = []
        for i, seed in enumerate(seeds):
            one = request.copy()
            one.prompts = [prompts[i // per_prompt]]
            one.prompts_2 = request.prompts_2[i // per_prompt : i // per_prompt + 1]
            one.num_images = 1
            one.seed = seed
            apart.append(one)
        return apart

    @property
    def interrupt(self) -> bool:
        """What a callback_on_step_end sets to end the steps, by diffusers' `_interrupt` or here. What is there by then
        is decoded; the steps that remain still take their time."""
        return self._interrupt

    @interrupt.setter
    def interrupt(self, wanted: bool) -> None:
        self._interrupt = wanted

    # LoRAs.

    def load_lora_weights(
        self,
        source: Any,
        *,
        weight_name: str | None = None,
        subfolder: str | None = None,
        revision: str | None = None,
        adapter_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Adds a LoRA and its kin: a file, or a folder or a repository in Hugging Face's cache, with `weight_name`
        where it has several. It becomes the only active one, and stays unmerged; the weights are loaded again the
        first time unless adapter_mode="unmerged" was asked for. How diffusers reads files changes nothing here:
        use_safetensors=True, low_cpu_mem_usage, local_files_only."""
        _check_how_to_read("load_lora_weights", kwargs)
        file = adapter_path(source, weight_name, subfolder, revision)
        unmerged = _core.AdapterMode.unmerged
        with self._lock:
            active = self._adapters.scales
            name = self._adapters.add(file, text_if_given("adapter_name", adapter_name))
            try:
                self._check_adapters()
                _core.check_adapter(file)
                if self._options.adapter_mode != unmerged:
                    self._change(lambda options: setattr(options, "adapter_mode", unmerged))
            except BaseException:
                self._adapters.take_back(name, active)
                raise

    def _check_adapters(self) -> None:
        for name, file in self._adapters.files.items():
            if not os.path.exists(file):
                raise InputError(f"the adapter {name!r} is not at {file}")

    def set_adapters(self, adapter_names: str | Sequence[str], adapter_weights: Any = None) -> None:
        """Makes these the active ones, each with its weight; 1 if none is given."""
        self._adapters.activate(names_of(adapter_names), adapter_weights)

    def get_active_adapters(self) -> list[str]:
        """Also while disable_lora() keeps them from pictures."""
        return list(self._adapters.scales)

    def get_list_adapters(self) -> dict[str, list[str]]:
        return {"transformer": list(self._adapters.files)}

    def delete_adapters(self, adapter_names: str | Sequence[str]) -> None:
        """As peft, with a warning: where it leaves no active one, the first name of those that remain is."""
        self._adapters.remove(names_of(adapter_names))

    def disable_lora(self) -> None:
        """Draws without LoRAs until enable_lora()."""
        self._adapters.is_enabled = False

    def enable_lora(self) -> None:
        """Draws with the active ones again, each with its weight."""
        self._adapters.is_enabled = True

    def unload_lora_weights(self) -> None:
        self._adapters = Adapters()

    # Where weights live: what the planner does by itself, asked for by diffusers' names.

    def _offload(self, mode: _core.OffloadMode, device: Any, **changes: Any) -> None:
        def change(options: _core.PipelineOptions) -> None:
            if device is not None:
                options.devices = _options.devices_of(device)
            offload = options.memory.offload
            offload.transformer = offload.text = offload.vae = mode
            _options.set_fields(offload, "offload", changes)

        self._change(change)

    def enable_model_cpu_offload(self, gpu_id: int | None = None, device: Any = None) -> None:
        """One part at a time on the device. Loads the model again: offload="model" in from_pretrained() saves that."""
        self._offload(_core.OffloadMode.model, gpu_id if device is None else device)

    def enable_sequential_cpu_offload(self, gpu_id: int | None = None, device: Any = None) -> None:
        """One layer at a time on the device. Loads the model again, as enable_model_cpu_offload()."""
        self._offload(_core.OffloadMode.sequential, gpu_id if device is None else device)

    def enable_group_offload(
        self,
        onload_device: Any = None,
        offload_device: Any = "cpu",
        offload_type: str = "block_level",
        num_blocks_per_group: int = 1,
        offload_to_disk_path: str | os.PathLike[str] | None = None,
        low_cpu_mem_usage: bool = False,
        use_stream: bool = False,
        record_stream: bool = False,
        non_blocking: bool = False,
    ) -> None:
        """Some blocks or layers at a time on the device, always copied by a stream of its own. Loads the model again, as enable_model_cpu_offload()."""
        modes = {"block_level": _core.OffloadMode.block, "leaf_level": _core.OffloadMode.leaf}
        if not isinstance(offload_type, str) or offload_type not in modes:
            raise InputError(f"offload_type should be 'block_level' or 'leaf_level', it is {offload_type!r}")
        changes: dict[str, Any] = {"blocks": num_blocks_per_group}
        if offload_to_disk_path is not None:
            changes["folder"] = _options.path_of("offload_to_disk_path", offload_to_disk_path)
        if low_cpu_mem_usage:
            changes["pin"] = _core.Pin.on_the_fly
        self._offload(modes[offload_type], onload_device, **changes)

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """Loads the model again, unless it is there already."""
        if _options.is_dtype(device):
            device, dtype = None, device
        with self._lock:
            now = self._options
            devices = _options.devices_of(device) or now.devices
            wanted = now.dtype if dtype is None else _options.dtype_of(dtype)

            def change(options: _core.PipelineOptions) -> None:
                options.devices, options.dtype = devices, wanted

            if wanted != now.dtype or (devices or [now.device]) != (now.devices or [now.device]):
                self._change(change)
        return self

    def enable_vae_tiling(self) -> None:
        self._tiling = _core.VaeTiling.on

    def disable_vae_tiling(self) -> None:
        self._tiling = _core.VaeTiling.off

    def enable_vae_slicing(self) -> None:
        """Pictures are always decoded one by one."""

    def disable_vae_slicing(self) -> None:
        """Pictures are always decoded one by one."""

    def enable_attention_slicing(self, slice_size: Any = None) -> None:
        """Attention never holds all of its scores."""

    def disable_attention_slicing(self) -> None:
        """Attention never holds all of its scores."""

    def set_progress_bar_config(self, **config: Any) -> None:
        """There is no bar: `progress` of from_pretrained() gets what one would show."""

    def close(self) -> None:
        """Gives the memory back. Later calls raise."""
        with self._lock:
            self._is_closed = True
            self._engine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
