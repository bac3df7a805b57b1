"""The cases of live.py: pipeline, request, and how braid is called."""
from dataclasses import dataclass, field, replace

from dump import Request
from random_denoisers import Flux2Shape, Flux2VaeShape, ZImageShape
from random_families import DevShape, KleinShape, TextShape, ZImagePipelineShape
from random_flux3 import Flux3Shape, Flux3TransformerShape
from random_joy import JoyShape
from random_krea2 import Krea2Shape, Krea2TransformerShape
from random_pipeline import NetShape, Shape
from random_qwen21 import Qwen21Shape, Qwen21TransformerShape, Qwen21VaeShape
from random_qwen_image import QwenImageShape, QwenImageTransformerShape
from redux import ReduxShape

BLUE = "a red circle on a blue background"
LENGTHS = ("star", BLUE, "a small green heart to the left of a large yellow ring on a striped "
                         "orange and purple background, and nothing else in the whole picture")
ACCENTS = "Ünïcödé ★ 漢字 naïve café 🎨 it's 50%!! <b>BOLD</b>"
LONG = "a red circle, a blue square, " * 30

DEV = Shape()
SCHNELL = Shape(seed=1, guidance=False, scheduler={"shift": 1.0})
FLUX_AXES = {"heads": 2, "head_dim": 128, "axes": (16, 56, 56), "single_blocks": 1}


@dataclass
class Case:
    name: str
    shape: (Shape | KleinShape | DevShape | ZImagePipelineShape | JoyShape | Krea2Shape | Qwen21Shape |
            QwenImageShape | Flux3Shape | None)
    request: Request
    dtype: str = "float32"
    flags: tuple = ()        # further flags of braid, which must not change any number
    single_file: str | None = None  # the prefix of the names in a single-file transformer
    own_latents: bool = False       # starts from given latents (--latents) instead of drawn ones
    coded: str | None = None        # the transformer's coding (coded_file.py)
    coding_seed: str = ""           # chooses the types of a GGUF file's tensors
    coded_text: bool = False        # the large text encoder in GGUF
    lora: str | None = None         # how a LoRA is spelt (make_adapters.py)
    control_lora: bool = False      # a LoRA turns it into a control model
    int8: str | None = None         # weights in 8 bits: "merged", or "base" with the LoRA beside them
    wan_vae: bool = False           # the autoencoder as a file of Wan 2.1's names
    respelt: tuple = ()             # ways of other versions to write the same (respelt.py)
    published: tuple | None = None  # compared by published.py, with these flags
    converted: bool = False         # braid first writes a merged model, which must be one of diffusers
    env: dict = field(default_factory=dict)  # of braid, as the flags: no number may change


def ask(*prompts, size="64x64", seq=32, cfg=1.0, negative=None, n=1, **options):
    width, height = (int(part) for part in size.split("x"))
    return Request(prompts or (BLUE,), width=width, height=height, max_sequence_length=seq,
                   true_cfg=cfg, negative_prompt=negative, num_images=n, **options)


def shape(**options):
    """Another random pipeline; its seed follows from its options."""
    return replace(DEV, seed=sum(repr(sorted(options.items())).encode()), **options)


def scheduled(**options):
    return shape(scheduler=options)


BUNDLED = [
    Case("bundled 64x64", None, ask(seq=16, steps=3)),
    Case("bundled 128x128", None, ask(size="128x128", seq=64, steps=4, seed=1234)),
    Case("bundled 112x80, 512 tokens", None, ask(size="112x80", seq=512)),
    Case("bundled -n 3", None, ask(n=3, seed=5)),
    Case("bundled -n 3 at once", None, ask(n=3, seed=5), flags=("--batch-size", "3")),
    Case("bundled, prompts of three lengths", None, ask(*LENGTHS, size="80x64", seq=48)),
    Case("bundled, true CFG", None, ask(cfg=3.0, negative="blurry, two stars", steps=3)),
    Case("bundled, tiles", None, ask(size="192x160", steps=2, vae_tiling=True)),
    Case("bundled, bfloat16", None, ask(size="96x96", guidance=4.0, n=2), "bfloat16"),
    Case("bundled, bfloat16, guidance 3.5", None, ask(size="96x96", n=2), "bfloat16"),
]
SHAPES = [
    Case("2 heads, 112x80", DEV, ask(size="112x80", steps=4)),
    Case("24 heads", shape(heads=24, double_blocks=1, single_blocks=1), ask(size="96x64")),
    Case("5 heads of 6", shape(heads=5, head_dim=6, axes=(2, 2, 2)), ask(size="176x48")),
    Case("FLUX.1's axes", shape(**FLUX_AXES), ask(size="320x192", seq=128)),
    Case("4 + 4 blocks", shape(double_blocks=4, single_blocks=4), ask(size="208x144", steps=3)),
    Case("1 + 1 blocks, axes 8 4 20", shape(heads=3, head_dim=32, axes=(8, 4, 20), single_blocks=1),
         ask(size="64x192", seq=77)),
    Case("no guidance", SCHNELL, ask(LONG, size="80x112", steps=4, seq=256)),
    Case("no guidance, -n 3", SCHNELL, ask(n=3, seed=2**33), flags=("--batch-size", "2")),
    Case("512 tokens", shape(heads=6, head_dim=8, axes=(2, 2, 4)), ask(ACCENTS, seq=512)),
    Case("latents of one's own", DEV, ask(size="80x96", n=2), own_latents=True),
    Case("size to be rounded", DEV, ask(size="100x71", n=2)),
    Case("true CFG, three prompts", shape(heads=3),
         ask(*LENGTHS, cfg=4.5, negative=ACCENTS, seq=40)),
    Case("true CFG of 1 is none", shape(heads=4), ask(cfg=1.0, negative="a star")),
    Case("--prompt-2", shape(t5_layers=4), ask(ACCENTS, prompt_2="two purple squares", seq=24)),
    Case("wide texts", shape(clip_width=96, clip_heads=6, clip_layers=4, t5_width=80, t5_heads=3,
                             t5_head_dim=20, t5_ff=144, t5_buckets=12, t5_max_distance=24),
         ask(LONG, seq=300)),
]
FILES = [
    Case("shards", shape(shard="50KB", t5_embedding="both"), ask(size="64x96")),
    Case("kept in bfloat16", shape(dtype="bfloat16", clip_prefix=True), ask(n=2)),
    Case("kept in float16", shape(dtype="float16", t5_embedding="encoder"), ask(LENGTHS[2])),
    Case("single file, prefix", shape(**FLUX_AXES), ask(), single_file="model.diffusion_model."),
    Case("single file, no guidance", shape(guidance=False, **FLUX_AXES), ask(), single_file=""),
    Case("CLIP pools at its EOS", shape(clip_eos=669, clip_act="gelu"), ask(LONG, n=2)),
    Case("CLIP pools at the largest id", shape(clip_eos=2, clip_layers=3), ask(*LENGTHS[:2])),
]
AUTOENCODERS = [
    Case("tiles, odd remainder", shape(vae_sample_size=32, vae_layers=2),
         ask(size="144x112", vae_tiling=True)),
    Case("quantization convs", shape(vae_quant_convs=True, vae_attention=False, vae_layers=3,
                                     vae_widths=(6, 12, 12, 18), vae_groups=3), ask(size="96x80")),
    Case("quantization convs, tiles", shape(vae_quant_convs=True, vae_sample_size=32, vae_groups=2,
                                            vae_widths=(4, 8, 8, 8), scaling=1.7, shift=-0.3),
         ask(size="80x128", vae_tiling=True, n=2)),
]
SCHEDULERS = [
    Case("static shift", scheduled(shift=3.0), ask(steps=4)),
    Case("karras", scheduled(use_dynamic_shifting=True, use_karras_sigmas=True), ask(steps=4)),
    Case("exponential", scheduled(shift=2.0, use_exponential_sigmas=True), ask(steps=4)),
    Case("beta", scheduled(use_dynamic_shifting=True, use_beta_sigmas=True), ask(steps=5)),
    Case("linear, terminal shift", scheduled(use_dynamic_shifting=True, time_shift_type="linear",
                                             shift_terminal=0.1), ask(steps=3)),
    Case("inverted", scheduled(shift=3.0, invert_sigmas=True), ask(steps=3)),
    Case("flow sigmas", scheduled(shift=3.0, use_flow_sigmas=True), ask(steps=3)),
    Case("stochastic", scheduled(shift=3.0, stochastic_sampling=True), ask(steps=3, n=2, seed=9)),
]
BFLOAT16 = [
    Case("bfloat16", shape(heads=4, dtype="bfloat16"), ask(guidance=4.0, n=4), "bfloat16"),
    Case("bfloat16, no guidance", SCHNELL, ask(*LENGTHS, size="112x80"), "bfloat16"),
    Case("bfloat16, 24 heads", shape(heads=24, single_blocks=1), ask(guidance=2.0), "bfloat16"),
]
FLUX1 = BUNDLED + SHAPES + FILES + AUTOENCODERS + SCHEDULERS + BFLOAT16

