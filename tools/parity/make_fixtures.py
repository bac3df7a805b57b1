"""Make tests/data/parity: tiny random pipelines, and what diffusers computes with them.

usage: python make_fixtures.py [--only demo basic ...] [--out tests/data/parity]

Each case is a folder: manifest.json; model/ (except for the bundled model); expected.safetensors,
the whole pipeline (see dump.py); components.safetensors, one part at a time. Fixed seeds and one
thread: the same machine makes the same bytes, another one the same up to rounding.
After new weights for the bundled model: python make_fixtures.py --only demo
"""
import argparse
import dataclasses
import importlib.metadata
import json
import shutil
from pathlib import Path

import dump
import random_pipeline
import single_file
import torch
from dump import Request
from random_pipeline import DEMO, Shape
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = ("a small red circle on a blue background", "Two stars: café, 50% über all")

SHAPES = {
    "basic": Shape(seed=1, vae_sample_size=32, dtype="bfloat16"),
    # FLUX.1-schnell's kind: no guidance embedder, static shift; the other form of everything.
    "schnell": Shape(
        seed=2, heads=3, head_dim=8, axes=(2, 2, 4), single_blocks=1, guidance=False,
        clip_width=24, clip_heads=3, clip_act="gelu", clip_eos=669, t5_width=24,
        t5_heads=3, t5_head_dim=8, t5_layers=1, vae_widths=(4, 4, 8, 8), vae_groups=2,
        vae_quant_convs=True, vae_attention=False, vae_sample_size=32, scheduler={"shift": 1.0}),
    # Shards, float16, tiles, and a spacing.
    "sharded": Shape(
        seed=3, heads=4, head_dim=8, axes=(4, 2, 2), single_blocks=1, t5_embedding="both",
        vae_layers=2, vae_widths=(4, 8, 8, 8), vae_groups=2, vae_sample_size=32, dtype="float16",
        shard="60KB",
        scheduler={"shift": 3.0, "use_dynamic_shifting": True, "use_karras_sigmas": True}),
    # Names as in FLUX.1's published files, the other dynamic shift, an odd number of everything.
    "prefixed": Shape(
        seed=4, heads=5, head_dim=6, axes=(2, 2, 2), double_blocks=2, single_blocks=3,
        clip_prefix=True, clip_width=18, clip_heads=3, clip_layers=3, t5_width=20, t5_heads=5,
        t5_head_dim=6, t5_layers=3, t5_buckets=16, t5_max_distance=40, t5_embedding="encoder",
        vae_widths=(4, 8, 8, 12), vae_groups=2, vae_sample_size=32, dtype="bfloat16",
        scheduler={"use_dynamic_shifting": True, "time_shift_type": "linear",
                   "shift_terminal": 0.05}),
}
CASES = {
    "basic": Request(PROMPTS[:1], steps=3, max_sequence_length=16, guidance=4.0),
    "schnell": Request(PROMPTS, width=112, height=80, max_sequence_length=21, seed=7, true_cfg=2.5,
                       negative_prompt="blurry, a purple heart"),
    "sharded": Request(PROMPTS[:1], width=48, height=96, steps=4, max_sequence_length=64, seed=11,
                       guidance=2.0, num_images=3, vae_tiling=True),
    "prefixed": Request(PROMPTS, prompt_2="a green ring above a pink square", width=80, seed=2**40,
                        max_sequence_length=33, guidance=1.25),
    "demo": Request(PROMPTS[:1], steps=4, max_sequence_length=32, seed=1234, num_images=2),
}


def versions():
    packages = ("torch", "diffusers", "transformers", "tokenizers", "numpy")
    return {name: importlib.metadata.version(name) for name in packages}


def normal(seed, *shape):
    """Normal values that bfloat16 holds exactly: both precisions start from the same numbers."""
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return values.bfloat16().float()


def flux_inputs(config, rows=3, columns=5, text=7, batch=2):
    ids = torch.cartesian_prod(torch.arange(1), torch.arange(rows), torch.arange(columns)).float()
    inputs = {
        "hidden_states": normal(1, batch, rows * columns, config.in_channels),
        "encoder_hidden_states": normal(2, batch, text, config.joint_attention_dim),
        "pooled_projections": normal(3, batch, config.pooled_projection_dim),
        "timestep": torch.tensor([0.828125, 0.2109375]), "img_ids": ids,
        "txt_ids": torch.zeros(text, 3)}
    return inputs | ({"guidance": torch.tensor([4.0, 2.0])} if config.guidance_embeds else {})


