"""Cuts that divide the values of features into bins, indexed so that a bin is found in a few steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BUCKETS_PER_CUT = 4
MOST_BUCKETS = 1 << 20


class BinIndex(NamedTuple):
    """The cuts of all features one after another, each in equal buckets between its first and last cut.

    A value is in the bucket clip((value - low) * scale); `place` has the number of cuts before each bucket.
    """

    cuts: np.ndarray  # each feature's cuts, ascending, then +inf
    cut_start: np.ndarray
    place: np.ndarray
    place_start: np.ndarray
    low: np.ndarray
    scale: np.ndarray


def bin_index(cuts: Sequence[np.ndarray]) -> BinIndex:
    """Index the cuts of every feature."""
    places: list[np.ndarray] = []
    low, scale = np.zeros(len(cuts)), np.zeros(len(cuts))
    for f, own in enumerate(cuts):
        n_buckets = min(MOST_BUCKETS, BUCKETS_PER_CUT * len(own)) or 1
        if len(own) > 1:
            with np.errstate(over="ignore"):
                width = (own[-1] - own[0]) / n_buckets
            low[f], scale[f] = own[0], 1.0 / width if np.isfinite(width) and width > 1e-300 else 0.0
        bucket = np.clip((own - low[f]) * scale[f], 0, n_buckets - 1).astype(np.int64)
        places.append(np.searchsorted(bucket, np.arange(n_buckets + 1)))
    return BinIndex(
        cuts=np.concatenate([np.append(own, np.inf) for own in cuts] or [np.zeros(1)]),
        cut_start=starts([len(own) + 1 for own in cuts]),
        place=np.concatenate(places or [np.zeros(1)]).astype(np.int32),
        place_start=starts([len(place) for place in places]),
        low=low,
        scale=scale,
    )


def starts(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each of several arrays begins when they are put one after another, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])
