"""Rules: what they say in words, where they hold, and that they add up to the scores."""

from __future__ import annotations

import re

import numpy as np
import pytest
from some_trees import random_trees, way_of

from quadboost import Ensemble
from quadboost.model.rules import MOST_SHOWN, rules_of
from quadboost.voters.trees import Trees

LEVELS = [["red"], ["green", "blue"], ["grey"]]
THRESHOLDS = [np.array([-1.5, 0.25, 3.0]), np.zeros(0), np.array([0.0, 1e-3, 2.5e6])]


def trees_of(feature, threshold=(), missing_right=()):
    """One tree; thresholds and sides are those of the inner nodes."""
    feature = np.array(feature, np.int32)
    thresholds, sides = np.zeros(len(feature)), np.zeros(len(feature), np.uint8)
    inner = feature >= 0
    thresholds[inner] = threshold
    sides[inner] = missing_right
    return Trees(np.array([0, len(feature)]), feature, thresholds, sides)


def model_of(trees, node_weight=None, n_outputs=None, **more):
    """Trees alone, on an ordered feature, one with levels, and an ordered one."""
    if node_weight is None:
        node_weight = np.where(trees.is_root, 0.0, 1.0)
    weight, intercept = (np.zeros(0), 0.0) if n_outputs is None else (np.zeros((0, n_outputs)), np.zeros(n_outputs))
    nodes = {"trees": trees, "node_weight": node_weight}
    return Ensemble([], [], weight, intercept, n_features=3, categories={1: LEVELS}, **nodes, **more)


def random_model(seed, n_outputs):
    """Trees, of which some leaves cannot be reached, and some nodes have no weight; and perhaps voters."""
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, [1, 2, 9, 40, 3, 16], THRESHOLDS, {1: len(LEVELS)})
    outputs = () if n_outputs is None else (n_outputs,)
    node_weight = rng.normal(size=(trees.n_nodes, *outputs))
    node_weight[(rng.random(trees.n_nodes) < 0.3) | trees.is_root] = 0.0
    feature, kind, threshold = ([0, 0, 1, 2], [0, 0, 1, 2], [0.0, 1.0, 2.0, 0.0]) if seed % 2 else ([], [], [])
    return Ensemble(
        feature, threshold, rng.normal(size=(len(feature), *outputs)), rng.normal(size=outputs), kind=kind,
        n_features=3, categories={1: LEVELS}, feature_names=["size", "colour", "price"], trees=trees,
        node_weight=node_weight,
    )  # fmt: skip


def matrix(n, seed=0):
    """What `matrix_of` makes: levels are numbers, -1 is one never seen, NaN is missing."""
    rng = np.random.default_rng(seed)
    near = [np.concatenate([cuts, np.nextafter(cuts, np.inf), [-np.inf, np.inf, 0.1]]) for cuts in THRESHOLDS]
    X = np.column_stack([rng.choice(near[0], n), rng.integers(-1, 3, n), rng.choice(near[2], n)])
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rule_holds_for_the_rows_that_pass_through_its_node(seed, dtype):
    model = random_model(seed, None)
    X = matrix(150).astype(dtype)
    passed = np.zeros((model.trees.n_nodes, len(X)), dtype=bool)
    for r, row in enumerate(X):
        for t in range(model.trees.n_trees):
            passed[way_of(model.trees, t, row, model.categories), r] = True
    rules = model.rules()
    assert len(rules) == model.n_rules > 20
    for rule in rules:
        np.testing.assert_array_equal(rule.holds(X), passed[rule.node])
        np.testing.assert_array_equal(rule.weight, model.node_weight[rule.node])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_outputs", [None, 1, 3])
def test_intercept_shapes_and_rules_add_up_to_the_score(seed, n_outputs):
    model, X = random_model(seed, n_outputs), matrix(100)
    no_trees = model.replace(trees=Trees.none(), node_weight=model.node_weight[:0])
    scores = no_trees.score_matrix(X)
    for rule in model.rules():
        scores = scores + np.multiply.outer(np.where(rule.holds(X), 1.0, -1.0), rule.weight)
    np.testing.assert_allclose(model.score_matrix(X), scores, rtol=0, atol=1e-11)


