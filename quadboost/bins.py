"""Cuts that divide the values of features into bins, indexed so that a bin is found in a few steps.

The range of a feature's cuts is divided into buckets, and a value is compared with the few cuts of its own
bucket only. Buckets are equally wide; or, for a heavy-tailed feature, whose cuts would crowd in one of them,
they grow with the magnitude: equal steps in a double's bits are nearly equal steps of its logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BUCKETS_PER_CUT = 4
MOST_BUCKETS = 1 << 20
CROWDED = 0.5  # steps of a search within a bucket, on average, from which another division is tried


class BinIndex(NamedTuple):
    """The cuts of all features one after another, and their buckets.

    A value is in the bucket (value - low) * scale, or (key of value - key of low) >> shift where shift is not
    negative; a key is an integer that grows with the value. `place` has the number of cuts before each bucket.
    """

    cuts: np.ndarray  # each feature's cuts, ascending, then +inf
    cut_start: np.ndarray
    place: np.ndarray
    place_start: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    shift: np.ndarray


def bin_index(cuts: Sequence[np.ndarray]) -> BinIndex:
    """Index the cuts of every feature."""
    # Minus zero is zero, in keys too.
    cuts = [own + 0.0 for own in cuts]
    buckets = [_buckets(own) for own in cuts]
    return BinIndex(
        cuts=np.concatenate([np.append(own, np.inf) for own in cuts] or [np.zeros(1)]),
        cut_start=starts([len(own) + 1 for own in cuts]),
        place=np.concatenate([place for place, _, _ in buckets] or [np.zeros(1)]).astype(np.int32),
        place_start=starts([len(place) for place, _, _ in buckets]),
        low=np.array([own[0] if len(own) else 0.0 for own in cuts]),
        scale=np.array([scale for _, scale, _ in buckets], dtype=np.float64),
        shift=np.array([shift for _, _, shift in buckets], dtype=np.int32),
    )


def _buckets(cuts: np.ndarray) -> tuple[np.ndarray, float, int]:
    """The number of cuts before each bucket, the scale and the shift."""
    if len(cuts) < 2:
        return np.array([0, len(cuts)]), 0.0, -1
    n_buckets = min(MOST_BUCKETS, 1 << (BUCKETS_PER_CUT * len(cuts) - 1).bit_length())
    width = cuts[-1] / n_buckets - cuts[0] / n_buckets
    scale = 1.0 / width if 1e-300 < width < 1e300 else 0.0  # else one bucket for all
    bucket = np.zeros(len(cuts), dtype=np.int64)
    if scale:
        bucket = np.minimum((cuts - cuts[0]) * scale, n_buckets - 1).astype(np.int64)
    shift = -1
    if _steps(bucket) > CROWDED:
        keys = cuts.view(np.int64) ^ ((cuts.view(np.int64) >> 63) & 0x7FFF_FFFF_FFFF_FFFF)
        far = keys.view(np.uint64) - keys.view(np.uint64)[0]
        by_bits = max(0, int(far[-1]).bit_length() - n_buckets.bit_length() + 1)
        other = (far >> np.uint64(by_bits)).astype(np.int64)
        if _steps(other) < _steps(bucket):
            bucket, shift = other, by_bits
    return np.searchsorted(bucket, np.arange(n_buckets + 1)), scale, shift


def _steps(bucket: np.ndarray) -> float:
    """How many steps a search within a bucket takes, on average over the cuts."""
    shared = np.bincount(bucket)
    shared = shared[shared > 1]
    return float(np.sum(shared * np.log2(shared)) / len(bucket))


def starts(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each of several arrays begins when they are put one after another, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])
