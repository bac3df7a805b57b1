"""What calls report: warnings, and which picture a report is about."""

import sys
import warnings
from collections.abc import Callable
from typing import Any


def warn(sentence: str) -> None:
    """At the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, UserWarning, stacklevel=level)


def counted_from(first: int, name: str, callback: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """`callback` with reports whose `name` counts the pictures of a call, of which this part begins with the first-th."""
    if callback is None or first == 0:
        return callback

    def told(report: Any) -> Any:
        setattr(report, name, getattr(report, name) + first)
        return callback(report)

    return told
