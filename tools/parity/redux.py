"""FLUX.1 Redux with random weights, and diffusers' embeddings of pictures with it."""
from dataclasses import dataclass

import diffusers
import torch
from transformers import (
    SiglipImageProcessor,
    SiglipImageProcessorPil,
    SiglipVisionConfig,
    SiglipVisionModel,
)


@dataclass
class ReduxShape:
    width: int = 24
    layers: int = 2
    heads: int = 3
    ff: int = 40
    side: int = 28                  # of a picture, in pixels
    patch: int = 7


def encoder(s):
    return SiglipVisionModel(SiglipVisionConfig(
        hidden_size=s.width, intermediate_size=s.ff, num_hidden_layers=s.layers,
        num_attention_heads=s.heads, image_size=s.side, patch_size=s.patch))


def embedder(s, text_width):
    return diffusers.pipelines.flux.modeling_flux.ReduxImageEncoder(
        redux_dim=s.width, txt_in_features=text_width)


def processor(s):
    return SiglipImageProcessor(size={"height": s.side, "width": s.side})


def load(folder, pipe, dtype):
    """With Pillow's resizing. transformers 5 prefers torchvision's if installed, which differs by 1 of 255
    in places, and by more if one side grows and the other shrinks."""
    parts = {name: pipe.components[name] for name in (
        "text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2")}
    made = diffusers.FluxPriorReduxPipeline(
        image_encoder=SiglipVisionModel.from_pretrained(
            folder / "image_encoder", torch_dtype=dtype).eval(),
        feature_extractor=SiglipImageProcessorPil.from_pretrained(folder / "feature_extractor"),
        image_embedder=diffusers.pipelines.flux.modeling_flux.ReduxImageEncoder.from_pretrained(
            folder / "image_embedder", torch_dtype=dtype).eval(), **parts)
    made.set_progress_bar_config(disable=True)
    return made


def embeds(pipe, request, pictures):
    """The prompt followed by the pictures, as FluxPipeline's arguments, once per output picture. An empty
    prompt counts as none: without text encoders the reference uses zeros, of FLUX.1's widths whatever
    the model's are."""
    given = {"prompt": request.prompts[0], "prompt_2": request.prompt_2}
    if not request.prompts[0]:
        config, dtype = pipe.transformer.config, pipe.transformer.dtype
        count = len(pictures)
        given = {"prompt_embeds": torch.zeros(count, 512, config.joint_attention_dim, dtype=dtype),
                 "pooled_prompt_embeds": torch.zeros(count, config.pooled_projection_dim,
                                                     dtype=dtype)}
    scales = list(request.looked_scales or [1.0] * len(pictures))
    made = pipe.redux(image=pictures, prompt_embeds_scale=scales, **given)
    return {"prompt_embeds": made.prompt_embeds.repeat(request.num_images, 1, 1),
            "pooled_prompt_embeds": made.pooled_prompt_embeds.repeat(request.num_images, 1)}
