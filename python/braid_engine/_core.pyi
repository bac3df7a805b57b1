from collections.abc import Sequence
import enum
import os
import pathlib
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Error(RuntimeError):
    pass

class InputError(ValueError):
    pass

class Cancelled(RuntimeError):
    pass

class Dtype(enum.Enum):
    auto = 0

    float32 = 1

    bfloat16 = 2

    float16 = 3

class Fit(enum.Enum):
    as_asked = 0

    auto = 1

class Graphs(enum.Enum):
    auto = 0

    off = 1

class TextStream(enum.Enum):
    shared = 0

    own = 1

class AdapterMode(enum.Enum):
    auto = 0

    fused = 1

    unmerged = 2

class Ranks(enum.Enum):
    threads = 0

    processes = 1

class SharedModulation(enum.Enum):
    sharded = 0

    replicated = 1

class TextRanks(enum.Enum):
    rank0 = 0

    tp = 1

class DecodeRanks(enum.Enum):
    rank0 = 0

    ranks = 1

class RingForm(enum.Enum):
    shift = 0

    gather = 1

class Collectives(enum.Enum):
    ordered = 0

    native = 1

class AxisShares:
    def __init__(self) -> None: ...

    @property
    def dp(self) -> list[int]: ...

    @dp.setter
    def dp(self, arg: Sequence[int], /) -> None: ...

    @property
    def pp(self) -> list[int]: ...

    @pp.setter
    def pp(self, arg: Sequence[int], /) -> None: ...

    @property
    def ring(self) -> list[int]: ...

    @ring.setter
    def ring(self, arg: Sequence[int], /) -> None: ...

    @property
    def ulysses(self) -> list[int]: ...

    @ulysses.setter
    def ulysses(self, arg: Sequence[int], /) -> None: ...

    @property
    def tp(self) -> list[int]: ...

    @tp.setter
    def tp(self, arg: Sequence[int], /) -> None: ...

class Layout:
    def __init__(self) -> None: ...

    @property
    def fit(self) -> Fit: ...

    @fit.setter
    def fit(self, arg: Fit, /) -> None: ...

    @property
    def tp(self) -> int: ...

    @tp.setter
    def tp(self, arg: int, /) -> None: ...

    @property
    def ring(self) -> int: ...

    @ring.setter
    def ring(self, arg: int, /) -> None: ...

    @property
    def ulysses(self) -> int: ...

    @ulysses.setter
    def ulysses(self, arg: int, /) -> None: ...

    @property
    def cfg(self) -> int: ...

    @cfg.setter
    def cfg(self, arg: int, /) -> None: ...

    @property
    def dp(self) -> int: ...

    @dp.setter
    def dp(self, arg: int, /) -> None: ...

    @property
    def pp(self) -> int: ...

    @pp.setter
    def pp(self, arg: int, /) -> None: ...

    @property
    def shares(self) -> AxisShares: ...

    @shares.setter
    def shares(self, arg: AxisShares, /) -> None: ...

    @property
    def shares_fit(self) -> Fit: ...

    @shares_fit.setter
    def shares_fit(self, arg: Fit, /) -> None: ...

    @property
    def modulation(self) -> SharedModulation: ...

    @modulation.setter
    def modulation(self, arg: SharedModulation, /) -> None: ...

    @property
    def text(self) -> TextRanks: ...

    @text.setter
    def text(self, arg: TextRanks, /) -> None: ...

    @property
    def decode(self) -> DecodeRanks: ...

    @decode.setter
    def decode(self, arg: DecodeRanks, /) -> None: ...

    @property
    def ring_form(self) -> RingForm: ...

    @ring_form.setter
    def ring_form(self, arg: RingForm, /) -> None: ...

    @property
    def collectives(self) -> Collectives: ...

    @collectives.setter
    def collectives(self, arg: Collectives, /) -> None: ...

    @property
    def deadline(self) -> float: ...

    @deadline.setter
    def deadline(self, arg: float, /) -> None: ...

    @property
    def ranks(self) -> Ranks: ...

    @ranks.setter
    def ranks(self, arg: Ranks, /) -> None: ...

