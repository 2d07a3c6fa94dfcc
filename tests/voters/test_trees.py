"""Trees in preorder, and the leaves of rows, against walks from node to node."""

from __future__ import annotations

import time

import numpy as np
import pytest
from some_trees import after, chain, random_trees, way_of

from quadboost.model.steps import leaf_values
from quadboost.voters.columns import Voters
from quadboost.voters.trees import MOST_LEAVES, Trees, leaf_codes

CUTS = [np.array([-1.0, 0.0, 0.5]), np.arange(4) - 0.5, np.linspace(-2, 2, 300)]  # feature 1 has four levels
LEVELS = {1: 4}
SIZES = {
    "none": [],
    "a root": [1],
    "stumps": [2] * 7,
    "of one word": [32, 1, 5, 31],
    "of two words": [33, 2, 64],
    "the largest": [MOST_LEAVES, 1, 2, 253],
    "very many": [*range(1, 9)] * 20,
    "many large": [200, 3] * 9,
}
of_sizes = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


@pytest.fixture
def trees(sizes):
    return random_trees(np.random.default_rng(len(sizes)), sizes, CUTS, LEVELS)


@of_sizes
def test_every_node_knows_its_subtree(trees, sizes):
    assert (trees.n_trees, trees.n_nodes, bool(trees)) == (len(sizes), 2 * sum(sizes) - len(sizes), bool(sizes))
    assert trees.n_leaves.tolist() == sizes
    assert trees.is_root.sum() == len(sizes)
    for node in range(trees.n_nodes):
        tree = trees.tree[node]
        assert trees.start[tree] <= node < trees.start[tree + 1]
        assert trees.is_root[node] == (node == trees.start[tree])
        assert trees.end[node] == after(trees, node)
        assert trees.right[node] == (-1 if trees.is_leaf[node] else after(trees, node + 1))
        first, last = (bound[node] for bound in trees.leaf_range)
        assert first == np.count_nonzero(trees.feature[trees.start[tree] : node] < 0)
        assert last - first == np.count_nonzero(trees.feature[node : after(trees, node)] < 0)


@pytest.mark.thinned(4)
@of_sizes
def test_a_path_leads_from_the_root_to_its_node(trees):
    for node, path in enumerate(trees.paths()):
        here = trees.start[trees.tree[node]]
        for above, goes_right in path:
            assert above == here
            here = after(trees, above + 1) if goes_right else above + 1
        assert here == node
        assert path == trees.path(node)


@pytest.mark.thinned(4)
@of_sizes
def test_leaf_values_are_the_votes_of_all_nodes(trees):
    weight = np.random.default_rng(0).normal(size=(trees.n_nodes, 3))
    weight[trees.is_root] = 0.0  # no voters
    values = leaf_values(trees, weight)
    assert values.shape == (trees.n_nodes, 3)
    assert not values[~trees.is_leaf].any()
    for leaf in np.flatnonzero(trees.is_leaf).tolist():
        tree = trees.tree[leaf]
        vote = -np.ones(trees.start[tree + 1] - trees.start[tree])
        vote[[leaf - trees.start[tree], *(above - trees.start[tree] for above, _ in trees.path(leaf))]] = 1.0
        wanted = vote @ weight[trees.start[tree] : trees.start[tree + 1]]
        np.testing.assert_allclose(values[leaf], wanted, rtol=0, atol=1e-12)


@of_sizes
def test_parts_are_the_same_trees(trees, sizes):
    joined = Trees.joined(trees.parts())
    for name, array in trees.arrays().items():
        np.testing.assert_array_equal(joined.arrays()[name], array)
    assert all(part.n_trees for part in trees.parts())
    assert len(trees.parts()) >= sum(sizes) / 32 / 128


@of_sizes
def test_joined_trees_follow_one_another(trees, sizes):
    twice = Trees.joined([trees, Trees.none(), trees])
    assert twice.n_leaves.tolist() == 2 * sizes
    for name, array in trees.arrays().items():
        for half in (twice.part(0, len(sizes)), twice.part(len(sizes), 2 * len(sizes))):
            np.testing.assert_array_equal(half.arrays()[name], array)


