"""Nodes of ONNX: a TreeEnsemble for each term, a chain of additions, which has the same bits, and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.packages import needed
from ..data.schema import MIXED, TEXT
from .additive import Additive, Steps, Term, Tree, check_labels, check_text

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

ML = "ai.onnx.ml"
OPSETS = {"": 21, ML: 5}  # the first with a TreeEnsemble of doubles
UP_TO, EQUAL = 0, 4  # modes of nodes: true where the value is at most the threshold, or equals it
PREFIX = "quadboost/"  # of names inside the model
OUTPUTS = ("scores", "label", "probabilities", "prediction", "intercept", "contributions")


class Graph:
    """Nodes and constants of a graph, as they are added. Names that it makes begin with a prefix.

    It needs opset 13, and 3 of ai.onnx.ml; from 5 on it has fewer nodes.
    """

    def __init__(
        self, dtype: np.dtype[Any], missing_text: str = "", prefix: str = PREFIX, ml: int = OPSETS[ML]
    ) -> None:
        from onnx import TensorProto

        self.helper = import_onnx()
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
        known = {value for levels in model.levels.values() for value in levels}
        check_labels(model.classes, "ONNX")
        check_text([*model.classes, *known], "ONNX", nul=True)
        if self.missing_text in known:
            raise ValueError(
                f"missing_text={self.missing_text!r} is a level; give text that is none for missing values"
            )
        numbers = self._numbers(model, columns)
        first, *others = self._terms(model)
        # The intercept has no node: onnxruntime takes one below 1e-45 for 0, and leaves it out.
        scores = self._term(first, numbers, model.intercept)
        terms = [self._term(term, numbers) for term in others]
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
            outputs["intercept"] = self.constant(model.intercept)
            outputs["contributions"] = self._stack(model, [self._term(first, numbers), *terms])
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

    def _term(self, term: Term, numbers: str, start: float | np.ndarray = 0.0) -> str:
        """What a term adds to a start, shape (m, n_outputs)."""
        tree = term.as_tree()
        tree = replace(tree, values=start + tree.values)
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
        # Leaves and other nodes are two lists.
        position = np.where(is_leaf, np.cumsum(is_leaf), np.cumsum(~is_leaf)) - 1
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
            nodes_truenodeids=position[if_true].tolist(),
            nodes_trueleafs=is_leaf[if_true].astype(int).tolist(),
            nodes_falsenodeids=position[if_false].tolist(),
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
            hopeless = self.add("Not", self.add("Greater", self._total(shares, model.n_outputs), zero))
            shares = self.add("Where", hopeless, certain, shares)
        return self.add("Div", shares, self._total(shares, model.n_outputs))

    def _two_classes(self, link: str, scores: str) -> tuple[str, str]:
        one, zero = self.constant(1.0), self.constant(0.0)
        if link == "logit":
            odds = self._exp(self.add("Neg", self._rounded(self.add("Abs", scores))))
            other = self.add("Div", odds, self.add("Add", one, odds))
            more, is_second = self.add("Sub", one, other), self.add("Greater", scores, zero)
            return self.add("Where", is_second, other, more), self.add("Where", is_second, more, other)
        half = self.add("Div", self.add("Add", one, scores), self.constant(2.0))
        second = self.add("Min", self.add("Max", half, zero), one)
        return self.add("Sub", one, second), second

    def _total(self, shares: str, n: int) -> str:
        """The sum of n columns. More than a few are added in pairs first, so that small ones are not lost."""
        while n > 8:
            paired = n // 2 * 2
            pairs = self.add("Add", self._every_second(shares, 0, paired), self._every_second(shares, 1, paired))
            rest = [self._every_second(shares, paired, n)] if n > paired else []
            shares, n = self.add("Concat", pairs, *rest, axis=1), n - paired // 2
        return self.add("ReduceSum", shares, self.constant(np.array([1])), keepdims=1)

    def _every_second(self, columns: str, first: int, end: int) -> str:
        return self.add("Slice", columns, *(self.constant(np.array([value])) for value in (first, end, 1, 2)))

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


def import_onnx() -> Any:
    return needed("onnx.helper", "exporting to ONNX needs", "'quadboost[onnx]'")


def input_names(features: Sequence[str]) -> dict[str, str]:
    """The names of inputs: those of the features, but for the names of outputs, and an empty one."""
    found: dict[str, str] = {}
    for name in features:
        free_name = name
        while not free_name or free_name in OUTPUTS or (free_name != name and free_name in features):
            free_name += "_input"
        found[name] = free_name
    return found
