"""Rows of which only the bins are left: what a fit needs where values were too many to keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .bins import starts
from .columns import Voters


@dataclass(frozen=True)
class Binned:
    """A matrix by its bins. It is coded as the values were, and has a value of each bin in place of every value.

    Attributes
    ----------
    voters : Voters
        By which the rows were coded; of features alone.
    codes : array of shape (m, d)
    """

    voters: Voters
    codes: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def size(self) -> int:
        return self.codes.size

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: np.ndarray | slice) -> Binned:
        return Binned(self.voters, self.codes[rows])

    def coded_by(self, voters: Voters) -> np.ndarray:
        """The codes of the features; the voters must be those that made them."""
        if voters is not self.voters and voters.with_trees(self.voters.trees).fingerprint != self.voters.fingerprint:
            raise ValueError("these rows are known by their bins alone, and cannot be cut elsewhere")
        return self.codes

    def values(self) -> np.ndarray:
        """A value of each row's bin: scores of models with these voters are those of the rows themselves."""
        table, start = self._values
        return np.column_stack([table[start[f] + codes] for f, codes in enumerate(self.codes.T)])

    @cached_property
    def _values(self) -> tuple[np.ndarray, np.ndarray]:
        """A value of each bin of each column: its upper end, a level's number, NaN for missing values."""
        each = []
        for cuts, is_level in zip(self.voters.cuts, self.voters.is_level, strict=True):
            if is_level:
                values = np.arange(-1.0, len(cuts))
            else:
                values = np.append(cuts, np.nextafter(cuts[-1], np.inf) if len(cuts) else 0.0)
            each.append(np.append(values, np.nan))
        return np.concatenate(each), starts([len(values) for values in each])
