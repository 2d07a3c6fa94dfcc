"""Early stopping by a metric takes the stage that is best by it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score

from quadboost import QuadBoostClassifier, QuadBoostRegressor

X, LABELS = make_classification(600, 8, n_informative=4, flip_y=0.2, random_state=0)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
Z, TARGETS = make_friedman1(500, noise=2.0, random_state=0)


def halves(X, y):
    return X[::2], y[::2], X[1::2], y[1::2]


def fitted(model, X, y, metric):
    X, y, X_val, y_val = halves(X, y)
    return model.fit(X, y, X_val=X_val, y_val=y_val, eval_metric=metric), X_val, y_val


def history(model):
    return model.history_ if isinstance(model.history_, dict) else model.history_[0]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two classes", "three"])
def test_the_model_has_the_least_log_loss_of_all_stages(loss, y):
    model, X_val, y_val = fitted(QuadBoostClassifier(loss=loss, reg_lambda=0.002), X, y, "log_loss")
    found = log_loss(y_val, model.predict_proba(X_val))
    assert found == pytest.approx(history(model)["validation_metric"].min(), rel=1e-9)
    assert len(history(model)["validation_metric"]) > 3


@pytest.mark.slow
def test_less_of_an_area_under_a_curve_is_worse():
    model, X_val, y_val = fitted(QuadBoostClassifier(reg_lambda=0.002), X, LABELS, "roc_auc")
    area = roc_auc_score(y_val, model.predict_proba(X_val)[:, 1])
    assert area == pytest.approx(-history(model)["validation_metric"].min())


@pytest.mark.slow
def test_a_function_sees_labels_and_probabilities_of_the_second_class():
    seen = []

    def metric(y, chance):
        seen.append((y, chance))
        return log_loss(y, chance)

    named = np.array(["no", "yes"])[LABELS]
    model, X_val, y_val = fitted(QuadBoostClassifier(reg_lambda=0.01), X, named, metric)
    known, _, _ = fitted(QuadBoostClassifier(reg_lambda=0.01), X, LABELS, "log_loss")
    np.testing.assert_array_equal(seen[0][0], y_val)
    assert seen[0][1].shape == y_val.shape
    np.testing.assert_array_equal(model.decision_function(X_val), known.decision_function(X_val))


@pytest.mark.parametrize(
    "loss", ["squared", *(pytest.param(loss, marks=pytest.mark.slow) for loss in ("huber", "quantile"))]
)
def test_a_regression_may_be_chosen_by_its_mean_absolute_error(loss):
    model, X_val, y_val = fitted(QuadBoostRegressor(loss=loss, reg_lambda=0.1), Z, TARGETS, "mae")
    found = mean_absolute_error(y_val, model.predict(X_val))
    assert found == pytest.approx(history(model)["validation_metric"].min(), rel=1e-9)


def test_targets_are_in_their_own_units():
    def metric(y, found):
        return np.abs(y - found).mean()

    model, X_val, y_val = fitted(QuadBoostRegressor(standardize=True, reg_lambda=0.01), Z, TARGETS, metric)
    assert metric(y_val, model.predict(X_val)) == pytest.approx(history(model)["validation_metric"].min(), rel=1e-9)


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ("auc", "eval_metric='auc' is not known; use 'error', 'log_loss', 'roc_auc'"),
        (5, "eval_metric=5 is not known"),
        (lambda y, p: np.nan, "eval_metric returned nan; it must be a number"),
        (lambda y, p: "low", "eval_metric returned 'low'"),
        (lambda y, p: 1 / 0, "eval_metric raised ZeroDivisionError: division by zero"),
    ],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_metric_that_is_none_is_refused(loss, metric, told):
    with pytest.raises(ValueError, match=told):
        fitted(QuadBoostClassifier(loss=loss), X, LABELS, metric)


def test_a_metric_needs_rows_to_judge_by():
    with pytest.raises(ValueError, match="eval_metric is for validation rows; give X_val and y_val"):
        QuadBoostClassifier().fit(X, LABELS, eval_metric="error")


def test_patience_counts_passes():
    model = QuadBoostClassifier(loss="logistic", reg_lambda=1e-5, patience=2, thresholds=5)
    model, _, _ = fitted(model, X, LABELS, None)
    losses = model.history_["validation_loss"]
    assert model.stop_reason_ == "patience"
    assert len(losses) - 1 - np.argmin(losses) == 2
