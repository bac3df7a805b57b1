"""Cases for live.py that a seed draws from Qwen-Image, Qwen-Image-2.1, FLUX.3 and Krea 2: everything that
their classes accept, in any form of files (unusual_storage.py), under a layout that the shape allows.

Like unusual_cases.py for the other families. Head counts, groups of key heads, axes of no width, tap lists
in any order, patches, levels and shortcuts of autoencoders, schedulers; references of unequal sizes,
transparent ones, layouts in boxes, sizes that follow from a reference.
"""
import random

import random_qwen21
from focused_cases import PROMPTS as FOCUSED
from live_cases import Case, ask
from random_flux3 import Flux3Shape, Flux3TransformerShape
from random_krea2 import Krea2Shape, Krea2TransformerShape
from random_qwen21 import Qwen21Shape, Qwen21TransformerShape, Qwen21VaeShape
from random_qwen_image import QwenImageShape, QwenImageTransformerShape
from unusual_cases import MASKS, even_parts, fitted, flux2_parts, scheduler, some_picture
from unusual_cases import PROMPTS as UNUSUAL
from unusual_storage import stored, tokenizer

PROMPTS = tuple(dict.fromkeys(UNUSUAL + FOCUSED))
EPS = (1e-6, 1e-5, 1e-3)
WORDS = ("cat", "Lamp_2", "x", "A9")


def common(draw):
    return {"n": draw.choice([1, 1, 2, 3]), "seed": draw.randint(0, 2**63),
            "steps": draw.choice([2, 2, 3, 4]), "vae_tiling": draw.random() < 0.1}


def prompts(draw, most=3):
    """A file of several has no blank ones."""
    count = draw.randint(1, most)
    return draw.sample(PROMPTS if count == 1 else [p for p in PROMPTS if p.strip()], count)


def texts(draw):
    """Fields of a Qwen3-VL's language model."""
    kv, half = draw.choice([1, 2, 3]), draw.choice([3, 4, 5, 8])
    time = draw.randint(1, half - 2)
    row = draw.randint(1, half - time - 1)
    return {"text_heads": kv * draw.choice([1, 2, 4]), "text_kv_heads": kv, "text_head_dim": 2 * half,
            "text_ff": draw.choice([20, 33, 50]), "sections": (time, row, half - time - row)}


def language_configs(draw):
    """Other fields of its config, and of its tokenizer's."""
    return {"text": {"rms_norm_eps": draw.choice([1e-6, 1e-6, 1e-4])}} | tokenizer(draw)


def shortcuts_fit(shape):
    try:
        random_qwen21.vae(shape)
    except (AssertionError, ValueError):
        return False
    return True


def qwen21_vae(draw):
    while True:
        shape = Qwen21VaeShape(
            base=draw.choice([2, 3, 4, 6]), decoder_base=draw.choice([None, 2, 4, 5]),
            mult=(draw.choice([1, 1, 2]), *(draw.choice([1, 2, 3, 4]) for _ in range(4))),
            layers=draw.randint(1, 3), latent_channels=draw.choice([2, 3, 8, 16]),
            temporal=tuple(draw.random() < 0.5 for _ in range(4)))
        if shortcuts_fit(shape):
            return shape


def qwen21(draw, seed):
    depth, is_turbo = draw.randint(1, 5), draw.random() < 0.3
    grid = sorted((draw.uniform(0.05, 1) for _ in range(draw.randint(2, 5))), reverse=True)
    shape = Qwen21Shape(
        seed=seed, sigmas=tuple(grid) if is_turbo else (),
        scheduler=scheduler(draw, True), vae=qwen21_vae(draw), text_layers=draw.randint(2, 6),
        vision_width=draw.choice([16, 24]), vision_heads=draw.choice([1, 2]), vision_depth=depth,
        vision_ff=draw.choice([20, 50]), vision_positions=draw.choice([16, 36, 81, 2304]),
        deepstack=tuple(sorted(draw.sample(range(depth), draw.randint(0, depth)))),
        transformer=Qwen21TransformerShape(
            heads=draw.randint(1, 6), axes=even_parts(draw, 2 * draw.randint(3, 16), 3),
            layers=draw.randint(1, 3), mlp_ratio=draw.randint(1, 5), text_width=draw.choice([12, 24, 50]),
            eps=draw.choice(EPS), config=draw.choice([
                {}, {}, {"out_channels": None}, {"causal_condition": False}])),
        configs=language_configs(draw), **texts(draw))
    options = common(draw) | {"size": f"{draw.randint(32, 220)}x{draw.randint(32, 220)}", "seq": 4096,
                              "cfg": draw.choice([0.0, 1.0, 1.0, 1.01, 4.0, 9.5])}
    if is_turbo:
        options["steps"] = len(grid)
    if options["cfg"] > 1:
        options["negative"] = draw.choice([None, "", *PROMPTS])
    asked = prompts(draw)
    if draw.random() < 0.6:
        count = draw.choice([1, 2, 3, 4])
        asked = asked[:1]
        options |= {"n": draw.choice([1, 1, 2]), "references": tuple(
            (draw.randint(20, 700), draw.randint(20, 700)) for _ in range(count)),
            "transparent": tuple(i for i in range(count) if draw.random() < 0.5)}
    return shape, ask(*asked, **options)


