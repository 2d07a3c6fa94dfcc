"""A fit under another loss than the squared one: its targets, strengths and penalties, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..boosting.few import few
from ..boosting.limits import narrowed
from ..boosting.losses import Loss
from ..boosting.penalties import L1, Penalty, auto_strength, make_penalty
from ..boosting.rounds import open_run
from ..boosting.schedule import Schedule
from ..boosting.strength import Strengths, strengths_by_gcv
from .measured import Measured, Options, Trained
from .passes import Passes, Stage, Training, minimise
from .problem import Problem
from .rules import train_as_grown
from .strength import ridge_under_loss

Watch = Callable[[Passes], str]


def train_under_loss(
    problem: Problem, measured: Measured, options: Options, *, watch: Watch = lambda passes: "",
    tell: Callable[[], None] = lambda: None, start: tuple[np.ndarray, np.ndarray] | None = None,
    validation: Measured | None = None, every_stage: bool = False,
) -> Trained:  # fmt: skip
    """Fit all outputs under `options.loss`.

    `watch` sees every pass and may have a reason to stop; `start` are weights (K, n_outputs) and intercepts to begin
    with. `every_stage`: see `train`.
    """
    rows, loss = measured.coded(problem, options)
    if options.mode == "forward":
        return train_as_grown(problem, measured, options, validation, every_stage=every_stage)
    first = constant(rows, loss)
    if options.penalty == "l2" and measured.grown is not None and options.reg_lambda == "auto":
        pulls = rows.towards(pulled(rows, loss, first))
        strength = ridge_under_loss(measured, options, pulls) * loss.curvature
        strengths, weight = [Strengths(strength)] * rows.n_outputs, first.weight
    else:
        strengths, weight = _strengths(problem, rows, loss, first, measured.rows.n_examples, options, tell)
    penalties = [
        problem.limited(
            make_penalty(options.penalty, strength.chosen, strength.chosen), measured.voters, measured.moments, output
        )
        for output, strength in enumerate(strengths)
    ]
    weight, intercept = (weight, first.intercept) if start is None else start
    history: dict[str, list[float]] = {"loss": [], "objective": [], "rounds": []}
    stages: list[tuple[np.ndarray, np.ndarray]] = []

    def see(passes: Passes) -> str:
        history["loss"].append(passes.stage.loss)
        history["objective"].append(passes.stage.objective)
        history["rounds"].append(float(passes.n_rounds.sum()))
        stages.append((passes.stage.weight, passes.stage.intercept))
        return watch(passes)

    schedule = replace(options.schedule, callback=None)
    if options.max_voters is not None:
        schedule, begun = schedule.share(0.0, 3), rows.stage(weight, intercept, loss, penalties)
        stage = minimise(rows, loss, penalties, schedule, begun)[0].stage
        if np.count_nonzero(stage.weight, axis=0).max(initial=0) > options.max_voters:
            stays = _few(rows, loss, penalties, stage, schedule, options.max_voters)
            penalties = [narrowed(*each) for each in zip(penalties, stays.T, strict=True)]
            weight, intercept = np.where(stays, stage.weight, 0.0), stage.intercept
    begin = rows.stage(weight, intercept, loss, penalties)
    if not begin.objective < first.objective:  # the quadratic function of the first pass says nothing so far away
        begin = first
    passes, why = minimise(rows, loss, penalties, schedule, begin, see)
    found = {name: np.array(values) for name, values in history.items()}
    dual_gap, violation = passes.proof()
    boosted = [
        replace(result, first_risk=first.loss, dual_gap=dual_gap, violation=violation, history=found, stop_reason=why)
        for result in passes.boosted()
    ]
    return Trained(measured.voters, boosted, strengths, loss.link, stages)


def _few(
    rows: Training, loss: Loss, penalties: list[Penalty], stage: Stage, schedule: Schedule, most: int
) -> np.ndarray:
    """Which voters stay, (K, n_outputs), by the quadratic function at a stage."""
    moments, schedule = rows.towards(pulled(rows, loss, stage)), schedule.share(0.0, rows.n_outputs)
    stays = [
        few(moments, penalty, weight, most, schedule, fit_intercept=rows.fit_intercept, output=output)
        for output, (penalty, weight) in enumerate(zip(penalties, stage.weight.T, strict=True))
    ]
    return np.column_stack(stays)


def constant(rows: Training, loss: Loss) -> Stage:
    """Scores that are the same for all rows: where every fit begins."""
    mean = rows.means(rows.y)
    intercept = loss.constant(mean) if rows.fit_intercept else np.zeros(len(mean))
    weight = np.zeros((rows.voters.n_voters, len(mean)))
    return rows.stage(weight, intercept, loss, [Penalty()] * len(mean))


def pulled(rows: Training, loss: Loss, stage: Stage) -> Any:
    """The targets of the quadratic function that lies above the loss and touches it at the scores of a stage."""
    return stage.scores + rows.pull(stage.scores, loss) / loss.curvature


def _strengths(
    problem: Problem, rows: Training, loss: Loss, first: Stage, n_examples: float, options: Options,
    tell: Callable[[], None],
) -> tuple[list[Strengths], np.ndarray]:  # fmt: skip
    """The strength of the penalty of each output, and the weights that choosing it led to.

    The quadratic function of the first pass is the squared loss of other targets: what is right there is right here,
    times the curvature.
    """
    weight = first.weight.copy()
    n_outputs = weight.shape[1]
    if options.strength != "auto":
        return [Strengths(float(options.strength))] * n_outputs, weight
    moments = rows.towards(pulled(rows, loss, first))
    schedule, strengths = replace(options.schedule.share(0.0, 2 * n_outputs), callback=None), []
    for output in range(n_outputs):
        if options.follows_path:
            penalty = problem.limited(L1(0.0), rows.voters, moments, output)
            with open_run(moments, penalty, mode="corrective", fit_intercept=rows.fit_intercept, output=output) as run:
                along_path = strengths_by_gcv(run, n_examples, schedule, tell, bool(rows.voters.trees))
                weight[:, output] = run.weight
            points = tuple(point._replace(strength=point.strength * loss.curvature) for point in along_path.points)
            strengths.append(replace(along_path, chosen=along_path.chosen * loss.curvature, points=points))
        else:
            scale = float(np.sqrt(moments.target_risk(rows.fit_intercept)[output]))
            chosen = auto_strength(options.penalty, options.mode, n_examples, scale, moments.n_voters)
            strengths.append(Strengths(chosen * (1.0 if options.penalty == "linf" else loss.curvature)))
    return strengths, weight
