"""Time diffusers and Braid on the same work, in turns, on this machine.

usage: python peers.py [--build build/release] [--runs 5] [--device cpu] [--only NAME,NAME]
                       [--no-compile] [--dtypes bfloat16,float32] [--blocks 2,4] [--side 512]
                       [--quantize none,int8] [--json FILE]

The Python needs tools/parity/requirements.txt; the build needs the targets braid_program and parts.
Work: one evaluation of a transformer of FLUX.1's width with 2 double and 4 single blocks and 512
text tokens; the same at FLUX.2-klein-4B's width, and at Z-Image's with 2 + 2 + 4 blocks, Krea 2's with
2 after its text's fusion, and Qwen-Image's, Qwen-Image-2.1's and FLUX.3-klein's with 2, at `--side`
(a first step, with what Braid computes once per picture, and a later one without it; of Qwen-Image-2.1,
which keeps the keys and values of its text, diffusers' later step, too);
decoding and encoding with FLUX.1's autoencoder, encoding with FLUX.2's and Wan's, a T5 encoder of
XXL's width with 4 layers, Qwen3-4B's first 27 layers, blocks of Qwen3-VL-8B's and Qwen2.5-VL-7B's
vision towers and 4 layers of their language models, all with random weights in bfloat16; and the
bundled model's picture from process start to end.
After a warm-up each contender has `--runs` turns; figures are medians, and ratios are of medians. On a
CPU, where other work comes and goes, contenders take turns. On a GPU, which may hold only one of them,
each takes all its turns and is freed before the next: each model is loaded once.
`--blocks 19,38` is all of FLUX.1. A GPU is timed by its own events.
"""
import argparse
import datetime
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import diffusers
import torch
from diffusers import (AutoencoderKL, AutoencoderKLFlux2, AutoencoderKLWan, Flux2Transformer2DModel,
                       Flux3Transformer2DModel, FluxTransformer2DModel, Krea2Transformer2DModel,
                       QwenImage21Transformer2DModel, QwenImageTransformer2DModel,
                       ZImageTransformer2DModel)
from diffusers.models.transformers.transformer_qwenimage21 import QwenImage21KVCache
from transformers import (Qwen3Config, Qwen3Model, Qwen3VLTextConfig, Qwen3VLTextModel,
                          Qwen3VLVisionConfig, Qwen3VLVisionModel, T5Config, T5EncoderModel)
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import (
    Qwen2_5_VLTextConfig, Qwen2_5_VLVisionConfig)
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import (
    Qwen2_5_VisionTransformerPretrainedModel, Qwen2_5_VLTextModel)

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "a red circle on a blue background"
TEXT_TOKENS, T5_LAYERS, QWEN3_LAYERS = 512, 4, 27
PICTURE = ["--steps", "20", "--size", "128x128", "--seed", "1"]

DIFFUSERS_PICTURE = """
import sys, torch
from diffusers import FluxPipeline
pipe = FluxPipeline.from_pretrained(sys.argv[1], torch_dtype=torch.bfloat16).to(sys.argv[3])
pipe.set_progress_bar_config(disable=True)
pipe(sys.argv[4], num_inference_steps=20, height=128, width=128,
     generator=torch.Generator("cpu").manual_seed(1)).images[0].save(sys.argv[2])
"""


def random_model(build, device, dtype):
    """The module that `build` returns, without spending time on initial weights."""
    with torch.device("meta"):
        model = build()
    model = model.to(dtype).to_empty(device=device).eval()
    generator = torch.Generator(device).manual_seed(0)
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            if tensor.is_floating_point():
                tensor.normal_(0, 0.02, generator=generator)
            else:
                tensor.zero_()
    return model


