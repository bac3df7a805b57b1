"""Make tests/data/parity/denoisers: tiny random parts of the newer families, and what diffusers
computes with them.

usage: python make_denoisers.py [--only klein ...] [--out tests/data/parity/denoisers] [--measure]

Each case is a folder: config.json and diffusion_pytorch_model.safetensors, the part; and
components.safetensors, its inputs and float32 outputs. manifest.json holds the relative L2 error of
diffusers' own bfloat16 and the largest difference of its own float32. Both are maxima over the
instruction sets of processors (spread.py), because a bound must hold on every one. --measure only
raises these figures where they are larger on this processor.
"""
import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import diffusers
import dump
import random_denoisers
import random_flux3
import random_krea2
import random_pipeline
import random_qwen21
import random_qwen_image
import single_file
import torch
from made_with import versions
from parts import normal
from random_denoisers import Flux2Shape, Flux2VaeShape, ZImageShape
from random_flux3 import Flux3TransformerShape
from random_krea2 import Krea2TransformerShape
from random_qwen21 import Qwen21TransformerShape, Qwen21VaeShape
from random_qwen_image import QwenImageTransformerShape
from safetensors.torch import load_file, save_file
from spread import all_settings, larger, largest

# Times 1000 they are exact in bfloat16; others move the output by more than all later rounding.
TIMES, GUIDANCE = (0.5, 0.125, 0.25), (4.0, 2.0, 1.0)
OUT = Path(__file__).resolve().parents[2] / "tests/data/parity/denoisers"
SINGLE_FILE = "transformer.safetensors"
SEEN = 3e-3   # the least change of the output when a tensor is neutralised
# Z-Image's is too large for a fixture, whatever the shape, so the files omit it.
LEFT_OUT = "t_embedder.mlp.0.weight"


@dataclasses.dataclass
class Flux2Case:
    shape: Flux2Shape
    batch: int = 1
    grid: tuple = (3, 5)            # rows and columns of the noise's tokens
    references: tuple = ()          # rows and columns of each
    text: int = 7
    times: tuple = TIMES            # of the pictures of the batch
    scales: tuple = GUIDANCE
    single_file: str | None = None  # the prefix of the names in a second file


@dataclasses.dataclass
class ZImageCase:
    shape: ZImageShape
    batch: int = 1
    times: tuple = TIMES
    grid: tuple = (3, 5)
    caption: int = 32               # tokens, before they are padded
    single_file: str | None = None


@dataclasses.dataclass
class Krea2Case:
    shape: Krea2TransformerShape
    batch: int = 1
    grid: tuple = (3, 5)
    text: int = 7
    times: tuple = TIMES
    single_file: str | None = None


@dataclasses.dataclass
class Flux3Case:
    shape: Flux3TransformerShape
    batch: int = 1
    grid: tuple = (3, 5)
    references: tuple = ()          # rows and columns of each
    text: int = 7
    times: tuple = TIMES
    targets: tuple = (0.25, 0.03125, 0.0)  # of flow maps
    single_file: str | None = None


@dataclasses.dataclass
class Qwen21Case:
    shape: Qwen21TransformerShape
    batch: int = 1
    grid: tuple = (4, 6)            # even
    references: tuple = ()
    text: tuple = (7,)              # tokens before each reference, then those behind all
    times: tuple = TIMES
    single_file: str | None = None


@dataclasses.dataclass
class QwenImageCase:
    shape: QwenImageTransformerShape
    batch: int = 1
    grid: tuple = (3, 5)
    references: tuple = ()          # rows and columns of each
    text: int = 7
    times: tuple = TIMES
    single_file: str | None = None


@dataclasses.dataclass
class Qwen21VaeCase:
    shape: Qwen21VaeShape
    single_file: None = None


@dataclasses.dataclass
class VaeCase:
    shape: Flux2VaeShape
    single_file: None = None