# FLUX.2 klein, distilled and base, FLUX.2 dev, Z-Image turbo and base.
SYSTEM = 220  # tokens; dev's prompts follow a system message of many
NARROW = Flux2Shape(heads=5, head_dim=8, axes=(2, 2, 2, 2), double_blocks=2, single_blocks=1,
                    mlp_ratio=2.5)
THIN = Flux2VaeShape(widths=(6, 12, 12, 12), decoder_widths=(6, 6, 6, 12), groups=3,
                     latent_channels=3, attention=False)
KLEIN = [
    Case("klein", KleinShape(seed=1), ask(steps=4)),
    Case("klein, 112x80, -n 2", KleinShape(seed=2, transformer=NARROW), ask(size="112x80", n=2)),
    Case("klein, prompts of three lengths", KleinShape(seed=3), ask(*LENGTHS, seq=64)),
    Case("klein, latents of one's own", KleinShape(seed=4), ask(size="80x96", n=2),
         own_latents=True),
    Case("klein, size to be rounded", KleinShape(seed=5), ask(size="100x71", n=2)),
    Case("klein, thin decoder, tiles", KleinShape(seed=6, vae=THIN),
         ask(size="112x144", vae_tiling=True)),
    Case("klein, a reference", KleinShape(seed=7), ask(references=((64, 96),))),
    Case("klein, references to be cropped", KleinShape(seed=8),
         ask(size="80x64", n=2, references=((75, 66), (130, 64)))),
    Case("klein, a reference to be shrunk", KleinShape(seed=9),
         ask(steps=1, references=((1300, 900),))),
    Case("klein base", KleinShape(seed=10, distilled=False), ask(cfg=4.0, steps=3)),
    Case("klein base, negative prompt, a reference", KleinShape(
        seed=11, distilled=False, text=TextShape(width=16, head_dim=8)),
        ask(*LENGTHS[:2], cfg=2.5, negative="blurry, two stars", references=((64, 64),))),
    Case("klein base without guidance", KleinShape(seed=12, distilled=False), ask()),
    Case("klein, 512 tokens", KleinShape(seed=13), ask(LONG, seq=512)),
    Case("klein, accents", KleinShape(seed=14, text=TextShape(chat_in_config=True)),
         ask(ACCENTS, seq=100)),
    Case("klein, padded on the left, tokens of its own", KleinShape(seed=20, text=TextShape(
        width=24, tokenizer={"padding_side": "left"},
        added=({"content": "circle"}, {"content": "red", "single_word": True},
               {"content": "É", "normalized": True}, {"content": "on", "lstrip": True}))),
        ask(BLUE + ACCENTS, seq=100)),
    Case("klein, static shift", KleinShape(seed=15, scheduler={"shift": 3.0}), ask(steps=3)),
    Case("klein, kept in bfloat16", KleinShape(seed=16, dtype="bfloat16"), ask(n=2)),
    Case("klein, bfloat16", KleinShape(seed=17, dtype="bfloat16"), ask(n=2), "bfloat16"),
    Case("klein base, bfloat16", KleinShape(seed=18, distilled=False, dtype="bfloat16"),
         ask(cfg=4.0, n=4), "bfloat16"),
    Case("klein base, a reference, bfloat16", KleinShape(seed=19, distilled=False,
                                                         dtype="bfloat16"),
         ask(cfg=4.0, references=((64, 80),)), "bfloat16"),
]
DEV2 = [
    Case("dev 2", DevShape(seed=1), ask(seq=SYSTEM, guidance=4.0, steps=3)),
    Case("dev 2, guidance 2.5, -n 2", DevShape(seed=2), ask(seq=SYSTEM, guidance=2.5, n=2)),
    Case("dev 2, guidance 30", DevShape(seed=3), ask(seq=SYSTEM, guidance=30.0)),
    Case("dev 2, cut system message", DevShape(seed=4), ask(seq=40)),
    Case("dev 2, references", DevShape(seed=5),
         ask(seq=SYSTEM, size="96x64", references=((64, 64), (96, 80)))),
    Case("dev 2, [IMG] in the prompt", DevShape(seed=6), ask("a [IMG]red[IMG] circle", seq=SYSTEM)),
    Case("dev 2, accents", DevShape(seed=7), ask(ACCENTS, seq=300)),
    Case("dev 2, bfloat16", DevShape(seed=8, dtype="bfloat16"), ask(seq=SYSTEM, guidance=4.0),
         "bfloat16"),
]
ZIMAGE = [
    Case("zimage turbo", ZImagePipelineShape(seed=1), ask(cfg=0.0, steps=4, seq=64)),
    Case("zimage turbo, 112x80, -n 2", ZImagePipelineShape(
        seed=2, transformer=ZImageShape(heads=5, axes=(4, 2, 2), refiners=2)),
        ask(size="112x80", cfg=0.0, n=2, seq=64)),
    Case("zimage turbo, latents of one's own", ZImagePipelineShape(seed=3),
         ask(cfg=0.0, n=2, seq=64), own_latents=True),
    Case("zimage turbo, accents", ZImagePipelineShape(seed=4, text=TextShape(
        layers=3, causal_lm=False, chat_in_config=True)), ask(ACCENTS, cfg=0.0, seq=100)),
    Case("zimage turbo, 9 steps", ZImagePipelineShape(seed=5), ask(cfg=0.0, steps=9, seq=64)),
    Case("zimage turbo, dynamic shift", ZImagePipelineShape(
        seed=6, scheduler={"shift": 3.0, "use_dynamic_shifting": True}),
        ask(cfg=0.0, seq=64)),
    Case("zimage", ZImagePipelineShape(seed=7), ask(cfg=5.0, steps=3, seq=64)),
    Case("zimage, negative prompt, -n 2", ZImagePipelineShape(seed=8, text=TextShape(layers=4)),
         ask(cfg=3.0, negative="blurry, two stars", n=2, seq=64)),
    Case("zimage, guidance below 1", ZImagePipelineShape(seed=9), ask(cfg=0.5, seq=64)),
    Case("zimage, long caption", ZImagePipelineShape(seed=10), ask(LONG, cfg=0.0, seq=300)),
    Case("zimage turbo, three prompts", ZImagePipelineShape(
        seed=13, transformer=ZImageShape(heads=6, axes=(2, 2, 4))),
        ask(*LENGTHS, cfg=0.0, seq=100, size="80x112"), flags=("--batch-size", "3")),
    Case("zimage turbo, empty prompt", ZImagePipelineShape(seed=14), ask("", cfg=0.0, seq=64)),
    Case("zimage turbo, a token", ZImagePipelineShape(seed=15), ask(cfg=0.0, seq=1)),
    Case("zimage turbo, 30 heads", ZImagePipelineShape(
        seed=16, transformer=ZImageShape(heads=30, axes=(2, 2, 2), layers=3)),
        ask(cfg=0.0, size="96x160", seq=64)),
    Case("zimage turbo, single file", ZImagePipelineShape(
        seed=17, transformer=ZImageShape(heads=2, axes=(32, 48, 48))),  # shapes do not determine axes
        ask(cfg=0.0, seq=64), single_file=""),
    Case("zimage turbo, single file, prefix", ZImagePipelineShape(
        seed=21, transformer=ZImageShape(heads=3, axes=(32, 48, 48), refiners=2, layers=1)),
        ask(cfg=0.0, seq=64), single_file="model.diffusion_model."),
    Case("zimage, no norms of queries and keys", ZImagePipelineShape(
        seed=24, transformer=ZImageShape(config={"qk_norm": False})), ask(cfg=2.0, n=2, seq=64)),
    Case("zimage, biases in the text encoder", ZImagePipelineShape(
        seed=25, text=TextShape(layers=4, config={"attention_bias": True})), ask(cfg=2.0, seq=64)),
    Case("zimage, capped", ZImagePipelineShape(seed=18, scheduler={"shift": 6.0}),
         ask(LENGTHS[2], cfg=4.0, cfg_norm_cap=0.9, negative=ACCENTS, seq=200, steps=3)),
    Case("zimage, truncated", ZImagePipelineShape(seed=19, scheduler={"shift": 6.0}),
         ask(*LENGTHS[:2], cfg=4.0, cfg_until=0.2, steps=4, seq=64)),
    Case("zimage, truncated, 500 timesteps, three prompts", ZImagePipelineShape(
        seed=22, scheduler={"shift": 3.0, "num_train_timesteps": 500}),
        ask(*LENGTHS, cfg=4.0, cfg_until=0.6, cfg_norm_cap=0.8, negative="blurry", steps=4, seq=64)),
    Case("zimage, stochastic", ZImagePipelineShape(
        seed=23, scheduler={"shift": 3.0, "stochastic_sampling": True}),
        ask(size="112x80", n=2, cfg=3.0, steps=3, seq=64)),
    Case("zimage, tiles, kept in bfloat16", ZImagePipelineShape(
        seed=20, dtype="bfloat16", vae=Shape(latent_channels=4, vae_sample_size=64)),
        ask(size="112x144", cfg=2.0, vae_tiling=True, seq=64)),
    Case("zimage turbo, bfloat16", ZImagePipelineShape(seed=11, dtype="bfloat16"),
         ask(cfg=0.0, n=2, seq=64), "bfloat16"),
    Case("zimage, bfloat16", ZImagePipelineShape(seed=12, dtype="bfloat16"),
         ask(cfg=4.0, seq=64), "bfloat16"),
]
# Image to image, inpainting, and FLUX.1's variants that look at pictures.
KONTEXT = shape(pipeline="FluxKontextPipeline", double_blocks=1, single_blocks=1, latent_channels=4)
FILL = shape(pipeline="FluxFillPipeline")
CONTROL = shape(pipeline="FluxControlPipeline")
PICTURES = [
    Case("init, bundled", None, ask(steps=4, init=(64, 64))),
    Case("init", DEV, ask(size="96x80", steps=5, init=(130, 77), strength=0.5)),
    Case("init, strength 1", DEV, ask(steps=3, init=(64, 64), strength=1.0)),
    Case("init, one step of 7", shape(heads=3), ask(steps=7, init=(40, 300), strength=0.15)),
    Case("init, -n 3, true CFG", shape(heads=4), ask(n=3, cfg=2.5, negative="blurry", steps=4,
                                                     init=(80, 64)), flags=("--batch-size", "2")),
    Case("init, tiles, quantization convs", shape(vae_quant_convs=True, vae_sample_size=32,
                                                  vae_groups=2, scaling=1.7, shift=-0.3),
         ask(size="80x128", vae_tiling=True, steps=3, init=(80, 128))),
    Case("init, stochastic", scheduled(shift=3.0, stochastic_sampling=True),
         ask(steps=4, n=2, seed=9, init=(64, 64))),
    Case("init, karras", scheduled(use_dynamic_shifting=True, use_karras_sigmas=True),
         ask(steps=4, init=(64, 64), strength=0.7)),
    Case("init, flow sigmas", scheduled(shift=3.0, use_flow_sigmas=True),
         ask(steps=4, init=(64, 64))),
    Case("init, strength 0.01, one level of the autoencoder", shape(vae_widths=(6,), vae_groups=3),
         ask(size="22x34", steps=4, init=(64, 64), strength=0.01)),
    Case("mask, bundled", None, ask(steps=4, init=(128, 96), mask=True, strength=0.8)),
    Case("mask", DEV, ask(size="112x80", steps=4, init=(200, 133), mask=True)),
    Case("mask, strength 1, two prompts", shape(heads=3),
         ask(*LENGTHS[:2], steps=3, init=(64, 64), mask=True, strength=1.0)),
    Case("mask, stochastic", scheduled(shift=3.0, stochastic_sampling=True),
         ask(steps=4, n=2, seed=9, init=(64, 64), mask=True)),
    Case("mask, blurred", DEV, ask(size="96x80", steps=4, init=(130, 77), mask=True, mask_blur=6.5)),
    Case("mask, crop", DEV, ask(size="64x96", steps=3, init=(131, 90), mask=True, padding_crop=9)),
    Case("mask, crop in the shape of an odd size", DEV, ask(
        size="79x48", steps=3, init=(97, 131), mask="dot", padding_crop=7, strength=0.6)),
    Case("mask, crop, blurred, bundled", None, ask(
        size="96x64", steps=3, init=(90, 150), mask=True, padding_crop=0, mask_blur=3, strength=1.0)),
    Case("klein, mask", KleinShape(seed=40), ask(size="112x80", steps=4, init=(112, 80), mask=True,
                                                 strength=0.8)),
    Case("klein, mask, stochastic", KleinShape(
        seed=49, scheduler={"shift": 3.0, "stochastic_sampling": True}),
        ask(size="112x80", n=2, steps=4, init=(112, 80), mask=True, strength=0.8)),
    Case("klein, mask, to be cut, a reference", KleinShape(seed=41),
         ask(size="96x64", n=2, steps=5, init=(110, 75), mask=True, mask_blur=4, strength=0.5,
             references=((64, 80),))),
    Case("klein, mask, to be shrunk", KleinShape(seed=42),
         ask(size="1216x848", steps=1, init=(1300, 900), mask=True, strength=1.0)),
    Case("klein base, mask, guidance", KleinShape(seed=43, distilled=False,
                                                  text=TextShape(width=16, head_dim=8)),
         ask(*LENGTHS[:2], cfg=2.5, negative="blurry", steps=4, init=(64, 64), mask=True,
             strength=0.9)),
    Case("kept klein", KleinShape(seed=44, kept=True), ask(steps=4, references=((64, 96),))),
    Case("kept klein, -n 3, references", KleinShape(seed=45, kept=True),
         ask(size="80x64", n=3, steps=3, references=((75, 66), (130, 64))),
         flags=("--batch-size", "2")),
    Case("kept klein without a reference", KleinShape(seed=46, kept=True), ask(steps=4)),
    Case("kept klein, bfloat16", KleinShape(seed=47, kept=True, dtype="bfloat16"),
         ask(steps=3, n=4, references=((64, 80),)), "bfloat16"),
    Case("kontext", KONTEXT, ask(references=((90, 60),))),
    Case("kontext without a reference", KONTEXT, ask(size="96x64")),
    Case("kontext, true CFG, -n 2", KONTEXT,
         ask(steps=1, n=2, cfg=2.0, negative="blurry", references=((60, 90),))),
    Case("kontext, mask, -n 2", KONTEXT,
         ask(size="96x64", n=2, steps=4, init=(96, 64), mask=True, strength=0.8, mask_blur=2)),
    Case("kontext, mask, crop", KONTEXT,
         ask(size="96x64", steps=3, init=(96, 64), mask=True, strength=1.0, padding_crop=7)),
    Case("kontext, mask, a reference, true CFG", KONTEXT,
         ask(size="672x1568", steps=1, cfg=2.0, negative="blurry", init=(672, 1568), mask=True,
             strength=1.0, references=((90, 60),))),
    Case("klein, mask, crop", KleinShape(seed=48, text=TextShape(width=16, head_dim=8)),
         ask(size="96x64", steps=4, init=(96, 64), mask=True, strength=0.8, padding_crop=5)),
    Case("fill", FILL, ask(size="96x64", init=(96, 64), mask=True, strength=1.0)),
    Case("fill, strength 0.7, -n 2", FILL, ask(n=2, steps=5, init=(120, 70), mask=True,
                                               strength=0.7, guidance=30.0)),
    Case("control", CONTROL, ask(size="96x64", control=(96, 64))),
    Case("control, -n 2", CONTROL, ask(n=2, guidance=10.0, control=(150, 61))),
    Case("zimage, init", ZImagePipelineShape(seed=30),
         ask(cfg=0.0, steps=5, seq=64, size="80x96", init=(77, 99))),
    Case("zimage, init, guidance, -n 2", ZImagePipelineShape(seed=31),
         ask(cfg=3.0, negative="blurry", n=2, steps=4, seq=64, init=(64, 64), strength=0.8)),
    Case("zimage, mask", ZImagePipelineShape(seed=32),
         ask(cfg=2.0, steps=4, seq=64, size="80x96", init=(80, 96), mask=True, strength=0.9)),
    Case("zimage, mask, stochastic", ZImagePipelineShape(
        seed=33, scheduler={"shift": 3.0, "stochastic_sampling": True}),
        ask(cfg=2.0, n=2, steps=4, seq=64, size="80x96", init=(80, 96), mask=True, strength=0.9)),
    Case("init, strength 1, bfloat16", shape(heads=4, dtype="bfloat16"),
         ask(guidance=4.0, n=4, steps=4, init=(64, 64), strength=1.0), "bfloat16"),
]