def transformer(side, blocks, device, dtype):
    model = random_model(lambda: FluxTransformer2DModel(
        num_layers=blocks[0], num_single_layers=blocks[1], attention_head_dim=128, num_attention_heads=24,
        joint_attention_dim=4096, pooled_projection_dim=768, in_channels=64,
        guidance_embeds=True), device, dtype)
    latent = side // 16
    ids = torch.zeros(latent, latent, 3)
    ids[..., 1] += torch.arange(latent)[:, None]
    ids[..., 2] += torch.arange(latent)[None, :]

    def drawn(*shape):
        return torch.randn(*shape).to(dtype).to(device)

    inputs = {"hidden_states": drawn(1, latent * latent, 64),
              "encoder_hidden_states": drawn(1, TEXT_TOKENS, 4096),
              "pooled_projections": drawn(1, 768),
              "timestep": torch.tensor([0.5], dtype=dtype, device=device),
              "img_ids": ids.reshape(-1, 3).to(device),
              "txt_ids": torch.zeros(TEXT_TOKENS, 3, device=device),
              "guidance": torch.full([1], 3.5, device=device)}
    return model, lambda call: call(**inputs, return_dict=False)[0]


def klein(blocks, device, dtype):
    model = random_model(lambda: Flux2Transformer2DModel(
        num_layers=blocks[0], num_single_layers=blocks[1], attention_head_dim=128, num_attention_heads=24,
        joint_attention_dim=7680, in_channels=128, guidance_embeds=False), device, dtype)
    side = 512 // 16
    ids = torch.zeros(1, side * side, 4)
    ids[0, :, 1] = torch.arange(side * side) // side
    ids[0, :, 2] = torch.arange(side * side) % side
    text_ids = torch.zeros(1, TEXT_TOKENS, 4)
    text_ids[0, :, 3] = torch.arange(TEXT_TOKENS)
    inputs = {"hidden_states": torch.randn(1, side * side, 128).to(dtype).to(device),
              "encoder_hidden_states": torch.randn(1, TEXT_TOKENS, 7680).to(dtype).to(device),
              "timestep": torch.tensor([0.5], dtype=dtype, device=device),
              "img_ids": ids.to(device), "txt_ids": text_ids.to(device), "guidance": None}
    return model, lambda call: call(**inputs, return_dict=False)[0]


def z_image(device, dtype):
    model = random_model(lambda: ZImageTransformer2DModel(n_layers=4, n_refiner_layers=2), device, dtype)
    # pads are rows of weights; positions are computed on first use
    latents = [torch.randn(16, 1, 64, 64).to(dtype).to(device)]
    text = [torch.randn(TEXT_TOKENS, 2560).to(dtype).to(device)]
    time_ = torch.tensor([0.5], device=device)
    return model, lambda call: call(latents, time_, text, return_dict=False)[0][0]


def grid_ids(side, axes):
    """Positions of side x side tokens: their row and column on axes 1 and 2."""
    ids = torch.zeros(side * side, axes)
    ids[:, 1] = torch.arange(side * side) // side
    ids[:, 2] = torch.arange(side * side) % side
    return ids


def krea2(side, device, dtype):
    model = random_model(lambda: Krea2Transformer2DModel(num_layers=2), device, dtype)
    tokens = side // 16
    image = torch.randn(1, tokens * tokens, 64).to(dtype).to(device)
    taps = torch.randn(1, TEXT_TOKENS, 12, 2560).to(dtype).to(device)
    time_ = torch.tensor([0.5], dtype=dtype, device=device)
    ids = torch.cat([torch.zeros(TEXT_TOKENS, 3), grid_ids(tokens, 3)]).to(device)
    return model, lambda call: call(image, taps, time_, ids, return_dict=False)[0]


def qwen_image(side, device, dtype):
    # its positions are computed when it is built, so not on the meta device
    model = QwenImageTransformer2DModel(num_layers=2).eval().to(dtype).to(device)
    tokens = side // 16
    image = torch.randn(1, tokens * tokens, 64).to(dtype).to(device)
    text = torch.randn(1, TEXT_TOKENS, 3584).to(dtype).to(device)
    time_ = torch.tensor([0.5], dtype=dtype, device=device)
    return model, lambda call: call(image, text, timestep=time_, img_shapes=[[(1, tokens, tokens)]],
                                    return_dict=False)[0]