CASES = {
    "klein": Flux2Case(Flux2Shape(seed=1, heads=4, head_dim=8, axes=(2, 2, 2, 2), double_blocks=2,
                                  single_blocks=3), single_file=""),
    "dev": Flux2Case(Flux2Shape(seed=2, heads=3, head_dim=12, axes=(2, 4, 4, 2), single_blocks=1,
                                guidance=True, out_channels=12, channels=20),
                     batch=3, grid=(5, 3), references=((3, 2), (1, 7)), text=5,
                     times=(0.828125, 0.2109375, 0.6044921875), scales=(3.5, 2.5, 30.0),
                     single_file="model.diffusion_model."),
    "wide": Flux2Case(Flux2Shape(seed=3, heads=6, head_dim=8, axes=(2, 2, 2, 2), theta=10000,
                                 mlp_ratio=1.75, sinusoid=64), batch=3, references=((4, 4),),
                      text=9),
    "five": Flux2Case(Flux2Shape(seed=4, heads=5, head_dim=8, axes=(2, 2, 2, 2), guidance=True,
                                 mlp_ratio=2.5, sinusoid=128), grid=(1, 13), references=((2, 3),)),
    "zimage-31": ZImageCase(ZImageShape(seed=7, heads=3, axes=(2, 4, 2)), grid=(3, 5), caption=31,
                            single_file=""),
    "zimage-32": ZImageCase(ZImageShape(seed=8, heads=5, axes=(2, 2, 2), refiners=2, layers=1),
                            batch=3, grid=(4, 8), caption=32),
    "zimage-33": ZImageCase(ZImageShape(seed=9, heads=4, axes=(2, 2, 2), layers=3, theta=100.0,
                                        t_scale=500.0, latent_channels=3), batch=3, grid=(7, 5),
                            caption=33, times=(0.828125, 0.2109375, 0.6044921875),
                            single_file="model.diffusion_model."),
    "krea2": Krea2Case(Krea2TransformerShape(seed=10, heads=12, kv_heads=3, axes=(2, 2, 4)),
                       single_file=""),
    "krea2-odd": Krea2Case(Krea2TransformerShape(
        seed=11, heads=5, kv_heads=5, axes=(2, 4, 2), theta=200.0, layers=3, ff=50, sinusoid=64,
        channels=12, taps=5, text_width=18, text_kv_heads=1, layerwise_blocks=1, refiner_blocks=3,
        eps=1e-3), batch=3, grid=(7, 4), text=13, times=(0.03125, 0.0078125, 0.0625),
        single_file="model.diffusion_model."),
    "krea2-plain": Krea2Case(Krea2TransformerShape(
        seed=12, heads=6, kv_heads=2, layers=1, taps=1, layerwise_blocks=0, refiner_blocks=0),
        grid=(1, 13), text=1),
    "flux3": Flux3Case(Flux3TransformerShape(seed=13), references=((2, 3),), single_file=""),
    "flux3-map": Flux3Case(Flux3TransformerShape(
        seed=14, heads=3, axes=(2, 4, 2, 4), layers=1, single_layers=3, mlp_ratio=2.5, sinusoid=64,
        channels=20, text_width=18, theta=300, flow_map=True), batch=3, grid=(7, 4),
        references=((3, 2), (1, 5)), text=13, times=(0.03125, 0.0078125, 0.0625),
        single_file="model.diffusion_model."),
    "flux3-plain": Flux3Case(Flux3TransformerShape(
        seed=15, heads=6, layers=0, single_layers=1), grid=(1, 13), text=1),
    # Levels without blocks of their own, and norms' eps.
    "flux3-eps": Flux3Case(Flux3TransformerShape(
        seed=18, heads=3, axes=(2, 2, 2, 2), layers=1, single_layers=1, eps=1e-3), grid=(3, 2), text=5,
        references=((2, 3),)),
    # Text and references at the step's time.
    "qwen21-timed": Qwen21Case(Qwen21TransformerShape(
        seed=20, heads=3, axes=(2, 2, 2), layers=2, config={"causal_condition": False}),
        grid=(2, 4), references=((4, 2),), text=(3, 2)),
    "qwen21": Qwen21Case(Qwen21TransformerShape(seed=13, layers=3), single_file=""),
    # Two pictures without text between them, as no prompt has them.
    "qwen21-references": Qwen21Case(
        Qwen21TransformerShape(seed=14, heads=3, axes=(4, 2, 6), channels=6, text_width=18,
                               mlp_ratio=2),
        batch=3, grid=(6, 2), references=((2, 4), (4, 4), (6, 2)), text=(3, 2, 0, 5),
        times=(0.828125, 0.2109375, 0.60546875), single_file="model.diffusion_model."),
    "qwen21-eps": Qwen21Case(
        Qwen21TransformerShape(seed=15, heads=5, axes=(2, 2, 2), layers=1, eps=1e-3),
        grid=(2, 2), references=((4, 2),), text=(1, 2)),
    "qwen-image": QwenImageCase(QwenImageTransformerShape(seed=18), single_file=""),
    # References whose sides reach farther than those of the noise.
    "qwen-image-references": QwenImageCase(
        QwenImageTransformerShape(seed=19, heads=3, axes=(4, 2, 6), layers=3, channels=12,
                                  text_width=18),
        batch=3, grid=(6, 3), references=((7, 4), (1, 5)), text=13,
        times=(0.828125, 0.2109375, 0.60546875), single_file="model.diffusion_model."),
    "qwen-image-zero": QwenImageCase(
        QwenImageTransformerShape(seed=20, heads=5, axes=(2, 2, 2), zero_time=True),
        batch=2, grid=(2, 9), references=((4, 2), (3, 3)), text=1),
    "qwen21-vae": Qwen21VaeCase(Qwen21VaeShape(seed=316)),
    # How far bfloat16 lies from float32 differs from seed to seed.
    **{f"qwen21-vae-{seed}": Qwen21VaeCase(Qwen21VaeShape(
        seed=seed, base=2, decoder_base=3, latent_channels=4)) for seed in (317, 318)},
    # Levels that keep their width, or change it by other factors than the published ones.
    "qwen21-vae-odd": Qwen21VaeCase(Qwen21VaeShape(
        seed=17, base=3, decoder_base=None, mult=(1, 1, 4, 2), layers=2,
        temporal=(True, False, True), latent_channels=3)),
    "vae": VaeCase(Flux2VaeShape(seed=5)),
    "vae-thin": VaeCase(Flux2VaeShape(seed=6, decoder_widths=(6, 6, 6, 12), groups=3,
                                      widths=(6, 12, 12, 12), attention=False, latent_channels=3,
                                      batch_norm_eps=0.02)),
}


