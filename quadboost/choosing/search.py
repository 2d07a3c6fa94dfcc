"""Choosing a penalty, its strength and the number of rounds by cross-validation.

All candidates of a split share its Gram columns (folds.py). One run of rounds gives every number of rounds, and the
moments of the rows held out give the risk there, exactly, after each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Integral
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..boosting.limits import Limits, limited
from ..boosting.penalties import Penalty, make_penalty
from ..boosting.records import Trace
from ..boosting.result import Boosted
from ..boosting.rounds import LEAST_ETA, Run, open_run
from ..common.checks import at_least, positive
from ..common.threads import in_threads
from ..fitting.measured import Options
from ..fitting.problem import Problem
from ..moments.moments import Moments
from ..voters.columns import Voters
from .folds import Fold, Folds

# The weakest strength of a grid as a share of the strongest: from no voters at all to more than is good.
REACH = {"l1": 1e-4, "l2": 1e-6, "linf": 1e-3}
VOTERS_AT_A_TIME = 10_000_000  # rated between two looks whether all is to stop
FIRST_LOOK = 50  # rounds before the first look at the rows held out; each further look is after twice as many
HOPELESS, LOST = 1.05, 1.5  # times the least risk there: a run is past its best; so much so that no other score helps
SAME_SCORE = 1e-12  # scores that differ by less, relatively, differ by rounding


class Candidate(NamedTuple):
    """A penalty and its strength: reg_lambda, or alpha_max under linf; NaN where there is none. And how many trees."""

    penalty: str | None
    strength: float
    n_trees: int = 0

    def make(self, limits: Limits | None = None) -> Penalty:
        return limited(make_penalty(self.penalty, self.strength, self.strength), limits)

    @property
    def parameters(self) -> dict[str, Any]:
        """The strength, as a parameter of a fit."""
        if self.penalty is None:
            return {}
        return {"alpha_max" if self.penalty == "linf" else "reg_lambda": self.strength}

    @property
    def reg_lambda(self) -> float:
        return self.strength if self.penalty in ("l1", "l2") else np.nan

    @property
    def alpha_max(self) -> float:
        return self.strength if self.penalty == "linf" else np.nan


# Scores an ensemble, given by the weights and intercept of each output, on the rows held out.
Judge = Callable[[Fold, Sequence[Boosted]], float]


def check_strengths(name: str, asked: Any) -> None:
    """Strengths are a list of positive numbers, or how many to take."""
    if isinstance(asked, Integral):
        at_least(name, asked, 2)
    elif not isinstance(asked, Sequence | np.ndarray) or isinstance(asked, str) or len(asked) == 0:
        raise ValueError(f"{name}={asked!r} must be a list of values, or a whole number: how many to try")
    else:
        for value in asked:
            positive(f"a value of {name}", value)


def strengths_of(
    name: str, asked: int | Sequence[float], moments: Moments, fit_intercept: bool, reach: Mapping[str, float] = REACH,
    limits: Sequence[Limits | None] | None = None,
) -> np.ndarray:  # fmt: skip
    """The strengths of a penalty to try, strongest first: those given, or so many below the largest useful one.

    The limits are those of each output.
    """
    if isinstance(asked, Integral):
        edge, eta = moments.centred(fit_intercept)
        usable = eta > LEAST_ETA * moments.eta
        within = [None if limit is None else limit.take(usable) for limit in limits or [None] * edge.shape[1]]
        penalties = [Candidate(name, 1.0).make(limit) for limit in within]
        each = zip(penalties, edge.T, strict=True)
        largest = max(penalty.largest(edges[usable], eta[usable]) for penalty, edges in each) or 1.0
        values = largest * np.geomspace(1.0, reach[name], int(asked))
    else:
        values = np.unique(np.asarray(asked, dtype=np.float64))[::-1]
    return values[::-1] if name == "linf" else values


class Learnt(NamedTuple):
    """What a candidate learnt on the training rows of one split: a run of each output."""

    voters: Voters
    traces: list[Trace]

    def weights_at(self, rounds: int) -> np.ndarray:
        """Of shape (K, n_outputs), after so many rounds."""
        return np.column_stack(
            [trace.weights_at(min(rounds, len(trace.voter)), self.voters.n_voters) for trace in self.traces]
        )


@dataclass(frozen=True)
class Table:
    """Scores of every candidate after every number of rounds: a row each, the strongest and shortest first."""

    candidates: Sequence[Candidate]
    candidate: np.ndarray  # (rows,) its number
    rounds: np.ndarray  # (rows,)
    score: np.ndarray  # (rows, n_splits)
    learnt: Mapping[tuple[int, int], Learnt] = field(default_factory=dict)  # by candidate and split; of rounds alone

    @property
    def mean(self) -> np.ndarray:
        return self.score.mean(axis=1)

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of the mean; NaN for a single split."""
        n_splits = self.score.shape[1]
        if n_splits == 1:
            return np.full(len(self.score), np.nan)
        return self.score.std(axis=1, ddof=1) / np.sqrt(n_splits)

    def joined(self, other: Table) -> Table:
        """Both, one after the other."""
        return Table(
            [*self.candidates, *other.candidates],
            np.concatenate([self.candidate, other.candidate + len(self.candidates)]),
            np.concatenate([self.rounds, other.rounds]),
            np.concatenate([self.score, other.score]),
            {**self.learnt, **{(c + len(self.candidates), k): runs for (c, k), runs in other.learnt.items()}},
        )

    def choose(self, *, greater_is_better: bool, one_standard_error: bool) -> int:
        """The row with the best mean; the first of equal ones.

        With `one_standard_error`, the first row of the same penalty whose mean is at most one standard error
        (of the best row) worse: the strongest penalty that cannot be told from the best.
        """
        loss = -self.mean if greater_is_better else self.mean
        loss = np.where(np.isnan(loss), np.inf, loss)
        least = loss.min()
        if not np.isfinite(least):
            raise ValueError("no candidate has a score that is a number; look at what the scorer returns")
        best = int(np.argmax(loss <= least + SAME_SCORE * max(1.0, abs(least))))
        if not one_standard_error or self.score.shape[1] == 1:
            return best
        penalty = np.array([candidate.penalty for candidate in self.candidates])[self.candidate]
        near = (loss <= loss[best] + self.standard_error[best]) & (penalty == penalty[best])
        return int(np.argmax(near))


