"""Sums over rows that do not depend on their order, nor on how rows are divided into parts.

Values are rounded once, to a common fixed point, and integers add up exactly: so moments have the same bits for any
number of threads, any order of rows and any partition, and a row of weight 3 is the same as three rows. The fixed
point is chosen from a few figures of all rows (`Extent`, `Scales`), which parts agree on before they sum. What is lost
is below 2**-40 of the largest value for a million rows, and nothing for labels, counts and other small integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

WEIGHT_BITS = 51  # twice the sum of all weights is an exact double
SUM_BITS = 61  # |2 * sum| stays below 2**63
VALUE_BITS = 53  # what a double has
MOST_ROWS = 1 << 31  # row numbers have 32 bits
SAME_IN_ANY_ORDER = 1.0 + 1e-9  # slack, so that the order of summation cannot change a scale
LARGEST_TARGET = 1e150  # the square of a larger one overflows
FAR = 4.0  # a target is far from zero if |mean| > FAR * largest deviation from it
DIGIT = 16  # bits of a value that are looked at together
ROUNDING = 1e-12  # of a share of the weight


# Puts a question, a function of targets (m, n_outputs) and weights, to all parts, and adds up the answers.
Ask: TypeAlias = Callable[[Callable[..., Any], Callable[[Any, Any], Any]], Any]


@dataclass(frozen=True)
class Extent:
    """Figures of the weights of some rows; those of parts add up.

    Attributes
    ----------
    n_rows : int
    total, largest : float
        Sum and largest of the weights.
    is_whole : bool
        Whether all weights are whole numbers: then they count repetitions of rows.
    """

    n_rows: int
    total: float
    largest: float
    is_whole: bool

    @classmethod
    def of(cls, n_rows: int, weight: np.ndarray | None) -> Extent:
        """Without weights every row counts once."""
        if weight is None:
            return cls(n_rows, float(n_rows), min(n_rows, 1.0), True)
        is_whole = bool(np.all(weight == np.rint(weight)))
        return cls(n_rows, float(weight.sum()), float(weight.max(initial=0.0)), is_whole)

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            self.n_rows + other.n_rows,
            self.total + other.total,
            max(self.largest, other.largest),
            self.is_whole and other.is_whole,
        )

    @property
    def counts_rows(self) -> bool:
        """Whether every row counts once."""
        return self.is_whole and self.total == self.n_rows

    @property
    def are_repeats(self) -> bool:
        """Whether weights are numbers of equal rows, as many as a table can have."""
        return self.is_whole and self.total < MOST_ROWS

    def whole_weights(self, weight: np.ndarray | None, n_rows: int) -> np.ndarray:
        """Weights in units of `weight_unit`, so fine that rounding hardly matters; their sums are exact as doubles."""
        if weight is None:
            return np.full(n_rows, np.rint(np.ldexp(1.0, self._weight_bits)), dtype=np.int64)
        return np.rint(np.ldexp(weight, self._weight_bits)).astype(np.int64)

    def round(self, weight: np.ndarray) -> np.ndarray:
        """Weights rounded to that; whole numbers stay as they are."""
        return self.whole_weights(weight, len(weight)) * self.weight_unit

    @property
    def weight_unit(self) -> float:
        return float(np.ldexp(1.0, -self._weight_bits))

    @property
    def _weight_bits(self) -> int:
        return WEIGHT_BITS - _exponent(self.total * SAME_IN_ANY_ORDER)

    def fixed_point(self, value: np.ndarray, weight: np.ndarray | None, largest: float) -> np.ndarray:
        """Integers, nearly weight * value / `unit(largest)`; no |value| is above `largest`."""
        bits = self.value_bits(largest)
        if self.are_repeats:
            integers = np.rint(_shifted(value, bits)).astype(np.int64)
            return integers if weight is None else integers * weight.astype(np.int64)
        # The scale of such weights means nothing, and should cost no precision.
        weight = np.ldexp(np.ones(len(value)) if weight is None else weight, -_exponent(self.largest))
        return np.rint(_shifted(value, bits) * weight).astype(np.int64)

    def unit(self, largest: float) -> float:
        """What 1 stands for in `fixed_point`: a power of two."""
        shift = 0 if self.are_repeats else _exponent(self.largest)
        return float(np.ldexp(1.0, shift - self.value_bits(largest)))

    def factor_and_count(self, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """What a kernel multiplies values by before it rounds them, and after it, as `fixed_point` does; empty: one."""
        none = np.empty(0), np.empty(0, np.int64)
        if self.are_repeats:
            return none if weight is None else (none[0], weight.astype(np.int64))
        assert weight is not None
        return np.ldexp(weight, -_exponent(self.largest)), none[1]

    def value_bits(self, largest: float) -> int:
        """How far `fixed_point` shifts values of which none is above the largest."""
        if largest == 0.0:
            return 0
        total = self.total if self.are_repeats else np.ldexp(self.total, -_exponent(self.largest)) * SAME_IN_ANY_ORDER
        return min(VALUE_BITS, SUM_BITS - _exponent(float(total))) - _exponent(largest)


@dataclass(frozen=True)
class Scales:
    """What the parts of a table agree on before they sum their targets.

    Attributes
    ----------
    extent : Extent
        Of the weights of all rows.
    origin : tuple of float
        What is subtracted from each target before it is summed: sums of a target far from zero would drown in
        rounding all that is to be learnt of it.
    largest : tuple of float
        Largest absolute value of each target, counted from there.
    """

    extent: Extent
    origin: tuple[float, ...]
    largest: tuple[float, ...]

    @classmethod
    def agree(cls, parts: Sequence[tuple[np.ndarray, np.ndarray | None]]) -> Scales:
        """The scales of a table, given as parts: targets of shape (m, n_outputs), and weights or None.

        Three short passes; what each takes from a part is a few numbers.
        """
        parts = [(np.reshape(y, (len(y), -1)) if len(y) else np.asarray(y), weight) for y, weight in parts]
        if not parts:
            raise ValueError("there are no parts to agree on scales for; give at least one")
        parts = [(y if y.ndim == 2 else y.reshape(0, parts[0][0].shape[1]), weight) for y, weight in parts]
        return cls.agreed(lambda question, add: reduce(add, [question(*part) for part in parts]))

    @classmethod
    def of_labels(cls, extent: Extent, n_outputs: int) -> Scales:
        """Those of targets that are -1 or +1, for which no part has to be asked."""
        return cls(extent, (0.0,) * n_outputs, (1.0,) * n_outputs)

    @classmethod
    def agreed(cls, ask: Ask) -> Scales:
        """The same, given someone who puts a question, a function of targets and weights, to every part."""
        first = ask(_First.of, _First.__add__)
        extent, largest = first.extent, first.largest
        if first.are_labels.all():  # these stay the whole numbers that they are, also in a part with one class
            return cls(extent, (0.0,) * len(largest), tuple(largest))
        mean = _means(ask, extent, largest)
        spread = ask(partial(_largest_from, mean), np.maximum)
        is_far = (np.abs(mean) > FAR * spread) & ~first.are_labels
        return cls(extent, tuple(np.where(is_far, mean, 0.0)), tuple(np.where(is_far, spread, largest)))

    def check(self, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Refuse rows that the scales were not agreed on for: their sums might overflow."""
        is_known = len(self.origin) == y.shape[1] and (_largest(y - np.array(self.origin)) <= self.largest).all()
        if not is_known or Extent.of(len(y), weight).total > self.extent.total * SAME_IN_ANY_ORDER:
            raise ValueError("these rows are not among those that agreed on the scales; agree again, with all parts")

    def union(self, other: Scales) -> Scales:
        """Scales for two sets of rows that did not agree on any."""
        return Scales(self.extent + other.extent, self.origin, tuple(map(max, self.largest, other.largest)))

    def same_as(self, other: Scales) -> bool:
        """Whether sums at both can be added; the sum of the weights may differ by the order in which it was taken."""
        return bool(
            self.origin == other.origin
            and self.extent.is_whole == other.extent.is_whole
            and self.extent.weight_unit == other.extent.weight_unit
            and np.array_equal(self.units, other.units)
            and np.array_equal(self.square_units, other.square_units)
        )

    @property
    def units(self) -> np.ndarray:
        """Of the sums of each target."""
        return np.array([self.extent.unit(largest) for largest in self.largest])

    @property
    def square_units(self) -> np.ndarray:
        """Of the sums of squares of each target."""
        return np.array([self.extent.unit(largest * largest) for largest in self.largest])


