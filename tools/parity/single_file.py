"""Write a pipeline's transformer as one file with Black Forest Labs' tensor names.

usage: python single_file.py PIPELINE OUT.safetensors [--prefix model.diffusion_model.]

Theirs fuses q, k and v; in single blocks the MLP's input too; and has the final modulation's halves
the other way round (shift, then scale).
"""
import argparse
import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

PLAIN = {
    "x_embedder": "img_in", "context_embedder": "txt_in", "proj_out": "final_layer.linear",
    "norm_out.linear": "final_layer.adaLN_modulation.1",
    **{f"time_text_embed.{theirs}.linear_{i}": f"{ours}_in.{layer}_layer"
       for theirs, ours in {"timestep_embedder": "time", "guidance_embedder": "guidance",
                            "text_embedder": "vector"}.items()
       for i, layer in ((1, "in"), (2, "out"))},
}
DOUBLE = {
    "norm1.linear": "img_mod.lin", "norm1_context.linear": "txt_mod.lin",
    "attn.norm_q": "img_attn.norm.query_norm", "attn.norm_k": "img_attn.norm.key_norm",
    "attn.norm_added_q": "txt_attn.norm.query_norm", "attn.norm_added_k": "txt_attn.norm.key_norm",
    "attn.to_out.0": "img_attn.proj", "attn.to_add_out": "txt_attn.proj",
    "ff.net.0.proj": "img_mlp.0", "ff.net.2": "img_mlp.2",
    "ff_context.net.0.proj": "txt_mlp.0", "ff_context.net.2": "txt_mlp.2",
}
DOUBLE_FUSED = {
    "img_attn.qkv": ("attn.to_q", "attn.to_k", "attn.to_v"),
    "txt_attn.qkv": ("attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"),
}
SINGLE = {
    "norm.linear": "modulation.lin", "proj_out": "linear2",
    "attn.norm_q": "norm.query_norm", "attn.norm_k": "norm.key_norm",
}
SINGLE_FUSED = {"linear1": ("attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp")}


def convert(tensors):
    """The same tensors under the other names; every one of them is used."""
    left = dict(tensors)
    out = {}

    def take(source, target, plain, fused):
        kinds = ("weight", "bias")
        for ours, theirs in plain.items():
            for kind in kinds:
                name = f"{source}{ours}.{kind}"
                if name in left:
                    scale = "scale" if theirs.endswith("_norm") else kind
                    out[f"{target}{theirs}.{scale}"] = left.pop(name)
        for theirs, parts in fused.items():
            for kind in kinds:
                rows = [left.pop(f"{source}{part}.{kind}") for part in parts]
                out[f"{target}{theirs}.{kind}"] = torch.cat(rows)

    take("", "", PLAIN, {})
    for ours, theirs, plain, fused in (
            ("transformer_blocks", "double_blocks", DOUBLE, DOUBLE_FUSED),
            ("single_transformer_blocks", "single_blocks", SINGLE, SINGLE_FUSED)):
        found = (re.match(rf"{ours}\.(\d+)\.", name) for name in list(left))
        for i in sorted({int(m[1]) for m in found if m}):
            take(f"{ours}.{i}.", f"{theirs}.{i}.", plain, fused)
    for kind in ("weight", "bias"):
        name = f"final_layer.adaLN_modulation.1.{kind}"
        scale, shift = out[name].chunk(2)
        out[name] = torch.cat([shift, scale])
    assert not left, f"not converted: {sorted(left)}"
    return out


def write(pipeline, out, prefix=""):
    tensors = {}
    for path in (pipeline / "transformer").glob("*.safetensors"):
        tensors |= load_file(path)
    save_file({prefix + n: t.contiguous() for n, t in convert(tensors).items()}, out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--prefix", default="")
    args = parser.parse_args()
    write(args.pipeline, args.out, args.prefix)


if __name__ == "__main__":
    main()
