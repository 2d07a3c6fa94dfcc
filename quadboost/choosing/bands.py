"""Standard errors of shape functions, by the jackknife over the folds of a cross-validation.

Each fold's training rows give a shape function f_k. With K folds, each of which leaves out other rows, the standard
error is sqrt((K - 1) / K sum (f_k - their mean)^2). The plain spread of the f_k is about half of that: their training
rows are mostly the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..common.threads import in_threads
from ..fitting.losses import train_under_loss
from ..fitting.measured import Options
from ..fitting.problem import shape_bins
from ..model.ensemble import Ensemble
from ..model.shape_functions import ShapeFunction
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from .folds import Folds
from .search import Table


def bin_errors(folds: Folds, options: Options, ensemble: Ensemble, table: Table, row: int) -> np.ndarray | None:
    """The standard error of each bin of the shape functions of a model: the choice of a row, fitted to all rows.

    None where the folds are no partition of the rows: then the jackknife does not apply; and with trees, which differ
    from fold to fold, so that shapes alone do not tell how far scores do. A link that was folded into the model is
    taken as known.
    """
    held_out = np.concatenate([split.held_out for split in folds.splits])
    is_partition = len(folds.splits) > 1 and np.array_equal(np.sort(held_out), np.arange(len(folds.codes)))
    if not is_partition or options.growth.n_trees:
        return None
    options = replace(options, n_threads=1, schedule=replace(options.schedule, callback=None))
    scale = folds.problem.target_scale * ensemble.slope
    shapes = [_Shape.of(folds, shape) for shape in ensemble.shape_functions()]

    def curves(number: int) -> np.ndarray:
        if options.loss == "squared":
            learnt = table.learnt[int(table.candidate[row]), number]
            return _curves(shapes, learnt.voters, learnt.weights_at(int(table.rounds[row])) * scale)
        measured = folds.parts(number)[0]  # the search stops its passes early
        trained = train_under_loss(folds.problem, measured, options)
        weight = np.column_stack([result.weight for result in trained.boosted])
        return _curves(shapes, measured.voters, weight * scale)

    found = np.array(in_threads(curves, range(len(folds.splits)), folds.n_workers))
    n_folds = len(found)
    errors = np.sqrt((n_folds - 1) / n_folds * ((found - found.mean(axis=0)) ** 2).sum(axis=0))
    return errors[:, 0] if ensemble.weight.ndim == 1 else errors


class _Shape(NamedTuple):
    """What it takes to average the bins of a column over those of a shape function."""

    column: int
    mass: np.ndarray  # of each bin of the column
    largest: np.ndarray  # value in it
    shape_bin: np.ndarray  # that it belongs to
    share: np.ndarray  # that it has in it

    @classmethod
    def of(cls, folds: Folds, shape: ShapeFunction) -> _Shape:
        sums, column = folds.all_rows.sums, shape.feature
        assert isinstance(sums, ColumnSums)
        mass, all_cuts = sums.mass_of(column), folds.voters.cuts[column]
        shape_bin = shape_bins(folds.voters, column, np.searchsorted(all_cuts, shape.thresholds))
        has_rows = (np.bincount(shape_bin, mass) > 0)[shape_bin]
        share = np.where(has_rows, mass, 1.0)  # without a row, each counts the same
        return cls(
            column, mass, np.append(all_cuts, np.inf), shape_bin, share / np.bincount(shape_bin, share)[shape_bin]
        )


def _curves(shapes: Sequence[_Shape], voters: Voters, weight: np.ndarray) -> np.ndarray:
    """What the voters of a fold add up to in each bin of the model's shape functions, less its mean."""
    values, start = voters.step_values(weight, np.array([shape.column for shape in shapes], dtype=np.int64))
    found = [np.empty((0, weight.shape[1]))]
    for shape, first, end in zip(shapes, start, start[1:], strict=False):
        # The fold may have cuts of its own: a bin of all rows has the value of its largest one.
        bins = np.append(np.searchsorted(voters.cuts[shape.column], shape.largest), -1)
        of_bins = values[first:end][bins]
        of_bins -= shape.mass @ of_bins / shape.mass.sum()
        found.append(np.column_stack([np.bincount(shape.shape_bin, shape.share * one) for one in of_bins.T]))
    return np.concatenate(found)
