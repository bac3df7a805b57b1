"""Make tests/data/parity/adapters: random LoRAs of every spelling for the transformers of other
fixtures, and what diffusers computes with their merged weights.

usage: python make_adapters.py [--only flux ...] [--out tests/data/parity/adapters] [--measure]

--measure builds nothing in the folder. It raises the figures of manifest.json, how far the reference
deviates from the existing velocities, to the largest on any instruction set that this processor has
(spread.py). For a base whose weights are new, delete its manifest first.

One folder per base: NAME.safetensors, an adapter, and expected.safetensors with each one's float32
velocity. peft writes its own files and computes what is expected of them. All others are written and
merged here, key by key: W + alpha / rank * B A, in the rows that the key stands for.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import diffusers
import torch
from make_denoisers import left_out
from peft import (LoHaConfig, LoKrConfig, LoraConfig, get_peft_model_state_dict,
                  inject_adapter_in_model)
from safetensors.torch import load_file, save_file
from spread import all_settings, larger, largest

ROOT = Path(__file__).resolve().parents[2]
PARITY = ROOT / "tests/data/parity"
OUT = PARITY / "adapters"
RANK = 2


def draw(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * shape[-1] ** -0.5


class Base:
    """Another fixture's transformer with its inputs, in float32."""

    def __init__(self, folder, config, run):
        self.folder, self.run = folder, run
        self.config = json.loads((config / "config.json").read_text())
        self.tensors = {name: t.float() for name, t in
                        load_file(config / "diffusion_pytorch_model.safetensors").items()}

    def model(self, tensors=None):
        model = getattr(diffusers, self.config["_class_name"]).from_config(self.config)
        tensors = dict(tensors or self.tensors)
        missing = "t_embedder.mlp.0.weight"
        if missing in model.state_dict() and missing not in tensors:
            tensors[missing] = left_out(*model.state_dict()[missing].shape)
        model.load_state_dict(tensors)
        return model.eval()

    @torch.no_grad()
    def velocity(self, model):
        return self.run(model, load_file(self.folder / "components.safetensors"))

    def widen(self, layer):
        """Doubles the inputs like a control LoRA; the new ones have zero weights."""
        weight = self.tensors[layer + ".weight"]
        self.tensors[layer + ".weight"] = torch.cat([weight, torch.zeros_like(weight)], 1)
        self.config |= {"in_channels": 2 * weight.shape[1], "out_channels": weight.shape[1]}

    def merged(self, changes):
        """The velocity after `changes`: [(names of the tensors whose stacked rows change, change)]."""
        return self.velocity(self.changed(changes))

    def changed(self, changes):
        tensors = {name: t.clone() for name, t in self.tensors.items()}
        for names, change in changes:
            assert change.shape[0] == sum(len(tensors[n]) for n in names), names
            for name, rows in zip(names, change.split([len(tensors[n]) for n in names])):
                tensors[name] += rows.view_as(tensors[name])
        return self.model(tensors)


def run_flux(model, given):
    given = {n.removeprefix("transformer."): t for n, t in given.items()
             if n.startswith("transformer.") and "velocity" not in n}
    return model(**given).sample


def run_flux2(model, given):
    return model(hidden_states=given["noise"], encoder_hidden_states=given["text"],
                 timestep=given["timestep"], img_ids=given["noise_ids"],
                 txt_ids=given["text_ids"]).sample


def run_zimage(model, given):
    made = model(list(given["latents"].unsqueeze(2)), given["timestep"], list(given["text"])).sample
    return torch.stack(made).squeeze(2)


def run_joy(model, given):
    given = [given[f"transformer.{name}"] for name in ("items", "timestep", "text")]
    return model(*given).sample[:, -1].squeeze(2).contiguous()


def run_krea2(model, given):
    taps = model.config.num_text_layers
    return model(given["noise"], given["text"].unflatten(2, (taps, -1)), given["timestep"],
                 torch.cat([given["text_ids"], given["noise_ids"]])).sample


def run_flux3(model, given):
    return model(hidden_states=given["noise"], encoder_hidden_states=given["text"],
                 timestep=given["timestep"], img_ids=given["noise_ids"], txt_ids=given["text_ids"],
                 image_cond_hidden_states=given["reference0"],
                 image_cond_ids=given["reference0_ids"]).sample


