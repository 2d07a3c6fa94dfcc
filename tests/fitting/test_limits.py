"""Bounds on weights that make scores monotone: of stumps, and of rules."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.boosting.limits import limited
from quadboost.boosting.losses import Loss
from quadboost.boosting.penalties import L1, L2
from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.fitting.growth import Growth, grow_trees
from quadboost.fitting.limits import monotone_limits
from quadboost.moments.moments import column_moments
from quadboost.voters.columns import MISSING
from quadboost.voters.thresholds import candidate_voters

M = 500


def table():
    random = np.random.default_rng(0)
    X = random.normal(size=(M, 4))
    y = np.sin(2 * X[:, 0]) * (X[:, 1] > 0) + np.cos(2 * X[:, 1]) + X[:, 2] * X[:, 0] + 0.3 * random.normal(size=M)
    X[random.random(M) < 0.1, 0] = np.nan
    return X, y[:, None]


def voters_with_trees(X, y):
    voters = candidate_voters(X, thresholds=20)
    grown = grow_trees(voters, voters.code(X), y, None, Loss(), Growth(n_trees=15, max_leaves=12))
    return voters.with_trees(grown.trees)


def test_stumps_have_the_sign_of_their_feature_and_is_missing_is_free():
    X, _ = table()
    voters = candidate_voters(X, thresholds=5)
    limits = monotone_limits(voters, np.array([1, -1, 0, 0]))
    feature, kind, _ = voters.describe(np.arange(voters.n_voters))
    np.testing.assert_array_equal(limits.lower == 0, (feature == 0) & (kind != MISSING))
    np.testing.assert_array_equal(limits.upper == 0, (feature == 1) & (kind != MISSING))
    assert (kind == MISSING).any()
    assert monotone_limits(voters, np.zeros(4)) is None


def test_a_rule_may_move_where_all_its_conditions_let_it():
    X, y = table()
    voters = voters_with_trees(X, y)
    trees, signs = voters.trees, np.array([1, -1, 0, 0])
    limits = monotone_limits(voters, signs)
    lower, upper = (own[voters.first_rule :] for own in (limits.lower, limits.upper))
    kinds = set()
    rules = [path for path, is_root in zip(trees.paths(), trees.is_root, strict=True) if not is_root]
    for number, path in enumerate(rules):
        wanted = {int(signs[trees.feature[node]]) * (1 if right else -1) for node, right in path} - {0}
        assert lower[number] == (0 if 1 in wanted else -np.inf)
        assert upper[number] == (0 if -1 in wanted else np.inf)
        kinds.add(frozenset(wanted))
    assert kinds == {frozenset(), frozenset({1}), frozenset({-1}), frozenset({1, -1})}


@pytest.mark.parametrize("penalty", [L1(0.003), L2(0.05)], ids=repr)
def test_stumps_and_rules_together_are_monotone_exactly(penalty):
    X, y = table()
    voters = voters_with_trees(X, y)
    moments = column_moments(voters, voters.code(X), y)
    signs = np.array([1, -1, 0, 0])
    schedule = Schedule(max_rounds=2000, tol=1e-3)
    found = run_rounds(
        moments, limited(penalty, monotone_limits(voters, signs)), schedule, mode="corrective", fit_intercept=True
    )
    assert np.count_nonzero(found.weight[voters.first_rule :]) > 10
    node_weight = np.zeros((voters.trees.n_nodes, 1))
    node_weight[~voters.trees.is_root, 0] = found.weight[voters.first_rule :]
    values = voters.trees.leaf_values(node_weight)
    for feature, sign in ((0, 1), (1, -1)):
        rows = np.tile(X[:60], (80, 1, 1))
        rows[:, :, feature] = np.linspace(-3, 3, 80)[:, None]
        codes = voters.code(rows.reshape(-1, 4))
        scores = voters.scores(codes, _without_rules(voters, found.weight), np.zeros(1))[:, 0]
        for tree in range(voters.trees.n_trees):
            own = slice(voters.trees.start[tree], voters.trees.start[tree + 1])
            leaves = values[own][voters.trees.is_leaf[own], 0]
            scores += leaves[codes[:, voters.n_features + tree] - 1]
        assert (sign * np.diff(scores.reshape(80, 60), axis=0) >= 0).all()


def _without_rules(voters, weight):
    own = weight.copy()
    own[voters.first_rule :] = 0.0
    return own[:, None]
