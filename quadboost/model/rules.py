"""The rules of a model, in words: the conditions that lead to the nodes of its trees.

A rule with the weight w adds +w to the score where all its conditions hold, and -w elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .ensemble import Ensemble

MOST_SHOWN = 20


@dataclass(frozen=True)
class Condition:
    """What a rule asks of one feature.

    Attributes
    ----------
    feature : int
    name : str
    low, high : float
        The value is above low and at most high.
    level : int or None
        The value is of this level of a categorical feature.
    not_levels : tuple of int
        It is none of these levels.
    missing : bool
        Whether a missing value satisfies the condition.
    words : str
    """

    feature: int
    name: str
    low: float = -np.inf
    high: float = np.inf
    level: int | None = None
    not_levels: tuple[int, ...] = ()
    missing: bool = False
    words: str = ""

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Whether it holds, for values of the feature; of a categorical one, numbers of levels. NaN is missing."""
        with np.errstate(invalid="ignore"):
            if self.level is not None:
                found = values == self.level
            elif self.not_levels:
                found = ~np.isin(values, self.not_levels)
            else:
                found = (values > self.low) & (values <= self.high)
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

    def __str__(self) -> str:
        weight = np.atleast_1d(self.weight)
        words = f"{weight[0]:+.4g}" if len(weight) == 1 else "[" + " ".join(f"{own:+.3g}" for own in weight) + "]"
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


def rules_of(model: Ensemble) -> Rules:
    """The rules of a model, the most important first."""
    trees, weight = model.trees, model.node_weight.reshape(model.trees.n_nodes, model.n_outputs)
    active = np.flatnonzero(weight.any(axis=1)).tolist()
    paths, rules = trees.paths(), []
    for node in active:
        n_rows = support = np.nan
        importance = float(np.abs(weight[node]).sum())
        if len(model.node_mass):
            n_rows = float(model.node_mass[node])
            support = n_rows / float(model.node_mass[trees.start[trees.tree[node]]])
            importance *= 2.0 * float(np.sqrt(max(0.0, support * (1.0 - support))))
        conditions = _conditions(model, paths[node])
        rules.append(Rule(conditions, model.node_weight[node], support, n_rows, node, importance))
    return Rules(sorted(rules, key=lambda rule: -rule.importance))


def _conditions(model: Ensemble, path: list[tuple[int, bool]]) -> tuple[Condition, ...]:
    """The conditions along a path, merged so that there is one for each feature."""
    trees, found = model.trees, dict[int, dict[str, Any]]()
    for node, goes_right in path:
        feature, threshold = int(trees.feature[node]), float(trees.threshold[node])
        own = found.setdefault(feature, {"missing": True})
        own["missing"] &= bool(trees.missing_right[node]) == goes_right
        if feature not in model.categories:
            side, better = ("low", max) if goes_right else ("high", min)
            own[side] = better(own.get(side, threshold), threshold)
        elif goes_right:
            own["level"] = int(threshold)
        else:
            own["not_levels"] = (*own.get("not_levels", ()), int(threshold))
    conditions = []
    for feature, own in found.items():
        name = f"feature {feature}" if model.feature_names is None else model.feature_names[feature]
        if "level" in own:
            own.pop("not_levels", None)
        condition = Condition(feature, name, **own)
        conditions.append(Condition(feature, name, **own, words=_words(condition, model.categories.get(feature))))
    return tuple(conditions)


def _words(condition: Condition, levels: list[list[Any]] | None) -> str:
    name = condition.name
    if levels is not None:
        asked = (condition.level,) if condition.level is not None else condition.not_levels
        names = ", ".join(" or ".join(str(value) for value in levels[level]) for level in asked)
        words = f"{name} is {names}" if condition.level is not None else f"{name} is not {names}"
    elif condition.low > -np.inf and condition.high < np.inf:
        words = f"{condition.low:.6g} < {name} <= {condition.high:.6g}"
    elif condition.low > -np.inf:
        words = f"{name} > {condition.low:.6g}"
    else:
        words = f"{name} <= {condition.high:.6g}"
    return f"({words} or missing)" if condition.missing else words
