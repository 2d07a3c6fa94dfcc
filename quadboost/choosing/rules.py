"""Cross-validation of fits with trees: those of a split are grown on its own training rows.

Trees that were grown on all rows would have seen the targets of the rows held out. Each strength of a penalty is
followed to its end, from where the stronger one before it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from numbers import Integral
from threading import Event
from typing import Any

import numpy as np

from ..boosting.penalties import make_penalty
from ..boosting.result import Boosted
from ..boosting.rounds import open_run
from ..common.threads import in_threads
from ..fitting.losses import train_under_loss
from ..fitting.measured import Measured, Options, solves_at_once
from ..fitting.passes import begin
from ..fitting.problem import Problem
from ..fitting.rules import train_ridge
from ..fitting.strength import law_of_rules, ridge_of_all
from ..fitting.training import train
from .folds import Fold, Folds
from .losses import PATIENCE, strengths_of_loss
from .search import Candidate, Judge, Table

# Strengths to try, as multiples of what is expected: the strongest and the weakest.
AROUND_L2 = (10.0, 0.1)
AROUND_L1 = (8.0, 0.5)
LAW_OF_L1 = 34.0  # times the variance of what is left over the deviation of the target, per example: measured
NEAR = 1e-3  # tol of the fits: good enough to compare them
MOST_ROUNDS = 100_000
LEAST_LEFT = 0.01


def with_trees(options: Options, candidate: Candidate) -> Options:
    """The options of a fit with trees, under a candidate's penalty."""
    return replace(
        options,
        penalty=candidate.penalty,
        growth=replace(options.growth, n_trees=candidate.n_trees),
        schedule=replace(options.schedule, max_rounds=MOST_ROUNDS, callback=None, tol=max(options.schedule.tol, NEAR)),
        **candidate.parameters,
    )


def candidates_with_trees(
    penalties: Sequence[str | None], strengths: dict[str, Any], problem: Problem, options: Options, n_trees: int
) -> list[Candidate]:
    """Penalties and strengths for trees, the strongest of a penalty first; `strengths` are those of each penalty.

    A whole number: so many. Those of l1 and l2 are around what all rows say, others as for stumps.
    """
    auto = replace(with_trees(options, Candidate("l2", 1.0, n_trees)), reg_lambda="auto")
    measured = Measured.of(problem, problem.rows, auto)
    curvature = measured.coded(problem, options)[1].curvature
    found = []
    for name in penalties:
        if name in ("l1", "l2") and isinstance(strengths[name], Integral) and options.mode == "corrective":
            middle, around = _law_of_l1(measured, auto), AROUND_L1
            if name == "l2":
                is_squared, of_labels = options.loss == "squared", problem.classes is not None
                chosen = ridge_of_all(measured, auto, of_labels=of_labels) if is_squared else None
                middle, around = law_of_rules(measured, auto) if chosen is None else chosen.chosen, AROUND_L2
            values = middle * curvature * np.geomspace(*around, int(strengths[name]))
        elif name is None or options.mode == "forward":
            values = np.array([np.nan if name is None else 1.0])
        else:
            values = strengths_of_loss(name, strengths[name], problem, measured, options)
        found += [Candidate(name, float(value), n_trees) for value in values]
    return found


def _law_of_l1(measured: Measured, options: Options) -> float:
    """About the best strength of an l1 penalty on rules."""
    assert measured.grown is not None
    risk = float(measured.moments.target_risk(bool(options.fit_intercept)).mean())
    left = max(1.0 - measured.grown.r2, LEAST_LEFT)
    return LAW_OF_L1 * left * float(np.sqrt(risk)) / measured.rows.n_examples


