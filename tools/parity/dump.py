"""Run diffusers' pipeline of a directory and write every number worth comparing.

usage: python dump.py PIPELINE OUT.safetensors --prompt "a red circle" --size 64x64 --steps 2 ...

Writes what `braid generate --dump` does, as float32 with several pictures stacked along the batch:
prompt_embeds, FLUX.1's pooled_prompt_embeds, latents_initial, sigmas, timesteps, velocity_first (for
the positive prompt), latents_final (latents are packed: [batch, tokens, channels], in Z-Image's
tokens channels are fastest); and image (uint8 BHWC). Input pictures have random colours.
"""
import argparse
import dataclasses
import inspect
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TQDM_DISABLE", "1")  # FLUX.3's blocks have no other switch
import diffusers
import numpy as np
import redux
import torch
import transformers
from diffusers.image_processor import VaeImageProcessor
from PIL import Image
from safetensors.torch import save_file
from torch.nn.utils.rnn import pad_sequence

diffusers.utils.logging.set_verbosity_error()
diffusers.utils.logging.disable_progress_bar()
transformers.utils.logging.disable_progress_bar()
warnings.simplefilter("ignore")


@dataclass
class Request:
    """One request: the options of `braid generate`."""
    prompts: tuple = ("a red circle on a blue background",)
    prompt_2: str | None = None
    negative_prompt: str | None = None
    negative_prompt_2: str | None = None
    true_cfg: float = 1.0
    cfg_norm_cap: float = 0.0       # Z-Image's cfg_normalization; 0: off
    cfg_until: float = 1.0          # its cfg_truncation
    width: int = 64
    height: int = 64
    steps: int = 2
    guidance: float = 3.5
    max_sequence_length: int = 32
    seed: int = 0
    num_images: int = 1
    vae_tiling: bool = False
    references: tuple = ()          # (width, height) of each
    transparent: tuple = ()         # which references have alpha
    layers: int | None = None       # Qwen-Image-Layered's, as are the next two
    resolution: int | None = None   # instead of width and height, which are then 0
    cfg_normalize: bool = False
    boxes: tuple = ()               # FLUX.3's: rows of a layout, with sides from 0 to 1
    init: tuple | None = None       # (width, height) of the picture to start from
    strength: float = 0.6
    mask: bool | str = False        # of the size of init; True or a name in MASKS
    mask_blur: float = 0.0
    padding_crop: int | None = None
    control: tuple | None = None    # (width, height)
    followed: tuple = ()            # pictures that ControlNets follow: (width, height) of each
    control_scales: tuple = ()      # one per picture, as are the next ones; empty: 1, 0, 1, none
    control_from: tuple = ()
    control_to: tuple = ()
    control_modes: tuple = ()
    looked_at: tuple = ()           # pictures for Redux: (width, height) of each
    looked_scales: tuple = ()       # one per picture; empty: 1


def load(pipeline, dtype="float32", parts=None):
    """`parts` replace those of the directory, by name."""
    import modular_flux3  # here, as it imports this one

    if modular_flux3.is_modular(Path(pipeline)):
        return modular_flux3.Pipeline(Path(pipeline), dtype, parts)
    pipe = diffusers.DiffusionPipeline.from_pretrained(
        pipeline, torch_dtype=getattr(torch, dtype), **(parts or {}))
    pipe.set_progress_bar_config(disable=True)
    if parts:  # left in files in part: a pipeline takes the device of a weight, "meta", for its own
        cpu = property(lambda _: torch.device("cpu"))
        pipe.__class__ = type(type(pipe).__name__, (type(pipe),), {"device": cpu, "_execution_device": cpu})
    if "QwenImageEdit" in type(pipe).__name__:
        import random_qwen_image  # here, as its modules import this one

        random_qwen_image.mend(pipe, Path(pipeline))
    is_flux = "Flux" in type(pipe).__name__
    net = diffusers.FluxControlNetModel if is_flux else diffusers.QwenImageControlNetModel
    pipe.nets = [net.from_pretrained(folder, torch_dtype=getattr(torch, dtype))
        for folder in sorted(Path(pipeline).glob("controlnet_*"))]
    if (folder := Path(pipeline) / "redux").is_dir():
        pipe.redux = redux.load(folder, pipe, getattr(torch, dtype))
    return pipe


