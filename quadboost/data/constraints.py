"""Constraints on features, as users give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..common.checks import one_of
from .schema import FrameSchema, column_number
from .tables import listed

SIGNS = (-1, 0, 1)
MOST_THAT_MEET = {"pairwise": 2, "no_interactions": 1}


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
    for feature, of_feature in _items(monotonic_cst, schema):
        signs[feature] = _checked_signs(of_feature, label(schema, feature), n_outputs)
        if feature in schema.categories and signs[feature].any():
            raise ValueError(
                f"monotonic_cst={of_feature!r} is for a column of numbers, and {label(schema, feature)} is a category; "
                "if its levels have an order, let its type say so, as pandas.Categorical(..., ordered=True) does, with "
                "levels of text, or of numbers by their size; or give numbers"
            )
    return signs if signs.any() else None


def constrained_columns(monotonic_cst: Any) -> list[Any]:
    """Names or numbers of the columns that a sign is asked of, as given."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(monotonic_cst, Mapping):
        items = monotonic_cst.items()
    elif isinstance(monotonic_cst, list | tuple | np.ndarray):
        items = enumerate(monotonic_cst)
    return [column for column, signs in items if np.any(np.asarray(signs, dtype=object) != 0)]


def check_numbers(X: Any, *, monotonic_cst: Any, interaction_cst: Any) -> None:
    """Refuse numbers of columns where a frame calls its columns by other numbers: either may be meant."""
    labels = [] if hasattr(X, "column_names") else list(getattr(X, "columns", ()))
    if any(isinstance(label, str) for label in labels) or labels == list(range(len(labels))):
        return
    groups = interaction_cst if isinstance(interaction_cst, list | tuple) else ()
    numbers_in = {
        "monotonic_cst": list(monotonic_cst) if isinstance(monotonic_cst, Mapping) else [],
        "interaction_cst": [item for group in groups if isinstance(group, list | tuple | set) for item in group],
    }
    for parameter, items in numbers_in.items():
        for item in items:
            if isinstance(item, int | np.integer):
                raise ValueError(
                    f"{parameter} has {item}, which may be the position of a column or one of X's own numbers for its "
                    f"columns ({listed(labels)}); make these names, X.columns = X.columns.astype(str)"
                )


class Meetings(NamedTuple):
    """Which features may meet in a rule: those of a group, and no more than so many; None: any."""

    groups: np.ndarray | None = None  # uint8 (n_groups, d)
    most: int | None = None


ANY_MEET = Meetings()


def meetings_of(interaction_cst: Any, schema: FrameSchema) -> Meetings:
    """Which features may meet in a rule.

    Parameters
    ----------
    interaction_cst : None, "pairwise", "no_interactions", or a list of groups
        As scikit-learn's HistGradientBoosting has it. A group is a list of names or numbers of columns; features of
        one group may meet. Columns in no group are one more group.
    """
    if interaction_cst is None:
        return ANY_MEET
    if isinstance(interaction_cst, str):
        return Meetings(most=MOST_THAT_MEET[one_of("interaction_cst", interaction_cst, list(MOST_THAT_MEET))])
    if isinstance(interaction_cst, Mapping | bytes | bytearray) or not isinstance(interaction_cst, Iterable):
        raise ValueError(
            f"interaction_cst={interaction_cst!r:.60} must be 'pairwise', 'no_interactions' or a list of groups of "
            "columns"
        )
    rows = []
    for group in interaction_cst:
        if isinstance(group, str | bytes) or not isinstance(group, Iterable):
            raise ValueError(
                f"interaction_cst has {group!r}, which is no group; give a list of columns, such as [0, 1]"
            )
        row = np.zeros(schema.n_features, dtype=np.uint8)
        for item in group:
            row[column_number(item, schema.feature_names, schema.n_features, "interaction_cst")] = 1
        rows.append(row)
    rest = np.all(np.array(rows).reshape(len(rows), schema.n_features) == 0, axis=0).astype(np.uint8)
    return Meetings(np.array([*rows, rest] if rest.any() else rows))


def label(schema: FrameSchema, feature: int) -> str:
    """A column, for an error."""
    return f"column {feature if schema.feature_names is None else schema.feature_names[feature]!r}"


def _items(monotonic_cst: Any, schema: FrameSchema) -> list[tuple[int, Any]]:
    """Columns and their signs."""
    if isinstance(monotonic_cst, Mapping):
        items = [
            (column_number(key, schema.feature_names, schema.n_features, "monotonic_cst"), value)
            for key, value in monotonic_cst.items()
        ]
        if len({feature for feature, _ in items}) < len(items):
            raise ValueError(
                f"monotonic_cst={monotonic_cst!r} has a column by its name and by its number; give it once"
            )
        return items
    # Others, such as a pandas Series, may have an order of their own.
    if not isinstance(monotonic_cst, list | tuple | np.ndarray):
        raise ValueError(
            f"monotonic_cst={monotonic_cst!r:.60} must be a dict from columns to -1, 0 or 1, or a list with one of "
            "these per column"
        )
    if len(monotonic_cst) != schema.n_features:
        raise ValueError(
            f"monotonic_cst has {len(monotonic_cst)} signs, but X has {schema.n_features} columns; give one each"
        )
    return list(enumerate(monotonic_cst))


def _checked_signs(signs: Any, column: str, n_outputs: int) -> np.ndarray:
    values = np.asarray(signs)
    if values.shape not in ((), (n_outputs,)):
        raise ValueError(
            f"monotonic_cst of {column} has shape {values.shape}; give one sign, or one for each of {n_outputs} scores"
        )
    if values.dtype.kind not in "iuf" or not np.isin(values, SIGNS).all():
        raise ValueError(f"monotonic_cst of {column} is {signs!r:.60}; it may be -1 (falling), 0 (free) or 1 (rising)")
    return values
