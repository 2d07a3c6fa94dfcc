"""The candidate voters of rows in parts: those that all rows at once would have, exactly.

Of every feature, parts tell a bounded number of atoms: runs of neighbouring values, each with its least and largest
value and its mass. Atoms begin and end at round numbers, the finer the fewer values there are, so that those of parts
add up. Where a border between bins falls within an atom of several values, the next pass divides that one further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..data.exact import Extent
from ..kernels.bins import bits_between, copy_columns, runs_apart
from ..voters.columns import Voters, checked_values
from ..voters.quantiles import borders_met
from ..voters.thresholds import (
    AUTO,
    FEATURES_TOGETHER,
    auto_thresholds,
    bins_for_values,
    check_thresholds,
    cuts_of_values,
    row_mass,
    voters_of,
)  # fmt: skip
from .source import Source

MOST_ATOMS = 1 << 16  # of a feature, in one pass: 1.5 MB
ATOMS_OF_BIN = 16  # as many at least, where more bins are asked for
DIVIDED = 64  # into so many atoms one is divided at least, where it has as many values
HEAVIER = 8  # than the mean of atoms is one of so many values, or of a heavy one
EVERYTHING = np.array([-np.inf]), np.array([np.inf])

Ranges = tuple[np.ndarray, np.ndarray]  # from the one value to the other, ascending and apart from each other


class Matrix(NamedTuple):
    """Some rows as one real matrix, and their weights."""

    X: np.ndarray
    weight: np.ndarray | None = None


@dataclass(frozen=True)
class Atoms:
    """Values of a feature, from the least to the largest, in runs of neighbours.

    Attributes
    ----------
    least, largest : arrays of float
        The first value of each atom and its last one.
    mass : array of int64
    shift : int
        Values are in the same atom if they are in the same range, and their keys are the same but for so many of the
        last bits, counted from the first one that differs in that range, as if that were the first of 64.
    has_missing : bool
        Whether there were missing values, too.
    """

    least: np.ndarray
    largest: np.ndarray
    mass: np.ndarray
    shift: int = 0
    has_missing: bool = False

    @property
    def is_dense(self) -> np.ndarray:
        """Whether an atom has several values."""
        return self.least < self.largest

    @property
    def before(self) -> np.ndarray:
        return np.append(0, np.cumsum(self.mass))

    def joined(self, other: Atoms) -> Atoms:
        """Both, in order."""
        least = np.concatenate([self.least, other.least])
        order = np.argsort(least, kind="stable")
        largest, mass = (
            np.concatenate(both)[order] for both in ((self.largest, other.largest), (self.mass, other.mass))
        )
        shift, has_missing = max(self.shift, other.shift), self.has_missing or other.has_missing
        return Atoms(least[order], largest, mass, shift, has_missing)

    def within(self, most: float, ranges: Ranges) -> Atoms:
        """As few atoms as are asked for, by leaving out as few bits as suffice. Atoms stay within ranges."""
        if len(self.mass) == 0:
            return self
        keys = _keys(self.least)
        differ = (keys[1:] ^ keys[:-1]).view(np.uint64)
        if len(ranges[0]) > 1:  # each is divided into as many
            own = np.searchsorted(ranges[0], self.least, side="right") - 1
            differ = differ << _spare_bits(*ranges)[own[1:]]
            differ[np.diff(own) > 0] = np.uint64(1 << 63)
        low, high = self.shift, 63
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
        return Atoms(self.least[first], largest, mass, low, self.has_missing)

    def opened(self, is_open: np.ndarray, values: Atoms) -> Atoms:
        """With other atoms in place of some."""
        kept = Atoms(self.least[~is_open], self.largest[~is_open], self.mass[~is_open], has_missing=self.has_missing)
        return kept.joined(values)


def _keys(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the values, and as far apart as there are doubles between."""
    bits = (values + 0.0).view(np.int64)  # minus zero is zero
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _spare_bits(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """How many leading bits all keys in a range have in common."""
    differ = (_keys(low) ^ _keys(high)).view(np.uint64)
    return np.count_nonzero(differ[:, None] < np.uint64(1) << np.arange(64, dtype=np.uint64), axis=1).astype(np.uint64)


@dataclass(frozen=True)
class _Question:
    """The atoms of each feature in some ranges of its values; without ranges, of all values of all features."""

    extent: Extent
    most: float
    ends_only: frozenset[int]  # features of which the least and the largest value suffice
    ranges: Mapping[int, Ranges] | None = None

    def __call__(self, part: Matrix) -> dict[int, Atoms]:
        X = checked_values(part.X)
        mass = None if part.weight is None else row_mass(self.extent, part.weight)
        found = {}
        for first in range(0, X.shape[1], FEATURES_TOGETHER):
            features = range(first, min(first + FEATURES_TOGETHER, X.shape[1]))
            wanted = features if self.ranges is None else [f for f in features if f in self.ranges]
            if wanted:
                columns = np.empty((len(features), len(X)), dtype=X.dtype)
                copy_columns(X, first, columns)
                found.update({f: self._atoms(f, columns[f - first], mass) for f in wanted})
        return found

    def add(self, one: dict[int, Atoms], other: dict[int, Atoms]) -> dict[int, Atoms]:
        return {f: self._within(f, own.joined(other[f])) for f, own in one.items()}

    def _within(self, f: int, atoms: Atoms) -> Atoms:
        if f in self.ends_only:
            return atoms.within(1, EVERYTHING)
        if self.ranges is None:
            return atoms.within(self.most, EVERYTHING)
        ranges = self.ranges[f]
        return atoms.within(max(self.most, 2 * len(ranges[0])), ranges)  # so that some are divided

    def _atoms(self, f: int, column: np.ndarray, mass: np.ndarray | None) -> Atoms:
        order = None if mass is None else np.argsort(column)
        column.sort()  # NaN last
        n_present = int(np.searchsorted(column, np.nan))
        values = column[:n_present]
        rows: slice | np.ndarray = slice(0, n_present)
        if self.ranges is not None:
            rows = _between(values, *self.ranges[f])
        has_missing = n_present < len(column)
        if self.ranges is None and len(values) and f not in self.ends_only:
            own = None if mass is None or order is None else mass[order[:n_present]]
            return _atoms_of(values, own, self.most, has_missing)
        values = values[rows].astype(np.float64)
        own = np.ones(len(values), np.int64) if mass is None or order is None else mass[order[rows]]
        return self._within(f, Atoms(values, values, own, has_missing=has_missing))


def _atoms_of(values: np.ndarray, mass: np.ndarray | None, most: float, has_missing: bool) -> Atoms:
    """What `Atoms.within` makes of very many ascending values, quicker."""
    count = np.zeros(65, dtype=np.int64)
    bits_between(values, count)
    n_further = np.cumsum(count[::-1])[::-1]  # neighbours that differ by so many bits, or more
    shift = int(np.argmax(n_further[1:] < most)) if n_further[1] >= most else 0
    first = np.empty(1 + (n_further[shift + 1] if shift < 64 else 0), dtype=np.int64)
    runs_apart(values, shift, first)
    end = np.append(first[1:], len(values))
    own = end - first if mass is None else np.add.reduceat(mass, first)
    return Atoms(values[first].astype(np.float64), values[end - 1].astype(np.float64), own, shift, has_missing)


def _between(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Where the ascending values are that lie in a range."""
    first, last = np.searchsorted(values, low), np.searchsorted(values, high, side="right")
    length = last - first
    return np.repeat(first - np.cumsum(length) + length, length) + np.arange(length.sum())


def voters_of_parts(
    matrices: Source[Matrix], extent: Extent, thresholds: int | str, spacing: str, n_levels: Mapping[int, int]
) -> Voters:
    """The voters that `candidate_voters` chooses by all rows, given the extent of all their weights."""
    check_thresholds(thresholds, spacing)
    most: float = MOST_ATOMS
    if thresholds != AUTO:
        most = max(most, ATOMS_OF_BIN * bins_for_values(thresholds, False))
    question = _Question(extent, most, frozenset(n_levels))
    if spacing == "uniform" and thresholds != "all":
        question = _Question(extent, 1, frozenset())
    atoms = matrices.reduce(question, question.add)
    if thresholds == AUTO:
        thresholds = auto_thresholds(len(atoms))

    def chosen(f: int) -> tuple[np.ndarray, bool]:
        own = atoms[f]
        ends = np.stack([own.least, own.largest], axis=1).ravel()
        start = np.arange(0, len(ends) + 1, 2)
        return cuts_of_values(
            f, ends, lambda: (start, own.before), own.has_missing, thresholds, spacing, n_levels.get(f)
        )

    for f in sorted(atoms):
        chosen(f)  # refuses infinity
    row = {f: own.mass.sum() / extent.n_rows for f, own in atoms.items() if f not in n_levels}
    typical = dict(row)
    heavier: float = HEAVIER
    while spacing == "quantile":
        to_open = {f: _to_open(atoms[f], thresholds, most, mass, heavier) for f, mass in typical.items()}
        to_open = {f: is_open for f, is_open in to_open.items() if is_open.any()}
        if not to_open:
            break
        ranges = {f: (atoms[f].least[is_open], atoms[f].largest[is_open]) for f, is_open in to_open.items()}
        question = _Question(extent, most, frozenset(), ranges)
        found = matrices.reduce(question, question.add)
        atoms.update({f: atoms[f].opened(is_open, found[f]) for f, is_open in to_open.items()})
        heavier = np.inf  # once is enough
        typical.update({f: row[f] if own.shift else float(np.median(own.mass)) for f, own in found.items()})
    return voters_of([chosen(f) for f in sorted(atoms)], n_levels)


def _to_open(atoms: Atoms, thresholds: int | str, most: float, typical: float, heavier: float) -> np.ndarray:
    """Which atoms have to be divided further for the cuts to be known, given the mass that a value typically has.

    Among them are those that are so many times `heavier` than others: there may be a heavy value in them.
    """
    is_dense, n_bins = atoms.is_dense, bins_for_values(thresholds, atoms.has_missing)
    if not is_dense.any() or len(is_dense) <= n_bins:
        return is_dense
    before = atoms.before
    borders = borders_met(before, is_dense, int(n_bins))
    # How far each atom is from a border: below zero, if that is within.
    after = np.searchsorted(borders, before[:-1], side="right")
    distance = np.minimum(
        np.append(borders, 2 * before[-1])[after] - before[1:], before[:-1] - np.append(-before[-1], borders)[after]
    )
    is_open = is_dense & ((distance < 0) | (atoms.mass > before[-1] / n_bins))  # a value may have a bin of its own
    if is_open.any():
        # Values within atoms turn out not to lie densely, and borders move: open neighbours, as many as there is room.
        nearest = np.flatnonzero(is_dense)[np.argsort(distance[is_dense], kind="stable")]
        n_values = np.cumsum(atoms.mass[nearest] / typical)
        n_open = max(np.searchsorted(n_values, most), int(most) // DIVIDED)
        is_open[nearest[: min(n_open, int(most) // 4)]] = True
        heaviest = np.argsort(-atoms.mass * is_dense, kind="stable")[: int(most) // DIVIDED]
        is_open[heaviest[atoms.mass[heaviest] > heavier * before[-1] / len(is_dense)]] = True
    return is_open
