"""Fits that are not made by rounds: under l2 all weights at once, or with trees the weights as boosting gave them."""

from __future__ import annotations

import math
import time

import numpy as np

from .._core import dot
from ..boosting.losses import Loss
from ..boosting.penalties import L2
from ..boosting.records import Trace
from ..boosting.result import Boosted
from ..boosting.schedule import Schedule
from ..boosting.strength import Strengths
from ..data.exact import exact_mean
from ..voters.columns import Voters
from .growth import Grown
from .measured import Measured, Options, Trained, loss_of
from .problem import Problem
from .ridge import Products, bounds_of, solve_ridge

LEAST_RIDGE = 1e-12


def train_ridge(
    problem: Problem, measured: Measured, options: Options, validation: Measured | None,
    start: np.ndarray | None = None, *, every_stage: bool = False,
) -> Trained:  # fmt: skip
    """Fit voters under l2, all weights at once, under a given strength; `start` are weights (K, n_outputs)."""
    moments, schedule, n_outputs = measured.moments, options.schedule, measured.moments.n_outputs
    strength, first_risk = float(options.reg_lambda), moments.target_risk(bool(options.fit_intercept))
    rows, y = measured.products(bool(options.fit_intercept))
    mean = moments.target_mean if options.fit_intercept else np.zeros(n_outputs)
    watch = _Watch(schedule, validation, mean, rows, every_stage)
    penalties = [problem.limited(L2(strength), measured.voters, moments, output) for output in range(n_outputs)]
    bounds = bounds_of(penalties, moments.n_voters)
    ridge = np.maximum(penalties[0].rule(moments.n_voters)[0], LEAST_RIDGE)
    begin = None if start is None else np.ascontiguousarray(start.T)
    solved = solve_ridge(rows, y, ridge, bounds, first_risk, schedule.tol, schedule.max_rounds, begin, watch)
    reason = watch.reason or ("converged" if solved.converged else "max_rounds")
    if watch.best is not None:  # by the validation rows
        solved = rows.solved(watch.best, y, ridge, bounds, first_risk, schedule.tol, solved.history)
    boosted, weights, edges = [], np.ascontiguousarray(solved.weight.T), np.ascontiguousarray(solved.edge.T)
    for output, (weight, edge) in enumerate(zip(weights, edges, strict=True)):
        history = {"objective": np.array([objectives[output] for objectives in solved.history])}
        if watch.risks:
            history["validation_risk"] = np.array([risks[output] for risks in watch.risks])
        boosted.append(
            _plain_result(
                weight, solved.intercept[output], edge, solved.risk[output],
                first_risk[output], history, watch.n_best or len(solved.history), reason,
                objective=float(solved.risk[output] + penalties[output].value(weight)),
                dual_gap=float(solved.gap[output]),
                violation=penalties[output].violation(weight, edge),
            )
        )  # fmt: skip
    stages = watch.stages or [(solved.weight, solved.intercept)]
    return Trained(measured.voters, boosted, [Strengths(strength)] * n_outputs, None, stages)


class _Watch:
    """Looks at every iteration: tells the callback, keeps the best weights on the validation rows, says when to end."""

    def __init__(
        self, schedule: Schedule, validation: Measured | None, mean: np.ndarray, rows: Products, every_stage: bool
    ) -> None:
        self.schedule, self.validation, self.mean, self.rows = schedule, validation, mean, rows
        self.every_stage, self.stages = every_stage, list[tuple[np.ndarray, np.ndarray]]()
        self.start, self.reason = time.monotonic(), ""
        self.best: np.ndarray | None = None
        self.n_best = 0
        self.risks: list[np.ndarray] = []

    def __call__(self, iteration: int, objective: np.ndarray, weight: np.ndarray) -> bool:
        found = None
        intercept = self.mean - np.array([dot(self.rows.centre, each) for each in weight])
        if self.every_stage:
            self.stages.append((weight.T.copy(), intercept))
        if self.validation is not None:
            held_out = self.validation
            off = held_out.rows.y - held_out.voters.scores(held_out.codes, weight.T, intercept, held_out.n_threads)
            self.risks.append(np.array([exact_mean(each * each, held_out.rows.weight) for each in off.T]))
            found = float(self.risks[-1].sum())
            if found < min((float(risk.sum()) for risk in self.risks[:-1]), default=np.inf):
                self.best, self.n_best = weight.copy(), iteration
            elif iteration - self.n_best >= self.schedule.patience:
                self.reason = "patience"
        callback = self.schedule.callback  # each iteration takes as long as many rounds
        if callback is not None and callback(iteration, float(objective.mean()), found):
            self.reason = "callback"
        if self.schedule.max_seconds is not None and time.monotonic() - self.start > self.schedule.max_seconds:
            self.reason = "max_seconds"
        return bool(self.reason)


