"""A LoRA of any spelling for a random pipeline, and the pipeline with its weights merged in float32."""
import make_adapters
from safetensors.torch import save_file

OF_CLASS = {"FluxTransformer2DModel": "flux", "Flux2Transformer2DModel": "flux2",
            "ZImageTransformer2DModel": "zimage"}


def write(model, lora, merged, spelling):
    """Write the LoRA for the pipeline in the folder `model`, and the pipeline with it merged to `merged`."""
    base = make_adapters.Base(model, model / "transformer", None)
    writer = make_adapters.files_of(OF_CLASS[base.config["_class_name"]], base)[spelling]
    save_file({name: t.contiguous() for name, t in writer.tensors.items()}, lora)
    merged.mkdir()
    for part in model.iterdir():
        if part.name != "transformer":
            (merged / part.name).symlink_to(part)
    base.changed(writer.changes).save_pretrained(merged / "transformer")
