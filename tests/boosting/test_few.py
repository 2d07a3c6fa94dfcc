"""Which voters stay where there may be no more than so many."""

from __future__ import annotations

import numpy as np
import pytest

import quadboost
from quadboost.boosting.few import few
from quadboost.boosting.limits import Limits, limited, narrowed
from quadboost.boosting.penalties import L1
from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule

M, K, TRUE = 300, 30, 4
SCHEDULE = Schedule(tol=1e-8)


def problem(seed=0):
    """A few voters tell the target; all are correlated."""
    random = np.random.default_rng(seed)
    H = random.normal(size=(M, K)) + random.normal(size=(M, 1))
    return H, H[:, :TRUE] @ [1.0, -1.0, 0.8, -0.6] + random.normal(size=M)


def weights(moments, penalty):
    return run_rounds(moments, penalty, SCHEDULE, mode="corrective", fit_intercept=True).weight


@pytest.mark.parametrize("most", [1, 2, 3, 7, K])
def test_no_more_stay_than_may_and_only_of_those_with_a_weight(most):
    moments = quadboost.moments_from_matrix(*problem())
    penalty = L1(0.02)
    weight = weights(moments, penalty)
    stays = few(moments, penalty, weight, most, SCHEDULE, fit_intercept=True)
    n_active = np.count_nonzero(weight)
    assert 7 < n_active < K
    assert max(1, min(most, n_active) - 1) <= stays.sum() <= most
    assert (weight[stays] != 0).all()


def test_those_that_tell_the_target_stay():
    for seed in range(5):
        moments = quadboost.moments_from_matrix(*problem(seed))
        penalty = L1(0.02)
        stays = few(moments, penalty, weights(moments, penalty), TRUE, SCHEDULE, fit_intercept=True)
        np.testing.assert_array_equal(np.flatnonzero(stays), np.arange(TRUE))


def test_a_factor_and_bounds_hold_among_the_few():
    """A voter that must not rise, or that is held back without end, is not among them."""
    moments = quadboost.moments_from_matrix(*problem())
    factor, upper = np.ones(K), np.full(K, np.inf)
    factor[1], upper[0] = 1e3, 0.0
    penalty = limited(L1(0.02), Limits(factor, np.full(K, -np.inf), upper))
    stays = few(moments, penalty, weights(moments, penalty), 3, SCHEDULE, fit_intercept=True)
    assert 0 < stays.sum() <= 3
    assert not stays[:2].any()


def test_a_narrowed_penalty_is_that_of_the_voters_that_stay():
    H, y = problem()
    stays = np.arange(K) % 3 == 0
    lower = np.where(np.arange(K) < 10, 0.0, -np.inf)
    limits = Limits(np.linspace(1.0, 2.0, K), lower, np.full(K, np.inf))
    found = weights(quadboost.moments_from_matrix(H, y), narrowed(limited(L1(0.02), limits), stays))
    alone = weights(quadboost.moments_from_matrix(H[:, stays], y), limited(L1(0.02), limits.take(stays)))
    assert not found[~stays].any()
    np.testing.assert_allclose(found[stays], alone, atol=1e-6)
    assert np.count_nonzero(alone)


def test_a_further_factor_is_times_the_one_before():
    one, other = np.linspace(1.0, 2.0, K), np.linspace(3.0, 1.0, K)
    every = np.ones(K, dtype=bool)
    both = narrowed(limited(L1(0.5), Limits(one)), every, other)
    np.testing.assert_allclose(both.shrink, 0.5 * one * other)
    np.testing.assert_allclose(narrowed(L1(0.5), every, other).shrink, 0.5 * other)
    np.testing.assert_allclose(narrowed(limited(L1(0.5), Limits(one)), every).shrink, 0.5 * one)