@pytest.mark.thinned(11)
@of_sizes
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_used_trees_give_the_same_scores(trees, sizes, share):
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(trees.n_nodes, 1)) * (rng.random((trees.n_nodes, 1)) < share)
    weight[trees.start[:-1]] = 0.0
    used, kept = trees.used(weight.any(axis=1))
    assert used.n_nodes == kept.sum()
    assert used.n_trees == sum(weight[a:b].any() for a, b in zip(trees.start, trees.start[1:], strict=False))
    assert weight[kept].any(axis=1).sum() == weight.any(axis=1).sum()  # nothing that is used is lost
    weights = weight[kept]
    below = np.append(0, np.cumsum(weights.any(axis=1)))
    for node in np.flatnonzero(~used.is_leaf).tolist():  # and nothing is kept for nothing
        assert below[used.end[node]] > below[node + 1]
    assert not (used.threshold[used.is_leaf].any())
    assert not (used.missing_right[used.is_leaf].any())
    X = rows(60)
    np.testing.assert_allclose(scores(used, weights, X), scores(trees, weight, X), rtol=0, atol=1e-11)


def rows(n):
    """Rows that are on cuts too, missing, or of a level never seen."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.choice([*CUTS[0], -9.0, 0.2, 9.0], n), rng.integers(-1, 4, n), rng.normal(size=n)])
    X[:: n // 10, 2] = CUTS[2][:10]
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def scores(trees, weight, X):
    values = leaf_values(trees, weight)
    return [sum(values[way_of(trees, t, row, LEVELS)[-1], 0] for t in range(trees.n_trees)) for row in X]


@pytest.mark.thinned(10)
@of_sizes
@pytest.mark.parametrize("n_threads", [1, 3])
def test_leaf_codes_are_the_leaves_of_a_walk(trees, n_threads):
    X = rows(60)
    voters = Voters(CUTS, np.array([0, 1, 0], np.uint8), np.ones(3, np.uint8))
    codes = voters.code(X)
    assert codes.dtype == np.uint16
    found = leaf_codes(trees, codes, CUTS, voters.is_level, n_threads)
    first = trees.leaf_range[0]
    wanted = [[1 + first[way_of(trees, t, row, LEVELS)[-1]] for t in range(trees.n_trees)] for row in X]
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, np.reshape(wanted, (60, trees.n_trees)))
    beside = voters.with_trees(trees).code(X, n_threads)
    np.testing.assert_array_equal(beside, np.column_stack([codes, found]))


def test_deep_trees_do_not_pay_for_every_bin():
    """A tree as deep as can be: a node for each of its thresholds, whose bins have to be told apart."""
    cuts = np.arange(16 * 253.0)
    trees = Trees.joined([chain(254, cuts[253 * t : 253 * (t + 1)]) for t in range(16)])
    codes = np.arange(0, 4000, 50, dtype=np.uint16)[:, None]
    start = time.process_time()
    found = leaf_codes(trees, codes, [cuts], np.zeros(1, np.uint8), 1)
    assert time.process_time() - start < 1.0  # nodes times bins times leaves are two thousand million
    wanted = np.clip(codes - 253 * np.arange(16), 0, 253) + 1
    np.testing.assert_array_equal(found, wanted)


WRONG = {
    "a leaf too few": ([0, -1], [0, 2]),
    "a leaf too many": ([0, -1, -1, -1], [0, 4]),
    "a leaf first": ([-1, 0, -1], [0, 3]),
    "cut elsewhere": ([0, -1, -1, 0, -1, -1], [0, 4, 6]),
    "no node": ([0, -1, -1], [0, 0, 3]),
    "inner nodes alone": ([0, 0, 0], [0, 3]),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_no_tree_is_told(wrong):
    feature, start = wrong
    nodes = np.array(feature, np.int32), np.zeros(len(feature)), np.zeros(len(feature), np.uint8)
    with pytest.raises(ValueError, match=r"tree \d is not one: its nodes are not in preorder"):
        _ = Trees(np.array(start), *nodes).right
