"""Counts of many keys, as few atoms: runs of neighbouring keys, each with its least and largest key and its mass.

Atoms begin and end at round numbers, the finer the fewer keys there are, so that those of parts add up. Where more has
to be known of an atom of several keys, the next pass over parts divides that one further.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Ranges = tuple[np.ndarray, np.ndarray]  # from the one key to the other, ascending and apart from each other

BITS = 64
EVERYTHING = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])


@dataclass(frozen=True)
class Atoms:
    """Keys from the least to the largest, in runs of neighbours.

    Attributes
    ----------
    least, largest : arrays of int64
        The first key of each atom and its last one.
    mass : array of int64
    shift : int
        Keys are in the same atom if they are in the same range, and are the same but for so many of the last bits,
        counted from the first one that differs in that range, as if that were the first of 64.
    """

    least: np.ndarray
    largest: np.ndarray
    mass: np.ndarray
    shift: int = 0

    @property
    def is_dense(self) -> np.ndarray:
        """Whether an atom has several keys."""
        return self.least < self.largest

    @property
    def before(self) -> np.ndarray:
        """The mass before each atom, and in all."""
        return np.append(0, np.cumsum(self.mass))

    def ranges(self, own: np.ndarray) -> Ranges:
        """Where some of the atoms lie."""
        return self.least[own], self.largest[own]

    def joined(self, other: Atoms) -> Atoms:
        """Both, in order."""
        least = np.concatenate([self.least, other.least])
        order = np.argsort(least, kind="stable")
        largest = np.concatenate([self.largest, other.largest])[order]
        mass = np.concatenate([self.mass, other.mass])[order]
        return Atoms(least[order], largest, mass, max(self.shift, other.shift))

    def within(self, most: float, ranges: Ranges = EVERYTHING) -> Atoms:
        """At most so many atoms, but at least two in each range; as few bits are left out as suffice."""
        if len(self.mass) == 0:
            return self
        most = max(most, 2 * len(ranges[0])) if len(ranges[0]) > 1 else most
        differ = (self.least[1:] ^ self.least[:-1]).view(np.uint64)
        if len(ranges[0]) > 1:  # each is divided into as many
            own = np.searchsorted(ranges[0], self.least, side="right") - 1
            differ = differ << _common_bits(*ranges)[own[1:]]
            differ[np.diff(own) > 0] = np.uint64(1 << (BITS - 1))
        low, high = self.shift, BITS - 1
        if np.count_nonzero(differ >> np.uint64(low)) < most:
            high = low
        while low < high:
            middle = (low + high) // 2
            if np.count_nonzero(differ >= np.uint64(1 << middle)) < most:
                high = middle
            else:
                low = middle + 1
        first = np.append(0, np.flatnonzero(differ >> np.uint64(low)) + 1)
        largest, mass = np.maximum.reduceat(self.largest, first), np.add.reduceat(self.mass, first)
        return Atoms(self.least[first], largest, mass, low)

    def opened(self, is_open: np.ndarray, found: Atoms) -> Atoms:
        """With what was found in place of some."""
        return Atoms(self.least[~is_open], self.largest[~is_open], self.mass[~is_open]).joined(found)


def _common_bits(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """How many leading bits all keys in a range have in common."""
    differ = (low ^ high).view(np.uint64)
    return sum((differ < np.uint64(1 << bit)).astype(np.uint64) for bit in range(BITS))


def between(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where the ascending values are that lie in a range."""
    first, last = np.searchsorted(values, low), np.searchsorted(values, high, side="right")
    length = last - first
    return np.repeat(first - np.cumsum(length) + length, length) + np.arange(length.sum())
