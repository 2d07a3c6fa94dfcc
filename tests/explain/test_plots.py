"""Plots draw the numbers of the model; each returns its axes."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from explained import fitted, several_outputs

mpl.use("Agg")
import matplotlib.pyplot as plt

from quadboost import Ensemble, QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor
from quadboost.explain.pairs import pair_of


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def curve_of(ax):
    return next(line for line in ax.lines if line.get_label() == "_shape").get_xydata()


def test_a_shape_is_drawn_from_end_to_end():
    model = Ensemble([0, 0], [1.0, 3.0], [0.5, 0.25], 0.0, n_features=1, feature_names=["age"])
    ax = model.plot_shape("age")
    x, y = curve_of(ax).T
    assert y.tolist() == [-0.75, -0.75, 0.25, 0.25, 0.75, 0.75]
    assert x[1:5].tolist() == [1.0, 1.0, 3.0, 3.0]
    assert x[0] < 1.0
    assert x[-1] > 3.0
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "added to the score\n(units of the target)")
    assert ax.get_legend().get_texts()[0].get_text() == "missing"


def test_a_band_is_drawn_where_there_is_one():
    _, X, y = fitted()
    model = QuadBoostClassifierCV(cv=3).fit(X, y)
    ax = model.plot_shape("x")
    assert "± 1 standard error" in [text.get_text() for text in ax.get_legend().get_texts()]
    (band,) = [drawn for drawn in ax.collections if drawn.get_label() == "± 1 standard error"]
    shape = next(shape for shape in model.shape_functions(bands=True) if shape.name == "x")
    heights = np.ptp(band.get_paths()[0].vertices[:, 1])
    assert heights >= 2 * shape.error.max() * 0.999


def test_levels_are_bars():
    model, _, _ = fitted()
    ax = model.plot_shape("city")
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[0] == "never seen"
    assert labels[-1].startswith("Rome")
    assert ax.get_xlabel() == "added to the score (log-odds of yes)"


def test_a_heavy_tail_has_another_axis_and_unused_features_say_so():
    cuts = np.geomspace(0.01, 1e5, 9)
    tail = Ensemble(np.zeros(9), cuts, np.ones(9), 0.0, n_features=1)
    assert tail.plot_shape(0).get_xscale() == "log"
    assert tail.replace(threshold=cuts - 1.0).plot_shape(0).get_xscale() == "asinh"
    constant = Ensemble([], [], [], 1.0, n_features=2)
    assert "not used by this model" in constant.plot_shape(1).get_title(loc="left")


def test_importances_are_bars_in_order():
    model, _, _ = fitted()
    ax = model.plot_importances(n=3)
    assert [bar.get_width() for bar in ax.patches] == [term.importance for term in model.importances()[:3]]
    assert [text.get_text() for text in ax.get_yticklabels()] == [term.term for term in model.importances()[:3]]
    assert ax.get_xlabel() == "mean absolute contribution (log-odds of yes)"


def test_a_waterfall_goes_from_the_base_to_the_score():
    model, X, _ = fitted()
    explanation = model.explain(X[:3])
    ax = explanation.plot(1, n=2)
    bars = ax.patches
    assert len(bars) == 3  # the third: all others together
    assert bars[0].get_x() == pytest.approx(explanation.base)
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(model.decision_function(X[:3])[1])
    assert ax.get_yticklabels()[-1].get_text() == "2 others"
    assert abs(bars[0].get_width()) >= abs(bars[1].get_width())
    with pytest.raises(ValueError, match="row=7 is not one of the 3 rows"):
        explanation.plot(7)


def test_of_several_outputs_one_is_drawn():
    model = several_outputs()
    rows = np.array([[2.0, "p", 1.0]], dtype=object)
    ax = model.explain(rows).plot()
    best = int(model.decision_function(rows)[0].argmax())
    assert ax.get_xlabel() == f"score of {'abc'[best]}, in logs"
    with pytest.raises(ValueError, match="must say which of the 3 scores"):
        model.plot_shape(0)
    assert len(curve_of(model.plot_shape(0, output=2))) == 6


def test_calibration_is_for_two_classes():
    model, X, y = fitted()
    ax = model.plot_calibration(X, y, n_bins=5)
    assert len(ax.lines[1].get_xdata()) == 5
    assert ax.get_xlabel() == "predicted probability of yes"
    regression = QuadBoostRegressor().fit(X[["x", "z"]], np.arange(len(X)) % 7)
    with pytest.raises(ValueError, match="for two classes; this model has targets"):
        regression.plot_calibration(X, y)


def test_given_axes_are_drawn_on():
    model, _, _ = fitted()
    _, ax = plt.subplots()
    assert model.plot_shape("x", ax=ax) is ax
    assert model.plot_importances(ax=ax) is ax


def test_rules_are_bars_and_pairs_heat_maps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    model = QuadBoostRegressor(n_trees=10, max_leaves=5).fit(X, np.sign(X[:, 0] * X[:, 2]))
    ax = model.plot_rules(n=4)
    rules = model.ensemble_.rules()[:4]
    assert [bar.get_width() for bar in ax.patches] == [2 * rule.weight for rule in rules]
    assert f"{100 * rules[0].support:.1f} %" in ax.get_yticklabels()[0].get_text()
    ax = model.plot_pair(0, 2)
    np.testing.assert_array_equal(ax.images[0].get_array(), pair_of(model.ensemble_, 0, 2).values)
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("feature 0", "feature 2")
    tall, wide = ax.images[0].get_array().shape
    assert min(tall, wide) > 2
    light = np.array(ax.images[0].cmap(np.linspace(0, 1, 9)))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(light) > 0).all()  # what lowers the score is darker, also in grey
    with pytest.raises(ValueError, match="this model has no rules; fit it with n_trees=100"):
        fitted()[0].plot_rules()


def test_a_heat_map_of_very_many_bins_is_of_a_readable_size_with_few_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    model = QuadBoostRegressor(n_trees=20, penalty="l2").fit(X, np.sin(3 * X[:, 0] * X[:, 1]))
    ax = model.plot_pair(0, 1)
    assert min(ax.images[0].get_array().shape) > 40
    assert max(ax.figure.get_size_inches()) <= 9
    assert len(ax.get_xticks()) <= 20
    assert ax.get_xticklabels()[-1].get_text() == "missing"


def test_rules_that_begin_alike_can_be_told_apart():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 3)), columns=["income of the household", "debt of the household", "age"])
    y = (X.iloc[:, 0] > 0) & (X.iloc[:, 1] > 0) | (X.iloc[:, 2] > 1)
    model = QuadBoostClassifier(n_trees=5, max_leaves=4).fit(X, y)
    labels = [label.get_text() for label in model.plot_importances(n=8).get_yticklabels()]
    assert len(set(labels)) == len(labels) == 8
    ax = model.explain(X).plot(0)
    assert ax.get_window_extent().width > 0.3 * ax.figure.get_window_extent().width