# ControlNets: their share of the blocks, and what they follow when.
NET = {"controlnets": (NetShape(),)}
CONTROLNETS = [
    Case("controlnet", shape(double_blocks=3, single_blocks=3, **NET),
         ask(size="96x64", followed=((96, 64),))),
    Case("controlnet, -n 2, true CFG", shape(heads=4, double_blocks=2, **NET),
         ask(n=2, cfg=2.5, negative="blurry", followed=((150, 61),), control_scales=(0.7,))),
    Case("controlnet, no guidance, no singles", shape(
        guidance=False, double_blocks=5, scheduler={"shift": 1.0},
        controlnets=(NetShape(double_blocks=2, single_blocks=0, guidance=False),)),
        ask(*LENGTHS[:2], size="80x112", followed=((64, 64),))),
    Case("controlnet, a part of the steps", shape(heads=3, **NET),
         ask(steps=5, followed=((64, 64),), control_from=(0.2,), control_to=(0.7,))),
    Case("controlnet, flow sigmas", shape(heads=3, scheduler={
        "shift": 3.0, "use_flow_sigmas": True}, **NET), ask(steps=3, followed=((64, 64),))),
    Case("controlnet, union", shape(double_blocks=4, single_blocks=5, controlnets=(
        NetShape(double_blocks=2, single_blocks=2, modes=6),)),
        ask(followed=((64, 64),), control_modes=(4,))),
    Case("controlnet, union, two pictures", shape(controlnets=(NetShape(modes=3),)),
         ask(steps=3, followed=((64, 64), (90, 50)), control_modes=(2, 0),
             control_scales=(0.5, 1.5))),
    Case("controlnets", shape(double_blocks=3, controlnets=(
        NetShape(double_blocks=2), NetShape(double_blocks=2))),
        ask(n=2, steps=3, followed=((64, 64), (90, 50)), control_scales=(0.5, 0.9),
            control_to=(0.4, 1.0), control_from=(0.0, 0.3))),
    Case("controlnets of unequal depths", shape(double_blocks=4, single_blocks=4, controlnets=(
        NetShape(3, 2), NetShape(2, 0))), ask(followed=((64, 64), (64, 64)))),
    Case("controlnet of XLabs' kind", shape(double_blocks=5, single_blocks=3, controlnets=(
        NetShape(double_blocks=2, single_blocks=0, pixels=True),)),
        ask(n=2, steps=3, size="96x64", followed=((110, 61),), control_scales=(0.7,))),
    Case("controlnets of XLabs' kind, true CFG, mask", shape(heads=4, double_blocks=3, controlnets=(
        NetShape(double_blocks=2, pixels=True), NetShape(double_blocks=2, pixels=True))),
        ask(steps=4, size="64x80", init=(64, 64), mask=True, strength=0.8,
            followed=((64, 80), (90, 50)), control_scales=(0.5, 0.9), control_to=(0.6, 1.0))),
    Case("controlnet, init", shape(heads=5, **NET),
         ask(steps=4, init=(64, 64), strength=0.8, followed=((64, 64),))),
    Case("controlnet, mask", shape(head_dim=8, axes=(2, 2, 4), **NET),
         ask(steps=4, init=(64, 64), mask=True, strength=0.8, followed=((64, 64),))),
    Case("controlnet, bfloat16", shape(heads=4, dtype="bfloat16", double_blocks=2, **NET),
         ask(guidance=4.0, n=4, followed=((64, 64),)), "bfloat16"),
]
# Edit draws only its trained sizes: the nearest in aspect ratio to the request.
JOY = [
    Case("joy edit", JoyShape(seed=1),
         ask(size="640x512", seq=4096, cfg=4.0, steps=3, references=((60, 44),))),
    Case("joy edit, three heads, negative prompt", JoyShape(
        seed=2, heads=3, layers=3, mlp_ratio=2.5, vae_layers=2, text_kv_heads=4),
        ask(ACCENTS, size="64x160", seq=4096, cfg=2.5, negative="blurry", references=((90, 200),))),
    Case("joy edit without a reference", JoyShape(seed=3), ask(size="1024x1024", seq=4096, cfg=4.0)),
    Case("joy edit without guidance, cut prompt", JoyShape(seed=4, rope_type="mrope"),
         ask(LONG, size="300x200", seq=900, cfg=1.0, references=((300, 200),))),
    Case("joy edit, cut prompt without a reference", JoyShape(seed=5),
         ask(LONG, size="300x200", seq=100, cfg=3.0)),
    Case("joy edit, deepstack of two, four levels", JoyShape(
        seed=6, vae_base=2, vae_mult=(1, 2, 4, 4), deepstack=(0, 2), vision_depth=3,
        vision_positions=100), ask(size="70x50", seq=4096, cfg=4.0, steps=1, references=((70, 50),))),
    Case("joy edit, a deepstack for every layer", JoyShape(seed=7, text_layers=3),
         ask(size="70x50", seq=4096, cfg=4.0, steps=1, references=((70, 50),))),
    Case("joy plus", JoyShape(seed=8, plus=True),
         ask(size="640x512", seq=4096, cfg=4.0, steps=3, references=((60, 44), (40, 90)))),
    Case("joy plus, a reference, negative prompt", JoyShape(seed=9, plus=True, heads=3),
         ask(size="192x256", seq=4096, cfg=2.0, negative=ACCENTS, references=((400, 300),))),
    Case("joy plus without a reference", JoyShape(seed=10, plus=True),
         ask(size="128x192", seq=4096, cfg=4.0)),
    Case("joy plus, levels that begin below 0", JoyShape(
        seed=11, plus=True, scheduler={"shift": 0.4, "invert_sigmas": True}),
        ask(size="128x192", seq=4096, cfg=4.0, steps=1)),
    Case("joy edit, stochastic", JoyShape(
        seed=12, scheduler={"shift": 4.0, "stochastic_sampling": True}),
        ask(size="640x512", seq=4096, cfg=4.0, steps=3, references=((60, 44),))),
    Case("joy plus, stochastic, two references", JoyShape(
        seed=13, plus=True, scheduler={"shift": 4.0, "stochastic_sampling": True}),
        ask(size="192x256", seq=4096, cfg=2.0, steps=3, references=((60, 44), (40, 90)))),
    # Not for Edit: drawing other noise also changes the reference's sample.
    Case("joy plus, bfloat16", JoyShape(seed=7, plus=True, dtype="bfloat16"),
         ask(size="640x512", seq=4096, cfg=4.0, references=((60, 44),)), "bfloat16"),
]

