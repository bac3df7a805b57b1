"""From the arguments of a call, named as diffusers names them, to requests."""

import operator
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import _core
from ._core import InputError
from ._images import images_in, latents_array, mask_of, meaning_of, output_of, pixels_of, reference_of
from ._numbers import flag_if_given, listed_if_many, number, number_if_given, numbers_in, shown, whole, whole_if_given
from ._reports import warn

# Arguments of diffusers' pipelines that Braid has no counterpart for, and what to do instead.
REFUSED = {
    "prompt_embeds": "give the prompt",
    "pooled_prompt_embeds": "give the prompt",
    "negative_prompt_embeds": "give negative_prompt",
    "negative_pooled_prompt_embeds": "give negative_prompt",
    "prompt_embeds_mask": "give the prompt",
    "negative_prompt_embeds_mask": "give negative_prompt",
    "masked_image_latents": "give image and mask_image",
    "text_encoder_out_layers": "those that the model was trained with are read",
    "caption_upsample_temperature": "give the prompt as it is to be drawn",
    "use_en_prompt": "pictures are not captioned, give the prompt",
    "ip_adapter_image": "there are no IP adapters",
    "ip_adapter_image_embeds": "there are no IP adapters",
    "negative_ip_adapter_image": "there are no IP adapters",
    "negative_ip_adapter_image_embeds": "there are no IP adapters",
    "timesteps": "give sigmas",
}
# What some of their pipelines call an argument that has another name here.
OTHER_NAMES = {
    "attention_kwargs": "joint_attention_kwargs",  # FLUX.2, Krea 2, Qwen-Image
    "cfg_normalization": "cfg_norm_cap",  # Z-Image
    "cfg_truncation": "cfg_until",
    "images": "image",  # JoyAI-Image-Edit-Plus
}


@dataclass
class Call:
    """What a call asks for, with diffusers' names."""

    prompt: Any = None
    prompt_2: Any = None
    negative_prompt: Any = None
    negative_prompt_2: Any = None
    true_cfg_scale: float | None = None
    image: Any = None
    image_reference: Any = None
    mask_image: Any = None
    control_image: Any = None
    control_mask: Any = None
    controlnet_conditioning_scale: Any = 1.0
    control_guidance_start: Any = 0.0
    control_guidance_end: Any = 1.0
    control_mode: Any = None
    strength: float | None = None
    padding_mask_crop: int | None = None
    height: int | None = None
    width: int | None = None
    num_inference_steps: int | None = None
    sigmas: Any = None
    guidance_scale: float | None = None
    num_images_per_prompt: int = 1
    generator: Any = None
    latents: Any = None
    output_type: str = "pil"
    max_sequence_length: int | None = None
    joint_attention_kwargs: Mapping[str, Any] | None = None
    # Braid's own.
    boxes: str = ""
    batch_size: int = 1
    mask_blur: float = 0.0
    guidance_rescale: float = 0.0
    cfg_norm_cap: float = 0.0
    cfg_normalize: bool | None = None
    layers: int | None = None
    resolution: int | None = None
    cfg_until: float = 1.0
    reference_scales: Sequence[float] = ()
    extra: dict[str, Any] = field(default_factory=dict)


def check_text(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} should be text, it has half of a surrogate pair: {text!r}") from None


def texts_of(name: str, texts: Any) -> list[str]:
    if texts is None:
        return []
    if not isinstance(texts, Sequence):
        raise TypeError(f"{name} should be a string or a list of strings, it is {texts!r}")
    listed = [texts] if isinstance(texts, str) else list(texts)
    for text in listed:
        if not isinstance(text, str):
            raise TypeError(f"{name} should be a string or a list of strings, it has {text!r}")
        check_text(name, text)
    return listed


def boxes_of(boxes: Any) -> str:
    if not isinstance(boxes, str):
        raise TypeError(f"boxes should be a string with a JSON array, it is {boxes!r}")
    check_text("boxes", boxes)
    return boxes


def one_text(name: str, texts: Any) -> str | None:
    listed = texts_of(name, texts)
    if len(set(listed)) > 1:
        raise InputError(f"{name} should be one text for all pictures of a call, they differ: make a call for each")
    return listed[0] if listed else None


def seed_of(generator: Any) -> int:
    try:
        seed = int(generator.initial_seed()) if hasattr(generator, "initial_seed") else operator.index(generator)
    except TypeError:
        raise TypeError(
            f"generator should be a seed, a torch.Generator or a list of these, it is {generator!r}"
        ) from None
    if not 0 <= seed < 1 << 64:
        raise InputError(f"a seed should lie between 0 and 2^64 - 1, it is {shown(seed)}")
    return seed


