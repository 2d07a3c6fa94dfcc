"""When a run of rounds re-weights, reports and stops."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..common.checks import at_least, not_negative
from ..common.progress import Callback

REFRESH_EVERY = 10_000  # rounds, after which slopes are computed anew: rounding would pile up
SOLVE = "solve"  # in place of a number of sweeps

MAY_CHANGE = ("max_rounds", "max_seconds", "callback", "callback_every")  # when a run goes on


@dataclass(frozen=True)
class Schedule:
    """The arguments of `boost` that say when; `gap` is a further stop, for paths.

    A run with a `gap` ends when its dual gap is at most this times the risk of the best constant.
    """

    max_rounds: int = 10_000
    tol: float = 1e-7
    reweight_every: int | None = None
    reweight_sweeps: int | str = 1  # or SOLVE
    patience: int = 50
    max_seconds: float | None = None
    callback: Callback | None = None
    callback_every: int = 100
    gap: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_rounds", "patience", "callback_every"):
            at_least(name, getattr(self, name), 1)
        if isinstance(self.reweight_sweeps, str):
            if self.reweight_sweeps != SOLVE:
                raise ValueError(
                    f"reweight_sweeps={self.reweight_sweeps!r} is not known; give a whole number, or {SOLVE!r}"
                )
        else:
            at_least("reweight_sweeps", self.reweight_sweeps, 1)
        if self.reweight_every is not None:
            at_least("reweight_every", self.reweight_every, 1)
        not_negative("tol", self.tol)
        if self.max_seconds is not None:
            not_negative("max_seconds", self.max_seconds)

    @property
    def solves(self) -> bool:
        """Whether re-weighting solves for all weights at once."""
        return self.reweight_sweeps == SOLVE

    def share(self, seconds_gone: float, n_left: int) -> Schedule:
        """The schedule of the next of several runs that share the time."""
        if self.max_seconds is None:
            return self
        return replace(self, max_seconds=max(0.0, self.max_seconds - seconds_gone) / n_left)

    def next_pause(self, round: int) -> int:
        """The next round after which the loop must come back to Python."""
        steps = [REFRESH_EVERY, self.reweight_every, self.callback_every if self.callback else None]
        return min([self.max_rounds, *(round + step - round % step for step in steps if step)])
