"""How the files of a drawn case hold its model: codings, LoRAs, single files, and what other versions of
the packages write (respelt.py). unusual_families.py draws the model.
"""
from focused_cases import TOKENS
from respelt import SPELLINGS

CODINGS = ("gguf", "gguf", "float8", "block float8", "comfy", "comfy note", "comfy float8",
           "old comfy float8", "plain float8")
# What a single file's shapes do not say; and the fields of a transformer for which make_adapters.py has
# layers enough: at least so many.
SINGLE = {"krea2": {"axes": (32, 48, 48), "theta": 1000.0, "eps": 1e-5},
          "qwen21": {"axes": (16, 56, 56), "eps": 1e-6, "config": {}},
          "flux3": {"axes": (32, 32, 32, 32), "theta": 10000, "eps": 1e-6},
          "qwen-image": {"axes": (16, 56, 56), "zero_time": False}}
ADAPTED = {"krea2": {"layers": 2, "layerwise_blocks": 1, "refiner_blocks": 2},
           "qwen21": {"layers": 3}, "flux3": {"layers": 2, "single_layers": 2}, "qwen-image": {"layers": 2}}
LORAS = {"krea2": ("comfyui", "base-model", "diffusers", "bare", "kohya", "lycoris-dora"),
         "qwen21": ("diffusers", "comfyui", "bare", "kohya", "mixed", "joined", "lycoris-dora", "lokr"),
         "flux3": ("comfyui", "base-model", "diffusers", "bare", "kohya", "lycoris-dora"),
         "qwen-image": ("diffusers", "comfyui", "bare", "kohya", "default", "joined", "lycoris-dora", "lokr")}
NOT_BESIDE = ("lycoris-dora", "lokr")


def tokenizer(draw):
    """Entries of a shape's configs."""
    return {"added": tuple(draw.sample(TOKENS, draw.choice([0, 0, 0, 1, 4])))}


def fit_single_file(shape, name):
    for field, value in SINGLE[name].items():
        setattr(shape.transformer, field, value)
    shape.transformer.heads = min(shape.transformer.heads, 3)
    if name == "krea2":
        shape.transformer.kv_heads = shape.transformer.heads


def has_wan_names(shape):
    """Whether the autoencoder's names can be Wan's, which has two blocks per level, and whether
    diffusers' converter, which has the places of its shortcuts fixed, can read them."""
    mult = shape.vae_mult
    return (shape.vae_layers == 2 and len(mult) == 4 and mult[3] != 2 * mult[2]
            and mult[2] == 2 * mult[1] and mult[1] == 2 * mult[0])


def coded(draw, shape, name):
    """Fields of a case whose transformer is in a coded file: under its authors' names, or diffusers'."""
    kind = draw.choice(CODINGS)
    return {"coded": kind, "coding_seed": str(shape.seed),
            "single_file": draw.choice(["", "model.diffusion_model.", None])}


def adapted(draw, shape, name, is_coded):
    """Fields of a case with a LoRA, and Braid's flags."""
    for field, least in ADAPTED[name].items():
        setattr(shape.transformer, field, max(getattr(shape.transformer, field), least))
    lora = draw.choice([one for one in LORAS[name] if not is_coded or one not in NOT_BESIDE])
    is_beside = lora not in NOT_BESIDE and draw.random() < 0.5
    return {"lora": lora}, ("--lora-mode", "beside") if is_beside else ()


def stored(draw, name, shape, asked):
    """Fields of a case, and Braid's flags for them; `shape` may change to fit."""
    fields, flags = {}, ()
    way = draw.choice(["plain", "plain", "plain", "int8", "single file", "coded", "coded", "lora", "lora",
                       "lora", "coded, lora"])
    if way == "int8" and not asked.followed:  # whose nets would be rounded, too
        return {"int8": "base"}, ("--quantize", "int8")
    if way == "single file":
        fit_single_file(shape, name)
        fields["single_file"] = draw.choice(["", "model.diffusion_model."])
    if way.startswith("coded"):
        fields |= coded(draw, shape, name)
    if way.endswith("lora"):
        more, flags = adapted(draw, shape, name, way.startswith("coded"))
        fields |= more
    if way == "plain":
        shape.dtype = draw.choice(["float32", "float32", "bfloat16", "float16"])
        if name in ("krea2", "qwen-image") and has_wan_names(shape) and draw.random() < 0.5:
            fields["wan_vae"] = True
    spellings = [one for one in SPELLINGS if way == "plain" or one != "shards"]
    chosen = tuple(one for one in spellings if draw.random() < 0.35)
    return fields | ({"respelt": chosen} if chosen else {}), flags
