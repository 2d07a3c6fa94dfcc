"""Sums over rows: plain numbers that are copied, pickled, added and subtracted.

Two families of voters have them. Voters on columns of codes are summed per bin, in whole numbers: the sums of parts
that agreed on their scales are the sums of all rows, bit for bit. Voters given by their outputs are summed as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from .._core import dot
from ..data.exact import MOST_ROWS, SAME_IN_ANY_ORDER, Scales
from ..kernels.sums import bin_sums, matrix_products
from ..kernels.voters import voter_sums
from ..voters.columns import Voters

DIFFERENT_SCALES = (
    "these sums were rounded to different scales, and cannot be added exactly; make them with the same scales, "
    "Scales.agree(parts)"
)


def check_rows(n_rows: int) -> None:
    if n_rows >= MOST_ROWS:
        raise ValueError(f"there are {n_rows} rows; at most {MOST_ROWS - 1} can be summed at once: give parts")


class Sums(Protocol):
    """What the booster reads of a set of rows: sums of weight times voters h_j, targets y and their products.

    Attributes
    ----------
    total_weight : float
    voter_sum, voter_square : arrays of shape (K,)
        Sums of h_j and of h_j squared.
    target_sum, target_square : arrays of shape (n_outputs,)
        Sums of y - origin and of its square.
    product_sum : array of shape (K, n_outputs)
        Sums of h_j * (y - origin).
    origin : array of shape (n_outputs,)
        What is subtracted from each target.
    """

    @property
    def total_weight(self) -> float: ...

    @property
    def voter_sum(self) -> np.ndarray: ...

    @property
    def voter_square(self) -> np.ndarray: ...

    @property
    def target_sum(self) -> np.ndarray: ...

    @property
    def target_square(self) -> np.ndarray: ...

    @property
    def product_sum(self) -> np.ndarray: ...

    @property
    def origin(self) -> np.ndarray: ...

    def combined(self, other: Any, sign: int) -> Any:
        """Sums of the union of two disjoint sets of rows (sign 1), or of the rows that are not in the other (-1)."""


@dataclass(frozen=True)
class ColumnSums:
    """Sums over rows coded by columns of bins.

    Attributes
    ----------
    voters : Voters
    scales : Scales
        To which the targets were rounded.
    n_rows : int
    mass : int64 array of shape (bins of all columns,)
        Weight of the rows in each bin, in units of the scales.
    product : int64 array of shape (n_outputs, bins of all columns)
        Sums of the targets in each bin, in units of the scales.
    sum_of_targets, sum_of_squares : int64 arrays of shape (n_outputs,)
    total_weight : float
    """

    voters: Voters
    scales: Scales
    n_rows: int
    mass: np.ndarray
    product: np.ndarray
    sum_of_targets: np.ndarray
    sum_of_squares: np.ndarray
    total_weight: float

    @classmethod
    def of(
        cls, voters: Voters, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, scales: Scales,
        n_threads: int = 1,
    ) -> ColumnSums:  # fmt: skip
        """Sums over coded rows; y is of shape (m, n_outputs)."""
        check_rows(len(codes))
        mass = scales.extent.whole_weights(weight, len(y))
        per_bin = _per_bin(voters, codes, mass[:, None], n_threads)[0]
        total = float(mass.sum() * scales.extent.weight_unit)
        targets = _target_sums(voters, codes, y, weight, scales, n_threads)
        return cls(voters, scales, len(y), per_bin, *targets, total)

    def with_targets(
        self, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, n_threads: int = 1
    ) -> ColumnSums:
        """Sums over the same rows, of other targets."""
        scales = Scales.agree([(y, weight)])
        product, sums, squares = _target_sums(self.voters, codes, y, weight, scales, n_threads)
        return replace(self, scales=scales, product=product, sum_of_targets=sums, sum_of_squares=squares)

    @cached_property
    def voter_sum(self) -> np.ndarray:
        return self._per_voter(self.mass) * self.scales.extent.weight_unit

    @cached_property
    def voter_square(self) -> np.ndarray:
        running = self.mass.copy()
        for first, last in zip(self.voters.bin_start[:-1], self.voters.bin_start[1:], strict=True):
            np.cumsum(running[first:last], out=running[first:last])
        return running[self.voters.intervals.whole] * self.scales.extent.weight_unit

    @cached_property
    def target_sum(self) -> np.ndarray:
        return self.sum_of_targets * self.scales.units

    @cached_property
    def target_square(self) -> np.ndarray:
        return self.sum_of_squares * self.scales.square_units

    @cached_property
    def product_sum(self) -> np.ndarray:
        return np.column_stack([self._per_voter(product) for product in self.product]) * self.scales.units

    @cached_property
    def origin(self) -> np.ndarray:
        return np.array(self.scales.origin)

    def mass_of(self, column: int) -> np.ndarray:
        """Weight of the rows in each bin of a column."""
        units = self.mass[self.voters.bin_start[column] : self.voters.bin_start[column + 1]]
        return units * self.scales.extent.weight_unit

    def _per_voter(self, bins: np.ndarray) -> np.ndarray:
        sums = np.zeros(self.voters.n_voters, dtype=np.int64)
        voter_sums(self.voters.layout, bins.copy(), sums)
        return sums

    def combined(self, other: ColumnSums, sign: int) -> ColumnSums:
        if self.voters.fingerprint != other.voters.fingerprint:
            raise ValueError("these are moments of different voters; make both with the same voters")
        scales = self.scales
        is_within = self.total_weight + other.total_weight <= scales.extent.total * SAME_IN_ANY_ORDER
        if sign > 0 and not (scales.same_as(other.scales) and is_within):
            scales = scales.union(other.scales)
        mine, others = self._at(scales), other._at(scales)
        return ColumnSums(
            self.voters,
            scales,
            self.n_rows + sign * other.n_rows,
            *(getattr(mine, name) + sign * getattr(others, name) for name in _ADDED),
        )

    def _at(self, scales: Scales) -> ColumnSums:
        """The same sums in other units, if nothing is lost by that."""
        if scales.same_as(self.scales):
            return replace(self, scales=scales)  # their units are the same, but not how many rows they are for
        is_same = scales.origin == self.scales.origin and scales.extent.is_whole == self.scales.extent.is_whole
        if not is_same or not (scales.extent.is_whole and scales.extent.are_repeats):
            raise ValueError(DIFFERENT_SCALES)
        return ColumnSums(
            self.voters, scales, self.n_rows,
            _in_units(self.mass, self.scales.extent.weight_unit, scales.extent.weight_unit),
            _in_units(self.product, self.scales.units[:, None], scales.units[:, None]),
            _in_units(self.sum_of_targets, self.scales.units, scales.units),
            _in_units(self.sum_of_squares, self.scales.square_units, scales.square_units),
            self.total_weight,
        )  # fmt: skip


def _per_bin(voters: Voters, codes: np.ndarray, values: np.ndarray, n_threads: int) -> np.ndarray:
    """Sums in each bin of several values for each row, shape (n_values, bins of all columns)."""
    bins = np.zeros((voters.bin_start[-1], values.shape[1]), dtype=np.int64)
    bin_sums(codes, values, voters.bin_start, bins, n_threads)
    return np.ascontiguousarray(bins.T)


def _target_sums(
    voters: Voters, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, scales: Scales, n_threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of the targets in each bin, their sums and those of their squares, in units of the scales."""
    values, sums, squares = np.empty(y.shape, dtype=np.int64), [], []
    for output, (origin, largest) in enumerate(zip(scales.origin, scales.largest, strict=True)):
        target = y[:, output] - origin
        values[:, output] = scales.extent.fixed_point(target, weight, largest)
        sums.append(values[:, output].sum())
        squares.append(scales.extent.fixed_point(target * target, weight, largest * largest).sum())
    product = _per_bin(voters, codes, values, n_threads)
    return product, np.array(sums, dtype=np.int64), np.array(squares, dtype=np.int64)


