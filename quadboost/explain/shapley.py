"""Exact Shapley values of rules, in closed form.

A rule adds +w to the score where all its conditions hold, and -w elsewhere. Against one row of the background, let A be
the conditions that hold here and not there, and B those that hold there and not here. If any condition holds in
neither, the rule says the same whatever is exchanged, and nothing is due to anyone. Else each of A is worth
2w (|A| - 1)! |B|! / (|A| + |B|)!, and each of B -2w |A|! (|B| - 1)! / (|A| + |B|)!. The mean over the background needs
no more than how often each pattern of conditions occurs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import factorial
from typing import NamedTuple

import numpy as np

from ..model.ensemble import Ensemble
from ..model.patterns import FEW_CONDITIONS, count_patterns, patterns_of
from ..model.rules import Rule

MOST_CONDITIONS = 62  # of a rule: their pattern is an integer of 64 bits
MOST_CELLS = 1 << 22  # of a table of patterns against patterns


class Patterns(NamedTuple):
    """The patterns of a rule's conditions that occur in some rows, bit i for condition i, and how often, as shares."""

    pattern: np.ndarray
    share: np.ndarray

    def values(self, here: np.ndarray, n_conditions: int) -> np.ndarray:
        """What each condition is worth for patterns of other rows, in units of the weight: shape (len(here), n)."""
        full = (1 << n_conditions) - 1
        step = max(1, MOST_CELLS // max(len(self.pattern), 1))
        parts = [self._values(here[i : i + step], n_conditions, full) for i in range(0, len(here), step)]
        return np.concatenate([np.empty((0, n_conditions)), *parts])

    def _values(self, here: np.ndarray, n_conditions: int, full: int) -> np.ndarray:
        # Whether condition i is gained is for this row to say and for the other: so sums over the others are products.
        holds_here, holds_there = (_bits(own, n_conditions) for own in (here, self.pattern))
        counts = ((here[:, None] | self.pattern) == full) * self.share
        a = np.bitwise_count(here[:, None] & ~self.pattern)
        b = np.bitwise_count(self.pattern & ~here[:, None])
        up, down = _shares(n_conditions)
        gained, lost = (counts * up[a, b]) @ (1.0 - holds_there), (counts * down[a, b]) @ holds_there
        return holds_here * gained - (1.0 - holds_here) * lost


def _bits(pattern: np.ndarray, n: int) -> np.ndarray:
    """Each bit as a column, of 0.0 and 1.0."""
    return (pattern[:, None] >> np.arange(n) & 1).astype(np.float64)


@lru_cache
def _shares(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Twice the shares of those gained and of those lost, by how many there are of each."""
    up, down = np.zeros((2, n + 1, n + 1))
    for a in range(n + 1):
        for b in range(n + 1 - a):
            if a:
                up[a, b] = 2.0 * factorial(a - 1) * factorial(b) / factorial(a + b)
            if b:
                down[a, b] = 2.0 * factorial(a) * factorial(b - 1) / factorial(a + b)
    return up, down


def background_patterns(rules: Sequence[Rule], matrix: np.ndarray) -> list[Patterns]:
    """How often each pattern of each rule occurs in these rows."""
    check_length(rules)
    return [Patterns(pattern, mass / len(matrix)) for pattern, mass in count_patterns(rules, matrix)]


def training_patterns(ensemble: Ensemble, rules: Sequence[Rule]) -> list[Patterns] | None:
    """Those that the model has kept of its training rows; None unless it has all."""
    nodes = np.array([rule.node for rule in rules], dtype=np.int64)
    first, last = (np.searchsorted(ensemble.pattern_node, nodes, side) for side in ("left", "right"))
    if not (first < last).all():
        return None
    found = []
    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        mass = ensemble.pattern_mass[a:b]
        found.append(Patterns(ensemble.pattern[a:b].astype(np.int64), mass / mass.sum()))
    return found


def add_rule_values(
    found: np.ndarray, rules: Sequence[Rule], weight: np.ndarray, tables: Sequence[Patterns], matrix: np.ndarray
) -> None:
    """Add the Shapley values of rules with these weights (n_rules, n_outputs) to `found` (m, n_features, n_outputs)."""
    ready = [_for_all_patterns(rule, table) for rule, table in zip(rules, tables, strict=True)]
    for rows, patterns in patterns_of(rules, matrix):
        block = np.zeros((found.shape[1], found.shape[2], rows.stop - rows.start))
        for rule, own_weight, table, values, pattern in zip(rules, weight, tables, ready, patterns, strict=True):
            if values is None:
                here, pattern = np.unique(pattern, return_inverse=True)
                values = table.values(here.astype(np.int64), len(rule.conditions))
            for i, condition in enumerate(rule.conditions):
                own = values[:, i][pattern]
                for output, factor in enumerate(own_weight.tolist()):
                    block[condition.feature, output] += factor * own
        found[rows] += block.transpose(2, 0, 1)


def _for_all_patterns(rule: Rule, table: Patterns) -> np.ndarray | None:
    """What the conditions are worth, by pattern; None where there are too many patterns."""
    n = len(rule.conditions)
    return table.values(np.arange(1 << n), n) if n <= FEW_CONDITIONS else None


def check_length(rules: Sequence[Rule]) -> None:
    longest = max((len(rule.conditions) for rule in rules), default=0)
    if longest > MOST_CONDITIONS:
        raise ValueError(
            f"a rule asks for {longest} features; those with more than {MOST_CONDITIONS} are not explained"
        )
