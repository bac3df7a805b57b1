"""The nodes: what they are called, take and give. What they do is imported when they run."""

from .fields import AS_STORED, AUTO, Field
from .process import Refused, check_system

CATEGORY = "Braid"
MOST_SEED = 0xFFFFFFFFFFFFFFFF
MOST_PICTURES = 10  # of a request, for servers
OLDEST = "0.3.64"
CHOICES = {
    "weight_form": [AS_STORED, "int8", "int8-dynamic", "int8-v1", "fp8"],
    "offload": [AUTO, "none", "block", "leaf", "sequential"],
    "dtype": [AUTO, "bfloat16", "float16", "float32"],
}


def check_age():
    """Raises Refused if this ComfyUI lacks what the nodes build upon."""
    needed = (
        ("comfy.model_patcher", "ModelPatcher"), ("comfy.model_detection", "model_config_from_unet"),
        ("comfy.model_detection", "unet_prefix_from_state_dict"), ("comfy.model_detection", "convert_diffusers_mmdit"),
        ("comfy.patcher_extension", "WrapperExecutor"), ("comfy.model_management", "processing_interrupted"),
    )
    for module, name in needed:
        try:
            has = hasattr(__import__(module, fromlist=[name]), name)
        except ImportError:
            has = False
        if not has:
            raise Refused(f"this ComfyUI has no {module}.{name}: Braid's nodes were made for {OLDEST} to 0.8.0")


def check_choices(**given):
    """Raises Refused for a value that is none of its CHOICES: ComfyUI lets linked ones pass, and 0.3.64 all in the API of version 3."""
    for name, value in given.items():
        if value not in CHOICES[name]:
            raise Refused(f"{name} should be one of {', '.join(CHOICES[name])}, it is {value!r}")


class LoadModel:
    id = "BraidLoadModel"
    title = "Load Model (Braid)"
    description = "A model whose denoiser runs in Braid's ranks, on one or several devices. KSampler and LoRA loaders stay ComfyUI's."
    outputs = (("MODEL", "model"), ("STRING", "plan"))

    @staticmethod
    def fields():
        from .model_files import files  # noqa: PLC0415

        return [
            Field("file", "COMBO", "A file of diffusion_models or checkpoints: FLUX.1, FLUX.2, Z-Image or Qwen-Image", options=sorted(files())),
            Field("devices", "STRING", "One per rank: cuda:0,cuda:1. Empty: ComfyUI's own", ""),
            Field("split", "STRING", "auto, or degrees such as tp=2,ring=2", AUTO),
            Field("weight_form", "COMBO", "How dense layers are stored", AS_STORED, CHOICES["weight_form"]),
            Field("offload", "COMBO", "Where weights wait; auto: host memory if a GPU is too small", AUTO, CHOICES["offload"]),
            Field("dtype", "COMBO", "What is computed in; auto: the file's", AUTO, CHOICES["dtype"], is_optional=True),
            Field("components", "STRING", "A published model's name or a folder with configurations, if Braid does not know the file's shapes", "", is_optional=True),
            Field("threads", "INT", "CPU threads of all ranks; 0: one per core", 0, limits={"min": 0, "max": 1024}, is_optional=True),
        ]

    @staticmethod
    def run(file, devices, split, weight_form, offload, dtype="auto", components="", threads=0):
        check_system()  # before a file is looked for, which may lie elsewhere
        check_age()
        check_choices(weight_form=weight_form, offload=offload, dtype=dtype)
        from .load_model import load_model  # noqa: PLC0415

        return load_model(file, devices, split, weight_form, offload, dtype, components, threads)


class Generate:
    id = "BraidGenerate"
    title = "Generate (Braid server)"
    description = "Pictures from a running 'braid serve', with its own text encoders and autoencoder."
    outputs = (("IMAGE", "images"), ("MASK", "mask"))

    @staticmethod
    def fields():
        side = {"min": 0, "max": 16384, "step": 16}
        return [
            Field("server", "STRING", "Its address; a key stands in the environment variable BRAID_API_KEY", "http://127.0.0.1:8189"),
            Field("prompt", "STRING", "", "", limits={"multiline": True}),
            Field("width", "INT", "0: the model's", 1024, limits=side),
            Field("height", "INT", "0: the model's", 1024, limits=side),
            Field("steps", "INT", "0: the model's", 0, limits={"min": 0, "max": 10000}),
            Field("seed", "INT", "", 0, limits={"min": 0, "max": MOST_SEED}, is_seed=True),
            Field("batch", "INT", "Pictures; each has the next seed", 1, limits={"min": 1, "max": MOST_PICTURES}),
            Field("guidance", "FLOAT", "Negative: the model's", -1.0, limits={"min": -1.0, "max": 100.0, "step": 0.1}, is_optional=True),
            Field("negative_prompt", "STRING", "For models that take one", "", limits={"multiline": True}, is_optional=True),
            Field("model", "STRING", "One of the server's; empty: its first", "", is_optional=True),
            Field("lora", "STRING", "Names of the server's LoRAs, as in ink=0.8,hands", "", is_optional=True),
            Field("image", "IMAGE", "A picture to start from", is_optional=True),
            Field("strength", "FLOAT", "How much of it changes", 0.75, limits={"min": 0.0, "max": 1.0, "step": 0.01}, is_optional=True),
            Field("true_cfg", "FLOAT", "Scale of true guidance, by the negative prompt; 1: none", 1.0, limits={"min": 1.0, "max": 100.0, "step": 0.1}, is_optional=True),
            # Saved workflows have values by their order: what comes later stands at the end.
            Field("reference", "IMAGE", "What the model looks at; a batch is several", is_optional=True),
            Field("mask", "MASK", "What is redrawn of image, of its size", is_optional=True),
            Field("control_image", "IMAGE", "Edges or depths to follow; a batch is one for each ControlNet", is_optional=True),
            Field("layers", "INT", "For models that draw some; 0: the model's", 0, limits={"min": 0, "max": 64},
                  is_optional=True),
        ]

    @staticmethod
    def run(**given):
        from .generate import generate  # noqa: PLC0415

        return generate(**given)


NODES = (LoadModel, Generate)
