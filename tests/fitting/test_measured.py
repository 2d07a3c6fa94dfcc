"""Rows coded and summed for a fit, with and without trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table
from some_folds import READING, options
from some_trees import way_of

from quadboost.fitting.growth import Growth
from quadboost.fitting.measured import Measured, grow_for, loss_of
from quadboost.fitting.problem import Problem

M = 200
X = mixed_table(M)
Y = np.where(X[:, 0] > 0, 1.0, -1.0) * X[:, 1] + 0.1 * np.random.default_rng(0).normal(size=M)
WITH_TREES = options(growth=Growth(n_trees=4, max_leaves=5))
PROBLEM = Problem.of_targets(X, Y, None, READING)


def test_trees_are_further_columns_that_say_which_leaf_a_row_is_in():
    measured = Measured.of(PROBLEM, PROBLEM.rows, WITH_TREES)
    trees = measured.voters.trees
    assert trees.n_trees == 4
    assert measured.codes.shape == (M, 12)
    stumps = Measured.of(PROBLEM, PROBLEM.rows, options())
    np.testing.assert_array_equal(measured.codes[:, :8], stumps.codes)
    for tree in range(4):
        leaves = np.flatnonzero(trees.is_leaf & (trees.tree == tree)).tolist()
        number = [1 + leaves.index(way_of(trees, tree, row, N_LEVELS)[-1]) for row in X]
        np.testing.assert_array_equal(measured.codes[:, 8 + tree], number)


def test_without_trees_nothing_is_grown():
    assert Measured.of(PROBLEM, PROBLEM.rows, options()).grown is None


def test_other_rows_are_coded_by_the_trees_that_were_grown():
    measured = Measured.of(PROBLEM, PROBLEM.rows, WITH_TREES)
    part = PROBLEM.rows.take(np.arange(50))
    other = Measured.of(PROBLEM, part, WITH_TREES, measured.voters)
    assert other.grown is None
    np.testing.assert_array_equal(other.codes, measured.codes[:50])


def test_trees_can_be_grown_on_given_stumps():
    stumps = PROBLEM.voters(PROBLEM.rows, 3, "quantile", 1)
    measured = Measured.of(PROBLEM, PROBLEM.rows, WITH_TREES, grow_on=stumps)
    trees = measured.voters.trees
    for feature, threshold in zip(trees.feature, trees.threshold, strict=True):
        assert feature < 0 or feature in N_LEVELS or threshold in stumps.cuts[feature]


def test_several_classes_are_grown_to_their_likelihood_unless_steps_are_kept():
    problem = Problem.of_labels(X, np.digitize(Y, [-1, 1]), None, READING)
    voters = problem.voters(problem.rows, 12, "quantile", 1)
    grown = {
        mode: grow_for(problem, problem.rows, voters, voters.code(X), replace(WITH_TREES, mode=mode))
        for mode in ("corrective", "forward")
    }
    share = np.array([np.mean(problem.rows.y[:, k] > 0) for k in range(3)])
    np.testing.assert_allclose(grown["forward"].constant, 2 * share - 1, atol=1e-12)
    spread = np.ptp(grown["corrective"].constant - np.log(share))
    assert spread < 1e-9  # log-odds, up to a constant


def test_targets_are_as_the_loss_wants_them():
    problem = Problem.of_labels(X, Y > 0, None, READING)
    assert set(np.unique(loss_of(problem, problem.rows, options())[1])) == {-1.0, 1.0}
    loss, y = loss_of(problem, problem.rows, options(loss="logistic"))
    assert set(np.unique(y)) == {0.0, 1.0}
    assert loss.link == "logit"


@pytest.mark.parametrize(
    "change", [{"n_trees": -1}, {"max_leaves": 1}, {"max_leaves": 255}, {"growth_rows": 0}], ids=str
)
def test_growth_checks_its_numbers(change):
    (name,) = change
    with pytest.raises(ValueError, match=name):
        Growth(**change)