# Of single files, shapes do not determine the axes.
KREA_AXES = {"axes": (32, 48, 48), "theta": 1000.0}
KREA2 = [
    Case("krea2", Krea2Shape(seed=1), ask(cfg=3.5, steps=3, seq=80)),
    Case("krea2 turbo, size to be rounded up, -n 2", Krea2Shape(seed=2, distilled=True),
         ask(size="100x71", n=2, seq=80, cfg=0.0, steps=4)),
    Case("krea2, 12 taps, 48 heads, tp 8", Krea2Shape(
        seed=3, taps=(2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35), text_layers=36,
        transformer=Krea2TransformerShape(heads=48, kv_heads=12, axes=(2, 2, 2), ff=128)),
        ask(*LENGTHS, size="112x80", cfg=2.0, negative=ACCENTS, seq=120), flags=("--tp", "8")),
    Case("krea2, cut prompt, accents, stochastic", Krea2Shape(
        seed=4, scheduler={"shift": 3.0, "stochastic_sampling": True}),
        ask(ACCENTS + LONG, cfg=1.0, negative="", seq=60, n=2)),
    Case("krea2, no fusion blocks, one tap, tiles", Krea2Shape(
        seed=5, taps=(3,), transformer=Krea2TransformerShape(
            heads=5, kv_heads=1, layers=1, layerwise_blocks=0, refiner_blocks=0)),
        ask(size="288x320", cfg=0.0, vae_tiling=True, seq=80)),
    Case("krea2, flow sigmas that its pipeline ignores", Krea2Shape(
        seed=14, scheduler={"shift": 3.0, "use_flow_sigmas": True}), ask(cfg=0.0, steps=3, seq=80)),
    Case("krea2, tokens of less than a prompt", Krea2Shape(seed=6), ask(cfg=0.3, seq=1)),
    Case("krea2, single file, prefix, ring", Krea2Shape(
        seed=7, transformer=Krea2TransformerShape(heads=2, kv_heads=1, **KREA_AXES)),
        ask(cfg=2.0, seq=80), single_file="model.diffusion_model.", flags=("--ring", "2")),
    Case("krea2, patches of 3 x 3, taps in any order and of the last norm, a wider first level", Krea2Shape(
        seed=12, patch=3, taps=(5, -3, 0, 5, -1), vae_mult=(2, 1, 3, 2)),
        ask(ACCENTS, size="100x71", cfg=2.0, n=2, seq=80)),
    Case("krea2, bfloat16", Krea2Shape(seed=8, dtype="bfloat16"), ask(cfg=2.0, n=2, seq=80),
         "bfloat16"),
    Case("krea2 in GGUF, Qwen3-VL too", Krea2Shape(
        seed=9, text_head_dim=32, text_ff=64, sections=(8, 4, 4),
        transformer=Krea2TransformerShape(heads=2, kv_heads=1, ff=64, text_width=32, text_heads=2,
                                          text_kv_heads=2, text_ff=64, **KREA_AXES)),
        ask(cfg=2.0, seq=80), single_file="", coded="gguf"),
    Case("krea2, autoencoder of Wan's names", Krea2Shape(
        seed=13, distilled=True, vae_layers=2, vae_mult=(1, 2, 4, 4)), ask(cfg=0.0, n=2, seq=80),
        wan_vae=True),
    Case("krea2 with a LoRA of kohya", Krea2Shape(seed=10), ask(cfg=2.0, seq=80), lora="kohya"),
    Case("krea2 with a LoRA, beside, tp", Krea2Shape(seed=11), ask(seq=80, cfg=0.0), lora="bare",
         flags=("--lora-mode", "beside", "--tp", "2")),
]

