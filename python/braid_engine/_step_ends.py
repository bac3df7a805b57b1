"""What happens after each step of a call: diffusers' callback, and its way to interrupt the steps that follow."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from . import _core
from ._core import InputError
from ._images import latents_array, tensor_of


class StepEnds:
    """Of one call. `pipe._interrupt` interrupts the call whose callback sets it, no other that waits meanwhile."""

    def __init__(self, pipe: Any, callback: Callable[[Any, int, float, dict[str, Any]], Any], inputs: Collection[str]) -> None:
        self.pipe, self.callback, self.inputs = pipe, callback, inputs
        self.last: int | None = None  # the step that was interrupted: pictures drawn later also stop there
        self.kept: Any = None  # latents after it

    def __call__(self, end: _core.StepEnd) -> None:
        if self.last is not None and end.step > self.last:
            end.latents = self.kept  # the engine takes all steps: those that follow are undone
            return
        if self.last is None and end.step == 1:
            self.pipe._interrupt = False  # calls run one at a time, from their first step on this one does
        latents = tensor_of(end.latents) if self.inputs else None
        changed = self.callback(self.pipe, end.step - 1, end.timestep, {"latents": latents} if self.inputs else {})
        # As diffusers: what is not returned is the same tensor, which the callback may have changed in place.
        latents = changed.get("latents", latents) if isinstance(changed, Mapping) else latents
        if latents is not None:
            end.latents = latents_array(latents)
        if self.last is None and self.pipe._interrupt:
            self.last = end.step
        if self.last == end.step:
            self.kept = end.latents


def check_callable(name: str, callback: Any) -> None:
    if callback is not None and not callable(callback):
        raise TypeError(f"{name} should be a function, it is {callback!r}")
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(getattr(callback, "__call__", None)):
        raise TypeError(f"{name} should be a function, it is a coroutine's, which nothing would await: {callback!r}")


def step_ends_of(pipe: Any, callback: Any, inputs: Any) -> StepEnds | None:
    if not isinstance(inputs, Collection) or isinstance(inputs, str | bytes):
        raise TypeError(f"callback_on_step_end_tensor_inputs should be ['latents'] or [], it is {inputs!r}")
    for name in inputs:
        if name != "latents":
            raise InputError(f"callback_on_step_end_tensor_inputs should be ['latents'] or [], it has {name!r}")
    check_callable("callback_on_step_end", callback)
    return None if callback is None else StepEnds(pipe, callback, inputs)
