"""What a model file holds, and what must be true of it: plain arrays, and the rest as JSON.

A value that is wrong here could send a kernel out of bounds later, so each one is checked, whoever wrote it.
"""

import json
import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.schema import INTEGERS
from ..voters.checking import check_bins, check_patterns, check_trees, check_voters
from ..voters.trees import Trees
from .checked_file import CheckedFileError
from .links import check_link, default_link

MAX_INFO_DEPTH = 32
# A small file must not take much memory: a parsed item of JSON takes up to 300 bytes, and every label in an array of
# text takes as much as the longest.
MAX_ITEMS = 2**21
MAX_LABEL_BYTES = 2**24

_KEYS_1 = {"n_features", "one_output", "classes", "feature_names", "categories", "info"}
METADATA_KEYS = {1: _KEYS_1, 2: _KEYS_1 | {"loss", "link"}}  # by format
_LABEL_TYPES: dict[str, type] = {  # by dtype of the labels: the type that a label has in JSON
    "bool": bool,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), int),
    **dict.fromkeys(("float16", "float32", "float64"), float),
    **dict.fromkeys(("str", "object"), str),
}


class ModelFileError(CheckedFileError):
    """A file that is not a whole and valid model, or a model that no file can hold."""


@dataclass
class ModelRecord:
    """The arguments of an `Ensemble`, under their names."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    weight: NDArray[np.float64]
    intercept: float | NDArray[np.float64]
    kind: NDArray[np.uint8]
    n_features: int
    classes: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    categories: dict[int, list[list[Any]]] = field(default_factory=dict)
    loss: str = "squared"
    link: str | None = None
    slope: float | NDArray[np.float64] = 1.0
    bin_mass: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    bin_error: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    trees: Trees = field(default_factory=Trees.none)
    node_weight: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    node_mass: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    pattern_node: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    pattern: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    pattern_mass: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    info: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, ensemble: Any) -> "ModelRecord":
        return cls(**{item.name: getattr(ensemble, item.name) for item in fields(cls)})

    def arguments(self) -> dict[str, Any]:
        return dict(vars(self))


Arrays = dict[str, NDArray[Any]]


def to_parts(record: ModelRecord) -> tuple[Arrays, bytes]:
    """The arrays, weights and bin_error 2-d, intercept and slope 1-d, and the metadata. Values are not checked."""
    weight, trees = np.asarray(record.weight), record.trees
    one_output = weight.ndim == 1

    def by_output(values: Any) -> NDArray[Any]:
        values = np.asarray(values)
        flat = values.ndim == 1 and (one_output or not len(values))
        return values.reshape(len(values), 1 if one_output else weight.shape[-1]) if flat else values

    slope = np.asarray(record.slope)
    if slope.ndim == 0:
        slope = np.full(np.atleast_1d(record.intercept).shape, slope)
    arrays = {
        "threshold": _as_array("threshold", record.threshold, "<f8", 1),
        "weight": _as_array("weight", weight[:, None] if one_output else weight, "<f8", 2),
        "intercept": _as_array("intercept", np.atleast_1d(record.intercept), "<f8", 1),
        "slope": _as_array("slope", slope, "<f8", 1),
        "bin_mass": _as_array("bin_mass", record.bin_mass, "<f8", 1),
        "bin_error": _as_array("bin_error", by_output(record.bin_error), "<f8", 2),
        "node_threshold": _as_array("node_threshold", trees.threshold, "<f8", 1),
        "node_weight": _as_array("node_weight", by_output(record.node_weight), "<f8", 2),
        "node_mass": _as_array("node_mass", record.node_mass, "<f8", 1),
        "pattern_mass": _as_array("pattern_mass", record.pattern_mass, "<f8", 1),
        "pattern_node": _as_array("pattern_node", record.pattern_node, "<i4", 1),
        "pattern": _as_array("pattern", record.pattern, "<i4", 1),
        "tree_size": _as_array("tree_size", np.diff(trees.start), "<i4", 1),
        "node_feature": _as_array("node_feature", trees.feature, "<i4", 1),
        "feature": _as_array("feature", record.feature, "<i4", 1),
        "node_missing_right": _as_array("node_missing_right", trees.missing_right, "|u1", 1),
        "kind": _as_array("kind", record.kind, "|u1", 1),
    }
    for name in ("threshold", "weight", "feature", "kind", "intercept", "slope"):
        if len(arrays[name]) != arrays["weight"].shape[1 if name in ("intercept", "slope") else 0]:
            raise ModelFileError(f"{name} has {len(arrays[name])} values, but weight has the shape {weight.shape}")
    for name in ("bin_error", "node_weight"):
        if arrays[name].shape[1] != arrays["weight"].shape[1]:
            raise ModelFileError(f"{name} has the shape {arrays[name].shape}, but weight has the shape {weight.shape}")
    for name in ("node_threshold", "node_weight", "node_missing_right"):
        if len(arrays[name]) != len(arrays["node_feature"]):
            raise ModelFileError(f"{name} has {len(arrays[name])} values for {len(arrays['node_feature'])} nodes")
    for name in ("pattern_node", "pattern_mass"):
        if len(arrays[name]) != len(arrays["pattern"]):
            raise ModelFileError(f"{name} has {len(arrays[name])} values for {len(arrays['pattern'])} patterns")
    metadata = {
        "n_features": record.n_features,
        "one_output": one_output,
        "classes": None if record.classes is None else _plain_classes(np.asarray(record.classes)),
        "feature_names": record.feature_names,
        "categories": {str(feature): levels for feature, levels in record.categories.items()},
        "loss": record.loss,
        "link": default_link(record.classes is not None) if record.link is None else record.link,
        "info": record.info,
    }
    try:
        # In ASCII even the lone surrogates survive that Python makes of names it could not decode.
        text = json.dumps(metadata, default=_plain, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"the metadata cannot be written as JSON: {error}") from None
    return arrays, text.encode("ascii")


def from_parts(arrays: Arrays, text: bytes, file_format: int) -> ModelRecord:
    """The record of arrays of the right dtypes and shapes and of metadata. Checks every value."""
    metadata = _parse(text, METADATA_KEYS[file_format])
    if file_format == 1:  # had one loss, and one link each for targets and labels
        metadata |= {"loss": "squared", "link": default_link(metadata["classes"] is not None)}
        arrays = {**_since_format_2(len(arrays["intercept"])), **arrays}
    n_features, one_output = metadata["n_features"], metadata["one_output"]
    n_outputs = len(arrays["intercept"])
    if type(n_features) is not int or not 0 <= n_features < 2**31:
        raise ModelFileError(f"n_features is {n_features!r:.60}, not a whole number below 2**31")
    if type(one_output) is not bool or (one_output and n_outputs != 1):
        raise ModelFileError(f"one_output is {one_output!r:.60}, and there are {n_outputs} outputs")
    classes = _checked_classes(metadata["classes"], n_outputs)
    feature_names = _checked_names(metadata["feature_names"], n_features)
    categories = _checked_categories(metadata["categories"], n_features)
    info = metadata["info"]
    if type(info) is not dict:
        raise ModelFileError(f"info is {info!r:.60}, not a dict")
    if wrong := _wrong_in(info, MAX_INFO_DEPTH):
        raise ModelFileError(f"info{wrong}")
    voters = {name: arrays[name] for name in ("feature", "kind", "threshold", "weight", "intercept")}
    start = np.concatenate([[0], np.cumsum(arrays["tree_size"], dtype=np.int64)])
    trees = Trees(start, *(arrays[f"node_{name}"] for name in ("feature", "threshold", "missing_right")))
    try:
        check_voters(**voters, n_features=n_features, categories=categories)
        check_trees(trees, arrays["node_weight"], arrays["node_mass"], n_features, categories)
        check_patterns(arrays["pattern_node"], arrays["pattern"], arrays["pattern_mass"], trees.n_nodes)
        check_bins(arrays["bin_mass"], arrays["bin_error"], arrays["feature"], arrays["kind"], categories)
        check_link(metadata["loss"], metadata["link"], arrays["slope"], 0 if classes is None else len(classes))
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    return ModelRecord(
        feature=arrays["feature"],
        threshold=arrays["threshold"],
        weight=arrays["weight"][:, 0] if one_output else arrays["weight"],
        intercept=float(arrays["intercept"][0]) if one_output else arrays["intercept"],
        kind=arrays["kind"],
        n_features=n_features,
        classes=classes,
        feature_names=feature_names,
        categories=categories,
        loss=metadata["loss"],
        link=metadata["link"],
        slope=float(arrays["slope"][0]) if one_output else arrays["slope"],
        bin_mass=arrays["bin_mass"],
        bin_error=arrays["bin_error"][:, 0] if one_output else arrays["bin_error"],
        trees=trees,
        node_weight=arrays["node_weight"][:, 0] if one_output else arrays["node_weight"],
        node_mass=arrays["node_mass"],
        pattern_node=arrays["pattern_node"],
        pattern=arrays["pattern"],
        pattern_mass=arrays["pattern_mass"],
        info=info,
    )


def _since_format_2(n_outputs: int) -> Arrays:
    """What a file of format 1 does not have."""
    names = ("tree_size", "node_feature", "node_threshold", "node_mass", "node_missing_right")
    trees: Arrays = dict(zip(names, (np.zeros(0, dtype) for dtype in ("i4", "i4", "f8", "f8", "u1")), strict=True))
    bins = {"bin_mass": np.empty(0), "bin_error": np.empty((0, n_outputs))}
    bins |= {"pattern_mass": np.empty(0), "pattern_node": np.empty(0, np.int32), "pattern": np.empty(0, np.int32)}
    return {"slope": np.ones(n_outputs), **bins, **trees, "node_weight": np.empty((0, n_outputs))}


def _as_array(name: str, values: ArrayLike, dtype: str, ndim: int) -> NDArray[Any]:
    unchecked = np.asarray(values)
    if unchecked.ndim != ndim or unchecked.dtype.kind not in ("iuf" if dtype == "<f8" else "iu"):
        raise ModelFileError(f"{name} is {unchecked.ndim}-d of {unchecked.dtype}, not {ndim}-d of {np.dtype(dtype)}")
    array = unchecked.astype(dtype)
    if dtype != "<f8" and (wrong := array != unchecked).any():
        raise ModelFileError(f"{name} {wrong.argmax()} is {unchecked[wrong][0]}, which {np.dtype(dtype)} does not hold")
    return array


def _plain(value: object) -> object:
    """What `json` does not know, as what it knows."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r:.60} is a {type(value).__name__}")


