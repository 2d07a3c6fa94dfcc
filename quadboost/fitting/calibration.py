"""From the scores of the squared loss to log-odds: a + b F, the likeliest of all such links.

A model knows its training rows too well: their scores lean towards their labels. Each row left out, its score would be
(F - h y) / (1 - h), where h is its leverage, on average the number of active voters over the number of examples. The
link is fitted to these scores: as good as scores of folds, at no cost, and the same for any order of rows. That is so
where voters are active or not, and where trees were grown, each on half of the rows: the others tell how much it knows.
Elsewhere (l2, linf, forward) small tables are divided into folds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .._core import solve
from ..boosting.result import Boosted
from ..data.exact import Extent, exact_means, square_sums, worth_of
from .measured import Measured, Options, Trained
from .problem import Problem, Rows
from .training import train

MOST_ROWS_FOR_FOLDS = 20_000  # beyond, training rows say the same
N_FOLDS = 5
CELLS = 4096  # of a histogram of scores: likelihood does not care about less
MOST_LEVERAGE = 0.9
MOST_INTERCEPTS = 40  # classes
MOST_STEPS = 100
MOST_LOSS = 1e3  # of a row: more says nothing more
NEAR = 1e-10  # a step that changes no figure by more is the last
FLATTEST = 1e-6  # slope of a link where scores say nothing of the labels, or the contrary: their order stays
CLEARLY = 12.0  # twice the gain in log-likelihood by which log-odds are a curve and no line
MOST_FOR_LABELS = 1.03  # times the loss of the likeliest line: what a line may cost that is right for labels
STEEPEST = 1e6  # slope of a link, in units of the spread of the scores: of data that can be told apart without an error


# Puts a question, a function of the scores of rows (m, n_outputs) and of the rows, to all parts; adds up the answers.
Ask: TypeAlias = Callable[[Callable[..., Any], Callable[[Any, Any], Any]], Any]


def calibrate(
    problem: Problem, measured: Measured, options: Options, trained: Trained, seconds_gone: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Intercept and slope of the link for each score of a classifier.

    Folds have the time that `seconds_gone` has left; where it is not enough, the training rows must do.
    """
    rows = measured.rows
    if measured.grown is None and divides(options, max(rows.n_rows, rows.n_examples)):  # a weight is a repetition
        options = replace(options, schedule=replace(options.schedule.share(seconds_gone, 1), callback=None))
        known, found = _scores_of_folds(problem, measured, options, trained)
        if (rows.y[known].max(axis=0, initial=-1.0) > rows.y[known].min(axis=0, initial=1.0)).all():
            scores, judged = found[known], rows.take(known)
            return fit_link(lambda question, add: question(scores, judged))
    return calibrate_at_once(measured, options, trained.boosted)


def calibrate_at_once(
    measured: Measured, options: Options, boosted: Sequence[Boosted]
) -> tuple[np.ndarray, np.ndarray]:
    """The same by the scores of the training rows alone."""
    weight = np.column_stack([result.weight for result in boosted])
    intercept = np.array([result.intercept for result in boosted])
    ask = measured.scored(weight, intercept)
    if measured.grown is not None:
        return fit_link(ask, _leverage_of_grown(measured, options, ask), may_bend=False)
    if _counts_voters(options):
        return fit_link(ask, (np.count_nonzero(weight, axis=0) + 1.0) / measured.rows.n_examples)
    return fit_link(ask)


def _leverage_of_grown(measured: Measured, options: Options, ask: Ask) -> np.ndarray:
    """How well a model of grown trees knows its training rows: their risk is (1 - h)^2 times that of other rows.

    What the latter is, growth tells: each tree was tried on rows that it was not grown on.
    """
    assert measured.grown is not None
    first = measured.moments.target_risk(bool(options.fit_intercept))
    risks = exact_means(lambda question, add: ask(partial(_of_squares, question), add))
    others = np.maximum(first * (1.0 - measured.grown.r2), np.finfo(float).tiny)
    return np.maximum(0.0, 1.0 - np.sqrt(risks / others))


