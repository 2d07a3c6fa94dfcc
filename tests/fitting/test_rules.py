"""Fits that are not made by rounds: all weights at once, or as boosting gave them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mixed_table import mixed_table
from some_folds import READING, options

import quadboost.common.threads
from quadboost import QuadBoostClassifier, QuadBoostRegressor, Rows
from quadboost.boosting.penalties import L2 as RidgePenalty
from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.fitting.growth import Growth
from quadboost.fitting.limits import penalty_factor
from quadboost.fitting.measured import Measured, solves_at_once
from quadboost.fitting.problem import Problem
from quadboost.fitting.rules import train_as_grown, train_ridge
from quadboost.fitting.training import train

M = 250
X = mixed_table(M)
Y = np.where(X[:, 0] > 0, 1.0, -1.0) * X[:, 1] + 0.3 * np.random.default_rng(0).normal(size=M)
L2 = options(
    penalty="l2", reg_lambda=0.05, growth=Growth(n_trees=5, max_leaves=5), schedule=Schedule(max_rounds=500, tol=1e-8)
)


def measured(y=Y, fit_options=L2, weight=None):
    problem = Problem.of_targets(X, y, weight, READING)
    return problem, Measured.of(problem, problem.rows, fit_options)


def scores(rows, trained):
    weight = np.column_stack([result.weight for result in trained.boosted])
    return rows.voters.scores(rows.codes, weight, np.array([result.intercept for result in trained.boosted]))


@pytest.mark.parametrize("sign", [0, 1])
def test_all_at_once_is_what_rounds_come_to(sign):
    problem, rows = measured()
    problem = replace(problem, signs=np.array([[sign]] * 2 + [[0]] * 6, dtype=np.int8))
    assert solves_at_once(rows, L2)
    (found,) = train(problem, rows, L2).boosted
    penalty = problem.limited(RidgePenalty(0.05), rows.voters, rows.moments)
    known = run_rounds(
        rows.moments, penalty, Schedule(max_rounds=50_000, tol=1e-6), mode="corrective", fit_intercept=True
    )
    assert found.objective == pytest.approx(known.objective, rel=1e-5)
    assert found.objective <= known.objective + found.dual_gap + 1e-9
    assert found.dual_gap == pytest.approx(penalty.gap(found.weight, found.edge, found.risk), rel=1e-3)
    assert found.violation < 1e-4
    low, high = penalty.rule(len(found.weight))[2:]
    assert ((low <= found.weight) & (found.weight <= high)).all()


def test_what_is_told_of_a_fit_is_true():
    problem, rows = measured()
    trained = train_ridge(problem, rows, L2, None)
    (found,) = trained.boosted
    off, factor = Y - scores(rows, trained)[:, 0], penalty_factor(rows.voters, rows.moments, "l2")
    assert found.risk == pytest.approx(np.mean(off**2), rel=1e-9)
    assert found.objective == pytest.approx(found.risk + 0.05 * ((factor * found.weight) ** 2).sum(), rel=1e-9)
    assert found.first_risk == pytest.approx(Y.var(), rel=1e-9)
    assert found.dual_gap <= 1e-8 * found.first_risk
    assert found.history["objective"][-1] == pytest.approx(found.objective, rel=1e-6)
    assert trained.reg_lambda == [0.05]


WIDE = np.random.default_rng(1).normal(size=(60, 45))  # 2,655 stumps
SUM = WIDE[:, :3].sum(axis=1) + np.random.default_rng(2).normal(size=60)


def wide(tol=1e-4, **options):
    return QuadBoostRegressor("l2", tol=tol, **options).fit(WIDE, SUM)


def test_stumps_that_outnumber_the_rows_are_solved_at_once_and_come_to_what_rounds_come_to():
    found = wide(tol=1e-9)
    assert "voter" not in found.history_
    assert found.stop_reason_ == "converged"
    assert found.dual_gap_ <= 1e-9 * SUM.var()
    assert len(found.history_["path_lambda"]) > 0
    assert wide(warm_start=True).reg_lambda_ == pytest.approx(0.3 * 45 * 59 / 60)  # rounds are asked for: by a formula
    known = wide(tol=1e-9, warm_start=True, reg_lambda=found.reg_lambda_)
    assert known.n_rounds_ == len(known.history_["voter"])
    np.testing.assert_allclose(found.predict(WIDE), known.predict(WIDE), rtol=0, atol=1e-3)


def test_several_targets_of_many_stumps_are_solved_at_once_each_as_if_alone():
    both = QuadBoostRegressor("l2", reg_lambda=0.5, tol=1e-9).fit(WIDE, np.column_stack([SUM, -2.0 * SUM]))
    alone = QuadBoostRegressor("l2", reg_lambda=0.5, tol=1e-9).fit(WIDE, SUM)
    assert "voter" not in both.history_
    wanted = np.outer(alone.predict(WIDE), [1.0, -2.0])
    np.testing.assert_allclose(both.predict(WIDE), wanted, rtol=0, atol=2e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"max_rounds": 20},
        {"warm_start": True},
        {"callbacks": [lambda *_: None]},
        {"validation_fraction": 0.3},
        {"reweight_every": 100},
        {"mode": "forward"},
        {"reg_lambda": 0.0},
    ],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.filterwarnings("ignore:max_rounds")
def test_who_asks_for_rounds_has_them(options):
    model = wide(**{"tol": 1e-2, **options})
    assert len(model.history_["voter"]) >= model.n_rounds_ > 0


def test_all_at_once_is_the_same_for_any_order_weight_threads_or_parts(monkeypatch):
    monkeypatch.setattr(quadboost.common.threads, "STEPS_FOR_THREADS", 0)
    known, order, twice = wide(n_jobs=1), np.random.default_rng(3).permutation(60), np.repeat(np.arange(60), 2)
    same = [
        QuadBoostRegressor("l2", n_jobs=2).fit(WIDE[order], SUM[order]),
        QuadBoostRegressor("l2").fit(Rows(lambda: iter([(WIDE[:20], SUM[:20]), (WIDE[20:], SUM[20:])]))),
    ]
    for found in same:
        np.testing.assert_array_equal(found.predict(WIDE), known.predict(WIDE))
    np.testing.assert_array_equal(
        QuadBoostRegressor("l2").fit(WIDE, SUM, np.full(60, 2)).predict(WIDE),
        QuadBoostRegressor("l2").fit(WIDE[twice], SUM[twice]).predict(WIDE),
    )


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_weights_as_grown_give_the_scores_of_boosting(loss):
    its_options = replace(L2, mode="forward", loss=loss)
    problem, rows = measured(fit_options=its_options)
    trained, grown = train_as_grown(problem, rows, its_options, None), rows.grown
    known = np.full(M, grown.constant[0])
    for tree in range(grown.trees.n_trees):
        leaves = np.flatnonzero(grown.trees.is_leaf & (grown.trees.tree == tree))
        known += grown.step[leaves[rows.codes[:, 8 + tree].astype(int) - 1], 0]
    np.testing.assert_allclose(scores(rows, trained)[:, 0], known, rtol=1e-9, atol=1e-12)
    if loss == "squared":
        assert trained.boosted[0].risk == pytest.approx(np.mean((Y - known) ** 2), rel=1e-9)


def test_every_stage_is_kept_where_asked_for():
    problem, rows = measured()
    stages = train_ridge(problem, rows, L2, None, every_stage=True).stages
    assert len(stages) == len(train_ridge(problem, rows, L2, None).boosted[0].history["objective"]) > 5
    forward = replace(L2, mode="forward")
    stages = train_as_grown(problem, rows, forward, None, every_stage=True).stages
    used = [np.count_nonzero(weight) for weight, _ in stages]
    assert len(stages) == 5
    assert used == sorted(set(used))


@pytest.mark.parametrize("options", [{}, {"penalty": "l1"}, {"mode": "forward"}, {"penalty": "linf"}], ids=str)
def test_a_constant_target_is_predicted(options):
    model = QuadBoostRegressor(n_trees=3, **options).fit(X, np.full(M, 2.5))
    np.testing.assert_allclose(model.predict(X), 2.5)
    assert model.ensemble_.n_rules == 0


@pytest.mark.parametrize("options", [{}, {"mode": "forward"}], ids=str)
def test_counts_below_zero_are_refused_before_trees_are_grown(options):
    with pytest.raises(ValueError, match="loss='poisson' is for counts, which are not negative"):
        QuadBoostRegressor(n_trees=3, loss="poisson", **options).fit(X, Y)
    with pytest.raises(ValueError, match="loss='poisson' needs a positive count"):
        QuadBoostRegressor(n_trees=3, loss="poisson", **options).fit(X, np.zeros(M))


def test_a_table_of_few_rows_has_a_fit():
    for m in (2, 3, 5, 8):
        y = np.arange(m) % 2
        for given in ({}, {"mode": "forward"}, {"penalty": "l1"}, {"loss": "logistic"}):
            found = QuadBoostClassifier(n_trees=3, **given).fit(np.arange(m)[:, None], y).predict_proba([[0.0]])
            assert np.isfinite(found).all()
