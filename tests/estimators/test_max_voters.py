"""Models of no more than so many voters."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import assert_same_model

from quadboost import QuadBoostClassifier, QuadBoostRegressor

M = 600
X = np.random.default_rng(0).normal(size=(2 * M, 6))
SIGNAL = 2 * X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] * (X[:, 4] > 0)
SIGNAL += 0.5 * np.random.default_rng(1).normal(size=2 * M)
TWO, THREE, BOTH = SIGNAL > 0, np.digitize(SIGNAL, [-1, 1]), np.column_stack([SIGNAL, X[:, 0] + SIGNAL])
SMALL = {"thresholds": 20, "n_jobs": 1}
TREES = {**SMALL, "n_trees": 20, "max_leaves": 8}
KINDS = {
    "labels": (QuadBoostClassifier, TWO, {}),
    "classes": (QuadBoostClassifier, THREE, {}),
    "logistic": (QuadBoostClassifier, TWO, {"loss": "logistic"}),
    "softmax": (QuadBoostClassifier, THREE, {"loss": "logistic"}),
    "targets": (QuadBoostRegressor, BOTH, {}),
    "huber": (QuadBoostRegressor, SIGNAL, {"loss": "huber", "tol": 1e-2}),
    "quantile": (QuadBoostRegressor, SIGNAL, {"loss": "quantile", "tol": 1e-1}),
    "set aside": (QuadBoostClassifier, TWO, {"validation_fraction": 0.3, "random_state": 0}),
    "by a metric": (QuadBoostClassifier, TWO, {"loss": "logistic", "validation_fraction": 0.3, "random_state": 0}),
    "monotone": (QuadBoostClassifier, TWO, {"monotonic_cst": [0, 0, 0, 1, 0, 0]}),
    "given strength": (QuadBoostRegressor, SIGNAL, {"reg_lambda": 0.03}),
    "few rounds": (QuadBoostClassifier, TWO, {"max_rounds": 300}),
}


def fitted(kind, **options):
    estimator, y, arguments = KINDS[kind]
    given = {"eval_metric": "roc_auc"} if kind == "by a metric" else {}
    return estimator(**{**arguments, **options}).fit(X[:M], y[:M], **given)


def n_voters(model):
    """Of each score."""
    found = model.ensemble_
    return np.count_nonzero(found.weight, axis=0) + np.count_nonzero(found.node_weight, axis=0)


@pytest.mark.thinned
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("trees", [TREES, SMALL], ids=["trees", "stumps"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_score_has_more_voters_than_it_may(kind, trees):
    model = fitted(kind, max_voters=4, **trees)
    assert (n_voters(model) <= 4).all()
    assert (n_voters(model) >= 1).all()
    assert (n_voters(fitted(kind, penalty="l1", **trees)) > 4).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["labels", "softmax"])
def test_nor_where_there_is_no_time(kind):
    assert (n_voters(fitted(kind, max_voters=4, max_seconds=0.0, **SMALL)) <= 4).all()


@pytest.mark.parametrize("kind", ["labels", "logistic"])
def test_a_model_that_has_no_more_is_as_it_is(kind):
    known = fitted(kind, penalty="l1", **SMALL)
    assert_same_model(fitted(kind, max_voters=int(n_voters(known)), **SMALL), known)


def test_with_it_the_penalty_is_l1_and_the_strength_that_of_all():
    model, all_voters = fitted("labels", max_voters=6, **TREES), fitted("labels", penalty="l1", **TREES)
    assert model.reg_lambda_ == all_voters.reg_lambda_
    assert 0 <= model.dual_gap_ <= 1e-4  # of the weights of those that stay
    assert_same_model(model, fitted("labels", max_voters=6, penalty="l1", **TREES))


def test_they_know_more_than_as_many_that_a_strong_penalty_leaves():
    few = fitted("labels", max_voters=8, **TREES)
    strength = few.reg_lambda_
    while (n_voters(strong := fitted("labels", penalty="l1", reg_lambda=strength, **TREES))) > 8:
        strength *= 1.1
    assert few.score(X[M:], TWO[M:]) > strong.score(X[M:], TWO[M:]) + 0.02


def test_weights_are_repetitions():
    repeats = np.random.default_rng(2).integers(1, 4, size=M)
    repeated = QuadBoostClassifier(max_voters=6, **TREES).fit(X[:M].repeat(repeats, axis=0), TWO[:M].repeat(repeats))
    weighted = QuadBoostClassifier(max_voters=6, **TREES).fit(X[:M], TWO[:M], repeats)
    assert_same_model(weighted, repeated)
