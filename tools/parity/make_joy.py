"""Make tests/data/parity/joy: a tiny random JoyAI-Image-Edit pipeline and diffusers' outputs.

usage: python make_joy.py [--out tests/data/parity/joy] [--measure]

model/; components.safetensors, one part at a time on small inputs, in float32, with the error of
diffusers' own bfloat16 in manifest.json; edit.safetensors, a request with one reference;
plus.safetensors, a request to Edit-Plus, whose pipeline has the same parts under other class names,
with two; stochastic.safetensors, what both draw with stochastic steps; reference0.png, reference1.png. manifest.json says how far the parts' float32 outputs move
between the instruction sets that processors have (spread.py); --measure only raises these figures where
they are larger on this one.
Pictures have a megapixel, so large tensors are kept in part.
"""
import argparse
import dataclasses
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import dump
import numpy as np
import random_joy
import torch
from diffusers.pipelines.joyimage.image_processor import find_best_bucket
from dump import Request
from parts import PROMPTS, normal
from safetensors.torch import load_file, save_file
from spread import all_settings, four_digits, larger, largest

ROOT = Path(__file__).resolve().parents[2]
EDIT = Request(PROMPTS[:1], width=60, height=44, steps=3, max_sequence_length=4096, seed=5,
               true_cfg=4.0, references=((60, 44),))
PLUS = dataclasses.replace(EDIT, width=640, height=512, seed=6, negative_prompt="blurry, two stars",
                           references=((60, 44), (40, 90)))
# Tensors of whole requests that are kept in part: (dim, stride) pairs.
STRIDES = {"image": ((1, 16), (2, 16)), "negative_prompt_embeds": ((1, 9),),
           "velocity_first_negative": ((1, 5),), "velocity_first_guided": ((1, 5),),
           "reference_latents": ((2, 5),)}
SIZES = ((1024, 1024), (1, 1), (60, 44), (44, 60), (40, 90), (1920, 1080), (1080, 1920), (3000, 1000),
         (1000, 9000), (9000, 1000), (1200, 1100), (1100, 1200), (1000, 999), (16000, 15), (640, 512),
         (832, 1216), (1536, 640), (700, 701), (800, 600), (600, 800))  # width, height
VISION = ((64, 96), (128, 32))  # height, width


def thinned(tensor, strides):
    for dim, stride in strides:
        tensor = tensor[(slice(None),) * dim + (slice(None, None, stride),)]
    return tensor.contiguous()


def plus_of(model, out):
    """The same parts as an Edit-Plus pipeline."""
    shutil.copytree(model, out, symlinks=True)
    for path, old, new in (("model_index.json", "JoyImageEdit", "JoyImageEditPlus"),
                           ("transformer/config.json", "JoyImageEdit", "JoyImageEditPlus")):
        text = (out / path).read_text()
        (out / path).write_text(text.replace(old, new))
    return out


def vision_inputs(pipe):
    """Two byte pictures, and a prompt that contains them."""
    pictures = [dump.random_picture(10 + i, (w, h)) for i, (h, w) in enumerate(VISION)]
    mark = "<|vision_start|><|image_pad|><|vision_end|>"
    text = f"<|im_start|>user\n{mark}{mark}a red circle<|im_end|>\n"
    inputs = pipe.processor(text=[text], images=pictures, do_resize=False, return_tensors="pt")
    return pictures, text, inputs


def part_inputs(pipe):
    z = pipe.vae.config.z_dim
    pictures, text, _ = vision_inputs(pipe)
    given = {f"vision.picture{i}": torch.from_numpy(np.array(p))
             for i, p in enumerate(pictures)}
    plain = pipe.tokenizer("Two stars: a red circle", return_tensors="pt").input_ids
    return given | {
        "text.ids": pipe.tokenizer(text, return_tensors="pt").input_ids, "text.plain_ids": plain,
        "vae.pixels": normal(5, 1, 3, 64, 128).clamp(-1, 1), "vae.latents": normal(4, 1, z, 2, 3),
        "vae.wide_latents": normal(6, 1, z, 10, 9),
        "transformer.items": normal(1, 2, 3, z, 1, 4, 6),
        "transformer.text": normal(2, 2, 7, pipe.transformer.config.text_dim),
        "transformer.timestep": torch.tensor([731.25, 12.5])}


@torch.no_grad()
def part_outputs(pipe, given):
    dtype = pipe.transformer.dtype
    inputs = vision_inputs(pipe)[2]
    visual = pipe.text_encoder.model.visual
    seen = visual(inputs.pixel_values.to(dtype), grid_thw=inputs.image_grid_thw)
    found = {"vision.tokens": seen.pooler_output}
    found |= {f"vision.added{i}": x for i, x in enumerate(seen.deepstack_features)}
    last = pipe._get_last_decoder_hidden_states
    found["text.states"] = last(pipe.text_encoder, **inputs)
    found["text.plain_states"] = last(pipe.text_encoder, input_ids=given["text.plain_ids"])
    pixels, latents = given["vae.pixels"].to(dtype), given["vae.latents"].to(dtype)
    found["vae.moments"] = pipe.vae.encode(pixels.unsqueeze(2)).latent_dist.parameters.squeeze(2)
    found["vae.decoded"] = pipe.vae.decode(latents.unsqueeze(2)).sample.squeeze(2)
    found["vae.normed"] = pipe.normalize_latents(latents.unsqueeze(2)).squeeze(2)
    pipe.vae.enable_tiling()
    wide = given["vae.wide_latents"].to(dtype).unsqueeze(2)
    found["vae.decoded_tiled"] = pipe.vae.decode(wide).sample.squeeze(2)[..., ::7, ::7]
    pipe.vae.disable_tiling()
    for rope in ("rope", "mrope"):
        pipe.transformer.rope_type = rope
        for items in (1, 3):
            made = pipe.transformer(
                given["transformer.items"][:, -items:].to(dtype), given["transformer.timestep"],
                given["transformer.text"].to(dtype)).sample
            found[f"transformer.{rope}{items}"] = made[:, -1].squeeze(2)
    pipe.transformer.rope_type = "rope"
    return {name: t.contiguous() for name, t in found.items()}


