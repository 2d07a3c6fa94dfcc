"""The outcome of a run of rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .records import Progress, Trace


@dataclass
class Boosted:
    """The outcome of `boost`.

    Attributes
    ----------
    weight : array of shape (K,)
        Weight of every voter, at the best round where there is a validation set.
    intercept : float
    edge : array of shape (K,)
        Edge of every voter with these weights.
    risk, objective, first_risk : float
        `first_risk` is that of the best constant, or of zero where there is no intercept.
    dual_gap : float
        A bound on the distance of the objective from its minimum; NaN where none is known.
    violation : float
        The largest distance of an edge from what the conditions of optimality want it to be; NaN in forward mode.
    n_rounds : int
        Rounds behind `weight`.
    history : dict of arrays, one entry a round
        voter, edge, weight, risk, objective and, with a validation set, validation_risk.
    stop_reason : str
        "max_rounds", "converged", "patience", "max_seconds" or "callback".
    trace : Trace
        The weights round by round.
    progress : Progress
        Lets a later call go on from here.
    validation_risk : float
        Of these weights, where rounds did not follow it.
    """

    weight: np.ndarray
    intercept: float
    edge: np.ndarray
    risk: float
    objective: float
    first_risk: float
    dual_gap: float
    violation: float
    n_rounds: int
    history: dict[str, np.ndarray]
    stop_reason: str
    trace: Trace = field(repr=False)
    progress: Progress | None = field(repr=False)
    validation_risk: float = np.nan

    def figures(self) -> dict[str, Any]:
        """The figures that are worth keeping with a model."""
        figures: dict[str, Any] = {
            "rounds": self.n_rounds,
            "risk": self.risk,
            "objective": self.objective,
            "stop": self.stop_reason,
        }
        known = ("dual_gap", "violation", "validation_risk")
        figures |= {name: value for name in known if np.isfinite(value := getattr(self, name))}
        if "validation_risk" in self.history and self.n_rounds:
            figures["validation_risk"] = float(self.history["validation_risk"][self.n_rounds - 1])
        return figures
