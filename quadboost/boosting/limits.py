"""A penalty that differs between voters: a factor for each, and bounds on its weight.

With a factor f the penalty speaks of f times the weight. It is the penalty of all, on voters divided by their factors.
Bounds cut the weight off: the objective is the same, over a smaller set. Both keep it convex, and the rounds know one
rule for all of it: of each voter its ridge, shrink, low and high (penalties.py).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._core import dot
from .penalties import Penalty, for_each

LEAST_BOUND = 1e-100  # that differs from zero: rounds would not move a weight so little


@dataclass(frozen=True, eq=False)
class Limits:
    """Bounds and penalty factors of voters: arrays with an entry for each voter, or None where there are none.

    Attributes
    ----------
    factor : array of shape (K,) or None
        Above zero: the penalty is on factor times weight.
    lower, upper : arrays of shape (K,) or None
        The least weight, zero or below, and the largest, zero or above.
    """

    factor: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None

    @classmethod
    def of(cls, n_voters: int, *, factor: Any = None, lower: Any = None, upper: Any = None) -> Limits:
        """Check numbers, or arrays of a number per voter."""
        by_name = {"penalty_factor": factor, "lower": lower, "upper": upper}
        arrays = {name: None if value is None else _per_voter(name, value, n_voters) for name, value in by_name.items()}
        factor, lower, upper = arrays.values()
        if factor is not None and not ((factor > 0) & np.isfinite(factor)).all():
            raise ValueError(
                f"penalty_factor={_first(factor, ~((factor > 0) & np.isfinite(factor)))} must be a number above zero; "
                "a bound of 0 keeps a voter out"
            )
        if lower is not None and not (lower <= 0).all():
            raise ValueError(f"lower={_first(lower, ~(lower <= 0))} must be at most 0: a weight of 0 must be allowed")
        if upper is not None and not (upper >= 0).all():
            raise ValueError(f"upper={_first(upper, ~(upper >= 0))} must be at least 0: a weight of 0 must be allowed")
        for name, bound in (("lower", lower), ("upper", upper)):
            if bound is not None and ((is_tiny := np.abs(bound) < LEAST_BOUND) & (bound != 0)).any():
                first = _first(bound, is_tiny & (bound != 0))
                raise ValueError(f"{name}={first} lets no weight change a score; give 0")
        return cls(factor, lower, upper)

    def take(self, voters: np.ndarray) -> Limits:
        """Those of some voters."""
        return Limits(*(None if values is None else values[voters] for values in (self.factor, self.lower, self.upper)))

    def bounds(self, n_voters: int) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper of every voter."""
        lower = -np.inf if self.lower is None else self.lower
        upper = np.inf if self.upper is None else self.upper
        return for_each(lower, n_voters), for_each(upper, n_voters)

    @property
    def is_empty(self) -> bool:
        """Whether there are no limits."""
        return (
            (self.factor is None or bool((self.factor == 1).all()))
            and (self.lower is None or bool((self.lower == -np.inf).all()))
            and (self.upper is None or bool((self.upper == np.inf).all()))
        )


def limited(penalty: Penalty, limits: Limits | None) -> Penalty:
    """Put limits on a penalty; where there are none, it is returned unchanged."""
    return penalty if limits is None or limits.is_empty else Limited(penalty, limits)


def narrowed(penalty: Penalty, stays: np.ndarray, factor: np.ndarray | None = None) -> Penalty:
    """The same penalty where only some voters may have a weight, with a further factor of each voter."""
    base, limits = (penalty.base, penalty.limits) if isinstance(penalty, Limited) else (penalty, Limits())
    lower, upper = (np.where(stays, bound, 0.0) for bound in limits.bounds(len(stays)))
    if factor is not None and limits.factor is not None:
        factor = factor * limits.factor
    return Limited(base, Limits(limits.factor if factor is None else factor, lower, upper))


