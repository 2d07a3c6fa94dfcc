"""The empirical Rademacher complexity of stumps: how well the best voter agrees with random signs.

For one draw of signs the supremum over all stumps is exact: along the sorted rows of a feature it is the
largest |total - 2 (sum of the signs below the threshold)|. Sums are integers, so that the number of threads
does not matter. docs/theory.md has the maths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..common.checks import at_least
from ..common.threads import resolve_threads
from ..data.schema import read_table
from ..kernels.sums import scan_signs
from ..voters.columns import Voters

DRAWS_OF_A_WORD = 64
LARGEST = np.iinfo(np.int32).max
SIGNS_FOR_THREADS = 10_000_000  # rows times features times draws, below which threads cost more than they bring


@dataclass(frozen=True)
class Complexity:
    """An estimate of the empirical Rademacher complexity, and how sure it is.

    Attributes
    ----------
    value : float
        Mean over the draws.
    standard_error : float
        Of that mean.
    massart : float
        Massart's bound sqrt(2 log(N) / m) for the N voters that differ on the rows: never below the truth.
    n_examples, n_draws : int
    """

    value: float
    standard_error: float
    massart: float
    n_examples: int
    n_draws: int

    def upper(self, delta: float) -> float:
        """A number that the complexity exceeds with probability at most delta over the draws.

        One sign moves the mean by at most 2 / (m draws): McDiarmid's inequality, for any number of draws.
        """
        error = math.sqrt(2.0 * math.log(1.0 / delta) / (self.n_examples * self.n_draws))
        return min(self.value + error, self.massart)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Two numbers that have the complexity between them with at least this probability."""
        error = math.sqrt(2.0 * math.log(2.0 / (1.0 - confidence)) / (self.n_examples * self.n_draws))
        return max(0.0, self.value - error), min(self.value + error, self.massart)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"Rademacher complexity {self.value:.4f} (95 % between {low:.4f} and {high:.4f}, "
            f"{self.n_draws} draws; Massart {self.massart:.4f})"
        )


def rademacher_complexity(
    X: Any, *, draws: int = 1000, random_state: int | np.random.Generator | None = 0,
    thresholds: Voters | Sequence[np.ndarray] | None = None, categorical_features: Any = "auto",
    n_jobs: int | None = None,
) -> Complexity:  # fmt: skip
    """Estimate the empirical Rademacher complexity of stumps on the rows of X.

    The class has both signs of every voter. It always has the constant, which an intercept is a multiple of.

    Parameters
    ----------
    X : array, list of rows, pandas or polars frame, pyarrow table or sparse matrix, of shape (m, d)
        Missing values are NaN, None or NA; a stump abstains there.
    draws : int
        Draws of signs. The error falls with their square root; they take draws / 8 bytes of memory a row.
    random_state : int, Generator or None
        A number, so that the same rows have the same complexity.
    thresholds : Voters, or one array of thresholds per feature, optional
        Only these voters; X is then a real matrix as `Voters` knows it. By default the class is one that no sample
        can add to, as the risk bounds want it: every threshold, also below and above all values, every set of the
        values of a categorical feature, and "is missing".
    categorical_features : "auto", None, or a list of columns
        Features whose values have no order. "auto": text, bool and categorical columns of a frame.
    n_jobs : int, optional
        Threads; None: every core that this process may use.
    """
    n_draws = at_least("draws", draws, 1)
    if thresholds is None:
        schema, matrix = read_table(X, categorical_features=categorical_features, min_category_count=1)
        voters = [_Voters(f in schema.categories, None, True) for f in range(matrix.shape[1])]
    else:
        matrix = np.asarray(X, dtype=np.float64)
        voters = _given_voters(matrix, thresholds)
    return _estimate(matrix, voters, n_draws, random_state, resolve_threads(n_jobs))


class _Voters(NamedTuple):
    """The voters of one feature."""

    is_level: bool
    cuts: np.ndarray | None  # None: every threshold, or every set of levels
    has_missing: bool  # whether "is missing" is one of them


def _given_voters(matrix: np.ndarray, thresholds: Voters | Sequence[np.ndarray]) -> list[_Voters]:
    if not isinstance(thresholds, Voters):
        cuts = [np.unique(np.asarray(values, dtype=np.float64)) for values in thresholds]
        none = np.zeros(len(cuts), dtype=np.uint8)
        thresholds = Voters(cuts, is_level=none, has_missing=none)
    if thresholds.trees:
        raise ValueError("thresholds has trees, and this is the complexity of stumps; give voters without trees")
    if matrix.ndim != 2 or matrix.shape[1] != thresholds.n_columns or len(matrix) == 0:
        raise ValueError(
            f"X has shape {matrix.shape}, but thresholds are given for {thresholds.n_columns} features; "
            "give rows with one column for each"
        )
    features = zip(thresholds.is_level.tolist(), thresholds.cuts, thresholds.has_missing.tolist(), strict=True)
    return [_Voters(*feature) for feature in features]


