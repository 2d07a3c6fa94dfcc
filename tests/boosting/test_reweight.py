"""Solving for all weights at once ends where rounds end, and never makes the objective larger."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table, targets
from starting import run_from

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
    """Rounds alone, from zeros or from given weights."""
    with run_from(np.zeros(moments.n_voters) if start is None else start, moments, penalty,
                  fit_intercept=fit_intercept) as run:  # fmt: skip
        run.go(Schedule(max_rounds=max_rounds, tol=1e-12, reweight_every=None))
        return run.result()


def at(penalty, fit_intercept, weight, moments=MOMENTS):
    """The state with given weights."""
    with run_from(weight, moments, penalty, fit_intercept=fit_intercept) as run:
        return run.result()


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


@pytest.mark.thinned(5)
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
def test_once_no_more_bounds_are_met_the_voters_are_at_their_optimum(penalty, fit_intercept):
    state = rounds(penalty, fit_intercept, 10)
    for _ in range(3):
        weight = reweighted(MOMENTS, penalty, state.weight, state.edge, fit_intercept=fit_intercept)
        state = at(penalty, fit_intercept, weight)
    inside = (weight != 0) & (np.abs(weight) < penalty.cap)
    assert penalty.violation(weight[inside], state.edge[inside]) < 1e-9


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
    with pytest.warns(UserWarning, match="reweight_sweeps='solve' does nothing without a number for reweight_every"):
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
    np.testing.assert_array_equal(found.weight, boost(MOMENTS, L2(0.01), reweight_every=None, max_rounds=60).weight)


def test_solving_for_as_many_voters_as_it_is_for_does_not_warn(monkeypatch):
    found = boost(MOMENTS, L1(0.02), reweight_sweeps="solve", reweight_every=10, max_rounds=60)
    for module in ("rounds", "reweight"):
        monkeypatch.setattr(f"quadboost.boosting.{module}.MOST_TOGETHER", len(np.unique(found.history["voter"])))
    again = boost(MOMENTS, L1(0.02), reweight_sweeps="solve", reweight_every=10, max_rounds=60)
    np.testing.assert_array_equal(again.weight, found.weight)


# --- the linear system --------------------------------------------------------------------------------------


def solved(gram, b, tol=0.0):
    x = b.copy()
    _core.solve(gram, x, 1e-12 * gram.diagonal().max(), tol)
    return x


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 61, 128])
def test_a_system_of_one_block_is_solved(n):
    random = np.random.default_rng(n)
    A = random.normal(size=(n, n + 5))
    gram, b = A @ A.T, random.normal(size=n)
    np.testing.assert_allclose(gram @ solved(gram, b), b, rtol=0, atol=1e-8 * np.abs(b).max())


def test_of_voters_that_always_agree_the_first_moves():
    A = np.random.default_rng(0).normal(size=(30, 20))
    A[:, [4, 11, 19]] = A[:, [2]]
    gram, b = A.T @ A, A.T @ np.arange(30.0)
    x = solved(gram, b)
    assert not x[[4, 11, 19]].any()
    np.testing.assert_allclose(gram @ x, b, rtol=1e-9)


def stump_system(n, per_feature, correlation):
    """Gram matrix and edges of n stumps: those of a feature nearly agree with their neighbours."""
    random = np.random.default_rng(n)
    d = -(-n // per_feature)
    X = random.normal(size=(2_000, d)) + correlation * random.normal(size=(2_000, 1))
    cuts = np.quantile(X, np.arange(1, per_feature + 1) / (per_feature + 1), axis=0)
    H = np.where(X[:, :, None] > cuts.T, 1.0, -1.0).reshape(2_000, -1)[:, :n]
    H -= H.mean(axis=0)
    y = np.sin(X).sum(axis=1) + random.normal(size=2_000)
    return H.T @ H / 2_000, H.T @ (y - y.mean()) / 2_000


@pytest.mark.thinned
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8, 0.0])
@pytest.mark.parametrize("correlation", [0.0, 3.0], ids=["independent", "correlated"])
@pytest.mark.parametrize("per_feature", [5, 90, 200])
@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300, 700])
def test_a_system_of_several_blocks_is_solved_as_nearly_as_asked(n, per_feature, correlation, tol):
    """What is left to gain is at most a hundred times what the last iteration brought; nothing where tol is 0."""
    gram, b = stump_system(n, per_feature, correlation)
    known = np.linalg.solve(gram, b)
    x = solved(gram, b, tol)
    error = x - known
    assert error @ gram @ error <= (100 * tol + 1e-12) * (b @ known)
    if tol == 0:
        np.testing.assert_allclose(gram @ x, b, rtol=0, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize("n", [3, 150])
def test_of_the_matrix_the_upper_half_is_read_and_nothing_is_changed(n):
    gram, b = stump_system(n, 30, 1.0)
    upper = np.triu(gram) + np.tril(np.full((n, n), np.nan), -1)
    given = upper.copy()
    np.testing.assert_array_equal(solved(upper, b, 1e-6), solved(gram, b, 1e-6))
    np.testing.assert_array_equal(upper, given)


def test_voters_that_agree_across_blocks_do_no_harm():
    """The second half of the voters repeats the first: their weights may be shared in any way."""
    gram, b = stump_system(200, 50, 1.0)
    twice, b_twice = np.tile(gram, (2, 2)), np.tile(b, 2)
    for tol in (reweight.NEAR, 1e-12):
        x = solved(twice, b_twice, tol)
        assert np.isfinite(x).all()
        assert np.abs(x).max() <= np.abs(solved(gram, b, tol)).max()
        np.testing.assert_allclose(twice @ x, b_twice, rtol=0, atol=5 * tol**0.5 * np.abs(b).max())


@pytest.mark.parametrize("n", [1, 7, 8, 9, 17, 300])
def test_a_product_reads_the_upper_half(n):
    gram, x = stump_system(n, 40, 1.0)
    upper, out = np.triu(gram) + np.tril(np.full((n, n), np.nan), -1), np.empty(n)
    _core.multiply(upper, x, out)
    np.testing.assert_allclose(out, gram @ x, rtol=0, atol=1e-13 * np.abs(gram @ x).max())


@each_intercept
def test_the_gram_matrix_of_some_voters_is_that_of_what_they_say(fit_intercept):
    voters = np.flatnonzero(np.random.default_rng(0).random(MOMENTS.n_voters) < 0.3)
    centre = MOMENTS.voter_sum / MOMENTS.total_weight if fit_intercept else np.zeros(MOMENTS.n_voters)
    known = np.array([MOMENTS.gram.column(j)[voters] for j in voters.tolist()]) / MOMENTS.total_weight
    known -= np.outer(centre[voters], centre[voters])
    with MOMENTS.gram.lease() as columns:
        found = reweight.gram_of(MOMENTS, columns, voters, fit_intercept)
    np.testing.assert_allclose(np.triu(found), np.triu(known), rtol=0, atol=1e-14)


@each_intercept
@pytest.mark.parametrize("is_weighted", [True, False])
@pytest.mark.parametrize("n", [7, 8, 21])
def test_weights_that_move_together_give_the_bits_of_one_after_the_other(n, is_weighted, fit_intercept):
    moments = MOMENTS if is_weighted else column_moments(STUMPS, STUMPS.code(X), REAL)
    rng, states = np.random.default_rng(n), []
    voters, delta = np.sort(rng.permutation(moments.n_voters)[:n]), rng.normal(size=n)
    for groups in ([np.arange(n)], np.arange(n)[:, None]):
        with run_from(np.zeros(moments.n_voters), moments, NoPenalty(), fit_intercept=fit_intercept) as run:
            for group in groups:
                run.train.move(voters[group], delta[group])
            kernel = run.train.kernel
            states.append([*run.train.slope, kernel.risk, kernel.residual_mean])
    assert states[0] == states[1]
