"""Converters for skl2onnx, so that its own functions convert whatever has one of our estimators in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .additive import Additive, additive
from .graph import ML, Graph
from .preparation import ML_OPSET, import_skl2onnx

OPSET = 15


def register() -> None:
    """Make our estimators known to skl2onnx in this process, so that its own functions convert them."""
    update_registered_converter = import_skl2onnx().update_registered_converter
    from ..estimators.cv import QuadBoostClassifierCV, QuadBoostRegressorCV
    from ..estimators.plain import QuadBoostClassifier, QuadBoostRegressor

    for kind in (QuadBoostClassifier, QuadBoostClassifierCV):
        # skl2onnx itself asks for the second, and for the third where a model is calibrated by its scores.
        options = {"zipmap": [True, False], "nocl": [False], "raw_scores": [True, False]}
        update_registered_converter(kind, kind.__name__, _classifier_shapes, _convert, options=options)
    for other in (QuadBoostRegressor, QuadBoostRegressorCV):
        update_registered_converter(other, other.__name__, _regressor_shapes, _convert)


def _classifier_shapes(operator: Any) -> None:
    """A label and probabilities for each row: doubles, unless a ZipMap follows, which knows floats alone."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

    classes = operator.raw_operator.classes_
    is_text = classes.dtype.kind in "UO"
    if not is_text and (broken := [label for label in classes.tolist() if label != int(label)]):
        raise ValueError(f"the label {broken[0]} is no whole number, which skl2onnx cannot have; make it text")
    operator.outputs[0].set_type((StringTensorType if is_text else Int64TensorType)([None]))
    is_mapped = any(other.type == "SklearnZipMap" for other in operator.outputs[1].operators_inputs_)
    operator.outputs[1].set_type((FloatTensorType if is_mapped else DoubleTensorType)([None, len(classes)]))


def _regressor_shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    form = additive(operator.raw_operator)
    operator.outputs[0].set_type(DoubleTensorType([None, form.n_outputs]))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a model to those of the pipeline."""
    form = additive(operator.raw_operator)
    graph = Graph(np.dtype(np.float64), prefix=scope.get_unique_variable_name("quadboost") + "/", ml=ML_OPSET)
    columns = [_as_double(graph, variable) for variable in operator.inputs]
    if 1 < len(columns) < len(form.names):
        columns = [graph.add("Concat", *columns, axis=1)]
    outputs = graph.outputs_of(form, columns)
    if form.classes:
        kinds = [variable.type.to_onnx_type().tensor_type.elem_type for variable in operator.outputs]
        raw = scope.get_options(operator.raw_operator, {"raw_scores": False})["raw_scores"]
        found = (
            outputs["label"],
            _scores_by_class(graph, outputs["scores"], form) if raw else outputs["probabilities"],
        )
        results = [graph.add("Cast", one, to=kind) for one, kind in zip(found, kinds, strict=True)]
    else:
        shape = graph.constant(np.array([-1, form.n_outputs]))
        results = [graph.add("Reshape", outputs["prediction"], shape)]
    for result, variable in zip(results, operator.outputs, strict=True):
        graph.nodes.append(
            graph.helper.make_node("Identity", [result], [variable.full_name], f"{graph.prefix}{variable.raw_name}")
        )
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.initializers)
    container.node_domain_version_pair_sets |= {("", OPSET), (ML, ML_OPSET)}


def _scores_by_class(graph: Graph, scores: str, form: Additive) -> str:
    """Of two classes, that of the second and its negative."""
    if form.ensemble.weight.ndim == 2:
        return scores
    second = graph.add("Unsqueeze", scores, graph.constant(np.array([1])))
    return graph.add("Concat", graph.add("Neg", second), second, axis=1)


def _as_double(graph: Graph, variable: Any) -> str:
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    if isinstance(variable.type, DoubleTensorType | StringTensorType):
        return str(variable.full_name)
    return graph.add("Cast", variable.full_name, to=graph.element)
