"""Bad input is refused with words that say what was wrong."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from mixed_table import mixed_table, targets
from sklearn.exceptions import NotFittedError

from quadboost import QuadBoostClassifier, QuadBoostRegressor, QuadBoostRegressorCV

NAN, INF = np.nan, np.inf
M = 60
X = mixed_table(M)[:, [0, 1, 2]]
Y = targets(mixed_table(M))
EACH = [QuadBoostClassifier, QuadBoostRegressor]
each = pytest.mark.parametrize("estimator", EACH)


def replaced(values, position, value):
    values = np.array(values, dtype=object if value is None or isinstance(value, str) else None)
    values[position] = value
    return values


# --- parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l3"}, "penalty='l3' is not known; use None, 'l1', 'l2' or 'linf'"),
        ({"penalty": 1}, "penalty=1 is not known"),
        ({"reg_lambda": -0.1}, "reg_lambda=-0.1 must be a finite number that is not negative"),
        ({"reg_lambda": NAN}, "reg_lambda=nan must be"),
        ({"reg_lambda": INF, "penalty": "l2"}, "reg_lambda=inf must be"),
        ({"reg_lambda": "best"}, "reg_lambda='best'"),
        ({"reg_lambda": None}, "reg_lambda=None"),
        ({"penalty": "linf", "alpha_max": 0}, "alpha_max=0 must be a positive finite number"),
        ({"penalty": "linf", "alpha_max": -1.0}, "alpha_max=-1.0 must be"),
        ({"mode": "backward"}, "mode='backward' is not known; use 'corrective' or 'forward'"),
        ({"max_rounds": 0}, "max_rounds=0 must be a whole number of at least 1"),
        ({"max_rounds": -5}, "max_rounds=-5 must be"),
        ({"max_rounds": 10.0}, "max_rounds=10.0 must be"),
        ({"thresholds": 0}, "thresholds=0 must be"),
        ({"thresholds": "some"}, "thresholds='some' is not known; give a whole number, 'auto' or 'all'"),
        ({"spacing": "even"}, "spacing='even' is not known; use 'quantile' or 'uniform'"),
        ({"reweight_every": 0}, "reweight_every=0 must be"),
        ({"reweight_sweeps": 0}, "reweight_sweeps=0 must be"),
        ({"validation_fraction": 0}, "validation_fraction=0 must"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0 must lie between 0 and 1"),
        ({"validation_fraction": "a"}, "validation_fraction='a' must"),
        ({"patience": 0}, "patience=0 must be"),
        ({"tol": -1.0}, "tol=-1.0 must be"),
        ({"cache_bytes": 0}, "cache_bytes=0 must be"),
        ({"min_category_count": 0}, "min_category_count=0 must be"),
        ({"max_seconds": -1}, "max_seconds=-1 must be"),
        ({"max_seconds": "1 h"}, "max_seconds='1 h' must be"),
        ({"callback_every": 0}, "callback_every=0 must be"),
        ({"tol": 10**400}, "tol=10{59} must be"),
        ({"callbacks": [1]}, r"callbacks=\[1\] must be a list of functions, if only of one: \[f\]"),
        ({"callbacks": print}, "callbacks=<built-in function print> must be a list of functions"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": "many"}, "n_jobs='many'"),
        ({"n_jobs": 2.5}, "n_jobs=2.5"),
    ],
)
@each
def test_a_parameter_that_means_nothing_is_refused_by_name_and_value(estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "class_weight='even' is not known; use 'balanced'|class_weight='even'"),
        ({2: 1.0}, "class_weight names 2, which is not a class; the classes are"),
        ({1: -1.0}, "class_weight=-1.0 must be a positive finite number"),
        ({1: NAN}, "class_weight=nan must be"),
        ({1: "a"}, "class_weight='a' must be"),
        ([1.0, 2.0], "class_weight"),
        (3.0, "class_weight"),
    ],
)
def test_class_weights_that_mean_nothing_are_refused(class_weight, message):
    with pytest.raises(ValueError, match=message):
        QuadBoostClassifier(class_weight=class_weight).fit(X, Y.astype(int))


# --- X ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (replaced(X, (3, 1), INF), ValueError, "feature 1 holds inf; replace infinity"),
        (replaced(X, (3, 1), -INF), ValueError, "feature 1 holds -inf; replace infinity"),
        (
            replaced(X, (3, 1), "tall"),
            ValueError,
            "Column 1 holds text, such as 'tall'; convert it to numbers or declare",
        ),
        (replaced(X.astype(object), (3, 1), [1]), TypeError, r"Column 1 holds \[1\]"),
        (replaced(X.astype(object), (3, 1), datetime.date(2020, 1, 1)), TypeError, "Column 1 holds a date or time"),
        (X + 1j, ValueError, "Complex data not supported"),
        (X[:, 0], ValueError, "Expected 2D array, got 1D array instead"),
        (X[None], ValueError, "Expected 2D array, got 3D array instead|X has 1 rows and y has 60"),
        (X[:0], ValueError, "X has 0 rows"),
        (X[:, :0], ValueError, r"0 feature\(s\)"),
        (X[:-1], ValueError, "X has 59 rows and y has 60; give one target for every row"),
        ([[1.0, 2.0]] * 59 + [[1.0]], ValueError, "not a table"),
        (None, ValueError, "X is None, and no table; give an array, a list of rows or a frame"),
        ("table.csv", ValueError, "X is 'table.csv', and no table"),
        ({"a": [1] * M}, ValueError, r"X is a dict; make a frame of it, such as pandas.DataFrame\(X\)"),
        (pl.LazyFrame({"a": [1] * M}), TypeError, r"X is a lazy LazyFrame; use X.collect\(\)"),
        (iter(X), TypeError, r"X is a iterator, which can be read only once; use list\(X\)"),
        (X[:, :, None], ValueError, r"got 3D array .*; give rows and columns, such as X.reshape\(len\(X\), -1\)"),
        (pd.DataFrame({"a": X[:, 0], "b b": replaced(X[:, 1], 3, INF)}), ValueError, "Column 'b b' holds inf; replace"),
        (
            pl.DataFrame({"t": ["u"] * M, "b b": replaced(X[:, 1], 3, INF)}),
            ValueError,
            "Column 'b b' holds inf; replace",
        ),
    ],
)
@each
def test_a_table_that_cannot_be_learnt_from_is_refused(estimator, table, error, message):
    with pytest.raises(error, match=message):
        estimator().fit(table, Y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_objects_that_are_not_numbers_are_refused_by_the_name_of_their_column(make):
    with pytest.raises((TypeError, ValueError), match="Column 'when'"):
        QuadBoostClassifier().fit(make({"x": X[:, 0], "when": [datetime.datetime(2020, 1, 1)] * M}), Y)


@pytest.mark.parametrize("unknown", ["city", 7, -1, 1.5, None])
def test_an_unknown_column_among_the_categories_is_refused(unknown):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match=f"categorical_features has {unknown!r}, which is no column of X"):
        QuadBoostClassifier(categorical_features=["a", unknown]).fit(frame, Y)


@each
def test_a_table_at_predict_must_be_like_that_of_the_fit(estimator):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = estimator(max_rounds=5).fit(frame, Y)
    name = estimator.__name__
    with pytest.raises(ValueError, match=f"X lacks columns that {name} was trained on: 'b'"):
        model.predict(frame.rename(columns={"b": "B"}))
    with pytest.raises(ValueError, match=f"X has columns that {name} was not trained on: 'd'"):
        model.predict(frame.assign(d=1.0))
    for table in (X[:, :2], frame.iloc[:, :2].to_numpy()):
        with (
            pytest.warns(UserWarning, match="X does not have valid feature names"),
            pytest.raises(ValueError, match=f"X has 2 features, but {name} is expecting 3 features"),
        ):
            model.predict(table)
    with pytest.raises(ValueError, match="Column 'a' holds text"):
        model.predict(frame.assign(a="tall"))
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(frame.iloc[:0])


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba", "staged_decision_function"])
def test_a_model_that_is_not_fitted_says_so(method):
    with pytest.raises(NotFittedError):
        list(getattr(QuadBoostClassifier(), method)(X))
    with pytest.raises(NotFittedError):
        QuadBoostRegressor().save("nowhere.h5")


# --- y ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ones(M), "only one class, .*1.*; a classifier needs at least two classes"),
        (["yes"] * M, "only one class, .*yes.*"),
        (None, "y to be passed"),
        (replaced(Y, 3, NAN), "NaN"),
        (replaced(Y, 3, INF), "infinity"),
        (replaced(Y, 3, None), "missing labels; leave those rows out"),
        (replaced(np.where(Y > 0, "a", "b").astype(object), 3, NAN), "missing labels|NaN"),
        (pd.Series(np.where(Y > 0, "a", "b"), dtype="string").mask(np.arange(M) == 3), "missing labels"),
        (pd.Series(Y).astype("Int64").mask(np.arange(M) == 3), "missing labels|NaN"),
        (pd.Series(np.where(Y > 0, "a", "b"), dtype="category").mask(np.arange(M) == 3), "missing labels|NaN"),
        (X[:, 0], "continuous"),
        (np.column_stack([Y, Y]), "1d array|multi"),
        (Y[:-1], "X has 60 rows and y has 59"),
    ],
)
def test_labels_that_cannot_be_learnt_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        QuadBoostClassifier().fit(X, labels)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "y to be passed"),
        (replaced(Y, 3, NAN), "y contains NaN"),
        (replaced(Y, 3, INF), "y contains infinity"),
        (replaced(Y, 3, -INF), "y contains infinity"),
        (replaced(Y, 3, None), "y contains NaN"),
        (replaced(Y, 3, "high"), "high"),
        (Y[:-1], "X has 60 rows and y has 59"),
        (Y[:, None, None], "dim"),
        (Y + 1j, "Complex"),
        (np.empty((M, 0)), "y"),
        (Y * 1e300, "y|large"),  # their squares are infinite
        (X[:, 0] * 1e-160, "y has a range of .*e-160; rescale it to one above 1e-150"),  # and these are zero
    ],
)
def test_targets_that_cannot_be_learnt_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        QuadBoostRegressor().fit(X, values)


# --- weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (replaced(np.ones(M), 3, -0.5), "sample_weight holds -0.5; weights must not be negative"),
        (np.zeros(M), "sample_weight is zero for every row"),
        (replaced(np.ones(M), 3, NAN), "sample_weight contains NaN"),
        (replaced(np.ones(M), 3, INF), "sample_weight contains infinity"),
        (np.ones(M - 1), r"sample_weight has shape \(59,\); it must hold one number for each of 60 rows"),
        (np.ones((M, 1)), r"sample_weight has shape \(60, 1\)"),
        (["heavy"] * M, "heavy"),
        (-1.0, "sample_weight holds -1.0"),
        (np.full(M, 1e308), "sample_weight"),  # their sum is infinite
        ("balanced", "sample_weight is 'balanced', not numbers; for balanced classes give class_weight='balanced'"),
    ],
)
@each
def test_weights_that_mean_nothing_are_refused(estimator, weight, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match=message.replace("sample_weight", "sample_weight_val")):
        estimator().fit(X, Y, X_val=X, y_val=Y, sample_weight_val=weight)


def test_weights_that_leave_one_class_are_refused():
    with pytest.raises(ValueError, match="only one class"):
        QuadBoostClassifier().fit(X, Y, sample_weight=(Y > 0).astype(float))


# --- validation ---------------------------------------------------------------------------------------------


@each
def test_a_validation_set_needs_table_and_targets(estimator):
    with pytest.raises(ValueError, match="X_val was given without y_val; a validation set needs both"):
        estimator().fit(X, Y, X_val=X)
    with pytest.raises(ValueError, match="y_val was given without X_val; a validation set needs both"):
        estimator().fit(X, Y, y_val=Y)
    with pytest.raises(ValueError, match="sample_weight_val"):
        estimator().fit(X, Y, sample_weight_val=np.ones(M))


@each
def test_a_validation_set_must_fit_the_training_set(estimator):
    with pytest.raises(ValueError, match="X_val has 59 rows and y_val has 60"):
        estimator().fit(X, Y, X_val=X[1:], y_val=Y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        estimator().fit(X, Y, X_val=X[:, 1:], y_val=Y)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"X lacks columns that .* was trained on: 'c'"):
        estimator().fit(frame, Y, X_val=frame.rename(columns={"c": "C"}), y_val=Y)


def test_a_label_that_training_does_not_have_is_refused_in_validation():
    for label in (7, "no"):
        with pytest.raises(ValueError, match=r"y_val holds the label .*, which is none of those trained on"):
            QuadBoostClassifier().fit(X, Y.astype(int), X_val=X, y_val=[label] * M)


def test_validation_targets_must_be_as_many_as_the_targets():
    with pytest.raises(ValueError, match="y_val has 2 outputs and y has 1"):
        QuadBoostRegressor().fit(X, Y, X_val=X, y_val=np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match=r"Input y_val contains NaN. The first is in row 3; leave such rows out"):
        QuadBoostRegressor().fit(X, Y, X_val=X, y_val=replaced(Y, 3, NAN))


@pytest.mark.parametrize("tol", [1e308, 1e200, 5e-324])
def test_any_tolerance_that_is_a_number_is_taken(tol):
    assert QuadBoostRegressor(tol=tol, max_rounds=3).fit(X, X[:, 0]).n_rounds_ <= 3


def test_thousands_of_threads_are_no_error():
    known, found = (QuadBoostRegressor(max_rounds=9, n_jobs=n).fit(X, X[:, 0]).predict(X) for n in (1, 100_000))
    np.testing.assert_array_equal(found, known)


@pytest.mark.slow
def test_weights_far_apart_are_no_error_in_a_cross_validation():
    weight = np.where(np.arange(M) % 2, 1e126, 1e-140)
    known = QuadBoostRegressorCV(max_rounds=9).fit(X[1::2], X[1::2, 0])
    found = QuadBoostRegressorCV(max_rounds=9).fit(X, X[:, 0], weight)
    np.testing.assert_allclose(found.predict(X), known.predict(X))