def cross_validate_rules(
    folds: Folds, candidates: Sequence[Candidate], judge: Judge | None = None, tell: Callable[[], None] = lambda: None
) -> Table:
    """Score candidates with trees on the rows that each split holds out; see `cross_validate`."""
    score = np.full((len(candidates), len(folds.splits)), np.nan)
    stop = Event()

    def work(number: int) -> None:
        options = with_trees(replace(folds.options, n_threads=1), candidates[0])
        split, problem = folds.splits[number], folds.problem
        train_rows = problem.rows.take(split.train)
        measured = Measured.of(problem, train_rows, options, grow_on=None if folds.per_fold else folds.voters)
        held_out = Measured.of(problem, problem.rows.take(split.held_out), options, measured.voters)
        fold = Fold.of(measured, held_out, split.held_out)
        row = 0
        for _, group in groupby(candidates, key=lambda candidate: candidate.penalty):
            for value in _scores(problem, fold, held_out, list(group), folds.options, judge, stop):
                score[row, number] = value
                row += 1
                tell()

    in_threads(work, range(len(folds.splits)), folds.n_workers, stop.set)
    return Table(candidates, np.arange(len(candidates)), np.full(len(candidates), MOST_ROUNDS), score)


def _scores(
    problem: Problem, fold: Fold, held_out: Measured, candidates: Sequence[Candidate], options: Options,
    judge: Judge | None, stop: Event,
) -> Iterator[float]:  # fmt: skip
    """Scores of the strengths of one penalty on one split; much weaker ones than the best are not tried."""
    rows, _ = held_out.coded(problem, options, suffix="_val")
    _, loss = fold.measured.coded(problem, options)
    n_worse, least, value = 0, np.inf, np.nan
    fits = _fits(problem, fold.measured, candidates, options, stop)
    for _ in candidates:
        if n_worse < PATIENCE and not stop.is_set():
            boosted = next(fits)
            weight = np.column_stack([result.weight for result in boosted])
            intercept = np.array([result.intercept for result in boosted])
            risk = rows.stage(weight, intercept, loss.sharpest(), []).loss
            if options.loss == "squared":  # half the sum over the outputs
                risk *= 2.0 / weight.shape[1]
            value = risk if judge is None else judge(fold, boosted)
            n_worse, least = (n_worse + 1, least) if risk >= least else (0, risk)
        yield value


def _fits(
    problem: Problem, measured: Measured, candidates: Sequence[Candidate], options: Options, stop: Event
) -> Iterator[list[Boosted]]:
    """One fit after the other, each from where the one before ended."""
    first = with_trees(options, candidates[0])
    start: tuple[np.ndarray, np.ndarray] | None = None
    if first.loss == "squared" and first.mode == "corrective" and not solves_at_once(measured, first):
        yield from _path(problem, measured, candidates, first, stop)
        return
    for candidate in candidates:
        its_options = with_trees(options, candidate)
        if its_options.loss != "squared":
            watch = lambda passes: "callback" if stop.is_set() else ""  # noqa: E731
            boosted = train_under_loss(problem, measured, its_options, watch=watch, start=start).boosted
        elif its_options.mode == "forward":
            boosted = train(problem, measured, its_options).boosted
        else:
            boosted = train_ridge(problem, measured, its_options, None, None if start is None else start[0]).boosted
        start = (
            np.column_stack([result.weight for result in boosted]),
            np.array([result.intercept for result in boosted]),
        )
        yield boosted


def _path(
    problem: Problem, measured: Measured, candidates: Sequence[Candidate], options: Options, stop: Event
) -> Iterator[list[Boosted]]:
    """By rounds, each output along its own path."""
    n_outputs = measured.moments.n_outputs
    weight = np.zeros((n_outputs, measured.voters.n_voters))
    schedule = replace(options.schedule, callback=lambda *_: stop.is_set(), callback_every=1_000)
    for candidate in candidates:
        found = []
        for output in range(n_outputs):
            base = make_penalty(candidate.penalty, candidate.strength, candidate.strength)
            penalty = problem.limited(base, measured.voters, measured.moments, output)
            with open_run(
                measured.moments, penalty, mode=options.mode, fit_intercept=options.fit_intercept, output=output
            ) as run:
                begin(run, weight[output])
                run.go(schedule)
                found.append(run.result())
            weight[output] = found[-1].weight
        yield found
