"""Solving for all weights at once ends where rounds end, and never makes the objective larger."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table, targets

from quadboost import _core, boost
from quadboost.boosting import reweight
from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty
from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.moments.moments import column_moments, moments_from_matrix
from quadboost.voters.thresholds import candidate_voters

M = 400
X = mixed_table(M)
REAL = targets(X) + np.random.default_rng(1).normal(size=M)
STUMPS = candidate_voters(X, thresholds=25, n_levels=N_LEVELS)
MOMENTS = column_moments(STUMPS, STUMPS.code(X), REAL, np.random.default_rng(2).random(M) + 0.5)
PENALTIES = [NoPenalty(), L1(0.2), L1(0.02), L1(0.001), L2(1.0), L2(0.01), LInf(0.3), LInf(0.05)]
each_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])


def reweighted(moments, *arguments, **options):
    with moments.gram.lease() as columns:
        return reweight.reweighted(moments, columns, *arguments, **options)


def rounds(penalty, fit_intercept, max_rounds, start=None, moments=MOMENTS):
    schedule = Schedule(max_rounds=max_rounds, tol=1e-12)
    return run_rounds(moments, penalty, schedule, mode="corrective", fit_intercept=fit_intercept, start_weight=start)


def at(penalty, fit_intercept, weight, moments=MOMENTS):
    """The state with given weights: rounds that would have to bring more than they can."""
    schedule = Schedule(max_rounds=1, tol=1e12)
    found = run_rounds(moments, penalty, schedule, mode="corrective", fit_intercept=fit_intercept, start_weight=weight)
    assert found.n_rounds == 0
    return found


@each_intercept
@each_penalty
@pytest.mark.parametrize("n_rounds", [1, 7, 30, 200])
def test_the_objective_falls_and_no_voter_joins(penalty, fit_intercept, n_rounds):
    before = rounds(penalty, fit_intercept, n_rounds)
    weight = reweighted(MOMENTS, penalty, before.weight, before.edge, fit_intercept=fit_intercept)
    assert at(penalty, fit_intercept, weight).objective <= before.objective + 1e-12
    assert not weight[before.weight == 0].any()
    assert np.abs(weight).max() <= penalty.cap
    if penalty.shrink:
        assert (weight * before.weight >= 0).all()


@each_intercept
@each_penalty
def test_with_rounds_between_it_ends_at_the_optimum(penalty, fit_intercept):
    best = rounds(penalty, fit_intercept, 100)
    for _ in range(20):
        weight = reweighted(MOMENTS, penalty, best.weight, best.edge, fit_intercept=fit_intercept)
        best = rounds(penalty, fit_intercept, 100, weight)
    assert penalty.violation(best.weight, best.edge) < 1e-8
    assert best.objective <= rounds(penalty, fit_intercept, 30_000).objective + 1e-9


@each_intercept
@each_penalty
def test_where_no_bound_is_met_the_voters_are_at_their_optimum(penalty, fit_intercept):
    before = rounds(penalty, fit_intercept, 10)
    weight = reweighted(MOMENTS, penalty, before.weight, before.edge, fit_intercept=fit_intercept)
    inside = (weight != 0) & (np.abs(weight) < penalty.cap)
    edge = at(penalty, fit_intercept, weight).edge
    assert penalty.violation(weight[inside], edge[inside]) < 1e-9


@pytest.mark.parametrize("penalty", [NoPenalty(), L1(0.01), L2(0.1), LInf(0.2)], ids=repr)
def test_voters_that_always_agree_do_no_harm(penalty):
    rng = np.random.default_rng(0)
    H = rng.choice([-1.0, 1.0], size=(100, 3))
    H = np.column_stack([H, H, -H[:, :1], np.ones(100)])
    moments = moments_from_matrix(H, H[:, 0] + 0.5 * H[:, 1] + rng.normal(size=100))
    start = np.array([0.1, 0.1, -0.1, 0.1, 0.05, -0.1, -0.1, 0.1])
    edge = at(penalty, False, start, moments).edge
    weight = reweighted(moments, penalty, start, edge, fit_intercept=False)
    assert np.isfinite(weight).all()
    assert at(penalty, False, weight, moments).objective < at(penalty, False, start, moments).objective
    best = rounds(penalty, False, 2_000, moments=moments)
    again = rounds(penalty, False, 2_000, weight, moments)
    assert again.objective == pytest.approx(best.objective, abs=1e-9)


def test_an_ensemble_of_no_voters_or_of_too_many_stays_as_it_is(monkeypatch):
    none = np.zeros(MOMENTS.n_voters)
    assert reweighted(MOMENTS, L1(0.1), none, none, fit_intercept=True) is none
    many = rounds(L2(0.01), True, 50)
    monkeypatch.setattr("quadboost.boosting.reweight.MOST_TOGETHER", 5)
    assert reweighted(MOMENTS, L2(0.01), many.weight, many.edge, fit_intercept=True) is many.weight


@each_intercept
@pytest.mark.parametrize("penalty", [L1(0.2), L1(0.02), L1(0.001)], ids=repr)
def test_rounds_that_solve_now_and_then_prove_the_optimum_much_sooner(penalty, fit_intercept):
    slow = rounds(penalty, fit_intercept, 30_000)
    schedule = Schedule(tol=1e-10, reweight_every=50, reweight_sweeps="solve")
    fast = run_rounds(MOMENTS, penalty, schedule, mode="corrective", fit_intercept=fit_intercept)
    assert fast.stop_reason == "converged"
    assert fast.dual_gap <= 1e-12
    assert fast.n_rounds < slow.n_rounds / 2
    assert fast.objective <= slow.objective + 1e-12
    np.testing.assert_array_equal(fast.trace.weights_at(fast.n_rounds, len(fast.weight)), fast.weight)


# --- when it does nothing -----------------------------------------------------------------------------------


def test_solving_without_reweight_every_warns():
    with pytest.warns(UserWarning, match="reweight_sweeps='solve' does nothing without reweight_every; set it, for"):
        found = boost(MOMENTS, L1(0.02), reweight_sweeps="solve", max_rounds=20)
    np.testing.assert_array_equal(found.weight, boost(MOMENTS, L1(0.02), max_rounds=20).weight)


def test_solving_for_more_voters_than_it_is_for_warns_once(monkeypatch):
    for module in ("rounds", "reweight"):
        monkeypatch.setattr(f"quadboost.boosting.{module}.MOST_TOGETHER", 5)
    options = {"reweight_every": 10, "max_rounds": 60}
    with pytest.warns(UserWarning, match="'solve' does nothing for") as told:
        found = boost(MOMENTS, L2(0.01), reweight_sweeps="solve", **options)
    assert np.count_nonzero(found.weight) > 5
    assert len(told) == 1
    assert "it is for at most 5, use sweeps or a stronger penalty" in str(told[0].message)
    np.testing.assert_array_equal(found.weight, boost(MOMENTS, L2(0.01), max_rounds=60).weight)


def test_solving_for_as_many_voters_as_it_is_for_does_not_warn(monkeypatch):
    found = boost(MOMENTS, L1(0.02), reweight_sweeps="solve", reweight_every=10, max_rounds=60)
    for module in ("rounds", "reweight"):
        monkeypatch.setattr(f"quadboost.boosting.{module}.MOST_TOGETHER", len(np.unique(found.history["voter"])))
    again = boost(MOMENTS, L1(0.02), reweight_sweeps="solve", reweight_every=10, max_rounds=60)
    np.testing.assert_array_equal(again.weight, found.weight)


# --- the linear system --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 61, 200])
def test_a_system_is_solved(n):
    random = np.random.default_rng(n)
    A = random.normal(size=(n, n + 5))
    gram, b = A @ A.T, random.normal(size=n)
    x = b.copy()
    _core.solve(gram.copy(), x, 1e-12 * gram.diagonal().max())
    np.testing.assert_allclose(gram @ x, b, atol=1e-8 * np.abs(b).max())


def test_of_voters_that_always_agree_the_first_moves():
    A = np.random.default_rng(0).normal(size=(30, 20))
    A[:, [4, 11, 19]] = A[:, [2]]
    gram, b = A.T @ A, A.T @ np.arange(30.0)
    x = b.copy()
    _core.solve(gram.copy(), x, 1e-12 * gram.diagonal().max())
    assert not x[[4, 11, 19]].any()
    np.testing.assert_allclose(gram @ x, b, rtol=1e-9)
