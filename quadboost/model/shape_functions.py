"""What each feature adds to the score, as people read it: in their units, with counts and standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..voters.checking import bins_of_shapes
from .steps import Shape

if TYPE_CHECKING:
    from .ensemble import Ensemble


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
    mass : array of shape (k + 1,), or None
        Weight of the training rows behind each of the values; None where it is not known.
    missing_mass : float or None
        Weight of the training rows where the value is missing.
    name : str or None
        Of the feature, where it has one.
    error : array as values, or None
        Standard error of each of the values, where asked for.
    missing_error : float or array of shape (n_outputs,), or None
    """

    feature: int
    thresholds: np.ndarray
    levels: list[list[Any]] | None
    values: np.ndarray
    missing: np.ndarray
    mass: np.ndarray | None = None
    missing_mass: float | None = None
    name: str | None = None
    error: np.ndarray | None = None
    missing_error: np.ndarray | None = None


def shape_functions_of(model: Ensemble, shapes: Sequence[Shape], bands: bool) -> list[ShapeFunction]:
    """The step functions of a model in the units of its features, with what is known of their bins."""
    if bands and len(model.feature) and not len(model.bin_error):
        raise ValueError("this model has no bands; fit it with cross-validation, as by QuadBoostClassifierCV")
    ends = np.cumsum(bins_of_shapes(model.feature, model.kind, model.categories))[:-1]
    masses = np.split(model.bin_mass, ends) if len(model.bin_mass) else [None] * len(shapes)
    errors = np.split(model.bin_error, ends) if bands and len(model.bin_error) else [None] * len(shapes)
    found = []
    for (feature, cuts, values), mass, error in zip(shapes, masses, errors, strict=True):
        if model.weight.ndim == 1:
            values = values[:, 0]
        levels, row = model.categories.get(feature), np.arange(len(values) - 1)
        if levels is not None:
            row = np.zeros(len(levels) + 1, np.intp)  # of a level without a voter: as one never seen
            row[cuts.astype(np.intp)] = np.arange(1, len(cuts) + 1)
        shape = ShapeFunction(
            feature, cuts if levels is None else np.empty(0), levels, values[row], values[-1],
            name=None if model.feature_names is None else model.feature_names[feature],
        )  # fmt: skip
        if mass is not None:
            shape = shape._replace(mass=mass[:-1], missing_mass=float(mass[-1]))
        if error is not None:
            shape = shape._replace(error=error[:-1], missing_error=error[-1])
        found.append(shape)
    return found
