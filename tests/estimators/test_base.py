"""What all estimators share, under every loss."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1

from quadboost import QuadBoostClassifier, QuadBoostRegressor, load

CANCER, IRIS = load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)
X, Y = make_friedman1(300, noise=1.0, random_state=0)
COUNTS = np.random.default_rng(0).poisson(Y / 5.0).astype(float)
FITS = {
    "calibrated": (QuadBoostClassifier(), *CANCER),
    "clipped": (QuadBoostClassifier(calibration=None), *CANCER),
    "logistic": (QuadBoostClassifier(loss="logistic"), *CANCER),
    "softmax": (QuadBoostClassifier(), *IRIS),
    "multinomial": (QuadBoostClassifier(loss="logistic"), *IRIS),
    "huber": (QuadBoostRegressor(loss="huber"), X, Y),
    "poisson": (QuadBoostRegressor(loss="poisson"), X, COUNTS),
    "l2": (QuadBoostClassifier(penalty="l2", tol=0.01), *CANCER),
}
QUANTILE = (QuadBoostRegressor(loss="quantile", quantile=0.8), X, Y)
each_fit = pytest.mark.parametrize("name", [*FITS, pytest.param("quantile", marks=pytest.mark.slow)])


@cache
def fitted(name):
    model, X, y = FITS.get(name, QUANTILE)
    return clone(model).fit(X, y), X


@pytest.mark.thinned(1)
@each_fit
def test_a_stored_model_says_the_same(name, tmp_path):
    model, X = fitted(name)
    model.save(tmp_path / "model.h5")
    loaded = load(tmp_path / "model.h5")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.loss == model.loss
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        again = QuadBoostClassifier.from_ensemble(loaded)
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.thinned(5)
@each_fit
def test_the_last_stage_is_the_model(name):
    model, X = fitted(name)
    if hasattr(model, "decision_function"):
        *_, last = model.staged_decision_function(X)
        np.testing.assert_allclose(last, model.decision_function(X), atol=1e-9)
    else:
        *_, last = model.staged_predict(X)
        np.testing.assert_allclose(last, model.predict(X), rtol=1e-9)


@pytest.mark.thinned(1)
@each_fit
def test_labels_are_those_of_the_largest_probability(name):
    model, X = fitted(name)
    if hasattr(model, "predict_proba"):
        chance = model.predict_proba(X)
        np.testing.assert_array_equal(model.classes_[chance.argmax(axis=1)], model.predict(X))
        np.testing.assert_allclose(chance.sum(axis=1), 1.0)
        assert ((chance > 0) & (chance < 1)).all() or model.calibration is None


def test_log_odds_are_those_of_the_probabilities():
    for name in ("calibrated", "logistic"):
        model, _ = fitted(name)
        score, chance = model.decision_function(CANCER[0]), model.predict_proba(CANCER[0])
        np.testing.assert_allclose(np.log(chance[:, 1] / chance[:, 0]), score, atol=1e-9, rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (QuadBoostClassifier(loss="hinge"), "loss='hinge' is not known; use 'squared' or 'logistic'"),
        (QuadBoostClassifier(calibration="platt"), "calibration='platt' is not known; use 'auto' or None"),
        (QuadBoostClassifier(loss="logistic", mode="forward"), "mode='forward' is for loss='squared'"),
        (QuadBoostClassifier(loss="logistic", reg_lambda="theory"), "reg_lambda='theory' is for loss='squared'"),
        (QuadBoostRegressor(loss="logistic"), "loss='logistic' is not known; use 'squared', 'huber'"),
        (QuadBoostRegressor(loss="quantile", quantile=1.5), "quantile=1.5 must lie between 0 and 1"),
        (QuadBoostRegressor(loss="quantile", quantile=0), "quantile=0 must lie between 0 and 1"),
        (QuadBoostRegressor(loss="huber", huber_width=0), "huber_width=0 must be a positive"),
        (QuadBoostRegressor(loss="poisson"), "loss='poisson' is for counts, which are not negative"),
    ],
)
def test_what_cannot_be_is_refused(model, told):
    X, y = CANCER if isinstance(model, QuadBoostClassifier) else (FITS["huber"][1], Y - 20.0)
    with pytest.raises(ValueError, match=told):
        model.fit(X, y)
