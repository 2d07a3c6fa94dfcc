"""Moments of the splits of a cross-validation.

The Gram columns take the time, and they are shared: the sums over training rows are those over all rows less those over
the rows held out. Where no row is held out twice, one pass over the rows makes a voter's column for all rows
and for those that each split holds out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

import numpy as np

from ..common.threads import threads_for
from ..data.exact import rounded_weights
from ..data.rows import Rows
from ..fitting.training import Options
from ..moments.moments import SHARE_FOR_SORTING, Moments, TargetSums, stump_moments
from ..voters.stumps import Stumps, candidate_stumps
from .fold_columns import FoldGram, SharedColumns, SharedView

MOST_TOGETHER = 10  # splits whose columns are made together
VOTERS_FOR_THREADS = 1_000_000  # rated in a run, below which a second thread costs more than it brings
LEAST_KEPT = 100  # voters whose columns must fit in memory to make those of all splits at once


class Split(NamedTuple):
    """Numbers of the rows to train on and of those to judge by."""

    train: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True)
class Fold:
    """What the rounds need to know of one split."""

    stumps: Stumps
    train: Moments
    held_out: Moments
    rows: np.ndarray  # numbers of those held out


class Folds:
    """Moments of every split, made when asked for; several threads may ask."""

    def __init__(
        self,
        rows: Rows,
        splits: Sequence[Split],
        options: Options,
        *,
        n_levels: Mapping[int, int] | None = None,
        thresholds_per_fold: bool = False,
    ) -> None:
        # Weights are rounded once for all splits: Gram columns then subtract without a rounding error.
        self.rows = rows if rows.weight is None else replace(rows, weight=rounded_weights(rows.weight))
        self.splits = splits
        self.options = options
        self.n_levels = n_levels
        self.per_fold = thresholds_per_fold
        n_threads = threads_for(rows.X.size, options.n_threads)
        self.stumps = self._candidates(rows.X, rows.weight, n_threads)
        self.codes = self.stumps.code(rows.X, n_threads)
        self.total = stump_moments(
            self.stumps, self.codes, rows.y, rows.weight, cache_bytes=options.cache_bytes // 2, n_threads=n_threads
        )
        is_long = self.stumps.n_voters * options.schedule.max_rounds > VOTERS_FOR_THREADS
        self.n_workers = min(options.n_threads, len(splits)) if is_long else 1
        self.lock = Lock()
        self.batches = [] if thresholds_per_fold else self._batches()
        self.made: dict[int, _Batch] = {}  # by number of the batch; the latest ones

    def make(self, number: int) -> Fold:
        train_rows, held_out_rows = self.splits[number]
        if self.per_fold:
            X = self.rows.X[train_rows]
            stumps = self._candidates(X, self._weight(train_rows), 1)
            train = self._moments(stumps, stumps.code(X), train_rows)
            held_out = self._moments(stumps, stumps.code(self.rows.X[held_out_rows]), held_out_rows)
            return Fold(stumps, train, held_out, held_out_rows)
        codes = self.codes[train_rows]
        held_out = self._moments(self.stumps, self.codes[held_out_rows], held_out_rows)
        batch = next((own for own in self.batches if number in own), None)
        if batch is None:
            train = self._moments(self.stumps, codes, train_rows)
            return Fold(self.stumps, train, held_out, held_out_rows)
        # Weights subtract exactly; targets are summed anew, and voters that agree on all these rows have equal edges.
        targets = TargetSums.of(self.stumps, codes, self.rows.y[train_rows], self._weight(train_rows))
        shared, fold = self._shared(batch), number - batch.start
        train = replace(
            held_out,
            total_weight=self.total.total_weight - held_out.total_weight,
            voter_sum=self.total.voter_sum - held_out.voter_sum,
            voter_square=self.total.voter_square - held_out.voter_square,
            **targets._asdict(),
            gram=SharedView.of_training(shared, fold, self._cache_bytes),
        )
        held_out = replace(held_out, gram=SharedView.of_held_out(shared, fold, self._cache_bytes))
        return Fold(self.stumps, train, held_out, held_out_rows)

    def of_all_rows(self) -> Moments:
        """The moments of all rows; columns that were made for the splits are at hand."""
        if not self.made:
            return self.total
        shared = next(reversed(self.made.values())).shared
        return replace(self.total, gram=SharedView.of_all_rows(shared, self.options.cache_bytes // 2))

    @property
    def shared_bytes(self) -> int:
        return self.options.cache_bytes * 3 // 4

    @property
    def _cache_bytes(self) -> int:
        return self.options.cache_bytes // (8 * self.n_workers)  # what is not shared: two caches each

    def _candidates(self, X: np.ndarray, weight: np.ndarray | None, n_threads: int) -> Stumps:
        return candidate_stumps(
            X, weight, thresholds=self.options.thresholds, spacing=self.options.spacing,
            n_levels=self.n_levels, n_threads=n_threads,
        )  # fmt: skip

    def _moments(self, stumps: Stumps, codes: np.ndarray, rows: np.ndarray) -> Moments:
        return stump_moments(stumps, codes, self.rows.y[rows], self._weight(rows), cache_bytes=self._cache_bytes)

    def _weight(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.rows.weight is None else self.rows.weight[rows]

    def _batches(self) -> list[range]:
        """Runs of splits that hold out different rows and train on all others; none where memory is scarce."""
        m, found, first, is_held_out = len(self.codes), [], 0, np.zeros(len(self.codes), dtype=bool)
        column_bytes = self.stumps.n_voters * self.total.gram.source.dtype.itemsize
        room = self.shared_bytes // max(1, LEAST_KEPT * column_bytes) - 1  # for so many splits
        for number, (train, held_out) in enumerate(self.splits):
            is_rest = np.all(np.bincount(np.concatenate([train, held_out]), minlength=m) == 1)
            if not is_rest or is_held_out[held_out].any() or number - first == min(MOST_TOGETHER, room):
                found.append(range(first, number))
                first, is_held_out = number + (not is_rest), np.zeros(m, dtype=bool)
            is_held_out[held_out] = True
        found.append(range(first, len(self.splits)))
        return [batch for batch in found if len(batch) > 0] if room > 0 else []

    def _shared(self, batch: range) -> SharedColumns:
        number = self.batches.index(batch)
        with self.lock:
            if number not in self.made:
                if len(self.made) > 1:
                    del self.made[next(iter(self.made))]
                self.made[number] = _Batch(self, batch)
            return self.made[number].shared


class _Batch:
    """The rows in the order of the splits that hold them out: those of a split are then counted together."""

    def __init__(self, folds: Folds, batch: range) -> None:
        m, weight = len(folds.codes), folds.rows.weight
        fold = np.zeros(m, dtype=np.uint8)
        for k, number in enumerate(batch):
            fold[folds.splits[number].held_out] = k + 1
        order = np.argsort(fold, kind="stable")
        cache_bytes = folds.shared_bytes // min(2, len(folds.batches))
        source = FoldGram(
            folds.stumps,
            np.ascontiguousarray(folds.codes[order]),
            None if weight is None else weight[order],
            fold[order],
            folds.total.voter_sum,
            cache_bytes // SHARE_FOR_SORTING,
        )
        self.shared = SharedColumns(source, cache_bytes - source.row_bytes)
