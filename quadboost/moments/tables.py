"""Gram columns from joint sums of bins alone: for rows that are in parts, on other machines, or gone.

The joint sums of two columns say all that Gram columns need to know of the rows, and those of parts add up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common import threads
from ..data.exact import Extent
from ..kernels.gram import ColumnMaker
from ..voters.columns import Voters
from .gram import COUNTS, COUNTS_LIMIT, SUMS, sorted_rows

MOST_BYTES = 1 << 26  # of the answer to one question, beyond one column's own

# Answers for the columns that are asked for, given those that are known already: an array of shape (bins of the column,
# bins of its partners) each. Its partners are `others_of`: joint sums of two columns are needed once.
Joint = Callable[[Sequence[int], Sequence[int]], list[np.ndarray]]


def joint_dtype(extent: Extent) -> np.dtype:
    """Whether joint sums are counts of rows, or sums of weights."""
    return COUNTS if extent.counts_rows and extent.n_rows < COUNTS_LIMIT else SUMS


def others_of(voters: Voters, number: int, asked: Sequence[int], known: Sequence[int]) -> np.ndarray:
    """The partners of `asked[number]`: all columns but those known, and those asked for before it."""
    left_out = {*known, *asked[:number]}
    return np.array([g for g in range(voters.n_columns) if g not in left_out], dtype=np.int64)


def bins_of(voters: Voters, columns: np.ndarray) -> np.ndarray:
    """The numbers of all bins of some columns."""
    start = voters.bin_start
    return np.concatenate([np.arange(start[g], start[g + 1]) for g in columns.tolist()])


class Tables(list[np.ndarray]):
    """Joint sums; counts travel in as few bytes as they need."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, ([_packed(table) for table in self], [table.dtype for table in self])


def _packed(table: np.ndarray) -> np.ndarray:
    return table.astype(np.min_scalar_type(table.max(initial=0)) if table.dtype == COUNTS else table.dtype, copy=False)


def _unpacked(packed: list[np.ndarray], dtypes: list[np.dtype]) -> Tables:
    return Tables(table.astype(dtype, copy=False) for table, dtype in zip(packed, dtypes, strict=True))


@dataclass(frozen=True)
class JointSums:
    """A question: the joint sums of some columns over coded rows, as `Joint`."""

    voters: Voters
    extent: Extent
    asked: tuple[int, ...]
    known: tuple[int, ...]
    n_threads: int = 1

    def __call__(self, coded: Any) -> Tables:
        dtype, codes, weight = joint_dtype(self.extent), np.ascontiguousarray(coded.codes), coded.weight
        if dtype == COUNTS:
            mass = None
        else:
            mass = np.ones(len(codes)) if weight is None else self.extent.round(weight)
        unused = np.zeros(self.voters.n_voters, dtype)
        limit = threads.STEPS_FOR_THREADS
        maker = ColumnMaker(codes, mass, self.voters.layout, unused, self.n_threads, limit)
        found, n_bins, order = Tables(), self.voters.n_cuts + 2, np.empty(len(codes), np.int32)
        room = np.empty((max(int(n_bins[f]) for f in self.asked), self.voters.bin_start[-1]), dtype)
        for number, f in enumerate(self.asked):
            _, start = sorted_rows(codes, f, int(n_bins[f]), self.n_threads, order)
            others = others_of(self.voters, number, self.asked, self.known)
            table = room[: n_bins[f]]
            maker.tabulate(order, start[1:], others, table)
            found.append(table[:, bins_of(self.voters, others)])
        return found


def add_joint(one: Tables, other: Tables) -> Tables:
    return Tables(a + b for a, b in zip(one, other, strict=True))


class TableGram:
    """Columns of interval voters, from joint sums that are asked for when a column's first voter is drawn.

    A question may cost a pass over all rows. So every question asks for twice as many columns as the one before:
    those that are likely to be drawn next.
    """

    def __init__(
        self, voters: Voters, joint: Joint, voter_sum: np.ndarray, extent: Extent, table_bytes: int, n_threads: int,
        likely: Sequence[int],
    ) -> None:  # fmt: skip
        """`table_bytes` is for joint sums, `likely` are all columns, those to be drawn first at the beginning."""
        self.voters, self.joint, self.extent, self.likely = voters, joint, extent, likely
        self.dtype, self.n_voters, self.n_rows = joint_dtype(extent), voters.n_voters, extent.n_rows
        self.table_bytes, self.n_threads = table_bytes, n_threads
        self.voter_sum = voter_sum.astype(self.dtype)
        codes = np.empty((0, voters.n_columns), np.uint8)  # no row is ever looked at
        mass = None if self.dtype == COUNTS else np.empty(0)
        limit = threads.STEPS_FOR_THREADS
        self.maker = ColumnMaker(codes, mass, voters.layout, self.voter_sum, n_threads, limit)
        bins = int(voters.n_cuts.max(initial=0)) + 2
        self._most_kept = max(1, table_bytes // (bins * int(voters.bin_start[-1]) * self.dtype.itemsize))
        self._n_next = 1
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()

    def clone(self, dtype: np.dtype | None = None) -> TableGram:
        arguments = (self.voters, self.joint, self.voter_sum, self.extent, self.table_bytes, self.n_threads)
        return TableGram(*arguments, self.likely)

    def write(self, voter: int, out: np.ndarray) -> None:
        raise AssertionError("the kernel makes every column of a table")

    def prepare(self, voter: int) -> None:
        number = int(self.voters.locate(voter)[0])
        if number in self._kept:
            self._kept.move_to_end(number)
            return
        asked, known = self._asked(number), dict(self._kept)
        for i, (f, block) in enumerate(zip(asked, self.joint(asked, list(known)), strict=True)):
            table = np.zeros((int(self.voters.n_cuts[f]) + 2, self.voters.bin_start[-1]), self.dtype)
            table[:, bins_of(self.voters, others_of(self.voters, i, asked, list(known)))] = block
            self.maker.run_along(table)
            for g, of_g in known.items():
                self._transpose(f, g, of_g, table)
            for g in asked[:i]:
                self._transpose(f, g, self._kept[g], table)
            self._keep(f, table)

    def _transpose(self, f: int, g: int, of_g: np.ndarray, table: np.ndarray) -> None:
        self.maker.copy_transposed(of_g, self.voters.bin_start[f], self.voters.bin_start[g], table)

    def _asked(self, number: int) -> list[int]:
        """The column of that number, and some that are likely to be drawn next."""
        room = min(self._n_next, self._most_kept - len(self._kept))
        each = np.diff(self.voters.bin_start) * int(self.voters.bin_start[-1]) * self.dtype.itemsize
        asked, n_bytes = [number], 0
        for f in self.likely:
            if f == number or f in self._kept:
                continue
            n_bytes += int(each[f])
            if len(asked) >= room or n_bytes > MOST_BYTES:
                break
            asked.append(f)
        self._n_next *= 2
        return asked

    def _keep(self, f: int, table: np.ndarray) -> None:
        if len(self._kept) >= self._most_kept:
            self.maker.drop_rows(self._kept.popitem(last=False)[0])
        start = np.zeros(len(table) + 1, dtype=np.int64)  # unused: a table has the sums that rows would be counted for
        present = np.zeros(self.n_voters, self.dtype)
        self.maker.add_up_to(table, len(table) - 2, present)
        self.maker.set_rows(f, start, present, None, table)
        self._kept[f] = table
