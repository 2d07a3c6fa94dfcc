"""Folds by what rows are, not by where they stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.checks import at_least
from ..data.sampling import row_keys
from .folds import Split


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
        at_least("seed", self.seed, 0)

    def of(self, codes: np.ndarray) -> list[Split]:
        """The splits of coded rows."""
        fold = row_keys(codes, seed=self.seed) % np.uint64(self.n_splits)
        splits = [
            Split(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(self.n_splits)
        ]
        for number, split in enumerate(splits):
            if not len(split.train) or not len(split.held_out):
                raise ValueError(
                    f"cv={self} leaves fold {number} without a row, or nothing beside it: there are too few different "
                    "rows; give fewer folds, or a number"
                )
        return splits