def grid_ids(time, rows, columns):
    """FLUX.2's positions of picture tokens: (picture, row, column, 0)."""
    return torch.cartesian_prod(torch.tensor([time]), torch.arange(rows), torch.arange(columns),
                                torch.tensor([0])).float()


def flux2_inputs(case):
    s, rows, columns = case.shape, *case.grid
    given = {"noise": normal(1, case.batch, rows * columns, s.channels),
             "noise_ids": grid_ids(0, rows, columns),
             "text": normal(2, case.batch, case.text, s.text_width),
             "text_ids": torch.cartesian_prod(*(torch.tensor([0]),) * 3,
                                              torch.arange(case.text)).float(),
             "timestep": torch.tensor(case.times[:case.batch])}
    for i, (rows, columns) in enumerate(case.references):
        given[f"reference{i}"] = normal(10 + i, case.batch, rows * columns, s.channels)
        given[f"reference{i}_ids"] = grid_ids(10 + 10 * i, rows, columns)
    if s.guidance:
        given["guidance"] = torch.tensor(case.scales[:case.batch])
    return given


def flux2_outputs(model, case, given):
    count = range(len(case.references))
    tokens, ids = (torch.cat([given["noise" + end], *(given[f"reference{i}{end}"] for i in count)],
                             dim) for end, dim in (("", 1), ("_ids", 0)))
    velocity = model(
        hidden_states=tokens.to(model.dtype), encoder_hidden_states=given["text"].to(model.dtype),
        timestep=given["timestep"].to(model.dtype), img_ids=ids, txt_ids=given["text_ids"],
        guidance=given.get("guidance")).sample
    return {"velocity": velocity[:, :given["noise"].shape[1]]}


def left_out(rows, columns):
    """The values of LEFT_OUT: row i and column j have ((i (73 + j) + 151 j) mod 255 - 127) / 1024."""
    i, j = torch.arange(rows).unsqueeze(1), torch.arange(columns)
    return ((i * (73 + j) + 151 * j) % 255 - 127).float() / 1024


def zimage_inputs(case):
    s, (rows, columns) = case.shape, case.grid
    return {"latents": normal(1, case.batch, s.latent_channels, 2 * rows, 2 * columns),
            "text": normal(2, case.batch, case.caption, s.text_width),
            "timestep": torch.tensor(case.times[:case.batch])}


