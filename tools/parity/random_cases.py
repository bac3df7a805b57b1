"""Cases for live.py that a seed draws: a family, its shape, a coding, a LoRA, and how braid is run.

Layouts, pages and instruction sets must not change any number, so each case takes one of each.
"""
import random
from dataclasses import replace

from live_cases import ACCENTS, LENGTHS, QWEN3, Case, ask
from random_denoisers import Flux2Shape, ZImageShape
from random_families import KleinShape, ZImagePipelineShape
from random_flux3 import Flux3Shape, Flux3TransformerShape
from random_joy import JoyShape
from random_krea2 import Krea2Shape, Krea2TransformerShape
from random_pipeline import Shape
from random_qwen21 import DYNAMIC, Qwen21Shape, Qwen21TransformerShape, Qwen21VaeShape

LAYOUTS = [(), (), ("--tp", 2), ("--ring", 2), ("--ulysses", 2), ("--layer-split", 2),
           ("--tp", 2, "--ring", 2), ("--ring", 2, "--ring-form", "gather")]
MEMORY = [(), (), ("--offload", "block"), ("--offload", "leaf", "--prefetch", 2),
          ("--offload", "block", "--offload-dir", "."), ("--offload", "sequential"),
          ("--offload", "model")]
INSTRUCTIONS = [None, "avx2", "baseline"]
CODINGS = [None, None, None, None, "gguf", "gguf", "gguf", "float8", "comfy float8", "old comfy float8",
           "plain float8", "comfy"]
VISION_THETAS = [10000.0, 10000.0, 500.0]
NOT_BESIDE = ("lokr", "loha")


def layout(draw, shape):
    """A layer split needs a block for each rank."""
    transformer = getattr(shape, "transformer", shape)
    blocks = sum(getattr(transformer, name, 0)
                 for name in ("layers", "single_layers", "double_blocks", "single_blocks"))
    return draw.choice([one for one in LAYOUTS if blocks > 1 or "--layer-split" not in one])


