"""A pipeline's directory as other versions of diffusers and transformers write it, with the same numbers.

SPELLINGS has a function for each way; all take the directory.
"""
import json

from safetensors.torch import load_file, save_file

SHARDS = 3


def parts(folder, *names):
    """Folders of these parts that there are; of a language model also if it is the only one's."""
    return [folder / name for name in names if (folder / name).is_dir()]


def rewrite(path, change):
    path.write_text(json.dumps(change(json.loads(path.read_text())), indent=2) + "\n")


def older_rope(config):
    """transformers 4's rotary fields of a language model, and its name of the dtype."""
    text = config.get("text_config", config)
    if "rope_parameters" in text:
        rope = text.pop("rope_parameters")
        text["rope_theta"] = rope.pop("rope_theta")
        text["rope_scaling"] = rope if "mrope_section" in rope else None
    for one in (config, text, config.get("vision_config", {})):
        if "dtype" in one:
            one["torch_dtype"] = one.pop("dtype")
    return config | {"transformers_version": "4.57.1"}


def older_text(folder):
    for part in parts(folder, "text_encoder"):
        rewrite(part / "config.json", older_rope)


def older_fields(config):
    """Of diffusers' classes: what later versions added, at its default, is not there."""
    added = {"zero_cond_t": False, "use_additional_t_cond": False, "use_layer3d_rope": False,
             "causal_condition": True, "flow_map": False, "input_channels": 3, "is_residual": False,
             "stochastic_sampling": False, "use_beta_sigmas": False, "use_exponential_sigmas": False,
             "use_karras_sigmas": False, "invert_sigmas": False, "shift_terminal": None,
             "time_shift_type": "exponential", "use_flow_sigmas": False}
    kept = {name: value for name, value in config.items() if name not in added or value != added[name]}
    if config.get("_class_name") == "QwenImageTransformer2DModel":
        kept |= {"guidance_embeds": False, "pooled_projection_dim": 768}
    return kept | {"_diffusers_version": "0.35.0.dev0"}


def older_parts(folder):
    for part in parts(folder, "transformer", "vae"):
        rewrite(part / "config.json", older_fields)
    for part in parts(folder, "scheduler"):
        rewrite(part / "scheduler_config.json", older_fields)


def split(path):
    """The file as several, with an index."""
    tensors = load_file(path)
    names, base = sorted(tensors), path.name.removesuffix(".safetensors")
    files, where = [names[i::SHARDS] for i in range(SHARDS)], {}
    for i, own in enumerate(files, 1):
        file = f"{base}-{i:05d}-of-{SHARDS:05d}.safetensors"
        save_file({name: tensors[name] for name in own}, path.with_name(file), {"format": "pt"})
        where |= {name: file for name in own}
    path.unlink()
    size = sum(tensor.nbytes for tensor in tensors.values())
    path.with_name(path.name + ".index.json").write_text(
        json.dumps({"metadata": {"total_size": size}, "weight_map": where}, indent=2) + "\n")


def shards(folder):
    for part in parts(folder, "transformer", "text_encoder"):
        for path in sorted(part.glob("*.safetensors")):
            split(path)


def two_files(part):
    """vocab.json, merges.txt and the added tokens in tokenizer_config.json instead of tokenizer.json."""
    path = part / "tokenizer.json"
    whole = json.loads(path.read_text())
    model = whole["model"]
    added = {token["id"]: token for token in whole["added_tokens"]}
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    merged = {pair.replace(" ", "") for pair in merges}  # a word that was added may be one of them
    vocabulary = {token: number for token, number in model["vocab"].items()
                  if number not in added or token in merged}
    (part / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (part / "merges.txt").write_text("#version: 0.2\n" + "".join(m + "\n" for m in merges), encoding="utf-8")
    rewrite(part / "tokenizer_config.json", lambda config: config | {"added_tokens_decoder": {
        str(number): {key: value for key, value in token.items() if key != "id"}
        for number, token in added.items()}})
    path.unlink()


def two_token_files(folder):
    """A processor's folder may link to the tokenizer's."""
    links = [link for link in (folder / "processor").glob("*") if link.is_symlink()]
    for part in parts(folder, "tokenizer", "processor"):
        if (part / "tokenizer.json").is_file() and not (part / "tokenizer.json").is_symlink():
            two_files(part)
    for link in links:
        link.unlink()
    if links:
        for path in (folder / "tokenizer").iterdir():
            (folder / "processor" / path.name).symlink_to(f"../tokenizer/{path.name}")


SPELLINGS = {"older text": older_text, "older parts": older_parts, "shards": shards,
             "two token files": two_token_files}


def apply(spellings, folder):
    for name in spellings:
        SPELLINGS[name](folder)
