"""From voters to what prediction reads: a step function for each feature, and masks of leaves for trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..kernels.bins import TreeValues
from ..voters.bins import bin_index, starts
from ..voters.columns import MISSING, Intervals
from ..voters.trees import Reach, Trees

Shape = tuple[int, np.ndarray, np.ndarray]  # a feature, its cuts, and its values: a row per bin, then one for missing


def shapes_of(
    feature: np.ndarray, kind: np.ndarray, threshold: np.ndarray, weight: np.ndarray, categories: Mapping[int, Any]
) -> list[Shape]:
    """The step function of each feature with a voter.

    Where levels are the cuts, those with a voter: any other is worth as much as one never seen, the first row.
    """
    order = np.argsort(feature, kind="stable")
    features, first = np.unique(feature[order], return_index=True)
    columns = []
    for f, voters in zip(features.tolist(), np.split(order, first)[1:], strict=True):
        n_missing = int(np.count_nonzero(kind[voters] == MISSING))
        voters = voters[np.lexsort((threshold[voters], kind[voters]))]  # "is missing" last
        columns.append((f, threshold[voters[: len(voters) - n_missing]], weight[voters]))
    n_cuts = np.array([len(cuts) for _, cuts, _ in columns], dtype=np.int64)
    n_voters = np.array([len(at_cuts) for _, _, at_cuts in columns], dtype=np.int64)
    is_level = np.array([f in categories for f, _, _ in columns], dtype=np.uint8)
    intervals = Intervals.of(n_cuts, is_level, n_voters - n_cuts)
    shapes, starts_of = [], zip(starts(n_voters).tolist(), starts(n_cuts + 2).tolist(), strict=True)
    for (f, cuts, at_cuts), (voter, first_bin) in zip(columns, starts_of, strict=False):
        of_feature = intervals.of_column(slice(voter, voter + len(at_cuts)), first_bin)
        shapes.append((f, cuts, of_feature.step_values(at_cuts, len(cuts) + 2)))
    return shapes


def tree_values(trees: Trees, values: np.ndarray, categories: Mapping[int, Any]) -> list[TreeValues]:
    """The trees, some at a time, with the values (n_nodes, n_outputs) of their leaves."""
    found, first = [], 0
    asks_level = np.isin(trees.feature, list(categories)).astype(np.uint8)
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