class OffloadMode(enum.Enum):
    none = 0

    model = 1

    block = 2

    leaf = 3

    sequential = 4

class Residency(enum.Enum):
    leading = 0

    strided = 1

class Pin(enum.Enum):
    always = 0

    on_the_fly = 1

    never = 2

class DiskReads(enum.Enum):
    auto = 0

    direct = 1

    mapped = 2

class Offload:
    def __init__(self) -> None: ...

    @property
    def transformer(self) -> OffloadMode: ...

    @transformer.setter
    def transformer(self, arg: OffloadMode, /) -> None: ...

    @property
    def text(self) -> OffloadMode: ...

    @text.setter
    def text(self, arg: OffloadMode, /) -> None: ...

    @property
    def vae(self) -> OffloadMode: ...

    @vae.setter
    def vae(self, arg: OffloadMode, /) -> None: ...

    @property
    def blocks(self) -> int: ...

    @blocks.setter
    def blocks(self, arg: int, /) -> None: ...

    @property
    def prefetch(self) -> int: ...

    @prefetch.setter
    def prefetch(self, arg: int, /) -> None: ...

    @property
    def resident(self) -> int: ...

    @resident.setter
    def resident(self, arg: int, /) -> None: ...

    @property
    def residency(self) -> Residency: ...

    @residency.setter
    def residency(self, arg: Residency, /) -> None: ...

    @property
    def pin(self) -> Pin: ...

    @pin.setter
    def pin(self, arg: Pin, /) -> None: ...

    @property
    def folder(self) -> pathlib.Path: ...

    @folder.setter
    def folder(self, arg: str | os.PathLike, /) -> None: ...

    @property
    def reads(self) -> DiskReads: ...

    @reads.setter
    def reads(self, arg: DiskReads, /) -> None: ...

    @property
    def checks_order(self) -> bool: ...

    @checks_order.setter
    def checks_order(self, arg: bool, /) -> None: ...

class Quantize(enum.Enum):
    none = 0

    int8 = 1

    int8_v1 = 2

    int8_dynamic = 3

    fp8 = 4

class Budget:
    def __init__(self) -> None: ...

    @property
    def device(self) -> int: ...

    @device.setter
    def device(self, arg: int, /) -> None: ...

    @property
    def host(self) -> int: ...

    @host.setter
    def host(self, arg: int, /) -> None: ...

    @property
    def may_quantize(self) -> bool: ...

    @may_quantize.setter
    def may_quantize(self, arg: bool, /) -> None: ...

    @property
    def may_quantize_text(self) -> bool: ...

    @may_quantize_text.setter
    def may_quantize_text(self, arg: bool, /) -> None: ...

class RecordedStep(enum.Enum):
    kept = 0

    dropped = 1

class Memory:
    def __init__(self) -> None: ...

    @property
    def quantize(self) -> Quantize: ...

    @quantize.setter
    def quantize(self, arg: Quantize, /) -> None: ...

    @property
    def quantize_text(self) -> Quantize: ...

    @quantize_text.setter
    def quantize_text(self, arg: Quantize, /) -> None: ...

    @property
    def keep_dense(self) -> list[str]: ...

    @keep_dense.setter
    def keep_dense(self, arg: Sequence[str], /) -> None: ...

    @property
    def offload(self) -> Offload: ...

    @offload.setter
    def offload(self, arg: Offload, /) -> None: ...

    @property
    def recorded_step(self) -> RecordedStep: ...

    @recorded_step.setter
    def recorded_step(self, arg: RecordedStep, /) -> None: ...

    @property
    def budget(self) -> Budget: ...

    @budget.setter
    def budget(self, arg: Budget, /) -> None: ...

    @property
    def preset(self) -> str: ...

    @preset.setter
    def preset(self, arg: str, /) -> None: ...

    @property
    def fit(self) -> Fit: ...

    @fit.setter
    def fit(self, arg: Fit, /) -> None: ...

