"""Cases for live.py that a seed draws: configurations and requests that no published model has.

random_cases.py varies codings, LoRAs, layouts and memory of usual models; this varies everything else.
"""
import random
from dataclasses import replace

from live_cases import ACCENTS, LENGTHS, LONG, Case, ask
from random_denoisers import Flux2Shape, Flux2VaeShape, ZImageShape
from random_families import DevShape, KleinShape, TextShape, ZImagePipelineShape
from random_joy import JoyShape
from random_pipeline import NetShape, Shape
from redux import ReduxShape

PROMPTS = (*LENGTHS, ACCENTS, LONG, "", " ", "  two  spaces ", "UPPER lower", "x" * 300,
           "a\tb", "1234567 89", "日本語の絵 🎨👩‍👩‍👧", "e\u0301 \u00e9 \ufb01 ½ ①", "(((a))) [b]:1.2, {c}",
           "don't I'LL we'Ve", "\u200b\u00a0a\u3000b", "a <|im_end|> b", "[INST] </s> <pad>")
# Flags that suit models of any shape.
ANY_SHAPE = [(), (), ("--batch-size", "2"), ("--ring", "2"), ("--ring", "3", "--vae", "rank0"),
             ("--offload", "block"), ("--dp", "2")]
MASKS = (True, "white", "grey", "dot", "corner", "frame", "column", "noise")


