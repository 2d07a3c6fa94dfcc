"""A fit: rows in, voters and their weights out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._core import dot
from ..boosting.losses import LOSSES, Loss, make_loss
from ..boosting.penalties import L1, Penalty, auto_lambda, make_penalty
from ..boosting.records import Progress, Trace
from ..boosting.result import Boosted
from ..boosting.rounds import MODES, open_run, run_rounds
from ..boosting.schedule import Schedule
from ..boosting.strength import Strengths, strengths_by_gcv
from ..common.checks import at_least, one_of, positive
from ..common.threads import threads_for
from ..data.exact import exact_mean
from ..moments.moments import Moments, column_moments
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from ..voters.rules import sides
from ..voters.thresholds import check_thresholds
from .growth import Grown, Growth, grow_trees
from .problem import Problem, Rows
from .ridge import Products, solve_ridge

NO_TREES = Growth()
LEAST_R2, MOST_R2 = 0.02, 0.99  # that a strength is chosen by
LEAST_RIDGE = 1e-12


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
    growth: Growth = NO_TREES

    def __post_init__(self) -> None:
        one_of("loss", self.loss, LOSSES)
        if self.reg_lambda == "theory" and self.growth.n_trees:
            raise ValueError("reg_lambda='theory' is for stumps, not for rules; use 'auto' or a number")
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
        if self.mode != "corrective" and not self.growth.n_trees:
            raise ValueError(
                f"mode={self.mode!r} is for loss='squared' or trees; with loss={self.loss!r} use mode='corrective'"
            )
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
    """Rows that are summed: the voters that they were coded by, and their moments; and how trees were grown, if any."""

    rows: Rows
    voters: Voters
    codes: np.ndarray
    moments: Moments
    grown: Grown | None = None

    @property
    def n_threads(self) -> int:
        return threads_for(self.codes.size, self.moments.n_threads)

    @classmethod
    def of(
        cls, problem: Problem, rows: Rows, options: Options, voters: Voters | None = None, *,
        grow_on: Voters | None = None,
    ) -> Measured:  # fmt: skip
        """Code and sum rows, by given voters or by those that the rows themselves suggest.

        `grow_on` are stumps to grow trees on.
        """
        n_threads, grown = threads_for(rows.X.size, options.n_threads), None
        if voters is None:
            voters = grow_on or problem.voters(rows, options.thresholds, options.spacing, n_threads)
            codes = voters.code(rows.X, n_threads)
            if options.growth.n_trees:
                grown = grow_for(problem, rows, voters, codes, options)
                voters = voters.with_trees(grown.trees)
                codes = voters.code_trees(codes, n_threads)
        else:
            codes = voters.code(rows.X, n_threads)
        moments = column_moments(
            voters, codes, rows.y, rows.weight, cache_bytes=options.cache_bytes, n_threads=n_threads
        )
        return cls(rows, voters, codes, moments, grown)


def loss_of(problem: Problem, rows: Rows, options: Options) -> tuple[Loss, np.ndarray]:
    """The loss of a fit, and the targets as it wants them."""
    y = problem.targets(rows, options.loss)
    mean = np.array([exact_mean(target, rows.weight) for target in y.T])
    loss = make_loss(options.loss, y, rows.weight, mean, quantile=options.quantile, huber_width=options.huber_width)
    return loss, y


def grow_for(problem: Problem, rows: Rows, voters: Voters, codes: np.ndarray, options: Options) -> Grown:
    """Grow trees to the loss of a fit.

    Many classes are told apart better by trees that were grown to their log-likelihood, also under the squared loss.
    """
    if options.mode == "forward" and problem.signs is not None:
        raise ValueError(
            "mode='forward' takes trees as they were grown, and monotonic_cst is on the weights that rules are given "
            "after that; use mode='corrective', or n_trees=0"
        )
    if (
        options.loss == "squared"
        and options.mode == "corrective"
        and problem.classes is not None
        and not problem.one_output
    ):
        loss, y = loss_of(problem, rows, replace(options, loss="logistic", penalty=None, reg_lambda=0.0))
    else:
        loss, y = loss_of(problem, rows, options)
    growth, meetings = options.growth, problem.meetings
    most = min((own for own in (growth.max_conditions, meetings.most) if own is not None), default=None)
    growth = replace(growth, max_conditions=most, groups=meetings.groups)
    return grow_trees(voters, codes, y, rows.weight, loss, growth, bool(options.fit_intercept))


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
    problem: Problem, measured: Measured, options: Options, *, validation: Measured | None = None,
    warm: list[Warm] | None = None, tell: Callable[[], None] = lambda: None,
) -> Trained:  # fmt: skip
    """Fit one ensemble per output; all outputs share the voters and their Gram columns.

    `warm` is where an earlier fit stood. `tell` is called after each strength that is tried.
    """
    if options.mode == "forward" and measured.grown is not None:
        return train_as_grown(problem, measured, options, validation)
    if solves_at_once(problem, measured, options):
        return train_ridge(problem, measured, options, validation)
    start, boosted, strengths = time.monotonic(), [], []
    n_outputs = measured.moments.n_outputs
    for output in range(n_outputs):
        fit = _Fit(problem, measured, options, output, None if validation is None else validation.moments)
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
            strengths = strengths_by_gcv(
                run, self.measured.rows.n_examples, half, tell, bool(self.measured.voters.trees)
            )
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
        if options.penalty == "l2" and self.measured.grown is not None:
            return ridge_strength(self.measured, options)
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


def solves_at_once(problem: Problem, measured: Measured, options: Options) -> bool:
    """Whether all weights are solved for at once: under l2, of rules, where nothing else is asked of them."""
    return (
        options.penalty == "l2"
        and options.mode == "corrective"
        and bool(measured.voters.trees)
        and problem.signs is None
    )


def ridge_strength(measured: Measured, options: Options) -> float:
    """The strength of an l2 penalty on rules, in the units of the risk.

    Were weights drawn at random, so that scores vary by as much as they explain, the best ridge would be the variance
    of what is left over that of a weight: trace(G) / m * (1 - r2) / r2, with G the Gram matrix of centred voters.
    """
    if options.reg_lambda != "auto":
        return float(options.reg_lambda)
    assert measured.grown is not None
    r2 = min(max(measured.grown.r2, LEAST_R2), MOST_R2)
    eta = measured.moments.centred(bool(options.fit_intercept))[1]
    return math.fsum(np.maximum(eta, 0.0)) / measured.rows.n_examples * (1.0 - r2) / r2


def train_ridge(
    problem: Problem, measured: Measured, options: Options, validation: Measured | None, start: np.ndarray | None = None
) -> Trained:
    """Fit rules and stumps under l2, all weights at once; `start` are weights (K, n_outputs) to begin with."""
    moments, schedule, y = measured.moments, options.schedule, measured.rows.y
    strength, first_risk = ridge_strength(measured, options), moments.target_risk(bool(options.fit_intercept))
    assert isinstance(moments.sums, ColumnSums)
    rows = Products(
        measured.voters,
        measured.codes,
        measured.rows.weight,
        moments.sums,
        bool(options.fit_intercept),
        measured.n_threads,
    )
    watch = _Watch(schedule, validation, moments.target_mean if options.fit_intercept else np.zeros(y.shape[1]), rows)
    ridge = np.full((y.shape[1], moments.n_voters), max(strength, LEAST_RIDGE))
    begin = None if start is None else np.ascontiguousarray(start.T)
    solved = solve_ridge(rows, y, ridge, first_risk, schedule.tol, schedule.max_rounds, begin, watch)
    if watch.best is not None:  # by the validation rows
        solved = rows.solved(watch.best, y, ridge, first_risk, schedule.tol, solved.history)
    boosted = []
    for output in range(y.shape[1]):
        history = {"objective": np.array([own[output] for own in solved.history])}
        if watch.risks:
            history["validation_risk"] = np.array([own[output] for own in watch.risks])
        boosted.append(
            _plain_result(
                solved.weight[:, output], solved.intercept[output], solved.edge[:, output], solved.risk[output],
                first_risk[output], history, watch.n_best or len(solved.history),
                watch.reason or ("converged" if solved.converged else "max_rounds"),
                objective=float(solved.risk[output] + strength * (solved.weight[:, output] ** 2).sum()),
                dual_gap=float(solved.gap[output]),
                violation=float(np.abs(solved.edge[:, output] - strength * solved.weight[:, output]).max(initial=0.0)),
            )
        )  # fmt: skip
    stages = [(solved.weight, solved.intercept)]
    return Trained(measured.voters, boosted, [Strengths(strength)] * y.shape[1], None, stages)


class _Watch:
    """Looks at every iteration: tells the callback, keeps the best weights on the validation rows, says when to end."""

    def __init__(self, schedule: Schedule, validation: Measured | None, mean: np.ndarray, rows: Products) -> None:
        self.schedule, self.validation, self.mean, self.rows = schedule, validation, mean, rows
        self.start, self.reason = time.monotonic(), ""
        self.best: np.ndarray | None = None
        self.n_best = 0
        self.risks: list[np.ndarray] = []

    def __call__(self, iteration: int, objective: np.ndarray, weight: np.ndarray) -> bool:
        found = None
        if self.validation is not None:
            own = self.validation
            intercept = self.mean - np.array([dot(self.rows.centre, each) for each in weight])
            off = own.rows.y - own.voters.scores(own.codes, weight.T, intercept, own.n_threads)
            self.risks.append(np.array([exact_mean(each * each, own.rows.weight) for each in off.T]))
            found = float(self.risks[-1].sum())
            if found < min((float(risk.sum()) for risk in self.risks[:-1]), default=np.inf):
                self.best, self.n_best = weight.copy(), iteration
            elif iteration - self.n_best >= self.schedule.patience:
                self.reason = "patience"
        callback, every = self.schedule.callback, self.schedule.callback_every
        if callback is not None and iteration % every == 0 and callback(iteration, float(objective.mean()), found):
            self.reason = "callback"
        if self.schedule.max_seconds is not None and time.monotonic() - self.start > self.schedule.max_seconds:
            self.reason = "max_seconds"
        return bool(self.reason)


def train_as_grown(problem: Problem, measured: Measured, options: Options, validation: Measured | None) -> Trained:
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
    step = np.where(grown.trees.tree[:, None] < n_trees, grown.step, 0.0)
    weight = np.zeros((voters.n_voters, y.shape[1]))
    weight[voters.first_rule :] = step[~grown.trees.is_root] / 2.0
    # A leaf's voter is -1 in the other leaves: the constants that this leaves go into the intercept.
    intercept = grown.constant + np.array([math.fsum(own) / 2.0 for own in step.T])
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
    return Trained(voters, boosted, [Strengths(0.0)] * y.shape[1], link, [(weight, intercept)])


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
    trace = Trace(np.empty(0, np.int64), np.empty(0), [], float(intercept), {})
    objective = risk if objective is None else objective
    return Boosted(
        np.ascontiguousarray(weight), float(intercept), edge, float(risk), float(objective), float(first_risk), dual_gap,
        violation, n_rounds, history, reason, trace, None,
    )  # fmt: skip


def importance_of(voters: Voters, moments: Moments, weight: np.ndarray) -> np.ndarray:
    """How much each feature moves the scores: the standard deviation of what it adds, as a share of their sum.

    What a tree adds is shared by the features of its rules, by the size of their weights.
    """
    assert isinstance(moments.sums, ColumnSums)
    spread = np.zeros(voters.n_columns)
    for column, values in zip(*voters.values(weight), strict=True):
        share = (moments.sums.mass_of(column) / moments.total_weight)[:, None]
        variance = (share * values * values).sum(axis=0) - (share * values).sum(axis=0) ** 2
        spread[column] = np.sqrt(np.maximum(variance, 0.0)).sum()
    if voters.trees:
        spread = spread[: voters.n_features] + _share_of_features(voters, weight, spread[voters.n_features :])
    return spread / spread.sum() if spread.any() else spread


def _share_of_features(voters: Voters, weight: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """What trees add, given for each tree, by feature."""
    trees = voters.trees
    size = np.zeros(trees.n_nodes)
    size[~trees.is_root] = np.abs(weight[voters.first_rule :]).sum(axis=1)
    total = np.bincount(trees.tree, size, trees.n_trees)
    features = np.unique(trees.feature[~trees.is_leaf])
    asked = np.logical_or(*sides(trees, features))
    share = np.divide(
        size * spread[trees.tree], (total[trees.tree] * asked.sum(axis=1)), out=np.zeros(len(size)), where=size > 0
    )
    found = np.zeros(voters.n_features)
    found[features] = (asked * share[:, None]).sum(axis=0)
    return found
