"""The optimised path gives the bits of plain numpy: bins, joint counts, tables, threads and blocks change nothing."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from plain_rounds import plain_rounds
from reference import voter_matrix

import quadboost.common.threads
import quadboost.moments.gram
from quadboost.boosting.limits import Limits, limited
from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty
from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

M, D, N_ROUNDS = 600, 9, 250


def skewed(X):
    return np.exp(2 * X)


def discrete(X):
    return np.round(2 * X)


def mostly_zero(X):
    return np.where(np.abs(X) < 1.5, 0.0, X)


def with_missing(X):
    return np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)


SHAPES = {"normal": np.array, **{f.__name__: f for f in (skewed, discrete, mostly_zero, with_missing)}}
PENALTIES = [NoPenalty(), L1(0.003), L2(0.1), LInf(0.02)]


@cache
def table_of(shape):
    """A table and its labels, its voters, and their outputs."""
    random = np.random.default_rng(0)
    X = random.normal(size=(M, D)) + random.normal(size=(M, 1))
    y = np.where(np.sin(X[:, 0]) + X[:, 1] + random.normal(size=M) > 0, 1.0, -1.0)
    X = SHAPES[shape](X)
    stumps = candidate_voters(X, thresholds=60, n_threads=2)
    return X, y, stumps, voter_matrix(X, *stumps.describe(np.arange(stumps.n_voters)), {})


@cache
def known_rounds(shape, penalty, mode, fit_intercept, n_rounds):
    _, y, _, H = table_of(shape)
    return plain_rounds(H, y, penalty, mode=mode, fit_intercept=fit_intercept, max_rounds=n_rounds)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("tables", "n_threads"),
    [
        pytest.param(True, 1, id="tables"),
        pytest.param(False, 1, id="no tables"),
        pytest.param(True, 2, id="tables, threads", marks=pytest.mark.slow),  # threads wait for each other
        pytest.param(False, 2, id="no tables, threads", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("mode", ["corrective", "forward"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_rounds_are_those_of_plain_numpy_bit_for_bit(
    penalty, mode, fit_intercept, shape, tables, n_threads, monkeypatch
):
    monkeypatch.setattr(quadboost.moments.gram, "TABLE_PAYS", 0 if tables else 1e9)
    monkeypatch.setattr(quadboost.common.threads, "STEPS_FOR_THREADS", 0)
    X, y, stumps, _ = table_of(shape)
    codes = stumps.code(X, 2)
    for f, cuts in enumerate(stumps.cuts):  # the plain way to code
        plain = np.where(np.isnan(X[:, f]), len(cuts) + 1, np.searchsorted(cuts, X[:, f], side="left"))
        np.testing.assert_array_equal(codes[:, f], plain)
    moments = column_moments(stumps, codes, y, n_threads=n_threads)
    assert moments.n_voters > 256 or shape == "discrete", "more than one block of voters"
    schedule = Schedule(max_rounds=N_ROUNDS, tol=0.0, reweight_every=None)
    found = run_rounds(moments, penalty, schedule, mode=mode, fit_intercept=fit_intercept)
    weight, history = known_rounds(shape, penalty, mode, fit_intercept, found.n_rounds)
    assert found.n_rounds > 50
    for i, name in enumerate(("voter", "edge", "weight", "risk", "objective")):
        np.testing.assert_array_equal(found.history[name], history[:, i])
    np.testing.assert_array_equal(found.weight, weight)


@pytest.mark.parametrize("tables", [True, False])
def test_so_they_are_with_threads(tables, monkeypatch):
    """Two of the slow cases, in every run."""
    test_rounds_are_those_of_plain_numpy_bit_for_bit(
        L1(0.003), "corrective", True, "with_missing", tables, 2, monkeypatch
    )


@pytest.mark.thinned(4)
@pytest.mark.parametrize("mode", ["corrective", "forward"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_so_they_are_within_limits(penalty, mode):
    X, y, stumps, H = table_of("with_missing")
    random, n_voters = np.random.default_rng(0), stumps.n_voters
    limits = Limits.of(
        n_voters,
        factor=random.uniform(0.5, 2.0, n_voters),
        lower=random.choice([0.0, -0.01, -np.inf], n_voters),
        upper=random.choice([0.0, 0.01, np.inf], n_voters),
    )
    within = limited(penalty, limits)
    schedule = Schedule(max_rounds=100, tol=0.0, reweight_every=None)
    found = run_rounds(column_moments(stumps, stumps.code(X), y), within, schedule, mode=mode, fit_intercept=True)
    weight, history = plain_rounds(H, y, within, mode=mode, fit_intercept=True, max_rounds=found.n_rounds)
    assert found.n_rounds > 50
    for i, name in enumerate(("voter", "edge", "weight", "risk", "objective")):
        np.testing.assert_array_equal(found.history[name], history[:, i])
    np.testing.assert_array_equal(found.weight, weight)
    assert ((found.weight == limits.upper) & (found.weight > 0)).any(), "some bound was reached"
