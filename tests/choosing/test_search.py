"""Cross-validation from moments gives what refitting every fold from its rows gives."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import zip_longest

import joblib
import numpy as np
import pytest
from mixed_table import outputs
from sklearn.model_selection import GroupKFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from some_folds import (
    CANDIDATES,
    EVERY_CANDIDATE,
    LABELS,
    REAL,
    REPEATS,
    ROUNDS,
    WEIGHT,
    M,
    X,
    folds_of,
    splits_of,
)

from quadboost import QuadBoostRegressorCV
from quadboost.boosting.penalties import make_penalty
from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.choosing.folds import Folds, Split
from quadboost.choosing.search import Candidate, Table, _tasks, check_strengths, cross_validate, strengths_of
from quadboost.moments.moments import column_moments


def naive(folds: Folds, candidates, rounds=ROUNDS) -> np.ndarray:
    """Refit every fold from its rows for every number of rounds; risks on the rows held out, from their scores."""
    rows, given = folds.problem.rows, folds.options

    def part(values, numbers):
        return None if values is None else values[numbers]

    H = outputs(folds.voters, rows.X)
    table = []
    for candidate in candidates:
        for n in rounds.tolist():
            risks = []
            for train, held_out in folds.splits:
                moments = column_moments(folds.voters, folds.codes[train], rows.y[train], part(rows.weight, train))
                scores = []
                for output in range(rows.y.shape[1]):
                    run = run_rounds(
                        moments,
                        candidate.make(),
                        replace(given.schedule, max_rounds=n),
                        mode=given.mode,
                        fit_intercept=given.fit_intercept,
                        output=output,
                    )
                    residual = rows.y[held_out, output] - run.intercept - H[held_out] @ run.weight
                    scores.append(np.average(residual**2, weights=part(rows.weight, held_out)))
                risks.append(np.mean(scores))
            table.append(risks)
    return np.array(table)


def assert_as_naive(folds: Folds, candidates) -> None:
    found = cross_validate(folds, candidates, ROUNDS)
    known = naive(folds, candidates)
    np.testing.assert_allclose(found.score, known, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found.rounds, np.tile(ROUNDS, len(candidates)))
    best = found.choose(greater_is_better=False, one_standard_error=False)
    least = known.mean(axis=1)
    assert best == np.argmax(least <= least.min() + 1e-12)


@pytest.mark.thinned
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("mode", ["corrective", "forward"])
@pytest.mark.parametrize("penalty", CANDIDATES)
def test_risks_and_choice_are_those_of_refitting_each_fold_from_its_rows(penalty, mode, fit_intercept):
    folds = folds_of(mode=mode, fit_intercept=fit_intercept)
    assert_as_naive(folds, CANDIDATES[penalty])


@pytest.mark.thinned(1)
@pytest.mark.parametrize("weight", [None, REPEATS, WEIGHT], ids=["no weights", "repeats", "weights"])
@pytest.mark.parametrize("y", [LABELS, REAL, np.column_stack([REAL, LABELS])], ids=["labels", "real", "two outputs"])
def test_so_they_are_for_weights_and_several_outputs(y, weight):
    assert_as_naive(folds_of(y, weight), EVERY_CANDIDATE)


@pytest.mark.slow
def test_so_they_are_with_sweeps():
    schedule = Schedule(max_rounds=40, reweight_every=5, reweight_sweeps=2)
    assert_as_naive(folds_of(REAL, schedule=schedule), EVERY_CANDIDATE)


@pytest.mark.slow
def test_so_they_are_for_a_target_far_from_zero():
    folds = folds_of(REAL + 1e6)
    found = cross_validate(folds, EVERY_CANDIDATE, ROUNDS)
    np.testing.assert_allclose(found.score, naive(folds, EVERY_CANDIDATE), rtol=0, atol=1e-8)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "splits",
    [
        pytest.param(splits_of(GroupKFold(4), groups=np.arange(M) // 7), id="groups"),
        pytest.param(splits_of(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)), id="repeated"),
        pytest.param(splits_of(ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0)), id="rows left out"),
        pytest.param(splits_of(TimeSeriesSplit(3)), id="time series"),
        pytest.param([Split(np.arange(M), np.arange(50))], id="rows in both"),
        pytest.param([Split(np.r_[:100, :100, 150], np.r_[100:200])], id="rows twice"),
    ],
)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["no weights", "weights"])
def test_so_they_are_for_any_splits(splits, weight):
    assert_as_naive(folds_of(REAL, weight, splits), EVERY_CANDIDATE)


def test_every_round_is_scored_where_none_are_named():
    folds = folds_of()
    every = cross_validate(folds, EVERY_CANDIDATE)
    some = cross_validate(folds, EVERY_CANDIDATE, ROUNDS)
    for c in range(len(EVERY_CANDIDATE)):
        rounds, score = every.rounds[every.candidate == c], every.score[every.candidate == c]
        assert rounds.tolist() == list(range(1, len(rounds) + 1))
        np.testing.assert_array_equal(score[np.minimum(ROUNDS, len(rounds)) - 1], some.score[some.candidate == c])
    strong = every.candidate == EVERY_CANDIDATE.index(Candidate("l1", 0.5))
    assert strong.sum() == 1, "under so strong a penalty there are no rounds: one line tells all"


def test_a_judge_sees_the_ensemble_after_each_number_of_rounds():
    folds = folds_of(REAL, WEIGHT)
    H = outputs(folds.voters, X)

    def risk(fold, runs):
        score = runs[0].intercept + H[fold.rows] @ runs[0].weight
        return float(np.average((REAL[fold.rows] - score) ** 2, weights=WEIGHT[fold.rows]))

    judged = cross_validate(folds, EVERY_CANDIDATE, ROUNDS, risk)
    np.testing.assert_allclose(judged.score, cross_validate(folds, EVERY_CANDIDATE, ROUNDS).score, atol=1e-10)


@pytest.mark.slow
def test_threads_and_little_memory_change_nothing(monkeypatch):
    monkeypatch.setattr("quadboost.choosing.folds.VOTERS_FOR_THREADS", 0)
    known = cross_validate(folds_of(REAL, WEIGHT), EVERY_CANDIDATE)
    for changes in ({"n_threads": 2}, {"n_threads": 3}, {"n_threads": 7}, {"n_threads": 2, "cache_bytes": 1}):
        found = cross_validate(folds_of(REAL, WEIGHT, **changes), EVERY_CANDIDATE)
        np.testing.assert_array_equal(found.score, known.score)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interrupt_ends_all_work(monkeypatch, n_threads):
    monkeypatch.setattr("quadboost.choosing.folds.VOTERS_FOR_THREADS", 0)
    folds = folds_of(n_threads=n_threads, schedule=Schedule(max_rounds=10_000))
    before = threading.active_count()
    done = []

    def interrupt():
        done.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validate(folds, [Candidate("l2", 0.01)] * 200, tell=interrupt)
    assert len(done) < 200, "of two hundred runs on each fold"
    patience = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < patience:
        time.sleep(0.01)  # other threads end their round
    assert threading.active_count() == before


def test_an_error_ends_the_judging_of_other_workers(monkeypatch):
    monkeypatch.setattr("quadboost.choosing.folds.VOTERS_FOR_THREADS", 0)
    n_judged = []

    def judge(fold, runs):
        n_judged.append(1)
        if len(n_judged) == 2:
            raise ZeroDivisionError
        time.sleep(0.03)
        return 0.0

    with pytest.raises(ZeroDivisionError):
        cross_validate(folds_of(n_threads=2), [Candidate(None, np.nan)] * 2, np.arange(1, 200), judge)
    assert len(n_judged) < 20


@pytest.mark.parametrize("n_workers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n_candidates", [1, 2, 10])
def test_workers_share_all_runs_and_none_waits_for_a_whole_split_of_another(n_candidates, n_workers):
    tasks = _tasks(5, n_candidates, n_workers)
    turns = list(zip_longest(*(some for _, some in tasks)))  # of all tasks, were each as quick as the others
    runs = [(number, c) for turn in turns for (number, _), c in zip(tasks, turn, strict=True) if c is not None]
    assert sorted(runs) == [(number, c) for number in range(5) for c in range(n_candidates)]
    n_sharing = [number for number, _ in tasks].count(4)
    assert n_sharing == (n_workers // (5 % n_workers) if 5 % n_workers else 1)
    n_turns = sum(
        any(c is not None for (number, _), c in zip(tasks, turn, strict=True) if number == 4) for turn in turns
    )
    assert n_turns == -(-n_candidates // n_sharing)


def test_a_table_keeps_what_each_run_learnt():
    folds = folds_of()
    found = cross_validate(folds, EVERY_CANDIDATE, ROUNDS)
    twice = found.joined(found)
    for c, candidate in enumerate(EVERY_CANDIDATE):
        schedule = replace(folds.options.schedule, max_rounds=int(ROUNDS[-1]))
        known = run_rounds(
            folds.make(1).train, candidate.make(), schedule, mode=folds.options.mode, fit_intercept=True
        ).weight
        for table, at in ((found, c), (twice, c + len(EVERY_CANDIDATE))):
            np.testing.assert_array_equal(table.learnt[at, 1].weights_at(int(ROUNDS[-1]))[:, 0], known)


def test_every_run_is_told():
    told = []
    cross_validate(folds_of(), EVERY_CANDIDATE, ROUNDS, tell=lambda: told.append(1))
    assert len(told) == 5 * len(EVERY_CANDIDATE)


# --- choosing -----------------------------------------------------------------------------------------------


def table_of(score, candidates=None) -> Table:
    score = np.array(score, dtype=float)
    candidates = [Candidate("l1", 1.0 / (1 + i)) for i in range(len(score))] if candidates is None else candidates
    return Table(candidates, np.arange(len(score)), np.full(len(score), 7), score)


def test_the_least_mean_risk_and_the_greatest_mean_score_are_chosen():
    table = table_of([[3, 5], [1, 2], [0, 4]])
    assert table.choose(greater_is_better=False, one_standard_error=False) == 1
    assert table.choose(greater_is_better=True, one_standard_error=False) == 0


def test_of_equal_means_the_strongest_penalty_is_chosen():
    table = table_of([[0.5, 0.5], [0.1, 0.3], [0.3, 0.1], [0.1 + 1e-15, 0.3]])
    assert table.choose(greater_is_better=False, one_standard_error=False) == 1


def test_the_choice_within_one_standard_error_by_hand():
    # Means 2, 1.25, 1 (best) and 1.1; the standard error is that of the best row's four scores.
    score = np.array([[2.0] * 4, [1.25] * 4, [0.8, 1.2, 0.9, 1.1], [1.1] * 4])
    deviation = np.sqrt((0.2**2 + 0.2**2 + 0.1**2 + 0.1**2) / 3)
    assert 1.0 + deviation / 2 < 1.1
    assert table_of(score).choose(greater_is_better=False, one_standard_error=True) == 2
    score[1] = 1.0 + 0.99 * deviation / 2
    assert table_of(score).choose(greater_is_better=False, one_standard_error=True) == 1
    score[1] = 1.0 + 1.01 * deviation / 2
    assert table_of(score).choose(greater_is_better=False, one_standard_error=True) == 2
    assert table_of(2 - score).choose(greater_is_better=True, one_standard_error=True) == 2


def test_one_standard_error_keeps_the_penalty():
    candidates = [Candidate("l2", 1.0), Candidate("l1", 1.0), Candidate("l1", 0.5)]
    table = table_of([[0.9, 1.0], [0.9, 1.08], [0.8, 1.0]], candidates)
    assert table.choose(greater_is_better=False, one_standard_error=True) == 1


def test_a_single_split_has_no_standard_error():
    table = table_of([[3], [1], [2]])
    assert np.isnan(table.standard_error).all()
    assert table.choose(greater_is_better=False, one_standard_error=True) == 1


def test_a_score_that_is_no_number_is_never_chosen():
    table = table_of([[np.nan, 0], [2, 2]])
    assert table.choose(greater_is_better=False, one_standard_error=False) == 1
    with pytest.raises(ValueError, match="no candidate has a score that is a number"):
        table_of([[np.nan, 1]]).choose(greater_is_better=True, one_standard_error=False)


# --- strengths ----------------------------------------------------------------------------------------------


def run(name, strength, fit_intercept, y=REAL, **schedule):
    folds = folds_of(y)
    return run_rounds(
        folds.all_rows,
        make_penalty(name, strength, strength),
        Schedule(**schedule),
        mode="corrective",
        fit_intercept=fit_intercept,
    )


def largest(name, fit_intercept, y=REAL):
    values = strengths_of(name, 3, folds_of(y).all_rows, fit_intercept)
    return values.max()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("y", [REAL, REAL + 1e6], ids=["near zero", "far from zero"])
def test_above_the_largest_l1_strength_there_are_no_voters(fit_intercept, y):
    top = largest("l1", fit_intercept, y)
    assert not run("l1", top * (1 + 1e-9), fit_intercept, y).weight.any()
    assert run("l1", top * (1 - 1e-4), fit_intercept, y).weight.any()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_above_the_largest_l2_strength_all_voters_bring_less_than_one_without_a_penalty(fit_intercept):
    best = run("l2", largest("l2", fit_intercept), fit_intercept, max_rounds=5_000)
    one = run(None, 0.0, fit_intercept, max_rounds=1)
    constant = run("l1", 1e9, fit_intercept).risk
    assert constant - best.objective <= constant - one.risk


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_largest_linf_strength_bounds_no_first_weight(fit_intercept):
    top = largest("linf", fit_intercept)
    free = run(None, 0.0, fit_intercept, max_rounds=1)
    np.testing.assert_array_equal(run("linf", top * (1 + 1e-9), fit_intercept, max_rounds=1).weight, free.weight)
    assert np.abs(run("linf", top / 50, fit_intercept, max_rounds=1).weight).max() == top / 50


@pytest.mark.parametrize(("name", "strongest_first"), [("l1", -1), ("l2", -1), ("linf", 1)])
def test_strengths_come_strongest_first_and_evenly_on_a_log_scale(name, strongest_first):
    moments = folds_of().all_rows
    values = strengths_of(name, 7, moments, True)
    steps = np.diff(np.log(values)) * strongest_first
    assert len(values) == 7
    assert (steps > 0).all()
    np.testing.assert_allclose(steps, steps[0])
    given = strengths_of(name, [0.2, 0.1, 0.3, 0.1], moments, True)
    assert given.tolist() == [0.1, 0.2, 0.3][::strongest_first]


@pytest.mark.parametrize("name", ["l1", "l2", "linf"])
def test_a_constant_target_has_strengths_too(name):
    values = strengths_of(name, 4, folds_of(np.ones(M)).all_rows, True)
    assert np.isfinite(values).all()
    assert (values > 0).all()


def test_several_outputs_share_the_largest_strength():
    both = folds_of(np.column_stack([REAL, 3 * LABELS])).all_rows
    single = [folds_of(y).all_rows for y in (REAL, 3 * LABELS)]
    assert strengths_of("l1", 2, both, True)[0] == max(strengths_of("l1", 2, moments, True)[0] for moments in single)


@pytest.mark.parametrize("given", [0.1, "auto", None, [], 1, True, [0.1, -1.0], [0.0], ["a"], [np.nan]])
def test_strengths_that_make_no_sense_are_refused(given):
    with pytest.raises(ValueError, match="reg_lambda"):
        check_strengths("reg_lambda", given)


def test_joblib_in_any_mood_spreads_the_runs(monkeypatch):
    monkeypatch.setattr("quadboost.choosing.folds.VOTERS_FOR_THREADS", 0)
    known = cross_validate(folds_of(), EVERY_CANDIDATE, ROUNDS)
    for mood in ({"prefer": "processes"}, {"backend": "loky"}, {"backend": "threading", "n_jobs": 1}):
        with joblib.parallel_config(**mood):
            found = cross_validate(folds_of(n_threads=2), EVERY_CANDIDATE, ROUNDS)
        np.testing.assert_array_equal(found.score, known.score)


# --- runs that are given up -----------------------------------------------------------------------------------


def wide_noise():
    """400 rows, 60 features, nothing to learn but a little of the first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    return X, 0.3 * np.sign(X[:, 0]) + rng.normal(size=400)


