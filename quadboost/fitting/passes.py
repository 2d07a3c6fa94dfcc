"""A fit under another loss than the squared one: passes over the rows, and rounds on moments between them.

A pass scores the rows and sums the targets of the quadratic function that lies above the loss (boosting/losses.py).
Rounds then go on from the weights of before. Scores are pushed on in the direction they moved (momentum, as in FISTA);
where that makes the objective rise it begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._core import conjugate, steepest
from ..boosting.losses import Loss
from ..boosting.penalties import Penalty
from ..boosting.records import Trace
from ..boosting.result import Boosted
from ..boosting.rounds import Mark, Run, open_run
from ..boosting.schedule import Schedule
from ..common.threads import threads_for
from ..data.exact import exact_mean
from ..moments.moments import Moments
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from .ridge import CodedProducts, Products, bounds_of, solve_ridge

MOST_PASSES = 500  # for each approximation of a loss
FIRST_TOL = 1e-3  # relative dual gap of the rounds of the first pass; the better the scores, the less
SETTLING = 3  # steps of the intercepts alone, at the end
BALANCING = 20  # steps of the mean of the pulls towards zero
CORNER = 0.03  # of what passes under one approximation have gained: what tol is a share of under a better one
STEEPER, FLATTER = 2.0, 0.8  # times the curvature: after a step that was too long, and after one that was not
SLACK = 1e-10  # of the objective: what rounding may add


@dataclass(frozen=True)
class Stage:
    """Where a fit stands after a pass.

    Attributes
    ----------
    weight : array of shape (K, n_outputs)
    intercept : array of shape (n_outputs,)
    scores : array of shape (m, n_outputs)
        Of the training rows, or how they are made of rows elsewhere.
    loss, objective : float
        The mean loss, and with the penalty.
    """

    weight: np.ndarray
    intercept: np.ndarray
    scores: Any
    loss: float
    objective: float


class Training:
    """Training rows, as passes need them, and their moments.

    Arrays with a row for each of them, such as scores, need not be here. Passes add and multiply them, make others of
    them row by row, and ask for means.
    """

    voters: Voters
    moments: Moments
    fit_intercept: bool
    at_once: bool = False  # whether all weights are solved for at once, under l2
    y: Any  # targets, (m, n_outputs)

    @property
    def n_outputs(self) -> int:
        return self.moments.n_outputs

    def scores(self, weight: np.ndarray, intercept: np.ndarray) -> Any:
        """Of all rows, (m, n_outputs)."""
        raise NotImplementedError

    def each(self, function: Callable[..., np.ndarray], *arrays: Any) -> Any:
        """What a function makes of arrays, row by row."""
        raise NotImplementedError

    def means(self, values: Any) -> np.ndarray:
        """The mean of each column; infinite if a value is."""
        raise NotImplementedError

    def towards(self, targets: Any) -> Moments:
        """Moments of the same rows with other targets."""
        raise NotImplementedError

    @property
    def products(self) -> Products:
        """For solving all weights at once."""
        raise NotImplementedError

    def stage(self, weight: np.ndarray, intercept: np.ndarray, loss: Loss, penalties: list[Penalty]) -> Stage:
        """Where these weights stand; without penalties the objective is the loss."""
        scores = self.scores(weight, intercept)
        value = self.mean_loss(scores, loss)
        added = sum(penalty.value(weights) for penalty, weights in zip(penalties, _rows(weight), strict=False)) / 2.0
        return Stage(weight, intercept, scores, value, value + added)

    def mean_loss(self, scores: Any, loss: Loss) -> float:
        return float(self.means(self.each(loss.values, scores, self.y))[0])

    def pull(self, scores: Any, loss: Loss) -> Any:
        return self.each(loss.pull, scores, self.y)


@dataclass(frozen=True)
class Coded(Training):
    """Training rows in memory: codes, targets, weights."""

    voters: Voters
    codes: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    moments: Moments
    fit_intercept: bool
    at_once: bool = False

    @property
    def n_threads(self) -> int:
        return threads_for(self.codes.size, self.moments.n_threads)

    def scores(self, weight: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        return self.voters.scores(self.codes, weight, intercept, self.n_threads)

    def each(self, function: Callable[..., np.ndarray], *arrays: Any) -> np.ndarray:
        return function(*arrays)

    def means(self, values: np.ndarray) -> np.ndarray:
        if not np.isfinite(values).all():
            return np.full(values.shape[1:] or 1, np.inf)
        return np.array([exact_mean(column, self.weight) for column in values.reshape(len(values), -1).T])

    def towards(self, targets: np.ndarray) -> Moments:
        assert isinstance(self.moments.sums, ColumnSums)
        sums = self.moments.sums.with_targets(self.codes, targets, self.weight, self.n_threads)
        return replace(self.moments, sums=sums)

    @cached_property
    def products(self) -> Products:
        assert isinstance(self.moments.sums, ColumnSums)
        return CodedProducts(self.codes, self.weight, self.moments.sums, self.fit_intercept, self.n_threads)


class Passes:
    """Passes under one loss and given penalties, from where a stage stands."""

    def __init__(self, rows: Training, loss: Loss, penalties: list[Penalty], schedule: Schedule, first: Stage) -> None:
        self.rows, self.loss, self.penalties, self.schedule = rows, loss, penalties, schedule
        self.stage, self.n_rounds = first, np.zeros(len(penalties), dtype=np.int64)
        self.curvature = loss.curvature
        self.momentum, self.ahead = 1.0, first.scores
        self.first_objective = first.objective
        self.tol = FIRST_TOL

    def go(self) -> bool:
        """One pass; false when it brings nothing worth another."""
        before = self.stage
        after = self._minimum_of_quadratic(self.ahead)
        if after.objective > before.objective + SLACK * abs(before.objective) and self.ahead is not before.scores:
            self.momentum, self.ahead = 1.0, before.scores  # pushed too far: once more, from where the scores are
            after = self._minimum_of_quadratic(self.ahead)
        gain = before.objective - after.objective
        if not gain > 0:
            is_exact = self.tol <= self.schedule.tol * 1e-3
            self.tol *= 0.1
            return not is_exact
        momentum = 0.5 + np.sqrt(0.25 + self.momentum**2)
        self.ahead = after.scores + (self.momentum - 1.0) / momentum * (after.scores - before.scores)
        self.momentum, self.stage = momentum, after
        whole = max(self.first_objective - after.objective, SLACK * abs(after.objective))
        self.tol = min(self.tol, max(0.1 * gain / whole, 1e-3 * self.schedule.tol))
        return gain > self.schedule.tol * whole

    def _minimum_of_quadratic(self, scores: Any) -> Stage:
        """Minimise the quadratic function that touches the loss at some scores, and lies above it where we end."""
        loss_there = self.rows.mean_loss(scores, self.loss)
        if loss_there == np.inf:
            return replace(self.stage, objective=np.inf)
        pull = self.rows.pull(scores, self.loss)
        while True:
            found = self._towards(scores + pull / self.curvature)
            step = found.scores - scores
            rise = self.rows.each(_across, (0.5 * self.curvature * step - pull) * step)
            if found.loss <= loss_there + float(self.rows.means(rise)[0]) + SLACK * abs(loss_there):
                self.curvature *= FLATTER
                return found
            self.curvature *= STEEPER

    def _towards(self, targets: Any) -> Stage:
        """The least squares of other targets, from the weights of before."""
        moments = self.rows.towards(targets)
        return self._at_once(moments, targets) if self.rows.at_once else self._rounds(moments)

    def _rounds(self, moments: Moments) -> Stage:
        """Rounds on the moments of a pass, for each output."""
        weight, intercept = self.stage.weight.copy(), self.stage.intercept.copy()
        for output, penalty in enumerate(self.penalties):
            divided = penalty.divided_by(self.curvature)
            with open_run(
                moments, divided, mode="corrective", fit_intercept=self.rows.fit_intercept, output=output
            ) as run:
                begin(run, weight[:, output])
                run.go(replace(self.schedule, tol=self.tol))
                result = run.result()
            weight[:, output], intercept[output] = result.weight, result.intercept
            self.n_rounds[output] += result.n_rounds
        return self.rows.stage(weight, intercept, self.loss, self.penalties)

    def _at_once(self, moments: Moments, targets: Any) -> Stage:
        """All weights of all outputs, under l2."""
        rows, start = self.rows, _rows(self.stage.weight)
        ridge = np.full(moments.n_voters, self.penalties[0].divided_by(self.curvature).ridge)
        risk, most = moments.target_risk(rows.fit_intercept), self.schedule.max_rounds
        bounds = bounds_of(self.penalties, moments.n_voters)
        solved = solve_ridge(rows.products, targets, ridge, bounds, risk, self.tol, most, start=start)
        self.n_rounds += len(solved.history)
        return rows.stage(solved.weight, solved.intercept, self.loss, self.penalties)

    def settle(self) -> None:
        """Bring the intercepts to their optimum, by Newton's method: rates are then right on average."""
        rows, loss, before = self.rows, self.loss, self.stage
        shift = np.zeros(len(before.intercept))
        for _ in range(SETTLING if rows.fit_intercept else 0):
            pull = rows.pull(before.scores + shift, loss)
            lean, curve = rows.means(pull), rows.means(rows.each(loss.bend, pull, rows.y))
            shift += np.divide(lean, curve, out=np.zeros(len(lean)), where=curve > 0)
        after = rows.stage(before.weight, before.intercept + shift, loss, self.penalties)
        self.stage = after if after.objective < before.objective else before

    def boosted(self) -> list[Boosted]:
        """Where the passes stand, one output after the other; how they came there is not told."""
        stage = self.stage
        return [
            Boosted(
                weight=np.ascontiguousarray(stage.weight[:, output]), intercept=float(stage.intercept[output]),
                edge=np.full(len(stage.weight), np.nan), risk=stage.loss, objective=stage.objective,
                first_risk=self.first_objective, dual_gap=np.nan, violation=np.nan,
                n_rounds=int(self.n_rounds[output]), history={}, stop_reason="",
                trace=Trace.without_rounds(float(stage.intercept[output])), progress=None,
            )
            for output in range(len(self.penalties))
        ]  # fmt: skip

    def proof(self) -> tuple[float, float]:
        """How near the minimum is: a bound on the distance of the objective, and the violation of its conditions.

        The bound is by Fenchel's duality, with the pull in the place of the dual, scaled until the penalties can hold
        it; NaN where none is known. The violation is the largest distance of an edge from what the conditions of
        optimality want it to be.
        """
        rows = self.rows
        pull = rows.pull(self.stage.scores, self.loss)
        edges = self._edges(pull)
        each = zip(self.penalties, _rows(self.stage.weight), edges, strict=True)
        violation = max(penalty.violation(weight, edge) for penalty, weight, edge in each)
        if not all(penalty.has_gap for penalty in self.penalties):
            return np.nan, violation
        balanced = self._balanced(pull)
        if balanced is not pull:
            pull, edges = balanced, self._edges(balanced)
        ruled = [(edge, penalty.rule(len(edge))) for edge, penalty in zip(edges, self.penalties, strict=True)]
        scale = 1.0 / max(1.0, *(steepest(edge, *rule) for edge, rule in ruled))
        of_loss = float(rows.means(rows.each(self.loss.conjugate, scale * pull, rows.y))[0])
        of_penalty = sum(conjugate(edge, scale, *rule) for edge, rule in ruled) / 2.0
        return max(0.0, self.stage.objective + of_loss + of_penalty), violation

    def _edges(self, pull: Any) -> np.ndarray:
        return _rows(self.rows.towards(pull).centred(self.rows.fit_intercept)[0])

    def _balanced(self, pull: Any) -> Any:
        """A pull near this one of which the mean is zero, as it is at the minimum where there is an intercept."""
        rows, within = self.rows, self.loss.within
        for _ in range(BALANCING if rows.fit_intercept else 0):
            mean, size = np.split(rows.means(rows.each(_with_sizes, pull)), 2)
            if (np.abs(mean) <= SLACK * size).all():
                break
            moved = mean - rows.means(rows.each(within, pull - mean, rows.y))  # less, where a pull is at its end
            step = np.divide(mean * mean, moved, out=np.zeros_like(mean), where=moved != 0)
            pull = rows.each(within, pull - step, rows.y)
        return pull


