"""Examples as training sees them: a real matrix, targets and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .exact import effective_count


@dataclass(frozen=True)
class Rows:
    """Examples: a real matrix (missing values are NaN, categories level numbers), targets and weights."""

    X: np.ndarray
    y: np.ndarray  # (m, n_outputs)
    weight: np.ndarray | None = None
    repeats: np.ndarray | None = None  # the part of the weight that says how many examples a row stands for

    def take(self, rows: np.ndarray) -> Rows:
        def part(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[rows]

        return Rows(self.X[rows], self.y[rows], part(self.weight), part(self.repeats))

    @property
    def n_examples(self) -> float:
        return float(len(self.y)) if self.repeats is None else effective_count(self.repeats)