def run_qwen21(model, given):
    """Of a case without references."""
    rows = int(given["noise_ids"][:, 1].unique().numel())
    count, text = given["noise"].shape[1], given["text"].shape[1]
    return model(given["noise"], given["text"], given["timestep"], [[(1, rows, count // rows)]],
                 torch.tensor([[False] * text + [True] * (count // 4)])).sample[:, -count:]


def run_qwen_image(model, given):
    rows = int(given["noise_ids"][:, 1].unique().numel())
    return model(given["noise"], given["text"], timestep=given["timestep"],
                 img_shapes=[[(1, rows, given["noise"].shape[1] // rows)]]).sample


BASES = {"flux": (PARITY / "basic", PARITY / "basic/model/transformer", run_flux),
         "flux2": (PARITY / "denoisers/klein", PARITY / "denoisers/klein", run_flux2),
         "zimage": (PARITY / "denoisers/zimage-32", PARITY / "denoisers/zimage-32", run_zimage),
         "joy": (PARITY / "joy", PARITY / "joy/model/transformer", run_joy),
         "krea2": (PARITY / "denoisers/krea2", PARITY / "denoisers/krea2", run_krea2),
         "flux3": (PARITY / "denoisers/flux3", PARITY / "denoisers/flux3", run_flux3),
         "qwen21": (PARITY / "denoisers/qwen21", PARITY / "denoisers/qwen21", run_qwen21),
         "qwen-image": (PARITY / "denoisers/qwen-image", PARITY / "denoisers/qwen-image",
                        run_qwen_image)}

# The single-file module -> the diffusers modules that its rows come from.
D, S = "transformer_blocks.0.", "single_transformer_blocks.1."
FLUX_ENDS = {
    "img_in": ["x_embedder"], "txt_in": ["context_embedder"],
    "time_in.in_layer": ["time_text_embed.timestep_embedder.linear_1"],
    "vector_in.out_layer": ["time_text_embed.text_embedder.linear_2"],
    "guidance_in.in_layer": ["time_text_embed.guidance_embedder.linear_1"],
    "final_layer.linear": ["proj_out"], "final_layer.adaLN_modulation.1": ["norm_out.linear"]}
FLUX_BLOCKS = {
    "double_blocks.0.img_mod.lin": [D + "norm1.linear"],
    "double_blocks.0.txt_mod.lin": [D + "norm1_context.linear"],
    "double_blocks.0.img_attn.qkv": [D + f"attn.to_{x}" for x in "qkv"],
    "double_blocks.0.txt_attn.qkv": [D + f"attn.add_{x}_proj" for x in "qkv"],
    "double_blocks.0.img_attn.proj": [D + "attn.to_out.0"],
    "double_blocks.0.txt_attn.proj": [D + "attn.to_add_out"],
    "double_blocks.0.img_mlp.0": [D + "ff.net.0.proj"],
    "double_blocks.0.img_mlp.2": [D + "ff.net.2"],
    "double_blocks.0.txt_mlp.0": [D + "ff_context.net.0.proj"],
    "double_blocks.0.txt_mlp.2": [D + "ff_context.net.2"],
    "single_blocks.1.modulation.lin": [S + "norm.linear"],
    "single_blocks.1.linear1": [S + f"attn.to_{x}" for x in "qkv"] + [S + "proj_mlp"],
    "single_blocks.1.linear2": [S + "proj_out"]}
FLUX2 = {
    "img_in": ["x_embedder"], "time_in.out_layer": ["time_guidance_embed.timestep_embedder.linear_2"],
    "double_stream_modulation_txt.lin": ["double_stream_modulation_txt.linear"],
    "single_stream_modulation.lin": ["single_stream_modulation.linear"],
    "double_blocks.0.img_attn.qkv": [D + f"attn.to_{x}" for x in "qkv"],
    "double_blocks.0.txt_attn.qkv": [D + f"attn.add_{x}_proj" for x in "qkv"],
    "double_blocks.0.img_attn.proj": [D + "attn.to_out.0"],
    "double_blocks.0.txt_mlp.0": [D + "ff_context.linear_in"],
    "double_blocks.0.img_mlp.2": [D + "ff.linear_out"],
    "single_blocks.1.linear1": [S + "attn.to_qkv_mlp_proj"],
    "single_blocks.1.linear2": [S + "attn.to_out"],
    "final_layer.adaLN_modulation.1": ["norm_out.linear"], "final_layer.linear": ["proj_out"]}
ZIMAGE = {
    "layers.0.attention.qkv": [f"layers.0.attention.to_{x}" for x in "qkv"],
    "layers.0.attention.out": ["layers.0.attention.to_out.0"],
    "layers.0.feed_forward.w1": ["layers.0.feed_forward.w1"],
    "layers.0.feed_forward.w2": ["layers.0.feed_forward.w2"],
    "layers.0.adaLN_modulation.0": ["layers.0.adaLN_modulation.0"],
    "noise_refiner.1.attention.qkv": [f"noise_refiner.1.attention.to_{x}" for x in "qkv"],
    "context_refiner.0.feed_forward.w3": ["context_refiner.0.feed_forward.w3"],
    "cap_embedder.1": ["cap_embedder.1"], "x_embedder": ["all_x_embedder.2-1"],
    "final_layer.linear": ["all_final_layer.2-1.linear"]}
XLABS = {"double_blocks.0.img_attn.qkv": "double_blocks.0.processor.qkv_lora1",
         "double_blocks.0.img_attn.proj": "double_blocks.0.processor.proj_lora1",
         "double_blocks.0.txt_attn.qkv": "double_blocks.0.processor.qkv_lora2",
         "double_blocks.0.txt_attn.proj": "double_blocks.0.processor.proj_lora2",
         "single_blocks.1.linear2": "single_blocks.1.processor.proj_lora"}
DIFFSYNTH = {
    "x_embedder": ["x_embedder"], "context_embedder": ["context_embedder"],
    "time_embedder.timestep_embedder.0": ["time_text_embed.timestep_embedder.linear_1"],
    "pooled_text_embedder.2": ["time_text_embed.text_embedder.linear_2"],
    "guidance_embedder.timestep_embedder.0": ["time_text_embed.guidance_embedder.linear_1"],
    "final_proj_out": ["proj_out"],
    "blocks.0.norm1_a.linear": [D + "norm1.linear"],
    "blocks.0.norm1_b.linear": [D + "norm1_context.linear"],
    "blocks.0.attn.a_to_qkv": [D + f"attn.to_{x}" for x in "qkv"],
    "blocks.0.attn.b_to_qkv": [D + f"attn.add_{x}_proj" for x in "qkv"],
    "blocks.0.attn.a_to_out": [D + "attn.to_out.0"], "blocks.0.attn.b_to_out": [D + "attn.to_add_out"],
    "blocks.0.ff_a.0": [D + "ff.net.0.proj"], "blocks.0.ff_a.2": [D + "ff.net.2"],
    "blocks.0.ff_b.0": [D + "ff_context.net.0.proj"], "blocks.0.ff_b.2": [D + "ff_context.net.2"],
    "single_blocks.1.norm.linear": [S + "norm.linear"],
    "single_blocks.1.to_qkv_mlp": [S + f"attn.to_{x}" for x in "qkv"] + [S + "proj_mlp"],
    "single_blocks.1.proj_out": [S + "proj_out"]}
# diffusers' names after fuse_qkv_projections(), and to_out without its index
FUSED = {D + "attn.to_qkv": [D + f"attn.to_{x}" for x in "qkv"],
         D + "attn.to_added_qkv": [D + f"attn.add_{x}_proj" for x in "qkv"],
         D + "attn.to_out": [D + "attn.to_out.0"]}
FUSED_FLUX = FUSED | {S + "attn.to_qkv": [S + f"attn.to_{x}" for x in "qkv"],
                      S + "proj_mlp": [S + "proj_mlp"]}
FUSED_ZIMAGE = {"layers.0.attention.to_qkv": [f"layers.0.attention.to_{x}" for x in "qkv"],
                "layers.0.attention.to_out": ["layers.0.attention.to_out.0"],
                "noise_refiner.1.attention.to_out": ["noise_refiner.1.attention.to_out.0"]}
# Their own names; DiffSynth and the original release have the attention's layers in the block.
JOY = {n: [n] for n in
       [f"double_blocks.0.attn.{x}_attn_{y}" for x in ("img", "txt") for y in ("qkv", "proj")] +
       [f"double_blocks.1.{x}_mlp.net.{y}" for x in ("img", "txt") for y in ("0.proj", "2")] +
       ["condition_embedder.time_proj", "condition_embedder.text_embedder.linear_1", "proj_out"]}
KREA2 = {
    "first": ["img_in"], "tmlp.0": ["time_embed.linear_1"], "tmlp.2": ["time_embed.linear_2"],
    "tproj.1": ["time_mod_proj"], "txtmlp.1": ["txt_in.linear_1"], "txtmlp.3": ["txt_in.linear_2"],
    "last.linear": ["final_layer.linear"],
    **{f"{theirs}.{layer}": [f"{ours}.{module}"]
       for theirs, ours in {"blocks.1": "transformer_blocks.1",
                            "txtfusion.layerwise_blocks.0": "text_fusion.layerwise_blocks.0",
                            "txtfusion.refiner_blocks.1": "text_fusion.refiner_blocks.1"}.items()
       for layer, module in {
           "attn.wq": "attn.to_q", "attn.wk": "attn.to_k", "attn.wv": "attn.to_v",
           "attn.wo": "attn.to_out.0", "attn.gate": "attn.to_gate", "mlp.gate": "ff.gate",
           "mlp.up": "ff.up", "mlp.down": "ff.down"}.items()}}
FLUX3_BLOCKS = {
    f"{theirs}.{layer}": [f"{ours}.{module}"]
    for theirs, ours in {"txt_mode_blocks.0": "txt_mode_blocks.0",
                         "content_mode_blocks.image.1": "mode_blocks.image.1",
                         "content_mode_blocks.image_cond.0": "mode_blocks.image_cond.0",
                         "single_blocks.1": "single_transformer_blocks.1"}.items()
    for layer, module in {
        "q_proj": "attn.to_q", "k_proj": "attn.to_k", "v_proj": "attn.to_v",
        "attn_out": "attn.to_out.0", "mlp_in": "ff.linear_in", "mlp_out": "ff.linear_out"}.items()}
FLUX3 = FLUX3_BLOCKS | {
    "emb_in.image": ["x_embedders.image"], "emb_in.image_cond": ["x_embedders.image_cond"],
    "txt_in": ["context_embedder"], "time_in.in_layer": ["timestep_embedder.linear_1"],
    "early_stream_modulations.txt.lin": ["early_stream_modulations.txt.linear"],
    "single_stream_modulations.image_cond.lin": ["single_stream_modulations.image_cond.linear"],
    "final_layer.image.linear": ["proj_out"],
    "final_layer.image.adaLN_modulation.1": ["norm_out.linear"]}
# Their own names; some train an MLP's gate and value as one layer.
QWEN21 = {n: [n] for n in (
    "img_in", "proj_out", "modulation.1", "norm_out.linear", "txt_in.in_layer", "txt_in.out_layer",
    "time_text_embed.timestep_embedder.linear_1",
    *(f"transformer_blocks.{i}.{layer}" for i in (0, 2) for layer in (
        "attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0", "img_mlp.gate_layer",
        "img_mlp.proj", "img_mlp.out")))}
JOINED_QWEN21 = {
    "transformer_blocks.1.attn.to_out": ["transformer_blocks.1.attn.to_out.0"],
    "transformer_blocks.1.img_mlp.gate_up": [
        "transformer_blocks.1.img_mlp.gate_layer", "transformer_blocks.1.img_mlp.proj"]}
QWEN_IMAGE = {n: [n] for n in (
    "img_in", "txt_in", "proj_out", "norm_out.linear",
    "time_text_embed.timestep_embedder.linear_1", "time_text_embed.timestep_embedder.linear_2",
    *(f"transformer_blocks.0.{layer}" for layer in (
        "img_mod.1", "txt_mod.1", "attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0",
        "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj", "attn.to_add_out",
        "img_mlp.net.0.proj", "img_mlp.net.2", "txt_mlp.net.0.proj", "txt_mlp.net.2")))}
JOINED_QWEN_IMAGE = {
    "transformer_blocks.1.attn.to_out": ["transformer_blocks.1.attn.to_out.0"],
    "transformer_blocks.0.img_mod": ["transformer_blocks.0.img_mod.1"],
    "transformer_blocks.1.attn.to_qkv": [f"transformer_blocks.1.attn.to_{x}" for x in "qkv"],
    "transformer_blocks.0.attn.to_added_qkv": [
        f"transformer_blocks.0.attn.add_{x}_proj" for x in "qkv"]}
SWAPPED = "norm_out.linear"  # diffusers has [scale | shift], single files [shift | scale]


def dotted(prefix):
    return lambda name: prefix + name


def underscored(prefix):
    return lambda name: prefix + name.replace(".", "_")


class Writer:
    """A file of low-rank or other products, and the changes it stands for."""

    def __init__(self, base, seed):
        self.base, self.seed = base, seed
        self.tensors, self.changes = {}, []

    def next(self, *shape):
        self.seed += 1
        return draw(self.seed, *shape)

    def extent(self, modules):
        weights = [self.base.tensors[m + ".weight"] for m in modules]
        return sum(len(w) for w in weights), weights[0].shape[1]

    def change(self, modules, delta, kind="weight", is_single_file=True):
        if is_single_file and modules == [SWAPPED]:
            delta = torch.cat(list(reversed(delta.chunk(2))))
        self.changes.append(([f"{m}.{kind}" for m in modules], delta))

    def low_rank(self, key, modules, words=("lora_down", "lora_up"), alpha=None, bias=False,
                 is_single_file=True):
        rows, columns = self.extent(modules)
        down, up = self.next(RANK, columns), 2 * self.next(rows, RANK)
        self.tensors |= {f"{key}.{words[0]}.weight": down, f"{key}.{words[1]}.weight": up}
        if alpha is not None:
            self.tensors[key + ".alpha"] = torch.tensor(alpha)
        factor = 1 if alpha is None else alpha / RANK
        self.change(modules, factor * up @ down, is_single_file=is_single_file)
        if bias:
            self.tensors[f"{key}.{words[1]}.bias"] = self.next(rows)
            self.change(modules, self.tensors[f"{key}.{words[1]}.bias"], "bias", is_single_file)


def magnitudes_of_inputs(writer, key, modules, words, alpha):
    """A DoRA whose magnitudes are the lengths of columns, as OneTrainer's and LyCORIS' may be."""
    rows, columns = writer.extent(modules)
    weight = torch.cat([writer.base.tensors[m + ".weight"] for m in modules])
    down, up, stretch = writer.next(RANK, columns), writer.next(rows, RANK), writer.next(1, columns)
    merged = weight + alpha / RANK * up @ down
    lengths = merged.norm(dim=0, keepdim=True)
    scale = lengths * (1 + stretch.clamp(-0.5, 0.5))
    writer.tensors |= {f"{key}.{words[0]}.weight": down, f"{key}.{words[1]}.weight": up,
                       f"{key}.alpha": torch.tensor(alpha), f"{key}.dora_scale": scale}
    writer.change(modules, merged * scale / lengths - weight)


def tucker(base, seed):
    """LyCORIS' three factors of a convolution, and a DoRA of its inputs."""
    writer, key = Writer(base, seed), "lycoris_img_in"
    weight = base.tensors["img_in.weight"]
    rows, columns, window = weight.shape[0], weight.shape[1], weight.shape[2:]
    ones = [1] * len(window)
    up, down = writer.next(rows, RANK), writer.next(RANK, columns)
    core, stretch = writer.next(RANK, RANK, *window), writer.next(1, columns, *ones)
    merged = weight + 1.5 / RANK * torch.einsum("ij...,ni,jc->nc...", core, up, down)
    lengths = merged.square().sum(dim=[0, *range(2, merged.dim())], keepdim=True).sqrt()
    scale = lengths * (1 + stretch.clamp(-0.5, 0.5))
    writer.tensors |= {f"{key}.lora_down.weight": down.view(RANK, columns, *ones),
                       f"{key}.lora_up.weight": up.view(rows, RANK, *ones),
                       f"{key}.lora_mid.weight": core, f"{key}.dora_scale": scale,
                       f"{key}.alpha": torch.tensor(1.5)}
    writer.change(["img_in"], merged * scale / lengths - weight)
    return writer


def onetrainer(base, seed):
    """Single-file names with numbered parts of fused layers; DoRA in all blocks."""
    writer, words = Writer(base, seed), ("lora_down", "lora_up")
    for name, modules in FLUX_ENDS.items():
        key = "transformer." + ("img_in.proj" if name == "img_in" else name)
        writer.low_rank(key, modules, words, alpha=1.0)
    for name, modules in FLUX_BLOCKS.items():
        for i, module in enumerate(modules):
            key = f"transformer.{name}.{i}" if len(modules) > 1 else f"transformer.{name}"
            magnitudes_of_inputs(writer, key, [module], words, alpha=3.0)
    return writer


def lycoris_dora(base, seed, table):
    """Magnitudes of inputs, also of fused layers."""
    writer = Writer(base, seed)
    for name, modules in table.items():
        if modules != [SWAPPED]:
            magnitudes_of_inputs(writer, "lycoris_" + name.replace(".", "_"), modules,
                                 ("lora_down", "lora_up"), alpha=1.5)
    return writer


def spelled(base, seed, table, key_of, single_file=True, alphas=False, **words):
    """A file with all modules of a table, under single-file or diffusers names."""
    writer = Writer(base, seed)
    for i, (single, modules) in enumerate(table.items()):
        for name, parts in [(single, modules)] if single_file else [(m, [m]) for m in modules]:
            writer.low_rank(key_of(name), parts, alpha=1.5 + i % 3 if alphas else None,
                            is_single_file=single_file, **words)
    return writer


PEFT = {"words": ("lora_A", "lora_B")}
DEFAULT = ("lora_A.default", "lora_B.default")
KOHYA = {"alphas": True}


def xlabs(base, seed):
    writer = Writer(base, seed)
    words = ("down", "up")
    for name, key in XLABS.items():
        writer.low_rank(key, FLUX_BLOCKS[name], words)
    writer.low_rank("single_blocks.1.processor.qkv_lora", FLUX_BLOCKS["single_blocks.1.linear1"][:3],
                    words)
    return writer


def control(base, seed):
    """Products with biases, and norms that replace the model's."""
    writer = Writer(base, seed)
    for name, modules in (FLUX_ENDS | FLUX_BLOCKS).items():
        writer.low_rank(name, modules, ("lora_A", "lora_B"), bias=True)
    for key, name in (("double_blocks.0.img_attn.norm.query_norm.scale", D + "attn.norm_q.weight"),
                      ("double_blocks.0.txt_attn.norm.key_norm.scale", D + "attn.norm_added_k.weight"),
                      ("single_blocks.1.norm.key_norm.scale", S + "attn.norm_k.weight")):
        writer.tensors[key] = 1 + writer.next(*base.tensors[name].shape)
        writer.changes.append(([name], writer.tensors[key] - base.tensors[name]))
    return writer


def whole(base, seed, table, key_of):
    """Changes of whole weights beside low-rank ones."""
    writer = spelled(base, seed, table, key_of, **PEFT)
    writer.tensors[key_of("txtfusion.projector.diff")] = delta = writer.next(1, 3)
    writer.change(["text_fusion.projector"], delta)
    return writer


def lokr(base, seed, table, prefix):
    """Kronecker products: neither, one or both of the factors are products."""
    writer = Writer(base, seed)
    for i, (name, modules) in enumerate(table.items()):
        rows, columns = writer.extent(modules)
        key = prefix + name.replace(".", "_")
        factors, is_product = [], False
        for side, (n, c) in (("w1", (2, 2)), ("w2", (rows // 2, columns // 2))):
            if i % 3 == 2 or (i % 3 == 1 and side == "w2"):
                a, b = writer.next(n, 3), writer.next(3, c)
                writer.tensors |= {f"{key}.lokr_{side}_a": a, f"{key}.lokr_{side}_b": b}
                factors.append(a @ b)
                is_product = True
            else:
                factors.append(writer.next(n, c))
                writer.tensors[f"{key}.lokr_{side}"] = factors[-1]
        writer.tensors[key + ".alpha"] = torch.tensor(2.0)
        writer.change(modules, torch.kron(*factors) * (2 / 3 if is_product else 1))
    return writer


def loha(base, seed, table):
    writer = Writer(base, seed)
    for name, modules in table.items():
        rows, columns = writer.extent(modules)
        key = "lycoris_" + name.replace(".", "_")
        a, b, c, d = (writer.next(*shape) for shape in ((rows, RANK), (RANK, columns)) * 2)
        writer.tensors |= {key + ".hada_w1_a": a, key + ".hada_w1_b": b, key + ".hada_w2_a": c,
                           key + ".hada_w2_b": d, key + ".alpha": torch.tensor(3.0)}
        writer.change(modules, 1.5 * (a @ b) * (c @ d))
    return writer


def of_peft(base, seed, config):
    """(tensors, metadata, velocity) of an adapter built by peft."""
    kind = {"lokr": LoKrConfig, "loha": LoHaConfig}.get(config.get("kind"), LoraConfig)
    weights = "init_lora_weights" if kind is LoraConfig else "init_weights"
    model = base.model()
    config = kind(**{weights: False}, **{k: v for k, v in config.items() if k != "kind"})
    inject_adapter_in_model(config, model)  # JoyAI's has no add_adapter()
    model.peft_config = {"default": config}
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "magnitude" in name:
            parameter.data *= 0.75 + 0.5 * torch.rand(parameter.shape, generator=generator)
        elif any(word in name for word in ("lora_", "lokr_", "hada_")):
            spread = parameter.shape[-1] ** -0.5
            parameter.data = torch.randn(parameter.shape, generator=generator) * spread
    tensors = {f"transformer.{n}": t for n, t in get_peft_model_state_dict(model).items()}
    kept = {k: sorted(v) if isinstance(v, set) else v
            for k, v in config.to_dict().items()}
    metadata = {"lora_adapter_metadata": json.dumps(
        {f"transformer.{k}": v for k, v in kept.items()}, default=str, sort_keys=True)}
    return tensors, metadata, base.velocity(model)


FLUX_TARGETS = ["to_q", "to_v", "add_k_proj", "to_out.0", "proj_mlp", "proj_out", "norm1.linear",
                "linear_1", "ff.net.2", "norm_out.linear"]
PEFT_CONFIGS = {
    "flux": {
        "peft": {"r": 3, "lora_alpha": 5, "rank_pattern": {"to_q": 2, "ff.net.2": 4},
                 "alpha_pattern": {"to_out.0": 1.5, "transformer_blocks.0.attn.to_v": 7},
                 "target_modules": FLUX_TARGETS},
        "peft-rslora": {"r": 4, "lora_alpha": 3, "use_rslora": True, "lora_bias": True,
                        "target_modules": FLUX_TARGETS},
        "peft-dora": {"r": 2, "lora_alpha": 3, "use_dora": True, "target_modules": FLUX_TARGETS},
        # the rank is too large for some factors: these are whole, and scaled nevertheless
        "peft-lokr": {"kind": "lokr", "r": 5, "alpha": 3, "rank_pattern": {"to_q": 3, "proj_mlp": 64},
                      "alpha_pattern": {"to_q": 4}, "target_modules": FLUX_TARGETS},
        "peft-loha": {"kind": "loha", "r": 2, "alpha": 3, "alpha_pattern": {"to_v": 5},
                      "target_modules": FLUX_TARGETS}},
    "flux2": {"peft": {"r": 2, "lora_alpha": 3, "target_modules": [
        "to_k", "to_add_out", "to_qkv_mlp_proj", "single_transformer_blocks.1.attn.to_out", "linear_in",
        "norm_out.linear"]}},
    "zimage": {"peft": {"r": 2, "lora_alpha": 5, "target_modules": [
        "to_q", "to_k", "to_v", "to_out.0", "w1", "w2", "w3"]}},
    "joy": {"peft": {"r": 2, "lora_alpha": 3, "target_modules": [
        "img_attn_qkv", "txt_attn_proj", "net.2", "time_proj"]}},
    "krea2": {"peft": {"r": 2, "lora_alpha": 5, "target_modules": [
        "to_q", "to_k", "to_v", "to_gate", "to_out.0", "ff.gate", "ff.down", "time_mod_proj"]}},
    "flux3": {"peft": {"r": 2, "lora_alpha": 3, "target_modules": [
        "to_q", "to_k", "to_v", "to_out.0", "linear_in", "linear_out", "norm_out.linear",
        "context_embedder"]}},
    "qwen21": {"peft": {"r": 3, "lora_alpha": 6, "target_modules": [
        "to_q", "to_k", "to_v", "to_out.0", "img_mlp.gate_layer", "img_mlp.proj", "img_mlp.out",
        "modulation.1"]}},
    "qwen-image": {"peft": {"r": 3, "lora_alpha": 6, "target_modules": [
        "to_q", "to_k", "to_v", "to_out.0", "add_k_proj", "to_add_out", "img_mlp.net.2",
        "txt_mod.1"]}}}


def files_of(name, base):
    if name == "flux":
        everything = FLUX_ENDS | FLUX_BLOCKS
        return {
            "kohya": spelled(base, 100, everything, underscored("lora_unet_"), **KOHYA),
            "comfyui": spelled(base, 200, everything, dotted("diffusion_model."), **PEFT),
            "comfyui-down": spelled(base, 300, FLUX_BLOCKS, dotted("diffusion_model."), **KOHYA),
            "mixed": spelled(base, 400, everything, underscored("lora_transformer_"), False, **KOHYA),
            "fal": spelled(base, 500, FLUX_BLOCKS, dotted("base_model.model."), **PEFT),
            "xlabs": xlabs(base, 600), "control": control(base, 700),
            "lokr": lokr(base, 800, FLUX_BLOCKS, "lora_unet_"), "loha": loha(base, 900, FLUX_BLOCKS),
            "diffsynth": spelled(base, 2000, DIFFSYNTH, dotted("pipe.dit."), words=DEFAULT),
            "onetrainer": onetrainer(base, 2100),
            "fused": spelled(base, 2200, FUSED_FLUX, dotted("transformer.base_model.model."), **PEFT)}
    if name == "flux2":
        def cut(module):
            return "diffusion_model." + module.removeprefix("tran")

        doubles = {s: m for s, m in FLUX2.items() if s.startswith("double_blocks")}
        return {"kohya": spelled(base, 1000, FLUX2, underscored("lora_unet_"), **KOHYA),
                "comfyui": spelled(base, 1100, FLUX2, dotted("diffusion_model."), **PEFT),
                "base-model": spelled(base, 1200, FLUX2, dotted("base_model.model."), **PEFT),
                "cut": spelled(base, 1300, doubles, cut, False, **PEFT),
                "lokr": lokr(base, 1400, doubles, "lycoris_"),
                "fused": spelled(base, 2300, FUSED, dotted("model."), **PEFT),
                "lycoris-dora": lycoris_dora(base, 2400, FLUX2)}
    if name == "krea2":
        blocks = {s: m for s, m in KREA2.items() if "blocks." in s}
        return {"comfyui": spelled(base, 3200, KREA2, dotted("diffusion_model."), **PEFT),
                "base-model": spelled(base, 3300, KREA2, dotted("base_model.model."), **PEFT),
                "diffusers": spelled(base, 3400, KREA2, dotted("transformer."), False, **PEFT),
                "bare": spelled(base, 3500, KREA2, dotted(""), **PEFT),
                "kohya": spelled(base, 3600, KREA2, underscored("lora_unet_"), **KOHYA),
                "lycoris-dora": lycoris_dora(base, 3700, KREA2),
                "lokr": lokr(base, 3800, blocks, "lycoris_"),
                "whole": whole(base, 3900, KREA2, dotted("diffusion_model."))}
    if name == "flux3":
        return {"comfyui": spelled(base, 4000, FLUX3, dotted("diffusion_model."), **PEFT),
                "base-model": spelled(base, 4100, FLUX3, dotted("base_model.model."), **PEFT),
                "diffusers": spelled(base, 4200, FLUX3, dotted("transformer."), False, **PEFT),
                "bare": spelled(base, 4300, FLUX3, dotted(""), **PEFT),
                "kohya": spelled(base, 4400, FLUX3, underscored("lora_unet_"), **KOHYA),
                "lycoris-dora": lycoris_dora(base, 4500, FLUX3),
                "lokr": lokr(base, 4600, FLUX3_BLOCKS, "lycoris_")}
    if name == "qwen21":
        blocks = {s: m for s, m in QWEN21.items() if "blocks." in s}
        return {"diffusers": spelled(base, 4000, QWEN21, dotted("transformer."), False, **PEFT),
                "comfyui": spelled(base, 4100, QWEN21, dotted("diffusion_model."), False, **PEFT),
                "bare": spelled(base, 4200, QWEN21, dotted(""), False, **PEFT),
                "kohya": spelled(base, 4300, QWEN21, underscored("lora_unet_"), False, **KOHYA),
                "mixed": spelled(base, 4400, QWEN21, underscored("lora_transformer_"), False,
                                 **KOHYA),
                "joined": spelled(base, 4500, JOINED_QWEN21, dotted("diffusion_model."), **PEFT),
                "lycoris-dora": lycoris_dora(base, 4600, QWEN21),
                "lokr": lokr(base, 4700, blocks, "lycoris_")}
    if name == "qwen-image":
        blocks = {s: m for s, m in QWEN_IMAGE.items() if "blocks." in s}
        return {"diffusers": spelled(base, 5000, QWEN_IMAGE, dotted("transformer."), False, **PEFT),
                "comfyui": spelled(base, 5100, QWEN_IMAGE, dotted("diffusion_model."), False,
                                   **PEFT),
                # as Lightning's, with an alpha
                "bare": spelled(base, 5200, blocks, dotted(""), False, **KOHYA),
                "kohya": spelled(base, 5300, QWEN_IMAGE, underscored("lora_unet_"), False, **KOHYA),
                "default": spelled(base, 5400, QWEN_IMAGE, dotted(""), False, words=DEFAULT),
                "joined": spelled(base, 5500, JOINED_QWEN_IMAGE, dotted("diffusion_model."), **PEFT),
                "lycoris-dora": lycoris_dora(base, 5600, QWEN_IMAGE),
                "lokr": lokr(base, 5700, blocks, "lycoris_")}
    if name == "joy":
        def in_block(module):
            return module.replace(".attn.", ".")

        return {"kohya": spelled(base, 2600, JOY, underscored("lora_unet_"), **KOHYA),
                "diffsynth": spelled(base, 2700, JOY, in_block, words=DEFAULT),
                "lycoris-dora": lycoris_dora(base, 2800, JOY)}
    return {"comfyui": spelled(base, 1500, ZIMAGE, dotted("diffusion_model."), **PEFT),
            "kohya": spelled(base, 1600, ZIMAGE, underscored("lora_unet_"), False, **KOHYA),
            "default": spelled(base, 1700, ZIMAGE, lambda n: n, False,
                               words=DEFAULT),
            "fused": spelled(base, 2500, FUSED_ZIMAGE, dotted("dit."), words=DEFAULT),
            "lokr": lokr(base, 1800, {s: m for s, m in ZIMAGE.items() if "attention" in s},
                         "lora_unet_")}


def make(name, out):
    base = Base(*BASES[name])
    out.mkdir(parents=True, exist_ok=True)
    plain = base.velocity(base.model())
    expected = {}
    for file, writer in files_of(name, base).items():
        save_file({n: t.contiguous() for n, t in writer.tensors.items()}, out / f"{file}.safetensors")
        expected[file] = base.merged(writer.changes)
    for i, (file, config) in enumerate(PEFT_CONFIGS[name].items()):
        tensors, metadata, expected[file] = of_peft(base, 50 + i, config)
        save_file({n: t.contiguous() for n, t in tensors.items()}, out / f"{file}.safetensors",
                  metadata)
    for file, velocity in expected.items():
        moved = ((velocity - plain).abs().max() / plain.abs().max()).item()
        print(f"{name}/{file}: the velocity moves by {moved:.2g}")
        assert moved > 0.05 and torch.isfinite(velocity).all()
    save_file(expected, out / "expected.safetensors")


# peft draws new DoRA magnitudes each time, so their spread is unknown.
def measure(names, out):
    spread = {name: {} for name in names}
    for settings in all_settings().values():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, __file__, "--only", *names, "--out", folder], check=True,
                           env=os.environ | settings, stdout=subprocess.DEVNULL)
            for name in names:
                expected = load_file(out / name / "expected.safetensors")
                made = load_file(Path(folder) / name / "expected.safetensors")
                for file in expected.keys() - {"peft-dora"}:
                    spread[name][file] = max(spread[name].get(file, 0), largest(made[file], expected[file]))
    for name in names:
        path = out / name / "manifest.json"
        known = json.loads(path.read_text())["float32_spread"] if path.exists() else {}
        rounded = {file: float(f"{value:.3e}") for file, value in spread[name].items()}
        figures = dict(sorted(larger(known, rounded).items()))
        path.write_text(json.dumps({"float32_spread": figures}, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BASES, default=list(BASES))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--measure", action="store_true")
    args = parser.parse_args()
    if args.measure:
        return measure(args.only, args.out)
    for name in args.only:
        make(name, args.out / name)


if __name__ == "__main__":
    main()