def generators(request):
    """One per picture: all of the first prompt, then of the second; seed, seed + 1, ..."""
    count = len(request.prompts) * request.num_images
    return [torch.Generator().manual_seed(request.seed + i) for i in range(count)]


def texts(request):
    """The pipeline's text arguments; each needs one entry per prompt."""
    given = {"prompt_2": request.prompt_2, "negative_prompt": request.negative_prompt,
             "negative_prompt_2": request.negative_prompt_2}
    given = {key: text for key, text in given.items() if text is not None}
    return {"prompt": list(request.prompts)} | {
        key: [text] * len(request.prompts) for key, text in given.items()}


def seeded_steps(pipe, noise):
    """The pipeline passes step() no generator, so stochastic steps would not repeat. Here they get the
    pictures' own generators, which continue after the initial latents."""
    step = type(pipe.scheduler).step
    pipe.scheduler.step = lambda *args, **options: step(
        pipe.scheduler, *args, generator=noise, **options)


def set_tiling(pipe, on):
    (pipe.vae.enable_tiling if on else pipe.vae.disable_tiling)()


def random_picture(place, size):
    """Depends only on its place in the request and its size."""
    width, height = size
    return Image.fromarray(np.random.default_rng([place, width, height]).integers(
        0, 256, (height, width, 3), np.uint8))


