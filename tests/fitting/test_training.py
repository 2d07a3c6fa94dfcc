"""A fit by its parts: options, moments, rounds; and the strengths that it works out for itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mixed_table import mixed_table, targets

from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.boosting.schedule import Schedule
from quadboost.fitting.measured import Measured, Options
from quadboost.fitting.problem import Problem, Reading
from quadboost.fitting.training import train

M = 200
X = mixed_table(M)
REAL = targets(X) + np.random.default_rng(2).normal(size=M)
BOTH = np.column_stack([REAL, 3 * X[:, 0]])
READING = Reading(categorical_features=[4])
OPTIONS = Options(
    penalty="l1",
    reg_lambda=0.02,
    alpha_max=0.1,
    mode="corrective",
    fit_intercept=True,
    thresholds=20,
    spacing="quantile",
    cache_bytes=1 << 24,
    n_threads=1,
    schedule=Schedule(max_rounds=40),
)
OPTIONS_OF_PATH = replace(OPTIONS, reg_lambda="auto")


def measure(y=REAL, weight=None, options=OPTIONS):
    problem = Problem.of_targets(X, y, weight, READING)
    return problem, Measured.of(problem, problem.rows, options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": "l3"}, "penalty='l3' is not known"),
        ({"reg_lambda": -1.0}, "reg_lambda=-1.0 must be"),
        ({"reg_lambda": "best"}, "reg_lambda='best' is not known; use 'auto' or 'theory'"),
        ({"reg_lambda": "theory", "penalty": "linf"}, "reg_lambda='theory' is for the penalties 'l1' and 'l2'"),
        ({"penalty": "linf", "alpha_max": 0.0}, "alpha_max=0.0 must be"),
        ({"mode": "backward"}, "mode='backward' is not known"),
        ({"fit_intercept": "yes"}, "fit_intercept='yes' is not known"),
        ({"thresholds": 0}, "thresholds=0"),
        ({"spacing": "even"}, "spacing='even' is not known"),
        ({"cache_bytes": 0}, "cache_bytes=0 must be"),
    ],
)
def test_options_are_checked_before_anything_is_done(change, message):
    with pytest.raises(ValueError, match=message):
        replace(OPTIONS, **change)


def test_the_estimator_has_the_voters_and_weights_of_the_parts():
    problem, measured = measure()
    (result,) = train(problem, measured, OPTIONS).boosted
    model = QuadBoostRegressor(reg_lambda=0.02, max_rounds=40, thresholds=20, categorical_features=[4]).fit(X, REAL)
    np.testing.assert_array_equal(model.ensemble_.weight, result.weight[result.weight != 0])
    assert model.intercept_ == result.intercept


def test_each_output_is_trained_by_itself():
    problem, measured = measure(BOTH)
    both = train(problem, measured, OPTIONS)
    assert len(both.boosted) == len(both.reg_lambda) == 2
    for output in range(2):
        (alone,) = train(*measure(BOTH[:, output]), OPTIONS).boosted
        np.testing.assert_array_equal(both.boosted[output].weight, alone.weight)
        assert both.boosted[output].intercept == alone.intercept


def test_a_run_goes_on_where_another_stopped():
    problem, measured = measure(BOTH)
    known = train(problem, measured, OPTIONS)
    short = train(problem, measured, replace(OPTIONS, schedule=Schedule(max_rounds=7)))
    longer = train(problem, measured, OPTIONS, warm=short.warm)
    for found, wanted in zip(longer.boosted, known.boosted, strict=True):
        np.testing.assert_array_equal(found.weight, wanted.weight)
        np.testing.assert_array_equal(found.history["risk"], wanted.history["risk"])


def test_validation_rows_choose_the_number_of_rounds():
    problem = Problem.of_targets(X, REAL, None, READING)
    options = replace(OPTIONS, penalty=None, schedule=Schedule(max_rounds=500, patience=20))
    measured = Measured.of(problem, problem.rows.take(np.arange(M) % 2 == 0), options)
    held_out = Measured.of(problem, problem.rows.take(np.arange(M) % 2 == 1), options, measured.voters)
    assert held_out.voters is measured.voters
    (result,) = train(problem, measured, options, validation=held_out).boosted
    assert result.stop_reason == "patience"
    assert result.n_rounds == np.argmin(result.history["validation_risk"]) + 1


# --- strengths that are worked out ----------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("mode", ["corrective", "forward"])
def test_auto_is_in_proportion_to_the_spread_that_there_is_to_explain(mode, fit_intercept):
    options = replace(OPTIONS, reg_lambda="auto", mode=mode, fit_intercept=fit_intercept)
    found = train(*measure(np.column_stack([REAL, 1000 * REAL, 2.0**-20 * REAL])), options).reg_lambda
    np.testing.assert_allclose(found, [found[0], 1000 * found[0], 2.0**-20 * found[0]], rtol=1e-9)
    if mode == "forward":
        spread = BOTH.std(axis=0) if fit_intercept else np.sqrt(np.mean(BOTH**2, axis=0))
        np.testing.assert_allclose(train(*measure(BOTH), options).reg_lambda, 0.4 * spread / np.sqrt(M), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "is_path", "is_estimated"),
    [
        ({}, True, True),
        ({"fit_intercept": False}, True, True),
        ({"reg_lambda": 0.1}, False, False),
        ({"penalty": "l2"}, False, True),
        ({"penalty": "l2", "reg_lambda": 0.1}, False, False),
        ({"penalty": "linf", "alpha_max": "auto"}, False, False),
        ({"mode": "forward"}, False, False),
        ({"mode": "forward", "penalty": "l2"}, False, False),
    ],
)
def test_a_path_is_followed_under_l1_and_strengths_are_estimated_under_l2(change, is_path, is_estimated):
    options = replace(OPTIONS, **{"reg_lambda": "auto", **change})
    (strengths,) = train(*measure(), options).strengths
    assert options.follows_path == is_path
    assert bool(strengths.points) == is_estimated


def test_rounds_go_on_from_the_path_and_are_no_more_than_there_may_be():
    options = replace(OPTIONS, reg_lambda="auto", schedule=Schedule())
    told = []
    trained = train(*measure(), options, tell=lambda: told.append(None))
    (strengths,), (result,) = trained.strengths, trained.boosted
    assert len(told) == len(strengths.points) > 3
    assert result.n_rounds > 40
    assert result.stop_reason == "converged"
    assert result.dual_gap <= 1e-4 * result.first_risk
    few = train(*measure(), OPTIONS_OF_PATH)
    assert few.reg_lambda > trained.reg_lambda
    assert few.boosted[0].n_rounds <= 40
    assert few.boosted[0].stop_reason == "max_rounds"


def test_a_callback_ends_a_fit_on_its_path():
    heard = []
    schedule = Schedule(callback=lambda round, *_: heard.append(round) or round >= 40, callback_every=20)
    (result,) = train(*measure(), replace(OPTIONS_OF_PATH, schedule=schedule)).boosted
    assert heard[-2:] == [20, 40]
    assert result.stop_reason == "callback"
    assert result.n_rounds <= 40


@pytest.mark.parametrize("first", [7, 40, 2_000])
def test_several_fits_along_a_path_lead_to_where_one_does(first):
    known = train(*measure(BOTH), replace(OPTIONS_OF_PATH, schedule=Schedule()))
    assert max(result.n_rounds for result in known.boosted) < 2_000
    short = train(*measure(BOTH), replace(OPTIONS_OF_PATH, schedule=Schedule(max_rounds=first)))
    longer = train(*measure(BOTH), replace(OPTIONS_OF_PATH, schedule=Schedule()), warm=short.warm)
    for found, wanted in zip(longer.boosted, known.boosted, strict=True):
        np.testing.assert_array_equal(found.weight, wanted.weight)
        np.testing.assert_array_equal(found.history["risk"], wanted.history["risk"])
        assert found.stop_reason == wanted.stop_reason


def test_auto_of_a_forward_l2_penalty_counts_voters_and_rows():
    problem, measured = measure()
    options = replace(OPTIONS, penalty="l2", reg_lambda="auto", mode="forward", schedule=Schedule(max_rounds=2))
    wanted = 1600 * measured.voters.n_voters**0.5 / M
    assert train(problem, measured, options).reg_lambda == [pytest.approx(wanted)]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("total", [2**24, 2**31, 2**32])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("estimator", [QuadBoostRegressor, QuadBoostClassifier])
def test_auto_does_not_jump_where_whole_weights_become_many(estimator, penalty, total):
    y = REAL if estimator is QuadBoostRegressor else REAL > 0
    weight = np.floor(total * (1.0 + np.arange(M) % 3) / np.sum(1.0 + np.arange(M) % 3))
    found = []
    for goal in (total - 1, total, total + 1):
        weight[-1] += goal - weight.sum()
        assert weight.sum() == goal
        found.append(estimator(penalty, tol=1e-2, thresholds=5).fit(X, y, weight).reg_lambda_)
    np.testing.assert_allclose(found, found[0], rtol=1e-6)
    small = estimator(penalty, tol=1e-2, thresholds=5).fit(X, y, 1.0 + np.arange(M) % 3).reg_lambda_
    assert 0 < found[0] < small  # the more examples, the more voters are worth their weight


def test_theory_is_of_the_complexity_of_the_rows():
    options = replace(OPTIONS, reg_lambda="theory")
    problem = Problem.of_labels(X, REAL > 0, None, READING)
    measured = Measured.of(problem, problem.rows, options)
    with pytest.warns(UserWarning, match="a much smaller lambda nearly always predicts better"):
        (strength,) = train(problem, measured, options).reg_lambda
    assert 0.05 < strength < 2
