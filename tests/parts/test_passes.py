"""Passes over parts: the arrays of all rows are never there, and means and sums are those that they would have."""

from __future__ import annotations

import pickle
from operator import add

import numpy as np
import pytest
from some_folds import options

from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.fitting.measured import Measured
from quadboost.fitting.problem import Problem, Reading
from quadboost.parts.fit import problem_of_parts
from quadboost.parts.source import InMemory, Part

M = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, 3))
TARGETS = {"logistic": np.where(X[:, 0] + RNG.normal(size=M) > 0, "a", "b"), "poisson": RNG.poisson(np.exp(X[:, 0]))}
WEIGHT = RNG.exponential(size=M)
READING = Reading()


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


class Kept(InMemory):
    """Elsewhere: questions and answers are pickled, and rows never come here."""

    def reduce(self, question, add=add):
        question = pickle.loads(pickle.dumps(question))
        return super().reduce(lambda part: pickle.loads(pickle.dumps(question(part))), add)

    def map(self, make):
        return Kept(super().map(pickle.loads(pickle.dumps(make))).parts, self.room)

    def gather(self):
        raise MemoryError("all rows")


@pytest.mark.parametrize("n_trees", [0, 2])
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_rows_stay_where_they_are(loss, n_trees):
    labels = TARGETS["logistic"]
    y, model = (labels, QuadBoostClassifier) if loss == "logistic" else (X[:, 0], QuadBoostRegressor)
    parts = Kept([Part(X[:50], y[:50]), Part(X[50:150], y[50:150])], room=0)
    model(loss=loss, thresholds=3, n_trees=n_trees, max_leaves=3, tol=0.1).fit(parts)


def test_trees_as_they_were_grown_need_all_rows():
    with pytest.raises(MemoryError):
        QuadBoostRegressor(n_trees=2, mode="forward").fit(Kept([Part(X, X[:, 0])], room=0))


def test_targets_are_refused_as_in_memory():
    for y, says in ((X[:, 0], "are not negative"), (np.zeros(M), "only zeros")):
        with pytest.raises(ValueError, match=says):
            QuadBoostRegressor(loss="poisson", thresholds=5).fit(InMemory([Part(X, y)], room=0))