def _rows(columns: np.ndarray) -> np.ndarray:
    """Columns as rows, each in one piece, as kernels want them."""
    return np.ascontiguousarray(columns.T)


def _across(values: np.ndarray) -> np.ndarray:
    """Sums of the outputs."""
    return np.asarray(values.sum(axis=1))


def _with_sizes(values: np.ndarray) -> np.ndarray:
    return np.hstack([values, np.abs(values)])


def begin(run: Run, weight: np.ndarray) -> None:
    """Let a run begin at given weights."""
    active = np.flatnonzero(weight)
    if len(active):
        run.back_to(Mark(active, weight[active], 0, 0))


def minimise(
    rows: Training, loss: Loss, penalties: list[Penalty], schedule: Schedule, first: Stage,
    watch: Callable[[Passes], str] = lambda passes: "",
) -> tuple[Passes, str]:  # fmt: skip
    """Passes until they bring no more, or `watch` has a reason to stop; returns the last ones and why they stopped."""
    start, n_rounds = time.monotonic(), np.zeros(len(penalties), dtype=np.int64)
    lowered = 0.0
    while True:
        passes = Passes(rows, loss, penalties, schedule, first)
        passes.n_rounds = n_rounds  # of all approximations together
        passes.first_objective += CORNER * lowered  # else ever smaller gains would count, pass after pass
        for _ in range(MOST_PASSES):
            goes_on = passes.go()
            if not goes_on and loss.sharper() is None:
                passes.settle()
            if why := watch(passes):
                return passes, why
            if schedule.max_seconds is not None and time.monotonic() - start > schedule.max_seconds:
                return passes, "max_seconds"
            if not goes_on:
                break
        else:
            return passes, "max_rounds"
        sharper = loss.sharper()
        if sharper is None:
            return passes, "converged"
        lowered += first.objective - passes.stage.objective
        loss = sharper
        first = rows.stage(passes.stage.weight, passes.stage.intercept, loss, penalties)
