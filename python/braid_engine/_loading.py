"""Loads the extension module: sets what LibTorch's threads need first, and sees to one LibTorch per process."""

import atexit
import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
import warnings
from collections.abc import Sequence
from pathlib import Path

from . import _start
from ._build import GPU, LIBTORCH, LIBTORCH_VERSION

LIBRARY = "libtorch_cpu.so"
OPENMP = "libgomp.so.1"
SPINNING = (
    "{loaded} was loaded before braid_engine, so threads that wait for each other spin instead of sleeping: on cores "
    "shared with other work a picture took ten times as long. Import braid_engine first, or set OMP_WAIT_POLICY=passive."
)
REBUILD = "install braid_engine again in this environment (pip install ./python)"


def loaded_file(name: str) -> Path | None:
    """The file of a library that this process has loaded."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if path and Path(path).name == name:
                return Path("/" + path)
    return None


def torch_of_environment() -> Path | None:
    """The folder of the torch that `import torch` would import, or has imported."""
    try:
        spec = importlib.util.find_spec("torch")
    except ValueError:  # a stand-in for the module, as of tests
        spec = None
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places and (Path(places[0]) / "lib" / LIBRARY).exists() else None


def version_of(folder: Path) -> str:
    """Of a torch package, without importing it; empty for a LibTorch without Python's part."""
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = [line for line in text.splitlines() if line.startswith("__version__")]
    return found[0].split("'")[1].partition("+")[0] if found and "'" in found[0] else ""


def same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def chosen_libtorch(built_with: Path, environments: Path | None) -> Path:
    """The LibTorch to load: that of the environment's torch, if it has the version that this module was compiled
    with, so that both can be used together. Raises ImportError if there is none of that version."""
    found = version_of(environments) if environments else ""
    if environments and found == LIBTORCH_VERSION:
        return environments
    if (built_with / "lib" / LIBRARY).exists() and version_of(built_with) in ("", LIBTORCH_VERSION):
        return built_with
    here = f"this environment has torch {found}" if found else f"it is not in {built_with} any more"
    raise ImportError(f"braid_engine was compiled with LibTorch {LIBTORCH_VERSION}, and {here}: {REBUILD}")


def check_loaded(ours: Path) -> None:
    loaded = loaded_file(LIBRARY)
    if loaded and not same_file(loaded, ours / "lib" / LIBRARY):
        raise ImportError(
            f"this process has already loaded {loaded}, and braid_engine needs the LibTorch {LIBTORCH_VERSION} in {ours}: "
            f"two copies in one process would mix; {REBUILD}, or import only one of them"
        )


class Refusing(importlib.abc.Loader):
    """Of a module that is there, as find_spec() says, and cannot be imported."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence

    def exec_module(self, module: types.ModuleType) -> None:
        raise ImportError(self.sentence)


class OneTorch(importlib.abc.MetaPathFinder):
    """Refuses to import a torch with another LibTorch than the one that is loaded."""

    def __init__(self, ours: Path) -> None:
        self.ours = ours

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or not spec.submodule_search_locations:
            return None
        library = Path(spec.submodule_search_locations[0]) / "lib" / LIBRARY
        if not library.exists() or same_file(library, self.ours / "lib" / LIBRARY):
            return None
        spec.loader = Refusing(
            f"braid_engine has loaded the LibTorch in {self.ours}, so torch in {library.parent.parent} cannot be "
            f"imported: two copies in one process would mix; {REBUILD}"
        )
        return spec


def set_environment() -> None:
    is_late = loaded_file(OPENMP) is not None
    asked = os.environ.get("OMP_WAIT_POLICY", os.environ.get("GOMP_SPINCOUNT"))
    os.environ.update(_start.set_environment())
    if is_late and asked is None:
        loaded = "torch" if "torch" in sys.modules else "a library with OpenMP"
        warnings.warn(SPINNING.format(loaded=loaded), RuntimeWarning, stacklevel=2)


def load() -> None:
    ours = chosen_libtorch(Path(LIBTORCH), torch_of_environment())
    check_loaded(ours)
    set_environment()
    # By file: what needs a library of this name afterwards, the extension or torch, gets this one.
    for name in (LIBRARY, f"libtorch_{GPU}.so") if GPU else (LIBRARY,):
        ctypes.CDLL(str(ours / "lib" / name))
    from . import _core  # noqa: PLC0415

    atexit.register(_core.end_calls)  # Python does not wait for daemon threads
    sys.meta_path.insert(0, OneTorch(ours))


load()