def taps(draw, layers):
    """Hidden states from the embedded tokens to the last layer's, also counted from the end."""
    count = draw.randint(1, 5)
    kind = draw.choice(["rising", "rising", "any", "negative"])
    if kind == "negative":
        return tuple(draw.randint(-layers - 1, -1) for _ in range(count))
    drawn = [draw.randint(0, layers) for _ in range(count)]
    return tuple(sorted(drawn) if kind == "rising" else drawn)


def krea2(draw, seed):
    kv, layers, text_kv = draw.choice([1, 1, 2, 3]), draw.randint(1, 8), draw.choice([1, 2, 3])
    fusion_heads = text_kv * draw.choice([1, 2])
    levels = draw.choice([3, 4, 4])
    shape = Krea2Shape(
        seed=seed, distilled=draw.random() < 0.4, text_layers=layers, taps=taps(draw, layers),
        latent_channels=draw.choice([1, 3, 4, 16]), patch=draw.choice([2, 2, 1, 3]),
        vae_base=draw.choice([2, 4, 6]),
        vae_mult=(draw.choice([1, 1, 2]), *(draw.choice([1, 2, 3]) for _ in range(levels - 1))),
        vae_layers=draw.randint(1, 3), scheduler=scheduler(draw, True),
        transformer=Krea2TransformerShape(
            heads=kv * draw.choice([1, 2, 3, 4]), kv_heads=kv,
            axes=even_parts(draw, 2 * draw.randint(3, 16), 3), theta=draw.choice([1000.0, 37.0, 10000.0]),
            layers=draw.randint(1, 3), ff=draw.choice([30, 47]), sinusoid=draw.choice([256, 10, 64]),
            text_width=fusion_heads * draw.choice([5, 8, 12]), text_heads=fusion_heads,
            text_kv_heads=text_kv, text_ff=draw.choice([20, 45]),
            layerwise_blocks=draw.randint(0, 3), refiner_blocks=draw.randint(0, 3),
            eps=draw.choice(EPS)),
        configs=language_configs(draw) | {"vae": {"temperal_downsample": [
            draw.random() < 0.5 for _ in range(levels - 1)]}}, **texts(draw))
    options = common(draw) | {"size": f"{draw.randint(16, 200)}x{draw.randint(16, 200)}",
                              "seq": draw.choice([1, 5, 33, 120]),
                              "cfg": draw.choice([0.0, 0.0, 0.2, 1.0, 3.5])}
    if options["cfg"] > 0:
        options["negative"] = draw.choice([None, "", *PROMPTS])
    return shape, ask(*prompts(draw), **options)


def box(draw):
    """[top, left, bottom, right]"""
    top, bottom = sorted(draw.sample(range(0, 997), 2))
    left, right = sorted(draw.sample(range(0, 997), 2))
    return [side / 996 for side in (top, left, bottom, right)]


def boxes(draw, num_references):
    """Rows of elements that the prompt need not cite."""
    rows = []
    for word in draw.sample(WORDS, draw.randint(1, 3)):
        row = {"id": word, "desc": draw.choice(PROMPTS).strip() or "a thing"}
        if num_references == 0:
            rows.append(row | {"bbox": box(draw)})
        elif draw.random() < 0.5:
            rows.append(row | {"from": "target", "tgt_bbox": box(draw)})
        else:
            rows.append(row | {"from": f"ref_image_{draw.randrange(num_references)}",
                               "src_bbox": box(draw), "tgt_bbox": draw.choice([None, box(draw)])})
    return tuple(rows)


