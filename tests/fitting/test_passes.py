"""Passes: each lowers the objective, and steps that are too long are taken back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from losses_by_others import TARGETS, M, X
from some_folds import READING, options

from quadboost.boosting.losses import Poisson
from quadboost.boosting.penalties import L1, L2, LInf, NoPenalty
from quadboost.boosting.schedule import Schedule
from quadboost.fitting.losses import constant
from quadboost.fitting.measured import Measured
from quadboost.fitting.passes import FLATTER, Passes, minimise
from quadboost.fitting.problem import Problem

SCHEDULE = Schedule(max_rounds=10_000, tol=1e-9)


def rows_of(name, y=None, weight=None, **changes):
    """Rows, the loss, and the best constant."""
    loss = "logistic" if name == "multinomial" else name
    its_options = options(loss=loss, thresholds=5, **changes)
    y = TARGETS[name] if y is None else y
    problem = (Problem.of_labels if loss == "logistic" else Problem.of_targets)(X, y, weight, READING)
    rows, loss = Measured.of(problem, problem.rows, its_options).coded(problem, its_options)
    return rows, loss, constant(rows, loss)


def penalties_of(penalty, rows):
    return [penalty] * rows.y.shape[1]


each = pytest.mark.parametrize("name", TARGETS)


@pytest.mark.thinned(12)
@each
@pytest.mark.parametrize(
    "penalty", [NoPenalty(), L1(0.02), L2(0.1), LInf(0.1)], ids=lambda penalty: type(penalty).__name__
)
def test_a_pass_ends_below_the_quadratic_function_that_touches_the_loss(name, penalty):
    rows, loss, first = rows_of(name)
    passes = Passes(rows, loss, penalties_of(penalty, rows), SCHEDULE, first)
    for _ in range(4):
        before = passes.stage
        passes.go()
        curvature = passes.curvature / FLATTER  # that of the pass
        step = passes.stage.scores - before.scores
        pull = loss.pull(before.scores, rows.y)
        assert passes.stage.objective <= before.objective
        if before is first:  # later ones begin at scores that are pushed on
            above = before.loss + np.mean(((0.5 * curvature * step - pull) * step).sum(axis=1))
            assert passes.stage.loss <= above + 1e-9


@pytest.mark.thinned(1)
@each
def test_the_stage_is_where_its_weights_stand(name):
    rows, loss, first = rows_of(name)
    passes, _ = minimise(rows, loss, penalties_of(L1(0.02), rows), SCHEDULE, first)
    stage = passes.stage
    again = rows.stage(stage.weight, stage.intercept, passes.loss, passes.penalties)
    np.testing.assert_array_equal(stage.scores, again.scores)
    assert (stage.loss, stage.objective) == (again.loss, again.objective)
    added = 0.02 * np.abs(stage.weight).sum()
    assert stage.objective == pytest.approx(stage.loss + added, rel=1e-12)
    for output, result in enumerate(passes.boosted()):
        np.testing.assert_array_equal(result.weight, stage.weight[:, output])
        assert result.intercept == stage.intercept[output]


@pytest.mark.slow
@each
def test_momentum_saves_passes_and_leads_to_the_same_minimum(name, monkeypatch):
    rows, loss, first = rows_of(name)
    penalties = penalties_of(L2(0.01), rows)
    quick = Passes(rows, loss, penalties, SCHEDULE, first)
    slow = Passes(rows, loss, penalties, SCHEDULE, first)
    for _ in range(12):
        quick.go()
        slow.go()
        slow.momentum, slow.ahead = 1.0, slow.stage.scores
    assert quick.stage.objective <= slow.stage.objective + 1e-4 * abs(slow.stage.objective)
    done, why = minimise(rows, loss, penalties, SCHEDULE, slow.stage)
    other, _ = minimise(rows, loss, penalties, SCHEDULE, first)
    assert why == "converged"
    assert done.stage.objective == pytest.approx(other.stage.objective, rel=1e-5)


def test_scores_pushed_beyond_all_numbers_are_taken_back():
    rows, loss, first = rows_of("poisson")
    passes = Passes(rows, loss, penalties_of(L2(0.01), rows), SCHEDULE, first)
    passes.go()
    before = passes.stage
    passes.ahead = np.full_like(before.scores, 1e4)
    passes.go()
    assert passes.stage.objective <= before.objective
    assert np.isfinite(passes.ahead).all()
    assert rows.mean_loss(np.full_like(before.scores, 1e4), loss) == np.inf


def test_a_curvature_that_is_too_small_is_raised():
    rows, _, first = rows_of("poisson")
    passes = Passes(rows, Poisson(1e-6), penalties_of(L2(0.01), rows), SCHEDULE, first)
    passes.go()
    assert passes.curvature > 1e-3
    assert passes.stage.objective < first.objective


@pytest.mark.thinned(2)
@each
def test_the_violation_is_zero_only_at_the_minimum(name):
    rows, loss, first = rows_of(name)
    penalties = penalties_of(L2(0.1), rows)
    begin = Passes(rows, loss, penalties, SCHEDULE, first)
    p = loss.pull(first.scores, rows.y)
    votes = np.column_stack(
        [votes[rows.codes[:, c]] for c, votes in map(rows.voters.votes, range(rows.voters.n_voters))]
    )
    edge = (votes - votes.mean(axis=0)).T @ p / M  # no weight yet: the ridge adds nothing
    assert begin.proof()[1] == pytest.approx(np.abs(edge).max(), rel=1e-6)
    done, _ = minimise(rows, loss, penalties, SCHEDULE, first)
    assert done.proof()[1] < 1e-2 * begin.proof()[1]


@pytest.mark.thinned(8)
@each
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("penalty", [L1(0.02), L2(0.1), LInf(0.1)], ids=lambda penalty: type(penalty).__name__)
def test_the_gap_bounds_the_distance_from_the_minimum(name, penalty, fit_intercept):
    rows, loss, first = rows_of(name, fit_intercept=fit_intercept)
    penalties = penalties_of(penalty, rows)
    passes = Passes(rows, loss, penalties, replace(SCHEDULE, tol=1e-12), first)
    seen = []
    for _ in range(200):
        seen.append((passes.stage.objective, passes.proof()[0]))
        if not passes.go():
            break
    least, last = passes.stage.objective, passes.proof()[0]
    assert all(gap >= objective - least - 1e-9 for objective, gap in seen)
    assert 0 <= last < 1e-3 * (seen[0][0] - least)


def test_there_is_no_gap_without_a_penalty():
    rows, loss, first = rows_of("poisson")
    assert np.isnan(Passes(rows, loss, [NoPenalty()], SCHEDULE, first).proof()[0])


@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_at_the_end_predictions_are_right_on_average(name):
    rows, loss, first = rows_of(name)
    rough = replace(SCHEDULE, tol=1e-2)
    stage = minimise(rows, loss, penalties_of(L1(0.01), rows), rough, first)[0].stage
    assert abs(np.average(loss.pull(stage.scores, rows.y)[:, 0], weights=rows.weight)) < 1e-12


@each
def test_a_reason_to_stop_is_handed_on(name):
    rows, loss, first = rows_of(name)
    seen = []

    def watch(passes):
        seen.append(passes.stage.objective)
        return "enough" if len(seen) == 2 else ""

    passes, why = minimise(rows, loss, penalties_of(L1(0.01), rows), SCHEDULE, first, watch)
    assert (why, len(seen)) == ("enough", 2)
    assert passes.stage.objective == seen[-1] < first.objective


def test_time_and_passes_are_limited(monkeypatch):
    rows, loss, first = rows_of("logistic")
    short = replace(SCHEDULE, max_seconds=1e-9)
    assert minimise(rows, loss, [L1(0.01)], short, first)[1] == "max_seconds"
    monkeypatch.setattr("quadboost.fitting.passes.MOST_PASSES", 2)
    assert minimise(rows, loss, [L1(0.01)], SCHEDULE, first)[1] == "max_rounds"
