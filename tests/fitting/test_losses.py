"""Fits under other losses reach the minimum that other libraries find."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import assert_same_model
from losses_by_others import (
    HUBER_WIDTH,
    OPTIONS,
    REPEATS,
    TARGETS,
    WEIGHT,
    M,
    X,
    by_scipy,
    by_sklearn,
    mean_loss,
    objective_of,
    voters_of,
)

from quadboost import QuadBoostClassifier, QuadBoostRegressor

EXACT = {**OPTIONS, "tol": 1e-11}
STRENGTH = {"l1": 0.02, "l2": 0.05, "linf": 0.1, None: 0.0}
NAMES = [pytest.param(name, marks=[pytest.mark.slow] if name == "quantile" else []) for name in TARGETS]
weighted = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
with_intercept = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])


def estimator(name, penalty="l1", **changes):
    given = {"penalty": penalty, **OPTIONS, **changes}
    if name in ("logistic", "multinomial"):
        return QuadBoostClassifier(loss="logistic", **given)
    width = {"huber_width": HUBER_WIDTH} if name == "huber" else {}
    return QuadBoostRegressor(loss=name, **width, **given)


def fitted(name, penalty="l1", weight=None, **changes):
    return estimator(name, penalty, **changes).fit(X, TARGETS[name], weight)


def one(values):
    """What is told of each output, of the first."""
    return values[0] if isinstance(values, list) else values


def exact(name, penalty, weight, fit_intercept):
    lam = STRENGTH[penalty]
    changes = {"alpha_max": lam} if penalty == "linf" else {"reg_lambda": lam}
    model = fitted(name, penalty, weight, fit_intercept=fit_intercept, **{**EXACT, **changes})
    assert one(model.stop_reason_) == "converged"
    return model, objective_of(name, model, penalty, lam, weight), voters_of(model, X)


# --- the minimum ---------------------------------------------------------------------------------------------


@pytest.mark.thinned
@weighted
@with_intercept
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_logistic_fits_are_those_of_scikit_learn(penalty, fit_intercept, weight):
    _, objective, H = exact("logistic", penalty, weight, fit_intercept)
    least = by_sklearn("logistic", penalty, H, STRENGTH[penalty], weight, fit_intercept)
    assert objective == pytest.approx(least, abs=1e-7)


@pytest.mark.slow
@weighted
@with_intercept
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_multinomial_fits_are_those_of_scikit_learn(penalty, fit_intercept, weight):
    _, objective, H = exact("multinomial", penalty, weight, fit_intercept)
    least = by_sklearn("multinomial", penalty, H, STRENGTH[penalty], weight, fit_intercept)
    assert objective == pytest.approx(least, abs=1e-7)


@pytest.mark.thinned(1)
@weighted
@with_intercept
def test_poisson_fits_are_those_of_scikit_learn(fit_intercept, weight):
    _, objective, H = exact("poisson", "l2", weight, fit_intercept)
    least = by_sklearn("poisson", "l2", H, STRENGTH["l2"], weight, fit_intercept)
    assert objective == pytest.approx(least, abs=1e-7)


@pytest.mark.thinned(2)
@weighted
@with_intercept
@pytest.mark.parametrize(
    ("name", "penalty"),
    [("huber", "l1"), ("huber", "l2"), ("poisson", "l1"), ("logistic", "linf"), ("huber", "linf"), ("poisson", "linf")],
)
def test_fits_reach_the_minimum_that_scipy_finds(name, penalty, fit_intercept, weight):
    _, objective, H = exact(name, penalty, weight, fit_intercept)
    least = by_scipy(name, penalty, H, STRENGTH[penalty], weight, fit_intercept)
    assert objective == pytest.approx(least, abs=1e-7)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("name", ["huber", "poisson"])
def test_fits_without_a_penalty_reach_the_minimum_that_scipy_finds(name):
    _, objective, H = exact(name, None, None, True)
    assert objective == pytest.approx(by_scipy(name, None, H, 0.0, None, True), abs=1e-6)


@pytest.mark.slow
@weighted
@with_intercept
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_pinball_loss_is_that_of_scikit_learn_within_half_a_per_cent(quantile, fit_intercept, weight):
    lam = 0.01
    model = fitted("quantile", weight=weight, quantile=quantile, reg_lambda=lam, fit_intercept=fit_intercept)
    H = voters_of(model, X)
    least = by_sklearn("quantile", "l1", H, lam, weight, fit_intercept, quantile)
    assert least * (1 - 1e-9) <= objective_of("quantile", model, "l1", lam, weight) <= 1.005 * least


@pytest.mark.slow
def test_the_share_of_rows_below_a_quantile_is_the_quantile():
    for quantile in (0.1, 0.5, 0.9):
        model = fitted("quantile", quantile=quantile, reg_lambda=0.01)
        assert np.mean(TARGETS["quantile"] <= model.predict(X)) == pytest.approx(quantile, abs=0.03)


@pytest.mark.thinned
@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", None])
@pytest.mark.parametrize("name", NAMES)
def test_the_conditions_of_optimality_hold(name, penalty):
    if penalty is None and name in ("logistic", "multinomial", "quantile"):
        pytest.skip("the minimum is far away")
    model, _, _ = exact(name, penalty, None, True) if name != "quantile" else (fitted(name, penalty), 0, 0)
    assert one(model.violation_) < (1e-2 if name == "quantile" else 1e-5)
    assert one(model.dual_gap_) < (1e-2 if name == "quantile" else 1e-4) or penalty is None  # violations add up
    if penalty != "linf":  # there all weights may be at their bound at once
        rough = fitted(name, penalty, tol=0.1, reg_lambda=STRENGTH[penalty])
        assert one(rough.violation_) > one(model.violation_)


def test_labels_that_can_be_told_apart_without_a_penalty_stay_finite():
    x = np.arange(40.0)[:, None]
    for y in ((x[:, 0] > 19).astype(int), np.digitize(x[:, 0], [12, 25])):
        model = QuadBoostClassifier(penalty=None, loss="logistic").fit(x, y)
        scores = model.decision_function(x)
        assert np.isfinite(scores).all()
        assert np.abs(scores).max() > 5
        assert (model.predict(x) == y).all()
        probability = model.predict_proba(x)
        assert ((probability > 0) & (probability < 1)).all()


# --- what is told of the passes ------------------------------------------------------------------------------


@pytest.mark.thinned
@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", None])
@pytest.mark.parametrize("name", NAMES)
def test_the_objective_never_rises(name, penalty):
    model = fitted(name, penalty)
    history = one(model.history_)
    assert len(history["objective"]) >= 2
    assert np.diff(history["objective"]).max() <= 1e-10 * abs(history["objective"][0])
    assert len(history["loss"]) == len(history["objective"]) == len(history["rounds"])


@pytest.mark.thinned
@weighted
@pytest.mark.parametrize("name", NAMES)
def test_the_last_objective_is_that_of_the_model(name, weight):
    """Of the pinball loss, but for its rounded corner."""
    lam = 0.03
    model = fitted(name, weight=weight, reg_lambda=lam)
    within = 5e-3 if name == "quantile" else 1e-9
    found = objective_of(name, model, "l1", lam, weight)
    assert one(model.history_)["objective"][-1] == pytest.approx(found, rel=within)


@pytest.mark.parametrize("name", NAMES)
def test_the_penalty_of_the_strongest_useful_strength_leaves_the_best_constant(name):
    model = fitted(name, reg_lambda=1e3)
    y = TARGETS[name]
    assert len(model.ensemble_.feature) == 0
    constant = np.tile(model.intercept_, (M, 1)) if name == "multinomial" else np.full(M, model.intercept_)
    least = {
        "logistic": lambda: mean_loss(name, np.log(y.mean() / (1 - y.mean())) * np.ones(M), y),
        "multinomial": lambda: mean_loss(name, np.tile(np.log(np.bincount(y) / M), (M, 1)), y),
        "poisson": lambda: mean_loss(name, np.log(y.mean()) * np.ones(M), y),
        "huber": lambda: min(mean_loss(name, c * np.ones(M), y) for c in np.linspace(-3, 3, 2001)),
        "quantile": lambda: mean_loss(name, np.median(y) * np.ones(M), y),
    }[name]()
    assert mean_loss(name, constant, y) == pytest.approx(least, rel=1e-3 if name == "quantile" else 1e-6)


def test_the_squared_loss_means_the_same_strength():
    """A Huber loss that is wide enough is the squared loss."""
    y = TARGETS["huber"]
    for penalty, lam in (("l1", 0.05), ("l2", 0.05), ("linf", 0.1)):
        given = {"penalty": penalty, "reg_lambda": lam, **EXACT}
        wide = QuadBoostRegressor(loss="huber", huber_width=1e4, **given).fit(X, y)
        squared = QuadBoostRegressor(**given).fit(X, y)
        np.testing.assert_allclose(wide.predict(X), squared.predict(X), atol=1e-4)


# --- the same bits -------------------------------------------------------------------------------------------


@pytest.mark.thinned
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_change_a_bit(name, penalty, monkeypatch):
    monkeypatch.setattr("quadboost.common.threads.STEPS_FOR_THREADS", 1)
    assert_same_model(fitted(name, penalty, n_jobs=1), fitted(name, penalty, n_jobs=2))


@pytest.mark.thinned
@weighted
@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_does_not_change_a_bit(name, weight):
    order = np.random.default_rng(1).permutation(M)
    found = estimator(name).fit(X[order], TARGETS[name][order], None if weight is None else weight[order])
    known = fitted(name, weight=weight)
    assert_same_model(found, known)
    assert found.reg_lambda_ == known.reg_lambda_


@pytest.mark.thinned
@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_weight_is_a_repetition_bit_for_bit(name, penalty):
    found = estimator(name, penalty).fit(X.repeat(REPEATS, axis=0), TARGETS[name].repeat(REPEATS))
    known = fitted(name, penalty, REPEATS)
    assert_same_model(found, known)
    assert found.reg_lambda_ == known.reg_lambda_


@pytest.mark.thinned(1)
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_no_weight_are_no_rows(name):
    kept = np.random.default_rng(2).random(M) < 0.7
    known = estimator(name).fit(X[kept], TARGETS[name][kept])
    assert_same_model(fitted(name, weight=kept.astype(float)), known)
