"""How often the conditions of rules hold together: the patterns of each rule that occur, and the weight of their rows.

Bit i of a pattern says whether condition i of the rule holds. This is all that exact Shapley values need to know of the
training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.patterns import ROWS_TOGETHER, Questions, add_counts, write_patterns
from ..voters.bins import starts
from .rules import Condition, Rule, rules_at, summands_of

if TYPE_CHECKING:
    from .ensemble import Ensemble

ROWS_AT_A_TIME = 8192
MOST_CELLS = 1 << 16  # of the tables of some rules: they stay in a core's own memory
MOST_RULES, MOST_ROWS_OF_RULES = 2000, 200_000_000  # and rules times rows: more would take a good part of a fit


@dataclass(frozen=True)
class Asked:
    """Rules as the kernels ask them: a condition that several rules have is asked once.

    Attributes
    ----------
    questions : Questions
        On columns, those of `features`.
    n_rules, n_conditions : int
        How many there are, and of different conditions.
    """

    questions: Questions
    n_rules: int
    n_conditions: int

    @classmethod
    def of(cls, rules: Sequence[Sequence[Condition]], features: np.ndarray) -> Asked:
        numbers: dict[Condition, int] = {}
        asked = [numbers.setdefault(condition, len(numbers)) for rule in rules for condition in rule]
        intervals = [_intervals(condition) for condition in numbers]
        low, high, outside = (
            np.array([one for several in intervals for one in several], dtype=np.float64).reshape(-1, 3).T
        )
        questions = Questions(
            np.searchsorted(features, [condition.feature for condition in numbers]).astype(np.int32),
            starts([len(several) for several in intervals]),
            np.ascontiguousarray(low),
            np.ascontiguousarray(high),
            outside.astype(np.uint8),
            np.array([condition.missing for condition in numbers], dtype=np.uint8),
            starts([len(rule) for rule in rules]),
            np.array(asked, dtype=np.int32),
        )
        return cls(questions, len(rules), len(numbers))

    def scratch(self, n_threads: int = 1) -> np.ndarray:
        """Scratch memory of the kernels, for which conditions hold."""
        return np.empty((n_threads, self.n_conditions, ROWS_TOGETHER), dtype=np.uint8)

    def patterns(self, columns: np.ndarray) -> np.ndarray:
        """Of every rule in every row, shape (n_rules, rows)."""
        found = np.empty((self.n_rules, columns.shape[1]), dtype=np.int64)
        write_patterns(self.questions, columns, self.scratch()[0], found)
        return found


def features_of(rules: Sequence[Rule]) -> np.ndarray:
    """What the rules ask for."""
    return np.unique([condition.feature for rule in rules for condition in rule.conditions]).astype(np.int64)


def some_rows(matrix: np.ndarray, features: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Some rows at a time, and their columns of these features."""
    for first in range(0, len(matrix), ROWS_AT_A_TIME):
        rows = slice(first, min(first + ROWS_AT_A_TIME, len(matrix)))
        # Thresholds are not rounded to a narrower type.
        yield rows, np.ascontiguousarray(matrix[rows][:, features].T, dtype=np.float64)


def _intervals(condition: Condition) -> list[tuple[float, float, bool]]:
    """Values for which a condition holds: above, up to, and whether outside instead. Levels are whole numbers."""
    if condition.level is not None:
        return [(condition.level - 1.0, float(condition.level), False)]
    if condition.not_levels:
        return [(level - 1.0, float(level), True) for level in condition.not_levels]
    return [(condition.low, condition.high, False)]


