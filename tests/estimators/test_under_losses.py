"""Estimators under other losses: what scikit-learn asks, stages, weights, and words for bad input."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import assert_same_model
from losses_by_others import OPTIONS, TARGETS, M, X
from sklearn.utils.estimator_checks import parametrize_with_checks

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor

ESTIMATORS = {
    "logistic": QuadBoostClassifier(loss="logistic", **OPTIONS),
    "multinomial": QuadBoostClassifier(loss="logistic", **OPTIONS),
    "poisson": QuadBoostRegressor(loss="poisson", **OPTIONS),
    "huber": QuadBoostRegressor(loss="huber", **OPTIONS),
    "quantile": QuadBoostRegressor(loss="quantile", quantile=0.8, **OPTIONS),
}
each = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "quantile" else []) for name in ESTIMATORS]
)
COUNTS, LABELS = TARGETS["poisson"], TARGETS["logistic"]


def fitted(name, weight=None, **changes):
    estimator = ESTIMATORS[name]
    return type(estimator)(**{**estimator.get_params(), **changes}).fit(X, TARGETS[name], weight)


def one(values):
    """What is told of each output, of the first."""
    return values[0] if isinstance(values, list) else values


def refused(estimator):
    """Checks that give negative targets, whatever the tags say."""
    return {"check_regressor_multioutput": "targets are negative"} if estimator.loss == "poisson" else {}


@pytest.mark.thinned(12)
@parametrize_with_checks(
    [
        QuadBoostClassifier(loss="logistic", thresholds=5, tol=0.01),
        QuadBoostRegressor(loss="poisson", thresholds=5, tol=0.01),
    ],
    expected_failed_checks=refused,
)
def test_scikit_learn_has_nothing_to_complain_about(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        QuadBoostClassifier(calibration=None),
        QuadBoostRegressor(loss="huber", thresholds=20),
        QuadBoostRegressor(loss="quantile", thresholds=10, tol=0.01),
    ]
)
def test_nor_of_the_other_losses(estimator, check):
    check(estimator)


# --- stages and files ----------------------------------------------------------------------------------------


@pytest.mark.thinned
@each
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_last_stage_is_the_model(name, penalty):
    model = fitted(name, penalty=penalty)
    is_classifier = hasattr(model, "classes_")
    stages = list(model.staged_decision_function(X) if is_classifier else model.staged_predict(X))
    known = model.decision_function(X) if is_classifier else model.predict(X)
    np.testing.assert_allclose(stages[-1], known, rtol=1e-12, atol=1e-12)
    history = model.history_[0] if name == "multinomial" else model.history_
    assert len(stages) == len(history["loss"]) > 2
    assert not np.allclose(stages[0], known, rtol=1e-6)


@each
def test_a_saved_model_predicts_the_same_bits(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m.h5")
    loaded = quadboost.load(tmp_path / "m.h5")
    assert (loaded.loss, loaded.link) == (model.loss, model.ensemble_.link)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    again = type(model).from_ensemble(loaded)
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_predictions_are_rates_and_probabilities_follow_from_the_scores():
    model = fitted("poisson")
    assert (model.predict(X) > 0).all()
    np.testing.assert_allclose(np.log(model.predict(X)), model.ensemble_.scores_of(X), rtol=1e-9)
    assert model.predict(X).mean() == pytest.approx(COUNTS.mean(), rel=0.02)
    logistic = fitted("logistic")
    odds = logistic.decision_function(X)
    np.testing.assert_allclose(logistic.predict_proba(X)[:, 1], 1 / (1 + np.exp(-odds)), rtol=1e-9)
    several = fitted("multinomial")
    power = np.exp(several.decision_function(X))
    np.testing.assert_allclose(several.predict_proba(X), power / power.sum(axis=1, keepdims=True), rtol=1e-9)


# --- weights and robustness ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
def test_class_weights_are_weights_of_the_rows(name):
    y = TARGETS[name]
    found = fitted(name, class_weight={0: 3.0}, reg_lambda=0.02)
    assert_same_model(found, fitted(name, np.where(y == 0, 3.0, 1.0), reg_lambda=0.02))
    assert found.predict_proba(X)[:, 0].mean() > fitted(name, reg_lambda=0.02).predict_proba(X)[:, 0].mean() + 0.05


def test_a_row_far_off_hardly_moves_a_huber_model():
    y = TARGETS["huber"].copy()
    before = fitted("huber", reg_lambda=0.05).predict(X)
    y[0] = 1e12
    after = QuadBoostRegressor(loss="huber", reg_lambda=0.05, **OPTIONS).fit(X, y).predict(X)
    assert np.abs(after - before).max() < 1.0


@pytest.mark.slow
def test_counts_of_very_different_size_are_followed():
    x = np.linspace(-3, 3, 200)[:, None]
    rate = np.exp(6 * x[:, 0])
    model = QuadBoostRegressor(loss="poisson").fit(x, np.floor(rate))
    assert model.predict(x).mean() == pytest.approx(np.floor(rate).mean(), rel=0.1)
    one = QuadBoostRegressor(loss="poisson").fit(x, (np.arange(200) == 3).astype(float))
    assert np.isfinite(np.log(one.predict(x))).all()


@pytest.mark.parametrize("loss", ["huber", "quantile", "poisson"])
def test_targets_that_are_all_equal_are_predicted(loss):
    model = QuadBoostRegressor(loss=loss, **OPTIONS).fit(X, np.full(M, 2.5))
    np.testing.assert_allclose(model.predict(X), 2.5, rtol=1e-9)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("loss", ["huber", "poisson"])
def test_several_targets_have_a_model_each(loss):
    y = np.column_stack([COUNTS, COUNTS[::-1]])
    given = {"loss": loss, "penalty": "l2", "reg_lambda": 0.1, "tol": 1e-9, "huber_width": 2.0, **OPTIONS}
    both = QuadBoostRegressor(**given).fit(X, y).predict(X)
    for k in range(2):
        one = QuadBoostRegressor(**given).fit(X, y[:, k]).predict(X)
        np.testing.assert_allclose(both[:, k], one, rtol=1e-3)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_standardized_targets_have_predictions_in_their_own_units(loss):
    y = TARGETS["quantile"]
    given = {"loss": loss, "standardize": True, "reg_lambda": 0.02, **OPTIONS}
    one = QuadBoostRegressor(**given).fit(X, y).predict(X)
    other = QuadBoostRegressor(**given).fit(X, 1000 * y).predict(X)
    np.testing.assert_allclose(other, 1000 * one, rtol=1e-3, atol=1.0)


# --- warm starts ---------------------------------------------------------------------------------------------


@each
def test_a_warm_start_goes_on_from_the_weights_of_before(name):
    """A fit that a callback has cut short, and goes on, ends near where a whole one does."""
    whole = fitted(name, reg_lambda=0.02, tol=1e-6)
    short = fitted(name, reg_lambda=0.02, tol=1e-6, warm_start=True, callbacks=[lambda number, *_: number == 2])
    cut, end = [one(model.history_)["objective"][-1] for model in (short, whole)]
    short.set_params(callbacks=None).fit(X, TARGETS[name])
    found = one(short.history_)["objective"]
    assert found[0] <= cut + 1e-12
    assert cut > end + 1e-5 * abs(end)
    assert found[-1] < end + 0.1 * (cut - end)
    with pytest.raises(ValueError, match=r"warm_start goes on from a fit with reg_lambda=0\.02"):
        short.set_params(reg_lambda=0.1).fit(X, TARGETS[name])


# --- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (QuadBoostClassifier, {"loss": "hinge"}, "loss='hinge' is not known; use 'squared' or 'logistic'"),
        (QuadBoostClassifier, {"loss": "poisson"}, "loss='poisson' is not known; use 'squared' or 'logistic'"),
        (QuadBoostClassifier, {"calibration": "platt"}, "calibration='platt' is not known; use 'auto' or None"),
        (QuadBoostRegressor, {"loss": "logistic"}, "loss='logistic' is not known; use 'squared', 'huber', 'poisson'"),
        (QuadBoostRegressor, {"loss": None}, "loss=None is not known"),
        (QuadBoostRegressor, {"loss": "quantile", "quantile": 0}, "quantile=0 must lie between 0 and 1"),
        (QuadBoostRegressor, {"loss": "quantile", "quantile": 1}, "quantile=1 must lie between 0 and 1"),
        (QuadBoostRegressor, {"loss": "quantile", "quantile": 1.5}, "quantile=1.5 must lie between 0 and 1"),
        (QuadBoostRegressor, {"loss": "quantile", "quantile": "x"}, "quantile='x' must lie between 0 and 1"),
        (QuadBoostRegressor, {"loss": "huber", "huber_width": 0}, "huber_width=0 must be a positive"),
        (QuadBoostRegressor, {"loss": "huber", "huber_width": "wide"}, "huber_width='wide' must be a positive"),
        (QuadBoostRegressor, {"loss": "poisson", "standardize": True}, "standardize=True is not for loss='poisson'"),
    ],
)
def test_a_parameter_that_means_nothing_is_refused_by_name_and_value(estimator, parameters, message):
    with pytest.raises(ValueError, match=message) as caught:
        estimator(**parameters).fit(X, LABELS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["logistic", "poisson"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "forward"}, "mode='forward' is for loss='squared' or trees; with loss='{}' use mode='corrective'"),
        ({"reg_lambda": "theory"}, "reg_lambda='theory' is for"),
    ],
)
def test_what_does_not_go_with_a_loss_is_refused(name, changes, message):
    with pytest.raises(ValueError, match=message.format(name)):
        fitted(name, **changes)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(COUNTS > 1, "many", "few"), "y holds text, such as '(many|few)'"),
        (COUNTS - 1, "y holds -1; loss='poisson' is for counts, which are not negative"),
        (0 * COUNTS, "y holds only zeros; loss='poisson' needs a positive count"),
        (np.column_stack([COUNTS, 0 * COUNTS]), "y holds only zeros"),
    ],
)
def test_targets_that_are_no_counts_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        QuadBoostRegressor(loss="poisson", **OPTIONS).fit(X, y)


def test_validation_counts_may_be_zeros_but_not_negative():
    model = QuadBoostRegressor(loss="poisson", **OPTIONS)
    with pytest.raises(ValueError, match="y_val holds -1; loss='poisson' is for counts"):
        model.fit(X, COUNTS, X_val=X, y_val=COUNTS - 1)
    assert len(model.fit(X, COUNTS, X_val=X, y_val=0 * COUNTS).history_["validation_loss"]) > 0
