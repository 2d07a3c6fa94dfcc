"""What a fit will need, told before it is begun."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .frames import learn_schema, to_matrix
from .gram import TABLE_PAYS
from .moments import DEFAULT_CACHE_BYTES, SHARE_FOR_SORTING
from .stumps import check_thresholds

SAMPLE_ROWS = 20_000  # looked at for the number of distinct values
BYTES_PER_ROW = 92  # targets, weights, their fixed-point forms, and the values that are sorted at a time
BYTES_PER_ROW_AND_OUTPUT = 16


def estimate_memory(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    n_outputs: int = 1,
    penalty: str | None = "l1",
    max_rounds: int = 10_000,
    thresholds: int | str = 255,
    spacing: str = "quantile",
    categorical_features: Any = "auto",
    validation_fraction: float | None = None,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
) -> int:
    """Bytes that a fit will need at its peak, beside X itself.

    Much depends on how many different voters the rounds will draw, and on how many features. With `y`, that is learnt
    from a fit to some of the rows; without, what is usual is taken, which can be several times too much where only a
    few features matter.

    Parameters
    ----------
    X : array, frame or table
    y : array, optional
        Labels or targets. Then `n_outputs` need not be given.
    sample_weight : optional
        Whether there are weights; their values do not matter.
    n_outputs : int
        Several classes or targets.
    penalty, max_rounds, thresholds, spacing, categorical_features, validation_fraction, cache_bytes
        As for the fit.
    """
    check_thresholds(thresholds, spacing)
    m, d = X.shape
    step = max(1, m // SAMPLE_ROWS)
    sample = X[::step] if hasattr(X, "__getitem__") and not hasattr(X, "column_names") else X.slice(0, SAMPLE_ROWS)
    schema = learn_schema(sample, categorical_features=categorical_features)
    matrix = to_matrix(sample, schema)
    n_bins = [_bins(column, m, thresholds) for column in matrix.T]
    n_voters = max(1, sum(n_bins) - d)
    drawn = _usual(n_voters, d, penalty, max_rounds)
    if y is not None:
        options = {"penalty": penalty, "max_rounds": max_rounds, "thresholds": thresholds, "spacing": spacing}
        rows = np.arange(0, m, step) if len(matrix) == len(range(0, m, step)) else np.arange(len(matrix))
        drawn, n_outputs = _tried(sample, np.asarray(y)[rows], categorical_features, options)

    size = 8 if sample_weight is not None else 4
    table_cells = (max(n_bins) + 1) * (sum(n_bins) + d)
    code_bytes = 1 if max(n_bins) <= 256 else 2 if max(n_bins) <= 1 << 16 else 4
    tabulates = TABLE_PAYS * table_cells < m * d and table_cells * size * d <= cache_bytes // SHARE_FOR_SORTING
    n_sets = 1 if validation_fraction is None else 2  # of rows, each with its own share of the memory for columns
    limit = cache_bytes // n_sets
    per_feature = table_cells * size if tabulates else 4 * m // n_sets
    kept = n_sets * min(limit // SHARE_FOR_SORTING, per_feature * drawn.n_features)
    columns = n_sets * min(limit - limit // SHARE_FOR_SORTING, size * n_voters * drawn.n_voters)
    is_copied = not isinstance(X, np.ndarray) or X.dtype.kind != "f" or bool(schema.categories)
    copies = 8 * is_copied + (validation_fraction is not None) * getattr(getattr(X, "dtype", None), "itemsize", 8)
    per_row = BYTES_PER_ROW + BYTES_PER_ROW_AND_OUTPUT * n_outputs + d * (code_bytes + copies)
    return int(m * per_row + kept + columns + 100 * n_voters * n_outputs)


class _Drawn(NamedTuple):
    n_voters: float
    n_features: float


def _tried(X: Any, y: np.ndarray, categorical_features: Any, options: dict[str, Any]) -> tuple[_Drawn, int]:
    """What a fit to some rows draws, and how many outputs there are."""
    from .estimators import QuadBoostClassifier, QuadBoostRegressor

    estimator = QuadBoostRegressor if y.dtype.kind == "f" and len(np.unique(y)) > 20 else QuadBoostClassifier
    model = estimator(**options, categorical_features=categorical_features).fit(X, y)
    voters = np.unique(np.concatenate([trace.voter for trace in model._traces]))
    features = np.unique(model._stumps.describe(voters)[0])
    return _Drawn(len(voters), len(features)), len(model._traces)


def _bins(column: np.ndarray, m: int, thresholds: int | str) -> int:
    distinct = len(np.unique(column[~np.isnan(column)]))
    if distinct > len(column) // 2:  # most are different: so will be those of the other rows
        distinct = distinct * m // len(column)
    return max(1, distinct if thresholds == "all" else min(distinct, int(thresholds) + 1))


def _usual(n_voters: int, d: int, penalty: str | None, max_rounds: int) -> _Drawn:
    """About half of the first thousand rounds find a new voter; l1 then keeps to what it has."""
    later = 0 if penalty == "l1" else max(0, min(max_rounds, 3 * n_voters) - 1000)
    drawn = min(n_voters, min(max_rounds, 1000) // 2 + later // 8)
    # Some features are drawn often and some never; l1 is choosy.
    return _Drawn(drawn, d * (1.0 - np.exp(-drawn / ((8 if penalty == "l1" else 2) * d))))
