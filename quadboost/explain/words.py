"""Features, values and reasons as text."""

from __future__ import annotations

import math
from typing import Any

from ..model.ensemble import Ensemble

MOST_VALUES = 3  # of a level that are listed
MOST_LETTERS = 60  # of a name or a value in a sentence


def feature_name(ensemble: Ensemble, feature: int) -> str:
    return f"feature {feature}" if ensemble.feature_names is None else ensemble.feature_names[feature]


def number_text(value: float, digits: int = 6) -> str:
    """A number as people write it: whole ones whole, others with so many digits, large ones without a point."""
    is_whole = math.isfinite(value) and (value == round(value) or abs(value) >= 10.0**digits)
    return f"{value:.0f}" if is_whole and abs(value) < 1e15 else f"{value:.{digits}g}"


def level_text(level: list[Any]) -> str:
    """The values that a level stands for."""
    shown = ", ".join(str(value) for value in level[:MOST_VALUES])
    more = len(level) - MOST_VALUES
    return f"{shown} and {more} more" if more > 0 else shown


def value_text(ensemble: Ensemble, feature: int, value: float) -> str:
    """A value of the matrix that `Ensemble.matrix_of` returns."""
    if value != value:
        return "missing"
    levels = ensemble.categories.get(feature)
    if levels is None:
        order = ensemble.schema.orders.get(feature, ())
        return order[int(value)] if value in range(len(order)) else number_text(value)
    return level_text(levels[int(value)]) if 0 <= value < len(levels) else "a level never seen"


def shortened(text: str, most: int = MOST_LETTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
