"""Columns of the Gram matrix of the voters, made when they are first asked for and kept within a budget.

A source makes columns of sums over rows of weight * h_i * h_j, a unit at a time: all voters of a feature
where their columns come from the same counts, else a single voter. A `GramCache` keeps what was made.
The booster sees only the cache: which family of voters is behind it makes no difference there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from . import _core
from .stumps import Stumps

COUNTS_LIMIT = 1 << 30  # rows, up to which sums of votes and their doubles fit in 32 bits


class GramSource(Protocol):
    """Makes the Gram columns of one family of voters on one set of rows."""

    unit_start: np.ndarray  # (units + 1,) voters of a unit are made together
    dtype: np.dtype  # int32 for plain counts, float64 for weighted sums

    @property
    def n_voters(self) -> int: ...

    def make(self, unit: int, known: Mapping[int, np.ndarray]) -> np.ndarray:
        """Columns of the unit's voters, one a row; `known` has units made before (the matrix is symmetric)."""
        ...


class GramCache:
    """Gram columns of a source, within `cache_bytes`; the units used longest ago make room.

    Attributes
    ----------
    address : uintp array of shape (K,)
        Where each voter's column is in memory, 0 where it is not.
    stamp : int64 array of shape (K,)
        When each column was last used, written by the kernels.
    """

    def __init__(self, source: GramSource, cache_bytes: int) -> None:
        self.source = source
        self.cache_bytes = cache_bytes
        self.address = np.zeros(source.n_voters, dtype=np.uintp)
        self.stamp = np.zeros(source.n_voters, dtype=np.int64)
        self._units: dict[int, np.ndarray] = {}
        self._bytes = 0

    @property
    def counts(self) -> bool:
        return self.source.dtype == np.int32

    def column(self, voter: int) -> np.ndarray:
        """The column of one voter: sums over rows of weight * h_i * h_voter for every voter i."""
        unit = int(np.searchsorted(self.source.unit_start, voter, side="right")) - 1
        first, last = self.source.unit_start[unit : unit + 2]
        if unit not in self._units:
            size = int(last - first) * self.source.n_voters * self.source.dtype.itemsize
            self._make_room(size)
            made = self.source.make(unit, self._units)
            self._units[unit] = made
            self._bytes += size
            self.address[first:last] = made.ctypes.data + np.arange(last - first, dtype=np.uintp) * np.uintp(
                made.strides[0]
            )
        return self._units[unit][voter - first]

    def _make_room(self, size: int) -> None:
        starts = self.source.unit_start
        while self._units and self._bytes + size > self.cache_bytes:
            oldest = min(self._units, key=lambda u: int(self.stamp[starts[u] : starts[u + 1]].max()))
            self._bytes -= self._units.pop(oldest).nbytes
            self.address[starts[oldest] : starts[oldest + 1]] = 0


