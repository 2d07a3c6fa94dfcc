"""The figures that are kept with a model."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from weighted_problem import WeightedProblem, assert_same_run

from quadboost import boost


@pytest.fixture(scope="module")
def problem():
    return WeightedProblem()


def test_the_figures_of_corrective_l1_have_a_certificate(problem):
    found = boost(problem.moments, "l1", reg_lambda=0.01, max_rounds=30)
    assert found.figures() == {
        "rounds": 30,
        "risk": found.risk,
        "objective": found.objective,
        "stop": "max_rounds",
        "dual_gap": found.dual_gap,
        "violation": found.violation,
    }
    assert found.objective == pytest.approx(found.risk + 2 * 0.01 * np.abs(found.weight).sum())


@pytest.mark.parametrize(
    ("options", "absent"),
    [
        ({"penalty": "l1", "reg_lambda": 0.01, "mode": "forward"}, {"dual_gap", "violation", "validation_risk"}),
        ({"penalty": None}, {"dual_gap", "validation_risk"}),
    ],
)
def test_what_is_not_known_is_no_figure(problem, options, absent):
    figures = boost(problem.moments, max_rounds=30, **options).figures()
    assert not absent & figures.keys()
    assert {"rounds", "risk", "objective", "stop"} <= figures.keys()


def test_the_validation_risk_is_that_of_the_best_round(problem):
    found = boost(problem.moments, "l2", reg_lambda=5.0, validation=problem.validation, patience=5)
    assert len(found.history["validation_risk"]) == found.n_rounds + 5
    assert found.figures()["validation_risk"] == found.history["validation_risk"].min()
    assert found.figures()["stop"] == "patience"


def test_no_round_has_no_validation_risk(problem):
    found = boost(problem.moments, "l1", reg_lambda=100.0, validation=problem.validation)
    assert found.n_rounds == 0
    assert "validation_risk" not in found.figures()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))])
def test_a_copy_goes_on_where_the_run_stood(problem, copied):
    options = {"penalty": "l1", "reg_lambda": 0.003, "reweight_every": 4}
    found = copied(boost(problem.moments, max_rounds=25, **options))
    resumed = boost(problem.moments, max_rounds=50, resume=found.progress, **options)
    assert_same_run(resumed, boost(problem.moments, max_rounds=50, **options))


def test_what_is_shown_is_short(problem):
    shown = repr(boost(problem.moments, max_rounds=3))
    assert "stop_reason='max_rounds'" in shown
    assert "trace" not in shown
    assert "progress" not in shown
