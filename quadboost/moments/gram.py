"""Columns of the Gram matrix of the voters, made when they are first asked for and kept within a budget.

A source makes a column: the sums over rows of weight * h_i * h_j for one voter j and every voter i. A `GramStore` keeps
what was made, and threads may share it. A run of rounds reads columns through a `Lease` of its own.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..common.threads import threads_for
from ..kernels import counts
from ..voters.columns import Voters

COUNTS_LIMIT = 1 << 29  # rows, up to which three times their number fits in 32 bits: what is summed on the way
PIECE_BYTES = 1 << 24  # of memory for columns; large enough for the system's large pages
TABLE_PAYS = 4  # codes per cell of a table of joint counts, from which it is worth its memory

Known = tuple[int, np.ndarray]  # a voter and its column


class GramSource(Protocol):
    """Makes the Gram columns of one family of voters on one set of rows; its store calls it one thread at a time."""

    @property
    def dtype(self) -> np.dtype:
        """int32 for plain counts, float64 otherwise."""

    @property
    def n_voters(self) -> int: ...

    @property
    def n_rows(self) -> int: ...

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        """Write the column of a voter, given those of its nearest neighbours that are known."""
        ...


class GramStore:
    """Gram columns of a source, within `cache_bytes`; those used longest ago make room. Threads may share it.

    Copied or pickled, it has no columns: they are made anew.
    """

    def __init__(self, source: GramSource, cache_bytes: int) -> None:
        self.source = source
        self.cache_bytes = cache_bytes
        column_bytes = max(1, source.n_voters * source.dtype.itemsize)
        self._most = max(2, cache_bytes // column_bytes)  # columns
        self._address = np.zeros(source.n_voters, dtype=np.uintp)
        self._columns: dict[int, np.ndarray] = {}
        self._order: list[int] = []  # the voters whose columns are here
        self._room = Room((source.n_voters,), source.dtype)
        self._n_leases = 0
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return GramStore, (self.source, self.cache_bytes)

    def column(self, voter: int) -> np.ndarray:
        """A copy of the column of one voter: sums over rows of weight * h_i * h_voter for every voter i."""
        with self._lock:
            return self._find(voter, None)[0].copy()

    def add_to(self, out: np.ndarray, voter: int, sign: int) -> None:
        """Add sign times a column."""
        with self._lock:
            column = self._find(voter, None)[0]
            (np.add if sign > 0 else np.subtract)(out, column, out=out)

    @contextmanager
    def lease(self) -> Iterator[Lease]:
        """The columns, for one run of rounds."""
        with self._lock:
            self._n_leases += 1
            lease = Lease(self, self._address.copy(), dict(self._columns))
        try:
            yield lease
        finally:
            with self._lock:
                self._n_leases -= 1

    def take(self, voter: int, last_used: np.ndarray) -> tuple[np.ndarray, int, Sequence[int]]:
        """The column of a voter, where it is in memory, and the voters whose columns made room for it."""
        with self._lock:
            column, dropped = self._find(voter, last_used)
            return column, counts.address_of(column), dropped

    def _find(self, voter: int, last_used: np.ndarray | None) -> tuple[np.ndarray, Sequence[int]]:
        column, dropped = self._columns.get(voter), []
        if column is None:
            dropped = self._make_room(last_used)
            column = self._room.take()
            try:
                self.source.make(voter, *neighbours(voter, self._order, self._columns), column)
            except BaseException:  # an interrupt, or no memory
                self._room.give_back(column)
                raise
            self._columns[voter] = column
            self._address[voter] = counts.address_of(column)
            insort(self._order, voter)
        return column, dropped

    def _make_room(self, last_used: np.ndarray | None) -> list[int]:
        if len(self._order) < self._most:
            return []
        voters = np.array(list(self._columns))  # in the order in which they were made
        n_kept = self._most - 1 - self._most // 8  # several at a time, or every new column would search for the oldest
        if last_used is not None:
            voters = voters[np.argsort(last_used[voters], kind="stable")]
        dropped: list[int] = voters[: len(voters) - n_kept].tolist()
        self._address[dropped] = 0
        self._order = sorted(self._columns.keys() - set(dropped))
        for voter in dropped:
            column = self._columns.pop(voter)
            if self._n_leases < 2:  # else another run may still read it
                self._room.give_back(column)
        return dropped


class Lease:
    """What one run of rounds reads: the kernels find columns by their address.

    Attributes
    ----------
    address : uintp array of shape (K,)
        Where each voter's column is in memory, 0 where it is not.
    stamp, clock : int64 arrays of shape (K,) and (1,)
        When each column was last used, and the time; the kernels write both.
    """

    def __init__(self, store: GramStore, address: np.ndarray, columns: dict[int, np.ndarray]) -> None:
        self.store = store
        self.address = address
        self.stamp = np.zeros(len(address), dtype=np.int64)
        self.clock = np.zeros(1, dtype=np.int64)
        self._columns = columns  # they stay in memory as long as this has them

    @property
    def has_counts(self) -> bool:
        """Whether columns are of int32; else of float64."""
        return self.store.source.dtype == np.int32

    def column(self, voter: int) -> np.ndarray:
        self.fetch(voter)
        return self._columns[voter]

    def fetch(self, voter: int) -> None:
        """Make sure that the column of one voter is in memory."""
        if self.address[voter] == 0:
            column, address, dropped = self.store.take(voter, self.stamp)
            for other in dropped:
                self._columns.pop(other, None)
            self.address[dropped] = 0
            self.address[voter], self._columns[voter] = address, column
        self.clock[0] += 1
        self.stamp[voter] = self.clock[0]


def neighbours(
    voter: int, known: Sequence[int], columns: Mapping[int, np.ndarray]
) -> tuple[Known | None, Known | None]:
    """The nearest of the known voters, which ascend, on either side."""
    place = bisect_left(known, voter)
    before, after = known[max(place - 1, 0) : place], known[place : place + 1]
    return (before[0], columns[before[0]]) if before else None, (after[0], columns[after[0]]) if after else None


class Room:
    """Memory for arrays of one shape, taken in ever larger pieces: small ones would be handed out page by page."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        self._most = max(1, PIECE_BYTES // max(1, math.prod(shape) * dtype.itemsize))
        self._n_arrays = 0
        self._free: list[np.ndarray] = []

    def take(self) -> np.ndarray:
        """An unused array; its contents are undefined."""
        if not self._free:
            n = min(self._most, 8 + self._n_arrays // 8)  # not much more than is needed
            self._free.extend(np.empty((n, *self.shape), dtype=self.dtype)[::-1])
            self._n_arrays += n
        return self._free.pop()

    def give_back(self, array: np.ndarray) -> None:
        self._free.append(array)


class _Rows(NamedTuple):
    """The rows by the bins of one column: sorted, or counted with all other bins once and for all."""

    start: memoryview  # where each bin begins in the order of rows, and where the last one ends
    present: np.ndarray  # products of every voter with one that is 1 wherever the column is not missing
    order: np.ndarray | None
    table: np.ndarray | None  # a row per bin: running sums per bin of all columns, of the rows up to the end of the bin

    def cost(self, low: int, high: int) -> int:
        """Rows to count in the bins low + 1 to high, or rows of the table to look up."""
        return self.start[high + 1] - self.start[low + 1] if self.table is None else 1 + (low >= 0)


class ColumnGram:
    """Columns of interval voters, from joint counts of bins.

    Two voters of a column differ only on the rows where their intervals do. So a Gram column is that of the nearest
    known voter plus the joint counts of those rows with every bin of every column; none is far, for the constants
    are known too. Where there are far more rows than bins, a column's joint counts are all made at once, at the price
    of a few such columns.
    """

    def __init__(
        self,
        voters: Voters,
        codes: np.ndarray,
        weight: np.ndarray | None,
        voter_sum: np.ndarray,
        row_bytes: int,
        n_threads: int,
    ) -> None:
        """`weight` is rounded (`Extent.round`); `row_bytes` is for rows sorted or counted by column."""
        self.voters, self.codes, self.weight = voters, codes, weight
        self.row_bytes, self.n_threads = row_bytes, n_threads
        has_counts = weight is None and len(codes) < COUNTS_LIMIT
        self.dtype = np.dtype(np.int32 if has_counts else np.float64)
        self.voter_sum = voter_sum.astype(self.dtype)
        mass = weight if has_counts or weight is not None else np.ones(len(codes))
        self._counter = counts.RowCounter(codes, mass, voters.layout, n_threads, has_counts)
        self._voter_start = voters.voter_start.tolist()
        table_cells = int((voters.n_cuts.max(initial=0) + 2) * voters.bin_start[-1])
        self._tabulates = (
            TABLE_PAYS * table_cells < codes.size and table_cells * self.dtype.itemsize * codes.shape[1] <= row_bytes
        )
        kept_bytes = table_cells * self.dtype.itemsize if self._tabulates else 4 * len(codes)
        self._most_kept = max(1, row_bytes // (kept_bytes + self.voter_sum.nbytes))
        self._kept: OrderedDict[int, _Rows] = OrderedDict()

    def __reduce__(self) -> tuple[Any, ...]:
        voter_sum = self.voter_sum.astype(np.float64)
        return ColumnGram, (self.voters, self.codes, self.weight, voter_sum, self.row_bytes, self.n_threads)

    @property
    def n_voters(self) -> int:
        return self.voters.n_voters

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        number = bisect_right(self._voter_start, voter) - 1
        low, high, whole = self._bins(voter, number)
        rows = self._rows_of(number)
        base = self.voter_sum if whole == len(rows.start) - 2 else rows.present
        # Where to begin: a voter that says -1 or +1 in all bins up to `whole`, or a known one; each with its interval.
        begin = [(-1, base, low, low), (1, base, -1, whole)]
        for known, column in filter(None, (before, after)):
            if rows.table is None and self._voter_start[number] <= known < self._voter_start[number + 1]:
                known_low, known_high, known_whole = self._bins(known, number)
                if known_whole == whole:
                    begin.append((1, column, known_low, known_high))
        steps = [_steps(own[2], own[3], low, high) for own in begin]
        cost = [sum(rows.cost(first, last) for first, last, _ in own) for own in steps]
        best = min(range(len(begin)), key=cost.__getitem__)
        np.multiply(begin[best][1], begin[best][0], out=out)
        for first, last, factor in steps[best]:
            self._add(out, rows, first, last, factor)

    def _bins(self, voter: int, number: int) -> tuple[int, int, int]:
        """The voter's interval in the bins of its column, and the last bin where it does not abstain."""
        first = int(self.voters.bin_start[number])
        low, high, whole = self.voters.intervals
        return int(low[voter]) - first, int(high[voter]) - first, int(whole[voter]) - first

    def _add(self, out: np.ndarray, rows: _Rows, low: int, high: int, factor: int) -> None:
        """Add factor times the products with a voter: 1 in bins low + 1 to high, else 0."""
        if rows.table is not None:
            self._counter.add_running(rows.table[high], factor, out)
            if low >= 0:
                self._counter.add_running(rows.table[low], -factor, out)
        elif rows.order is not None:
            self._add_rows(out, rows.order[rows.start[low + 1] : rows.start[high + 1]], factor)

    def _add_rows(self, out: np.ndarray, rows: np.ndarray, factor: int) -> None:
        """Add factor times the products with a voter: 1 on some rows, 0 on the others."""
        self._counter.add(rows, factor, out, threads_for(rows.size * self.codes.shape[1], self.n_threads))

    def _rows_of(self, number: int) -> _Rows:
        rows = self._kept.get(number)
        if rows is not None:
            self._kept.move_to_end(number)
            return rows
        if len(self._kept) >= self._most_kept:
            self._kept.popitem(last=False)
        m, n_bins = len(self.codes), int(self.voters.n_cuts[number]) + 2
        n_threads = threads_for(m, self.n_threads)
        order, start = np.empty(m, dtype=np.int32), np.zeros(n_bins + 1, dtype=np.int64)
        count, own = np.empty((n_threads, n_bins), dtype=np.int64), np.empty(m, dtype=self.codes.dtype)
        counts.sort_rows(self.codes, number, count, own, start[1:], order, n_threads)
        present = self.voter_sum
        if start[-2] < m:
            present = self.voter_sum.copy()
            self._add_rows(present, order[start[-2] :], -1)
        table = self._tabulate(number, order, start[1:]) if self._tabulates else None
        rows = _Rows(start.data, present, order if table is None else None, table)
        self._kept[number] = rows
        return rows

    def _tabulate(self, number: int, order: np.ndarray, bin_end: np.ndarray) -> np.ndarray:
        """Joint counts of a column's bins with all bins; those with columns that have a table are there already."""
        start = self.voters.bin_start
        table = np.empty((len(bin_end), start[-1]), dtype=self.dtype)
        known = {g: rows.table for g, rows in self._kept.items() if rows.table is not None}
        new = np.array([g for g in range(self.voters.n_columns) if g not in known])
        self._counter.tabulate(order, bin_end, new, table, threads_for(len(order) * len(new), self.n_threads))
        self._counter.run_table(table, threads_for(table.size, self.n_threads))
        for g, of_g in known.items():
            counts.copy_transposed(of_g, start[number], start[g], table)
        return table


def _steps(low: int, high: int, wanted_low: int, wanted_high: int) -> list[tuple[int, int, int]]:
    """Bins (first exclusive, last) that one interval has and the other has not, and what a voter gains there: +-2."""
    steps = []
    if wanted_low != low:
        steps.append((min(low, wanted_low), max(low, wanted_low), 2 if wanted_low < low else -2))
    if wanted_high != high:
        steps.append((min(high, wanted_high), max(high, wanted_high), 2 if wanted_high > high else -2))
    return steps


class MatrixGram:
    """Voters given by their outputs, whatever they are."""

    dtype = np.dtype(np.float64)

    def __init__(self, H: np.ndarray, weight: np.ndarray | None, n_threads: int) -> None:
        self.H = H
        self.weight = weight
        self.n_threads = n_threads

    @property
    def n_voters(self) -> int:
        return self.H.shape[1]

    @property
    def n_rows(self) -> int:
        return self.H.shape[0]

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        value = self.H[:, voter] if self.weight is None else self.H[:, voter] * self.weight
        counts.matrix_products(self.H, value, out, self.n_threads)


class SummedGram:
    """Columns of the union (sign +1) or difference (sign -1) of sets of rows: sums add up."""

    def __init__(self, terms: Sequence[tuple[int, GramStore]]) -> None:
        self.terms = terms
        dtype = np.result_type(*(store.source.dtype for _, store in terms))
        self.dtype = dtype if sum(store.source.n_rows for _, store in terms) < COUNTS_LIMIT else np.dtype(np.float64)

    @property
    def n_voters(self) -> int:
        return self.terms[0][1].source.n_voters

    @property
    def n_rows(self) -> int:
        return sum(sign * store.source.n_rows for sign, store in self.terms)

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        out[:] = 0
        for sign, store in self.terms:
            store.add_to(out, voter, sign)