def _plain_classes(labels: NDArray[Any]) -> dict[str, Any]:
    dtype = {"U": "str", "O": "object"}.get(labels.dtype.kind, labels.dtype.name)
    _check_label_dtype(dtype)
    return {"dtype": dtype, "values": labels.tolist()}


def _parse(text: bytes, keys: set[str]) -> dict[str, Any]:
    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("an object has a key twice")
        return found

    n_items = sum(map(text.count, (b",", b"[", b"{")))  # those within strings too: a few too many do no harm
    if n_items > MAX_ITEMS:
        raise ModelFileError(f"the metadata has {n_items} commas and opening brackets, at most {MAX_ITEMS} are read")
    try:
        metadata = json.loads(text.decode("utf-8"), object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the metadata is not JSON as quadboost writes it: {error}") from None
    if type(metadata) is not dict or metadata.keys() != keys:
        raise ModelFileError(f"the metadata does not have just the keys {', '.join(sorted(keys))}")
    return metadata


def _checked_classes(classes: Any, n_outputs: int) -> NDArray[Any] | None:
    if classes is None:
        return None
    if type(classes) is not dict or classes.keys() != {"dtype", "values"}:
        raise ModelFileError(f"classes is {classes!r:.60}, not a dtype and values")
    dtype, values = classes["dtype"], classes["values"]
    _check_label_dtype(dtype)
    if type(values) is not list or len(values) < 2 or n_outputs != (1 if len(values) == 2 else len(values)):
        raise ModelFileError(f"the classes {values!r:.60} do not go with {n_outputs} outputs")
    for value in values:
        if type(value) is not _LABEL_TYPES[dtype] or not _is_scalar(value):
            raise ModelFileError(f"the class {value!r:.60} is not a finite {_LABEL_TYPES[dtype].__name__}")
    if dtype == "str" and (n_bytes := 4 * len(values) * max(map(len, values))) > MAX_LABEL_BYTES:
        raise ModelFileError(
            f"the classes take {n_bytes} bytes as an array as wide as the longest of them, at most {MAX_LABEL_BYTES} "
            "are allowed; shorten it, or give labels as objects: y.astype(object)"
        )
    try:
        with np.errstate(over="raise"):
            labels = np.array(values, dtype=dtype)
    except (OverflowError, FloatingPointError):
        raise ModelFileError(f"the classes {values!r:.60} do not fit {dtype}") from None
    if len(set(labels.tolist())) != len(labels):
        raise ModelFileError(f"the classes {values!r:.60} are not distinct")
    return labels


def _check_label_dtype(dtype: Any) -> None:
    if type(dtype) is not str or dtype not in _LABEL_TYPES:
        raise ModelFileError(f"classes have the dtype {dtype!r:.60}, not one of {', '.join(_LABEL_TYPES)}")


def _checked_names(names: Any, n_features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if type(names) is not list or any(type(name) is not str for name in names):
        raise ModelFileError(f"feature_names is {names!r:.60}, not a list of strings")
    if len(names) != n_features:
        raise ModelFileError(f"there are {len(names)} feature_names for {n_features} features")
    if len(set(names)) != len(names):
        raise ModelFileError("the feature_names are not distinct")
    return tuple(names)


def _checked_categories(categories: Any, n_features: int) -> dict[int, list[list[Any]]]:
    if type(categories) is not dict:
        raise ModelFileError(f"categories is {categories!r:.60}, not a dict")
    checked = {}
    for key, levels in categories.items():
        feature = int(key) if key.isascii() and key.isdigit() and len(key) <= 10 else -1
        if str(feature) != key or not 0 <= feature < n_features:
            raise ModelFileError(f"categories has the feature {key!r:.60}, but there are {n_features} features")
        if type(levels) is not list or not all(type(level) is list and level for level in levels):
            raise ModelFileError(f"the levels of feature {feature} are not lists of one category or more")
        values = [value for level in levels for value in level]
        for value in values:
            if not _is_scalar(value):
                raise ModelFileError(f"a category of feature {feature} is {value!r:.60}: not a number or string")
            if type(value) is int and value not in INTEGERS:
                raise ModelFileError(
                    f"a category of feature {feature} is {value!r:.60}: an integer beyond 64 bits; make it text"
                )
        if len(set(values)) != len(values):  # 1, 1.0 and True are one: a value is looked up by equality
            raise ModelFileError(f"feature {feature} has the same category twice")
        checked[feature] = levels
    return checked


def _is_scalar(value: object) -> bool:
    return type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value))


def _wrong_in(value: dict[str, Any] | list[Any], depth: int) -> str:
    """The path to the first value that is not finite or is nested too deep, and what is wrong; "" if nothing is."""
    if depth == 0:
        return f" is nested more than {MAX_INFO_DEPTH} deep"
    for key, item in value.items() if type(value) is dict else enumerate(value):
        if type(item) in (dict, list):
            wrong = _wrong_in(item, depth - 1)
        else:
            wrong = "" if item is None or _is_scalar(item) else f" is {item}, not a finite number"
        if wrong:
            return f"[{key!r:.60}]{wrong}"
    return ""
