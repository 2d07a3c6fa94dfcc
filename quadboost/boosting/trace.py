"""The strength of an l2 penalty, from products with the Gram matrix G: by generalised cross-validation.

Under l2 the degrees of freedom are the trace of G (G + lambda)^-1, and risk / (1 - trace / m)^2 says what the risk on
other rows will be, as under l1. Lanczos' steps from a vector v lead to a small tridiagonal matrix. Its continued
fraction is v' (G + lambda)^-1 v, for every lambda at once. From the margins that gives the risk, and from random signs,
on the average, the trace.

Voters that were grown to the targets have seen them: a degree of freedom costs more than one. How much more is what
makes the estimate right at a strength for which the risk on other rows is known in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from .._core import dot
from ..moments.moments import Moments
from .penalties import auto_strength
from .strength import SAME, Point, Strengths, between

Times = Callable[[np.ndarray], np.ndarray]  # from vectors (n, K) to the Gram matrix times each of them

MOST_STEPS, LOOK_EVERY = 40, 5
SETTLED = 3  # looks in a row that find the same strength; after few steps the weak ones all look alike
MOST_PROBES = 4  # vectors of random signs
ENOUGH_EXAMPLES = 8_000.0  # of so many one vector will do: its chance is a small part of them
ROUNDING = 1e-12
MOST_FREEDOM = 0.5  # of the number of examples: beyond, the estimate is one small number by another
TRIED = np.logspace(3.0, -2.0, 61)  # times the formula
NEAR = np.logspace(1.5, -2.0, 29)  # times a strength that is known
AS_KNOWN = 12  # where it is itself
COSTS = (1.2, 2.0)  # of a degree of freedom of voters that were grown: the least and the most, measured
SAME_COST = 0.2
MOST_LOOKS, LOOKS_AT_MANY, MANY_EXAMPLES = 4, 2, 200_000.0  # more steps change the answer, but not what it is worth


class Known(NamedTuple):
    """Of voters that were grown to the targets: what a strength leaves of the first risk on other rows."""

    strength: float
    risk: float  # as a share
    factor: np.ndarray  # of the penalty of each voter


def ridge_by_gcv(times: Times, moments: Moments, fit_intercept: bool, n_examples: float) -> Strengths:
    """One strength for all outputs: that of the least sum of their estimates, each a share of its first risk.

    Parameters
    ----------
    times : callable
        The Gram matrix of the moments times vectors; of centred voters where there is an intercept.
    moments : Moments
    fit_intercept : bool
    n_examples : float
        What the weights are worth.
    """
    formula = auto_strength("l2", "corrective", n_examples, 1.0, moments.n_voters)
    strength, best, points = formula * TRIED, list[int](), tuple[Point, ...]()
    for risk, freedom in _estimates(times, moments, fit_intercept, n_examples, strength):
        points, gcv = _points(strength, risk, freedom, n_examples)
        best.append(_least(gcv, freedom <= MOST_FREEDOM * n_examples))
        if best[-1] > 0 and best[-SETTLED:] == [best[-1]] * SETTLED:  # the strongest: the others still look alike
            break
    if not points:
        return Strengths(formula)
    return Strengths(between(float(strength[best[-1]]), formula, n_examples, moments.n_voters), points)


def ridge_of_grown(times: Times, moments: Moments, fit_intercept: bool, n_examples: float, known: Known) -> Strengths:
    """The same of voters that were grown, near a strength that is known."""
    strength, points, cost = known.strength * NEAR, tuple[Point, ...](), np.inf
    looks = _estimates(times, moments, fit_intercept, n_examples, strength, known.factor)
    for risk, freedom in islice(looks, MOST_LOOKS if n_examples <= MANY_EXAMPLES else LOOKS_AT_MANY):
        before, cost = cost, (1.0 - np.sqrt(risk[AS_KNOWN] / known.risk)) * n_examples / freedom[AS_KNOWN]
        points, gcv = _points(strength, risk, freedom, n_examples, float(np.clip(cost, *COSTS)))
        if abs(cost - before) < SAME_COST:
            break
    if not points:
        return Strengths(known.strength)
    return Strengths(float(strength[_least(gcv)]), points)


def _estimates(
    times: Times, moments: Moments, fit_intercept: bool, n_examples: float, strength: np.ndarray,
    factor: np.ndarray | float = 1.0,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Of each strength the mean risk, as a share of the first, and the degrees of freedom, ever better.

    None where there is nothing to explain.
    """
    margin, first_risk = np.ascontiguousarray(moments.centred(fit_intercept)[0].T), moments.target_risk(fit_intercept)
    is_open = first_risk > 0  # there is something to explain
    margin, first_risk, n_voters = margin[is_open] / factor, first_risk[is_open, None], moments.n_voters
    if not margin.any():
        return
    n_probes = int(np.clip(round(ENOUGH_EXAMPLES / n_examples), 1, MOST_PROBES))
    signs = np.where(np.random.RandomState(0).random_sample((n_probes, n_voters)) < 0.5, -1.0, 1.0)
    n_outputs, start = len(margin), np.concatenate([margin, signs])
    for inverse, square in _resolvents(lambda vectors: times(vectors / factor) / factor, start, strength):
        trace = n_voters - strength * inverse[n_outputs:].mean(axis=0) + fit_intercept
        risk = first_risk - inverse[:n_outputs] - strength * square[:n_outputs]
        yield (np.maximum(risk, 0.0) / first_risk).mean(axis=0), trace