def axes(draw, num, head_dim):
    """Even parts that sum to a head."""
    cuts = sorted(draw.sample(range(1, head_dim // 2), num - 1))
    return tuple(2 * (b - a) for a, b in zip([0, *cuts], [*cuts, head_dim // 2]))


def flux(draw, seed):
    head_dim = draw.choice([8, 16, 32, 64, 128])
    return Shape(seed=seed, heads=draw.choice([2, 4, 6]), head_dim=head_dim,
                 axes=axes(draw, 3, head_dim), double_blocks=draw.randint(1, 3),
                 single_blocks=draw.randint(2, 4), guidance=draw.random() < 0.7,
                 latent_channels=draw.choice([4, 8, 16]), t5_width=draw.choice([32, 64, 96, 256]),
                 t5_heads=draw.choice([2, 4]), t5_head_dim=draw.choice([8, 16]),
                 t5_ff=draw.choice([48, 96, 160]))


def klein(draw, seed):
    head_dim = draw.choice([8, 16, 32, 64, 128])
    return KleinShape(seed=seed, text=replace(QWEN3, width=draw.choice([32, 64]), ff=96),
                      transformer=Flux2Shape(
        heads=draw.choice([2, 4]), head_dim=head_dim, axes=axes(draw, 4, head_dim),
        double_blocks=draw.randint(1, 2), single_blocks=draw.randint(2, 3),
        mlp_ratio=draw.choice([2.0, 2.5, 3.0])))


def zimage(draw, seed):
    return ZImagePipelineShape(seed=seed, text=replace(QWEN3, layers=4, causal_lm=False),
                               transformer=ZImageShape(
        heads=draw.choice([2, 4]), axes=(32, 48, 48), refiners=2, layers=draw.randint(1, 3)))


def joy(draw, seed):
    return JoyShape(seed=seed, plus=draw.random() < 0.7, heads=draw.choice([2, 4]),
                    axes=draw.choice([(4, 6, 6), (8, 4, 12), (16, 24, 24)]),
                    layers=draw.randint(1, 3), mlp_ratio=draw.choice([2.5, 4.0]),
                    text_layers=draw.randint(3, 5), text_kv_heads=draw.choice([2, 4]),
                    vae_layers=draw.randint(1, 2), vision_depth=draw.randint(3, 5),
                    vision_positions=draw.choice([36, 64, 100]),
                    deepstack=draw.choice([(0, 1, 2), (0, 2), (1,)]), configs=vision_rope(draw))


def vision_rope(draw):
    """Other fields of configs that have a vision tower."""
    return {"vision": {"rope_parameters": {"rope_type": "axial",
                                           "rope_theta": draw.choice(VISION_THETAS)}}}


def flux3(draw, seed):
    head_dim = draw.choice([8, 16, 32])
    return Flux3Shape(
        seed=seed, modular=draw.random() < 0.6, text_kv_heads=draw.choice([2, 4]),
        text_layers=draw.choice([32, 33]), transformer=Flux3TransformerShape(
            heads=draw.choice([2, 4]), axes=axes(draw, 4, head_dim), layers=draw.randint(1, 2),
            single_layers=draw.randint(1, 3), mlp_ratio=draw.choice([2.0, 3.0]),
            flow_map=draw.random() < 0.5))


def krea2(draw, seed):
    kv_heads, head_dim = draw.choice([1, 2, 3]), draw.choice([8, 16, 32])
    layers = draw.randint(4, 8)
    return Krea2Shape(
        seed=seed, distilled=draw.random() < 0.4, text_layers=layers,
        taps=tuple(sorted(draw.sample(range(layers), draw.randint(1, 4)))),
        text_kv_heads=draw.choice([2, 4]), latent_channels=draw.choice([4, 16]),
        transformer=Krea2TransformerShape(
            heads=2 * kv_heads * draw.choice([1, 2]), kv_heads=kv_heads, axes=axes(draw, 3, head_dim),
            layers=draw.randint(1, 3), ff=draw.choice([48, 96]), text_width=draw.choice([24, 48]),
            layerwise_blocks=draw.randint(0, 2), refiner_blocks=draw.randint(0, 2)))


def qwen21(draw, seed):
    is_turbo = draw.random() < 0.3
    sigmas = sorted((draw.uniform(0.05, 0.99) for _ in range(draw.randint(1, 4))), reverse=True)
    return Qwen21Shape(
        seed=seed, sigmas=tuple(sigmas) if is_turbo else (),
        scheduler={} if is_turbo else DYNAMIC | draw.choice([{}, {"shift_terminal": 0.1}]),
        text_layers=draw.randint(4, 6), text_kv_heads=draw.choice([2, 4]),
        vae=Qwen21VaeShape(base=draw.choice([3, 4]), decoder_base=draw.choice([None, 4, 6]),
                           mult=draw.choice([(1, 2, 2, 4, 4), (1, 2, 4, 8, 8), (1, 1, 2, 2, 2)]),
                           layers=draw.randint(1, 2), latent_channels=draw.choice([4, 8, 16])),
        transformer=Qwen21TransformerShape(
            heads=draw.choice([2, 4]), axes=axes(draw, 3, draw.choice([8, 16, 32])),
            layers=draw.randint(1, 3), mlp_ratio=draw.randint(1, 4),
            text_width=draw.choice([24, 48]), eps=draw.choice([1e-6, 1e-6, 1e-5])),
        configs=vision_rope(draw))


SPELLINGS = {  # as make_adapters.py names them
    flux: ["kohya", "comfyui", "comfyui-down", "mixed", "fal", "xlabs", "lokr", "loha"],
    klein: ["kohya", "comfyui", "base-model", "cut", "lokr"],
    zimage: ["comfyui", "kohya", "default", "lokr"]}
# make_adapters.py changes blocks that not every Krea 2 or Qwen-Image-2.1 shape has.


def request(draw, family, has_control):
    options = {"size": f"{16 * draw.randint(4, 9)}x{16 * draw.randint(4, 9)}",
               "n": draw.randint(1, 2), "seed": draw.randint(0, 2**40), "steps": draw.randint(1, 3)}
    if family is zimage:
        return ask(draw.choice(LENGTHS), seq=64, cfg=draw.choice([0.0, 3.0]), **options)
    if family is qwen21:
        options["size"] = f"{draw.randint(32, 150)}x{draw.randint(32, 150)}"
        options["seq"] = 4096
        options["steps"] = draw.randint(2, 3)  # a terminal level needs two
        options["cfg"] = draw.choice([1.0, 1.5, 4.0])
        if draw.random() < 0.3:
            count = draw.randint(1, 3)
            options |= {"n": 1, "references": tuple(
                (draw.randint(20, 100), draw.randint(20, 100)) for _ in range(count)),
                "transparent": tuple(i for i in range(count) if draw.random() < 0.5)}
        negative = draw.choice([None, ACCENTS]) if options["cfg"] > 1 else None
        return ask(*draw.sample(LENGTHS, draw.randint(1, 2)), negative=negative, **options)
    if family is krea2:
        options["size"] = f"{draw.randint(30, 150)}x{draw.randint(30, 150)}"
        return ask(*draw.sample(LENGTHS, draw.randint(1, 2)), seq=draw.choice([60, 120]),
                   cfg=draw.choice([0.0, 0.5, 3.5]), negative=draw.choice([None, ACCENTS]), **options)
    if family is flux3:
        count = draw.choice([0, 0, 1, 2, 3])
        options["references"] = tuple((draw.randint(20, 150), draw.randint(20, 150)) for _ in range(count))
        return ask(*draw.sample(LENGTHS, draw.randint(1, 2)), seq=8192, **options)
    if family is joy:
        options |= {"n": 1, "size": f"{64 * draw.randint(1, 20)}x{64 * draw.randint(1, 20)}",
                    "references": tuple(
            (draw.randint(30, 900), draw.randint(30, 900)) for _ in range(draw.choice([0, 1, 1])))}
        return ask(draw.choice(LENGTHS), seq=4096, cfg=draw.choice([1.0, 3.0]),
                   negative=draw.choice([None, ACCENTS]), **options)
    if has_control:
        options["control"] = (draw.randint(40, 150), draw.randint(40, 150))
    elif family is flux and draw.random() < 0.4:
        options |= {"cfg": 2.5, "negative": "blurry, two stars"}
    return ask(*draw.sample(LENGTHS, draw.randint(1, 2)), seq=64, **options)


def adapted(draw, family, coding):
    """Fields of a case with a LoRA or a control LoRA, and braid's flags for it."""
    way = draw.choice(["none", "lora", "lora", "control" if family is flux else "lora"])
    if way == "none":
        return {}, ()
    if way == "control":
        return {"control_lora": True}, ()
    spelling = draw.choice([s for s in SPELLINGS[family] if not coding or s not in NOT_BESIDE])
    is_beside = coding or (spelling not in NOT_BESIDE and draw.random() < 0.5)
    int8 = None if coding else draw.choice([None, None, "base" if is_beside else "merged"])
    flags = ("--lora-mode", "beside") if is_beside else ()
    return {"lora": spelling, "int8": int8}, flags + (("--quantize", "int8") if int8 else ())


def draw_joy(seed):
    """An editing model that looks at up to three pictures of unequal sizes."""
    draw = random.Random(seed)
    shape, asked = joy(draw, seed), request(draw, joy, False)
    if shape.plus:
        asked.references = tuple((draw.randint(30, 900), draw.randint(30, 900))
                                 for _ in range(draw.choice([1, 2, 2, 3])))
    if asked.true_cfg == 1:
        asked.negative_prompt = None
    flags = (*layout(draw, shape), *draw.choice(MEMORY))
    if asked.true_cfg > 1 and draw.random() < 0.6:
        flags = ("--cfg-parallel", 2, *draw.choice([(), ("--ring", 2), ("--ulysses", 2), ("--tp", 2)]))
    words = [f"random {seed}", "joy plus" if shape.plus else "joy edit",
             f"{len(asked.references)} references", " ".join(str(flag) for flag in flags)]
    coded = draw.choice([None, None, "gguf"])  # a tensor of five dims is in it
    words += [coded] if coded else []
    return Case(", ".join(word for word in words if word), shape, asked, flags=flags, coded=coded,
                coding_seed=str(seed))


def draw_guided(family, off, seed):
    """`off` is the scale that turns guidance off."""
    draw = random.Random(seed)
    shape, asked = family(draw, seed), request(draw, family, False)
    if family is flux3 and not shape.transformer.flow_map:
        asked.true_cfg, asked.negative_prompt = draw.choice(
            [(1.0, None), (3.5, None), (2.0, ACCENTS), (0.5, ACCENTS), (0.0, None), (-1.0, None)])
    fields = {} if draw.random() < 0.6 else {"int8": "base"}
    flags = (*layout(draw, shape), *draw.choice(MEMORY))
    is_on = asked.true_cfg != off if family is flux3 else asked.true_cfg > off
    if is_on and draw.random() < 0.3:
        flags = ("--cfg-parallel", 2)
    words = [f"random {seed}", family.__name__, "int8" if fields else "", " ".join(str(f) for f in flags)]
    flags += ("--quantize", "int8") if fields else ()
    return Case(", ".join(word for word in words if word), shape, asked, flags=flags, **fields)


def draw_case(seed):
    draw = random.Random(seed)
    family = draw.choice([flux, flux, flux, klein, zimage, zimage, joy, krea2, qwen21, flux3])
    if family in (krea2, qwen21, flux3):
        return draw_guided(family, 0 if family is krea2 else 1, seed)
    if family is joy:
        return draw_joy(seed)
    coding = draw.choice(CODINGS)
    fields, flags = adapted(draw, family, coding)
    if not coding and "int8" not in fields and draw.random() < 0.3:
        fields["int8"], flags = "base", ("--quantize", "int8")
    fields["converted"] = "beside" not in flags and not fields.get("int8") and draw.random() < 0.2
    shape = family(draw, seed)
    if family is flux and (fields.get("lora") or fields.get("control_lora")):
        shape.guidance = True  # make_adapters.py changes its embedder, too
    flags += (*layout(draw, shape), *draw.choice(MEMORY))
    isa = draw.choice(INSTRUCTIONS)
    words = [f"random {seed}", family.__name__, coding, *(f"{k} {v}" for k, v in fields.items() if v),
             " ".join(str(flag) for flag in flags), isa]
    return Case(", ".join(word for word in words if word), shape,
                request(draw, family, fields.get("control_lora")), flags=flags,
                single_file=draw.choice(["", "model.diffusion_model.", None]) if coding else None,
                coded=coding, coding_seed=str(seed), coded_text=coding == "gguf" and not fields["converted"],
                env={"BRAID_ISA": isa} if isa else {}, **fields)
