"""What calls of a pipeline take, for type checkers and editors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from ._core import Preview


class CallArguments(TypedDict, total=False):
    """By diffusers' names, then Braid's own. `prompt` and `return_dict` are the call's."""

    prompt_2: str | Sequence[str] | None
    negative_prompt: str | Sequence[str] | None
    negative_prompt_2: str | Sequence[str] | None
    true_cfg_scale: float | None
    image: Any
    images: Any
    image_reference: Any
    mask_image: Any
    control_image: Any
    control_mask: Any
    controlnet_conditioning_scale: Any
    control_guidance_start: Any
    control_guidance_end: Any
    control_mode: Any
    strength: float | None
    padding_mask_crop: int | None
    height: int | None
    width: int | None
    num_inference_steps: int | None
    sigmas: Any
    guidance_scale: float | None
    num_images_per_prompt: int
    generator: Any
    latents: Any
    output_type: Literal["pil", "np", "pt", "latent"]
    max_sequence_length: int | None
    joint_attention_kwargs: Mapping[str, Any] | None
    attention_kwargs: Mapping[str, Any] | None
    cfg_normalization: bool | float | None
    cfg_truncation: float | None
    callback_on_step_end: Callable[[Any, int, float, dict[str, Any]], Any] | None
    callback_on_step_end_tensor_inputs: Sequence[str]
    boxes: str
    batch_size: int
    mask_blur: float
    guidance_rescale: float
    cfg_norm_cap: float
    cfg_normalize: bool | None
    layers: int | None
    resolution: int | None
    cfg_until: float
    reference_scales: Sequence[float]
    preview: Callable[[Preview], Any] | None
