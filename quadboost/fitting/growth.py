"""Trees grown by plain boosting with shrinkage, on samples of the rows: where rules come from.

Each tree is grown to the pull of the loss on half of the rows, leaf by leaf, and its steps are taken on all of them,
shortened. Several outputs share the trees: those are grown to a few random combinations of all pulls. Sums are exact
and samples depend on what rows are, so trees are the same for any order of rows and any number of threads, and a whole
weight is the same as repeating the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..boosting.losses import Loss
from ..common.checks import at_least
from ..data.exact import Extent, exact_mean
from ..data.sampling import Sample, copies_before, half, mixed, n_different, sample
from ..kernels.sums import bin_sums
from ..kernels.trees import grow, leaves_of_grown
from ..voters.columns import Voters
from ..voters.trees import MOST_LEAVES, Trees

SHRINKAGE = 0.1
DIRECTIONS = 3  # combinations of outputs that a tree is grown to
FEW_DIFFERENT = 32  # rows: fewer are divided, each of them, into halves
LEAST_EXAMPLES = (3, 10)  # of a leaf, at least and at most: a hundredth of all
MOST_TREES = 100_000  # each has a code of every row


@dataclass(frozen=True)
class Growth:
    """How trees are grown; see the estimators' parameters."""

    n_trees: int = 0
    max_leaves: int = 31
    max_conditions: int | None = None
    growth_rows: int = 40_000
    seed: int = 0
    groups: np.ndarray | None = None  # (n_groups, d) which features may meet in a rule

    def __post_init__(self) -> None:
        at_least("n_trees", self.n_trees, 0)
        if self.n_trees > MOST_TREES:
            raise ValueError(f"n_trees={self.n_trees!r:.60} is more than can be kept; give at most {MOST_TREES}")
        at_least("max_leaves", self.max_leaves, 2)
        if self.max_leaves > MOST_LEAVES:
            raise ValueError(f"max_leaves={self.max_leaves} is more than a code can hold; give at most {MOST_LEAVES}")
        if self.max_conditions is not None:
            at_least("max_conditions", self.max_conditions, 1)
        at_least("growth_rows", self.growth_rows, 1)


@dataclass(frozen=True)
class Grown:
    """Trees, and what boosting gave them.

    Attributes
    ----------
    trees : Trees
    step : array of shape (n_nodes, n_outputs)
        What each leaf adds to the scores, shrunk; zero at other nodes.
    constant : array of shape (n_outputs,)
        The scores before the first tree.
    r2 : float
        What share of the squared pulls the trees are expected to explain on other rows: the sum over the trees of what
        each explains on the half of the rows that it was not grown on.
    """

    trees: Trees
    step: np.ndarray
    constant: np.ndarray
    r2: float


def grow_trees(
    voters: Voters, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, loss: Loss, growth: Growth,
    fit_intercept: bool = True, tell: Callable[[], None] = lambda: None, *, repeats: np.ndarray | None = None,
) -> Grown:  # fmt: skip
    """Grow trees on rows coded by the features of `voters`, with targets of shape (m, n_outputs).

    `repeats` is the part of the weight that says how many examples a row stands for; where it is not whole numbers,
    each stands for one.
    """
    mean = np.array([exact_mean(target, weight) for target in y.T])
    own = sample(codes, y, weight, repeats, growth.growth_rows, growth.seed)
    return grow_on(own, mean, voters, loss, growth, fit_intercept, tell)


def grow_on(
    own: Sample, mean: np.ndarray, voters: Voters, loss: Loss, growth: Growth, fit_intercept: bool = True,
    tell: Callable[[], None] = lambda: None,
) -> Grown:  # fmt: skip
    """Grow trees on a sample of rows, given the mean of the targets of all rows."""
    rows, n_outputs = _Rows(voters, *own), own.y.shape[1]
    constant = loss.constant(mean) if fit_intercept else np.zeros(n_outputs)
    scores = np.tile(constant, (len(rows.y), 1))
    grown, steps, explained = [], [], 0.0
    pull = loss.pull(scores, rows.y)
    first = rows.square(pull, rows.copies)
    for number in range(growth.n_trees):
        in_bag = half(rows.keys, rows.copies, rows.before, number)
        tree, node = rows.tree(pull, growth, number, in_bag)
        if tree.n_nodes > 1:
            step = SHRINKAGE * rows.steps(node, tree, pull, loss.bend(pull, rows.y))
            scores += step[node]
            before, pull = pull, loss.pull(scores, rows.y)
            others = rows.copies - in_bag
            explained += rows.square(before, others) - rows.square(pull, others)
            grown.append(tree)
            steps.append(step)
        tell()
    r2 = explained / first if first > 0 else 0.0
    return Grown(Trees.joined(grown), np.concatenate([np.zeros((0, n_outputs)), *steps]), constant, r2)


