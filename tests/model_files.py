"""Models, files of them that `write_model` would not write, and what is true of every valid model."""

import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from some_trees import random_trees

import quadboost
from quadboost.model import checked_file
from quadboost.model import file as model_file
from quadboost.model.record import ModelRecord, to_parts
from quadboost.voters.trees import Trees

TESTS = Path(__file__).parent


def example() -> ModelRecord:
    """The model of tests/data/model-v1.h5: one of every kind of thing that a file can hold."""
    return ModelRecord(
        feature=np.array([2, 0, 1, 1, 0, 3], np.int32),
        threshold=np.array([-0.0, 1.5, 1.0, 0.0, 0.0, 5e-324]),
        weight=np.array([0.5, -0.25, 0.125, -0.0, 1e-310, 0.1]),
        intercept=-0.0625,
        kind=np.array([0, 0, 1, 1, 2, 0], np.uint8),
        n_features=4,
        classes=np.array(["non", "ouï ✓"]),
        feature_names=("âge", "ville", "", "x\x00\ud800"),
        categories={1: [["Québec"], ["a", "b", True, 7, -2.5]]},
        link="clipped",
        info={"penalty": "l1", "risk": [0.5, 0.25], "stopped": None, "nested": {"fit": [[True, 3, 1e-300]]}},
    )


def calibrated() -> ModelRecord:
    """The model of tests/data/model-v2.h5: the same voters, with a link folded into their weights, masses and trees."""
    link = {"weight": 2.5 * example().weight, "intercept": 0.125, "link": "logit", "slope": 2.5}
    of_bins = [[3.0, 1.0, 0.5], [2.0, 2.5, 0.0, 0.0], [0.0, 4.5, 0.0], [4.25, 0.25, 0.0]]  # the last of each: missing
    bins = {"bin_mass": np.concatenate(of_bins), "bin_error": np.arange(13) / 64}
    trees = Trees(
        start=np.array([0, 5, 8, 9]),
        feature=np.array([0, -1, 1, -1, -1, 3, -1, -1, -1], np.int32),
        threshold=np.array([1.5, 0.0, 1.0, -0.0, 0.0, -2.5, 0.0, 0.0, 0.0]),
        missing_right=np.array([1, 0, 0, 0, 0, 0, 0, 0, 0], np.uint8),
    )
    node_weight = np.array([0.0, 0.5, -0.25, 0.0, -0.75, -0.0, 1e-310, 0.125, 0.0])
    node_mass = np.array([4.5, 2.0, 2.5, 0.0, 2.5, 4.5, 0.5, 4.0, 4.5])
    nodes = {"trees": trees, "node_weight": node_weight, "node_mass": node_mass}
    patterns = {  # of the rules that lead to the nodes 1, 2, 4, 6 and 7
        "pattern_node": np.array([1, 1, 2, 2, 4, 4, 4, 6, 6, 7, 7], np.int32),
        "pattern": np.array([0, 1, 0, 1, 0, 1, 3, 0, 1, 0, 1], np.int32),
        "pattern_mass": np.array([2.5, 2.0, 2.0, 2.5, 1.5, 0.5, 2.5, 4.0, 0.5, 0.5, 4.0]),
    }
    return replace(example(), **link, **bins, **nodes, **patterns)


def many_outputs() -> ModelRecord:
    return ModelRecord(
        feature=np.array([0, 1], np.int32),
        threshold=np.array([0.5, -1.0]),
        weight=np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]),
        intercept=np.array([0.0, 0.5, 1.0]),
        kind=np.zeros(2, np.uint8),
        n_features=2,
        classes=np.array([1, 2, 9]),
        link="clipped",
        slope=np.ones(3),
        bin_error=np.empty((0, 3)),
        node_weight=np.empty((0, 3)),
    )


def softmax() -> ModelRecord:
    bins = {"bin_mass": np.array([1e300, 0.0, 0.0, 1.0, 2.0, 3.0]), "bin_error": np.arange(18.0).reshape(6, 3)}
    slope = np.array([1.0, 5e-324, 1e300])
    trees = random_trees(np.random.default_rng(0), [2, 3], [np.arange(3.0), np.arange(-5.0, 0.0)])
    node_weight = np.arange(24.0).reshape(8, 3)
    node_weight[trees.start[:-1]] = 0.0
    nodes = {"trees": trees, "node_weight": node_weight, "node_mass": np.arange(8.0, 0.0, -1.0)}
    return replace(many_outputs(), loss="logistic", link="softmax", slope=slope, **bins, **nodes)


