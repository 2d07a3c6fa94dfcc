"""What a fit is told, the rows that it has measured, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..boosting.losses import Loss, make_loss
from ..boosting.penalties import make_penalty
from ..boosting.records import Progress
from ..boosting.result import Boosted
from ..boosting.reweight import MOST_TOGETHER
from ..boosting.rounds import MODES
from ..boosting.schedule import Schedule
from ..boosting.strength import Strengths
from ..common.checks import at_least, one_of, positive
from ..common.names import LOSSES
from ..common.threads import threads_for
from ..data.exact import exact_mean
from ..moments.moments import Moments, column_moments
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from ..voters.thresholds import check_thresholds
from .growth import Grown, Growth, grow_trees
from .passes import Coded, Training
from .problem import Problem, Rows
from .ridge import CodedProducts, Products

NO_TREES = Growth()
MOST_CODES = 1 << 26  # of stumps whose weights are solved for at once


@dataclass(frozen=True)
class Options:
    """What a fit can be told; see `boost` and `candidate_voters`."""

    penalty: str | None
    reg_lambda: float | str
    alpha_max: float | str
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
    warm_start: bool = False
    callbacks: Any = None
    max_voters: int | None = None

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
        if isinstance(self.alpha_max, str):
            one_of("alpha_max", self.alpha_max, ("auto",))
        if not isinstance(self.strength, str):
            make_penalty(self.penalty, self.strength, self.strength)
        make_penalty(self.penalty)
        one_of("mode", self.mode, MODES)
        one_of(
            "fit_intercept",
            bool(self.fit_intercept) if self.fit_intercept in (0, 1) else self.fit_intercept,
            (True, False),
        )
        check_thresholds(self.thresholds, self.spacing)
        at_least("cache_bytes", self.cache_bytes, 1)
        if self.max_voters is not None:
            at_least("max_voters", self.max_voters, 1)
            if self.penalty != "l1" or self.mode != "corrective" or self.warm_start:
                raise ValueError(
                    f"max_voters={self.max_voters} is for penalty='l1' in mode='corrective' and without a warm start; "
                    "leave these as they are, or leave max_voters out"
                )

    def _check_loss(self) -> None:
        if self.mode != "corrective" and not self.growth.n_trees:
            raise ValueError(
                f"mode={self.mode!r} is for loss='squared' or trees; with loss={self.loss!r} use mode='corrective', or "
                "trees of two leaves: n_trees=300, max_leaves=2"
            )
        if self.reg_lambda == "theory":
            raise ValueError(
                f"reg_lambda='theory' is for loss='squared', not for {self.loss!r}; use 'auto' or a number"
            )
        quantile: Any = self.quantile  # whatever was given
        if not (isinstance(quantile, Real) and 0 < float(quantile) < 1):
            raise ValueError(f"quantile={self.quantile!r} must lie between 0 and 1, such as 0.9")
        if self.huber_width != "auto":
            positive("huber_width", self.huber_width)

    @property
    def strength(self) -> float | str:
        """What was given for the strength of the penalty."""
        return self.alpha_max if self.penalty == "linf" else self.reg_lambda

    def with_strength(self, strength: float) -> Options:
        return replace(self, alpha_max=strength) if self.penalty == "linf" else replace(self, reg_lambda=strength)

    @property
    def follows_path(self) -> bool:
        """Whether the strength is chosen along a path."""
        return self.reg_lambda == "auto" and self.penalty == "l1" and self.mode == "corrective"

    @property
    def asks_for_rounds(self) -> bool:
        """Whether rounds themselves are wanted, not only where they lead."""
        schedule, usual = self.schedule, Schedule()
        is_usual = schedule.max_rounds >= usual.max_rounds and schedule.reweight_every == usual.reweight_every
        return bool(self.warm_start or self.callbacks or not is_usual)


@dataclass(frozen=True)
class Measured:
    """Rows that are summed: the voters that they were coded by, and their moments; and how trees were grown, if any."""

    rows: Rows
    voters: Voters
    codes: np.ndarray
    moments: Moments
    grown: Grown | None = None
    can_solve: ClassVar[bool] = True  # for all weights at once: there are rows

    @property
    def n_threads(self) -> int:
        return threads_for(self.codes.size, self.moments.n_threads)

    def scored(self, weight: np.ndarray, intercept: np.ndarray) -> Callable[..., Any]:
        """Someone who puts questions to the rows and their scores under these weights, and adds up the answers."""
        scores = self.voters.scores(self.codes, weight, intercept, self.n_threads)
        return lambda question, add: question(scores, self.rows)

    def ask_values(self, question: Callable[..., Any]) -> Any:
        """Put a question about values of the rows, and their weights."""
        assert isinstance(self.moments.sums, ColumnSums)
        weight = self.rows.weight
        return question(self.rows.matrix(), None if weight is None else self.moments.sums.scales.extent.round(weight))

    def products(self, fit_intercept: bool) -> tuple[Products, Any]:
        """For solving all weights at once; and the targets."""
        assert isinstance(self.moments.sums, ColumnSums)
        weight, sums = self.rows.weight, self.moments.sums
        return CodedProducts(self.codes, weight, sums, fit_intercept, self.n_threads), self.rows.y

    def coded(self, problem: Problem, options: Options, suffix: str = "") -> tuple[Training, Loss]:
        """Rows as passes need them, and the loss for them; `suffix` is for the errors."""
        check_targets(options.loss, problem.targets(self.rows, options.loss), f"y{suffix}")
        loss, y = loss_of(problem, self.rows, options)
        # Passes begin near their ends: within bounds rounds are there sooner than turns have found who is at a bound.
        at_once = solves_at_once(self, options) and problem.signs is None
        fit_intercept = bool(options.fit_intercept)
        return Coded(self.voters, self.codes, y, self.rows.weight, self.moments, fit_intercept, at_once), loss

    @classmethod
    def of(
        cls, problem: Problem, rows: Rows, options: Options, voters: Voters | None = None, *,
        grow_on: Voters | None = None, tell: Callable[[], None] = lambda: None,
    ) -> Measured:  # fmt: skip
        """Code and sum rows, by given voters or by those that the rows themselves suggest.

        `grow_on` are stumps to grow trees on; `tell` is called after each tree.
        """
        n_threads, grown = threads_for(rows.X.size, options.n_threads), None
        if voters is None:
            voters = grow_on or problem.voters(rows, options.thresholds, options.spacing, n_threads)
            codes = rows.code(voters, n_threads)
            if options.growth.n_trees:
                grown = grow_for(problem, rows, voters, codes, options, tell)
                voters = voters.with_trees(grown.trees)
                codes = voters.code_trees(codes, n_threads)
        else:
            codes = rows.code(voters, n_threads)
        moments = column_moments(
            voters, codes, rows.y, rows.weight, cache_bytes=options.cache_bytes, n_threads=n_threads
        )
        return cls(rows, voters, codes, moments, grown)


def solves_at_once(measured: Measured, options: Options) -> bool:
    """Whether all weights are solved for at once, under l2: those of rules, or of many stumps."""
    if measured.voters.trees:
        return options.penalty == "l2" and options.mode == "corrective"
    voters, n_examples = measured.voters, measured.rows.n_examples
    return measured.can_solve and many_at_once(options, voters.n_voters, n_examples, voters.n_features)


def many_at_once(options: Options, n_voters: float, n_examples: float, n_features: int) -> bool:
    """The same of stumps: all have a weight in the end, and of more than are re-weighted together rounds take long.

    Who asks for rounds has them, and so has a table so large that its codes should stay where they are.
    """
    is_ridge = options.penalty == "l2" and options.mode == "corrective" and options.reg_lambda != 0
    are_few = n_examples < n_voters or n_examples * n_features <= MOST_CODES
    return is_ridge and are_few and n_voters > MOST_TOGETHER and not options.asks_for_rounds


def check_targets(loss: str, y: np.ndarray, name: str = "y") -> None:
    """Refuse targets that a loss cannot be for."""
    if loss == "poisson" and y.min() < 0:
        raise ValueError(f"{name} holds {y.min():g}; loss='poisson' is for counts, which are not negative")
    if loss == "poisson" and not name.endswith("_val") and not (y.max(axis=0) > 0).all():
        raise ValueError(f"{name} holds only zeros; loss='poisson' needs a positive count")


def loss_of(problem: Problem, rows: Rows, options: Options) -> tuple[Loss, np.ndarray]:
    """The loss of a fit, and the targets as it wants them."""
    y = problem.targets(rows, options.loss)
    mean = np.array([exact_mean(target, rows.weight) for target in y.T])
    loss = make_loss(options.loss, y, rows.weight, mean, quantile=options.quantile, huber_width=options.huber_width)
    return loss, y


def grow_for(
    problem: Problem, rows: Rows, voters: Voters, codes: np.ndarray, options: Options,
    tell: Callable[[], None] = lambda: None,
) -> Grown:  # fmt: skip
    """Grow trees to the loss of a fit, in at most half of its time."""
    options, growth = to_grow(problem, options)
    check_targets(options.loss, problem.targets(rows, options.loss))
    loss, y = loss_of(problem, rows, options)
    return grow_trees(
        voters, codes, y, rows.weight, loss, growth, bool(options.fit_intercept), tell,
        repeats=rows.repeats, max_seconds=options.schedule.share(0.0, 2).max_seconds,
    )  # fmt: skip


def to_grow(problem: Problem, options: Options) -> tuple[Options, Growth]:
    """Options whose loss trees are grown to, and how.

    Many classes are told apart better by trees that were grown to their log-likelihood, also under the squared loss.
    """
    growth, meetings = options.growth, problem.meetings
    most = min((limit for limit in (growth.max_conditions, meetings.most) if limit is not None), default=None)
    growth = replace(
        growth, max_conditions=most, groups=meetings.groups, signs=problem.signs, keeps_steps=options.mode == "forward"
    )
    are_many = problem.classes is not None and not problem.one_output
    if are_many and options.loss == "squared" and options.mode == "corrective":
        options = replace(options, loss="logistic", penalty=None, reg_lambda=0.0, max_voters=None)
    return options, growth


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
        return [strength.chosen for strength in self.strengths]

    @property
    def warm(self) -> list[Warm]:
        """For a later fit that goes on."""
        each = zip(self.strengths, self.boosted, strict=True)
        return [Warm(strength, result.progress) for strength, result in each if result.progress is not None]
