"""A fit: rows in, voters and their weights out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..boosting.few import few
from ..boosting.limits import narrowed
from ..boosting.penalties import L1, Penalty, auto_strength, make_penalty
from ..boosting.records import Progress
from ..boosting.result import Boosted
from ..boosting.rounds import open_run, run_rounds
from ..boosting.schedule import Schedule
from ..boosting.strength import Strengths, strengths_by_gcv
from ..moments.moments import Moments
from .measured import Measured, Options, Trained, Warm, solves_at_once
from .problem import Problem
from .rules import train_as_grown, train_ridge
from .strength import ridge_of_all


def train(
    problem: Problem, measured: Measured, options: Options, *, validation: Measured | None = None,
    warm: list[Warm] | None = None, tell: Callable[[], None] = lambda: None, every_stage: bool = False,
) -> Trained:  # fmt: skip
    """Fit one ensemble per output; all outputs share the voters and their Gram columns.

    `warm` is where an earlier fit stood. `tell` is called after each strength that is tried. `every_stage`: keep the
    weights after every tree, or every iteration over all weights, for someone who chooses among them.
    """
    if options.mode == "forward" and measured.grown is not None:
        return train_as_grown(problem, measured, options, validation, every_stage=every_stage)
    if not warm and (ridge := ridge_of_all(measured, options, of_labels=problem.classes is not None)) is not None:
        options = options.with_strength(ridge.chosen)
        trained = train(problem, measured, options, validation=validation, tell=tell, every_stage=every_stage)
        return replace(trained, strengths=[ridge] * len(trained.strengths))
    if solves_at_once(measured, options) and (validation is None or measured.grown is not None):
        options = options.with_strength(_Fit(problem, measured, options, 0, None).strength())
        return train_ridge(problem, measured, options, validation, every_stage=every_stage)
    start, boosted, strengths = time.monotonic(), [], []
    n_outputs = measured.moments.n_outputs
    for output in range(n_outputs):
        fit = _Fit(problem, measured, options, output, None if validation is None else validation.moments)
        n_left = (n_outputs - output) * (1 if options.max_voters is None else 2)
        schedule = options.schedule.share(time.monotonic() - start, n_left)
        if warm is not None and warm[output].strengths.cut != "max_rounds":  # else all begins anew, as one fit would
            strengths.append(warm[output].strengths)
            boosted.append(fit.rounds(strengths[-1], schedule, warm[output].progress))
        elif options.follows_path:
            along_path, result = fit.path(schedule, tell)
            strengths.append(along_path)
            boosted.append(result)
        else:
            strengths.append(Strengths(fit.strength()))
            boosted.append(fit.rounds(strengths[-1], schedule))
        left = options.schedule.share(time.monotonic() - start, n_outputs - output)
        boosted[-1] = fit.few(strengths[-1], boosted[-1], left)
    return Trained(measured.voters, boosted, strengths)


@dataclass(frozen=True)
class _Fit:
    """The fit of one output."""

    problem: Problem
    measured: Measured
    options: Options
    output: int
    validation: Moments | None

    def penalty(self, strengths: Strengths) -> Penalty:
        penalty = make_penalty(self.options.penalty, strengths.chosen, strengths.chosen)
        return self.problem.limited(penalty, self.measured.voters, self.measured.moments, self.output)

    def rounds(self, strengths: Strengths, schedule: Schedule, resume: Progress | None = None) -> Boosted:
        return run_rounds(
            self.measured.moments, self.penalty(strengths), schedule,
            mode=self.options.mode, fit_intercept=self.options.fit_intercept, output=self.output,
            validation=self.validation, resume=resume,
        )  # fmt: skip

    def few(self, strengths: Strengths, boosted: Boosted, schedule: Schedule) -> Boosted:
        """Of a fit with more voters than there may be: those that stay, weighed under the same penalty."""
        most = self.options.max_voters
        if most is None or np.count_nonzero(boosted.weight) <= most:
            return boosted
        start, moments, penalty = time.monotonic(), self.measured.moments, self.penalty(strengths)
        fit_intercept, schedule = bool(self.options.fit_intercept), replace(schedule, callback=None)
        stays = few(
            moments, penalty, boosted.weight, most, schedule.share(0.0, 2), fit_intercept=fit_intercept,
            output=self.output,
        )  # fmt: skip
        return run_rounds(
            moments, narrowed(penalty, stays), schedule.share(time.monotonic() - start, 1), mode="corrective",
            fit_intercept=fit_intercept, output=self.output, validation=self.validation,
        )  # fmt: skip

    def path(self, schedule: Schedule, tell: Callable[[], None]) -> tuple[Strengths, Boosted]:
        """Choose the strength along a path; rounds go on from there, unless a validation set is to see all of them."""
        start, fit_intercept = time.monotonic(), self.options.fit_intercept
        penalty = self.problem.limited(L1(0.0), self.measured.voters, self.measured.moments, self.output)
        with open_run(
            self.measured.moments, penalty, mode="corrective", fit_intercept=fit_intercept, output=self.output
        ) as run:
            half = schedule.share(0.0, 2)
            if self.validation is not None:
                half = replace(half, callback=None)
            strengths = strengths_by_gcv(
                run, self.measured.rows.n_examples, half, tell, bool(self.measured.voters.trees)
            )
            schedule = schedule.share(time.monotonic() - start, 1)
            if self.validation is None:
                run.change(self.penalty(strengths))
                if strengths.cut != "callback":
                    run.go(schedule)
                if strengths.cut and run.stop_reason in ("", "converged"):  # under the best strength so far
                    run.stop_reason = strengths.cut
                return strengths, run.result()
        return strengths, self.rounds(strengths, schedule)

    def strength(self) -> float:
        """What was given, or what it comes to."""
        options, moments = self.options, self.measured.moments
        if options.strength == "theory":
            return _theory_lambda(self.problem, self.measured, options, self.output)
        if options.strength != "auto":
            return float(options.strength)
        target_scale = float(np.sqrt(moments.target_risk(options.fit_intercept)[self.output]))
        n_examples = self.measured.rows.n_examples
        return auto_strength(options.penalty, options.mode, n_examples, target_scale, moments.n_voters)


def _theory_lambda(problem: Problem, measured: Measured, options: Options, output: int) -> float:
    """What the risk bound wants; under l2 that depends on the weights it leads to."""
    from ..bounds import rademacher_complexity, theory_lambda

    def weights_under(reg_lambda: float) -> np.ndarray:
        penalty = problem.limited(make_penalty(options.penalty, reg_lambda), measured.voters, measured.moments, output)
        schedule = replace(options.schedule, callback=None)
        return run_rounds(
            measured.moments, penalty, schedule, mode=options.mode, fit_intercept=options.fit_intercept, output=output
        ).weight

    categorical = sorted(problem.schema.categories)
    complexity = rademacher_complexity(measured.rows.X, categorical_features=categorical, n_jobs=options.n_threads)
    return theory_lambda(options.penalty, complexity.value, weights_under)
