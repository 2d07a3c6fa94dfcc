"""Models to explain, and Shapley values by their definition."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd

from quadboost import Ensemble, QuadBoostClassifier

NASTY = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


def mixed(n_rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, a heavy tail, text, missing values; labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n_rows),
            "tail": np.exp(3 * rng.normal(size=n_rows)),
            "city": rng.choice(["Oslo", "Rome", "Lima", "a 'q' <b>"], n_rows),
            "z": rng.integers(0, 4, n_rows).astype(float),
        }
    )
    score = X["x"] + 0.3 * np.log(X["tail"]) + (X["city"] == "Rome") - 0.5 * X["z"]
    X.loc[rng.random(n_rows) < 0.1, "x"] = np.nan
    y = np.where(score + rng.logistic(size=n_rows) > 0, "yes", "no")
    return X, y


def fitted(**parameters: Any) -> tuple[QuadBoostClassifier, pd.DataFrame, np.ndarray]:
    X, y = mixed()
    return QuadBoostClassifier(**parameters).fit(X, y), X, y


def several_outputs() -> Ensemble:
    """Three classes, by hand: feature 0 is a number, feature 1 has levels."""
    return Ensemble(
        [0, 0, 0, 1, 1], [-1.0, 0.5, 0.0, 0.0, 2.0],
        [[0.5, -0.5, 0.0], [1.0, 0.25, -1.0], [0.1, 0.2, 0.3], [-0.5, 0.0, 0.5], [0.25, 0.75, 0.0]], [0.1, 0.2, 0.3],
        kind=[0, 0, 2, 1, 1], n_features=3, classes=["a", "b", "c"], categories={1: [["p"], ["q"], ["r", "s"]]},
        link="softmax", loss="logistic", bin_mass=[2.0, 5.0, 3.0, 1.0, 4.0, 3.0, 3.0, 0.0, 1.0],
    )  # fmt: skip


def shapley(score: Any, row: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Interventional Shapley values of one row, by their definition: every set of features, every background row."""
    d = len(row)

    def value(features: tuple[int, ...]) -> float:
        rows = background.copy()
        rows[:, list(features)] = row[list(features)]
        return float(np.mean(score(rows)))

    found = np.zeros(d)
    for j in range(d):
        others = [k for k in range(d) if k != j]
        for size in range(d):
            for subset in combinations(others, size):
                found[j] += (value((*subset, j)) - value(subset)) / (d * comb(d - 1, size))
    return found