def transparent_picture(place, size):
    """Random alpha too, with clear and opaque quarters."""
    picture, (width, height) = random_picture(place, size), size
    alpha = np.array(random_picture(500 + place, size))[..., 0]
    alpha[:height // 2, :width // 2] = 0
    alpha[height // 2:, width // 2:] = 255
    picture.putalpha(Image.fromarray(alpha))
    return picture


def reference_pictures(request):
    return [(transparent_picture if i in request.transparent else random_picture)(i, size)
            for i, size in enumerate(request.references)]


def followed_pictures(request):
    return [random_picture(300 + i, size) for i, size in enumerate(request.followed)]


def looked_at_pictures(request):
    return [random_picture(400 + i, size) for i, size in enumerate(request.looked_at)]


# Levels of grey at relative places, from 0 at the top left to 1.
MASKS = {
    True: lambda x, y: x * 200 + y * 100 - 30,
    "white": lambda x, y: 255 + 0 * x,
    "black": lambda x, y: 0 * x,
    "grey": lambda x, y: 110 + 0 * x,
    "dot": lambda x, y: 255.0 * ((x > 0.6) & (x < 0.8) & (y > 0.3) & (y < 0.45)),
    "corner": lambda x, y: 255.0 * ((x > 0.75) & (y > 0.75)),
    "frame": lambda x, y: 255.0 * ((x < 0.1) | (x > 0.9) | (y < 0.1) | (y > 0.9)),
    "column": lambda x, y: 255.0 * ((x > 0.45) & (x < 0.55)),
    "noise": lambda x, y: np.random.default_rng(x.shape).integers(0, 256, x.shape)}


def mask_picture(size, kind=True):
    """Slightly tinted."""
    y, x = np.mgrid[:size[1], :size[0]]
    level = MASKS[kind](x / size[0], y / size[1])
    tint = 20 if kind is True else 0
    return Image.fromarray(np.stack([level, level + tint, level + 2 * tint], -1).clip(0, 255)
                           .astype(np.uint8))


def pictures_in(request):
    """A request's input pictures except references, by their names in Request."""
    pictures = {}
    if request.init:
        pictures["init"] = random_picture(100, request.init)
    if request.mask:
        pictures["mask"] = mask_picture(request.init, request.mask)
    if request.control:
        pictures["control"] = random_picture(200, request.control)
    return pictures


# The pipelines with the same parts that start from a picture, without and with a mask.
FROM_PICTURE = {
    "FluxPipeline": (diffusers.FluxImg2ImgPipeline, diffusers.FluxInpaintPipeline),
    "FluxFillPipeline": (None, diffusers.FluxFillPipeline),
    "FluxKontextPipeline": (None, diffusers.FluxKontextInpaintPipeline),
    "FluxControlNetPipeline": (diffusers.FluxControlNetImg2ImgPipeline,
                               diffusers.FluxControlNetInpaintPipeline),
    "Flux2KleinPipeline": (None, diffusers.Flux2KleinInpaintPipeline),
    "QwenImagePipeline": (diffusers.QwenImageImg2ImgPipeline, diffusers.QwenImageInpaintPipeline),
    "ZImagePipeline": (diffusers.ZImageImg2ImgPipeline, diffusers.ZImageInpaintPipeline)}


def fills_in(pipe, request):
    """Whether a ControlNet follows the initial picture and its mask."""
    return bool(request.init) and any(
        getattr(net.config, "extra_condition_channels", 0) for net in getattr(pipe, "nets", ()))


def filled_in(pipe, request, given):
    """The pipeline whose ControlNet fills a picture in, and its arguments. It samples the masked picture
    from torch's global generator before it draws the noise; that one gets the state that the
    request's generator has after the noise, as if the sample followed it."""
    made = diffusers.QwenImageControlNetInpaintPipeline(**pipe.components, controlnet=pipe.nets[0])
    made.set_progress_bar_config(disable=True)
    channels = made.transformer.config.in_channels // 4

    def prepare_image_with_mask(*args, **options):
        generator = torch.Generator().manual_seed(request.seed)
        rows, columns = (2 * (side // (2 * pipe.vae_scale_factor)) for side in
                         (request.height, request.width))
        torch.randn((1, 1, channels, rows, columns), generator=generator, dtype=made.transformer.dtype)
        torch.set_rng_state(generator.get_state())
        return type(made).prepare_image_with_mask(made, *args, **options)

    made.prepare_image_with_mask = prepare_image_with_mask
    options = {"control_image": given["init"][0], "control_mask": given["mask"][0]}
    for name, values in (("controlnet_conditioning_scale", request.control_scales),
                         ("control_guidance_start", request.control_from),
                         ("control_guidance_end", request.control_to)):
        if values:
            options[name] = values[0]
    return made, options


def with_nets(pipe, request):
    """The pipeline whose ControlNets follow the request's pictures, and its arguments for them."""
    if not request.followed:
        return pipe, {}
    count = len(request.followed)
    options = {
        "control_image": followed_pictures(request),
        "controlnet_conditioning_scale": list(request.control_scales or [1.0] * count),
        "control_guidance_start": list(request.control_from or [0.0] * count),
        "control_guidance_end": list(request.control_to or [1.0] * count),
        "control_mode": list(request.control_modes or [None] * count)}
    is_flux = "Flux" in type(pipe).__name__
    several = (diffusers.FluxMultiControlNetModel if is_flux
               else diffusers.QwenImageMultiControlNetModel)
    net = several(pipe.nets)
    if not is_flux:
        del options["control_mode"]
    if count == 1:
        net, options = pipe.nets[0], {name: values[0] for name, values in options.items()}
    made = (diffusers.FluxControlNetPipeline if is_flux else diffusers.QwenImageControlNetPipeline)(
        **pipe.components, controlnet=net)
    made.set_progress_bar_config(disable=True)
    return made, options


def lay_back(pipe, given, options):
    """Makes the pipeline paste back a drawn region as FluxInpaintPipeline does: klein's crops its
    centre, Kontext's and that of ControlNets do not paste."""
    overlay = VaeImageProcessor(vae_scale_factor=1).apply_overlay
    if "Klein" in type(pipe).__name__:
        pipe.image_processor.apply_overlay = overlay
        return
    postprocess = pipe.image_processor.postprocess

    def laid_back(pixels, **kind):
        drawn = postprocess(pixels, **kind)
        region = pipe.mask_processor.get_crop_region(
            given["mask"], *drawn[0].size, pad=options["padding_mask_crop"])
        return [overlay(given["mask"], given["init"], picture, region) for picture in drawn]

    pipe.image_processor.postprocess = laid_back


def with_pictures(pipe, request):
    """The pipeline that takes the request's pictures, and its arguments for them. Input pictures are
    repeated for each output picture, so that the reference draws a sample for each."""
    count = len(request.prompts) * request.num_images
    given = {name: [picture] * count for name, picture in pictures_in(request).items()}
    if "mask" in given:
        given["mask"] = [VaeImageProcessor.blur(mask, request.mask_blur) for mask in given["mask"]]
    if "control" in given:
        return pipe, {"control_image": given["control"][0]}
    if fills_in(pipe, request):
        return filled_in(pipe, request, given)
    pipe, followed = with_nets(pipe, request)
    if "init" not in given:
        return pipe, followed
    kind = FROM_PICTURE[type(pipe).__name__][bool(request.mask)]
    taken = inspect.signature(kind.__init__).parameters
    made = kind(**{name: part for name, part in pipe.components.items() if name in taken})
    made.set_progress_bar_config(disable=True)
    side = 2 * pipe.vae_scale_factor
    size = request.width // side * side, request.height // side * side
    if "ZImage" in type(made).__name__:  # which does not resize them
        given["init"] = [picture.resize(size, Image.LANCZOS) for picture in given["init"]]
    takes_one = any(word in type(made).__name__ for word in ("Klein", "Kontext"))
    if request.padding_crop is not None or takes_one:
        given = {name: pictures[0] for name, pictures in given.items()}
    options = followed | {"image": given["init"], "strength": request.strength}
    if "Kontext" in type(made).__name__:  # which resizes both pictures or none
        options["_auto_resize"] = bool(request.references)
    if request.padding_crop is not None:
        options["padding_mask_crop"] = request.padding_crop
        if takes_one or "ControlNet" in type(made).__name__:
            lay_back(made, given, options)
    return made, options | ({"mask_image": given["mask"]} if request.mask else {})


class Flux:
    """How FluxPipeline is called, and what is kept of its first evaluation."""
    side = 16                       # of a token, in pixels
    alone = False                   # whether each prompt has a call of its own
    longest = 1 << 30               # max_sequence_length that the pipeline allows

    def generators(self, request):
        return generators(request)

    def arguments(self, pipe, request):
        return texts(request) | {"true_cfg_scale": request.true_cfg,
                                 "guidance_scale": request.guidance}

    def number(self, request):
        return {"num_images_per_prompt": request.num_images}

    def latents(self, packed, request):
        """What the pipeline calls latents."""
        return packed

    def prepared(self, made):
        """The latents in what prepare_latents returns."""
        return made if torch.is_tensor(made) else made[0]

    def packed(self, latents):
        return latents

    def pictures(self, made):
        """Those that the pipeline returns, one after another."""
        return made

    def evaluation(self, args, options, output, tokens, count):
        """`tokens` is the number of noise tokens, `count` that of pictures."""
        return {"prompt_embeds": options["encoder_hidden_states"],
                "pooled_prompt_embeds": options["pooled_projections"], "velocity_first": output[0]}


class Klein(Flux):
    """Negative prompts are passed as embeddings; the default is the empty prompt."""

    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts), "guidance_scale": request.true_cfg}
        if request.references:
            given["image"] = reference_pictures(request)
        if request.negative_prompt is not None:
            given["negative_prompt_embeds"] = pipe.encode_prompt(
                [request.negative_prompt] * len(request.prompts),
                max_sequence_length=request.max_sequence_length)[0]
        return given

    def latents(self, packed, request):
        rows, columns = request.height // self.side, request.width // self.side
        return packed.transpose(1, 2).unflatten(2, (rows, columns))

    def evaluation(self, args, options, output, tokens, count):
        return {"prompt_embeds": options["encoder_hidden_states"],
                "velocity_first": output[0][:, :tokens]}


class KeptKlein(Klein):
    """Without guidance of any kind."""

    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts)}
        return given | ({"image": reference_pictures(request)} if request.references else {})


