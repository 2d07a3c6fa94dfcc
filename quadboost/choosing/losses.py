"""Cross-validation under another loss than the squared one: every candidate is followed to its end.

Under the squared loss one run gives the risk after every round (search.py). Here rounds alternate with passes over the
rows; a strength begins where the stronger one before it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from numbers import Integral
from threading import Event
from typing import Any

import numpy as np

from ..boosting.result import Boosted
from ..common.threads import in_threads
from ..fitting.losses import constant, pulled, train_under_loss
from ..fitting.measured import Measured, Options
from ..fitting.problem import Problem
from .folds import Fold, Folds
from .search import REACH, Candidate, Judge, Table, strengths_of

NEAR = 1e-3  # tol of the fits: good enough to compare them
PATIENCE = 2  # strengths in a row that are worse than the best: all weaker ones are given up


def strengths_of_loss(
    name: str, asked: Any, problem: Problem, measured: Measured, options: Options,
    reach: Mapping[str, float] = REACH,
) -> np.ndarray:  # fmt: skip
    """The strengths of a penalty to try: as for the quadratic function of the first pass, times its curvature."""
    moments, curvature = measured.moments, 1.0
    if options.loss != "squared":
        rows, loss = measured.coded(problem, options)
        moments, curvature = rows.towards(pulled(rows, loss, constant(rows, loss))), loss.curvature
    limits = [problem.limits(measured.voters, moments, output, name) for output in range(moments.n_outputs)]
    values = strengths_of(name, asked, moments, bool(options.fit_intercept), reach, limits)
    return values * curvature if isinstance(asked, Integral) and name != "linf" else values


def cross_validate_loss(
    folds: Folds, candidates: Sequence[Candidate], judge: Judge | None = None, tell: Callable[[], None] = lambda: None
) -> Table:
    """Score candidates, the strongest of a penalty first, on the rows that each split holds out; see `cross_validate`.

    Without a judge the score is the mean loss.
    """
    score = np.full((len(candidates), len(folds.splits)), np.nan)
    stop = Event()

    def work(number: int) -> None:
        row = 0
        for _, group in groupby(candidates, key=lambda candidate: candidate.penalty):
            for value in _scores(folds, number, list(group), judge, stop):
                score[row, number] = value
                row += 1
                tell()

    in_threads(work, range(len(folds.splits)), folds.n_workers, stop.set)
    rounds = np.full(len(candidates), folds.options.schedule.max_rounds)
    return Table(candidates, np.arange(len(candidates)), rounds, score)


def _scores(
    folds: Folds, number: int, candidates: Sequence[Candidate], judge: Judge | None, stop: Event
) -> Iterator[float]:
    """Scores of the strengths of one penalty on one split."""
    problem = folds.problem
    schedule = replace(folds.options.schedule, tol=max(folds.options.schedule.tol, NEAR))
    options = replace(folds.options, schedule=schedule, n_threads=1)
    train, held_out = folds.parts(number)
    fold = Fold.of(train, held_out, folds.splits[number].held_out)
    _, loss = train.coded(problem, options, suffix=f" of the training rows of split {number}")
    rows, _ = held_out.coded(problem, options, suffix="_val")
    start, n_worse, least, value = None, 0, np.inf, np.nan
    for candidate in candidates:
        if n_worse < PATIENCE and not stop.is_set():
            its_options = replace(options, penalty=candidate.penalty, **candidate.parameters)
            boosted: list[Boosted] = train_under_loss(
                problem, train, its_options, watch=lambda passes: "callback" if stop.is_set() else "", start=start
            ).boosted
            weight = np.column_stack([result.weight for result in boosted])
            start = weight, np.array([result.intercept for result in boosted])
            risk = rows.stage(*start, loss.sharpest(), []).loss
            value = risk if judge is None else judge(fold, boosted)
            n_worse, least = (n_worse + 1, least) if risk >= least else (0, risk)
        yield value
