"""All voters of an ensemble re-weighted at once, to the least objective that they can reach together.

A round moves one weight. Stumps with neighbouring thresholds nearly agree, and rounds take thousands of turns to
settle among them what one system of linear equations settles. Both have the same fixed points.
"""

from __future__ import annotations

import numpy as np

from .. import _core
from ..kernels.sums import matrix_products
from ..moments.gram import Columns
from ..moments.moments import Moments
from .penalties import Penalty

MOST_TOGETHER = 2_000  # voters; the time to solve for them grows with the cube
MOST_HALVES = 10
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
    gram = _gram(moments, columns, voters, fit_intercept)
    gram[np.diag_indices(len(voters))] += penalty.ridge
    x, sign = weight[voters], np.sign(weight[voters])
    slope = edge[voters] - penalty.shrink * sign - penalty.ridge * x  # of the objective, times -1/2
    low = np.where((penalty.shrink > 0) & (sign > 0), 0.0, -penalty.cap)
    high = np.where((penalty.shrink > 0) & (sign < 0), 0.0, penalty.cap)
    free = ~((x >= high) & (slope >= 0) | (x <= low) & (slope <= 0))
    while free.any():
        here, own, limits = x[free], gram[np.ix_(free, free)], (low[free], high[free])
        wanted = here + _newton_step(own, slope[free])
        ways = _ways(here, wanted, *limits)
        steps = [end - here for end in ways]
        decrease = [_core.dot(step, 2.0 * slope[free] - _products(own, step)) for step in steps]
        best = int(np.argmax(decrease))
        if not decrease[best] > 0:
            break
        x[free] = ways[best]
        slope -= _products(gram[:, free], steps[best])
        free &= (x > low) & (x < high)
        if np.array_equal(ways[best], wanted):
            break
    result = weight.copy()
    result[voters] = x
    return result


def _gram(moments: Moments, columns: Columns, voters: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """The Gram matrix of some voters, centred where there is an intercept."""
    gram = np.empty((len(voters), len(voters)))
    for row, voter in zip(gram, voters.tolist(), strict=True):
        row[:] = columns.column(voter)[voters]
    gram /= moments.total_weight
    if fit_intercept:
        mean = moments.voter_sum[voters] / moments.total_weight
        gram -= np.outer(mean, mean)
    return gram


def _products(rows: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The matrix times the vector, the same bits on every machine."""
    out = np.empty(len(rows))
    matrix_products(np.ascontiguousarray(rows).T, x, out, 1)
    return out


def _newton_step(gram: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The step to where the slope is zero."""
    step = slope.copy()
    _core.solve(gram.copy(), step, ROUNDING * float(gram.diagonal().max()))
    return step


def _ways(here: np.ndarray, wanted: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """Where to go: the whole step, a half of it and so on, within bounds; last, up to the first bound on the way.

    That last one is sure to decrease the objective; the others reach many bounds at once.
    """
    step = wanted - here
    bound = np.where(step > 0, high, low)
    room = np.divide(bound - here, step, out=np.full(len(here), np.inf), where=step != 0)
    first = int(np.argmin(room))
    if room[first] >= 1.0:
        return [wanted]
    shares = 0.5 ** np.arange(min(MOST_HALVES, int(-np.log2(max(room[first], 1e-300))) + 1))
    last = np.clip(here + room[first] * step, low, high)
    last[first] = bound[first]
    return [*(np.clip(here + share * step, low, high) for share in shares), last]