def _of_squares(question: Callable[..., Any], scores: np.ndarray, rows: Rows) -> Any:
    return question((rows.y - scores) ** 2, rows.weight)


def divides(options: Options, n_rows: float) -> bool:
    """Whether `calibrate` divides rows into folds."""
    return options.loss == "squared" and not _counts_voters(options) and n_rows <= MOST_ROWS_FOR_FOLDS


def _counts_voters(options: Options) -> bool:
    """Whether the number of active voters tells how well a model knows its training rows."""
    return options.mode == "corrective" and options.penalty in ("l1", None)


def _scores_of_folds(
    problem: Problem, measured: Measured, options: Options, trained: Trained
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of rows by fits to the others, and which rows have one.

    Equal rows are in one fold: neither the order of rows nor their repetition changes anything.
    """
    codes = measured.codes.astype(np.uint64)
    factor = np.arange(1, 2 * codes.shape[1], 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (codes * factor).sum(axis=1)
    fold = ((mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(40)) % np.uint64(N_FOLDS)
    found, known, start = np.zeros(measured.rows.y.shape), np.zeros(len(fold), dtype=bool), time.monotonic()
    for number in range(N_FOLDS):
        held_out = fold == number
        rest = measured.rows.take(~held_out)
        if not held_out.any() or not len(rest.y) or (rest.y.max(axis=0) == rest.y.min(axis=0)).any():
            continue
        part = Measured.of(problem, rest, options, measured.voters)
        schedule = options.schedule.share(time.monotonic() - start, 1)
        its_options = replace(options.with_strength(trained.reg_lambda[0]), schedule=schedule)
        boosted = train(problem, part, its_options).boosted
        if any(result.stop_reason == "max_seconds" for result in boosted):
            return np.zeros(len(fold), dtype=bool), found
        known |= held_out
        found[held_out] = measured.voters.scores(
            measured.codes[held_out],
            np.column_stack([result.weight for result in boosted]),
            np.array([result.intercept for result in boosted]),
        )
    return known, found


def left_out(scores: np.ndarray, y: np.ndarray, leverage: np.ndarray | None) -> np.ndarray:
    """About what the scores of the rows would be had each been left out; labels are -1 and +1, a column per output."""
    if leverage is None:
        return scores
    leverage = np.minimum(leverage, MOST_LEVERAGE)
    return (scores - leverage * y) / (1.0 - leverage)


def fit_link(ask: Ask, leverage: np.ndarray | None = None, *, may_bend: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Intercept a and slope b of the log-odds a + b F for each column of scores of rows with labels -1 and +1.

    `may_bend` says whether curved log-odds may move the border between two classes. Those of rules are bent by what is
    taken from their scores.

    Scores are taken as if each row had been left out, by its leverage. Of several columns the probabilities are the
    softmax: a for each, and one b for all. As Platt has it, each class counts as one example more than it has: no odds
    are infinite.
    """
    survey = ask(partial(_Survey.of, leverage), _Survey.__add__)
    doubt = 1.0 / (survey.counts(ask) + 2.0)
    if len(survey.low) == 1:
        low, high = float(survey.low[0]), float(survey.high[0])
        width = (high - low) / CELLS or 1.0
        mass = ask(partial(_histogram, leverage, survey.extent, low, width), np.add)
        used = mass.any(axis=0)
        a, b = _two_classes((low + width * (np.arange(CELLS) + 0.5))[used], mass[:, used], doubt, may_bend)
        return np.array([a]), np.array([b])
    return _several_classes(ask, leverage, survey, doubt)


@dataclass(frozen=True)
class _Survey:
    """What a link must know of the rows first: the range of their scores, their weights, and the repeats of classes."""

    low: np.ndarray
    high: np.ndarray
    extent: Extent
    repeats: list[Extent]  # of each class

    @classmethod
    def of(cls, leverage: np.ndarray | None, scores: np.ndarray, rows: Rows) -> _Survey:
        scores = left_out(scores, rows.y, leverage)
        low, high = scores.min(axis=0, initial=np.inf), scores.max(axis=0, initial=-np.inf)
        return cls(low, high, Extent.of(len(scores), rows.weight), _extents_of_classes(rows))

    def __add__(self, other: _Survey) -> _Survey:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        repeats = [one + two for one, two in zip(self.repeats, other.repeats, strict=True)]
        return _Survey(low, high, self.extent + other.extent, repeats)

    def counts(self, ask: Ask) -> np.ndarray:
        """How many examples each class is worth."""
        if all(extent.is_whole for extent in self.repeats):
            return np.array([extent.total for extent in self.repeats])
        sums = ask(partial(_square_sums, self.repeats), np.add)
        each = zip(self.repeats, sums, strict=True)
        return np.array(
            [extent.total if extent.is_whole else worth_of(extent, sums_of_own) for extent, sums_of_own in each]
        )


def _members_of_classes(rows: Rows) -> list[np.ndarray]:
    """Which rows are of each class."""
    return list(rows.y.T > 0) if rows.y.shape[1] > 1 else [rows.y[:, 0] <= 0, rows.y[:, 0] > 0]


def _extents_of_classes(rows: Rows) -> list[Extent]:
    """Of the repeats of each class."""
    if rows.repeats is None:
        return [Extent.of(int(np.count_nonzero(is_member)), None) for is_member in _members_of_classes(rows)]
    return [Extent.of(len(repeats), repeats) for repeats in _repeats_of_classes(rows)]


def _repeats_of_classes(rows: Rows) -> list[np.ndarray]:
    """How many examples each row of a class stands for."""
    repeats = np.ones(len(rows.y)) if rows.repeats is None else rows.repeats
    return [repeats[is_member] for is_member in _members_of_classes(rows)]


def _square_sums(extents: list[Extent], scores: np.ndarray, rows: Rows) -> np.ndarray:
    return np.array([square_sums(*pair) for pair in zip(extents, _repeats_of_classes(rows), strict=True)])


def _rounded(extent: Extent, rows: Rows) -> np.ndarray:
    return np.ones(len(rows.y)) if rows.weight is None else extent.round(rows.weight)


def _histogram(
    leverage: np.ndarray | None, extent: Extent, low: float, width: float, scores: np.ndarray, rows: Rows
) -> np.ndarray:
    """The weight of both classes in each cell of scores, shape (2, cells); sums of rounded weights are exact."""
    cell = ((left_out(scores, rows.y, leverage)[:, 0] - low) / width).astype(np.int64)
    cell = np.minimum(cell, CELLS - 1) + CELLS * (rows.y[:, 0] > 0)
    return np.bincount(cell, _rounded(extent, rows), 2 * CELLS).reshape(2, CELLS)


def _two_classes(score: np.ndarray, mass: np.ndarray, doubt: np.ndarray, may_bend: bool) -> tuple[float, float]:
    """The likeliest line; `doubt` is the share of each class that is taken for the other.

    Where the log-odds are clearly a curve, the line should be right where labels change: there it crosses zero as the
    curve does, unless that costs much.
    """
    total = mass.sum(axis=0)
    target = (mass[1] * (1.0 - doubt[1]) + mass[0] * doubt[0]) / total
    centre = float((total * score).sum() / total.sum())
    spread = float(np.sqrt((total * (score - centre) ** 2).sum() / total.sum()))
    share = float((total * target).sum() / total.sum())
    constant = float(np.log(share) - np.log1p(-share))
    if spread == 0:
        return constant, FLATTEST
    x = (score - centre) / spread
    (first, slope), loss = _likeliest([np.ones_like(x), x], total, target, [constant, 1.0])
    if slope / spread < FLATTEST:  # the intercept beside another slope would be wrong
        return constant, FLATTEST
    if may_bend:
        curve, its_loss = _likeliest([np.ones_like(x), x, x * x], total, target, [first, slope, 0.0])
        border, n_examples = _where_rising(curve), float((1.0 / doubt - 2.0).sum())
        is_clear = 2.0 * (loss - its_loss) / total.sum() * n_examples > CLEARLY
        if is_clear and x.min() < border < x.max():
            (steepness,), its_loss = _likeliest([x - border], total, target, [slope])
            if steepness / spread >= FLATTEST and its_loss <= MOST_FOR_LABELS * loss:
                slope = min(steepness, STEEPEST)
                first = -border * slope
    slope_there = min(float(slope), STEEPEST) / spread
    return float(first) - slope_there * centre, slope_there


def _where_rising(curve: np.ndarray) -> float:
    """Where a parabola rises through zero; nan if it does not."""
    first, slope, bend = curve.tolist()
    inner = slope * slope - 4.0 * first * bend
    below = slope + math.sqrt(inner) if inner >= 0.0 else 0.0
    return -2.0 * first / below if below > 0.0 else math.nan


def _likeliest(
    terms: list[np.ndarray], total: np.ndarray, target: np.ndarray, start: list[float]
) -> tuple[np.ndarray, float]:
    """Log-odds as a sum of terms, by Newton's method: the factor of each, and the loss."""

    def odds_of(factors: np.ndarray) -> np.ndarray:
        return np.add.reduce([factor * term for factor, term in zip(factors, terms, strict=True)])

    def loss(factors: np.ndarray) -> float:
        odds = odds_of(factors)
        return float((total * (np.logaddexp(0.0, odds) - target * odds)).sum())

    factors = np.array(start)
    for _ in range(MOST_STEPS):
        chance = 0.5 * (1.0 + np.tanh(0.5 * odds_of(factors)))
        slope, curve = total * (chance - target), total * chance * (1.0 - chance)
        gradient = np.array([(slope * term).sum() for term in terms])
        hessian = np.array([[(curve * one * other).sum() for other in terms] for one in terms])
        step = _solved(hessian, gradient)
        part, before = 1.0, loss(factors)
        while loss(factors - part * step) > before and part > NEAR:
            part /= 2.0
        if part <= NEAR:  # what is left to gain is rounding
            break
        factors = factors - part * step
        if np.abs(part * step).max() < NEAR * (1.0 + np.abs(factors).max()):
            break
    return factors, loss(factors)


def _several_classes(
    ask: Ask, leverage: np.ndarray | None, survey: _Survey, doubt: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method over one intercept for each class and a common slope, on whole-number sums of the rows.

    Of very many classes over the slope alone: their intercepts would take long, and each has few rows to tell.
    """
    n_classes, extent = len(doubt), survey.extent
    spread = float(np.maximum(np.abs(survey.low), np.abs(survey.high)).max()) or 1.0
    per_class = ask(partial(_mass_of_classes, extent), np.add) * extent.weight_unit
    share = per_class / per_class.sum()
    n_free = n_classes if n_classes <= MOST_INTERCEPTS else 0
    likelihood = _Likelihood(leverage, extent, doubt, spread, n_free)
    believed = (share[:, None] * likelihood.targets(np.eye(n_classes) > 0)).sum(axis=0)  # also of a class without a row
    line = np.append(np.log(np.where(share > 0, share, believed)) if n_free else np.zeros(n_classes), 1.0)

    def loss(line: np.ndarray) -> float:
        return float(ask(partial(likelihood.loss, line), np.add) * extent.unit(MOST_LOSS))

    for _ in range(MOST_STEPS):
        gradient, hessian = likelihood.slopes(ask(partial(likelihood.sums, line), np.add))
        step = np.zeros(n_classes + 1)
        step[n_classes - n_free :] = _solved(hessian, gradient)
        part, before = 1.0, loss(line)
        while (now := loss(line - part * step)) > before and part > NEAR:
            part /= 2.0
        if part <= NEAR:  # what is left to gain is rounding
            break
        line = line - part * step
        if before - now <= NEAR * before or np.abs(part * step).max() < 1e-8 * (1.0 + np.abs(line).max()):
            break
    first, slope = line[:-1], min(float(line[-1]), STEEPEST) / spread
    if slope < FLATTEST:  # intercepts beside another slope would be wrong
        first, slope = np.log(believed), FLATTEST
    return first - first.mean(), np.full(n_classes, slope)


def _mass_of_classes(extent: Extent, scores: np.ndarray, rows: Rows) -> np.ndarray:
    """The weight of each class, in units of the extent."""
    mass = extent.whole_weights(rows.weight, len(rows.y))
    return np.array([mass[is_member].sum() for is_member in (rows.y > 0).T])


@dataclass(frozen=True)
class _Likelihood:
    """Sums over rows for the likeliest softmax of several scores, whole numbers in units of the extent."""

    leverage: np.ndarray | None
    extent: Extent
    doubt: np.ndarray
    spread: float
    n_free: int  # intercepts

    def targets(self, is_own: np.ndarray) -> np.ndarray:
        """The probabilities that rows should have, given which class is their own: its doubt goes to the others."""
        doubt = self.doubt[is_own.argmax(axis=1), None]
        return np.where(is_own, 1.0 - doubt, doubt / (len(self.doubt) - 1.0))

    def loss(self, line: np.ndarray, scores: np.ndarray, rows: Rows) -> np.ndarray:
        _, chance, target = self._chances(line, scores, rows)
        each = np.minimum(-(target * np.log(np.maximum(chance, 1e-300))).sum(axis=1), MOST_LOSS)
        return self.extent.fixed_point(each, rows.weight, MOST_LOSS).sum()

    def sums(self, line: np.ndarray, scores: np.ndarray, rows: Rows) -> np.ndarray:
        """For `slopes`: values of at most 2, one after the other, and then those of at most 4."""
        x, chance, target = self._chances(line, scores, rows)
        off, lean, n = chance - target, (chance * x).sum(axis=1), self.n_free

        def exact(values: np.ndarray, largest: float) -> np.ndarray:
            return self.extent.fixed_point(values, rows.weight, largest).sum()

        two = [exact(off[:, k], 2.0) for k in range(n)]
        for k in range(n):
            two += [exact((chance[:, k] if j == k else 0.0) - chance[:, k] * chance[:, j], 2.0) for j in range(k, n)]
        four = [exact((off * x).sum(axis=1), 4.0), exact((chance * x * x).sum(axis=1) - lean * lean, 4.0)]
        four += [exact(chance[:, k] * (x[:, k] - lean), 4.0) for k in range(n)]
        return np.array(two + four, dtype=np.int64)

    def slopes(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of the intercepts and the slope."""
        n = self.n_free
        n_two = n + n * (n + 1) // 2
        two, four = sums[:n_two] * self.extent.unit(2.0), sums[n_two:] * self.extent.unit(4.0)
        hessian = np.zeros((n + 1, n + 1))
        hessian[np.triu_indices(n)] = two[n:]
        hessian[:n, -1], hessian[-1, -1] = four[2:], four[1]
        return np.append(two[:n], four[0]), np.triu(hessian) + np.triu(hessian, 1).T

    def _chances(self, line: np.ndarray, scores: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = left_out(scores, rows.y, self.leverage) / self.spread
        odds = line[:-1] + line[-1] * x
        power = np.exp(odds - odds.max(axis=1, keepdims=True, initial=-np.inf))
        return x, power / power.sum(axis=1, keepdims=True), self.targets(rows.y > 0)


def _solved(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    step = gradient.copy()
    solve(hessian, step, 1e-12 * float(hessian.diagonal().max()), 0.0)
    return step