class Dev(Klein):
    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts), "guidance_scale": request.guidance}
        return given | ({"image": reference_pictures(request)} if request.references else {})


class ZImage(Flux):
    """Its transformer takes lists of pictures and prompts; under guidance the negative ones follow."""

    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts), "guidance_scale": request.true_cfg,
                 "cfg_normalization": request.cfg_norm_cap, "cfg_truncation": request.cfg_until}
        if request.negative_prompt is not None:
            given["negative_prompt"] = [request.negative_prompt] * len(request.prompts)
        return given

    def latents(self, packed, request):
        rows, columns = request.height // self.side, request.width // self.side
        patches = packed.unflatten(2, (2, 2, -1)).unflatten(1, (rows, columns))
        return patches.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)

    def packed(self, latents):
        patches = latents.unflatten(3, (-1, 2)).unflatten(2, (-1, 2))
        return patches.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)

    def evaluation(self, args, options, output, tokens, count):
        velocity = -torch.stack([one.float() for one in output[0][:count]]).squeeze(2)
        return {"prompt_embeds": pad_sequence(args[2][:count], batch_first=True),
                "velocity_first": self.packed(velocity)}


class Kontext(Flux):
    """Keeps the requested size."""

    def arguments(self, pipe, request):
        given = super().arguments(pipe, request) | {"max_area": request.width * request.height}
        return given | ({"image": reference_pictures(request)[:1]} if request.references else {})

    def evaluation(self, args, options, output, tokens, count):
        kept = super().evaluation(args, options, output, tokens, count)
        return kept | {"velocity_first": output[0][:, :tokens]}


