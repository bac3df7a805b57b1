"""Which files a part of a diffusers pipeline was loaded from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
from safetensors import safe_open

from ._core import InputError

INDEXES = ("model_index.json", "modular_model_index.json")
GIVE_MODEL = "give accelerate() model=, the folder or the name of a model that has it"


def is_model(folder: Path) -> bool:
    return any((folder / index).is_file() for index in INDEXES)


def parts_of(folder: Path, kind: str) -> list[str]:
    """The folder's parts of a class."""
    configs = sorted(folder.glob("*/config.json"))
    return [file.parent.name for file in configs if json.loads(file.read_text("utf-8")).get("_class_name") == kind]


def source_of(pipe: Any, part: str, warning: Callable[[str], Any]) -> str:
    """The model whose `part` the pipeline's was loaded as. What replaced it need not be the pipeline's own.

    Raises InputError if that is not known, or if the part no longer has the weights of those files: they were changed in
    memory, or come from a single file, for which diffusers keeps the name of what it was trained from.
    """
    model = claimed_source_of(pipe, part, warning)
    if name := changed_tensor(getattr(pipe, part), files_of(model, part)):
        raise InputError(f"the {part} has other weights than {model}, as {name!r} shows: save it and {GIVE_MODEL}")
    return model


def files_of(model: str, part: str) -> list[Path]:
    """The part's files under diffusers' names; empty if there are none."""
    folder = Path(model)
    if not folder.exists():
        name, _, revision = model.partition("@")
        try:
            folder = Path(huggingface_hub.snapshot_download(name, revision=revision or None, local_files_only=True))
        except (OSError, ValueError):
            return []  # Braid says what is missing
    stem = folder / part / "diffusion_pytorch_model.safetensors"
    index = stem.with_name(stem.name + ".index.json")
    if not index.is_file():
        return [stem] if stem.is_file() else []
    return [stem.with_name(name) for name in sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))]


def changed_tensor(module: Any, files: list[Path]) -> str | None:
    """The name of a tensor whose first row is not that of the files, in the coarser of both dtypes."""
    own = module.state_dict()
    for path in files:
        with safe_open(path, "pt") as file:
            for name in sorted(own.keys() & file.keys()):
                tensor, stored = own[name], file.get_slice(name)
                if type(tensor) is not torch.Tensor or tensor.is_meta or list(tensor.shape) != stored.get_shape():
                    continue  # its numbers are elsewhere, or in another form
                if tensor.ndim == 0 or tensor.element_size() < 2 or not tensor.is_floating_point():
                    continue
                want, got = stored[:1], tensor[:1].detach().cpu()
                if not want.is_floating_point() or want.element_size() < 2:
                    continue
                coarse = max(want.dtype, got.dtype, key=lambda dtype: torch.finfo(dtype).eps)
                want, got = want.to(coarse).float(), got.to(coarse).float()
                if not torch.allclose(got, want, rtol=2 * torch.finfo(coarse).eps, atol=1e-6, equal_nan=True):
                    return str(name)
    return None


def claimed_source_of(pipe: Any, part: str, warning: Callable[[str], Any]) -> str:
    """The model that diffusers says the part came from. Raises InputError if it does not say."""
    if not (getattr(pipe.config, "_name_or_path", "") or getattr(pipe, "_pretrained_model_name_or_path", "")):
        raise InputError(f"where the pipeline's files are is not known, and so its {part}: {GIVE_MODEL}")
    original = getattr(pipe, part)
    name = str(getattr(original.config, "_name_or_path", None) or "")
    if not name:
        raise InputError(f"the {part} should come from files, it was made without: save it and {GIVE_MODEL}")
    own = Path(name)
    if own.name == part and is_model(own.parent):
        return str(own.parent)
    if own.name == part and not own.is_absolute() and not own.exists():
        raise InputError(f"the {part} was loaded from {name!r}, which is a relative path and not in {Path.cwd()}: {GIVE_MODEL}")
    # Loaded as a subfolder. Only what loaded it knows which one, unless there is one of this class.
    if is_model(own) and parts_of(own, type(original).__name__) == [part]:
        return name
    loaded, subfolder, _, revision = (str(getattr(original, "_diffusers_load_id", "")).split("|") + [""] * 4)[:4]
    if (loaded, subfolder) == (name, part) and not own.exists():
        return name if revision in ("", "null") else f"{name}@{revision}"
    if not own.exists() and name.count("/") == 1:  # by its own name: only what loaded it knows the revision
        warning(f"the {part} was loaded from {name}, whose main revision is read: give model={name}@REVISION for another")
        return name
    raise InputError(f"the {part} was loaded from {name!r}, which does not say what else belongs to it: {GIVE_MODEL}")
