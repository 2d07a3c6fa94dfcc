"""Moments of the splits of a cross-validation: those of all rows less those of the rows held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..common.threads import threads_for
from ..data.exact import Extent, Scales
from ..fitting.measured import Measured, Options
from ..fitting.problem import Problem, Rows
from ..moments.gram import Gram, RestGram
from ..moments.moments import Moments, column_moments
from ..moments.sums import ColumnSums
from ..voters.columns import Voters

VOTERS_FOR_THREADS = 1_000_000  # rated in a run, below which a second thread costs more than it brings


class Split(NamedTuple):
    """Row numbers: those to train on, and those held out for scoring."""

    train: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True)
class Fold:
    """What the rounds need to know of one split."""

    voters: Voters
    train: Moments
    held_out: Moments
    rows: np.ndarray  # numbers of those held out
    measure: Callable[[], Measured]

    @cached_property
    def measured(self) -> Measured:
        """The rows to train on. Rounds do not need them, and copies take long."""
        return self.measure()

    @classmethod
    def of(cls, train: Measured, held_out: Measured, rows: np.ndarray) -> Fold:
        return cls(train.voters, train.moments, held_out.moments, rows, lambda: train)


class Folds:
    """Makes the moments of a split on demand; safe to call from several threads."""

    def __init__(
        self,
        problem: Problem,
        splits: Sequence[Split] | Callable[[np.ndarray], Sequence[Split]],
        options: Options,
        *,
        thresholds_per_fold: bool = False,
        max_rounds: int | None = None,
    ) -> None:
        """`splits` may follow from the codes of all rows.

        `max_rounds` are those of the longest run; None: as the options say.
        """
        self.problem = problem
        self.options = options
        self.per_fold = thresholds_per_fold
        rows, n_threads = problem.rows, threads_for(problem.rows.X.size, options.n_threads)
        self.voters = self._candidates(rows, n_threads)
        self.codes = rows.code(self.voters, n_threads)
        self.splits = splits(self.codes) if callable(splits) else splits
        is_long = self.voters.n_voters * (max_rounds or options.schedule.max_rounds) > VOTERS_FOR_THREADS
        self.n_workers = min(options.n_threads, len(self.splits)) if is_long else 1
        # Weights are rounded once for all splits: Gram columns then subtract without a rounding error.
        self.weight = None if rows.weight is None else Extent.of(len(rows.y), rows.weight).round(rows.weight)
        self.all_rows = column_moments(
            self.voters, self.codes, rows.y, rows.weight, cache_bytes=options.cache_bytes // 2,
            n_threads=n_threads,
        )  # fmt: skip
        gram = self.all_rows.gram
        self.shared = gram.shared() if self.n_workers > 1 else gram.columns()

    def parts(self, number: int) -> tuple[Measured, Measured]:
        """The rows of a split, those to train on and the others, each summed by itself."""
        train, held_out = self.splits[number]
        voters = self._candidates(self.problem.rows.take(train), 1) if self.per_fold else self.voters

        def part(rows: np.ndarray) -> Measured:
            codes = self.problem.rows.take(rows).code(voters, 1) if self.per_fold else self.codes[rows]
            return Measured(self.problem.rows.take(rows), voters, codes, self._moments(voters, codes, rows))

        return part(train), part(held_out)

    def make(self, number: int) -> Fold:
        split = self.splits[number]
        n_times = np.bincount(np.concatenate(split), minlength=len(self.codes))
        if self.per_fold or (n_times != 1).any():  # a row that is in neither part, or in both
            train, held_out = self.parts(number)
            return Fold.of(train, held_out, split.held_out)
        judged = self._moments(self.voters, self.codes[split.held_out], split.held_out)
        rest = self._rest(split.train, judged)

        def measure() -> Measured:
            return Measured(self.problem.rows.take(split.train), self.voters, self.codes[split.train], rest)

        return Fold(self.voters, rest, judged, split.held_out, measure)

    def _rest(self, train: np.ndarray, held_out: Moments) -> Moments:
        """All rows but those held out, by subtraction of Gram columns; the splits share the columns of all rows.

        Targets are summed at the scales of these rows: the fit is that of the training rows alone, to the last bit.
        """
        y, weight = self.problem.rows.y[train], self._weight(train)
        sums = ColumnSums.of(self.voters, self.codes[train], y, weight, Scales.agree([(y, weight)]))
        source = RestGram(self.shared, held_out.gram.columns(), self._cache_bytes)
        return replace(held_out, sums=sums, gram=Gram(source, self._cache_bytes))

    @property
    def _cache_bytes(self) -> int:
        return self.options.cache_bytes // (4 * self.n_workers)  # two stores each, beside the one they share

    def _candidates(self, rows: Rows, n_threads: int) -> Voters:
        return self.problem.voters(rows, self.options.thresholds, self.options.spacing, n_threads)

    def _moments(self, voters: Voters, codes: np.ndarray, rows: np.ndarray) -> Moments:
        y, weight = self.problem.rows.y[rows], self._weight(rows)
        return column_moments(voters, codes, y, weight, cache_bytes=self._cache_bytes)

    def _weight(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.weight is None else self.weight[rows]