QWEN21_AXES = {"axes": (16, 56, 56)}
QWEN21 = [
    Case("qwen21, guided by an empty prompt", Qwen21Shape(seed=1), ask(cfg=3.5, steps=3, seq=4096)),
    Case("qwen21, prompts of unequal lengths, size to be rounded down", Qwen21Shape(seed=2),
         ask(*LENGTHS, size="200x71", n=2, seq=4096)),
    Case("qwen21, published heads and levels of an autoencoder, ulysses", Qwen21Shape(
        seed=3, transformer=Qwen21TransformerShape(heads=4, **QWEN21_AXES),
        vae=Qwen21VaeShape(base=4, decoder_base=6, mult=(1, 2, 4, 8, 8), layers=2)),
        ask("a star", ACCENTS, size="64x96", cfg=2.0, negative=ACCENTS, seq=4096),
        flags=("--ulysses", "2")),
    Case("qwen21 turbo, tiles", Qwen21Shape(
        seed=4, scheduler={}, sigmas=(1.0, .978453, .95418, .926626, .89508, .845148, .704534, .414568)),
        ask(size="320x288", steps=8, seq=4096, vae_tiling=True)),
    Case("qwen21, references, one of them transparent", Qwen21Shape(seed=5),
         ask(ACCENTS, size="96x64", cfg=2.0, negative="blurry", seq=4096,
             references=((60, 44), (40, 90)), transparent=(1,))),
    Case("qwen21, ten references, nothing kept", Qwen21Shape(
        seed=6, transformer=Qwen21TransformerShape(heads=2, layers=1)),
        ask(size="64x64", steps=2, seq=4096, references=((32, 32),) * 9 + ((400, 40),),
            transparent=(0, 9)), flags=("--reference-cache", "off")),
    Case("qwen21, reference, ring", Qwen21Shape(seed=7),
         ask(LONG, size="96x64", seq=4096, references=((90, 40),), transparent=(0,)),
         flags=("--ring", "2")),
    Case("qwen21, stochastic, other eps", Qwen21Shape(
        seed=8, transformer=Qwen21TransformerShape(eps=1e-5),
        scheduler={"shift": 3.0, "stochastic_sampling": True}), ask(seq=4096, n=2)),
    Case("qwen21, single file, prefix, layers split", Qwen21Shape(
        seed=9, transformer=Qwen21TransformerShape(heads=2, **QWEN21_AXES)),
        ask(cfg=2.0, seq=4096), single_file="model.diffusion_model.",
        flags=("--layer-split", "2")),
    Case("qwen21, text and references at the step's time, ring", Qwen21Shape(
        seed=14, transformer=Qwen21TransformerShape(config={"causal_condition": False}),
        vae=Qwen21VaeShape(mult=(2, 2, 4, 4, 2), decoder_base=None)),
        ask(size="64x96", cfg=2.0, negative="blurry", steps=3, seq=4096,
            references=((60, 44), (40, 90)), transparent=(1,)), flags=("--ring", "2")),
    Case("qwen21, flow sigmas that its pipeline ignores, as older packages write it", Qwen21Shape(
        seed=15, scheduler={"use_dynamic_shifting": True, "use_beta_sigmas": True, "use_flow_sigmas": True}),
        ask(seq=4096, steps=4), respelt=("older text", "older parts", "shards", "two token files")),
    Case("qwen21, bfloat16", Qwen21Shape(seed=10, dtype="bfloat16"), ask(cfg=2.0, n=2, seq=4096),
         "bfloat16"),
    Case("qwen21 with a LoRA of kohya", Qwen21Shape(
        seed=11, transformer=Qwen21TransformerShape(layers=3)), ask(seq=4096), lora="kohya"),
    Case("qwen21 with a LoRA, beside, tp", Qwen21Shape(
        seed=12, transformer=Qwen21TransformerShape(layers=3)), ask(seq=4096), lora="bare",
        flags=("--lora-mode", "beside", "--tp", "2")),
    Case("qwen21, int8", Qwen21Shape(seed=13), ask(cfg=2.0, seq=4096), int8="base",
         flags=("--quantize", "int8")),
]

