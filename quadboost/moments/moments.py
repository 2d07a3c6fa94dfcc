"""What training needs to know of the data: sums over rows that add up over disjoint sets of rows.

margin mu_j = mean(y h_j), second moment eta_j = mean(h_j^2), and columns of G_ij = mean(h_i h_j) on demand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._core import dot
from ..data.exact import exact_mean, fixed_point, rounded_weights
from ..kernels import counts
from ..voters.stumps import Stumps
from .gram import GramCache, MatrixGram, StumpGram, SummedGram

DEFAULT_CACHE_BYTES = 1 << 30
FAR = 4.0  # a mean so many times the largest deviation from it is far from zero
BYTES_OF_VOTER = 200  # its sums, edge and weight, while rounds run and when their outcome is handed over
SHARE_FOR_SORTING = 4  # one part in four of the memory is for sorted rows, the rest for Gram columns


@dataclass(frozen=True)
class Moments:
    """Sums over rows of weight times voters, targets and their products.

    Attributes
    ----------
    total_weight : float
    voter_sum, voter_square : arrays of shape (K,)
        Sums of h_j and of h_j squared.
    target_sum, target_square : arrays of shape (n_outputs,)
    product_sum : array of shape (K, n_outputs)
        Sums of h_j * y.
    origin : array of shape (n_outputs,)
        What was subtracted from each target before it was summed: sums of a target far from zero would drown in
        rounding all that is to be learnt of it.
    gram : GramCache
        Sums of h_i * h_j, a column at a time.
    n_threads : int
        For rounds over very many voters.
    voters : bytes
        What tells these voters from others; empty where nothing does.
    """

    total_weight: float
    voter_sum: np.ndarray
    voter_square: np.ndarray
    target_sum: np.ndarray
    target_square: np.ndarray
    product_sum: np.ndarray
    origin: np.ndarray
    gram: GramCache
    n_threads: int = 1
    voters: bytes = b""

    @property
    def n_voters(self) -> int:
        return len(self.voter_sum)

    @property
    def n_outputs(self) -> int:
        return len(self.target_sum)

    @property
    def margin(self) -> np.ndarray:
        """mu_j of every voter and output (equation 5 of the paper)."""
        return (self.product_sum + np.outer(self.voter_sum, self.origin)) / self.total_weight

    def _with_origin(self, origin: np.ndarray) -> Moments:
        shift = self.origin - origin
        return replace(
            self,
            target_sum=self.target_sum + shift * self.total_weight,
            target_square=self.target_square + shift * (2.0 * self.target_sum + shift * self.total_weight),
            product_sum=self.product_sum + np.outer(self.voter_sum, shift),
            origin=origin,
        )

    @property
    def target_mean(self) -> np.ndarray:
        return self.origin + self.target_sum / self.total_weight

    def target_risk(self, fit_intercept: bool) -> np.ndarray:
        """The risk of the best constant, or of zero, for each output: what there is to be explained."""
        mean = self.target_sum / self.total_weight
        variance = np.maximum(0.0, self.target_square / self.total_weight - mean * mean)
        return variance if fit_intercept else variance + self.target_mean**2

    @property
    def eta(self) -> np.ndarray:
        return self.voter_square / self.total_weight

    def __add__(self, other: Moments) -> Moments:
        """Moments of the union of two disjoint sets of rows."""
        return self._combined(other, 1)

    def __radd__(self, other: object) -> Moments:
        """So that `sum` adds moments up."""
        return self if other == 0 else NotImplemented

    def __sub__(self, other: Moments) -> Moments:
        """Moments of the rows of self that are not rows of other; other must be a part of self."""
        return self._combined(other, -1)

    def _combined(self, other: Moments, sign: int) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if self.product_sum.shape != other.product_sum.shape:
            raise ValueError(
                f"moments of {self.n_voters} voters and {self.n_outputs} outputs do not combine with moments of "
                f"{other.n_voters} voters and {other.n_outputs} outputs; make both with the same voters and targets"
            )
        if self.voters != other.voters:
            raise ValueError("these are moments of different voters; make both with the same stumps")
        other = other._with_origin(self.origin)
        square = self.voter_square + sign * other.voter_square
        total_weight = self.total_weight + sign * other.total_weight
        if total_weight <= 0 or square.min(initial=0.0) < -1e-9 * self.total_weight:
            raise ValueError(
                "what is subtracted is not a proper part of the rows; subtract some of those that were added"
            )
        return Moments(
            total_weight=total_weight,
            voter_sum=self.voter_sum + sign * other.voter_sum,
            voter_square=square,
            target_sum=self.target_sum + sign * other.target_sum,
            target_square=self.target_square + sign * other.target_square,
            product_sum=self.product_sum + sign * other.product_sum,
            origin=self.origin,
            gram=GramCache(SummedGram([(1, self.gram), (sign, other.gram)]), self.gram.cache_bytes),
            n_threads=self.n_threads,
            voters=self.voters,
        )


def bytes_for_columns(cache_bytes: int, n_voters: float) -> int:
    """What is left of the memory for Gram columns; where voters are many, their own figures count too."""
    rest = cache_bytes - cache_bytes // SHARE_FOR_SORTING
    return max(rest // 2, rest - int(BYTES_OF_VOTER * n_voters))


def stump_moments(
    stumps: Stumps,
    codes: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    n_threads: int = 1,
) -> Moments:
    """Moments of stumps over coded rows.

    Parameters
    ----------
    stumps : Stumps
    codes : array of shape (m, d)
        `stumps.code(X)`.
    y : array of shape (m,) or (m, n_outputs)
    weight : array of shape (m,), optional
        Positive weights of the rows.
    cache_bytes : int
        Memory for Gram columns.
    """
    y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    mass = np.ones(len(y)) if weight is None else rounded_weights(weight)
    bins, voter_sum = _sums(stumps, codes, mass, n_threads)
    targets = TargetSums.of(stumps, codes, y, weight, n_threads)
    source = StumpGram(
        stumps,
        codes,
        None if weight is None else mass,
        voter_sum,
        cache_bytes // SHARE_FOR_SORTING,
        n_threads,
    )
    return Moments(
        total_weight=float(mass.sum()),
        voter_sum=voter_sum,
        voter_square=_present(stumps, bins, float(mass.sum())),
        **targets._asdict(),
        gram=GramCache(source, bytes_for_columns(cache_bytes, stumps.n_voters)),
        n_threads=n_threads,
        voters=stumps.digest(),
    )


class TargetSums(NamedTuple):
    """What `Moments` hold of the targets."""

    target_sum: np.ndarray
    target_square: np.ndarray
    product_sum: np.ndarray
    origin: np.ndarray

    @classmethod
    def of(
        cls, stumps: Stumps, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, n_threads: int = 1
    ) -> TargetSums:
        """Of stumps over coded rows; `y` is of shape (m, n_outputs)."""
        origin = _origins(y, weight)
        products, target_sum, target_square = [], [], []
        for target in (y - origin).T:
            value, scale = fixed_point(target, weight)
            square, square_scale = fixed_point(target * target, weight)
            products.append(_sums(stumps, codes, value, n_threads)[1] * scale)
            target_sum.append(value.sum() * scale)
            target_square.append(square.sum() * square_scale)
        return cls(np.array(target_sum), np.array(target_square), np.column_stack(products), origin)


def _sums(stumps: Stumps, codes: np.ndarray, value: np.ndarray, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of a value per bin and per voter."""
    bins = np.zeros(stumps.bin_start[-1], dtype=value.dtype)
    counts.bin_sums(codes, value, stumps.bin_start, bins, n_threads)
    voters = np.zeros(stumps.n_voters, dtype=value.dtype)
    counts.add_voter_sums(bins, *stumps.layout, voters)
    return bins, voters