class Limited(Penalty):
    """A penalty within limits: `ridge`, `shrink`, `low` and `high` are arrays wherever voters differ."""

    def __init__(self, base: Penalty, limits: Limits) -> None:
        self.base, self.limits = base, limits
        factor = 1.0 if limits.factor is None else limits.factor
        lower, upper = limits.lower, limits.upper
        self._factor = factor
        # What is zero or infinite for all stays one number: voters do not differ there, and rounds are faster.
        self._ridge = base.ridge * factor**2 if base.ridge else 0.0
        self._shrink = base.shrink * factor if base.shrink else 0.0
        self._cap = base.cap / factor if base.cap < np.inf else np.inf
        self._low = -self._cap if lower is None else np.maximum(lower, -self._cap)
        self._high = self._cap if upper is None else np.minimum(upper, self._cap)
        is_bounded = np.isfinite(self._low) & np.isfinite(self._high)
        self._has_gap = bool(np.all((np.asarray(self._ridge) > 0) | (np.asarray(self._shrink) > 0) | is_bounded))

    def __repr__(self) -> str:
        digest = hashlib.sha256()
        for values in (self.limits.factor, self.limits.lower, self.limits.upper):
            digest.update(b"none" if values is None else values.tobytes())
        return f"{self.base!r} within limits {digest.hexdigest()[:12]}"

    @property
    def ridge(self) -> Any:
        return self._ridge

    @property
    def shrink(self) -> Any:
        return self._shrink

    @property
    def cap(self) -> Any:
        return self._cap

    @property
    def low(self) -> Any:
        return self._low

    @property
    def high(self) -> Any:
        return self._high

    @property
    def differs(self) -> bool:
        return any(np.ndim(numbers) > 0 for numbers in (self.shrink, self.low, self.high))

    def bounds(self, n_voters: int) -> tuple[np.ndarray, np.ndarray]:
        return self.limits.bounds(n_voters)

    def at(self, strength: float) -> Limited:
        return Limited(self.base.at(strength), self.limits)

    def divided_by(self, curvature: float) -> Limited:
        return Limited(self.base.divided_by(curvature), self.limits)

    def value(self, weight: np.ndarray) -> float:
        return self.base.value(weight * self._factor)

    def largest(self, edge: np.ndarray, eta: np.ndarray) -> float:
        towards = np.clip(edge, np.where(self.low < 0, -np.inf, 0.0), np.where(self.high > 0, np.inf, 0.0))
        return self.base.largest(towards / self._factor, eta / self._factor**2)

    @property
    def has_gap(self) -> bool:
        return self._has_gap

    def gap(self, weight: np.ndarray, edge: np.ndarray, risk: float) -> float:
        # By Fenchel's duality, with s times the residuals in the place of the dual, for every s where all is finite:
        # (1 - s)^2 risk + sum_j (penalty(a_j) - 2 s a_j edge_j + sup_x (2 s edge_j x - penalty(x))).
        if not self.has_gap:
            return np.nan
        rule, product = self.rule(len(weight)), dot(weight, edge)
        steepest = _core.steepest(edge, *rule)
        best = 1.0 + max(0.0, product) / risk if risk > 0 else 1.0  # where all bounds are zero or infinite
        gaps = [
            (1.0 - scale) ** 2 * risk - 2.0 * scale * product + _core.conjugate(edge, scale, *rule)
            for scale in {1.0 / max(steepest, 1.0), 1.0 / max(steepest, 1.0 / best)}
        ]
        return max(0.0, self.value(weight) + min(gaps))


def _per_voter(name: str, value: Any, n_voters: int) -> np.ndarray:
    values = np.asarray(value)
    if values.dtype.kind not in "buif" or values.ndim > 1 or (values.ndim == 1 and len(values) != n_voters):
        raise ValueError(
            f"{name} has shape {values.shape} and type {values.dtype}; give one number, or one for each of the "
            f"{n_voters} voters"
        )
    return np.ascontiguousarray(np.broadcast_to(values.astype(np.float64), n_voters))


def _first(values: np.ndarray, is_wrong: np.ndarray) -> float:
    return float(values[is_wrong][0])
