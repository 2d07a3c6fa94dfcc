"""Folds by what rows are, not by where they stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.checks import at_least
from ..data.sampling import row_keys
from .folds import Split

MOST_SEED = 2**64 - 1


@dataclass(frozen=True)
class HashedFolds:
    """Folds for `cv` that are the same for any order, repetition and partition of the rows.

    A row's fold follows from the bins that its values fall into, so equal rows are in one fold.

    Parameters
    ----------
    n_splits : int
    seed : int
        Another one gives other folds.
    """

    n_splits: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("n_splits", self.n_splits, 2)
        if at_least("seed", self.seed, 0) > MOST_SEED:
            raise ValueError(f"seed={self.seed} must be below 2**64")

    def of(self, codes: np.ndarray) -> list[Split]:
        """The splits of coded rows."""
        n_splits = min(int(self.n_splits), len(codes) + 1)  # of more than there are rows one is empty, too
        fold = row_keys(codes, seed=int(self.seed)) % np.uint64(n_splits)
        if not np.bincount(fold.astype(np.intp), minlength=n_splits).all():
            raise ValueError(
                f"cv={self} leaves a fold without a row: too few different rows; give fewer folds, or a number"
            )
        return [Split(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(n_splits)]
