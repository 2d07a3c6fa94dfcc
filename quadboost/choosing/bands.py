"""Standard errors of shape functions, by the jackknife over the folds of a cross-validation.

Each fold's training rows give a shape function f_k. With K folds, each of which leaves out other rows, the standard
error is sqrt((K - 1) / K sum (f_k - their mean)^2). The plain spread of the f_k is about half of that: their training
rows are mostly the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..common.threads import in_threads
from ..fitting.losses import train_under_loss
from ..fitting.measured import Options
from ..fitting.problem import shape_bins
from ..model.ensemble import Ensemble
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

    def curves(number: int) -> np.ndarray:
        if options.loss == "squared":
            learnt = table.learnt[int(table.candidate[row]), number]
            return _curves(folds, ensemble, learnt.voters, learnt.weights_at(int(table.rounds[row])) * scale)
        measured = folds.parts(number)[0]  # the search stops its passes early
        trained = train_under_loss(folds.problem, measured, options)
        weight = np.column_stack([result.weight for result in trained.boosted])
        return _curves(folds, ensemble, measured.voters, weight * scale)

    found = np.array(in_threads(curves, range(len(folds.splits)), folds.n_workers))
    n_folds = len(found)
    errors = np.sqrt((n_folds - 1) / n_folds * ((found - found.mean(axis=0)) ** 2).sum(axis=0))
    return errors[:, 0] if ensemble.weight.ndim == 1 else errors


def _curves(folds: Folds, ensemble: Ensemble, voters: Voters, weight: np.ndarray) -> np.ndarray:
    """What the voters of a fold add up to in each bin of the model's shape functions, less its mean."""
    sums = folds.all_rows.sums
    assert isinstance(sums, ColumnSums)
    found = [np.empty((0, weight.shape[1]))]
    for shape in ensemble.shape_functions():
        column, mass = shape.feature, sums.mass_of(shape.feature)
        # The fold may have cuts of its own: a bin of all rows has the value of its largest one.
        largest = np.append(folds.voters.cuts[column], np.inf)
        bins = np.append(np.searchsorted(voters.cuts[column], largest), -1)
        values = voters.step_values(weight, np.array([column]))[0][bins]
        values -= mass @ values / mass.sum()
        cuts = np.searchsorted(folds.voters.cuts[column], shape.thresholds)
        shape_bin = shape_bins(folds.voters, column, cuts)
        has_rows = (np.bincount(shape_bin, mass) > 0)[shape_bin]
        share = np.where(has_rows, mass, 1.0)  # without a row, each counts the same
        total = np.bincount(shape_bin, share)
        found.append(np.column_stack([np.bincount(shape_bin, share * of_output) / total for of_output in values.T]))
    return np.concatenate(found)