def only_trees() -> ModelRecord:
    """Small and large trees, without masses; two features have levels."""
    rng = np.random.default_rng(1)
    thresholds = [np.linspace(-1, 1, 9), np.zeros(0), np.zeros(0)]
    trees = random_trees(rng, [2] * 20 + [1, 33, 254], thresholds, {1: 3, 2: 1})
    node_weight = rng.normal(size=trees.n_nodes) * (rng.random(trees.n_nodes) < 0.5)
    node_weight[trees.start[:-1]] = 0.0
    return ModelRecord(
        np.empty(0, np.int32),
        np.empty(0),
        np.empty(0),
        -0.5,
        np.empty(0, np.uint8),
        n_features=3,
        categories={1: [["a"], ["b", "c"], [2.5]], 2: [[1]]},
        link="identity",
        trees=trees,
        node_weight=node_weight,
    )


def constant() -> ModelRecord:
    """A regression without a single voter."""
    return ModelRecord(
        np.empty(0, np.int32),
        np.empty(0),
        np.empty((0, 1)),
        np.array([3.5]),
        np.empty(0, np.uint8),
        n_features=0,
        link="identity",
        slope=np.ones(1),
        bin_error=np.empty((0, 1)),
        node_weight=np.empty((0, 1)),
    )


def counts() -> ModelRecord:
    return replace(constant(), loss="poisson", link="log")


MODELS = [example, calibrated, many_outputs, softmax, constant, counts, only_trees]


def large(value: float) -> ModelRecord:
    n = 30_000
    return ModelRecord(
        np.arange(n, dtype=np.int32),
        np.full(n, value),
        np.full(n, value),
        value,
        np.zeros(n, np.uint8),
        n_features=n,
        link="identity",
    )


def bits(record: ModelRecord) -> dict[str, Any]:
    """What is equal for two records if and only if they are the same to the last bit."""

    def of(value: Any) -> Any:
        if isinstance(value, Trees):
            return {name: of(array) for name, array in value.arrays().items()}
        if isinstance(value, np.ndarray) and value.dtype != object:
            return value.dtype.str, value.shape, value.tobytes()
        if isinstance(value, np.ndarray):
            return value.dtype.str, value.tolist()
        return repr(value)

    return {name: of(value) for name, value in vars(record).items()}


def parts_of_format_1(record: ModelRecord) -> tuple[dict[str, np.ndarray], bytes]:
    """What a file of format 1 holds of a record: no loss, link, slope, masses or trees."""
    arrays, text = to_parts(record)
    arrays = {name: arrays[name] for name in ("threshold", "weight", "intercept", "feature", "kind")}
    metadata = json.loads(text)
    del metadata["loss"], metadata["link"]
    return arrays, json.dumps(metadata, separators=(",", ":")).encode()


