"""Make tests/data/parity: tiny random pipelines, and what diffusers computes with them.

usage: python make_fixtures.py [--only demo basic ...] [--out tests/data/parity] [--measure]

Each case is a folder: manifest.json; model/ (unless it uses the bundled model or another case's);
expected.safetensors, the whole pipeline (see dump.py); for FLUX.1 also components.safetensors, one
part at a time. With fixed seeds and one thread the same machine gives the same bytes, another one the
same up to rounding. The manifest has the spread for each instruction set up to the machine's own (see
spread.py), so build them on one that has all of tools/shell/instruction_sets.txt. --measure builds
nothing; it raises the spreads of existing cases where they are larger on this machine. Processors of
other makers differ: after building, measure on one of each.
After new weights for the bundled model: python make_fixtures.py --only demo
"""
import argparse
import dataclasses
import json
import shutil
from pathlib import Path

import dump
import parts
import random_families
import random_pipeline
import single_file
import spread
import torch
from dump import Request
from made_with import versions
from parts import PROMPTS
from random_denoisers import Flux2Shape, Flux2VaeShape, ZImageShape
from random_families import DevShape, KleinShape, TextShape, ZImagePipelineShape
from random_flux3 import Flux3Shape, Flux3TransformerShape
from random_krea2 import Krea2Shape, Krea2TransformerShape
from random_pipeline import DEMO, NetShape, Shape
from random_qwen21 import Qwen21Shape, Qwen21TransformerShape, Qwen21VaeShape
from random_qwen_image import QwenImageShape, QwenImageTransformerShape
from redux import ReduxShape
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2]

