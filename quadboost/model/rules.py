"""The rules of a model, in words: the conditions that lead to the nodes of its trees.

A rule with the weight w adds +w to the score where all its conditions hold, and -w elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .ensemble import Ensemble

MOST_SHOWN = 20
FEW_CONDITIONS = 12  # of a short rule
LARGEST_WITH_HALVES = 1e15


@dataclass(frozen=True)
class Condition:
    """What a rule asks of one feature.

    Attributes
    ----------
    feature : int
    name : str
    low, high : float
        The value is above low and at most high; any value is above minus infinity, none if low is not below high.
    level : int or None
        The value is of this level of a categorical feature.
    not_levels : tuple of int
        It is none of these levels.
    missing : bool
        Whether a missing value satisfies the condition.
    levels : list or None
        The labels of the levels of a categorical feature.
    order : sequence of str
        The levels whose places are the feature's values.
    """

    feature: int
    name: str
    low: float = -np.inf
    high: float = np.inf
    level: int | None = None
    not_levels: tuple[int, ...] = ()
    missing: bool = False
    levels: list[list[Any]] | None = field(default=None, repr=False, compare=False)
    order: Sequence[str] = field(default=(), repr=False, compare=False)

    @property
    def has_value(self) -> bool:
        """Whether any value can satisfy it; else only a missing one does, or none."""
        return self.level is not None or bool(self.not_levels) or self.low < self.high

    @property
    def words(self) -> str:
        name = self.name
        if not self.has_value:
            return f"{name} is missing" if self.missing else f"{name} is impossible"
        if self.levels is not None:
            asked = (self.level,) if self.level is not None else self.not_levels
            names = ", ".join(" or ".join(str(value) for value in self.levels[level]) for level in asked)
            words = f"{name} is {names}" if self.level is not None else f"{name} is not {names}"
        elif self.low > -np.inf and self.high < np.inf:
            words = f"{_bound(self.low, self.order)} < {name} <= {_bound(self.high, self.order)}"
        elif self.low > -np.inf:
            words = f"{name} > {_bound(self.low, self.order)}"
        else:
            words = f"{name} <= {_bound(self.high, self.order)}"
        return f"({words} or missing)" if self.missing else words

    def within(self, threshold: float, is_right: bool, missing: bool) -> Condition:
        """This one, and what a node asks for whose threshold, or level, a value is to the right of."""
        missing = self.missing and missing
        if self.levels is None:
            low, high = (max(self.low, threshold), self.high) if is_right else (self.low, min(self.high, threshold))
            return replace(self, low=low, high=high, missing=missing)
        level, is_open = int(threshold), self.level is None and self.low < self.high
        if is_open and not is_right:
            others = self.not_levels if level in self.not_levels else (*self.not_levels, level)
            return replace(self, not_levels=others, missing=missing)
        if is_open and level not in self.not_levels:
            return replace(self, level=level, not_levels=(), missing=missing)
        if self.level is not None and is_right == (self.level == level):
            return replace(self, missing=missing)
        return replace(
            self, level=None, not_levels=(), low=np.inf, high=-np.inf, missing=missing
        )  # no level is another

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Whether it holds, for values of the feature; of a categorical one, numbers of levels. NaN is missing."""
        values = np.asarray(values, dtype=np.float64)  # thresholds are not rounded to a narrower type
        if self.level is not None:
            found = values == self.level
        elif self.not_levels:
            found = ~np.isin(values, self.not_levels)
        else:
            found = ((values > self.low) | (self.low == -np.inf)) & (values <= self.high)
        return np.where(np.isnan(values), self.missing, found)


@dataclass(frozen=True)
class Rule:
    """A node of a tree that has a weight.

    Attributes
    ----------
    conditions : tuple of Condition
        One for each feature that is asked for.
    weight : float, or array of shape (n_outputs,)
    support : float
        Share of the training rows that satisfy it; NaN where it is not known.
    n_rows : float
        Their number, or their weight.
    node : int
        Its number in `ensemble.trees`.
    importance : float
        Standard deviation of what it adds to the scores of the training rows, summed over the outputs; where the rows
        are not known, the size of the weight.
    """

    conditions: tuple[Condition, ...]
    weight: float | np.ndarray
    support: float
    n_rows: float
    node: int
    importance: float

    @property
    def is_short(self) -> bool:
        """Whether there are few enough patterns of its conditions for a table of all."""
        return len(self.conditions) <= FEW_CONDITIONS

    def __str__(self) -> str:
        weight = np.atleast_1d(self.weight)
        words = f"{weight[0]:+.4g}" if len(weight) == 1 else "[" + " ".join(f"{one:+.3g}" for one in weight) + "]"
        rows = "" if np.isnan(self.support) else f"  ({self.support:.1%} of the rows)"
        return f"{words}  if {' and '.join(condition.words for condition in self.conditions)}{rows}"

    def holds(self, X: np.ndarray) -> np.ndarray:
        """Whether it holds for the rows of a matrix, as `ensemble.matrix_of` makes it."""
        return np.all([condition.holds(X[:, condition.feature]) for condition in self.conditions], axis=0)


class Rules(list[Rule]):
    """Rules, which print one a line."""

    def __str__(self) -> str:
        lines = [str(rule) for rule in self[:MOST_SHOWN]]
        if len(self) > MOST_SHOWN:
            lines.append(f"... and {len(self) - MOST_SHOWN} more")
        return "\n".join(lines) if lines else "no rules"


