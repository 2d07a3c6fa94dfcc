"""How far weights are from the optimum, under each penalty: its conditions of optimality (KKT)."""

from __future__ import annotations

import numpy as np
import pytest

import quadboost
from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty

PENALTIES = [NoPenalty(), L1(0.3), L1(0.0), L2(0.3), LInf(0.25)]


def moments():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(60, 15))
    return quadboost.moments_from_matrix(H, H[:, :3] @ [1.0, -0.6, 0.4] + rng.normal(size=60) + 0.5)


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_the_violation_vanishes_as_rounds_go_on(penalty, fit_intercept):
    def violation(max_rounds):
        found = quadboost.boost(moments(), penalty, max_rounds=max_rounds, tol=1e-12, fit_intercept=fit_intercept)
        return penalty.violation(found.weight, found.edge)

    assert violation(3) > 0.01
    assert violation(100_000) < 1e-10


@pytest.mark.thinned(1)
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_weights_without_violation_are_those_the_rule_would_give_again(penalty):
    """The violation is 0 exactly where no single re-weighting changes a weight."""
    weight = np.array([0.0, 0.1, -0.1, 0.25, -0.25])
    for edge in np.array(np.meshgrid(*[[-0.3, -0.03, 0.0, 0.03, 0.3]] * 5)).reshape(5, -1).T:
        changed = penalty.weight(edge + weight, np.ones(5)) - weight
        assert (penalty.violation(weight, edge) < 1e-12) == (np.abs(changed).max() < 1e-12)


@pytest.mark.parametrize(
    ("penalty", "weight", "edge", "violation"),
    [
        (NoPenalty(), 0.5, -0.2, 0.2),
        (L1(0.1), 0.0, 0.3, 0.2),
        (L1(0.1), 0.0, -0.05, 0.0),
        (L1(0.1), -0.5, 0.1, 0.2),
        (L2(0.1), 2.0, 0.25, 0.05),
        (LInf(0.5), 0.5, 0.3, 0.0),
        (LInf(0.5), 0.5, -0.3, 0.3),
        (LInf(0.5), 0.1, 0.3, 0.3),
    ],
)
def test_the_violation_is_a_distance_of_edges(penalty, weight, edge, violation):
    found = penalty.violation(np.array([0.0, weight]), np.array([0.0, edge]))
    assert found == pytest.approx(violation, abs=1e-15)


def test_no_voters_violate_nothing():
    assert [penalty.violation(np.empty(0), np.empty(0)) for penalty in PENALTIES] == [0.0] * len(PENALTIES)
