"""Check that every tensor of a pipeline can be seen in its part's output.

usage: python alive.py PIPELINE...

A comparison against diffusers finds a tensor that is skipped, swapped or misread only if the output
depends on it. Each tensor in turn is neutralised (norm weights 1, all else 0); its part's output must
change by more than THRESHOLD, far above the tolerance of any comparison.
"""
import sys
from pathlib import Path

import dump
import torch

THRESHOLD = 3e-3
# A bias on the keys adds the same to all scores of a query, which softmax cancels.
INVISIBLE = ("k_proj.bias", "attentions.0.to_k.bias")


def evaluations(pipe):
    """For each part, a function that runs it on fixed inputs and returns its results."""
    def normal(*shape):
        return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))

    config = pipe.transformer.config
    rows, columns, text = 3, 5, 7
    ids = torch.cartesian_prod(torch.arange(1), torch.arange(rows), torch.arange(columns)).float()
    flux = {"hidden_states": normal(2, rows * columns, config.in_channels), "img_ids": ids,
            "encoder_hidden_states": normal(2, text, config.joint_attention_dim),
            "pooled_projections": normal(2, config.pooled_projection_dim),
            "txt_ids": torch.zeros(text, 3), "timestep": torch.tensor([0.83, 0.21]),
            "guidance": torch.tensor([3.5, 2.0]) if config.guidance_embeds else None}
    clip_ids = pipe.tokenizer(["a red circle"], padding="max_length", return_tensors="pt").input_ids
    t5_ids = pipe.tokenizer_2(["a red circle on a blue background"], padding="max_length",
                              max_length=64, return_tensors="pt").input_ids
    latents = normal(1, pipe.vae.config.latent_channels, 6, 10)
    pixels = normal(1, 3, 48, 80).clamp(-1, 1)
    return {
        "transformer": lambda: [pipe.transformer(**flux).sample],
        "text_encoder": lambda: [pipe.text_encoder(clip_ids).pooler_output],
        "text_encoder_2": lambda: [pipe.text_encoder_2(t5_ids)[0]],
        "vae": lambda: [pipe.vae.decode(latents).sample,
                        pipe.vae.encode(pixels).latent_dist.parameters],
    }


@torch.no_grad()
def effects(pipe):
    """(part, tensor, relative change of a result without it), weakest first."""
    found = []
    for part, evaluate in evaluations(pipe).items():
        expected = evaluate()
        for name, tensor in getattr(pipe, part).named_parameters():
            if name.endswith(INVISIBLE):
                continue
            saved = tensor.clone()
            tensor.fill_(1 if tensor.dim() == 1 and name.endswith("weight") else 0)
            effect = max(map(dump.relative_error, evaluate(), expected))
            found.append((part, name, effect))
            tensor.copy_(saved)
    return sorted(found, key=lambda row: row[2])


def main():
    failed = False
    for pipeline in sys.argv[1:] or sys.exit(__doc__):
        rows = effects(dump.load(Path(pipeline)))
        dead = [row for row in rows if not row[2] > THRESHOLD]
        failed |= bool(dead)
        print(f"{pipeline}: {len(rows)} tensors, {len(dead)} without effect")
        for part, name, effect in dead or rows[:1]:
            print(f"  {effect:.1e} {part}/{name}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
