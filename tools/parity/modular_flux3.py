"""FLUX.3's modular pipelines as dump.py runs the others.

They take one prompt per call; several are run one after another and stacked. A width of 0 asks for the
size that follows from the references.
"""
import json

import diffusers
import dump
import torch
import transformers
from diffusers import ClassifierFreeGuidance, FlowMatchEulerDiscreteScheduler
from diffusers.modular_pipelines.flux3.modular_blocks_flux3 import Flux3AutoBlocks
from diffusers.modular_pipelines.flux3.modular_blocks_flux3_distilled import Flux3DistilledAutoBlocks
from diffusers.modular_pipelines.flux3.prompt_upsampler import boxes_to_canvas
from torch.nn.utils.rnn import pad_sequence


class Processor:
    """What the text encoder's step asks of a Qwen3VLProcessor, which needs torchvision."""

    def __init__(self, folder):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.apply_chat_template = self.tokenizer.apply_chat_template


def is_modular(folder):
    """Whether `folder` is a FLUX.3 pipeline, with either kind of index."""
    index = folder / "modular_model_index.json"
    index = index if index.exists() else folder / "model_index.json"
    return "Flux3" in json.loads(index.read_text())["_class_name"]


class Pipeline:
    """The blocks without the prompt upsampler, which is another model."""

    def __init__(self, folder, dtype, parts=None):
        """`parts` replace those of the folder, by name."""
        dtype, parts = getattr(torch, dtype), dict(parts or {})
        if "transformer" not in parts:
            parts["transformer"] = diffusers.Flux3Transformer2DModel.from_pretrained(
                folder / "transformer", torch_dtype=dtype)
        if "text_encoder" not in parts:
            parts["text_encoder"] = transformers.Qwen3VLForConditionalGeneration.from_pretrained(
                folder / "text_encoder", dtype=dtype)
        self.is_distilled = parts["transformer"].config.flow_map
        blocks = (Flux3DistilledAutoBlocks if self.is_distilled else Flux3AutoBlocks)()
        blocks.sub_blocks.pop("prompt_upsampler")
        self.pipe = blocks.init_pipeline()
        self.pipe.update_components(
            tokenizer=Processor(folder / "tokenizer"),
            vae=diffusers.AutoencoderKLFlux2.from_pretrained(folder / "vae", torch_dtype=dtype), **parts)
        if (folder / "scheduler").exists():
            self.pipe.update_components(
                scheduler=FlowMatchEulerDiscreteScheduler.from_pretrained(folder / "scheduler"))
        self.pipe.set_progress_bar_config(disable=True)
        self.transformer, self.vae = parts["transformer"], self.pipe.vae


def laid_out(prompt, boxes):
    """The prompt and its layout, as the prompt upsampler hands them to the text encoder."""
    return f"{prompt} {json.dumps(boxes_to_canvas(list(boxes)), ensure_ascii=False)}" if boxes else prompt


def run_prompt(pipeline, request, prompt, noise, latents):
    kept, pipe = {}, pipeline.pipe

    def first_evaluation(module, args, options, output):
        if not kept:
            kept.update(latents_initial=options["hidden_states"], velocity_first=output[0],
                        prompt_embeds=options["encoder_hidden_states"])

    given = {} if pipeline.is_distilled else {"negative_prompt": request.negative_prompt}
    if request.width:
        given |= {"width": request.width, "height": request.height}
    if request.references:
        pictures = dump.reference_pictures(request)
        given["image"] = pictures[0] if len(pictures) == 1 else pictures
    if latents is not None:
        given["latents"] = latents
    if not pipeline.is_distilled:
        pipe.update_components(guider=ClassifierFreeGuidance(guidance_scale=request.true_cfg))
    hook = pipe.transformer.register_forward_hook(first_evaluation, with_kwargs=True)
    dump.seeded_steps(pipe, noise)
    state = pipe(prompt=laid_out(prompt, request.boxes), num_inference_steps=request.steps, generator=noise,
                 num_images_per_prompt=request.num_images,
                 max_sequence_length=request.max_sequence_length, **given)
    hook.remove()
    kept["latents_final"] = state.get("latents").flatten(2).transpose(1, 2)
    return kept, state.get("images")


def run(pipeline, request, latents=None):
    """As dump.run()."""
    dump.set_tiling(pipeline, request.vae_tiling)
    noise, count, every, pictures = dump.generators(request), request.num_images, [], []
    rows = latents
    if latents is not None:
        side = 16
        rows = latents.transpose(1, 2).unflatten(
            2, (request.height // side, request.width // side))
    for i, prompt in enumerate(request.prompts):
        mine = slice(i * count, (i + 1) * count)
        kept, drawn = run_prompt(pipeline, request, prompt, noise[mine],
                                 None if rows is None else rows[mine])
        every.append(kept)
        pictures += drawn
    tensors = {}
    for name in every[0]:
        runs = [row for kept in every for row in kept[name]]
        tensors[name] = pad_sequence(runs, batch_first=True).float().contiguous()
    scheduler = pipeline.pipe.scheduler
    tensors |= {"sigmas": scheduler.sigmas, "timesteps": scheduler.timesteps}
    return tensors | {"image": dump.stacked(pictures)}