class Summands(NamedTuple):
    """Nodes whose rules, with these weights, add up to the trees, up to a constant."""

    nodes: np.ndarray
    weight: np.ndarray  # (n, n_outputs), or (n,)

    def first(self, order: np.ndarray) -> Summands:
        return Summands(self.nodes[order], self.weight[order])


def rules_of(model: Ensemble, most: int | None = None) -> Rules:
    """The rules of a model, the most important first, and not more than asked for."""
    active, _ = summands_of(model)
    order = np.argsort(-_figures(model, active)[2], kind="stable")[:most]
    return Rules(rules_at(model, active.first(order)))


def summands_of(model: Ensemble) -> tuple[Summands, Summands]:
    """The nodes that have a weight; and one of the two below each node, by which that one differs from the other.

    It is the one with more nodes below it: rules that ask for all that another does are worth one look (`Tables`).
    """
    trees, weight = model.trees, model.node_weight
    active = np.flatnonzero(weight.reshape(trees.n_nodes, model.n_outputs).any(axis=1))
    says = model.leaf_values()  # then, of every node, what is said there but for the nodes below it that are taken
    half, size = np.zeros(says.shape), trees.end - np.arange(trees.n_nodes)
    is_taken, is_used = np.zeros(trees.n_nodes, dtype=bool), np.isin(trees.tree, trees.tree[active])
    for level in reversed(trees.levels()):
        nodes = level[is_used[level]]
        left, right = nodes + 1, trees.right[nodes]
        one, other = np.where(size[left] >= size[right], (left, right), (right, left))
        says[nodes], is_taken[one] = says[other], True
        half[one] = 0.5 * (says[one] - says[other])
    nodes = np.flatnonzero(is_taken)
    return Summands(active, weight[active]), Summands(nodes, half[nodes].reshape(len(nodes), *weight.shape[1:]))


def trees_mean(model: Ensemble) -> np.ndarray:
    """What each tree adds on average over the training rows, which the model has counted: (n_trees, n_outputs)."""
    if not model.trees:
        return np.zeros((0, model.n_outputs))
    first = model.trees.start[:-1]
    return np.add.reduceat(model.node_mass[:, None] * model.leaf_values(), first) / model.node_mass[first, None]


def rules_at(model: Ensemble, summands: Summands) -> list[Rule]:
    """The rules of some nodes, in their order."""
    figures = zip(
        summands.nodes.tolist(), summands.weight, *(each.tolist() for each in _figures(model, summands)), strict=True
    )
    ways = _Ways(model)
    return [
        Rule(tuple(ways.to(node).values()), weight, support, n_rows, node, importance)
        for node, weight, support, n_rows, importance in figures
    ]


def _figures(model: Ensemble, summands: Summands) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Support, rows and importance of rules."""
    trees = model.trees
    n_rows = support = np.full(len(summands.nodes), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # of weights that are all but infinite
        importance = np.abs(summands.weight.reshape(len(summands.nodes), model.n_outputs)).sum(axis=1)
        if len(model.node_mass):
            n_rows = model.node_mass[summands.nodes]
            support = np.minimum(n_rows / model.node_mass[trees.start[trees.tree[summands.nodes]]], 1.0)
            importance *= 2.0 * np.sqrt(support * (1.0 - support))
    return support, n_rows, importance


class _Ways:
    """The conditions on the way to nodes, one for each feature; nodes share those of what is above them."""

    def __init__(self, model: Ensemble) -> None:
        self.model, self.known = model, dict[int, dict[int, Condition]]()

    def to(self, node: int) -> dict[int, Condition]:
        """By feature, in the order in which they are first asked for."""
        path, found = self.model.trees.path(node), dict[int, Condition]()
        for (above, is_right), below in zip(path, [*(above for above, _ in path[1:]), node], strict=True):
            if below not in self.known:
                self.known[below] = self._with_one_more(found, above, is_right)
            found = self.known[below]
        return found

    def _with_one_more(self, conditions: dict[int, Condition], above: int, is_right: bool) -> dict[int, Condition]:
        trees = self.model.trees
        feature = int(trees.feature[above])
        before = conditions.get(feature) or self._any(feature)
        missing = bool(trees.missing_right[above]) == is_right
        return {**conditions, feature: before.within(float(trees.threshold[above]), is_right, missing)}

    def _any(self, feature: int) -> Condition:
        """What holds for any value."""
        model = self.model
        name = f"feature {feature}" if model.feature_names is None else model.feature_names[feature]
        levels, order = model.categories.get(feature), model.schema.orders.get(feature, ())
        return Condition(feature, name, missing=True, levels=levels, order=order)


def _bound(threshold: float, order: Sequence[str]) -> str:
    """A threshold; between places of an order, the level below it."""
    return order[int(threshold)] if 0 <= threshold < len(order) else _digits(threshold)


def _digits(threshold: float) -> str:
    """Six digits, or what tells whole numbers apart: 1700000000.5 is not 1.7e+09."""
    if abs(threshold) >= LARGEST_WITH_HALVES:
        return str(float(threshold))
    return f"{threshold:.{max(6, len(f'{abs(threshold):.0f}') + 1)}g}"
