"""All weights at once under an l2 penalty, by conjugate gradients over coded rows.

Rounds move one weight at a time, which is for few voters. Under l2 every rule has a weight, and the objective is a
quadratic function: its minimum is a system of linear equations away. The Gram matrix is not needed for that, only its
products with vectors: one pass over the rows, from weights to their scores and from these to sums per bin. Sums are
exact, so the result is the same for any order of rows and any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._core import dot
from ..boosting.penalties import Penalty
from ..data.exact import Scales
from ..data.sampling import at_most, row_keys
from ..kernels.sums import bin_sums_of_scores
from ..kernels.voters import voter_sums
from ..moments.sums import ColumnSums
from .descent import SLACK, Curve, Descent, gap_within
from .sketch import Sketch

FEW_BITS = 8.0  # times the largest score: units so large that a score is less than 2**51 of them
SKETCHES = ((4_000, 64), (100_000, 128))  # from so many rows on, directions
SKETCH_ROWS = 16  # for each direction, at most

Bounds = tuple[np.ndarray, np.ndarray]  # the least and the largest weights, (n_outputs, K) each
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
    """Products of voters and coded rows: from weights to scores, from values of the rows to edges.

    Values and scores have a row for each of them; where these are elsewhere, so are they (`parts/products.py`).
    """

    def __init__(self, sums: ColumnSums, fit_intercept: bool) -> None:
        self.voters, self.sums, self.fit_intercept = sums.voters, sums, fit_intercept
        self.mean = sums.voter_sum / sums.total_weight
        self.centre = self.mean if fit_intercept else np.zeros(len(self.mean))
        self.eta = np.maximum(sums.voter_square / sums.total_weight - self.centre * self.centre, 0.0)

    def scores(self, weight: np.ndarray) -> Any:
        """Scores (m, n_outputs) of weights (n_outputs, K), without an intercept."""
        raise NotImplementedError

    def sums_towards(self, values: Any) -> ColumnSums:
        """Sums over the rows, with values (m, n_outputs) as targets."""
        raise NotImplementedError

    def bin_sums(self, question: BinSums) -> np.ndarray:
        """What the rows answer."""
        raise NotImplementedError

    def sample(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes of at most so many rows, and weights."""
        raise NotImplementedError

    def edges(self, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """mean(h_j value) of every voter, shape (n_outputs, K), and the means of the values.

        Where there is an intercept, of centred voters.
        """
        sums = self.sums_towards(values)
        means = sums.target_sum / sums.total_weight
        edges = sums.product_sum / sums.total_weight - np.outer(
            self.mean, means if self.fit_intercept else -sums.origin
        )
        return np.ascontiguousarray(edges.T), sums.origin + means

    def gram_times(self, weight: np.ndarray) -> np.ndarray:
        """The Gram matrix times weights (n_outputs, K): the edges of the scores, at one scale for all outputs."""
        columns, starts, extent = self.voters.columns_with_voters, self.voters.bin_start, self.sums.scales.extent
        values, first = self.voters.step_values(weight.T, columns)
        largest = float(np.maximum.reduceat(np.abs(values), first[:-1]).sum(axis=0).max(initial=0.0))
        unit = extent.unit(FEW_BITS * largest)
        bins = self.bin_sums(BinSums(columns, first, values, 1.0 / unit, starts, extent.are_repeats))
        found = np.empty(weight.shape)
        for in_bins, out in zip(np.ascontiguousarray(bins.T), found, strict=True):
            total, edges = in_bins[: starts[1]].sum(), np.zeros(len(out), dtype=np.int64)
            voter_sums(self.voters.layout, in_bins, edges)
            out[:] = edges - self.centre * float(total)
        return found * (unit / self.sums.total_weight)

    @cached_property
    def sketch(self) -> Sketch | None:
        """Of a sample of the rows; few rows are passed over more quickly than looked through."""
        extent = self.sums.scales.extent  # a weight is a repetition: both have as many examples
        n_directions = directions_for(int(extent.total) if extent.are_repeats else self.sums.n_rows)
        if not n_directions or self.voters.n_voters < 2 * n_directions:
            return None
        codes, weight = self.sample(SKETCH_ROWS * n_directions)
        nothing = np.zeros((len(codes), 1))
        sums = ColumnSums.of(self.voters, codes, nothing, weight, Scales.agree([(nothing, weight)]))
        some = CodedProducts(codes, weight, sums, self.fit_intercept, 1)
        return Sketch(some.gram_times, self.voters.n_voters, n_directions)

    def solved(
        self, weight: np.ndarray, y: Any, ridge: np.ndarray, bounds: Bounds, first_risk: np.ndarray, tol: float,
        history: list[np.ndarray],
    ) -> Solved:  # fmt: skip
        """Where weights (n_outputs, K) stand, computed anew: rounding may have piled up on the way to them."""
        edge, _ = self.edges(y - self.scores(weight))
        (margin, mean), left = self.edges(y), edge - ridge * weight
        intercept = np.zeros(len(weight))
        if self.fit_intercept:
            intercept = mean - np.array([dot(self.centre, weights) for weights in weight])
        risk = first_risk - _dots(weight, margin + edge)
        gap = np.array([gap_within(ridge, *of_output) for of_output in zip(weight, left, *bounds, strict=True)])
        converged = bool((gap <= tol * first_risk).all())
        return Solved(weight.T.copy(), intercept, edge.T.copy(), np.maximum(risk, 0.0), gap, history, converged)


@dataclass(frozen=True)
class BinSums:
    """A question to coded rows: the sums of their scores in every bin, shape (bins, n_outputs), in units."""

    columns: np.ndarray
    first: np.ndarray  # where the values of each column begin
    values: np.ndarray  # what each bin adds to the scores
    per_unit: float
    bin_start: np.ndarray
    are_repeats: bool  # whether weights count rows

    def __call__(self, codes: np.ndarray, weight: np.ndarray | None, n_threads: int) -> np.ndarray:
        factor, count = np.empty(0), np.empty(0, np.int64)
        if weight is not None and self.are_repeats:
            count = weight.astype(np.int64)
        elif weight is not None:
            factor = weight
        bins = np.zeros((n_threads, self.bin_start[-1], self.values.shape[1]), np.int64)
        how = (self.columns, self.first, self.values, self.per_unit, factor, count, self.bin_start)
        bin_sums_of_scores(codes, *how, bins)
        return bins.sum(axis=0)


class CodedProducts(Products):
    """Of rows in memory."""

    def __init__(
        self, codes: np.ndarray, weight: np.ndarray | None, sums: ColumnSums, fit_intercept: bool, n_threads: int
    ) -> None:
        super().__init__(sums, fit_intercept)
        self.codes, self.weight, self.n_threads = codes, weight, n_threads

    def scores(self, weight: np.ndarray) -> np.ndarray:
        return self.voters.scores(self.codes, weight.T, np.zeros(len(weight)), self.n_threads)

    def sums_towards(self, values: np.ndarray) -> ColumnSums:
        return self.sums.with_targets(self.codes, values, self.weight, self.n_threads)

    def bin_sums(self, question: BinSums) -> np.ndarray:
        return question(self.codes, self.weight, self.n_threads)

    def sample(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        are_repeats = self.sums.scales.extent.are_repeats
        keys, copies = keys_by_codes(self.codes[:, : self.voters.n_features], self.weight, are_repeats)
        kept = at_most(keys, copies, n_rows)
        rows = np.flatnonzero(kept)
        codes = np.ascontiguousarray(self.codes[rows])
        if self.weight is None:
            return codes, kept[rows].astype(float)
        return codes, self.weight[rows] / copies[rows] * kept[rows]


def keys_by_codes(codes: np.ndarray, weight: np.ndarray | None, are_repeats: bool) -> tuple[np.ndarray, np.ndarray]:
    """Keys of rows whatever their targets, and copies; rows of weights that do not count them differ by weight."""
    one_each = np.ones(len(codes), dtype=np.int64)
    if weight is None or are_repeats:
        return row_keys(codes), one_each if weight is None else weight.astype(np.int64)
    return row_keys(codes, weight[:, None]), one_each


def solve_ridge(
    rows: Products, y: Any, ridge: np.ndarray, bounds: Bounds, first_risk: np.ndarray, tol: float,
    max_iterations: int, start: np.ndarray | None = None,
    watch: Watch = lambda iteration, objective, weight: False,
) -> Solved:  # fmt: skip
    """Minimise mean((y - F)^2) + sum ridge_j a_j^2 for each output, to a gap of `tol` times the first risk.

    Parameters
    ----------
    ridge : array of shape (K,)
        Above zero.
    bounds : pair of arrays of shape (n_outputs, K)
        The least and the largest weights.
    first_risk : array of shape (n_outputs,)
        Of the best constant, or of zero where there is no intercept.
    start : array of shape (n_outputs, K), optional
        Weights to begin with.
    watch : callable, optional
        Called with the number of the iteration, the objectives and the weights; a true answer stops.
    """
    margin, _ = rows.edges(y)
    weight = np.zeros_like(margin) if start is None else np.clip(start, *bounds)
    left = margin if start is None else margin - rows.gram_times(weight) - ridge * weight
    curve = Curve(ridge, rows.eta, rows.sketch)
    each = zip(margin, weight, left, *bounds, tol * first_risk, SLACK * first_risk, strict=True)
    ways = [Descent(curve, *of_output) for of_output in each]
    history: list[np.ndarray] = []
    while len(history) < max_iterations and (on := [one for one in ways if one.gap > one.enough]):  # outputs to go on
        way = np.array([descent.way for descent in on])
        for descent, change in zip(on, rows.gram_times(way) + ridge * way, strict=True):
            descent.go(change)
        history.append(first_risk - np.array([descent.gain for descent in ways]))
        if watch(len(history), history[-1], np.array([descent.best for descent in ways])):
            break
    return rows.solved(np.array([descent.best for descent in ways]), y, ridge, bounds, first_risk, tol, history)


def directions_for(n_rows: int) -> int:
    """How many directions a sketch of so many rows has; 0 if it would not pay."""
    return max((n for least, n in SKETCHES if n_rows >= least), default=0)


def bounds_of(penalties: Sequence[Penalty], n_voters: int) -> Bounds:
    """What the penalties of the outputs allow weights to be."""
    _, _, low, high = zip(*(penalty.rule(n_voters) for penalty in penalties), strict=True)
    return np.array(low), np.array(high)


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([dot(row, other) for row, other in zip(x, y, strict=True)])