def _points(
    strength: np.ndarray, risk: np.ndarray, freedom: np.ndarray, n_examples: float, cost: float = 1.0
) -> tuple[tuple[Point, ...], np.ndarray]:
    gcv = risk / np.maximum(1.0 - cost * freedom / n_examples, ROUNDING) ** 2
    columns = (strength, risk, gcv, freedom)
    return tuple(map(Point, *(column.tolist() for column in columns))), gcv


def _least(gcv: np.ndarray, is_allowed: np.ndarray | bool = True) -> int:
    """Where the estimate is at its least, or as good as that; the strongest is always allowed."""
    gcv = np.where(is_allowed, gcv, np.inf)
    return int(np.argmax(gcv <= gcv.min() * (1.0 + SAME)))


def _resolvents(times: Times, start: np.ndarray, strength: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """v' (G + lambda)^-1 v and v' (G + lambda)^-2 v of each vector (a row) for each strength (a column), ever better.

    The continued fraction is evaluated from its end; the second is minus its derivative.
    """
    size, steps = _dots(start, start)[:, None], []
    for step in _lanczos(times, start):
        steps.append(step)
        if len(steps) % LOOK_EVERY == 0 or len(steps) == min(MOST_STEPS, start.shape[1]):
            inverse, square = np.zeros((2, len(start), len(strength)))
            for diagonal, beside in reversed(steps):
                inverse = 1.0 / (diagonal[:, None] + strength - beside[:, None] * inverse)
                square = inverse * inverse * (1.0 + beside[:, None] * square)
            yield size * inverse, size * square


def _lanczos(times: Times, start: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Steps: the next number on the diagonal of the tridiagonal matrix of each vector, and the square beside it."""
    before, this = np.zeros_like(start), _divided(start, np.sqrt(_dots(start, start)))
    size = np.zeros(len(start))
    for _ in range(min(MOST_STEPS, start.shape[1])):
        ahead = times(this) - size[:, None] * before
        diagonal = _dots(this, ahead)
        ahead -= diagonal[:, None] * this
        beside = _dots(ahead, ahead)
        size = np.sqrt(beside)
        before, this = this, _divided(ahead, size)
        yield diagonal, beside


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([dot(row, other) for row, other in zip(x, y, strict=True)])


def _divided(vectors: np.ndarray, size: np.ndarray) -> np.ndarray:
    return np.divide(vectors, size[:, None], out=np.zeros_like(vectors), where=size[:, None] > 0)
