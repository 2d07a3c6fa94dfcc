"""Conjugate gradients to the least of a quadratic function of weights, within bounds.

The function is a'Aa - 2 m'a; what is `left` is m - Aa, half of its slope downwards. Weights that no bound holds are
free. Conjugate gradients go to the least over the free ones as if there were no bounds. Then comes a turn: weights
beyond a bound are put on it and held, held ones that are pulled inside are let go. Hundreds change at once, and some
ten turns find which weights are at a bound. But turns may undo one another. After a few that brought nothing the
descent is careful: it stops wherever a first weight reaches a bound and holds that one alone, until no bound is in its
way. That never goes up, so it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from .._core import dot
from .sketch import Sketch

NEAR = 1e-2  # the gap over the free weights falls to this share before a turn: much earlier, turns undo one another
CLOSE = 0.4  # or to this share of the gap that is wanted in the end
PULLED = 2.0  # a held weight is let go where more is left than this times what is left of a free one
MOST_IN_VAIN = 4  # turns
SLACK = 1e-12  # of the first risk: what rounding may add to an objective

Precondition = Callable[[np.ndarray], np.ndarray]


class Curve:
    """A ridge for each voter, the diagonal of the matrix A, and its sketch, if there is one."""

    def __init__(self, ridge: np.ndarray, eta: np.ndarray, sketch: Sketch | None) -> None:
        self.ridge, self.diagonal, self.sketch = ridge, eta + ridge, sketch
        self.size = np.sqrt(self.diagonal)

    def precondition(self, is_free: np.ndarray) -> Precondition:
        """About the inverse of the matrix of the free weights, times a vector that is zero elsewhere."""
        if is_free.all():
            return self._of_all
        if self.sketch is None:
            return lambda left: left / self.diagonal
        free = np.flatnonzero(is_free)
        times_inverse = self.sketch.of(free).preconditioner(self.diagonal[free])

        def apply(left: np.ndarray) -> np.ndarray:
            out = np.zeros(len(left))
            out[free] = times_inverse(left[None, free])[0]
            return out

        return apply

    @cached_property
    def _of_all(self) -> Precondition:
        diagonal = self.diagonal
        if self.sketch is None:
            return lambda left: left / diagonal
        apply = self.sketch.preconditioner(self.diagonal)
        return lambda left: apply(left[None])[0]


class Descent:
    """The way of one output to the least.

    What is left of the equations does not fall with every step, and it is what the gap is made of. So `calm` is not
    where the steps are, but the point between it and the steps where least is left. `best` are the best weights so
    far that are within the bounds. Whoever leads the descent multiplies `way` by the matrix and hands it to `go`.

    Parameters
    ----------
    curve : Curve
    margin : array of shape (K,)
        What is left where all weights are zero.
    weight, left : arrays of shape (K,)
        Weights within the bounds to begin with.
    low, high : arrays of shape (K,)
    enough : float
        The gap that is wanted.
    slack : float
        What rounding may add to an objective.
    """

    def __init__(
        self, curve: Curve, margin: np.ndarray, weight: np.ndarray, left: np.ndarray, low: np.ndarray, high: np.ndarray,
        enough: float, slack: float,
    ) -> None:  # fmt: skip
        self.curve, self.margin, self.low, self.high = curve, margin, low, high
        self.enough, self.slack = enough, slack
        self.best, self.best_left = weight, left
        self.n_in_vain, self.is_careful = 0, False
        self._begin(weight, left, self._unheld(weight, left, 0.0))

    @property
    def gain(self) -> float:
        """By how much the best weights lower the objective."""
        return dot(self.best, self.margin + self.best_left)

    @property
    def gap(self) -> float:
        """A bound on how far the best weights are from the least objective."""
        return gap_within(self.curve.ridge, self.best, self.best_left, self.low, self.high)

    def go(self, change: np.ndarray) -> None:
        """One step, given the matrix times `way`."""
        self._then(self, change)

    def _begin(self, weight: np.ndarray, left: np.ndarray, is_free: np.ndarray) -> None:
        """Conjugate gradients from here."""
        if not is_free.any():
            is_free, self.is_careful = self._unheld(weight, left, 0.0), False
        self.is_free, self.precondition = is_free, self.curve.precondition(is_free)
        self.weight = self.calm = self.first = weight
        self.left = self.calm_left = self.first_left = left
        self.way = self.precondition(self._free(left))
        self.slope = dot(left, self.way)
        self.first_gap = self._free_gap()
        self._then = Descent._step  # of the class: a method that knows its object would keep it alive

    def _free(self, values: np.ndarray) -> np.ndarray:
        return np.where(self.is_free, values, 0.0)

    def _free_gap(self) -> float:
        left = self._free(self.calm_left)
        return dot(left, left / self.curve.ridge)

    def _step(self, change: np.ndarray) -> None:
        step = _ratio(self.slope, dot(self.way, change))
        self.weight = self.weight + step * self.way
        self.left = self.left - step * change
        left = self._free(self.left)
        ahead = self.precondition(left)
        before, self.slope = self.slope, dot(left, ahead)
        self.way = ahead + _ratio(self.slope, before) * self.way
        apart = self._free(self.calm_left - self.left)
        weighed = apart / self.curve.ridge
        share = _ratio(dot(self.calm_left, weighed), dot(apart, weighed))
        self.calm = self.calm + share * (self.weight - self.calm)
        self.calm_left = self.calm_left - share * (self.calm_left - self.left)
        if ((self.calm >= self.low) & (self.calm <= self.high)).all():
            self._offer(self.calm, self.calm_left)
        if self._free_gap() <= max(NEAR * self.first_gap, CLOSE * self.enough):
            self._turn()

    def _offer(self, weight: np.ndarray, left: np.ndarray) -> bool:
        """Whether weights within the bounds are better than the best."""
        is_better = dot(weight, self.margin + left) > self.gain - self.slack
        if is_better:
            self.best, self.best_left = weight, left
        return is_better

    def _unheld(self, weight: np.ndarray, left: np.ndarray, least: float) -> np.ndarray:
        """Which weights are free: those between their bounds, or pulled there from a bound."""
        pull, up, down = left / self.curve.size, weight < self.high, weight > self.low
        return (up & down) | (up & (pull > least)) | (down & (pull < -least))

    def _turn(self) -> None:
        """Hold weights, and let others go."""
        if self.is_careful:
            self._stop_at_first_bound()
            return
        left = self._free(self.calm_left / self.curve.size)
        usual = float(np.sqrt(dot(left, left) / np.count_nonzero(self.is_free)))
        self._next_free = self._unheld(self.calm, self.calm_left, PULLED * usual)
        within = np.clip(self.calm, self.low, self.high)
        if (within != self.calm).any():
            self.way, self._then = within - self.calm, Descent._put_within
        elif (self._next_free != self.is_free).any():
            self._begin(self.calm, self.calm_left, self._next_free)
        else:
            self.first_gap = self._free_gap()

    def _put_within(self, change: np.ndarray) -> None:
        within, left = np.clip(self.calm, self.low, self.high), self.calm_left - change
        self.n_in_vain = 0 if self._offer(within, left) else self.n_in_vain + 1
        self.is_careful = self.n_in_vain >= MOST_IN_VAIN
        if self.is_careful:
            within, left = self.best, self.best_left
            self._next_free = self._unheld(within, left, 0.0)
        self._begin(within, left, self._next_free)

    def _stop_at_first_bound(self) -> None:
        """Go from where the steps began to where they ended, or until a weight reaches a bound, and hold it there."""
        step = self._free(self.calm - self.first)
        bound = np.where(step > 0, self.high, self.low)
        room = np.divide(bound - self.first, step, out=np.full(len(step), np.inf), where=step != 0)
        share = float(room.min())
        self.is_careful = share <= 1.0
        if self.is_careful:
            weight = np.where(room <= share, bound, np.clip(self.first + share * step, self.low, self.high))
            left = self.first_left + share * (self.calm_left - self.first_left)
            self._offer(weight, left)
            self._begin(weight, left, self.is_free & (room > share))
        else:
            self.n_in_vain = 0
            self._begin(self.calm, self.calm_left, self._unheld(self.calm, self.calm_left, 0.0))


def gap_within(ridge: np.ndarray, weight: np.ndarray, left: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """A bound on how far weights within bounds are from the least objective, by Fenchel's duality."""
    wanted = np.clip(weight + left / ridge, low, high)
    apart = wanted - weight
    beyond = left - ridge * apart  # of what is left, by how much it pulls beyond a bound
    is_held = (wanted == low) | (wanted == high)
    return dot(ridge * apart, apart) + 2.0 * dot(np.where(is_held, beyond, 0.0), apart)


def _ratio(x: float, y: float) -> float:
    """x / y, or 0 where nothing is to be divided."""
    return x / y if y > 0 else 0.0
