"""When a run of rounds re-weights, reports and stops."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

from ..common.checks import at_least, not_negative
from ..common.progress import Callback

REFRESH_EVERY = 10_000  # rounds, after which slopes are computed anew: rounding would pile up
LOOK_EVERY = 50  # rounds between two looks at the dual gap
LEAST_TOL = 1e-15  # below this a decrease is rounding
AUTO = "auto"  # in place of a number of rounds
SOLVE = "solve"  # in place of a number of sweeps

MAY_CHANGE = ("max_rounds", "max_seconds", "callback", "callback_every")  # when a run goes on


@dataclass(frozen=True)
class Schedule:
    """The arguments of `boost` that say when."""

    max_rounds: int = 100_000
    tol: float = 1e-4
    reweight_every: int | str | None = AUTO
    reweight_sweeps: int | str = 1  # or SOLVE
    patience: int = 50
    max_seconds: float | None = None
    callback: Callback | None = None
    callback_every: int = 100

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
        if isinstance(self.reweight_every, str):
            if self.reweight_every != AUTO:
                raise ValueError(
                    f"reweight_every={self.reweight_every!r} is not known; give a whole number, {AUTO!r} or None"
                )
        elif self.reweight_every is not None:
            at_least("reweight_every", self.reweight_every, 1)
        not_negative("tol", self.tol)
        if self.max_seconds is not None:
            not_negative("max_seconds", self.max_seconds)

    def warn_if_idle(self, stacklevel: int) -> None:
        """Say where there is nothing that would solve for weights."""
        if self.reweight_sweeps == SOLVE and self.sweeps_every is None:
            warnings.warn(
                f"reweight_sweeps={SOLVE!r} does nothing without a number for reweight_every; set one, such as 100",
                stacklevel=stacklevel,
            )

    def share(self, seconds_gone: float, n_left: int) -> Schedule:
        """The schedule of the next of several runs that share the time."""
        if self.max_seconds is None:
            return self
        return replace(self, max_seconds=max(0.0, self.max_seconds - seconds_gone) / n_left)

    @property
    def sweeps_every(self) -> int | None:
        """Rounds between two times that weights are re-weighted, where that is a number."""
        return None if isinstance(self.reweight_every, str) else self.reweight_every

    def least_decrease(self, has_gap: bool) -> float:
        """A round that decreases the objective by less, as a share of the first risk, is not worth it.

        Where there is a gap that says when to stop, rounds go on until they hardly move a bit.
        """
        return max(min(self.tol, 1e-10) if has_gap else 1e-3 * self.tol, LEAST_TOL) ** 2

    def is_time_to_solve(self, n_rounds: int, n_active: int, some_leave: bool) -> bool:
        """Whether to solve for the weights of all active voters at once, so many rounds after the last time.

        Earlier where some leave, under l1: the solution takes them out of the rounds.
        """
        return n_rounds >= max(LOOK_EVERY, n_active // 2 if some_leave else n_active)

    def next_pause(self, round: int, has_gap: bool) -> int:
        """The next round after which the loop must come back to Python; to look at a gap, where there is one."""
        steps = [
            LOOK_EVERY if has_gap else None,
            REFRESH_EVERY,
            self.sweeps_every,
            self.callback_every if self.callback else None,
        ]
        return min([self.max_rounds, *(round + step - round % step for step in steps if step)])
