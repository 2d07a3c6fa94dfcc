"""Trees in records and files: all that a file can say of them is kept, or refused."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import bits, calibrated, forged, only_trees, softmax
from some_trees import chain

import quadboost
from quadboost import Ensemble
from quadboost.model.file import ModelFileError, ModelRecord, read_model, write_model
from quadboost.voters.trees import Trees

Change = Callable[[dict[str, Any], dict[str, Any]], None]


def put(name: str, place: Any, value: Any) -> Change:
    def change(arrays: dict[str, Any], _: dict[str, Any]) -> None:
        arrays[name][place] = value

    return change


def arrays(**changes: Any) -> Change:
    return lambda arrays, _: arrays.update(
        {name: np.asarray(values, arrays[name].dtype) for name, values in changes.items()}
    )


PREORDER = "is not one: its nodes are not in preorder, each with two or none below it"
SHARED = "the trees do not share out the 9 nodes in order; each has at least one"
WRONG = {  # of `calibrated`, whose three trees have 5, 3 and 1 nodes
    "feature too large": (put("node_feature", 5, 4), "node 5 asks for feature 4, but there are 4 features"),
    "feature largest": (put("node_feature", 5, 2**31 - 1), "node 5 asks for feature 2147483647"),
    "feature -2": (put("node_feature", 8, -2), "node 8 asks for feature -2; a leaf has -1"),
    "feature smallest": (put("node_feature", 8, -(2**31)), "node 8 asks for feature -2147483648"),
    "threshold nan": (put("node_threshold", 0, np.nan), "node_threshold 0 is nan, not a finite number"),
    "threshold inf": (put("node_threshold", 5, -np.inf), "node_threshold 5 is -inf, not a finite number"),
    "threshold of a leaf": (put("node_threshold", 1, 5e-324), "node 1 is a leaf, and has the threshold 5e-324"),
    "nan of a leaf": (put("node_threshold", 1, np.nan), "node_threshold 1 is nan, not a finite number"),
    "side of a leaf": (put("node_missing_right", 8, 1), "node 8 is a leaf, and has the threshold 0.0 or a side"),
    "side 2": (put("node_missing_right", 0, 2), "node 0 sends missing values to side 2, not 0 or 1"),
    "side 255": (put("node_missing_right", 0, 255), "node 0 sends missing values to side 255"),
    "level too large": (put("node_threshold", 2, 2.0), "node 2 asks for level 2.0, which its feature does not have"),
    "level negative": (put("node_threshold", 2, -1.0), "node 2 asks for level -1.0"),
    "level between two": (put("node_threshold", 2, 0.5), "node 2 asks for level 0.5"),
    "level huge": (put("node_threshold", 2, 1e300), "node 2 asks for level 1e+300"),
    "weight nan": (put("node_weight", (3, 0), np.nan), "node_weight 3, 0 is nan, not a finite number"),
    "weight inf": (put("node_weight", (4, 0), np.inf), "node_weight 4, 0 is inf, not a finite number"),
    "weight of a root": (put("node_weight", (5, 0), 0.5), "the root of tree 1, 0 has the weight 0.5, not 0"),
    "mass nan": (put("node_mass", 2, np.nan), "node_mass 2 is nan, not a finite number"),
    "mass inf": (put("node_mass", 0, np.inf), "node_mass 0 is inf, not a finite number"),
    "mass negative": (put("node_mass", 3, -5e-324), "node_mass 3 is -5e-324, less than 0"),
    "mass of a root zero": (put("node_mass", slice(5, 8), 0.0), "the root of tree 1 has the mass 0.0, not more than 0"),
    "mass above that of the root": (put("node_mass", 7, 4.6), "node_mass 7 is 4.6, more than that of the root"),
    "masses too few": (arrays(node_mass=np.ones(8)), "node_mass has the shape (8,); give one for each of the 9 nodes"),
    "masses too many": (arrays(node_mass=np.ones(10)), "node_mass has the shape (10,)"),
    "masses of nothing": (
        arrays(tree_size=[], node_feature=[], node_threshold=[], node_missing_right=[], node_weight=np.empty((0, 1))),
        "node_mass has the shape (9,); give one for each of the 0 nodes",
    ),
    "size zero": (arrays(tree_size=[5, 0, 3, 1]), SHARED),
    "size negative": (arrays(tree_size=[5, 5, -2, 1]), SHARED),
    "sizes too small": (arrays(tree_size=[5, 3]), SHARED),
    "sizes too large": (arrays(tree_size=[5, 3, 2]), SHARED),
    "sizes beyond 32 bits": (arrays(tree_size=[2**31 - 1, 2**31 - 1, 2, 9]), SHARED),
    "sizes that wrap around": (arrays(tree_size=[2**31 - 1, -(2**31), 10]), SHARED),
    "no trees for the nodes": (arrays(tree_size=[]), SHARED),
    "one tree": (arrays(tree_size=[9]), f"tree 0 {PREORDER}"),
    "a leaf too few": (arrays(tree_size=[4, 4, 1]), f"tree 1 {PREORDER}"),
    "an inner node last": (put("node_feature", 8, 0), f"tree 2 {PREORDER}"),
    "inner nodes alone": (put("node_feature", slice(None), 0), f"tree 2 {PREORDER}"),
    "leaves alone": (
        arrays(node_feature=[-1] * 9, node_threshold=np.zeros(9), node_missing_right=np.zeros(9)),
        f"tree 1 {PREORDER}",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_tree_in_a_file_is_refused(change: Change, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.h5"
    path.write_bytes(forged(calibrated(), change))
    with pytest.raises(ModelFileError, match=re.escape(message)) as caught:
        read_model(path)
    assert str(caught.value).startswith(f"cannot load {path}: ")


RIGHT: dict[str, Change] = {
    "no masses": arrays(node_mass=[]),
    "masses that were rounded": put("node_mass", 7, 4.5 * (1 + 1e-9)),
    "a mass for each of few rows": put("node_mass", slice(None), 5e-324),
    "the largest masses": put("node_mass", slice(None), 1.7976931348623157e308),
    "trees of a root alone": arrays(
        tree_size=[1] * 9,
        node_feature=[-1] * 9,
        node_threshold=np.zeros(9),
        node_missing_right=np.zeros(9),
        node_weight=np.zeros((9, 1)),
        node_mass=np.ones(9),
    ),
    "the largest weights": put("node_weight", (slice(6, 8), 0), 1.7e308),
    "a feature of no name": lambda _, metadata: metadata.update(n_features=2**31 - 1, feature_names=None),
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT)
def test_what_is_strange_but_right_is_read(change: Change, tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    path.write_bytes(forged(calibrated(), change))
    found = read_model(path)
    path.unlink()
    write_model(path, found)
    assert bits(read_model(path)) == bits(found)
    assert len(Ensemble(**found.arguments()).rules()) == quadboost.load(path).n_rules


@pytest.mark.parametrize(
    ("changes", "message"),
    {
        "weights of other nodes": ({"node_weight": np.zeros(8)}, "node_weight has 8 values for 9 nodes"),
        "weights of two outputs": ({"node_weight": np.zeros((9, 2))}, "node_weight has the shape (9, 2), but weight"),
        "weights 3-d": ({"node_weight": np.zeros((9, 1, 1))}, "node_weight is 3-d of float64, not 2-d of float64"),
        "weights text": ({"node_weight": np.array(["a"] * 9)}, "node_weight is 2-d of <U1, not 2-d of float64"),
        "masses 2-d": ({"node_mass": np.ones((9, 1))}, "node_mass is 2-d of float64, not 1-d of float64"),
        "a mass too few": ({"node_mass": np.ones(8)}, "node_mass has the shape (8,)"),
        "a root with a weight": ({"node_weight": np.ones(9)}, "the root of tree 0, 0 has the weight 1.0, not 0"),
        "no trees": ({"trees": Trees.none()}, "node_weight has 9 values for 0 nodes"),
    }.values(),
)
def test_a_wrong_tree_is_not_saved(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    with pytest.raises(ModelFileError, match=re.escape(message)):
        write_model(path, replace(calibrated(), **changes))
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": np.zeros(8)}, "threshold"),
        ({"missing_right": np.zeros(3, np.uint8)}, "node_missing_right has 3 values for 9 nodes"),
        ({"feature": np.zeros(9)}, "node_feature is 1-d of float64, not 1-d of int32"),
        ({"feature": np.full(9, 2**32)}, "node_feature 0 is 4294967296, which int32 does not hold"),
        ({"start": np.array([0, 2**40, 9])}, "tree_size 0 is 1099511627776, which int32 does not hold"),
    ],
)
def test_arrays_of_trees_that_do_not_go_together_are_not_saved(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    record = replace(calibrated(), trees=replace(calibrated().trees, **changes))
    with pytest.raises(ModelFileError, match=message):
        write_model(tmp_path / "model.h5", record)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n_leaves", [1, 2, 32, 33, 254])
def test_trees_of_up_to_254_leaves_are_kept(n_leaves: int, tmp_path: Path) -> None:
    path, trees = tmp_path / "model.h5", chain(n_leaves, np.arange(n_leaves - 1.0))
    record = replace(only_trees(), categories={}, trees=trees, node_weight=np.where(trees.is_root, 0.0, 1.0))
    write_model(path, record)
    assert bits(read_model(path)) == bits(record)


def test_a_tree_of_255_leaves_is_refused(tmp_path: Path) -> None:
    trees = Trees.joined([chain(2, [0.0]), chain(255, np.arange(254.0))])
    record = replace(only_trees(), categories={}, trees=trees, node_weight=np.zeros(trees.n_nodes))
    with pytest.raises(ModelFileError, match="tree 1 has 255 leaves, at most 254 are read"):
        write_model(tmp_path / "model.h5", record)


@pytest.mark.parametrize("make", [calibrated, softmax, only_trees])
def test_a_model_with_trees_is_the_same_when_it_was_saved(make: Callable[[], ModelRecord], tmp_path: Path) -> None:
    model = Ensemble(**make().arguments())
    model.save(tmp_path / "model.h5")
    loaded = quadboost.load(tmp_path / "model.h5")
    assert [str(rule) for rule in loaded.rules()] == [str(rule) for rule in model.rules()]
    assert repr(loaded) == repr(model)
    X = np.random.default_rng(0).normal(size=(50, model.n_features))
    for feature, levels in model.categories.items():
        X[:, feature] = np.arange(50) % (len(levels) + 1) - 1
    np.testing.assert_array_equal(loaded.score_matrix(X), model.score_matrix(X))
