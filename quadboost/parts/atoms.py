"""Very many values as few atoms: runs of neighbouring values, each with its least and largest value and its mass.

Parts agree on the cuts at which atoms end, so that their atoms add up. Where more has to be known of an atom of
several values, the next pass over parts divides that one further.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..kernels.bins import count_in_bins
from ..voters.bins import BinIndex

Ranges = tuple[np.ndarray, np.ndarray]  # from the one value to the other, both included; ascending and apart


class Atoms(NamedTuple):
    """Values from the least to the largest, in runs of neighbours.

    Attributes
    ----------
    least, largest : arrays of float64
        The first value of each atom and its last one.
    mass : array of int64
    """

    least: np.ndarray
    largest: np.ndarray
    mass: np.ndarray

    @property
    def is_dense(self) -> np.ndarray:
        """Whether an atom has several values."""
        return self.least < self.largest

    @property
    def before(self) -> np.ndarray:
        """The mass before each atom, and in all."""
        return np.append(0, np.cumsum(self.mass))

    def ranges(self, atoms: np.ndarray) -> Ranges:
        """Where some of the atoms lie."""
        return self.least[atoms], self.largest[atoms]

    def opened(self, is_open: np.ndarray, found: Atoms) -> Atoms:
        """With what was found in place of some."""
        both = [np.concatenate([mine[~is_open], other]) for mine, other in zip(self, found, strict=True)]
        order = np.argsort(both[0], kind="stable")
        return Atoms(*(values[order] for values in both))


class Values(NamedTuple):
    """Values as they are, and their mass (None: each counts for 1). NaN is a missing one."""

    values: np.ndarray
    mass: np.ndarray | None = None

    def __add__(self, other: Values) -> Values:  # type: ignore[override]
        return Values.joined([self, other])

    @classmethod
    def joined(cls, several: Sequence[Values]) -> Values:
        several = [some for some in several if len(some.values)]  # a part without rows has no weights either
        if len(several) < 2:
            return several[0] if several else cls(np.empty(0))
        mass = [some.mass for some in several if some.mass is not None]
        return cls(np.concatenate([some.values for some in several]), np.concatenate(mass) if mass else None)

    @property
    def has_missing(self) -> bool:
        return bool(np.isnan(self.values).any())

    @property
    def atoms(self) -> Atoms:
        """One for every value."""
        order = None if self.mass is None else np.argsort(self.values)
        values = np.sort(self.values + 0)  # minus zero is zero; NaN last
        values = values[: np.searchsorted(values, np.nan)].astype(np.float64)
        first = np.flatnonzero(np.append(len(values) > 0, values[1:] != values[:-1]))
        if self.mass is None or order is None or len(first) == 0:
            mass = np.diff(np.append(first, len(values)))
        else:
            mass = np.add.reduceat(self.mass[order[: len(values)]], first)
        return Atoms(values[first], values[first], mass)


class Counts(NamedTuple):
    """All atoms between some cuts (each ends with its cut), also those without values, and after them the missing ones.

    Attributes
    ----------
    mass : array of int64, shape (n_cuts + 2,)
    ends : array of float64, shape (n_cuts + 2, 2)
        The least value of each atom and its largest; where there is none, infinity and minus infinity.
    """

    mass: np.ndarray
    ends: np.ndarray

    @classmethod
    def none(cls, n_cuts: int) -> Counts:
        return cls(np.zeros(n_cuts + 2, np.int64), np.tile([np.inf, -np.inf], (n_cuts + 2, 1)))

    def add_values(self, index: BinIndex, values: np.ndarray, mass: np.ndarray | None) -> None:
        """Add some values, given the index of the cuts."""
        count_in_bins(values, mass, *index, self.mass, self.ends)

    def __add__(self, other: Counts) -> Counts:  # type: ignore[override]
        least, largest = np.minimum(self.ends[:, 0], other.ends[:, 0]), np.maximum(self.ends[:, 1], other.ends[:, 1])
        return Counts(self.mass + other.mass, np.stack([least, largest], axis=1))

    def __reduce__(self) -> tuple[Any, ...]:
        """Atoms without values do not travel."""
        there = np.flatnonzero(self.mass)
        mass = self.mass[there]
        return _unpacked, (len(self.mass), there.astype(np.int32), mass.astype(_least_type(mass)), self.ends[there])

    @property
    def has_missing(self) -> bool:
        return bool(self.mass[-1])

    @property
    def atoms(self) -> Atoms:
        there = np.flatnonzero(self.mass[:-1])
        least, largest = (self.ends[there] + 0.0).T.copy()  # minus zero is zero
        return Atoms(least, largest, self.mass[there])


def _unpacked(n: int, there: np.ndarray, mass: np.ndarray, ends: np.ndarray) -> Counts:
    counts = Counts.none(n - 2)
    counts.mass[there], counts.ends[there] = mass, ends
    return counts


def _least_type(values: np.ndarray) -> np.dtype:
    return np.min_scalar_type(values.max(initial=0))


def cuts_by_sample(sample: Atoms, n_cuts: int) -> tuple[np.ndarray, np.ndarray]:
    """Cuts with about the same mass between them, and the sampled values that weigh as much alone.

    Such a value is an atom of its own; so is every one if there are few.
    """
    if len(sample.mass) <= n_cuts:
        alone = sample.least
        picked = alone
    else:
        ranks = np.arange(1, n_cuts + 1) * (sample.mass.sum() / (n_cuts + 1))
        picked, times = np.unique(sample.least[np.searchsorted(sample.before[1:], ranks)], return_counts=True)
        alone = picked[times > 1]
    return np.unique(np.concatenate([picked, just_below(alone)])), alone


def just_below(values: np.ndarray) -> np.ndarray:
    """The next smaller number; of the least, minus infinity."""
    with np.errstate(over="ignore"):
        return np.nextafter(values, -np.inf)


def cuts_within(ranges: Ranges, n_pieces: int) -> np.ndarray:
    """Cuts that divide each range: half of them evenly by value, which suits most data, half evenly by the bits.

    So even where nearly all values are near one end, a range is done with after a few divisions.
    """
    low, high = (values[:, None] for values in ranges)
    n = max(n_pieces // 2, 1)
    share = np.arange(1, n + 1) / n
    by_value = np.clip(low * (1 - share) + high * share, low, high)
    first, span = keys_of(low), (keys_of(high) - keys_of(low)).view(np.uint64)
    step = span // np.uint64(n) + np.uint64(1)
    far = np.minimum(step * np.arange(n, dtype=np.uint64), span)
    by_bits = values_of(first + far.view(np.int64))
    return np.unique(np.concatenate([by_value.ravel(), by_bits.ravel(), ranges[1]]))


def keys_of(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the values, and as far apart as there are doubles between."""
    bits = (values + 0.0).view(np.int64)  # minus zero is zero
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def values_of(keys: np.ndarray) -> np.ndarray:
    """The doubles that have those keys."""
    return np.where(keys < 0, keys ^ np.int64(2**63 - 1), keys).view(np.float64)
