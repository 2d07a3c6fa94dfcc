"""Passes over rows in parts, for losses other than the squared one.

Scores, and what is made of them, have a row for every row of all parts. Here they are not numbers but say how to make
them of a part: every question makes them anew where the part is, and only sums come back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..boosting.losses import Loss, loss_for
from ..data.exact import exact_means
from ..fitting.measured import Options, check_targets
from ..fitting.passes import Training
from ..fitting.problem import Problem
from ..moments.moments import Moments
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from .each_row import EachRow, Score, asked
from .products import PartedProducts, sums_towards
from .source import Coded, Source


@dataclass(frozen=True)
class CodedParts(Training):
    """Training rows in parts."""

    voters: Voters
    source: Source[Coded]
    moments: Moments
    y: EachRow
    fit_intercept: bool
    n_threads: int
    at_once: bool = False

    def scores(self, weight: np.ndarray, intercept: np.ndarray) -> EachRow:
        return EachRow(Score(self.voters, weight, intercept, self.n_threads))

    def each(self, function: Callable[..., np.ndarray], *arrays: Any) -> EachRow:
        return EachRow(function, arrays)

    def means(self, values: EachRow) -> np.ndarray:
        return exact_means(partial(self.ask, values))

    def towards(self, targets: EachRow) -> Moments:
        return replace(self.moments, sums=sums_towards(self.source, self.voters, targets, self.n_threads))

    @cached_property
    def products(self) -> PartedProducts:
        assert isinstance(self.moments.sums, ColumnSums)
        return PartedProducts(self.source, self.moments.sums, self.fit_intercept, self.n_threads)

    def ask(self, values: EachRow, question: Callable[..., Any], add: Callable[[Any, Any], Any]) -> Any:
        """Put a question about values and weights to all parts."""
        return self.source.reduce(partial(asked, values, question), add)


def in_passes(
    problem: Problem, voters: Voters, source: Source[Coded], moments: Moments, options: Options, n_threads: int,
    at_once: bool = False,
) -> tuple[CodedParts, Loss]:  # fmt: skip
    """Parts of rows as passes need them, and the loss for them."""
    y = targets_of(problem, options.loss)
    rows = CodedParts(voters, source, moments, y, bool(options.fit_intercept), n_threads, at_once)
    check_targets(options.loss, rows.ask(y, _ends, _joined_ends))
    return rows, loss_for(options.loss, partial(rows.ask, y), rows.means(y), options.quantile, options.huber_width)


def targets_of(problem: Problem, loss: str) -> EachRow:
    """Targets as a loss wants them."""
    return EachRow(_targets if problem.classes is None or loss == "squared" else _zero_one)


def _targets(part: Coded) -> np.ndarray:
    return part.y


def _zero_one(part: Coded) -> np.ndarray:
    return (part.y + 1.0) / 2.0


def _ends(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The least value of each column, and the largest."""
    return np.stack([values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)])


def _joined_ends(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])