class CacheMode(enum.Enum):
    off = 0

    first_block = 1

    accumulated = 2

class CacheOptions:
    def __init__(self) -> None: ...

    @property
    def mode(self) -> CacheMode: ...

    @mode.setter
    def mode(self, arg: CacheMode, /) -> None: ...

    @property
    def threshold(self) -> float: ...

    @threshold.setter
    def threshold(self, arg: float, /) -> None: ...

    @property
    def most_in_a_row(self) -> int: ...

    @most_in_a_row.setter
    def most_in_a_row(self, arg: int, /) -> None: ...

    @property
    def polynomial(self) -> list[float]: ...

    @polynomial.setter
    def polynomial(self, arg: Sequence[float], /) -> None: ...

class Adapter:
    def __init__(self, file: str | os.PathLike, scale: float = 1.0) -> None: ...

    @property
    def file(self) -> pathlib.Path: ...

    @file.setter
    def file(self, arg: str | os.PathLike, /) -> None: ...

    @property
    def scale(self) -> float: ...

    @scale.setter
    def scale(self, arg: float, /) -> None: ...

def adapter_in(name: str | os.PathLike) -> pathlib.Path: ...

def check_adapter(name: str | os.PathLike) -> None: ...

class PipelineOptions:
    def __init__(self) -> None: ...

    def copy(self) -> PipelineOptions: ...

    @property
    def model(self) -> pathlib.Path: ...

    @model.setter
    def model(self, arg: str | os.PathLike, /) -> None: ...

    @property
    def components(self) -> pathlib.Path: ...

    @components.setter
    def components(self, arg: str | os.PathLike, /) -> None: ...

    @property
    def published(self) -> pathlib.Path: ...

    @published.setter
    def published(self, arg: str | os.PathLike, /) -> None: ...

    @property
    def comfy(self) -> pathlib.Path: ...

    @comfy.setter
    def comfy(self, arg: str | os.PathLike, /) -> None: ...

    @property
    def text_encoder_files(self) -> list[pathlib.Path]: ...

    @text_encoder_files.setter
    def text_encoder_files(self, arg: Sequence[str | os.PathLike], /) -> None: ...

    @property
    def vae_file(self) -> pathlib.Path: ...

    @vae_file.setter
    def vae_file(self, arg: str | os.PathLike, /) -> None: ...

    @property
    def controlnets(self) -> list[pathlib.Path]: ...

    @controlnets.setter
    def controlnets(self, arg: Sequence[str | os.PathLike], /) -> None: ...

    @property
    def redux(self) -> pathlib.Path: ...

    @redux.setter
    def redux(self, arg: str | os.PathLike, /) -> None: ...

    @property
    def adapters(self) -> list[Adapter]: ...

    @adapters.setter
    def adapters(self, arg: Sequence[Adapter], /) -> None: ...

    @property
    def adapter_mode(self) -> AdapterMode: ...

    @adapter_mode.setter
    def adapter_mode(self, arg: AdapterMode, /) -> None: ...

    @property
    def dtype(self) -> Dtype: ...

    @dtype.setter
    def dtype(self, arg: Dtype, /) -> None: ...

    @property
    def device(self) -> str: ...

    @device.setter
    def device(self, arg: str, /) -> None: ...

    @property
    def devices(self) -> list[str]: ...

    @devices.setter
    def devices(self, arg: Sequence[str], /) -> None: ...

    @property
    def threads(self) -> int: ...

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def graphs(self) -> Graphs: ...

    @graphs.setter
    def graphs(self, arg: Graphs, /) -> None: ...

    @property
    def text_stream(self) -> TextStream: ...

    @text_stream.setter
    def text_stream(self, arg: TextStream, /) -> None: ...

    @property
    def layout(self) -> Layout: ...

    @layout.setter
    def layout(self, arg: Layout, /) -> None: ...

    @property
    def memory(self) -> Memory: ...

    @memory.setter
    def memory(self, arg: Memory, /) -> None: ...

    @property
    def cache(self) -> CacheOptions: ...

    @cache.setter
    def cache(self, arg: CacheOptions, /) -> None: ...

