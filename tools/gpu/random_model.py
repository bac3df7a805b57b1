"""Write FLUX.1-dev with random weights, 33 GB in bfloat16: the model for a first picture on a machine
without a network.

usage: python random_model.py FOLDER [--tiny] [--device cuda]

The Python needs torch, diffusers, transformers and accelerate. Tokenizers and the scheduler are the
bundled model's. --tiny: a few small layers, to try it out.
"""
import argparse
import os
import shutil
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
from diffusers import AutoencoderKL, FluxTransformer2DModel
from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel

DEMO = Path(__file__).resolve().parents[2] / "models/demo"
SHARD = "4GB"
INDEX = "model_index.json"
MARK = ".random_model"  # a folder that this program wrote


def parts(is_tiny):
    """{folder: function that builds the module}"""
    def of(whole, tiny):
        return tiny if is_tiny else whole

    width = of(128, 16)
    return {
        "transformer": lambda: FluxTransformer2DModel(
            num_layers=of(19, 1), num_single_layers=of(38, 1), num_attention_heads=of(24, 2),
            attention_head_dim=width, axes_dims_rope=of((16, 56, 56), (4, 6, 6)), in_channels=64,
            joint_attention_dim=of(4096, 32), pooled_projection_dim=of(768, 32), guidance_embeds=True),
        "text_encoder": lambda: CLIPTextModel(CLIPTextConfig(
            vocab_size=49408, hidden_size=of(768, 32), intermediate_size=of(3072, 64),
            num_hidden_layers=of(12, 1), num_attention_heads=of(12, 2), projection_dim=of(768, 32),
            bos_token_id=0, pad_token_id=1, eos_token_id=2)),
        "text_encoder_2": lambda: T5EncoderModel(T5Config(
            vocab_size=32128, d_model=of(4096, 32), d_ff=of(10240, 64), num_layers=of(24, 1),
            d_kv=of(64, 8), num_heads=of(64, 2), feed_forward_proj="gated-gelu",
            tie_word_embeddings=False)),
        "vae": lambda: AutoencoderKL(
            block_out_channels=of((128, 256, 512, 512), (32, 32, 32, 32)), layers_per_block=of(2, 1),
            latent_channels=16, down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4, use_quant_conv=False,
            use_post_quant_conv=False, scaling_factor=0.3611, shift_factor=0.1159),
    }


def drawn(make, device):
    """Small normal numbers; norms are 1 and biases 0."""
    with torch.device("meta"):
        model = make()
    model = model.to(torch.bfloat16).to_empty(device=device).eval()
    generator = torch.Generator(device).manual_seed(0)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if tensor.dim() > 1:
                tensor.normal_(0, 0.02, generator=generator)
            else:
                tensor.fill_(0 if name.endswith("bias") else 1)
    return model


class NotOurs(Exception):
    pass


def clear(folder):
    """Removes what an earlier run wrote, whole or cut off."""
    if not folder.exists():
        return
    if any(folder.iterdir()) and not (folder / MARK).exists():
        raise NotOurs(f"{folder} is not empty, and no random model: give another folder")
    shutil.rmtree(folder)


def write(folder, modules, device):
    """The index comes last: a folder that has it is whole."""
    clear(folder)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    shutil.copytree(DEMO, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(
        "transformer", "text_encoder*", "vae", "generation_config.json", "README.md", INDEX))
    for name, make in modules.items():
        drawn(make, device).save_pretrained(folder / name, max_shard_size=SHARD)
        print(name, flush=True)
    shutil.copy2(DEMO / INDEX, folder / INDEX)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    try:
        write(args.folder, parts(args.tiny), args.device)
    except NotOurs as why:
        parser.error(str(why))


if __name__ == "__main__":
    main()
