"""`boost`: ways to stop, certificates, and arguments that are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles import lasso_solution
from weighted_problem import WeightedProblem, assert_same_run, each_intercept, each_mode

import quadboost
from quadboost import boost, moments_from_matrix
from quadboost.boosting.penalties import L1, L2, NoPenalty
from quadboost.kernels.store import Maker
from quadboost.moments.gram import Gram


@pytest.fixture(scope="module")
def problem():
    return WeightedProblem()


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
    """Where there is no gap: a thousandth of tol is what a voter may still move by."""
    tol = 30.0
    found = boost(problem.moments, NoPenalty(), fit_intercept=True, tol=tol)
    rows, eta = problem.rows(True), problem.rows(True).etas()
    floor = (tol / 1000) ** 2 * rows.risk(np.zeros(len(eta)))
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
        n_voters, n_rows, dtype, maker = problem.moments.n_voters, 300, np.dtype(np.float64), Maker()

        def prepare(self, voter):
            pass

        def write(self, voter, out):
            time.sleep(0.02)
            out[:] = problem.moments.gram.column(voter)

    # Every round needs a column, since only two are kept. A busy machine only makes fewer rounds in the time.
    slow = replace(problem.moments, gram=Gram(SlowSource(), 1))
    found = boost(slow, L2(1.0), max_rounds=150, max_seconds=0.2, tol=0.0)
    assert found.stop_reason == "max_seconds"
    assert found.n_rounds < 100


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
    known = boost(moments_from_matrix(problem.H, problem.y), L1(0.01), fit_intercept=True)
    moments = moments_from_matrix(problem.H, problem.y + 1e8)
    found = boost(moments, L1(0.01), fit_intercept=True)
    assert found.risk == pytest.approx(known.risk, rel=1e-3)
    assert found.dual_gap >= found.risk + L1(0.01).value(found.weight) - known.objective - 1e-13


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


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a single process")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(ROUNDS_WITHOUT_END, id="rounds"),
        pytest.param(COLUMNS_WITHOUT_END, id="columns", marks=pytest.mark.slow),
        pytest.param(SWEEPS_WITHOUT_END, id="sweeps"),
    ],
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
        time.sleep(1.0)  # it is now well within the fit
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        # Within a second on a machine that is not busy.
        errors = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.communicate()
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("penalty", [None, "l1", L1(0.01), np.ones(3)])
def test_a_table_in_place_of_moments_is_refused(problem, penalty):
    with pytest.raises(TypeError, match=r"boost takes Moments, not ndarray; make them by moments_from_matrix\(H, y\)"):
        boost(problem.H, penalty)


@pytest.mark.parametrize("far", [0.0, 1e6, 1e9])
def test_without_a_penalty_the_objective_is_the_risk(problem, far):
    found = boost(moments_from_matrix(problem.H, problem.y + far), fit_intercept=True, max_rounds=50)
    np.testing.assert_allclose(found.history["objective"], found.history["risk"], rtol=1e-11)
