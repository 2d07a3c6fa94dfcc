"""Scores of models with trees: those of a walk from node to node, to the last bit, however the rows come."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from some_trees import random_trees, way_of

from quadboost import Ensemble
from quadboost.voters.trees import Trees

THRESHOLDS = [np.linspace(-1, 1, 5), np.array([0.1, 0.3]), np.zeros(0), np.array([-1e300, 0.0, 5e-324, 1e300])]
LEVELS = {2: [["a"], ["b", "c"], ["d"]]}
N_FEATURES = len(THRESHOLDS)
SIZES = {
    "one": [5],
    "a root": [1],
    "small": [2, 3, 8, 1, 32] * 3,
    "large": [254, 2, 33],
    "very many": [3] * 300,
}


def model_of(sizes, n_outputs=None, with_levels=False, with_voters=True, seed=0):
    rng = np.random.default_rng(seed)
    outputs = () if n_outputs is None else (n_outputs,)
    thresholds = THRESHOLDS if with_levels else [*THRESHOLDS[:2], np.array([0.5]), THRESHOLDS[3]]
    trees = random_trees(rng, sizes, thresholds, {2: 3} if with_levels else None)
    node_weight = rng.normal(size=(trees.n_nodes, *outputs))
    node_weight[trees.start[:-1]] = 0.0
    n = 3 if with_voters else 0
    return Ensemble(
        [0, 1, 1][:n], [0.25, 0.1, 0.0][:n], rng.normal(size=(n, *outputs)), rng.normal(size=outputs),
        kind=[0, 0, 2][:n], n_features=N_FEATURES, categories=LEVELS if with_levels else None, trees=trees,
        node_weight=node_weight,
    )  # fmt: skip


def rows(n, with_levels=False, seed=1):
    rng = np.random.default_rng(seed)
    near = [np.concatenate([cuts, np.nextafter(cuts, np.inf), [-np.inf, np.inf]]) for cuts in THRESHOLDS]
    X = np.column_stack([rng.choice(values, n) for values in near])
    X[:, 2] = rng.integers(-1, 3, n) if with_levels else rng.choice([0.5, 0.6, -np.inf], n)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


def by_walks(model, X):
    """The same sum in the same order: step functions, then the trees one by one."""
    scores = model.replace(trees=Trees.none(), node_weight=model.node_weight[:0]).score_matrix(X)
    scores, values = scores.reshape(len(X), -1).copy(), model.leaf_values()
    for r, row in enumerate(X):
        for t in range(model.trees.n_trees):
            scores[r] += values[way_of(model.trees, t, row, model.categories)[-1]]
    return scores[:, 0] if model.weight.ndim == 1 else scores


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("n_outputs", [None, 1, 3])
@pytest.mark.parametrize("with_levels", [False, True])
@pytest.mark.thinned(2)
def test_scores_are_those_of_a_walk_to_the_last_bit(sizes, n_outputs, with_levels):
    for with_voters in (False, True):
        model, X = model_of(sizes, n_outputs, with_levels, with_voters), rows(70, with_levels)
        np.testing.assert_array_equal(model.score_matrix(X), by_walks(model, X))
        with np.errstate(over="ignore"):  # of what becomes infinite
            single = X.astype(np.float32)
        np.testing.assert_array_equal(model.score_matrix(single), by_walks(model, single))


@pytest.mark.parametrize("n_outputs", [None, 3])
def test_every_layout_gives_the_same_bits(n_outputs):
    model, X = model_of(SIZES["small"], n_outputs), rows(300)
    known = model.decision_function(X)
    wide = np.zeros((600, 2 * N_FEATURES))
    wide[::2, ::2] = X
    for view in (np.asfortranarray(X), wide[::2, ::2], X[::-1][::-1], X.astype(object), X.tolist()):
        np.testing.assert_array_equal(model.decision_function(view), known)
    np.testing.assert_array_equal(np.concatenate([model.decision_function(row) for row in X]), known)
    np.testing.assert_array_equal(model.decision_function(X[41:290]), known[41:290])
    unaligned = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    np.testing.assert_array_equal(model.decision_function(unaligned), known)


@pytest.mark.parametrize("sizes", [SIZES["small"], SIZES["very many"]], ids=["small", "very many"])
@pytest.mark.parametrize("n_outputs", [None, 2])
def test_any_number_of_threads_gives_the_same_bits(sizes, n_outputs):
    model, X = model_of(sizes, n_outputs), rows(20_000)
    known = model.decision_function(X, n_jobs=1)
    for n_jobs in (2, 5):
        np.testing.assert_array_equal(model.decision_function(X, n_jobs=n_jobs), known)


def test_threads_share_one_model():
    model, X = model_of(SIZES["small"]), rows(500)
    known, wrong = model_of(SIZES["small"]).decision_function(X), []

    def ask():
        wrong.extend(True for _ in range(20) if not np.array_equal(model.decision_function(X), known))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_categories_are_looked_up_by_their_values():
    model = model_of(SIZES["small"], with_levels=True)
    levels = rows(80, with_levels=True)
    names = {-1.0: "never seen", 0.0: "a", 1.0: "c", 2.0: "d"}
    table = levels.astype(object)
    table[:, 2] = [None if level != level else names[level] for level in levels[:, 2].tolist()]
    np.testing.assert_array_equal(model.decision_function(table), model.score_matrix(levels))


def test_numbers_can_be_categories_of_trees():
    model = model_of(SIZES["small"], with_levels=True)
    numbers = model.replace(categories={2: [[7], [1.5, 8], [-3]]})
    levels = rows(80, with_levels=True)
    X = levels.copy()
    X[:, 2] = [np.nan if level != level else {-1: 0, 0: 7, 1: 8, 2: -3}[level] for level in levels[:, 2].tolist()]
    for table in (X, X.astype(object)):
        np.testing.assert_array_equal(numbers.decision_function(table), model.score_matrix(levels))


@pytest.mark.parametrize("is_pickled", [False, True])
def test_what_follows_from_trees_cannot_be_written_to(is_pickled):
    trees = model_of(SIZES["small"], 2).trees
    assert trees.right.size == trees.is_leaf.size  # both are made once, and kept
    trees = pickle.loads(pickle.dumps(trees)) if is_pickled else trees
    for name in ("is_leaf", "tree", "is_root", "n_leaves", "end", "right", "n_conditions"):
        assert not getattr(trees, name).flags.writeable, name
    assert not any(array.flags.writeable for array in trees.leaf_range)


def test_a_pickle_predicts_the_same():
    model, X = model_of(SIZES["small"], 2), rows(100)
    known = model.decision_function(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), known)
    assert again.n_rules == model.n_rules
    for name, array in again.trees.arrays().items():
        assert not array.flags.writeable, name
        np.testing.assert_array_equal(array, model.trees.arrays()[name])


def test_a_model_keeps_its_own_trees():
    trees = random_trees(np.random.default_rng(0), [4], [np.zeros(1)])
    weight = np.where(trees.is_root, 0.0, 1.0)
    model = Ensemble([], [], np.zeros(0), 0.0, n_features=1, trees=trees, node_weight=weight)
    known = model.decision_function(np.ones((1, 1)))
    trees.threshold[0], weight[1] = 5.0, 9.0
    assert model.trees.threshold[0] == 0.0
    np.testing.assert_array_equal(model.decision_function(np.ones((1, 1))), known)
    for array in (*model.trees.arrays().values(), model.node_weight, model.node_mass):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_replace_keeps_the_trees_or_takes_others():
    model = model_of(SIZES["small"]).replace(node_mass=np.ones(model_of(SIZES["small"]).trees.n_nodes))
    X = rows(50)
    renamed = model.replace(feature_names=list("abcd"))
    np.testing.assert_array_equal(renamed.decision_function(X), model.decision_function(X))
    assert len(renamed.node_mass) == model.trees.n_nodes
    other = model_of(SIZES["one"], seed=5)
    mixed = model.replace(trees=other.trees, node_weight=other.node_weight)
    assert mixed.trees.n_trees == 1
    assert len(mixed.node_mass) == 0  # those of other nodes
    np.testing.assert_array_equal(mixed.decision_function(X), by_walks(mixed, X))
    with pytest.raises(ValueError, match=r"0 weights|weights for 0 nodes"):
        model.replace(trees=Trees.none())


def test_trees_are_told_of():
    model = model_of(SIZES["small"])
    assert repr(model) == f"<Ensemble: 3 voters and {model.n_rules} rules on 4 features, regression>"
    assert model.n_rules == np.count_nonzero(model.node_weight)
    assert "rules" not in repr(model.replace(trees=Trees.none(), node_weight=np.zeros(0)))


WRONG = {
    "start is empty": ({"start": np.zeros(0, np.int64)}, "start has at least the end of the last tree"),
    "start is 2-d": ({"start": np.array([[0, 3]])}, "the arrays of trees have one dimension each"),
    "start wraps around": ({"start": np.array([0, 2**63 - 1, -5, 3])}, "do not share out the 3 nodes in order"),
    "start is late": ({"start": np.array([1, 3])}, "do not share out the 3 nodes"),
    "start beyond": ({"start": np.array([0, 4])}, "do not share out the 3 nodes"),
    "thresholds": (
        {"threshold": np.zeros(5)},
        "there are 5 thresholds, 3 sides for missing values and 3 weights for 3",
    ),
    "sides": ({"missing_right": np.zeros(1)}, "there are 3 thresholds, 1 sides"),
    "features 2-d": ({"feature": np.full((3, 1), -1)}, "the arrays of trees have one dimension each"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_arrays_that_are_no_trees_are_refused(changes, message):
    arrays = {"start": np.array([0, 3]), "feature": np.array([0, -1, -1])}
    arrays |= {"threshold": np.zeros(3), "missing_right": np.zeros(3)}
    with pytest.raises(ValueError, match=message):
        Ensemble([], [], np.zeros(0), 0.0, n_features=1, trees=Trees(**(arrays | changes)), node_weight=np.zeros(3))


def test_weights_of_nodes_have_as_many_outputs_as_those_of_voters():
    trees = random_trees(np.random.default_rng(0), [2], [np.zeros(1)])
    with pytest.raises(ValueError, match=r"node_weight has the shape \(3, 2\), and weight \(0,\)"):
        Ensemble([], [], np.zeros(0), 0.0, n_features=1, trees=trees, node_weight=np.zeros((3, 2)))
