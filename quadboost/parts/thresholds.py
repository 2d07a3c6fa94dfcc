"""The candidate voters of rows in parts: those that all rows at once would have, exactly.

A sample tells where to cut each feature into atoms of about the same mass. Parts count these, and where a border
between bins falls within an atom, the next passes look at the values in that one alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..data.exact import Extent
from ..kernels.bins import copy_columns, take_between
from ..voters.bins import bin_index
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
from .atoms import Atoms, Ranges, cuts_by_sample, cuts_within, just_below
from .source import Source

ATOMS_OF_BIN = 16  # that a feature is first cut into
SAMPLED_OF_ATOM = 8  # values that are sampled; as many rows or fewer are looked at whole
DIVIDED, LEAST_DIVIDED = 64, 16  # into so many atoms one is divided at the most, and if others are for caution
MOST_OF_BIN = 256  # atoms in one answer


class Matrix(NamedTuple):
    """Some rows as one real matrix, and their weights."""

    X: np.ndarray
    weight: np.ndarray | None = None


class Found(NamedTuple):
    """What the first pass learns of a feature: its values or a sample of them, and the ends of all."""

    sample: Atoms
    least: float
    largest: float
    has_missing: bool

    def joined(self, other: Found) -> Found:
        least, largest = min(self.least, other.least), max(self.largest, other.largest)
        return Found(self.sample.joined(other.sample), least, largest, self.has_missing or other.has_missing)


@dataclass(frozen=True)
class _Sample:
    """The question for a sample of rows, or for all if there are few, and for the ends of every feature."""

    extent: Extent
    n_wanted: float
    ends_only: frozenset[int]  # features of which no value is wanted

    def __call__(self, part: Matrix) -> dict[int, Found]:
        X = checked_values(part.X)
        mass = None if part.weight is None else row_mass(self.extent, part.weight)
        rows = X
        if self.n_wanted < self.extent.n_rows:
            rows, mass = X[self._rows(len(X), part.weight)], None
        missing = np.isnan(X).any(axis=0)
        least, largest = (end.reduce(X, axis=0, initial=np.nan) for end in (np.fmin, np.fmax))
        found = {}
        for f in range(X.shape[1]):
            sample = _atoms_of(rows[: 0 if f in self.ends_only else None, f].copy(), mass, None)
            ends = (np.inf, -np.inf) if np.isnan(least[f]) else (float(least[f]) + 0.0, float(largest[f]) + 0.0)
            found[f] = Found(sample, *ends, bool(missing[f]))
        return found

    def _rows(self, n_rows: int, weight: np.ndarray | None) -> np.ndarray:
        """About as many as this part's share, one by chance from each stretch of the same weight."""
        before = np.arange(n_rows + 1.0) if weight is None else np.append(0.0, np.cumsum(weight))
        n_sampled = int(np.ceil(self.n_wanted * before[-1] / self.extent.total))
        at = (np.arange(n_sampled) + np.random.default_rng(0).random(n_sampled)) * (before[-1] / max(n_sampled, 1))
        return np.clip(np.searchsorted(before, at, side="right") - 1, 0, n_rows - 1)

    def add(self, one: dict[int, Found], other: dict[int, Found]) -> dict[int, Found]:
        return {f: found.joined(other[f]) for f, found in one.items()}


class Asked(NamedTuple):
    """The values of a feature to look at (None: all), and the cuts between their atoms (None: every value is one)."""

    ranges: Ranges | None
    cuts: np.ndarray | None


@dataclass(frozen=True)
class _Count:
    """The question for the atoms of some features."""

    extent: Extent
    asked: Mapping[int, Asked]

    def __call__(self, part: Matrix) -> dict[int, Atoms]:
        X = checked_values(part.X)
        mass = None if part.weight is None else row_mass(self.extent, part.weight)
        found = {}
        for first in range(0, X.shape[1], FEATURES_TOGETHER):
            features = range(first, min(first + FEATURES_TOGETHER, X.shape[1]))
            if any(f in self.asked for f in features):
                columns = np.empty((len(features), len(X)), dtype=X.dtype)
                copy_columns(X, first, columns)
                found.update({f: self._count(f, columns[f - first], mass) for f in features if f in self.asked})
        return found

    def _count(self, f: int, column: np.ndarray, mass: np.ndarray | None) -> Atoms:
        ranges, cuts = self.asked[f]
        if ranges is not None:
            rows = _rows_between(column, ranges)
            column, mass = column[rows], None if mass is None else mass[rows]
        return _atoms_of(column, mass, cuts)

    def add(self, one: dict[int, Atoms], other: dict[int, Atoms]) -> dict[int, Atoms]:
        return {f: atoms.joined(other[f], self.asked[f].cuts) for f, atoms in one.items()}


def _rows_between(column: np.ndarray, ranges: Ranges) -> np.ndarray:
    """The rows whose value lies in a range."""
    ends = np.stack([just_below(ranges[0]), ranges[1]], axis=1).ravel()
    rows = np.empty(len(column), dtype=np.int64)
    return rows[: take_between(column, *bin_index([ends]), rows)]


def _atoms_of(column: np.ndarray, mass: np.ndarray | None, cuts: np.ndarray | None) -> Atoms:
    """Sorts the column."""
    column += 0  # minus zero is zero
    order = None if mass is None else np.argsort(column)
    column.sort()  # NaN last
    values = column[: np.searchsorted(column, np.nan)]
    return Atoms.of(values, None if mass is None or order is None else mass[order[: len(values)]], cuts)


