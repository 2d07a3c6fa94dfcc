"""Samples of rows that depend on what the rows are, not on where they stand.

Equal rows have equal keys: all of them are in a sample, or none. So a sample is the same for any order of rows, and a
row of weight 3 is sampled as three rows are.
"""

from __future__ import annotations

import numpy as np

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


def at_most(keys: np.ndarray, repeats: np.ndarray | None, most: float) -> np.ndarray:
    """Which rows are in a sample of at most so many examples; at least the rows of one key are."""
    total = float(len(keys)) if repeats is None else float(repeats.sum())
    if total <= most:
        return np.ones(len(keys), dtype=bool)
    distinct, number = np.unique(keys, return_inverse=True)
    mass = np.cumsum(np.bincount(number, repeats, len(distinct)))
    return keys <= distinct[max(0, int(np.searchsorted(mass, most, side="right")) - 1)]
