"""Random fits for scripts/sanitize.py and scripts/soak.py: a seed gives the table, the estimator and so every bit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

import quadboost.common.threads
import quadboost.model.ensemble
from quadboost import QuadBoostClassifier, QuadBoostRegressor, boost, moments_from_matrix

LOSSES = {QuadBoostClassifier: ("squared", "logistic"), QuadBoostRegressor: ("squared", "huber", "poisson")}


def thread_everything() -> None:
    """Let kernels use their threads however little there is to do."""
    quadboost.common.threads.STEPS_FOR_THREADS = 0
    quadboost.model.ensemble.CELLS_FOR_THREADS = 0


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    model: Any  # not fitted

    @classmethod
    def of(cls, seed: int, most_rows: int) -> Problem:
        rng = np.random.default_rng(seed)
        m, d = int(rng.integers(20, most_rows)), int(rng.integers(1, 9))
        X = np.round(rng.normal(size=(m, d)), int(rng.integers(0, 4)))
        X[rng.random(X.shape) < rng.choice([0.0, 0.1])] = np.nan
        X[:, 0] = rng.integers(0, 6, size=m)
        signal = np.nan_to_num(X) @ rng.normal(size=d) + rng.normal(size=m)
        estimator = (QuadBoostClassifier, QuadBoostRegressor)[int(rng.integers(2))]
        loss = str(rng.choice(LOSSES[estimator])) if rng.random() < 0.3 else "squared"  # the others take longer
        if estimator is QuadBoostClassifier:
            y = np.digitize(signal, np.quantile(signal, [0.5] if rng.random() < 0.7 else [0.3, 0.6]))
        else:
            y = np.floor(np.exp(np.clip(signal, -2, 3))) + (np.arange(m) == 0) if loss == "poisson" else signal
        weight = [None, rng.integers(0, 4, size=m) + (np.arange(m) < m // 2), rng.random(m) + 0.1][int(rng.integers(3))]
        options = {
            "penalty": (
                penalty := [*("l1", "l2", "linf"), *([None] if loss == "squared" else [])][int(rng.integers(3))]
            ),
            "reg_lambda": 0.01 if penalty == "l2" or loss != "squared" else [0.01, "auto"][int(rng.integers(2))],
            "reweight_every": ["auto", None, 5][int(rng.integers(3))],
            "thresholds": int(rng.integers(1, 40)),
            "categorical_features": [[0], None][int(rng.integers(2))],
            "cache_bytes": int(rng.choice([1, 10_000, 1 << 26])),
            "max_rounds": 60 if loss == "squared" else 20_000,
            "tol": 0.05,
            "n_jobs": int(rng.integers(1, 4)),
            "n_trees": int(rng.choice([0, 0, 3])),
            "max_leaves": 5,
            "random_state": 0,
        }
        return cls(X, y, weight, estimator(loss=loss, **options))

    def fitted(self) -> Any:
        return type(self.model)(**self.model.get_params()).fit(self.X, self.y, self.weight)

    def boosted(self) -> Any:
        """A function that boosts with a strength, on moments that many threads may share."""
        H, y = np.nan_to_num(self.X), self.y.astype(float)
        moments = moments_from_matrix(H, y, None if self.weight is None else self.weight.astype(float), cache_bytes=1)
        return lambda strength: boost(moments, "l1", reg_lambda=strength, max_rounds=40).weight


def bits(model: Any, X: np.ndarray) -> str:
    """A digest of a fitted model and of what it predicts."""
    ensemble = model.ensemble_
    parts = ensemble.feature, ensemble.threshold, ensemble.weight, np.atleast_1d(ensemble.intercept), model.predict(X)
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()