def voters_of_parts(
    matrices: Source[Matrix], extent: Extent, thresholds: int | str, spacing: str, n_levels: Mapping[int, int]
) -> Voters:
    """The voters that `candidate_voters` chooses by all rows, given the extent of all their weights."""
    check_thresholds(thresholds, spacing)
    is_by_ends = spacing == "uniform" and thresholds != "all"
    most_bins = bins_for_values(auto_thresholds(1) if thresholds == AUTO else thresholds, False)
    n_wanted = 0 if is_by_ends else SAMPLED_OF_ATOM * ATOMS_OF_BIN * most_bins
    question = _Sample(extent, n_wanted, frozenset(n_levels))
    first = matrices.reduce(question, question.add)
    if thresholds == AUTO:
        thresholds = auto_thresholds(len(first))

    def chosen(f: int, atoms: Atoms) -> tuple[np.ndarray, bool]:
        ends = np.stack([atoms.least, atoms.largest], axis=1).ravel()
        runs = np.arange(0, len(ends) + 1, 2), atoms.before
        return cuts_of_values(f, ends, lambda: runs, first[f].has_missing, thresholds, spacing, n_levels.get(f))

    known = {f: _ends(found) for f, found in first.items()}
    cuts = {f: chosen(f, atoms) for f, atoms in known.items()}  # refuses infinity
    if not is_by_ends:
        columns = {
            f: _Column(found, bins_for_values(thresholds, found.has_missing), extent, n_wanted)
            for f, found in first.items()
            if f not in n_levels
        }
        _divide(matrices, extent, columns)
        cuts |= {f: chosen(f, column.atoms) for f, column in columns.items()}
    return voters_of([cuts[f] for f in sorted(cuts)], n_levels)


def _ends(found: Found) -> Atoms:
    n = int(found.least <= found.largest)  # none, if all values are missing
    return Atoms(np.full(n, found.least), np.full(n, found.largest), np.ones(n, np.int64))


def _divide(matrices: Source[Matrix], extent: Extent, columns: Mapping[int, _Column]) -> None:
    """Divide atoms until the cuts of all columns are known."""
    while asked := {f: question for f, column in columns.items() if (question := column.asked()) is not None}:
        count = _Count(extent, asked)
        for f, atoms in matrices.reduce(count, count.add).items():
            columns[f].divide(atoms)


class _Column:
    """What is known of the values of a feature, and what more has to be known for its cuts."""

    def __init__(self, found: Found, n_bins: float, extent: Extent, n_sampled: float) -> None:
        self.n_bins, self.extent, self.sample = n_bins, extent, found.sample
        self.atoms = found.sample if n_sampled >= extent.n_rows else _ends(found)
        self.is_open = self.atoms.is_dense
        self.is_new = True
        self.reach = 0.0  # borders may still move so far, as a share of all mass

    def asked(self) -> Asked | None:
        """What to ask next; None if the cuts are known."""
        if self.is_new:
            return self._asked_first() if self.is_open.any() else None
        self.is_open = self.atoms.is_dense
        if self.is_open.any() and len(self.is_open) > self.n_bins:
            self.is_open = self._needed()
        if not self.is_open.any():
            return None
        ranges = self.atoms.ranges(self.is_open)
        if self.extent.counts_rows and self.atoms.mass[self.is_open].sum() <= self.most:
            return Asked(ranges, None)
        return Asked(ranges, cuts_within(ranges, int(np.clip(self.most // len(ranges[0]), 4, DIVIDED))))

    @property
    def most(self) -> int:
        """Atoms in one answer."""
        return int(MOST_OF_BIN * self.n_bins)

    def _asked_first(self) -> Asked:
        cuts, alone = cuts_by_sample(self.sample, int(ATOMS_OF_BIN * self.n_bins))
        # How often two rows have the same value tells how heavy values are; each bin may end before one.
        times = self.sample.mass[~np.isin(self.sample.least, alone)]
        share = float(times @ (times - 1)) / max(1, int(self.sample.mass.sum())) ** 2
        self.reach = self.n_bins / 2 * share
        return Asked(None, cuts)

    def _needed(self) -> np.ndarray:
        """Which atoms are to be divided."""
        mass, is_dense, before = self.atoms.mass, self.atoms.is_dense, self.atoms.before
        borders = borders_met(before, is_dense, int(self.n_bins))
        after = np.searchsorted(borders, before[:-1], side="right")
        # How far each atom is from the next border: below zero, if that is within.
        distance = np.minimum(
            np.append(borders, 2 * before[-1])[after] - before[1:], before[:-1] - np.append(-before[-1], borders)[after]
        )
        is_open = is_dense & ((distance < 0) | (mass > before[-1] / self.n_bins))  # a value may have a bin of its own
        if is_open.any():  # values within turn out not to lie densely, and borders move: divide neighbours, too
            near = np.flatnonzero(is_dense & (distance < self.reach * before[-1]))
            nearest = near[np.argsort(distance[near], kind="stable")]
            n_fit = np.searchsorted(np.cumsum(mass[nearest]), self.most)  # into one answer, every value by itself
            is_open[nearest[: max(n_fit, self.most // LEAST_DIVIDED)]] = True
        return is_open

    def divide(self, found: Atoms) -> None:
        """Take what was found in place of the atoms that were to be divided."""
        self.atoms = self.atoms.opened(self.is_open, found)
        self.is_new = False
