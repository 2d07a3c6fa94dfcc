"""Small trees, of which every node but the root is a voter: +1 for the rows that fall into it, -1 for the others.

A tree is one more column: its codes are the leaves that rows fall into, numbered from left to right, and the leaves
of a node are an interval of them. What leads to a node is a rule: conditions on some features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..kernels.trees import fill_reach, find_right, leaves_of_codes
from .bins import starts

MOST_LEAVES = 254  # of a tree: numbers of leaves are bytes, from 1 on
BITS_OF_WORD = 32
WORDS_TOGETHER = 128  # of the trees that are walked through together


def fixed(derived: np.ndarray) -> np.ndarray:
    """Not to be changed: it is made once."""
    derived.flags.writeable = False
    return derived


@dataclass(frozen=True)
class Trees:
    """Trees in preorder: a node, all nodes to its left, all nodes to its right. Trees follow one another.

    Attributes
    ----------
    start : int64 array of shape (n_trees + 1,)
        Where the nodes of each tree begin.
    feature : int32 array of shape (n_nodes,)
        What a node asks for; -1 for a leaf.
    threshold : float64 array of shape (n_nodes,)
        Values above it go right. Of a categorical feature: the number of the level that goes right; all others go left.
    missing_right : uint8 array of shape (n_nodes,)
        Whether missing values go right.
    """

    start: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_right: np.ndarray

    @classmethod
    def none(cls) -> Trees:
        return cls(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.uint8))

    @classmethod
    def joined(cls, several: Sequence[Trees]) -> Trees:
        """All trees of several."""
        if not several:
            return cls.none()
        shift = starts([trees.n_nodes for trees in several])
        start = [trees.start[:-1] + first for trees, first in zip(several, shift, strict=False)]
        rest = (np.concatenate([getattr(trees, name) for trees in several]) for name in list(several[0].arrays())[1:])
        return cls(np.concatenate([*start, shift[-1:]]), *rest)

    def __reduce__(self) -> tuple[type[Trees], tuple[np.ndarray, ...]]:
        """What is derived is derived anew."""
        return Trees, tuple(self.arrays().values())

    def __bool__(self) -> bool:
        return self.n_trees > 0

    def copy(self) -> Trees:
        types = (np.int64, np.int32, np.float64, np.uint8)
        return Trees(
            *(np.array(values, dtype, order="C") for values, dtype in zip(self.arrays().values(), types, strict=True))
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_trees(self) -> int:
        return len(self.start) - 1

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @cached_property
    def is_leaf(self) -> np.ndarray:
        return fixed(self.feature < 0)

    @cached_property
    def tree(self) -> np.ndarray:
        """The tree of each node."""
        return fixed(np.repeat(np.arange(self.n_trees), np.diff(self.start)))

    @cached_property
    def is_root(self) -> np.ndarray:
        found = np.zeros(self.n_nodes, dtype=bool)
        found[self.start[:-1]] = True
        return fixed(found)

    @cached_property
    def n_leaves(self) -> np.ndarray:
        """Of each tree."""
        return fixed(np.diff(self._leaves_before[self.start]))

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        end, right = np.zeros((2, self.n_nodes), dtype=np.int32)
        wrong = find_right(self.start, self.feature, end, right)
        if wrong >= 0:
            raise ValueError(f"tree {wrong} is not one: its nodes are not in preorder, each with two or none below it")
        return fixed(end), fixed(right)

    @property
    def end(self) -> np.ndarray:
        """One past the last node at or below each node."""
        return self._ends[0]

    @property
    def right(self) -> np.ndarray:
        """The node to the right of each, counted over all trees; -1 for a leaf. The one to the left is the next."""
        return self._ends[1]

    def levels(self) -> list[np.ndarray]:
        """The nodes with others below them, from the roots down: those of each depth."""
        found, nodes = [], self.start[:-1]
        while len(nodes := nodes[~self.is_leaf[nodes]]):
            found.append(nodes)
            nodes = np.concatenate([nodes + 1, self.right[nodes]])
        return found

    @cached_property
    def n_conditions(self) -> np.ndarray:
        """How many conditions lead to each node."""
        from .rules import n_conditions

        return fixed(n_conditions(self))

    @cached_property
    def _leaves_before(self) -> np.ndarray:
        return fixed(starts(self.is_leaf))

    @cached_property
    def leaf_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The first leaf of each node, and one past its last; the leaves of a tree are counted from 0."""
        before = self._leaves_before
        first = before[self.start[:-1]][self.tree] if self.n_trees else before[:0]
        return fixed(before[:-1] - first), fixed(before[self.end] - first)

    def path(self, node: int) -> list[tuple[int, bool]]:
        """The nodes above a node, from the root down, and whether the way goes right there."""
        above, found = int(self.start[self.tree[node]]), []
        while above != node:
            right = int(self.right[above])
            found.append((above, node >= right))
            above = right if node >= right else above + 1
        return found

    def paths(self) -> list[list[tuple[int, bool]]]:
        """The path of every node."""
        return [self.path(node) for node in range(self.n_nodes)]

    def used(self, is_used: np.ndarray) -> tuple[Trees, np.ndarray]:
        """Trees with a node that is used, without what is below the last such nodes; and which nodes were kept."""
        below = np.append(0, np.cumsum(is_used))
        kept, inner = np.ones(self.n_nodes, dtype=bool), np.flatnonzero(~self.is_leaf)
        kept[inner + 1] = kept[self.right[inner]] = below[self.end[inner]] > below[inner + 1]
        tree_used = np.diff(below[self.start]) > 0
        kept &= tree_used[self.tree] if self.n_trees else kept
        number = np.append(0, np.cumsum(kept))
        becomes_leaf = np.zeros(self.n_nodes, dtype=bool)
        inner = np.flatnonzero(~self.is_leaf & kept)
        becomes_leaf[inner] = ~kept[inner + 1]
        is_leaf = (self.is_leaf | becomes_leaf)[kept]
        return Trees(
            number[self.start[np.append(tree_used, True)]],
            np.where(is_leaf, -1, self.feature[kept]).astype(np.int32),
            np.where(is_leaf, 0.0, self.threshold[kept]),
            np.where(is_leaf, 0, self.missing_right[kept]).astype(np.uint8),
        ), kept

    def part(self, first: int, last: int) -> Trees:
        """The trees first..last - 1."""
        nodes = slice(self.start[first], self.start[last])
        return Trees(
            self.start[first : last + 1] - nodes.start, *(values[nodes] for values in list(self.arrays().values())[1:])
        )

    def parts(self) -> list[Trees]:
        """The same trees, some at a time: as many as a `Reach` should have."""
        each = max(1, WORDS_TOGETHER // _words(self))
        return [self.part(first, min(self.n_trees, first + each)) for first in range(0, self.n_trees, each)]


class Reach(NamedTuple):
    """For every bin of every feature that trees ask for: the leaves that a row there can still reach, as bits.

    Its size grows with the square of the number of trees: there are parts of few of them.
    """

    feature: np.ndarray  # int64, those that trees ask for
    start: np.ndarray  # where the bins of each begin, and the last end
    table: np.ndarray  # uint32 (bins, words of all trees)
    words_each: int

    @classmethod
    def of(cls, trees: Trees, n_bins: np.ndarray, cut: np.ndarray, is_level: np.ndarray) -> Reach:
        """`n_bins` of every feature that is asked for, ascending, with one for missing values, which is the last.

        Of each inner node: the bin above which values go right or, of levels, the bin that goes right.
        """
        inner = np.flatnonzero(~trees.is_leaf)
        feature, slot = np.unique(trees.feature[inner], return_inverse=True)
        start, words_each = starts(n_bins), _words(trees)
        table = np.full((int(start[-1]) + 1, trees.n_trees * words_each), 0xFFFFFFFF, dtype=np.uint32)
        first, last = trees.leaf_range
        order = np.lexsort((cut, slot))
        node = inner[order]
        fill_reach(
            slot.astype(np.int64)[order], cut[order], is_level[order], trees.missing_right[node],
            trees.tree[node] * words_each, first[node], first[trees.right[node]], last[node], start, table,
            np.empty(table.shape[1], np.uint32),
        )  # fmt: skip
        return cls(feature.astype(np.int64), start, table, words_each)


def _words(trees: Trees) -> int:
    """Words that have a bit for each leaf of any of the trees."""
    return -(-int(trees.n_leaves.max(initial=1)) // BITS_OF_WORD)


def leaf_codes(
    trees: Trees, codes: np.ndarray, cuts: Sequence[np.ndarray], is_level: np.ndarray, n_threads: int
) -> np.ndarray:
    """The leaf of every coded row in every tree, from 1 on; `cuts` and `is_level` are those of the columns of codes."""
    n_bins = np.array([len(values) + 2 for values in cuts], dtype=np.int64)
    found = [np.empty((len(codes), 0), dtype=np.uint8)]
    for part in trees.parts():
        out = np.ones((len(codes), part.n_trees), dtype=np.uint8)
        inner = np.flatnonzero(~part.is_leaf)
        feature, threshold = part.feature[inner], part.threshold[inner]
        asked, cut = np.unique(feature), np.empty(len(inner), dtype=np.int64)
        for f in asked.tolist():
            at = feature == f
            cut[at] = threshold[at] + 1 if is_level[f] else np.searchsorted(cuts[f], threshold[at])
        reach = Reach.of(part, n_bins[asked], cut, is_level[feature].astype(np.uint8))
        bins, left = (
            np.empty((n_threads, len(reach.feature)), np.int32),
            np.empty((n_threads, reach.table.shape[1]), np.uint32),
        )
        if len(codes) and len(inner):
            leaves_of_codes(codes, reach.feature, reach.table, reach.start, reach.words_each, out, bins, left)
        found.append(out)
    return np.concatenate(found, axis=1)
