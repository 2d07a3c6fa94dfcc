"""All voters of an ensemble re-weighted at once, to the least objective that they can reach together.

A round moves one weight. Stumps with neighbouring thresholds nearly agree, and rounds take thousands of turns to
settle among them what one system of linear equations settles. Both have the same fixed points.
"""

from __future__ import annotations

import numpy as np

from .. import _core
from ..moments.gram import Columns
from ..moments.moments import Moments
from .penalties import Penalty

MOST_TOGETHER = 2_000  # voters; time and memory for them grow with the square
NEAR = 1e-3  # an iteration that brings no more than this share is the last
MOST_HALVES = 5
ROUNDING = 1e-12  # of the largest curvature: below this a voter is a linear combination of the others


def reweighted(
    moments: Moments, columns: Columns, penalty: Penalty, weight: np.ndarray, edge: np.ndarray, *, fit_intercept: bool,
) -> np.ndarray:  # fmt: skip
    """Weights with a lower objective than the given ones, the lowest unless a weight reached a bound on the way.

    Only voters of the ensemble move. Under l1 none changes its sign, but it may become zero: where the objective
    is smooth it is quadratic, and its minimum is a linear system away.

    Parameters
    ----------
    moments : Moments
    columns : Columns
        Of the Gram matrix of these moments.
    penalty : Penalty
    weight, edge : arrays of shape (K,)
        The weights, and every voter's edge with them (`Boosted.weight`, `Boosted.edge`).
    fit_intercept : bool
    """
    voters = np.flatnonzero(weight)
    if not 0 < len(voters) <= MOST_TOGETHER:
        return weight
    x, sign = weight[voters], np.sign(weight[voters])
    ridge, shrink, low, high = (values[voters] for values in penalty.rule(len(weight)))
    slope = edge[voters] - shrink * sign - ridge * x  # of the objective, times -1/2
    low = np.where((shrink > 0) & (sign > 0), 0.0, low)
    high = np.where((shrink > 0) & (sign < 0), 0.0, high)
    free = ~((x >= high) & (slope >= 0) | (x <= low) & (slope <= 0))
    if not free.any():
        return weight
    voters, x, slope, ridge, low, high = (values[free] for values in (voters, x, slope, ridge, low, high))
    gram = gram_of(moments, columns, voters, fit_intercept)
    gram[np.diag_indices(len(voters))] += ridge
    result = weight.copy()
    result[voters] = _way(gram, slope, x, x + _newton_step(gram, slope), low, high)
    return result


def gram_of(moments: Moments, columns: Columns, voters: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """The Gram matrix of some voters, its upper half, centred where there is an intercept."""
    gram = columns.square(len(voters))
    centre = moments.voter_sum[voters] / moments.total_weight if fit_intercept else np.zeros(len(voters))
    done = 0
    while done < len(voters):
        columns.fetch(int(voters[done]))
        done = _core.gram_of(columns.store, voters, centre, moments.total_weight, gram, done)
    return gram


def times_each(gram: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """A symmetric matrix, of which the upper half is read, times each of some vectors (n, K)."""
    found = np.empty_like(vectors)
    for vector, out in zip(vectors, found, strict=True):
        _core.multiply(gram, vector, out)
    return found


def _newton_step(gram: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The step to where the slope is zero."""
    step = slope.copy()
    _core.solve(gram, step, ROUNDING * float(gram.diagonal().max()), NEAR)
    return step


def _way(
    gram: np.ndarray, slope: np.ndarray, here: np.ndarray, wanted: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Where to go: the whole step, half of it and so on, within bounds, or up to the first bound.

    That last one is sure to decrease the objective; the others reach many bounds at once. Once one does, shorter
    ones are tried as long as they do better: each takes a pass over the matrix.
    """
    step = wanted - here
    bound = np.where(step > 0, high, low)
    room = np.divide(bound - here, step, out=np.full(len(here), np.inf), where=step != 0)
    first = int(np.argmin(room))
    shares = [1.0]
    if room[first] < 1.0:
        n_halves = min(MOST_HALVES, int(-np.log2(max(room[first], 1e-300))) + 1)
        shares = [*0.5 ** np.arange(n_halves), room[first]]
    best, most = here, 0.0
    product = np.empty(len(here))
    for share in shares:
        end = np.clip(wanted if share == 1.0 else here + share * step, low, high)  # by rounding it may be outside
        if share == room[first]:
            end[first] = bound[first]
        _core.multiply(gram, end - here, product)
        decrease = _core.dot(end - here, 2.0 * slope - product)
        if decrease > most:
            best, most = end, decrease
        elif best is not here:
            break
    return best
