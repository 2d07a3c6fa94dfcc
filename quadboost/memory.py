"""What a fit will need, told before it is begun."""

from __future__ import annotations

from typing import Any

import numpy as np

from .frames import learn_schema, to_matrix
from .moments import DEFAULT_CACHE_BYTES, SHARE_FOR_SORTING
from .stumps import check_thresholds

SAMPLE_ROWS = 20_000  # looked at for the number of distinct values
BYTES_PER_ROW = 48  # targets, weights, and their fixed-point forms
BYTES_PER_ROW_AND_OUTPUT = 16


def estimate_memory(
    X: Any,
    *,
    n_outputs: int = 1,
    penalty: str | None = "l1",
    max_rounds: int = 10_000,
    thresholds: int | str = 255,
    spacing: str = "quantile",
    categorical_features: Any = "auto",
    cache_bytes: int = DEFAULT_CACHE_BYTES,
) -> int:
    """Bytes that a fit will need at its peak, beside X itself.

    How many different voters the rounds will draw cannot be known: this takes what is usual. It matters for tables of
    many features; elsewhere the rows weigh more.

    Parameters
    ----------
    X : array, frame or table
    n_outputs : int
        Several classes or targets.
    penalty, max_rounds, thresholds, spacing, categorical_features, cache_bytes
        As for the fit.
    """
    check_thresholds(thresholds, spacing)
    m, d = X.shape
    head = X.slice(0, SAMPLE_ROWS) if hasattr(X, "slice") else X[:SAMPLE_ROWS]
    schema = learn_schema(head, categorical_features=categorical_features)
    n_bins = [_bins(column, m, thresholds) for column in to_matrix(head, schema).T]
    n_voters = max(1, sum(n_bins) - d)
    code_bytes = 1 if max(n_bins) <= 256 else 2 if max(n_bins) <= 1 << 16 else 4
    is_copied = not isinstance(X, np.ndarray) or X.dtype.kind != "f" or bool(schema.categories)
    n_drawn = _drawn(n_voters, penalty, max_rounds)
    # Some features are drawn often and some never; l1 is choosy.
    n_features_drawn = d * (1.0 - np.exp(-n_drawn / ((8 if penalty == "l1" else 2) * d)))
    sorted_rows = min(cache_bytes // SHARE_FOR_SORTING, 4 * m * n_features_drawn)
    columns = min(cache_bytes - cache_bytes // SHARE_FOR_SORTING, 4 * n_voters * n_drawn)
    per_row = BYTES_PER_ROW + BYTES_PER_ROW_AND_OUTPUT * n_outputs + d * (code_bytes + 8 * is_copied)
    return int(m * per_row + sorted_rows + columns + 100 * n_voters * n_outputs)


def _bins(column: np.ndarray, m: int, thresholds: int | str) -> int:
    distinct = len(np.unique(column[~np.isnan(column)]))
    if distinct > len(column) // 2:  # most are different: so will be those of the other rows
        distinct = distinct * m // len(column)
    return max(1, distinct if thresholds == "all" else min(distinct, int(thresholds) + 1))


def _drawn(n_voters: int, penalty: str | None, max_rounds: int) -> int:
    """Different voters drawn: about half of the first thousand rounds find a new one; l1 then keeps to what it has."""
    later = 0 if penalty == "l1" else max(0, min(max_rounds, 3 * n_voters) - 1000)
    return min(n_voters, min(max_rounds, 1000) // 2 + later // 8)
