"""Cases for live.py that a seed draws from areas where implementations of the same pipeline drift apart.

Several pictures of unequal sizes, strengths at the edges, guidance that ends on the way, autoencoders of
one to five levels, tokenizers that pad on the left or have tokens of their own; under a layout that the
shape allows.
"""
import random
from dataclasses import replace

import unusual_cases
from live_cases import ACCENTS, LENGTHS, LONG, Case, ask
from random_families import KleinShape, ZImagePipelineShape
from random_pipeline import NetShape
from redux import ReduxShape
from unusual_cases import MASKS, common, references, scheduler, some_picture

PROMPTS = (*LENGTHS, ACCENTS, LONG, "y" * 2000, "क्षत्रिय हिन्दी", "한국어 조합 \u1112\u1161\u11ab",
           "🇩🇪🏳️‍🌈👩🏽‍🚀", "\u0301a\u0327\u0301 ﷺ İ ß ς", "𝔘𝔫𝔦 ｆｕｌｌ ㍿", "a\u0001b\u007fc\u00ad\ufeff",
           "«…—“”‘’»", "<think>red</think> circle", "<|vision_start|>", "it'S 12,345.67€", "\\n\\u00e9",
           "a circle  \u2003 circle")
STRENGTHS = (0.01, 0.1, 0.34, 0.5, 0.999, 1.0)
TOKENS = (  # that a tokenizer may have beside those it was trained with
    {"content": "circle"}, {"content": "red", "single_word": True},
    {"content": "on", "lstrip": True}, {"content": "blue", "rstrip": True},
    {"content": "É", "normalized": True}, {"content": "<own>", "special": True},
    {"content": "a small", "normalized": False}, {"content": "漢"})


