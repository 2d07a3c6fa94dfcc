"""The algorithms of the paper, all on the same finite set of voters: QuadBoost, LPBoost and AdaBoost."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from scipy.optimize import linprog

from quadboost import boost
from quadboost.moments.moments import column_moments

from .protocol import Classifiers, Sample, Setting, sign

# l1 has no number of rounds to choose: it stops by itself. In forward mode that is here when no weight would move by
# more than 1e-4, which is `tol` / 1,000; in corrective mode at a dual gap of 1 % of the first risk, as a smaller one
# changes no error (docs/defaults.md). The others have a number of rounds, and end before it only where more would
# change nothing.
MOST_L1_ROUNDS = 100_000
L1_TOL, TOL = {"forward": 0.1, "corrective": 0.01}, 1e-7


def log_grid(low: float, high: float) -> np.ndarray:
    """10 values on a logarithmic scale, as all grids of the paper."""
    return np.logspace(low, high, 10)


def rounds_grid(low: float, high: float) -> list[int]:
    return np.rint(log_grid(low, high)).astype(int).tolist()


def grid(**values: Any) -> list[Setting]:
    """All combinations, the first name the slowest to change."""
    settings: list[Setting] = [{}]
    for name, choices in values.items():
        settings = [{**setting, name: choice} for setting in settings for choice in choices]
    return settings


# The paper's grids (section 4), the strongest regularisation first.
GRIDS: dict[str | None, list[Setting]] = {
    "l1": grid(reg_lambda=log_grid(0, -4).tolist(), max_rounds=[MOST_L1_ROUNDS]),
    "l2": grid(reg_lambda=log_grid(3, 0).tolist(), max_rounds=rounds_grid(1, 5)),
    "linf": grid(alpha_max=log_grid(-4, -1).tolist(), max_rounds=rounds_grid(0, 5)),
    None: grid(max_rounds=rounds_grid(0, 3)),
}


@dataclass(frozen=True)
class Votes:
    """Weighted votes, one for each setting."""

    weight: np.ndarray  # (n_settings, K)
    intercept: np.ndarray  # (n_settings,)

    def __call__(self, sample: Sample) -> np.ndarray:
        return sign(self.weight @ sample.votes.T + self.intercept[:, None])


@dataclass(frozen=True)
class QuadBoost:
    """QuadBoost on moments: the rounds never see the examples."""

    penalty: str | None
    mode: str
    fit_intercept: bool

    @property
    def settings(self) -> list[Setting]:
        return GRIDS[self.penalty]

    def fit(self, sample: Sample, settings: list[Setting]) -> Classifiers:
        moments = column_moments(sample.stumps, sample.codes, sample.y)
        weights = []
        for strength, group in groupby(settings, _strength):
            rounds = [setting["max_rounds"] for setting in group]
            run = boost(
                moments,
                self.penalty,
                **dict(strength),
                mode=self.mode,
                max_rounds=max(rounds),
                tol=L1_TOL[self.mode] if self.penalty == "l1" else TOL,
                fit_intercept=self.fit_intercept,
            )
            weights += [run.trace.weights_at(min(t, run.n_rounds), moments.n_voters) for t in rounds]
        weight = np.array(weights)
        intercept = np.zeros(len(weight))
        if self.fit_intercept:
            intercept += (moments.target_sum[0] - weight @ moments.voter_sum) / moments.total_weight
        return Votes(weight, intercept)


def _strength(setting: Setting) -> tuple[tuple[str, Any], ...]:
    """All but the number of rounds: with any number of them it is one run."""
    return tuple(item for item in setting.items() if item[0] != "max_rounds")


@dataclass(frozen=True)
class LPBoost:
    """Soft-margin LPBoost over all voters at once, by HiGHS."""

    settings = grid(C=log_grid(-3, 3).tolist())

    def fit(self, sample: Sample, settings: list[Setting]) -> Classifiers:
        weight = np.array([lpboost(sample.votes, sample.y, setting["C"])[0] for setting in settings])
        return Votes(weight, np.zeros(len(weight)))


def lpboost(votes: np.ndarray, y: np.ndarray, C: float) -> tuple[np.ndarray, np.ndarray]:
    """The weights a that minimise sum |a| + C sum max(0, 1 - y F), and the weights u of the examples (the dual).

    The dual is solved, which has fewer constraints to price: maximise sum u, |sum u y h_j| <= 1, 0 <= u <= C. The
    weight of a voter is the multiplier of its constraint, that of its complement counting as negative.
    """
    edges = (votes * y[:, None]).T
    n_voters, m = edges.shape
    solution = linprog(
        -np.ones(m),
        A_ub=np.vstack([edges, -edges]),
        b_ub=np.ones(2 * n_voters),
        bounds=(0.0, C),
        method="highs-ds",
    )
    if solution.status != 0:
        raise RuntimeError(f"HiGHS found no optimum for C = {C}: {solution.message}")
    multiplier = -solution.ineqlin.marginals
    return multiplier[:n_voters] - multiplier[n_voters:], solution.x


@dataclass(frozen=True)
class AdaBoost:
    """Discrete AdaBoost, the voter of the least weighted error being found among all of them."""

    most_rounds: int

    @property
    def settings(self) -> list[Setting]:
        return grid(rounds=rounds_grid(2, np.log10(self.most_rounds)))

    def fit(self, sample: Sample, settings: list[Setting]) -> Classifiers:
        rounds = [setting["rounds"] for setting in settings]
        voter, added = adaboost(sample.votes, sample.y, max(rounds))
        n_voters = sample.votes.shape[1]
        weight = np.array([np.bincount(voter[:t], added[:t], n_voters) for t in rounds])
        return Votes(weight, np.zeros(len(weight)))


def adaboost(votes: np.ndarray, y: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """The voter of every round and the weight it is given; ends early where no voter is better than chance."""
    margins = np.ascontiguousarray((votes * y[:, None]).T)
    weight = np.full(len(y), 1.0 / len(y))
    voter, added = np.empty(rounds, dtype=np.intp), np.empty(rounds)
    edges, sizes = np.empty(len(margins)), np.empty(len(margins))
    for t in range(rounds):
        np.dot(margins, weight, out=edges)
        j = int(np.abs(edges, out=sizes).argmax())
        edge = edges[j]
        if sizes[j] > 1.0 - 1e-12:  # a voter that never errs, or always, needs no other
            return np.append(voter[:t], j), np.append(added[:t], np.sign(edge))
        if sizes[j] < 1e-12:
            return voter[:t], added[:t]
        voter[t], added[t] = j, np.arctanh(edge)
        # exp(-arctanh(edge) * margin), but for a factor, for margins of -1 and +1
        weight /= 1.0 + edge * margins[j]
        weight /= weight.sum()  # every round: what rounding adds to the sum would grow exponentially
    return voter, added
