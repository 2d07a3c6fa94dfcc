"""The sample of rows in parts that all rows at once would give.

A sample has every so-manieth row, in the order of the rows' keys. Keys are as good as random: parts count them in
cells of their first bits, which tells what cells have rows of the sample. Of these cells parts give the keys, which
tells which rows, and at last the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..data.exact import Extent
from ..data.sampling import Sample, keys_and_copies, sampled_until
from .source import Coded, Source

LEAST_BITS, MOST_BITS = 12, 24  # of a key, that number its cell
ROWS_OF_CELL = 16  # at most, on average

Keyed: TypeAlias = Callable[[Coded], tuple[np.ndarray, np.ndarray]]  # of a part: a key of each row, and its copies


def sample_of_parts(
    source: Source[Coded], keyed: Keyed, n_rows: int, most: int, targets: Callable[[Coded], np.ndarray]
) -> Sample:
    """At most so many copies of the rows, with targets of shape (m, n_outputs) that are made of each part.

    The rows are those of `at_most`, but for their order, and that equal rows with copies are one.
    """
    bits = min(max(LEAST_BITS, (n_rows // ROWS_OF_CELL).bit_length()), MOST_BITS)
    shift = np.uint64(64 - bits)
    per_cell = source.reduce(_Count(keyed, shift))
    until = np.cumsum(per_cell)
    total = int(until[-1])
    has_some = np.diff(sampled_until(until, total, most), prepend=0) > 0
    listed = source.reduce(_List(keyed, shift, has_some))
    # Of each key: how many copies there are up to it.
    copies_in_cell = np.cumsum(listed.copies)
    cell = (listed.keys >> shift).astype(np.intp)
    before_cells = np.cumsum(np.where(has_some, per_cell, 0))[cell] - per_cell[cell]
    reached = until[cell] - per_cell[cell] + copies_in_cell - before_cells
    kept = sampled_until(reached, total, most) - sampled_until(reached - listed.copies, total, most)
    chosen = kept > 0
    return source.reduce(_Choice(keyed, targets, listed.keys[chosen])).sample(kept[chosen])


@dataclass(frozen=True)
class OfTargets:
    """Keys of rows by their codes and targets, as `sample` has them."""

    targets: Callable[[Coded], np.ndarray]
    are_whole: bool
    seed: int

    def __call__(self, part: Coded) -> tuple[np.ndarray, np.ndarray]:
        return keys_and_copies(part.codes, self.targets(part), part.repeats, self.are_whole, self.seed)


def are_whole(part: Coded) -> bool:
    """Whether all weights that say how many examples rows stand for are whole numbers."""
    return part.repeats is None or Extent.of(len(part.repeats), part.repeats).is_whole


@dataclass(frozen=True)
class _Count:
    """How many copies of rows have a key in each cell."""

    keyed: Keyed
    shift: np.uint64

    def __call__(self, part: Coded) -> np.ndarray:
        keys, copies = self.keyed(part)
        found = np.bincount((keys >> self.shift).astype(np.intp), copies, 1 << (64 - int(self.shift)))
        return found.astype(np.int64)  # copies are fewer than 2**53


@dataclass(frozen=True)
class _List:
    """The keys of some cells."""

    keyed: Keyed
    shift: np.uint64
    asked: np.ndarray  # whether each cell is

    def __call__(self, part: Coded) -> _Listed:
        keys, copies = self.keyed(part)
        is_asked = self.asked[(keys >> self.shift).astype(np.intp)] & (copies > 0)
        return _Listed.of(keys[is_asked], copies[is_asked])


@dataclass(frozen=True)
class _Listed:
    """Different keys, ascending, and how many copies of rows have each."""

    keys: np.ndarray
    copies: np.ndarray

    @classmethod
    def of(cls, keys: np.ndarray, copies: np.ndarray) -> _Listed:
        keys, number = np.unique(keys, return_inverse=True)
        return cls(keys, np.bincount(number, copies, len(keys)).astype(np.int64))

    def __add__(self, other: _Listed) -> _Listed:
        return _Listed.of(np.append(self.keys, other.keys), np.append(self.copies, other.copies))


@dataclass(frozen=True)
class _Choice:
    """A row for each of some keys, which ascend."""

    keyed: Keyed
    targets: Callable[[Coded], np.ndarray]
    chosen: np.ndarray

    def __call__(self, part: Coded) -> _Chosen:
        keys, copies = self.keyed(part)
        rows = np.flatnonzero(np.isin(keys, self.chosen, kind="sort") & (copies > 0))
        worth = None if part.weight is None else part.weight[rows] / copies[rows]
        found = _Chosen(keys[rows], part.codes[rows], self.targets(part)[rows], worth, bool((copies > 1).any()))
        return found.once()


@dataclass(frozen=True)
class _Chosen:
    """Rows of different keys, ascending, with what a copy of each is worth."""

    keys: np.ndarray
    codes: np.ndarray
    y: np.ndarray
    worth: np.ndarray | None
    have_copies: bool

    def __add__(self, other: _Chosen) -> _Chosen:
        if len(self.keys) == 0 or len(other.keys) == 0:
            return other if len(self.keys) == 0 else self
        keys, codes, y = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("keys", "codes", "y")
        )
        worth = None
        if self.worth is not None and other.worth is not None:
            worth = np.append(self.worth, other.worth)
        return _Chosen(keys, codes, y, worth, self.have_copies or other.have_copies).once()

    def once(self) -> _Chosen:
        """Of equal rows, one; the same for any order."""
        order = np.lexsort([self.keys] if self.worth is None else [self.worth, self.keys])
        keys, first = np.unique(self.keys[order], return_index=True)
        first = order[first]
        worth = None if self.worth is None else self.worth[first]
        return _Chosen(keys, self.codes[first], self.y[first], worth, self.have_copies)

    def sample(self, copies: np.ndarray) -> Sample:
        """So many copies of each row: as many rows, unless rows stand for several."""
        times = np.ones_like(copies) if self.have_copies else copies
        rows, copies = np.repeat(np.arange(len(copies)), times), np.repeat(copies // times, times)
        weight = None if self.worth is None else self.worth[rows] * copies
        return Sample(np.ascontiguousarray(self.codes[rows]), self.y[rows], weight, self.keys[rows], copies)
