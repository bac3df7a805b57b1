"""From words and dictionaries to the options of a pipeline."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from . import _core
from ._core import InputError
from ._numbers import shown

MODELS = Path(__file__).resolve().parent / "share" / "braid" / "models"
DEGREES = {
    "tp": "tp",
    "ring": "ring",
    "ulysses": "ulysses",
    "cfg": "cfg",
    "cfg_parallel": "cfg",
    "dp": "dp",
    "pp": "pp",
}
MOST_BYTES = 1 << 63
Word = TypeVar("Word", bound=Enum)


def words_of(kind: type[Enum]) -> str:
    *most, last = [name.replace("_", "-") for name in kind.__members__]
    return ", ".join(most) + " or " + last


def word(kind: type[Word], name: str, value: object) -> Word:
    """A member of an enumeration: itself, or by name ("int8-dynamic")."""
    if isinstance(value, kind):
        return value
    found = kind.__members__.get(str(value).replace("-", "_"))
    if found is None:
        raise InputError(f"{name} should be {words_of(kind)}, it is {value!r}")
    return found


def dtype_of(value: object) -> _core.Dtype:
    """A name, one of numpy's types, or a torch.dtype, whose name ends with one."""
    if value is None:
        return _core.Dtype.auto
    name = value.__name__ if isinstance(value, type) else str(value).rpartition(".")[2]
    return value if isinstance(value, _core.Dtype) else word(_core.Dtype, "dtype", name)


def is_dtype(value: object) -> bool:
    """Whether it is a dtype, or the name of one: also one that is not computed in, such as torch.float64."""
    is_object = isinstance(value, type | np.dtype) or type(value).__name__ == "dtype"
    return is_object or str(value).rpartition(".")[2] in _core.Dtype.__members__


def device_name(device: object) -> str:
    """A name, an index of a GPU, or a torch.device."""
    return f"cuda:{device}" if isinstance(device, Integral) else str(device).strip()


def names_in(text: str) -> list[str]:
    """ "cuda:0-1" -> "cuda:0", "cuda:1". Braid refuses what is no range."""
    found = re.fullmatch(r"(.+:)(\d{1,3})-(\d{1,3})", text)
    return [f"{found[1]}{i}" for i in range(int(found[2]), int(found[3]) + 1)] or [text] if found else [text]


def devices_of(devices: object) -> list[str]:
    """One for each rank, or one for all."""
    if devices is None:
        return []
    if isinstance(devices, str):
        devices = devices.split(",")
    listed = devices if isinstance(devices, Sequence) else [devices]
    return [name for device in listed for name in names_in(device_name(device))]


def degrees_in(text: str) -> dict[str, int]:
    """ "tp=2,cfg=2", "tp2 cfg2", "ring 2 x tp 4" (as Braid prints them)."""
    pattern = r"\s*(?:x\s+|[,x]\s*)?([a-z]+(?:[_ -][a-z]+)?)\s*[=: ]?\s*(\d{1,18})"
    degrees: dict[str, int] = {}
    at = 0
    while at < len(text.rstrip()):
        found = re.compile(pattern).match(text, at)
        if not found or re.sub(r"[ -]", "_", found[1]) not in DEGREES:
            raise InputError(f"layout should be 'auto' or degrees such as 'tp=2,cfg=2', it is {text!r}")
        axis = DEGREES[re.sub(r"[ -]", "_", found[1])]
        if axis in degrees:
            raise InputError(f"layout should name each axis once, it names {axis} twice: {text!r}")
        degrees[axis] = int(found[2])
        at = found.end()
    return degrees