SHAPES = {
    "basic": Shape(seed=1, vae_sample_size=32, dtype="bfloat16"),
    # Like FLUX.1-schnell: no guidance embedder, static shift; the other variant of every option.
    "schnell": Shape(
        seed=2, heads=3, head_dim=8, axes=(2, 2, 4), single_blocks=1, guidance=False,
        clip_width=24, clip_heads=3, clip_act="gelu", clip_eos=669, t5_width=24,
        t5_heads=3, t5_head_dim=8, t5_layers=1, vae_widths=(4, 4, 8, 8), vae_groups=2,
        vae_quant_convs=True, vae_attention=False, vae_sample_size=32, scheduler={"shift": 1.0}),
    # Shards, float16, tiles, and another spacing of sigmas.
    "sharded": Shape(
        seed=3, heads=4, head_dim=8, axes=(4, 2, 2), single_blocks=1, t5_embedding="both",
        vae_layers=2, vae_widths=(4, 8, 8, 8), vae_groups=2, vae_sample_size=32, dtype="float16",
        shard="60KB",
        scheduler={"shift": 3.0, "use_dynamic_shifting": True, "use_karras_sigmas": True}),
    # Names as in FLUX.1's published files, the other dynamic shift, odd sizes everywhere.
    "prefixed": Shape(
        seed=4, heads=5, head_dim=6, axes=(2, 2, 2), double_blocks=2, single_blocks=3,
        clip_prefix=True, clip_width=18, clip_heads=3, clip_layers=3, t5_width=20, t5_heads=5,
        t5_head_dim=6, t5_layers=3, t5_buckets=16, t5_max_distance=40, t5_embedding="encoder",
        vae_widths=(4, 8, 8, 12), vae_groups=2, vae_sample_size=32, dtype="bfloat16",
        scheduler={"use_dynamic_shifting": True, "time_shift_type": "linear",
                   "shift_terminal": 0.05}),
    "zimage-turbo": ZImagePipelineShape(
        seed=5, transformer=ZImageShape(heads=6, axes=(4, 2, 2)),
        vae=Shape(latent_channels=4, vae_widths=(4, 4, 8, 8), vae_groups=2, vae_sample_size=32),
        text=TextShape(layers=4, kv_heads=2, causal_lm=False, chat_in_config=True),
        dtype="bfloat16"),
    "klein": KleinShape(
        seed=6, transformer=Flux2Shape(head_dim=8, axes=(2, 2, 2, 2), double_blocks=2),
        text=TextShape(kv_heads=1), dtype="bfloat16"),
    # True guidance; a thinner decoder, odd sizes, two query heads per key head.
    "klein-base": KleinShape(
        seed=7, distilled=False,
        transformer=Flux2Shape(heads=5, head_dim=8, axes=(2, 2, 2, 2), single_blocks=1,
                               mlp_ratio=2.5),
        vae=Flux2VaeShape(widths=(6, 12, 12, 12), decoder_widths=(6, 6, 6, 12), groups=3,
                          latent_channels=3, attention=False, sample_size=64),
        text=TextShape(width=9, head_dim=8, chat_in_config=True, causal_lm=False),
        dtype="bfloat16"),
    "flux2-dev": DevShape(
        seed=8, transformer=Flux2Shape(heads=2, double_blocks=2, single_blocks=1, guidance=True),
        dtype="bfloat16"),
    # Four heads of queries per head of keys: at 4 and 8 devices these groups are cut.
    "krea2": Krea2Shape(
        seed=34, transformer=Krea2TransformerShape(
            heads=24, kv_heads=6, axes=(2, 2, 2), ff=64, text_heads=4, text_kv_heads=2),
        dtype="bfloat16"),
    "krea2-turbo": Krea2Shape(
        seed=35, distilled=True, taps=(0, 3), text_layers=4, latent_channels=3, vae_layers=2,
        transformer=Krea2TransformerShape(heads=3, kv_heads=1, axes=(4, 2, 4), layers=3, theta=300.0,
                                          sinusoid=64, layerwise_blocks=1, refiner_blocks=3,
                                          eps=1e-4),
        dtype="bfloat16"),
    "qwen21": Qwen21Shape(
        seed=38, transformer=Qwen21TransformerShape(heads=4, axes=(2, 4, 2)), dtype="bfloat16"),
    # Its own grid, which nothing shifts.
    "qwen21-turbo": Qwen21Shape(
        seed=39, sigmas=(1.0, 0.93, 0.7, 0.41), scheduler={},
        transformer=Qwen21TransformerShape(heads=3, axes=(4, 2, 6), layers=3, mlp_ratio=2,
                                           text_width=18),
        vae=Qwen21VaeShape(base=3, decoder_base=None, latent_channels=6, layers=2),
        text_heads=2, text_kv_heads=1, text_head_dim=8, sections=(2, 1, 1), dtype="bfloat16"),
}
SHAPES |= {
    "qwen-image": QwenImageShape(seed=50, dtype="bfloat16"),
    # The text encoder's config as published; odd sizes.
    "qwen-image-odd": QwenImageShape(
        seed=51, transformer=QwenImageTransformerShape(heads=3, axes=(4, 2, 6), layers=3,
                                                       text_width=32),
        text_heads=4, text_kv_heads=2, latent_channels=3, vae_layers=2, older_config=True,
        dtype="bfloat16"),
    # A token is 32 pixels wide, so that a megapixel is a thousand of them.
    "qwen-image-edit": QwenImageShape(
        seed=56, pipeline="QwenImageEditPipeline", vae_mult=(1, 1, 2, 2, 2), dtype="bfloat16"),
    # Latents of as many channels as the picture has would be taken for encoded ones.
    "qwen-image-layered": QwenImageShape(
        seed=61, pipeline="QwenImageLayeredPipeline", latent_channels=3, dtype="bfloat16"),
    "qwen-image-control": QwenImageShape(
        seed=59, transformer=QwenImageTransformerShape(heads=3, layers=3), controlnets=(2,),
        text_layers=2, dtype="bfloat16"),
    "flux3": Flux3Shape(seed=38, dtype="bfloat16"),
    # A flow map with the other index, a scheduler, two query heads per key head and odd sizes.
    "flux3-map": Flux3Shape(
        seed=39, modular=False, scheduler={"shift": 3.0}, text_width=10, text_kv_heads=4,
        transformer=Flux3TransformerShape(heads=3, axes=(2, 4, 2, 4), layers=1, single_layers=3,
                                          mlp_ratio=2.5, sinusoid=64, theta=300, flow_map=True),
        vae=Flux2VaeShape(widths=(6, 12, 12, 12), decoder_widths=(6, 6, 6, 12), groups=3,
                          latent_channels=3, attention=False, sample_size=64),
        dtype="bfloat16"),
}
MODELS = {"demo": DEMO, "zimage": Path("../zimage-turbo/model")}  # for cases without a shape
CASES = {
    "basic": Request(PROMPTS[:1], steps=3, max_sequence_length=16, guidance=4.0),
    "schnell": Request(PROMPTS, width=112, height=80, max_sequence_length=21, seed=7, true_cfg=2.5,
                       negative_prompt="blurry, a purple heart"),
    "sharded": Request(PROMPTS[:1], width=48, height=96, steps=4, max_sequence_length=64, seed=11,
                       guidance=2.0, num_images=3, vae_tiling=True),
    "prefixed": Request(PROMPTS, prompt_2="a green ring above a pink square", width=80, seed=2**40,
                        max_sequence_length=33, guidance=1.25),
    "zimage-turbo": Request(PROMPTS, width=112, height=80, steps=3, max_sequence_length=64, seed=3,
                            true_cfg=0.0),
    # Prompts of unequal lengths; capped guidance that ends early.
    "zimage": Request(PROMPTS, width=80, steps=3, max_sequence_length=100, seed=9, true_cfg=4.0,
                      cfg_norm_cap=0.9, cfg_until=0.2, num_images=2,
                      negative_prompt="blurry, two stars; a green ring above a pink square"),
    "klein": Request(PROMPTS, width=112, height=80, steps=4, max_sequence_length=64, seed=12),
    "klein-base": Request(PROMPTS, width=80, steps=3, max_sequence_length=50, seed=13, true_cfg=4.0,
                          negative_prompt="blurry, a purple heart", num_images=2, vae_tiling=True),
    # Prompts follow a long system message, with padding in front.
    "flux2-dev": Request(("a [IMG]small red circle", PROMPTS[1]), height=96, steps=3,
                         max_sequence_length=230, seed=2**41, guidance=4.0),
    # Prompts of unequal lengths, of which the text encoder reads the beginning of one.
    "krea2": Request((*PROMPTS, "猫と 🎨"), width=112, height=80, steps=3, max_sequence_length=60,
                     seed=36, true_cfg=2.5, negative_prompt="blurry, two stars"),
    "krea2-turbo": Request(PROMPTS[:1], width=90, height=66, steps=4, max_sequence_length=100,
                           seed=37, true_cfg=0.0, num_images=2, vae_tiling=True),
    # A prompt of more tokens than one run of pads, and one that is cut inside its chat's end.
    "flux3": Request((PROMPTS[0], "猫と 🎨 " + PROMPTS[1] * 3), width=112, height=80, steps=3,
                     max_sequence_length=140, seed=40, true_cfg=3.5,
                     negative_prompt="blurry, two stars"),
    "flux3-map": Request(PROMPTS[:1], width=80, height=64, steps=4, max_sequence_length=8192,
                         seed=41, num_images=2, vae_tiling=True),
    # Prompts of unequal lengths, one without a word; a size that is rounded down.
    "qwen21": Request((*PROMPTS, "猫と 🎨", ""), width=100, height=64, steps=3,
                      max_sequence_length=4096, seed=40, true_cfg=2.5),
    "qwen21-turbo": Request(PROMPTS[:1], width=320, height=288, steps=4, max_sequence_length=4096,
                            seed=41, num_images=2, vae_tiling=True),
    # Prompts of unequal lengths, of which the text encoder reads the beginning of one.
    "qwen-image": Request((*PROMPTS, "猫と 🎨"), width=112, height=80, steps=3,
                          max_sequence_length=60, seed=52, true_cfg=2.5,
                          negative_prompt="blurry, two stars"),
    # A size that is rounded down; guidance by a space.
    "qwen-image-odd": Request(PROMPTS[:1], width=90, height=66, steps=2, max_sequence_length=512,
                              seed=53, true_cfg=4.0, num_images=2, vae_tiling=True),
    "demo": Request(PROMPTS[:1], steps=4, max_sequence_length=32, seed=1234, num_images=2),
}

