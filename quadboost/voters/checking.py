"""Checks that voters form an ensemble; the kernels trust what passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .columns import LEVEL, MISSING, THRESHOLD


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


def bins_of_shapes(feature: np.ndarray, kind: np.ndarray, categories: Mapping[int, Sequence[Any]]) -> np.ndarray:
    """How many bins the shape function of each feature with a voter has, that for missing values included."""
    features, place = np.unique(feature, return_inverse=True)
    n_values = np.bincount(place[kind == THRESHOLD], minlength=len(features)) + 1
    is_level = np.flatnonzero(np.isin(features, list(categories)))
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
    # By search, not by a table of all features: any file, however small, may say that there are 2**31 - 1.
    categorical = np.array([*sorted(categories), -1])
    n_levels = np.array([len(categories.get(f, ())) for f in categorical.tolist()])
    place = np.searchsorted(categorical[:-1], feature)
    ordered = categorical[place] != feature
    _refuse((kind == THRESHOLD) & ~ordered, feature, "voter {0} has a threshold, but feature {1} is categorical")
    _refuse((kind == LEVEL) & ordered, feature, "voter {0} stands for a level, but feature {1} has none")
    no_level = (threshold < 0) | (threshold >= n_levels[place]) | (threshold != np.floor(threshold))
    _refuse(
        (kind == LEVEL) & no_level,
        threshold,
        "voter {0} stands for level {1}, which its feature does not have",
    )


def _refuse(wrong: np.ndarray, values: np.ndarray, message: str) -> None:
    """Raise the message for the first place that is wrong, if any: {0} is the place, {1} the value there."""
    if wrong.any():
        place = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise ValueError(message.format(", ".join(map(str, place)), values[place]))