@dataclass(frozen=True)
class _First:
    """What is asked first of targets."""

    extent: Extent
    largest: np.ndarray
    are_labels: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray | None) -> _First:
        return cls(Extent.of(len(y), weight), _largest(y), np.asarray(np.isin(y, (-1.0, 0.0, 1.0)).all(axis=0)))

    def __add__(self, other: _First) -> _First:
        largest = np.maximum(self.largest, other.largest)
        return _First(self.extent + other.extent, largest, self.are_labels & other.are_labels)


def exact_mean(value: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The mean, the same for any order of rows."""
    value = value[:, None]
    return float(_means(lambda question, _: question(value, weight), Extent.of(len(value), weight), _largest(value))[0])


def exact_means(ask: Ask) -> np.ndarray:
    """The mean of every target over all parts, the same for any division into parts; infinite if a value is."""
    first = ask(_First.of, _First.__add__)
    if not np.isfinite(first.largest).all():
        return np.full(len(first.largest), np.inf)
    return _means(ask, first.extent, first.largest)


def exact_quantiles(ask: Ask, share: float) -> np.ndarray:
    """The least value of each target that at least this share of the weight does not exceed.

    It is found from its first bits to its last, a few in each pass over all parts.
    """
    first = ask(_First.of, _First.__add__)
    known, below, wanted = np.zeros(len(first.largest), np.uint64), np.zeros(len(first.largest)), np.zeros(1)
    for shift in reversed(range(0, 64, DIGIT)):
        mass = below[:, None] + np.cumsum(ask(partial(_mass_of_digits, first.extent, known, shift), np.add), axis=1)
        if shift + DIGIT == 64:
            wanted = share * mass[:, -1] * (1.0 - ROUNDING)
        digit = np.array([np.searchsorted(each, least) for each, least in zip(mass, wanted, strict=True)])
        below = np.where(digit > 0, mass[np.arange(len(digit)), digit - 1], below)
        known = known << np.uint64(DIGIT) | digit.astype(np.uint64)
    is_negative = known >> np.uint64(63) == 0
    return np.where(is_negative, ~known, known ^ np.uint64(1 << 63)).view(np.float64)


def _mass_of_digits(
    extent: Extent, known: np.ndarray, shift: int, y: np.ndarray, weight: np.ndarray | None
) -> np.ndarray:
    """Of values that begin with the bits known, the weight that has each of the next digits: (n_outputs, digits)."""
    mass = extent.whole_weights(weight, len(y)).astype(np.float64)  # sums of which are exact
    found = np.zeros((y.shape[1], 1 << DIGIT))
    for target, begins, out in zip(y.T, known, found, strict=True):
        bits = (target + 0.0).view(np.uint64)
        ordered = np.where(bits >> np.uint64(63) == 1, ~bits, bits | np.uint64(1 << 63))  # as integers
        digits = ordered >> np.uint64(shift)
        if shift + DIGIT == 64:
            out[:] = np.bincount(digits.astype(np.intp), mass, 1 << DIGIT)
            continue
        begins_so = digits >> np.uint64(DIGIT) == begins
        last = digits[begins_so] & np.uint64((1 << DIGIT) - 1)
        out[:] = np.bincount(last.astype(np.intp), mass[begins_so], 1 << DIGIT)
    return found


def effective_count(weight: np.ndarray) -> float:
    """How many examples weighted rows are worth: whole weights count repetitions, others by how uneven they are."""
    extent = Extent.of(len(weight), weight)
    return extent.total if extent.is_whole else worth_of(extent, square_sums(extent, weight))


def square_sums(extent: Extent, weight: np.ndarray) -> np.ndarray:
    """Sums of the weights and of their squares, whole numbers in units that the extent knows."""
    return np.array([extent.whole_weights(weight, 0).sum(), extent.fixed_point(weight, weight, extent.largest).sum()])


def worth_of(extent: Extent, sums: np.ndarray) -> float:
    """How many examples weights are worth, by `square_sums`."""
    return float((sums[0] * extent.weight_unit) ** 2 / (sums[1] * extent.unit(extent.largest)))


def _largest(y: np.ndarray) -> np.ndarray:
    return np.abs(y).max(axis=0, initial=0.0)


def _largest_from(origin: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return _largest(y - origin)


def _means(ask: Ask, extent: Extent, largest: np.ndarray) -> np.ndarray:
    """The mean of every target."""
    found = ask(partial(_whole_sums, extent, largest), np.add)
    total = max(float(found[-1]) * extent.weight_unit, np.finfo(float).tiny)  # no rows: the mean is 0
    return np.array([s * extent.unit(top) / total for s, top in zip(found[:-1], largest.tolist(), strict=True)])


def _whole_sums(extent: Extent, largest: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The sum of every target, and of the weights, in units of the extent."""
    each = zip(y.T, largest.tolist(), strict=True)
    sums = [extent.fixed_point(target, weight, top).sum() for target, top in each]
    return np.array([*sums, extent.whole_weights(weight, len(y)).sum()], dtype=np.int64)


def _shifted(value: np.ndarray, bits: int) -> np.ndarray:
    """value * 2**bits; a product is quicker than ldexp, and the same unless the factor is out of range."""
    return value * 2.0**bits if -1000 < bits < 1000 else np.ldexp(value, bits)


def _exponent(x: float) -> int:
    """The least e with x < 2**e."""
    return math.frexp(x)[1]
