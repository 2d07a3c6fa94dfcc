"""Checks of single arguments; each error says what was given and what would be right."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def at_least(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r:.60} must be a whole number of at least {least}")
    return int(value)


def not_negative(name: str, value: Any) -> float:
    if not _is_finite(value) or value < 0:
        raise ValueError(f"{name}={value!r:.60} must be a finite number that is not negative")
    return float(value)


def positive(name: str, value: Any) -> float:
    if not _is_finite(value) or value <= 0:
        raise ValueError(f"{name}={value!r:.60} must be a positive finite number")
    return float(value)


def finite(name: str, value: Any) -> float:
    if not _is_finite(value):
        raise ValueError(f"{name}={value!r:.60} must be a finite number")
    return float(value)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name}={value!r:.60} must be text that is not empty")
    return value


def texts(name: str, value: Any) -> list[str]:
    """A list of names."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        remedy = f", if only of one: [{value!r:.60}]" if isinstance(value, str) else ""
        raise ValueError(f"{name}={value!r:.60} must be a list of names{remedy}")
    return [text(f"a name in {name}", one) for one in value]


def file_name(value: Any) -> str:
    """The name of a file, as text."""
    if not isinstance(value, str | bytes | os.PathLike) or not (name := os.fsdecode(value)) or "\0" in name:
        raise ValueError(f"{value!r:.60} is not the name of a file")
    return name


def functions(name: str, value: Any) -> list[Any]:
    """A list of functions, empty for None."""
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Iterable) or not all(map(callable, found := list(value))):
        raise ValueError(f"{name}={value!r:.60} must be a list of functions, if only of one: [f]")
    return found


def one_of(name: str, value: Any, known: Sequence[Any]) -> Any:
    if not any(value is k or (isinstance(value, str) and value == k) for k in known):
        *others, last = (repr(k) for k in known)
        raise ValueError(f"{name}={value!r:.60} is not known; use {', '.join(others) + ' or ' if others else ''}{last}")
    return value


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number beyond the largest float
        return False


class InfiniteValue(ValueError):
    """A feature holds infinity; `name` is its own name, if it has one."""

    def __init__(self, feature: int, value: float, name: str | None = None) -> None:
        where = f"feature {feature}" if name is None else f"Column {name!r}"
        super().__init__(f"{where} holds {value}; replace infinity by a finite number, or by NaN for a missing value")
        self.feature, self.value = feature, value


def check_no_infinity(X: np.ndarray, names: Sequence[str] | None) -> None:
    """Refuse infinity in a matrix of features; NaN is a missing value."""
    infinite = np.isinf(X)
    if infinite.any():
        row, feature = divmod(int(infinite.argmax()), X.shape[1])
        raise InfiniteValue(feature, float(X[row, feature]), None if names is None else names[feature])