def whole(pipe, request):
    """dump.run(), plus what only these pipelines have."""
    family = dump.FAMILIES[type(pipe).__name__]
    kept, outputs = {}, []
    hook = pipe.transformer.register_forward_hook(
        lambda module, args, options, output: outputs.append((options, output)), with_kwargs=True)
    prepare = type(pipe).prepare_latents
    scheduler_class = type(pipe.scheduler)
    own_step = scheduler_class.step
    scheduler_class.step = lambda self, velocity, *args, **options: (
        kept.setdefault("velocity_first_guided", family.packed(velocity)),
        own_step(self, velocity, *args, **options))[1]

    class Watched(type(pipe)):
        def prepare_latents(self, *args, **options):
            made = prepare(self, *args, **options)
            if made[1] is not None and made[1].dtype != torch.bool:
                kept["reference_latents"] = made[1].squeeze(3)
            return made

    name = type(pipe).__name__
    Watched.__name__ = name
    pipe.__class__ = Watched
    try:
        found = dump.run(pipe, request)
    finally:
        scheduler_class.step = own_step
        hook.remove()
    batched = name.endswith("PlusPipeline")
    options, output = outputs[0 if batched else 1]
    count = len(request.prompts)
    kept["negative_prompt_embeds"] = options["encoder_hidden_states"][:count]
    kept["velocity_first_negative"] = family.packed(output[0][:count])
    found |= {n: t.float() for n, t in kept.items()}
    return {n: thinned(t, STRIDES.get(n, ())) for n, t in found.items()}


def stochastic(pipe, request):
    """Where stochastic steps end."""
    pipe.scheduler = type(pipe.scheduler).from_config(
        pipe.scheduler.config, stochastic_sampling=True)
    return dump.run(pipe, request)["latents_final"]


def differences(out):
    """How far the parts' outputs in this process are from those in components.safetensors."""
    torch.set_num_threads(1)
    expected = load_file(out / "components.safetensors")
    made = part_outputs(dump.load(out / "model"), expected)
    return {name: largest(tensor, expected[name]) for name, tensor in made.items()}


def measure(out):
    """Merges the largest differences() on any instruction set into the manifest's float32_spread."""
    found = [json.loads(subprocess.run(
        [sys.executable, __file__, "--out", out, "--differences"], check=True, text=True,
        stdout=subprocess.PIPE, env=os.environ | settings).stdout)
        for settings in all_settings().values()]
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["float32_spread"] = larger(manifest.get("float32_spread", {}), {
        name: four_digits(max(one[name] for one in found)) for name in found[0]})
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "tests/data/parity/joy")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--differences", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    out = args.out.resolve()
    if args.differences:
        return print(json.dumps(differences(out)))
    if args.measure:
        return measure(out)
    torch.set_num_threads(1)
    shutil.rmtree(out, ignore_errors=True)
    random_joy.make(out / "model", random_joy.JoyShape(seed=1, dtype="bfloat16"))
    pipe, low = dump.load(out / "model"), dump.load(out / "model", "bfloat16")
    given = part_inputs(pipe)
    made, rounded = part_outputs(pipe, given), part_outputs(low, given)
    save_file(given | made, out / "components.safetensors")
    for i, picture in enumerate(dump.reference_pictures(PLUS)):
        picture.save(out / f"reference{i}.png")
    save_file(whole(pipe, EDIT), out / "edit.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        plus = dump.load(plus_of(out / "model", Path(folder) / "plus"))
        save_file(whole(plus, PLUS), out / "plus.safetensors")
        save_file({"edit": stochastic(pipe, EDIT), "plus": stochastic(plus, PLUS)},
                  out / "stochastic.safetensors")
    packages = ("torch", "torchvision", "diffusers", "transformers", "tokenizers", "numpy")
    nearest = [[*size, *find_best_bucket(size[1], size[0], 1024)[::-1]] for size in SIZES]
    (out / "manifest.json").write_text(json.dumps({
        "edit": dataclasses.asdict(EDIT), "plus": dataclasses.asdict(PLUS),
        "bfloat16_errors": {n: dump.relative_error(rounded[n].float(), made[n]) for n in made},
        "sizes": nearest,
        "made_with": {p: importlib.metadata.version(p) for p in packages}}, indent=2) + "\n")
    for path in out.rglob("*.safetensors"):
        path.chmod(0o644)
    measure(out)


if __name__ == "__main__":
    main()
