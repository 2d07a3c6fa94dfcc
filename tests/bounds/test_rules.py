"""Bounds of a model with rules: what is true of it, and nothing else."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_iris

from quadboost import QuadBoostClassifier
from quadboost.bounds import Complexity, certify, held_out_bound, rademacher_complexity, risk_bound, scale_free_bound
from quadboost.voters.thresholds import candidate_voters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = ((X[:, 0] > 0) ^ (X[:, 1] > 0) ^ (RNG.random(600) < 0.1)).astype(int)
MODEL = QuadBoostClassifier(n_trees=10, max_leaves=6, thresholds=10).fit(X[:300], Y[:300])


@pytest.mark.parametrize("bound", [risk_bound, scale_free_bound])
@pytest.mark.parametrize(
    "complexity", [None, Complexity(0.05, 0.0, 0.05, n_examples=300, n_draws=1)], ids=["", "given"]
)
@pytest.mark.parametrize("model", [MODEL, MODEL.ensemble_], ids=["estimator", "ensemble"])
def test_bounds_for_stumps_refuse_rules_and_name_the_one_that_holds(bound, complexity, model):
    with pytest.raises(ValueError, match=r"^the model has \d+ rules and this bound is for stumps.*use held_out_bound"):
        bound(model, X[:300], Y[:300], complexity=complexity)


def test_a_certificate_has_the_held_out_bound_alone():
    found = certify(MODEL, X[:300], Y[:300], X[300:], Y[300:])
    errors = int(np.sum(MODEL.predict(X[300:]) != Y[300:]))
    assert (found.test_errors, found.bounds) == (errors, ())
    assert found.n_rules == MODEL.ensemble_.n_rules > 0
    assert found.held_out == held_out_bound(errors, 300) < 0.25
    assert str(found).endswith("The bounds from the training rows are for stumps")
    assert found.as_dict()["bounds"] == []
    assert certify(MODEL, X, Y).held_out is None


def test_several_classes_with_rules_have_it_too():
    Z, y = load_iris(return_X_y=True)
    model = QuadBoostClassifier(n_trees=3, max_leaves=4).fit(Z[::2], y[::2])
    found = certify(model, Z[::2], y[::2], Z[1::2], y[1::2])
    assert found.held_out < 0.25
    assert found.bounds == ()


def test_trees_that_no_weight_was_given_to_are_no_rules():
    """A model for which trees were grown, and of which stumps are left, is a model of stumps."""
    model = QuadBoostClassifier("l1", n_trees=2, reg_lambda=10.0, fit_intercept=True).fit(X, Y)
    assert model.ensemble_.n_rules == 0
    assert len(certify(model, X, Y, draws=64).bounds) == 2


def test_voters_with_trees_have_no_complexity_of_stumps():
    voters = candidate_voters(X, thresholds=5).with_trees(MODEL.ensemble_.trees)
    with pytest.raises(ValueError, match="thresholds has trees, and this is the complexity of stumps"):
        rademacher_complexity(X, thresholds=voters)


def test_conjunctions_are_no_more_than_the_theory_counts():
    """And Massart's bound on their complexity holds; by brute force, on a few rows with missing values."""
    m, d, k = 6, 2, 2
    Z = np.random.default_rng(1).normal(size=(m, d))
    Z[0, 0] = np.nan
    conditions = set()
    for column in Z.T:
        for cut, above, missing in product([-np.inf, *column[~np.isnan(column)]], [True, False], [True, False]):
            inside = (column > cut) == above
            conditions.add(tuple(np.where(np.isnan(column), missing, inside).tolist()))
    assert len(conditions) <= 4 * d * (m + 1)
    rules = {tuple(np.logical_and(one, other).tolist()) for one, other in product(conditions, repeat=k)}
    assert len(rules) <= (4 * d * (m + 1)) ** k
    votes = np.where(np.array(sorted(rules)), 1.0, -1.0)
    best = [np.abs(votes @ np.array(signs)).max() / m for signs in product([-1.0, 1.0], repeat=m)]
    assert np.mean(best) <= np.sqrt(2 * (k * np.log(4 * d * (m + 1)) + np.log(2)) / m)
