"""From the scores of the squared loss to log-odds: a + b F, the likeliest of all such links.

A model knows its training rows too well: their scores lean towards their labels. Each row left out, its score would be
(F - h y) / (1 - h), where h is its leverage, on average the number of active voters over the number of examples. The
link is fitted to these scores: as good as scores of folds, at no cost, and the same for any order of rows. That is so
where voters are active or not, and where trees were grown, each on half of the rows: the others tell how much it knows.
Elsewhere (l2, linf, forward) small tables are divided into folds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._core import solve
from ..boosting.result import Boosted
from ..data.exact import Extent, effective_count, exact_mean
from .measured import Measured, Options, Trained
from .problem import Problem, Rows
from .training import train

MOST_ROWS_FOR_FOLDS = 20_000  # beyond, training rows say the same
N_FOLDS = 5
CELLS = 4096  # of a histogram of scores: likelihood does not care about less
MOST_LEVERAGE = 0.9
MOST_INTERCEPTS = 40  # classes
MOST_STEPS = 100
NEAR = 1e-10  # a step that changes no figure by more is the last
FLATTEST = 1e-6  # slope of a link where scores say nothing of the labels, or the contrary: their order stays
STEEPEST = 1e6  # slope of a link, in units of the spread of the scores: of data that can be told apart without an error


def calibrate(
    problem: Problem, measured: Measured, options: Options, trained: Trained, seconds_gone: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Intercept and slope of the link for each score of a classifier.

    Folds have the time that `seconds_gone` has left; where it is not enough, the training rows must do.
    """
    rows = measured.rows
    if measured.grown is None and divides(options, len(rows.y)):
        options = replace(options, schedule=replace(options.schedule.share(seconds_gone, 1), callback=None))
        known, found = _scores_of_folds(problem, measured, options, trained)
        if (rows.y[known].max(axis=0, initial=-1.0) > rows.y[known].min(axis=0, initial=1.0)).all():
            return fit_link(found[known], rows.take(known))
    return calibrate_at_once(measured, options, trained.boosted)


def calibrate_at_once(
    measured: Measured, options: Options, boosted: Sequence[Boosted]
) -> tuple[np.ndarray, np.ndarray]:
    """The same by the scores of the training rows alone."""
    weight = np.column_stack([result.weight for result in boosted])
    intercept = np.array([result.intercept for result in boosted])
    scores, rows = measured.voters.scores(measured.codes, weight, intercept, measured.n_threads), measured.rows
    if measured.grown is not None:
        scores = left_out(scores, rows.y, _leverage_of_grown(measured, options, scores))
    elif _counts_voters(options):
        scores = left_out(scores, rows.y, (np.count_nonzero(weight, axis=0) + 1.0) / rows.n_examples)
    return fit_link(scores, rows)


def _leverage_of_grown(measured: Measured, options: Options, scores: np.ndarray) -> np.ndarray:
    """How well a model of grown trees knows its training rows: their risk is (1 - h)^2 times that of other rows.

    What the latter is, growth tells: each tree was tried on rows that it was not grown on.
    """
    assert measured.grown is not None
    rows, first = measured.rows, measured.moments.target_risk(bool(options.fit_intercept))
    own = np.array([exact_mean(off * off, rows.weight) for off in (rows.y - scores).T])
    others = np.maximum(first * (1.0 - measured.grown.r2), np.finfo(float).tiny)
    return np.maximum(0.0, 1.0 - np.sqrt(own / others))


def divides(options: Options, n_rows: int) -> bool:
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
        boosted = train(problem, part, replace(options, schedule=schedule, reg_lambda=trained.reg_lambda[0])).boosted
        if any(result.stop_reason == "max_seconds" for result in boosted):
            return np.zeros(len(fold), dtype=bool), found
        known |= held_out
        found[held_out] = measured.voters.scores(
            measured.codes[held_out],
            np.column_stack([result.weight for result in boosted]),
            np.array([result.intercept for result in boosted]),
        )
    return known, found


