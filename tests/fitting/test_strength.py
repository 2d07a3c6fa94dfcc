"""The strength of an l2 penalty on rules: the least estimate near a law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mixed_table import mixed_table
from some_folds import READING, options

from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.boosting import trace
from quadboost.fitting import strength
from quadboost.fitting.growth import Growth
from quadboost.fitting.limits import penalty_factor
from quadboost.fitting.measured import Measured
from quadboost.fitting.problem import Problem
from quadboost.fitting.strength import law_of_rules, ridge_of_all, ridge_under_loss

M = 250
X = mixed_table(M)
Y = np.where(X[:, 0] > 0, 1.0, -1.0) * X[:, 1] + 0.3 * np.random.default_rng(0).normal(size=M)
AUTO = options(penalty="l2", reg_lambda="auto", growth=Growth(n_trees=5, max_leaves=5))


def measured(y: np.ndarray = Y) -> Measured:
    problem = Problem.of_targets(X, y, None, READING)
    return Measured.of(problem, problem.rows, AUTO)


def votes_of(rows: Measured) -> np.ndarray:
    """Centred, each over its factor."""
    each = map(rows.voters.votes, range(rows.voters.n_voters))
    votes = np.column_stack([votes[rows.codes[:, feature]] for feature, votes in each])
    return (votes - votes.mean(axis=0)) / penalty_factor(rows.voters, rows.moments, "l2")


def test_the_law_is_by_what_trees_explain_on_other_rows() -> None:
    rows = measured()
    r2 = rows.grown.r2
    assert 0.02 < r2 < 0.99
    assert law_of_rules(rows, AUTO) == pytest.approx((votes_of(rows) ** 2).sum() / M**2 * (1 - r2) / r2, rel=1e-9)


def test_noise_is_penalised_more_than_signal() -> None:
    noise, signal = (measured(y) for y in (np.random.default_rng(5).normal(size=M), Y))
    assert law_of_rules(noise, AUTO) > 5 * law_of_rules(signal, AUTO)
    assert ridge_of_all(noise, AUTO, of_labels=False).chosen > 5 * ridge_of_all(signal, AUTO, of_labels=False).chosen


def test_the_estimate_says_of_the_law_what_trees_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST_PROBES", 2_000)
    monkeypatch.setattr(trace, "ENOUGH_EXAMPLES", 1e9)
    monkeypatch.setattr(trace, "COSTS", (0.1, 10.0))
    rows = measured()
    found, law, votes, y = (
        ridge_of_all(rows, AUTO, of_labels=True),
        law_of_rules(rows, AUTO),
        votes_of(rows),
        Y - Y.mean(),
    )
    as_known = min(found.points, key=lambda point: abs(point.strength - law))
    assert as_known.strength == pytest.approx(law)
    assert as_known.gcv == pytest.approx(1.0 - rows.grown.r2, rel=1e-6)
    gram = votes.T @ votes / M
    for point in found.points[:21:4]:
        weight = np.linalg.solve(gram + point.strength * np.eye(len(gram)), votes.T @ y / M)
        assert point.risk == pytest.approx(np.mean((y - votes @ weight) ** 2) / y.var(), rel=1e-2)
        freedom = 1 + np.trace(np.linalg.solve(gram + point.strength * np.eye(len(gram)), gram))
        assert point.n_active == pytest.approx(freedom, rel=0.02)
    least = min(found.points, key=lambda point: point.gcv)
    assert found.chosen == pytest.approx(least.strength)
    share = M / (M + strength.FEW)
    of_targets = ridge_of_all(rows, AUTO, of_labels=False)
    assert of_targets.chosen == pytest.approx(least.strength**share * law ** (1 - share))


def test_several_outputs_have_the_strength_of_the_law() -> None:
    rows = measured(np.column_stack([Y, -Y]))
    found = ridge_of_all(rows, AUTO, of_labels=True)
    assert (found.chosen, found.points) == (law_of_rules(rows, AUTO), ())


def test_where_trees_explain_nothing_the_law_holds() -> None:
    rows = measured(np.random.default_rng(5).normal(size=M))
    assert rows.grown is not None
    assert rows.grown.r2 <= strength.LEAST_R2
    found = ridge_of_all(rows, AUTO, of_labels=True)
    assert found is not None
    assert (found.chosen, found.points) == (law_of_rules(rows, AUTO), ())


@pytest.mark.parametrize("many", [1e-9, float(M), 1e15])
def test_under_another_loss_few_examples_stay_near_the_law(many: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strength, "MANY", many)
    rows = measured(np.sin(2 * X[:, 1]))
    law, least = law_of_rules(rows, AUTO), ridge_of_all(rows, AUTO, of_labels=True)
    assert least is not None
    assert abs(np.log(least.chosen / law)) > 0.1
    share = M / (M + many)
    found = ridge_under_loss(rows, AUTO, rows.moments)
    assert found == pytest.approx(least.chosen**share * law ** (1 - share), rel=1e-6)


def test_there_is_a_choice_only_where_it_is_asked_for() -> None:
    rows = measured()
    for change in ({"reg_lambda": 0.1}, {"penalty": "l1"}, {"mode": "forward"}):
        assert ridge_of_all(rows, replace(AUTO, **change), of_labels=False) is None


def test_noise_leaves_little_of_rules() -> None:
    random = np.random.default_rng(1)
    model = QuadBoostRegressor("l2", n_trees=30).fit(random.normal(size=(600, 5)), random.normal(size=600))
    assert np.std(model.predict(random.normal(size=(500, 5)))) < 0.3


def test_same_bits() -> None:
    random = np.random.default_rng(2)
    table, weight = random.normal(size=(400, 4)), random.integers(1, 4, size=400)
    y = table[:, 0] * table[:, 1] + random.normal(size=400) > 0
    order, repeated = random.permutation(400), np.repeat(np.arange(400), weight)

    def fitted(rows: np.ndarray, sample_weight: np.ndarray | None, n_jobs: int = 1) -> float:
        model = QuadBoostClassifier(n_trees=10, n_jobs=n_jobs, calibration=None)
        model.fit(table[rows], y[rows], sample_weight)
        assert len(model.history_["path_lambda"]) == len(trace.NEAR)
        return model.reg_lambda_

    first = fitted(np.arange(400), weight)
    assert fitted(order, weight[order], 2) == first
    assert fitted(repeated, None) == first
