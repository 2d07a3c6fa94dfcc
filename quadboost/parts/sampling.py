"""The sample of rows in parts that all rows at once would give.

A sample is chosen in the order of the rows' keys. Parts count their keys, in atoms; those that hold a chosen row are
divided until the keys of all chosen rows are known, and then parts give these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from ..data.exact import Extent
from ..data.sampling import Sample, at_most_in_order, keys_and_copies
from .atoms import EVERYTHING, Atoms, Ranges, between
from .source import Coded, Source

MOST_ATOMS = 1 << 20  # in one pass: 24 MB
ATOMS_OF_ROW = 4  # as many at least, where more rows are asked for
FIRST = np.int64(np.iinfo(np.int64).min)

Targets = Callable[[Coded], np.ndarray]


def sample_of_parts(source: Source[Coded], most: int, seed: int, targets: Targets = attrgetter("y")) -> Sample:
    """At most so many of the rows, with targets of shape (m, n_outputs) that are made of each part.

    The sample is that of `sample`, but for the order of rows, and that equal rows that stand for several examples are
    one.
    """
    keyed = _Keyed(targets, source.reduce(_are_whole, bool.__and__), seed)
    limit = max(MOST_ATOMS, ATOMS_OF_ROW * most)
    question = _Count(keyed, limit)
    atoms = source.reduce(question, question.add)
    while True:
        kept = at_most_in_order(atoms.mass, most)
        is_open = atoms.is_dense & (kept > 0)
        if not is_open.any():
            break
        question = _Count(keyed, limit, atoms.ranges(is_open))
        atoms = atoms.opened(is_open, source.reduce(question, question.add))
    chosen = kept > 0
    return source.reduce(_Choice(keyed, atoms.least[chosen])).sample(kept[chosen])


def _are_whole(part: Coded) -> bool:
    """Whether all weights that say how many examples rows stand for are whole numbers."""
    return part.repeats is None or Extent.of(len(part.repeats), part.repeats).is_whole


@dataclass(frozen=True)
class _Keyed:
    """Keys of rows, in order as signed integers, and copies."""

    targets: Targets
    are_whole: bool
    seed: int

    def __call__(self, part: Coded) -> tuple[np.ndarray, np.ndarray]:
        keys, copies = keys_and_copies(part.codes, self.targets(part), part.repeats, self.are_whole, self.seed)
        return keys.view(np.int64) ^ FIRST, copies


@dataclass(frozen=True)
class _Count:
    """How many copies of rows have which keys, in some ranges."""

    keyed: _Keyed
    most: int
    ranges: Ranges = EVERYTHING

    def __call__(self, part: Coded) -> Atoms:
        keys, copies = self.keyed(part)
        order = np.argsort(keys[copies > 0])
        keys, copies = keys[copies > 0][order], copies[copies > 0][order]
        own = between(keys, *self.ranges)
        return Atoms(keys[own], keys[own], copies[own]).within(self.most, self.ranges)

    def add(self, one: Atoms, other: Atoms) -> Atoms:
        return one.joined(other).within(self.most, self.ranges)


@dataclass(frozen=True)
class _Choice:
    """A row for each of some keys."""

    keyed: _Keyed
    chosen: np.ndarray

    def __call__(self, part: Coded) -> _Chosen:
        keys, copies = self.keyed(part)
        own = np.flatnonzero(np.isin(keys, self.chosen) & (copies > 0))
        worth = np.ones(len(own)) if part.weight is None else part.weight[own] / copies[own]
        found = _Chosen(
            keys[own], part.codes[own], self.keyed.targets(part)[own], worth,
            is_weighted=part.weight is not None, is_repeated=self.keyed.are_whole and part.repeats is not None,
        )  # fmt: skip
        return found.once()


@dataclass(frozen=True)
class _Chosen:
    """Rows, with what a copy of each is worth, in the order of their keys."""

    keys: np.ndarray
    codes: np.ndarray
    y: np.ndarray
    worth: np.ndarray
    is_weighted: bool
    is_repeated: bool

    def __add__(self, other: _Chosen) -> _Chosen:
        if len(self.keys) == 0 or len(other.keys) == 0:
            return other if len(self.keys) == 0 else self
        keys, codes, y, worth = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("keys", "codes", "y", "worth")
        )
        return _Chosen(keys, codes, y, worth, self.is_weighted, self.is_repeated).once()

    def once(self) -> _Chosen:
        """Of equal rows, one; the same for any order."""
        order = np.lexsort([self.worth, self.keys])
        own = order[np.unique(self.keys[order], return_index=True)[1]]
        keys, codes, y, worth = self.keys[own], self.codes[own], self.y[own], self.worth[own]
        return _Chosen(keys, codes, y, worth, self.is_weighted, self.is_repeated)

    def sample(self, copies: np.ndarray) -> Sample:
        """So many copies of each row: as many rows, unless rows stand for several."""
        times = np.ones_like(copies) if self.is_repeated else copies
        own, copies = np.repeat(np.arange(len(copies)), times), np.repeat(copies // times, times)
        weight = self.worth[own] * copies if self.is_weighted else None
        keys = (self.keys[own] ^ FIRST).view(np.uint64)
        return Sample(np.ascontiguousarray(self.codes[own]), self.y[own], weight, keys, copies)
