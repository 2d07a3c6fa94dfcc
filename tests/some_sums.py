"""Three days of rows, and their sums."""

import numpy as np
import pandas as pd

from quadboost import Rows
from quadboost.parts.sums import KeptSums


def table(n, seed):
    """Few different values, so that a part suggests the thresholds of the whole."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 6, n), "b": rng.integers(0, 9, n) / 4, "c": rng.choice(["x", "y"], n)})
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    return X, X["a"] + (X["c"] == "x") + rng.normal(size=n), rng.integers(1, 4, n).astype(float)


DAYS = [table(300, 0), table(500, 1), table(200, 2)]


def sums_of(day, target, weighted, like=None):
    X, score, weight = day
    rows = Rows(lambda: [(X, target(score), weight)] if weighted else [(X, target(score))])
    return KeptSums.of(rows, like=like, regression=target is np.asarray)


def labels(score):
    return np.where(score > 3, "high", "low")


def three(score):
    return np.digitize(score, [2, 4])
