"""The candidate voters of rows in parts: those that all rows at once would have, exactly.

A sample tells where to cut each feature into atoms of about the same mass. Parts count these, and where a border
between bins falls within an atom, the next passes look at the values in that one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..data.exact import Extent
from ..kernels.bins import copy_columns, take_between
from ..voters.bins import BinIndex, bin_index
from ..voters.columns import Voters, checked_values
from ..voters.quantiles import borders_met
from ..voters.thresholds import (
    AUTO,
    auto_thresholds,
    bins_for_values,
    check_thresholds,
    cuts_of_values,
    refuse_infinity,
    row_mass,
    voters_of,
)  # fmt: skip
from .atoms import Atoms, Counts, Ranges, Values, cuts_by_sample, cuts_within, just_below
from .source import Source

ATOMS_OF_BIN = 64  # that a feature is first cut into
SAMPLED_OF_ATOM = 4  # values that are sampled; as many rows or fewer are looked at whole
DIVIDED, LEAST_DIVIDED = 64, 16  # into so many atoms one is divided at the most, and if others are for caution
MOST_OF_BIN = 1024  # atoms in one answer
FEATURES_TOGETHER = 8  # doubles in a cache line
ROWS_TOGETHER = 1 << 18
BUCKETS_OF_END = 64  # for each end of a range; with many, few values are in a bucket near one


Answer = Counts | Values  # of a feature


class Matrix(NamedTuple):
    """Some rows as one real matrix, and their weights."""

    X: np.ndarray
    weight: np.ndarray | None = None


@dataclass(frozen=True)
class _Sample:
    """The question for the values of a sample of rows, or of all if there are few."""

    extent: Extent
    n_wanted: float

    def __call__(self, part: Matrix) -> dict[int, Any]:
        X = checked_values(part.X)
        mass = None if part.weight is None else row_mass(self.extent, part.weight)
        if self.n_wanted < self.extent.n_rows:
            X, mass = X[self._rows(len(X), part.weight)], None
        return {f: Values(column, mass) for f, column in enumerate(np.ascontiguousarray(X.T))}

    def _rows(self, n_rows: int, weight: np.ndarray | None) -> np.ndarray:
        """About as many as this part's share, one by chance from each stretch of the same weight."""
        before = np.arange(n_rows + 1.0) if weight is None else np.append(0.0, np.cumsum(weight))
        n_sampled = int(np.ceil(self.n_wanted * before[-1] / self.extent.total))
        at = (np.arange(n_sampled) + np.random.default_rng(0).random(n_sampled)) * (before[-1] / max(n_sampled, 1))
        return np.clip(np.searchsorted(before, at, side="right") - 1, 0, n_rows - 1)


class Asked(NamedTuple):
    """The values of a feature to look at (None: all), and the cuts between their atoms (None: every value is one)."""

    ranges: Ranges | None
    cuts: np.ndarray | None


@dataclass(frozen=True)
class _Count:
    """The question for the atoms of some features."""

    extent: Extent
    asked: Mapping[int, Asked]

    @cached_property
    def _makers(self) -> dict[int, Callable[[], _Counter | _Taker]]:
        """Of each feature, what begins to count a part."""
        return {f: _counter(asked) for f, asked in self.asked.items()}

    def __call__(self, part: Matrix) -> dict[int, Any]:
        X = checked_values(part.X)
        mass = None if part.weight is None else row_mass(self.extent, part.weight)
        # Few rows at a time: the system takes as long to hand out more memory as the kernels to fill it.
        n_rows = min(ROWS_TOGETHER, len(X))
        room = np.empty(FEATURES_TOGETHER * n_rows, X.dtype), np.empty(n_rows, np.int64)
        answers: dict[int, Answer] = {}
        for first in range(0, X.shape[1], FEATURES_TOGETHER):
            group = range(first, min(first + FEATURES_TOGETHER, X.shape[1]))
            answers |= self._of_group(X, mass, group, room)
        return answers

    def _of_group(
        self, X: np.ndarray, mass: np.ndarray | None, group: range, room: tuple[np.ndarray, np.ndarray]
    ) -> dict[int, Answer]:
        """Of a few features, together: neighbours in a row-major X are in the same cache lines."""
        counters = {f: self._makers[f]() for f in group if f in self._makers}
        for begin in range(0, len(X) if counters else 0, ROWS_TOGETHER):
            rows = slice(begin, min(begin + ROWS_TOGETHER, len(X)))
            n_rows = rows.stop - begin
            columns = room[0][: len(group) * n_rows].reshape(len(group), n_rows)
            copy_columns(X[rows], group.start, columns)
            for f, counter in counters.items():
                counter.add(columns[f - group.start], None if mass is None else mass[rows], room[1])
        return {f: counter.answer() for f, counter in counters.items()}


class _Counter:
    """Counts all values by atoms."""

    def __init__(self, index: BinIndex, n_cuts: int) -> None:
        self.index, self.counts = index, Counts.none(n_cuts)

    def add(self, column: np.ndarray, mass: np.ndarray | None, rows: np.ndarray) -> None:
        self.counts.add_values(self.index, column, mass)

    def answer(self) -> Answer:
        return self.counts


