"""Checks that voters form an ensemble; the kernels trust what passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .columns import LEVEL, MISSING, THRESHOLD
from .trees import MOST_LEAVES, Trees

MOST_MASS = 1e290  # of a pattern, so that sums are finite
MOST_OF_ROOT = 1.0 + 1e-6  # of the mass of a root: sums of the same rows may be rounded in other ways


def check_voters(
    feature: np.ndarray,
    kind: np.ndarray,
    threshold: np.ndarray,
    weight: np.ndarray,
    intercept: np.ndarray,
    n_features: int,
    categories: Mapping[int, Sequence[Any]],
) -> None:
    """Refuse voters that a model cannot have."""
    for name, values in (("kind", kind), ("threshold", threshold), ("weight", weight)):
        if len(values) != len(feature):
            raise ValueError(f"there are {len(values)} of {name} for {len(feature)} voters")
    for name, values in (("threshold", threshold), ("weight", weight), ("intercept", intercept)):
        _refuse(~np.isfinite(values), values, f"{name} {{0}} is {{1}}, not a finite number")
    outside = (feature < 0) | (feature >= n_features)
    _refuse(outside, feature, f"voter {{0}} looks at feature {{1}}, but there are {n_features} features")
    _refuse(kind > MISSING, kind, "voter {0} is of kind {1}, but the kinds are 0, 1 and 2")
    not_zero = (kind == MISSING) & (threshold != 0)
    _refuse(not_zero, threshold, "voter {0} is of kind 2 (missing) and has the threshold {1}, not 0")

    if categories or (kind == LEVEL).any():
        _check_levels(feature, kind, threshold, categories)

    # Hashes sort ten times faster than voters do; those are sorted only if two hashes are equal.
    where = feature.astype(np.uint64) * np.uint64(4) + kind
    hashes = (threshold + 0.0).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hashes ^= where * np.uint64(0xC2B2AE3D27D4EB4F)
    hashes.sort()
    if np.any(hashes[1:] == hashes[:-1]):
        order = np.lexsort((threshold, where))
        twice = (np.diff(where[order]) == 0) & (np.diff(threshold[order]) == 0)
        _refuse(twice, order, "voter {1} stands there twice")


def check_trees(
    trees: Trees, weight: np.ndarray, mass: np.ndarray, n_features: int, categories: Mapping[int, Sequence[Any]]
) -> None:
    """Refuse trees that a model cannot have; no mass: it is not known."""
    _check_nodes(trees, weight, mass)
    feature, threshold = trees.feature, trees.threshold
    _refuse(feature >= n_features, feature, f"node {{0}} asks for feature {{1}}, but there are {n_features} features")
    _refuse(feature < -1, feature, "node {0} asks for feature {1}; a leaf has -1")
    _refuse(trees.missing_right > 1, trees.missing_right, "node {0} sends missing values to side {1}, not 0 or 1")
    is_used = (threshold != 0) | (trees.missing_right != 0)
    _refuse(trees.is_leaf & is_used, threshold, "node {0} is a leaf, and has the threshold {1} or a side for missing")
    _ = trees.right  # refuses what is no tree
    _refuse(
        trees.n_leaves > MOST_LEAVES, trees.n_leaves, f"tree {{0}} has {{1}} leaves, at most {MOST_LEAVES} are read"
    )
    if categories:
        no_level = ~trees.is_leaf & _is_no_level(threshold, _n_levels(feature, categories))
        _refuse(no_level, threshold, "node {0} asks for level {1}, which its feature does not have")
    root = weight[trees.start[:-1]]
    _refuse(root != 0, root, "the root of tree {0} has the weight {1}, not 0")
    if len(mass):
        all_rows = mass[trees.start[:-1]]
        _refuse(all_rows == 0, all_rows, "the root of tree {0} has the mass {1}, not more than 0")
        too_large = mass / MOST_OF_ROOT > np.repeat(all_rows, np.diff(trees.start))
        _refuse(too_large, mass, "node_mass {0} is {1}, more than that of the root")


def check_patterns(node: np.ndarray, pattern: np.ndarray, mass: np.ndarray, n_nodes: int) -> None:
    """Refuse tables of patterns that do not belong to nodes; empty: none are known."""
    if not node.shape == pattern.shape == mass.shape or node.ndim != 1:
        raise ValueError(f"there are {node.shape} nodes, {pattern.shape} patterns and {mass.shape} masses of patterns")
    _refuse((node < 0) | (node >= n_nodes), node, f"pattern {{0}} is of node {{1}}, but there are {n_nodes} nodes")
    _refuse(pattern < 0, pattern, "pattern {0} is {1}, less than 0")
    _refuse(~(np.isfinite(mass) & (mass > 0)), mass, "pattern_mass {0} is {1}, not a finite number above 0")
    ascends = (node[1:] > node[:-1]) | ((node[1:] == node[:-1]) & (pattern[1:] > pattern[:-1]))
    _refuse(~ascends, pattern[1:], "patterns do not ascend within nodes: {1} stands after a larger or equal one")
    _refuse(mass > MOST_MASS, mass, f"pattern_mass {{0}} is {{1}}, more than {MOST_MASS:g}")


def _check_nodes(trees: Trees, weight: np.ndarray, mass: np.ndarray) -> None:
    """Refuse arrays of different lengths, and numbers that are not finite."""
    if any(values.ndim != 1 for values in trees.arrays().values()) or not len(trees.start):
        raise ValueError("the arrays of trees have one dimension each, and start has at least the end of the last tree")
    n_nodes = trees.n_nodes
    if not n_nodes == len(trees.threshold) == len(trees.missing_right) == len(weight):
        raise ValueError(
            f"there are {len(trees.threshold)} thresholds, {len(trees.missing_right)} sides for missing values and "
            f"{len(weight)} weights for {n_nodes} nodes"
        )
    if mass.ndim != 1 or len(mass) not in (0, n_nodes):
        raise ValueError(f"node_mass has the shape {mass.shape}; give one for each of the {n_nodes} nodes, or none")
    names = ("node_threshold", "node_weight", "node_mass")
    for name, values in zip(names, (trees.threshold, weight, mass), strict=True):
        _refuse(~np.isfinite(values), values, f"{name} {{0}} is {{1}}, not a finite number")
    _refuse(mass < 0, mass, "node_mass {0} is {1}, less than 0")
    # Compared, for differences can overflow.
    if trees.start[0] != 0 or trees.start[-1] != n_nodes or (trees.start[1:] <= trees.start[:-1]).any():
        raise ValueError(f"the trees do not share out the {n_nodes} nodes in order; each has at least one")


def bins_of_shapes(feature: np.ndarray, kind: np.ndarray, categories: Mapping[int, Sequence[Any]]) -> np.ndarray:
    """How many bins the shape function of each feature with a voter has, that for missing values included."""
    features, number = np.unique(feature, return_inverse=True)
    n_values = np.bincount(number[kind == THRESHOLD], minlength=len(features)) + 1
    is_level = np.flatnonzero(np.isin(features, np.fromiter(categories, np.int64)))
    n_values[is_level] = [len(categories[f]) + 1 for f in features[is_level].tolist()]
    return n_values + 1


def check_bins(
    mass: np.ndarray, error: np.ndarray, feature: np.ndarray, kind: np.ndarray, categories: Mapping[int, Sequence[Any]]
) -> None:
    """Refuse masses and errors that are not of the bins of these voters' shape functions; empty: they are not known."""
    if not mass.size and not error.size:
        return
    n_bins = bins_of_shapes(feature, kind, categories)
    for name, values in (("bin_mass", mass), ("bin_error", error)):
        if values.size and len(values) != n_bins.sum():
            raise ValueError(f"{name} has {len(values)} values, but the shape functions have {n_bins.sum()} bins")
        _refuse(~np.isfinite(values), values, f"{name} {{0}} is {{1}}, not a finite number")
        _refuse(values < 0, values, f"{name} {{0}} is {{1}}, less than 0")
    if not mass.size:
        raise ValueError("there are errors of bins, but no masses; give both, or neither")
    with np.errstate(over="ignore"):
        total = np.add.reduceat(mass, np.cumsum(n_bins) - n_bins)
    _refuse(~((total > 0) & np.isfinite(total)), total, "bin_mass adds up to {1} for shape function {0}")