class Tool(Flux):
    """Fill and Control have no true guidance."""

    def arguments(self, pipe, request):
        return {"prompt": list(request.prompts), "guidance_scale": request.guidance} | (
            {"prompt_2": [request.prompt_2] * len(request.prompts)} if request.prompt_2 else {})


class Joy(Flux):
    """The reference sample is drawn from torch's global generator. The noise uses that one too, so the
    sample's draws follow it."""

    def generators(self, request):
        return [torch.manual_seed(request.seed)]

    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts), "guidance_scale": request.true_cfg}
        if request.negative_prompt is not None:
            given["negative_prompt"] = [request.negative_prompt] * len(request.prompts)
        return given | ({"image": reference_pictures(request)[0]} if request.references else {})

    def packed(self, latents):
        """The last item, which is the one drawn."""
        drawn = latents[:, -1].squeeze(2)
        patches = drawn.unflatten(3, (-1, 2)).unflatten(2, (-1, 2))
        return patches.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

    def evaluation(self, args, options, output, tokens, count):
        return {"prompt_embeds": options["encoder_hidden_states"],
                "velocity_first": self.packed(output[0])}


class JoyPlus(Joy):
    """Latents are patches, first the drawn ones, then references; guidance is one batch."""

    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts), "guidance_scale": request.true_cfg}
        if request.negative_prompt is not None:
            given["negative_prompt"] = [request.negative_prompt] * len(request.prompts)
        return given | ({"images": reference_pictures(request)} if request.references else {})

    def number(self, request):
        return {}

    def latents(self, packed, request):
        rows = round((packed.shape[1] * request.height / request.width) ** 0.5)
        patches = packed.unflatten(2, (-1, 2, 2)).unflatten(1, (rows, -1))
        return patches.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3).unsqueeze(2)

    def prepared(self, made):
        patches, is_drawn, _ = made
        self.tokens = int(is_drawn[0].sum())
        return patches

    def packed(self, latents):
        return latents[:, :self.tokens].flatten(2)

    def evaluation(self, args, options, output, tokens, count):
        longest = int(options["encoder_hidden_states_mask"][-count:].sum(1).max())  # without padding
        return {"prompt_embeds": options["encoder_hidden_states"][-count:, :longest],
                "velocity_first": self.packed(output[0][-count:])}


class Krea2(Flux):
    """Without the pads between a prompt and the end of its chat; hidden states side by side."""

    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts), "guidance_scale": request.true_cfg}
        if request.negative_prompt is not None:
            given["negative_prompt"] = [request.negative_prompt] * len(request.prompts)
        return given

    def evaluation(self, args, options, output, tokens, count):
        embeds, are_real = options["encoder_hidden_states"], options["encoder_attention_mask"]
        real = [one[is_real].flatten(1) for one, is_real in zip(embeds, are_real, strict=True)]
        return {"prompt_embeds": pad_sequence(real, batch_first=True), "velocity_first": output[0]}


