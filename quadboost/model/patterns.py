"""How often the conditions of rules hold together: the patterns of each rule that occur, and the weight of their rows.

Bit i of a pattern says whether condition i of the rule holds. This is all that exact Shapley values need to know of the
training rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .rules import Condition, Rule

if TYPE_CHECKING:
    from .ensemble import Ensemble

ROWS_AT_A_TIME = 1024  # whose conditions are kept in a core's own memory
FEW_CONDITIONS = 8  # of a rule: it has at most 256 patterns; a model keeps no more of one
MOST_RULES, MOST_ROWS_OF_RULES = 2000, 20_000_000  # rules, and rules times rows: more would take a good part of a fit


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
                pattern: np.ndarray = np.zeros(n, dtype=short)
                for bit, number in enumerate(own):
                    pattern += holds[number] << bit
                yield pattern

        yield rows, patterns()


def count_patterns(
    rules: Sequence[Rule], matrix: np.ndarray, weight: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The patterns of each rule that occur in these rows, ascending, and the weight of their rows."""
    dense = [np.zeros(1 << len(rule.conditions)) if len(rule.conditions) <= FEW_CONDITIONS else None for rule in rules]
    sparse: list[dict[int, float]] = [{} for _ in rules]
    for rows, found in patterns_of(rules, matrix):
        own_weight = None if weight is None else weight[rows]
        for counts, others, pattern in zip(dense, sparse, found, strict=True):
            if counts is not None:
                counts += np.bincount(pattern, own_weight, minlength=len(counts))
                continue
            known, place = np.unique(pattern, return_inverse=True)
            for value, mass in zip(known.tolist(), np.bincount(place, own_weight).tolist(), strict=True):
                others[value] = others.get(value, 0.0) + mass
    tables = []
    for counts, others in zip(dense, sparse, strict=True):
        if counts is not None:
            pattern = np.flatnonzero(counts)
            tables.append((pattern, counts[pattern]))
        else:
            pattern = np.array(sorted(others), dtype=np.int64)
            tables.append((pattern, np.array([others[value] for value in pattern.tolist()])))
    return tables


def are_few(ensemble: Ensemble, n_rows: int) -> bool:
    """Whether a model has rules, and counting their patterns in so many rows takes a small part of a fit."""
    return 0 < ensemble.n_rules <= MOST_RULES and ensemble.n_rules * n_rows <= MOST_ROWS_OF_RULES


def pattern_arrays(ensemble: Ensemble, matrix: np.ndarray, weight: np.ndarray | None) -> dict[str, Any]:
    """The tables of a model's short rules over its rows, as arguments of an `Ensemble`; {} if counting takes long."""
    if not are_few(ensemble, len(matrix)):
        return {}
    rules = sorted((own for own in ensemble.rules() if len(own.conditions) <= FEW_CONDITIONS), key=lambda own: own.node)
    if not rules:
        return {}
    tables = count_patterns(rules, matrix, weight)
    return {
        "pattern_node": np.repeat([own.node for own in rules], [len(pattern) for pattern, _ in tables]),
        "pattern": np.concatenate([pattern for pattern, _ in tables]),
        "pattern_mass": np.concatenate([mass for _, mass in tables]),
    }
