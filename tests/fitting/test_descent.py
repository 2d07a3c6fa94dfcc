"""Conjugate gradients within bounds, on explicit matrices, against scipy's bounded least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from quadboost.fitting.descent import Curve, Descent, gap_within
from quadboost.fitting.sketch import Sketch

ENOUGH = 1e-10


class Bounded:
    """Voters that are alike, in a few directions (odd seeds) or as neighbours, and a target of size one."""

    def __init__(self, seed, *, finite=False):
        rng = np.random.default_rng(seed)
        m, k = 60, 50
        alike = rng.normal(size=(m, 3)) @ rng.normal(size=(3, k)) + 0.01 * rng.normal(size=(m, k))
        self.H = alike if seed % 2 else np.where(rng.random((m, 1)) > np.linspace(0, 1, k), 1.0, -1.0)
        y = rng.normal(size=m) + self.H @ rng.normal(size=k)
        self.y = y / np.sqrt(np.mean(y * y))
        self.ridge = np.full(k, 10.0 ** -(2 + seed % 3))
        self.low = np.where(rng.random(k) < 0.6, 0.0, -0.05 if finite else -np.inf)
        self.high = np.where(rng.random(k) < 0.3, 0.0, 0.03 if finite else np.inf)
        self.gram, self.margin = self.H.T @ self.H / m, self.H.T @ self.y / m

    def objective(self, weight):
        return np.mean((self.y - self.H @ weight) ** 2) + self.ridge @ weight**2

    def exact(self):
        """By scipy, which cannot hold a weight at one value: such voters are left out."""
        is_free = self.low < self.high
        rows = np.vstack([self.H[:, is_free] / np.sqrt(len(self.y)), np.diag(np.sqrt(self.ridge[is_free]))])
        target = np.append(self.y / np.sqrt(len(self.y)), np.zeros(is_free.sum()))
        weight = np.zeros(len(is_free))
        weight[is_free] = lsq_linear(rows, target, (self.low[is_free], self.high[is_free]), tol=1e-14).x
        return weight

    def descent(self, with_sketch=False):
        sketch = Sketch(lambda weight: weight @ self.gram, len(self.margin), 8) if with_sketch else None
        curve, nothing = Curve(self.ridge, self.gram.diagonal(), sketch), np.zeros(len(self.margin))
        return Descent(curve, self.margin, nothing, self.margin, self.low, self.high, ENOUGH, 1e-14)

    def go(self, way):
        way.go(self.gram @ way.way + self.ridge * way.way)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("with_sketch", [False, True])
def test_it_comes_to_the_least_within_the_bounds_and_says_how_near_it_is(seed, finite, with_sketch):
    problem = Bounded(seed, finite=finite)
    least = problem.objective(problem.exact())
    way, n, before = problem.descent(with_sketch), 0, np.inf
    while way.gap > ENOUGH and n < 5_000:
        problem.go(way)
        objective, n = problem.objective(way.best), n + 1
        assert (way.best >= problem.low).all()
        assert (way.best <= problem.high).all()
        assert objective - least <= way.gap + 1e-12
        assert objective <= before + 1e-12
        before = objective
    assert way.gap <= ENOUGH
    assert objective == pytest.approx(least, rel=0, abs=2 * ENOUGH)


def test_turns_that_undo_one_another_end():
    problem, was_careful, n = Bounded(1), False, 0
    problem.ridge[:] = 1e-7
    way = problem.descent()
    while way.gap > ENOUGH and n < 5_000:
        problem.go(way)
        was_careful, n = was_careful or way.is_careful, n + 1
    assert was_careful
    assert way.gap <= ENOUGH


def test_without_bounds_the_gap_is_what_is_left():
    weight, left, ridge = np.random.default_rng(0).random((3, 9))
    free = np.full(9, -np.inf), np.full(9, np.inf)
    assert gap_within(ridge, weight, left, *free) == pytest.approx((left**2 / ridge).sum(), rel=1e-12)


def test_a_weight_at_a_bound_that_is_pulled_beyond_it_has_nothing_to_gain():
    at_bound = np.zeros(2)
    assert gap_within(np.ones(2), at_bound, np.array([-3.0, 5.0]), np.array([0.0, -1.0]), np.array([1.0, 0.0])) == 0
