"""Exact Shapley values of rules, in closed form.

A rule adds +w to the score where all its conditions hold, and -w elsewhere. Against one row of the background, let A be
the conditions that hold here and not there, and B those that hold there and not here. If any condition holds in
neither, the rule says the same whatever is exchanged, and nothing is due to anyone. Else each of A is worth
2w (|A| - 1)! |B|! / (|A| + |B|)!, and each of B -2w |A|! (|B| - 1)! / (|A| + |B|)!. The mean over the background needs
no more than how often each pattern of conditions occurs there.

Trees are sums of their leaves as well as of their nodes: whichever are fewer are split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import factorial
from typing import NamedTuple

import numpy as np

from ..common.threads import resolve_threads
from ..kernels.patterns import add_worth, write_worth
from ..model.ensemble import Ensemble
from ..model.patterns import Asked, count_patterns, features_of, parts_of, some_rows
from ..model.rules import Condition, Rule, rules_at, summands_of
from ..voters.bins import starts

MOST_CONDITIONS = 62  # of a rule: their pattern is an integer of 64 bits
MOST_CELLS = 1 << 22  # of a table of patterns against patterns


class Patterns(NamedTuple):
    """The patterns of a rule's conditions that occur in some rows, bit i for condition i, and how often, as shares."""

    pattern: np.ndarray
    share: np.ndarray

    def table(self, n_conditions: int) -> np.ndarray:
        """What each condition is worth by the pattern of a row, in units of the weight: shape (2**n, n)."""
        found = np.zeros((1 << n_conditions, n_conditions))
        write_worth(self.pattern, self.share, *_shares(n_conditions), found)
        return found

    def values(self, here: np.ndarray, n_conditions: int) -> np.ndarray:
        """The same for some patterns, where there are too many for a table: shape (len(here), n)."""
        full = (1 << n_conditions) - 1
        step = max(1, MOST_CELLS // max(len(self.pattern), 1))
        parts = [self._values(here[i : i + step], n_conditions, full) for i in range(0, len(here), step)]
        return np.concatenate([np.empty((0, n_conditions)), *parts])

    def _values(self, here: np.ndarray, n_conditions: int, full: int) -> np.ndarray:
        # Whether condition i is gained is for this row to say and for the other: so sums over the others are products.
        holds_here, holds_there = (_bits(pattern, n_conditions) for pattern in (here, self.pattern))
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


class RuleValues(NamedTuple):
    """Rules that add up to the trees of a model, and how often their patterns occur in the rows of a reference."""

    rules: Sequence[Rule]
    patterns: Sequence[Patterns]

    @classmethod
    def against(cls, ensemble: Ensemble, matrix: np.ndarray) -> RuleValues:
        rules = rules_at(ensemble, min(summands_of(ensemble), key=lambda summands: len(summands.nodes)))
        check_length(rules)
        return cls(rules, [Patterns(pattern, mass / len(matrix)) for pattern, mass in count_patterns(rules, matrix)])

    @classmethod
    def against_training(cls, ensemble: Ensemble) -> RuleValues | None:
        """Against the training rows, by the patterns that the model has counted; None if it lacks some."""
        for summands in summands_of(ensemble):
            first, last = (np.searchsorted(ensemble.pattern_node, summands.nodes, side) for side in ("left", "right"))
            if (first < last).all():
                found = []
                for a, b in zip(first.tolist(), last.tolist(), strict=True):
                    mass = ensemble.pattern_mass[a:b]
                    found.append(Patterns(ensemble.pattern[a:b].astype(np.int64), mass / mass.sum()))
                return cls(rules_at(ensemble, summands), found)
        return None

    def add_to(self, found: np.ndarray, matrix: np.ndarray) -> None:
        """Add the Shapley values of these rows to `found`, of shape (m, n_features, n_outputs)."""
        features, n_threads = features_of(self.rules), resolve_threads(None)
        each = list(zip(self.rules, self.patterns, strict=True))
        parts: list[_Tables | _Long] = [*_Tables.of([pair for pair in each if pair[0].is_short], features)]
        parts += [_Long.of(*pair, features) for pair in each if not pair[0].is_short]
        for rows, columns in some_rows(matrix, features) if parts else ():
            block = np.zeros((len(features), found.shape[2], columns.shape[1]))
            for part in parts:
                part.add_to(block, columns, n_threads)
            found[rows, features] += block.transpose(2, 0, 1)


class _Tables(NamedTuple):
    """Some rules, and tables of what each condition adds to each output in every pattern."""

    asked: Asked
    start: np.ndarray
    table: np.ndarray

    @classmethod
    def of(cls, each: Sequence[tuple[Rule, Patterns]], features: np.ndarray) -> Iterator[_Tables]:
        """A few at a time. A rule whose conditions are the first of a longer one is part of its table."""
        conditions: list[tuple[Condition, ...]] = []
        tables: list[np.ndarray] = []
        of_first = dict[tuple[Condition, ...], int]()
        for rule, patterns in sorted(each, key=lambda pair: -len(pair[0].conditions)):
            n = len(rule.conditions)
            worth = patterns.table(n).T[:, None] * np.atleast_1d(rule.weight)[:, None]
            if (longer := of_first.get(rule.conditions)) is not None:
                tables[longer].reshape(*tables[longer].shape[:2], -1, 1 << n)[:n] += worth[:, :, None]
                continue
            of_first.update((rule.conditions[:i], len(tables)) for i in range(1, n + 1))
            conditions.append(rule.conditions)
            tables.append(worth)
        for part in parts_of([table.size for table in tables]):
            start = starts([table.size for table in tables[part]])[:-1]
            yield cls(
                Asked.of(conditions[part], features), start, np.concatenate([table.ravel() for table in tables[part]])
            )

    def add_to(self, block: np.ndarray, columns: np.ndarray, n_threads: int) -> None:
        scratch = self.asked.scratch(n_threads)
        add_worth(self.asked.questions, columns, self.table, self.start, scratch, block, n_threads)


class _Long(NamedTuple):
    """A rule with too many patterns for that: what conditions are worth is found for those that rows have."""

    asked: Asked
    places: np.ndarray  # of its features
    weight: np.ndarray
    patterns: Patterns

    @classmethod
    def of(cls, rule: Rule, patterns: Patterns, features: np.ndarray) -> _Long:
        places = np.searchsorted(features, [condition.feature for condition in rule.conditions])
        return cls(Asked.of([rule.conditions], features), places, np.atleast_1d(rule.weight), patterns)

    def add_to(self, block: np.ndarray, columns: np.ndarray, n_threads: int) -> None:
        (here,) = self.asked.patterns(columns)
        known, where = np.unique(here, return_inverse=True)
        values = self.patterns.values(known, len(self.places))[where].T
        block[self.places] += values[:, None] * self.weight[:, None]


def check_length(rules: Sequence[Rule]) -> None:
    longest = max((len(rule.conditions) for rule in rules), default=0)
    if longest > MOST_CONDITIONS:
        raise ValueError(
            f"a rule asks for {longest} features; those with more than {MOST_CONDITIONS} are not explained"
        )
