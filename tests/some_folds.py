"""Folds of a mixed table, and candidates to try on them."""

from __future__ import annotations

import numpy as np
from mixed_table import mixed_table, targets
from sklearn.model_selection import KFold

from quadboost.boosting.schedule import Schedule
from quadboost.choosing.folds import Folds, Split
from quadboost.choosing.search import Candidate
from quadboost.fitting.measured import Options
from quadboost.fitting.problem import Problem, Reading

M = 240
X = mixed_table(M)
LABELS = targets(X)
REAL = LABELS + np.random.default_rng(2).normal(size=M)
REPEATS = np.random.default_rng(3).integers(1, 4, size=M).astype(float)
WEIGHT = np.random.default_rng(3).random(M) + 0.1
CANDIDATES = {
    None: [Candidate(None, np.nan)],
    "l1": [Candidate("l1", lam) for lam in (0.5, 0.05, 0.01)],
    "l2": [Candidate("l2", lam) for lam in (3.0, 0.1)],
    "linf": [Candidate("linf", alpha) for alpha in (0.02, 0.2)],
}
EVERY_CANDIDATE = [candidate for some in CANDIDATES.values() for candidate in some]
ROUNDS = np.array([1, 2, 5, 17, 40])
READING = Reading(categorical_features=[4], min_category_count=1)


def options(**changes) -> Options:
    known = {
        "penalty": None,
        "reg_lambda": 0.0,
        "alpha_max": 0.1,
        "mode": "corrective",
        "fit_intercept": True,
        "thresholds": 12,
        "spacing": "quantile",
        "cache_bytes": 1 << 26,
        "n_threads": 1,
        "schedule": Schedule(max_rounds=40),
    }
    return Options(**known | changes)


def splits_of(splitter, **given) -> list[Split]:
    return [Split(*split) for split in splitter.split(X, LABELS, **given)]


FIVE = splits_of(KFold(5, shuffle=True, random_state=0))


def folds_of(y=LABELS, weight=None, splits=FIVE, per_fold=False, **changes) -> Folds:
    problem = Problem.of_targets(X, y, weight, READING)
    return Folds(problem, splits, options(**changes), thresholds_per_fold=per_fold)
