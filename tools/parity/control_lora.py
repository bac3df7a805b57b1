"""A control LoRA for a random FLUX.1 pipeline, in Black Forest Labs' spelling, and the resulting
pipeline. The weights are merged here, as diffusers' loader gets that wrong in places."""
import diffusers
import make_adapters
from safetensors.torch import save_file


def write(model, path):
    """Write the LoRA for the pipeline in the folder `model`; returns the merged transformer."""
    base = make_adapters.Base(model, model / "transformer", None)
    base.widen("x_embedder")
    writer = make_adapters.control(base, 4000)
    save_file({name: t.contiguous() for name, t in writer.tensors.items()}, path)
    return base.changed(writer.changes)


def pipeline(pipe, transformer):
    """`pipe`, a FluxPipeline, with the merged transformer in its dtype."""
    parts = {name: pipe.components[name] for name in (
        "scheduler", "vae", "text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2")}
    made = diffusers.FluxControlPipeline(
        **parts, transformer=transformer.to(pipe.transformer.dtype))
    made.set_progress_bar_config(disable=True)
    made.nets = []
    return made