class _StumpSource:
    """What sources over coded rows share: the layout of bins and voters, weights as integers, scratch memory."""

    def __init__(self, stumps: Stumps, m: int, mass: np.ndarray | None, scale: float, n_threads: int) -> None:
        self.stumps = stumps
        self.mass = mass
        self.scale = scale
        self.n_threads = n_threads
        self.unit_start = np.arange(stumps.n_voters + 1, dtype=np.int64)
        counts = mass is None and m < COUNTS_LIMIT
        self.dtype = np.dtype(np.int32 if counts else np.float64)
        self.count_dtype = np.dtype(np.int32 if counts else np.int64)

    @property
    def n_voters(self) -> int:
        return self.stumps.n_voters

    @property
    def _layout(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.stumps.bin_start, self.stumps.voter_start, self.stumps.is_level

    def _scratch(self, size: int) -> np.ndarray:
        return np.empty((self.n_threads, size), dtype=self.count_dtype)

    def _sums(self, counts: np.ndarray) -> np.ndarray:
        """From what the kernels count to sums of weights."""
        return counts if self.dtype == counts.dtype else counts * self.scale

    def _weigh(self, votes: np.ndarray) -> np.ndarray:
        votes = votes.astype(self.count_dtype, copy=False)
        return votes if self.mass is None else votes * self.mass


class BinnedGram(_StumpSource):
    """Joint counts of binned features: one pass over the rows per feature gives the columns of all its voters."""

    def __init__(
        self, stumps: Stumps, codes: np.ndarray, mass: np.ndarray | None, scale: float, n_threads: int
    ) -> None:
        super().__init__(stumps, codes.shape[1], mass, scale, n_threads)
        self.codes = codes
        self._voting = np.flatnonzero(np.diff(stumps.voter_start))
        self.unit_start = np.append(stumps.voter_start[self._voting], stumps.n_voters)

    def make(self, unit: int, known: Mapping[int, np.ndarray]) -> np.ndarray:
        start = self.unit_start
        out = np.empty((start[unit + 1] - start[unit], self.n_voters), dtype=self.count_dtype)
        new = [u for u in range(len(self._voting)) if u not in known]
        bins = int(np.diff(self.stumps.bin_start).max())
        _core.joint_block(
            self.codes, self.mass, self._voting[unit], self._voting[new], *self._layout,
            self._scratch((bins + 3) * bins), out, self.n_threads,
        )  # fmt: skip
        made = self._sums(out)
        for u, block in known.items():
            made[:, start[u] : start[u + 1]] = block[:, start[unit] : start[unit + 1]].T
        return made


class ScannedGram(_StumpSource):
    """A column a pass over binned rows: for so many voters that a feature's columns do not fit in memory."""

    def __init__(
        self, stumps: Stumps, codes: np.ndarray, mass: np.ndarray | None, scale: float, n_threads: int
    ) -> None:
        super().__init__(stumps, codes.shape[1], mass, scale, n_threads)
        self.codes = codes

    def make(self, unit: int, known: Mapping[int, np.ndarray]) -> np.ndarray:
        feature, votes = self.stumps.votes(unit)
        out = np.empty((1, self.n_voters), dtype=self.count_dtype)
        bins = int(np.diff(self.stumps.bin_start).max())
        _core.scan_column(
            self.codes, self._weigh(votes[self.codes[feature]]), *self._layout, self._scratch(bins), out[0],
            self.n_threads,
        )  # fmt: skip
        return self._sums(out)


class PresortedGram(_StumpSource):
    """A column a scan over presorted rows: any number of thresholds, up to every midpoint of distinct values."""

    def __init__(
        self, stumps: Stumps, codes: np.ndarray, mass: np.ndarray | None, scale: float, n_threads: int
    ) -> None:
        super().__init__(stumps, codes.shape[1], mass, scale, n_threads)
        self.order = np.empty(codes.shape, dtype=np.int32)
        self.bin_end = np.empty(stumps.bin_start[-1], dtype=np.int64)
        for f, row in enumerate(codes):
            first, last = stumps.bin_start[f : f + 2]
            self.order[f] = np.argsort(row, kind="stable")
            self.bin_end[first:last] = np.cumsum(np.bincount(row, minlength=last - first))

    def make(self, unit: int, known: Mapping[int, np.ndarray]) -> np.ndarray:
        feature, votes = self.stumps.votes(unit)
        first, last = self.stumps.bin_start[feature : feature + 2]
        by_row = np.empty(self.order.shape[1], dtype=np.int32)
        by_row[self.order[feature]] = np.repeat(votes, np.diff(self.bin_end[first:last], prepend=0))
        out = np.empty((1, self.n_voters), dtype=self.count_dtype)
        _core.presorted_column(
            self.order, self.bin_end, self._weigh(by_row), *self._layout,
            self._scratch(int(np.diff(self.stumps.bin_start).max())), out[0], self.n_threads,
        )  # fmt: skip
        return self._sums(out)


def stump_gram(
    stumps: Stumps, codes: np.ndarray, mass: np.ndarray | None, scale: float, cache_bytes: int, n_threads: int
) -> GramCache:
    """The source of columns that suits the number of bins and of voters."""
    if codes.dtype == np.uint32:
        source: GramSource = PresortedGram(stumps, codes, mass, scale, n_threads)
    elif stumps.n_voters**2 * (4 if mass is None else 8) <= cache_bytes:
        source = BinnedGram(stumps, codes, mass, scale, n_threads)
    else:
        source = ScannedGram(stumps, codes, mass, scale, n_threads)
    return GramCache(source, cache_bytes)


class MatrixGram:
    """Voters given by their outputs, whatever they are."""

    def __init__(self, H: np.ndarray, weight: np.ndarray | None, n_threads: int) -> None:
        self.H = H
        self.weight = weight
        self.n_threads = n_threads
        self.unit_start = np.arange(H.shape[1] + 1, dtype=np.int64)
        self.dtype = np.dtype(np.float64)

    @property
    def n_voters(self) -> int:
        return self.H.shape[1]

    def make(self, unit: int, known: Mapping[int, np.ndarray]) -> np.ndarray:
        value = self.H[:, unit] if self.weight is None else self.H[:, unit] * self.weight
        out = np.empty((1, self.n_voters))
        _core.matrix_products(self.H, value, out[0], self.n_threads)
        return out


class SummedGram:
    """Columns of the union (sign +1) or difference (sign -1) of sets of rows: sums add up."""

    def __init__(self, terms: Sequence[tuple[int, GramCache]]) -> None:
        self.terms = terms
        self.unit_start = np.arange(self.n_voters + 1, dtype=np.int64)
        self.dtype = np.result_type(*(cache.source.dtype for _, cache in terms))

    @property
    def n_voters(self) -> int:
        return self.terms[0][1].source.n_voters

    def make(self, unit: int, known: Mapping[int, np.ndarray]) -> np.ndarray:
        total = np.zeros((1, self.n_voters), dtype=self.dtype)
        for sign, cache in self.terms:
            total += sign * cache.column(unit)
        return total
