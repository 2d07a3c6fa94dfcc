"""Exact Shapley values of rules, in closed form.

A rule adds +w to the score where all its conditions hold, and -w elsewhere. Against one row of the background, let A be
the conditions that hold here and not there, and B those that hold there and not here. If any condition holds in
neither, the rule says the same whatever is exchanged, and nothing is due to anyone. Else each of A is worth
2w (|A| - 1)! |B|! / (|A| + |B|)!, and each of B -2w |A|! (|B| - 1)! / (|A| + |B|)!. The mean over the background needs
no more than how often each pattern of conditions occurs there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import factorial
from typing import NamedTuple

import numpy as np

from ..model.rules import Condition, Rule

ROWS_AT_A_TIME = 8192  # whose conditions are kept in a core's own memory
MOST_CONDITIONS = 62  # of a rule: their pattern is an integer of 64 bits
FEW_CONDITIONS = 8  # of a rule, up to which all patterns are looked up in a table
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
        gained, lost = here[:, None] & ~self.pattern, self.pattern & ~here[:, None]
        counts = (here[:, None] | self.pattern) == full
        a, b = np.bitwise_count(gained), np.bitwise_count(lost)
        up, down = _shares(n_conditions)
        per_gain = np.where(counts, up[a, b], 0.0) * self.share
        per_loss = np.where(counts, down[a, b], 0.0) * self.share
        found = np.empty((len(here), n_conditions))
        for i in range(n_conditions):
            found[:, i] = (per_gain * (gained >> i & 1)).sum(axis=1) - (per_loss * (lost >> i & 1)).sum(axis=1)
        return found


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


def patterns_of(rules: Sequence[Rule], matrix: np.ndarray) -> Iterator[tuple[slice, Iterator[np.ndarray]]]:
    """The pattern of every rule in every row, some rows at a time; a condition that several rules ask is asked once."""
    numbers: dict[Condition, int] = {}
    asked = [[numbers.setdefault(own, len(numbers)) for own in rule.conditions] for rule in rules]
    short = np.int16 if max(map(len, asked), default=0) < 15 else np.int64
    for first in range(0, max(len(matrix), 1), ROWS_AT_A_TIME):
        rows = slice(first, min(first + ROWS_AT_A_TIME, len(matrix)))
        columns = np.ascontiguousarray(matrix[rows].T)
        holds = [own.holds(columns[own.feature]).astype(short) for own in numbers]

        def patterns(holds: list[np.ndarray] = holds, n: int = columns.shape[1]) -> Iterator[np.ndarray]:
            for own in asked:
                pattern = np.zeros(n, dtype=short)
                for bit, number in enumerate(own):
                    pattern += holds[number] << bit
                yield pattern

        yield rows, patterns()


def background_patterns(rules: Sequence[Rule], matrix: np.ndarray) -> list[Patterns]:
    """How often each pattern of each rule occurs in these rows."""
    check_length(rules)
    counts: list[dict[int, int]] = [{} for _ in rules]
    for _, found in patterns_of(rules, matrix):
        for own, pattern in zip(counts, found, strict=True):
            for value, n in zip(*(part.tolist() for part in np.unique(pattern, return_counts=True)), strict=True):
                own[value] = own.get(value, 0) + n
    tables = []
    for own in counts:
        known = np.array(sorted(own), dtype=np.int64)
        tables.append(Patterns(known, np.array([own[value] for value in known.tolist()]) / len(matrix)))
    return tables


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
