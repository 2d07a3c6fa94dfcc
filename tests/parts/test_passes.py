"""Passes over parts: the arrays of all rows are never there, and means and sums are those that they would have."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from operator import add

import numpy as np
import pytest
from some_folds import options

from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.fitting.measured import Measured
from quadboost.fitting.problem import Problem, Reading
from quadboost.parts.fit import problem_of_parts
from quadboost.parts.passes import BY_PARTS, EachRow
from quadboost.parts.source import Coded, InMemory, Part

M = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, 3))
TARGETS = {"logistic": np.where(X[:, 0] + RNG.normal(size=M) > 0, "a", "b"), "poisson": RNG.poisson(np.exp(X[:, 0]))}
WEIGHT = RNG.exponential(size=M)
READING = Reading()


def first_codes(part):
    return part.codes[:, :1].astype(float)


def test_arrays_of_parts_are_made_row_by_row_and_each_once():
    made = []

    def seen(values):
        made.append(len(values))
        return values + 1.0

    codes = np.arange(12, dtype=np.uint8).reshape(6, 2)
    one = EachRow(seen, (EachRow(first_codes),))
    found = (2.0 * one - one / np.array([4.0])) * one
    np.testing.assert_array_equal(found.of(Coded(codes, codes[:, 0]), {}), 1.75 * (codes[:, :1] + 1.0) ** 2)
    assert made == [6]
    with pytest.raises(TypeError):
        np.add.reduce(one)


def test_what_travels_still_makes_shared_arrays_once():
    one = EachRow(first_codes)
    again = pickle.loads(pickle.dumps(one + one))
    assert again.inputs[0] is again.inputs[1]


@pytest.mark.parametrize("loss", TARGETS)
def test_means_and_sums_are_those_of_all_rows(loss):
    y, is_classifier = TARGETS[loss], loss == "logistic"
    its_options = options(loss=loss, thresholds=9)
    problem = (Problem.of_labels if is_classifier else Problem.of_targets)(X, y, WEIGHT, READING)
    known, its_loss = Measured.of(problem, problem.rows, its_options).coded(problem, its_options)
    parts = InMemory([Part(X[i : i + 90], y[i : i + 90], WEIGHT[i : i + 90]) for i in range(0, M, 90)], room=0)
    there, measured = problem_of_parts(parts, is_classifier, READING, its_options)
    found, the_same = measured.coded(there, its_options)
    assert the_same == its_loss
    weight, intercept = RNG.normal(size=(known.voters.n_voters, 1)), np.array([0.3])
    stages = [rows.stage(weight, intercept, its_loss, []) for rows in (known, found)]
    assert stages[0].loss == stages[1].loss
    sums = [
        rows.towards(stage.scores + rows.pull(stage.scores, its_loss) / 2.0)
        for rows, stage in zip((known, found), stages, strict=True)
    ]
    np.testing.assert_array_equal(sums[0].product_sum, sums[1].product_sum)
    far = np.full((known.voters.n_voters, 1), 1e4)
    assert found.stage(far, intercept, its_loss, []).loss == known.stage(far, intercept, its_loss, []).loss


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_rows_stay_where_they_are_unless_a_loss_needs_medians(loss):
    class Kept(InMemory):
        """Elsewhere: questions and answers are pickled, and there are no rows here."""

        def reduce(self, question, add=add):
            question = pickle.loads(pickle.dumps(question))
            return super().reduce(lambda part: pickle.loads(pickle.dumps(question(part))), add)

        def map(self, make):
            return Kept(super().map(make).parts, self.room)

        def gather(self):
            raise MemoryError("all rows")

    labels = TARGETS["logistic"]
    y, model = (labels, QuadBoostClassifier) if loss == "logistic" else (X[:, 0], QuadBoostRegressor)
    with nullcontext() if loss in BY_PARTS else pytest.raises(MemoryError):
        model(loss=loss, thresholds=5).fit(Kept([Part(X, y)], room=0))


def test_targets_are_refused_as_in_memory():
    for y, says in ((X[:, 0], "are not negative"), (np.zeros(M), "only zeros")):
        with pytest.raises(ValueError, match=says):
            QuadBoostRegressor(loss="poisson", thresholds=5).fit(InMemory([Part(X, y)], room=0))