_ADDED = [field.name for field in fields(ColumnSums)][3:]


def _in_units(integers: np.ndarray, old: np.ndarray | float, new: np.ndarray | float) -> np.ndarray:
    """Integers in other units, powers of two: whole numbers as before, or this is refused."""
    factor = np.rint(np.log2(new / old)).astype(np.int64)
    found = np.where(factor >= 0, integers >> np.maximum(factor, 0), integers << np.maximum(-factor, 0))
    back = np.where(factor >= 0, found << np.maximum(factor, 0), found >> np.maximum(-factor, 0))
    if not np.array_equal(back, integers):
        raise ValueError(DIFFERENT_SCALES)
    return found


@dataclass(frozen=True)
class MatrixSums:
    """Sums over voters given by their outputs; attributes are those of `Sums`."""

    total_weight: float
    voter_sum: np.ndarray
    voter_square: np.ndarray
    target_sum: np.ndarray
    target_square: np.ndarray
    product_sum: np.ndarray
    origin: np.ndarray

    @classmethod
    def of(cls, H: np.ndarray, y: np.ndarray, weight: np.ndarray | None, n_threads: int = 1) -> MatrixSums:
        """H is of shape (m, K), in columns; y of shape (m, n_outputs)."""
        w = np.ones(len(y)) if weight is None else weight
        origin = np.array(Scales.agree([(y, weight)]).origin)
        targets = np.ascontiguousarray((y - origin).T)

        def products(value: np.ndarray) -> np.ndarray:
            out = np.empty(H.shape[1])
            matrix_products(H, np.ascontiguousarray(value), out, n_threads)
            return out

        with np.errstate(over="ignore"):
            square = np.einsum("ij,ij,i->j", H, H, w)
        if not np.isfinite(square).all():
            raise ValueError(f"H holds {np.abs(H).max()}, whose square overflows; rescale that voter")
        return cls(
            total_weight=float(w.sum()),
            voter_sum=products(w),
            voter_square=square,
            target_sum=np.array([dot(w, target) for target in targets]),
            target_square=np.array([dot(w, target * target) for target in targets]),
            product_sum=np.column_stack([products(w * target) for target in targets]),
            origin=origin,
        )

    def combined(self, other: MatrixSums, sign: int) -> MatrixSums:
        other = other._counted_from(self.origin)
        names = [field.name for field in fields(self) if field.name != "origin"]
        added = {name: getattr(self, name) + sign * getattr(other, name) for name in names}
        return MatrixSums(**added, origin=self.origin)

    def _counted_from(self, origin: np.ndarray) -> MatrixSums:
        shift = self.origin - origin
        return MatrixSums(
            total_weight=self.total_weight,
            voter_sum=self.voter_sum,
            voter_square=self.voter_square,
            target_sum=self.target_sum + shift * self.total_weight,
            target_square=self.target_square + shift * (2.0 * self.target_sum + shift * self.total_weight),
            product_sum=self.product_sum + np.outer(self.voter_sum, shift),
            origin=origin,
        )


def fingerprint(sums: Sums) -> tuple[int, ...]:
    """The same for the same sums, and hardly ever for others."""
    arrays = (sums.voter_sum, sums.voter_square, sums.target_sum, sums.target_square, sums.product_sum, sums.origin)
    found = []
    for array in (np.array([sums.total_weight]), *arrays):
        bits = np.ascontiguousarray(array, dtype=np.float64).view(np.uint64).ravel() * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(32))) * np.arange(1, 2 * len(bits), 2, dtype=np.uint64)  # modulo 2**64
        found.append(int((bits ^ (bits >> np.uint64(29))).sum()))
    return tuple(found)