def cross_validate(
    folds: Folds,
    candidates: Sequence[Candidate],
    rounds: np.ndarray | None = None,
    judge: Judge | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Table:
    """Score candidates on the rows that each split holds out.

    Parameters
    ----------
    folds : Folds
    candidates : sequence of Candidate
        The strongest of a penalty first.
    rounds : ascending int array, optional
        Numbers of rounds; None: every one, up to the longest run of a candidate.
    judge : callable, optional
        None: the mean of the outputs' risks.
    tell : callable
        Called after each run.
    """
    curves: list[list[np.ndarray]] = [[np.empty(0)] * len(folds.splits) for _ in candidates]
    learnt: dict[tuple[int, int], Learnt] = {}
    stop = Event()

    def work(task: tuple[int, Iterator[int]]) -> None:
        number, some = task
        fold = None
        for c in some:
            fold = fold or folds.make(number)
            hopeless = HOPELESS if judge is None else LOST
            followed = _follow(folds.problem, fold, candidates[c], folds.options, rounds, hopeless, stop)
            if stop.is_set():
                return
            learnt[c, number] = Learnt(fold.voters, [replace(run.trace(), centre=np.empty(0)) for run, _ in followed])
            longest = max(len(risk) - 1 for _, risk in followed)
            wanted = np.arange(1, max(1, longest) + 1) if rounds is None else rounds
            if judge is None:
                risks = [risk[np.minimum(wanted, len(risk) - 1)] for _, risk in followed]
                curves[c][number] = np.mean(risks, axis=0)
            else:
                after, stage_of = np.unique(np.minimum(wanted, longest), return_inverse=True)
                stages = zip(*(_stages(fold, run.result(), after.tolist()) for run, _ in followed), strict=True)
                judged = [judge(fold, stage) for stage in stages if not stop.is_set()]
                if stop.is_set():
                    return
                is_known = ~np.any([np.isnan(risk[np.minimum(wanted, len(risk) - 1)]) for _, risk in followed], axis=0)
                curves[c][number] = np.where(is_known, np.array(judged)[stage_of], np.nan)
            tell()

    in_threads(work, _tasks(len(folds.splits), len(candidates), folds.n_workers), folds.n_workers, stop.set)
    lengths = [max(len(curve) for curve in group) for group in curves]
    return Table(
        candidates,
        candidate=np.repeat(np.arange(len(candidates)), lengths),
        rounds=np.concatenate([np.arange(1, n + 1) if rounds is None else rounds for n in lengths]),
        score=np.concatenate([_same_length(group, n) for group, n in zip(curves, lengths, strict=True)]),
        learnt=learnt,
    )


def _tasks(n_splits: int, n_candidates: int, n_workers: int) -> list[tuple[int, Iterator[int]]]:
    """Splits, and the candidates to try there, for workers to take in this order.

    The candidates of a split share its Gram columns. So they stay together, but on the last splits if there are fewer
    of these than workers: there several workers take one candidate after the other. Every other worker begins at the
    other end: splits share the columns of all rows, and would wait for the same ones at the same time.
    """
    n_left = n_splits % n_workers
    found = []
    for number in range(n_splits):
        waiting, is_whole = deque(range(n_candidates)), number < n_splits - n_left
        for worker in range(1 if is_whole else n_workers // n_left):
            found.append((number, _taken(waiting, (number if is_whole else worker) % 2 == 1)))
    return found


def _taken(waiting: deque[int], from_end: bool) -> Iterator[int]:
    """The candidates that no other worker has taken."""
    while waiting:
        with suppress(IndexError):  # another worker took the last one
            yield waiting.pop() if from_end else waiting.popleft()


def _same_length(curves: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Put curves side by side; extend a shorter one by its last value."""
    return np.column_stack([np.pad(curve, (0, length - len(curve)), mode="edge") for curve in curves])


def _follow(
    problem: Problem, fold: Fold, candidate: Candidate, options: Options, rounds: np.ndarray | None, hopeless: float,
    stop: Event,
) -> list[tuple[Run, np.ndarray]]:  # fmt: skip
    """One run of rounds per output, with its risk on the rows held out, before the first round and after each.

    A run whose risk there is `hopeless` times the least is given up: what it learns since then is noise. What it would
    have come to is not known (NaN), so that no more rounds can be chosen.
    """
    most = options.schedule.max_rounds if rounds is None else int(rounds[-1])
    schedule = replace(
        options.schedule,
        callback=lambda *_: stop.is_set(),
        callback_every=max(1, VOTERS_AT_A_TIME // max(1, fold.train.n_voters)),
    )
    found = []
    for output in range(fold.train.n_outputs):
        penalty = candidate.make(problem.limits(fold.voters, fold.train, output, candidate.penalty))
        with open_run(
            fold.train, penalty, mode=options.mode, fit_intercept=options.fit_intercept, output=output
        ) as run:
            held_out, until = _HeldOut(fold, run), 0
            while run.n_rounds == until < most and held_out.risk[-1] <= hopeless * held_out.risk.min():
                until = min(most, max(FIRST_LOOK, 2 * until))
                run.go(replace(schedule, max_rounds=until))
                held_out.follow(run)
            is_given_up = run.n_rounds == until < most
            found.append((run, np.append(held_out.risk, np.nan) if is_given_up else held_out.risk))
    return found


class _HeldOut:
    """The risk of a run on the rows held out, before the first round and after each, followed as the run goes on."""

    def __init__(self, fold: Fold, run: Run) -> None:
        held_out, output = fold.held_out, run.output
        self.moments, self.centre = held_out, run.centre
        self.mean = held_out.voter_sum / held_out.total_weight
        intercept = run.first_intercept - float(held_out.origin[output])
        self.first_edge = held_out.product_sum[:, output] / held_out.total_weight - intercept * self.mean
        first_risk = risk_of_constants(held_out, np.full(held_out.n_outputs, run.first_intercept))[output]
        residual_mean = held_out.target_sum[output] / held_out.total_weight - intercept
        n_voters = len(self.mean)
        self.position, self.drawn, self.weight = np.full(n_voters, -1), np.empty(n_voters, np.int64), np.empty(n_voters)
        self.state = np.array([first_risk, residual_mean, 0.0, 0.0])
        self.risk, self.n_followed = np.array([first_risk]), 0

    def follow(self, run: Run) -> None:
        """What the run did since the last time."""
        voter, new_weight, end = run.trace().updates()
        risk, done = np.empty(len(voter)), self.n_followed
        with self.moments.gram.lease() as columns:
            while done < len(voter):
                columns.fetch(int(voter[done]))
                done = _core.follow_risk(
                    voter, new_weight, done, columns.store, self.moments.total_weight, self.first_edge, self.mean,
                    self.moments.eta, self.centre, self.position, self.drawn, self.weight, self.state, risk,
                )  # fmt: skip
        self.risk, self.n_followed = np.append(self.risk, risk[end[len(self.risk) - 1 :] - 1]), done


def _stages(fold: Fold, run: Boosted, rounds: Sequence[int]) -> Iterator[Boosted]:
    """The run cut off after each number of rounds: weights and intercept only."""
    trace = run.trace
    for weight in trace.weights_along(np.minimum(rounds, run.n_rounds).tolist(), fold.train.n_voters):
        yield replace(run, weight=weight, intercept=trace.intercept_at(weight))


def risk_of_constants(moments: Moments, score: np.ndarray) -> np.ndarray:
    """The risk of each output where every row has the same score."""
    score = score - moments.origin
    mean, square = moments.target_sum / moments.total_weight, moments.target_square / moments.total_weight
    return np.maximum(0.0, square - score * (2.0 * mean - score))
