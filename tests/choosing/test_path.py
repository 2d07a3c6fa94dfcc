"""Along a path every ensemble is the best one under its penalty, as other libraries know it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from mixed_table import CATEGORIES, mixed_table, targets
from oracles import box_solution, lasso_solution, ridge_solution
from reference import voter_matrix

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor, regularization_path

M = 300
X = mixed_table(M)
LABELS = targets(X)
REAL = LABELS + np.random.default_rng(2).normal(size=M)
WEIGHT = np.random.default_rng(3).random(M) + 0.1
OPTIONS = {"categorical_features": [4], "thresholds": 12, "min_category_count": 1}
SOLUTION = {"l1": lasso_solution, "l2": ridge_solution, "linf": box_solution}
each_penalty = pytest.mark.parametrize("penalty", SOLUTION)


def path_of(penalty, y=REAL, **changes):
    return regularization_path(X, y, penalty, **{**OPTIONS, "strengths": 12, "tol": 1e-9, **changes})


def voters_of(path):
    return voter_matrix(X, path.feature, path.kind, path.threshold, CATEGORIES)


@pytest.mark.thinned
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["no weights", "weights"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@each_penalty
def test_every_ensemble_is_the_known_solution(penalty, fit_intercept, weight):
    path = path_of(penalty, fit_intercept=fit_intercept, sample_weight=weight)
    H = voters_of(path)
    for i in range(0, 12, 3):
        known = SOLUTION[penalty](H, REAL, path.strength[i], weight, fit_intercept)
        assert path.objective[i] == pytest.approx(known.objective, abs=1e-7)
        np.testing.assert_allclose(path.intercept[i] + H @ path.weight[i], known.prediction, atol=1e-3)


@each_penalty
def test_every_ensemble_has_a_certificate(penalty):
    path = path_of(penalty, tol=1e-7)
    assert (path.dual_gap <= 1e-7 * REAL.var()).all()


@pytest.mark.thinned(1)
@each_penalty
def test_what_is_told_of_an_ensemble_is_true(penalty):
    path = path_of(penalty, sample_weight=WEIGHT)
    for i in range(12):
        ensemble = path.ensemble(i)
        score = ensemble.decision_function(X)
        np.testing.assert_allclose(score, path.intercept[i] + voters_of(path) @ path.weight[i], atol=1e-12)
        assert np.average((REAL - score) ** 2, weights=WEIGHT) == pytest.approx(path.risk[i], abs=1e-10)
        assert len(ensemble.feature) == path.n_active[i]


def test_an_l1_path_begins_with_no_voter_and_risks_fall():
    path = path_of("l1", strengths=40)
    assert path.n_active[0] == 0
    assert path.n_active[1] > 0
    assert (np.diff(path.risk) <= 1e-12).all()
    assert (np.diff(path.strength) < 0).all()


def test_under_linf_the_bound_rises_and_holds():
    path = path_of("linf")
    assert (np.diff(path.strength) > 0).all()
    assert (np.abs(path.weight).max(axis=1) <= path.strength).all()


def test_a_start_from_the_ensemble_before_changes_nothing():
    path = path_of("l1")
    alone = path_of("l1", strengths=[path.strength[7]])
    assert alone.objective[0] == pytest.approx(path.objective[7], abs=1e-9)
    np.testing.assert_allclose(alone.ensemble(0).decision_function(X), path.ensemble(7).decision_function(X), atol=1e-4)


def test_text_and_bool_are_labels():
    text = np.where(LABELS > 0, "yes", "no")
    known = path_of("l1", LABELS)
    for y in (text, LABELS > 0, pd.Series(text), text.tolist()):
        path = path_of("l1", y)
        np.testing.assert_array_equal(path.weight, known.weight)
        assert path.ensemble(5).classes.tolist() == np.unique(np.asarray(y)).tolist()
    assert set(path.ensemble(5).predict(X)) == {"yes", "no"}


def test_names_and_categories_of_a_frame_are_kept(tmp_path):
    frame = pd.DataFrame({"size": X[:, 0], "kind": pd.Categorical(np.where(X[:, 1] > 1, "a", "b"))})
    path = regularization_path(frame, REAL, strengths=5)
    path.ensemble(4).save(tmp_path / "model.h5")
    model = quadboost.load(tmp_path / "model.h5")
    assert model.feature_names == ("size", "kind")
    np.testing.assert_array_equal(model.predict(frame), path.ensemble(4).predict(frame))


def test_rows_of_weight_zero_are_no_rows():
    weight = np.where(np.arange(M) % 5 == 0, 0.0, 1.0)
    path = path_of("l1", sample_weight=weight)
    kept = regularization_path(X[weight > 0], REAL[weight > 0], "l1", **OPTIONS, strengths=12, tol=1e-9)
    np.testing.assert_array_equal(path.weight, kept.weight)


def test_rounds_are_limited():
    path = path_of("l1", max_rounds=3, tol=1e-14)
    assert path.dual_gap[-1] > 1e-14 * REAL.var()
    assert np.isfinite(path.dual_gap).all()


def test_a_constant_target_needs_no_voter():
    path = path_of("l1", np.full(M, 3.0))
    assert not path.n_active.any()
    np.testing.assert_allclose(path.intercept, 3.0)


def test_a_path_shows_its_steps(capfd):
    path_of("l1", verbose=1)
    assert "strength" in capfd.readouterr().err
    path_of("l1")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": None}, "penalty=None is not known"),
        ({"penalty": "l3"}, "penalty='l3' is not known; use 'l1', 'l2' or 'linf'"),
        ({"strengths": 0.1}, "strengths=0.1 must be a list of values"),
        ({"strengths": 1}, "strengths=1 must be a whole number of at least 2"),
        ({"strengths": [0.1, 0.0]}, "a value of strengths=0.0 must be a positive"),
        ({"tol": 0.0}, "tol=0.0 must be a positive"),
        ({"max_rounds": 0}, "max_rounds=0 must be"),
        ({"y": np.column_stack([REAL, REAL])}, "a path is for one target"),
        ({"y": np.array(list("abc") * (M // 3))}, "y holds 3 classes; a path is for two"),
        ({"y": REAL[:-1]}, "give one target for every row"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        path_of(**{"penalty": "l1", **change})


@pytest.mark.parametrize(("loss", "y"), [("logistic", REAL > 0.5), ("huber", REAL), ("poisson", np.floor(REAL**2))])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_under_other_losses_every_strength_has_the_objective_of_a_fit_from_scratch(penalty, loss, y):
    y = y.astype(float) if loss != "logistic" else y
    path = regularization_path(X, y, penalty, loss=loss, strengths=4, tol=1e-7, **OPTIONS)
    estimator = QuadBoostClassifier if loss == "logistic" else QuadBoostRegressor
    for number in (1, 3):
        strength, weight = path.strength[number], path.weight[number]
        alone = estimator(penalty, loss=loss, reg_lambda=strength, tol=1e-7, **OPTIONS).fit(X, y)
        added = strength * (np.abs(weight).sum() if penalty == "l1" else (weight**2).sum() / 2)
        assert path.risk[number] + added == pytest.approx(alone.history_["objective"][-1], rel=1e-5, abs=1e-7)
