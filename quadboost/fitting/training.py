"""A fit: rows in, voters and their weights out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..boosting.losses import LOSSES
from ..boosting.penalties import L1, Penalty, auto_lambda, make_penalty
from ..boosting.records import Progress
from ..boosting.result import Boosted
from ..boosting.rounds import MODES, open_run, run_rounds
from ..boosting.schedule import Schedule
from ..boosting.strength import Strengths, strengths_by_gcv
from ..common.checks import at_least, one_of, positive
from ..common.threads import threads_for
from ..moments.moments import Moments, column_moments
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from ..voters.thresholds import check_thresholds
from .problem import Problem, Rows


@dataclass(frozen=True)
class Options:
    """What a fit can be told; see `boost` and `candidate_voters`."""

    penalty: str | None
    reg_lambda: float | str
    alpha_max: float
    mode: str
    fit_intercept: bool
    thresholds: int | str
    spacing: str
    cache_bytes: int
    n_threads: int
    schedule: Schedule
    loss: str = "squared"
    quantile: float = 0.5
    huber_width: float | str = "auto"

    def __post_init__(self) -> None:
        one_of("loss", self.loss, LOSSES)
        if self.loss != "squared":
            self._check_loss()
        if isinstance(self.reg_lambda, str):
            one_of("reg_lambda", self.reg_lambda, ("auto", "theory"))
            if self.reg_lambda == "theory" and self.penalty not in ("l1", "l2"):
                raise ValueError(f"reg_lambda='theory' is for the penalties 'l1' and 'l2', not for {self.penalty!r}")
        make_penalty(self.penalty, 0.0 if isinstance(self.reg_lambda, str) else self.reg_lambda, self.alpha_max)
        one_of("mode", self.mode, MODES)
        one_of(
            "fit_intercept",
            bool(self.fit_intercept) if self.fit_intercept in (0, 1) else self.fit_intercept,
            (True, False),
        )
        check_thresholds(self.thresholds, self.spacing)
        at_least("cache_bytes", self.cache_bytes, 1)

    def _check_loss(self) -> None:
        if self.mode != "corrective":
            raise ValueError(f"mode={self.mode!r} is for loss='squared'; with loss={self.loss!r} use mode='corrective'")
        if self.reg_lambda == "theory":
            raise ValueError(
                f"reg_lambda='theory' is for loss='squared', not for {self.loss!r}; use 'auto' or a number"
            )
        if not 0 < positive("quantile", self.quantile) < 1:
            raise ValueError(f"quantile={self.quantile!r} must lie between 0 and 1, such as 0.9")
        if self.huber_width != "auto":
            positive("huber_width", self.huber_width)

    @property
    def follows_path(self) -> bool:
        """Whether the strength is chosen along a path."""
        return self.reg_lambda == "auto" and self.penalty == "l1" and self.mode == "corrective"


@dataclass(frozen=True)
class Measured:
    """Rows that are summed: the voters that they were coded by, and their moments."""

    rows: Rows
    voters: Voters
    codes: np.ndarray
    moments: Moments

    @property
    def n_threads(self) -> int:
        return threads_for(self.codes.size, self.moments.n_threads)

    @classmethod
    def of(cls, problem: Problem, rows: Rows, options: Options, voters: Voters | None = None) -> Measured:
        """Code and sum rows, by given voters or by those that the rows themselves suggest."""
        n_threads = threads_for(rows.X.size, options.n_threads)
        if voters is None:
            voters = problem.voters(rows, options.thresholds, options.spacing, n_threads)
        codes = voters.code(rows.X, n_threads)
        moments = column_moments(
            voters, codes, rows.y, rows.weight, cache_bytes=options.cache_bytes, n_threads=n_threads
        )
        return cls(rows, voters, codes, moments)


class Warm(NamedTuple):
    """Where the fit of an output stood."""

    strengths: Strengths
    progress: Progress


@dataclass(frozen=True)
class Trained:
    """The outcome of a fit, one `Boosted` and one strength of the penalty per output."""

    voters: Voters
    boosted: list[Boosted]
    strengths: list[Strengths]
    importance: np.ndarray
    link: str | None = None  # None: that of the squared loss
    stages: list[tuple[np.ndarray, np.ndarray]] | None = None  # weights and intercepts after each pass

    @property
    def reg_lambda(self) -> list[float]:
        return [own.chosen for own in self.strengths]

    @property
    def warm(self) -> list[Warm]:
        """For a later fit that goes on."""
        each = zip(self.strengths, self.boosted, strict=True)
        return [Warm(own, result.progress) for own, result in each if result.progress is not None]


def train(
    problem: Problem, measured: Measured, options: Options, *, validation: Moments | None = None,
    warm: list[Warm] | None = None, tell: Callable[[], None] = lambda: None,
) -> Trained:  # fmt: skip
    """Fit one ensemble per output; all outputs share the voters and their Gram columns.

    `warm` is where an earlier fit stood. `tell` is called after each strength that is tried.
    """
    start, boosted, strengths = time.monotonic(), [], []
    n_outputs = measured.moments.n_outputs
    for output in range(n_outputs):
        fit = _Fit(problem, measured, options, output, validation)
        schedule = options.schedule.share(time.monotonic() - start, n_outputs - output)
        if warm is not None and not fit.was_too_short(warm[output]):
            strengths.append(warm[output].strengths)
            boosted.append(fit.rounds(strengths[-1], schedule, warm[output].progress))
        elif options.follows_path:
            own, result = fit.path(schedule, tell)
            strengths.append(own)
            boosted.append(result)
        else:
            strengths.append(Strengths(fit.reg_lambda()))
            boosted.append(fit.rounds(strengths[-1], schedule))
    weight = np.column_stack([result.weight for result in boosted])
    return Trained(measured.voters, boosted, strengths, importance_of(measured.voters, measured.moments, weight))


@dataclass(frozen=True)
class _Fit:
    """The fit of one output."""

    problem: Problem
    measured: Measured
    options: Options
    output: int
    validation: Moments | None

    def penalty(self, strengths: Strengths) -> Penalty:
        penalty = make_penalty(self.options.penalty, strengths.chosen, self.options.alpha_max)
        return self.problem.limited(penalty, self.measured.voters, self.output)

    def rounds(self, strengths: Strengths, schedule: Schedule, resume: Progress | None = None) -> Boosted:
        return run_rounds(
            self.measured.moments, self.penalty(strengths), schedule,
            mode=self.options.mode, fit_intercept=self.options.fit_intercept, output=self.output,
            validation=self.validation, resume=resume,
        )  # fmt: skip

    def path(self, schedule: Schedule, tell: Callable[[], None]) -> tuple[Strengths, Boosted]:
        """Choose the strength along a path.

        Rounds go on from there, unless a validation set is to see all of them, or the path had more than there may be.
        """
        start, fit_intercept = time.monotonic(), self.options.fit_intercept
        penalty = self.problem.limited(L1(0.0), self.measured.voters, self.output)
        with open_run(
            self.measured.moments, penalty, mode="corrective", fit_intercept=fit_intercept, output=self.output
        ) as run:
            half = schedule.share(0.0, 2)
            strengths = strengths_by_gcv(run, self.measured.rows.n_examples, half, tell)
            schedule = schedule.share(time.monotonic() - start, 1)
            if self.validation is None and run.n_rounds < schedule.max_rounds:
                run.change(self.penalty(strengths))
                run.go(schedule)
                return strengths, run.result()
        return strengths, self.rounds(strengths, schedule)

    def was_too_short(self, warm: Warm) -> bool:
        """Whether rounds began anew because there might not be as many as the path had, and now there may.

        Then all begins anew, so that several fits lead to where one does.
        """
        n_path, n_done = warm.strengths.n_rounds, len(warm.progress.voter)
        return self.validation is None and n_done <= n_path < self.options.schedule.max_rounds and n_path > 0

    def reg_lambda(self) -> float:
        options, moments = self.options, self.measured.moments
        if options.reg_lambda == "theory":
            return _theory_lambda(self.problem, self.measured, options, self.output)
        if options.reg_lambda != "auto":
            return float(options.reg_lambda)
        target_scale = float(np.sqrt(moments.target_risk(options.fit_intercept)[self.output]))
        n_examples = self.measured.rows.n_examples
        return auto_lambda(options.penalty, options.mode, n_examples, target_scale, moments.n_voters)


def _theory_lambda(problem: Problem, measured: Measured, options: Options, output: int) -> float:
    """What the risk bound wants; under l2 that depends on the weights it leads to."""
    from ..bounds import rademacher_complexity, theory_lambda

    def weights_under(reg_lambda: float) -> np.ndarray:
        penalty = problem.limited(make_penalty(options.penalty, reg_lambda), measured.voters, output)
        schedule = replace(options.schedule, callback=None)
        return run_rounds(
            measured.moments, penalty, schedule, mode=options.mode, fit_intercept=options.fit_intercept, output=output
        ).weight

    categorical = sorted(problem.schema.categories)
    complexity = rademacher_complexity(measured.rows.X, categorical_features=categorical, n_jobs=options.n_threads)
    return theory_lambda(options.penalty, complexity.value, weights_under)


def importance_of(voters: Voters, moments: Moments, weight: np.ndarray) -> np.ndarray:
    """How much each feature moves the scores: the standard deviation of what it adds, as a share of their sum."""
    assert isinstance(moments.sums, ColumnSums)
    spread = np.zeros(voters.n_columns)
    active = np.flatnonzero(weight.any(axis=1))
    for column in np.unique(voters.locate(active)[0]).tolist():
        values = voters.step_values(column, weight)
        share = (moments.sums.mass_of(column) / moments.total_weight)[:, None]
        variance = (share * values * values).sum(axis=0) - (share * values).sum(axis=0) ** 2
        spread[column] = np.sqrt(np.maximum(variance, 0.0)).sum()
    return spread / spread.sum() if spread.any() else spread