def _estimate(matrix: np.ndarray, voters: list[_Voters], n_draws: int, random_state: Any, n_threads: int) -> Complexity:
    from joblib import Parallel, delayed

    m = len(matrix)
    shape = (-(-n_draws // DRAWS_OF_A_WORD), m)
    words = np.random.default_rng(random_state).integers(0, 1 << 64, size=shape, dtype=np.uint64)
    everything = _sum_of_signs(np.arange(m, dtype=np.int32), words)
    if n_draws * matrix.size < SIGNS_FOR_THREADS:
        n_threads = 1
    found = Parallel(n_jobs=n_threads, prefer="threads")(
        delayed(_largest_sums)(matrix[:, f], of_feature, words, everything) for f, of_feature in enumerate(voters)
    )
    best = np.maximum.reduce([np.abs(everything), *(sums for sums, _ in found)])
    log_voters = math.log(2.0) + float(np.logaddexp.reduce([0.0, *(log_n for _, log_n in found)]))
    suprema = best.ravel()[:n_draws] / m
    spread = float(suprema.std(ddof=1)) if n_draws > 1 else math.nan
    return Complexity(
        value=float(suprema.mean()),
        standard_error=spread / math.sqrt(n_draws),
        massart=min(1.0, math.sqrt(2.0 * log_voters / m)),
        n_examples=m,
        n_draws=n_draws,
    )


def _largest_sums(
    column: np.ndarray, voters: _Voters, words: np.ndarray, everything: np.ndarray
) -> tuple[np.ndarray, float]:
    """The largest |sum of sign * h| over a feature's voters, for every draw, and the log of their number."""
    order = np.argsort(column).astype(np.int32)  # NaN last
    rows = order[: len(column) - int(np.isnan(column).sum())]
    sums_of = _sums_of_levels if voters.is_level else _sums_of_thresholds
    best, log_n, present = sums_of(rows, column[rows], voters.cuts, words)
    if voters.has_missing and len(rows) < len(order):
        np.maximum(best, np.abs(everything - 2 * present), out=best)
        log_n = float(np.logaddexp(log_n, 0.0))
    return best, log_n


def _sums_of_thresholds(
    rows: np.ndarray, values: np.ndarray, cuts: np.ndarray | None, words: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """The same over thresholds, and the sum of the signs of all rows that have a value."""
    bins = values if cuts is None else np.searchsorted(cuts, values)
    outside = len(rows) > 0 and (cuts is None or bool(bins[0] > 0 or bins[-1] < len(cuts)))  # of all values
    may_cut = np.zeros(len(rows), dtype=np.uint8)
    may_cut[:-1] = bins[1:] != bins[:-1]
    total = _zeros(words)
    low, high = total + (0 if outside else LARGEST), total - (0 if outside else LARGEST)
    scan_signs(rows, may_cut, words, total, low, high)
    n_voters = int(may_cut.sum()) + outside
    if n_voters == 0:
        return _zeros(words), -math.inf, total
    return np.maximum(total - 2 * low, 2 * high - total), math.log(n_voters), total


def _sums_of_levels(
    rows: np.ndarray, values: np.ndarray, cuts: np.ndarray | None, words: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    first = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    parts = [_sum_of_signs(part, words) for part in np.split(rows, first)[1:]]
    present = sum(parts, _zeros(words))
    if cuts is None:  # the best set of levels: those whose signs add up to more than 0
        best = sum((np.abs(part) for part in parts), _zeros(words))
        return best, max(0, len(parts) - 1) * math.log(2.0), present
    known = [part for level, part in zip(values[first], parts, strict=True) if 0 <= level < len(cuts)]
    if len(known) < len(cuts):
        known.append(_zeros(words))  # a level that no row has
    best = np.maximum.reduce([_zeros(words), *(np.abs(2 * part - present) for part in known)])
    return best, math.log(len(known)) if known else -math.inf, present


def _sum_of_signs(rows: np.ndarray, words: np.ndarray) -> np.ndarray:
    total = _zeros(words)
    scan_signs(rows, np.zeros(len(rows), dtype=np.uint8), words, total, total.copy(), total.copy())
    return total


def _zeros(words: np.ndarray) -> np.ndarray:
    return np.zeros((len(words), DRAWS_OF_A_WORD), dtype=np.int32)
