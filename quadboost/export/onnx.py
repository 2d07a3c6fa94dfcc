"""A model as ONNX: one TreeEnsemble of doubles for each term, and a chain of additions, which has the same bits.

Needs onnx; running what was written needs onnxruntime alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._version import __version__
from ..common.checks import one_of
from ..data.schema import MIXED, TEXT
from .additive import Additive, Examples, Steps, Term, Tree, additive, check_text

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

ML = "ai.onnx.ml"
OPSETS = {"": 21, ML: 5}  # the first with a TreeEnsemble of doubles
IR_VERSION = 10
UP_TO, EQUAL = 0, 4  # modes of nodes: true where the value is at most the threshold, or equals it
PREFIX = "quadboost/"  # of names inside the model
OUTPUTS = ("scores", "label", "probabilities", "prediction", "contributions")
TESTS = "quadboost_self_test"  # the key of the examples in the metadata
NO_ROWS = "give some rows, to_onnx(pipeline, X[:1]), as an array or a pandas DataFrame"
NEEDS_ONNXRUNTIME = (
    "running the self-test of an ONNX model needs onnxruntime, which is not installed; pip install 'quadboost[onnx]'"
)
NEEDS_ONNX = "exporting to ONNX needs onnx, which is not installed; pip install 'quadboost[onnx]'"


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
        Also return what each term adds to the score.
    missing_text : str
        What stands for a missing text, which ONNX has not. It must be no level.

    Returns
    -------
    onnx.ModelProto
        Its input is a matrix X, NaN where missing; or, if features hold text, a column of shape (m, 1) for each of
        them, by name. Its outputs are scores, and label and probabilities, or prediction.
    """
    one_of("dtype", dtype, ("float64", "float32"))
    one_of("contributions", contributions, (False, True))
    if not isinstance(missing_text, str):
        raise ValueError(f"missing_text={missing_text!r:.60} must be text")
    check_text([missing_text], "ONNX")
    helper = _import_onnx()
    from . import preparation  # which imports this module

    before, last = preparation.split(model) if hasattr(model, "steps") else ([], model)
    form = additive(last)
    check_text(form.names, "ONNX")
    check_text([*form.classes, *(v for levels in form.levels.values() for v in levels)], "ONNX", nul=True)
    if X is not None or before:
        _check_rows(X, dtype)
    if before:
        steps = preparation.Preparation(before, X)
        graph = Graph(np.dtype(dtype), missing_text, ml=preparation.ML_OPSET)
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
    return made


def self_test(model: str | os.PathLike[str] | bytes | ModelProto) -> int:
    """Run a model's own examples by onnxruntime, and return how many of their scores differ.

    Those of a float32 model may differ as much as its rounding explains.
    """
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        raise ImportError(NEEDS_ONNXRUNTIME) from None

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
        session = InferenceSession(model)
    except Exception as error:  # of many kinds
        raise ValueError(f"onnxruntime cannot load the model: {error}") from error
    metadata = session.get_modelmeta().custom_metadata_map
    if TESTS not in metadata:
        raise ValueError("the model has no self-test; only those that quadboost.export.to_onnx writes have one")
    tests = json.loads(metadata[TESTS])
    found = session.run(["scores"], session_input(session, tests["rows"], tests["missing_text"]))[0]
    expected = np.array([[float.fromhex(score) for score in row] for row in tests["scores"]])
    differs = np.abs(found.reshape(expected.shape).astype(np.float64) - expected) > tests["tolerance"]
    return int(differs.any(axis=1).sum())


def session_input(session: Any, rows: Sequence[Sequence[Any]], missing_text: str = "") -> dict[str, np.ndarray]:
    """Rows of plain values, None where missing, as a session of onnxruntime takes them."""
    types = {"string": object, "double": np.float64, "float": np.float32, "int64": np.int64, "bool": np.bool_}
    inputs, feed, first = session.get_inputs(), dict[str, np.ndarray](), 0
    for one in inputs:
        kind = one.type.removeprefix("tensor(").removesuffix(")")
        width = one.shape[1] if len(inputs) > 1 else len(rows[0])
        missing = missing_text if kind == "string" else np.nan
        own = [[missing if v is None else v for v in row[first : first + width]] for row in rows]
        feed[one.name] = np.array(own, dtype=types[kind])
        first += width
    return feed


def _import_onnx() -> Any:
    try:
        from onnx import helper
    except ImportError:
        raise ImportError(NEEDS_ONNX) from None
    return helper


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


def input_names(features: Sequence[str]) -> dict[str, str]:
    """The names of inputs: those of the features, but for the names of outputs, and an empty one."""
    found: dict[str, str] = {}
    for name in features:
        own = name
        while not own or own in OUTPUTS or (own != name and own in features):
            own += "_input"
        found[name] = own
    return found


