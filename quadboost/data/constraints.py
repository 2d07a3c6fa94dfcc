"""Constraints on features, as users give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .schema import FrameSchema, column_number

SIGNS = (-1, 0, 1)


def signs_of(monotonic_cst: Any, schema: FrameSchema, n_outputs: int) -> np.ndarray | None:
    """In which direction each score may move as a feature rises: +1, -1, or 0 for both; shape (d, n_outputs).

    Parameters
    ----------
    monotonic_cst : dict or array-like or None
        From names or numbers of columns to signs, or a sign for each column. Where there are several scores a sign is
        for all of them; a list of as many signs has one for each.
    schema : FrameSchema
    n_outputs : int

    Returns
    -------
    int8 array of shape (d, n_outputs), or None where nothing is constrained
    """
    if monotonic_cst is None:
        return None
    signs = np.zeros((schema.n_features, n_outputs), dtype=np.int8)
    for feature, given in _items(monotonic_cst, schema):
        signs[feature] = _own_signs(given, label(schema, feature), n_outputs)
        if feature in schema.categories and signs[feature].any():
            raise ValueError(
                f"monotonic_cst is for numbers, and {label(schema, feature)} is a category; if its levels have an "
                "order, give them as numbers, such as frame[name].cat.codes"
            )
    return signs if signs.any() else None


def label(schema: FrameSchema, feature: int) -> str:
    """A column, for an error."""
    return f"column {feature if schema.feature_names is None else schema.feature_names[feature]!r}"


def _items(given: Any, schema: FrameSchema) -> list[tuple[int, Any]]:
    """Columns and what was given for them."""
    if isinstance(given, Mapping):
        items = [
            (column_number(key, schema.feature_names, schema.n_features, "monotonic_cst"), value)
            for key, value in given.items()
        ]
        if len({feature for feature, _ in items}) < len(items):
            raise ValueError(f"monotonic_cst={given!r} has a column by its name and by its number; give it once")
        return items
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise ValueError(
            f"monotonic_cst={given!r} must be a dict from columns to -1, 0 or 1, or a list with one of these per column"
        )
    if len(given) != schema.n_features:
        raise ValueError(f"monotonic_cst has {len(given)} signs, but X has {schema.n_features} columns; give one each")
    return list(enumerate(given))


def _own_signs(given: Any, column: str, n_outputs: int) -> np.ndarray:
    values = np.asarray(given)
    if values.shape not in ((), (n_outputs,)):
        raise ValueError(
            f"monotonic_cst of {column} has shape {values.shape}; give one sign, or one for each of {n_outputs} scores"
        )
    if values.dtype.kind not in "iuf" or not np.isin(values, SIGNS).all():
        raise ValueError(f"monotonic_cst of {column} is {given!r}; it may be -1 (falling), 0 (free) or 1 (rising)")
    return values