def train_as_grown(
    problem: Problem, measured: Measured, options: Options, validation: Measured | None, *, every_stage: bool = False
) -> Trained:
    """Trees with the steps that boosting gave them, as many as are best on the validation rows."""
    grown, voters = measured.grown, measured.voters
    assert grown is not None
    loss, y = loss_of(problem, measured.rows, options)
    risks = _staged_risks(measured, loss, y, grown)
    history, n_trees = {"risk": risks}, grown.trees.n_trees
    if validation is not None:
        history["validation_risk"] = _staged_risks(
            validation, loss, problem.targets(validation.rows, options.loss), grown
        )
        n_trees = 1 + int(np.argmin(history["validation_risk"])) if n_trees else 0
    weight, intercept = _first_trees(grown, voters, n_trees)
    scale = 2.0 if options.loss == "squared" else 1.0  # the squared loss is half of the risk
    risk = (
        float(risks[n_trees - 1])
        if n_trees
        else float(exact_mean(loss.values(np.tile(grown.constant, (len(y), 1)), y), measured.rows.weight))
    )
    edge = np.full(voters.n_voters, np.nan)
    boosted = [
        _plain_result(weight[:, output], intercept[output], edge, scale * risk, np.nan, history, n_trees, "grown")
        for output in range(y.shape[1])
    ]
    link = None if options.loss == "squared" else loss.link
    stages = [(weight, intercept)]
    if every_stage and grown.trees:
        stages = [_first_trees(grown, voters, 1 + tree) for tree in range(grown.trees.n_trees)]
    return Trained(voters, boosted, [Strengths(0.0)] * y.shape[1], link, stages)


def _first_trees(grown: Grown, voters: Voters, n_trees: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and intercepts of so many trees, as they were grown."""
    step = np.where(grown.trees.tree[:, None] < n_trees, grown.step, 0.0)
    weight = np.zeros((voters.n_voters, step.shape[1]))
    weight[voters.first_rule :] = step[~grown.trees.is_root] / 2.0
    # A leaf's voter is -1 in the other leaves: the constants that this leaves go into the intercept.
    return weight, grown.constant + np.array([math.fsum(column) / 2.0 for column in step.T])


def _staged_risks(measured: Measured, loss: Loss, y: np.ndarray, grown: Grown) -> np.ndarray:
    """The mean loss after each tree."""
    scores, first = np.tile(grown.constant, (len(y), 1)), measured.voters.n_features
    risks = np.empty(grown.trees.n_trees)
    for tree in range(grown.trees.n_trees):
        nodes = slice(grown.trees.start[tree], grown.trees.start[tree + 1])
        at_leaves = grown.step[nodes][grown.trees.is_leaf[nodes]]
        scores += at_leaves[measured.codes[:, first + tree].astype(np.intp) - 1]
        risks[tree] = exact_mean(loss.values(scores, y), measured.rows.weight)
    return risks


def _plain_result(
    weight: np.ndarray, intercept: float, edge: np.ndarray, risk: float, first_risk: float,
    history: dict[str, np.ndarray], n_rounds: int, reason: str, *, objective: float | None = None,
    dual_gap: float = np.nan, violation: float = np.nan,
) -> Boosted:  # fmt: skip
    """The outcome of a fit that was not made by rounds."""
    trace = Trace.without_rounds(float(intercept))
    objective = risk if objective is None else objective
    return Boosted(
        np.ascontiguousarray(weight), float(intercept), edge, float(risk), float(objective), float(first_risk),
        dual_gap, violation, n_rounds, history, reason, trace, None,
    )  # fmt: skip
