"""With their defaults, the estimators are not worse than scikit-learn's gradient boosting of stumps."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from quadboost import QuadBoostClassifier, QuadBoostRegressor

SPLITS = 20
pytestmark = pytest.mark.slow


def assert_not_worse(ours, theirs):
    """The mean over the splits is no higher: by no multiple of its noise, which a worse model has more of."""
    assert np.mean(ours) <= np.mean(theirs)


def losses(splits, loss, *models):
    # One thread: tables so small are slower with more, by far on a busy machine.
    with threadpool_limits(1):
        return np.array([[loss(model, train, test) for model in models] for train, test in splits]).T


def test_risk_on_diabetes_over_20_splits():
    X, y = load_diabetes(return_X_y=True)

    def risk(model, train, test):
        return np.mean((model.fit(X[train], y[train]).predict(X[test]) - y[test]) ** 2)

    splits = ShuffleSplit(SPLITS, test_size=1 / 3, random_state=0).split(X)
    assert_not_worse(*losses(splits, risk, QuadBoostRegressor(), HistGradientBoostingRegressor(max_depth=1)))


def test_errors_on_digits_over_20_splits():
    X, y = load_digits(return_X_y=True)

    def errors(model, train, test):
        return np.mean(model.fit(X[train], y[train]).predict(X[test]) != y[test])

    splits = StratifiedShuffleSplit(SPLITS, test_size=1 / 3, random_state=0).split(X, y)
    assert_not_worse(*losses(splits, errors, QuadBoostClassifier(), HistGradientBoostingClassifier(max_depth=1)))
