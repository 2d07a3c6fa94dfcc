"""Products of voters and rows in parts, for solving all weights at once: each is a pass, and only sums come back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import add

import numpy as np

from ..data.exact import Scales
from ..fitting.ridge import BinSums, Products, keys_by_codes
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from .each_row import EachRow, Score, asked
from .sampling import sample_of_parts
from .source import Coded, Source


class PartedProducts(Products):
    """Of rows in parts; values of the rows say how they are made of a part."""

    def __init__(self, source: Source[Coded], sums: ColumnSums, fit_intercept: bool, n_threads: int) -> None:
        super().__init__(sums, fit_intercept)
        self.source, self.n_threads = source, n_threads

    def scores(self, weight: np.ndarray) -> EachRow:
        return EachRow(Score(self.voters, weight.T, np.zeros(len(weight)), self.n_threads))

    def sums_towards(self, values: EachRow) -> ColumnSums:
        return sums_towards(self.source, self.voters, values, self.n_threads)

    def bin_sums(self, question: BinSums) -> np.ndarray:
        return self.source.reduce(partial(_answer, question, self.n_threads), add)

    def sample(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        keyed = _ByCodes(self.voters.n_features, self.sums.scales.extent.are_repeats)
        some = sample_of_parts(self.source, keyed, self.sums.n_rows, n_rows, _no_targets)
        return some.codes, some.copies.astype(float) if some.weight is None else some.weight


def sums_towards(source: Source[Coded], voters: Voters, targets: EachRow, n_threads: int) -> ColumnSums:
    """Sums over all parts, with other targets than their own."""
    scales = Scales.agreed(lambda question, add: source.reduce(partial(asked, targets, question), add))
    return source.reduce(partial(_sums_towards, voters, scales, n_threads, targets), add_sums)


def _sums_towards(voters: Voters, scales: Scales, n_threads: int, targets: EachRow, part: Coded) -> ColumnSums:
    return ColumnSums.of(voters, part.codes, targets.of(part, {}), part.weight, scales, n_threads)


def add_sums(one: ColumnSums, other: ColumnSums) -> ColumnSums:
    return one.combined(other, 1)


def _answer(question: BinSums, n_threads: int, part: Coded) -> np.ndarray:
    return question(part.codes, part.weight, n_threads)


@dataclass(frozen=True)
class _ByCodes:
    """Keys of the rows of a part by the codes of their features."""

    n_features: int
    are_repeats: bool

    def __call__(self, part: Coded) -> tuple[np.ndarray, np.ndarray]:
        return keys_by_codes(part.codes[:, : self.n_features], part.weight, self.are_repeats)


def _no_targets(part: Coded) -> np.ndarray:
    return np.empty((len(part.codes), 0))
