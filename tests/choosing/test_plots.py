"""Pictures of paths and of the scores of candidates; without matplotlib, what to install."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from mixed_table import mixed_table, targets

from quadboost import QuadBoostRegressor, regularization_path
from quadboost.choosing.plots import plot_shapes, plot_surface, plot_weights

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

M = 300
X = mixed_table(M)
REAL = targets(X) + np.random.default_rng(2).normal(size=M)


def path_of(penalty, X=X, **changes):
    options = {"categorical_features": [4], "thresholds": 12, "min_category_count": 1, "strengths": 12} | changes
    return regularization_path(X, REAL, penalty, **options)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.mark.thinned(1)
@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_pictures(penalty):
    path = path_of(penalty)
    ax = path.plot()
    assert len(ax.lines) == path.weight.shape[1]
    assert ax.get_xlabel() == ("alpha_max" if penalty == "linf" else "reg_lambda")
    strongest, weakest = ax.transData.transform([(path.strength[0], 0), (path.strength[-1], 0)])[:, 0]
    assert strongest < weakest
    for feature in (0, 4):
        assert 2 <= len(path.plot(feature).lines) <= 8
    given = pyplot.figure().add_subplot()
    assert path.plot(ax=given) is given
    with pytest.raises(ValueError, match="feature='size': these features have no names; give a number"):
        path.plot("size")
    with pytest.raises(ValueError, match="feature=99 must be a number from 0 to"):
        path.plot(99)


def test_the_lines_are_the_weights():
    path = path_of("l1")
    for voter, line in enumerate(plot_weights(path).lines):
        np.testing.assert_array_equal(line.get_xdata(), path.strength)
        np.testing.assert_array_equal(line.get_ydata(), path.weight[:, voter])


def test_shapes_are_those_of_the_ensembles():
    path = path_of("l2", strengths=3)
    ax = plot_shapes(path, 0)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"{strength:.2g}" for strength in path.strength
    ]
    for i, line in enumerate(ax.lines):
        shape = next(shape for shape in path.ensemble(i).shape_functions() if shape.feature == 0)
        x, y = line.get_xydata().T
        np.testing.assert_array_equal(x[1:-1], shape.thresholds)
        np.testing.assert_array_equal(y, [*shape.values, shape.values[-1]])
        assert x[0] < shape.thresholds[0] < x[-1]


def test_a_feature_may_be_named_and_its_levels_are():
    frame = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 1, "big", "small")})
    path = path_of("l2", frame, categorical_features="auto", strengths=3)
    ax = path.plot("kind")
    assert ax.get_xlabel() == "kind"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["big", "small"]
    with pytest.raises(ValueError, match=r"feature='colour' is not known; the features are \['size', 'kind'\]"):
        path.plot("colour")


RESULTS = {
    "param_penalty": np.array([None, None, "l1", "l1", "l1", "l1"], dtype=object),
    "param_reg_lambda": np.array([np.nan, np.nan, 0.1, 0.1, 0.01, 0.01]),
    "param_max_rounds": np.array([1, 8, 1, 8, 1, 8]),
    "mean_test_score": np.array([0.1, 0.4, 0.2, 0.3, 0.5, 0.6]),
}


def test_scores_without_a_strength_are_a_line():
    ax = plot_surface(RESULTS, None, {"penalty": None, "max_rounds": 8})
    scores, chosen = ax.lines
    np.testing.assert_array_equal(scores.get_xdata(), [1, 8])
    np.testing.assert_array_equal(scores.get_ydata(), [0.1, 0.4])
    assert set(chosen.get_xdata()) == {8}
    assert len(plot_surface(RESULTS, None, {"penalty": "l1"}).lines) == 1


def test_scores_of_every_strength_are_a_surface():
    ax = plot_surface(RESULTS, "l1", {"penalty": "l1", "max_rounds": 8, "reg_lambda": 0.01})
    grid = ax.collections[0].get_array().reshape(2, -1)
    assert grid[:, 0].tolist() == [0.5, 0.2], "the weakest first, after one round"
    assert grid[:, -1].tolist() == [0.6, 0.3]
    np.testing.assert_array_equal(grid[:, :-1], np.repeat(grid[:, :1], grid.shape[1] - 1, axis=1))
    assert (ax.lines[0].get_xdata()[0], ax.lines[0].get_ydata()[0]) == (8, 0.01)
    assert ax.get_ylabel() == "reg_lambda"


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_fit_draws_the_estimate_by_which_its_strength_was_chosen(n_outputs):
    y = REAL if n_outputs == 1 else np.column_stack([REAL, REAL**2])
    model = QuadBoostRegressor(thresholds=12, categorical_features=[4]).fit(X, y)
    ax = model.plot_path()
    assert len(ax.lines) == 2 * n_outputs
    history = model.history_ if n_outputs == 1 else model.history_[0]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), history["path_lambda"])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), history["path_gcv"])
    assert set(ax.lines[1].get_xdata()) == {model.reg_lambda_ if n_outputs == 1 else model.reg_lambda_[0]}
    assert ax.xaxis_inverted()


def test_a_fit_without_a_path_has_none_to_draw():
    model = QuadBoostRegressor(reg_lambda=0.1, thresholds=12).fit(X, REAL)
    with pytest.raises(ValueError, match="there is no path to draw; fit with penalty='l1', mode='corrective' and reg_"):
        model.plot_path()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'quadboost\[plots\]'"):
        path_of("l1", strengths=2).plot()