def zimage_outputs(model, case, given):
    latents = given["latents"].to(model.dtype).unsqueeze(2)
    velocity = model(list(latents), given["timestep"], list(given["text"].to(model.dtype))).sample
    return {"velocity": torch.stack(velocity).squeeze(2)}


def krea2_inputs(case):
    s, (rows, columns) = case.shape, case.grid
    return {"noise": normal(1, case.batch, rows * columns, s.channels),
            "noise_ids": grid_ids(0, rows, columns)[:, :3].contiguous(),
            "text": normal(2, case.batch, case.text, s.taps * s.text_width),
            "text_ids": torch.zeros(case.text, 3), "timestep": torch.tensor(case.times[:case.batch])}


def krea2_outputs(model, case, given):
    return {"velocity": model(
        given["noise"].to(model.dtype),
        given["text"].unflatten(2, (case.shape.taps, -1)).to(model.dtype),
        given["timestep"].to(model.dtype), torch.cat([given["text_ids"], given["noise_ids"]])).sample}


def flux3_inputs(case):
    """Positions are (0, row / 2, column / 2, 0); of reference i the last is -(i + 1)."""
    s, (rows, columns) = case.shape, case.grid
    def halved(rows, columns, last):
        ids = grid_ids(0, rows, columns) * 0.5
        ids[:, 3] = last
        return ids

    given = {"noise": normal(1, case.batch, rows * columns, s.channels),
             "noise_ids": halved(rows, columns, 0),
             "text": normal(2, case.batch, case.text, s.text_width),
             "text_ids": torch.cartesian_prod(*(torch.tensor([0]),) * 3,
                                              torch.arange(case.text)).float(),
             "timestep": torch.tensor(case.times[:case.batch])}
    for i, (rows, columns) in enumerate(case.references):
        given[f"reference{i}"] = normal(10 + i, case.batch, rows * columns, s.channels)
        given[f"reference{i}_ids"] = halved(rows, columns, -1 - i)
    if s.flow_map:
        given["target"] = torch.tensor(case.targets[:case.batch])
    return given


def flux3_outputs(model, case, given):
    count = range(len(case.references))
    seen = {}
    if case.references:
        tokens, ids = (torch.cat([given[f"reference{i}{end}"] for i in count], dim)
                       for end, dim in (("", 1), ("_ids", 0)))
        seen = {"image_cond_hidden_states": tokens.to(model.dtype), "image_cond_ids": ids}
    if "target" in given:
        seen["target_timestep"] = given["target"].to(model.dtype)
    return {"velocity": model(
        hidden_states=given["noise"].to(model.dtype),
        encoder_hidden_states=given["text"].to(model.dtype),
        timestep=given["timestep"].to(model.dtype), img_ids=given["noise_ids"],
        txt_ids=given["text_ids"], **seen).sample}


def span(first, count, last=None):
    """(place, last place seen) of tokens from `first` on; each sees up to itself, or up to `last`."""
    places = torch.arange(first, first + count)
    return torch.stack([places, places if last is None else torch.full_like(places, last)], 1).int()


