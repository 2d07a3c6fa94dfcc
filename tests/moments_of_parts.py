"""Random tables in parts, for promises about moments that are added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mixed_table import N_LEVELS, mixed_table, targets

from quadboost.data.exact import Scales
from quadboost.moments.moments import Moments, column_moments
from quadboost.voters.columns import Voters
from quadboost.voters.thresholds import candidate_voters

SUMS = ("total_weight", "voter_sum", "voter_square", "target_sum", "target_square", "product_sum", "origin")


def labels(X, rng):
    return targets(X)


def real(X, rng):
    return np.nan_to_num(X[:, 0]) + rng.normal(size=len(X))


def far(X, rng):
    return real(X, rng) + 1e6


def two_targets(X, rng):
    return np.column_stack([targets(X), 10 * np.nan_to_num(X[:, 1]) - 3])


TARGETS = {"labels": labels, "real": real, "far": far, "two targets": two_targets}
WEIGHTS = {
    "no weights": lambda m, rng: None,
    "whole": lambda m, rng: rng.integers(1, 5, size=m).astype(float),
    "real": lambda m, rng: rng.uniform(0.1, 3, size=m),
    "tiny": lambda m, rng: rng.uniform(0.1, 3, size=m) * 1e-9,
    "huge": lambda m, rng: rng.uniform(0.1, 3, size=m) * 1e9,
}


@dataclass
class PartedTable:
    """A table, and which rows each of its parts has."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    voters: Voters
    parts: list[np.ndarray]

    @classmethod
    def random(cls, target, weight, m=300, n_parts=4, seed=0, thresholds=5):
        """Parts of any size; one has a single class, and one is empty."""
        rng = np.random.default_rng(seed)
        X = mixed_table(m, seed)
        y, weights = TARGETS[target](X, rng), WEIGHTS[weight](m, rng)
        first = y if y.ndim == 1 else y[:, 0]
        one_class = np.flatnonzero(first > np.median(first) if np.ptp(first) > 2 else first > 0)[:7]
        rest = rng.permutation(np.setdiff1d(np.arange(m), one_class))
        cuts = np.sort(rng.integers(0, len(rest), size=n_parts - 3))
        parts = [one_class, *np.split(rest, cuts), rest[:0]]
        voters = candidate_voters(X, weights, thresholds=thresholds, n_levels=N_LEVELS)
        return cls(X, y, weights, voters, parts)

    def scales(self) -> Scales:
        """What the parts agree on."""
        columns = self.y.reshape(len(self.y), -1)
        return Scales.agree(
            [(columns[rows], None if self.weight is None else self.weight[rows]) for rows in self.parts]
        )

    def moments(self, rows=slice(None), **options) -> Moments:
        weight = None if self.weight is None else self.weight[rows]
        return column_moments(self.voters, self.voters.code(self.X[rows]), self.y[rows], weight, **options)


def assert_same_sums(found, known):
    for name in SUMS:
        np.testing.assert_array_equal(getattr(found, name), getattr(known, name), err_msg=name)


def assert_same_bits(found, known):
    """All sums, and the Gram matrix."""
    assert_same_sums(found, known)
    for voter in range(known.n_voters):
        np.testing.assert_array_equal(found.gram.column(voter), known.gram.column(voter))
