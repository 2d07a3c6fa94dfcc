"""Early stopping under other losses, and by a metric of one's own."""

from __future__ import annotations

import numpy as np
import pytest
from losses_by_others import OPTIONS, TARGETS, M, X, mean_loss
from sklearn.metrics import log_loss

from quadboost import QuadBoostClassifier, QuadBoostRegressor

TRAIN, HELD_OUT = slice(0, 90), slice(90, M)
LOSSES = ("logistic", "multinomial", "poisson", "huber", "quantile")
each = pytest.mark.parametrize("name", LOSSES)
LABELS = TARGETS["logistic"]


def estimator(name, **changes):
    given = {"penalty": None, "patience": 3, "tol": 1e-8, **OPTIONS, **changes}
    if name in ("logistic", "multinomial"):
        return QuadBoostClassifier(loss="logistic", **given)
    return QuadBoostRegressor(loss=name, **({"huber_width": 1.0} if name == "huber" else {}), **given)


def fitted(name, eval_metric=None, **changes):
    y = TARGETS[name]
    return estimator(name, **changes).fit(
        X[TRAIN], y[TRAIN], X_val=X[HELD_OUT], y_val=y[HELD_OUT], eval_metric=eval_metric
    )


def stages_of(model, Z):
    return list(model.staged_decision_function(Z) if hasattr(model, "classes_") else model.staged_predict(Z))


def one(values):
    return values[0] if isinstance(values, list) else values


@each
def test_the_best_pass_on_the_validation_rows_is_taken(name):
    model = fitted(name)
    losses, y = one(model.history_)["validation_loss"], TARGETS[name][HELD_OUT]
    stages = stages_of(model, X[HELD_OUT])
    best = int(np.argmin(losses))
    assert len(stages) == best + 1
    assert one(model.stop_reason_) == "patience"
    assert len(losses) == best + 1 + 3
    found = model.decision_function(X[HELD_OUT]) if hasattr(model, "classes_") else model.predict(X[HELD_OUT])
    np.testing.assert_allclose(found, stages[-1], rtol=1e-12)
    known = [mean_loss(name, np.log(stage) if name == "poisson" else stage, y) for stage in stages]
    np.testing.assert_allclose(losses[: best + 1], known, rtol=2e-3 if name == "quantile" else 1e-9)


@each
def test_the_figures_are_those_of_the_pass_that_was_taken(name):
    model = fitted(name)
    losses, history = one(model.history_)["validation_loss"], one(model.history_)
    best, told = int(np.argmin(losses)), model.ensemble_.info["outputs"][0]
    assert best < len(losses) - 1
    assert (told["risk"], told["validation_risk"]) == (history["loss"][best], losses[best])
    assert "violation" not in told  # of another pass
    assert np.sum(model.n_rounds_) == history["rounds"][best] < history["rounds"][-1]


@each
def test_a_fraction_of_the_rows_can_be_set_aside(name):
    model = estimator(name, validation_fraction=0.3, random_state=0).fit(X, TARGETS[name])
    assert model.ensemble_.info["validation_rows"] == np.ceil(0.3 * M)
    assert len(one(model.history_)["validation_loss"]) > 0


@each
def test_callbacks_hear_of_every_pass_and_can_stop(name):
    heard = []

    def callback(number, loss, validation_loss):
        heard.append((number, loss, validation_loss))
        return len(heard) == 2

    model = fitted(name, callbacks=[callback])
    assert one(model.stop_reason_) == "callback"
    assert [news[0] for news in heard] == [1, 2]
    np.testing.assert_array_equal([news[1] for news in heard], one(model.history_)["loss"])
    np.testing.assert_array_equal([news[2] for news in heard], one(model.history_)["validation_loss"])


# --- metrics -------------------------------------------------------------------------------------------------