def by_axis(layout: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with the axes' own names for what has several."""
    fields = {DEGREES.get(key, key): value for key, value in layout.items()}
    if len(fields) < len(layout):
        raise InputError(f"layout should name each axis once, it has {', '.join(map(repr, layout))}")
    return fields


def set_fields(target: object, name: str, fields: Mapping[str, Any]) -> None:
    """Sets fields by name, those that are enumerations by word."""
    for key, value in fields.items():
        if key.startswith("_") or not hasattr(target, key):
            known = ", ".join(k for k in dir(target) if not k.startswith("_"))
            raise InputError(f"{name} has no {key!r}; it has {known}")
        now = getattr(target, key)
        if isinstance(value, Mapping):
            set_fields(now, f"{name}.{key}", value)
            continue
        value = word(type(now), f"{name}.{key}", value) if isinstance(now, Enum) else value
        try:
            setattr(target, key, value)
        except TypeError:
            raise TypeError(f"{name}.{key} cannot be {value!r}; it is {now!r} unless it is given") from None


def shares_in(text: str) -> dict[str, list[int]]:
    """ "tp=3:2,ring=1:1"."""
    shares: dict[str, list[int]] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*([a-z]+)\s*=\s*(\d{1,18}(?::\d{1,18})*)\s*", part)
        if not found or found[1] in shares:
            raise InputError(f"shares should be 'auto' or numbers for axes, such as 'tp=3:2,ring=1:1', it is {text!r}")
        shares[found[1]] = [int(share) for share in found[2].split(":")]
    return shares


def set_shares(layout: _core.Layout, shares: object) -> None:
    """ "auto" (by measured speed), "tp=3:2", or lists by axis."""
    if shares == "auto":
        layout.shares_fit = _core.Fit.auto
        return
    if not isinstance(shares, str | Mapping):
        raise TypeError(f"shares should be a string or a dictionary, it is {shares!r}")
    set_fields(layout.shares, "shares", shares_in(shares) if isinstance(shares, str) else shares)


def layout_of(layout: object, num_devices: int, shares: object = None) -> _core.Layout:
    if isinstance(layout, _core.Layout):
        if shares is not None:
            raise InputError("layout is a Layout, which has shares: set them there")
        return layout
    result = _core.Layout()
    if shares is not None:
        set_shares(result, shares)
    # Threads, unless a launcher started this process as one of several.
    result.ranks = _core.Ranks.processes
    if layout is None:
        layout = "auto" if num_devices > 1 else {}
    if layout == "auto":
        result.fit = _core.Fit.auto
        return result
    if not isinstance(layout, str | Mapping):
        raise TypeError(f"layout should be a string or a dictionary, it is {layout!r}")
    set_fields(result, "layout", degrees_in(layout) if isinstance(layout, str) else by_axis(layout))
    return result


def check_bytes(name: str, count: float, given: object) -> int:
    if count >= MOST_BYTES:
        raise InputError(f"{name} should be less than 2^63 bytes, it is {shown(given)}")
    return int(count)


def bytes_in(value: Any) -> float | None:
    """None for what is no number of bytes, a part of one included."""
    if isinstance(value, Real):
        count: Any = value
        return count if not isinstance(value, bool) and count >= 0 and count % 1 == 0 else None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", str(value), re.IGNORECASE)
    if not found or (not found[2] and float(found[1]) % 1 != 0):
        return None
    power = " KMGT".index(found[2].upper() or " ")
    return float(found[1]) * (1024 if found[3] else 1000) ** power  # type: ignore[no-any-return]


def bytes_of(name: str, value: object) -> int:
    """A whole number of bytes, or a string such as "6GB", "6GiB" or "1.5G"."""
    count = bytes_in(value)
    if count is None:
        raise InputError(f"{name} should be a whole number of bytes or a string such as '6GB', it is {shown(value)}")
    return check_bytes(name, count, value)


def memory_of(
    memory: object, host_memory: object, quantization: object, text_quantization: object, offload: object
) -> _core.Memory:
    if isinstance(memory, _core.Memory):
        if any(given is not None for given in (host_memory, quantization, text_quantization, offload)):
            raise InputError("memory is a Memory, which has host_memory, quantization and offload: set them there")
        return memory
    result = _core.Memory()
    result.fit = _core.Fit.auto
    budget = result.budget
    if isinstance(memory, Mapping):
        set_fields(result, "memory", memory)
    elif memory is not None:
        budget.device = bytes_of("memory", memory)
    if host_memory is not None:
        budget.host = bytes_of("host_memory", host_memory)
    if quantization == "auto":
        budget.may_quantize = True
    if text_quantization == "auto":
        budget.may_quantize_text = True
    if (budget.may_quantize or budget.may_quantize_text) and not (budget.device or budget.host):
        raise InputError(
            "quantization 'auto' needs a budget, since it takes 8 bits only if nothing else fits: give memory or host_memory, too"
        )
    if quantization not in (None, "auto"):
        result.quantize = word(_core.Quantize, "quantization", quantization)
    if text_quantization not in (None, "auto"):
        result.quantize_text = word(_core.Quantize, "text_quantization", text_quantization)
    set_offload(result.offload, offload)
    return result


def set_offload(target: _core.Offload, offload: object) -> None:
    """A mode for all parts, or fields by name."""
    if isinstance(offload, Mapping):
        set_fields(target, "offload", offload)
    elif offload is not None:
        mode = word(_core.OffloadMode, "offload", offload)
        target.transformer = target.text = target.vae = mode


def threshold_in(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"cache should have a number as its threshold, it is {text!r}") from None


def cache_of(cache: object) -> _core.CacheOptions:
    """ "first-block", "accumulated:0.2", or fields by name."""
    if isinstance(cache, _core.CacheOptions):
        return cache
    result = _core.CacheOptions()
    if isinstance(cache, Mapping):
        set_fields(result, "cache", cache)
    elif cache is not None:
        mode, _, threshold = str(cache).partition(":")
        result.mode = word(_core.CacheMode, "cache", mode)
        if threshold:
            result.threshold = threshold_in(threshold)
    return result


def path_of(name: str, path: object) -> str:
    """Empty if none is given."""
    try:
        return "" if path is None else os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} should be a path, it is {path!r}") from None


def with_revision(name: str, revision: str | None) -> str:
    """The engine's name of a model in Hugging Face's cache. What lies elsewhere has no revisions."""
    if not revision:
        return name
    if not name or os.path.exists(name):
        is_what = f"{name} is none" if name else "none is given"
        raise InputError(f"revision goes with a name in Hugging Face's cache, {is_what}: leave out revision={revision!r}")
    return f"{name}@{revision}"


def paths_of(name: str, paths: object) -> list[str]:
    if paths is None:
        return []
    is_one = isinstance(paths, str | bytes | os.PathLike) or not isinstance(paths, Iterable)
    return [path_of(name, path) for path in ([paths] if is_one else paths)]  # type: ignore[attr-defined]
