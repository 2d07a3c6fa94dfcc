"""Predictions and explanations of Dask collections, made partition by partition when Dask computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import attrgetter, methodcaller
from typing import Any, ClassVar

import numpy as np

from ..model.ensemble import Ensemble
from .source import import_dask


@dataclass(frozen=True)
class _Answer:
    """What a model says of a table; nothing of one without rows."""

    ensemble: Ensemble
    ask: Callable[[Ensemble, Any], Any]
    __name__: ClassVar[str] = "answer"  # of the tasks

    def __call__(self, X: Any) -> Any:
        return self.ask(self.ensemble, X) if X.shape[0] else self.of_no_rows

    @cached_property
    def of_no_rows(self) -> Any:
        return self.ask(self.ensemble, np.full((1, self.ensemble.n_features), np.nan))[:0]


def lazily(ensemble: Ensemble, ask: Callable[[Ensemble, Any], np.ndarray], X: Any) -> Any:
    """A Dask array with one block for every partition of X; `ask` is answered with an array of a row for each row."""
    answer = _Answer(ensemble, ask)
    none = answer.of_no_rows
    if hasattr(X, "map_partitions"):
        return X.map_partitions(answer, meta=none)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s); give a Dask DataFrame, or an Array of rows and columns")
    X = X.rechunk({1: -1})
    columns = {axis: (size,) for axis, size in enumerate(none.shape) if axis}
    return X.map_blocks(
        answer,
        meta=none,
        chunks=(X.chunks[0], *columns.values()),
        drop_axis=[1] if none.ndim == 1 else [],
        new_axis=list(range(2, none.ndim)),
    )


@dataclass(frozen=True)
class LazyExplanation:
    """Contributions of the terms of a model to the scores of a Dask collection.

    What is the same for all rows is known at once and is that of an `Explanation`: `terms`, `base`, `reference`,
    `scale`. What has a row for each row is a Dask collection.
    """

    ensemble: Ensemble = field(repr=False)
    X: Any = field(repr=False)
    background: Any = field(repr=False, default=None)
    scale: str = "score"

    @cached_property
    def _of_one_row(self) -> Any:
        return self._asking(_itself)(self.ensemble, np.full((1, self.ensemble.n_features), np.nan))

    def _asking(self, what: Callable[[Any], Any]) -> Callable[[Ensemble, Any], Any]:
        return partial(_explained, what, background=self.background, scale=self.scale)

    @property
    def terms(self) -> tuple[str, ...]:
        return self._of_one_row.terms

    @property
    def base(self) -> float | np.ndarray:
        return self._of_one_row.base

    @property
    def reference(self) -> str:
        return self._of_one_row.reference

    @property
    def values(self) -> Any:
        """A Dask array: what each term adds to the score of each row."""
        return lazily(self.ensemble, self._asking(attrgetter("values")), self.X)

    def by_feature(self) -> Any:
        """A Dask array of exact Shapley values."""
        return lazily(self.ensemble, self._asking(methodcaller("by_feature")), self.X)

    def to_frame(self) -> Any:
        """A Dask DataFrame: base, a column per term, and the score."""
        answer = _Answer(self.ensemble, self._asking(methodcaller("to_frame")))
        if hasattr(self.X, "map_partitions"):
            return self.X.map_partitions(answer, meta=answer.of_no_rows)
        ask = import_dask("dask").delayed(answer, pure=False, traverse=False)
        blocks = [ask(block) for block in self.X.rechunk({1: -1}).to_delayed().ravel()]
        return import_dask("dask.dataframe").from_delayed(blocks, meta=answer.of_no_rows, verify_meta=False)


def _explained(what: Callable[[Any], Any], ensemble: Ensemble, X: Any, *, background: Any, scale: str) -> Any:
    return what(ensemble.explain(X, background=background, scale=scale))


def _itself(explanation: Any) -> Any:
    return explanation
