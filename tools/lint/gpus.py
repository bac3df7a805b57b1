"""A build has kernels for every GPU that Braid has a preset for, and for those that others claim to be.

The lists are CMakeLists.txt's; a preset names architectures, and the launcher has GPUs without libraries of
ROCm's claim the version of one that has some.
"""

import re

BUILD = "CMakeLists.txt"
PRESETS = "src/pipeline/memory/presets.cc"
CLAIMS = "src/app/machine/environment.cc"

_LIST = re.compile(r"set\(CMAKE_(CUDA|HIP)_ARCHITECTURES\s+([^()]*?)\s+CACHE\b")
_NAMED = re.compile(r'"(gfx[0-9a-f]+|sm_\d+)"')
_VERSION = re.compile(r'"(\d+)\.(\d+)\.(\d+)"')


def _built(text):
    """The entries for NVIDIA's GPUs, and for AMD's."""
    lists = {language: entries.split() for language, entries in _LIST.findall(text)}
    return lists.get("CUDA", []), lists.get("HIP", [])


def _runs_on(device, entry):
    """As src/ops/gpu/architectures.cc has it: code runs on its generation, PTX on all later devices."""
    number, _, kind = entry.partition("-")
    same = device // 10 == int(number) // 10
    return int(number) <= device and (same or kind != "real")


def check(sources, root):
    build = root / BUILD
    if not build.exists():
        return
    nvidia, amd = _built(build.read_text(encoding="utf-8"))
    for source in sources:
        if source.path not in (PRESETS, CLAIMS):
            continue
        for number, line in enumerate(source.lines, 1):
            named = _NAMED.findall(line) if source.path == PRESETS else []
            named += [f"gfx{int(a)}{int(b):x}{int(c):x}" for a, b, c in _VERSION.findall(line)]
            for gpu in named:
                is_nvidia = gpu.startswith("sm_")
                if is_nvidia and any(_runs_on(int(gpu[3:]), entry) for entry in nvidia):
                    continue
                if gpu not in amd:
                    yield source.path, number, f"{BUILD} compiles no kernels for {gpu}"
