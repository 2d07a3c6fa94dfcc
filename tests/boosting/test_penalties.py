"""Each penalty minimises what it says, and boosting with it ends at the conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import OPTIMUM
from reference import decrease_of_new_voter, new_weight, penalty_value, training_rows

import quadboost
from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty, make_penalty

# The penalty, and its name and number in the reference.
PENALTIES = [
    pytest.param(NoPenalty(), None, 0.0, id="none"),
    pytest.param(L1(0.3), "l1", 0.3, id="l1"),
    pytest.param(L1(0.0), "l1", 0.0, id="l1 without lambda"),
    pytest.param(L2(0.3), "l2", 0.3, id="l2"),
    pytest.param(L2(5.0), "l2", 5.0, id="l2 with a large lambda"),
    pytest.param(LInf(0.25), "linf", 0.25, id="linf"),
]
every_penalty = pytest.mark.parametrize(("penalty", "name", "lam"), PENALTIES)

# Edges on both sides of lambda and of the bound, and zero; voters that abstain or are centred.
Z, ETA = (a.ravel() for a in np.meshgrid([-1.5, -0.31, -0.3, -0.1, 0.0, 0.02, 0.2, 0.7, 1.0], [0.05, 0.4, 1.0]))


def part_of_objective(penalty, x, z, eta):
    """What one weight x contributes to the objective, all others fixed."""
    values = np.array([penalty.value(np.array([w])) for w in np.atleast_1d(x)])
    return eta * x**2 - 2 * z * x + values


@every_penalty
def test_weight_minimises_the_objective_over_one_weight(penalty, name, lam):
    reach = min(penalty.cap, 40.0)
    grid = np.linspace(-reach, reach, 16_001)
    values = np.array([penalty.value(np.array([x])) for x in grid])
    for z, eta, weight in zip(Z, ETA, penalty.weight(Z, ETA), strict=True):
        on_grid = eta * grid**2 - 2 * z * grid + values
        assert abs(weight) <= penalty.cap
        assert part_of_objective(penalty, weight, z, eta) <= on_grid.min() + 1e-12
        assert weight == pytest.approx(grid[np.argmin(on_grid)], abs=grid[1] - grid[0])


@every_penalty
def test_decrease_is_what_the_objective_loses(penalty, name, lam):
    for z, eta, weight, decrease in zip(Z, ETA, penalty.weight(Z, ETA), penalty.decrease(Z, ETA), strict=True):
        lost = part_of_objective(penalty, 0.0, z, eta) - part_of_objective(penalty, weight, z, eta)
        assert decrease == pytest.approx(lost, abs=1e-12)


@every_penalty
def test_rules_are_those_of_the_paper(penalty, name, lam):
    known_weight = [new_weight(name, z, eta, lam) for z, eta in zip(Z, ETA, strict=True)]
    known_decrease = [decrease_of_new_voter(name, z, eta, lam) for z, eta in zip(Z, ETA, strict=True)]
    np.testing.assert_allclose(penalty.weight(Z, ETA), known_weight, rtol=1e-14)
    np.testing.assert_allclose(penalty.decrease(Z, ETA), known_decrease, rtol=1e-13)
    weights = np.array([0.2, 0.0, -0.1])
    assert penalty.value(weights) == pytest.approx(penalty_value(name, weights, lam), rel=1e-14)


@every_penalty
def test_what_the_kernels_are_told_is_the_same_rule(penalty, name, lam):
    """Soft threshold by `shrink`, divide by eta and `ridge`, clip at `cap`."""
    soft = np.sign(Z) * np.maximum(np.abs(Z) - penalty.shrink, 0.0)
    told = np.clip(soft / (ETA + penalty.ridge), -penalty.cap, penalty.cap)
    np.testing.assert_allclose(told, penalty.weight(Z, ETA), rtol=1e-14)


def random_problem():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(60, 15))
    return H, H[:, :3] @ [1.0, -0.6, 0.4] + rng.normal(size=60) + 0.5


def slack_in_optimality(name, lam, a, edge):
    """How far each voter is from the conditions of optimality (KKT)."""
    if name == "l1":
        return np.where(a == 0, np.maximum(np.abs(edge) - lam, 0), edge - lam * np.sign(a))
    if name == "l2":
        return edge - lam * a
    if name == "linf":
        return np.where(np.abs(a) < lam, edge, np.minimum(edge * np.sign(a), 0))
    return edge


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"])
@every_penalty
def test_rounds_end_at_the_conditions_of_optimality(penalty, name, lam, fit_intercept):
    H, y = random_problem()
    moments = quadboost.moments_from_matrix(H, y)
    found = quadboost.boost(moments, penalty, tol=1e-24, max_rounds=100_000, fit_intercept=fit_intercept)
    edge = training_rows(H, y, None, fit_intercept).edges(found.weight)
    np.testing.assert_allclose(found.edge, edge, rtol=0, atol=1e-12)
    np.testing.assert_allclose(slack_in_optimality(name, lam, found.weight, edge), 0, rtol=0, atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize(
    ("penalty", "name", "lam"), [p for p in PENALTIES if p.id not in ("none", "l1 without lambda")]
)
def test_gap_bounds_the_distance_to_the_optimum_and_closes(penalty, name, lam, fit_intercept):
    H, y = random_problem()
    moments = quadboost.moments_from_matrix(H, y)
    best = OPTIMUM[name](H, y, lam, None, fit_intercept).objective
    for max_rounds in (1, 2, 5, 10, 20, 100_000):
        found = quadboost.boost(moments, penalty, tol=1e-12, max_rounds=max_rounds, fit_intercept=fit_intercept)
        assert found.dual_gap >= found.objective - best - 1e-13
    assert found.dual_gap < 1e-9


def test_without_a_certificate_the_gap_is_nan():
    H, y = random_problem()
    assert np.isnan(quadboost.boost(quadboost.moments_from_matrix(H, y), None).dual_gap)


@pytest.mark.parametrize(
    ("name", "numbers", "penalty"),
    [
        (None, {}, NoPenalty()),
        ("l1", {"reg_lambda": 0.2}, L1(0.2)),
        ("l2", {"reg_lambda": 0.2}, L2(0.2)),
        ("linf", {"alpha_max": 0.2}, LInf(0.2)),
    ],
)
def test_a_penalty_is_known_by_its_name(name, numbers, penalty):
    assert make_penalty(name, **numbers) == penalty
    H, y = random_problem()
    moments = quadboost.moments_from_matrix(H, y)
    by_name, by_object = quadboost.boost(moments, name, **numbers), quadboost.boost(moments, penalty)
    np.testing.assert_array_equal(by_name.weight, by_object.weight)


@pytest.mark.parametrize("make", [L1, L2, LInf])
@pytest.mark.parametrize("number", [-0.1, np.nan, np.inf])
def test_a_penalty_refuses_numbers_that_mean_nothing(make, number):
    with pytest.raises(ValueError, match=str(number)):
        make(number)


def test_linf_refuses_a_bound_of_zero():
    with pytest.raises(ValueError, match="alpha_max=0"):
        LInf(0.0)


def test_an_unknown_penalty_is_refused_with_the_names_of_the_known():
    with pytest.raises(ValueError, match="'l3' is not known; use None, 'l1', 'l2' or 'linf'"):
        make_penalty("l3")