def _present(stumps: Stumps, bins: np.ndarray, total: float) -> np.ndarray:
    """Where a voter does not abstain: rows with a value, or every row for an "is missing" voter."""
    missing = bins[stumps.bin_start[1:] - 1]
    square = np.repeat(total - missing, np.diff(stumps.voter_start))
    square[(stumps.voter_start[1:] - 1)[stumps.has_missing == 1]] = total
    return square


def moments_from_matrix(
    H: np.ndarray,
    y: np.ndarray,
    sample_weight: np.ndarray | None = None,
    *,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    n_threads: int = 1,
) -> Moments:
    """Moments of any real-valued voters, given by their outputs.

    Parameters
    ----------
    H : array of shape (m, K)
        Outputs of the voters, e.g. other models' predictions.
    y : array of shape (m,) or (m, n_outputs)
        Targets; labels are -1 and +1.
    sample_weight : array of shape (m,), optional
    cache_bytes : int
        Memory for Gram columns.
    """
    H = np.asfortranarray(H, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    _check_matrix(H, y, weight)
    y = y.reshape(len(y), -1)
    w = np.ones(len(y)) if weight is None else weight
    origin = _origins(y, weight)
    targets = np.ascontiguousarray((y - origin).T)

    def products(value: np.ndarray) -> np.ndarray:
        out = np.empty(H.shape[1])
        counts.matrix_products(H, np.ascontiguousarray(value), out, n_threads)
        return out

    with np.errstate(over="ignore"):
        square = np.einsum("ij,ij,i->j", H, H, w)
    if not np.isfinite(square).all():
        raise ValueError(f"H holds {np.abs(H).max()}, of which the square is infinite; rescale that voter")
    return Moments(
        total_weight=float(w.sum()),
        voter_sum=products(w),
        voter_square=square,
        target_sum=np.array([dot(w, target) for target in targets]),
        target_square=np.array([dot(w, target * target) for target in targets]),
        product_sum=np.column_stack([products(w * target) for target in targets]),
        origin=origin,
        gram=GramCache(MatrixGram(H, weight, n_threads), cache_bytes),
        n_threads=n_threads,
    )


def _origins(y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The mean of each target that is far from zero, else 0: labels stay the whole numbers that they are."""
    mean = np.array([exact_mean(target, weight) for target in y.T])
    spread = np.abs(y - mean).max(axis=0)
    return np.where(np.abs(mean) > FAR * spread, mean, 0.0)


def _check_matrix(H: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
    if H.ndim != 2 or 0 in H.shape:
        raise ValueError(f"H has shape {H.shape}; it must be (examples, voters) with at least one of each")
    if y.ndim not in (1, 2) or y.shape[0] != len(H) or 0 in y.shape:
        raise ValueError(f"y has shape {y.shape}; it must have one entry for each of the {len(H)} rows of H")
    if weight is not None and (weight.shape != (len(H),) or not np.all(weight >= 0) or not weight.sum() > 0):
        raise ValueError("sample_weight must hold one non-negative number for each row of H, not all of them zero")
    for name, values in (("H", H), ("y", y), ("sample_weight", weight)):
        if values is not None and not np.isfinite(values).all():
            raise ValueError(f"{name} holds NaN or infinity; every value must be finite")
