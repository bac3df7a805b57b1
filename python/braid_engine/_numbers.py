"""Numbers that are given as arguments: what does not fit is refused by the argument's name."""

import contextlib
import numbers
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ._core import InputError

INT_BITS = 32  # of the engine's whole numbers


def shown(value: object) -> str:
    """repr(), which refuses ints of some thousand digits."""
    try:
        return repr(value)
    except ValueError:
        return "one of thousands of digits"


def listed_if_many(values: Any) -> list[Any] | None:
    """The items of a list, or of an array or a tensor with dimensions; None for what is one value."""
    is_array = getattr(values, "ndim", 0) > 0
    is_many = is_array or (isinstance(values, Sequence) and not isinstance(values, str | bytes))
    return list(values) if is_many else None


def whole(name: str, value: Any) -> int:
    """An int, also of a float such as 64.0."""
    try:
        is_whole = isinstance(value, numbers.Real) and float(value).is_integer()
        found = operator.index(int(value) if is_whole else value)
    except TypeError:
        raise TypeError(f"{name} should be a whole number, it is {value!r}") from None
    except OverflowError:  # no float holds it
        found = 1 << INT_BITS
    if not -(1 << (INT_BITS - 1)) <= found < 1 << (INT_BITS - 1):
        raise InputError(f"{name} should be a whole number of {INT_BITS} bits, it is {shown(value)}")
    return found


def whole_if_given(name: str, value: Any) -> int | None:
    return None if value is None else whole(name, value)


def number(name: str, value: Any) -> float:
    """A float, also of an array or a tensor that holds one number."""
    if not isinstance(value, str | bytes | np.complexfloating):
        with contextlib.suppress(TypeError, ValueError, OverflowError, RuntimeError):
            return float(value)
    raise TypeError(f"{name} should be a number, it is {shown(value)}")


def number_if_given(name: str, value: Any) -> float | None:
    return None if value is None else number(name, value)


def flag_if_given(name: str, value: Any) -> bool | None:
    """A bool, also of 0 and 1; of texts such as "off", bool() would make True."""
    if value is None:
        return None
    if not isinstance(value, bool | np.bool_ | numbers.Integral) or value not in (0, 1):
        raise TypeError(f"{name} should be True or False, it is {shown(value)}")
    return bool(value)


def numbers_in(name: str, values: Any) -> list[float]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} should be a list of numbers, it is {values!r}")
    return [number(f"each of {name}", value) for value in values]
