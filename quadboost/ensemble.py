"""The fitted model: voters and weights as plain arrays, scored as one step function per feature.

Needs numpy only, so that a service can load and predict without what training needs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .bins import BinIndex, bin_index
from .frames import FrameSchema, to_matrix
from .stumps import LEVEL, MISSING, THRESHOLD
from .threads import resolve_threads

CELLS_FOR_THREADS = 200_000  # rows times step functions, below which a second thread costs more than it brings


class ShapeFunction(NamedTuple):
    """What one feature adds to the score.

    Attributes
    ----------
    feature : int
    thresholds : array of shape (k,)
        Of a categorical feature: empty.
    levels : list of lists, or None
        Of a categorical feature: the values that each level stands for.
    values : array of shape (k + 1,) or (k + 1, n_outputs)
        Below the first threshold, between two, above the last. Of a categorical feature: of each level, and
        last of a level never seen.
    missing : float or array of shape (n_outputs,)
        Where the value is missing.
    """

    feature: int
    thresholds: np.ndarray
    levels: list[list[Any]] | None
    values: np.ndarray
    missing: np.ndarray


class Ensemble:
    """A weighted sum of stumps.

    Attributes
    ----------
    feature : int32 array of shape (n,)
    threshold : float64 array of shape (n,)
        Of a level voter: the number of the level; of a missing voter: 0.
    weight : float64 array of shape (n,), or (n, n_outputs)
    intercept : float, or float64 array of shape (n_outputs,)
    kind : uint8 array of shape (n,)
        0: +1 where the feature is above the threshold, else -1; 1: +1 where it is of the level, else -1;
        both 0 where it is missing; 2: +1 where it is missing, else -1.
    n_features : int
    classes : array or None
        Labels; None for a regression.
    feature_names : tuple of str, or None
    categories : dict from feature to list of lists
        The values that each level of a categorical feature stands for.
    info : dict
        Parameters, training size and time, figures; whatever JSON can hold.
    """

    def __init__(
        self,
        feature: np.ndarray,
        threshold: np.ndarray,
        weight: np.ndarray,
        intercept: float | np.ndarray,
        *,
        kind: np.ndarray | None = None,
        n_features: int,
        classes: np.ndarray | None = None,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[int, list[list[Any]]] | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.feature = np.ascontiguousarray(feature, dtype=np.int32)
        self.threshold = np.ascontiguousarray(threshold, dtype=np.float64)
        self.weight = np.ascontiguousarray(weight, dtype=np.float64)
        self.intercept = float(intercept) if self.weight.ndim == 1 else np.asarray(intercept, dtype=np.float64)
        self.kind = np.zeros(len(self.feature), np.uint8) if kind is None else np.ascontiguousarray(kind, np.uint8)
        self.classes = None if classes is None else np.asarray(classes)
        self.info = dict(info or {})
        self._schema = FrameSchema(
            n_features=int(n_features),
            feature_names=None if feature_names is None else tuple(feature_names),
            categories=dict(categories or {}),
        )

    @property
    def n_features(self) -> int:
        return self._schema.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self._schema.feature_names

    @property
    def categories(self) -> dict[int, list[list[Any]]]:
        return self._schema.categories

    @property
    def n_outputs(self) -> int:
        return 1 if self.weight.ndim == 1 else self.weight.shape[1]

    def __repr__(self) -> str:
        what = "regression" if self.classes is None else f"{len(self.classes)} classes"
        return f"<Ensemble: {len(self.feature)} voters on {self.n_features} features, {what}>"

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """The score of every row: shape (m,) for one output, else (m, n_outputs)."""
        return self._score(to_matrix(X, self._schema), n_jobs)

    def predict(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """The label of every row, or the score itself for a regression."""
        return self._label(self.decision_function(X, n_jobs=n_jobs))

    def predict_proba(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """The probability of every class, shape (m, n_classes)."""
        return self._probability(self.decision_function(X, n_jobs=n_jobs))

    def shape_functions(self) -> list[ShapeFunction]:
        """What each feature with a voter adds to the score, as a step function."""
        steps = self._steps
        shapes = []
        for s, feature in enumerate(steps.feature.tolist()):
            first, last = steps.bins.cut_start[s : s + 2]
            values = steps.value[first + s : last + s + 1]
            if self.weight.ndim == 1:
                values = values[:, 0]
            levels = self.categories.get(feature)
            if levels is None:
                shapes.append(ShapeFunction(feature, steps.bins.cuts[first : last - 1], None, values[:-1], values[-1]))
            else:
                shapes.append(ShapeFunction(feature, np.empty(0), levels, np.roll(values[:-1], -1, 0), values[-1]))
        return shapes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to an HDF5 file; the file appears whole or not at all."""
        from .model_file import ModelRecord, write_model

        write_model(path, ModelRecord.of(self))

    def _score(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Scores of a real matrix in which categories are level numbers."""
        steps = self._steps
        scores = np.empty((len(X), self.n_outputs))
        scores[:] = self.intercept
        n_threads = 1 if len(X) * len(steps.feature) < CELLS_FOR_THREADS else resolve_threads(n_jobs)
        _core.score_rows(X, steps.feature, *steps.bins, steps.value, scores, n_threads)
        return scores[:, 0] if self.weight.ndim == 1 else scores

    def _label(self, scores: np.ndarray) -> np.ndarray:
        if self.classes is None:
            return scores
        return self.classes[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def _probability(self, scores: np.ndarray) -> np.ndarray:
        if self.classes is None:
            raise ValueError("a regression has no class probabilities; use predict")
        if scores.ndim == 1:
            second = np.clip((1.0 + scores) / 2.0, 0.0, 1.0)
            # A score too small to show in 1 + score still decides the label, and so must show here.
            second[(scores > 0) & (second <= 0.5)] = np.nextafter(0.5, 1.0)
            return np.column_stack([1.0 - second, second])
        share = np.maximum(1.0 + scores, 0.0)
        hopeless = ~share.any(axis=1)
        share[hopeless, scores[hopeless].argmax(axis=1)] = 1.0
        return share / share.sum(axis=1, keepdims=True)

    @cached_property
    def _steps(self) -> _Steps:
        weight = self.weight.reshape(len(self.feature), self.n_outputs)
        features = np.unique(self.feature).astype(np.int64)
        cuts, values = [], []
        for feature in features.tolist():
            own = np.flatnonzero(self.feature == feature)
            if feature in self.categories:
                cut, value = self._level_steps(own, weight, len(self.categories[feature]))
            else:
                cut, value = self._threshold_steps(own, weight)
            is_missing = weight[own[self.kind[own] == MISSING]].sum(axis=0)
            cuts.append(cut)
            values.append(np.vstack([value - is_missing, is_missing]))
        return _Steps(
            feature=features,
            bins=bin_index(cuts),
            value=np.vstack([*values, np.zeros((1, weight.shape[1]))]),  # never empty, for the kernels
        )

    def _threshold_steps(self, own: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = own[self.kind[own] == THRESHOLD]
        own = own[np.argsort(self.threshold[own], kind="stable")]
        passed = np.vstack([np.zeros((1, weight.shape[1])), np.cumsum(weight[own], axis=0)])
        return self.threshold[own], 2.0 * passed - passed[-1]

    def _level_steps(self, own: np.ndarray, weight: np.ndarray, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
        own = own[self.kind[own] == LEVEL]
        value = np.zeros((n_levels + 1, weight.shape[1])) - weight[own].sum(axis=0)
        value[self.threshold[own].astype(np.intp) + 1] += 2.0 * weight[own]
        return np.arange(n_levels) - 0.5, value


class _Steps(NamedTuple):
    """Step functions, one after another, as the kernel wants them."""

    feature: np.ndarray
    bins: BinIndex
    value: np.ndarray  # a row per bin: below the first cut, ..., above the last, missing


def load(path: str | os.PathLike[str], expected_sha256: str | None = None) -> Ensemble:
    """Read a model file.

    Parameters
    ----------
    path : str or path
    expected_sha256 : str, optional
        Refuse a file with another SHA-256 digest.

    Raises
    ------
    ModelFileError
        The file is damaged, forged, of a newer format, or no model at all.
    """
    from .model_file import read_model

    return Ensemble(**read_model(path, expected_sha256).arguments())
