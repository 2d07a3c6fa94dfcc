"""ONNX: the same bits in onnxruntime."""

import numpy as np
import pytest
from export_models import KINDS, fitted, hard_rows, same_bits, shared_thresholds

from quadboost.export.onnx import self_test, session_input, to_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def rows_of(frame):
    return [[None if v is None or v != v else v for v in row] for row in frame.itertuples(index=False)]


def run(model, frame, missing_text="?", **options):
    made = to_onnx(model, missing_text=missing_text, **options)
    onnx.checker.check_model(made)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    names = [one.name for one in session.get_outputs()]
    found = session.run(names, session_input(session, rows_of(frame), missing_text))
    assert self_test(made) == 0
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits(kind):
    model, frame = fitted(kind), hard_rows()
    found = run(model, frame, contributions=True)
    expected = model.decision_function(frame)
    same_bits(found["scores"], expected)
    assert found["scores"].shape == expected.shape
    if model.classes is None:
        np.testing.assert_allclose(found["prediction"], model.predict(frame), rtol=1e-15)
    else:
        assert found["label"].tolist() == model.predict(frame).tolist()
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(frame), rtol=0, atol=1e-15)
    terms = found["contributions"].reshape(len(frame), -1, model.n_outputs)
    total = np.tile(np.atleast_1d(model.intercept), (len(frame), 1))
    for term in range(terms.shape[1]):
        total += terms[:, term]
    same_bits(total, expected.reshape(total.shape))