def asked_in_words(words, value, levels):
    """Whether a printed condition holds; `value` is a number, or one of the names of a level; None is missing."""
    or_missing = words.startswith("(") and words.endswith(" or missing)")
    if or_missing:
        words = words[1 : -len(" or missing)")]
    if value is None:
        return or_missing or words.endswith(" is missing")
    if words.endswith((" is missing", " is impossible")):
        return False
    if levels is not None:
        _, is_not, names = re.fullmatch(r"(\w+) is (not )?(.*)", words).groups()
        return (value in re.split(", | or ", names)) != bool(is_not)
    below, above, most = re.fullmatch(r"(?:(\S+) < )?\w+(?: > (\S+)| <= (\S+))", words).groups()
    is_above = all(value > float(bound) for bound in (below, above) if bound)
    return is_above and (most is None or value <= float(most))


@pytest.mark.parametrize("seed", range(4))
def test_a_rule_holds_where_its_words_say(seed):
    model, X = random_model(seed, None), matrix(100)
    columns = [[None if x != x else x for x in column] for column in X.T.tolist()]
    columns[1] = [None if x is None else LEVELS[int(x)][0] if x >= 0 else "never seen" for x in columns[1]]
    for rule in model.rules():
        found = np.ones(len(X), dtype=bool)
        for condition in rule.conditions:
            values, levels = columns[condition.feature], model.categories.get(condition.feature)
            found &= [asked_in_words(condition.words, value, levels) for value in values]
        np.testing.assert_array_equal(found, rule.holds(X), err_msg=str(rule))


def words(trees, node, **more):
    return {rule.node: [condition.words for condition in rule.conditions] for rule in model_of(trees, **more).rules()}[
        node
    ]


def test_conditions_of_one_feature_are_merged():
    trees = trees_of([0, -1, 0, 0, -1, -1, -1], [-1.5, 3.0, 0.25], [0, 0, 0])  # -1.5 < x; x <= 3; x <= or > 0.25
    assert words(trees, 1) == ["(feature 0 <= -1.5 or missing)"]
    assert words(trees, 2) == ["feature 0 > -1.5"]
    assert words(trees, 3) == ["-1.5 < feature 0 <= 3"]
    assert words(trees, 4) == ["-1.5 < feature 0 <= 0.25"]
    assert words(trees, 5) == ["0.25 < feature 0 <= 3"]
    assert words(trees, 6) == ["feature 0 > 3"]


@pytest.mark.parametrize(
    ("threshold", "printed"),
    [
        (39.5, "39.5"),
        (1 / 300, "0.00333333"),
        (123456.5, "123456.5"),
        (1700000001.5, "1700000001.5"),
        (-1700000001.5, "-1700000001.5"),
        (1e15, "1000000000000000.0"),
        (1e300, "1e+300"),
    ],
)
def test_a_printed_threshold_tells_whole_numbers_apart(threshold, printed):
    trees = trees_of([0, -1, -1], [threshold], [0])
    assert words(trees, 2) == [f"feature 0 > {printed}"]


def test_conditions_of_several_features_are_joined_in_the_order_of_the_way():
    trees = trees_of([2, -1, 1, -1, 0, -1, -1], [0.0, 1.0, 3.0], [1, 0, 1])
    names = {"feature_names": ["size", "colour", "price"]}
    assert words(trees, 3, **names) == ["(price > 0 or missing)", "(colour is not green or blue or missing)"]
    assert words(trees, 6, **names) == ["(price > 0 or missing)", "colour is green or blue", "(size > 3 or missing)"]
    (rule,) = [rule for rule in model_of(trees, **names).rules() if rule.node == 3]
    assert str(rule) == "+1  if (price > 0 or missing) and (colour is not green or blue or missing)"


