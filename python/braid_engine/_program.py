"""What the program knows, as data: it runs as a process of its own, and prints JSON."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._core import Error, InputError
from ._options import device_name, path_of

PROGRAM = Path(__file__).resolve().parent / "bin" / "braid"
BAD_INPUT = 2
REPEATED = {"lora", "controlnet", "reference", "text_encoder_file"}  # flags that may be given several times
LISTS = {"blocks", "sigmas", "base_sigmas", "quantize_skip"}  # that take several values, with commas between


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-")


def text_of(value: object) -> str:
    return os.fsdecode(value) if isinstance(value, bytes | os.PathLike) else str(value)


def flags_of_list(name: str, values: list[object]) -> list[str]:
    if name in REPEATED:
        return [word for value in values for word in (flag_of(name), text_of(value))]
    if name not in LISTS:
        raise InputError(f"{name} should be one value, it is {values!r}")
    return [flag_of(name), ",".join(map(text_of, values))]


def arguments_of(options: Mapping[str, object]) -> list[str]:
    """Keywords as flags: devices="4xrx-7800-xt", tp=2, shares={"tp": [3, 2]}, lora=["a.sft"], size=(1024, 768)."""
    arguments: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        flag = flag_of(name)
        if value is True:
            arguments.append(flag)
        elif name == "size" and isinstance(value, Sequence) and not isinstance(value, str):
            arguments += [flag, "x".join(str(side) for side in value)]
        elif name == "devices" and not isinstance(value, str) and isinstance(value, Sequence):
            arguments += [flag, ",".join(map(device_name, value))]
        elif name == "shares" and isinstance(value, Mapping):
            arguments += [flag, ",".join(f"{axis}={':'.join(map(str, of))}" for axis, of in value.items())]
        elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
            arguments += flags_of_list(name, list(value))
        else:
            arguments += [flag, text_of(value)]
    return arguments


def answer_of(
    command: str, options: Mapping[str, object], files: Sequence[str] = (), *, may_differ: bool = False
) -> dict[str, Any]:
    arguments = [*arguments_of(options), *files]
    line = [str(PROGRAM), command, "--json", *arguments]
    alone = {**os.environ, "BRAID_LAUNCHER": "none"}  # no rank, also where this process is one
    try:  # sentences may name files by bytes that are no UTF-8
        done = subprocess.run(line, capture_output=True, encoding="utf-8", errors="backslashreplace", check=False, env=alone)
    except ValueError:  # a zero byte, or half of a surrogate pair
        raise InputError(f"the arguments of {command} should be text, they are {arguments!r}") from None
    if done.returncode == 0 or (may_differ and done.returncode == 1 and done.stdout):
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer
    sentence = done.stderr.strip().removeprefix("braid: ") or f"braid {command} ended with {done.returncode}"
    raise (InputError if done.returncode == BAD_INPUT else Error)(sentence)


def plan(model: str | os.PathLike[str], devices: object, **options: object) -> dict[str, Any]:
    """Layouts for devices that need not be there, ranked by predicted time: `braid plan --json`.

    `options` are that command's flags: num_images=4, size=(1024, 768), shares={"tp": [3, 2]}, text_encoder="tp",
    quantize="int8".
    Where nothing fits, "would_fit" says what would. Raises InputError with Braid's sentence.
    """
    return answer_of("plan", {"model": model, "devices": devices, **options}, may_differ=True)


def verify(model: str | os.PathLike[str] | None = None, **options: object) -> dict[str, Any]:
    """Compares a layout with one rank, block by block: `braid verify --json`. "right" says whether they agree.

    `options` are that command's flags: tp=2, ring=2, synthetic="flux1-dev", double=1, single=1.
    Raises InputError with Braid's sentence.
    """
    return answer_of("verify", {"model": model, **options}, may_differ=True)


def info(what: str | os.PathLike[str] | None = None, **options: object) -> dict[str, Any]:
    """Parts, sizes and dtypes of a model, what a file holds, or how a picture was made: `braid info --json`.

    `what` is a folder or a name of a model, or a file; None: this machine. Raises InputError with Braid's sentence.
    """
    path = path_of("what", what)
    if os.path.isfile(path):
        return answer_of("info", options, [f"./{path}" if path.startswith("-") else path])
    return answer_of("info", {"model": None if what is None else path, **options})
