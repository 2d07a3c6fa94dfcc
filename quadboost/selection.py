"""Choosing a penalty, its strength and the number of rounds by cross-validation, at the price of few fits.

Rows are coded once. The Gram columns of a split's training rows are those of all rows less those of the rows held
out, and all candidates of a split share them. One run of rounds gives every number of rounds, and the moments
of the rows held out give the risk there, exactly, after each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from threading import Event, Lock
from typing import Any, NamedTuple

import numpy as np

from .booster import LEAST_ETA, VALIDATION_RISK, Boosted, _Run
from .checks import at_least, positive
from .exact import rounded_weights
from .gram import GramCache, Known
from .moments import Moments, stump_moments
from .penalties import Penalty, make_penalty
from .stumps import Stumps, candidate_stumps
from .training import CELLS_FOR_THREADS, Options, Rows

# The weakest strength of a grid as a share of the strongest: from no voters at all to more than is good.
REACH = {"l1": 1e-4, "l2": 1e-6, "linf": 1e-3}
VOTERS_FOR_THREADS = 1_000_000  # rated in a run, below which a second thread costs more than it brings
SAME_SCORE = 1e-12  # scores that differ by less, relatively, differ by rounding


class Candidate(NamedTuple):
    """A penalty and its strength: reg_lambda, or alpha_max under linf; NaN where there is none."""

    penalty: str | None
    strength: float

    def make(self) -> Penalty:
        return make_penalty(self.penalty, self.strength, self.strength)

    @property
    def reg_lambda(self) -> float:
        return self.strength if self.penalty in ("l1", "l2") else np.nan

    @property
    def alpha_max(self) -> float:
        return self.strength if self.penalty == "linf" else np.nan


class Split(NamedTuple):
    """Numbers of the rows to train on and of those to judge by."""

    train: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True)
class Fold:
    """What the rounds need to know of one split."""

    stumps: Stumps
    train: Moments
    held_out: Moments
    rows: np.ndarray  # numbers of those held out


# Scores an ensemble, given by the weights and intercept of each output, on the rows held out.
Judge = Callable[[Fold, Sequence[Boosted]], float]


class Folds:
    """Moments of every split, made when asked for; several threads may ask."""

    def __init__(
        self,
        rows: Rows,
        splits: Sequence[Split],
        options: Options,
        *,
        n_levels: Mapping[int, int] | None = None,
        thresholds_per_fold: bool = False,
    ) -> None:
        # Weights are rounded once for all splits: Gram columns then subtract without a rounding error.
        self.rows = rows if rows.weight is None else replace(rows, weight=rounded_weights(rows.weight))
        self.splits = splits
        self.options = options
        self.n_levels = n_levels
        self.per_fold = thresholds_per_fold
        n_threads = options.n_threads if rows.X.size > CELLS_FOR_THREADS else 1
        self.stumps = self._candidates(rows.X, rows.weight, n_threads)
        self.codes = self.stumps.code(rows.X, n_threads)
        is_long = self.stumps.n_voters * options.schedule.max_rounds > VOTERS_FOR_THREADS
        self.n_workers = min(options.n_threads, len(splits)) if is_long else 1
        self.cache_bytes = options.cache_bytes // (4 * self.n_workers)  # two caches each, and as much for all rows
        self.lock = Lock()
        self.total = stump_moments(
            self.stumps, self.codes, rows.y, rows.weight, cache_bytes=options.cache_bytes // 2, n_threads=n_threads
        )

    def make(self, number: int) -> Fold:
        train_rows, held_out_rows = self.splits[number]
        if self.per_fold:
            X, weight = self.rows.X[train_rows], self.rows.weight
            stumps = self._candidates(X, None if weight is None else weight[train_rows], 1)
            train = self._moments(stumps, stumps.code(X), train_rows)
            held_out = self._moments(stumps, stumps.code(self.rows.X[held_out_rows]), held_out_rows)
            return Fold(stumps, train, held_out, held_out_rows)
        train = self._moments(self.stumps, self.codes[train_rows], train_rows)
        held_out = self._moments(self.stumps, self.codes[held_out_rows], held_out_rows)
        if _are_all(train_rows, held_out_rows, len(self.codes)):
            rest = _Rest(self.total.gram, held_out.gram, self.lock)
            train = replace(train, gram=GramCache(rest, self.cache_bytes))
        return Fold(self.stumps, train, held_out, held_out_rows)

    def _candidates(self, X: np.ndarray, weight: np.ndarray | None, n_threads: int) -> Stumps:
        return candidate_stumps(
            X, weight, thresholds=self.options.thresholds, spacing=self.options.spacing,
            n_levels=self.n_levels, n_threads=n_threads,
        )  # fmt: skip

    def _moments(self, stumps: Stumps, codes: np.ndarray, rows: np.ndarray) -> Moments:
        weight = None if self.rows.weight is None else self.rows.weight[rows]
        return stump_moments(stumps, codes, self.rows.y[rows], weight, cache_bytes=self.cache_bytes)


class _Rest:
    """Gram columns of all rows but some, where several threads share those of all rows."""

    def __init__(self, total: GramCache, part: GramCache, lock: Lock) -> None:
        self.total, self.part, self.lock = total, part, lock
        self.dtype = total.source.dtype
        self.n_voters = total.source.n_voters

    def make(self, voter: int, before: Known | None, after: Known | None) -> np.ndarray:
        with self.lock:
            column = self.total.column(voter)
        return column - self.part.column(voter)


def _are_all(train: np.ndarray, held_out: np.ndarray, n_rows: int) -> bool:
    """Whether every row is in one of the two, once."""
    return bool(np.all(np.bincount(np.concatenate([train, held_out]), minlength=n_rows) == 1))


def check_strengths(name: str, given: Any) -> None:
    """Strengths are a list of positive numbers, or how many to take."""
    if isinstance(given, Integral):
        at_least(name, given, 2)
    elif not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) == 0:
        raise ValueError(f"{name}={given!r} must be a list of values, or a whole number: how many to try")
    else:
        for value in given:
            positive(f"a value of {name}", value)


def strengths_of(
    name: str, given: int | Sequence[float], moments: Moments, fit_intercept: bool, reach: Mapping[str, float] = REACH
) -> np.ndarray:
    """The strengths of a penalty to try, strongest first: those given, or so many below the largest useful one."""
    if isinstance(given, Integral):
        eta, edge = moments.eta, moments.margin
        if fit_intercept:
            mean, target_mean = moments.voter_sum / moments.total_weight, moments.target_sum / moments.total_weight
            eta, edge = eta - mean * mean, moments.product_sum / moments.total_weight - np.outer(mean, target_mean)
        usable = eta > LEAST_ETA * moments.eta
        penalty = make_penalty(name, 1.0, 1.0)
        largest = max(penalty.largest(own[usable], eta[usable]) for own in edge.T) or 1.0
        values = largest * np.geomspace(1.0, reach[name], int(given))
    else:
        values = np.unique(np.asarray(given, dtype=np.float64))[::-1]
    return values[::-1] if name == "linf" else values


@dataclass(frozen=True)
class Table:
    """Scores of every candidate after every number of rounds: a row each, the strongest and shortest first."""

    candidates: Sequence[Candidate]
    candidate: np.ndarray  # (rows,) its number
    rounds: np.ndarray  # (rows,)
    score: np.ndarray  # (rows, n_splits)

    @property
    def mean(self) -> np.ndarray:
        return self.score.mean(axis=1)

    @property
    def standard_error(self) -> np.ndarray:
        """Of the mean; NaN for a single split."""
        n_splits = self.score.shape[1]
        if n_splits == 1:
            return np.full(len(self.score), np.nan)
        return self.score.std(axis=1, ddof=1) / np.sqrt(n_splits)

    def choose(self, *, greater_is_better: bool, one_standard_error: bool) -> int:
        """The row with the best mean, of equal ones the first.

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
    stop = Event()

    def work(number: int, chosen: Sequence[int]) -> None:
        fold = folds.make(number)
        for c in chosen:
            runs = _run(fold, candidates[c], folds.options, rounds, judge is None, stop)
            if stop.is_set():
                return
            longest = max(run.n_rounds for run in runs)
            wanted = np.arange(1, max(1, longest) + 1) if rounds is None else rounds
            if judge is None:
                curves[c][number] = np.mean([_risks(run)[np.minimum(wanted, run.n_rounds)] for run in runs], axis=0)
            else:
                after, place = np.unique(np.minimum(wanted, longest), return_inverse=True)
                stages = zip(*(_stages(run, after.tolist()) for run in runs), strict=True)
                curves[c][number] = np.array([judge(fold, stage) for stage in stages])[place]
            tell()

    tasks = _tasks(len(folds.splits), len(candidates), folds.n_workers)
    _spread([partial(work, number, chosen) for number, chosen in tasks], folds.n_workers, stop)
    lengths = [max(len(curve) for curve in own) for own in curves]
    return Table(
        candidates,
        candidate=np.repeat(np.arange(len(candidates)), lengths),
        rounds=np.concatenate([np.arange(1, n + 1) if rounds is None else rounds for n in lengths]),
        score=np.concatenate([_same_length(own, n) for own, n in zip(curves, lengths, strict=True)]),
    )