def centred_ids(first, rows, columns):
    return torch.cartesian_prod(torch.tensor([first]), torch.arange(rows) - rows // 2,
                                torch.arange(columns) - columns // 2).float()


def half_ids(first, rows, columns):
    """From minus the larger half of a side on."""
    return torch.cartesian_prod(torch.tensor([first]), torch.arange(rows) - (rows - rows // 2),
                                torch.arange(columns) - (columns - columns // 2)).float()


def qwen21_inputs(case):
    """Text and pictures apart, with their positions and spans."""
    s, count = case.shape, len(case.references)
    given = {"text": normal(2, case.batch, sum(case.text), s.text_width),
             "timestep": torch.tensor(case.times[:case.batch])}
    place = position = 0
    ids, spans = [], []
    for i, tokens in enumerate(case.text):
        ids.append((position + torch.arange(tokens)).unsqueeze(1).expand(-1, 3).float())
        spans.append(span(place, tokens))
        place, position = place + tokens, position + tokens
        rows, columns = case.references[i] if i < count else case.grid
        name = f"reference{i}" if i < count else "noise"
        given[name] = normal(10 + i, case.batch, rows * columns, s.channels)
        given[name + "_ids"] = centred_ids(position, rows, columns)
        if i < count:
            given[name + "_span"] = span(place, rows * columns, place + rows * columns - 1)
        place, position = place + rows * columns, position + max(rows, columns)
    return given | {"text_ids": torch.cat(ids), "text_span": torch.cat(spans)}


def qwen21_outputs(model, case, given):
    """The model takes a slot for each four tokens of a picture; what is in it must not matter."""
    text, slots, first = [], [], 0
    for i, tokens in enumerate(case.text):
        text.append(given["text"][:, first:first + tokens])
        slots += [False] * tokens
        first += tokens
        rows, columns = case.references[i] if i < len(case.references) else case.grid
        slots += [True] * (rows * columns // 4)
        if i < len(case.references):
            text.append(normal(90 + i, case.batch, rows * columns // 4, case.shape.text_width))
    pictures = [given[f"reference{i}"] for i in range(len(case.references))] + [given["noise"]]
    velocity = model(
        torch.cat(pictures, 1).to(model.dtype), torch.cat(text, 1).to(model.dtype),
        given["timestep"].to(model.dtype),
        [[(1, *grid) for grid in (*case.references, case.grid)]] * case.batch,
        torch.tensor([slots] * case.batch)).sample
    return {"velocity": velocity[:, -given["noise"].shape[1]:].contiguous()}


def qwen_image_inputs(case):
    """The text's first position is behind the rows and columns of all pictures."""
    s, (rows, columns) = case.shape, case.grid
    given = {"noise": normal(1, case.batch, rows * columns, s.channels),
             "noise_ids": half_ids(0, rows, columns),
             "text": normal(2, case.batch, case.text, s.text_width),
             "timestep": torch.tensor(case.times[:case.batch])}
    for i, (rows, columns) in enumerate(case.references):
        given[f"reference{i}"] = normal(10 + i, case.batch, rows * columns, s.channels)
        given[f"reference{i}_ids"] = half_ids(i + 1, rows, columns)
    first = max(side // 2 for grid in (case.grid, *case.references) for side in grid)
    return given | {"text_ids": (first + torch.arange(case.text)).unsqueeze(1).repeat(1, 3).float()}


def qwen_image_outputs(model, case, given):
    pictures = [given["noise"], *(given[f"reference{i}"] for i in range(len(case.references)))]
    velocity = model(
        torch.cat(pictures, 1).to(model.dtype), given["text"].to(model.dtype),
        timestep=given["timestep"].to(model.dtype),
        img_shapes=[[(1, *grid) for grid in (case.grid, *case.references)]] * case.batch).sample
    return {"velocity": velocity[:, :given["noise"].shape[1]].contiguous()}


def qwen21_vae_inputs(case):
    z, side = case.shape.latent_channels, 2 ** (len(case.shape.mult) - 1)
    tile = 256 // side
    return {"latents": normal(4, 1, z, 2, 3), "pixels": normal(5, 1, 4, 4 * side, 8 * side).clamp(-1, 1),
            "wide_latents": normal(6, 1, z, 2, tile + 3)}


def qwen21_vae_outputs(model, case, given):
    given = {name: t.to(model.dtype).unsqueeze(2) for name, t in given.items()}
    mean, deviation = (torch.tensor(numbers).view(1, -1, 1, 1, 1).to(model.dtype) for numbers in (
        model.config.latents_mean, model.config.latents_std))
    found = {"decoded": model.decode(given["latents"]).sample,
             "moments": model.encode(given["pixels"]).latent_dist.parameters,
             "scaled": given["latents"] * deviation + mean,
             "normed": (given["latents"] - mean) / deviation}
    model.enable_tiling()
    found["decoded_tiled"] = model.decode(given["wide_latents"]).sample
    model.disable_tiling()
    return {name: t.squeeze(2)[..., ::3] if "tiled" in name else t.squeeze(2)
            for name, t in found.items()}


def vae_inputs(case):
    z = case.shape.latent_channels
    return {"latents": normal(4, 1, z, 4, 7), "pixels": normal(5, 1, 3, 32, 56).clamp(-1, 1),
            "normed": normal(6, 2, 4 * z, 3, 5)}


def vae_outputs(model, case, given):
    given = {name: t.to(model.dtype) for name, t in given.items()}
    found = {}
    for tiled, suffix in ((False, ""), (True, "_tiled")):
        (model.enable_tiling if tiled else model.disable_tiling)()
        found["decoded" + suffix] = model.decode(given["latents"]).sample
        found["moments" + suffix] = model.encode(given["pixels"]).latent_dist.parameters
    mean, variance = (t.view(1, -1, 1, 1) for t in (model.bn.running_mean, model.bn.running_var))
    deviation = torch.sqrt(variance + model.config.batch_norm_eps)
    found["unpacked"] = diffusers.Flux2Pipeline._unpatchify_latents(given["normed"] * deviation + mean)
    packed = diffusers.Flux2Pipeline._patchify_latents(found["unpacked"])
    found["packed"] = (packed - mean) / deviation
    return found


INPUTS = {Flux2Case: flux2_inputs, ZImageCase: zimage_inputs, Krea2Case: krea2_inputs,
          Flux3Case: flux3_inputs, Qwen21Case: qwen21_inputs, Qwen21VaeCase: qwen21_vae_inputs,
          QwenImageCase: qwen_image_inputs,
          VaeCase: vae_inputs}
OUTPUTS = {Flux2Case: flux2_outputs, ZImageCase: zimage_outputs, Krea2Case: krea2_outputs,
           Flux3Case: flux3_outputs, Qwen21Case: qwen21_outputs,
           Qwen21VaeCase: qwen21_vae_outputs, QwenImageCase: qwen_image_outputs, VaeCase: vae_outputs}
OWN = {Krea2TransformerShape: (random_krea2.transformer, random_krea2.spread),
       Flux3TransformerShape: (random_flux3.transformer, random_flux3.spread),
       Qwen21TransformerShape: (random_qwen21.transformer, random_qwen21.spread),
       Qwen21VaeShape: (random_qwen21.vae, random_qwen21.spread),
       QwenImageTransformerShape: (random_qwen_image.transformer, random_qwen_image.spread)}


def build(s, name):
    if type(s) not in OWN:
        return random_denoisers.build(s, name)
    made, spread = OWN[type(s)]
    return random_pipeline.fill(made(s), name, s, spread)


def fit(tensors):
    """The (name, tensor) pairs that a file holds."""
    return {name: t.contiguous() for name, t in tensors if not name.endswith(LEFT_OUT)}


def load(folder, dtype):
    config = json.loads((folder / "config.json").read_text())
    cls = getattr(diffusers, config["_class_name"])
    model = cls.from_config(config)
    tensors = load_file(folder / "diffusion_pytorch_model.safetensors")
    if LEFT_OUT in model.state_dict():
        tensors[LEFT_OUT] = left_out(*model.state_dict()[LEFT_OUT].shape)
    model.load_state_dict(tensors)
    buffers = {n: b.clone() for n, b in model.named_buffers()}  # from_pretrained keeps their dtype
    model = model.to(dtype).eval()
    if isinstance(model, diffusers.QwenImage21Transformer2DModel):
        for n, b in model.named_buffers():
            b.data = buffers[n]
    modules = {"Krea2Transformer2DModel": random_krea2, "Flux3Transformer2DModel": random_flux3}
    module = modules.get(config["_class_name"])
    return module.with_wide_norms(model) if module else model


@torch.no_grad()
def outputs(folder, case, given, dtype):
    return OUTPUTS[type(case)](load(folder, dtype), case, given)


def run_all(cases, out, made):
    """Each case's outputs in this process, in files NAME.DTYPE of the folder `made`."""
    for name in cases:
        given = INPUTS[type(CASES[name])](CASES[name])
        for dtype in ("bfloat16", "float32"):
            found = outputs(out / name, CASES[name], given, getattr(torch, dtype))
            save_file({n: t.contiguous() for n, t in found.items()}, made / f"{name}.{dtype}")


def measure(cases, out):
    """By case, the largest bfloat16 errors and float32 differences of its outputs over instruction
    sets."""
    expected = {name: stored(name, out) for name in cases}
    figures = {name: {} for name in cases}
    for variables in all_settings().values():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, __file__, "--only", *cases, "--out", out, "--child", folder],
                           env=os.environ | variables, check=True)
            for name, known in expected.items():
                rounded, again = (load_file(Path(folder, f"{name}.{dtype}"))
                                  for dtype in ("bfloat16", "float32"))
                names = [n for n in known if not n.endswith("_tiled")]
                figures[name] = larger(figures[name], {
                    "bfloat16_errors": {n: dump.relative_error(rounded[n].float(), known[n])
                                        for n in names},
                    "float32_spread": {n: round(largest(again[n], known[n]), 8) for n in names}})
    return figures


def is_unseen(name, case):
    """Whether a FLUX.3 tensor is for references or blocks that the case lacks, or one of Qwen-Image's is
    for the text behind the last block's attention."""
    if isinstance(case, QwenImageCase):
        of_text = ("add_q_proj", "norm_added_q", "to_add_out", "txt_mlp")
        is_last = name.startswith(f"transformer_blocks.{case.shape.layers - 1}.")
        return is_last and any(part in name for part in of_text)
    has_no_use = "early_stream" in name and case.shape.layers == 0
    return has_no_use or ("image_cond" in name and not case.references)


@torch.no_grad()
def check_alive(folder, case, given, expected):
    """Neutralising any tensor changes an output: norm weights and variances 1, all else 0."""
    model = load(folder, torch.float32)
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point() or name.endswith("attentions.0.to_k.bias"):
            continue
        if isinstance(case, (Flux3Case, QwenImageCase)) and is_unseen(name, case):
            continue
        if name.endswith("pad_token") and case.caption % 32 == 0:  # the case without padding
            continue
        kept = tensor.clone()
        is_norm = tensor.dim() == 1 and name.endswith(("weight", "running_var"))
        # Some weights of norms are stored minus one.
        is_less = isinstance(case, Krea2Case) or name.endswith("text_norm.weight")
        if "time_conv" in name:  # never run for single pictures
            continue
        tensor.fill_(1 if (is_norm and not is_less) or name.endswith("gamma") else 0)
        changed = OUTPUTS[type(case)](model, case, given)
        effect = max(dump.relative_error(changed[n], expected[n]) for n in expected)
        assert effect > SEEN, f"{name} changes the output by only {effect:.1e}"
        tensor.copy_(kept)


def make(name, out):
    """Build all but the manifest."""
    case, folder = CASES[name], out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build(case.shape, name).save_pretrained(folder)
    path = folder / "diffusion_pytorch_model.safetensors"
    save_file(fit(load_file(path).items()), path, metadata={"format": "pt"})
    given = INPUTS[type(case)](case)
    expected = outputs(folder, case, given, torch.float32)
    check_alive(folder, case, given, expected)
    save_file({n: t.contiguous() for n, t in (given | expected).items()},
              folder / "components.safetensors")
    if case.single_file is not None:
        single_file.write(folder, folder / SINGLE_FILE, case.single_file)
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)


def stored(name, out):
    given = INPUTS[type(CASES[name])](CASES[name])
    tensors = load_file(out / name / "components.safetensors")
    return {n: t for n, t in tensors.items() if n not in given}


def describe(name, folder, figures):
    """Write and print the manifest. Figures that it has already are raised only."""
    path = folder / "manifest.json"
    if path.exists():
        manifest = json.loads(path.read_text())
        manifest |= larger({key: manifest[key] for key in figures}, figures)
    else:
        manifest = figures | {"made_with": versions()}
        if (folder / SINGLE_FILE).exists():
            manifest["single_file"] = SINGLE_FILE
    path.write_text(json.dumps(manifest, indent=2) + "\n")
    sizes = {path.name: path.stat().st_size // 1000 for path in folder.glob("*.safetensors")}
    print(f"{name}: {sizes} kB, " + ", ".join(f"{key} {manifest[key]}" for key in figures))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--measure", action="store_true", help="only the manifests")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)  # of measure()
    args = parser.parse_args()
    torch.set_num_threads(1)
    out = args.out.resolve()
    if args.child:
        return run_all(args.only, out, args.child)
    if not args.measure:
        for name in args.only:
            make(name, out)
    for name, figures in measure(args.only, out).items():
        describe(name, out / name, figures)


if __name__ == "__main__":
    main()