class Qwen21(Flux):
    """A batch of prompts changes the shorter ones, so each runs alone. Guidance without a negative
    prompt uses the empty one. Slots of pictures are left out of the text."""
    alone = True

    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts), "true_cfg_scale": request.true_cfg}
        if request.true_cfg > 1:
            given["negative_prompt"] = [request.negative_prompt or ""] * len(request.prompts)
        return given | ({"image": reference_pictures(request)} if request.references else {})

    def evaluation(self, args, options, output, tokens, count):
        embeds = options["encoder_hidden_states"]
        is_slot = options["img_mask"][0, :embeds.shape[1]]
        return {"prompt_embeds": embeds[:, ~is_slot], "velocity_first": output[0][:, -tokens:]}


class QwenImage(Flux):
    """Guidance without a negative prompt uses a space. The pipeline repeats the masks of several
    prompts in another order than the prompts, so each runs alone."""
    alone = True

    def arguments(self, pipe, request):
        given = {"prompt": list(request.prompts), "true_cfg_scale": request.true_cfg}
        if request.true_cfg > 1:
            negative = " " if request.negative_prompt is None else request.negative_prompt
            given["negative_prompt"] = [negative] * len(request.prompts)
        return given

    def evaluation(self, args, options, output, tokens, count):
        return {"prompt_embeds": options["encoder_hidden_states"],
                "velocity_first": output[0][:, :tokens]}


class QwenImageEdit(QwenImage):
    """Takes one prompt, and cuts none, whatever length it allows."""
    longest = 1024

    def arguments(self, pipe, request):
        pictures = reference_pictures(request)
        is_plus = type(pipe).__name__.endswith("PlusPipeline")
        return super().arguments(pipe, request) | {"image": pictures if is_plus else pictures[0]}


class QwenImageLayered(QwenImage):
    """Takes a resolution, of two. Here a size can be given, too. It mixes up the layers of several
    pictures: each prompt runs alone."""
    longest = 1024

    def arguments(self, pipe, request):
        module = sys.modules[type(pipe).__module__]
        self.calculate = getattr(self, "calculate", module.calculate_dimensions)
        size = request.width, request.height
        module.calculate_dimensions = (lambda area, ratio: size) if request.width else self.calculate
        return super().arguments(pipe, request) | {
            "image": reference_pictures(request)[0].convert("RGBA"), "layers": request.layers or 4,
            "resolution": request.resolution or 640, "cfg_normalize": request.cfg_normalize}

    def pictures(self, made):
        return [layer for layers in made for layer in layers]


FAMILIES = {"QwenImagePipeline": QwenImage(), "QwenImageEditPipeline": QwenImageEdit(),
            "QwenImageEditPlusPipeline": QwenImageEdit(),
            "QwenImageLayeredPipeline": QwenImageLayered(), "QwenImage21Pipeline": Qwen21(),
            "JoyImageEditPipeline": Joy(), "JoyImageEditPlusPipeline": JoyPlus(),
            "FluxPipeline": Flux(), "FluxKontextPipeline": Kontext(), "FluxFillPipeline": Tool(),
            "FluxControlPipeline": Tool(), "Flux2KleinPipeline": Klein(),
            "Flux2KleinKVPipeline": KeptKlein(), "Flux2Pipeline": Dev(),
            "ZImagePipeline": ZImage(), "Krea2Pipeline": Krea2()}


