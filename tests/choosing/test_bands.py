"""Bands are the jackknife over folds: its formula, and the size of a bootstrap."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, ShuffleSplit

import quadboost
from quadboost import QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV

RNG = np.random.default_rng(0)
X = pd.DataFrame({"x": RNG.normal(size=300), "city": RNG.choice(["Oslo", "Rome"], 300)})
X.loc[RNG.random(300) < 0.1, "x"] = np.nan
Y = np.nan_to_num(X["x"].to_numpy()) + (X["city"] == "Rome") + RNG.normal(size=300)


def test_errors_are_the_formula_over_the_fits_of_the_folds():
    model = QuadBoostRegressorCV(cv=KFold(4), reg_lambda=[0.02], thresholds_per_fold=True).fit(X, Y)
    shapes = {shape.name: shape for shape in model.shape_functions(bands=True)}
    of_city = []
    for train, _ in KFold(4).split(X):
        plain = QuadBoostRegressor(**model.best_params_)
        plain.fit(X.iloc[train], Y[train])
        city = next((s for s in plain.shape_functions() if s.name == "city"), None)
        values = np.zeros(2) if city is None else city.values[:2]
        share = np.array([(X["city"] == name).mean() for name in ("Oslo", "Rome")])
        of_city.append(values - share @ values)
    known = np.sqrt(3 / 4 * ((np.array(of_city) - np.mean(of_city, axis=0)) ** 2).sum(axis=0))
    np.testing.assert_allclose(shapes["city"].error[:2], known, rtol=0.02, atol=1e-4)


def test_they_travel_with_the_model(tmp_path):
    model = QuadBoostRegressorCV(cv=3).fit(X, Y)
    model.save(tmp_path / "model.h5")
    loaded = quadboost.load(tmp_path / "model.h5")
    for shape, other in zip(model.shape_functions(bands=True), loaded.shape_functions(bands=True), strict=True):
        np.testing.assert_array_equal(shape.error, other.error)
        assert len(shape.error) == len(shape.values) == len(shape.mass)
        assert (shape.error >= 0).all()
        assert shape.error.max() > 0


def test_without_a_partition_there_are_none():
    for cv in (ShuffleSplit(3, random_state=0), [(np.arange(200), np.arange(200, 300))]):
        model = QuadBoostRegressorCV(cv=cv).fit(X, Y)
        with pytest.raises(ValueError, match="this model has no bands"):
            model.shape_functions(bands=True)
    with pytest.raises(ValueError, match="this model has no bands; fit it with cross-validation"):
        QuadBoostRegressor().fit(X, Y).shape_functions(bands=True)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"loss": "logistic"}, {"thresholds_per_fold": True}, {"penalty": "l2"}])
def test_every_way_of_choosing_has_them(more):
    label = np.where(Y > 0.5, "up", "down")
    model = QuadBoostClassifierCV(cv=3, **more).fit(X, label)
    assert all(shape.error.max() > 0 for shape in model.shape_functions(bands=True))
    three = QuadBoostClassifierCV(cv=3, **more).fit(X, np.digitize(Y, [-0.3, 1.0]))
    assert three.ensemble_.bin_error.shape == (len(three.ensemble_.bin_mass), 3)


@pytest.mark.slow
def test_they_are_as_large_as_those_of_a_bootstrap():
    rng = np.random.default_rng(1)
    m, grid = 5000, np.linspace(-2, 2, 41)
    rows = rng.normal(size=(m, 4))
    y = np.sin(2 * rows[:, 0]) + rows[:, 1] + rng.normal(size=m)
    model = QuadBoostRegressorCV().fit(rows, y)

    def centred(ensemble):
        shape = ensemble.shape_functions()[0]
        return shape.values[np.searchsorted(shape.thresholds, grid)] - shape.mass @ shape.values / shape.mass.sum()

    drawn = (rng.integers(0, m, m) for _ in range(40))
    other = [
        centred(QuadBoostRegressor(**model.best_params_).fit(rows[sample], y[sample]).ensemble_) for sample in drawn
    ]
    shape = model.shape_functions(bands=True)[0]
    error = shape.error[np.searchsorted(shape.thresholds, grid)]
    assert 0.6 < np.sqrt(np.mean(error**2) / np.mean(np.var(other, axis=0, ddof=1))) < 1.6