def _check_levels(
    feature: np.ndarray,
    kind: np.ndarray,
    threshold: np.ndarray,
    categories: Mapping[int, Sequence[Any]],
) -> None:
    n_levels = _n_levels(feature, categories)
    ordered = n_levels < 0
    _refuse((kind == THRESHOLD) & ~ordered, feature, "voter {0} has a threshold, but feature {1} is categorical")
    _refuse((kind == LEVEL) & ordered, feature, "voter {0} stands for a level, but feature {1} has none")
    _refuse(
        (kind == LEVEL) & _is_no_level(threshold, n_levels),
        threshold,
        "voter {0} stands for level {1}, which its feature does not have",
    )


def _n_levels(feature: np.ndarray, categories: Mapping[int, Sequence[Any]]) -> np.ndarray:
    """How many levels each of some features has, -1 for one that is not categorical."""
    # By search, not by a table of all features: any file, however small, may say that there are 2**31 - 1.
    categorical = np.array([*sorted(categories), -1])
    n_levels = np.array([len(categories.get(f, ())) for f in categorical.tolist()])
    position = np.searchsorted(categorical[:-1], feature)
    return np.where((categorical[position] == feature) & (feature >= 0), n_levels[position], -1)


def _is_no_level(threshold: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
    """Whether the feature is categorical, but has no level of that number."""
    return (n_levels >= 0) & ((threshold < 0) | (threshold >= n_levels) | (threshold != np.floor(threshold)))


def _refuse(wrong: np.ndarray, values: np.ndarray, message: str) -> None:
    """Raise the message for the first place that is wrong, if any: {0} is the place, {1} the value there."""
    if wrong.any():
        where = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise ValueError(message.format(", ".join(map(str, where)), values[where]))
