"""A model, or a pipeline that ends in one, as ONNX that has the same bits; its inputs, outputs and self-test.

Needs onnx; running what was written needs onnxruntime alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._version import __version__
from ..common.checks import one_of
from ..common.packages import needed
from ..data.schema import MIXED, TEXT
from .additive import Additive, Examples, additive, check_text
from .graph import PREFIX, Graph, import_onnx, input_names
from .preparation import ML_OPSET, Preparation, split

if TYPE_CHECKING:
    from onnx import ModelProto

IR_VERSION = 10
TESTS = "quadboost_self_test"  # the key of the examples in the metadata
NO_ROWS = "give some rows, to_onnx(pipeline, X[:1]), as an array or a pandas DataFrame"


def to_onnx(
    model: Any,
    X: Any = None,
    *,
    dtype: str = "float64",
    contributions: bool = False,
    missing_text: str = "",
) -> ModelProto:
    """Write a model as ONNX.

    Parameters
    ----------
    model : Ensemble, fitted estimator, or a fitted scikit-learn pipeline that ends in one
    X : table of one row or more, optional
        For a pipeline, what it takes; skl2onnx reads the types of its inputs from it. Floats in it must be of dtype.
    dtype : {"float64", "float32"}
        Of inputs and scores. float64 has the bits of `decision_function`. float32 takes the same steps for any float32
        values, but rounds what they are worth.
    contributions : bool
        Also return the intercept, and what each term adds to it to make the score.
    missing_text : str
        What stands for a missing text, which ONNX has not. It must be no level.

    Returns
    -------
    onnx.ModelProto
        Its input is a matrix X, NaN where missing; or, if features hold text, a column of shape (m, 1) for each of
        them, by name. Its outputs are scores, and label and probabilities, or prediction.
    """
    _check_options(dtype, contributions, missing_text)
    helper = import_onnx()
    before, last = split(model) if hasattr(model, "steps") else ([], model)
    form = additive(last)
    check_text(form.names, "ONNX")
    if X is not None or before:
        _check_rows(X, dtype)
    if before:
        steps = Preparation(before, X)
        graph = Graph(np.dtype(dtype), missing_text, ml=ML_OPSET)
        inputs, columns = steps.added_to(graph)
        examples = steps.examples(form)
    else:
        graph = Graph(np.dtype(dtype), missing_text, _prefix(form.names))
        inputs, columns = _inputs(form, graph)
        examples = _examples(form, graph)
    outputs = [
        graph.as_output(name, value, _shape(form, name))
        for name, value in graph.outputs_of(form, columns, contributions).items()
    ]
    built = helper.make_graph(graph.nodes, "quadboost", inputs, outputs, graph.initializers)
    opsets = [helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    made = helper.make_model(
        built, opset_imports=opsets, ir_version=IR_VERSION, producer_name="quadboost", producer_version=__version__
    )
    helper.set_model_props(made, {TESTS: json.dumps(_tests(form, graph, examples))})
    if before:
        _check_steps(made, dtype)
    return made


def _check_steps(made: ModelProto, dtype: str) -> None:
    """Refuse steps that onnxruntime, if it is here, cannot run: it knows some of them for one type of numbers alone."""
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        return
    try:
        InferenceSession(made.SerializeToString())
    except Exception as error:  # of many kinds
        first, other = str(error).strip().split("\n")[0], "float32" if dtype == "float64" else "float64"
        raise ValueError(
            f"onnxruntime cannot run the steps before the model with dtype={dtype!r}: {first:.200}; try {other!r} "
            "(X too), or export the model alone"
        ) from error


def self_test(model: str | os.PathLike[str] | bytes | ModelProto) -> int:
    """Run a model's own examples by onnxruntime, and return how many of their scores differ.

    Those of a float32 model may differ as much as its rounding explains.
    """
    runtime = needed("onnxruntime", "running the self-test of an ONNX model needs", "'quadboost[onnx]'")
    if isinstance(model, str | os.PathLike):
        with open(model, "rb") as file:
            model = file.read()
    elif hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    elif not isinstance(model, bytes):
        raise TypeError(
            f"{model!r:.60} is no ONNX model; give what to_onnx returned, its bytes or the name of its file"
        )
    try:
        session = runtime.InferenceSession(model)
    except Exception as error:  # of many kinds
        raise ValueError(f"onnxruntime cannot load the model: {error}") from error
    metadata = session.get_modelmeta().custom_metadata_map
    if TESTS not in metadata:
        raise ValueError("the model has no self-test; only those that quadboost.export.to_onnx writes have one")
    tests = json.loads(metadata[TESTS])
    found = session.run(["scores"], session_input(session, tests["rows"], tests["missing_text"]))[0]
    expected = np.array([[float.fromhex(score) for score in row] for row in tests["scores"]])
    same = np.abs(found.reshape(expected.shape).astype(np.float64) - expected) <= tests["tolerance"]  # and no NaN
    return int((~same).any(axis=1).sum())


def session_input(session: Any, rows: Sequence[Sequence[Any]], missing_text: str = "") -> dict[str, np.ndarray]:
    """Rows of plain values, None where missing, as a session of onnxruntime takes them."""
    types = {"string": object, "double": np.float64, "float": np.float32}  # others are called as in numpy
    inputs, feed, first = session.get_inputs(), dict[str, np.ndarray](), 0
    for one in inputs:
        kind = one.type.removeprefix("tensor(").removesuffix(")")
        width = one.shape[1] if len(inputs) > 1 else len(rows[0])
        missing = missing_text if kind == "string" else np.nan
        values = [[missing if v is None else v for v in row[first : first + width]] for row in rows]
        feed[one.name] = np.array(values, dtype=types.get(kind, kind))
        first += width
    return feed


def _check_options(dtype: Any, contributions: Any, missing_text: Any) -> None:
    one_of("dtype", dtype, ("float64", "float32"))
    one_of("contributions", contributions, (False, True))
    if not isinstance(missing_text, str):
        raise ValueError(f"missing_text={missing_text!r:.60} must be text")
    check_text([missing_text], "ONNX", remedy="give other text")


def _check_rows(X: Any, dtype: str) -> None:
    """Refuse what is no table, and floats that the model would not take."""
    if not isinstance(X, np.ndarray) and not hasattr(X, "iloc"):
        raise ValueError(f"X={X!r:.60}; {NO_ROWS}")
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X has the shape {X.shape}; {NO_ROWS}")
    for kind in {str(kind).lower() for kind in ([X.dtype] if isinstance(X, np.ndarray) else X.dtypes)}:
        if kind.startswith("float") and kind != dtype:
            raise ValueError(f"X holds {kind}, but dtype is {dtype!r}; give X.astype({dtype!r}), or another dtype")


def _has_text(model: Additive) -> bool:
    return any(holds in (TEXT, MIXED) for holds in model.holds)


def _prefix(names: Sequence[str]) -> str:
    """What no name of a feature begins with."""
    prefix = PREFIX
    while any(name.startswith(prefix) for name in names):
        prefix += "/"
    return prefix


def _inputs(model: Additive, graph: Graph) -> tuple[list[Any], list[str]]:
    """The inputs, and the names of the columns, or of the one matrix."""
    helper = graph.helper
    if not _has_text(model):
        return [helper.make_tensor_value_info("X", graph.element, [None, len(model.names)])], ["X"]
    elements = [graph.string if holds in (TEXT, MIXED) else graph.element for holds in model.holds]
    names = list(input_names(model.names).values())
    inputs = [
        helper.make_tensor_value_info(name, element, [None, 1]) for name, element in zip(names, elements, strict=True)
    ]
    return inputs, names


def _shape(model: Additive, output: str) -> list[int | None]:
    several = [] if model.ensemble.weight.ndim == 1 else [model.n_outputs]
    shapes = {"label": [], "probabilities": [len(model.classes)], "contributions": [len(model.terms) or 1, *several]}
    return [model.n_outputs] if output == "intercept" else [None, *shapes.get(output, several)]


def _tests(model: Additive, graph: Graph, examples: Examples) -> dict[str, Any]:
    """Rows, their scores, and by how much these may differ."""
    rounding = 0.0 if graph.dtype == np.float64 else model.size * (len(model.terms) + 2) * 2.0**-24
    return {
        "rows": examples.rows,
        "scores": examples.hexadecimal(),
        "tolerance": rounding,
        "missing_text": graph.missing_text,
    }


def _examples(model: Additive, graph: Graph) -> Examples:
    """The examples as far as the type can hold them."""
    with np.errstate(over="ignore"):
        rows: list[list[Any]] = [
            [
                float(graph.dtype.type(v)) if isinstance(v, float | bool) else None if v == graph.missing_text else v
                for v in row
            ]
            for row in model.text_examples.rows
        ]
    return model.scored(rows)