class ReferenceCache(enum.Enum):
    auto = 0

    off = 1

class Pixels:
    def __init__(self, pixels: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def width(self) -> int: ...

    @property
    def height(self) -> int: ...

class ControlPicture:
    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, picture: Pixels) -> None: ...

    @property
    def scale(self) -> float: ...

    @scale.setter
    def scale(self, arg: float, /) -> None: ...

    @property
    def begin(self) -> float: ...

    @begin.setter
    def begin(self, arg: float, /) -> None: ...

    @property
    def end(self) -> float: ...

    @end.setter
    def end(self, arg: float, /) -> None: ...

    @property
    def mode(self) -> int | None: ...

    @mode.setter
    def mode(self, arg: int | None, /) -> None: ...

class PicturesIn:
    def __init__(self) -> None: ...

    @property
    def init(self) -> Pixels | None: ...

    @init.setter
    def init(self, arg: Pixels | None, /) -> None: ...

    @property
    def strength(self) -> float | None: ...

    @strength.setter
    def strength(self, arg: float | None, /) -> None: ...

    @property
    def mask(self) -> Pixels | None: ...

    @mask.setter
    def mask(self, arg: Pixels | None, /) -> None: ...

    @property
    def mask_blur(self) -> float: ...

    @mask_blur.setter
    def mask_blur(self, arg: float, /) -> None: ...

    @property
    def padding_crop(self) -> int | None: ...

    @padding_crop.setter
    def padding_crop(self, arg: int | None, /) -> None: ...

    @property
    def references(self) -> list[Pixels]: ...

    @references.setter
    def references(self, arg: Sequence[Pixels], /) -> None: ...

    @property
    def reference_scales(self) -> list[float]: ...

    @reference_scales.setter
    def reference_scales(self, arg: Sequence[float], /) -> None: ...

    @property
    def reference_cache(self) -> ReferenceCache: ...

    @reference_cache.setter
    def reference_cache(self, arg: ReferenceCache, /) -> None: ...

    @property
    def resolution(self) -> int | None: ...

    @resolution.setter
    def resolution(self, arg: int | None, /) -> None: ...

    @property
    def controls(self) -> list[ControlPicture]: ...

    @controls.setter
    def controls(self, arg: Sequence[ControlPicture], /) -> None: ...

class VaeTiling(enum.Enum):
    auto = 0

    on = 1

    off = 2

class Output(enum.Enum):
    bytes = 0

    values = 1

    latents = 2

