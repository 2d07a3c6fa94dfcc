"""All weights at once under an l2 penalty, by conjugate gradients over coded rows.

Rounds move one weight at a time, which is for few voters. Under l2 every rule has a weight, and the objective is a
quadratic function: its minimum is a system of linear equations away. The Gram matrix is not needed for that, only its
products with vectors: from weights to scores of the rows, and from these to sums per bin. Sums are exact, so the result
is the same for any order of rows and any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._core import dot
from ..kernels.gram import voter_sums
from ..kernels.sums import bin_sums, score_codes
from ..moments.sums import ColumnSums
from ..voters.columns import Voters

Watch = Callable[[int, np.ndarray, np.ndarray], bool]


@dataclass(frozen=True)
class Solved:
    """Weights (K, n_outputs), intercepts, and for each output the risk and a bound on what is left to gain."""

    weight: np.ndarray
    intercept: np.ndarray
    edge: np.ndarray
    risk: np.ndarray
    gap: np.ndarray
    history: list[np.ndarray]  # the objective of each output after each iteration
    converged: bool


class Products:
    """Products of voters and coded rows: from weights to scores, from values of the rows to edges."""

    def __init__(
        self, voters: Voters, codes: np.ndarray, weight: np.ndarray | None, sums: ColumnSums, fit_intercept: bool,
        n_threads: int,
    ) -> None:  # fmt: skip
        self.voters, self.codes, self.weight, self.sums = voters, codes, weight, sums
        self.fit_intercept, self.n_threads = fit_intercept, n_threads
        self.mean = sums.voter_sum / sums.total_weight
        self.centre = self.mean if fit_intercept else np.zeros(len(self.mean))
        self.eta = sums.voter_square / sums.total_weight - self.centre * self.centre
        self._columns = np.flatnonzero(np.diff(voters.voter_start))
        self._starts = voters.bin_start[self._columns]
        self._first = np.repeat(voters.bin_start[:-1], np.diff(voters.voter_start))

    def scores(self, weight: np.ndarray) -> np.ndarray:
        """Scores (m, n_outputs) of weights (n_outputs, K), without an intercept."""
        low, high, whole = self.voters.intervals
        n_bins = int(self.voters.bin_start[-1]) + 1
        values = np.empty((n_bins, len(weight)))
        for output, own in enumerate(weight):
            inside = np.bincount(low + 1, own, n_bins) - np.bincount(high + 1, own, n_bins)
            rises = 2.0 * inside - np.bincount(self._first, own, n_bins) + np.bincount(whole + 1, own, n_bins)
            values[:, output] = np.cumsum(rises)
        scores = np.zeros((len(self.codes), len(weight)))
        score_codes(self.codes, self._columns, self._starts, values, scores, self.n_threads)
        return scores

    def edges(self, values: np.ndarray) -> np.ndarray:
        """mean(h_j value) of every voter, shape (n_outputs, K); of centred voters, where there is an intercept."""
        sums = self.sums.with_targets(self.codes, values, self.weight, self.n_threads)
        means = (sums.target_sum / sums.total_weight) if self.fit_intercept else -sums.origin
        edges = sums.product_sum / sums.total_weight - np.outer(self.mean, means)
        return np.ascontiguousarray(edges.T)

    def gram_times(self, weight: np.ndarray) -> np.ndarray:
        """The Gram matrix times weights (n_outputs, K): the edges of the scores, at one scale for all outputs."""
        scores, extent = self.scores(weight), self.sums.scales.extent
        largest = float(np.abs(scores).max(initial=0.0))
        whole = extent.fixed_point(scores, None if self.weight is None else self.weight[:, None], largest)
        bins = np.zeros((int(self.voters.bin_start[-1]), len(weight)), dtype=np.int64)
        bin_sums(self.codes, whole, self.voters.bin_start, bins, self.n_threads)
        unit = extent.unit(largest) / self.sums.total_weight
        edges = np.zeros(weight.shape, dtype=np.int64)
        for own, out in zip(np.ascontiguousarray(bins.T), edges, strict=True):
            voter_sums(self.voters.layout, own, out)
        means = whole.sum(axis=0) * unit if self.fit_intercept else np.zeros(len(weight))
        return edges * unit - np.outer(means, self.mean)

    def solved(
        self, weight: np.ndarray, y: np.ndarray, ridge: np.ndarray, first_risk: np.ndarray, tol: float,
        history: list[np.ndarray],
    ) -> Solved:  # fmt: skip
        """Where weights (n_outputs, K) stand, computed anew: rounding may have piled up on the way to them."""
        edge = self.edges(y - self.scores(weight))
        margin, left = self.edges(y), edge - ridge * weight
        intercept = np.zeros(len(weight))
        if self.fit_intercept:
            mean = self.sums.origin + self.sums.target_sum / self.sums.total_weight
            intercept = mean - np.array([dot(self.centre, own) for own in weight])
        risk = first_risk - _dots(weight, margin + edge)
        gap = _dots(left, left / ridge)
        converged = bool((gap <= tol * first_risk).all())
        return Solved(weight.T.copy(), intercept, edge.T.copy(), np.maximum(risk, 0.0), gap, history, converged)


def solve_ridge(
    rows: Products, y: np.ndarray, ridge: np.ndarray, first_risk: np.ndarray, tol: float, max_iterations: int,
    start: np.ndarray | None = None, watch: Watch = lambda iteration, objective, weight: False,
) -> Solved:  # fmt: skip
    """Minimise mean((y - F)^2) + sum ridge_j a_j^2 for each output, to a gap of `tol` times the first risk.

    Parameters
    ----------
    ridge : array of shape (n_outputs, K)
        Above zero.
    first_risk : array of shape (n_outputs,)
        Of the best constant, or of zero where there is no intercept.
    start : array of shape (n_outputs, K), optional
        Weights to begin with.
    watch : callable, optional
        Called with the number of the iteration, the objectives and the weights; a true answer stops.
    """
    margin = rows.edges(y)
    inverse = 1.0 / (np.maximum(rows.eta, 0.0) + ridge)
    weight = np.zeros_like(margin) if start is None else start.copy()
    left = margin.copy() if start is None else margin - _products(rows, weight, ridge)
    way = inverse * left
    gain, gap = _dots(left, way), _dots(left, left / ridge)
    history: list[np.ndarray] = []
    while len(history) < max_iterations and len(on := np.flatnonzero(gap > tol * first_risk)):  # outputs to go on with
        change = _products(rows, way[on], ridge[on])
        curvature = _dots(way[on], change)
        step = np.divide(gain[on], curvature, out=np.zeros(len(on)), where=curvature > 0)[:, None]
        weight[on] += step * way[on]
        left[on] -= step * change
        ahead = inverse[on] * left[on]
        before, gain[on] = gain[on], _dots(left[on], ahead)
        way[on] = ahead + np.divide(gain[on], before, out=np.zeros(len(on)), where=before > 0)[:, None] * way[on]
        gap[on] = _dots(left[on], left[on] / ridge[on])
        history.append(first_risk - _dots(weight, margin + left))
        if watch(len(history), history[-1], weight):
            break
    return rows.solved(weight, y, ridge, first_risk, tol, history)


def _products(rows: Products, weight: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """The matrix of the equations times weights: Gram matrix and ridge."""
    return rows.gram_times(weight) + ridge * weight


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([dot(own, other) for own, other in zip(x, y, strict=True)])
