"""All weights at once under l2, against numpy's exact solution on the explicit voters."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table
from some_trees import way_of

from quadboost import QuadBoostRegressor
from quadboost.boosting.losses import make_loss
from quadboost.fitting import ridge
from quadboost.fitting.growth import Growth, grow_trees
from quadboost.fitting.ridge import CodedProducts, solve_ridge
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

M = 150
RNG = np.random.default_rng(0)
X = mixed_table(M)
STUMPS = candidate_voters(X, thresholds=6, n_levels=N_LEVELS)
Y = np.column_stack([X[:, 0] + (X[:, 1] > 1), 3.0 + np.nan_to_num(X[:, 2])]) + 0.1 * RNG.normal(size=(M, 2))
TREES = grow_trees(STUMPS, STUMPS.code(X), Y, None, make_loss("squared", Y, None, Y.mean(axis=0)), Growth(3, 8)).trees
VOTERS = STUMPS.with_trees(TREES)
CODES = VOTERS.code(X)
WEIGHTS = {"plain": None, "whole": RNG.integers(1, 4, size=M).astype(float), "real": RNG.random(M) + 0.1}
RIDGE = 0.01
FREE = np.full(VOTERS.n_voters, -np.inf), np.full(VOTERS.n_voters, np.inf)
SIGNS = np.arange(VOTERS.n_voters) % 4  # 0: none, 1: not negative, 2: not positive, 3: zero
SIGNED = np.where(SIGNS % 2, 0.0, -np.inf), np.where(SIGNS >= 2, 0.0, np.inf)
TIGHT = np.where(SIGNS % 2, 0.0, -0.02), np.where(SIGNS >= 2, 0.0, 0.03)

each_weight = pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
with_sketch = pytest.mark.parametrize("with_sketch", [False, True])
with_or_without = pytest.mark.parametrize("fit_intercept", [True, False])


def explicit():
    """What every voter says of every row."""
    votes = np.column_stack([voter(CODES) for voter in map(_voter, range(VOTERS.n_voters))])
    ways = [[set(way_of(TREES, tree, row, N_LEVELS)) for row in X] for tree in range(TREES.n_trees)]
    nodes = [(tree, node) for tree in range(TREES.n_trees) for node in range(TREES.start[tree], TREES.start[tree + 1])]
    rules = [[1.0 if node in way else -1.0 for way in ways[tree]] for tree, node in nodes if not TREES.is_root[node]]
    np.testing.assert_array_equal(votes[:, VOTERS.first_rule :], np.transpose(rules))  # as rows walk through trees
    return votes


def _voter(number):
    column, votes = VOTERS.votes(number)
    return lambda codes: votes[codes[:, column]]


def solved(weight=None, fit_intercept=True, *, codes=CODES, y=Y, strength=RIDGE, tol=1e-13, n_threads=1, **given):
    moments = column_moments(VOTERS, codes, y, weight)
    rows = CodedProducts(codes, weight, moments.sums, fit_intercept, n_threads)
    strength = np.full(VOTERS.n_voters, strength)
    first, bounds = (
        moments.target_risk(fit_intercept),
        tuple(map(np.array, zip(*given.pop("bounds", [FREE, FREE]), strict=True))),
    )
    return solve_ridge(rows, y, strength, bounds, first, tol, given.pop("max_iterations", 2_000), **given)


@pytest.fixture(autouse=True)
def sketches(request, monkeypatch):
    """Of small tables too, where a test asks for that: their rows in a sample, and in full."""
    if "with_sketch" in request.fixturenames and request.getfixturevalue("with_sketch"):
        monkeypatch.setattr(ridge, "SKETCHES", ((M + 1 if "repetition" in request.node.name else 1, 8),))


def objective(H, weight, found, output):
    off = Y[:, output] - H @ found.weight[:, output] - found.intercept[output]
    return np.average(off**2, weights=weight), RIDGE * (found.weight[:, output] ** 2).sum()


def exact(H, weight, fit_intercept, output):
    """The least objective, by the normal equations."""
    share = np.full(M, 1.0 / M) if weight is None else weight / weight.sum()
    centre, mean = (share @ H, share @ Y[:, output]) if fit_intercept else (0.0, 0.0)
    Z, y = H - centre, Y[:, output] - mean
    a = np.linalg.solve(Z.T @ (share[:, None] * Z) + RIDGE * np.eye(H.shape[1]), Z.T @ (share * y))
    return share @ (y - Z @ a) ** 2 + RIDGE * a @ a


@pytest.mark.thinned(2)
@each_weight
@with_or_without
@with_sketch
def test_it_is_the_exact_solution(weight, fit_intercept, with_sketch):
    H, found = explicit(), solved(weight, fit_intercept)
    assert found.converged
    for output in range(2):
        risk, penalty = objective(H, weight, found, output)
        known = exact(H, weight, fit_intercept, output)
        assert risk + penalty == pytest.approx(known, rel=1e-8)
        assert risk == pytest.approx(found.risk[output], rel=1e-8)
        assert found.history[-1][output] == pytest.approx(known, rel=1e-8)
    if not fit_intercept:
        assert not found.intercept.any()


@pytest.mark.thinned(7)
@each_weight
@with_or_without
@pytest.mark.parametrize("max_iterations", [0, 1, 3, 8, 20])
def test_the_gap_is_no_less_than_what_is_left_to_gain(weight, fit_intercept, max_iterations):
    H, found = explicit(), solved(weight, fit_intercept, max_iterations=max_iterations)
    for output in range(2):
        left = sum(objective(H, weight, found, output)) - exact(H, weight, fit_intercept, output)
        assert -1e-9 < left <= found.gap[output] + 1e-9
    assert len(found.history) == max_iterations
    assert not found.converged


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_it_ends_where_the_gap_is_small_enough(tol):
    found, first = solved(tol=tol), column_moments(VOTERS, CODES, Y).target_risk(True)
    assert (found.gap <= tol * first).all()
    assert len(found.history) < 200


def test_objectives_never_rise():
    history = np.array(solved().history)
    assert (np.diff(history, axis=0) <= 1e-12 * history[:1]).all()


def test_edges_are_those_of_the_residuals():
    H, found = explicit(), solved(max_iterations=3)
    off = Y - H @ found.weight - found.intercept
    np.testing.assert_allclose(found.edge, (H - H.mean(axis=0)).T @ off / M, atol=1e-12)


def test_a_start_at_the_solution_is_the_end():
    known = solved()
    found = solved(start=np.ascontiguousarray(known.weight.T), tol=1e-10)
    assert found.history == []
    np.testing.assert_array_equal(found.weight, known.weight)


def test_from_anywhere_it_is_the_same_solution():
    start = np.random.default_rng(1).normal(size=(2, VOTERS.n_voters))
    np.testing.assert_allclose(solved(start=start).weight, solved().weight, atol=1e-5)


def test_voters_may_differ_in_strength():
    strength = RNG.random(VOTERS.n_voters) + 0.01
    H = explicit()
    Z, y = H - H.mean(axis=0), Y - Y.mean(axis=0)
    known = np.linalg.solve(Z.T @ Z / M + np.diag(strength), Z.T @ y / M)
    np.testing.assert_allclose(solved(strength=strength).weight, known, atol=1e-6)


@pytest.mark.thinned(4)
@each_weight
@with_sketch
@pytest.mark.parametrize("bounds", [[FREE, FREE], [SIGNED, TIGHT]], ids=["free", "bounded"])
def test_neither_threads_nor_the_order_of_rows_change_a_bit(weight, with_sketch, bounds):
    arguments = {"tol": 1e-6, "bounds": bounds}
    known, order = solved(weight, **arguments), np.random.default_rng(2).permutation(M)
    codes, y = np.ascontiguousarray(CODES[order]), Y[order]
    for found in (
        solved(weight, n_threads=2, **arguments),
        solved(None if weight is None else weight[order], codes=codes, y=y, n_threads=2, **arguments),
    ):
        for name in ("weight", "intercept", "edge", "risk", "gap"):
            np.testing.assert_array_equal(getattr(found, name), getattr(known, name), err_msg=name)


@with_sketch
def test_a_whole_weight_is_a_repetition_bit_for_bit(with_sketch):
    weight = WEIGHTS["whole"]
    repeats = weight.astype(int)
    repeated = solved(codes=CODES.repeat(repeats, axis=0), y=Y.repeat(repeats, axis=0), tol=1e-6)
    found = solved(weight, tol=1e-6)
    np.testing.assert_array_equal(found.weight, repeated.weight)
    np.testing.assert_array_equal(found.gap, repeated.gap)


@with_sketch
def test_bounds_hold_exactly_and_from_anywhere_it_is_the_same_solution(with_sketch):
    start, bounds = np.random.default_rng(1).normal(size=(2, VOTERS.n_voters)), [SIGNED, TIGHT]
    known, found = solved(bounds=bounds), solved(bounds=bounds, start=start)
    for either in (known, found):
        assert either.converged
        for weight, (low, high) in zip(either.weight.T, bounds, strict=True):
            assert ((low <= weight) & (weight <= high)).all()
            assert 2 < np.count_nonzero((weight == low) & (low < high)) < VOTERS.n_voters / 2
    np.testing.assert_allclose(found.weight, known.weight, atol=1e-5)


def test_who_watches_sees_every_iteration_and_may_stop():
    seen = []

    def watch(iteration, objective, weight):
        seen.append((iteration, objective.tolist(), weight.copy()))
        return iteration == 4

    found = solved(watch=watch)
    assert [news[0] for news in seen] == [1, 2, 3, 4]
    np.testing.assert_array_equal(found.weight.T, seen[-1][2])
    assert [one.tolist() for one in found.history] == [one[1] for one in seen]


def test_the_strength_does_not_jump_where_weights_are_huge():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(3_000, 5)), 1)
    y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=3_000)

    def strength(weight):
        return QuadBoostRegressor(penalty="l2").fit(X, y, sample_weight=np.full(3_000, weight)).reg_lambda_

    assert strength(6_000.0) == pytest.approx(strength(5_800.0), rel=0.2)
