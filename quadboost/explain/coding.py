"""Rows as bins of a model's shape functions, and what each bin adds to the score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..model.ensemble import Ensemble
from ..model.shape_functions import ShapeFunction
from ..voters.columns import Voters


@dataclass(frozen=True)
class Coding:
    """The shape functions of a model as columns of bins.

    Attributes
    ----------
    shapes : list of ShapeFunction
    voters : Voters
        One column per shape function. Bin 0 of levels is for one never seen; the last bin is for missing values.
    tables : list of arrays of shape (bins, n_outputs)
        What each bin adds to the score.
    """

    shapes: list[ShapeFunction]
    voters: Voters
    tables: list[np.ndarray]

    @classmethod
    def of(cls, ensemble: Ensemble) -> Coding:
        shapes = ensemble.shape_functions()
        cuts = [shape.thresholds if shape.levels is None else np.arange(len(shape.levels)) - 0.5 for shape in shapes]
        is_level = np.array([shape.levels is not None for shape in shapes], dtype=np.uint8)
        voters = Voters(cuts, is_level, np.zeros(len(shapes), dtype=np.uint8))
        k = ensemble.n_outputs
        tables = []
        for shape in shapes:
            values = shape.values.reshape(-1, k)
            tables.append(np.vstack([_in_bins(values, shape), np.reshape(shape.missing, (1, k))]))
        return cls(shapes, voters, tables)

    def code(self, matrix: np.ndarray) -> np.ndarray:
        """The bin of each row in each shape function; `matrix` is what `Ensemble.matrix_of` returns."""
        return self.voters.code(np.ascontiguousarray(matrix[:, self.features]))

    @cached_property
    def features(self) -> np.ndarray:
        return np.array([shape.feature for shape in self.shapes], dtype=np.int64)

    def masses(self) -> list[np.ndarray] | None:
        """Weight of the training rows in each bin; None where it is not known."""
        found = []
        for shape in self.shapes:
            if shape.mass is None or shape.missing_mass is None:
                return None
            found.append(np.append(_in_bins(shape.mass, shape), shape.missing_mass))
        return found

    def masses_of(self, matrix: np.ndarray) -> list[np.ndarray]:
        """How many of these rows are in each bin."""
        codes = self.code(matrix)
        return [np.bincount(codes[:, j], minlength=len(table)) * 1.0 for j, table in enumerate(self.tables)]


def _in_bins(values: np.ndarray, shape: ShapeFunction) -> np.ndarray:
    """Of levels, the one never seen first."""
    return values if shape.levels is None else np.concatenate([values[-1:], values[:-1]])