class _Taker:
    """Takes the values in some ranges, and counts them if there are cuts."""

    def __init__(self, index: BinIndex, is_near: np.ndarray, cuts: np.ndarray | None) -> None:
        self.index, self.is_near, self.cuts = index, is_near, cuts
        self.found: list[Values] = []

    def add(self, column: np.ndarray, mass: np.ndarray | None, rows: np.ndarray) -> None:
        taken = rows[: take_between(column, *self.index, self.is_near, rows)]
        self.found.append(Values(column[taken], None if mass is None else mass[taken]))

    def answer(self) -> Answer:
        values = Values.joined(self.found)
        if self.cuts is None:
            return values
        counts = Counts.none(len(self.cuts))
        counts.add_values(bin_index([self.cuts]), *values)
        return counts


def _counter(asked: Asked) -> Callable[[], _Counter | _Taker]:
    if asked.ranges is None:
        assert asked.cuts is not None  # to take all values would take too much room
        return partial(_Counter, bin_index([asked.cuts]), len(asked.cuts))
    ends = np.stack([just_below(asked.ranges[0]), asked.ranges[1]], axis=1).ravel()
    index = bin_index([ends], BUCKETS_OF_END)
    before = index.place  # how many ends come before each bucket; an odd number: a range goes on
    is_near = np.append((before[:-1] & 1) | (np.diff(before) > 0), 0).astype(np.uint8)
    return partial(_Taker, index, is_near, asked.cuts)


def add_answers(one: Mapping[int, Any], other: Mapping[int, Any]) -> dict[int, Any]:
    """The answers of two parts together."""
    return {f: answer + other[f] for f, answer in one.items()}


def voters_of_parts(
    matrices: Source[Matrix], extent: Extent, thresholds: int | str, spacing: str, n_features: int,
    n_levels: Mapping[int, int],
) -> Voters:  # fmt: skip
    """The voters that `candidate_voters` chooses by all rows, given the extent of all their weights."""
    check_thresholds(thresholds, spacing)
    if thresholds == AUTO:
        thresholds = auto_thresholds(n_features)
    is_by_ends = spacing == "uniform" and thresholds != "all"
    searched = [f for f in range(n_features) if not is_by_ends and f not in n_levels]
    found, reach = _first_atoms(matrices, extent, bins_for_values(thresholds, False), n_features, searched)
    first = {f: answer.atoms for f, answer in found.items()}
    for f, atoms in first.items():
        if len(atoms.mass):
            refuse_infinity(f, atoms.least[0], atoms.largest[-1])
    columns = {
        f: _Column(first[f], bins_for_values(thresholds, found[f].has_missing), extent, reach[f]) for f in searched
    }
    _divide(matrices, extent, columns)

    def chosen(f: int) -> tuple[np.ndarray, bool]:
        atoms = columns[f].atoms if f in columns else first[f]
        ends = np.stack([atoms.least, atoms.largest], axis=1).ravel()
        runs = np.arange(0, len(ends) + 1, 2), atoms.before
        return cuts_of_values(f, ends, lambda: runs, found[f].has_missing, thresholds, spacing, n_levels.get(f))

    return voters_of([chosen(f) for f in range(n_features)], n_levels)


def _first_atoms(
    matrices: Source[Matrix], extent: Extent, n_bins: float, n_features: int, searched: Sequence[int]
) -> tuple[Mapping[int, Answer], dict[int, float]]:
    """All values of every feature, in atoms, and how far borders may move when these are divided.

    Those that are searched for borders are cut by a sample; of others only the ends are asked for.
    """
    cuts, reach = dict.fromkeys(range(n_features), np.empty(0)), dict.fromkeys(range(n_features), 0.0)
    if searched:
        n_wanted = SAMPLED_OF_ATOM * ATOMS_OF_BIN * n_bins
        sample = _Sample(extent, n_wanted)
        found = matrices.reduce(sample, add_answers)
        if n_wanted >= extent.n_rows:
            return found, reach
        for f in searched:
            cuts[f], reach[f] = _first_cuts(found[f].atoms, n_bins)
    count = _Count(extent, {f: Asked(None, each) for f, each in cuts.items()})
    return matrices.reduce(count, add_answers), reach


def _first_cuts(sample: Atoms, n_bins: float) -> tuple[np.ndarray, float]:
    cuts, alone = cuts_by_sample(sample, int(ATOMS_OF_BIN * n_bins))
    # How often two rows have the same value tells how heavy values are; each bin may end before one.
    times = sample.mass[~np.isin(sample.least, alone)]
    share = float(times @ (times - 1)) / max(1, int(sample.mass.sum())) ** 2
    return cuts[np.isfinite(cuts)], n_bins / 2 * share


def _divide(matrices: Source[Matrix], extent: Extent, columns: Mapping[int, _Column]) -> None:
    """Divide atoms until the cuts of all columns are known."""
    while asked := {f: question for f, column in columns.items() if (question := column.asked()) is not None}:
        count = _Count(extent, asked)
        for f, found in matrices.reduce(count, add_answers).items():
            columns[f].divide(found.atoms)


class _Column:
    """What is known of the values of a feature, and what more has to be known for its cuts."""

    def __init__(self, atoms: Atoms, n_bins: float, extent: Extent, reach: float) -> None:
        """Borders may still move as far as `reach`, as a share of all mass."""
        self.atoms, self.n_bins, self.extent, self.reach = atoms, n_bins, extent, reach

    def asked(self) -> Asked | None:
        """What to ask next; None if the cuts are known."""
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
