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
FINER = 4  # times as many, where cuts share a bucket
MANY_BUCKETS = 1 << 13  # more are only made for more cuts: they would not stay in a core's own memory
MOST_BUCKETS = 1 << 20

# How the bucket of a value is found: (value - low) * scale, or (key of value - key of low) >> shift where shift
# is not negative; a key is an integer that grows with the value. A bucket has less than 2**n_steps cuts.
RULE = np.dtype(
    {
        "names": ["first_cut", "first_place", "low", "scale", "last_bucket", "shift", "n_steps"],
        "formats": [np.int64, np.int64, np.float64, np.float64, np.float64, np.int32, np.int32],
    }
)


class BinIndex(NamedTuple):
    """The cuts of all features one after another, and their buckets."""

    cuts: np.ndarray  # each feature's cuts, ascending, then +inf for as long as a search may look
    place: np.ndarray  # the number of cuts before each bucket, and of cuts plus one where the value is missing
    rule: np.ndarray  # of each feature, a RULE


def bin_index(cuts: Sequence[np.ndarray], buckets_per_cut: int = BUCKETS_PER_CUT) -> BinIndex:
    """Index the cuts of every feature."""
    padded, places, rules = [np.empty(0)], [np.empty(0, np.int32)], []
    first_cut = first_place = 0
    for ascending in cuts:
        ascending = ascending + 0.0  # minus zero is zero, in keys too
        division = _divide(ascending, buckets_per_cut)
        low = ascending[0] if len(ascending) else 0.0
        last = division.n_buckets - 1
        rules.append((first_cut, first_place, low, division.scale, last, division.shift, division.n_steps))
        padded.append(np.append(ascending, np.full(1 << division.n_steps, np.inf)))
        places.append(division.places())
        first_cut += len(padded[-1])
        first_place += len(places[-1])
    return BinIndex(np.concatenate(padded), np.concatenate(places), np.array(rules, dtype=RULE))


class _Division(NamedTuple):
    """How the range of a feature's cuts is divided into buckets."""

    bucket: np.ndarray  # of each cut
    n_steps: int
    n_buckets: int
    scale: float = 1.0
    shift: int = -1

    def places(self) -> np.ndarray:
        """The number of cuts before each bucket; then, for missing values, the number of all cuts plus one."""
        counts = np.bincount(self.bucket + 1, minlength=self.n_buckets + 1)
        counts[-1] += 1
        return np.cumsum(counts, dtype=np.int32)


def _divide(cuts: np.ndarray, buckets_per_cut: int) -> _Division:
    """Choose the division with the fewest search steps; prefer equal buckets, and few of them."""
    if len(cuts) < 2:
        return _one_for_all(cuts)
    n_buckets = min(MOST_BUCKETS, 1 << (buckets_per_cut * len(cuts) - 1).bit_length())
    best = _equal(cuts, n_buckets)
    if best.n_steps > 1:
        if FINER * n_buckets <= MANY_BUCKETS:
            n_buckets *= FINER
            best = min(best, _equal(cuts, n_buckets), key=lambda division: division.n_steps)
        if best.n_steps > 2:
            best = min(best, _growing(cuts, n_buckets), key=lambda division: division.n_steps)
    return best


def _equal(cuts: np.ndarray, n_buckets: int) -> _Division:
    """Divide into buckets of equal width."""
    width = cuts[-1] / n_buckets - cuts[0] / n_buckets
    if not 1e-300 < width < 1e300:
        return _one_for_all(cuts)
    scale = 1.0 / width
    bucket = np.minimum((cuts - cuts[0]) * scale, n_buckets - 1).astype(np.int64)
    return _Division(bucket, _steps(bucket), n_buckets, scale)


def _growing(cuts: np.ndarray, n_buckets: int) -> _Division:
    """Divide into buckets that grow with the magnitude."""
    keys = cuts.view(np.int64) ^ ((cuts.view(np.int64) >> 63) & 0x7FFF_FFFF_FFFF_FFFF)
    far = keys.view(np.uint64) - keys.view(np.uint64)[0]
    shift = max(0, int(far[-1]).bit_length() - n_buckets.bit_length() + 1)
    bucket = (far >> np.uint64(shift)).astype(np.int64)
    return _Division(bucket, _steps(bucket), n_buckets, shift=shift)


def _one_for_all(cuts: np.ndarray) -> _Division:
    return _Division(np.zeros(len(cuts), np.int64), len(cuts).bit_length(), 1)


def _steps(bucket: np.ndarray) -> int:
    """Steps of a binary search within a bucket: fewer than 2**steps cuts share one."""
    steps, n = 1, len(bucket)
    while n >= 1 << steps and (bucket[(1 << steps) - 1 :] == bucket[: n + 1 - (1 << steps)]).any():
        steps += 1
    return steps


def starts(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each of several arrays begins when they are put one after another, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])
