"""Bounds on weights that make scores monotone: of stumps, and of rules."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.boosting.limits import limited
from quadboost.boosting.losses import Loss
from quadboost.boosting.penalties import L1, L2, LInf
from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.fitting.growth import Growth, grow_trees
from quadboost.fitting.limits import limits_of
from quadboost.fitting.problem import Problem, Reading
from quadboost.model.ensemble import Ensemble, load
from quadboost.moments.moments import column_moments
from quadboost.voters.columns import MISSING
from quadboost.voters.thresholds import candidate_voters

M = 500
SIGNS = np.array([1, -1, 0, 0])


def table(seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(M, 4))
    y = np.sin(2 * X[:, 0]) * (X[:, 1] > 0) + np.cos(2 * X[:, 1]) + X[:, 2] * X[:, 0] + 0.3 * random.normal(size=M)
    X[random.random(M) < 0.1, 0] = np.nan
    return X, y[:, None]


def voters_with_trees(X, y):
    voters = candidate_voters(X, thresholds=20)
    grown = grow_trees(voters, voters.code(X), y, None, Loss(), Growth(n_trees=15, max_leaves=12))
    return voters.with_trees(grown.trees)


def moments_of(voters, X, y):
    return column_moments(voters, voters.code(X), y)


def test_stumps_have_the_sign_of_their_feature_and_is_missing_is_free():
    X, y = table()
    voters = candidate_voters(X, thresholds=5)
    moments = moments_of(voters, X, y)
    limits = limits_of(voters, moments, SIGNS)
    feature, kind, _ = voters.describe(np.arange(voters.n_voters))
    np.testing.assert_array_equal(limits.lower == 0, (feature == 0) & (kind != MISSING))
    np.testing.assert_array_equal(limits.upper == 0, (feature == 1) & (kind != MISSING))
    assert (kind == MISSING).any()
    assert limits.factor is None
    assert limits_of(voters, moments, np.zeros(4), penalty="l1") is None
    assert limits_of(voters, moments) is None


def test_a_rule_may_move_where_all_its_conditions_let_it():
    X, y = table()
    voters = voters_with_trees(X, y)
    trees, signs = voters.trees, SIGNS
    limits = limits_of(voters, moments_of(voters, X, y), signs)
    lower, upper = (bounds[voters.first_rule :] for bounds in (limits.lower, limits.upper))
    kinds = set()
    rules = [path for path, is_root in zip(trees.paths(), trees.is_root, strict=True) if not is_root]
    for number, path in enumerate(rules):
        wanted = {int(signs[trees.feature[node]]) * (1 if right else -1) for node, right in path} - {0}
        assert lower[number] == (0 if 1 in wanted else -np.inf)
        assert upper[number] == (0 if -1 in wanted else np.inf)
        kinds.add(frozenset(wanted))
    assert kinds == {frozenset(), frozenset({1}), frozenset({-1}), frozenset({1, -1})}


def test_a_rule_is_penalised_by_the_root_of_its_length():
    X, y = table()
    voters = voters_with_trees(X, y)
    moments = moments_of(voters, X, y)
    limits = limits_of(voters, moments, penalty="l1")
    assert limits.lower is None
    assert (limits.factor[: voters.first_rule] == 1).all()
    paths = [path for path, is_root in zip(voters.trees.paths(), voters.trees.is_root, strict=True) if not is_root]
    length = [len({(voters.trees.feature[node], right) for node, right in path}) for path in paths]
    np.testing.assert_array_equal(limits.factor[voters.first_rule :], np.sqrt(length))
    assert max(length) > 2
    both = limits_of(voters, moments, np.array([1, 0, 0, 0]), penalty="l1")
    np.testing.assert_array_equal(both.factor, limits.factor)
    assert (both.lower == 0).any()


def test_under_l2_every_feature_has_the_same_share_and_stumps_that_of_rules():
    """Of how far each is expected to move scores: the variance of what it says over the squared factor, summed."""
    X, y = table()
    X[:, 3] = X[:, 3] > 0  # one threshold
    voters = voters_with_trees(X, y)
    moments = moments_of(voters, X, y)
    each = map(voters.votes, range(voters.n_voters))
    said = np.column_stack([votes[voters.code(X)[:, column]] for column, votes in each])
    expected = said.var(axis=0) / limits_of(voters, moments, penalty="l2").factor ** 2
    of_features = np.add.reduceat(expected[: voters.first_rule], voters.voter_start[:4])
    np.testing.assert_allclose(of_features, of_features[0])
    of_rules = expected[voters.first_rule :]
    assert of_features.sum() == pytest.approx(of_rules.sum())
    np.testing.assert_allclose(of_rules, 1 / voters.trees.n_conditions[~voters.trees.is_root])
    assert limits_of(voters, moments, penalty="linf") is None


def test_under_l2_no_stump_is_rarer_than_every_rule():
    X, y = table()
    X[:, 3] = 0.0
    X[:2, 3] = 1.0  # fewer rows than any leaf has
    voters = voters_with_trees(X, y)
    moments = moments_of(voters, X, y)
    variance = moments.centred(True)[1]
    rare = voters.voter_start[3]
    least = variance[voters.first_rule :].min()
    assert variance[rare] < least
    n_stumps = np.diff(voters.voter_start[: voters.n_features + 1])
    share = (1 / voters.trees.n_conditions[~voters.trees.is_root]).sum() / 4
    factor = limits_of(voters, moments, penalty="l2").factor
    assert factor[rare] == pytest.approx(np.sqrt(n_stumps[3] / share * least))


@pytest.mark.thinned(5)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("penalty", [L1(0.003), L2(0.05), LInf(0.05)], ids=repr)
def test_stumps_and_rules_together_are_monotone_exactly(penalty, seed, tmp_path):
    X, y = table(seed)
    voters = voters_with_trees(X, y)
    limits = limits_of(voters, moments_of(voters, X, y), SIGNS, penalty="l1")
    found = run_rounds(
        column_moments(voters, voters.code(X), y), limited(penalty, limits), Schedule(max_rounds=1000, tol=1e-3),
        mode="corrective", fit_intercept=True,
    )  # fmt: skip
    stumps, rules = found.weight[: voters.first_rule], found.weight[voters.first_rule :]
    assert np.count_nonzero(rules) > 10
    active = np.flatnonzero(stumps)
    feature, kind, threshold = voters.describe(active)
    node_weight = np.zeros(voters.trees.n_nodes)
    node_weight[~voters.trees.is_root] = rules
    model = Ensemble(
        feature, threshold, stumps[active], found.intercept, kind=kind, n_features=4, trees=voters.trees,
        node_weight=node_weight,
    )  # fmt: skip
    model.save(tmp_path / "model.h5")
    for either in (model, load(tmp_path / "model.h5")):
        for feature, sign in ((0, 1), (1, -1)):
            rows = np.tile(X[:60], (80, 1, 1))
            rows[:, :, feature] = np.linspace(-3, 3, 80)[:, None]
            scores = either.decision_function(rows.reshape(-1, 4)).reshape(80, 60)
            assert (sign * np.diff(scores, axis=0) >= 0).all()
            assert (scores[0] != scores[-1]).any()


def test_long_rules_are_penalised_more_along_the_whole_path():
    """Also by the l1 penalty of strength zero that a path begins with; not under other penalties."""
    X, y = table()
    problem = Problem.of_targets(X, y[:, 0], None, Reading())
    voters = voters_with_trees(X, y)
    moments = moments_of(voters, X, y)
    assert problem.limited(L1(0.0), voters, moments).at(0.1).shrink[-1] > 0.1
    assert problem.limited(LInf(0.1), voters, moments) == LInf(0.1)
