"""Weighted rows of a mixed table for training, others for validation, and what the voters say on both."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table, outputs, targets
from reference import training_rows

from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

PENALTIES = {
    "none": (NoPenalty(), None, 0.0),
    "l1": (L1(0.003), "l1", 0.003),
    "l2": (L2(0.5), "l2", 0.5),
    "linf": (LInf(0.05), "linf", 0.05),
}
each_penalty = pytest.mark.parametrize(("penalty", "name", "lam"), PENALTIES.values(), ids=PENALTIES.keys())
each_mode = pytest.mark.parametrize("mode", ["forward", "corrective"])
each_intercept = pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"])


class WeightedProblem:
    def __init__(self, m=300, thresholds=8):
        X, Z = mixed_table(m, seed=0), mixed_table(m // 2, seed=7)
        rng = np.random.default_rng(0)
        self.weight, self.weight_val = rng.uniform(0.5, 2, size=m), rng.uniform(0.5, 2, size=m // 2)
        self.y, self.y_val = targets(X), targets(Z)
        stumps = candidate_voters(X, self.weight, thresholds=thresholds, n_levels=N_LEVELS)
        self.stumps, self.codes = stumps, stumps.code(X)
        self.H, self.H_val = outputs(stumps, X), outputs(stumps, Z)
        self.moments = column_moments(stumps, self.codes, self.y, self.weight)
        self.validation = column_moments(stumps, stumps.code(Z), self.y_val, self.weight_val)

    def rows(self, fit_intercept):
        return training_rows(self.H, self.y, self.weight, fit_intercept)

    def validation_risk(self, a, fit_intercept):
        intercept = self.rows(fit_intercept).y_mean - self.rows(fit_intercept).voter_means @ a
        return np.average((self.y_val - intercept - self.H_val @ a) ** 2, weights=self.weight_val)


def assert_same_run(found, known):
    for name in ("weight", "edge"):
        np.testing.assert_array_equal(getattr(found, name), getattr(known, name))
    for name in ("intercept", "risk", "objective", "n_rounds", "stop_reason"):
        assert getattr(found, name) == getattr(known, name), name
    np.testing.assert_array_equal(found.dual_gap, known.dual_gap)
    assert found.history.keys() == known.history.keys()
    for name, values in known.history.items():
        np.testing.assert_array_equal(found.history[name], values)