def flux3(draw, seed):
    flow_map, layers = draw.random() < 0.5, draw.randint(0, 2)
    parts = flux2_parts(draw, False)
    shape = Flux3Shape(
        seed=seed, vae=parts["vae"], text_width=draw.choice([10, 16, 30]),
        text_layers=32 + draw.choice([0, 1, 1, 4]), modular=draw.random() < 0.6,
        scheduler=draw.choice([None, scheduler(draw, False)]),
        transformer=Flux3TransformerShape(
            heads=draw.randint(1, 6), axes=even_parts(draw, 2 * draw.randint(4, 16), 4),
            theta=draw.choice([10000, 2000, 37]), layers=layers,
            single_layers=draw.randint(0 if layers else 1, 3), mlp_ratio=draw.choice([1.0, 1.7, 3.0, 4.5]),
            sinusoid=draw.choice([256, 32, 10]), flow_map=flow_map, eps=draw.choice(EPS)),
        configs=language_configs(draw), **texts(draw))
    side = 2 ** len(shape.vae.widths)
    size = [side * draw.randint(2, 11) for _ in range(2)]
    options = common(draw) | {"size": f"{size[0]}x{size[1]}", "seq": draw.choice([5, 80, 100, 8192])}
    if not flow_map:
        options["cfg"] = draw.choice([1.0, 3.5, 7.0])
        options["negative"] = draw.choice([None, "", *PROMPTS]) if options["cfg"] > 1 else None
    if draw.random() < 0.6:
        options["references"] = tuple(some_picture(draw, 20) for _ in range(draw.choice([1, 1, 2, 3, 4])))
        if draw.random() < 0.5:
            options["size"] = "0x0"
    if draw.random() < 0.4:
        options["boxes"] = boxes(draw, len(options.get("references", ())))
        options["seq"] = 8192
    return shape, ask(*prompts(draw), **options)


def qwen_image_texts(draw):
    """Fields of a Qwen2.5-VL, whose heads share its width; the tower rotates halves of halves of a head."""
    kv, half, tower_heads = draw.choice([1, 2, 3]), draw.choice([3, 4, 5, 8]), draw.choice([1, 2])
    heads, depth = kv * draw.choice([1, 2, 4]), draw.randint(1, 5)
    time = draw.randint(1, half - 2)
    row = draw.randint(1, half - time - 1)
    return heads * 2 * half, {
        "text_layers": draw.randint(1, 5), "text_heads": heads, "text_kv_heads": kv,
        "text_ff": draw.choice([20, 33, 50]), "sections": (time, row, half - time - row),
        "vision_heads": tower_heads, "vision_width": 4 * tower_heads * draw.choice([2, 3, 5]),
        "vision_depth": depth, "vision_ff": draw.choice([20, 35]),
        "whole": tuple(sorted(draw.sample(range(depth), draw.randint(0, depth)))),
        "older_config": draw.random() < 0.4,
        "configs": language_configs(draw) | {"vision": {"window_size": draw.choice([112, 112, 56, 84])}}}


def mask(draw, size):
    """Options of a picture to start from, perhaps with a mask."""
    options = {"init": draw.choice([size, some_picture(draw, 16)]),
               "strength": draw.choice([0.01, 0.3, 0.5, 0.77, 0.99, 1.0])}
    if draw.random() < 0.6:
        options |= {"mask": draw.choice(MASKS), "mask_blur": draw.choice([0, 0, 2, 7.5])}
        if draw.random() < 0.4 and options["mask"] not in ("grey", "noise"):
            # Of a cropped picture the reference takes one, whose sample all pictures share.
            options |= {"padding_crop": draw.choice([0, 3, 32, 300]), "n": 1}
    return options


def control_options(draw, count):
    return {"control_scales": tuple(draw.choice([1.0, 0.0, 0.5, 1.7, -0.4]) for _ in range(count)),
            "control_from": tuple(draw.choice([0.0, 0.0, 0.25, 0.5]) for _ in range(count)),
            "control_to": tuple(draw.choice([1.0, 1.0, 0.75, 0.51]) for _ in range(count))}


def followed(draw):
    """Pictures for one ControlNet."""
    count = draw.choice([1, 1, 2, 3])
    return {"followed": tuple(some_picture(draw) for _ in range(count))} | control_options(draw, count)


def filled_in(draw, size):
    """A picture for a ControlNet that fills it in."""
    return control_options(draw, 1) | {
        "init": draw.choice([size, some_picture(draw, 16)]), "mask": draw.choice(MASKS),
        "mask_blur": draw.choice([0, 0, 2, 7.5]), "strength": 1.0}


def small(shape):
    """Few numbers and large tokens: references have a megapixel."""
    shape.vae_base, shape.vae_layers, shape.vae_mult = 2, 1, (1, 1, 2, 2, 2)
    shape.configs["vae"]["temperal_downsample"] = [False, True, True, False]
    shape.transformer.layers = min(shape.transformer.layers, 2)
    shape.transformer.heads = min(shape.transformer.heads, 4)
    shape.vision_depth = min(shape.vision_depth, 3)
    shape.whole = tuple(block for block in shape.whole if block < shape.vision_depth)[:1]


