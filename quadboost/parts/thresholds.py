"""The candidate voters of rows in parts: those that all rows at once would have, exactly.

Of every feature, parts tell a bounded number of atoms. Where a border between bins falls within an atom of several
values, the next pass divides that one further.
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
from .atoms import BITS, EVERYTHING, Atoms, Ranges, between
from .source import Source

MOST_ATOMS = 1 << 16  # of a feature, in one pass: 1.5 MB
ATOMS_OF_BIN = 16  # as many at least, where more bins are asked for
DIVIDED = 64  # into so many atoms one is divided at least, where it has as many values
HEAVIER = 8  # than the mean of atoms is one of so many values, or of a heavy one


class Matrix(NamedTuple):
    """Some rows as one real matrix, and their weights."""

    X: np.ndarray
    weight: np.ndarray | None = None


def keys_of(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the values, and as far apart as there are doubles between."""
    bits = (values + 0.0).view(np.int64)  # minus zero is zero
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def values_of(keys: np.ndarray) -> np.ndarray:
    """The doubles that have those keys."""
    return np.where(keys < 0, keys ^ np.int64(2**63 - 1), keys).view(np.float64)


class Found(NamedTuple):
    """What parts tell of a feature."""

    atoms: Atoms
    has_missing: bool


@dataclass(frozen=True)
class _Question:
    """The atoms of each feature in some ranges of its values; without ranges, of all values of all features."""

    extent: Extent
    most: float
    ends_only: frozenset[int] = frozenset()  # features of which the least and the largest value suffice
    ranges: Mapping[int, Ranges] | None = None

    def __call__(self, part: Matrix) -> dict[int, Found]:
        X = checked_values(part.X)
        mass = None if part.weight is None else row_mass(self.extent, part.weight)
        found = {}
        for first in range(0, X.shape[1], FEATURES_TOGETHER):
            features = range(first, min(first + FEATURES_TOGETHER, X.shape[1]))
            wanted = features if self.ranges is None else [f for f in features if f in self.ranges]
            if wanted:
                columns = np.empty((len(features), len(X)), dtype=X.dtype)
                copy_columns(X, first, columns)
                found.update({f: self._ask(f, columns[f - first], mass) for f in wanted})
        return found

    def add(self, one: dict[int, Found], other: dict[int, Found]) -> dict[int, Found]:
        return {
            f: Found(self._within(f, atoms.joined(other[f].atoms)), has_missing or other[f].has_missing)
            for f, (atoms, has_missing) in one.items()
        }

    def _within(self, f: int, atoms: Atoms) -> Atoms:
        return atoms.within(
            1 if f in self.ends_only else self.most, EVERYTHING if self.ranges is None else self.ranges[f]
        )

    def _ask(self, f: int, column: np.ndarray, mass: np.ndarray | None) -> Found:
        order = None if mass is None else np.argsort(column)
        column.sort()  # NaN last
        n_present = int(np.searchsorted(column, np.nan))
        values, has_missing = column[:n_present], n_present < len(column)
        own = None if mass is None or order is None else mass[order[:n_present]]
        if self.ranges is None:
            return Found(self._within(f, _atoms_of(values, own, self.most)), has_missing)
        rows = between(values, *map(values_of, self.ranges[f]))
        keys = keys_of(values[rows].astype(np.float64))
        atoms = Atoms(keys, keys, np.ones(len(keys), np.int64) if own is None else own[rows])
        return Found(self._within(f, atoms), has_missing)


def _atoms_of(values: np.ndarray, mass: np.ndarray | None, most: float) -> Atoms:
    """What `Atoms.within` makes of very many ascending values, quicker."""
    if len(values) == 0:
        return Atoms(*np.empty((3, 0), np.int64))
    count = np.zeros(BITS + 1, dtype=np.int64)
    bits_between(values, count)
    n_further = np.cumsum(count[::-1])[::-1]  # neighbours that differ by so many bits, or more
    shift = next((shift for shift in range(BITS - 1) if n_further[shift + 1] < most), BITS - 1)
    first = np.empty(1 + n_further[shift + 1], dtype=np.int64)
    runs_apart(values, shift, first)
    end = np.append(first[1:], len(values))
    least, largest = (keys_of(values[own].astype(np.float64)) for own in (first, end - 1))
    return Atoms(least, largest, end - first if mass is None else np.add.reduceat(mass, first), shift)


