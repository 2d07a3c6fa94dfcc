"""What the tables are made of: risks, times and counts of all trials as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from . import published
from .results import Outcome
from .significance import (
    better_on_dataset,
    holm,
    poisson_binomial_test,
    possible_test,
    sign_test,
    wins_ties_losses,
)

N_DEVIATIONS = 2.0


class Figures:
    """Arrays over (dataset, split) for every algorithm."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.datasets = list(dict.fromkeys(outcome.dataset for outcome in outcomes))
        self.algorithms = list(dict.fromkeys(outcome.algorithm for outcome in outcomes))
        self.n_splits = 1 + max(outcome.split for outcome in outcomes)
        self._at = {(o.algorithm, o.dataset, o.split): o for o in outcomes}

    def outcome(self, algorithm: str, dataset: str, split: int) -> Outcome:
        return self._at[algorithm, dataset, split]

    def _array(self, algorithm: str, quantity: str) -> np.ndarray:
        return np.array(
            [
                [getattr(self._at[algorithm, name, split], quantity) for split in range(self.n_splits)]
                for name in self.datasets
            ]
        )

    def mean(self, algorithm: str) -> np.ndarray:
        """The mean risk over splits, for every dataset."""
        return self._array(algorithm, "risk").mean(axis=1)

    def deviation(self, algorithm: str) -> np.ndarray:
        """The standard deviation of the risk over splits, for every dataset."""
        return self._array(algorithm, "risk").std(axis=1, ddof=1)

    def seconds(self, algorithm: str) -> tuple[float, float]:
        """The mean time of a final fit, and of all: cross-validation and final fit."""
        return float(self._array(algorithm, "fit_seconds").mean()), float(self._array(algorithm, "seconds").mean())

    def paper_risk(self, column: str) -> np.ndarray:
        return np.array([published.table1()[name].risk[column] for name in self.datasets])

    def is_near(self, algorithm: str, column: str) -> np.ndarray:
        """Whether the paper's figure is within two standard deviations, for every dataset."""
        distance = np.abs(self.mean(algorithm) - self.paper_risk(column))
        return distance <= N_DEVIATIONS * self.deviation(algorithm) + 0.0005  # it is rounded

    def better(self, this: str, other: str) -> float:
        """The Poisson binomial test.

        Counts are means over splits: a dataset weighs as one test set, as in the paper, though the test sets of
        all splits together tell more (but not as much as independent ones would).
        """
        chances = []
        for name in self.datasets:
            only = np.zeros(2)
            for split in range(self.n_splits):
                mine, its = (self._at[a, name, split].errors for a in (this, other))
                only += [(its & ~mine).sum(), (mine & ~its).sum()]
            chances.append(better_on_dataset(*only / self.n_splits))
        return poisson_binomial_test(chances)


@dataclass(frozen=True)
class Pair:
    """Two algorithms compared."""

    this: str
    other: str
    better: float  # Poisson binomial test
    counts: tuple[int, int, int]  # wins, ties and losses of this one
    one_sided: float  # sign test, for the one that wins more
    two_sided: float
    holm: float  # two_sided, adjusted for the number of pairs


def compare(figures: Figures, algorithms: Sequence[str]) -> list[Pair]:
    pairs = list(combinations(algorithms, 2))
    counts = [wins_ties_losses(figures.mean(this), figures.mean(other)) for this, other in pairs]
    tests = [sign_test(max(wins, losses), min(wins, losses)) for wins, _, losses in counts]
    adjusted = holm([two_sided for _, two_sided in tests])
    return [
        Pair(*pair, figures.better(*pair), count, *test, float(p))
        for pair, count, test, p in zip(pairs, counts, tests, adjusted, strict=True)
    ]


@dataclass(frozen=True)
class PublishedPair:
    """Two algorithms in the paper: what its Table 2 says, and what its Table 1 allows."""

    this: str
    other: str
    better: float
    star: bool
    counts: tuple[int, int, int]
    one_sided: float
    two_sided: float
    possible: tuple[float, float]

    @property
    def is_possible(self) -> bool:
        return self.possible[0] - 0.005 <= self.better <= self.possible[1] + 0.005


def published_pairs() -> list[PublishedPair]:
    table = published.table1()
    found = []
    for this, other in combinations(published.ALGORITHMS, 2):
        counts = wins_ties_losses(*([row.risk[name] for row in table.values()] for name in (this, other)))
        test = sign_test(max(counts[0], counts[2]), min(counts[0], counts[2]))
        figures = published.table2()[this, other]
        found.append(PublishedPair(this, other, *figures, counts, *test, possible_test(table, this, other)))
    return found