class Request:
    def __init__(self) -> None: ...

    @property
    def prompts(self) -> list[str]: ...

    @prompts.setter
    def prompts(self, arg: Sequence[str], /) -> None: ...

    @property
    def prompts_2(self) -> list[str]: ...

    @prompts_2.setter
    def prompts_2(self, arg: Sequence[str], /) -> None: ...

    @property
    def negative_prompt(self) -> str | None: ...

    @negative_prompt.setter
    def negative_prompt(self, arg: str | None, /) -> None: ...

    @property
    def negative_prompt_2(self) -> str | None: ...

    @negative_prompt_2.setter
    def negative_prompt_2(self, arg: str | None, /) -> None: ...

    @property
    def boxes(self) -> str: ...

    @boxes.setter
    def boxes(self, arg: str, /) -> None: ...

    @property
    def true_cfg(self) -> float: ...

    @true_cfg.setter
    def true_cfg(self, arg: float, /) -> None: ...

    @property
    def guidance_rescale(self) -> float: ...

    @guidance_rescale.setter
    def guidance_rescale(self, arg: float, /) -> None: ...

    @property
    def cfg_norm_cap(self) -> float: ...

    @cfg_norm_cap.setter
    def cfg_norm_cap(self, arg: float, /) -> None: ...

    @property
    def cfg_normalize(self) -> bool | None: ...

    @cfg_normalize.setter
    def cfg_normalize(self, arg: bool | None, /) -> None: ...

    @property
    def cfg_until(self) -> float: ...

    @cfg_until.setter
    def cfg_until(self, arg: float, /) -> None: ...

    @property
    def width(self) -> int | None: ...

    @width.setter
    def width(self, arg: int | None, /) -> None: ...

    @property
    def height(self) -> int | None: ...

    @height.setter
    def height(self, arg: int | None, /) -> None: ...

    @property
    def layers(self) -> int | None: ...

    @layers.setter
    def layers(self, arg: int | None, /) -> None: ...

    @property
    def steps(self) -> int | None: ...

    @steps.setter
    def steps(self, arg: int | None, /) -> None: ...

    @property
    def base_sigmas(self) -> list[float]: ...

    @base_sigmas.setter
    def base_sigmas(self, arg: Sequence[float], /) -> None: ...

    @property
    def guidance(self) -> float | None: ...

    @guidance.setter
    def guidance(self, arg: float | None, /) -> None: ...

    @property
    def max_sequence_length(self) -> int | None: ...

    @max_sequence_length.setter
    def max_sequence_length(self, arg: int | None, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def num_images(self) -> int: ...

    @num_images.setter
    def num_images(self, arg: int, /) -> None: ...

    @property
    def batch_size(self) -> int: ...

    @batch_size.setter
    def batch_size(self, arg: int, /) -> None: ...

    @property
    def vae_tiling(self) -> VaeTiling: ...

    @vae_tiling.setter
    def vae_tiling(self, arg: VaeTiling, /) -> None: ...

    @property
    def output(self) -> Output: ...

    @output.setter
    def output(self, arg: Output, /) -> None: ...

    @property
    def pictures(self) -> PicturesIn: ...

    @pictures.setter
    def pictures(self, arg: PicturesIn, /) -> None: ...

    @property
    def adapters(self) -> list[Adapter] | None: ...

    @adapters.setter
    def adapters(self, arg: Sequence[Adapter] | None, /) -> None: ...

    def takes_seeds_apart(self) -> bool: ...

    def copy(self) -> Request: ...

    def set_latents(self, arg: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], /) -> None: ...

class GuidanceKind(enum.Enum):
    none = 0

    embedded = 1

    embedded_or_true = 2

    true = 3

class PicturesTaken:
    @property
    def takes_init(self) -> bool: ...

    @property
    def takes_mask(self) -> bool: ...

    @property
    def needs_mask(self) -> bool: ...

    @property
    def takes_control(self) -> bool: ...

    @property
    def net_fills_in(self) -> bool: ...

    @property
    def most_references(self) -> int: ...

    @property
    def strength(self) -> float: ...

    @property
    def strength_with_mask(self) -> float: ...

    def __repr__(self) -> str: ...

class LayersDrawn:
    @property
    def drawn(self) -> int: ...

    @property
    def most(self) -> int: ...

    @property
    def resolutions(self) -> list[int]: ...

    def __repr__(self) -> str: ...

