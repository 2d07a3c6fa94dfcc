"""Contributions on the scale of predictions add up to them."""

from __future__ import annotations

import numpy as np
import pytest
from explained import fitted, several_outputs

from quadboost import Ensemble, QuadBoostRegressor


def test_of_two_classes_they_add_up_to_the_probability_in_the_proportions_of_the_score():
    model, X, _ = fitted()
    score, found = model.explain(X[:50]), model.explain(X[:50], scale="prediction")
    np.testing.assert_allclose(found.total, model.predict_proba(X[:50])[:, 1], rtol=0, atol=1e-14)
    assert found.base == pytest.approx(1 / (1 + np.exp(-score.base)), abs=1e-14)
    np.testing.assert_array_equal(np.sign(found.values), np.sign(score.values))
    ratio = found.values / score.values
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(4), rtol=1e-9)


def test_a_row_at_the_base_has_the_slope_there():
    model = Ensemble([0, 1], [0.0, 0.0], [0.5, 0.5], 0.0, n_features=2, classes=[0, 1], link="logit", loss="logistic",
                     bin_mass=[1.0, 1.0, 0.0, 1.0, 1.0, 0.0])  # fmt: skip
    found = model.explain(np.array([[1.0, -1.0]]), scale="prediction")
    np.testing.assert_allclose(found.values, [[0.125, -0.125]], rtol=1e-6)
    assert found.base == 0.5


def test_of_several_classes_they_add_up_to_each_probability():
    model = several_outputs()
    rows = np.array([[-2.0, "p", 1.0], [0.7, "s", 1.0], [np.nan, "q", 1.0]], dtype=object)
    found = model.explain(rows, scale="prediction")
    np.testing.assert_allclose(found.total, model.predict_proba(rows), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.values.sum(axis=2), 0.0, atol=1e-14)  # what one class gains others lose


def test_of_a_log_link_they_add_up_to_the_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    model = QuadBoostRegressor(loss="poisson").fit(X, rng.poisson(np.exp(X[:, 0])))
    np.testing.assert_allclose(model.explain(X[:9], scale="prediction").total, model.predict(X[:9]), rtol=1e-12)


def test_what_has_no_such_scale_is_refused():
    clipped = several_outputs().replace(link="clipped", loss="squared")
    with pytest.raises(ValueError, match="the link 'clipped' of several classes has no contributions"):
        clipped.explain(np.array([[0.0, "p", 0.0]], dtype=object), scale="prediction")
    with pytest.raises(ValueError, match="scale='odds'"):
        clipped.explain(np.array([[0.0, "p", 0.0]], dtype=object), scale="odds")