def seeds_of(generator: Any, count: int, *, is_launched: bool) -> list[int]:
    """One seed per picture. Unset: drawn; then counted up from the first, as Braid does."""
    if (listed := listed_if_many(generator)) is not None:
        seeds = [seed_of(one) for one in listed]
        if len(seeds) != count:
            raise InputError(f"there are {len(seeds)} generators for {count} pictures")
        return seeds
    if generator is None and is_launched:
        raise InputError("generator should be a seed where ranks are processes: each would draw its own")
    first = secrets.randbits(32) if generator is None else seed_of(generator)
    return [(first + i) % (1 << 64) for i in range(count)]


def set_followed(control: _core.ControlPicture, scale: Any, begin: Any, end: Any) -> None:
    control.scale = number("controlnet_conditioning_scale", scale)
    control.begin, control.end = number("control_guidance_start", begin), number("control_guidance_end", end)


def each(value: Any, count: int) -> list[Any]:
    listed = listed_if_many(value)
    if listed is None:
        return [value] * count
    if len(listed) != count:
        raise InputError(f"there are {count} control images, but {len(listed)} values for them")
    return listed


def check_unfollowed(call: Call) -> None:
    """Raises for what says how a picture is followed, where none is."""
    usual = {"controlnet_conditioning_scale": 1, "control_guidance_start": 0, "control_guidance_end": 1, "control_mode": None}
    for name, default in usual.items():
        value = getattr(call, name)
        each(value, 0)
        if listed_if_many(value) is None and value is not default and number(name, value) != default:
            raise InputError(f"{name} says how control_image is followed, and there is none: leave it out")


def controls_of(call: Call) -> list[_core.ControlPicture]:
    images = images_in(call.control_image)
    count = len(images)
    controls = [_core.ControlPicture(meaning_of(image)) for image in images]
    for control, scale, begin, end, mode in zip(
        controls,
        each(call.controlnet_conditioning_scale, count),
        each(call.control_guidance_start, count),
        each(call.control_guidance_end, count),
        each(call.control_mode, count),
        strict=True,
    ):
        set_followed(control, scale, begin, end)
        control.mode = whole_if_given("control_mode", mode)
    return controls


def controls_said_once(call: Call) -> list[_core.ControlPicture]:
    """How a ControlNet fills in the initial picture."""
    control = _core.ControlPicture()
    (scale,) = each(call.controlnet_conditioning_scale, 1)
    (begin,) = each(call.control_guidance_start, 1)
    (end,) = each(call.control_guidance_end, 1)
    (mode,) = each(call.control_mode, 1)
    set_followed(control, scale, begin, end)
    control.mode = whole_if_given("control_mode", mode)
    return [control]


def filled_in(call: Call) -> Call:
    """The pipeline whose ControlNet fills a picture in calls that control_image, and the mask control_mask."""
    for own, other in (("control_image", "image"), ("control_mask", "mask_image")):
        if getattr(call, own) is not None and getattr(call, other) is not None:
            raise InputError(f"a picture is filled in: give {own} or {other}, not both")
    return replace(
        call,
        image=call.image if call.image is not None else call.control_image,
        mask_image=call.mask_image if call.mask_image is not None else call.control_mask,
        control_image=None,
        control_mask=None,
    )


def followed_in(call: Call, pictures: _core.PicturesIn, *, fills_in: bool, has_nets: bool) -> list[_core.ControlPicture]:
    """What ControlNets, or models that were trained to, follow: one that would follow nothing is a mistake."""
    if fills_in and pictures.init is not None:
        return controls_said_once(call)
    controls = controls_of(call)
    if has_nets and not controls:
        missing = "image and mask_image" if fills_in else "control_image"
        what = "fills a picture in" if fills_in else "follows a picture, and fills none in"
        raise InputError(f"{missing} should be given: the ControlNet {what}")
    if not controls:
        check_unfollowed(call)
    return controls


def pictures_of(call: Call, info: _core.ModelInfo, *, has_nets: bool) -> _core.PicturesIn:
    """`image` is what pipelines of the model's kind take it for: a start, or something to look at."""
    if info.pictures.net_fills_in:
        call = filled_in(call)
    elif call.control_mask is not None:
        raise InputError("control_mask goes with a ControlNet that fills pictures in: give mask_image")
    pictures = _core.PicturesIn()
    images = images_in(call.image)
    starts = call.mask_image is not None or call.strength is not None or info.pictures.most_references == 0
    if images and starts:
        if len(images) > 1:
            raise InputError(f"a picture starts from one image, {len(images)} were given")
        pictures.init = pixels_of(images[0])
        images = []
    pictures.references = [reference_of(image) for image in [*images, *images_in(call.image_reference)]]
    pictures.reference_scales = numbers_in("reference_scales", call.reference_scales)
    pictures.strength = number_if_given("strength", call.strength)
    if call.mask_image is not None:
        pictures.mask = mask_of(call.mask_image)
    pictures.mask_blur = number("mask_blur", call.mask_blur)
    pictures.padding_crop = whole_if_given("padding_mask_crop", call.padding_mask_crop)
    pictures.controls = followed_in(call, pictures, fills_in=info.pictures.net_fills_in, has_nets=has_nets)
    pictures.resolution = whole_if_given("resolution", call.resolution)
    return pictures