class ModelInfo:
    @property
    def family(self) -> str: ...

    @property
    def width(self) -> int: ...

    @property
    def height(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def guidance(self) -> float: ...

    @property
    def max_sequence_length(self) -> int: ...

    @property
    def size_multiple(self) -> int: ...

    @property
    def largest_side(self) -> int: ...

    @property
    def max_text_tokens(self) -> int: ...

    @property
    def layers(self) -> LayersDrawn: ...

    @property
    def draws_alpha(self) -> bool: ...

    @property
    def num_texts(self) -> int: ...

    @property
    def guidance_kind(self) -> GuidanceKind: ...

    @property
    def pictures(self) -> PicturesTaken: ...

    def __repr__(self) -> str: ...

class Picture:
    @property
    def width(self) -> int: ...

    @property
    def height(self) -> int: ...

    @property
    def prompt(self) -> str: ...

    @property
    def seed(self) -> int: ...

    @property
    def pixels(self) -> NDArray[numpy.uint8]: ...

    @property
    def values(self) -> NDArray[numpy.float32]: ...

class Phase(enum.Enum):
    load = 0

    text = 1

    denoise = 2

    decode = 3

class Progress:
    @property
    def phase(self) -> Phase: ...

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int: ...

    @property
    def first_picture(self) -> int: ...

    @first_picture.setter
    def first_picture(self, arg: int, /) -> None: ...

    @property
    def num_pictures(self) -> int: ...

class Preview:
    @property
    def picture(self) -> int: ...

    @picture.setter
    def picture(self, arg: int, /) -> None: ...

    @property
    def step(self) -> int: ...

    @property
    def rgb(self) -> NDArray[numpy.uint8]: ...

class StepEnd:
    @property
    def step(self) -> int: ...

    @property
    def timestep(self) -> float: ...

    @property
    def first_picture(self) -> int: ...

    @property
    def latents(self) -> NDArray[numpy.float32]: ...

    @latents.setter
    def latents(self, arg: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], /) -> None: ...

class Stop:
    def __init__(self) -> None: ...

    def request(self) -> None: ...

class Pipeline:
    def __init__(self, options: PipelineOptions, progress: object | None = None, warning: object | None = None, stop: Stop | None = None) -> None: ...

    def generate(self, request: Request, progress: object | None = None, step_end: object | None = None, preview: object | None = None, warning: object | None = None, stop: Stop | None = None) -> list[Picture]: ...

    def info(self) -> ModelInfo: ...

def end_calls() -> None: ...

class TransformerInput:
    def __init__(self, latents: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], text: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)]) -> None: ...

    def set_pooled(self, arg: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], /) -> None: ...

    def set_ids(self, arg0: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], arg1: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], /) -> None: ...

    def add_double_residual(self, arg: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], /) -> None: ...

    def add_single_residual(self, arg: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], /) -> None: ...

    def add_reference_place(self, num_tokens: int, text_before: int) -> None: ...

    @property
    def timesteps(self) -> list[float]: ...

    @timesteps.setter
    def timesteps(self, arg: Sequence[float], /) -> None: ...

    @property
    def target_timesteps(self) -> list[float]: ...

    @target_timesteps.setter
    def target_timesteps(self, arg: Sequence[float], /) -> None: ...

    @property
    def guidance(self) -> list[float]: ...

    @guidance.setter
    def guidance(self, arg: Sequence[float], /) -> None: ...

    @property
    def width(self) -> int: ...

    @width.setter
    def width(self, arg: int, /) -> None: ...

    @property
    def height(self) -> int: ...

    @height.setter
    def height(self, arg: int, /) -> None: ...

    @property
    def num_references(self) -> int: ...

    @num_references.setter
    def num_references(self, arg: int, /) -> None: ...

class Transformer:
    def __init__(self, options: PipelineOptions, warning: object) -> None: ...

    def velocity(self, evaluation: TransformerInput) -> NDArray[numpy.float32]: ...

class PictureAutoencoder:
    def __init__(self, options: PipelineOptions, warning: object) -> None: ...

    def decode(self, latents: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], in_tiles: bool) -> NDArray[numpy.float32]: ...

    def encode(self, pictures: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], in_tiles: bool) -> NDArray[numpy.float32]: ...

def version() -> str: ...

def is_launched() -> bool: ...