def run_each(pipe, request, latents, count):
    """run() for so many pictures of a prompt at a time, with their own seeds; shorter embedded prompts
    are padded."""
    all_made = []
    for i in range(len(request.prompts) * request.num_images // count):
        own = dataclasses.replace(
            request, prompts=(request.prompts[i * count // request.num_images],), num_images=count,
            seed=request.seed + i * count)
        all_made.append(run(pipe, own, None if latents is None else
                            latents[i * count:(i + 1) * count]))
    made = all_made[0].copy()
    for name in ("pooled_prompt_embeds", "latents_initial", "velocity_first", "latents_final", "image"):
        if name in made:
            made[name] = torch.cat([one[name] for one in all_made])
    made["prompt_embeds"] = pad_sequence(
        [row for one in all_made for row in one["prompt_embeds"]], batch_first=True)
    return made


def run(pipe, request, latents=None):
    """Run the request; packed `latents` replace the drawn ones. Returns the tensors by name."""
    import modular_flux3

    if isinstance(pipe, modular_flux3.Pipeline):
        return modular_flux3.run(pipe, request, latents)
    family = FAMILIES[type(pipe).__name__]
    # There the reference draws one sample of the encoded picture for all pictures; braid's seeds are equal alone.
    is_sampled_once = fills_in(pipe, request) or request.padding_crop is not None
    count = 1 if is_sampled_once else request.num_images
    if (family.alone or is_sampled_once) and (len(request.prompts) > 1 or count < request.num_images):
        return run_each(pipe, request, latents, count)
    arguments = family.arguments(pipe, request)
    if request.looked_at:
        arguments |= redux.embeds(pipe, request, looked_at_pictures(request))
        del arguments["prompt"]
        arguments.pop("prompt_2", None)
    pipe, given = with_pictures(pipe, request)
    if "true_cfg_scale" not in inspect.signature(type(pipe).__call__).parameters:
        arguments.pop("true_cfg_scale", None)  # ControlNets beside an initial picture
    if request.init and "image" in arguments:
        references = arguments.pop("image")  # klein takes several of one size
        arguments["image_reference"] = references[0] if len(references) == 1 else references
    set_tiling(pipe, request.vae_tiling)
    noise = family.generators(request)
    seeded_steps(pipe, noise)
    kept = {}

    def prepare_latents(*args, **options):
        made = type(pipe).prepare_latents(pipe, *args, **options)
        kept["latents_initial"] = family.packed(family.prepared(made))
        return made

    def first_evaluation(module, args, options, output):
        if "velocity_first" not in kept:
            tokens = kept["latents_initial"].shape[1]
            kept.update(family.evaluation(args, options, output, tokens, len(noise)))

    def after_step(pipe, i, t, tensors):
        kept["latents_final"] = family.packed(tensors["latents"])
        return {}

    taken = inspect.signature(type(pipe).__call__).parameters
    sized = {"max_sequence_length": min(request.max_sequence_length, family.longest),
             "width": request.width or None, "height": request.height or None}
    sized = {name: value for name, value in sized.items() if name in taken}
    pipe.prepare_latents = prepare_latents
    hook = pipe.transformer.register_forward_hook(first_evaluation, with_kwargs=True)
    pictures = pipe(
        **arguments, **given, **sized, num_inference_steps=request.steps,
        **({"num_images_per_prompt": 1} if request.looked_at else family.number(request)),
        generator=noise, latents=None if latents is None else family.latents(latents, request),
        callback_on_step_end=after_step).images
    hook.remove()
    kept |= {"sigmas": pipe.scheduler.sigmas, "timesteps": pipe.scheduler.timesteps}
    tensors = {name: t.float().contiguous() for name, t in kept.items()}
    return tensors | {"image": stacked(family.pictures(pictures))}


def stacked(pictures):
    """uint8 BHWC."""
    return torch.from_numpy(np.stack([np.array(picture) for picture in pictures]))


def relative_error(got, expected):
    """L2 norm of the difference, relative to that of `expected`."""
    if torch.equal(got, expected):  # zeros, too
        return 0.0
    return ((got - expected).norm() / expected.norm()).item()


def run_bfloat16(reference, pipe, request):
    """Runs a request twice: with `pipe` in bfloat16 and with `reference` in float32.

    Noise is drawn in the pipeline's dtype: the same seed gives other latents in bfloat16. The
    float32 run therefore starts from the latents of the bfloat16 run.
    """
    low = run(pipe, request)
    return low, run(reference, request, latents=low["latents_initial"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--prompt", action="append", help="once or more")
    parser.add_argument("--size", default="64x64", help="WIDTHxHEIGHT")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vae-tiling", action="store_true")
    for name in ("prompt_2", "negative_prompt", "negative_prompt_2"):
        parser.add_argument("--" + name.replace("_", "-"))
    for name in ("true_cfg", "steps", "guidance", "max_sequence_length", "seed", "num_images"):
        default = getattr(Request, name)
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    args = vars(parser.parse_args())
    torch.set_num_threads(args.pop("threads"))
    width, height = (int(n) for n in args.pop("size").split("x"))
    pipe = load(args.pop("pipeline"), args.pop("dtype"))
    out, prompts = args.pop("out"), args.pop("prompt") or Request.prompts
    save_file(run(pipe, Request(tuple(prompts), width=width, height=height, **args)), out)


if __name__ == "__main__":
    main()
