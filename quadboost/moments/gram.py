"""Columns of the Gram matrix of the voters, made when they are first asked for and kept within a budget.

A source makes a column: the sums over rows of weight * h_i * h_j for one voter j and every voter i. A
`GramCache` keeps what was made. The booster sees only the cache: which family of voters is behind it makes
no difference there.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..common.threads import threads_for
from ..kernels import counts
from ..voters.kinds import LEVEL, MISSING
from ..voters.stumps import Stumps

COUNTS_LIMIT = 1 << 30  # rows, up to which counts and their doubles fit in 32 bits
PIECE_BYTES = 1 << 24  # of memory for columns; large enough for the system's large pages
TABLE_PAYS = 4  # codes per cell of a table of joint counts, from which it is worth its memory

Column = Any  # of one voter: an array of shape (K,); where there are several sets of rows, what folds.py makes of it
Known = tuple[int, Column]  # a voter and its column


def neighbours(voter: int, known: Sequence[int], columns: Mapping[int, Column]) -> tuple[Known | None, Known | None]:
    """The nearest of the known voters, which ascend, on either side."""
    place = bisect_left(known, voter)
    before, after = known[max(place - 1, 0) : place], known[place : place + 1]
    return (before[0], columns[before[0]]) if before else None, (after[0], columns[after[0]]) if after else None


class GramSource(Protocol):
    """Makes the Gram columns of one family of voters on one set of rows."""

    @property
    def dtype(self) -> np.dtype:
        """int32 for plain counts, float64 otherwise."""

    @property
    def n_voters(self) -> int: ...

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        """Write the column of a voter, given those of its nearest neighbours that are known."""
        ...


class Room:
    """Memory for arrays of one shape, taken in ever larger pieces: small ones would be handed out page by page."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        self._most = max(1, PIECE_BYTES // max(1, math.prod(shape) * dtype.itemsize))
        self._n_arrays = 0
        self._free: list[np.ndarray] = []

    def take(self) -> np.ndarray:
        """An array that nobody has; what it holds is of no use."""
        if not self._free:
            n = min(self._most, 8 + self._n_arrays // 8)  # not much more than is needed
            self._free.extend(np.empty((n, *self.shape), dtype=self.dtype)[::-1])
            self._n_arrays += n
        return self._free.pop()

    def give_back(self, array: np.ndarray) -> None:
        self._free.append(array)


class GramCache:
    """Gram columns of a source, within `cache_bytes`; those used longest ago make room.

    Attributes
    ----------
    address : uintp array of shape (K,)
        Where each voter's column is in memory, 0 where it is not.
    less : uintp array of shape (K,) or None
        Where a column is that is to be subtracted from it, 0 where there is none; of numbers of type `less_dtype`.
    stamp, clock : int64 arrays of shape (K,) and (1,)
        When each column was last used, and the time; the kernels write both.
    """

    less: np.ndarray | None = None
    less_dtype: np.dtype = np.dtype(np.int32)

    def __init__(self, source: GramSource, cache_bytes: int) -> None:
        self.source = source
        self.cache_bytes = cache_bytes
        self.address = np.zeros(source.n_voters, dtype=np.uintp)
        self.stamp = np.zeros(source.n_voters, dtype=np.int64)
        self.clock = np.zeros(1, dtype=np.int64)
        self._columns: dict[int, np.ndarray] = {}
        self._order: list[int] = []  # the voters whose columns are here
        self._room = Room((source.n_voters,), source.dtype)
        column_bytes = max(1, source.n_voters * source.dtype.itemsize)
        self._most = max(2, cache_bytes // column_bytes)  # columns; a round of validation needs its own cache

    @property
    def counts(self) -> bool:
        """Whether rounds are to read int32; else float64."""
        if self.source.dtype not in (np.int32, np.float64):
            raise TypeError(f"rounds read columns of int32 or float64, not {self.source.dtype}")
        return self.source.dtype == np.int32

    def column(self, voter: int) -> np.ndarray:
        """The column of one voter: sums over rows of weight * h_i * h_voter for every voter i."""
        self.fetch(voter)
        return self._columns[voter]

    def fetch(self, voter: int) -> None:
        """Make sure that the column of one voter is in memory."""
        column = self._columns.get(voter)
        if column is None:
            self._make_room()
            column = self._room.take()
            self.source.make(voter, *neighbours(voter, self._order, self._columns), column)
            self._columns[voter] = column
            insort(self._order, voter)
            self.address[voter] = counts.address_of(column)
        self.clock[0] += 1
        self.stamp[voter] = self.clock[0]

    def _make_room(self) -> None:
        if len(self._order) < self._most:
            return
        voters = np.array(self._order)
        n_kept = self._most - 1 - self._most // 8  # several at a time, or every new column would search for the oldest
        oldest = voters[np.argsort(self.stamp[voters], kind="stable")[: len(voters) - n_kept]]
        for voter in oldest.tolist():
            self._room.give_back(self._columns.pop(voter))
        self.address[oldest] = 0
        self._order = sorted(self._columns)


class FeatureRows(NamedTuple):
    """The rows by the bins of one feature: sorted, or counted with all other bins once and for all."""

    start: memoryview  # where each bin begins in the order of rows, and where the last one ends
    present: Column  # of a voter that says +1 wherever the feature is not missing
    order: np.ndarray | None
    table: np.ndarray | None  # a row per bin: sums per bin of all features, of the rows up to the end of the bin


class StumpGram:
    """Columns of stumps, from joint counts of bins.

    Two stumps of a feature differ only on the rows between their thresholds. So a column is that of the nearest
    known threshold plus the joint counts of those rows with every bin of every feature; no column is far, for
    the constants are known too. Where there are far more rows than bins, a feature's joint counts are all made at
    once, at the price of a few such columns.
    """

    def __init__(
        self,
        stumps: Stumps,
        codes: np.ndarray,
        weight: np.ndarray | None,
        voter_sum: np.ndarray,
        row_bytes: int,
        n_threads: int,
    ) -> None:
        """`weight` is as `exact.rounded_weights` gives it; `row_bytes` is for rows sorted or counted by feature."""
        is_whole = weight is None and len(codes) < COUNTS_LIMIT
        self.dtype = np.dtype(np.int32 if is_whole else np.float64)
        self.stumps = stumps
        self.codes = codes
        self.weight = weight if is_whole or weight is not None else np.ones(len(codes))
        self.voter_sum: Column = voter_sum.astype(self.dtype)
        self.n_threads = n_threads
        self._counter = counts.RowCounter(codes, self.weight, *stumps.layout, n_threads, is_whole)
        table_cells = int((stumps.n_cuts.max(initial=0) + 2) * stumps.bin_start[-1])
        self._tabulates = (
            TABLE_PAYS * table_cells < codes.size and table_cells * self.dtype.itemsize * codes.shape[1] <= row_bytes
        )
        kept_bytes = table_cells * self.dtype.itemsize if self._tabulates else 4 * len(codes)
        self._most_kept = max(1, row_bytes // (kept_bytes + self.voter_sum.nbytes))
        self._kept: OrderedDict[int, FeatureRows] = OrderedDict()

    @property
    def n_voters(self) -> int:
        return self.stumps.n_voters

    def make(self, voter: int, before: Known | None, after: Known | None, out: Column) -> None:
        feature, kind, position = self.stumps.locate(voter)
        rows = self._rows_of(feature)
        n_cuts = len(self.stumps.cuts[feature])
        if kind == MISSING:
            self._write(out, -1, self.voter_sum, rows, n_cuts, n_cuts + 1, 2)
            return
        if kind == LEVEL:
            self._write(out, -1, rows.present, rows, position, position + 1, 2)
            return
        if rows.table is not None:
            self._write(out, 1, rows.present, rows, -1, position, -2)
            return
        first_voter = voter - position
        low, low_column = -1, rows.present
        if before and before[0] >= first_voter:
            low, low_column = before[0] - first_voter, before[1]
        sign, high, high_column = -1, n_cuts, rows.present
        if after and after[0] < first_voter + n_cuts:
            sign, high, high_column = 1, after[0] - first_voter, after[1]
        here = rows.start[position + 1]
        if here - rows.start[low + 1] <= rows.start[high + 1] - here:
            self._write(out, 1, low_column, rows, low, position, -2)
        else:
            self._write(out, sign, high_column, rows, position, high, 2)

    def _write(self, out: Column, sign: int, base: Column, rows: FeatureRows, low: int, high: int, factor: int) -> None:
        """Write sign times a column, and factor times the products with a voter: 1 in bins low + 1 .. high, else 0."""
        if rows.table is not None:
            np.multiply(base, sign, out=out)
            self._counter.add_bins(rows.table[high], factor, out)
            if low >= 0:
                self._counter.add_bins(rows.table[low], -factor, out)
        elif rows.order is not None:
            self._write_rows(out, sign, base, rows.order[rows.start[low + 1] : rows.start[high + 1]], factor)

    def _write_rows(self, out: Column, sign: int, base: Column, rows: np.ndarray, factor: int) -> None:
        """Write sign times a column, and factor times the products with a voter: 1 on some rows, 0 on the others."""
        n_threads = threads_for(rows.size * self.codes.shape[1], self.n_threads)
        np.multiply(base, sign, out=out)
        self._counter.add(rows, factor, out, n_threads)

    def _new_column(self) -> Column:
        return np.empty(self.n_voters, dtype=self.dtype)

    def _rows_of(self, feature: int) -> FeatureRows:
        rows = self._kept.get(feature)
        if rows is not None:
            self._kept.move_to_end(feature)
            return rows
        if len(self._kept) >= self._most_kept:
            self._kept.popitem(last=False)
        m, n_bins = len(self.codes), int(self.stumps.n_cuts[feature]) + 2
        n_threads = threads_for(m, self.n_threads)
        order, start = np.empty(m, dtype=np.int32), np.zeros(n_bins + 1, dtype=np.int64)
        count, own = np.empty((n_threads, n_bins), dtype=np.int64), np.empty(m, dtype=self.codes.dtype)
        counts.sort_rows(self.codes, feature, count, own, start[1:], order, n_threads)
        present = self.voter_sum
        if start[-2] < m:
            present = self._new_column()
            self._write_rows(present, 1, self.voter_sum, order[start[-2] :], -1)
        table = self._tabulate(feature, order, start[1:]) if self._tabulates else None
        rows = FeatureRows(start.data, present, order if table is None else None, table)
        self._kept[feature] = rows
        return rows

    def _tabulate(self, feature: int, order: np.ndarray, bin_end: np.ndarray) -> np.ndarray:
        """Joint counts of a feature's bins with all bins; those with features that have a table are there already."""
        start = self.stumps.bin_start
        table = np.empty((len(bin_end), start[-1]), dtype=self.dtype)
        known = {g: rows.table for g, rows in self._kept.items() if rows.table is not None}
        new = np.array([g for g in range(self.stumps.n_features) if g not in known])
        self._counter.tabulate(order, bin_end, new, table, threads_for(len(order) * len(new), self.n_threads))
        for g, of_g in known.items():
            counts.copy_transposed(of_g, start[feature], start[g], table)
        counts.run_down(table, threads_for(table.size, self.n_threads))
        return table


class MatrixGram:
    """Voters given by their outputs, whatever they are."""

    def __init__(self, H: np.ndarray, weight: np.ndarray | None, n_threads: int) -> None:
        self.H = H
        self.weight = weight
        self.n_threads = n_threads
        self.dtype = np.dtype(np.float64)

    @property
    def n_voters(self) -> int:
        return self.H.shape[1]

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        value = self.H[:, voter] if self.weight is None else self.H[:, voter] * self.weight
        counts.matrix_products(self.H, value, out, self.n_threads)


class SummedGram:
    """Columns of the union (sign +1) or difference (sign -1) of sets of rows: sums add up."""

    def __init__(self, terms: Sequence[tuple[int, GramCache]]) -> None:
        self.terms = terms
        self.dtype = np.result_type(*(cache.source.dtype for _, cache in terms))

    @property
    def n_voters(self) -> int:
        return self.terms[0][1].source.n_voters

    def make(self, voter: int, before: Known | None, after: Known | None, out: np.ndarray) -> None:
        out[:] = 0
        for sign, cache in self.terms:
            out += sign * cache.column(voter)
