"""Where features are cut into bins: thresholds by quantile, evenly spaced, or between all values.

A categorical feature arrives as level numbers 0..L-1 (-1: a level never seen) and is cut between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ..common.checks import InfiniteValue, at_least, one_of
from ..common.threads import in_threads, threads_for
from ..data.exact import Extent
from ..kernels.bins import copy_columns
from ..kernels.quantiles import distinct_runs
from .columns import Voters, checked_values
from .quantiles import quantile_borders

CODES_IN_A_BYTE = 256
FEATURES_TOGETHER = 4
AUTO = "auto"
AUTO_VOTERS = 100_000  # of all features together, by default
AUTO_THRESHOLDS = (15, 255)  # of each of them, at least and at most


def candidate_voters(
    X: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    thresholds: int | str = AUTO,
    spacing: str = "quantile",
    n_levels: Mapping[int, int] | None = None,
    n_threads: int = 1,
) -> Voters:
    """Choose the candidate voters of every feature of X.

    Parameters
    ----------
    X : float array of shape (m, d)
        NaN is a missing value; a categorical feature holds level numbers.
    weight : array of shape (m,), optional
        Weights of the rows, for quantiles.
    thresholds : int, "auto" or "all"
        How many thresholds a feature has at most. "auto": 255, or fewer where there are hundreds of features, so that
        there are no more than 100,000 in all, but at least 15 each; "all": every midpoint of distinct values.
    spacing : {"quantile", "uniform"}
        Thresholds with equal mass between them, or evenly spaced between the least and the largest value.
    n_levels : mapping from feature to its number of levels, optional
        The categorical features.
    """
    check_thresholds(thresholds, spacing)
    X = checked_values(X)
    if thresholds == AUTO:
        thresholds = auto_thresholds(X.shape[1])
    mass = None if weight is None else row_mass(Extent.of(len(weight), weight), weight)
    n_levels = n_levels or {}
    groups = range(0, X.shape[1], FEATURES_TOGETHER)
    n_threads = threads_for(X.size, min(n_threads, len(groups)))
    # Allocated here: memory that a thread allocates for itself is not reused by the others.
    scratch = deque(_Scratch.make(X) for _ in range(n_threads))

    def cuts_of_group(first: int) -> list[tuple[np.ndarray, bool]]:
        room = scratch.pop()
        try:
            return _cuts_of_group(X, first, mass, thresholds, spacing, n_levels, room)
        finally:
            scratch.append(room)

    by_group = in_threads(cuts_of_group, groups, n_threads)
    return voters_of([cuts for group in by_group for cuts in group], n_levels)


def voters_of(chosen: list[tuple[np.ndarray, bool]], n_levels: Mapping[int, int]) -> Voters:
    """The voters of features, each given by its cuts and whether there is one that asks for missing values."""
    return Voters(
        cuts=[cuts for cuts, _ in chosen],
        is_level=np.array([f in n_levels for f in range(len(chosen))], dtype=np.uint8),
        has_missing=np.array([missing for _, missing in chosen], dtype=np.uint8),
    )


def row_mass(extent: Extent, weight: np.ndarray) -> np.ndarray:
    """What rows count for in quantiles, given the extent of all weights. However light, a row counts for something."""
    return np.maximum(extent.fixed_point(np.ones(len(weight)), weight, 1.0), 1)


def check_thresholds(thresholds: int | str, spacing: str) -> None:
    one_of("spacing", spacing, ("quantile", "uniform"))
    if isinstance(thresholds, str) or thresholds is None:
        if thresholds not in (AUTO, "all"):
            raise ValueError(f"thresholds={thresholds!r} is not known; give a whole number, 'auto' or 'all'")
    else:
        at_least("thresholds", thresholds, 1)


def auto_thresholds(n_features: int) -> int:
    """The default number of thresholds of each of so many features."""
    least, most = AUTO_THRESHOLDS
    return min(most, max(least, AUTO_VOTERS // max(1, n_features)))


Runs = tuple[np.ndarray, np.ndarray]  # where each begins, and what mass comes before it, and in all


class _Scratch(NamedTuple):
    columns: np.ndarray
    before: np.ndarray

    @classmethod
    def make(cls, X: np.ndarray) -> _Scratch:
        m, d = X.shape
        return cls(np.empty((min(FEATURES_TOGETHER, d), m), dtype=X.dtype), np.empty(m + 1, dtype=np.int64))


def _cuts_of_group(
    X: np.ndarray,
    first: int,
    mass: np.ndarray | None,
    thresholds: int | str,
    spacing: str,
    n_levels: Mapping[int, int],
    scratch: _Scratch,
) -> list[tuple[np.ndarray, bool]]:
    """Cuts of a few features, together: neighbours in a row-major X are in the same cache lines."""
    columns = scratch.columns[: X.shape[1] - first]
    copy_columns(X, first, columns)
    return [
        _cuts_of_feature(first + i, column, mass, thresholds, spacing, n_levels.get(first + i), scratch.before)
        for i, column in enumerate(columns)
    ]


def _cuts_of_feature(
    f: int, column: np.ndarray, mass: np.ndarray | None, thresholds: int | str, spacing: str, n_levels: int | None,
    before: np.ndarray,
) -> tuple[np.ndarray, bool]:  # fmt: skip
    order = None if mass is None else np.argsort(column)  # in any order among equal values
    values = column
    values.sort()  # NaN last
    n_present = int(np.searchsorted(values, np.nan))
    missing, values = n_present < len(values), values[:n_present]

    def runs() -> Runs:
        start = before[: distinct_runs(values, before) + 1]
        if mass is None or order is None:
            return start, start
        return start, np.append(0, np.cumsum(mass[order[:n_present]]))[start]

    return cuts_of_values(f, values, runs, missing, thresholds, spacing, n_levels)


def cuts_of_values(
    f: int, values: np.ndarray, runs: Callable[[], Runs], missing: bool, thresholds: int | str, spacing: str,
    n_levels: int | None,
) -> tuple[np.ndarray, bool]:  # fmt: skip
    """The cuts of a feature with those values, ascending, and whether it has a voter that asks for missing values.

    `runs` says where each run of values begins that no cut may divide, and what mass comes before it. Of a run, only
    the first value and the last one are looked at.
    """
    if len(values) == 0:
        return np.empty(0), False  # nothing but missing values: constant
    if n_levels is not None:
        return cuts_of_levels(n_levels), missing
    refuse_infinity(f, values[0], values[-1])
    if spacing == "uniform" and thresholds != "all":
        return _uniform_cuts(values[0], values[-1], int(thresholds)), missing
    start, before = runs()
    n_bins = bins_for_values(thresholds, missing)
    if len(before) - 1 <= n_bins:
        first = start[1:-1]
    else:
        first = start[np.searchsorted(before, quantile_borders(before, int(n_bins)))]
    return _midpoints(values[first - 1].astype(float), values[first].astype(float)), missing


def refuse_infinity(f: int, least: float, largest: float) -> None:
    """Refuse a feature by the ends of its values."""
    if np.isinf(least) or np.isinf(largest):
        raise InfiniteValue(f, float(largest if np.isinf(largest) else least))


def cuts_of_levels(n_levels: int) -> np.ndarray:
    """One bin for each level, and one before them for a level never seen."""
    return np.arange(n_levels) - 0.5 if n_levels > 1 else np.empty(0)


def bins_for_values(thresholds: int | str, missing: bool) -> float:
    """How many bins the values of a feature may have."""
    if thresholds == "all":
        return np.inf
    # A byte holds 255 thresholds, or 254 and a code for missing values.
    return int(thresholds) + 1 - (missing and thresholds == CODES_IN_A_BYTE - 1)


def _uniform_cuts(low: float, high: float, k: int) -> np.ndarray:
    if low == high:
        return np.empty(0)
    share = np.arange(1, k + 1) / (k + 1)
    # Not low + share * (high - low), which overflows for the widest range.
    cuts = np.clip(float(low) * (1.0 - share) + float(high) * share, low, np.nextafter(float(high), low))
    return np.unique(cuts + 0.0)  # fewer where there are fewer doubles between; minus zero is zero


def _midpoints(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Halfway, but never so near the upper value that rounding puts it there: low <= t < high."""
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)