def _same_length(curves: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Curves side by side; one that ends early stays where it is."""
    return np.column_stack([np.pad(curve, (0, length - len(curve)), mode="edge") for curve in curves])


def _tasks(n_splits: int, n_candidates: int, n_workers: int) -> list[tuple[int, range]]:
    """A split and which candidates to try there; workers share the splits that are left over when all have as many."""
    left_over = n_splits % n_workers
    whole = [(number, range(n_candidates)) for number in range(n_splits - left_over)]
    shared = [
        (number, range(worker, n_candidates, n_workers))
        for number in range(n_splits - left_over, n_splits)
        for worker in range(min(n_workers, n_candidates))
    ]
    return whole + shared


def _spread(tasks: Sequence[Callable[[], None]], n_workers: int, stop: Event) -> None:
    """Do all tasks, by threads where there are several workers: rounds do not hold the interpreter's lock."""
    if n_workers == 1:
        for task in tasks:
            task()
        return
    with ThreadPoolExecutor(n_workers) as pool:
        try:
            for done in as_completed([pool.submit(task) for task in tasks]):
                done.result()
        except BaseException:  # also an interrupt must end the other threads
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run(
    fold: Fold, candidate: Candidate, options: Options, rounds: np.ndarray | None, with_risk: bool, stop: Event
) -> list[_Run]:
    """One run of rounds per output."""
    most = options.schedule.max_rounds if rounds is None else int(rounds[-1])
    between_looks = max(1, VOTERS_FOR_THREADS // max(1, fold.train.n_voters))
    schedule = replace(
        options.schedule,
        max_rounds=most,
        patience=most,
        callback=lambda *_: stop.is_set(),
        callback_every=between_looks,
    )
    runs = []
    for output in range(fold.train.n_outputs):
        held_out = fold.held_out if with_risk else None
        runs.append(_Run(fold.train, candidate.make(), options.mode, options.fit_intercept, held_out, output))
        runs[-1].go(schedule)
    return runs


def _risks(run: _Run) -> np.ndarray:
    """The risk on the rows held out, before the first round and after each."""
    assert run.validation is not None
    return np.append(run.validation.first_risk, run.log[: run.n_rounds, VALIDATION_RISK])


def _stages(run: _Run, rounds: Sequence[int]) -> Iterator[Boosted]:
    """The outcome as it would be after each number of rounds, as far as scores go."""
    last = run.result()
    for round in rounds:
        weight = last.trace.weights_at(min(round, run.n_rounds), len(run.weight))
        yield replace(last, weight=weight, intercept=run.first_intercept - float(run.centre @ weight))


def risk_of_constants(moments: Moments, score: np.ndarray) -> np.ndarray:
    """The risk of each output where every row has the same score."""
    score = score - moments.origin
    mean, square = moments.target_sum / moments.total_weight, moments.target_square / moments.total_weight
    return np.maximum(0.0, square - score * (2.0 * mean - score))