def left_out(scores: np.ndarray, y: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """About what the scores of the rows would be had each been left out; labels are -1 and +1, a column per output."""
    leverage = np.minimum(leverage, MOST_LEVERAGE)
    return (scores - leverage * y) / (1.0 - leverage)


def fit_link(scores: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Intercept a and slope b of the log-odds a + b F for each column of scores of rows with labels -1 and +1.

    Of several columns the probabilities are the softmax: a for each, and one b for all. As Platt has it, each class
    counts as one example more than it has: no odds are infinite.
    """
    m, is_own = len(scores), rows.y > 0
    weight = np.ones(m) if rows.weight is None else Extent.of(m, rows.weight).round(rows.weight)
    repeats = np.ones(m) if rows.repeats is None else rows.repeats
    if scores.shape[1] == 1:
        centre, mass = _histogram(scores[:, 0], is_own[:, 0], weight)
        counts = np.array([effective_count(repeats[is_own[:, 0] == kind]) for kind in (False, True)])
        a, b = _two_classes(centre, mass, 1.0 / (counts + 2.0))
        return np.array([a]), np.array([b])
    counts = np.array([effective_count(repeats[own]) for own in is_own.T])
    return _several_classes(scores, is_own, weight, 1.0 / (counts + 2.0))


def _histogram(scores: np.ndarray, is_second: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores in cells: their centres, and the weight of both classes in each, shape (2, cells)."""
    low, high = float(scores.min()), float(scores.max())
    width = (high - low) / CELLS or 1.0
    cell = np.minimum(((scores - low) / width).astype(np.int64), CELLS - 1)
    mass = np.bincount(cell + CELLS * is_second, weight, 2 * CELLS).reshape(2, CELLS)
    used = mass.any(axis=0)
    return (low + width * (np.arange(CELLS) + 0.5))[used], mass[:, used]


def _two_classes(score: np.ndarray, mass: np.ndarray, doubt: np.ndarray) -> tuple[float, float]:
    """Newton's method; `doubt` is the share of each class that is taken for the other."""
    total = mass.sum(axis=0)
    target = (mass[1] * (1.0 - doubt[1]) + mass[0] * doubt[0]) / total
    centre = float((total * score).sum() / total.sum())
    spread = float(np.sqrt((total * (score - centre) ** 2).sum() / total.sum()))
    share = float((total * target).sum() / total.sum())
    constant = float(np.log(share) - np.log1p(-share))
    if spread == 0:
        return constant, FLATTEST
    x = (score - centre) / spread
    own = np.array([constant, 1.0])

    def loss(own: np.ndarray) -> float:
        odds = own[0] + own[1] * x
        return float((total * (np.logaddexp(0.0, odds) - target * odds)).sum())

    for _ in range(MOST_STEPS):
        odds = own[0] + own[1] * x
        chance = 0.5 * (1.0 + np.tanh(0.5 * odds))
        slope, curve = total * (chance - target), total * chance * (1.0 - chance)
        gradient = np.array([slope.sum(), (slope * x).sum()])
        hessian = np.array([[curve.sum(), (curve * x).sum()], [(curve * x).sum(), (curve * x * x).sum()]])
        step = _solved(hessian, gradient)
        part, before = 1.0, loss(own)
        while loss(own - part * step) > before and part > NEAR:
            part /= 2.0
        if part <= NEAR:  # what is left to gain is rounding
            break
        own = own - part * step
        if np.abs(part * step).max() < NEAR * (1.0 + np.abs(own).max()):
            break
    if own[1] / spread < FLATTEST:  # the intercept beside another slope would be wrong
        return constant, FLATTEST
    slope_there = min(float(own[1]), STEEPEST) / spread
    return float(own[0]) - slope_there * centre, slope_there


def _several_classes(
    scores: np.ndarray, is_own: np.ndarray, weight: np.ndarray, doubt: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method over one intercept for each class and a common slope, on whole-number sums of the rows.

    Of very many classes over the slope alone: their intercepts would take long, and each has few rows to tell.
    """
    n_classes, total = scores.shape[1], float(weight.sum())
    target = np.where(is_own, 1.0 - doubt, doubt / (n_classes - 1.0))
    target /= target.sum(axis=1, keepdims=True)
    per_class = np.array([weight[own].sum() for own in is_own.T])
    spread = float(np.abs(scores).max()) or 1.0
    x = scores / spread
    n_free = n_classes if n_classes <= MOST_INTERCEPTS else 0
    own = np.append(np.log(per_class / total) if n_free else np.zeros(n_classes), 1.0)
    extent = Extent.of(len(x), weight)

    def exact(values: np.ndarray, largest: float) -> float:
        return float(extent.fixed_point(values, weight, largest).sum() * extent.unit(largest))

    def chances(own: np.ndarray) -> np.ndarray:
        odds = own[:-1] + own[-1] * x
        power = np.exp(odds - odds.max(axis=1, keepdims=True))
        return power / power.sum(axis=1, keepdims=True)

    def loss(own: np.ndarray) -> float:
        chance = chances(own)
        rows = np.minimum(-(target * np.log(np.maximum(chance, 1e-300))).sum(axis=1), 1e3)
        return exact(rows, 1e3)

    for _ in range(MOST_STEPS):
        chance = chances(own)
        off = chance - target
        lean = (chance * x).sum(axis=1)
        gradient = [exact(off[:, k], 2.0) for k in range(n_free)] + [exact((off * x).sum(axis=1), 4.0)]
        hessian = np.zeros((n_free + 1, n_free + 1))
        for k in range(n_free):
            for j in range(k, n_free):
                value = (chance[:, k] if j == k else 0.0) - chance[:, k] * chance[:, j]
                hessian[k, j] = hessian[j, k] = exact(value, 2.0)
            hessian[k, -1] = hessian[-1, k] = exact(chance[:, k] * (x[:, k] - lean), 4.0)
        hessian[-1, -1] = exact((chance * x * x).sum(axis=1) - lean * lean, 4.0)
        step = np.zeros(n_classes + 1)
        step[n_classes - n_free :] = _solved(hessian, np.array(gradient))
        share, before = 1.0, loss(own)
        while (now := loss(own - share * step)) > before and share > NEAR:
            share /= 2.0
        if share <= NEAR:  # what is left to gain is rounding
            break
        own = own - share * step
        if before - now <= NEAR * before or np.abs(share * step).max() < 1e-8 * (1.0 + np.abs(own).max()):
            break
    first, slope = own[:-1], min(float(own[-1]), STEEPEST) / spread
    if slope < FLATTEST:  # intercepts beside another slope would be wrong
        first, slope = np.log([exact(share, 1.0) / total for share in target.T]), FLATTEST
    return first - first.mean(), np.full(n_classes, slope)


def _solved(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    step = gradient.copy()
    solve(hessian, step, 1e-12 * float(hessian.diagonal().max()), 0.0)
    return step