def tokens(pipe, request):
    def padded(tokenizer, length):
        return tokenizer(list(PROMPTS), padding="max_length", max_length=length, truncation=True,
                         return_tensors="pt").input_ids

    return {"clip.input_ids": padded(pipe.tokenizer, 77),
            "t5.input_ids": padded(pipe.tokenizer_2, request.max_sequence_length)}


def inputs(pipe, request):
    """What the parts are fed, by name; tiles of the autoencoder do not divide these sizes."""
    flux = {"transformer." + n: t for n, t in flux_inputs(pipe.transformer.config).items()}
    return tokens(pipe, request) | flux | {
        "vae.latents": normal(4, 1, pipe.vae.config.latent_channels, 4, 7),
        "vae.pixels": normal(5, 1, 3, 32, 56).clamp(-1, 1)}


@torch.no_grad()
def outputs(pipe, given):
    """What each part makes of `given`, in the dtype of the pipeline."""
    dtype = pipe.transformer.dtype
    flux = {n.removeprefix("transformer."): t.to(dtype) if "ids" not in n else t
            for n, t in given.items() if n.startswith("transformer.")}
    text = pipe.text_encoder(given["clip.input_ids"])
    found = {"clip.last_hidden_state": text.last_hidden_state, "clip.pooled": text.pooler_output,
             "t5.last_hidden_state": pipe.text_encoder_2(given["t5.input_ids"])[0],
             "transformer.velocity": pipe.transformer(**flux).sample}
    for tiled, suffix in ((False, ""), (True, "_tiled")):
        dump.set_tiling(pipe, tiled)
        latents, pixels = given["vae.latents"].to(dtype), given["vae.pixels"].to(dtype)
        found["vae.decoded" + suffix] = pipe.vae.decode(latents).sample
        found["vae.moments" + suffix] = pipe.vae.encode(pixels).latent_dist.parameters
    return found


def component_dump(reference, low, request):
    """Inputs, float32 outputs, bfloat16 outputs (NAME.bfloat16), and the errors of the latter."""
    given = inputs(reference, request)
    expected = outputs(reference, given)
    rounded = {n: t for n, t in outputs(low, given).items() if not n.endswith("_tiled")}
    errors = {n: dump.relative_error(t.float(), expected[n]) for n, t in rounded.items()}
    tensors = given | expected | {n + ".bfloat16": t for n, t in rounded.items()}
    return {n: t.contiguous() for n, t in tensors.items()}, errors


def make(name, out):
    folder, request = out / name, CASES[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = DEMO
    if name in SHAPES:
        model = folder / "model"
        random_pipeline.make(model, SHAPES[name], link=True)
    reference, low = dump.load(model), dump.load(model, "bfloat16")
    expected = dump.run(reference, request)
    rounded, exact = dump.run_bfloat16(reference, low, request)
    error = dump.relative_error(rounded["velocity_first"], exact["velocity_first"])
    expected |= {"bfloat16.latents_initial": rounded["latents_initial"],
                 "bfloat16.velocity_first": rounded["velocity_first"],
                 "bfloat16.velocity_first_float32": exact["velocity_first"]}
    save_file(expected, folder / "expected.safetensors")
    components, errors = component_dump(reference, low, request)
    save_file(components, folder / "components.safetensors")
    manifest = {
        "model": "model" if name in SHAPES else "../../../../models/demo",
        "request": dataclasses.asdict(request),
        "bfloat16_errors": {"velocity_first": error} | errors, "made_with": versions()}
    if name == "basic":
        manifest["single_file"] = "transformer.safetensors"
        single_file.write(model / "transformer", folder / "transformer.safetensors",
                          "model.diffusion_model.")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)
    size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink())
    print(f"{name}: {size / 1e6:.2f} MB, bfloat16 error {error:.4f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--out", type=Path, default=ROOT / "tests/data/parity")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.only:
        make(name, args.out.resolve())


if __name__ == "__main__":
    main()