def forged(record: ModelRecord, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """The signed file of a model whose arrays and metadata have been changed in place, without any check."""
    arrays, text = to_parts(record)
    metadata = json.loads(text)
    change(arrays, metadata)
    return model_file._pack(arrays, json.dumps(metadata).encode(), "0.1.0")


def with_metadata(record: ModelRecord, text: bytes) -> bytes:
    return model_file._pack(to_parts(record)[0], text, "0.1.0")


def signed(data: bytes) -> bytes:
    """The file with the length and the SHA-256 that its header should have."""
    return checked_file.signed(data[:24] + struct.pack("<Q", len(data) - 512) + data[32:])


def assert_valid(record: ModelRecord) -> None:
    """All that a kernel may take for granted, checked one by one and slowly."""
    n_voters = len(record.feature)
    assert record.feature.dtype == np.int32
    assert record.kind.dtype == np.uint8
    assert record.threshold.dtype == record.weight.dtype == np.float64
    assert record.feature.shape == record.kind.shape == record.threshold.shape == (n_voters,)
    if record.weight.ndim == 1:
        n_outputs = 1
        assert type(record.intercept) is float
    else:
        n_outputs = record.weight.shape[1]
        assert record.intercept.shape == (n_outputs,)
    assert len(record.weight) == n_voters
    assert np.shape(record.slope) == np.shape(record.intercept)
    assert all(math.isfinite(slope) and slope > 0 for slope in np.ravel(record.slope))
    n_classes = 0 if record.classes is None else len(record.classes)
    assert record.link in {0: ("identity", "log"), 2: ("clipped", "logit")}.get(n_classes, ("clipped", "softmax"))
    assert record.link in ("logit", "softmax") or np.all(record.slope == 1.0)
    assert record.loss in {"identity": ("squared", "huber", "quantile"), "clipped": ("squared",)}.get(
        record.link, ("squared", "logistic") if n_classes else ("squared", "huber", "quantile", "poisson")
    )
    assert all(map(math.isfinite, [*record.weight.ravel(), *np.ravel(record.intercept), *record.threshold]))
    assert type(record.n_features) is int
    assert_masses(record)
    assert_trees(record)
    assert_patterns(record)
    seen = set()
    for feature, kind, threshold in zip(
        record.feature.tolist(), record.kind.tolist(), record.threshold.tolist(), strict=True
    ):
        assert 0 <= feature < record.n_features
        assert kind in (0, 1, 2)
        assert (kind == 1) <= (feature in record.categories)
        assert (kind == 0) <= (feature not in record.categories)
        assert kind != 1 or threshold in range(len(record.categories[feature]))
        assert kind != 2 or threshold == 0
        assert (feature, kind, threshold) not in seen
        seen.add((feature, kind, threshold))
    if record.classes is not None:
        assert n_outputs == {2: 1}.get(len(record.classes), len(record.classes))
        assert len(set(record.classes.tolist())) == len(record.classes) >= 2
        assert all(type(label) in (str, bool, int, float) and label == label for label in record.classes.tolist())
    if record.feature_names is not None:
        assert len(set(record.feature_names)) == record.n_features == len(record.feature_names)
        assert all(type(name) is str for name in record.feature_names)
    for feature, levels in record.categories.items():
        assert 0 <= feature < record.n_features
        values = [value for level in levels for value in level]
        assert all(levels)
        assert len(set(values)) == len(values)
        assert all(type(value) in (str, bool, int) or math.isfinite(value) for value in values)
    assert type(record.info) is dict
    json.dumps(record.info, allow_nan=False)


def assert_masses(record: ModelRecord) -> None:
    """Masses are those of each feature's bins: values, or levels and one never seen; then missing."""
    mass, at = record.bin_mass, 0
    assert mass.dtype == np.float64
    assert mass.ndim == 1
    if len(record.bin_error):
        assert record.bin_error.shape == (len(mass), *record.weight.shape[1:])
        assert all(0 <= error < math.inf for error in record.bin_error.ravel().tolist())
    if not len(mass):
        return
    for feature in sorted(set(record.feature.tolist())):
        n_cuts = np.count_nonzero((record.feature == feature) & (record.kind == 0))
        n_bins = len(record.categories[feature]) + 2 if feature in record.categories else n_cuts + 2
        masses = mass[at : at + n_bins].tolist()
        assert all(0 <= value < math.inf for value in masses)
        assert 0 < sum(masses) < math.inf
        at += n_bins
    assert at == len(mass)


def assert_patterns(record: ModelRecord) -> None:
    """Patterns are of nodes, each once, in order, and have a mass."""
    entries = list(zip(record.pattern_node.tolist(), record.pattern.tolist(), strict=True))
    assert entries == sorted(set(entries))
    assert all(0 <= node < record.trees.n_nodes and pattern >= 0 for node, pattern in entries)
    assert record.pattern_node.dtype == record.pattern.dtype == np.int32
    assert record.pattern_mass.shape == record.pattern.shape
    assert all(0 < mass < math.inf for mass in record.pattern_mass.tolist())


def assert_trees(record: ModelRecord) -> None:
    """Trees are made of all nodes, and a walk through any of them ends at a leaf of its own."""
    trees, weight, mass = record.trees, record.node_weight, record.node_mass
    assert [array.dtype for array in trees.arrays().values()] == [np.int64, np.int32, np.float64, np.uint8]
    assert weight.shape == (trees.n_nodes, *record.weight.shape[1:])
    assert all(map(math.isfinite, [*weight.ravel(), *trees.threshold, *mass]))
    assert len(mass) in (0, trees.n_nodes)
    assert (int(trees.start[0]), int(trees.start[-1])) == (0, trees.n_nodes)
    assert set(trees.missing_right.tolist()) <= {0, 1}
    for first, last in pairwise(trees.start.tolist()):
        n_inner = sum(1 for feature in trees.feature[first:last].tolist() if feature >= 0)
        assert last - first == 2 * n_inner + 1
        assert n_inner < 254
        assert not weight[first].any()
        assert not len(mass) or 0 < mass[first] < math.inf
        ways = [0]  # to the left of each node: how many are open; all are closed at the end, and not before
        for node in range(first, last):
            feature, threshold = int(trees.feature[node]), float(trees.threshold[node])
            ways.append(ways[-1] + (1 if feature >= 0 else -1))
            assert -1 <= feature < record.n_features
            assert feature >= 0 or threshold == trees.missing_right[node] == 0
            assert feature not in record.categories or threshold in range(len(record.categories[feature]))
            assert not len(mass) or 0 <= mass[node] <= 1.001 * mass[first]
        assert min(ways[:-1]) == 0
        assert ways[-1] == -1


def start_python(directory: Path, script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a script or a piece of code in an interpreter that finds the package and the test modules."""
    package = str(Path(quadboost.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, *((script,) if script.endswith(".py") else ("-c", script)), *map(str, arguments)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([package, str(TESTS)]), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