QWEN_IMAGE_LAYERED = {"pipeline": "QwenImageLayeredPipeline", "latent_channels": 3}
QWEN_IMAGE_EDITS = {"pipeline": "QwenImageEditPipeline", "vae_mult": (1, 1, 2, 2, 2)}
QWEN_IMAGE = [
    Case("qwen-image, guided by a space, published heads", QwenImageShape(
        seed=1, transformer=QwenImageTransformerShape(heads=2, axes=(16, 56, 56))),
        ask(cfg=4.0, steps=4, seq=512)),
    Case("qwen-image, prompts of unequal lengths, size to be rounded down, ring", QwenImageShape(seed=2),
         ask(*LENGTHS, ACCENTS, size="200x71", n=2, seq=512, cfg=2.0, negative=ACCENTS),
         flags=("--ring", "2")),
    Case("qwen-image, a long prompt that is cut", QwenImageShape(seed=3, older_config=True),
         ask(LONG, seq=40), flags=("--ulysses", "2")),
    Case("qwen-image, from a picture, layers split", QwenImageShape(seed=4),
         ask(cfg=2.0, negative="blurry", steps=5, seq=512, init=(70, 50), strength=0.7),
         flags=("--layer-split", "2")),
    Case("qwen-image, masked, tp", QwenImageShape(seed=5),
         ask(cfg=2.0, steps=4, seq=512, init=(64, 64), mask=True, strength=0.9, n=2),
         flags=("--tp", "2")),
    Case("qwen-image, two pictures for one net", QwenImageShape(seed=6, controlnets=(1,)),
         ask(steps=3, seq=512, followed=((64, 64), (30, 50)), control_scales=(0.5, 1.5), n=2)),
    Case("qwen-image, a net fills in, guided, a branch per rank", QwenImageShape(
        seed=20, controlnets=(1,), fills_in=True),
        ask(size="96x64", cfg=2.0, negative="blurry", steps=4, seq=512, init=(70, 50), mask=True,
            strength=1.0, control_scales=(0.7,), control_from=(0.25,)),
        flags=("--cfg-parallel", "2")),
    Case("qwen-image, a net fills in, prompts of unequal lengths, tp and ring", QwenImageShape(
        seed=21, controlnets=(2,), fills_in=True),
        ask(*LENGTHS, size="80x72", seq=512, init=(80, 72), mask="noise", strength=1.0, mask_blur=1.5),
        flags=("--tp", "2", "--ring", "2")),
    Case("qwen-image, a net fills in, its published sizes of heads, -n 2, layers split", QwenImageShape(
        seed=22, controlnets=(1,), fills_in=True,
        transformer=QwenImageTransformerShape(heads=2, axes=(16, 56, 56))),
        ask(steps=3, seq=512, n=2, init=(64, 64), mask="corner", strength=1.0, control_to=(0.7,)),
        flags=("--layer-split", "2", "--offload", "block")),
    Case("qwen-image, flow sigmas that its pipeline ignores, as older packages write it", QwenImageShape(
        seed=14, older_config=True, scheduler={"shift": 3.0, "use_flow_sigmas": True}),
        ask(cfg=2.0, seq=512, steps=3), respelt=("older parts", "shards", "two token files")),
    Case("qwen-image, single file, prefix", QwenImageShape(
        seed=7, transformer=QwenImageTransformerShape(heads=2, axes=(16, 56, 56))), ask(cfg=2.0, seq=512),
         single_file="model.diffusion_model."),
    Case("qwen-image in GGUF", QwenImageShape(
        seed=19, transformer=QwenImageTransformerShape(heads=2, axes=(16, 56, 56))), ask(cfg=2.0, seq=512),
         single_file="", coded="gguf"),
    Case("qwen-image, bfloat16", QwenImageShape(seed=8, dtype="bfloat16"),
         ask(cfg=2.0, n=2, seq=512), "bfloat16"),
    Case("qwen-image with a LoRA as Lightning's", QwenImageShape(seed=9), ask(seq=512), lora="bare"),
    Case("qwen-image with a LoRA of kohya, beside, tp", QwenImageShape(seed=10), ask(seq=512),
         lora="kohya", flags=("--lora-mode", "beside", "--tp", "2")),
    Case("qwen-image, int8", QwenImageShape(seed=11), ask(cfg=2.0, seq=512), int8="base",
         flags=("--quantize", "int8")),
    Case("qwen-image edit", QwenImageShape(seed=12, **QWEN_IMAGE_EDITS),
         ask(ACCENTS, size="96x64", cfg=2.0, negative="blurry", seq=1024, references=((60, 44),))),
    Case("qwen-image edit, several, references at timestep 0, ring", QwenImageShape(
        seed=13, transformer=QwenImageTransformerShape(zero_time=True),
        **QWEN_IMAGE_EDITS | {"pipeline": "QwenImageEditPlusPipeline"}),
        ask(size="96x64", cfg=2.0, seq=1024, references=((60, 44), (40, 90), (200, 100))),
        flags=("--ring", "2")),
    Case("qwen-image layered, prompts of unequal lengths, tp", QwenImageShape(
        seed=14, **QWEN_IMAGE_LAYERED),
        ask(*LENGTHS, ACCENTS, size="80x48", cfg=2.0, negative=ACCENTS, seq=512, layers=2,
            references=((70, 40),), transparent=(0,)), flags=("--tp", "2")),
    Case("qwen-image layered, by resolution, ring", QwenImageShape(
        seed=15, vae_mult=(1, 1, 2, 2, 2), **QWEN_IMAGE_LAYERED),
        ask(size="0x0", steps=2, seq=512, layers=1, resolution=640, references=((120, 75),)),
        flags=("--ring", "2")),
    Case("qwen-image layered, lengths kept, a branch per rank", QwenImageShape(
        seed=16, **QWEN_IMAGE_LAYERED),
        ask(size="64x64", cfg=3.0, steps=4, seq=512, layers=5, cfg_normalize=True,
            references=((64, 64),), transparent=(0,)), flags=("--cfg-parallel", "2")),
    Case("qwen-image layered, single file, layers split", QwenImageShape(
        seed=17, **QWEN_IMAGE_LAYERED | {"transformer": QwenImageTransformerShape(
            heads=2, axes=(16, 56, 56))}),
        ask(size="64x48", cfg=2.0, seq=512, layers=3, references=((50, 90),)),
        single_file="", flags=("--layer-split", "2")),
    Case("qwen-image layered, tiles, in pages", QwenImageShape(seed=18, **QWEN_IMAGE_LAYERED),
         ask(size="320x272", seq=512, layers=1, vae_tiling=True, references=((300, 280),)),
         flags=("--offload", "block")),
]

FLUX3_AXES = {"axes": (32, 32, 32, 32)}
BOXES = ({"id": "cat", "bbox": [0.3, 0.1, 0.9, 0.5505], "desc": "a \"grey\" cat, 漢字 🎨"},
         {"id": "Lamp_2", "bbox": [0.0, 0.6, 0.4, 1.0], "desc": "a lit floor lamp"})
EDITS = ({"id": "cat", "from": "ref_image_1", "src_bbox": [0.1, 0.1, 0.5, 0.5],
          "tgt_bbox": [0.2, 0.2, 0.8, 0.7], "desc": "a cat"},
         {"id": "dog", "from": "ref_image_0", "src_bbox": [0.25, 0.0, 1.0, 0.5], "tgt_bbox": None,
          "desc": "a dog that goes"},
         {"id": "sun", "from": "target", "tgt_bbox": [0.0, 0.7, 0.2, 1.0], "desc": "the sun"})
