"""Pipelines of scikit-learn as ONNX: the outputs, options and self-test of a plain model."""

import json

import numpy as np
import pandas as pd
import pytest
from export_models import table, targets
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor
from quadboost.export import to_onnx
from quadboost.export.additive import UNSEEN
from quadboost.export.onnx import TESTS, self_test

pytestmark = pytest.mark.oracle("skl2onnx", "onnxruntime")

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
FRAME = pd.DataFrame(
    {"a": X[:, 0], "label": rng.choice(["x", "y"], 300), "scores": X[:, 2], "n": rng.integers(0, 9, 300)}
)
TWO, SEVERAL = np.where(X[:, 0] + X[:, 1] > 0, "a", "b"), 3 * (X[:, 0] > 0) + (X[:, 1] > 0)
PLAIN = QuadBoostClassifier(max_rounds=50)
COUNTS = QuadBoostRegressor(loss="poisson", max_rounds=50)


def of_columns(**options):
    encoder = OneHotEncoder(sparse_output=False, **options)
    return make_column_transformer((StandardScaler(), ["a", "scores"]), (encoder, ["label"]), remainder="passthrough")


def run(made, rows):
    import onnx
    import onnxruntime

    onnx.checker.check_model(made, full_check=True)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    feed = {"X": rows} if names == ["X"] else {n: rows[[n.removesuffix("_input")]].to_numpy() for n in names}
    outputs = [one.name for one in session.get_outputs()]
    return dict(zip(outputs, session.run(outputs, feed), strict=True))


def examples_in(made):
    return json.loads(next(one.value for one in made.metadata_props if one.key == TESTS))


def decisions(pipeline, rows):
    return pipeline[-1].ensemble_.decision_function(pipeline[:-1].transform(rows))


CASES = {
    "two": ([StandardScaler(), PLAIN], X, TWO),
    "several": ([StandardScaler(), PLAIN], X, SEVERAL),
    "true and false": ([StandardScaler(), PLAIN], X, X[:, 0] > 0),
    "search": ([StandardScaler(), QuadBoostClassifierCV(cv=2, reg_lambda=[0.01, 0.1], max_rounds=20)], X, TWO),
    "target": ([StandardScaler(), QuadBoostRegressor(max_rounds=50)], X, X[:, 0]),
    "targets": ([StandardScaler(), QuadBoostRegressor(max_rounds=50)], X, X[:, :2]),
    "counts": ([StandardScaler(), COUNTS], X, np.floor(np.exp(X[:, 0]))),
    "rules": ([StandardScaler(), QuadBoostRegressor(n_trees=5)], X, X[:, 0] * X[:, 1]),
    "components": ([PCA(3), PLAIN], X, TWO),
    "columns": ([of_columns(), PLAIN], FRAME, SEVERAL),
    "columns, unseen": ([of_columns(handle_unknown="ignore"), PLAIN], FRAME, SEVERAL),
    "within": ([make_pipeline(StandardScaler(), "passthrough"), make_pipeline(PLAIN)], X, TWO),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pipeline_has_the_outputs_of_a_model_and_its_self_test_passes(case):
    steps, rows, y = CASES[case]
    pipeline = make_pipeline(*steps).fit(rows, y)
    made = to_onnx(pipeline, rows[:1], contributions=True)
    found = run(made, rows)
    last = pipeline[-1][-1] if case == "within" else pipeline[-1]
    expected = last.ensemble_.decision_function(pipeline[:-1].transform(rows))
    close = 1e-9 if case == "components" else 0.0  # onnxruntime multiplies matrices in another order
    np.testing.assert_allclose(found["scores"], expected, rtol=0, atol=close)
    if "label" in found:
        assert found["label"].tolist() == pipeline.predict(rows).tolist()
        np.testing.assert_allclose(found["probabilities"], pipeline.predict_proba(rows), rtol=0, atol=1e-15 + close)
    else:
        np.testing.assert_allclose(found["prediction"], pipeline.predict(rows), rtol=1e-15)
    total = found["contributions"].sum(axis=1) + found["intercept"]
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-9)
    tests = examples_in(made)
    assert len(tests["rows"]) > 15
    assert len({tuple(words) for words in tests["scores"]}) > 1
    assert self_test(made) == 0
    values = next(one for one in made.graph.initializer if one.name.startswith("quadboost/") and one.double_data)
    values.double_data[:] = np.array(values.double_data) + 0.25
    assert self_test(made) == len(tests["rows"])


@pytest.mark.parametrize(
    ("steps", "rows", "missing", "unseen"),
    [
        ([StandardScaler()], X, [True] * 5, False),
        ([PCA(3)], X, [False] * 5, False),
        ([of_columns(handle_unknown="ignore")], FRAME, [True, False, True, False], True),
        ([of_columns()], FRAME, [True, False, True, False], False),
    ],
)
def test_the_self_test_has_each_missing_value_and_unseen_level_that_the_steps_accept(steps, rows, missing, unseen):
    made = to_onnx(make_pipeline(*steps, PLAIN).fit(rows, TWO), rows[:1])
    values = list(zip(*examples_in(made)["rows"], strict=True))
    assert [None in column for column in values] == missing
    assert any(UNSEEN in column for column in values) == unseen


