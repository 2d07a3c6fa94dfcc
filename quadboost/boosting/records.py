"""What a run of rounds leaves behind: the weights it gave, in order, and where it stood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core

EDGE, WEIGHT, TOTAL, RISK, OBJECTIVE, VALIDATION_RISK = range(6)  # columns of the kernel's log


@dataclass
class Sweep:
    """Weights that re-weighting gave after a round."""

    round: int
    voter: np.ndarray
    weight: np.ndarray


@dataclass
class Trace:
    """Every weight that a run gave, in order: the ensemble after any round can be had from it."""

    voter: np.ndarray  # of each round
    weight: np.ndarray  # that it then had
    sweeps: list[Sweep]
    first_intercept: float
    centre: np.ndarray  # of every voter: by how much the intercept falls when its weight rises by 1

    @classmethod
    def without_rounds(cls, intercept: float) -> Trace:
        """That of a fit that was not made by rounds."""
        return cls(np.empty(0, np.int64), np.empty(0), [], intercept, np.empty(0))

    def updates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Voters whose weight changed, in order, their new weights, and how many changes each round ends with."""
        voters, weights, first = [], [], 0
        end = np.arange(1, len(self.voter) + 1)
        for sweep in self.sweeps:
            voters += [self.voter[first : sweep.round], sweep.voter]
            weights += [self.weight[first : sweep.round], sweep.weight]
            end[sweep.round - 1 :] += len(sweep.voter)
            first = sweep.round
        return np.concatenate([*voters, self.voter[first:]]), np.concatenate([*weights, self.weight[first:]]), end

    def intercept_at(self, weight: np.ndarray) -> float:
        """The intercept that goes with weights of this run."""
        return self.first_intercept - _core.dot(self.centre, weight)

    def changes(self, n_voters: int) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        """For each round the voters whose weight changed, by how much, and by how much the intercept fell."""
        weight = np.zeros(n_voters)
        voters, weights, ends = self.updates()
        first = 0
        for end in ends.tolist():
            voter = voters[first:end] if end == first + 1 else np.unique(voters[first:end])
            before = weight[voter]
            weight[voters[first:end]] = weights[first:end]  # of several the last counts
            delta = weight[voter] - before
            yield voter, delta, float(delta @ self.centre[voter])
            first = end

    def weights_at(self, round: int, n_voters: int) -> np.ndarray:
        """The weight of every voter after a round."""
        return next(self.weights_along([round], n_voters))

    def weights_along(self, rounds: Iterable[int], n_voters: int) -> Iterator[np.ndarray]:
        """The weight of every voter after each of these rounds, which ascend."""
        weight, first = np.zeros(n_voters), 0
        voter, new_weight, end = self.updates()
        for round in rounds:
            n = int(end[round - 1]) if round else 0
            weight[voter[first:n]] = new_weight[first:n]  # of several the last counts
            first = n
            yield weight.copy()


@dataclass
class Progress:
    """Where a run stands: enough to go on from there, bit for bit, with the same moments.

    `settings` are the arguments of the run and the fingerprints of its moments: a run that goes on has the same.
    """

    weight: np.ndarray
    voter: np.ndarray
    log: np.ndarray
    sweeps: list[Sweep]
    objective: float
    slopes: list[np.ndarray]  # on the training rows, then on the validation rows if any
    risks: list[tuple[float, float]]  # risk and mean residual of each
    stop_reason: str
    settings: dict[str, Any]
