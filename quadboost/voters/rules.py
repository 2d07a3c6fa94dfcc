"""The sides of thresholds on which the nodes of trees lie, and how many conditions lead to each."""

from __future__ import annotations

import numpy as np

from .trees import Trees


def sides(trees: Trees, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each node is below, and whether it is above, a threshold of each feature: (n_nodes, n_features) each.

    Of a categorical feature: whether it is not one of some levels, and whether it is one.
    """
    below, above = np.zeros((2, trees.n_nodes, len(features)), dtype=bool)
    for nodes in trees.levels():
        left, right = nodes + 1, trees.right[nodes]
        is_asked = features == trees.feature[nodes, None]
        below[left], above[left] = below[nodes] | is_asked, above[nodes]
        below[right], above[right] = below[nodes], above[nodes] | is_asked
    return below, above


def n_conditions(trees: Trees) -> np.ndarray:
    """How many conditions lead to each node; several thresholds on one side of a feature are one condition."""
    below, above = sides(trees, np.unique(trees.feature[~trees.is_leaf]))
    return below.sum(axis=1) + above.sum(axis=1)
