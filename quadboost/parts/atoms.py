"""Very many values as few atoms: runs of neighbouring values, each with its least and largest value and its mass.

Parts agree on the cuts at which atoms end, so that their atoms add up. Where more has to be known of an atom of
several values, the next pass over parts divides that one further.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Ranges = tuple[np.ndarray, np.ndarray]  # from the one value to the other, both included; ascending and apart


@dataclass(frozen=True)
class Atoms:
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

    @classmethod
    def of(cls, values: np.ndarray, mass: np.ndarray | None, cuts: np.ndarray | None) -> Atoms:
        """Atoms of ascending values, which end at the cuts (an atom includes its own); None: one for every value."""
        if len(values) == 0:
            return cls(np.empty(0), np.empty(0), np.empty(0, np.int64))
        first = _firsts(values, cuts)
        end = np.append(first[1:], len(values))
        least, largest = (values[ends].astype(np.float64) for ends in (first, end - 1))
        return cls(least, largest, end - first if mass is None else np.add.reduceat(mass, first))

    def joined(self, other: Atoms, cuts: np.ndarray | None = None) -> Atoms:
        """Both; those between the same cuts become one."""
        least = np.concatenate([self.least, other.least])
        order = np.argsort(least, kind="stable")
        least, largest = least[order], np.concatenate([self.largest, other.largest])[order]
        mass = np.concatenate([self.mass, other.mass])[order]
        first = _firsts(least, cuts)
        if len(first) == len(least):
            return Atoms(least, largest, mass)
        return Atoms(least[first], np.maximum.reduceat(largest, first), np.add.reduceat(mass, first))

    def __reduce__(self) -> tuple[Any, ...]:
        """Most atoms that travel are single values, of one row each: what can be told from `least` stays behind."""
        largest = None if np.array_equal(self.least, self.largest) else self.largest
        return _unpacked, (self.least, largest, None if (self.mass == 1).all() else self.mass)

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
        return Atoms(self.least[~is_open], self.largest[~is_open], self.mass[~is_open]).joined(found)


def _unpacked(least: np.ndarray, largest: np.ndarray | None, mass: np.ndarray | None) -> Atoms:
    return Atoms(least, least if largest is None else largest, np.ones(len(least), np.int64) if mass is None else mass)


def _firsts(values: np.ndarray, cuts: np.ndarray | None) -> np.ndarray:
    """Where runs of ascending values begin that no cut divides."""
    if cuts is None:
        return np.flatnonzero(np.append(len(values) > 0, values[1:] != values[:-1]))
    first = np.concatenate([[0], np.searchsorted(values, cuts, side="right"), [len(values)]])
    return first[:-1][first[1:] > first[:-1]]


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