def test_float32_is_of_inputs_and_outputs():
    single = X.astype(np.float32)
    pipeline = make_pipeline(StandardScaler(), PLAIN).fit(single, TWO)
    made = to_onnx(pipeline, single[:1], dtype="float32")
    found = run(made, single)
    assert {str(found[name].dtype) for name in ("scores", "probabilities")} == {"float32"}
    same = np.isclose(found["scores"], decisions(pipeline, single), rtol=0, atol=1e-4)
    assert same.mean() > 0.98  # the scaler of onnxruntime multiplies where scikit-learn divides
    assert self_test(made) == 0


def test_without_steps_before_it_a_model_is_exported_as_it_is():
    frame = table()[["plain", "who"]].replace({"who": {"": "empty"}})
    pipeline = make_pipeline("passthrough", QuadBoostClassifier(max_rounds=50)).fit(frame, targets(table()) > 0)
    for made in (to_onnx(pipeline, frame[:1], missing_text="?"), to_onnx(pipeline[-1], frame[:1], missing_text="?")):
        assert made.SerializeToString() == to_onnx(pipeline[-1], missing_text="?").SerializeToString()
    assert self_test(made) == 0


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (None, {}, r"X=None; give some rows, to_onnx\(pipeline, X\[:1\]\)"),
        ([[1.0] * 5], {}, "give some rows, .* as an array or a pandas DataFrame"),
        (X[:0], {}, r"X has the shape \(0, 5\); give some rows"),
        (X[0], {}, r"X has the shape \(5,\); give some rows"),
        (X[:1].astype(np.float32), {}, r"X holds float32, but dtype is 'float64'; give X.astype\('float64'\)"),
        (X[:1], {"dtype": "float32"}, "X holds float64, but dtype is 'float32'"),
        (X[:1, :3], {}, "the steps before the model refuse the rows of X|skl2onnx cannot convert the steps"),
        (X[:1], {"missing_text": None}, "missing_text=None must be text"),
        (X[:1], {"contributions": 1}, "contributions=1 is not known; use False or True"),
    ],
)
def test_wrong_arguments_are_refused(given, options, message):
    pipeline = make_pipeline(StandardScaler(), PLAIN).fit(X, TWO)
    with pytest.raises(ValueError, match=message):
        to_onnx(pipeline, given, **options)


def test_a_model_refuses_rows_of_another_type_as_a_pipeline_does():
    model = QuadBoostClassifier(max_rounds=5).fit(X, TWO)
    for given in (X[:1].astype(np.float32), FRAME.astype({"a": "float32"}), 3, "X", [[1.0] * 5]):
        with pytest.raises(ValueError, match=r"X holds float32, but dtype is 'float64'|give some rows"):
            to_onnx(model, given)


def test_steps_that_nobody_can_convert_and_other_models_are_refused():
    pipeline = make_pipeline(FunctionTransformer(np.tanh), QuadBoostClassifier(max_rounds=5)).fit(X, TWO)
    with pytest.raises(ValueError, match="skl2onnx cannot convert the steps before the model: "):
        to_onnx(pipeline, X[:1])
    with pytest.raises(TypeError, match="is no fitted QuadBoost model"):
        to_onnx(make_pipeline(StandardScaler(), PCA(2)).fit(X), X[:1])


def test_without_skl2onnx_the_remedy_is_told(monkeypatch):
    pipeline = make_pipeline(StandardScaler(), QuadBoostClassifier(max_rounds=5)).fit(X, TWO)
    monkeypatch.setitem(__import__("sys").modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'quadboost\[onnx\]'"):
        to_onnx(pipeline, X[:1])


def test_steps_that_onnxruntime_cannot_run_are_refused_and_columns_of_any_whole_numbers_taken():
    X = np.random.default_rng(0).normal(size=(200, 2))
    pipeline = make_pipeline(SimpleImputer(), QuadBoostRegressor()).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"cannot run the steps before the model with dtype=.float64.: .*Imputer"):
        to_onnx(pipeline, X[:1])
    assert self_test(to_onnx(pipeline, X[:1].astype(np.float32), dtype="float32")) == 0
    frame = pd.DataFrame({"real": X[:, 0], "whole": np.arange(200, dtype=np.int32) % 5})
    steps = make_column_transformer((StandardScaler(), ["real", "whole"]))
    whole = make_pipeline(steps, QuadBoostRegressor()).fit(frame, frame["real"] + frame["whole"])
    assert self_test(to_onnx(whole, frame[:1])) == 0
