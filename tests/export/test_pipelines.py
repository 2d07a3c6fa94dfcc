"""Pipelines of scikit-learn through skl2onnx."""

import numpy as np
import pandas as pd
import pytest
from export_models import NASTY, hard_rows, table, targets
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV
from quadboost.export import to_onnx
from quadboost.export.pipelines import register

pytestmark = pytest.mark.oracle("skl2onnx", "onnxruntime")

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
LABELS = np.where(X[:, 0] + X[:, 1] > 0, "a", "b")
SEVERAL = 3 * (X[:, 0] > 0) + (X[:, 1] > 0)


def run(made, feed):
    import onnxruntime

    session = onnxruntime.InferenceSession(made.SerializeToString())
    only = session.get_inputs()[0].name
    return session.run(None, feed if isinstance(feed, dict) else {only: feed})


@pytest.mark.parametrize("labels", [LABELS, SEVERAL, X[:, 0] > 0])
def test_a_classifier_after_a_scaler(labels):
    pipeline = make_pipeline(StandardScaler(), QuadBoostClassifier(max_rounds=50)).fit(X, labels)
    label, probabilities = run(to_onnx(pipeline, X[:1]), X)
    assert label.tolist() == pipeline.predict(X).tolist()
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(X), rtol=0, atol=1e-15)


@pytest.mark.parametrize("y", [X[:, 0], X[:, :2]])
def test_a_regressor_after_a_scaler(y):
    pipeline = make_pipeline(StandardScaler(), QuadBoostRegressor(max_rounds=50)).fit(X, y)
    np.testing.assert_array_equal(run(to_onnx(pipeline, X[:1]), X)[0], pipeline.predict(X).reshape(len(X), -1))


def test_estimators_with_a_search():
    for kind, y in ((QuadBoostClassifierCV, LABELS), (QuadBoostRegressorCV, X[:, 0])):
        pipeline = make_pipeline(kind(cv=2, reg_lambda=[0.01, 0.1], max_rounds=20)).fit(X, y)
        found = run(to_onnx(pipeline, X[:1]), X)[0].ravel()
        assert found.tolist() == pipeline.predict(X).tolist()


def test_columns_of_text_and_numbers():

    def simpler(frame):
        """Without what skl2onnx cannot have: names of columns that it would change, true and false beside numbers."""
        return frame.drop(columns=["member", "code", NASTY]).replace({"who": {"": "empty"}})

    frame, rows = simpler(table()), simpler(hard_rows())
    pipeline = make_pipeline(QuadBoostClassifier(max_rounds=50)).fit(frame, targets(table()) > 0)
    made = to_onnx(pipeline, frame[:1])
    found = run(made, {name: rows[[name]].fillna("" if name == "who" else np.nan).to_numpy() for name in rows})
    np.testing.assert_allclose(found[1], pipeline.predict_proba(rows), rtol=0, atol=1e-15)


def test_after_a_transformer_of_columns():
    frame = pd.DataFrame({"a": X[:, 0], "b": rng.choice(["x", "y"], len(X)), "c": X[:, 2]})
    encoder = OneHotEncoder(sparse_output=False)
    columns = make_column_transformer((StandardScaler(), ["a", "c"]), (encoder, ["b"]))
    pipeline = make_pipeline(columns, QuadBoostClassifier(max_rounds=50)).fit(frame, SEVERAL)
    found = run(to_onnx(pipeline, frame[:1]), {name: frame[[name]].to_numpy() for name in frame})
    np.testing.assert_allclose(found[1], pipeline.predict_proba(frame), rtol=0, atol=1e-15)


def test_skl2onnx_itself_converts_once_we_are_registered():
    import skl2onnx

    register()
    pipeline = make_pipeline(StandardScaler(), QuadBoostClassifier(max_rounds=50)).fit(X, LABELS)
    label, by_class = run(skl2onnx.to_onnx(pipeline, X[:1]), X)
    assert label.tolist() == pipeline.predict(X).tolist()
    found = [[row["a"], row["b"]] for row in by_class]
    np.testing.assert_allclose(found, pipeline.predict_proba(X), rtol=0, atol=1e-7)  # a ZipMap has floats


def test_a_pipeline_needs_rows():
    pipeline = make_pipeline(QuadBoostClassifier(max_rounds=5)).fit(X, LABELS)
    with pytest.raises(ValueError, match="give a pipeline some rows"):
        to_onnx(pipeline)


def test_without_skl2onnx_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'quadboost\[onnx\]'"):
        register()
