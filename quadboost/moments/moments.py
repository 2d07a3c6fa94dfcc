"""What training needs to know of the data: sums over rows, and columns of the Gram matrix on demand.

margin mu_j = mean(y h_j), second moment eta_j = mean(h_j^2), Gram matrix G_ij = mean(h_i h_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..data.exact import LARGEST_TARGET, Scales
from ..voters.columns import Voters
from .gram import ColumnGram, Gram, GramSource, MatrixGram, SummedGram
from .sums import ColumnSums, MatrixSums, Sums, check_rows, fingerprint

DEFAULT_CACHE_BYTES = 1 << 30
BYTES_OF_VOTER = 200  # its sums, edge and weight, while rounds run and when their outcome is handed over
SHARE_FOR_SORTING = 4  # one part in four of the memory is for sorted rows, the rest for Gram columns


@dataclass(frozen=True)
class Moments:
    """Moments of voters and targets over a set of rows. They are copied, pickled, added and subtracted.

    Attributes
    ----------
    sums : Sums
        Of weight times voters, targets and their products.
    gram : Gram
        Sums of h_i * h_j, a column at a time. Copies and pickles make their columns anew.
    n_threads : int
        For rounds over very many voters.
    """

    sums: Sums
    gram: Gram
    n_threads: int = 1

    total_weight = property(lambda self: self.sums.total_weight, doc="Sum of the weights.")
    voter_sum = property(lambda self: self.sums.voter_sum, doc="Sum of h_j, shape (K,).")
    voter_square = property(lambda self: self.sums.voter_square, doc="Sum of h_j squared, shape (K,).")
    target_sum = property(lambda self: self.sums.target_sum, doc="Sum of y - origin, shape (n_outputs,).")
    target_square = property(lambda self: self.sums.target_square, doc="Sum of its square, shape (n_outputs,).")
    product_sum = property(lambda self: self.sums.product_sum, doc="Sum of h_j * (y - origin), shape (K, n_outputs).")
    origin = property(lambda self: self.sums.origin, doc="What was subtracted from each target, shape (n_outputs,).")

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

    @property
    def eta(self) -> np.ndarray:
        return self.voter_square / self.total_weight

    @property
    def target_mean(self) -> np.ndarray:
        return self.origin + self.target_sum / self.total_weight

    def target_risk(self, fit_intercept: bool) -> np.ndarray:
        """The risk of the best constant (or of zero) for each output: what the voters can explain."""
        mean = self.target_sum / self.total_weight
        variance = np.maximum(0.0, self.target_square / self.total_weight - mean * mean)
        return variance if fit_intercept else variance + self.target_mean**2

    def centred(self, fit_intercept: bool) -> tuple[np.ndarray, np.ndarray]:
        """Edges (K, n_outputs) and second moments of the voters, less what a constant explains if there is one."""
        if not fit_intercept:
            return self.margin, self.eta
        mean, target_mean = self.voter_sum / self.total_weight, self.target_sum / self.total_weight
        return self.product_sum / self.total_weight - np.outer(mean, target_mean), self.eta - mean * mean

    @cached_property
    def fingerprint(self) -> tuple[int, ...]:
        """The same for the same sums."""
        return fingerprint(self.sums)

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
        if self.product_sum.shape != other.product_sum.shape or type(self.sums) is not type(other.sums):
            raise ValueError(
                f"moments of {self.n_voters} voters and {self.n_outputs} outputs do not combine with moments of "
                f"{other.n_voters} voters and {other.n_outputs} outputs; make both with the same voters and targets"
            )
        sums = self.sums.combined(other.sums, sign)
        if sign < 0 and (sums.total_weight <= 0 or sums.voter_square.min(initial=0.0) < -1e-9 * self.total_weight):
            raise ValueError(
                "what is subtracted is not a proper part of the rows; subtract only moments that were added before"
            )
        half = self.gram.cache_bytes // (1 if isinstance(self.gram.source, SummedGram) else 2)  # a sum has halved it
        source = SummedGram(_terms(self.gram, 1) + _terms(other.gram, sign), half)
        return Moments(sums, Gram(source, half), self.n_threads)


def _terms(gram: Gram, sign: int) -> list[tuple[int, GramSource]]:
    """The sets of rows behind a Gram matrix; a sum of sums is one sum."""
    if isinstance(gram.source, SummedGram):
        return [(sign * its_sign, source) for its_sign, source in gram.source.terms]
    return [(sign, gram.source)]


def bytes_for_columns(cache_bytes: int, n_voters: float) -> int:
    """What is left of the memory for Gram columns; where voters are many, their own figures count too."""
    rest = cache_bytes - cache_bytes // SHARE_FOR_SORTING
    return max(rest // 2, rest - int(BYTES_OF_VOTER * n_voters))


def column_moments(
    voters: Voters, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, *, scales: Scales | None = None,
    cache_bytes: int = DEFAULT_CACHE_BYTES, n_threads: int = 1,
) -> Moments:  # fmt: skip
    """Moments of voters on columns, over coded rows.

    Parameters
    ----------
    voters : Voters
    codes : array of shape (m, d)
        `voters.code(X)`.
    y : array of shape (m,) or (m, n_outputs)
    weight : array of shape (m,), optional
        Positive weights of the rows.
    scales : Scales, optional
        Where the rows are part of a table: `Scales.agree` of all its parts. The moments of parts then add up to those
        of the table, bit for bit.
    cache_bytes : int
        Memory for Gram columns.
    """
    check_rows(len(codes))
    y = np.asarray(y, dtype=np.float64)
    y = y.reshape(len(y), -1) if y.size else y.reshape(len(y), 1 if scales is None else len(scales.origin))
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    codes = np.ascontiguousarray(codes)
    _check_coded(voters, codes, y, weight)
    scales = Scales.agree([(y, weight)]) if scales is None else scales
    scales.check(y, weight)
    sums = ColumnSums.of(voters, codes, y, weight, scales, n_threads)
    if scales.extent.counts_rows:
        weight = None
    elif weight is None:
        weight = np.ones(len(y))
    source = ColumnGram(
        voters,
        codes,
        None if weight is None else scales.extent.round(weight),
        sums.voter_sum,
        cache_bytes // SHARE_FOR_SORTING,
        n_threads,
    )
    return Moments(sums, Gram(source, bytes_for_columns(cache_bytes, voters.n_voters)), n_threads)


def moments_from_matrix(
    H: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None, *, cache_bytes: int = DEFAULT_CACHE_BYTES,
    n_threads: int = 1,
) -> Moments:  # fmt: skip
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
    n_threads : int
        Threads; the result is the same bits for any number.
    """
    H = np.asfortranarray(H, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    _check_matrix(H, y, weight)
    sums = MatrixSums.of(H, y.reshape(len(y), -1), weight, n_threads)
    return Moments(sums, Gram(MatrixGram(H, weight, n_threads), cache_bytes), n_threads)


def _check_coded(voters: Voters, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
    """Refuse what would send a kernel out of bounds, or give wrong sums."""
    if codes.ndim != 2 or codes.shape[1] != voters.n_columns or codes.dtype not in (np.uint8, np.uint16, np.uint32):
        raise ValueError(f"codes are {codes.dtype} of shape {codes.shape}; make them by voters.code(X)")
    if len(codes) and (codes.max(axis=0) > voters.n_cuts + 1).any():
        raise ValueError("codes are of other voters: one is beyond the last bin; make them by voters.code(X)")
    if len(y) != len(codes) or (weight is not None and weight.shape != (len(codes),)):
        raise ValueError(
            f"there are {len(codes)} rows of codes and {len(y)} targets; give a target, and a weight, for each"
        )
    if not np.isfinite(y).all() or np.abs(y).max(initial=0.0) > LARGEST_TARGET:
        raise ValueError(f"y holds a value that is not finite, or above {LARGEST_TARGET:g}; rescale it")
    if weight is not None and not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError("weights must be positive and finite; leave rows of weight 0 out")


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
