"""How much each feature moves the scores."""

from __future__ import annotations

import numpy as np

from ..moments.moments import Moments
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from ..voters.rules import sides


def importance_of(voters: Voters, moments: Moments, weight: np.ndarray) -> np.ndarray:
    """How much each feature moves the scores: the standard deviation of what it adds, as a share of their sum.

    What a tree adds is shared by the features of its rules, by the size of their weights.
    """
    assert isinstance(moments.sums, ColumnSums)
    spread = np.zeros(voters.n_columns)
    columns = voters.columns_of(weight)
    values_of_all, start = voters.step_values(weight, columns)
    for column, values in zip(columns.tolist(), np.split(values_of_all, start[1:-1]), strict=False):
        share = (moments.sums.mass_of(column) / moments.total_weight)[:, None]
        variance = (share * values * values).sum(axis=0) - (share * values).sum(axis=0) ** 2
        spread[column] = np.sqrt(np.maximum(variance, 0.0)).sum()
    if voters.trees:
        spread = spread[: voters.n_features] + _share_of_features(voters, weight, spread[voters.n_features :])
    return spread / spread.sum() if spread.any() else spread


def _share_of_features(voters: Voters, weight: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """What trees add, given for each tree, by feature."""
    trees = voters.trees
    size = np.zeros(trees.n_nodes)
    size[~trees.is_root] = np.abs(weight[voters.first_rule :]).sum(axis=1)
    total = np.bincount(trees.tree, size, trees.n_trees)
    features = np.unique(trees.feature[~trees.is_leaf])
    asked = np.logical_or(*sides(trees, features))
    share = np.divide(
        size * spread[trees.tree], (total[trees.tree] * asked.sum(axis=1)), out=np.zeros(len(size)), where=size > 0
    )
    found = np.zeros(voters.n_features)
    found[features] = (asked * share[:, None]).sum(axis=0)
    return found
