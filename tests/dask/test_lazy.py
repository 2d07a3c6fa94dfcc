"""Predictions and explanations of Dask collections: lazy, and the bits of those of one machine."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from quadboost import QuadBoostClassifier, QuadBoostRegressor  # noqa: E402
from quadboost.dask import DaskQuadBoostClassifier, DaskQuadBoostRegressor  # noqa: E402


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    return pd.DataFrame({"a": random.normal(size=200), "b": random.choice(["x", "y", None], 200)})


def same(lazy, wanted):
    """Whether a Dask array says beforehand what it will be, and is it."""
    assert isinstance(lazy, da.Array)
    found = lazy.compute()
    assert (lazy.dtype, lazy.shape[1:]) == (found.dtype, found.shape[1:])
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("labels", [["no", "yes"], [1, 2, 3]])
def test_predictions_of_a_frame(frame, labels):
    y = np.array(labels)[np.argsort(frame["a"].to_numpy()) % len(labels)]
    local = QuadBoostClassifier(max_rounds=20, n_trees=3).fit(frame, y)
    model = DaskQuadBoostClassifier.from_ensemble(local.ensemble_)
    rows = dd.from_pandas(frame, npartitions=3)
    some = rows[rows["a"] > 0], frame[frame["a"] > 0]
    none = rows[rows["a"] > 100], frame[:0]
    for name in ("predict", "predict_proba", "decision_function"):
        ask, wanted = getattr(model, name), getattr(local, name)
        same(ask(rows), wanted(frame))
        same(ask(some[0]), wanted(some[1]))
        same(ask(none[0]), wanted(frame)[:0])
        np.testing.assert_array_equal(ask(frame), wanted(frame))  # ordinary data: at once
    assert rows.assign(p=model.predict(rows)).compute()["p"].tolist() == local.predict(frame).tolist()


def test_predictions_and_explanations_of_an_array():
    X = np.random.default_rng(0).normal(size=(100, 3))
    local = QuadBoostRegressor(max_rounds=20).fit(X, X[:, :2])
    model, rows = DaskQuadBoostRegressor.from_ensemble(local.ensemble_), da.from_array(X, (30, 2))
    same(model.predict(rows), local.predict(X))
    assert model.predict(rows).chunks == ((30, 30, 30, 10), (2,))
    same(model.explain(rows).values, local.explain(X).values)
    same(model.predict(rows[rows[:, 0] > 1]), local.predict(X[X[:, 0] > 1]))
    found, wanted = model.explain(rows).to_frame().compute(), local.explain(X).to_frame()
    assert found.columns.equals(wanted.columns)
    assert found.to_numpy().tolist() == wanted.to_numpy().tolist()


@pytest.mark.parametrize("scale", ["score", "prediction"])
def test_explanations_of_a_frame(frame, scale):
    local = QuadBoostClassifier(max_rounds=20, n_trees=2).fit(frame, frame["a"].abs() > 1)
    model, rows = DaskQuadBoostClassifier.from_ensemble(local.ensemble_), dd.from_pandas(frame, npartitions=3)
    found, wanted = model.explain(rows, scale=scale), local.explain(frame, scale=scale)
    assert (found.terms, found.base, found.reference, found.scale) == (
        wanted.terms, wanted.base, wanted.reference, wanted.scale,
    )  # fmt: skip
    same(found.values, wanted.values)
    same(found.by_feature(), wanted.by_feature())
    pd.testing.assert_frame_equal(found.to_frame().compute(), wanted.to_frame())
    values = model.explain(rows, background=frame[:50]).values
    same(values, local.explain(frame, background=frame[:50]).values)


def test_a_row_is_no_table(frame):
    local = QuadBoostClassifier(max_rounds=20).fit(frame[["a"]].to_numpy(), frame["a"] > 0)
    with pytest.raises(ValueError, match=r"X has 1 dimension\(s\); give a Dask DataFrame, or an Array of rows"):
        DaskQuadBoostClassifier.from_ensemble(local.ensemble_).predict(da.ones(3))


def test_names_that_are_not_there_are_told_once(frame):
    local = QuadBoostClassifier(max_rounds=20).fit(frame[["a"]], frame["a"] > 0)
    model = DaskQuadBoostClassifier.from_ensemble(local.ensemble_)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        lazy = model.predict(da.from_array(frame[["a"]].to_numpy(), 50))
    assert lazy.compute().tolist() == local.predict(frame[["a"]]).tolist()