def by_own_names(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Of a call. None stands for the default, a cap of True for 1, and guidance until later than the end for all steps."""
    named = {name: value for name, value in asked.items() if name not in OTHER_NAMES}
    for other, own in OTHER_NAMES.items():
        if (value := asked.get(other)) is None:
            continue
        if named.get(own) is not None:
            raise InputError(f"{other} and {own} are the same argument: give one of them")
        if own in ("cfg_norm_cap", "cfg_until"):
            value = number(other, value)
        named[own] = min(value, 1.0) if own == "cfg_until" else value
    return named


def scale_of(joint_attention_kwargs: Any) -> float:
    """Of all LoRAs."""
    if not isinstance(joint_attention_kwargs, Mapping | None):
        raise TypeError(f"joint_attention_kwargs should be a dictionary with a scale, it is {joint_attention_kwargs!r}")
    given = dict(joint_attention_kwargs or {})
    scale = number("the scale of joint_attention_kwargs", given.pop("scale", 1))
    for name in given:
        raise TypeError(f"joint_attention_kwargs should have no more than a scale, it has {name!r}")
    return scale


def sigmas_of(sigmas: Any) -> list[float]:
    listed = numbers_in("sigmas", sigmas)
    if not listed:
        raise InputError("sigmas should be one number per step, the list is empty: leave it out for the model's")
    return listed


def refuse_unknown(extra: Mapping[str, Any], prompt: Any) -> None:
    for name, value in extra.items():
        if name == "use_en_prompt" and prompt is not None:
            continue  # it is the language of a caption that stands for a missing prompt
        if name in REFUSED:
            if value is not None:
                raise InputError(f"{name} is not taken: {REFUSED[name]}")
        else:
            raise TypeError(f"a pipeline takes no {name!r}")


def request_of(call: Call, info: _core.ModelInfo, *, has_nets: bool) -> _core.Request:
    refuse_unknown(call.extra, call.prompt)
    request = _core.Request()
    request.prompts = texts_of("prompt", call.prompt)
    request.prompts_2 = texts_of("prompt_2", call.prompt_2)
    request.negative_prompt = one_text("negative_prompt", call.negative_prompt)
    request.negative_prompt_2 = one_text("negative_prompt_2", call.negative_prompt_2)
    request.boxes = boxes_of(call.boxes)
    request.guidance = number_if_given("guidance_scale", call.guidance_scale)
    # Some pipelines call the one scale of their guidance true_cfg_scale. Qwen-Image's take a guidance_scale besides, which
    # they do not use, and examples of its models give both.
    if call.true_cfg_scale is not None and info.guidance_kind == _core.GuidanceKind.true:
        if call.guidance_scale is not None and not info.family.startswith("Qwen-Image"):
            raise InputError("this model has one scale of guidance: give true_cfg_scale or guidance_scale, not both")
        if call.guidance_scale is not None:
            warn("guidance_scale is not used: true_cfg_scale is the scale of this model's guidance")
        request.guidance = number("true_cfg_scale", call.true_cfg_scale)
    elif call.true_cfg_scale is not None:
        request.true_cfg = number("true_cfg_scale", call.true_cfg_scale)
    request.guidance_rescale = number("guidance_rescale", call.guidance_rescale)
    request.cfg_norm_cap = number("cfg_norm_cap", call.cfg_norm_cap)
    request.cfg_normalize = flag_if_given("cfg_normalize", call.cfg_normalize)
    request.layers = whole_if_given("layers", call.layers)
    request.cfg_until = number("cfg_until", call.cfg_until)
    request.width = whole_if_given("width", call.width)
    request.height = whole_if_given("height", call.height)
    request.steps = whole_if_given("num_inference_steps", call.num_inference_steps)
    if call.sigmas is not None:
        request.base_sigmas = sigmas_of(call.sigmas)
        request.steps = None
    request.max_sequence_length = whole_if_given("max_sequence_length", call.max_sequence_length)
    request.num_images = whole("num_images_per_prompt", call.num_images_per_prompt)
    request.batch_size = whole("batch_size", call.batch_size)
    request.output = output_of(call.output_type)
    request.pictures = pictures_of(call, info, has_nets=has_nets)
    if call.latents is not None:
        request.set_latents(latents_array(call.latents))
    return request
