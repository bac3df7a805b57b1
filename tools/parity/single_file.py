"""Write a pipeline's transformer as one file with its authors' tensor names.

usage: python single_file.py PIPELINE OUT.safetensors [--prefix model.diffusion_model.]

It fuses q, k and v, in FLUX.1's single blocks the MLP's input too, and swaps the halves of FLUX's final
modulation (shift, then scale).
"""
import argparse
import json
import re
from pathlib import Path

import torch
from diffusers.loaders.single_file_utils import convert_wan_vae_to_diffusers
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

# For the other classes: a name's pattern and its replacement. Where q, k and v become one tensor, the
# pattern matches q's name.
DOUBLE_2 = r"^transformer_blocks\.(\d+)\."
SINGLE_2 = r"^single_transformer_blocks\.(\d+)\.attn\."
FLUX_2 = [
    (r"^x_embedder\.", "img_in."), (r"^context_embedder\.", "txt_in."),
    (r"^proj_out\.", "final_layer.linear."),
    (r"^norm_out\.linear\.", "final_layer.adaLN_modulation.1."),
    (r"^time_guidance_embed\.timestep_embedder\.linear_1\.", "time_in.in_layer."),
    (r"^time_guidance_embed\.timestep_embedder\.linear_2\.", "time_in.out_layer."),
    (r"^time_guidance_embed\.guidance_embedder\.linear_1\.", "guidance_in.in_layer."),
    (r"^time_guidance_embed\.guidance_embedder\.linear_2\.", "guidance_in.out_layer."),
    (r"^(\w+_stream_modulation\w*)\.linear\.", r"\1.lin."),
    (DOUBLE_2 + r"attn\.to_q\.", r"double_blocks.\1.img_attn.qkv."),
    (DOUBLE_2 + r"attn\.add_q_proj\.", r"double_blocks.\1.txt_attn.qkv."),
    (DOUBLE_2 + r"attn\.to_out\.0\.", r"double_blocks.\1.img_attn.proj."),
    (DOUBLE_2 + r"attn\.to_add_out\.", r"double_blocks.\1.txt_attn.proj."),
    (DOUBLE_2 + r"attn\.norm_q\.weight", r"double_blocks.\1.img_attn.norm.query_norm.scale"),
    (DOUBLE_2 + r"attn\.norm_k\.weight", r"double_blocks.\1.img_attn.norm.key_norm.scale"),
    (DOUBLE_2 + r"attn\.norm_added_q\.weight", r"double_blocks.\1.txt_attn.norm.query_norm.scale"),
    (DOUBLE_2 + r"attn\.norm_added_k\.weight", r"double_blocks.\1.txt_attn.norm.key_norm.scale"),
    (DOUBLE_2 + r"ff\.linear_in\.", r"double_blocks.\1.img_mlp.0."),
    (DOUBLE_2 + r"ff\.linear_out\.", r"double_blocks.\1.img_mlp.2."),
    (DOUBLE_2 + r"ff_context\.linear_in\.", r"double_blocks.\1.txt_mlp.0."),
    (DOUBLE_2 + r"ff_context\.linear_out\.", r"double_blocks.\1.txt_mlp.2."),
    (SINGLE_2 + r"to_qkv_mlp_proj\.", r"single_blocks.\1.linear1."),
    (SINGLE_2 + r"to_out\.", r"single_blocks.\1.linear2."),
    (SINGLE_2 + r"norm_q\.weight", r"single_blocks.\1.norm.query_norm.scale"),
    (SINGLE_2 + r"norm_k\.weight", r"single_blocks.\1.norm.key_norm.scale"),
]
Z_IMAGE = [
    (r"^all_x_embedder\.2-1\.", "x_embedder."), (r"^all_final_layer\.2-1\.", "final_layer."),
    (r"\.attention\.to_q\.", ".attention.qkv."), (r"\.attention\.to_out\.0\.", ".attention.out."),
    (r"\.attention\.norm_(q|k)\.", r".attention.\1_norm."),
]
KREA_2 = [
    (r"^img_in\.", "first."), (r"^time_embed\.linear_1\.", "tmlp.0."),
    (r"^time_embed\.linear_2\.", "tmlp.2."), (r"^time_mod_proj\.", "tproj.1."),
    (r"^txt_in\.norm\.weight", "txtmlp.0.scale"), (r"^txt_in\.linear_1\.", "txtmlp.1."),
    (r"^txt_in\.linear_2\.", "txtmlp.3."), (r"^text_fusion\.", "txtfusion."),
    (r"^transformer_blocks\.", "blocks."), (r"^final_layer\.linear\.", "last.linear."),
    (r"^final_layer\.norm\.weight", "last.norm.scale"),
    (r"^final_layer\.scale_shift_table", "last.modulation.lin")]
