"""A penalty within limits: bounds on weights, and a factor of the penalty for each voter."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls
from sklearn.linear_model import Lasso

import quadboost
from quadboost.boosting.limits import Limited, Limits, limited
from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty
from quadboost.boosting.rounds import open_run, run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.boosting.strength import strengths_by_gcv

M, K = 120, 14
PENALTIES = [NoPenalty(), L1(0.05), L2(0.2), LInf(0.15)]
EXACT = {"tol": 1e-26, "reweight_every": 20, "reweight_sweeps": "solve"}


def problem(seed=0):
    random = np.random.default_rng(seed)
    H = random.normal(size=(M, K)) + 0.7 * random.normal(size=(M, 1)) + 0.2
    y = H @ random.normal(size=K) * 0.3 + random.normal(size=M) + 0.5
    return H, y


def random_limits(seed=0, factor=True):
    """Of every kind: both sides, one side, none, no weight at all."""
    random = np.random.default_rng(seed)
    lower = random.choice([0.0, -0.1, -0.02, -np.inf], K)
    upper = random.choice([0.0, 0.1, 0.02, np.inf], K)
    return Limits.of(K, factor=random.uniform(0.5, 2.0, K) if factor else None, lower=lower, upper=upper)


def centred(H, y, fit_intercept):
    return (H - H.mean(axis=0), y - y.mean()) if fit_intercept else (H, y)


def best_weights(H, y, penalty, limits):
    """The optimum by another library: a bound-constrained least squares, where |x| is written as two columns."""
    m, k = H.shape
    factor = np.ones(k) if limits.factor is None else limits.factor
    lower = np.full(k, -np.inf) if limits.lower is None else limits.lower
    upper = np.full(k, np.inf) if limits.upper is None else limits.upper
    lower, upper = np.maximum(lower, -penalty.cap / factor), np.minimum(upper, penalty.cap / factor)
    # mean (y - Hx)^2 + ridge f^2 x^2 + 2 shrink f |x|, with x = p - n: complete the square of the linear term.
    gram = H.T @ H / m + np.diag(penalty.ridge * factor**2)
    product = H.T @ y / m
    root = np.linalg.cholesky(gram).T
    if penalty.shrink == 0:
        return lsq_linear(root, np.linalg.solve(root.T, product), (lower - 1e-300, upper + 1e-300), tol=1e-15).x
    return coordinate_descent(gram, product, penalty.shrink * factor, lower, upper)


def coordinate_descent(gram, product, shrink, lower, upper):
    x = np.zeros(len(product))
    for _ in range(20_000):
        before = x.copy()
        for j in range(len(x)):
            z = product[j] - gram[j] @ x + gram[j, j] * x[j]
            x[j] = np.clip(np.sign(z) * max(abs(z) - shrink[j], 0.0) / gram[j, j], lower[j], upper[j])
        if np.abs(x - before).max() < 1e-15:
            break
    return x


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_other_libraries(penalty, fit_intercept, seed):
    H, y = problem(seed)
    limits = random_limits(seed)
    found = quadboost.boost(
        quadboost.moments_from_matrix(H, y), penalty, fit_intercept=fit_intercept, **EXACT,
        lower=limits.lower, upper=limits.upper, penalty_factor=limits.factor,
    )  # fmt: skip
    known = best_weights(*centred(H, y, fit_intercept), penalty, limits)
    np.testing.assert_allclose(found.weight, known, rtol=0, atol=1e-8)
    assert (found.weight >= limits.lower).all()
    assert (found.weight <= limits.upper).all()
    assert found.violation < 1e-10
    assert np.isnan(found.dual_gap) if penalty in (NoPenalty(),) else 0 <= found.dual_gap < 1e-9


def test_a_lower_bound_of_zero_is_non_negative_least_squares():
    H, y = problem()
    found = quadboost.boost(quadboost.moments_from_matrix(H, y), lower=0, tol=1e-12)  # as docs/constraints.md says
    known, _ = nnls(H, y)
    np.testing.assert_allclose(found.weight, known, rtol=0, atol=1e-8)
    assert 0 < np.count_nonzero(known) < K


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_under_l1_it_is_the_non_negative_lasso(fit_intercept):
    H, y = problem()
    found = quadboost.boost(
        quadboost.moments_from_matrix(H, y), "l1", reg_lambda=0.03, lower=0, fit_intercept=fit_intercept, **EXACT
    )
    known = Lasso(alpha=0.03, positive=True, fit_intercept=fit_intercept, tol=1e-14, max_iter=100_000).fit(H, y)
    np.testing.assert_allclose(found.weight, known.coef_, rtol=0, atol=1e-8)
    assert found.intercept == pytest.approx(known.intercept_, abs=1e-8)
    assert found.dual_gap < 1e-12


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_a_factor_is_a_voter_divided_by_it(penalty):
    H, y = problem()
    factor = np.random.default_rng(1).uniform(0.5, 2.0, K)
    found = quadboost.boost(quadboost.moments_from_matrix(H, y), penalty, penalty_factor=factor, **EXACT)
    scaled = quadboost.boost(quadboost.moments_from_matrix(H / factor, y), penalty, **EXACT)
    np.testing.assert_allclose(found.weight * factor, scaled.weight, rtol=0, atol=1e-9)
    assert found.objective == pytest.approx(scaled.objective, rel=1e-12)
    np.testing.assert_allclose(found.dual_gap, scaled.dual_gap, rtol=0, atol=1e-12)


def test_factors_alone_leave_l2_the_faster_loop():
    limits = Limits.of(K, factor=np.linspace(0.5, 2, K))
    assert not limited(L2(0.2), limits).differs
    assert limited(L1(0.2), limits).differs
    assert limited(LInf(0.2), limits).differs
    assert limited(L2(0.2), Limits.of(K, lower=0)).differs


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("penalty", [L1(0.05), L2(0.2), LInf(0.15)], ids=repr)
def test_the_gap_bounds_the_distance_to_the_optimum_and_closes(penalty, seed):
    H, y = problem(seed)
    limits, moments = random_limits(seed), quadboost.moments_from_matrix(H, y)
    arguments = {"lower": limits.lower, "upper": limits.upper, "penalty_factor": limits.factor}
    best = quadboost.boost(moments, penalty, **EXACT, **arguments).objective
    gaps = []
    for max_rounds in (1, 2, 4, 8, 16, 32, 1000):
        found = quadboost.boost(moments, penalty, max_rounds=max_rounds, tol=0, **arguments)
        assert found.dual_gap >= found.objective - best - 1e-13
        gaps.append(found.dual_gap)
    assert gaps[-1] < 1e-9 < gaps[0] < found.first_risk


def test_finite_bounds_have_a_gap_without_a_penalty():
    H, y = problem()
    found = quadboost.boost(quadboost.moments_from_matrix(H, y), lower=-0.01, upper=0.05, tol=1e-8)
    assert found.dual_gap <= 1e-8 * found.first_risk
    assert np.isnan(quadboost.boost(quadboost.moments_from_matrix(H, y), lower=0).dual_gap)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_limits_that_ask_for_nothing_leave_the_penalty_as_it_is(penalty):
    empty = Limits.of(K, factor=1.0, lower=-np.inf, upper=np.inf)
    assert limited(penalty, empty) is penalty
    assert limited(penalty, Limits()) is penalty
    assert limited(penalty, None) is penalty


@pytest.mark.parametrize("mode", ["corrective", "forward"])
@pytest.mark.parametrize("penalty", [L1(0.05), LInf(0.15)], ids=repr)
def test_a_rule_for_each_voter_gives_the_bits_of_one_for_all(penalty, mode):
    H, y = problem()
    moments = quadboost.moments_from_matrix(H, y)
    schedule = Schedule(max_rounds=500, tol=1e-12)
    empty = Limits.of(K, factor=1.0, lower=-np.inf, upper=np.inf)
    plain = run_rounds(moments, penalty, schedule, mode=mode, fit_intercept=True)
    within_none = run_rounds(moments, Limited(penalty, empty), schedule, mode=mode, fit_intercept=True)
    np.testing.assert_array_equal(plain.weight, within_none.weight)
    for name, values in plain.history.items():
        np.testing.assert_array_equal(values, within_none.history[name])


@pytest.mark.parametrize(
    "sweeps", [{}, {"reweight_every": 7}, {"reweight_every": 7, "reweight_sweeps": "solve"}], ids=str
)
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_in_forward_mode_sums_of_copies_are_within_bounds(penalty, sweeps):
    H, y = problem()
    limits = random_limits(3, factor=False)
    found = quadboost.boost(
        quadboost.moments_from_matrix(H, y), penalty, mode="forward", max_rounds=300, tol=0,
        lower=limits.lower, upper=limits.upper, **{"reweight_every": None} | sweeps,
    )  # fmt: skip
    assert (np.abs(found.history["weight"]) <= penalty.cap).all()
    for n_rounds in range(1, found.n_rounds + 1):
        weight = found.trace.weights_at(n_rounds, K)
        assert (limits.lower <= weight).all()
        assert (weight <= limits.upper).all()
    assert (found.weight[limits.upper > 0] == limits.upper[limits.upper > 0]).any(), "some bound was in the way"
    assert sweeps or (np.diff(found.history["objective"]) < 1e-12).all()


def test_in_forward_mode_a_copy_may_take_back_what_others_gave():
    """So that steps in turn end at the constrained optimum too, and not where the first ones went too far."""
    H, y = problem()
    found = quadboost.boost(
        quadboost.moments_from_matrix(H, y), "l2", reg_lambda=2.0, mode="forward", lower=0, max_rounds=30_000, tol=0
    )
    assert (found.history["weight"] < 0).any()
    np.testing.assert_allclose(found.weight, nnls(H, y)[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("mode", ["corrective", "forward"])
def test_a_run_goes_on_bit_for_bit_under_the_same_limits_only(mode):
    H, y = problem()
    moments = quadboost.moments_from_matrix(H, y)
    arguments = {"penalty": "l1", "reg_lambda": 0.01, "mode": mode, "tol": 0.0, "upper": 0.05}
    whole = quadboost.boost(moments, max_rounds=60, **arguments)
    half = quadboost.boost(moments, max_rounds=30, **arguments)
    rest = quadboost.boost(moments, max_rounds=60, resume=half.progress, **arguments)
    np.testing.assert_array_equal(whole.weight, rest.weight)
    np.testing.assert_array_equal(whole.history["voter"], rest.history["voter"])
    with pytest.raises(ValueError, match="cannot go on from the earlier run, which had penalty="):
        quadboost.boost(moments, max_rounds=60, resume=half.progress, **arguments | {"upper": 0.06})


def test_the_path_begins_where_the_first_voter_enters_that_may():
    H, y = problem()
    limits = Limits.of(K, factor=np.linspace(1, 2, K), lower=0.0)
    moments = quadboost.moments_from_matrix(H, y)
    with open_run(moments, limited(L1(0.0), limits), mode="corrective", fit_intercept=True) as run:
        edge = run.edge
        strengths = strengths_by_gcv(run, M, Schedule())
    assert strengths.points[0].strength == pytest.approx((edge / limits.factor).max())
    assert strengths.points[0].n_active == 0
    assert strengths.points[1].n_active > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lower": 0.5}, "lower=0.5 must be at most 0: a weight of 0 must be allowed"),
        ({"upper": [-1.0] * K}, "upper=-1.0 must be at least 0"),
        ({"lower": np.nan}, "lower=nan must be at most 0"),
        ({"lower": -1e-320}, "lower=-1e-320 lets no weight change a score; give 0"),
        ({"penalty_factor": 0}, "penalty_factor=0.0 must be a number above zero; a bound of 0 keeps a voter out"),
        ({"penalty_factor": np.inf}, "penalty_factor=inf must be a number above zero"),
        ({"upper": [1.0, 2.0]}, "upper has shape (2,) and type float64; give one number, or one for each of the 14"),
        ({"upper": "a"}, "upper has shape () and type <U1; give one number"),
    ],
)  # fmt: skip
def test_limits_that_mean_nothing_are_refused(arguments, message):
    H, y = problem()
    with pytest.raises(ValueError, match=re.escape(message)):
        quadboost.boost(quadboost.moments_from_matrix(H, y), **arguments)
