"""What the rules about just two features add to the score together, as a table of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..model.ensemble import Ensemble
from ..model.rules import Rule
from .terms import Terms
from .words import feature_name, level_text, number_text


class Pair(NamedTuple):
    """A table of what rules about two features add: a row per bin of the first, a column per bin of the second."""

    names: tuple[str, str]
    labels: tuple[list[str], list[str]]
    values: np.ndarray
    n_rules: int


def pair_of(ensemble: Ensemble, first: int, second: int, output: int = 0) -> Pair:
    """The rules that ask for these two features and no other, less their means over the training rows."""
    terms = Terms.of(ensemble)
    n_shapes = len(terms.coding.tables)
    numbers = [j for j, rule in enumerate(terms.rules) if {c.feature for c in rule.conditions} == {first, second}]
    names = (feature_name(ensemble, first), feature_name(ensemble, second))
    if not numbers:
        raise ValueError(f"no rule asks for just {names[0]!r:.60} and {names[1]!r:.60}; {_others(ensemble)}")
    rows, row_labels = _bins(ensemble, first, [terms.rules[j] for j in numbers])
    columns, column_labels = _bins(ensemble, second, [terms.rules[j] for j in numbers])
    matrix = np.zeros((len(rows) * len(columns), ensemble.n_features))
    matrix[:, first], matrix[:, second] = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
    values = np.zeros(len(matrix))
    for j in numbers:
        weight = terms.weight[j, output]
        values += np.where(terms.rules[j].holds(matrix), weight, -weight) - terms.means[n_shapes + j, output]
    return Pair(names, (row_labels, column_labels), values.reshape(len(rows), len(columns)), len(numbers))


def _others(ensemble: Ensemble) -> str:
    """Pairs that can be drawn, in words."""
    found = [
        " and ".join(repr(feature_name(ensemble, feature))[:60] for feature in pair) for pair in pairs_of(ensemble)[:3]
    ]
    return f"draw {', or '.join(found)}" if found else "there is no pair to draw"


def pairs_of(ensemble: Ensemble) -> list[tuple[int, int]]:
    """Pairs of features that some rule asks for, and no other; the most important first."""
    found: dict[tuple[int, int], float] = {}
    for rule in ensemble.rules():
        features = sorted({condition.feature for condition in rule.conditions})
        if len(features) == 2:
            pair = (features[0], features[1])
            found[pair] = found.get(pair, 0.0) + rule.importance
    return sorted(found, key=lambda pair: -found[pair])


def _bins(ensemble: Ensemble, feature: int, rules: Sequence[Rule]) -> tuple[np.ndarray, list[str]]:
    """A value in each bin of a feature that rules tell apart, and what the bins are; the last: missing."""
    asked = [condition for rule in rules for condition in rule.conditions if condition.feature == feature]
    levels = ensemble.categories.get(feature)
    if levels is not None:
        known = sorted(
            {level for condition in asked for level in (condition.level, *condition.not_levels) if level is not None}
        )
        values, labels = [float(level) for level in known], [level_text(levels[level]) for level in known]
        return np.array([*values, -1.0, np.nan]), [*labels, "any other", "missing"]
    cuts = sorted({cut for condition in asked for cut in (condition.low, condition.high) if np.isfinite(cut)})
    if not cuts:
        return np.array([0.0, np.nan]), ["any", "missing"]
    labels = [f"≤ {number_text(cuts[0])}", *(f"≤ {number_text(cut)}" for cut in cuts[1:]), f"> {number_text(cuts[-1])}"]
    return np.array([*cuts, np.inf, np.nan]), [*labels, "missing"]