KREA_2_BLOCK = [
    (r"\.attn\.to_(q|k|v)\.", r".attn.w\1."), (r"\.attn\.to_out\.0\.", ".attn.wo."),
    (r"\.attn\.to_gate\.", ".attn.gate."), (r"\.ff\.", ".mlp."),
    (r"\.attn\.norm_(q|k)\.weight", r".attn.qknorm.\1norm.scale"),
    (r"\.norm1\.weight", ".prenorm.scale"), (r"\.norm2\.weight", ".postnorm.scale"),
    (r"\.scale_shift_table", ".mod.lin")]
FLUX_3 = [
    (r"^x_embedders\.", "emb_in."), (r"^context_embedder\.", "txt_in."),
    (r"^proj_out\.", "final_layer.image.linear."),
    (r"^norm_out\.linear\.", "final_layer.image.adaLN_modulation.1."),
    (r"^timestep_embedder\.linear_1\.", "time_in.in_layer."),
    (r"^timestep_embedder\.linear_2\.", "time_in.out_layer."),
    (r"^target_timestep_embedder\.linear_1\.", "ref_time_in.in_layer."),
    (r"^target_timestep_embedder\.linear_2\.", "ref_time_in.out_layer."),
    (r"^(\w+_stream_modulations\.\w+)\.linear\.", r"\1.lin."),
    (r"^mode_blocks\.", "content_mode_blocks."),
    (r"^single_transformer_blocks\.", "single_blocks.")]
FLUX_3_BLOCK = [
    (r"\.attn\.to_(q|k|v)\.", r".\1_proj."), (r"\.attn\.to_out\.0\.", ".attn_out."),
    (r"\.attn\.norm_q\.weight", ".norm.query_norm.scale"),
    (r"\.attn\.norm_k\.weight", ".norm.key_norm.scale"),
    (r"\.ff\.linear_(in|out)\.", r".mlp_\1.")]
Q_K_V = {".to_q.": (".to_k.", ".to_v."), ".add_q_proj.": (".add_k_proj.", ".add_v_proj.")}


def rename(tensors, rules):
    """The same tensors, renamed by the rules; a name without a rule stays."""
    left, out = dict(tensors), {}
    for name in sorted(tensors, key=lambda name: not any(q in name for q in Q_K_V)):  # q first
        if name not in left:
            continue
        parts = [left.pop(name)]
        for q, others in Q_K_V.items():
            if q in name:
                parts += [left.pop(name.replace(q, other)) for other in others]
        rule = next(((old, new) for old, new in rules if re.search(old, name)), None)
        out[re.sub(*rule, name) if rule else name] = torch.cat(parts) if parts[1:] else parts[0]
    return out


def convert_flux2(tensors):
    out = rename(tensors, FLUX_2)
    swap_halves(out, "final_layer.adaLN_modulation.1.weight")
    return out


def convert_zimage(tensors):
    """Adds the weight of a norm that has none, because published files hold one."""
    return rename(tensors, Z_IMAGE) | {"norm_final.weight": torch.ones(1)}


def convert_krea2(tensors):
    """A block's six vectors are one; layers stay apart."""
    out = {}
    for name, tensor in tensors.items():
        if name.startswith("transformer_blocks.") and name.endswith("scale_shift_table"):
            tensor = tensor.flatten()
        inner = name
        if "_blocks." in name:
            for rule in KREA_2_BLOCK:
                inner = re.sub(*rule, inner)
        for rule in KREA_2:
            inner = re.sub(*rule, inner)
        out[inner] = tensor
    return out


