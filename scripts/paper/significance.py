"""Is an algorithm better than another? The tests of the paper's Table 2, and what can be said of its figures."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from .published import Row


def better_on_dataset(only_other_errs: float, only_this_errs: float) -> float:
    """The probability that this algorithm has the lower risk, from the examples where only one of the two errs.

    The posterior of the share of them that this one gets right, with a uniform prior, is a Beta distribution.
    """
    return float(betainc(only_this_errs + 1.0, only_other_errs + 1.0, 0.5))


def poisson_binomial_test(better: Iterable[float]) -> float:
    """The probability of being better on more than half of the datasets, half of a tie included."""
    wins = np.ones(1)  # the probability of 0, 1, ... wins
    for p in better:
        wins = np.convolve(wins, [1.0 - p, p])
    n = len(wins) - 1
    tie = wins[n // 2] / 2.0 if n % 2 == 0 else 0.0
    return float(wins[n // 2 + 1 :].sum() + tie)


def wins_ties_losses(risk: ArrayLike, other: ArrayLike) -> tuple[int, int, int]:
    difference = np.round(np.subtract(risk, other), 12)
    return int((difference < 0).sum()), int((difference == 0).sum()), int((difference > 0).sum())


def sign_test(wins: int, losses: int) -> tuple[float, float]:
    """p-values of the one-sided test (better, not just as good) and of the two-sided one; ties are dropped."""
    n = wins + losses

    def at_least(k: int) -> float:
        return sum(comb(n, i) for i in range(k, n + 1)) / 2**n

    return at_least(wins), min(1.0, 2.0 * at_least(max(wins, losses)))


def holm(p_values: ArrayLike) -> np.ndarray:
    """p-values adjusted for being the best of several (Holm)."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    out = np.empty(len(p))
    out[order] = np.minimum(1.0, adjusted)
    return out


def possible_better(row: Row, this: str, other: str) -> tuple[float, float]:
    """The least and the largest probability that published risks leave open for a dataset.

    They fix how many examples each algorithm gets wrong, not how many of these both get wrong. With the
    difference given, the fewer examples tell the two apart, the surer is the one that errs less.
    """
    n = row.test_rows
    found = []
    for mine, its in product(_ends(row.errors(this)), _ends(row.errors(other))):
        for both in (max(0, mine + its - n), min(mine, its)):
            found.append(better_on_dataset(its - both, mine - both))
    return min(found), max(found)


def _ends(counts: range) -> tuple[int, int]:
    return counts[0], counts[-1]


def possible_test(table: dict[str, Row], this: str, other: str) -> tuple[float, float]:
    """The least and the largest outcome of the Poisson binomial test that published risks leave open."""
    ends = [possible_better(row, this, other) for row in table.values()]
    return poisson_binomial_test(low for low, _ in ends), poisson_binomial_test(high for _, high in ends)
