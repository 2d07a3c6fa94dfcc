"""From weights of candidate voters to the model."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from quadboost.fitting.problem import Problem, Reading
from quadboost.moments.moments import column_moments
from quadboost.voters.columns import LEVEL, MISSING, THRESHOLD

M = 60
FRAME = pd.DataFrame({"x": np.arange(M) % 4 / 2, "city": np.array(["p", "q", "r"])[np.arange(M) % 3]})
FRAME.loc[0, "x"] = np.nan
REAL = np.sin(np.arange(M))


def run(weight, intercept):
    """What a run of rounds says of its weights."""
    return SimpleNamespace(weight=np.array(weight), intercept=intercept)


def made(y, *runs, labels=False, **more):
    make = Problem.of_labels if labels else Problem.of_targets
    problem = make(FRAME, y, None, Reading(), **more)
    return problem.ensemble(problem.voters(problem.rows, 255, "quantile", 1), runs, {"rows": M})


# The voters: x above 0.25, 0.75, 1.25; x missing; the cities p, q and r.
WEIGHT = [0.0, 0.5, 0.0, 0.25, 0.0, 0.0, -1.0]


def test_voters_with_a_weight_are_the_model():
    ensemble = made(REAL, run(WEIGHT, 0.125))
    assert ensemble.feature.tolist() == [0, 0, 1]
    assert ensemble.kind.tolist() == [THRESHOLD, MISSING, LEVEL]
    assert ensemble.threshold.tolist() == [0.75, 0.0, 2.0]
    assert ensemble.weight.tolist() == [0.5, 0.25, -1.0]
    assert ensemble.intercept == 0.125
    assert (ensemble.feature_names, ensemble.categories) == (("x", "city"), {1: [["p"], ["q"], ["r"]]})
    assert (ensemble.classes, ensemble.info) == (None, {"rows": M})
    assert ensemble.predict(FRAME.iloc[:3]).tolist() == [
        0.125 + 0.25 + 1,
        0.125 - 0.5 - 0.25 + 1,
        0.125 + 0.5 - 0.25 - 1,
    ]


def test_a_voter_counts_if_it_has_a_weight_for_any_output():
    other = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]
    ensemble = made(np.column_stack([REAL, -REAL]), run(WEIGHT, 0.0), run(other, 1.0))
    assert ensemble.weight.tolist() == [[0.0, 1.0], [0.5, 0.0], [0.25, 0.0], [-1.0, 2.0]]
    assert ensemble.intercept.tolist() == [0.0, 1.0]


def test_a_single_column_of_targets_gives_a_column_of_scores():
    assert made(REAL[:, None], run(WEIGHT, 0.0)).predict(FRAME).shape == (M, 1)


def test_weights_are_in_the_units_of_the_targets():
    ensemble = made(8 * REAL, run(WEIGHT, 0.125), standardize=True)
    np.testing.assert_allclose(ensemble.weight, 8 * REAL.std() * np.array([0.5, 0.25, -1.0]))
    assert ensemble.intercept == pytest.approx(REAL.std())


def test_labels_are_those_of_the_problem():
    ensemble = made(np.where(REAL > 0, "up", "down"), run(WEIGHT, 0.0), labels=True)
    assert ensemble.classes.tolist() == ["down", "up"]
    np.testing.assert_array_equal(ensemble.predict(FRAME) == "up", ensemble.decision_function(FRAME) > 0)


def test_without_any_weight_the_intercept_is_left():
    ensemble = made(REAL, run(np.zeros(7), 0.5))
    assert len(ensemble.feature) == 0
    np.testing.assert_array_equal(ensemble.predict(FRAME), 0.5)


@pytest.mark.parametrize("weight", [None, 0.25 + np.arange(M) % 5])
def test_masses_are_those_of_the_training_rows_in_each_bin(weight):
    problem = Problem.of_targets(FRAME, REAL, weight, Reading())
    voters = problem.voters(problem.rows, 255, "quantile", 1)
    sums = column_moments(voters, voters.code(problem.rows.X), problem.rows.y, problem.rows.weight).sums
    w = np.ones(M) if weight is None else weight
    x, city = FRAME["x"].to_numpy(), FRAME["city"].to_numpy()

    ensemble = problem.ensemble(voters, [run(WEIGHT, 0.125)], sums=sums)
    of_x, of_city = ensemble.shape_functions()
    assert of_x.mass.tolist() == [w[x <= 0.75].sum(), w[x > 0.75].sum()]
    assert of_x.missing_mass == w[np.isnan(x)].sum() > 0
    assert of_city.mass.tolist() == [*(w[city == level].sum() for level in "pqr"), 0.0]
    assert of_city.missing_mass == 0.0

    only_missing = problem.ensemble(voters, [run([0, 0, 0, 1.0, 0, 0, 0], 0.0)], sums=sums)
    assert only_missing.shape_functions()[0].mass.tolist() == [w[~np.isnan(x)].sum()]
    assert problem.ensemble(voters, [run(np.zeros(7), 0.5)], sums=sums).bin_mass.tolist() == []
    assert made(REAL, run(WEIGHT, 0.125)).shape_functions()[0].mass is None
