"""Rounds, stages, warm starts and when to stop."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from comparing import assert_same_model, score
from mixed_table import CATEGORIES, mixed_table, targets
from oracles import lasso_solution
from reference import voter_matrix
from sklearn.exceptions import ConvergenceWarning

import quadboost.estimators.plain
from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV
from quadboost.voters.columns import Voters

M = 300
X = mixed_table(M)
Y = targets(X)
REAL = Y + np.random.default_rng(2).normal(size=M)
OPTIONS = {"categorical_features": [4], "max_rounds": 60, "thresholds": 20}
EACH = [QuadBoostClassifier, QuadBoostRegressor]
each = pytest.mark.parametrize("estimator", EACH)


def fitted(estimator, **options):
    y = Y if estimator is QuadBoostClassifier else REAL
    return estimator(**{**OPTIONS, **options}).fit(X, y)


def staged(model, Z):
    return list(model.staged_decision_function(Z) if hasattr(model, "classes_") else model.staged_predict(Z))


# --- rounds, stages, warm starts ----------------------------------------------------------------------------

FITS = {
    "path": {},
    "l1": {"reg_lambda": 0.01},
    "forward": {"penalty": "l2", "reg_lambda": 2.0, "mode": "forward"},
    "no intercept": {"penalty": None, "fit_intercept": False},
    "sweeps": {"reg_lambda": 0.003, "reweight_every": 7, "reweight_sweeps": 2},
    "linf": {"penalty": "linf", "alpha_max": 0.02, "spacing": "uniform"},
    "validation": {
        "penalty": "l2",
        "reg_lambda": 5.0,
        "validation_fraction": 0.3,
        "random_state": 1,
        "reweight_every": 9,
    },
}
each_fit = pytest.mark.parametrize("options", FITS.values(), ids=FITS.keys())


@pytest.mark.thinned(4)
@each_fit
@each
def test_the_last_stage_is_the_model_and_each_stage_that_of_as_many_rounds(estimator, options):
    model = fitted(estimator, **options)
    stages = staged(model, X)
    assert len(stages) == model.n_rounds_ > 3
    np.testing.assert_allclose(stages[-1], score(model, X), rtol=1e-12, atol=1e-12)
    if "validation_fraction" in options or not options:
        return  # a shorter fit may find an even earlier round the best, or another strength
    if estimator is QuadBoostClassifier:  # without a link, which each length of a fit has its own of
        options = {**options, "calibration": None}
        stages = staged(fitted(estimator, **options), X)
    for n_rounds in (1, 2, model.n_rounds_ - 1):
        shorter = fitted(estimator, **{**options, "max_rounds": n_rounds})
        np.testing.assert_allclose(stages[n_rounds - 1], score(shorter, X), rtol=0, atol=1e-12)


def test_stages_with_sweeps_do_not_go_voter_by_voter(monkeypatch):
    model = fitted(QuadBoostRegressor, reweight_every=1, max_rounds=30)
    calls, votes = [], Voters.votes
    monkeypatch.setattr(Voters, "votes", lambda self, voter: calls.append(voter) or votes(self, voter))
    assert len(staged(model, X)) == model.n_rounds_
    assert len(calls) <= model.n_rounds_


@each_fit
@each
def test_the_history_has_the_risk_of_every_stage(estimator, options):
    y = Y if estimator is QuadBoostClassifier else REAL
    scores = {"calibration": None} if estimator is QuadBoostClassifier else {}
    model = estimator(**{**OPTIONS, **options, "validation_fraction": None}, **scores).fit(X, y)
    history = model.history_
    risks = [np.mean((y - stage) ** 2) for stage in staged(model, X)]
    np.testing.assert_allclose(history["risk"], risks, rtol=1e-10)
    assert {"voter", "feature", "threshold", "edge", "weight", "risk", "objective"} <= history.keys()
    assert {len(values) for name, values in history.items() if not name.startswith("path_")} == {model.n_rounds_}
    assert np.all(np.diff(history["objective"]) < (0 if options else 1e-12))  # along a path all but rounding


@pytest.mark.thinned(3)
@each_fit
@each
def test_a_warm_start_equals_having_fitted_all_rounds_at_once(estimator, options):
    known = fitted(estimator, **options)
    y = Y if estimator is QuadBoostClassifier else REAL
    model = estimator(**{**OPTIONS, **options}, warm_start=True)
    for max_rounds in (1, 8, 30, 60):
        model.set_params(max_rounds=max_rounds).fit(X, y)
    assert_same_model(model, known)
    np.testing.assert_array_equal(staged(model, X), staged(known, X))
    assert model.stop_reason_ == known.stop_reason_


def test_a_warm_start_of_several_outputs_equals_all_rounds_at_once():
    labels = np.digitize(REAL, [-1, 0, 1])
    known = QuadBoostClassifier(**OPTIONS).fit(X, labels)
    model = QuadBoostClassifier(**{**OPTIONS, "max_rounds": 13}, warm_start=True).fit(X, labels)
    assert_same_model(model.set_params(max_rounds=60).fit(X, labels), known)


def test_a_warm_start_keeps_the_split_of_its_first_fit(monkeypatch):
    splits = []
    split = quadboost.estimators.base._split

    def spy(*arguments):
        splits.append(split(*arguments))
        return splits[-1]

    monkeypatch.setattr(quadboost.estimators.base, "_split", spy)
    model = QuadBoostClassifier(**OPTIONS, validation_fraction=0.3, warm_start=True)  # random_state=None
    model.fit(X, Y)
    model.set_params(max_rounds=90).fit(X, Y)
    known = QuadBoostClassifier(**{**OPTIONS, "max_rounds": 90})
    split = splits[0]
    known.fit(X[~split], Y[~split], X_val=X[split], y_val=Y[split])
    assert_same_model(model, known)


@pytest.mark.parametrize("change", [{"reg_lambda": 0.001}, {"penalty": "l2"}, {"mode": "forward"}, {"thresholds": 10}])
def test_a_warm_start_with_other_parameters_is_refused(change):
    model = QuadBoostClassifier(**OPTIONS, reg_lambda=0.1, warm_start=True).fit(X, Y)
    model.set_params(max_rounds=500, **change)
    (name,) = change
    with pytest.raises(
        ValueError, match=f"warm_start goes on from a fit with {name}=.*, but it is now {change[name]!r}"
    ):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda frame: frame.iloc[:, :2], "2 columns, 'a', 'b'; give the same"),
        (lambda frame: frame.rename(columns={"c": "d"}), "3 columns, 'a', 'b', 'd'; give the same"),
        (lambda frame: frame.to_numpy()[:, :2], "2 columns; give the same"),
    ],
)
def test_a_warm_start_with_other_columns_is_refused(table, message):
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    model = QuadBoostClassifier(max_rounds=20, warm_start=True).fit(frame, Y)
    before = "warm_start goes on from a fit to 3 columns, 'a', 'b', 'c'"
    with pytest.raises(ValueError, match=f"{before}, but X now has {message}"):
        model.fit(table(frame), Y)


def test_a_warm_start_with_fewer_rounds_than_there_are_is_refused():
    model = QuadBoostClassifier(**OPTIONS, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="max_rounds=10"):
        model.set_params(max_rounds=10).fit(X, Y)


def test_a_warm_start_on_a_table_of_another_shape_is_refused():
    model = QuadBoostClassifier(**OPTIONS, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="give the same data, or set warm_start=False"):
        model.fit(X[:-1], Y[:-1])


WEIGHT = 1.0 + np.arange(M) % 3
HALF = slice(0, M // 2)
OTHER_DATA = {
    "rows": {"X": X + 0.125},
    "a value": {"X": np.where(np.arange(M)[:, None] == 7, np.roll(X, 1, axis=0), X)},
    "targets": {"y": np.roll(Y, 1)},
    "weights": {"sample_weight": 1.0 + np.arange(M) % 4},
    "no weights": {"sample_weight": None},
    "a validation set": {"X_val": X[HALF], "y_val": Y[HALF]},
}


@pytest.mark.thinned(6)
@pytest.mark.parametrize("change", OTHER_DATA.values(), ids=OTHER_DATA.keys())
@each
def test_a_warm_start_with_other_data_of_the_same_shape_is_refused(estimator, change):
    data = {"X": X, "y": Y, "sample_weight": WEIGHT}
    model = estimator(**OPTIONS, reg_lambda=0.01, warm_start=True).fit(**data)
    before = score(model, X)
    model.set_params(max_rounds=90)
    with pytest.raises(ValueError, match=r"goes on from a fit to other rows|cannot go on from the earlier run"):
        model.fit(**{**data, **change})
    np.testing.assert_array_equal(score(model, X), before)  # it is still the model that it was
    known = estimator(**{**OPTIONS, "max_rounds": 90}, reg_lambda=0.01).fit(**data)
    assert_same_model(model.fit(**data), known)


@each
def test_a_warm_start_with_other_validation_rows_is_refused(estimator):
    rows, others = slice(0, 200), slice(200, M)
    data = {"X": X[rows], "y": Y[rows], "X_val": X[others], "y_val": Y[others]}
    model = estimator(**OPTIONS, reg_lambda=0.01, warm_start=True).fit(**data)
    model.set_params(max_rounds=90)
    for change in ({"y_val": -Y[others]}, {"X_val": None, "y_val": None}, {"sample_weight_val": WEIGHT[others]}):
        with pytest.raises(ValueError, match="cannot go on from the earlier run"):
            model.fit(**{**data, **change})
    known = estimator(**{**OPTIONS, "max_rounds": 90}, reg_lambda=0.01).fit(**data)
    assert_same_model(model.fit(**data), known)


def test_a_warm_start_takes_the_same_rows_in_another_order():
    order = np.random.default_rng(0).permutation(M)
    model = QuadBoostRegressor(**OPTIONS, warm_start=True).fit(X, REAL)
    model.set_params(max_rounds=90).fit(X[order], REAL[order])
    assert_same_model(model, QuadBoostRegressor(**{**OPTIONS, "max_rounds": 90}).fit(X, REAL))


def test_without_a_warm_start_every_fit_begins_anew():
    model = QuadBoostClassifier(**OPTIONS)
    assert_same_model(model.fit(X, Y).fit(X, Y), QuadBoostClassifier(**OPTIONS).fit(X, Y))


# --- stopping -----------------------------------------------------------------------------------------------


@each
def test_the_number_of_rounds_is_chosen_on_the_validation_rows(estimator):
    y = Y if estimator is QuadBoostClassifier else REAL
    rows, held_out = slice(0, 150), slice(150, M)
    scores = {"calibration": None} if estimator is QuadBoostClassifier else {}
    model = estimator(**{**OPTIONS, "max_rounds": 5_000}, penalty=None, patience=30, **scores)
    model.fit(X[rows], y[rows], X_val=X[held_out], y_val=y[held_out])
    risks = model.history_["validation_risk"]
    assert model.n_rounds_ == np.argmin(risks) + 1
    assert len(risks) == model.n_rounds_ + 30
    assert model.stop_reason_ == "patience"
    assert risks[model.n_rounds_ - 1] == pytest.approx(
        np.mean((score(model, X[held_out]) - y[held_out]) ** 2), rel=1e-10
    )


def test_a_validation_fraction_is_the_same_split_for_the_same_random_state():
    options = {**OPTIONS, "penalty": None, "validation_fraction": 0.25}
    first, same, other = (QuadBoostClassifier(**options, random_state=seed).fit(X, Y) for seed in (0, 0, 1))
    assert_same_model(first, same)
    assert not np.array_equal(first.history_["validation_risk"], other.history_["validation_risk"])
    assert first.ensemble_.info["validation_rows"] == M // 4


def test_rows_held_out_have_the_classes_in_proportion():
    labels = np.where(np.arange(M) < 12, "rare", "common")
    model = QuadBoostClassifier(**OPTIONS, validation_fraction=1 / 3, random_state=0).fit(X, labels)
    assert model.ensemble_.info["rows"] == 200
    constant = QuadBoostClassifier(reg_lambda=100.0, validation_fraction=1 / 3, random_state=0, calibration=None)
    intercept = constant.fit(X, labels).intercept_
    assert intercept == pytest.approx(1 - 2 * 192 / 200 if labels[0] > "common" else 2 * 192 / 200 - 1)


def test_callbacks_can_stop_a_fit_of_several_outputs():
    heard = []
    options = {**OPTIONS, "max_rounds": 10_000, "reg_lambda": 0.01, "callback_every": 5}
    model = QuadBoostClassifier(**options, callbacks=[lambda *news: heard.append(news) or True])
    model.fit(X, np.digitize(REAL, [-1, 1]))
    assert model.stop_reason_ == ["callback"] * 3
    assert model.n_rounds_ == [5, 5, 5]
    assert [round for round, _, _ in heard] == [5, 5, 5]


def test_max_seconds_bounds_all_outputs_together():
    options = {**OPTIONS, "penalty": "l2", "reg_lambda": 1e5, "mode": "forward", "max_rounds": 10**8, "tol": 0.0}
    model = QuadBoostRegressor(**options, max_seconds=0.2).fit(X, np.column_stack([REAL, -REAL, Y]))
    assert model.stop_reason_ == ["max_seconds"] * 3
    assert max(model.n_rounds_) < 10**8


def test_the_dual_gap_bounds_the_distance_from_the_lasso():
    model = fitted(QuadBoostRegressor, reg_lambda=0.05, max_rounds=10_000, tol=1e-10)
    ensemble = model.ensemble_
    stumps = model._voters.describe(np.arange(model._voters.n_voters))
    best = lasso_solution(voter_matrix(X, *stumps, CATEGORIES), REAL, 0.05, None, True)
    objective = np.mean((REAL - model.predict(X)) ** 2) + 2 * 0.05 * np.abs(ensemble.weight).sum()
    assert 0 <= model.dual_gap_ < 1e-9
    assert objective == pytest.approx(best.objective, abs=1e-9)
    early = fitted(QuadBoostRegressor, reg_lambda=0.05, max_rounds=3)
    assert early.dual_gap_ >= early.history_["objective"][-1] - best.objective > 1e-4


# --- too few rounds -------------------------------------------------------------------------------------------


@pytest.fixture
def told():
    """The warnings of too few rounds."""
    with warnings.catch_warnings(record=True) as all_of_them:
        warnings.simplefilter("always")
        yield all_of_them
    assert {warning.category for warning in all_of_them} <= {ConvergenceWarning}


@each
def test_a_path_that_is_cut_short_is_told_with_what_to_do(estimator, told):
    model = fitted(estimator, max_rounds=10)
    assert model.stop_reason_ == "max_rounds"
    assert model.n_rounds_ <= 10
    (warning,) = told
    assert str(warning.message) == (
        "max_rounds=10 was reached before reg_lambda='auto' had an answer; raise max_rounds, "
        "or give reg_lambda a number"
    )
    assert warning.filename == __file__


@pytest.mark.parametrize("options", [{"reg_lambda": 0.003}, {"penalty": "l2"}, {"penalty": "linf"}], ids=str)
@each
def test_too_few_rounds_are_told_with_what_to_do(estimator, options, told):
    model = fitted(estimator, **options, max_rounds=10)
    assert model.stop_reason_ == "max_rounds"
    (warning,) = told
    gap = model.dual_gap_ / np.var(Y if estimator is QuadBoostClassifier else REAL)
    assert str(warning.message) == (
        f"max_rounds=10 was reached at a relative dual gap of {gap:.1e}, above tol=0.0001; "
        "raise max_rounds, or tol if this is near enough"
    )
    assert warning.filename == __file__


def test_the_worst_of_several_outputs_is_told_once(told):
    model = QuadBoostRegressor(**{**OPTIONS, "max_rounds": 10}, reg_lambda=0.003).fit(X, np.column_stack([REAL, Y]))
    (warning,) = told
    gap = max(model.dual_gap_ / np.var([REAL, Y], axis=1))
    assert f"a relative dual gap of {gap:.1e}" in str(warning.message)


QUIET = {
    "enough rounds": {"max_rounds": 100_000},
    "a tol that is met": {"max_rounds": 60, "tol": 0.5, "reg_lambda": 0.1},
    "tol=0": {"tol": 0.0},
    "no gap": {"penalty": None},
    "forward": {"mode": "forward"},
    "validation rows": {"validation_fraction": 0.3, "random_state": 0},
    "another reason": {"callbacks": [lambda *_: True], "callback_every": 5, "reg_lambda": 0.003},
}


@pytest.mark.parametrize("options", QUIET.values(), ids=QUIET.keys())
@each
def test_otherwise_nothing_is_told(estimator, options, told):
    fitted(estimator, **{"max_rounds": 10, **options})
    assert told == []


@pytest.mark.parametrize(
    ("search", "y"), [(QuadBoostClassifierCV, Y), (QuadBoostRegressorCV, REAL)], ids=["classifier", "regressor"]
)
def test_a_search_for_the_number_of_rounds_tells_nothing(search, y, told):
    search(**{**OPTIONS, "max_rounds": 10}, reg_lambda=[0.003], cv=3).fit(X, y)
    assert told == []


@pytest.mark.slow
def test_a_run_at_the_last_round_that_is_near_enough_is_not_too_short(told):
    """It may come near enough between two looks."""
    options = {"reg_lambda": 0.05, "reweight_every": None, "tol": 1e-3}
    known = fitted(QuadBoostRegressor, **options, max_rounds=10_000)
    is_short = []
    for max_rounds in range(known.n_rounds_ - 49, known.n_rounds_):
        told.clear()
        model = fitted(QuadBoostRegressor, **options, max_rounds=max_rounds)
        assert model.stop_reason_ == "max_rounds"
        is_short.append(model.dual_gap_ > 1e-3 * REAL.var())
        assert len(told) == is_short[-1]
    assert set(is_short) == {True, False}


@pytest.mark.parametrize("estimator", [QuadBoostRegressor, QuadBoostRegressorCV])
def test_solving_without_reweight_every_warns_once_where_fit_is_called(estimator):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        estimator(reweight_sweeps="solve", thresholds=5, max_rounds=500).fit(X[:100], REAL[:100])
    assert [(Path(one.filename).name, str(one.message)[:36]) for one in found] == [
        ("test_rounds.py", "reweight_sweeps='solve' does nothing")
    ]


def test_a_run_that_is_too_short_warns_where_fit_is_called():
    with pytest.warns(ConvergenceWarning, match="max_rounds=2 was reached") as found:
        QuadBoostRegressor(reg_lambda=0.01, max_rounds=2).fit(X, REAL)
    assert Path(found[0].filename).name == "test_rounds.py"
