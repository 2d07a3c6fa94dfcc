"""Our estimators in skl2onnx's own functions."""

import numpy as np
import pytest
from export_models import NASTY, hard_rows, table, targets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV
from quadboost.export.pipelines import register

pytestmark = pytest.mark.oracle("skl2onnx", "onnxruntime")

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
LABELS = np.where(X[:, 0] + X[:, 1] > 0, "a", "b")


def run(made, feed):
    import onnxruntime

    return onnxruntime.InferenceSession(made.SerializeToString()).run(None, feed)


def test_skl2onnx_itself_converts_once_we_are_registered():
    import skl2onnx

    register()
    pipeline = make_pipeline(StandardScaler(), QuadBoostClassifier(max_rounds=50)).fit(X, LABELS)
    label, by_class = run(skl2onnx.to_onnx(pipeline, X[:1]), {"X": X})
    assert label.tolist() == pipeline.predict(X).tolist()
    found = [[row["a"], row["b"]] for row in by_class]
    np.testing.assert_allclose(found, pipeline.predict_proba(X), rtol=0, atol=1e-7)  # a ZipMap has floats


@pytest.mark.parametrize("y", [X[:, 0], X[:, :2]])
def test_regressors(y):
    import skl2onnx

    register()
    for kind in (QuadBoostRegressor(max_rounds=50), QuadBoostRegressorCV(cv=2, reg_lambda=[0.01, 0.1], max_rounds=20)):
        model = kind.fit(X, y)
        found = run(skl2onnx.to_onnx(model, X[:1]), {"X": X})[0]
        np.testing.assert_array_equal(found, model.predict(X).reshape(len(X), -1))


WHOLE = (X[:, 0] > 0) + (X[:, 1] > 1)
KINDS_OF_LABELS = [WHOLE, WHOLE.astype(float), WHOLE > 0, WHOLE.astype(np.uint64), WHOLE.astype(str)]


@pytest.mark.parametrize(("zipmap", "dtype"), [(True, np.float64), (False, np.float64), (False, np.float32)])
def test_labels_of_every_kind(zipmap, dtype):
    import skl2onnx

    register()
    rows = X.astype(dtype)
    for y in KINDS_OF_LABELS:
        model = QuadBoostClassifier(max_rounds=5).fit(rows, y)
        label, *shares = run(skl2onnx.to_onnx(model, rows[:1], options={"zipmap": zipmap}), {"X": rows})
        assert label.tolist() == model.predict(rows).tolist()
        found = [[*row.values()] for row in shares[0]] if zipmap else shares[0]
        np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0, atol=1e-7 if zipmap else 1e-15)


@pytest.mark.parametrize("y", [LABELS, WHOLE])
@pytest.mark.parametrize(
    "around",
    [
        lambda model: BaggingClassifier(model, 2, random_state=0),
        lambda model: CalibratedClassifierCV(model, cv=2),
        OneVsRestClassifier,
        lambda model: StackingClassifier([("ours", model)], LogisticRegression(), cv=2),
    ],
    ids=["bagging", "calibrated", "one against the rest", "stack"],
)
def test_models_within_models(around, y):
    import skl2onnx

    register()
    model = around(QuadBoostClassifier(max_rounds=5)).fit(X, y)
    label, shares = run(skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False}}), {"X": X})
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(shares, model.predict_proba(X), rtol=0, atol=1e-15)


def test_labels_that_it_cannot_hold_are_refused():
    import skl2onnx

    register()
    large = QuadBoostClassifier(max_rounds=5).fit(X, np.where(X[:, 0] > 0, 2**64 - 1, 3).astype(np.uint64))
    broken = QuadBoostClassifier.from_ensemble(large.ensemble_.replace(classes=[0.5, 1.5]))
    for model, message in ((large, "is an integer beyond the numbers of ONNX"), (broken, "0.5 is no whole number")):
        with pytest.raises(ValueError, match=message):
            skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})


def test_columns_of_text_and_numbers():
    import skl2onnx

    def simpler(frame):
        """Without what skl2onnx cannot have: names of columns that it would change, true and false beside numbers."""
        return frame.drop(columns=["member", "code", NASTY]).replace({"who": {"": "empty"}})

    register()
    frame, rows = simpler(table()), simpler(hard_rows())
    model = QuadBoostClassifierCV(cv=2, reg_lambda=[0.01], max_rounds=20).fit(frame, targets(table()) > 0)
    made = skl2onnx.to_onnx(model, frame[:1], options={"zipmap": False})
    found = run(made, {name: rows[[name]].fillna("" if name == "who" else np.nan).to_numpy() for name in rows})
    np.testing.assert_allclose(found[1], model.predict_proba(rows), rtol=0, atol=1e-15)


def test_without_skl2onnx_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'quadboost\[onnx\]'"):
        register()
