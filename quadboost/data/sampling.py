"""Samples of rows that depend on what the rows are, not on where they stand.

Equal rows have equal keys, and a sample has their share of them; which of them does not matter. So a sample is the same
for any order of rows, and a row of weight 3 is sampled as three rows are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .exact import Extent

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(keys: np.ndarray, salt: int) -> np.ndarray:
    """Other keys, as good as random (splitmix64)."""
    keys = keys + np.uint64(int(GOLDEN) * (salt + 1) % 2**64)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def row_keys(codes: np.ndarray, y: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    """A number of 64 bits for each row of codes, and of targets of shape (m, n_outputs)."""
    keys = np.full(len(codes), np.uint64(seed))
    with np.errstate(over="ignore"):
        for column in codes.T:
            keys = keys * GOLDEN + column
        if y is not None:
            for target in y.T:
                keys = mixed(keys, 0) + (target + 0.0).view(np.uint64)
        return mixed(keys, seed)


def keys_and_copies(
    codes: np.ndarray, y: np.ndarray, repeats: np.ndarray | None, are_whole: bool, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The key of each row, and how many copies of it there are.

    `repeats` is the part of the weight that says how many examples a row stands for; where these are not whole numbers,
    in all rows, each stands for one.
    """
    if repeats is None or are_whole:
        copies = np.ones(len(y), dtype=np.int64) if repeats is None else repeats.astype(np.int64)
        return row_keys(codes, y, seed), copies
    return row_keys(codes, np.column_stack([y, repeats]), seed), np.ones(len(y), dtype=np.int64)  # others by weight


class Sample(NamedTuple):
    """Some of the rows.

    Attributes
    ----------
    codes : array of shape (m, d)
    y : array of shape (m, n_outputs)
    weight : array of shape (m,) or None
        Of the copies that are in the sample.
    keys, copies : arrays of shape (m,)
        The key of each row, and how many copies of it are in the sample.
    """

    codes: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    keys: np.ndarray
    copies: np.ndarray


def sample(
    codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, repeats: np.ndarray | None, most: float, seed: int
) -> Sample:
    """At most so many of the rows."""
    are_whole = repeats is None or Extent.of(len(y), repeats).is_whole
    keys, copies = keys_and_copies(codes, y, repeats, are_whole, seed)
    kept = at_most(keys, copies, most)
    is_kept = kept > 0
    new_weight = None if weight is None else (weight / copies * kept)[is_kept]
    return Sample(np.ascontiguousarray(codes[is_kept]), y[is_kept], new_weight, keys[is_kept], kept[is_kept])


def at_most(keys: np.ndarray, copies: np.ndarray, most: float) -> np.ndarray:
    """How many copies of each row are in a sample of at most `most`, given how many there are.

    Of equal rows the sample has their share, give or take one.
    """
    if copies.sum() <= most:
        return copies
    order = np.argsort(keys, kind="stable")
    kept = np.empty_like(copies)
    until = np.cumsum(copies[order])
    kept[order] = np.diff(sampled_until(until, int(until[-1]), most), prepend=0)
    return kept


def sampled_until(until: np.ndarray, total: int, most: float) -> np.ndarray:
    """How many copies are in the sample among the first so many, by the order of keys."""
    return until if total <= most else np.floor(until * (most / total)).astype(np.int64)


def copies_before(keys: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """How many copies of equal rows come before each row."""
    order = np.argsort(keys, kind="stable")
    before = np.cumsum(copies[order]) - copies[order]
    is_first = np.diff(keys[order], prepend=~keys[order][:1]) != 0
    found = np.empty_like(copies)
    found[order] = before - np.maximum.accumulate(np.where(is_first, before, 0))
    return found


def n_different(keys: np.ndarray, copies: np.ndarray) -> float:
    """How many different rows there are, in effect: fewer than there are where some have most of the copies."""
    mass = np.bincount(np.unique(keys, return_inverse=True)[1], copies)
    return float(mass.sum() ** 2 / (mass * mass).sum()) if len(mass) else 0.0


def half(keys: np.ndarray, copies: np.ndarray, before: np.ndarray | None, number: int) -> np.ndarray:
    """How many copies of each row are in a random half, one of many.

    Equal rows are all in the half or all out of it. Given how many copies of equal rows come `before` each row
    (`copies_before`), every second copy is in it.
    """
    odd = (mixed(keys, number) >> np.uint64(63)).astype(np.int64)
    return copies * odd if before is None else (before + copies + odd) // 2 - (before + odd) // 2
