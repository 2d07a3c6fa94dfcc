"""Contributions add up to the score, and are exact Shapley values."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from explained import fitted, several_outputs, shapley

import quadboost
from quadboost import Ensemble, QuadBoostClassifier, QuadBoostRegressor

GOLDEN_1 = Path(__file__).parents[1] / "data" / "model-v1.h5"


def test_contributions_and_base_add_up_to_the_score_on_all_kinds_of_rows():
    model, X, _ = fitted()
    rows = pd.concat(
        [X[:50], pd.DataFrame({"x": [np.nan, 1e300], "tail": [-1e308, np.nan], "city": ["Bern", None], "z": [9, 0]})]
    )
    found = model.explain(rows)
    score = model.decision_function(rows)
    assert found.terms == ("x", "tail", "city", "z")
    assert found.values.shape == (52, 4)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), score, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(found.total, found.base + found.values.sum(axis=1))


def test_the_mean_contribution_over_the_training_rows_is_zero_and_the_base_their_mean_score():
    model, X, _ = fitted()
    found = model.explain(X)
    np.testing.assert_allclose(found.values.mean(axis=0), 0.0, atol=1e-12)
    assert found.base == pytest.approx(model.decision_function(X).mean(), abs=1e-12)
    assert found.reference == "the training rows"


def test_weights_of_rows_count():
    rng = np.random.default_rng(1)
    X, y, w = rng.normal(size=(300, 2)), rng.normal(size=300), rng.integers(1, 5, 300) / 2
    y += X[:, 0]
    model = QuadBoostRegressor().fit(X, y, w)
    assert model.explain(X).base == pytest.approx(np.average(model.predict(X), weights=w), abs=1e-12)


def test_contributions_of_stumps_are_shapley_values_by_definition():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) ** 2 + np.nan_to_num(X[:, 1]) + 0.1 * rng.normal(size=60)
    model = QuadBoostRegressor(reg_lambda=0.001).fit(X, y)
    by_feature = model.explain(X[:5]).by_feature()
    for i in range(5):
        np.testing.assert_allclose(by_feature[i], shapley(model.predict, X[i], X), rtol=0, atol=1e-12)


@pytest.mark.oracle("shap")
def test_contributions_of_stumps_are_those_of_the_exact_explainer_of_shap():
    import shap

    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 5))
    y = (np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=80) > 0).astype(int)
    model = QuadBoostClassifier(reg_lambda=0.003).fit(X, y)
    masker = shap.maskers.Independent(X, max_samples=len(X))
    known = shap.explainers.Exact(model.decision_function, masker)(X[:8])
    found = model.explain(X[:8])
    np.testing.assert_allclose(found.by_feature(), known.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.base, known.base_values[0], rtol=0, atol=1e-12)


def test_another_background_moves_the_base_alone():
    model, X, _ = fitted()
    found, other = model.explain(X[:20]), model.explain(X[:20], background=X[:100])
    assert other.reference == "the background"
    assert other.base == pytest.approx(model.decision_function(X[:100]).mean(), abs=1e-12)
    np.testing.assert_allclose(other.total, found.total, rtol=0, atol=1e-12)
    assert np.ptp(other.values - found.values, axis=0).max() < 1e-12
    with pytest.raises(ValueError, match="0 sample"):
        model.explain(X, background=X[:0])


def test_a_model_without_counts_explains_from_the_intercept_and_says_what_it_cannot():
    model = quadboost.load(GOLDEN_1)
    rows = np.array([[1.0, "a", 0.0, 0.0], [None, None, None, None]], dtype=object)
    found = model.explain(rows)
    assert (found.reference, found.base) == ("the intercept", model.intercept)
    np.testing.assert_allclose(found.total, model.decision_function(rows), rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match=r"not have counts of its training rows.*explain\(X, background=X_train\)"):
        found.by_feature()
    assert model.explain(rows, background=rows).by_feature().shape == (2, 4)


def test_several_outputs_have_contributions_each():
    model = several_outputs()
    rows = np.array([[-2.0, "p", 1.0], [0.0, "s", 1.0], [np.nan, "never", 1.0]], dtype=object)
    found = model.explain(rows)
    assert found.values.shape == (3, 2, 3)
    assert found.base.shape == (3,)
    np.testing.assert_allclose(found.total, model.decision_function(rows), rtol=0, atol=1e-14)
    assert found.by_feature().shape == (3, 3, 3)
    assert not found.by_feature()[:, 2].any()
    frame = found.to_frame()
    assert frame.shape == (3, 3 * 4)
    np.testing.assert_allclose(frame["b"]["score"], found.total[:, 1])


def test_reasons_are_words_the_largest_first():
    model = Ensemble(
        [0, 0, 1], [1.0, 2.0, 0.0], [1.0, 0.5, -2.0], 0.0, kind=[0, 0, 1], n_features=3,
        feature_names=["age", "job", "unused"], categories={1: [["nurse"], ["clerk", "cook"]]},
        bin_mass=[1.0, 1.0, 2.0, 0.0, 3.0, 1.0, 0.0, 0.0],
    )  # fmt: skip
    rows = np.array([[3.0, "nurse", 0.0], [1.5, "cook", 0.0], [np.nan, "what", 0.0]], dtype=object)
    found = model.explain(rows)
    assert found.reasons(2) == [
        ["age = 3 raises the score by 1", "job = nurse lowers the score by 1"],
        ["job = clerk, cook raises the score by 3"],  # the age adds nothing
        ["job = a level never seen raises the score by 3", "age = missing lowers the score by 0.5"],
    ]
    assert found.reasons(1, direction="down")[0] == ["job = nurse lowers the score by 1"]
    assert found.reasons(5, direction="up")[1] == ["job = clerk, cook raises the score by 3"]
    assert found.reasons(0) == [[], [], []]
    with pytest.raises(ValueError, match="direction='sideways'"):
        found.reasons(direction="sideways")
    with pytest.raises(ValueError, match=r"n=2\.5 must be a whole number of at least 0"):
        found.reasons(2.5)
    with pytest.raises(ValueError, match="output=1 is not known; there are 1, counted from 0"):
        found.reasons(output=1)


def test_infinite_values_have_reasons_too():
    model = Ensemble([0], [1.0], [1.0], 0.0, n_features=1, feature_names=["x"])
    assert model.explain([[np.inf], [-np.inf]]).reasons() == [
        ["x = inf raises the score by 1"], ["x = -inf lowers the score by 1"],
    ]  # fmt: skip


def test_a_package_that_is_missing_is_named_with_the_remedy(monkeypatch):
    model, X, _ = fitted()
    found = model.explain(X)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="this needs pandas, which is not installed; pip install pandas"):
        found.to_frame()


def test_a_frame_keeps_the_index():
    model, X, _ = fitted()
    frame = model.explain(X[10:13]).to_frame()
    assert frame.index.tolist() == [10, 11, 12]
    assert frame.columns.tolist() == ["base", "x", "tail", "city", "z", "score"]
    np.testing.assert_allclose(frame["score"], model.decision_function(X[10:13]), atol=1e-12)


@pytest.mark.oracle("shap")
def test_shap_takes_contributions_over_with_text():
    import shap

    model, X, _ = fitted()
    found = model.explain(X[:6]).to_shap()
    assert isinstance(found, shap.Explanation)
    assert found.feature_names == ["x", "tail", "city", "z"]
    assert found.data[0, 2] == X["city"][0]
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.decision_function(X[:6]), atol=1e-12)


def test_one_row_needs_no_brackets_and_a_constant_has_no_terms():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 2))
    model = QuadBoostRegressor().fit(X, X[:, 0])
    assert len(model.explain(X[0])) == 1
    constant = Ensemble([], [], [], 3.5, n_features=2)
    found = constant.explain(X[:4])
    assert (found.values.shape, found.base) == ((4, 0), 3.5)
    assert found.reasons() == [[], [], [], []]


@pytest.mark.oracle("lightgbm")
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"n_trees": 100, "penalty": "l1"}], ids=["stumps", "rules"])
def test_contributions_are_far_faster_than_those_of_lightgbm(options):
    """50 times and more, on 100,000 x 30 against 100 trees of 31 leaves, in CPU time; 20 on a busy machine."""
    import time

    import lightgbm

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 30))
    y = (X[:, :8].sum(axis=1) + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 9]) + rng.normal(size=len(X)) > 0).astype(int)
    model = QuadBoostClassifier(**options).fit(X, y)
    trees = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=31, n_jobs=1, verbose=-1).fit(X, y)

    def seconds(function) -> float:
        start = time.process_time()
        function()
        return time.process_time() - start

    ours = min(seconds(lambda: model.explain(X).by_feature()) for _ in range(3))
    theirs = seconds(lambda: trees.booster_.predict(X[:5000], pred_contrib=True)) * len(X) / 5000
    print(f"{model.ensemble_.n_rules} rules, {theirs / ours:.0f} times faster")
    assert theirs > 20 * ours, (theirs, ours)
