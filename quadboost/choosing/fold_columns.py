"""Gram columns of all rows and of the rows of every fold, made together and shared by the threads of a search."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from threading import Condition, Lock, local
from typing import NamedTuple

import numpy as np

from ..kernels import counts, folds
from ..moments.gram import FeatureRows, GramCache, Known, Room, StumpGram, neighbours
from ..voters.stumps import Stumps

ALIGNMENT = 64  # bytes


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
            self._own.counter = folds.FoldCounter(
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
        self.made: list[tuple[int, int]] = []  # in order: voters, and where their columns are
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
            columns, near = self._room.take(), neighbours(voter, self._order, self._columns)
            self._making.add(voter)
        is_made = False
        try:
            self.source.make(voter, *near, columns)
            is_made = True
        finally:
            with self._changed:
                self._making.remove(voter)
                if is_made:
                    insort(self._order, voter)
                    self.made.append((voter, counts.address_of(columns)))
                    self._columns[voter] = columns  # last: who finds it here relies on the rest
                else:
                    self._room.give_back(columns)
                self._changed.notify_all()
        return columns

    def make(self, voter: int) -> np.ndarray:
        """Columns of a voter for which there is no room here."""
        with self._changed:
            near = neighbours(voter, self._order, self._columns)
        columns = np.empty(self.source.column_bytes, dtype=np.uint8)
        self.source.make(voter, *near, columns)
        return columns


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


class SharedView(GramCache):
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
    def of_all_rows(cls, shared: SharedColumns, cache_bytes: int) -> SharedView:
        return cls(_Part(shared, shared.source.dtype, shared.source.whole), cache_bytes)

    @classmethod
    def of_held_out(cls, shared: SharedColumns, fold: int, cache_bytes: int) -> SharedView:
        source = shared.source
        part = _Part(shared, source.held_out_dtype, lambda columns: source.held_out(columns, fold))
        return cls(part, cache_bytes, offset=source.offset_of(fold))

    @classmethod
    def of_training(cls, shared: SharedColumns, fold: int, cache_bytes: int) -> SharedView:
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
            self._note(voter, counts.address_of(columns))

    def _note(self, voter: int, address: int) -> None:
        self.address[voter] = address + self.offset
        if self.less is not None:
            self.less[voter] = address + self.less_offset
