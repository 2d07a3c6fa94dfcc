"""Columns of the Gram matrix of the voters, made when they are first asked for and kept within a budget.

A source makes a column: the sums over rows of weight * h_i * h_j for one voter j and every voter i. `Columns` keep what
was made, for one run of rounds at a time. A `Gram` lends them, and makes others while they are lent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any, Protocol

import numpy as np

from ..common import threads
from ..kernels.gram import ColumnMaker
from ..kernels.store import DifferenceMaker, Maker, Store
from ..kernels.sums import matrix_products, sort_rows
from ..voters.columns import Voters

COUNTS_LIMIT = 1 << 29  # rows, up to which three times their number fits in 32 bits: what is summed on the way
PIECE_BYTES = 1 << 24  # of memory for columns; large enough for the system's large pages
TABLE_PAYS = 4  # codes per cell of a table of joint counts, from which it is worth its memory
COUNTS, SUMS = np.dtype(np.int32), np.dtype(np.float64)


class GramSource(Protocol):
    """Makes the Gram columns of one family of voters on one set of rows, for one thread at a time.

    Attributes
    ----------
    dtype : dtype
        int32 for plain counts, float64 otherwise.
    n_voters, n_rows : int
    maker : Maker
        What kernels ask for a column.
    """

    dtype: Any
    n_voters: Any
    n_rows: Any
    maker: Any

    def prepare(self, voter: int) -> None:
        """Prepare whatever the maker needs for a voter's column."""

    def write(self, voter: int, out: np.ndarray) -> None:
        """Write a voter's column in Python, where the maker cannot."""

    def clone(self, dtype: np.dtype | None = None) -> GramSource:
        """Another source of the same columns, for another thread; or of columns of another type."""