def test_levels_are_merged():
    trees = trees_of([1, 1, -1, -1, 1, -1, -1], [0.0, 2.0, 1.0], [0, 1, 0])
    assert words(trees, 2) == ["feature 1 is not red, grey"]
    assert words(trees, 3) == ["(feature 1 is grey or missing)"]
    assert words(trees, 4) == ["feature 1 is red"]
    assert words(trees, 5) == ["feature 1 is red"]  # which is not green or blue
    assert words(trees, 6) == ["feature 1 is impossible"]  # red, and green or blue


def test_what_only_missing_values_reach_is_told():
    of_levels = trees_of([1, -1, 1, -1, -1], [0.0, 0.0], [1, 0])  # red or missing; then not red or missing
    assert words(of_levels, 3) == ["feature 1 is missing"]
    assert words(of_levels, 4) == ["feature 1 is red"]
    ordered = trees_of([0, -1, 0, -1, -1], [3.0, 3.0], [1, 0])
    assert words(ordered, 3) == ["feature 0 is missing"]
    assert words(ordered, 4) == ["feature 0 > 3"]
    X = np.array([[np.nan, np.nan, 0.0], [3.0, 0.0, 0.0], [4.0, 1.0, 0.0], [-np.inf, -1.0, 0.0]])
    for trees in (of_levels, ordered):
        held = {rule.node: rule.holds(X).tolist() for rule in model_of(trees).rules()}
        assert held[3] == [True, False, False, False]


def test_support_and_importance_are_those_of_the_rows():
    trees = trees_of([0, -1, 0, -1, -1], [0.0, 1.0], [0, 0])
    weight, mass = np.array([0.0, 0.1, 0.0, -0.5, 0.3]), np.array([8.0, 4.0, 4.0, 0.0, 4.0])
    model = model_of(trees, weight, node_mass=mass)
    rules = model.rules()
    assert [rule.node for rule in rules] == [4, 1, 3]
    assert [rule.support for rule in rules] == [0.5, 0.5, 0.0]
    assert [rule.n_rows for rule in rules] == [4.0, 4.0, 0.0]
    assert [rule.importance for rule in rules] == pytest.approx([0.3, 0.1, 0.0])
    assert str(rules[0]) == "+0.3  if feature 0 > 1  (50.0% of the rows)"
    adds = np.repeat([0.1, -0.1], 4)
    assert rules[1].importance == pytest.approx(np.std(adds))
    unknown = model.replace(node_mass=None).rules()
    assert [rule.node for rule in unknown] == [3, 4, 1]
    assert [rule.importance for rule in unknown] == [0.5, 0.3, 0.1]
    assert all(np.isnan([rule.support, rule.n_rows]).all() for rule in unknown)
    assert str(unknown[0]) == "-0.5  if 0 < feature 0 <= 1"


def test_weights_of_several_outputs_are_shown():
    trees = trees_of([0, -1, -1], [0.5], [0])
    model = model_of(trees, np.array([[0.0, 0.0], [1.0, -0.25], [0.0, 0.0]]), 2)
    assert model.n_rules == 1
    assert str(model.rules()) == "[+1 -0.25]  if (feature 0 <= 0.5 or missing)"


def test_few_rules_are_made_where_few_are_asked_for():
    model = random_model(0, None)
    assert [str(rule) for rule in rules_of(model, 3)] == [str(rule) for rule in model.rules()[:3]]
    text = str(model.rules()).splitlines()
    assert len(text) == MOST_SHOWN + 1
    assert text[-1] == f"... and {model.n_rules - MOST_SHOWN} more"
    assert str(model_of(Trees.none(), np.zeros(0)).rules()) == "no rules"


def test_weights_that_are_all_but_infinite_have_rules():
    trees = trees_of([0, -1, -1], [0.5], [0])
    weight = np.array([[0.0, 0.0], [1e308, 1e308], [1.0, 0.0]])
    model = model_of(trees, weight, 2, node_mass=[1.0, 0.0, 1.0])
    assert len(model.rules()) == 2
