"""How much features move the scores, alone and by rules."""

from __future__ import annotations

import numpy as np
import pytest
from some_folds import options

from quadboost.fitting.growth import Growth
from quadboost.fitting.importance import importance_of
from quadboost.fitting.measured import Measured
from quadboost.fitting.problem import Problem, Reading

M = 300
X = np.random.default_rng(0).normal(size=(M, 3))
Y = np.sign(X[:, 0]) * np.sign(X[:, 1])
PROBLEM = Problem.of_targets(X, Y, None, Reading())


def measured(n_trees=0):
    return Measured.of(PROBLEM, PROBLEM.rows, options(growth=Growth(n_trees=n_trees, max_leaves=4)))


def test_stumps_count_by_the_deviation_of_what_they_add():
    rows = measured()
    weight = np.random.default_rng(1).normal(size=(rows.voters.n_voters, 2))
    added = np.zeros((3, M, 2))
    for voter in range(rows.voters.n_voters):
        column, votes = rows.voters.votes(voter)
        added[column] += votes[rows.codes[:, column]][:, None] * weight[voter]
    known = added.std(axis=1).sum(axis=1)
    np.testing.assert_allclose(importance_of(rows.voters, rows.moments, weight), known / known.sum(), rtol=1e-9)


def test_a_rule_counts_for_each_of_its_features_the_same():
    rows = measured(1)
    trees, weight = rows.voters.trees, np.zeros((rows.voters.n_voters, 1))
    deepest = int(np.argmax(trees.n_conditions))
    asked = {int(trees.feature[above]) for above, _ in trees.path(deepest)}
    assert len(asked) > 1
    weight[rows.voters.first_rule + deepest - 1] = -2.0
    known = np.array([1 / len(asked) if f in asked else 0.0 for f in range(3)])
    np.testing.assert_allclose(importance_of(rows.voters, rows.moments, weight), known, rtol=1e-12)


def test_no_weight_is_no_importance():
    rows = measured(2)
    assert not importance_of(rows.voters, rows.moments, np.zeros((rows.voters.n_voters, 1))).any()


def test_shares_add_up_to_one():
    rows = measured(2)
    weight = np.random.default_rng(1).normal(size=(rows.voters.n_voters, 1))
    found = importance_of(rows.voters, rows.moments, weight)
    assert found.sum() == pytest.approx(1.0)
    assert (found > 0).all()
