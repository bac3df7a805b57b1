"""How far float32 moves the embedded prompts of random narrow FLUX.2 text models from float64's.

usage: python text_rounding.py [BRAID] [--models 60] [--seed 100] [--width 8 16]

Prints a line per model with the distances of Braid, of diffusers, and of float64 with weights that are
changed by up to half a unit in float32's last place: the last is how well the model is conditioned.
Ends with geometric means; exits 1 if Braid's distance is above 1.1 times diffusers'.
"""
import argparse
import contextlib
import math
import random
import sys
import tempfile
from pathlib import Path

import dump
import torch
import transformers.models.mistral.modeling_mistral as mistral
import transformers.models.qwen3.modeling_qwen3 as qwen3
import transformers.models.qwen3_vl.modeling_qwen3_vl as qwen3_vl
from diffusers.modular_pipelines.flux3.encoders import Flux3TextEncoderStep
from diffusers.pipelines.qwenimage21.pipeline_qwenimage21 import calculate_dimensions
from random_families import KleinShape, TextShape
from torch.nn.utils.rnn import pad_sequence

NORMS = (qwen3.Qwen3RMSNorm, mistral.MistralRMSNorm, qwen3_vl.Qwen3VLTextRMSNorm)
ALLOWED = 1.1


def exact_norm(self, x):
    return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon))


@contextlib.contextmanager
def in_float64(pipe):
    """The text model computes in float64; transformers' norms would go back to float32. Rotary tables
    keep the numbers of float32, which they are defined in."""
    kept = [norm.forward for norm in NORMS]
    for norm in NORMS:
        norm.forward = exact_norm
    model = getattr(pipe, "pipe", pipe).text_encoder  # FLUX.3's is inside
    model.double()
    try:
        yield
    finally:
        model.float()
        for norm, forward in zip(NORMS, kept):
            norm.forward = forward


def flux2_embeds(pipe, request):
    return list(pipe.encode_prompt(list(request.prompts),
                                   max_sequence_length=request.max_sequence_length)[0])


def krea2_embeds(pipe, request):
    embeds, are_real = pipe.get_text_hidden_states(list(request.prompts), request.max_sequence_length)
    return [one[real].flatten(1) for one, real in zip(embeds, are_real, strict=True)]


def flux3_embeds(pipe, request):
    from modular_flux3 import laid_out  # here, as it imports dump

    return [Flux3TextEncoderStep._get_qwen3_vl_prompt_embeds(
        pipe.pipe.text_encoder, pipe.pipe.tokenizer, laid_out(prompt, request.boxes),
        max_sequence_length=request.max_sequence_length)[0] for prompt in request.prompts]


def qwen21_embeds(pipe, request):
    pictures = []
    for picture in dump.reference_pictures(request):
        width, height, _ = calculate_dimensions(1024 * 1024, picture.width / picture.height)
        pictures.append(pipe.image_processor.resize(picture.convert("RGBA"), width=width, height=height))
    rows = []
    for prompt in request.prompts:
        embeds, _, is_slot = pipe._get_qwen_prompt_embeds([prompt], pictures or None)
        rows.append(embeds[0, ~is_slot[0]])
    return rows


EMBEDS = {"Flux2KleinPipeline": flux2_embeds, "Flux2KleinKVPipeline": flux2_embeds,
          "Flux2Pipeline": flux2_embeds, "Krea2Pipeline": krea2_embeds,
          "QwenImage21Pipeline": qwen21_embeds, "Pipeline": flux3_embeds}


def knows(pipe):
    return type(pipe).__name__ in EMBEDS


@torch.no_grad()
def exact_embeds(pipe, request):
    """prompt_embeds in float64."""
    with in_float64(pipe):
        rows = EMBEDS[type(pipe).__name__](pipe, request)
    return pad_sequence([row for row in rows for _ in range(request.num_images)], batch_first=True)


def distance(got, exact):
    """(largest difference relative to the largest value, relative L2)"""
    gap = got.double() - exact
    return (gap.abs().max() / exact.abs().max()).item(), (gap.norm() / exact.norm()).item()


@torch.no_grad()
def jostle(model, seed):
    """Changes every weight by up to 2^-24 of itself."""
    draw = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        step = torch.rand(weight.shape, generator=draw, dtype=torch.double) * 2 - 1
        weight.mul_(1 + step * 2.0 ** -24)


@torch.no_grad()
def jostled_embeds(pipe, request, seed):
    with in_float64(pipe):
        jostle(pipe.text_encoder, seed)
        return pipe.encode_prompt(list(request.prompts),
                                  max_sequence_length=request.max_sequence_length)[0]


def text_shape(draw, widths):
    kv = draw.choice([1, 2, 3])
    return TextShape(width=draw.randrange(widths[0], widths[1] + 1, 2), layers=28,
                     heads=kv * draw.choice([1, 2, 4]), kv_heads=kv, head_dim=draw.choice([6, 8, 10]),
                     ff=draw.choice([20, 30, 44]), theta=draw.choice([1e4, 1e6]))


def distances(program, seed, widths):
    """L2 distances of a random model, and Braid's and diffusers' largest differences."""
    import live  # here, as it imports this module
    from live_cases import ACCENTS, LENGTHS, LONG, Case, ask

    draw = random.Random(f"text rounding {seed}")
    shape = KleinShape(seed=seed, text=text_shape(draw, widths))
    case = Case("", shape, ask(draw.choice([*LENGTHS, ACCENTS, LONG]), steps=1,
                               seq=draw.choice([20, 64, 200])))
    with tempfile.TemporaryDirectory() as folder:
        model, flags = live.pipeline_of(case, Path(folder))
        got = live.braid(program, case, flags, Path(folder), 1)["prompt_embeds"]
        pipe = dump.load(model)
    own = pipe.encode_prompt(list(case.request.prompts),
                             max_sequence_length=case.request.max_sequence_length)[0]
    exact = exact_embeds(pipe, case.request)
    found = [distance(got, exact), distance(own, exact),
             distance(jostled_embeds(pipe, case.request, seed), exact)]
    return [l2 for _, l2 in found] + [found[0][0], found[1][0]]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("braid", nargs="?", type=Path, default=root / "build/release/bin/braid")
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--width", type=int, nargs=2, default=(8, 16), help="the range to draw from")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for seed in range(args.seed, args.seed + args.models):
        rows.append(distances(args.braid.resolve(), seed, args.width))
        print(seed, *(f"{value:.1e}" for value in rows[-1]), flush=True)
    means = [math.exp(sum(math.log(value) for value in column) / len(rows)) for column in zip(*rows)]
    ratio = means[0] / means[1]
    above = [sum(row[i] > 1e-5 for row in rows) for i in (3, 4)]
    print(f"L2 from float64: braid {means[0]:.2e}, diffusers {means[1]:.2e}, weights jostled "
          f"{means[2]:.2e}; largest above 1e-5: {above[0]} and {above[1]} of {len(rows)}; "
          f"braid / diffusers {ratio:.3f}")
    sys.exit(ratio > ALLOWED)


if __name__ == "__main__":
    main()