def sides(draw, multiple, most=160):
    """A usual size, or a long one."""
    if draw.random() < 0.2:
        long = 1040 // multiple * multiple if multiple > 8 else 65 * multiple
        return draw.sample([5 * multiple, long], 2)
    return [multiple * draw.randint(1, max(1, most // multiple)) for _ in range(2)]


def levels(draw, wanted):
    """Widths of an autoencoder's levels; each of them but the first halves the sides."""
    groups = draw.choice([1, 2, 3])
    return groups, tuple(groups * draw.choice([2, 3, 4]) for _ in range(draw.choice(wanted)))


def vae(draw, seed, wanted=(1, 2, 3, 4, 5)):
    groups, widths = levels(draw, wanted)
    return replace(unusual_cases.vae(draw, seed), vae_widths=widths, vae_groups=groups)


def flux_shape(draw, seed, **fields):
    base = unusual_cases.flux_shape(draw, seed)
    own = vae(draw, seed)
    return replace(base, vae_widths=own.vae_widths, vae_groups=own.vae_groups,
                   latent_channels=own.latent_channels,
                   **{"controlnets": (), "redux": None, "pipeline": "FluxPipeline"} | fields)


def side_of(shape):
    """Pixels of a token's side."""
    widths = shape.vae_widths if hasattr(shape, "vae_widths") else (
        shape.vae.widths if isinstance(shape, KleinShape) else shape.vae.vae_widths)
    return 2 ** len(widths)


def start(draw, size, has_mask, may_crop=True):
    options = {"init": draw.choice([tuple(size), (draw.randint(16, 220), draw.randint(16, 220))]),
               "strength": draw.choice(STRENGTHS)}
    if has_mask:
        options |= {"mask": draw.choice(MASKS), "mask_blur": draw.choice([0, 0, 0.4, 3, 11.5])}
        if may_crop and draw.random() < 0.3 and options["mask"] not in ("grey", "noise"):
            options["padding_crop"] = draw.choice([0, 1, 17, 90])
            # The crop takes the shape of the size as it is asked for, before it is rounded down.
            options["size"] = "x".join(str(side + draw.choice([0, 1])) for side in size)
    return options


def controlled(draw, seed):
    """FLUX.1 beside one to three ControlNets."""
    shape = flux_shape(draw, seed)
    has_pixels, guided = draw.random() < 0.3, draw.random() < 0.5
    # XLabs' layers halve a picture three times.
    shape.vae_widths = tuple(2 * shape.vae_groups for _ in range(4)) if has_pixels else shape.vae_widths
    modes = None if has_pixels else draw.choice([None, 2, 6])
    shape.controlnets = tuple(NetShape(
        draw.randint(1, shape.double_blocks), 0 if has_pixels else draw.randint(0, shape.single_blocks),
        guidance=guided, modes=modes, pixels=has_pixels) for _ in range(draw.randint(1, 3)))
    size = sides(draw, side_of(shape))
    options = common(draw, size) | unusual_cases.followed(draw, shape) | {
        "seq": draw.choice([1, 20, 77]), "guidance": draw.choice([1.0, 3.5])}
    if draw.random() < 0.5:
        options |= start(draw, size, draw.random() < 0.5)
    elif draw.random() < 0.5:
        options |= {"cfg": 2.0, "negative": draw.choice(PROMPTS)}
    return shape, ask(draw.choice(PROMPTS), **options)


def looked(draw, seed):
    """FLUX.1 with Redux."""
    shape = flux_shape(draw, seed, redux=ReduxShape(
        heads=draw.choice([1, 2, 3]), patch=draw.choice([4, 7, 14]), side=draw.choice([28, 42, 56])))
    size = sides(draw, side_of(shape))
    count = draw.choice([1, 2, 3, 4])
    options = common(draw, size) | {
        "seq": 512, "looked_at": tuple(some_picture(draw) for _ in range(count)),
        "looked_scales": draw.choice([(), tuple(draw.choice([1.0, 0.25, -0.5, 0.0]) for _ in range(count))])}
    if draw.random() < 0.4:
        options |= {"cfg": 3.0, "negative": draw.choice(PROMPTS)}
    return shape, ask(draw.choice([*PROMPTS, ""]), **options)


def tooled(draw, seed):
    """FLUX.1 Fill, Kontext or Control, or plain from a picture."""
    shape = flux_shape(draw, seed, pipeline=draw.choice([
        "FluxPipeline", "FluxPipeline", "FluxFillPipeline", "FluxKontextPipeline",
        "FluxControlPipeline"]))
    side = side_of(shape)
    size = sides(draw, side)
    options = common(draw, size) | {"seq": draw.choice([1, 48, 512]), "guidance": draw.choice([1.0, 30.0])}
    if shape.pipeline == "FluxControlPipeline":
        options["control"] = draw.choice([(200, 20), (16, 160), tuple(size)])
    elif shape.pipeline == "FluxKontextPipeline":
        options["references"] = (draw.choice([(200, 20), (21, 210), (97, 101)]),)
        if draw.random() < 0.5:
            options |= {"cfg": 2.0, "negative": draw.choice(PROMPTS)}
    else:
        is_fill = shape.pipeline == "FluxFillPipeline"
        options |= start(draw, size, is_fill or draw.random() < 0.5, may_crop=not is_fill)
    return shape, ask(*draw.sample(PROMPTS, draw.choice([1, 1, 3])), **options)


def tokenizer(draw, shape):
    """Gives the text model's tokenizer habits of its own."""
    shape.text.tokenizer = draw.choice([{}, {"padding_side": "left"}, {"truncation_side": "left"},
                                        {"add_prefix_space": True}, {"model_max_length": 20}])
    shape.text.added = tuple(draw.sample(TOKENS, draw.choice([0, 1, 4])))
    return shape


def klein(draw, seed):
    kind = draw.choice(["distilled", "base", "base", "kept"])
    parts = unusual_cases.flux2_parts(draw, False)
    groups, widths = levels(draw, (1, 2, 3, 4, 5))
    parts["vae"] = replace(parts["vae"], groups=groups, widths=widths, decoder_widths=None)
    shape = tokenizer(draw, KleinShape(
        seed=seed, distilled=kind == "distilled", kept=kind == "kept", scheduler=scheduler(draw, True),
        text=unusual_cases.language_model(draw, 28), **parts))
    side = side_of(shape)
    size = sides(draw, side)
    options = common(draw, size) | {"seq": draw.choice([1, 9, 64, 512])}
    if kind == "base":
        options["cfg"] = draw.choice([1.0, 1.5, 5.0])
        if options["cfg"] > 1:
            options["negative"] = draw.choice([None, "", *PROMPTS])
    if kind != "kept" and draw.random() < 0.5:
        wide, high = (draw.randint(0, side - 1) for _ in range(2))
        options |= start(draw, size, True, may_crop=draw.random() < 0.3)
        options["init"] = (size[0] + wide, size[1] + high)
        if draw.random() < 0.5:
            options["references"] = references(draw, 1) * draw.choice([1, 2, 3])
            if len(options["references"]) > 1:
                options["n"] = 1
    elif draw.random() < 0.6:
        options["references"] = references(draw, draw.randint(1, 4))
    return shape, ask(draw.choice([*PROMPTS, ""]), **options)


def dev2(draw, seed):
    shape, asked = unusual_cases.dev2(draw, seed)
    shape.vae.groups, shape.vae.widths = levels(draw, (1, 2, 3, 4))
    shape.vae.decoder_widths = None
    asked.references = references(draw, draw.randint(2, 4))
    asked.prompts = tuple(draw.sample(PROMPTS, draw.choice([1, 2])))
    asked.width, asked.height = sides(draw, side_of_dev(shape))
    return shape, asked


def side_of_dev(shape):
    return 2 ** len(shape.vae.widths)


def zimage(draw, seed):
    shape, _ = unusual_cases.zimage(draw, seed)
    shape = tokenizer(draw, replace(shape, vae=vae(draw, seed, (1, 2, 3, 4))))
    size = sides(draw, side_of(shape))
    options = common(draw, size) | {"seq": draw.choice([1, 32, 77, 512]),
                                    "cfg": draw.choice([0.0, 0.3, 1.0, 4.0])}
    if options["cfg"] > 0:
        options |= {"negative": draw.choice([None, "", *PROMPTS]),
                    "cfg_norm_cap": draw.choice([0.0, 0.3, 1.0, 1.3]),
                    "cfg_until": draw.choice([1.0, 0.9, 0.6, 0.3, 0.1])}
    if draw.random() < 0.5:
        options |= start(draw, size, draw.random() < 0.5, may_crop=False)
        options["init"] = tuple(size)
    return shape, ask(*draw.sample(PROMPTS, draw.choice([1, 3, 3])), **options)


def joy(draw, seed):
    shape, asked = unusual_cases.joy(draw, seed)
    shape.plus = True
    asked.width, asked.height = draw.choice([(512, 512), (640, 320), (256, 960)])
    asked.references = tuple((draw.randint(20, 900), draw.randint(20, 900))
                             for _ in range(draw.choice([2, 3])))
    asked.prompts = (draw.choice(PROMPTS),)
    return shape, asked


FAMILIES = (controlled, looked, tooled, tooled, klein, klein, dev2, zimage, zimage, joy)


def layout(draw, shape, asked):
    """Flags that spread the model over ranks or keep its weights elsewhere."""
    heads = (shape.transformer if hasattr(shape, "transformer") else shape).heads
    flags = [(), (), ("--layer-split", 2), ("--dp", 2), ("--batch-size", 3), ("--offload", "block"),
             ("--offload", "sequential"), ("--offload", "block", "--offload-dir", ".")]
    can_split = asked.max_sequence_length >= 3  # each rank needs a text token
    if can_split:
        flags += [("--ring", 2), ("--ring", 3, "--ring-form", "gather")]
    if heads % 2 == 0:
        flags += [("--tp", 2)] + [("--ulysses", 2), ("--tp", 2, "--ring", 2)] * can_split
    if asked.true_cfg > 1 and asked.negative_prompt is not None:
        flags += [("--cfg-parallel", 2)] * 3
    return draw.choice(flags)


def draw_focused(seed, family=None):
    draw = random.Random(f"focused {seed}")
    family = family or draw.choice(FAMILIES)
    shape, asked = family(draw, seed)
    unusual_cases.fitted(shape, asked)
    flags = layout(draw, shape, asked)
    int8 = {} if asked.followed or draw.random() > 0.1 else {"int8": "base"}
    words = [f"focused {seed}, {family.__name__}", " ".join(str(flag) for flag in flags), *int8]
    return Case(", ".join(word for word in words if word), shape, asked,
                flags=flags + (("--quantize", "int8") if int8 else ()), **int8)