def qwen21(side, is_later, device, dtype):
    """`is_later`: a step that finds the keys and values of the text; else the one that keeps them."""
    model = QwenImage21Transformer2DModel(num_layers=2).eval().to(dtype).to(device)
    tokens = side // 16
    given = {"hidden_states": torch.randn(1, tokens * tokens, 64).to(dtype).to(device),
             "encoder_hidden_states": torch.randn(1, TEXT_TOKENS, 4096).to(dtype).to(device),
             "timestep": torch.tensor([0.5], dtype=dtype, device=device),
             "img_shapes": [[(1, tokens, tokens)]],
             # four tokens of the picture per slot
             "img_mask": torch.arange(TEXT_TOKENS + tokens * tokens // 4, device=device)[None]
             >= TEXT_TOKENS}
    kept = QwenImage21KVCache(2)
    with torch.inference_mode():
        model(**given, kv_cache=kept, kv_cache_mode="extract", return_dict=False)
    if is_later:
        return model, lambda call: call(**given, kv_cache=kept, kv_cache_mode="cached",
                                        return_dict=False)[0]
    return model, lambda call: call(**given, kv_cache=QwenImage21KVCache(2),
                                    kv_cache_mode="extract", return_dict=False)[0]


def flux3(side, device, dtype):
    model = random_model(lambda: Flux3Transformer2DModel(num_layers=2, num_single_layers=2,
                                                         flow_map=True), device, dtype)
    tokens = side // 16
    image = torch.randn(1, tokens * tokens, 128).to(dtype).to(device)
    text = torch.randn(1, TEXT_TOKENS, 20480).to(dtype).to(device)
    text_ids = torch.zeros(TEXT_TOKENS, 4)
    text_ids[:, 3] = torch.arange(TEXT_TOKENS)
    time_ = torch.tensor([0.5], dtype=dtype, device=device)
    return model, lambda call: call(
        image, text, time_, grid_ids(tokens, 4).to(device), text_ids.to(device),
        target_timestep=time_ / 2, return_dict=False)[0]


def qwen3(device, dtype):
    config = Qwen3Config(vocab_size=151936, hidden_size=2560, intermediate_size=9728,
                         num_hidden_layers=QWEN3_LAYERS, num_attention_heads=32,
                         num_key_value_heads=8, head_dim=128)
    model = Qwen3Model._from_config(config, dtype=dtype).eval().to(device)
    ids = torch.randint(0, 151936, (1, TEXT_TOKENS)).to(device)
    return model, lambda call: call(ids, use_cache=False, output_hidden_states=True).hidden_states[9]


def qwen3_vl(device, dtype):
    """4 of the 36 layers of Qwen3-VL-8B's language model, for a picture of 1024x1024 and 63 tokens."""
    config = Qwen3VLTextConfig(vocab_size=64, hidden_size=4096, intermediate_size=12288,
                               num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8,
                               head_dim=128)
    model = Qwen3VLTextModel._from_config(config, dtype=dtype).eval().to(device)
    states = torch.randn(1, 32 * 32 + 63, 4096).to(dtype).to(device)
    places = torch.arange(states.shape[1], device=device).expand(3, 1, -1)
    return model, lambda call: call(
        inputs_embeds=states, position_ids=places, use_cache=False).last_hidden_state


def vision_tower(device, dtype):
    """3 of the 27 blocks of Qwen3-VL-8B's, for a picture of 1024x1024."""
    config = Qwen3VLVisionConfig(depth=3, out_hidden_size=4096, deepstack_visual_indexes=[])
    model = Qwen3VLVisionModel._from_config(config, dtype=dtype).eval().to(device)
    patches = torch.rand(64 * 64, 3 * 2 * 16 * 16).to(dtype).to(device)
    grid = torch.tensor([[1, 64, 64]], device=device)
    return model, lambda call: call(patches, grid)


def qwen25_vl(device, dtype):
    """4 of the 28 layers of Qwen2.5-VL-7B's language model, for 1369 tokens of a picture and 63 others."""
    config = Qwen2_5_VLTextConfig(vocab_size=64, hidden_size=3584, intermediate_size=18944,
                                  num_hidden_layers=4, num_attention_heads=28, num_key_value_heads=4,
                                  rope_parameters={"rope_type": "default", "rope_theta": 1e6,
                                                   "mrope_section": [16, 24, 24]})
    model = Qwen2_5_VLTextModel._from_config(config, dtype=dtype).eval().to(device)
    states = torch.randn(1, 37 * 37 + 63, 3584).to(dtype).to(device)
    places = torch.arange(states.shape[1], device=device).expand(3, 1, -1)
    return model, lambda call: call(
        inputs_embeds=states, position_ids=places, use_cache=False).last_hidden_state


def windows_tower(device, dtype):
    """3 of the 32 blocks of Qwen2.5-VL-7B's, one of them with attention to the whole of 1036x1036."""
    config = Qwen2_5_VLVisionConfig(depth=3, hidden_size=1280, intermediate_size=3420, num_heads=16,
                                    out_hidden_size=3584, fullatt_block_indexes=[2])
    model = Qwen2_5_VisionTransformerPretrainedModel._from_config(config, dtype=dtype).eval().to(device)
    patches = torch.rand(74 * 74, 3 * 2 * 14 * 14).to(dtype).to(device)
    grid = torch.tensor([[1, 74, 74]], device=device)
    return model, lambda call: call(patches, grid)


def decoder(side, device, dtype):
    model = random_model(lambda: AutoencoderKL(
        block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=16,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        use_quant_conv=False, use_post_quant_conv=False), device, dtype)
    latents = torch.randn(1, 16, side // 8, side // 8).to(dtype).to(device)
    model.forward = lambda z: model.decode(z, return_dict=False)[0]
    return model, lambda call: call(latents)


def picture_encoder(side, device, dtype):
    model = decoder(side, device, dtype)[0]
    model.forward = lambda x: model.encode(x).latent_dist.mean
    picture = torch.rand(1, 3, side, side).to(dtype).to(device)
    return model, lambda call: call(picture)


def flux2_encoder(device, dtype):
    model = random_model(AutoencoderKLFlux2, device, dtype)
    model.forward = lambda x: model.encode(x).latent_dist.mean
    picture = torch.rand(1, 3, 1024, 1024).to(dtype).to(device)
    return model, lambda call: call(picture)


def wan_encoder(device, dtype):
    """JoyAI-Image-Edit's, for a single picture."""
    model = random_model(AutoencoderKLWan, device, dtype)
    model.forward = lambda x: model.encode(x).latent_dist.mean
    picture = torch.rand(1, 3, 1, 1024, 1024).to(dtype).to(device)
    return model, lambda call: call(picture)


def encoder(device, dtype):
    config = T5Config(vocab_size=32128, d_model=4096, d_ff=10240, num_layers=T5_LAYERS, d_kv=64,
                      num_heads=64, feed_forward_proj="gated-gelu")
    model = random_model(lambda: T5EncoderModel(config), device, dtype)
    ids = torch.randint(0, 32128, (1, TEXT_TOKENS)).to(device)
    return model, lambda call: call(ids)[0]


def timed(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def timed_on_gpu(run):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000


class Module:
    """diffusers or transformers in this process, compiled or eager."""

    def __init__(self, made, device, is_compiled):
        model, apply = made
        call = torch.compile(model) if is_compiled else model
        self.timed = timed if device == "cpu" else timed_on_gpu
        self.apply = lambda: apply(call)
        self.warm_up_seconds = self.turns(1)[0]

    def turns(self, count):
        with torch.inference_mode():
            return [self.timed(self.apply) for _ in range(count)]


class Program:
    """A program whose JSON has the times of its runs, after a warm-up."""

    def __init__(self, command, seconds):
        self.command = command
        self.seconds = seconds

    def turns(self, count):
        command = [str(word) for word in self.command(count)]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        return self.seconds(json.loads(out))


class Process:
    """A whole process, timed from start to end."""

    def __init__(self, command):
        self.command = [str(word) for word in command]
        self.turns(1)

    def turns(self, count):
        return [timed(lambda: subprocess.run(self.command, check=True, stdout=subprocess.DEVNULL))
                for _ in range(count)]


# diffusers computes the modulations in each evaluation, and refines Z-Image's text
IN_FIRST_STEP, IN_LATER_STEP = ("modulations_s", "refining_s"), ("modulations_s",)


def braid_evaluation(build, name, side, blocks, device, quantize="none", beside=IN_FIRST_STEP):
    return Program(lambda runs: [
        build / "bin/braid", "bench", "--synthetic", name, "--blocks", ",".join(map(str, blocks)),
        "--dtype", "bfloat16", "--quantize", quantize, "--size", f"{side}x{side}",
        "--max-sequence-length", TEXT_TOKENS, "--warm-up", 1, "--runs", runs, "--json", "--device",
        device],
        lambda report: [step + sum(report[part] for part in beside) for step in report["steps_s"]])


def braid_part(build, part, device):
    return Program(lambda runs: [build / "bin/parts", part, runs, device],
                   lambda report: report["seconds"])


def work(args, folder):
    """{name: {contender: factory}}; built when its turn comes, freed before the next work."""
    build, device = args.build, args.device
    ways = []
    for dtype in args.dtypes.split(","):
        ways.append((f"diffusers {dtype}", getattr(torch, dtype), False))
        if args.compile:
            ways.append((f"diffusers {dtype}, compiled", getattr(torch, dtype), True))

    def modules(make):
        return {name: (lambda dtype=dtype, is_compiled=is_compiled:
                       Module(make(dtype), device, is_compiled))
                for name, dtype, is_compiled in ways}

    cases = {}
    for side in (512, 1024):
        cases[f"transformer-{side}"] = modules(
            lambda dtype, side=side: transformer(side, args.blocks, device, dtype)) | {
            "braid": lambda side=side: braid_evaluation(build, "flux1-dev", side, args.blocks, device)}
        cases[f"vae-{side}"] = modules(
            lambda dtype, side=side: decoder(side, device, dtype)) | {
            "braid": lambda side=side: braid_part(build, f"vae-{side}", device)}
    cases["vae-encode-1024"] = modules(
        lambda dtype: picture_encoder(1024, device, dtype)) | {
        "braid": lambda: braid_part(build, "vae-encode-1024", device)}
    cases["flux2-encode-1024"] = modules(lambda dtype: flux2_encoder(device, dtype)) | {
        "braid": lambda: braid_part(build, "flux2-encode-1024", device)}
    cases["wan-encode-1024"] = modules(lambda dtype: wan_encoder(device, dtype)) | {
        "braid": lambda: braid_part(build, "wan-encode-1024", device)}
    cases["klein-4b"] = modules(lambda dtype: klein(args.blocks, device, dtype))
    cases["z-image"] = modules(lambda dtype: z_image(device, dtype))
    side = args.side
    forms = [("" if form == "none" else f" {form}", form) for form in args.quantize.split(",")]
    cases["krea2"] = modules(lambda dtype: krea2(side, device, dtype))
    cases["qwen-image"] = modules(lambda dtype: qwen_image(side, device, dtype))
    cases["qwen21"] = modules(lambda dtype: qwen21(side, False, device, dtype)) | {
        f"{way}, later step": made for way, made in
        modules(lambda dtype: qwen21(side, True, device, dtype)).items()}
    cases["flux3"] = modules(lambda dtype: flux3(side, device, dtype))
    for name, model, blocks in (("krea2", "krea-2-raw", (2,)), ("qwen-image", "qwen-image", (2,)),
                                ("qwen21", "qwen-image-2.1", (2,)),
                                ("flux3", "flux3-klein", (2, 2, 2, 2))):
        for form, quantize in forms:
            for step, beside in (("", IN_FIRST_STEP), (", later step", IN_LATER_STEP)):
                cases[name][f"braid{form}{step}"] = (
                    lambda model=model, blocks=blocks, quantize=quantize, beside=beside:
                    braid_evaluation(build, model, side, blocks, device, quantize, beside))
    for name, blocks in (("klein-4b", args.blocks), ("z-image", (2, 2, 4))):
        for form, quantize in forms:
            cases[name][f"braid{form}"] = (
                lambda name=name, blocks=blocks, quantize=quantize:
                braid_evaluation(build, name, 512, blocks, device, quantize))
    # the first step's time includes what is computed once per picture
    for form, quantize in forms:
        cases["z-image"][f"braid{form}, later step"] = lambda quantize=quantize: braid_evaluation(
            build, "z-image", 512, (2, 2, 4), device, quantize, IN_LATER_STEP)
    cases["qwen3"] = modules(lambda dtype: qwen3(device, dtype)) | {
        "braid": lambda: braid_part(build, "qwen3", device)}
    cases["qwen3-vl"] = modules(lambda dtype: qwen3_vl(device, dtype)) | {
        "braid": lambda: braid_part(build, "qwen3-vl", device)}
    cases["qwen25-vl"] = modules(lambda dtype: qwen25_vl(device, dtype)) | {
        "braid": lambda: braid_part(build, "qwen25-vl", device)}
    cases["windows-1036"] = modules(lambda dtype: windows_tower(device, dtype)) | {
        "braid": lambda: braid_part(build, "windows-1036", device)}
    cases["vision-1024"] = modules(lambda dtype: vision_tower(device, dtype)) | {
        "braid": lambda: braid_part(build, "vision-1024", device)}
    cases["t5"] = modules(lambda dtype: encoder(device, dtype)) | {
        "braid": lambda: braid_part(build, "t5", device)}
    demo = ROOT / "models/demo"
    cases["demo-picture"] = {
        "diffusers": lambda: Process([sys.executable, "-c", DIFFUSERS_PICTURE, demo,
                                      folder / "diffusers.png", device, PROMPT]),
        "braid": lambda: Process([build / "bin/braid", "generate", PROMPT, *PICTURE, "-q", "-o",
                                  folder / "braid.png", "--device", device])}
    return cases


def in_turns(contenders, runs):
    """{name: (seconds, of the warm-up)}: all contenders are loaded and take turns."""
    made = {name: make() for name, make in contenders.items()}
    seconds = {name: [] for name in made}
    for _ in range(runs):
        for name, contender in made.items():
            seconds[name] += contender.turns(1)
    return {name: (seconds[name], getattr(made[name], "warm_up_seconds", None)) for name in made}


def one_after_the_other(contenders, runs):
    """The same, but each is freed before the next is built."""
    results = {}
    for name, make in contenders.items():
        contender = make()
        results[name] = contender.turns(runs), getattr(contender, "warm_up_seconds", None)
        del contender
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return results


def measure(contenders, args):
    way = in_turns if args.device == "cpu" else one_after_the_other
    results = way(contenders, args.runs)
    medians = {name: statistics.median(seconds) for name, (seconds, _) in results.items()}
    return {name: {"median_s": medians[name], "seconds": seconds, "warm_up_s": warm_up,
                   "to_braid": medians[name] / medians["braid"]}
            for name, (seconds, warm_up) in results.items()}


def two_numbers(text):
    double, single = text.split(",")
    return int(double), int(single)


def machine(device):
    if device != "cpu":
        return torch.cuda.get_device_name()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def print_row(name, results):
    for contender, result in results.items():
        times = result["seconds"]
        print(f"{name:18} {contender:28} {result['median_s']:9.3f} s  ({min(times):.3f} to "
              f"{max(times):.3f})  {result['to_braid']:6.2f} x Braid's", flush=True)
        name = ""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="names of works, separated by commas")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--dtypes", default="bfloat16",
                        help="dtypes of diffusers, separated by commas; float32 is faster on CPUs without bfloat16")
    parser.add_argument("--blocks", type=two_numbers, default=(2, 4),
                        help="double and single blocks of the transformer")
    parser.add_argument("--side", type=int, default=512,
                        help="pixels of Krea 2's, Qwen-Image's and FLUX.3's pictures")
    parser.add_argument("--quantize", default="none,int8", help="forms of Braid's weights beside diffusers; none is needed")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.build = args.build.resolve()
    diffusers.utils.logging.set_verbosity_error()
    report = {"date": datetime.date.today().isoformat(), "machine": machine(args.device),
              "threads": torch.get_num_threads(), "device": args.device, "runs": args.runs,
              "blocks": args.blocks,
              "torch": torch.__version__, "diffusers": diffusers.__version__, "work": {}}
    print(", ".join(f"{key} {value}" for key, value in report.items() if key != "work"))
    with tempfile.TemporaryDirectory() as folder:
        cases = work(args, Path(folder))
        chosen = args.only.split(",") if args.only else list(cases)
        for name in chosen:
            if name not in cases:
                parser.error(f"--only should name some of {', '.join(cases)}, '{name}' is not one of them")
        for name in chosen:
            report["work"][name] = measure(cases[name], args)
            print_row(name, report["work"][name])
            if args.json:
                args.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