# Requests with pictures: only in float32, with models of the cases above or small ones of their own.
SMALL = Shape(head_dim=8, axes=(2, 2, 4), single_blocks=1, clip_width=16, clip_layers=1, t5_width=16,
              t5_layers=1, t5_head_dim=8, t5_ff=16, vae_widths=(4, 4, 8, 8), vae_groups=2,
              latent_channels=4, dtype="bfloat16")
SHAPES |= {"fill": dataclasses.replace(SMALL, seed=9, pipeline="FluxFillPipeline"),
           "control": dataclasses.replace(SMALL, seed=10, pipeline="FluxControlPipeline"),
           "redux": dataclasses.replace(SMALL, seed=12, redux=ReduxShape()),
           "controlnets": dataclasses.replace(
               SMALL, seed=11, double_blocks=3, single_blocks=2, controlnets=(
                   NetShape(double_blocks=2, modes=3), NetShape(double_blocks=2))),
           # Only the net: the rest of the model is that of controlnets.
           "controlnet-pixels": dataclasses.replace(
               SMALL, seed=11, double_blocks=3, single_blocks=2,
               controlnets=(NetShape(double_blocks=2, single_blocks=0, pixels=True),))}
SHAPES["qwen-image-inpaint"] = dataclasses.replace(SHAPES["qwen-image-control"], fills_in=True)
MODELS |= {"init": Path("../basic/model"), "mask": Path("../schnell/model"),
           "mask-crop": Path("../basic/model"), "klein-mask": Path("../klein-base/model"),
           "control-lora": Path("../basic/model"),
           "flux3-reference": Path("../flux3/model"), "flux3-references": Path("../flux3-map/model"),
           "flux3-sized": Path("../flux3/model"),
           "qwen21-references": Path("../qwen21/model"),
           "qwen-image-edit-plus": Path("model"),
           "qwen-image-layered-normal": Path("../qwen-image-layered/model"),
           "qwen-image-init": Path("../qwen-image/model"),
           "qwen-image-mask": Path("../qwen-image/model"),
           "references": Path("../klein/model"), "zimage-mask": Path("../zimage-turbo/model")}
