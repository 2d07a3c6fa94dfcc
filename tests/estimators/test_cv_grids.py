"""Which candidates a search tries, how it is told, and what it refuses."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from mixed_table import mixed_table, targets
from sklearn.datasets import load_diabetes
from sklearn.metrics import accuracy_score, make_scorer, max_error
from sklearn.model_selection import (
    KFold,
    cross_val_score,
)

from quadboost import (
    QuadBoostClassifier,
    QuadBoostClassifierCV,
    QuadBoostRegressor,
    QuadBoostRegressorCV,
)

M = 240
X = mixed_table(M)
LABELS = np.where(targets(X) > 0, "yes", "no")
REAL = targets(X) + np.random.default_rng(2).normal(size=M)
WEIGHT = np.random.default_rng(3).random(M) + 0.1
PLAIN = {QuadBoostClassifierCV: QuadBoostClassifier, QuadBoostRegressorCV: QuadBoostRegressor}
each = pytest.mark.parametrize("search", PLAIN)
OPTIONS = {"thresholds": 12, "categorical_features": [4], "min_category_count": 1}
GRID = {"reg_lambda": [0.3, 0.05, 0.01], "rounds": [1, 4, 20, 60]}


def y_of(search):
    return LABELS if search is QuadBoostClassifierCV else REAL


def fitted(search, weight=None, groups=None, **changes):
    return search(**{**OPTIONS, **GRID, **changes}).fit(X, y_of(search), weight, groups)


# --- grids --------------------------------------------------------------------------------------------------


def test_grids_by_number():
    model = fitted(
        QuadBoostRegressorCV, penalty=["l1", "l2", "linf"], reg_lambda=4, alpha_max=3, rounds=5, max_rounds=100
    )
    frame = pd.DataFrame(model.cv_results_)
    assert frame.groupby("param_penalty")["param_reg_lambda"].nunique().to_dict() == {"l1": 4, "l2": 4, "linf": 0}
    assert frame["param_alpha_max"].nunique() == 3
    assert sorted(frame["param_max_rounds"].unique()) == [1, 3, 10, 32, 100]


def test_a_grid_for_each_penalty():
    model = fitted(QuadBoostRegressorCV, penalty=["l1", "l2"], reg_lambda={"l1": [0.1], "l2": [1.0, 2.0]})
    frame = pd.DataFrame(model.cv_results_)
    assert frame.groupby("param_penalty")["param_reg_lambda"].unique().map(list).to_dict() == {
        "l1": [0.1],
        "l2": [2, 1],
    }


@pytest.mark.slow
def test_every_round_counts_where_none_are_named(monkeypatch):
    monkeypatch.setattr("quadboost.choosing.search.HOPELESS", np.inf)  # no run is given up
    model = fitted(QuadBoostRegressorCV, penalty=None, rounds=None, max_rounds=70)
    assert model.cv_results_["param_max_rounds"].tolist() == list(range(1, 71))
    judged = fitted(QuadBoostClassifierCV, penalty=None, rounds=None, max_rounds=70, scoring="error")
    assert 20 < len(judged.cv_results_["param_max_rounds"]) <= 50


@pytest.mark.slow
def test_a_callable_scores():
    calls = []

    def scorer(estimator, X, y):
        calls.append(len(X))
        return accuracy_score(y, estimator.predict(X))

    found = fitted(QuadBoostClassifierCV, scoring=scorer, cv=4)
    named = fitted(QuadBoostClassifierCV, scoring="accuracy", cv=4)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], named.cv_results_["mean_test_score"])
    assert set(calls) == {60}


@pytest.mark.slow
def test_weights_go_to_a_scorer_that_takes_them():
    weighted = fitted(QuadBoostClassifierCV, WEIGHT, scoring="accuracy").cv_results_["mean_test_score"]
    error = fitted(QuadBoostClassifierCV, WEIGHT, scoring="error").cv_results_["mean_test_score"]
    np.testing.assert_allclose(weighted, 1 - error, atol=1e-12)
    fitted(QuadBoostRegressorCV, WEIGHT, scoring=make_scorer(max_error, greater_is_better=False))


@pytest.mark.slow
def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("quadboost.choosing.folds.VOTERS_FOR_THREADS", 0)
    for scoring in ("risk", "error", "roc_auc"):
        one, two = (fitted(QuadBoostClassifierCV, scoring=scoring, n_jobs=n) for n in (1, 2))
        np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_a_search_shows_its_runs(capfd):
    fitted(QuadBoostClassifierCV, verbose=1)
    assert "run" in capfd.readouterr().err
    fitted(QuadBoostClassifierCV)
    assert capfd.readouterr() == ("", "")


def test_a_search_for_a_log_writes_lines_now_and_then(capfd, monkeypatch):
    monkeypatch.setattr("quadboost.common.progress.SECONDS_BETWEEN_LINES", 1e9)
    fitted(QuadBoostClassifierCV, verbose=2)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr("quadboost.common.progress.SECONDS_BETWEEN_LINES", 0.0)
    model = fitted(QuadBoostClassifierCV, verbose=2)
    n_runs = 5 * len({*model.cv_results_["param_reg_lambda"]})
    assert capfd.readouterr().err.splitlines()[-1].startswith(f"run {n_runs} of {n_runs}")


def test_an_error_of_the_scorer_is_told(monkeypatch):
    def scorer(estimator, X, y):
        raise RuntimeError("not today")

    for threads in (1, 2):
        monkeypatch.setattr("quadboost.choosing.folds.VOTERS_FOR_THREADS", 0)
        with pytest.raises(RuntimeError, match="not today"):
            fitted(QuadBoostClassifierCV, scoring=scorer, n_jobs=threads)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": "l3"}, "penalty='l3' is not known; use 'l1', 'l2', 'linf' or None"),
        ({"penalty": []}, "must name at least one penalty"),
        ({"penalty": ["l1", "l1"]}, "none twice"),
        ({"reg_lambda": 0.1}, "reg_lambda=0.1 must be a list of values, or a whole number: how many to try"),
        ({"reg_lambda": "auto"}, "reg_lambda='auto' must be a list of values"),
        ({"reg_lambda": [-1.0]}, "a value of reg_lambda=-1.0 must be a positive"),
        ({"reg_lambda": {"l2": [1.0]}}, "reg_lambda has no values for 'l1'"),
        (
            {"reg_lambda": {"l1": [1.0], "L2": [1.0]}},
            "reg_lambda has values for 'L2'; it may have them for 'l1' and 'l2'",
        ),
        ({"penalty": "linf", "alpha_max": 1}, "alpha_max=1 must be a whole number of at least 2"),
        ({"rounds": 0}, "rounds=0 must be"),
        ({"rounds": [0]}, "a value of rounds=0 must be"),
        ({"rounds": []}, r"rounds=\[\] must be None, a whole number"),
        ({"rounds": "all"}, "rounds='all' must be None, a whole number"),
        ({"rounds": None, "max_rounds": 0}, "max_rounds=0 must be"),
        ({"cv": 1}, "cv=1 must be a whole number of at least 2"),
        ({"cv": []}, "gives no split"),
        ({"cv": KFold}, "cv=KFold is a class; give an object of it"),
        ({"cv": [(np.arange(5), [M])]}, f"split 0 of cv must be two arrays of row numbers below {M}"),
        ({"cv": [(np.arange(5),)]}, "split 0 of cv must be two arrays of row numbers"),
        ({"cv": [(np.arange(5), ["a"])]}, "split 0 of cv must be two arrays of row numbers"),
        ({"cv": [(np.arange(5), [])]}, "no row to train on, or none to judge by"),
        ({"scoring": "beauty"}, "beauty"),
        ({"scoring": None}, "scoring=None must be 'risk', 'error', the name of a scorer, or a callable"),
        ({"one_standard_error": 2}, "one_standard_error=2 is not known"),
        ({"mode": "backward"}, "mode='backward' is not known"),
        ({"thresholds": 0}, "thresholds=0"),
        ({"min_category_count": 0}, "min_category_count=0"),
    ],
)
@each
def test_what_makes_no_sense_is_refused(search, change, message):
    with pytest.raises(ValueError, match=message):
        fitted(search, **change)


def test_a_regression_has_no_error_rate():
    with pytest.raises(ValueError, match="for a regression use 'risk' or a scorer"):
        fitted(QuadBoostRegressorCV, scoring="error")


def test_one_class_is_too_few():
    with pytest.raises(ValueError, match="only one class"):
        QuadBoostClassifierCV().fit(X, np.full(M, "a"))


def test_groups_must_fit_the_rows():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted(QuadBoostClassifierCV, groups=np.arange(M - 1))


# --- pictures -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    penalties = ["l1", "l2", "linf", None]
    model = fitted(QuadBoostRegressorCV, penalty=penalties, reg_lambda=4, alpha_max=4, rounds=None, max_rounds=50)
    for penalty in [*penalties, "chosen"]:
        ax = model.plot(penalty)
        ax.figure.savefig(io.BytesIO(), format="png")
        assert ax.get_xlabel() == "rounds"
    with pytest.raises(ValueError, match="penalty='l0' is not known"):
        model.plot("l0")
    pyplot.close("all")


@pytest.mark.slow
def test_the_choice_is_good():
    data = load_diabetes()
    chosen = cross_val_score(QuadBoostRegressorCV(), data.data, data.target, cv=5, scoring="r2").mean()
    plain = cross_val_score(QuadBoostRegressor(), data.data, data.target, cv=5, scoring="r2").mean()
    assert chosen > max(0.42, plain - 0.02)
