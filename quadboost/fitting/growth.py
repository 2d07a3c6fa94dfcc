"""Trees grown by plain boosting with shrinkage, on samples of the rows: where rules come from.

Each tree is grown to the pull of the loss on half of the rows, leaf by leaf, and its steps are taken on all of them,
shortened. Several outputs share the trees: those are grown to a few random combinations of all pulls. Sums are exact
and samples depend on what rows are, so trees are the same for any order of rows and any number of threads, and a whole
weight is the same as repeating the row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..boosting.losses import Loss
from ..common.checks import at_least
from ..data.exact import Extent, exact_mean
from ..data.sampling import Sample, copies_before, half, mixed, n_different, sample
from ..kernels.growth import grow, in_preorder
from ..kernels.leaves import largest_of, leaf_sums, square_falls, steps_of_others
from ..voters.bins import starts
from ..voters.columns import Voters
from ..voters.trees import MOST_LEAVES, Trees
from .monotone import within_signs

SHRINKAGE = 0.1
DIRECTIONS = 3  # combinations of outputs that a tree is grown to
FEW_DIFFERENT = 32  # rows: fewer are divided, each of them, into halves
LEAST_EXAMPLES = (3, 20)  # of a leaf, at least and at most: a hundredth of all
ROUNDING = 1e-9  # of the bend of a leaf: what may be left where a row is alone
MOST_TREES = 100_000  # each has a code of every row


@dataclass(frozen=True)
class Growth:
    """How trees are grown; see the estimators' parameters."""

    n_trees: int = 0
    max_leaves: int = 31
    max_conditions: int | None = None
    growth_rows: int = 200_000
    seed: int = 0
    groups: np.ndarray | None = None  # (n_groups, d) which features may meet in a rule
    signs: np.ndarray | None = None  # (d, n_outputs) of features that a score must rise or fall with
    keeps_steps: bool = False  # whether these are the model, so that signs are on them, and not on weights of rules

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
        What share of the squared pulls weighed trees are expected to explain on other rows (`_OutOfBag`).
    """

    trees: Trees
    step: np.ndarray
    constant: np.ndarray
    r2: float


def grow_trees(
    voters: Voters, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, loss: Loss, growth: Growth,
    fit_intercept: bool = True, tell: Callable[[], None] = lambda: None, *, repeats: np.ndarray | None = None,
    max_seconds: float | None = None,
) -> Grown:  # fmt: skip
    """Grow trees on rows coded by the features of `voters`, with targets of shape (m, n_outputs).

    `repeats` is the part of the weight that says how many examples a row stands for; where it is not whole numbers,
    each stands for one. After `max_seconds` there are no more trees than have been grown by then, and one.
    """
    mean = np.array([exact_mean(target, weight) for target in y.T])
    some = sample(codes, y, weight, repeats, growth.growth_rows, growth.seed)
    return grow_on(some, mean, voters, loss, growth, fit_intercept, tell, max_seconds)


def grow_on(
    some: Sample, mean: np.ndarray, voters: Voters, loss: Loss, growth: Growth, fit_intercept: bool = True,
    tell: Callable[[], None] = lambda: None, max_seconds: float | None = None,
) -> Grown:  # fmt: skip
    """Grow trees on a sample of rows, given the mean of the targets of all rows."""
    start = time.monotonic()
    rows, n_outputs = _Rows(voters, *some), some.y.shape[1]
    constant = loss.constant(mean) if fit_intercept else np.zeros(n_outputs)
    scores = np.tile(constant, (len(rows.y), 1))
    grown, pull = _Parts(n_outputs), loss.pull(scores, rows.y)
    judge = _OutOfBag(rows, loss, pull)
    for number in range(growth.n_trees):
        in_bag = half(rows.keys, rows.copies, rows.before, number)
        part, node = rows.tree(pull, growth, number, in_bag)
        if len(part.feature) > 1:
            bend = loss.bend(pull, rows.y)
            sums = rows.sums(node, len(part.order), pull, bend)
            step = SHRINKAGE * rows.steps(sums, part, growth)
            before, alone = pull, judge.without_each(scores, pull, bend, sums, node)
            scores += step[node]
            pull = loss.pull(scores, rows.y)
            judge.see(before, pull, alone, rows.copies - in_bag)
            grown.add(part, step[part.order])
        tell()
        if max_seconds is not None and time.monotonic() - start > max_seconds:
            break
    return Grown(grown.trees(), np.concatenate(grown.step), constant, judge.r2)


class _Part(NamedTuple):
    """A tree as it was grown: what each node asks for, and in which order nodes are those of a tree in preorder."""

    feature: np.ndarray
    threshold: np.ndarray
    missing_right: np.ndarray
    order: np.ndarray

    @property
    def tree(self) -> Trees:
        return Trees(np.array([0, len(self.feature)]), self.feature, self.threshold, self.missing_right)


class _Sums(NamedTuple):
    """Sums over rows, shape (n, n_outputs) each."""

    pull: np.ndarray
    bend: np.ndarray

    def steps(self) -> np.ndarray:
        """Where they are minimal; zero where there is no bend."""
        return np.divide(self.pull, self.bend, out=np.zeros_like(self.pull), where=self.bend > 0.0)


class _Parts:
    """Trees grown so far."""

    def __init__(self, n_outputs: int) -> None:
        self.parts, self.step = list[_Part](), [np.zeros((0, n_outputs))]

    def add(self, part: _Part, step: np.ndarray) -> None:
        self.parts.append(part)
        self.step.append(step)

    def trees(self) -> Trees:
        if not self.parts:
            return Trees.none()
        feature, threshold, missing_right, _ = map(np.concatenate, zip(*self.parts, strict=True))
        return Trees(starts([len(tree.feature) for tree in self.parts]), feature, threshold, missing_right)


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
        self.mass = self.extent.whole_weights(weight, len(y))
        self.bin_start, self.scratch = voters.bin_start[: voters.n_features + 1], np.empty(len(y), np.int32)
        self.cuts = np.concatenate([*voters.cuts, np.zeros(MOST_LEAVES)])  # for nodes that ask for nothing, too
        self.first_cut = starts([len(cuts) for cuts in voters.cuts])

    def weight_of(self, copies: np.ndarray) -> np.ndarray | None:
        """The weight of some of the copies of each row."""
        return None if self.weight is None else self.weight / self.copies * copies

    def exact_sums(
        self, node: np.ndarray, n_nodes: int, values: np.ndarray, copies: np.ndarray | None = None
    ) -> np.ndarray:
        """Sums of values (m, n) at each leaf, over all rows or over some copies of them."""
        largest = np.zeros(values.shape[1])
        largest_of(values, largest)
        bits, units = zip(
            *((self.extent.value_bits(top), self.extent.unit(top)) for top in largest.tolist()), strict=True
        )
        sums = np.zeros((n_nodes, values.shape[1]), dtype=np.int64)
        weight = self.weight if copies is None else self.weight_of(copies)
        factor, count = self.extent.factor_and_count(weight)
        if weight is None and copies is not None:
            count = copies
        leaf_sums(node, values, np.array(bits, np.int64), factor, count, sums)
        return sums * units

    def tree(self, pull: np.ndarray, growth: Growth, number: int, in_bag: np.ndarray) -> tuple[_Part, np.ndarray]:
        """A tree grown to some pull on some copies of the rows, and the node, a leaf, that each row falls into."""
        pull = self._directions(pull, growth.seed, number)
        mass, weight = self.mass, self.weight
        if self.before is not None:  # a row may be in the bag with some of its copies
            weight = self.weight_of(in_bag)
            mass = self.extent.whole_weights(weight, len(pull))
        target = self.extent.fixed_point(pull, _column(weight), float(np.abs(pull).max(initial=0.0)))
        d, most = self.voters.n_features, 2 * growth.max_leaves - 1
        column, cut, missing_right = np.full(most, -1, np.int32), np.zeros(most, np.int32), np.zeros(most, np.uint8)
        child, n_nodes = np.zeros((most, 2), np.int32), 1
        groups = np.ones((1, d), np.uint8) if growth.groups is None else growth.groups
        sign = np.zeros(d, np.int8) if growth.signs is None else _common(growth.signs)
        side = 0 * sign if growth.keeps_steps else sign  # of a rule with a weight all signs agree
        most_columns = d if growth.max_conditions is None else min(d, growth.max_conditions)
        node = np.zeros(len(self.y), np.uint32)
        if len(node):
            n_nodes = grow(
                self.codes, self.bin_start, self.voters.is_level, sign, side, mass, target, in_bag, self.scratch,
                groups, most_columns, self.least_mass, growth.max_leaves, column, cut, missing_right, child, node,
            )  # fmt: skip
        column, order = column[:n_nodes], np.empty(n_nodes, np.int32)
        in_preorder(column, child, order, np.empty(n_nodes + 1, np.int32))
        column, cut = column[order], cut[order]
        threshold = np.where(self.voters.is_level[column] == 1, cut - 1.0, self.cuts[self.first_cut[column] + cut])
        is_inner = column >= 0
        missing_right = np.where(is_inner, missing_right[order], 0).astype(np.uint8)
        return _Part(column, np.where(is_inner, threshold, 0.0), missing_right, order), node

    def _directions(self, pull: np.ndarray, seed: int, number: int) -> np.ndarray:
        """A few combinations of the pulls of many outputs, with random signs."""
        n_outputs = pull.shape[1]
        if n_outputs <= DIRECTIONS:
            return pull
        salt = mixed(np.array([seed], dtype=np.uint64), number)[0]
        bits = mixed(np.arange(n_outputs * DIRECTIONS, dtype=np.uint64) + salt, 1) >> np.uint64(63)
        signs = 2.0 * bits.astype(np.float64).reshape(n_outputs, DIRECTIONS) - 1.0
        return np.column_stack([(pull * sign).sum(axis=1) for sign in signs.T])

    def sums(self, node: np.ndarray, n_nodes: int, pull: np.ndarray, bend: np.ndarray) -> _Sums:
        """The pulls and bends at each leaf."""
        found = self.exact_sums(node, n_nodes, np.hstack([pull, bend]))
        return _Sums(*np.hsplit(found, 2))

    def steps(self, sums: _Sums, part: _Part, growth: Growth) -> np.ndarray:
        """The best step at each leaf, shape (n_nodes, n_outputs); zero at other nodes."""
        step = sums.steps()
        if growth.signs is not None and growth.keeps_steps:
            nodes = part.order
            step[nodes] = within_signs(part.tree, self.voters.is_level, step[nodes], sums.bend[nodes], growth.signs)
        return step


class _OutOfBag:
    """What share of the squared pulls trees explain on rows that they were not grown on.

    Two figures have the truth between them. Steps are taken on all rows, so those out of the bag had a part in theirs:
    the sum of what each tree explains of them is too much. As if each row had no part in its step it is honest, but of
    boosting, which soon fits noise. Weights found together do better: even the most that any number of trees explains
    is too little. What is expected is the geometric mean: it is nothing where either says so.
    """

    def __init__(self, rows: _Rows, loss: Loss, pull: np.ndarray) -> None:
        self.rows, self.loss = rows, loss
        self.too_much = self.honest = self.most = 0.0
        self.first = self._falls(pull, [np.zeros_like(pull)], rows.copies)[0]
        # Of one copy: equal rows are others.
        self.weight = np.empty(0) if rows.weight is None else rows.weight / rows.copies

    def without_each(
        self, scores: np.ndarray, pull: np.ndarray, bend: np.ndarray, sums: _Sums, node: np.ndarray
    ) -> np.ndarray:
        """The pulls after a step that each row had no part in."""
        step = np.empty_like(pull)
        steps_of_others(node, pull, bend, *map(np.ascontiguousarray, sums), self.weight, ROUNDING, SHRINKAGE, step)
        step += scores
        return self.loss.pull(step, self.rows.y)

    def see(self, before: np.ndarray, after: np.ndarray, alone: np.ndarray, copies: np.ndarray) -> None:
        """A tree: pulls before it, after its step, and after a step without each row; copies it was not grown on."""
        too_much, honest = self._falls(before, [after, alone], copies)
        self.too_much += too_much
        self.honest += honest
        self.most = max(self.most, self.honest)

    def _falls(self, before: np.ndarray, after: list[np.ndarray], copies: np.ndarray) -> list[float]:
        """By how much the squared pulls of some copies of rows fell, summed over the outputs, in the mean."""
        falls = np.ones((len(before), len(after) + 1))  # and a one, for the weight of all
        for pulls, fall in zip(after, falls.T, strict=False):
            square_falls(before, pulls, fall)
        *found, total = self.rows.exact_sums(np.zeros(len(falls), np.uint32), 1, falls, copies)[0].tolist()
        return [fall / total if total > 0 else 0.0 for fall in found]

    @property
    def r2(self) -> float:
        if not self.first > 0.0:
            return 0.0
        return math.sqrt(max(self.too_much, 0.0) / self.first * (self.most / self.first))  # their product may overflow


def _common(signs: np.ndarray) -> np.ndarray:
    """The sign of each feature; 0 where outputs differ."""
    return np.where((signs == signs[:, :1]).all(axis=1), signs[:, 0], 0).astype(np.int8)


def _column(weight: np.ndarray | None) -> np.ndarray | None:
    return None if weight is None else weight[:, None]