WITH_PICTURES = {
    "init": Request(PROMPTS[:1], width=80, steps=5, max_sequence_length=16, seed=21, num_images=2,
                    init=(47, 61), strength=0.5),
    "mask": Request(PROMPTS, steps=3, max_sequence_length=21, seed=22, true_cfg=2.5,
                    negative_prompt="blurry", init=(64, 64), mask=True, strength=0.7),
    "references": Request(PROMPTS[:1], width=80, max_sequence_length=64, seed=23, num_images=2,
                          references=((75, 66), (64, 80))),
    # Of unequal sizes, one of them transparent.
    "qwen21-references": Request((PROMPTS[0], "猫と 🎨"), width=96, height=64, steps=3,
                                 max_sequence_length=4096, seed=42, true_cfg=2.0,
                                 negative_prompt="blurry, two stars",
                                 references=((60, 44), (40, 90)), transparent=(1,)),
    "qwen-image-init": Request(PROMPTS[:1], width=80, steps=4, max_sequence_length=100, seed=54,
                               num_images=2, init=(47, 61), strength=0.5),
    "qwen-image-mask": Request(PROMPTS[:1], width=80, steps=4, max_sequence_length=100, seed=55,
                               true_cfg=2.0, negative_prompt="blurry", init=(64, 64), mask=True,
                               strength=0.8),
    "qwen-image-edit": Request((PROMPTS[0], "猫と 🎨"), width=96, height=64, steps=2,
                               max_sequence_length=4096, seed=57, true_cfg=3.0,
                               negative_prompt="blurry, two stars", references=((60, 44),)),
    # Two pictures that the same net follows, each for a part of the steps.
    "qwen-image-control": Request(PROMPTS[:1], steps=3, max_sequence_length=100, seed=60,
                                  num_images=2, true_cfg=2.0, negative_prompt="blurry",
                                  followed=((64, 64), (40, 50)), control_scales=(0.7, 1.2),
                                  control_from=(0.0, 0.3), control_to=(0.7, 1.0),
                                  control_modes=(None, None)),
    # A net that fills the picture in, in a part of the steps.
    "qwen-image-inpaint": Request(PROMPTS[:2], width=80, height=64, steps=3,
                                  max_sequence_length=100, seed=62, true_cfg=2.0,
                                  negative_prompt="blurry", init=(70, 60), mask=True, strength=1.0,
                                  control_scales=(0.8,), control_from=(0.0,), control_to=(0.7,),
                                  control_modes=(None,)),
    # References have timestep 0.
    "qwen-image-edit-plus": Request(PROMPTS[:1], width=128, height=96, steps=3,
                                    max_sequence_length=4096, seed=58, true_cfg=2.0,
                                    references=((60, 44), (40, 90)), num_images=2),
    # A transparent picture taken apart; an opaque one, guided with the lengths of tokens kept.
    "qwen-image-layered": Request((PROMPTS[0], "猫と 🎨"), width=96, height=64, steps=3,
                                  max_sequence_length=100, seed=62, true_cfg=2.5, layers=3,
                                  negative_prompt="blurry, two stars", references=((60, 44),),
                                  transparent=(0,)),
    "qwen-image-layered-normal": Request(PROMPTS[:1], width=64, height=80, steps=2,
                                         max_sequence_length=60, seed=63, true_cfg=4.0, layers=1,
                                         cfg_normalize=True, references=((90, 100),)),
    "zimage-mask": Request(PROMPTS[:1], height=80, steps=3, max_sequence_length=64, seed=24,
                           true_cfg=2.0, init=(40, 50), mask=True, strength=0.8),
    "zimage-stochastic": Request(PROMPTS[:1], width=80, steps=4, max_sequence_length=64, seed=33,
                                 num_images=2, true_cfg=2.0, init=(80, 64), strength=0.8),
    "mask-crop": Request(PROMPTS[:1], width=55, height=83, steps=3, max_sequence_length=16, seed=27,
                         init=(90, 61), mask=True, mask_blur=2.5, padding_crop=5, strength=0.7),
    "klein-mask": Request(PROMPTS[:1], width=80, height=64, steps=4, max_sequence_length=50, seed=28,
                          true_cfg=2.0, negative_prompt="blurry", num_images=2, init=(91, 70),
                          mask=True, mask_blur=3.0, strength=0.8, references=((64, 70),)),
    "klein-kept": Request(PROMPTS[:1], width=80, steps=3, max_sequence_length=64, seed=29,
                          num_images=2, references=((75, 66), (64, 80))),
    # One reference is padded, and the drawn picture cut to it; several are cropped.
    "flux3-reference": Request(PROMPTS[:1], width=0, height=0, steps=2, max_sequence_length=160,
                               seed=42, true_cfg=2.0, references=((75, 90),)),
    "flux3-references": Request(PROMPTS[:1], width=0, height=0, max_sequence_length=160, seed=43,
                                num_images=2, references=((75, 66), (40, 81))),
    "flux3-sized": Request(PROMPTS[:1], width=80, height=64, max_sequence_length=160, seed=44,
                           true_cfg=1.0, references=((15, 90),)),
    "fill": Request(PROMPTS, steps=3, max_sequence_length=16, seed=25, guidance=30.0,
                    init=(53, 44), mask=True, strength=0.8),
    "control": Request(PROMPTS[:1], height=80, max_sequence_length=16, seed=26, num_images=2,
                       guidance=10.0, control=(64, 80)),
    "redux": Request(PROMPTS[:1], max_sequence_length=512, seed=29, true_cfg=2.0,
                     negative_prompt="blurry", looked_at=((50, 40), (30, 45)),
                     looked_scales=(0.75, 0.5)),
    "control-lora": Request(PROMPTS[:1], max_sequence_length=16, seed=28, num_images=2,
                            control=(60, 70)),
    "kontext-mask": Request(PROMPTS[:1], width=80, steps=4, max_sequence_length=16, seed=30,
                            num_images=2, init=(80, 64), mask=True, padding_crop=6, strength=0.8),
    "controlnets": Request(PROMPTS[:1], steps=3, max_sequence_length=16, seed=27, num_images=2,
                           true_cfg=2.0, negative_prompt="blurry", followed=((64, 64), (40, 50)),
                           control_scales=(0.7, 1.2), control_from=(0.0, 0.3),
                           control_to=(0.7, 1.0), control_modes=(2, None)),
    "controlnet-pixels": Request(PROMPTS[:1], width=80, max_sequence_length=16, seed=31,
                                 num_images=2, followed=((70, 90),), control_scales=(0.7,),
                                 control_from=(0.0,), control_to=(1.0,), control_modes=(None,)),
}