@pytest.mark.slow
def test_runs_that_learn_noise_are_given_up_and_the_choice_is_the_same(monkeypatch):
    X, y = wide_noise()
    options = {"reg_lambda": 8, "cv": 3, "max_rounds": 2_000}
    found = QuadBoostRegressorCV(**options).fit(X, y)
    monkeypatch.setattr("quadboost.choosing.search.HOPELESS", np.inf)
    known = QuadBoostRegressorCV(**options).fit(X, y)
    assert found.best_params_ == known.best_params_
    assert found.best_score_ == known.best_score_
    lam, rounds = (found.cv_results_[f"param_{name}"] for name in ("reg_lambda", "max_rounds"))
    known_lam, known_rounds = (known.cv_results_[f"param_{name}"] for name in ("reg_lambda", "max_rounds"))
    weakest = lam.min()
    assert rounds[lam == weakest].max() < known_rounds[known_lam == weakest].max() / 4
    for strength in np.unique(lam):  # until then scores are the same
        stopped, all_of_them = (
            result.cv_results_["mean_test_score"][result.cv_results_["param_reg_lambda"] == strength]
            for result in (found, known)
        )
        np.testing.assert_array_equal(stopped[:50], all_of_them[: min(50, len(stopped))])


@pytest.mark.slow
def test_weak_penalties_are_still_chosen_where_they_are_the_best(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3))
    y = np.sin(3 * X).sum(axis=1) + 0.05 * rng.normal(size=600)
    options = {"reg_lambda": 8, "cv": 3, "max_rounds": 1_000}
    found = QuadBoostRegressorCV(**options).fit(X, y)
    monkeypatch.setattr("quadboost.choosing.search.HOPELESS", np.inf)
    known = QuadBoostRegressorCV(**options).fit(X, y)
    assert found.best_params_ == known.best_params_
    assert found.best_params_["max_rounds"] > 500
    np.testing.assert_array_equal(found.predict(X), known.predict(X))
    assert found.best_params_["reg_lambda"] < 0.01 * max(found.cv_results_["param_reg_lambda"])
