"""The four penalties of the paper, each the owner of its maths.

For one voter, with z = edge + eta * (weight replaced), the objective as a function of the new weight x is
(eta + ridge) x^2 - 2 z x + 2 shrink |x|, within +-cap. Every penalty states its three numbers, also to the kernels.
Where voters differ (limits.py) they are arrays, and low and high stand for +-cap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._core import dot
from ..common.checks import not_negative, one_of, positive


def for_each(value: float | np.ndarray, n_voters: int) -> np.ndarray:
    """One value for every voter; a number takes the memory of one. Quicker for numbers than numpy.broadcast_to."""
    if isinstance(value, np.ndarray):
        return np.broadcast_to(value, n_voters)
    return np.ndarray(n_voters, buffer=np.float64(value).tobytes(), strides=(0,))


class Penalty:
    """What the booster asks of a penalty; here of one that adds nothing."""

    @property
    def ridge(self) -> float:
        """What it adds to eta."""
        return 0.0

    @property
    def shrink(self) -> float:
        """Soft threshold on z."""
        return 0.0

    @property
    def cap(self) -> float:
        """Bound on the absolute value of a weight."""
        return np.inf

    @property
    def low(self) -> float:
        """The least weight."""
        return -self.cap

    @property
    def high(self) -> float:
        """The largest weight."""
        return self.cap

    @property
    def differs(self) -> bool:
        """Whether shrink, low or high are not the same for all voters."""
        return False

    def rule(self, n_voters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Ridge, shrink, low and high of every voter."""
        ridge, shrink, low, high = (for_each(x, n_voters) for x in (self.ridge, self.shrink, self.low, self.high))
        return ridge, shrink, low, high

    def bounds(self, n_voters: int) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest weight of every voter, apart from the cap, which is on every copy of a voter."""
        return for_each(-np.inf, n_voters), for_each(np.inf, n_voters)

    def at(self, strength: float) -> Penalty:
        """The same penalty of another strength."""
        return self

    def weight(self, z: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """The weight that minimises the objective."""
        shrunk = np.sign(z) * np.maximum(np.abs(z) - self.shrink, 0.0)
        return np.clip(shrunk / (eta + self.ridge), self.low, self.high)

    def decrease(self, z: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """By how much a new voter of that weight decreases the objective."""
        x = self.weight(z, eta)
        return np.abs(x) * (2.0 * (np.abs(z) - self.shrink) - (eta + self.ridge) * np.abs(x))

    def value(self, weight: np.ndarray) -> float:
        """What the penalty adds to the risk in the objective."""
        return 0.0

    @property
    def has_gap(self) -> bool:
        """Whether `gap` is known."""
        return False

    def gap(self, weight: np.ndarray, edge: np.ndarray, risk: float) -> float:
        """A bound on how far the objective is above its minimum over all weights; NaN where there is none."""
        return np.nan

    def divided_by(self, curvature: float) -> Penalty:
        """The penalty on weights of a quadratic function that stands for a loss of that curvature."""
        return self

    def violation(self, weight: np.ndarray, edge: np.ndarray) -> float:
        """The largest distance of an edge from what the conditions of optimality (KKT) want it to be."""
        slope = edge - self.ridge * weight
        up = np.where(weight < self.high, slope - np.where(weight >= 0, self.shrink, -self.shrink), 0.0)
        down = np.where(weight > self.low, -slope - np.where(weight <= 0, self.shrink, -self.shrink), 0.0)
        return float(np.maximum(up, down).max(initial=0.0))

    def largest(self, edge: np.ndarray, eta: np.ndarray) -> float:
        """The largest strength worth trying, from the edges before the first round; NaN where there is none."""
        return np.nan


@dataclass(frozen=True)
class NoPenalty(Penalty):
    """Vanilla QuadBoost: the risk alone (equation 8 of the paper)."""


@dataclass(frozen=True)
class L1(Penalty):
    """Risk + 2 lam sum |a| (equation 9): converges to the LASSO, and stops by itself."""

    lam: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", not_negative("reg_lambda", self.lam))

    @property
    def shrink(self) -> float:
        return self.lam

    def value(self, weight: np.ndarray) -> float:
        return 2.0 * self.lam * float(np.abs(weight).sum())

    @property
    def has_gap(self) -> bool:
        return self.lam > 0

    def gap(self, weight: np.ndarray, edge: np.ndarray, risk: float) -> float:
        # Dual: maximise 2 mean(y theta) - mean(theta^2) over theta with |mean(h_j theta)| <= lam. theta = s r, best s.
        target = risk + dot(weight, edge)  # mean(y r)
        steepest = float(np.abs(edge).max(initial=0.0))
        limit = self.lam / steepest if steepest > 0 else np.inf
        scale = min(max(target / risk, -limit), limit) if risk > 0 else min(1.0, limit)
        return max(0.0, risk + self.value(weight) - (2.0 * scale * target - scale * scale * risk))

    def at(self, strength: float) -> L1:
        return L1(strength)

    def divided_by(self, curvature: float) -> L1:
        return L1(self.lam / curvature)

    def largest(self, edge: np.ndarray, eta: np.ndarray) -> float:
        # From there on every weight is zero.
        return float(np.abs(edge).max(initial=0.0))


@dataclass(frozen=True)
class L2(Penalty):
    """Risk + lam sum a^2 (equation 10): converges to ridge regression."""

    lam: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", not_negative("reg_lambda", self.lam))

    @property
    def ridge(self) -> float:
        return self.lam

    def value(self, weight: np.ndarray) -> float:
        return self.lam * dot(weight, weight)

    @property
    def has_gap(self) -> bool:
        return self.lam > 0

    def gap(self, weight: np.ndarray, edge: np.ndarray, risk: float) -> float:
        if not self.has_gap:
            return np.nan
        slack = self.lam * weight - edge
        return dot(slack, slack) / self.lam

    def at(self, strength: float) -> L2:
        return L2(strength)

    def divided_by(self, curvature: float) -> L2:
        return L2(self.lam / curvature)

    def largest(self, edge: np.ndarray, eta: np.ndarray) -> float:
        # The objective falls by at most sum edge^2 / lam: beyond this, all voters together bring less than the
        # best one alone brings without a penalty.
        best = float(np.max(edge * edge / eta, initial=0.0))
        return dot(edge, edge) / best if best > 0 else 0.0


@dataclass(frozen=True)
class LInf(Penalty):
    """The risk with every |a| <= alpha_max (equation 11): converges to bounded least squares."""

    alpha_max: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha_max", positive("alpha_max", self.alpha_max))

    @property
    def cap(self) -> float:
        return self.alpha_max

    def at(self, strength: float) -> LInf:
        return LInf(strength)

    @property
    def has_gap(self) -> bool:
        return True

    def gap(self, weight: np.ndarray, edge: np.ndarray, risk: float) -> float:
        # The objective is convex: from here to any point of the box it falls by no more than its slope says.
        return 2.0 * float((self.alpha_max * np.abs(edge) - weight * edge).sum())

    def largest(self, edge: np.ndarray, eta: np.ndarray) -> float:
        # No first weight is as large as this: a higher bound hardly differs from none.
        return float(np.max(np.abs(edge) / eta, initial=0.0))


# Of "auto"; measured, see docs/defaults.md.
AUTO_L1 = 0.4
AUTO_L2_CORRECTIVE = 0.3
AUTO_L2_FORWARD = 1600.0
AUTO_LINF = 0.7


def make_penalty(name: str | Penalty | None, reg_lambda: float = 0.0, alpha_max: float = 0.1) -> Penalty:
    """The penalty of that name; a penalty object is returned as it is."""
    makers: dict[str | None, Callable[[], Penalty]] = {
        None: NoPenalty,
        "l1": lambda: L1(reg_lambda),
        "l2": lambda: L2(reg_lambda),
        "linf": lambda: LInf(alpha_max),
    }
    if isinstance(name, Penalty):
        return name
    return makers[one_of("penalty", name, list(makers))]()


def auto_strength(name: str | None, mode: str, n_examples: float, target_scale: float, n_voters: int) -> float:
    """The default strength of a penalty.

    The edge of a voter that has nothing to do with the target is noise of size target_scale / sqrt(n_examples):
    an l1 penalty must be of that size to keep such voters out. The more voters there are, the less each is expected
    to weigh: an l2 penalty grows with their number. In forward mode it sets a step, for ten thousand of them. Under
    linf the weights of noise are all at the bound: K such voters explain as much noise as one would whose weight is
    K / sqrt(n_examples) times the bound.
    """
    if name == "l1":
        return AUTO_L1 * target_scale / n_examples**0.5
    if name == "l2" and mode == "corrective":
        return AUTO_L2_CORRECTIVE * n_voters / n_examples
    if name == "l2":
        return AUTO_L2_FORWARD * n_voters**0.5 / n_examples
    if name == "linf":
        return AUTO_LINF * target_scale * n_examples**0.5 / max(1, n_voters) or 1.0  # where there is nothing to explain
    return 0.0
