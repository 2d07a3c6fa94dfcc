"""A table with every kind of column, and what its voters say."""

from __future__ import annotations

import numpy as np
from reference import Floats, voter_matrix

N_LEVELS = {4: 4}
CATEGORIES = {4: [[0.0], [1.0], [2.0], [3.0]]}


def mixed_table(m: int, seed: int = 0) -> Floats:
    """Many values, few, missing ones, a constant, levels, constant or missing, all missing, mostly zeros."""
    rng = np.random.default_rng(seed)
    X = np.empty((m, 8))
    X[:, 0] = rng.normal(size=m)
    X[:, 1] = rng.integers(0, 4, size=m)
    X[:, 2] = np.where(rng.random(m) < 0.3, np.nan, np.round(rng.normal(size=m), 1))
    X[:, 3] = 2.5
    X[:, 4] = np.where(rng.random(m) < 0.2, np.nan, rng.integers(0, 4, size=m))
    X[:, 5] = np.where(rng.random(m) < 0.5, np.nan, 1.0)
    X[:, 6] = np.nan
    X[:, 7] = np.where(rng.random(m) < 0.9, 0.0, rng.normal(size=m))
    return X


def targets(X: Floats, seed: int = 0) -> Floats:
    """Labels -1 and +1 that depend on several columns of `mixed_table`."""
    rng = np.random.default_rng(seed + 1)
    signal = X[:, 0] + (X[:, 1] > 1) - np.nan_to_num(X[:, 2]) + (X[:, 4] == 2) - np.isnan(X[:, 5])
    return np.where(signal + rng.normal(size=len(X)) > 0, 1.0, -1.0)


def outputs(stumps, X: Floats) -> Floats:
    """Outputs (m, K) of all candidate stumps on a `mixed_table`."""
    return voter_matrix(X, *stumps.describe(np.arange(stumps.n_voters)), CATEGORIES)
