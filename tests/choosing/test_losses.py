"""Cross-validation under a loss scores what fits of the plain estimators to each split would."""

from __future__ import annotations

import numpy as np
import pytest
from losses_by_others import TARGETS, WEIGHT, M, X, mean_loss
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import KFold, StratifiedKFold

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV

GRID = [0.3, 0.1, 0.03]
OPTIONS = {"thresholds": 5, "categorical_features": [4], "max_rounds": 100_000}
SEARCHES = {
    "logistic": (QuadBoostClassifierCV, QuadBoostClassifier, {"loss": "logistic"}),
    "multinomial": (QuadBoostClassifierCV, QuadBoostClassifier, {"loss": "logistic"}),
    "poisson": (QuadBoostRegressorCV, QuadBoostRegressor, {"loss": "poisson"}),
    "huber": (QuadBoostRegressorCV, QuadBoostRegressor, {"loss": "huber", "huber_width": 1.0}),
    "quantile": (QuadBoostRegressorCV, QuadBoostRegressor, {"loss": "quantile", "quantile": 0.8}),
}
LONG = {"multinomial", "quantile"}
each = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in SEARCHES]
)


def searched(name, weight=None, **changes):
    search, _, targets = SEARCHES[name]
    return search(**{**OPTIONS, **targets, "reg_lambda": GRID, "cv": 3, **changes}).fit(X, TARGETS[name], weight)


def naive(name, judge, weight=None, penalty="l1"):
    """Scores of a fit to each split, a row per strength."""
    _, plain, targets = SEARCHES[name]
    y, splitter = TARGETS[name], KFold(3) if plain is QuadBoostRegressor else StratifiedKFold(3)
    found = np.empty((len(GRID), 3))
    for k, (train, held_out) in enumerate(splitter.split(X, y)):
        weights = [None if weight is None else weight[rows] for rows in (train, held_out)]
        for i, lam in enumerate(GRID):
            model = plain(**{**OPTIONS, **targets, "penalty": penalty, "reg_lambda": lam, "tol": 1e-6})
            found[i, k] = judge(model.fit(X[train], y[train], weights[0]), X[held_out], y[held_out], weights[1])
    return found


def loss_of(name):
    def judge(model, Z, y, weight):
        if name in ("logistic", "multinomial"):
            scores = model.decision_function(Z)
        else:
            scores = np.log(model.predict(Z)) if name == "poisson" else model.predict(Z)
        return mean_loss(name, scores, y, weight, 0.8)

    return judge


def splits(model):
    return np.column_stack([model.cv_results_[f"split{k}_test_score"] for k in range(3)])


@pytest.mark.thinned(1)
@each
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_scores_are_the_losses_of_fits_to_each_split(name, weight, monkeypatch):
    """Within the tolerance of the fits; a strength begins where another ended."""
    monkeypatch.setattr("quadboost.choosing.losses.PATIENCE", 100)
    found = splits(searched(name, weight, thresholds_per_fold=True))
    known = naive(name, loss_of(name), weight)
    near = 0.05 if name == "quantile" else 0.02  # its minimum is flat, and fits end somewhere in it
    np.testing.assert_allclose(found, known, rtol=near, atol=2e-3)
    shared = splits(searched(name, weight))  # thresholds of all rows: nearly the same
    assert not np.array_equal(shared, found)
    np.testing.assert_allclose(shared, found, rtol=0.3, atol=0.1)


