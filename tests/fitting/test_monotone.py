"""Steps of leaves within signs: in order wherever rows may go, and no further from what they were than need be."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from some_trees import chain, random_trees, way_of

from quadboost.fitting.monotone import within_signs
from quadboost.voters.trees import Trees

LEVELS = 4


def random_tree(seed, n_leaves=14):
    """A tree on three ordered features and one of levels, and rows of all kinds."""
    rng = np.random.default_rng(seed)
    tree = random_trees(rng, [n_leaves], [np.arange(4.0)] * 4, {3: LEVELS})
    rows = np.column_stack([*rng.choice([-0.5, 0.5, 1.5, 2.5, 3.5, np.nan], (3, 80)), rng.integers(LEVELS, size=80)])
    return rng, tree, rows


def scores(tree, step, rows):
    return np.array([step[way_of(tree, 0, row, [3])[-1]] for row in rows])


@pytest.mark.parametrize("seed", range(12))
def test_scores_follow_the_signs_wherever_a_row_may_go(seed):
    rng, tree, rows = random_tree(seed)
    signs = np.array([[1, 0], [-1, 1], [0, 0], [0, 0]], dtype=np.int8)
    step, mass = rng.normal(size=(tree.n_nodes, 2)), rng.uniform(1, 5, (tree.n_nodes, 2))
    found = within_signs(tree, np.array([0, 0, 0, 1]), step, mass, signs)
    for feature in (0, 1):
        up = np.array([[*row[:feature], value, *row[feature + 1 :]] for row in rows for value in np.arange(5) - 0.5])
        change = np.diff(scores(tree, found, up).reshape(len(rows), 5, 2), axis=1)
        assert (change * signs[feature] >= 0).all()
    again = within_signs(tree, np.array([0, 0, 0, 1]), found, mass, signs)
    np.testing.assert_array_equal(again, found)  # steps in order stay as they are
    assert (found[~tree.is_leaf] == step[~tree.is_leaf]).all()
    moved = (found != step)[tree.is_leaf]
    assert moved.any()
    assert not moved.all()


@pytest.mark.parametrize("sign", [1, -1])
def test_along_one_feature_it_is_isotonic_regression(sign):
    rng = np.random.default_rng(0)
    tree = chain(12, np.arange(11.0))
    step, mass = rng.normal(size=(tree.n_nodes, 1)), rng.uniform(1, 5, (tree.n_nodes, 1))
    found = within_signs(tree, np.zeros(1, np.uint8), step, mass, np.array([[sign]]))
    leaf = np.flatnonzero(tree.is_leaf)
    known = IsotonicRegression(increasing=sign > 0).fit(np.arange(12), step[leaf, 0], mass[leaf, 0])
    np.testing.assert_allclose(found[leaf, 0], known.predict(np.arange(12)), atol=1e-12)


def test_missing_values_are_free():
    """The leaves are: up to 0; missing; above 0."""
    tree = Trees(np.array([0, 5]), np.array([0, 0, -1, -1, -1], np.int32), np.zeros(5), np.array([0, 1, 0, 0, 0]))
    step = np.array([[0.0], [0.0], [3.0], [9.0], [2.0]])
    found = within_signs(tree, np.zeros(1, np.uint8), step, np.ones((5, 1)), np.array([[1]]))
    np.testing.assert_array_equal(found[2:, 0], [2.5, 9.0, 2.5])
