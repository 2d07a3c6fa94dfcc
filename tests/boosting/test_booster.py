"""Rounds, sweeps and stopping: what the history says is true, and a run can be cut anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table, outputs, targets
from oracles import lasso_solution
from reference import decrease_from, training_rows

import quadboost
from quadboost import boost, moments_from_matrix
from quadboost.boosting import booster
from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty
from quadboost.moments.gram import GramStore
from quadboost.moments.moments import Moments, column_moments
from quadboost.voters.thresholds import candidate_voters

PENALTIES = {
    "none": (NoPenalty(), None, 0.0),
    "l1": (L1(0.003), "l1", 0.003),
    "l2": (L2(0.5), "l2", 0.5),
    "linf": (LInf(0.05), "linf", 0.05),
}
each_penalty = pytest.mark.parametrize(("penalty", "name", "lam"), PENALTIES.values(), ids=PENALTIES.keys())
each_mode = pytest.mark.parametrize("mode", ["forward", "corrective"])
each_intercept = pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"])


class Problem:
    """Weighted rows of a mixed table for training, others for validation, and what the voters say on both."""

    def __init__(self, m=300, thresholds=8):
        X, Z = mixed_table(m, seed=0), mixed_table(m // 2, seed=7)
        rng = np.random.default_rng(0)
        self.weight, self.weight_val = rng.uniform(0.5, 2, size=m), rng.uniform(0.5, 2, size=m // 2)
        self.y, self.y_val = targets(X), targets(Z)
        stumps = candidate_voters(X, self.weight, thresholds=thresholds, n_levels=N_LEVELS)
        self.H, self.H_val = outputs(stumps, X), outputs(stumps, Z)
        self.moments = column_moments(stumps, stumps.code(X), self.y, self.weight)
        self.validation = column_moments(stumps, stumps.code(Z), self.y_val, self.weight_val)

    def rows(self, fit_intercept):
        return training_rows(self.H, self.y, self.weight, fit_intercept)

    def validation_risk(self, a, fit_intercept):
        intercept = self.rows(fit_intercept).y_mean - self.rows(fit_intercept).voter_means @ a
        return np.average((self.y_val - intercept - self.H_val @ a) ** 2, weights=self.weight_val)


@pytest.fixture(scope="module")
def problem():
    return Problem()


# --- the history tells the truth ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sweeps",
    [{}, {"reweight_every": 7, "reweight_sweeps": 2}, {"reweight_every": 9, "reweight_sweeps": "solve"}],
    ids=["no sweeps", "sweeps", "solve"],
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


@each_intercept
@each_mode
@each_penalty
def test_each_round_decreases_the_objective_by_what_its_penalty_states(
    problem, penalty, name, lam, mode, fit_intercept
):
    found = boost(problem.moments, penalty, mode=mode, fit_intercept=fit_intercept, max_rounds=200)
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
    against = Problem()
    opposite = Moments(**{**vars(against.validation), "product_sum": -against.validation.product_sum})
    found = boost(problem.moments, L2(1.0), validation=opposite, patience=5)
    assert found.n_rounds == 0
    assert len(found.history["voter"]) == 5
    assert not found.weight.any()
    np.testing.assert_allclose(found.edge, problem.moments.margin[:, 0], rtol=0, atol=1e-14)


def test_validation_moments_of_other_voters_are_refused(problem):
    other = moments_from_matrix(problem.H_val[:, 1:], problem.y_val)
    with pytest.raises(ValueError, match="the validation moments are of"):
        boost(problem.moments, validation=other)


# --- a run can be cut anywhere ------------------------------------------------------------------------------

RUNS = {
    "l1": {"penalty": "l1", "reg_lambda": 0.003},
    "vanilla forward": {"mode": "forward", "fit_intercept": True},
    "sweeps": {"penalty": "l1", "reg_lambda": 0.003, "reweight_every": 6, "reweight_sweeps": 2},
    "solve": {"penalty": "l1", "reg_lambda": 0.003, "reweight_every": 6, "reweight_sweeps": "solve"},
    "forward with sweeps": {"penalty": "l1", "reg_lambda": 0.003, "mode": "forward", "reweight_every": 5},
    "linf": {"penalty": "linf", "alpha_max": 0.05, "fit_intercept": True},
}


def assert_same_run(found, known):
    for name in ("weight", "edge"):
        np.testing.assert_array_equal(getattr(found, name), getattr(known, name))
    for name in ("intercept", "risk", "objective", "n_rounds", "stop_reason"):
        assert getattr(found, name) == getattr(known, name), name
    np.testing.assert_array_equal(found.dual_gap, known.dual_gap)
    assert found.history.keys() == known.history.keys()
    for name, values in known.history.items():
        np.testing.assert_array_equal(found.history[name], values)


@pytest.mark.parametrize("validated", [False, True], ids=["no validation", "validation"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_a_resumed_run_is_the_run_at_once_bit_for_bit(problem, run, validated, monkeypatch):
    monkeypatch.setattr(booster, "REFRESH_EVERY", 25)
    options = {**run, "validation": problem.validation if validated else None, "patience": 15}
    known = boost(problem.moments, max_rounds=120, **options)
    progress = None
    for max_rounds in (1, 6, 7, 24, 25, 50, 53, 120):
        found = boost(Problem().moments, max_rounds=max_rounds, resume=progress, **options)
        progress = found.progress
    assert_same_run(found, known)


def test_resuming_what_has_converged_changes_nothing(problem):
    known = boost(problem.moments, L1(0.05))
    assert known.stop_reason == "converged"
    assert_same_run(boost(problem.moments, L1(0.05), resume=known.progress), known)


@pytest.mark.parametrize("sweeps", [{}, {"reweight_every": 4}], ids=["no sweeps", "sweeps"])
def test_rounds_may_start_from_any_weights(problem, sweeps):
    n_voters, penalty = problem.moments.n_voters, L1(0.01)
    start = np.where(np.arange(n_voters) % 3 == 0, 0.1, 0.0)
    schedule = booster.Schedule(max_rounds=100_000, tol=1e-10, **sweeps)
    rules = {"mode": "corrective", "fit_intercept": True}
    found = booster.run_rounds(problem.moments, penalty, schedule, start_weight=start, **rules)
    rows = problem.rows(True)
    np.testing.assert_array_equal(found.trace.weights_at(0, n_voters), start)
    for n_rounds in (1, 4, 9):
        a = found.trace.weights_at(n_rounds, n_voters)
        assert found.history["risk"][n_rounds - 1] == pytest.approx(rows.risk(a), rel=1e-12)
        objective = rows.risk(a) + penalty.value(a)
        assert found.history["objective"][n_rounds - 1] == pytest.approx(objective, rel=1e-12)
    known = boost(problem.moments, penalty, fit_intercept=True, max_rounds=100_000, tol=1e-10)
    assert found.objective == pytest.approx(known.objective, abs=1e-12)
    never_better = booster.run_rounds(
        problem.moments, penalty, schedule, start_weight=known.weight, validation=problem.moments, **rules
    )
    assert never_better.n_rounds == 0
    np.testing.assert_array_equal(never_better.weight, known.weight)


# --- other ways to stop -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@each_mode
def test_l1_stops_by_itself_when_no_edge_exceeds_lambda(problem, mode, fit_intercept):
    lam = 0.02
    found = boost(problem.moments, L1(lam), mode=mode, fit_intercept=fit_intercept, max_rounds=100_000)
    assert found.stop_reason == "converged"
    assert 0 < found.n_rounds < 100_000
    assert np.abs(found.edge).max() <= lam + 1e-7


def test_l1_without_a_useful_voter_draws_none(problem):
    found = boost(problem.moments, L1(float(np.abs(problem.moments.margin).max())))
    assert (found.n_rounds, found.stop_reason) == (0, "converged")
    assert not found.weight.any()


def test_a_larger_tol_stops_earlier_but_no_earlier_than_it_says(problem):
    tol = 0.03
    found = boost(problem.moments, NoPenalty(), fit_intercept=True, tol=tol)
    rows, eta = problem.rows(True), problem.rows(True).etas()
    floor = tol**2 * rows.risk(np.zeros(len(eta)))
    assert found.stop_reason == "converged"
    assert np.all(-np.diff(found.history["objective"]) > floor)
    voting = eta > 0
    assert np.all(found.edge[voting] ** 2 / eta[voting] <= floor * (1 + 1e-9))


def test_callbacks_hear_the_truth_at_the_right_rounds_once_each(problem):
    heard = []
    found = boost(
        problem.moments,
        L1(0.02),
        validation=problem.validation,
        patience=10_000,
        callback=lambda *news: heard.append(news),
        callback_every=1,
    )
    assert found.stop_reason == "converged"
    risks = zip(found.history["risk"].tolist(), found.history["validation_risk"].tolist(), strict=True)
    assert heard == [(t, *both) for t, both in enumerate(risks, start=1)]


def test_a_callback_without_validation_hears_none_for_it(problem):
    heard = []
    boost(problem.moments, max_rounds=20, callback=lambda *news: heard.append(news), callback_every=5)
    assert [(round, validation_risk) for round, _, validation_risk in heard] == [
        (5, None),
        (10, None),
        (15, None),
        (20, None),
    ]


def test_a_callback_can_stop_and_the_run_goes_on_from_there(problem):
    options = {"penalty": L1(0.003), "reweight_every": 4}
    found = boost(problem.moments, callback=lambda round, *_: round >= 30, callback_every=10, **options)
    assert (found.n_rounds, found.stop_reason) == (30, "callback")
    resumed = boost(problem.moments, resume=found.progress, max_rounds=50, **options)
    assert_same_run(resumed, boost(problem.moments, max_rounds=50, **options))


def test_an_error_in_a_callback_reaches_the_caller(problem):
    def fail(*_):
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError, match="from the callback"):
        boost(problem.moments, callback=fail, callback_every=3)


def test_no_time_stops_soon_and_the_run_goes_on_from_there(problem):
    options = {"penalty": L2(1_000.0), "mode": "forward", "tol": 0.0}
    found = boost(problem.moments, max_rounds=10**8, max_seconds=0.0, **options)
    assert found.stop_reason == "max_seconds"
    assert found.n_rounds < 10**7
    more = found.n_rounds + 10
    resumed = boost(problem.moments, max_rounds=more, resume=found.progress, **options)
    assert_same_run(resumed, boost(problem.moments, max_rounds=more, **options))


def test_the_time_is_looked_at_while_columns_are_made(problem):
    class SlowSource:
        n_voters, dtype = problem.moments.n_voters, np.dtype(np.float64)

        def make(self, voter, before, after, out):
            time.sleep(0.02)
            out[:] = problem.moments.gram.column(voter)

    # Every round needs a column, since only two are kept. A busy machine only makes fewer rounds in the time.
    slow = Moments(**{**vars(problem.moments), "gram": GramStore(SlowSource(), 1)})
    found = boost(slow, L2(1.0), max_rounds=150, max_seconds=0.2, tol=0.0)
    assert found.stop_reason == "max_seconds"
    assert found.n_rounds < 100


# --- sweeps and bounds --------------------------------------------------------------------------------------


def test_a_sweep_under_l1_drops_a_voter_that_others_have_made_useless():
    # The last voter is the best at first, but the other two together are as good with less weight.
    base = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 2))
    y = base.sum(axis=1)
    H = np.column_stack([base, 0.4 * y])
    swept = boost(moments_from_matrix(H, y), L1(0.05), reweight_every=1, max_rounds=10_000)
    assert swept.history["voter"][0] == 2
    assert swept.weight[2] == 0.0
    assert any(2 in sweep.voter[sweep.total == 0] for sweep in swept.trace.sweeps)
    np.testing.assert_allclose(swept.weight, lasso_solution(H, y, 0.05).weight, rtol=0, atol=1e-6)


def test_a_sweep_goes_once_over_the_voters_of_the_ensemble_and_no_others(problem):
    found = boost(problem.moments, L1(0.003), reweight_every=10, max_rounds=300, fit_intercept=True)
    weight = np.zeros(problem.moments.n_voters)
    left = 0
    for t, j in enumerate(found.trace.voter):
        weight[j] = found.trace.total[t]
        for sweep in (sweep for sweep in found.trace.sweeps if sweep.round == t + 1):
            assert np.all(np.diff(sweep.voter) > 0)
            assert np.all(weight[sweep.voter] != 0)
            weight[sweep.voter] = sweep.total
            left += np.count_nonzero(sweep.total == 0)
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


# --- the certificate ----------------------------------------------------------------------------------------


@each_intercept
def test_the_dual_gap_of_weighted_stumps_bounds_the_true_gap_and_closes(problem, fit_intercept):
    lam = 0.01
    best = lasso_solution(problem.H, problem.y, lam, problem.weight, fit_intercept).objective
    gaps = []
    for max_rounds in (1, 10, 100, 1_000, 100_000):
        found = boost(problem.moments, L1(lam), fit_intercept=fit_intercept, max_rounds=max_rounds, tol=1e-12)
        assert found.dual_gap >= found.objective - best - 1e-13
        gaps.append(found.dual_gap)
    assert gaps[0] > 1e-3
    assert gaps[-1] < 1e-9


def test_a_target_far_from_zero_does_not_make_risk_and_certificate_false(problem):
    """The risk is right, or what cannot be computed is refused."""
    known = boost(moments_from_matrix(problem.H, problem.y), L1(0.01), fit_intercept=True)
    moments = moments_from_matrix(problem.H, problem.y + 1e8)
    refusal = ""
    try:
        found = boost(moments, L1(0.01), fit_intercept=True)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert "mean" in refusal
        return
    assert found.risk == pytest.approx(known.risk, rel=1e-3)
    assert found.dual_gap >= found.risk + L1(0.01).value(found.weight) - known.objective


def test_no_certificate_is_claimed_for_forward_rounds(problem):
    assert np.isnan(boost(problem.moments, L1(0.01), mode="forward").dual_gap)


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "backward"}, "mode='backward' is not known; use 'corrective' or 'forward'"),
        ({"penalty": "elastic"}, "penalty='elastic' is not known"),
        ({"penalty": "l1", "reg_lambda": -1.0}, "reg_lambda=-1.0 must be"),
        ({"penalty": "linf", "alpha_max": 0.0}, "alpha_max=0.0 must be"),
        ({"max_rounds": 0}, "max_rounds=0 must be"),
        ({"max_rounds": 2.5}, "max_rounds=2.5 must be"),
        ({"tol": -1e-3}, "tol=-0.001 must be"),
        ({"tol": np.nan}, "tol=nan must be"),
        ({"reweight_every": 0}, "reweight_every=0 must be"),
        ({"reweight_sweeps": 0}, "reweight_sweeps=0 must be"),
        ({"reweight_sweeps": "some"}, "reweight_sweeps='some' is not known; give a whole number, or 'solve'"),
        ({"patience": 0}, "patience=0 must be"),
        ({"max_seconds": -1}, "max_seconds=-1 must be"),
        ({"callback_every": 0}, "callback_every=0 must be"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(problem, options, message):
    with pytest.raises(ValueError, match=message):
        boost(problem.moments, **options)


# --- interruption -------------------------------------------------------------------------------------------

ROUNDS_WITHOUT_END = """
import numpy as np
from quadboost import boost, moments_from_matrix
H = np.random.default_rng(0).choice([-1.0, 1.0], size=(500, 400))
moments = moments_from_matrix(H, H[:, :3].sum(axis=1))
print("ready", flush=True)
boost(moments, "l2", reg_lambda=1e6, mode="forward", max_rounds=10**10, tol=0.0)
"""

COLUMNS_WITHOUT_END = """
import numpy as np
from quadboost import QuadBoostRegressor
X = np.random.default_rng(0).normal(size=(100_000, 10))
print("ready", flush=True)
QuadBoostRegressor(None, thresholds="all", max_rounds=10**9, cache_bytes=1, tol=0.0).fit(X, X.sum(axis=1))
"""

SWEEPS_WITHOUT_END = """
import numpy as np
from quadboost import boost, moments_from_matrix
H = np.random.default_rng(0).choice([-1.0, 1.0], size=(500, 400))
moments = moments_from_matrix(H, H @ np.arange(400.0))
print("ready", flush=True)
boost(moments, "l2", reg_lambda=100.0, reweight_every=1, reweight_sweeps=10**9, max_rounds=10**9, tol=0.0)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a single process")
@pytest.mark.parametrize(
    "code", [ROUNDS_WITHOUT_END, COLUMNS_WITHOUT_END, SWEEPS_WITHOUT_END], ids=["rounds", "columns", "sweeps"]
)
def test_an_interrupt_ends_a_fit_that_would_never_end(code, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(quadboost.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,  # not where a checkout that is not built would hide the package
        # A process that was started in the background ignores interrupts, and so would this one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(1.5)  # it is now well within the fit
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        # Within a second on a machine that is not busy.
        errors = process.communicate(timeout=20)[1]
    finally:
        process.kill()
        process.communicate()
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_hardly_a_round_is_run_after_the_one_that_stops_for_want_of_progress():
    problem, other = Problem(), Problem()  # of their own, no column of which is known
    found = boost(problem.moments, validation=problem.validation, patience=5, max_rounds=10_000)
    assert found.stop_reason == "patience"
    boost(other.moments, max_rounds=len(found.history["voter"]) + 50)
    assert np.count_nonzero(problem.moments.gram.address) <= np.count_nonzero(other.moments.gram.address)