class Columns:
    """Gram columns of a source, within `cache_bytes`; those used longest ago make room."""

    def __init__(self, source: GramSource, cache_bytes: int) -> None:
        self.source = source
        self.store = Store(source.maker, source.n_voters, source.dtype == COUNTS)
        column_bytes = max(1, source.n_voters * source.dtype.itemsize)
        self._most = max(2, cache_bytes // column_bytes)
        self._most_at_once = max(1, PIECE_BYTES // column_bytes)
        self._n_columns = 0  # for which there is memory
        self._square = np.empty(0)

    def column(self, voter: int) -> np.ndarray:
        """The column of one voter, not a copy: sums over rows of weight * h_i * h_voter for every voter i."""
        self.fetch(voter)
        return self.store.column(voter)

    def fetch(self, voter: int) -> None:
        """Make sure that the column of one voter is in memory."""
        if not self.store.find(voter):
            self._make(voter)

    def square(self, n: int) -> np.ndarray:
        """Scratch memory for n by n numbers, reused: the system takes long to hand out more."""
        if len(self._square) < n * n:
            self._square = np.empty(n * n * 5 // 4)
        return self._square[: n * n].reshape(n, n)

    def share(self, voter: int) -> bool:
        """Fetch a voter's column, where threads share columns. False if there is no room: none may be dropped."""
        with self.store:
            if self.store.address[voter] != 0:
                return True
            if self.store.n_free == 0 and self._n_columns == self._most:
                return False
            self.fetch(voter)
            return True

    def _make(self, voter: int) -> None:
        if self.store.n_free == 0:
            self._find_room()
            if self.store.find(voter):
                return
        self.source.prepare(voter)
        if not self.store.find(voter):
            self.source.write(voter, self.store.room())
            self.store.keep(voter)

    def _find_room(self) -> None:
        # Memory is taken in ever larger pieces, not much more than is needed: the system hands it out page by page.
        n = min(self._most - self._n_columns, self._most_at_once, 8 + self._n_columns // 8)
        if n > 0:
            self.store.add_room(np.empty((n, self.source.n_voters), dtype=self.source.dtype))
            self._n_columns += n
            return
        voters = np.flatnonzero(self.store.address)
        oldest = np.argsort(self.store.stamp[voters], kind="stable")
        self.store.drop(voters[oldest[: 1 + self._most // 8]])  # several at a time: to find them takes time


class Gram:
    """Gram columns, lent to one run of rounds at a time; runs at the same time have their own.

    Copied or pickled, it has no columns: they are made anew.
    """

    def __init__(self, source: GramSource, cache_bytes: int) -> None:
        self.source = source
        self.cache_bytes = cache_bytes
        self._idle: list[Columns] = []
        self._n_lent = 0
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Gram, (self.source, self.cache_bytes)

    @contextmanager
    def lease(self) -> Iterator[Columns]:
        """The columns, for one run of rounds."""
        with self._lock:
            self._n_lent += 1
            is_first = self._n_lent == 1
            columns = self._idle.pop() if self._idle else None
        if columns is None:
            columns = Columns(self.source if is_first else self.source.clone(), self.cache_bytes)
        columns.store.is_shared = False
        try:
            yield columns
        finally:
            with self._lock:
                self._n_lent -= 1
                if not self._idle:
                    self._idle.append(columns)

    def columns(self) -> Columns:
        """The columns that no run is using, for other sources to build on."""
        with self.lease() as columns:
            return columns

    def shared(self) -> Columns:
        """The same, for several threads at once; a later lease has them for itself, so these must be done by then."""
        columns = self.columns()
        columns.store.is_shared = True
        return columns

    def column(self, voter: int) -> np.ndarray:
        """A copy of the column of one voter: sums over rows of weight * h_i * h_voter for every voter i."""
        with self.lease() as columns:
            return columns.column(voter).copy()


class ColumnGram:
    """Columns of interval voters, from joint counts of bins (`kernels/gram.pyx`).

    Rows are sorted by the bins of a column when its first voter is drawn. Where there are far more rows than bins, all
    its joint counts are made at once, at the price of a few Gram columns.
    """

    def __init__(
        self, voters: Voters, codes: np.ndarray, weight: np.ndarray | None, voter_sum: np.ndarray, row_bytes: int,
        n_threads: int, dtype: np.dtype | None = None,
    ) -> None:  # fmt: skip
        """`weight` is rounded (`Extent.round`); `row_bytes` is for rows sorted or counted by column."""
        self.voters, self.codes, self.weight = voters, codes, weight
        self.n_rows, self.n_voters = len(codes), voters.n_voters
        self.row_bytes, self.n_threads = row_bytes, n_threads
        has_counts = weight is None and len(codes) < COUNTS_LIMIT
        self.dtype = dtype or (COUNTS if has_counts else SUMS)
        self.voter_sum = voter_sum.astype(self.dtype)
        mass = weight if weight is not None or self.dtype == COUNTS else np.ones(len(codes))
        self.maker = ColumnMaker(codes, mass, voters.layout, self.voter_sum, n_threads, threads.STEPS_FOR_THREADS)
        table_cells = int((voters.n_cuts.max(initial=0) + 2) * voters.bin_start[-1])
        table_bytes = table_cells * self.dtype.itemsize
        self._tabulates = TABLE_PAYS * table_cells < codes.size and table_bytes * codes.shape[1] <= row_bytes
        kept_bytes = table_bytes if self._tabulates else 4 * len(codes)
        self._most_kept = max(1, row_bytes // (kept_bytes + self.voter_sum.nbytes))
        self._kept: OrderedDict[int, np.ndarray | None] = OrderedDict()  # columns whose rows are sorted; their tables

    def __reduce__(self) -> tuple[Any, ...]:
        return ColumnGram, self._arguments(self.dtype)

    def clone(self, dtype: np.dtype | None = None) -> ColumnGram:
        return ColumnGram(*self._arguments(dtype or self.dtype))

    def joined(self, others: Sequence[ColumnGram], dtype: np.dtype) -> ColumnGram:
        """The rows of all together; the voters are the same."""
        if not others:
            return self.clone(dtype)
        parts, weight = [self, *others], None
        if any(part.weight is not None for part in parts):
            weight = np.concatenate([np.ones(part.n_rows) if part.weight is None else part.weight for part in parts])
        voter_sum = np.vstack([part.voter_sum for part in parts]).sum(axis=0, dtype=np.float64)
        codes = np.concatenate([part.codes for part in parts])
        return ColumnGram(self.voters, codes, weight, voter_sum, self.row_bytes, self.n_threads, dtype)

    def _arguments(self, dtype: np.dtype) -> tuple[Any, ...]:
        return self.voters, self.codes, self.weight, self.voter_sum, self.row_bytes, self.n_threads, dtype

    def write(self, voter: int, out: np.ndarray) -> None:
        """The kernel makes every column of sorted rows, if it has memory to count them in."""
        raise MemoryError("no memory for the joint counts of bins")

    def prepare(self, voter: int) -> None:
        """Sort the rows by the bins of the voter's column, if they are not."""
        number = int(self.voters.locate(voter)[0])
        if number in self._kept:
            self._kept.move_to_end(number)
            return
        if len(self._kept) >= self._most_kept:
            self.maker.drop_rows(self._kept.popitem(last=False)[0])
        order, start = sorted_rows(self.codes, number, int(self.voters.n_cuts[number]) + 2, self.n_threads)
        present = self.voter_sum
        if start[-2] < len(self.codes):
            present = self.voter_sum.copy()
            self.maker.add(order[start[-2] :], -1, present)
        table = self._tabulate(number, order, start[1:]) if self._tabulates else None
        self.maker.set_rows(number, start, present, order if table is None else None, table)
        self._kept[number] = table

    def _tabulate(self, number: int, order: np.ndarray, bin_end: np.ndarray) -> np.ndarray:
        """Joint counts of a column's bins with all bins; those with columns that have a table are there already."""
        start = self.voters.bin_start
        table = np.empty((len(bin_end), start[-1]), dtype=self.dtype)
        known = {g: of_g for g, of_g in self._kept.items() if of_g is not None}
        new = np.array([g for g in range(self.voters.n_columns) if g not in known])
        self.maker.tabulate(order, bin_end, new, table)
        self.maker.run_along(table)
        for g, of_g in known.items():
            self.maker.copy_transposed(of_g, start[number], start[g], table)
        return table


def sorted_rows(
    codes: np.ndarray, column: int, n_bins: int, n_threads: int, room: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows by the bins of a column, and where each bin begins, and the last one ends."""
    m = len(codes)
    n_threads = threads.threads_for(m, n_threads)
    order, start = np.empty(m, dtype=np.int32) if room is None else room, np.zeros(n_bins + 1, dtype=np.int64)
    count, scratch = np.empty((n_threads, n_bins), dtype=np.int64), np.empty(m, dtype=codes.dtype)
    sort_rows(codes, column, count, scratch, start[1:], order, n_threads)
    return order, start


class MatrixGram:
    """Voters given by their outputs, whatever they are."""

    dtype, maker = SUMS, Maker()

    def __init__(self, H: np.ndarray, weight: np.ndarray | None, n_threads: int) -> None:
        self.H, self.weight, self.n_threads = H, weight, n_threads
        self.n_rows, self.n_voters = H.shape

    def clone(self, dtype: np.dtype | None = None) -> MatrixGram:
        return self

    def prepare(self, voter: int) -> None:
        """Nothing needs to be known beforehand."""

    def write(self, voter: int, out: np.ndarray) -> None:
        value = self.H[:, voter] if self.weight is None else self.H[:, voter] * self.weight
        matrix_products(self.H, value, out, self.n_threads)


class SummedGram:
    """Columns of the union (sign +1) or difference (sign -1) of sets of rows: sums add up."""

    maker = Maker()

    def __init__(self, terms: Sequence[tuple[int, GramSource]], cache_bytes: int) -> None:
        """`cache_bytes` are for the columns of all terms."""
        n_rows = sum(source.n_rows for _, source in terms)
        has_counts = all(source.dtype == COUNTS for _, source in terms) and n_rows < COUNTS_LIMIT
        self.dtype = COUNTS if has_counts else SUMS
        self.terms, self.cache_bytes = terms, cache_bytes
        self.n_voters, self.n_rows = terms[0][1].n_voters, sum(sign * source.n_rows for sign, source in terms)

    @cached_property
    def _columns(self) -> list[tuple[int, Columns]]:
        terms = _joined(self.terms, self.dtype)
        return [(sign, Columns(source, self.cache_bytes // len(terms))) for sign, source in terms]

    def __reduce__(self) -> tuple[Any, ...]:
        return SummedGram, (self.terms, self.cache_bytes)

    def clone(self, dtype: np.dtype | None = None) -> SummedGram:
        return SummedGram(self.terms, self.cache_bytes)

    def prepare(self, voter: int) -> None:
        """Columns of the terms are fetched one after the other."""

    def write(self, voter: int, out: np.ndarray) -> None:
        out[:] = 0
        for sign, columns in self._columns:
            out += sign * columns.column(voter)


def _joined(terms: Sequence[tuple[int, GramSource]], dtype: np.dtype) -> list[tuple[int, GramSource]]:
    """Fresh copies of the terms; coded rows are put together, so that a thousand parts cost no more than one."""
    found: list[tuple[int, GramSource]] = [
        (sign, source.clone(dtype)) for sign, source in terms if not isinstance(source, ColumnGram)
    ]
    for sign in (1, -1):
        parts = [source for its_sign, source in terms if its_sign == sign and isinstance(source, ColumnGram)]
        if sum(part.n_rows for part in parts) >= COUNTS_LIMIT or len({part.codes.dtype for part in parts}) > 1:
            found += [(sign, part.clone(dtype)) for part in parts]
        elif parts:
            found.append((sign, parts[0].joined(parts[1:], dtype)))
    return found


class RestGram:
    """Columns of all rows but some, from columns that others have: those of all rows are shared by several threads."""

    def __init__(self, shared: Columns, part: Columns, cache_bytes: int) -> None:
        """`cache_bytes` are for columns of all rows for which there is no room where they are shared."""
        self.dtype = shared.source.dtype
        if part.source.dtype != self.dtype:  # weights that are all 1 in this part
            part = Columns(part.source.clone(self.dtype), cache_bytes)
        self.maker: Maker = DifferenceMaker(shared.store, part.store)
        self._shared, self._columns, self._part = shared, Columns(shared.source.clone(), cache_bytes), part
        self.n_voters, self.n_rows = part.source.n_voters, shared.source.n_rows - part.source.n_rows

    def clone(self, dtype: np.dtype | None = None) -> SummedGram:
        return SummedGram([(1, self._shared.source), (-1, self._part.source)], 1)

    def prepare(self, voter: int) -> None:
        self._part.fetch(voter)
        self._shared.share(voter)

    def write(self, voter: int, out: np.ndarray) -> None:
        """Subtract in Python, where the shared columns have no room for this one."""
        np.subtract(self._columns.column(voter), self._part.column(voter), out=out)