FLUX3 = [
    Case("flux3 base, guided by an empty prompt", Flux3Shape(seed=1), ask(cfg=3.5, steps=3, seq=8192)),
    Case("flux3 base, prompts of unequal lengths, negative prompt, -n 2", Flux3Shape(
        seed=2, transformer=Flux3TransformerShape(heads=3, axes=(2, 4, 2, 4))),
        ask(*LENGTHS, size="112x80", cfg=2.0, negative=ACCENTS, n=2, seq=8192)),
    Case("flux3 base without guidance, cut prompt, plain index", Flux3Shape(seed=3, modular=False),
         ask(LONG, size="80x64", cfg=1.0, seq=100)),
    Case("flux3, boxes", Flux3Shape(seed=4, transformer=Flux3TransformerShape(flow_map=True)),
         ask("a <cat> under a <Lamp_2>", size="96x64", seq=8192, boxes=BOXES)),
    Case("flux3, a reference, its size, -n 2", Flux3Shape(
        seed=5, transformer=Flux3TransformerShape(flow_map=True)),
        ask(ACCENTS, size="0x0", n=2, seq=8192, references=((91, 60),))),
    Case("flux3 base, a long reference, a size of its own, guided", Flux3Shape(seed=6),
         ask(size="64x80", cfg=2.0, negative="blurry", seq=8192, references=((15, 210),))),
    Case("flux3 base, four references, edits in boxes, ulysses", Flux3Shape(seed=7),
         ask("move the <cat>", size="0x0", cfg=3.0, seq=8192, boxes=EDITS,
             references=((60, 44), (40, 90), (33, 33), (200, 30))), flags=("--ulysses", "2")),
    Case("flux3, references, cfg parallel, stochastic", Flux3Shape(
        seed=8, scheduler={"shift": 3.0, "stochastic_sampling": True}),
        ask(size="96x64", cfg=2.0, n=2, seq=8192, references=((60, 44), (90, 61))),
        flags=("--cfg-parallel", "2")),
    Case("flux3, only blocks of modes, other eps, a text model without more layers", Flux3Shape(
        seed=9, text_layers=32, transformer=Flux3TransformerShape(
            heads=5, single_layers=0, eps=1e-3, flow_map=True)), ask(size="176x48", seq=8192)),
    Case("flux3, no blocks of modes, thin decoder, tiles", Flux3Shape(
        seed=10, vae=THIN, transformer=Flux3TransformerShape(layers=0, flow_map=True)),
        ask(size="112x144", seq=8192, vae_tiling=True)),
    Case("flux3 base, single file, prefix, tp and ring", Flux3Shape(
        seed=11, transformer=Flux3TransformerShape(heads=2, **FLUX3_AXES)),
        ask(cfg=2.0, seq=8192), single_file="model.diffusion_model.",
        flags=("--tp", "2", "--ring", "2")),
    Case("flux3, single file, layers split", Flux3Shape(
        seed=12, transformer=Flux3TransformerShape(heads=2, flow_map=True, **FLUX3_AXES)),
        ask(seq=8192, references=((64, 80),)), single_file="", flags=("--layer-split", "2")),
    Case("flux3 in GGUF", Flux3Shape(
        seed=13, transformer=Flux3TransformerShape(heads=2, **FLUX3_AXES)), ask(cfg=2.0, seq=8192),
        single_file="", coded="gguf"),
    Case("flux3 base with a LoRA of ComfyUI", Flux3Shape(seed=14), ask(cfg=2.0, seq=8192,
                                                                       references=((64, 80),)),
         lora="comfyui"),
    Case("flux3, int8, pages", Flux3Shape(seed=15), ask(cfg=2.0, seq=8192, references=((64, 80),)),
         int8="base", flags=("--quantize", "int8", "--offload", "block")),
    Case("flux3 base, bfloat16", Flux3Shape(seed=16, dtype="bfloat16"), ask(cfg=2.0, n=4, seq=8192),
         "bfloat16"),
    Case("flux3, references, bfloat16", Flux3Shape(
        seed=17, dtype="bfloat16", transformer=Flux3TransformerShape(flow_map=True)),
        ask(n=4, seq=8192, references=((64, 80), (60, 90))), "bfloat16"),
]

# A stranger's comparison, with everything in memory and with layers read from files.
READ = ("--memory", "0.05MB")
PUBLISHED = [
    Case("published, bundled", None, ask(steps=2, seq=64), published=()),
    Case("published, klein, layers in files", KleinShape(seed=70, text=TextShape(width=16, head_dim=8)),
         ask(size="96x64", seq=64, references=((64, 80),)), published=READ),
    Case("published, zimage, bfloat16", ZImagePipelineShape(seed=71, dtype="bfloat16"),
         ask(cfg=0.0, n=4, seq=64), "bfloat16", published=()),
    Case("published, joy", JoyShape(seed=72), ask(
        size="640x512", seq=4096, cfg=1.0, references=((60, 44),)), published=()),
    Case("published, krea2, layers in files", Krea2Shape(seed=73), ask(cfg=2.0, seq=80), published=READ),
    Case("published, qwen21, layers in files", Qwen21Shape(seed=74), ask(
        size="96x64", cfg=2.0, negative="blurry", seq=4096, references=((60, 44), (40, 90)),
        transparent=(1,)), published=READ),
    Case("published, flux3, layers in files", Flux3Shape(seed=75), ask(
        size="0x0", cfg=2.0, seq=8192, references=((60, 44),)), published=READ),
    Case("published, krea2, bfloat16, layers in files", Krea2Shape(seed=76, dtype="bfloat16"),
         ask(cfg=2.0, n=4, seq=80), "bfloat16", published=READ),
]

CONTROL_LORAS = [
    Case("control LoRA", shape(heads=4), ask(size="96x64", guidance=10.0, control=(96, 64)),
         control_lora=True),
    Case("control LoRA, -n 2, three heads", shape(heads=3, double_blocks=2, latent_channels=4),
         ask(n=2, control=(150, 61)), control_lora=True),
]
REDUX = [
    Case("redux", shape(redux=ReduxShape()), ask(seq=512, looked_at=((64, 64),))),
    Case("redux, two pictures with scales, -n 2", shape(heads=3, redux=ReduxShape(side=48)),
         ask(seq=512, n=2, looked_at=((90, 50), (28, 70)), looked_scales=(0.75, -0.5))),
    Case("redux, empty prompt", shape(guidance=False, redux=ReduxShape(heads=2, layers=3, patch=5)),
         ask("", seq=512, size="80x112", looked_at=((100, 64),))),
    # diffusers' image to image fails if the negative prompt has another length
    Case("redux, true CFG", shape(heads=4, redux=ReduxShape()),
         ask(seq=512, cfg=2.0, negative="blurry", steps=3, looked_at=((64, 64),))),
    Case("redux, init", shape(heads=5, redux=ReduxShape()),
         ask(seq=512, steps=3, init=(64, 64), looked_at=((64, 64),))),
    Case("redux, bfloat16", shape(heads=4, dtype="bfloat16", redux=ReduxShape()),
         ask(seq=512, guidance=4.0, n=4, looked_at=((64, 64),)), "bfloat16"),
]
# FLUX.1's tools as single files of Black Forest Labs' spelling, in 8 bits, from pages.
INT8 = {"int8": "base", "flags": ("--quantize", "int8", "--offload", "block")}
TOOLS_IN_FILES = [
    Case("fill, single file", shape(pipeline="FluxFillPipeline", **FLUX_AXES),
         ask(size="96x64", init=(120, 70), mask=True, strength=0.8, steps=3), single_file=""),
    Case("fill, single file, int8, pages", shape(pipeline="FluxFillPipeline", **FLUX_AXES),
         ask(size="96x64", init=(96, 64), mask=True, strength=1.0),
         single_file="model.diffusion_model.", **INT8),
    Case("kontext, single file, true CFG", shape(pipeline="FluxKontextPipeline", **FLUX_AXES),
         ask(size="64x80", cfg=2.0, negative="blurry", references=((60, 44),)), single_file=""),
    Case("kontext, single file, int8, pages", shape(pipeline="FluxKontextPipeline", **FLUX_AXES),
         ask(references=((90, 33),)), single_file="", **INT8),
    Case("control, single file", shape(pipeline="FluxControlPipeline", **FLUX_AXES),
         ask(size="96x64", control=(150, 61), n=2), single_file="model.diffusion_model."),
    Case("control, single file, int8, pages", shape(pipeline="FluxControlPipeline", **FLUX_AXES),
         ask(control=(64, 64)), single_file="", **INT8),
    Case("control LoRA over a single file, pages", shape(**FLUX_AXES | {"single_blocks": 2}),
         ask(size="96x64", control=(96, 64)), single_file="", control_lora=True,
         flags=("--offload", "block")),
    Case("redux, single file, int8, pages", shape(redux=ReduxShape(), **FLUX_AXES),
         ask(seq=512, looked_at=((64, 64), (40, 90)), looked_scales=(1.0, 0.5)), single_file="", **INT8),
    Case("controlnets beside a single file, tp", shape(controlnets=(
        NetShape(modes=4), NetShape()), **FLUX_AXES),
        ask(followed=((64, 64), (90, 50)), control_modes=(2, 0), control_scales=(0.5, 0.9)),
        single_file="", flags=("--tp", "2", "--offload", "block")),
]
# A coded transformer must equal the pipeline with the decoded numbers.
WIDE = shape(heads=2, head_dim=128, axes=(16, 56, 56), single_blocks=2, t5_width=64, t5_heads=4,
             t5_head_dim=16, t5_ff=96)
ODD = shape(heads=3, head_dim=32, axes=(8, 12, 12), t5_width=64, t5_ff=160, double_blocks=2)
QWEN3 = TextShape(width=64, heads=4, kv_heads=2, head_dim=16, ff=96)
WIDE_KLEIN = KleinShape(seed=50, text=QWEN3, transformer=Flux2Shape(
    heads=2, head_dim=128, axes=(32, 32, 32, 32), double_blocks=1, single_blocks=2))