@pytest.mark.thinned(1)
@each
def test_the_choice_is_the_best_mean_and_the_model_is_that_of_the_plain_estimator(name):
    found = searched(name)
    scores = found.cv_results_["mean_test_score"]
    assert found.best_score_ == scores.min()
    assert found.best_params_["reg_lambda"] == found.cv_results_["param_reg_lambda"][found.best_index_]
    _, plain, targets = SEARCHES[name]
    known = plain(**{**OPTIONS, **targets, "reg_lambda": found.best_params_["reg_lambda"]}).fit(X, TARGETS[name])
    np.testing.assert_array_equal(found.predict(X), known.predict(X))
    assert found.ensemble_.loss == targets["loss"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", "multinomial"])
@pytest.mark.parametrize(
    ("scoring", "judge"),
    [
        ("error", lambda model, Z, y, _: 1 - accuracy_score(y, model.predict(Z))),
        ("neg_log_loss", lambda model, Z, y, _: -log_loss(y, model.predict_proba(Z), labels=model.classes_)),
    ],
)
def test_scorers_judge_the_models_of_the_splits(name, scoring, judge, monkeypatch):
    monkeypatch.setattr("quadboost.choosing.losses.PATIENCE", 100)
    found = searched(name, scoring=scoring, thresholds_per_fold=True)
    known = naive(name, judge)
    within = {"rtol": 0.03} if scoring == "neg_log_loss" else {"atol": 1.5 / (M / 3)}
    np.testing.assert_allclose(splits(found), known, **within)
    best = found.cv_results_["mean_test_score"]
    assert found.best_score_ == (best.min() if scoring == "error" else best.max())


def test_weaker_strengths_are_given_up_after_some_that_are_worse(monkeypatch):
    import quadboost.choosing.losses as module

    fits = []
    train = module.train_under_loss
    monkeypatch.setattr(module, "train_under_loss", lambda *a, **k: fits.append(a[2].reg_lambda) or train(*a, **k))
    grid = np.geomspace(1.0, 1e-4, 9)
    noise = np.random.default_rng(0).permutation(TARGETS["logistic"])
    found = QuadBoostClassifierCV(**OPTIONS, loss="logistic", reg_lambda=grid, cv=3, n_jobs=1).fit(X, noise)
    assert len(fits) < 3 * len(grid)
    assert not np.isnan(found.cv_results_["mean_test_score"]).any()
    assert found.best_params_["reg_lambda"] > 1e-3


@pytest.mark.slow
@each
def test_a_number_of_strengths_reaches_down_from_the_strongest_useful_one(name):
    found = searched(name, reg_lambda=4)
    strengths = found.cv_results_["param_reg_lambda"]
    assert len(strengths) == 4
    assert (np.diff(strengths) < 0).all()
    _, plain, targets = SEARCHES[name]
    strongest = plain(**{**OPTIONS, **targets, "reg_lambda": 1.001 * strengths[0]}).fit(X, TARGETS[name])
    weaker = plain(**{**OPTIONS, **targets, "reg_lambda": 0.8 * strengths[0]}).fit(X, TARGETS[name])
    assert len(strongest.ensemble_.feature) <= 1 < 1 + len(weaker.ensemble_.feature)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("penalty", ["l2", "linf", None])
def test_other_penalties_are_searched_too(penalty):
    found = searched("poisson", penalty=penalty, reg_lambda=[1.0, 0.1], alpha_max=[0.05, 0.2])
    assert found.best_params_["penalty"] == penalty
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


@pytest.mark.slow
@each
def test_threads_do_not_change_a_bit(name, monkeypatch):
    monkeypatch.setattr("quadboost.choosing.folds.VOTERS_FOR_THREADS", 1)
    one, two = (searched(name, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(splits(one), splits(two))


@pytest.mark.slow
def test_a_class_may_be_absent_from_the_training_rows():
    order = np.argsort(TARGETS["multinomial"], kind="stable")
    search = QuadBoostClassifierCV(**OPTIONS, loss="logistic", reg_lambda=GRID[:2], tol=0.01, cv=KFold(3))
    found = search.fit(X[order], TARGETS["multinomial"][order])
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


def test_a_split_without_a_positive_count_is_refused():
    y = np.r_[np.zeros(100), TARGETS["poisson"][100:]]
    cv = [(np.arange(100, M), np.arange(100)), (np.arange(90), np.arange(90, M))]
    with pytest.raises(ValueError, match="y of the training rows of split 1 holds only zeros"):
        QuadBoostRegressorCV(**OPTIONS, loss="poisson", cv=cv).fit(X, y)
