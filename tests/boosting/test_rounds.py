"""Rounds, sweeps and early stopping: what the history says is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles import lasso_solution
from reference import decrease_from
from starting import run_from
from weighted_problem import WeightedProblem, each_intercept, each_mode, each_penalty

from quadboost import boost, moments_from_matrix
from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty
from quadboost.boosting.rounds import open_run
from quadboost.boosting.schedule import LOOK_EVERY, Schedule
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters


@pytest.fixture(scope="module")
def problem():
    return WeightedProblem()


# --- the history tells the truth ----------------------------------------------------------------------------


@pytest.mark.thinned
@pytest.mark.parametrize(
    "sweeps",
    [
        {"reweight_every": None},
        {},
        {"reweight_every": 7, "reweight_sweeps": 2},
        {"reweight_every": 9, "reweight_sweeps": "solve"},
    ],
    ids=["no sweeps", "auto", "sweeps", "solve"],
)
@each_intercept
@each_mode
@each_penalty
def test_risks_from_moments_are_the_risks_of_the_scores_at_every_round(
    problem, penalty, name, lam, mode, fit_intercept, sweeps
):
    options = {"mode": mode, "fit_intercept": fit_intercept, "max_rounds": 60, **sweeps}
    found = boost(problem.moments, penalty, validation=problem.validation, patience=60, **options)
    rows = problem.rows(fit_intercept)
    n_rounds = len(found.history["voter"])
    assert n_rounds > 20
    for t in range(n_rounds):
        a = found.trace.weights_at(t + 1, problem.moments.n_voters)
        assert found.history["risk"][t] == pytest.approx(rows.risk(a), rel=1e-12)
        known = problem.validation_risk(a, fit_intercept)
        assert found.history["validation_risk"][t] == pytest.approx(known, rel=1e-12)
    np.testing.assert_allclose(found.edge, rows.edges(found.weight), rtol=0, atol=1e-13)
    assert found.intercept == pytest.approx(rows.y_mean - rows.voter_means @ found.weight, abs=1e-13)


@pytest.mark.thinned(10)
@each_intercept
@each_mode
@each_penalty
def test_each_round_decreases_the_objective_by_what_its_penalty_states(
    problem, penalty, name, lam, mode, fit_intercept
):
    options = {"mode": mode, "fit_intercept": fit_intercept, "reweight_every": None}
    found = boost(problem.moments, penalty, max_rounds=200, **options)
    rows, history = problem.rows(fit_intercept), found.history
    eta = rows.etas()
    before = np.zeros(problem.moments.n_voters)
    objective = rows.risk(before)
    for t, j in enumerate(history["voter"]):
        edge = rows.edges(before)[j]
        assert history["edge"][t] == pytest.approx(edge, abs=1e-12)
        old = before[j] if mode == "corrective" else 0.0
        stated = decrease_from(name, old, edge + eta[j] * old, eta[j], lam)
        if old == 0:
            assert stated == pytest.approx(penalty.decrease(edge, eta[j]), abs=1e-13)
        assert objective - history["objective"][t] == pytest.approx(stated, abs=1e-12)
        assert stated > 0
        objective = history["objective"][t]
        before = found.trace.weights_at(t + 1, problem.moments.n_voters)
    if mode == "corrective":
        assert objective == pytest.approx(rows.risk(before) + penalty.value(before), abs=1e-12)


@each_mode
def test_edges_after_100_000_rounds_are_those_computed_anew(problem, mode):
    # A step so small that rounds never end, or, corrective, a tolerance that is never met.
    options = {"forward": {"penalty": L2(1_000.0)}, "corrective": {"penalty": NoPenalty()}}[mode]
    found = boost(problem.moments, mode=mode, fit_intercept=True, max_rounds=100_000, tol=0.0, **options)
    if mode == "forward":
        assert found.n_rounds == 100_000
    rows = problem.rows(True)
    np.testing.assert_allclose(found.edge, rows.edges(found.weight), rtol=0, atol=1e-9)
    assert found.risk == pytest.approx(rows.risk(found.weight), abs=1e-9)


def test_weights_of_a_round_are_the_weights_of_a_run_that_ends_there(problem):
    options = {"penalty": L1(0.003), "fit_intercept": True, "reweight_every": 6, "reweight_sweeps": 2}
    found = boost(problem.moments, max_rounds=40, **options)
    for n_rounds in (1, 5, 6, 7, 12, 40):
        known = boost(problem.moments, max_rounds=n_rounds, **options)
        np.testing.assert_array_equal(found.trace.weights_at(n_rounds, problem.moments.n_voters), known.weight)
        for name, values in known.history.items():
            np.testing.assert_array_equal(found.history[name][:n_rounds], values)


# --- early stopping -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sweeps", [{}, {"reweight_every": 4}], ids=["no sweeps", "sweeps"])
@pytest.mark.parametrize("patience", [1, 2, 10])
@each_mode
def test_early_stopping_returns_the_best_round_after_exactly_patience_more(problem, mode, patience, sweeps):
    options = {"penalty": L2(5.0), "mode": mode, "fit_intercept": True, **sweeps}
    found = boost(problem.moments, validation=problem.validation, patience=patience, **options)
    risks = np.append(
        problem.validation_risk(np.zeros(problem.moments.n_voters), True), found.history["validation_risk"]
    )
    assert found.stop_reason == "patience"
    assert found.n_rounds == np.argmin(risks) > 0
    assert len(risks) - 1 == found.n_rounds + patience
    # No stop was due before: every stretch of `patience` rounds until then had a new best.
    best = np.minimum.accumulate(risks)
    assert all(best[t + patience] < best[t] for t in range(found.n_rounds))
    known = boost(problem.moments, max_rounds=found.n_rounds, **options)
    np.testing.assert_array_equal(found.weight, known.weight)
    np.testing.assert_allclose(found.edge, known.edge, rtol=0, atol=1e-13)
    assert found.risk == pytest.approx(known.risk, abs=1e-13)
    assert found.objective == known.objective


def test_validation_rows_that_never_agree_leave_the_intercept_alone(problem):
    against = WeightedProblem()
    sums = against.validation.sums
    opposite = replace(against.validation, sums=replace(sums, product=-sums.product))
    found = boost(problem.moments, L2(1.0), validation=opposite, patience=5)
    assert found.n_rounds == 0
    assert len(found.history["voter"]) == 5
    assert not found.weight.any()
    np.testing.assert_allclose(found.edge, problem.moments.margin[:, 0], rtol=0, atol=1e-14)


def test_validation_moments_of_other_voters_are_refused(problem):
    other = moments_from_matrix(problem.H_val[:, 1:], problem.y_val)
    with pytest.raises(ValueError, match="the validation moments are of"):
        boost(problem.moments, validation=other)


def n_columns(problem):
    """How many Gram columns were made."""
    with problem.moments.gram.lease() as columns:
        return np.count_nonzero(columns.store.address)


def test_hardly_a_round_is_run_after_the_one_that_stops_for_want_of_progress():
    problem, other = WeightedProblem(), WeightedProblem()  # of their own, no column of which is known
    found = boost(problem.moments, validation=problem.validation, patience=5, max_rounds=10_000)
    assert found.stop_reason == "patience"
    boost(other.moments, max_rounds=len(found.history["voter"]) + 50)
    assert n_columns(problem) <= n_columns(other)


# --- a run that goes on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sweeps", [None, 4, "auto"])
def test_rounds_may_start_from_any_weights(problem, sweeps):
    n_voters, penalty = problem.moments.n_voters, L1(0.01)
    start = np.where(np.arange(n_voters) % 3 == 0, 0.1, 0.0)
    rows = problem.rows(True)
    with run_from(start, problem.moments, penalty, fit_intercept=True) as run:
        assert run.risk == pytest.approx(rows.risk(start), rel=1e-12)
        for max_rounds in (1, 4, 9, 100_000):
            run.go(Schedule(max_rounds=max_rounds, tol=1e-10, reweight_every=sweeps))
            found = run.result()
            assert found.risk == pytest.approx(rows.risk(found.weight), rel=1e-12)
            assert found.objective == pytest.approx(found.risk + penalty.value(found.weight), rel=1e-12)
            assert found.objective == pytest.approx(found.history["objective"][-1], rel=1e-12)
    assert found.stop_reason == "converged"
    known = boost(problem.moments, penalty, fit_intercept=True, max_rounds=100_000, tol=1e-10)
    assert found.objective == pytest.approx(known.objective, abs=1e-9)


OTHER_PENALTIES = [(L1(0.05), L1(0.003)), (L2(5.0), L2(0.1)), (LInf(0.02), LInf(0.1)), (L2(0.5), L1(0.01))]


@pytest.mark.parametrize(("first", "second"), OTHER_PENALTIES, ids=repr)
@each_intercept
def test_a_run_goes_on_under_another_penalty_to_its_optimum(problem, first, second, fit_intercept):
    schedule, rows = Schedule(tol=1e-8), problem.rows(fit_intercept)
    with open_run(problem.moments, first, mode="corrective", fit_intercept=fit_intercept) as run:
        run.go(schedule)
        before = run.result()
        run.change(second)
        at_once = run.result()
        run.go(schedule)
        found = run.result()
    np.testing.assert_array_equal(at_once.weight, before.weight)
    assert at_once.objective == pytest.approx(before.risk + second.value(before.weight), rel=1e-12)
    np.testing.assert_allclose(at_once.edge, before.edge, rtol=0, atol=1e-13)
    assert found.stop_reason == "converged"
    known = boost(problem.moments, second, fit_intercept=fit_intercept, tol=1e-8)
    assert abs(found.objective - known.objective) <= 1e-8 * known.first_risk
    np.testing.assert_allclose(found.edge, rows.edges(found.weight), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.trace.weights_at(found.n_rounds, len(found.weight)), found.weight)


@each_intercept
def test_a_run_can_be_put_back_to_where_it_was_marked(problem, fit_intercept):
    with open_run(problem.moments, L2(0.5), mode="corrective", fit_intercept=fit_intercept) as run:
        run.go(Schedule(max_rounds=120, tol=0.0))
        mark, known = run.mark(), run.result()
        run.go(Schedule(max_rounds=200, tol=0.0))
        later = run.result()
        run.change(L2(0.1))
        run.go(Schedule(max_rounds=300, tol=0.0))
        run.change(L2(0.5))
        run.back_to(mark)
        found = run.result()
        run.go(Schedule(max_rounds=200, tol=0.0))
        again = run.result()
    np.testing.assert_array_equal(found.weight, known.weight)
    assert found.n_rounds == known.n_rounds == 120
    assert found.objective == pytest.approx(known.objective, rel=1e-12)
    np.testing.assert_allclose(found.edge, known.edge, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(found.trace.weights_at(120, len(found.weight)), found.weight)
    np.testing.assert_allclose(again.weight, later.weight, rtol=0, atol=1e-9)


# --- when rounds stop ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
@each_intercept
@each_penalty
def test_a_run_stops_at_the_first_look_at_which_the_gap_is_small_enough(
    problem, penalty, name, lam, fit_intercept, tol
):
    options = {"fit_intercept": fit_intercept, "reweight_every": None, "max_rounds": 200_000}
    found = boost(problem.moments, penalty, tol=tol, **options)
    assert found.stop_reason == "converged"
    if not penalty.has_gap:
        scale = np.sqrt(found.first_risk)
        assert np.abs(found.edge).max() <= 1.5e-3 * tol * scale  # the voters' second moments are about 1
        return
    assert found.dual_gap <= tol * found.first_risk
    if found.n_rounds <= LOOK_EVERY:
        return
    assert found.n_rounds % LOOK_EVERY == 0
    shorter = boost(problem.moments, penalty, tol=0.0, **{**options, "max_rounds": found.n_rounds - LOOK_EVERY})
    assert shorter.dual_gap > tol * found.first_risk


@each_intercept
@pytest.mark.parametrize("penalty", [L1(0.003), L2(0.01), LInf(0.1)], ids=repr)
def test_by_default_weights_are_solved_for_together_and_fewer_rounds_are_needed(problem, penalty, fit_intercept):
    found, slow = (
        boost(problem.moments, penalty, fit_intercept=fit_intercept, tol=1e-8, reweight_every=every)
        for every in ("auto", None)
    )
    assert found.trace.sweeps
    assert not slow.trace.sweeps
    assert found.n_rounds <= slow.n_rounds
    assert abs(found.objective - slow.objective) <= 1e-8 * found.first_risk


def test_where_there_is_no_gap_nothing_is_solved_for(problem):
    for options in ({"penalty": None}, {"penalty": "l1", "reg_lambda": 0.01, "mode": "forward"}):
        assert not boost(problem.moments, max_rounds=300, **options).trace.sweeps


# --- sweeps and bounds --------------------------------------------------------------------------------------


def test_a_sweep_under_l1_drops_a_voter_that_others_have_made_useless():
    # The last voter is the best at first, but the other two together are as good with less weight.
    base = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 2))
    y = base.sum(axis=1)
    H = np.column_stack([base, 0.4 * y])
    swept = boost(moments_from_matrix(H, y), L1(0.05), reweight_every=1, max_rounds=10_000)
    assert swept.history["voter"][0] == 2
    assert swept.weight[2] == 0.0
    assert any(2 in sweep.voter[sweep.weight == 0] for sweep in swept.trace.sweeps)
    np.testing.assert_allclose(swept.weight, lasso_solution(H, y, 0.05).weight, rtol=0, atol=1e-6)


def test_a_sweep_goes_once_over_the_voters_of_the_ensemble_and_no_others(problem):
    found = boost(problem.moments, L1(0.003), reweight_every=10, max_rounds=300, fit_intercept=True)
    weight = np.zeros(problem.moments.n_voters)
    left = 0
    for t, j in enumerate(found.trace.voter):
        weight[j] = found.trace.weight[t]
        for sweep in (sweep for sweep in found.trace.sweeps if sweep.round == t + 1):
            assert np.all(np.diff(sweep.voter) > 0)
            assert np.all(weight[sweep.voter] != 0)
            weight[sweep.voter] = sweep.weight
            left += np.count_nonzero(sweep.weight == 0)
    assert left > 0
    np.testing.assert_array_equal(weight, found.weight)


def test_sweeps_of_forward_copies_make_one_weight_of_them(problem):
    swept = boost(problem.moments, LInf(0.01), mode="forward", reweight_every=50, max_rounds=50)
    copies = boost(problem.moments, LInf(0.01), mode="forward", max_rounds=50)
    assert np.abs(copies.weight).max() > 0.01
    assert np.abs(swept.weight).max() <= 0.01


@each_intercept
def test_a_voter_at_its_bound_is_no_candidate(problem, fit_intercept):
    bound = 1e-4  # so low that every voter hits it at once
    found = boost(problem.moments, LInf(bound), fit_intercept=fit_intercept, max_rounds=10_000)
    assert found.stop_reason == "converged"
    assert np.unique(found.history["voter"]).size == found.n_rounds  # no voter is drawn twice
    drawn = np.abs(found.weight[found.history["voter"]])
    np.testing.assert_array_equal(drawn, bound)


def test_linf_forward_bounds_the_step_not_the_weight(problem):
    found = boost(problem.moments, LInf(0.01), mode="forward", max_rounds=200)
    np.testing.assert_array_less(np.abs(found.history["weight"]), 0.01 + 1e-15)
    assert np.abs(found.weight).max() > 0.01


# --- ties ---------------------------------------------------------------------------------------------------


def ties(copy, width):
    """A table whose second half repeats the first, with few voters or many between the copies."""
    X = np.round(np.random.default_rng(0).normal(size=(400, width)), 1)
    return np.hstack([X, copy(X)])


@pytest.mark.thinned
@pytest.mark.parametrize("copy", [lambda X: X, lambda X: -X, lambda X: 8 * X], ids=["copy", "mirror", "multiple"])
@pytest.mark.parametrize("width", [1, 2, 9])
@each_intercept
@each_mode
@each_penalty
def test_of_equal_voters_the_lowest_feature_wins(penalty, name, lam, mode, fit_intercept, width, copy):
    X = ties(copy, width)
    y = np.sign(np.random.default_rng(1).normal(size=400) + X[:, 0])
    stumps = candidate_voters(X)
    moments = column_moments(stumps, stumps.code(X), y)
    # Corrective, the copy of a voter with a weight may be the better of the two.
    rounds = 1 if mode == "corrective" else 30
    found = boost(moments, penalty, mode=mode, fit_intercept=fit_intercept, max_rounds=rounds)
    assert found.n_rounds == rounds
    feature = stumps.describe(found.history["voter"])[0]
    assert np.all(feature < width)


def test_of_equal_thresholds_the_lowest_wins():
    # The residuals are symmetric: the second and the fourth threshold of four are equally good.
    X = np.repeat(np.arange(5.0), 4)[:, None]
    y = np.array([1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, 1, 1, 1, 1.0])
    stumps = candidate_voters(X)
    moments = column_moments(stumps, stumps.code(X), y)
    edge = np.abs(boost(moments, fit_intercept=True, max_rounds=1).history["edge"][0])
    found = boost(moments, fit_intercept=True, max_rounds=1)
    tied = np.abs(moments.margin[:, 0] - moments.voter_sum / 20 * y.mean())
    assert np.count_nonzero(np.isclose(tied, edge)) == 2
    assert found.history["voter"][0] == 1