def write_manifest(folder, manifest):
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    (folder / "manifest.json").write_text(text + "\n")


def make(name, out):
    folder, request = out / name, CASES[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = folder / MODELS.get(name, "model")
    if name in SHAPES:
        random_families.make(model, SHAPES[name], link=True)
    reference, low = dump.load(model), dump.load(model, "bfloat16")
    expected = dump.run(reference, request)
    rounded, exact = dump.run_bfloat16(reference, low, request)
    expected |= {"bfloat16.latents_initial": rounded["latents_initial"],
                 "bfloat16.velocity_first_float32": exact["velocity_first"]}
    save_file(expected, folder / "expected.safetensors")
    if parts.knows(reference):
        given = parts.inputs(reference, request)
        components = {n: t.contiguous() for n, t in parts.outputs(reference, given).items()}
        save_file(given | components, folder / "components.safetensors")
    manifest = {
        "model": "../../../../models/demo" if model == DEMO else str(MODELS.get(name, "model")),
        "request": dataclasses.asdict(request), "made_with": versions()}
    if name == "basic":
        manifest["single_file"] = "transformer.safetensors"
        single_file.write(model / "transformer", folder / "transformer.safetensors",
                          "model.diffusion_model.")
    write_manifest(folder, manifest)
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)
    size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink())
    print(f"{name}: {size / 1e6:.2f} MB", flush=True)