def voters_of_parts(
    matrices: Source[Matrix], extent: Extent, thresholds: int | str, spacing: str, n_levels: Mapping[int, int]
) -> Voters:
    """The voters that `candidate_voters` chooses by all rows, given the extent of all their weights."""
    check_thresholds(thresholds, spacing)
    most: float = MOST_ATOMS
    if thresholds != AUTO:
        most = max(most, ATOMS_OF_BIN * bins_for_values(thresholds, False))
    is_by_ends = spacing == "uniform" and thresholds != "all"
    question = _Question(extent, 1 if is_by_ends else most, frozenset(n_levels))
    first = matrices.reduce(question, question.add)
    if thresholds == AUTO:
        thresholds = auto_thresholds(len(first))

    def chosen(f: int, found: Found) -> tuple[np.ndarray, bool]:
        ends = values_of(np.stack([found.atoms.least, found.atoms.largest], axis=1).ravel())
        runs = np.arange(0, len(ends) + 1, 2), found.atoms.before
        return cuts_of_values(f, ends, lambda: runs, found.has_missing, thresholds, spacing, n_levels.get(f))

    cuts = {f: chosen(f, first[f]) for f in sorted(first)}  # refuses infinity
    columns = {
        f: _Column(found.atoms, bins_for_values(thresholds, found.has_missing), extent.n_rows)
        for f, found in first.items()
        if not is_by_ends and f not in n_levels
    }
    while columns := {f: column for f, column in columns.items() if column.choose(most).any()}:
        question = _Question(extent, most, ranges={f: column.ranges for f, column in columns.items()})
        for f, found in matrices.reduce(question, question.add).items():
            columns[f].divide(found.atoms)
            cuts[f] = chosen(f, Found(columns[f].atoms, first[f].has_missing))
    return voters_of([cuts[f] for f in sorted(cuts)], n_levels)


class _Column:
    """What is known of the values of a feature, and what more has to be known for its cuts."""

    def __init__(self, atoms: Atoms, n_bins: float, n_rows: int) -> None:
        self.atoms, self.n_bins = atoms, n_bins
        self.mass_of_row = atoms.mass.sum() / max(n_rows, 1)
        self.mass_of_value = self.mass_of_row  # typically
        self.heavier: float = HEAVIER
        self.is_open = np.empty(0, dtype=bool)

    @property
    def ranges(self) -> Ranges:
        """Of the atoms that are to be divided."""
        return self.atoms.ranges(self.is_open)

    def choose(self, most: float) -> np.ndarray:
        """Which atoms are to be divided; none if the cuts are known."""
        self.is_open = self.atoms.is_dense
        if self.is_open.any() and len(self.is_open) > self.n_bins:
            self.is_open = self._needed(most)
        return self.is_open

    def _needed(self, most: float) -> np.ndarray:
        mass, is_dense, before = self.atoms.mass, self.atoms.is_dense, self.atoms.before
        borders = borders_met(before, is_dense, int(self.n_bins))
        after = np.searchsorted(borders, before[:-1], side="right")
        # How far each atom is from the next border: below zero, if that is within.
        distance = np.minimum(
            np.append(borders, 2 * before[-1])[after] - before[1:], before[:-1] - np.append(-before[-1], borders)[after]
        )
        is_open = is_dense & ((distance < 0) | (mass > before[-1] / self.n_bins))  # a value may have a bin of its own
        if is_open.any():
            # Values within atoms turn out not to lie densely, and borders move: divide neighbours, too, while there is
            # room, and once those that are so heavy that there may be a heavy value in them.
            nearest = np.flatnonzero(is_dense)[np.argsort(distance[is_dense], kind="stable")]
            n_values = np.cumsum(mass[nearest] / self.mass_of_value)
            n_open = max(np.searchsorted(n_values, most), int(most) // DIVIDED)
            is_open[nearest[: min(n_open, int(most) // 4)]] = True
            heaviest = np.argsort(-mass * is_dense, kind="stable")[: int(most) // DIVIDED]
            is_open[heaviest[mass[heaviest] > self.heavier * before[-1] / len(mass)]] = True
        return is_open

    def divide(self, found: Atoms) -> None:
        """Take what was found in place of the atoms that were to be divided."""
        self.atoms, self.heavier = self.atoms.opened(self.is_open, found), np.inf
        self.mass_of_value = self.mass_of_row if found.shift else float(np.median(found.mass))