def even_parts(draw, total, count):
    """Even numbers, perhaps zero, that sum to `total`."""
    cuts = sorted(draw.randint(0, total // 2) for _ in range(count - 1))
    return tuple(2 * (b - a) for a, b in zip([0, *cuts], [*cuts, total // 2]))


def scheduler(draw, dynamic, may_terminate=True):
    """`dynamic`: whether levels may depend on the size."""
    config = {"shift": draw.choice([1.0, 3.0, 6.93, 0.4])}
    if dynamic and draw.random() < 0.6:
        config |= {"use_dynamic_shifting": True, "base_shift": draw.choice([0.5, 0.1, 1.3]),
                   "max_shift": draw.choice([1.15, 0.2, 3.0]),
                   "base_image_seq_len": draw.choice([256, 16, 1000]),
                   "max_image_seq_len": draw.choice([4096, 64, 8192]),
                   "time_shift_type": draw.choice(["exponential", "linear"])}
    if draw.random() < 0.4:
        config[draw.choice(["use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas"])] = True
    for name, share, value in (("shift_terminal", 0.2 * may_terminate, draw.choice([0.02, 0.3])),
                               ("invert_sigmas", 0.1, True), ("stochastic_sampling", 0.1, True),
                               ("use_flow_sigmas", 0.15, True),
                               ("num_train_timesteps", 0.2, draw.choice([500, 2000]))):
        if draw.random() < share:
            config[name] = value
    return config


def vae(draw, seed, **fields):
    """Of FLUX.1's kind, with 4 or 8 pixels per latent."""
    groups = draw.choice([1, 2, 3])
    widths = tuple(groups * draw.choice([2, 3, 4, 6]) for _ in range(draw.choice([3, 4, 4])))
    return Shape(seed=seed, vae_widths=widths, vae_groups=groups, vae_layers=draw.randint(1, 3),
                 vae_attention=draw.random() < 0.6, latent_channels=draw.choice([1, 2, 4, 16]),
                 scaling=draw.choice([0.3611, 1.0, 2.5]), shift=draw.choice([0.1159, 0.0, -0.7]),
                 configs={"vae": {"use_quant_conv": draw.random() < 0.4,
                                  "use_post_quant_conv": draw.random() < 0.4}}, **fields)


def nets(draw, double, single):
    """The reference asks the first one whether all have guidance."""
    count = draw.choice([0, 0, 1, 2])
    kind = {"pixels": True} if draw.random() < 0.3 else {"modes": draw.choice([None, 1, 5])}
    kind["guidance"] = draw.random() < 0.5
    return tuple(NetShape(draw.randint(1, double), 0 if "pixels" in kind else draw.randint(0, single),
                          **kind) for _ in range(count))


def flux_shape(draw, seed):
    head_dim, heads = 2 * draw.randint(3, 20), draw.randint(1, 7)
    double, single = draw.randint(1, 4), draw.randint(1, 4)
    pipeline = draw.choice(["FluxPipeline"] * 5 + [
        "FluxKontextPipeline", "FluxFillPipeline", "FluxControlPipeline"])
    t5_heads = draw.randint(1, 4)
    base = vae(draw, seed)
    configs = base.configs | {
        "text_encoder": {"layer_norm_eps": draw.choice([1e-5, 1e-3])},
        "text_encoder_2": {"layer_norm_epsilon": draw.choice([1e-6, 1e-2])}}
    return replace(
        base, pipeline=pipeline, heads=heads, head_dim=head_dim, axes=even_parts(draw, head_dim, 3),
        double_blocks=double, single_blocks=single, guidance=draw.random() < 0.6,
        clip_width=24, clip_heads=draw.choice([1, 3]), clip_layers=draw.randint(1, 4),
        clip_ff=draw.choice([20, 50]), clip_act=draw.choice(["quick_gelu", "gelu", "gelu_new"]),
        clip_eos=draw.choice([2, 669]), t5_width=draw.choice([20, 36]), t5_heads=t5_heads,
        t5_head_dim=draw.choice([6, 10]), t5_ff=draw.choice([30, 70]), t5_layers=draw.randint(1, 4),
        t5_buckets=draw.choice([4, 8, 32, 50]), t5_max_distance=draw.choice([20, 128, 300]),
        scheduler=scheduler(draw, True), configs=configs,
        controlnets=nets(draw, double, single) if pipeline == "FluxPipeline" else (),
        redux=ReduxShape(heads=draw.choice([1, 2, 4]), patch=draw.choice([4, 7, 9]),
                         side=draw.choice([27, 28, 40])) if draw.random() < 0.15
        and pipeline == "FluxPipeline" else None)


def size_of(draw, least=1, most=11):
    return draw.randint(least, most) * 16, draw.randint(least, most) * 16


def some_picture(draw, least=8):
    return draw.randint(least, 200), draw.randint(least, 200)


def start(draw, size, has_mask, may_crop=True):
    """Options of a picture to start from."""
    options = {"init": draw.choice([size, some_picture(draw, 16)]),
               "strength": draw.choice([0.3, 0.5, 0.77, 0.99, 1.0])}
    if not has_mask:
        return options
    options |= {"mask": draw.choice(MASKS), "mask_blur": draw.choice([0, 0, 2, 7.5])}
    if may_crop and draw.random() < 0.4 and options["mask"] not in ("grey", "noise"):
        options["padding_crop"] = draw.choice([0, 3, 32, 300])
        # The crop takes the shape of the size as it is asked for, before it is rounded down.
        options["size"] = "x".join(str(side + draw.choice([0, draw.randint(1, 15)])) for side in size)
    return options


def followed(draw, shape):
    """A picture for each ControlNet, or several for one."""
    count = len(shape.controlnets)
    if count == 1 and draw.random() < 0.3 and shape.controlnets[0].modes:
        count = 2
    modes = [net.modes for net in shape.controlnets] * (count if len(shape.controlnets) == 1 else 1)
    has_modes = any(modes)
    return {"followed": tuple(some_picture(draw) for _ in range(count)),
            "control_scales": tuple(draw.choice([1.0, 0.0, 0.5, 1.7, -0.4]) for _ in range(count)),
            "control_from": tuple(draw.choice([0.0, 0.0, 0.25, 0.5]) for _ in range(count)),
            "control_to": tuple(draw.choice([1.0, 1.0, 0.75, 0.51]) for _ in range(count)),
            "control_modes": tuple(draw.randrange(m) if m else 0 for m in modes)
            if has_modes else ()}


def common(draw, size):
    return {"size": f"{size[0]}x{size[1]}", "n": draw.choice([1, 1, 2, 3]),
            "seed": draw.randint(0, 2**63), "steps": draw.choice([1, 2, 3, 4, 6]),
            "vae_tiling": draw.random() < 0.1}


def flux(draw, seed):
    shape, size = flux_shape(draw, seed), size_of(draw)
    options = common(draw, size) | {"guidance": draw.choice([0.0, 1.0, 3.5, 30.0, -2.0]),
                                    "seq": draw.choice([1, 5, 32, 77, 512])}
    prompts = draw.sample([p for p in PROMPTS if p.strip()], draw.choice([1, 1, 2]))
    is_plain = shape.pipeline == "FluxPipeline"
    if is_plain or shape.pipeline == "FluxKontextPipeline":
        if draw.random() < 0.4:
            options |= {"cfg": draw.choice([1.0, 1.3, 5.0]), "negative": draw.choice(PROMPTS)}
            if draw.random() < 0.3:
                options["negative_prompt_2"] = draw.choice(PROMPTS)
    if draw.random() < 0.2:
        options["prompt_2"] = draw.choice(PROMPTS)
    if shape.redux:
        shape.controlnets = ()
        prompts, options["seq"] = prompts[:1], 512
        count = draw.choice([1, 2, 3])
        options["looked_at"] = tuple(some_picture(draw) for _ in range(count))
        options["looked_scales"] = tuple(draw.choice([1.0, 0.3, -1.0]) for _ in range(count))
        options.pop("negative_prompt_2", None)
    elif shape.controlnets:
        options |= followed(draw, shape)
    if shape.pipeline == "FluxControlPipeline":
        options["control"] = draw.choice([size, some_picture(draw)])
    elif shape.pipeline == "FluxFillPipeline":
        options |= start(draw, size, True, may_crop=False)
    elif shape.pipeline == "FluxKontextPipeline":
        if draw.random() < 0.7:
            options["references"] = (some_picture(draw, 20),)
        elif draw.random() < 0.7:
            options |= start(draw, size, True) | {"init": size}
    elif draw.random() < 0.5 and not shape.redux:
        options |= start(draw, size, draw.random() < 0.6)
    if "init" in options and shape.controlnets:
        options.pop("cfg", None), options.pop("negative", None), options.pop("negative_prompt_2", None)
    return shape, ask(*prompts, **options)


def language_model(draw, least_layers, **fields):
    kv = draw.choice([1, 2, 3])
    return TextShape(width=draw.choice([24, 32, 50]), heads=kv * draw.choice([1, 2, 4]), kv_heads=kv,
                     head_dim=draw.choice([6, 8, 10]), ff=draw.choice([30, 44]),
                     layers=least_layers + draw.choice([0, 0, 1, 3]),
                     theta=draw.choice([1e4, 1e6, 5e5]), chat_in_config=draw.random() < 0.5,
                     config={"rms_norm_eps": draw.choice([1e-6, 1e-5, 1e-3]),
                             "tie_word_embeddings": draw.random() < 0.5}, **fields)


def flux2_parts(draw, guidance):
    head_dim = 2 * draw.randint(4, 16)
    groups = draw.choice([1, 2, 3])

    levels = draw.choice([3, 4, 4])

    def widths():
        return tuple(groups * draw.choice([2, 3, 4]) for _ in range(levels))

    return {"transformer": Flux2Shape(
                heads=draw.randint(1, 6), head_dim=head_dim, axes=even_parts(draw, head_dim, 4),
                theta=draw.choice([2000, 10000, 37]), double_blocks=draw.randint(1, 3),
                single_blocks=draw.randint(1, 3), mlp_ratio=draw.choice([1.0, 1.7, 3.0, 4.5]),
                guidance=guidance, sinusoid=draw.choice([256, 32, 10])),
            "vae": Flux2VaeShape(
                widths=widths(), decoder_widths=draw.choice([None, widths()]), groups=groups,
                layers=draw.randint(1, 3), attention=draw.random() < 0.6,
                latent_channels=draw.choice([2, 3, 8]), batch_norm_eps=draw.choice([1e-4, 1e-5, 0.5]),
                config={"use_quant_conv": draw.random() < 0.7,
                        "use_post_quant_conv": draw.random() < 0.7})}


def references(draw, count, least=64):
    """Up to 8 times as long as wide."""
    sizes = []
    for _ in range(count):
        a = draw.randint(least, 160)
        sizes.append((a, draw.randint(least, min(8 * a, 300))))
    return tuple(sizes)


def klein(draw, seed):
    kind = draw.choice(["distilled", "base", "base", "kept"])
    shape = KleinShape(seed=seed, distilled=kind == "distilled", kept=kind == "kept",
                       text=language_model(draw, 28), scheduler=scheduler(draw, True),
                       **flux2_parts(draw, False))
    size = size_of(draw, 2)
    options = common(draw, size) | {"seq": draw.choice([3, 20, 64, 200])}
    count = draw.choice([1, 1, 2])
    if kind == "base":
        options |= {"cfg": draw.choice([0.0, 0.7, 1.0, 1.01, 4.0, 9.5]),
                    "negative": draw.choice([None, *PROMPTS])}
        if options["cfg"] <= 1:
            options["negative"] = None
    has_mask = kind != "kept" and draw.random() < 0.5
    if has_mask:
        side = 2 ** len(shape.vae.widths)  # of a token; the reference draws as many as the picture has
        wide, high = (draw.randint(0, side - 1) for _ in range(2))
        options |= start(draw, size, True) | {"init": (size[0] + wide, size[1] + high)}
        if draw.random() < 0.4:
            options["references"] = references(draw, 1) * draw.choice([1, 1, 2])
            if len(options["references"]) == 2:  # in a batch the reference takes them for one each
                options["n"], count = 1, 1
    elif draw.random() < 0.6:
        options["references"] = references(draw, draw.choice([1, 1, 2, 3, 4]))
    return shape, ask(*draw.sample([p for p in PROMPTS if p.strip()] if count > 1 else PROMPTS, count),
                      **options)


def dev2(draw, seed):
    shape = DevShape(seed=seed, scheduler=scheduler(draw, True), text=replace(
        language_model(draw, 31), width=20), **flux2_parts(draw, draw.random() < 0.8))
    options = common(draw, size_of(draw, 2)) | {"seq": draw.choice([40, 230, 300]),
                                                "guidance": draw.choice([0.0, 1.0, 4.0, 10.0])}
    if draw.random() < 0.6:
        options["references"] = references(draw, draw.choice([1, 2, 3]))
    return shape, ask(draw.choice(PROMPTS), **options)


def zimage(draw, seed):
    head_dim = 2 * draw.randint(3, 16)
    base = vae(draw, seed)
    shape = ZImagePipelineShape(
        seed=seed, vae=base, text=language_model(draw, 2, causal_lm=draw.random() < 0.5),
        scheduler=scheduler(draw, True), transformer=ZImageShape(
            heads=draw.randint(1, 7), axes=even_parts(draw, head_dim, 3),
            theta=draw.choice([256.0, 10000.0, 50.0]), refiners=draw.randint(1, 3),
            layers=draw.randint(1, 4), t_scale=draw.choice([1000.0, 1.0, 250.0]),
            config={"norm_eps": draw.choice([1e-5, 1e-6, 1e-2])}))
    size = size_of(draw)
    options = common(draw, size) | {"seq": draw.choice([1, 31, 32, 33, 100, 512]),
                                    "cfg": draw.choice([0.0, 0.0, 1.0, 0.2, 5.0])}
    if options["cfg"] > 0:
        options |= {"negative": draw.choice([None, *PROMPTS]),
                    "cfg_norm_cap": draw.choice([0.0, 0.0, 0.5, 1.0, 2.0]),
                    "cfg_until": draw.choice([1.0, 1.0, 0.0, 0.5])}
    if draw.random() < 0.5:
        options |= start(draw, size, draw.random() < 0.6, may_crop=False)
    return shape, ask(*draw.sample([p for p in PROMPTS if p.strip()], draw.choice([1, 1, 2])),
                      **options)


def joy(draw, seed):
    plus = draw.random() < 0.6
    axes = tuple(2 * draw.randint(1, 6) for _ in range(3))
    head_dim = 2 * draw.choice([6, 8, 10])
    time, row = draw.randint(1, head_dim // 2 - 2), 1
    row = draw.randint(1, head_dim // 2 - time - 1)
    kv = draw.choice([1, 2])
    layers, depth = draw.randint(2, 5), draw.randint(1, 5)
    levels = draw.choice([5, 6])
    base = draw.choice([2, 4])
    mult = (1, *(draw.choice([1, 2, 3]) for _ in range(levels - 1)))
    if base * max(mult) % 2 or any(base * m % 2 for m in mult):
        base = 4
    shape = JoyShape(
        seed=seed, plus=plus, heads=draw.randint(1, 4), axes=axes, layers=draw.randint(1, 3),
        mlp_ratio=draw.choice([1.5, 2.5, 4.0]), rope_type=draw.choice(["rope", "mrope"]),
        latent_channels=draw.choice([3, 8, 16]), vae_base=base, vae_mult=mult,
        vae_layers=draw.randint(1, 3), text_width=draw.choice([12, 24, 40]), text_layers=layers,
        text_heads=kv * draw.choice([1, 3]), text_kv_heads=kv, text_head_dim=head_dim,
        text_ff=draw.choice([20, 50]), sections=(time, row, head_dim // 2 - time - row),
        vision_width=draw.choice([16, 24]), vision_heads=draw.choice([1, 2]),
        vision_depth=depth, vision_ff=draw.choice([20, 50]),
        vision_positions=draw.choice([16, 36, 81, 2304]),
        deepstack=tuple(sorted(draw.sample(range(depth), min(depth, draw.randint(0, layers))))),
        scheduler=scheduler(draw, False), configs={
            "transformer": {"theta": draw.choice([256, 10000, 77])},
            "text": {"rms_norm_eps": draw.choice([1e-6, 1e-4])},
            "processor": draw.choice([{}, {"size": {"shortest_edge": 3136, "longest_edge": 1003520}},
                                      {"size": {"shortest_edge": 1200000, "longest_edge": 9000000},
                                       "image_mean": [0.4, 0.5, 0.7], "image_std": [0.2, 0.3, 0.6]}]),
            "vae": {"temperal_downsample": [draw.random() < 0.5 for _ in range(levels - 1)]}})
    options = {"size": draw.choice(["1024x1024", "500x300", "64x640", "1024x832", "832x1152"]),
               "seq": 4096, "seed": draw.randint(0, 2**63), "steps": draw.choice([1, 2, 3]),
               "cfg": draw.choice([0.0, 1.0, 1.2, 4.0, 15.0]),
               "negative": draw.choice([None, *PROMPTS])}
    if options["cfg"] <= 1:
        options["negative"] = None
    if plus:
        options["size"] = draw.choice(["512x512", "640x320", "320x1280"])
    count = draw.choice([0, 1, 1]) if not plus else draw.choice([0, 1, 2, 3, 5])
    options["references"] = tuple((draw.randint(20, 1500), draw.randint(20, 1500))
                                  for _ in range(count))
    if draw.random() < 0.2:
        options["seq"] = draw.choice([30, 700, 1500])
    return shape, ask(draw.choice(PROMPTS), **options)


FAMILIES = (flux, flux, klein, klein, dev2, zimage, joy)


def fitted(shape, request):
    """Takes options out of a scheduler that diffusers or Braid has not with this request."""
    if request.steps == 1:
        shape.scheduler.pop("shift_terminal", None)


def draw_unusual(seed, family=None):
    draw = random.Random(f"unusual {seed}")
    family = family or draw.choice(FAMILIES)
    shape, request = family(draw, seed)
    fitted(shape, request)
    flags = draw.choice(ANY_SHAPE)
    if request.max_sequence_length < 3 and "--ring" in flags:  # each rank needs a text token
        flags = ()
    return Case(f"unusual {seed}, {family.__name__}", shape, request, flags=flags)
