"""Files of ComfyUI's folders that Load Model (Braid) offers."""

import os

import folder_paths

from .process import Refused

FOLDERS = ("diffusion_models", "checkpoints")
SUFFIXES = (".safetensors", ".sft", ".gguf")


def files_in(folder):
    """Paths by name, as ComfyUI lists them: by endings in any case, the first of equal names."""
    found = {}
    for place in folder_paths.get_folder_paths(folder):
        for path, _, names in os.walk(place, followlinks=True):
            for name in names:
                if name.lower().endswith(SUFFIXES):
                    full = os.path.join(path, name)
                    found.setdefault(os.path.relpath(full, place), full)
    return found


def files():
    """Paths by the name that the node offers: below its folder, and with the folder where an earlier one has that name."""
    found = {}
    for folder in FOLDERS:
        for name, path in files_in(folder).items():
            first = found.setdefault(name, path)
            if os.path.realpath(first) != os.path.realpath(path):
                found.setdefault(f"{folder}/{name}", path)
    return found


def path_of(name):
    """The path of a name that files() offers. Raises Refused if it is gone."""
    found = files().get(name)
    if found is None:
        raise Refused(f"there is no {name} in ComfyUI's folders {' and '.join(FOLDERS)}")
    return found
