"""Voters that a model cannot have are refused."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.voters.checking import bins_of_shapes, check_bins, check_patterns, check_trees, check_voters
from quadboost.voters.trees import Trees

# Feature 1 has three levels; 0 and 2 are numbers.
CATEGORIES = {1: [["a"], ["b"], ["c", "d"]]}
KNOWN = {
    "feature": [0, 0, 0, 1, 1, 2],
    "kind": [0, 0, 2, 1, 2, 0],
    "threshold": [-1.5, 2.0, 0.0, 2.0, 0.0, 0.0],
    "weight": [[0.1], [0.2], [0.3], [0.4], [0.5], [0.6]],
    "intercept": [0.0],
}
TYPES = {"feature": np.int32, "kind": np.uint8}


def check(n_features=3, categories=CATEGORIES, **changes):
    arrays = {name: np.array(values, dtype=TYPES.get(name, float)) for name, values in (KNOWN | changes).items()}
    check_voters(**arrays, n_features=n_features, categories=categories)


def changed(name, place, value):
    values = [*KNOWN[name]]
    values[place] = value
    return {name: values}


def test_what_a_model_has_is_taken():
    check()
    check(feature=[], kind=[], threshold=[], weight=np.empty((0, 1)))


@pytest.mark.parametrize("name", ["kind", "threshold", "weight"])
def test_as_many_of_everything_as_there_are_voters(name):
    with pytest.raises(ValueError, match=f"there are 5 of {name} for 6 voters"):
        check(**{name: KNOWN[name][:-1]})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("name", "place", "told"), [("threshold", 1, "1"), ("weight", 3, "3, 0"), ("intercept", 0, "0")]
)
def test_numbers_are_finite(name, place, told, value):
    change = changed(name, place, [value] if name == "weight" else value)
    with pytest.raises(ValueError, match=f"{name} {told} is {value}, not a finite number"):
        check(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed("feature", 5, 3), "voter 5 looks at feature 3, but there are 3 features"),
        (changed("feature", 2, -1), "voter 2 looks at feature -1, but there are 3 features"),
        (changed("kind", 5, 3), "voter 5 is of kind 3, but the kinds are 0, 1 and 2"),
        (changed("threshold", 2, 1.0), r"voter 2 is of kind 2 \(missing\) and has the threshold 1.0, not 0"),
        (changed("kind", 3, 0), "voter 3 has a threshold, but feature 1 is categorical"),
        (changed("kind", 1, 1), "voter 1 stands for a level, but feature 0 has none"),
        (changed("threshold", 3, 3.0), "voter 3 stands for level 3.0, which its feature does not have"),
        (changed("threshold", 3, -1.0), "voter 3 stands for level -1.0"),
        (changed("threshold", 3, 0.5), "voter 3 stands for level 0.5"),
        (changed("threshold", 1, -1.5), "voter [01] stands there twice"),
        ({"categories": {}}, "voter 3 stands for a level, but feature 1 has none"),
        ({"n_features": 2}, "voter 5 looks at feature 2, but there are 2 features"),
    ],
)
def test_what_no_model_has_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        check(**change)


def test_zero_and_minus_zero_are_the_same_threshold():
    with pytest.raises(ValueError, match="stands there twice"):
        check(feature=[0, 0], kind=[0, 0], threshold=[0.0, -0.0], weight=[[1.0], [1.0]], categories={})


def test_the_same_threshold_of_other_features_and_kinds_is_another_voter():
    check(feature=[0, 2, 0], kind=[0, 0, 2], threshold=[0.0, 0.0, 0.0], weight=[[1.0]] * 3, categories={})


def test_one_voter_twice_is_found_among_many():
    rng = np.random.default_rng(0)
    feature, threshold = rng.integers(0, 50, size=20_000), rng.normal(size=20_000)
    both = {"kind": np.zeros(20_000), "weight": np.ones((20_000, 1)), "n_features": 50, "categories": {}}
    check(feature=feature, threshold=threshold, **both)
    feature[17_000], threshold[17_000] = feature[123], threshold[123]
    with pytest.raises(ValueError, match=r"voter (123|17000) stands there twice"):
        check(feature=feature, threshold=threshold, **both)


def test_a_model_may_say_that_it_has_very_many_features():
    check(n_features=2**31 - 1)


def check_mass(mass, error=()):
    check_bins(np.array(mass), np.array(error), np.array(KNOWN["feature"]), np.array(KNOWN["kind"]), CATEGORIES)


def test_a_shape_function_has_a_bin_for_each_value_and_one_for_missing():
    assert bins_of_shapes(np.array(KNOWN["feature"]), np.array(KNOWN["kind"]), CATEGORIES).tolist() == [4, 5, 3]
    assert bins_of_shapes(np.empty(0, np.int32), np.empty(0, np.uint8), {}).tolist() == []


def test_masses_are_those_of_all_bins_or_unknown():
    check_mass([])
    check_mass([0.0, 1, 0, 0, 0.5, 0.5, 0, 0, 0, 0.0, 0, 1])
    for wrong, message in (
        (np.ones(11), "bin_mass has 11 values, but the shape functions have 12 bins"),
        (np.zeros(12), "adds up to 0.0 for shape function 0"),
        (np.append(np.ones(11), -1e-9), "bin_mass 11 is -1e-09, less than 0"),
        (np.append(np.ones(11), np.inf), "bin_mass 11 is inf, not a finite number"),
        (np.append(np.ones(9), [1e308] * 3), "adds up to inf for shape function 2"),
    ):
        with pytest.raises(ValueError, match=message):
            check_mass(wrong)


def test_errors_are_of_all_bins_and_go_with_masses():
    check_mass(np.ones(12), np.zeros((12, 3)))
    for mass, error, message in (
        (np.ones(12), np.ones(11), "bin_error has 11 values, but the shape functions have 12 bins"),
        (np.ones(12), np.full(12, np.nan), "bin_error 0 is nan, not a finite number"),
        (np.ones(12), np.append(np.ones(11), -0.5), "bin_error 11 is -0.5, less than 0"),
        ([], np.ones(12), "there are errors of bins, but no masses"),
    ):
        with pytest.raises(ValueError, match=message):
            check_mass(mass, error)


# Of two trees: one asks for a number and then for a level, the other is a root alone.
NODES = {
    "start": [0, 5, 6],
    "feature": [0, -1, 1, -1, -1, -1],
    "threshold": [0.5, 0.0, 2.0, 0.0, 0.0, 0.0],
    "missing_right": [1, 0, 0, 0, 0, 0],
}


def check_nodes(weight=(0, 1, 2, 3, 4, 0), mass=(), n_features=2, categories=CATEGORIES, **changes):
    types = (np.int64, np.int32, np.float64, np.uint8)
    arrays = (np.array(values, dtype) for values, dtype in zip((NODES | changes).values(), types, strict=True))
    check_trees(Trees(*arrays), np.array(weight, float), np.array(mass, float), n_features, categories)


def nodes_changed(name, place, value):
    values = [*NODES[name]]
    values[place] = value
    return {name: values}


def test_trees_that_a_model_has_are_taken():
    check_nodes()
    check_nodes(mass=[4, 1, 3, 0, 3, 4])
    check_nodes(weight=np.zeros((6, 3)), n_features=2**31 - 1)
    check_trees(Trees.none(), np.zeros((0, 2)), np.zeros(0), 0, {})
    check_nodes(**nodes_changed("threshold", 2, 0.5), categories={})  # no level, if the feature has none


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (nodes_changed("feature", 2, 2), "node 2 asks for feature 2, but there are 2 features"),
        (nodes_changed("feature", 5, -2), "node 5 asks for feature -2; a leaf has -1"),
        (nodes_changed("missing_right", 0, 2), "node 0 sends missing values to side 2, not 0 or 1"),
        (nodes_changed("missing_right", 1, 1), "node 1 is a leaf, and has the threshold 0.0 or a side for missing"),
        (nodes_changed("threshold", 1, 1.0), "node 1 is a leaf, and has the threshold 1.0"),
        (nodes_changed("threshold", 2, 3.0), "node 2 asks for level 3.0, which its feature does not have"),
        (nodes_changed("threshold", 2, 0.5), "node 2 asks for level 0.5"),
        (nodes_changed("threshold", 0, np.inf), "node_threshold 0 is inf, not a finite number"),
        (nodes_changed("start", 1, 4), "tree 1 is not one"),
        (nodes_changed("start", 1, 0), "do not share out the 6 nodes in order"),
        (nodes_changed("start", 2, 7), "do not share out the 6 nodes in order"),
        (nodes_changed("start", 0, -1), "do not share out the 6 nodes in order"),
        ({"start": [0, 5, 2**63 - 1, -(2**63), 6]}, "do not share out the 6 nodes in order"),
        ({"categories": {1: []}}, "node 2 asks for level 2.0"),
        ({"weight": np.zeros(5)}, "there are 6 thresholds, 6 sides for missing values and 5 weights for 6 nodes"),
        ({"weight": [0, 1, np.nan, 1, 1, 0]}, "node_weight 2 is nan, not a finite number"),
        ({"weight": [0, 1, 1, 1, 1, 1]}, "the root of tree 1 has the weight 1.0, not 0"),
        ({"mass": [1] * 5}, r"node_mass has the shape \(5,\); give one for each of the 6 nodes, or none"),
        ({"mass": np.ones((6, 1))}, r"node_mass has the shape \(6, 1\)"),
        ({"mass": [4, 1, 3, -1, 3, 4]}, "node_mass 3 is -1.0, less than 0"),
        ({"mass": [4, 1, 3, 0, 3, 0]}, "the root of tree 1 has the mass 0.0, not more than 0"),
        ({"mass": [4, 5, 3, 0, 3, 4]}, "node_mass 1 is 5.0, more than that of the root"),
    ],
)
def test_trees_that_no_model_has_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        check_nodes(**change)


def test_patterns_are_of_nodes_each_once_in_order():
    def check_those(node=(1, 1, 2), pattern=(0, 3, 1), mass=(1.0, 2.0, 0.5)):
        check_patterns(np.array(node), np.array(pattern), np.array(mass), 3)

    check_those()
    check_those((), (), ())
    for wrong, message in (
        ({"node": (1, 1, 3)}, "pattern 2 is of node 3, but there are 3 nodes"),
        ({"node": (-1, 1, 2)}, "pattern 0 is of node -1"),
        ({"pattern": (-1, 3, 1)}, "pattern 0 is -1, less than 0"),
        ({"pattern": (3, 3, 1)}, "patterns do not ascend within nodes: 3 stands after"),
        ({"node": (1, 2, 1)}, "patterns do not ascend within nodes"),
        ({"mass": (1.0, 0.0, 1.0)}, "pattern_mass 1 is 0.0, not a finite number above 0"),
        ({"mass": (1.0, np.nan, 1.0)}, "pattern_mass 1 is nan"),
        ({"mass": (1.0, 1e300, 1.0)}, "pattern_mass 1 is 1e\\+300, more than 1e\\+290"),
        ({"mass": (1.0, 1.0)}, "there are"),
    ):
        with pytest.raises(ValueError, match=message):
            check_those(**wrong)