def _shape(model: Additive, output: str) -> list[int | None]:
    several = [] if model.ensemble.weight.ndim == 1 else [model.n_outputs]
    shapes = {"label": [], "probabilities": [len(model.classes)], "contributions": [len(model.terms) or 1, *several]}
    return [None, *shapes.get(output, several)]


def _tests(model: Additive, graph: Graph, examples: Examples) -> dict[str, Any]:
    """Rows, their scores, and by how much these may differ."""
    size = np.abs(model.intercept) + sum(np.abs(term.as_tree().values).max(axis=0) for term in model.terms)
    rounding = 0.0 if graph.dtype == np.float64 else float(np.max(size)) * (len(model.terms) + 2) * 2.0**-24
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


class Graph:
    """Nodes and constants of a graph, as they are added. Names that it makes begin with a prefix.

    It needs opset 13, and 3 of ai.onnx.ml; from 5 on it has fewer nodes.
    """

    def __init__(
        self, dtype: np.dtype[Any], missing_text: str = "", prefix: str = PREFIX, ml: int = OPSETS[ML]
    ) -> None:
        from onnx import TensorProto

        self.helper = _import_onnx()
        self.dtype, self.missing_text, self.prefix, self.ml = dtype, missing_text, prefix, ml
        self.element, self.string = self.helper.np_dtype_to_tensor_dtype(dtype), TensorProto.STRING
        self.opsets = {"": OPSETS[""], ML: ml}
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []

    def add(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(op, list(inputs), [output], output, domain=domain, **attributes))
        return output

    def constant(self, values: Any) -> str:
        """A constant; floats are of the graph's type."""
        array = np.asarray(values)
        tensor = self.tensor(array.astype(self.dtype) if array.dtype.kind == "f" else array, len(self.initializers))
        self.initializers.append(tensor)
        return tensor.name

    def tensor(self, array: np.ndarray, number: int = 0) -> Any:
        name = f"{self.prefix}constant {number}"
        if array.dtype.kind in "UO":
            return self.helper.make_tensor(name, self.string, array.shape, [str(v).encode() for v in array.ravel()])
        element = self.helper.np_dtype_to_tensor_dtype(array.dtype)
        return self.helper.make_tensor(name, element, array.shape, array.ravel().tolist())

    def as_output(self, name: str, value: str, shape: list[int | None]) -> Any:
        """Give a value a name of its own."""
        self.nodes.append(self.helper.make_node("Identity", [value], [name], f"{self.prefix}output {name}"))
        element = self.label_element if name == "label" else self.element
        return self.helper.make_tensor_value_info(name, element, shape)

    # ---- from columns to outputs

    def outputs_of(self, model: Additive, columns: list[str], contributions: bool = False) -> dict[str, str]:
        """What the model makes of columns of shape (m, 1), or of one matrix; output -> where it is."""
        if self.missing_text in {value for levels in model.levels.values() for value in levels}:
            raise ValueError(
                f"missing_text={self.missing_text!r} is a level; give text that is none for missing values"
            )
        terms = [self._term(term, self._numbers(model, columns)) for term in self._terms(model)]
        scores = self.constant(model.intercept[None, :])
        for term in terms:
            scores = self.add("Add", scores, term)
        outputs = {"scores": self._flat(scores) if model.ensemble.weight.ndim == 1 else scores}
        if model.classes:
            label = self._label(model, scores)
            outputs["label"] = self.add("Gather", self._classes(model.classes), self._flat(label), axis=0)
            outputs["probabilities"] = self._probabilities(model, scores, label)
        else:
            predictions = scores if model.link == "identity" else self._exp(self._rounded(scores))
            outputs["prediction"] = self._flat(predictions) if model.ensemble.weight.ndim == 1 else predictions
        if contributions:
            outputs["contributions"] = self._stack(model, terms)
        return outputs

    def _terms(self, model: Additive) -> list[Term]:
        """At least one, so that there is a score for each row."""
        nothing = np.zeros((1, model.n_outputs))
        return model.terms or [Steps("nothing", 0, np.empty(0), nothing, nothing[0])]

    def _numbers(self, model: Additive, columns: list[str]) -> str:
        """The rows as one matrix of numbers; levels by their number."""
        if not hasattr(self, "matrix"):
            self.matrix = columns[0] if not model.levels and len(columns) == 1 else self._encoded(model, columns)
        return self.matrix

    def _encoded(self, model: Additive, columns: list[str]) -> str:
        if len(columns) == 1 and len(model.names) > 1:
            places = range(len(model.names))
            columns = [self.add("Gather", columns[0], self.constant(np.array([j])), axis=1) for j in places]
        numbers = [self._encode(model, feature, column) for feature, column in enumerate(columns)]
        return self.add("Concat", *numbers, axis=1)

    def _encode(self, model: Additive, feature: int, column: str) -> str:
        """A column of shape (m, 1) as numbers."""
        if feature not in model.levels:
            return column
        levels = model.levels[feature]
        if model.holds[feature] in (TEXT, MIXED):
            known = {value: level for value, level in levels.items() if isinstance(value, str)}
            keys, codes = [*known, self.missing_text], [*map(float, known.values()), np.nan]
            unseen = model.unseen(feature)
            level = self.add(
                "LabelEncoder", column, domain=ML, keys_strings=keys, values_floats=codes, default_float=unseen
            )
            return self.add("Cast", level, to=self.element)
        return self._term(_levels_as_steps(levels), column)

    def _term(self, term: Term, numbers: str) -> str:
        """What a term adds, shape (m, n_outputs)."""
        tree = term.as_tree()
        if self.ml >= 5 and tree.values.shape[1] == 1:
            return self._leaf_value(tree, numbers)
        return self.add("Gather", self.constant(tree.values), self._leaf(tree, numbers), axis=0)

    def _leaf(self, tree: Tree, numbers: str) -> str:
        """The number of the leaf that a row falls into, shape (m,)."""
        if self.ml >= 5:
            numbered = replace(tree, values=np.arange(len(tree.feature), dtype=np.float64)[:, None])
            found = self._leaf_value(numbered, numbers)
        else:
            found = self._leaf_as_float(tree, numbers)
        return self.add("Cast", self._flat(found), to=self._integer)

    def _leaf_as_float(self, tree: Tree, numbers: str) -> str:
        """The same as a float, shape (m, 1): before opset 5 trees may compare doubles, but they return floats."""
        is_leaf, nodes = tree.feature < 0, np.arange(len(tree.feature))
        if_true, if_false = _branches(tree)
        modes = np.where(is_leaf, "LEAF", np.where(tree.is_level, "BRANCH_EQ", "BRANCH_LEQ"))
        leaves = tree.leaves.tolist()
        return self.add(
            "TreeEnsembleRegressor",
            numbers,
            domain=ML,
            n_targets=1,
            nodes_treeids=[0] * len(nodes),
            nodes_nodeids=nodes.tolist(),
            nodes_modes=modes.tolist(),
            nodes_featureids=np.maximum(tree.feature, 0).tolist(),
            nodes_values_as_tensor=self.tensor(_at_most(tree.threshold, self.dtype)),
            nodes_missing_value_tracks_true=(tree.missing_right == tree.is_level).astype(int).tolist(),
            nodes_truenodeids=if_true.tolist(),
            nodes_falsenodeids=if_false.tolist(),
            target_treeids=[0] * len(leaves),
            target_nodeids=leaves,
            target_ids=[0] * len(leaves),
            target_weights_as_tensor=self.tensor(tree.leaves.astype(self.dtype)),
        )

    def _leaf_value(self, tree: Tree, numbers: str) -> str:
        """The value of the leaf that a row falls into, shape (m, 1). Opset 5 has trees that return doubles."""
        is_leaf = tree.feature < 0
        inner = np.flatnonzero(~is_leaf)
        place = np.where(is_leaf, np.cumsum(is_leaf), np.cumsum(~is_leaf)) - 1  # leaves and other nodes are two lists
        if_true, if_false = (child[inner] for child in _branches(tree))
        return self.add(
            "TreeEnsemble",
            numbers,
            domain=ML,
            n_targets=1,
            tree_roots=[0],
            nodes_modes=self.tensor(np.where(tree.is_level[inner], EQUAL, UP_TO).astype(np.uint8)),
            nodes_featureids=tree.feature[inner].tolist(),
            nodes_splits=self.tensor(_at_most(tree.threshold[inner], self.dtype)),
            nodes_missing_value_tracks_true=(tree.missing_right == tree.is_level)[inner].astype(int).tolist(),
            nodes_truenodeids=place[if_true].tolist(),
            nodes_trueleafs=is_leaf[if_true].astype(int).tolist(),
            nodes_falsenodeids=place[if_false].tolist(),
            nodes_falseleafs=is_leaf[if_false].astype(int).tolist(),
            leaf_targetids=[0] * len(tree.leaves),
            leaf_weights=self.tensor(tree.values[tree.leaves, 0].astype(self.dtype)),
        )

    def _stack(self, model: Additive, terms: list[str]) -> str:
        if model.ensemble.weight.ndim == 1:
            return self.add("Concat", *terms, axis=1)
        second = self.constant(np.array([1]))
        return self.add("Concat", *(self.add("Unsqueeze", term, second) for term in terms), axis=1)

    # ---- labels and probabilities

    @property
    def _integer(self) -> int:
        return int(self.helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)))

    def _flat(self, column: str) -> str:
        return self.add("Squeeze", column, self.constant(np.array([1])))

    def _classes(self, classes: list[Any]) -> str:
        array = np.array(classes, dtype=object if isinstance(classes[0], str) else None)
        text = array.dtype.kind == "O"
        self.label_element = self.string if text else self.helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = self.tensor(array, len(self.initializers))  # as it is: a label is not rounded
        self.initializers.append(tensor)
        return str(tensor.name)

    def _label(self, model: Additive, scores: str) -> str:
        """The place of the label, shape (m, 1)."""
        if model.n_outputs == 1:
            return self.add("Cast", self.add("Greater", scores, self.constant(0.0)), to=self._integer)
        return self.add("ArgMax", scores, axis=1, keepdims=1)

    def _probabilities(self, model: Additive, scores: str, label: str) -> str:
        if model.n_outputs == 1:
            return self.add("Concat", *self._two_classes(model.link, scores), axis=1)
        if model.link == "softmax":
            near = self._rounded(scores)
            shares = self._exp(self.add("Sub", near, self.add("GatherElements", near, label, axis=1)))
        else:
            zero, places = self.constant(0.0), self.constant(np.arange(model.n_outputs)[None, :])
            shares = self.add("Max", self.add("Add", scores, self.constant(1.0)), zero)
            certain = self.add("Cast", self.add("Equal", label, places), to=self.element)
            hopeless = self.add("Not", self.add("Greater", self._total(shares), zero))
            shares = self.add("Where", hopeless, certain, shares)
        return self.add("Div", shares, self._total(shares))

    def _two_classes(self, link: str, scores: str) -> tuple[str, str]:
        one, zero = self.constant(1.0), self.constant(0.0)
        if link == "logit":
            odds = self._exp(self.add("Neg", self._rounded(self.add("Abs", scores))))
            less = self.add("Div", odds, self.add("Add", one, odds))
            more, is_second = self.add("Sub", one, less), self.add("Greater", scores, zero)
            return self.add("Where", is_second, less, more), self.add("Where", is_second, more, less)
        half = self.add("Div", self.add("Add", one, scores), self.constant(2.0))
        second = self.add("Min", self.add("Max", half, zero), one)
        return self.add("Sub", one, second), second

    def _total(self, shares: str) -> str:
        return self.add("ReduceSum", shares, self.constant(np.array([1])), keepdims=1)

    def _rounded(self, scores: str) -> str:
        """Multiples of 2^-44, which the last bit of 256 is: as quadboost/model/links.py rounds."""
        coarse, distance = self.constant(256.0), self.add("Abs", scores)
        near = self.add("Sub", self.add("Add", distance, coarse), coarse) if self.dtype == np.float64 else distance
        return self.add(
            "Where", self.add("Less", distance, coarse), self.add("Mul", self.add("Sign", scores), near), scores
        )

    def _exp(self, scores: str) -> str:
        most = 708.0 if self.dtype == np.float64 else 87.0
        within = self.add("Min", self.add("Max", scores, self.constant(-most)), self.constant(most))
        return self.add("Exp", within)


def _branches(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Where each node leads if the value is at most the threshold, or is the level; and else. 0 for leaves."""
    left, right = np.arange(len(tree.feature)) + 1, tree.right
    branches = np.where(tree.is_level, right, left), np.where(tree.is_level, left, right)
    return tuple(np.where(tree.feature < 0, 0, branch) for branch in branches)  # type: ignore[return-value]


def _levels_as_steps(levels: dict[str | float, int]) -> Steps:
    """The level of a number: each value is alone between two cuts; -1 elsewhere."""
    known = np.array(sorted(levels), dtype=np.float64)
    cuts = np.unique(np.concatenate([np.nextafter(known, -np.inf), known]))
    codes = [float(levels.get(cut, -1)) for cut in cuts.tolist()]
    return Steps("level", 0, cuts, np.array([[*codes, -1.0]]).T, np.array([np.nan]))


def _at_most(thresholds: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The largest numbers of a type that are not above: what is above one of them is above the threshold."""
    with np.errstate(over="ignore"):
        near = thresholds.astype(dtype)
    return np.where(near > thresholds, np.nextafter(near, dtype.type(-np.inf)), near)
