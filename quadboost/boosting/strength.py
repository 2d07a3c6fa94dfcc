"""The strength of an l1 penalty, from moments alone: by generalised cross-validation along the path.

Under l1 the number of active voters is an unbiased estimate of the degrees of freedom. So risk / (1 - n_active / m)^2
says what the risk on other rows will be, and no row needs to be held out. The path begins at the largest useful
strength, where no voter is active, and ends where the estimate has been at its least.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .rounds import Mark, Run
from .schedule import Schedule

SMALL_STEP = 0.5**0.5  # from a strength to the next where many voters may enter; elsewhere it is halved
MANY = 0.01  # of the number of examples: active voters that half the strength adds
NEAR, FAR = 1e-3, 2e-2  # relative dual gaps along the path: near the minimum, and where the estimate falls steeply
LEAST_SHARE = 1e-5  # the weakest strength, as a share of the strongest
MOST_ACTIVE = 1 / 3  # of the number of examples: beyond, the estimate has a second, false minimum

# The estimate is uncertain by a few times 1 / m. It must rise by more than that to be past its minimum; and where its
# voters improve it by less than the best of so many that are noise would, there is nothing to be learnt.
CLEAR_RISE = 20.0
MOST_RISE = 0.1
FLAT = 0.004  # less is gained by half the strength: the rest of the path is long, and brings nothing
SAME = 0.001  # estimates that differ by less are taken for the same, and the stronger penalty of them
FEW = 1000.0  # of so many examples and voters, the path counts as much as the formula, PRIOR std(y) / sqrt(m)
PRIOR = 0.3
GROWN_COST = 2.0  # what a degree of freedom counts where voters were grown to the targets
CAUTION = 0.2  # what a degree of freedom counts more where voters are far more than examples: the least of many is luck


class Point(NamedTuple):
    """One strength of the path."""

    strength: float
    risk: float
    gcv: float
    n_active: float  # degrees of freedom: under l1 the number of active voters


@dataclass(frozen=True)
class Strengths:
    """The strengths that were tried, the strongest first, and the one that was chosen."""

    chosen: float
    points: tuple[Point, ...] = ()
    cut: str = ""  # why the path ended before it had an answer, as a reason to stop rounds

    def columns(self) -> dict[str, np.ndarray]:
        """For `history_`; none where there is no path."""
        names = ("path_lambda", "path_risk", "path_gcv", "path_active")
        return dict(zip(names, map(np.array, zip(*self.points, strict=True)), strict=False))


def strengths_by_gcv(
    run: Run,
    n_examples: float,
    schedule: Schedule,
    tell: Callable[[], None] = lambda: None,
    were_grown: bool = False,
) -> Strengths:
    """Follow the path until the estimate is clearly past its minimum, and choose.

    The run is one under an l1 penalty, of any strength. It then stands on the path, near the chosen strength, and can
    go on under it. The minimum of few examples is uncertain: the strength is then between it and what a formula says.
    The path ends early, with the best so far, where the schedule has no more rounds or time, or its callback says so.
    `tell` is called after each strength.
    """
    start, points, marks, cut = time.monotonic(), list[Point](), list[Mark](), ""
    n_voters = len(run.weight)
    cost = GROWN_COST if were_grown else 1.0 + CAUTION * n_voters / (n_voters + n_examples)
    strength = run.penalty.largest(run.edge, run.eta)
    while not (cut or _is_past(points, n_examples)):
        run.change(run.penalty.at(strength))
        run.go(replace(schedule.share(time.monotonic() - start, 1), tol=max(schedule.tol, _tol(points))))
        freedom = 1.0 - cost * (run.n_active + run.fit_intercept) / n_examples
        gcv = run.risk / freedom**2 if freedom > 0 else np.inf
        points.append(Point(strength, run.risk, gcv, run.n_active))
        marks.append(run.mark())
        tell()
        cut = "" if run.stop_reason == "converged" else run.stop_reason
        strength *= _step(points, n_examples, n_voters)
    chosen = _choice(points, n_examples, PRIOR * float(np.sqrt(run.train.first_risk / n_examples)), n_voters)
    nearest = np.argmin([abs(np.log(point.strength / chosen)) for point in points]) if chosen > 0 else 0
    run.back_to(marks[nearest])
    return Strengths(chosen, tuple(points), cut)


def _tol(points: list[Point]) -> float:
    """Tolerance of the fit at the next strength: loose where the estimate falls steeply."""
    if len(points) < 3:
        return FAR
    fall = (points[-2].gcv - points[-1].gcv) / points[0].gcv
    return float(np.clip(0.1 * fall, NEAR, FAR))


def _step(points: list[Point], n_examples: float, n_voters: int) -> float:
    """Ratio of the next strength to this one; small steps where voters outnumber examples: noise enters all at once."""
    if len(points) < 2 or n_voters > n_examples:
        return SMALL_STEP
    before, last = points[-2:]
    halves = np.log2(before.strength / last.strength)
    return SMALL_STEP if last.n_active - before.n_active > MANY * n_examples * halves else 0.5


def _is_past(points: list[Point], n_examples: float) -> bool:
    """Whether the path has gone past the minimum, or as far as it should."""
    if not points:
        return False
    first, last, least = points[0], points[-1], min(point.gcv for point in points)
    if (
        not (last.risk > 0 and last.strength > 0)
        or last.strength < LEAST_SHARE * first.strength
        or last.n_active > MOST_ACTIVE * n_examples
    ):
        return True
    before = min((point.gcv for point in points if point.strength >= 2.0 * last.strength), default=np.inf)
    has_gain = first.gcv > least * (1.0 + CLEAR_RISE / n_examples)
    has_risen = last.gcv > least * (1.0 + min(CLEAR_RISE / n_examples, MOST_RISE))
    return has_risen or (has_gain and before < least * (1.0 + FLAT))


def _choice(points: list[Point], n_examples: float, formula: float, n_voters: int) -> float:
    least = min(point.gcv for point in points)
    best = next(point for point in points if point.gcv <= least * (1.0 + SAME))
    if not formula > 0 or points[0].gcv <= best.gcv * (1.0 + 2.0 * np.log(max(1, n_voters)) / n_examples):
        return points[0].strength  # no voter is worth its weight
    return between(best.strength, formula, n_examples, n_voters)


def between(best: float, formula: float, n_examples: float, n_voters: int) -> float:
    """The strength that is taken: of few examples and voters the least estimate is uncertain, so the formula counts."""
    share = (n_examples + n_voters) / (n_examples + n_voters + FEW)
    return float(best**share * formula ** (1.0 - share))