class _Rows:
    """The rows that trees are grown on."""

    def __init__(
        self, voters: Voters, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, keys: np.ndarray,
        copies: np.ndarray,
    ) -> None:  # fmt: skip
        self.voters, self.codes, self.y, self.weight, self.keys = voters, codes, y, weight, keys
        self.copies = copies
        # A row that is in both halves seems to be known better than it is. But halves of a few rows would be no halves.
        self.before = copies_before(keys, copies) if n_different(keys, copies) < FEW_DIFFERENT else None
        self.extent = Extent.of(len(y), weight)
        total, n_examples = float(self.extent.whole_weights(weight, len(y)).sum()), float(copies.sum())
        least, most = LEAST_EXAMPLES
        self.least_mass = int(min(most, max(least, n_examples / 100)) * total / max(n_examples, 1.0))
        self.bin_start = voters.bin_start[: voters.n_features + 1]

    def weight_of(self, copies: np.ndarray) -> np.ndarray | None:
        """The weight of some of the copies of each row."""
        return None if self.weight is None else self.weight / self.copies * copies

    def square(self, pull: np.ndarray, copies: np.ndarray) -> float:
        """The mean of the squared pulls of some copies of rows, summed over the outputs."""
        part, weight = copies > 0, self.weight_of(copies)
        if not part.any():
            return 0.0
        return exact_mean((pull[part] ** 2).sum(axis=1), None if weight is None else weight[part])

    def tree(self, pull: np.ndarray, growth: Growth, number: int, in_bag: np.ndarray) -> tuple[Trees, np.ndarray]:
        """A tree grown to some pull on some copies of the rows, and the node, a leaf, that each row falls into."""
        pull = self._directions(pull, mixed(np.array([growth.seed], dtype=np.uint64), number)[0])
        weight = self.weight_of(in_bag)
        largest = np.abs(pull).max(axis=0, initial=0.0)
        target = np.column_stack([self.extent.fixed_point(own, weight, float(largest.max())) for own in pull.T])
        mass = self.extent.whole_weights(weight, len(pull))
        rows = np.flatnonzero(in_bag).astype(np.int32)
        d, most = self.voters.n_features, 2 * growth.max_leaves - 1
        column, cut = np.empty(most, np.int32), np.zeros(most, np.int32)
        missing_right, child = np.zeros(most, np.uint8), np.zeros((most, 2), np.int32)
        groups = np.ones((1, d), np.uint8) if growth.groups is None else growth.groups
        most_columns = d if growth.max_conditions is None else min(d, growth.max_conditions)
        n_nodes = 1
        column[0] = -1
        if len(rows):
            n_nodes = grow(
                self.codes, self.bin_start, self.voters.is_level, mass, target, rows, groups, most_columns,
                self.least_mass, growth.max_leaves, column, cut, missing_right, child,
            )  # fmt: skip
        own = (column[:n_nodes], cut, missing_right, child)
        node = np.empty(len(self.y), np.int32)
        leaves_of_grown(self.codes, self.bin_start, self.voters.is_level, *own, node)
        tree, place = self._in_preorder(*own)
        return tree, place[node]

    def _directions(self, pull: np.ndarray, salt: np.uint64) -> np.ndarray:
        """A few combinations of the pulls of many outputs, with random signs."""
        n_outputs = pull.shape[1]
        if n_outputs <= DIRECTIONS:
            return pull
        bits = mixed(np.arange(n_outputs * DIRECTIONS, dtype=np.uint64) + salt, 1) >> np.uint64(63)
        signs = 2.0 * bits.astype(np.float64).reshape(n_outputs, DIRECTIONS) - 1.0
        return np.column_stack([(pull * own).sum(axis=1) for own in signs.T])

    def _in_preorder(
        self, column: np.ndarray, cut: np.ndarray, missing: np.ndarray, child: np.ndarray
    ) -> tuple[Trees, np.ndarray]:
        """The tree, and where each node has gone."""
        order, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            order.append(node)
            if column[node] >= 0:
                waiting += [int(child[node, 1]), int(child[node, 0])]
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        feature, is_leaf = column[order], column[order] < 0
        threshold = np.zeros(len(order))
        for i in np.flatnonzero(~is_leaf).tolist():
            f, own = int(feature[i]), int(cut[order[i]])
            threshold[i] = own - 1 if self.voters.is_level[f] else self.voters.cuts[f][own]
        start = np.array([0, len(order)], dtype=np.int64)
        missing = np.where(is_leaf, 0, missing[order]).astype(np.uint8)
        return Trees(start, feature.copy(), threshold, missing), place

    def steps(self, node: np.ndarray, tree: Trees, pull: np.ndarray, bend: np.ndarray) -> np.ndarray:
        """The best step at each leaf, shape (n_nodes, n_outputs); zero at other nodes."""
        pull, bend = self._per_node(pull, node, tree), self._per_node(bend, node, tree)
        return np.divide(pull, bend, out=np.zeros_like(pull), where=bend > 0)

    def _per_node(self, values: np.ndarray, node: np.ndarray, tree: Trees) -> np.ndarray:
        largest = np.abs(values).max(axis=0, initial=0.0).tolist()
        whole = np.column_stack(
            [self.extent.fixed_point(own, self.weight, top) for own, top in zip(values.T, largest, strict=True)]
        )
        sums = np.zeros((tree.n_nodes, values.shape[1]), dtype=np.int64)
        codes = node.astype(np.uint16)[:, None]
        bin_sums(codes, whole, np.array([0, tree.n_nodes]), sums, 1)
        return sums * [self.extent.unit(top) for top in largest]
