"""Moments of the splits of a cross-validation.

The Gram columns take the time, and they are shared: the sums over training rows are those over all rows less those over
the rows held out. Where no row is held out twice, one pass over the rows makes a voter's column for all rows
and for those that each split holds out.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Condition, Lock, local
from typing import NamedTuple

import numpy as np

from . import _counts, _folds
from .exact import rounded_weights
from .gram import FeatureRows, GramCache, Known, Room, StumpGram
from .moments import SHARE_FOR_SORTING, Moments, stump_moments
from .stumps import Stumps, candidate_stumps
from .threads import threads_for
from .training import Options, Rows

MOST_TOGETHER = 10  # splits whose columns are made together
VOTERS_FOR_THREADS = 1_000_000  # rated in a run, below which a second thread costs more than it brings
ALIGNMENT = 64  # bytes
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
            X, weight = self.rows.X[train_rows], self.rows.weight
            stumps = self._candidates(X, None if weight is None else weight[train_rows], 1)
            train = self._moments(stumps, stumps.code(X), train_rows)
            held_out = self._moments(stumps, stumps.code(self.rows.X[held_out_rows]), held_out_rows)
            return Fold(stumps, train, held_out, held_out_rows)
        # Targets are summed anew, not subtracted: voters that agree on all training rows are to have equal edges.
        train = self._moments(self.stumps, self.codes[train_rows], train_rows)
        held_out = self._moments(self.stumps, self.codes[held_out_rows], held_out_rows)
        batch = next((own for own in self.batches if number in own), None)
        if batch is not None:
            shared, fold = self._shared(batch), number - batch.start
            train = replace(train, gram=_View.of_training(shared, fold, self._cache_bytes))
            held_out = replace(held_out, gram=_View.of_held_out(shared, fold, self._cache_bytes))
        return Fold(self.stumps, train, held_out, held_out_rows)

    def of_all_rows(self) -> Moments:
        """The moments of all rows; columns that were made for the splits are at hand."""
        if not self.made:
            return self.total
        shared = next(reversed(self.made.values())).shared
        return replace(self.total, gram=_View.of_all_rows(shared, self.options.cache_bytes // 2))

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
    """Columns of stumps over all rows, and over those of each fold.

    They are made together, and handled as the bytes of both: `whole` and `held_out` say what they hold.
    """

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
        size = np.bincount(fold)
        self.fold, self.n_folds = fold, len(size) - 1
        is_small = self.dtype == np.int32 and size[1:].max(initial=0) <= np.iinfo(np.int16).max
        self.held_out_dtype = np.dtype(np.int16) if is_small else self.dtype
        self._lock = Lock()
        self._own = local()
        self._tabulates = False
        bytes_kept = 4 * len(codes) + self.column_bytes  # of one feature
        self._most_kept = max(1, row_bytes // bytes_kept)
        self.row_bytes = bytes_kept * min(self._most_kept, stumps.n_features)
        self.voter_sum, nothing = self._new_column(), self._new_column()
        nothing[:] = 0
        self._write_rows(self.voter_sum, 1, nothing, np.arange(len(codes), dtype=np.int32), 1)

    @property
    def column_bytes(self) -> int:
        """Of the columns of one voter; a round figure, or those of the next would not be aligned."""
        return -(-self.offset_of(self.n_folds) // ALIGNMENT) * ALIGNMENT

    def offset_of(self, fold: int) -> int:
        """Where the column of a fold begins, counted from 0."""
        return self.n_voters * (self.dtype.itemsize + fold * self.held_out_dtype.itemsize)

    def whole(self, columns: np.ndarray) -> np.ndarray:
        """The column of all rows."""
        return columns[: self.offset_of(0)].view(self.dtype)

    def held_out(self, columns: np.ndarray, fold: int) -> np.ndarray:
        """The column of the rows of a fold."""
        return columns[self.offset_of(fold) : self.offset_of(fold + 1)].view(self.held_out_dtype)

    def _new_column(self) -> np.ndarray:
        return np.empty(self.column_bytes, dtype=np.uint8)

    def _write_rows(self, out: np.ndarray, sign: int, base: np.ndarray, rows: np.ndarray, factor: int) -> None:
        if not hasattr(self._own, "counter"):
            self._own.counter = _folds.FoldCounter(
                self.codes, self.weight, *self.stumps.layout, self.fold, self.n_folds, self.held_out_dtype.itemsize
            )
        self._own.counter.write(rows, factor, sign, base, out)

    def _rows_of(self, feature: int) -> FeatureRows:
        rows = self._kept.get(feature)
        if rows is not None and len(self._kept) == self.stumps.n_features:  # nothing will ever have to make room
            return rows
        with self._lock:
            return super()._rows_of(feature)


class SharedColumns:
    """Columns that several threads share. They stay as long as this does, so that no thread loses what it reads."""

    def __init__(self, source: FoldGram, cache_bytes: int) -> None:
        self.source = source
        self.made: list[
            tuple[int, int]
        ] = []  # voters in the order in which their columns were made, and where these are
        self._most = cache_bytes // max(1, source.column_bytes)
        self._columns: dict[int, np.ndarray] = {}
        self._order: list[int] = []
        self._room = Room((source.column_bytes,), np.dtype(np.uint8))
        self._making: set[int] = set()  # what other threads are about
        self._changed = Condition()

    def find(self, voter: int) -> np.ndarray | None:
        """The columns of a voter; None if they are not here and there is no room for them."""
        columns = self._columns.get(voter)
        if columns is not None:
            return columns
        with self._changed:
            while voter in self._making:
                self._changed.wait()
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
                    insort(self._order, voter)
                    self.made.append((voter, _counts.address_of(columns)))
                    self._columns[voter] = columns  # last: who finds it here relies on the rest
                self._changed.notify_all()
        return columns

    def make(self, voter: int) -> np.ndarray:
        """Columns of a voter for which there is no room here."""
        with self._changed:
            near = self._neighbours(voter)
        columns = np.empty(self.source.column_bytes, dtype=np.uint8)
        self.source.make(voter, *near, columns)
        return columns

    def _neighbours(self, voter: int) -> tuple[Known | None, Known | None]:
        place = bisect_left(self._order, voter)
        before, after = self._order[max(place - 1, 0) : place], self._order[place : place + 1]
        return (
            (before[0], self._columns[before[0]]) if before else None,
            (after[0], self._columns[after[0]]) if after else None,
        )


class _Part(NamedTuple):
    """One column of those that are made together, as a source of its own."""

    shared: SharedColumns
    dtype: np.dtype
    take: Callable[[np.ndarray], np.ndarray]  # out of what was made

    @property
    def n_voters(self) -> int:
        return self.shared.source.n_voters

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        out[:] = self.take(self.shared.make(voter))


class _View(GramCache):
    """A thread's own view of shared columns; only those for which there is no room there are kept here."""

    def __init__(self, part: _Part, cache_bytes: int, offset: int = 0, less_offset: int = 0) -> None:
        """The column is `offset` bytes into the shared ones, one to subtract `less_offset` bytes; 0: there is none."""
        super().__init__(part, cache_bytes)
        self.part = part
        self.offset, self.less_offset = offset, less_offset
        self.less = np.zeros_like(self.address) if less_offset > 0 else None
        self.less_dtype = part.shared.source.held_out_dtype
        self._n_seen = 0  # of the voters whose columns are shared

    @classmethod
    def of_all_rows(cls, shared: SharedColumns, cache_bytes: int) -> _View:
        return cls(_Part(shared, shared.source.dtype, shared.source.whole), cache_bytes)

    @classmethod
    def of_held_out(cls, shared: SharedColumns, fold: int, cache_bytes: int) -> _View:
        source = shared.source
        part = _Part(shared, source.held_out_dtype, lambda columns: source.held_out(columns, fold))
        return cls(part, cache_bytes, offset=source.offset_of(fold))

    @classmethod
    def of_training(cls, shared: SharedColumns, fold: int, cache_bytes: int) -> _View:
        source = shared.source
        part = _Part(shared, source.dtype, lambda columns: source.whole(columns) - source.held_out(columns, fold))
        return cls(part, cache_bytes, less_offset=source.offset_of(fold))

    def column(self, voter: int) -> np.ndarray:
        columns = self.part.shared.find(voter)
        return super().column(voter) if columns is None else self.part.take(columns)

    def fetch(self, voter: int) -> None:
        shared = self.part.shared
        columns = shared.find(voter)
        if columns is None:
            super().fetch(voter)
            return
        for other, address in shared.made[self._n_seen :]:  # take note of what others have made, too
            self._n_seen += 1
            self._note(other, address)
        if self.address[voter] == 0:
            self._note(voter, _counts.address_of(columns))

    def _note(self, voter: int, address: int) -> None:
        self.address[voter] = address + self.offset
        if self.less is not None:
            self.less[voter] = address + self.less_offset