def edited(draw, kind):
    """Options of pictures to be edited; a width of 0 asks for the size that follows from them."""
    count = 1 if kind == "QwenImageEditPipeline" else draw.choice([1, 1, 2, 3])
    options = {"references": tuple((draw.randint(20, 700), draw.randint(20, 700)) for _ in range(count)),
               "seq": 1024, "n": draw.choice([1, 1, 1, 2]), "steps": draw.choice([1, 2])}
    return options | ({"size": "0x0"} if draw.random() < 0.2 else {})


def qwen_image(draw, seed):
    kind = "QwenImage" + draw.choice(["", "", "", "Edit", "EditPlus"]) + "Pipeline"
    is_plain, layers = kind == "QwenImagePipeline", draw.randint(1, 4)
    levels = draw.choice([3, 4, 4, 5])
    text_width, text = qwen_image_texts(draw)
    text["configs"]["vae"] = {"temperal_downsample": [draw.random() < 0.5 for _ in range(levels - 1)]}
    shape = QwenImageShape(
        seed=seed, pipeline=kind, scheduler=scheduler(draw, True), latent_channels=draw.choice([1, 3, 4, 16]),
        vae_base=draw.choice([2, 4, 6]), vae_layers=draw.randint(1, 3),
        vae_mult=(draw.choice([1, 1, 2]), *(draw.choice([1, 2, 3]) for _ in range(levels - 1))),
        controlnets=(draw.randint(1, layers + 1),) if is_plain and draw.random() < 0.35 else (),
        fills_in=draw.random() < 0.3,
        transformer=QwenImageTransformerShape(
            heads=draw.randint(1, 6), axes=even_parts(draw, 2 * draw.randint(3, 16), 3), layers=layers,
            text_width=text_width, zero_time=draw.random() < (0.15 if is_plain else 0.5)), **text)
    size = draw.randint(32, 220), draw.randint(32, 220)
    options = common(draw) | {"size": f"{size[0]}x{size[1]}", "seq": draw.choice([1, 5, 33, 120, 512, 1024]),
                              "cfg": draw.choice([0.0, 1.0, 1.01, 4.0, 9.5])}
    if options["cfg"] > 1:
        options["negative"] = draw.choice([None, "", *PROMPTS])
    if not is_plain:
        small(shape)
        options |= edited(draw, kind)
    elif shape.controlnets:
        options |= filled_in(draw, size) if shape.fills_in else followed(draw)
    elif draw.random() < 0.5:
        options |= mask(draw, size)
    asked = prompts(draw, 3 if is_plain else 1)
    return shape, ask(*(asked if options.get("padding_crop") is None else asked[:1]), **options)


FAMILIES = {"qwen21": qwen21, "krea2": krea2, "flux3": flux3, "qwen-image": qwen_image}


def layout(draw, shape, asked, off):
    """Flags that spread the model over ranks or keep its weights elsewhere; `off` turns guidance off."""
    t = shape.transformer
    blocks = t.layers + getattr(t, "single_layers", 0)
    flags = [(), (), *[("--layer-split", 2)] * (blocks > 1), ("--dp", 2), ("--batch-size", 3),
             ("--offload", "block"), ("--offload", "leaf", "--prefetch", 2), ("--offload", "sequential"),
             ("--offload", "block", "--offload-dir", ".")]
    if asked.max_sequence_length >= 5:  # each rank needs a token of text
        flags += [("--ring", 2), ("--ring", 3, "--ring-form", "gather")]
    if t.heads % 2 == 0:
        flags += [("--tp", 2), ("--tp", 2, "--offload", "block")]
        if asked.max_sequence_length >= 5:
            flags += [("--ulysses", 2), ("--tp", 2, "--ring", 2), ("--ulysses", 2, "--ring", 2)]
    if asked.true_cfg > off:
        flags += [("--cfg-parallel", 2)] * 3
    return draw.choice(flags)


def draw_family(seed, name=None):
    draw = random.Random(f"unusual family {seed}")
    name = name or draw.choice(sorted(FAMILIES))
    shape, asked = FAMILIES[name](draw, seed)
    fitted(shape, asked)
    flags = layout(draw, shape, asked, 0 if name == "krea2" else 1)
    fields, more = stored(draw, name, shape, asked)
    words = [f"unusual {seed}, {name}", " ".join(str(flag) for flag in flags),
             *(f"{key} {value}" for key, value in fields.items() if key != "coding_seed")]
    return Case(", ".join(word for word in words if word), shape, asked, flags=(*flags, *more), **fields)