def patterns_of(rules: Sequence[Rule], matrix: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """The pattern of every rule in every row, shape (n_rules, rows), some rows at a time."""
    features = features_of(rules)
    asked = Asked.of([rule.conditions for rule in rules], features)
    for rows, columns in some_rows(matrix, features) if rules else ():
        yield rows, asked.patterns(columns)


def parts_of(sizes: Sequence[int]) -> Iterator[slice]:
    """Tables that stand together, so many that a core's own memory holds them."""
    first = cells = 0
    for last, size in enumerate(sizes):
        if last > first and cells + size > MOST_CELLS:
            yield slice(first, last)
            first, cells = last, 0
        cells += size
    if sizes:
        yield slice(first, len(sizes))


def count_patterns(
    rules: Sequence[Rule], matrix: np.ndarray, weight: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The patterns of each rule that occur in these rows, ascending, and the weight of their rows."""
    short = [rule for rule in rules if rule.is_short]
    found = _occurring(short, count_short(short, matrix, weight))
    of_short, of_long = iter(found), iter(_count_long([rule for rule in rules if not rule.is_short], matrix, weight))
    return [next(of_short if rule.is_short else of_long) for rule in rules]


def count_short(rules: Sequence[Rule], matrix: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The weight of the rows with each pattern of short rules, one rule after the other; those of parts add up."""
    found = [np.empty(0)]
    for part in parts_of([1 << len(rule.conditions) for rule in rules]):
        some = rules[part]
        features = features_of(some)
        asked = Asked.of([rule.conditions for rule in some], features)
        start = starts([1 << len(rule.conditions) for rule in some])
        counts, scratch = np.zeros(start[-1]), asked.scratch()[0]
        for rows, columns in some_rows(matrix, features):
            mass = np.empty(0) if weight is None else np.ascontiguousarray(weight[rows], dtype=np.float64)
            add_counts(asked.questions, columns, mass, start[:-1], scratch, counts)
        found.append(counts)
    return np.concatenate(found)


def _occurring(rules: Sequence[Rule], counts: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The patterns of each short rule that occur, and their weight."""
    start, found = starts([1 << len(rule.conditions) for rule in rules]), []
    for of_rule in np.split(counts, start[1:-1]) if rules else ():
        pattern = np.flatnonzero(of_rule)
        found.append((pattern, of_rule[pattern]))
    return found


def _count_long(
    rules: Sequence[Rule], matrix: np.ndarray, weight: np.ndarray | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    known: list[dict[int, float]] = [{} for _ in rules]
    for rows, found in patterns_of(rules, matrix):
        its_weight = None if weight is None else weight[rows]
        for counts, patterns in zip(known, found, strict=True):
            pattern, number = np.unique(patterns, return_inverse=True)
            for value, mass in zip(pattern.tolist(), np.bincount(number, its_weight).tolist(), strict=True):
                counts[value] = counts.get(value, 0.0) + mass
    return [
        (np.array(sorted(counts), dtype=np.int64), np.array([mass for _, mass in sorted(counts.items())]))
        for counts in known
    ]


def are_few(ensemble: Ensemble, n_rows: int) -> bool:
    """Whether a model has rules, and counting their patterns in so many rows takes a small part of a fit."""
    n = min(len(summands.nodes) for summands in summands_of(ensemble))
    return 0 < n <= MOST_RULES and n * n_rows <= MOST_ROWS_OF_RULES


def pattern_arrays(ensemble: Ensemble, n_rows: int, ask: Callable[[Callable[..., Any]], Any]) -> dict[str, Any]:
    """The tables of what a model's trees are made of, as arguments of an `Ensemble`; {} if counting takes long.

    `ask` puts a question, a function of values and weights, to the rows, and adds up the answers of their parts.
    """
    if not are_few(ensemble, n_rows):
        return {}
    summands = min(summands_of(ensemble), key=lambda summands: len(summands.nodes))
    rules = [rule for rule in rules_at(ensemble, summands) if rule.is_short]
    if not rules:
        return {}
    tables = _occurring(rules, ask(partial(count_short, rules)))
    return {
        "pattern_node": np.repeat([rule.node for rule in rules], [len(pattern) for pattern, _ in tables]),
        "pattern": np.concatenate([pattern for pattern, _ in tables]),
        "pattern_mass": np.concatenate([mass for _, mass in tables]),
    }
