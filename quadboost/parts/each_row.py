"""Arrays with a row for every row of all parts, such as scores: not numbers, but how to make them of a part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..voters.columns import Voters
from .source import Coded


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


def asked(values: EachRow, question: Callable[..., Any], part: Coded) -> Any:
    """What a part says to a question about values, by columns, and weights."""
    found = values.of(part, {})
    return question(found if found.ndim == 2 else found[:, None], part.weight)


def rows_of(values: EachRow, part: Coded) -> np.ndarray:
    """The rows of a part."""
    return values.of(part, {})
