"""Bins of nearly equal mass, and what of a column they depend on.

A column is a sequence of atoms: of values, or of several neighbours of which only the sum of their mass is known.
Borders are sums of mass. Where the values in an atom are not known, they are taken to lie densely, a border at every
mass: then a choice that meets no border within such an atom is the choice for any values in it.
"""

from __future__ import annotations

import numpy as np

from ..kernels.quantiles import furthest_ends, quantile_ends


def quantile_borders(before: np.ndarray, n_bins: int) -> np.ndarray:
    """The borders between n_bins bins of nearly equal mass, given the mass before each value, and in all."""
    ends, _, _ = _divided(before, np.zeros(len(before) - 1, np.uint8), _alone(before, None, n_bins), n_bins)
    return ends[:-1]


def borders_met(before: np.ndarray, is_dense: np.ndarray, n_bins: int) -> np.ndarray:
    """All borders that the choice of n_bins bins depends on, ascending; there are more atoms than bins."""
    is_dense, alone = is_dense.astype(np.uint8), _alone(before, is_dense, n_bins)
    ends, latest, most = _divided(before, is_dense, alone, n_bins)
    met = [ends, latest]
    for mass in (most, most - 1):  # that one fits, and the other does not, decides what fits at least
        ends_met = np.empty(n_bins + 1, np.int64)
        met.append(ends_met[: furthest_ends(before, is_dense, alone, mass, ends_met)])
    return np.unique(np.concatenate(met))


def _divided(
    before: np.ndarray, is_dense: np.ndarray, alone: np.ndarray, n_bins: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Where bins end, how far each must reach, and the most mass of a bin of several values."""
    latest, ends = np.empty(n_bins + 1, np.int64), np.empty(n_bins, np.int64)
    n_used, most = quantile_ends(before, is_dense, alone, n_bins, latest, ends)
    return ends[:n_used], latest, most


def _alone(before: np.ndarray, is_dense: np.ndarray | None, n_bins: int) -> np.ndarray:
    """The mass before and until the values that have a bin of their own.

    These are the values that alone outweigh a fair bin, if there are enough bins for all of them; the others are spread
    over the rest of the mass. Plain quantiles waste nearly all their thresholds on a column that is mostly zeros.
    """
    none = np.empty((2, 0), np.int64)
    if before[-1] == len(before) - 1:  # all weigh 1
        return none
    is_heavy = np.diff(before) > before[-1] / n_bins
    heavy = np.flatnonzero(is_heavy if is_dense is None else is_heavy & (is_dense == 0))
    runs_between = np.count_nonzero(np.diff(np.concatenate([[-1], heavy, [len(before) - 1]])) > 1)
    return np.stack([before[heavy], before[heavy + 1]]) if len(heavy) + runs_between <= n_bins else none
