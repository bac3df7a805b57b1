"""LoRAs of a pipeline, by name, as diffusers keeps them."""

import itertools
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._core import InputError
from ._numbers import listed_if_many, number
from ._options import path_of, with_revision
from ._reports import warn


@dataclass
class Adapters:
    """Threads may change them while others draw: each sees them as they are before a change or after it."""

    files: dict[str, str] = field(default_factory=dict)
    scales: dict[str, float] = field(default_factory=dict)  # of the active ones
    weights: dict[str, float] = field(default_factory=dict)  # of all that were given one, as given last
    is_enabled: bool = True  # requests get none of the active ones otherwise
    lock: Any = field(default_factory=threading.RLock)

    def add(self, file: str, name: str | None) -> str:
        """Makes it the only active one, as diffusers does."""
        with self.lock:
            name = name or next(n for n in map("default_{}".format, itertools.count()) if n not in self.files)
            if name in self.files:
                raise InputError(f"there is already an adapter {name!r}: give another adapter_name")
            self.files[name] = file
            self.scales = {name: 1.0}
            return name

    def take_back(self, name: str, active: dict[str, float]) -> None:
        """What add() did; `active` were the active ones before."""
        with self.lock:
            del self.files[name]
            self.scales = active

    def remove(self, names: Sequence[str]) -> None:
        """Where no active one is left, the first name of those that remain becomes active, as peft has it."""
        names = list(dict.fromkeys(names))
        with self.lock:
            self.check(names)
            for name in names:
                del self.files[name]
                self.weights.pop(name, None)
                was_active = self.scales.pop(name, None) is not None
                if was_active and not self.scales and self.files:
                    first = min(self.files)
                    self.scales = {first: self.weights.get(first, 1.0)}
                    warn(f"the adapter {name!r} was the only active one: {first!r} is active now")

    def check(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.files:
                known = ", ".join(self.files) or "there is none"
                raise InputError(f"no adapter is called {name!r}: {known}")

    def activate(self, names: Sequence[str], weights: Any) -> None:
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"adapter_names should have each name once, it has {name!r} {names.count(name)} times")
        listed = listed_if_many(weights)
        if listed is None:
            listed = [1.0 if weights is None else weights] * len(names)
        if len(listed) != len(names):
            raise InputError(f"there are {len(names)} adapters, but {len(listed)} weights")
        for weight in listed:
            if isinstance(weight, Mapping):
                raise InputError("an adapter has one weight for all layers, a dictionary was given")
        scales = {n: 1.0 if w is None else number("an adapter's weight", w) for n, w in zip(names, listed, strict=True)}
        with self.lock:
            self.check(names)
            self.scales = scales
            self.weights |= scales

    def active(self, scale: float = 1.0) -> list[_core.Adapter]:
        with self.lock:
            given = self.scales if self.is_enabled else {}
            return [_core.Adapter(self.files[name], weight * scale) for name, weight in given.items()]


def names_of(adapter_names: Any) -> list[str]:
    """One name or several."""
    names = [adapter_names] if isinstance(adapter_names, str) else adapter_names
    listed = list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(name, str) for name in listed):
        raise TypeError(f"adapter_names should be a name or a list of names, it is {adapter_names!r}")
    return listed


def text_if_given(name: str, value: Any) -> str | None:
    if not isinstance(value, str | None):
        raise TypeError(f"{name} should be a string, it is {value!r}")
    return value


def adapter_path(source: Any, weight_name: str | None, subfolder: str | None = None, revision: str | None = None) -> str:
    """The file that diffusers' arguments name: of a folder, or of a repository in Hugging Face's cache."""
    if isinstance(source, Mapping):
        raise InputError("a LoRA should be a file (.safetensors), a dictionary of tensors was given: save it first")
    if source is None:
        raise TypeError("a LoRA should be a path, it is None")
    name = path_of("a LoRA", source)
    parts = {"subfolder": subfolder, "weight_name": weight_name}
    inside = [part for key, value in parts.items() if (part := path_of(key, value))]
    text_if_given("revision", revision)
    if os.path.exists(name):
        with_revision(name, revision)  # refuses one
        return os.path.abspath(_core.adapter_in(os.path.join(name, *inside)))  # also after os.chdir()
    repository, _, named_revision = name.partition("@")
    revision = revision or named_revision
    return str(_core.adapter_in("/".join([repository, *inside]) + (f"@{revision}" if revision else "")))