def squared(**changes):
    model = QuadBoostClassifier(**{"penalty": None, "patience": 20, "max_rounds": 300, **OPTIONS, **changes})
    return model, (X[TRAIN], LABELS[TRAIN], None, X[HELD_OUT], LABELS[HELD_OUT])


@pytest.mark.parametrize("metric", ["error", "log_loss", "roc_auc"])
def test_the_best_pass_by_a_metric_is_taken(metric):
    model = fitted("logistic", eval_metric=metric)
    values = model.history_["validation_metric"]
    assert len(stages_of(model, X)) == np.argmin(values) + 1
    chance, y = model.predict_proba(X[HELD_OUT]), LABELS[HELD_OUT]
    if metric == "log_loss":
        assert values.min() == pytest.approx(log_loss(y, chance), rel=1e-9)
    if metric == "error":
        assert values.min() == np.mean(model.predict(X[HELD_OUT]) != y)


@pytest.mark.parametrize("calibration", ["auto", None])
def test_the_best_round_by_a_metric_is_taken_under_the_squared_loss(calibration):
    model, rows = squared(calibration=calibration)
    model.fit(*rows, eval_metric="error")
    values, rounds = (model.history_[f"validation_metric{more}"] for more in ("", "_round"))
    assert model.n_rounds_ == rounds[np.argmin(values)]
    assert values.min() == np.mean(model.predict(X[HELD_OUT]) != LABELS[HELD_OUT])
    assert model.ensemble_.info["outputs"][0]["risk"] == model.history_["risk"][model.n_rounds_ - 1]


def test_a_function_sees_labels_and_probabilities_and_less_is_better():
    seen = []

    def brier(y, chance):
        seen.append((y, chance))
        return np.mean((y - chance) ** 2)

    model = fitted("logistic", eval_metric=brier)
    for y, chance in seen:
        np.testing.assert_array_equal(y, LABELS[HELD_OUT])
        assert chance.shape == y.shape
    best = model.predict_proba(X[HELD_OUT])[:, 1]
    assert brier(LABELS[HELD_OUT], best) == pytest.approx(model.history_["validation_metric"].min(), rel=1e-9)


def test_a_function_sees_targets_and_predictions():
    model = fitted("poisson", eval_metric=lambda y, rate: np.abs(y - rate).mean())
    best = np.abs(TARGETS["poisson"][HELD_OUT] - model.predict(X[HELD_OUT])).mean()
    assert model.history_["validation_metric"].min() == pytest.approx(best, rel=1e-9)


def broken(y, found):
    raise RuntimeError("no such thing")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("auc", "eval_metric='auc' is not known; use 'error', 'log_loss', 'roc_auc', or a function"),
        ("rmse", "eval_metric='rmse' is not known"),
        (3, "eval_metric=3 is not known"),
        (broken, "eval_metric raised RuntimeError: no such thing; it is called with y and predictions"),
        (lambda y, found: np.nan, "eval_metric returned nan; it must be a number"),
        (lambda y, found: None, "eval_metric returned None; it must be a number"),
        (lambda y, found: "0.5", "eval_metric returned '0.5'; it must be a number"),
    ],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_metric_that_means_nothing_is_refused(metric, message, loss):
    model, rows = squared(loss=loss)
    with pytest.raises(ValueError, match=message):
        model.fit(*rows, eval_metric=metric)


def test_rows_that_a_metric_has_no_value_on_are_refused():
    one = LABELS[HELD_OUT] == 1
    with pytest.raises(ValueError, match="eval_metric='roc_auc' has no value on these validation rows"):
        QuadBoostClassifier(**OPTIONS).fit(
            X[TRAIN], LABELS[TRAIN], None, X[HELD_OUT][one], LABELS[HELD_OUT][one], eval_metric="roc_auc"
        )


def test_a_metric_needs_validation_rows():
    with pytest.raises(ValueError, match="eval_metric is for validation rows; give X_val and y_val"):
        QuadBoostClassifier(**OPTIONS).fit(X, LABELS, eval_metric="error")
