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

from ..kernels.trees import leaves_of_codes
from .bins import starts

MOST_LEAVES = 254  # of a tree: numbers of leaves are bytes, from 1 on
BITS_OF_WORD = 32


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
    right : int32 array of shape (n_nodes,)
        The node to the right, counted over all trees; -1 for a leaf. The one to the left is the next.
    missing_right : uint8 array of shape (n_nodes,)
        Whether missing values go right.
    """

    start: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    right: np.ndarray
    missing_right: np.ndarray

    @classmethod
    def none(cls) -> Trees:
        return cls(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.uint8))

    @classmethod
    def joined(cls, several: Sequence[Trees]) -> Trees:
        """All trees of several."""
        if not several:
            return cls.none()
        shift = starts([own.n_nodes for own in several])
        start = [own.start[:-1] + first for own, first in zip(several, shift, strict=False)]
        right = [np.where(own.is_leaf, -1, own.right + first) for own, first in zip(several, shift, strict=False)]
        rest = (np.concatenate([getattr(own, name) for own in several]) for name in ("feature", "threshold"))
        missing = np.concatenate([own.missing_right for own in several])
        return cls(np.concatenate([*start, shift[-1:]]), *rest, np.concatenate(right).astype(np.int32), missing)

    def __bool__(self) -> bool:
        return self.n_trees > 0

    def arrays(self) -> dict[str, np.ndarray]:
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @property
    def n_trees(self) -> int:
        return len(self.start) - 1

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @cached_property
    def is_leaf(self) -> np.ndarray:
        return self.feature < 0

    @cached_property
    def tree(self) -> np.ndarray:
        """The tree of each node."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.start))

    @cached_property
    def is_root(self) -> np.ndarray:
        found = np.zeros(self.n_nodes, dtype=bool)
        found[self.start[:-1]] = True
        return found

    @cached_property
    def n_leaves(self) -> np.ndarray:
        """Of each tree."""
        return np.diff(self._leaves_before[self.start])

    @cached_property
    def end(self) -> np.ndarray:
        """One past the last node at or below each node."""
        end = np.arange(1, self.n_nodes + 1)
        for node in np.flatnonzero(~self.is_leaf)[::-1].tolist():
            end[node] = end[self.right[node]]
        return end

    @cached_property
    def _leaves_before(self) -> np.ndarray:
        return starts(self.is_leaf)

    @cached_property
    def leaf_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The first leaf of each node, and one past its last; the leaves of a tree are counted from 0."""
        before = self._leaves_before
        first = before[self.start[:-1]][self.tree] if self.n_trees else before[:0]
        return before[:-1] - first, before[self.end] - first

    def paths(self) -> list[list[tuple[int, bool]]]:
        """The nodes above each node, from the root down, and whether the way goes right there."""
        paths: list[list[tuple[int, bool]]] = [[] for _ in range(self.n_nodes)]
        for node in np.flatnonzero(~self.is_leaf).tolist():
            paths[node + 1] = [*paths[node], (node, False)]
            paths[self.right[node]] = [*paths[node], (node, True)]
        return paths

    def used(self, is_used: np.ndarray) -> tuple[Trees, np.ndarray]:
        """Trees with a node that is used, without what is below the last such nodes; and which nodes were kept."""
        below = np.append(0, np.cumsum(is_used))
        kept = np.ones(self.n_nodes, dtype=bool)
        for node in np.flatnonzero(~self.is_leaf).tolist():
            has_used = below[self.end[node]] > below[node + 1]
            if not has_used:
                kept[node + 1 : self.end[node]] = False
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
            np.where(is_leaf, -1, number[self.right[kept]]).astype(np.int32),
            np.where(is_leaf, 0, self.missing_right[kept]).astype(np.uint8),
        ), kept

    def leaf_values(self, weight: np.ndarray) -> np.ndarray:
        """What a tree is worth in each leaf, given the weights (n_nodes, n_outputs); zero at other nodes."""
        along = weight.copy()
        for node in np.flatnonzero(~self.is_leaf).tolist():
            along[[node + 1, self.right[node]]] += along[node]
        values = np.zeros_like(weight)
        for first, last in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            everywhere = np.cumsum(weight[first:last], axis=0)[-1]  # in order, for the same bits everywhere
            own = first + np.flatnonzero(self.is_leaf[first:last])
            values[own] = 2.0 * along[own] - everywhere
        return values


class Reach(NamedTuple):
    """For every bin of every feature that trees ask for: the leaves that a row there can still reach, as bits."""

    feature: np.ndarray  # int64, those that trees ask for
    start: np.ndarray  # where the bins of each begin
    table: np.ndarray  # uint32 (bins, words of all trees)
    words_each: int

    @classmethod
    def of(cls, trees: Trees, n_bins: Sequence[int], goes_right: Sequence[np.ndarray]) -> Reach:
        """`n_bins` of every feature that is asked for; for each inner node, in order, which bins of its feature go right."""
        inner = np.flatnonzero(~trees.is_leaf)
        feature, number = np.unique(trees.feature[inner], return_inverse=True)
        start = starts(n_bins)
        words_each = -(-int(trees.n_leaves.max(initial=1)) // BITS_OF_WORD)
        table = np.full((int(start[-1]) + 1, trees.n_trees, words_each), 0xFFFFFFFF, dtype=np.uint32)
        first, last = trees.leaf_range
        for node, own, is_right in zip(inner.tolist(), number.tolist(), goes_right, strict=True):
            left, right = node + 1, int(trees.right[node])
            not_left = ~_bits(first[left], last[left], words_each)
            not_right = ~_bits(first[right], last[right], words_each)
            table[start[own] : start[own + 1], trees.tree[node]] &= np.where(is_right[:, None], not_left, not_right)
        return cls(feature.astype(np.int64), start[:-1].copy(), table.reshape(len(table), -1), words_each)


def _bits(first: int, last: int, n_words: int) -> np.ndarray:
    """Words of which the bits first..last - 1 are set."""
    bits = (1 << int(last)) - (1 << int(first))
    return np.array([bits >> (BITS_OF_WORD * word) & 0xFFFFFFFF for word in range(n_words)], dtype=np.uint32)


def leaf_codes(
    trees: Trees, codes: np.ndarray, cuts: Sequence[np.ndarray], is_level: np.ndarray, n_threads: int
) -> np.ndarray:
    """The leaf of every coded row in every tree, from 1 on; `cuts` and `is_level` are those of the columns of codes."""
    out = np.ones((len(codes), trees.n_trees), dtype=np.uint8)
    inner = np.flatnonzero(~trees.is_leaf)
    if not len(inner) or not len(codes):
        return out
    used = np.unique(trees.feature[inner])
    n_bins = [len(cuts[f]) + 2 for f in used.tolist()]
    goes_right = []
    for node in inner.tolist():
        f = int(trees.feature[node])
        bins = np.arange(len(cuts[f]) + 2)
        if is_level[f]:
            is_right = bins == int(trees.threshold[node]) + 1
        else:
            is_right = bins > np.searchsorted(cuts[f], trees.threshold[node])
        is_right[-1] = trees.missing_right[node]
        goes_right.append(is_right)
    reach = Reach.of(trees, n_bins, goes_right)
    bins, left = np.empty((n_threads, len(used)), np.int32), np.empty((n_threads, reach.table.shape[1]), np.uint32)
    leaves_of_codes(codes, reach.feature, reach.table, reach.start, reach.words_each, out, bins, left)
    return out