CODED = [
    Case("K-quants and a T5 in GGUF", WIDE, ask(*LENGTHS[:2]), single_file="", coded="gguf",
         coded_text=True),
    Case("mixed GGUF, odd widths", ODD, ask(n=2), single_file="", coded="gguf", coded_text=True),
    Case("GGUF with diffusers' names", ODD, ask(size="80x112"), coded="gguf"),
    Case("GGUF, pages", ODD, ask(), single_file="", coded="gguf",
         flags=("--offload", "block")),
    Case("float8 of rows and matrices", ODD, ask(n=2), single_file="", coded="float8"),
    Case("float8 with scales of 128 x 128", WIDE, ask(n=2), single_file="", coded="block float8"),
    Case("float8 with scales of 128 x 128, tp, pages", WIDE, ask(), single_file="",
         coded="block float8", flags=("--tp", "2", "--offload", "block")),
    Case("ComfyUI's formats", WIDE, ask(), single_file="", coded="comfy"),
    Case("ComfyUI's formats in a note", ODD, ask(), single_file="", coded="comfy note"),
    Case("klein in GGUF, Qwen3 too", WIDE_KLEIN, ask(n=2), single_file="", coded="gguf",
         coded_text=True),
    Case("dev 2 in GGUF, Mistral too", DevShape(seed=54, text=TextShape(
        width=32, head_dim=8, layers=31, theta=1e9)), ask(seq=SYSTEM, guidance=4.0),
        single_file="", coded="gguf", coded_text=True),
    Case("klein in ComfyUI's formats", WIDE_KLEIN, ask(), single_file="", coded="comfy"),
    Case("zimage in GGUF, Qwen3 too", ZImagePipelineShape(seed=51, text=replace(
        QWEN3, layers=4, causal_lm=False)), ask(cfg=2.0, seq=64), single_file="", coded="gguf",
         coded_text=True),
    Case("GGUF, bfloat16", replace(WIDE, dtype="bfloat16"), ask(guidance=4.0, n=4), "bfloat16",
         single_file="", coded="gguf"),
    Case("ComfyUI's formats, bfloat16", replace(WIDE, dtype="bfloat16"), ask(guidance=4.0, n=4),
         "bfloat16", single_file="", coded="comfy"),
    Case("ComfyUI's formats in a note, bfloat16, tp", replace(WIDE, dtype="bfloat16"),
         ask(guidance=4.0, n=4), "bfloat16", single_file="", coded="comfy note",
         flags=("--tp", "2")),
    Case("klein in ComfyUI's formats, bfloat16", replace(WIDE_KLEIN, dtype="bfloat16"), ask(n=4),
         "bfloat16", single_file="", coded="comfy"),
    Case("zimage in ComfyUI's formats, bfloat16", ZImagePipelineShape(
        seed=53, dtype="bfloat16"), ask(seq=64, n=4), "bfloat16", single_file="", coded="comfy"),
    *[Case(f"{kind}{'' if dtype == 'float32' else ', bfloat16'}", replace(ODD, dtype=dtype),
           ask(guidance=4.0, n=4), dtype, single_file="", coded=kind)
      for kind in ("comfy float8", "old comfy float8", "plain float8")
      for dtype in ("float32", "bfloat16")],
    Case("klein in ComfyUI's float8, bfloat16", replace(WIDE_KLEIN, dtype="bfloat16"), ask(n=4),
         "bfloat16", single_file="", coded="comfy float8", flags=("--offload", "block")),
]
# A LoRA must equal the pipeline with the merged weights.
LOW = shape(heads=4, dtype="bfloat16")
BESIDE = ("--lora-mode", "beside")
TWO_SINGLES = Flux2Shape(heads=4, double_blocks=1, single_blocks=2)
LORAS = [
    Case("LoRA of kohya", shape(heads=3), ask(n=2), lora="kohya"),
    Case("LoRA of kohya, beside", shape(heads=3), ask(n=2), lora="kohya", flags=BESIDE),
    Case("LoRA of ComfyUI, bfloat16", LOW, ask(guidance=4.0, n=4), "bfloat16", lora="comfyui"),
    Case("LoRA of ComfyUI, beside, bfloat16", LOW, ask(guidance=4.0, n=4), "bfloat16",
         lora="comfyui", flags=BESIDE),
    Case("LoRA of XLabs, bfloat16", LOW, ask(guidance=4.0, n=4), "bfloat16", lora="xlabs"),
    Case("LoKr, bfloat16", LOW, ask(guidance=4.0, n=4), "bfloat16", lora="lokr"),
    Case("LoHa", shape(heads=4), ask(n=2), lora="loha"),
    Case("DoRA of OneTrainer", shape(heads=4), ask(n=2), lora="onetrainer"),
    Case("klein with LoKr", KleinShape(seed=56, transformer=TWO_SINGLES), ask(), lora="lokr"),
    Case("klein with DoRA of LyCORIS, tp", KleinShape(seed=57, transformer=TWO_SINGLES), ask(),
         lora="lycoris-dora", flags=("--tp", "2")),
    Case("joy edit with LyCORIS' Tucker form and DoRA of its convolution", JoyShape(seed=61),
         ask(size="640x512", seq=4096, cfg=4.0, steps=3, references=((60, 44),)), lora="tucker"),
    Case("klein with a LoRA for Qwen3", KleinShape(seed=58, text=QWEN3), ask(seq=64),
         lora="text, diffusers"),
    Case("klein with a LoRA for Qwen3 beside, tp", KleinShape(
        seed=58, text=QWEN3, transformer=TWO_SINGLES), ask(seq=64),
         lora="text, comfyui", flags=(*BESIDE, "--tp", "2", "--text-encoder", "tp")),
    Case("zimage with a LoRA for Qwen3, pages", ZImagePipelineShape(
        seed=59, text=replace(QWEN3, layers=4, causal_lm=False)), ask(cfg=2.0, seq=64),
        lora="text, kohya", flags=("--offload-text", "leaf")),
    Case("dev 2 with a LoRA for Mistral", DevShape(seed=60, text=TextShape(
        width=32, head_dim=8, layers=31, theta=1e9)), ask(guidance=4.0), lora="text, diffusers"),
    Case("klein with a LoRA, bfloat16", KleinShape(seed=52, dtype="bfloat16", transformer=TWO_SINGLES),
         ask(n=4), "bfloat16", lora="kohya"),
    Case("klein with a LoRA beside, bfloat16", KleinShape(
        seed=52, dtype="bfloat16", transformer=TWO_SINGLES), ask(n=4), "bfloat16", lora="comfyui",
        flags=BESIDE),
]
# The same over weights in codes, and in models that braid writes.
EVEN = shape(heads=4, head_dim=64, axes=(16, 24, 24), t5_width=64, t5_ff=160)
INT8 = ("--quantize", "int8")
LORAS_OVER_CODES = [
    Case("zimage with a LoRA", ZImagePipelineShape(
        seed=55, transformer=ZImageShape(refiners=2)), ask(cfg=2.0, seq=64), lora="comfyui"),
    Case("GGUF with a LoRA of XLabs, tp", EVEN, ask(n=2), single_file="", coded="gguf",
         lora="xlabs", flags=("--tp", "2")),
    Case("GGUF with a control LoRA, pages", EVEN, ask(control=(96, 64)), single_file="",
         coded="gguf", control_lora=True, flags=("--offload", "block")),
    Case("float8 with a LoRA of kohya, ring", EVEN, ask(), single_file="", coded="float8",
         lora="kohya", flags=("--ring", "2")),
    Case("int8 with a LoRA", EVEN, ask(), lora="comfyui", int8="merged", flags=INT8),
    Case("int8 with a LoRA beside, tp", EVEN, ask(), lora="fal", int8="base",
         flags=(*INT8, *BESIDE, "--tp", "2")),
    Case("LoRA, converted", EVEN, ask(), lora="mixed", converted=True),
    Case("control LoRA over ComfyUI's float8, converted", EVEN, ask(control=(70, 90)),
         single_file="", coded="comfy float8", control_lora=True, converted=True),
]
CASES = (FLUX1 + KLEIN + DEV2 + ZIMAGE + PICTURES + CONTROLNETS + CONTROL_LORAS + REDUX + TOOLS_IN_FILES +
         CODED + LORAS + LORAS_OVER_CODES + JOY + KREA2 + QWEN21 + FLUX3 + QWEN_IMAGE + PUBLISHED)
