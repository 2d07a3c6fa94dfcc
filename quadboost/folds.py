"""Moments of the splits of a cross-validation.

The Gram columns take the time, and they are shared: the sums over training rows are those over all rows less those over
the rows held out. Where no row is held out twice, one pass over the rows makes a voter's column for all rows
and for the training rows of every split.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Condition, Lock, local
from typing import NamedTuple

import numpy as np

from . import _folds
from .exact import rounded_weights
from .gram import FeatureRows, GramCache, Known, Room, StumpGram
from .moments import SHARE_FOR_SORTING, Moments, stump_moments
from .stumps import Stumps, candidate_stumps
from .threads import threads_for
from .training import Options, Rows

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
    whole: GramCache  # columns of both together: less those of the training rows, they are of the rows held out
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
            X, weight = self.rows.X[train_rows], self.rows.weight
            stumps = self._candidates(X, None if weight is None else weight[train_rows], 1)
            train = self._moments(stumps, stumps.code(X), train_rows)
            held_out = self._moments(stumps, stumps.code(self.rows.X[held_out_rows]), held_out_rows)
            return Fold(stumps, train, held_out, (train + held_out).gram, held_out_rows)
        # Targets are summed anew, not subtracted: voters that agree on all training rows are to have equal edges.
        train = self._moments(self.stumps, self.codes[train_rows], train_rows)
        held_out = self._moments(self.stumps, self.codes[held_out_rows], held_out_rows)
        batch = next((own for own in self.batches if number in own), None)
        if batch is None:
            return Fold(self.stumps, train, held_out, (train + held_out).gram, held_out_rows)
        shared, part = self._shared(batch), 1 + number - batch.start
        train = replace(train, gram=_PartCache(shared, part, self._cache_bytes))
        return Fold(self.stumps, train, held_out, _PartCache(shared, 0, self._cache_bytes), held_out_rows)

    def of_all_rows(self) -> Moments:
        """The moments of all rows; columns that were made for the splits are at hand."""
        if not self.made:
            return self.total
        shared = next(reversed(self.made.values())).shared
        return replace(self.total, gram=_PartCache(shared, 0, self.options.cache_bytes // 2))

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
        weight = None if self.rows.weight is None else self.rows.weight[rows]
        return stump_moments(stumps, codes, self.rows.y[rows], weight, cache_bytes=self._cache_bytes)

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


class FoldGram(StumpGram):
    """Columns of stumps over all rows and over all rows but those of each fold: of shape (folds + 1, K)."""

    def __init__(
        self,
        stumps: Stumps,
        codes: np.ndarray,
        weight: np.ndarray | None,
        fold: np.ndarray,
        voter_sum: np.ndarray,
        row_bytes: int,
    ) -> None:
        """`fold` is the number of each row's fold, from 1; 0 for a row that is in none."""
        super().__init__(stumps, codes, weight, voter_sum, row_bytes, n_threads=1)
        n_folds = int(fold.max(initial=0))
        self.fold = fold
        self._lock = Lock()
        self._scratch = local()
        self._tabulates = False
        bytes_kept = 4 * len(codes) + (n_folds + 1) * self.voter_sum.nbytes  # of one feature
        self._most_kept = max(1, row_bytes // bytes_kept)
        self.row_bytes = bytes_kept * min(self._most_kept, stumps.n_features)
        self.voter_sum = np.zeros((n_folds + 1, stumps.n_voters), dtype=self.dtype)
        self._add_rows(self.voter_sum, np.arange(len(codes), dtype=np.int32), 1)

    def _add_rows(self, column: np.ndarray, rows: np.ndarray, factor: int) -> None:
        if not hasattr(self._scratch, "bins"):
            most = int(np.diff(self.stumps.voter_start).max(initial=1))
            self._scratch.bins = np.empty((len(column), self.stumps.bin_start[-1]), dtype=self.dtype)
            self._scratch.voters = np.empty((len(column) + 1, most), dtype=self.dtype)
        _folds.add_all_but_fold(
            self.codes, self.weight, rows, self.fold, *self.stumps.layout, factor,
            self._scratch.bins, self._scratch.voters, column,
        )  # fmt: skip

    def _rows_of(self, feature: int) -> FeatureRows:
        with self._lock:
            return super()._rows_of(feature)


class SharedColumns:
    """Columns that several threads share. They stay as long as this does, so that no thread loses what it reads."""

    def __init__(self, source: FoldGram, cache_bytes: int) -> None:
        self.source = source
        self.address = np.zeros(source.n_voters, dtype=np.uintp)  # of the column of all rows
        self.column_bytes = source.voter_sum[0].nbytes
        self._most = cache_bytes // max(1, source.voter_sum.nbytes)
        self._columns: dict[int, np.ndarray] = {}
        self._order: list[int] = []
        self._room = Room(source.voter_sum.shape, source.dtype)
        self._making: set[int] = set()  # what other threads are about
        self._changed = Condition()

    def find(self, voter: int) -> np.ndarray | None:
        """The columns of a voter; None if they are not here and there is no room for them."""
        columns = self._columns.get(voter)
        if columns is not None:
            return columns
        with self._changed:
            self._changed.wait_for(lambda: voter not in self._making)
            if voter in self._columns or len(self._columns) + len(self._making) >= self._most:
                return self._columns.get(voter)
            self._making.add(voter)
            columns, near = self._room.take(), self._neighbours(voter)
        is_made = False
        try:
            self.source.make(voter, *near, columns)
            is_made = True
        finally:
            with self._changed:
                self._making.remove(voter)
                if is_made:
                    self._columns[voter] = columns
                    insort(self._order, voter)
                    self.address[voter] = columns.__array_interface__["data"][0]
                self._changed.notify_all()
        return columns

    def make(self, voter: int, part: int, out: np.ndarray) -> None:
        """Write one column of a voter for which there is no room here."""
        with self._changed:
            columns, near = self._room.take(), self._neighbours(voter)
        self.source.make(voter, *near, columns)
        np.copyto(out, columns[part])
        with self._changed:
            self._room.give_back(columns)

    def _neighbours(self, voter: int) -> tuple[Known | None, Known | None]:
        place = bisect_left(self._order, voter)
        before, after = self._order[max(place - 1, 0) : place], self._order[place : place + 1]
        return (
            (before[0], self._columns[before[0]]) if before else None,
            (after[0], self._columns[after[0]]) if after else None,
        )


class _Part:
    """One column of those that are made together."""

    def __init__(self, shared: SharedColumns, part: int) -> None:
        self.shared, self.part = shared, part
        self.dtype, self.n_voters = shared.source.dtype, shared.source.n_voters

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        self.shared.make(voter, self.part, out)


class _PartCache(GramCache):
    """A thread's own view of shared columns; only those for which there is no room there are kept here."""

    def __init__(self, shared: SharedColumns, part: int, cache_bytes: int) -> None:
        super().__init__(_Part(shared, part), cache_bytes)
        self.shared, self.part = shared, part

    def column(self, voter: int) -> np.ndarray:
        columns = self.shared.find(voter)
        if columns is None:
            return super().column(voter)
        if self.address[voter] == 0:  # take note of what others have made, too
            known = self.shared.address
            np.add(known, np.uintp(self.part * self.shared.column_bytes), out=self.address, where=known != 0)
        return columns[self.part]
