"""Passes over rows in parts, for losses other than the squared one.

Scores, and what is made of them, have a row for every row of all parts. Here they are not numbers but say how to make
them of a part: every question makes them anew where the part is, and only sums come back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..boosting.losses import Loss, make_loss
from ..data.exact import Scales, exact_means
from ..fitting.measured import Options, check_targets
from ..fitting.passes import Training
from ..fitting.problem import Problem
from ..moments.moments import Moments
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from .source import Coded, Source

# Losses that need no more of all targets than their means and ends; others need medians.
BY_PARTS = ("squared", "logistic", "poisson")


@dataclass(frozen=True, eq=False)
class EachRow(NDArrayOperatorsMixin):
    """An array with a row for every row of all parts: a function of others, or of the part itself (None)."""

    function: Callable[..., np.ndarray]
    inputs: tuple[Any, ...] | None = None

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return NotImplemented if method != "__call__" or options else EachRow(function, inputs)

    def of(self, part: Coded, known: dict[int, np.ndarray]) -> np.ndarray:
        """Its rows of a part; `known` are those of arrays that were made before."""
        if id(self) not in known:
            known[id(self)] = self._made(part, known)
        return known[id(self)]

    def _made(self, part: Coded, known: dict[int, np.ndarray]) -> np.ndarray:
        if self.inputs is None:
            return self.function(part)
        return self.function(*(each.of(part, known) if isinstance(each, EachRow) else each for each in self.inputs))


@dataclass(frozen=True)
class Score:
    """The scores of a part under weights (K, n_outputs) and intercepts."""

    voters: Voters
    weight: np.ndarray
    intercept: np.ndarray
    n_threads: int

    def __call__(self, part: Coded) -> np.ndarray:
        return self.voters.scores(part.codes, self.weight, self.intercept, self.n_threads)


@dataclass(frozen=True)
class CodedParts(Training):
    """Training rows in parts."""

    voters: Voters
    source: Source[Coded]
    moments: Moments
    y: EachRow
    fit_intercept: bool
    n_threads: int

    def scores(self, weight: np.ndarray, intercept: np.ndarray) -> EachRow:
        return EachRow(Score(self.voters, weight, intercept, self.n_threads))

    def each(self, function: Callable[..., np.ndarray], *arrays: Any) -> EachRow:
        return EachRow(function, arrays)

    def means(self, values: EachRow) -> np.ndarray:
        return exact_means(partial(self.ask, values))

    def towards(self, targets: EachRow) -> Moments:
        scales = Scales.agreed(partial(self.ask, targets))
        question = partial(_sums_towards, self.voters, scales, self.n_threads, targets)
        return replace(self.moments, sums=self.source.reduce(question, add_sums))

    def ask(self, values: EachRow, question: Callable[..., Any], add: Callable[[Any, Any], Any]) -> Any:
        """Put a question about values and weights to all parts."""
        return self.source.reduce(partial(_asked, values, question), add)


def _asked(values: EachRow, question: Callable[..., Any], part: Coded) -> Any:
    found = values.of(part, {})
    return question(found if found.ndim == 2 else found[:, None], part.weight)


def _sums_towards(voters: Voters, scales: Scales, n_threads: int, targets: EachRow, part: Coded) -> ColumnSums:
    return ColumnSums.of(voters, part.codes, targets.of(part, {}), part.weight, scales, n_threads)


def add_sums(one: ColumnSums, other: ColumnSums) -> ColumnSums:
    return one.combined(other, 1)


def in_passes(
    problem: Problem, voters: Voters, source: Source[Coded], moments: Moments, options: Options, n_threads: int
) -> tuple[CodedParts, Loss]:
    """Parts of rows as passes need them, and the loss for them."""
    y = EachRow(_targets if problem.classes is None else _zero_one)
    rows = CodedParts(voters, source, moments, y, bool(options.fit_intercept), n_threads)
    check_targets(options.loss, rows.ask(y, _ends, _joined_ends))
    return rows, make_loss(options.loss, np.empty((0, moments.n_outputs)), None, rows.means(y))


def _targets(part: Coded) -> np.ndarray:
    return part.y


def _zero_one(part: Coded) -> np.ndarray:
    return (part.y + 1.0) / 2.0


def _ends(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The least value of each column, and the largest."""
    return np.stack([values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)])


def _joined_ends(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])