def convert_flux3(tensors):
    """Layers stay apart."""
    out = {}
    for name, tensor in tensors.items():
        for rule in FLUX_3 + (FLUX_3_BLOCK if "_blocks." in name else []):
            name = re.sub(*rule, name)
        out[name] = tensor
    swap_halves(out, "final_layer.image.adaLN_modulation.1.weight")
    return out


def convert_qwen21(tensors):
    """Fuses the two inputs of an MLP, the gate first."""
    return {name.replace("gate_layer", "gate_up"): torch.cat(
                [tensor, tensors[name.replace("gate_layer", "proj")]])
            if ".gate_layer." in name else tensor
            for name, tensor in tensors.items() if ".img_mlp.proj." not in name}


def convert_qwen_image(tensors):
    """Its names are diffusers'."""
    return dict(tensors)


def swap_halves(tensors, name):
    scale, shift = tensors[name].chunk(2)
    tensors[name] = torch.cat([shift, scale])


def convert(tensors):
    """The same tensors under the other names; all of them are used."""
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
        swap_halves(out, f"final_layer.adaLN_modulation.1.{kind}")
    assert not left, f"not converted: {sorted(left)}"
    return out


CONVERTERS = {"FluxTransformer2DModel": convert, "Flux2Transformer2DModel": convert_flux2,
              "ZImageTransformer2DModel": convert_zimage,
              "Krea2Transformer2DModel": convert_krea2,
              "Flux3Transformer2DModel": convert_flux3,
              "QwenImage21Transformer2DModel": convert_qwen21,
              "QwenImageTransformer2DModel": convert_qwen_image}


def converter_of(folder):
    return CONVERTERS[json.loads((folder / "config.json").read_text())["_class_name"]]


def write(folder, out, prefix=""):
    """The transformer in `folder` as the file `out`."""
    tensors = {}
    for path in folder.glob("diffusion_pytorch_model*.safetensors"):
        tensors |= load_file(path)
    save_file({prefix + n: t.contiguous() for n, t in converter_of(folder)(tensors).items()}, out)


WAN_LAYER = [(".norm1.", ".residual.0."), (".conv1.", ".residual.2."), (".norm2.", ".residual.3."),
             (".conv2.", ".residual.6."), (".conv_shortcut.", ".shortcut.")]
WAN_ENDS = [(".mid_block.resnets.0.", ".middle.0."), (".mid_block.attentions.0.", ".middle.1."),
            (".mid_block.resnets.1.", ".middle.2."), (".conv_in.", ".conv1."), (".norm_out.", ".head.0."),
            (".conv_out.", ".head.2."), ("encoder.down_blocks.", "encoder.downsamples.")]


def name_in_wan(name):
    """Wan 2.1's name of a tensor of its autoencoder, which has two blocks per level."""
    if name.startswith(("quant_conv", "post_quant_conv")):
        return name.replace("post_quant_conv", "conv2").replace("quant_conv", "conv1")
    if any(part in name for part in ("resnets", "down_blocks")):
        for ours, theirs in WAN_LAYER:
            name = name.replace(ours, theirs)
    for ours, theirs in WAN_ENDS:
        name = name.replace(ours, theirs)
    place = re.match(r"decoder\.up_blocks\.(\d+)\.(resnets|upsamplers)\.(\d+)", name)
    if not place:
        return name
    layer = 4 * int(place[1]) + (int(place[3]) if place[2] == "resnets" else 3)
    return f"decoder.upsamples.{layer}" + name[place.end():]


def write_wan_vae(folder, out):
    """The autoencoder in `folder` as the file `out`, of which diffusers' converter makes the same again."""
    tensors = load_file(folder / "diffusion_pytorch_model.safetensors")
    renamed = {name_in_wan(name): tensor for name, tensor in tensors.items()}
    back = convert_wan_vae_to_diffusers(dict(renamed))
    assert back.keys() == tensors.keys(), sorted(back.keys() ^ tensors.keys())
    assert all(torch.equal(back[name], tensor) for name, tensor in tensors.items())
    save_file(renamed, out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--prefix", default="")
    args = parser.parse_args()
    write(args.pipeline / "transformer", args.out, args.prefix)


if __name__ == "__main__":
    main()