# Models that reuse an earlier case's parts as another pipeline class.
LINKED = {"klein-kept": ("klein", "Flux2KleinKVPipeline"),
          "kontext-mask": ("basic", "FluxKontextPipeline"),
          "qwen-image-edit-plus": ("qwen-image-edit", "QwenImageEditPlusPipeline"),
          "zimage-stochastic": ("zimage-turbo", "ZImagePipeline"),
          "qwen-image-inpaint": ("qwen-image-control", "QwenImagePipeline"),
          "controlnet-pixels": ("controlnets", "FluxPipeline")}

# Fields of a config that are not the case's.
FIELDS = {"zimage-stochastic": ("scheduler/scheduler_config.json", {"stochastic_sampling": True}),
          "qwen-image-edit-plus": ("transformer/config.json", {"zero_cond_t": True})}


def link(name, out):
    case, pipeline = LINKED[name]
    source = out / case / "model"
    model = out / name / "model"
    model.mkdir(exist_ok=True)
    for part in sorted(source.iterdir()):
        if part.is_dir() and not part.name.startswith("controlnet"):
            made = model / part.name
            made.unlink() if made.is_symlink() else shutil.rmtree(made, ignore_errors=True)
            made.symlink_to(Path(f"../../{case}/model") / part.name)
    if name in FIELDS:
        path, fields = FIELDS[name]
        config = json.loads((model / path).read_text())
        folder = (model / path).parent
        folder.unlink()
        folder.mkdir()
        for file in sorted((source / path).parent.iterdir()):
            (folder / file.name).symlink_to(Path(f"../../../{case}/model") / folder.name / file.name)
        (model / path).unlink()
        (model / path).write_text(json.dumps(config | fields, indent=2) + "\n")
    index = json.loads((source / "model_index.json").read_text())
    index.pop("is_distilled", None)
    index["_class_name"] = pipeline
    (model / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")


def make_with_pictures(name, out):
    """Writes the pictures beside the manifest: init.png, mask.png, control.png, reference0.png,
    followed0.png, looked0.png, ..., and lora.safetensors"""
    folder, request = out / name, WITH_PICTURES[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if name in SHAPES:
        random_families.make(folder / "model", SHAPES[name], link=True)
    if name in LINKED:
        link(name, out)
    for role, picture in dump.pictures_in(request).items():
        picture.save(folder / f"{role}.png")
    for i, picture in enumerate(dump.reference_pictures(request)):
        picture.save(folder / f"reference{i}.png")
    for i, picture in enumerate(dump.looked_at_pictures(request)):
        picture.save(folder / f"looked{i}.png")
    for i, picture in enumerate(dump.followed_pictures(request)):
        picture.save(folder / f"followed{i}.png")
    model = MODELS.get(name, "model")
    pipe = dump.load(folder / model)
    if name == "control-lora":
        import control_lora  # here, as its modules import this one

        merged = control_lora.write((folder / model).resolve(), folder / "lora.safetensors")
        pipe = control_lora.pipeline(pipe, merged)
    save_file(dump.run(pipe, request), folder / "expected.safetensors")
    write_manifest(folder, {"model": str(model), "request": dataclasses.asdict(request),
                            "made_with": versions()})
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)


def measure(names, out):
    folders = [out / name for name in names]
    for folder, figures in zip(folders, spread.measure(folders)):
        manifest = json.loads((folder / "manifest.json").read_text())
        known = {name: manifest.get(name, {}) for name in figures}
        write_manifest(folder, manifest | spread.larger(known, figures))


def make_all(names, out):
    for name in names:
        make(name, out)
    measure(names, out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = list(CASES | WITH_PICTURES)
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    parser.add_argument("--out", type=Path, default=ROOT / "tests/data/parity")
    parser.add_argument("--measure", action="store_true", help="only the manifests")
    args = parser.parse_args()
    torch.set_num_threads(1)
    out = args.out.resolve()
    alone = [name for name in args.only if name in CASES]
    if args.measure:
        return measure(alone, out)
    if alone:
        make_all(alone, out)
    for name in args.only:
        if name in WITH_PICTURES:
            make_with_pictures(name, out)


if __name__ == "__main__":
    main()
