"""Each part of FLUX.1's pipeline alone: its inputs and outputs."""
import dump
import torch

PROMPTS = ("a small red circle on a blue background", "Two stars: café, 50% über all")


def knows(pipe):
    return type(pipe).__name__ == "FluxPipeline"


def normal(seed, *shape):
    """Normal values that are exact in bfloat16: both precisions start from the same numbers."""
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
    """The parts' inputs by name; the autoencoder's tiles do not divide these sizes."""
    flux = {"transformer." + n: t for n, t in flux_inputs(pipe.transformer.config).items()}
    return tokens(pipe, request) | flux | {
        "vae.latents": normal(4, 1, pipe.vae.config.latent_channels, 4, 7),
        "vae.pixels": normal(5, 1, 3, 32, 56).clamp(-1, 1)}


@torch.no_grad()
def outputs(pipe, given):
    """Each part's outputs for `given`, in the dtype of the pipeline."""
    dtype = pipe.transformer.dtype
    flux = {n: given["transformer." + n] for n in flux_inputs(pipe.transformer.config)}
    flux = {n: t.to(dtype) if "ids" not in n else t for n, t in flux.items()}
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
