"""Nodes of ONNX, of the opsets that we and skl2onnx write."""

import numpy as np
import pytest
from export_models import by_hand, fitted, hard_rows, same_bits

from quadboost.export.additive import additive
from quadboost.export.graph import ML, OUTPUTS, Graph, _at_most, input_names


@pytest.mark.oracle("onnx", "onnxruntime")
@pytest.mark.parametrize("ml", [3, 5])
@pytest.mark.parametrize("kind", ["by hand", "trees-2", "trees-3"])
def test_every_opset_has_the_same_bits(kind, ml):
    """The model is given numbers alone: levels by their number."""
    import onnxruntime

    model, frame = by_hand() if kind == "by hand" else (fitted(kind), hard_rows())
    form = additive(model)
    matrix, numbers = model.matrix_of(frame), np.dtype(np.float64)
    form.levels.clear()
    graph = Graph(numbers, ml=ml)
    scores = graph.as_output(
        "scores", graph.outputs_of(form, ["X"])["scores"], [None] * np.ndim(model.intercept) + [None]
    )
    given = graph.helper.make_tensor_value_info("X", graph.element, [None, matrix.shape[1]])
    built = graph.helper.make_graph(graph.nodes, "test", [given], [scores], graph.initializers)
    opsets = [graph.helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    made = graph.helper.make_model(built, opset_imports=opsets, ir_version=10)
    assert {one.version for one in made.opset_import if one.domain == ML} == {ml}
    found = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"X": np.ascontiguousarray(matrix)})[0]
    same_bits(found, model.decision_function(frame))


def test_what_is_above_the_rounded_threshold_is_above_the_threshold():
    thresholds = np.array([0.1, -0.1, 1 / 3, 1e300, -1e300, 5e-324, 2.0, 16777217.0])
    rounded = _at_most(thresholds, np.dtype(np.float32))
    assert rounded.dtype == np.float32
    assert (rounded.astype(float) <= thresholds).all()
    with np.errstate(over="ignore"):  # after the largest comes infinity
        assert (np.nextafter(rounded, np.float32(np.inf)).astype(float) > thresholds).all()


def test_inputs_have_the_names_of_features_but_never_those_of_outputs():
    features = ["age", "label", "label_input", "", "scores", "_input"]
    found = input_names(features)
    assert list(found) == features
    assert found["age"] == "age"
    assert found["label_input"] == "label_input"
    assert len({*found.values(), *OUTPUTS, ""}) == len(features) + len(OUTPUTS) + 1
    assert all(free_name.startswith(name) for name, free_name in found.items())
