"""From voters to what prediction reads: a step function for each feature, and masks of leaves for trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..kernels.bins import TreeValues
from ..voters.bins import bin_index, starts
from ..voters.columns import MISSING, Voters
from ..voters.trees import Reach, Trees

Shape = tuple[int, np.ndarray, np.ndarray]  # a feature, its cuts, and its values: a row per bin, then one for missing


def shapes_of(
    feature: np.ndarray, kind: np.ndarray, threshold: np.ndarray, weight: np.ndarray, categories: Mapping[int, Any]
) -> list[Shape]:
    """The step function of each feature with a voter.

    Where levels are the cuts, those with a voter: any other is worth as much as one never seen, the first row.
    """
    order = np.lexsort((threshold, kind, feature))  # of a feature, "is missing" last
    features, first = np.unique(feature[order], return_index=True)
    thresholds = np.split(threshold[order], first)[1:]
    has_missing = np.bincount(np.searchsorted(features, feature), kind == MISSING, len(features)).astype(np.uint8)
    cuts = [found[: len(found) - n] for found, n in zip(thresholds, has_missing.tolist(), strict=True)]
    voters = Voters(cuts, np.isin(features, np.fromiter(categories, np.int64)).astype(np.uint8), has_missing)
    values, start = voters.step_values(weight[order], np.arange(len(features)))
    return list(zip(features.tolist(), cuts, np.split(values, start[1:-1]), strict=False))


def leaf_values(trees: Trees, weight: np.ndarray) -> np.ndarray:
    """What a tree is worth in each leaf, given the weights (n_nodes, n_outputs); zero at other nodes."""
    voters = Voters([], np.empty(0, np.uint8), np.empty(0, np.uint8), trees)
    values, start = voters.step_values(weight[~trees.is_root], np.arange(trees.n_trees))
    is_leaf = np.ones(len(values), dtype=bool)
    is_leaf[start[:-1]] = is_leaf[start[1:] - 1] = False  # there is a bin for no leaf, and one for missing values
    found = np.zeros(weight.shape)
    found[trees.is_leaf] = values[is_leaf]
    return found


def tree_values(trees: Trees, values: np.ndarray, categories: Mapping[int, Any]) -> list[TreeValues]:
    """The trees, some at a time, with the values (n_nodes, n_outputs) of their leaves."""
    found, first = [], 0
    asks_level = np.isin(trees.feature, np.fromiter(categories, np.int64)).astype(np.uint8)
    for part in trees.parts():
        inner = np.flatnonzero(~part.is_leaf)
        feature, threshold = part.feature[inner], part.threshold[inner]
        cuts, cut = [], np.zeros(len(inner), dtype=np.int64)
        is_level = asks_level[first + inner]
        for f in np.unique(feature).tolist():
            nodes = np.flatnonzero(feature == f)
            distinct = np.unique(threshold[nodes])
            cuts.append(around_levels(distinct)[0] if f in categories else distinct)
            wanted = threshold[nodes] - 0.5 if f in categories else threshold[nodes]
            cut[nodes] = np.searchsorted(cuts[-1], wanted) + (f in categories)
        reach = Reach.of(part, np.array([len(values) + 2 for values in cuts], dtype=np.int64), cut, is_level)
        at_leaves = values[first : first + part.n_nodes][part.is_leaf]
        found.append(TreeValues(reach, bin_index(cuts), at_leaves, starts(part.n_leaves)))
        first += part.n_nodes
    return found


def around_levels(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cuts before and after some of the levels, ascending numbers, and for each bin the row of values it has.

    The rows are those of a level without a voter, of the levels, and of a missing value.
    """
    cuts = np.unique(np.concatenate([levels - 0.5, levels + 0.5]))
    after = np.searchsorted(levels, cuts)
    has_voter = np.append(levels, -1.0)[after] == cuts + 0.5
    return cuts, np.concatenate([[0], np.where(has_voter, after + 1, 0), [-1]])


def cut_out(level_of: Mapping[float, int]) -> tuple[np.ndarray, np.ndarray]:
    """Cuts just below and at each value, and the level of each bin: -1 between the values."""
    known = np.array([value for value in level_of if float(value) == value], dtype=np.float64)
    cuts = np.unique(np.concatenate([np.nextafter(known, -np.inf), known]) + 0.0)
    return cuts, np.array([*(level_of.get(cut, -1) for cut in cuts.tolist()), -1])
