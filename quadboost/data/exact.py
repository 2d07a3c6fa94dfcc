"""Sums over rows that do not depend on their order: values are rounded once to a common fixed point.

Integers add up exactly, so the moments have the same bits for any number of threads and any order of
rows, and a row of weight 3 is the same as three rows. What is lost is below 2**-40 of the largest value
for a million rows, and nothing at all for labels, counts and other small integers.
"""

from __future__ import annotations

import numpy as np

WEIGHT_BITS = 51  # twice the sum of all weights is an exact double
SUM_BITS = 61  # |2 * sum| stays below 2**63
VALUE_BITS = 53  # what a double has
MOST_REPEATS = 1 << 24  # whole weights that add up to more are not taken for repetitions of rows
SAME_IN_ANY_ORDER = 1.0 + 1e-9  # a sum of weights that is 1, or 1 - 1e-16 in another order of rows: the same scale


def fixed_point(value: np.ndarray, weight: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Return integers and a scale (a power of two) with integers * scale = weight * value, nearly.

    Parameters
    ----------
    value : array of shape (m,)
    weight : array of shape (m,), optional
        Positive. Without it every row counts once.
    """
    largest = float(np.max(np.abs(value), initial=0.0))
    if largest == 0.0:
        return np.zeros(len(value), dtype=np.int64), 1.0
    if weight is None or are_repeats(weight):
        total = float(len(value) if weight is None else weight.sum())
        bits = min(VALUE_BITS, SUM_BITS - _exponent(total)) - _exponent(largest)
        integers = np.rint(np.ldexp(value, bits)).astype(np.int64)
        return integers if weight is None else integers * weight.astype(np.int64), float(np.ldexp(1.0, -bits))
    shift = _exponent(float(weight.max()))  # the scale of such weights means nothing, and should cost no precision
    weight = np.ldexp(weight, -shift)
    bits = min(VALUE_BITS, SUM_BITS - _exponent(float(weight.sum()) * SAME_IN_ANY_ORDER)) - _exponent(largest)
    return np.rint(np.ldexp(value, bits) * weight).astype(np.int64), float(np.ldexp(1.0, shift - bits))


def rounded_weights(weight: np.ndarray) -> np.ndarray:
    """Weights rounded to a common grid, so fine that it hardly matters and so coarse that all their sums are exact.

    Whole numbers stay as they are.
    """
    bits = WEIGHT_BITS - _exponent(float(weight.sum()) * SAME_IN_ANY_ORDER)
    return np.ldexp(np.rint(np.ldexp(weight, bits)), -bits)


def are_repeats(weight: np.ndarray) -> bool:
    """Whether weights can be taken for numbers of equal rows."""
    return bool(weight.sum() <= MOST_REPEATS and np.all(weight == np.rint(weight)))


def _exponent(x: float) -> int:
    """The least e with x < 2**e."""
    return int(np.frexp(x)[1])


def exact_mean(value: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The mean, the same for any order of rows."""
    integers, scale = fixed_point(value, weight)
    total = float(len(value)) if weight is None else float(rounded_weights(weight).sum())
    return float(integers.sum() * scale / total)


def effective_count(weight: np.ndarray) -> float:
    """How many examples weighted rows are worth: whole weights count repetitions, others by how uneven they are."""
    if are_repeats(weight):
        return float(weight.sum())
    weight = np.sort(weight / weight.max())  # sorted: the same sums for any order of rows
    return float(weight.sum() ** 2 / np.sum(weight * weight))
