"""What a model knows of the columns it was trained on, and any table as the one real matrix that it learns from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .records import RecordReader, records_table
from .tables import Coded, Table, Value, as_coded, as_numbers, decode, is_category, is_records, listed, open_table

TEXT, MIXED = "text", "text and numbers"
MANY_UNSEEN = 10  # rows of unseen values, from which on it is hardly by chance
# What a whole number may be that is a category. Larger ones can be chosen to have all the same hash: a set of them
# would take quadratic time, so no model file may hold any.
INTEGERS = range(-(2**63), 2**64)


@dataclass(frozen=True)
class FrameSchema:
    """What a model knows of the columns it was trained on.

    Parameters
    ----------
    n_features : int
    feature_names : tuple of str, optional
        None when the training data had no names.
    categories : dict
        Feature index -> levels. A level is the list of the values it stands for: one, or several rare ones.
        Features that are not here are numbers.
    orders : dict
        Feature index -> texts, ascending: numbers that tables may hold as ordered categories. The number is the place.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    categories: dict[int, list[list[Value]]]
    orders: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def number_of(self, feature: int | str) -> int:
        """The number of a feature that goes by number or name."""
        names = self.feature_names
        if isinstance(feature, str):
            if names is None:
                raise ValueError(f"feature={feature!r:.60}: these features have no names; give a number, from 0")
            if feature not in names:
                raise ValueError(f"feature={feature!r:.60} is not known; the features are {list(names)!r:.300}")
            return names.index(feature)
        if not 0 <= feature < self.n_features:
            raise ValueError(f"feature={feature!r} must be a number from 0 to {self.n_features - 1}, or a name")
        return int(feature)

    @property
    def in_info(self) -> dict[str, Any]:
        """What a model's `info` says of ordered categories."""
        orders = {str(feature): list(levels) for feature, levels in self.orders.items()}
        return {"orders": orders} if orders else {}

    @cached_property
    def level_of(self) -> dict[int, dict[Value, int]]:
        """Feature index -> value -> index of its level."""
        return {feature: _level_of(levels) for feature, levels in self.categories.items()}

    @cached_property
    def record_reader(self) -> RecordReader | None:
        """Of records; None where features have no names."""
        return None if self.feature_names is None else RecordReader(self.feature_names, self.level_of)


def is_order(levels: Any) -> bool:
    """Whether these can be the levels of an ordered category: text, each once."""
    return len(levels) > 0 and all(type(level) is str for level in levels) and len(set(levels)) == len(levels)


def is_order_of_numbers(levels: Any) -> bool:
    """Whether these are the levels of an ordered category that are numbers, ascending: the values say the order."""
    plain = all(isinstance(level, int | float | np.number) and not isinstance(level, bool) for level in levels)
    return len(levels) > 0 and plain and all(np.diff(np.asarray(levels, dtype=np.float64)) > 0)


def _level_of(levels: list[list[Value]]) -> dict[Value, int]:
    return {value: level for level, group in enumerate(levels) for value in group}


def read_table(
    X: Any,
    *,
    categorical_features: Any = "auto",
    min_category_count: float = 5,
    sample_weight: Any = None,
    ordered: Iterable[Any] = (),
) -> tuple[FrameSchema, np.ndarray]:
    """Learn the names of the columns, which are categories, and their levels; return that, and X as a matrix.

    Every column is read once.

    Parameters
    ----------
    X : array, list of rows, pandas or polars DataFrame, or pyarrow Table
    categorical_features : "auto", None, list of column names, list of indices, or boolean mask
        "auto" takes the text, bool and categorical columns of a DataFrame or Table. It takes none of an
        array, whose columns have no types of their own.
    min_category_count : float
        Levels with fewer rows and less weight than this are pooled into one, the last. A level that would be
        alone there stays itself.
    sample_weight : array of shape (m,), optional
        Values that are seen only in rows of weight 0 are no levels.
    ordered : iterable of column names or indices
        Columns that are to be numbers: where one is an ordered category of text, the places of its levels, from 0 on.

    Returns
    -------
    FrameSchema
        Levels are sorted, numbers before text, so that neither the order of rows nor that of a categorical
        type matters.
    array of shape (m, n_features)
        As `to_matrix` would return it.
    """
    table = open_table(X)
    auto = isinstance(categorical_features, str) and categorical_features == "auto"
    declared = set() if auto else declared_categories(categorical_features, table)
    if table.numbers is not None and not declared:
        return FrameSchema(table.shape[1], table.names, {}), _real(table.numbers())
    weight = None if sample_weight is None else np.asarray(sample_weight)
    categories, orders, matrix = {}, dict[int, list[str]](), np.empty(table.shape, order="F")
    to_be_numbers = columns_to_be_numbers(ordered, table)
    for j in range(table.shape[1]):
        label = table.label(j)
        column = table.read(j, label)
        if j in to_be_numbers and isinstance(column, Coded) and is_order(column.order):
            orders[j] = list(column.order)
            matrix[:, j] = _places(column, orders[j], label)
            continue
        if j in to_be_numbers and isinstance(column, Coded) and is_order_of_numbers(column.order):
            matrix[:, j] = as_numbers(column, label, table.text_remedy(j))
            continue
        if j in declared or (auto and table.typed and is_category(column)):
            coded = as_coded(column, label)
            categories[j] = levels_of(level_sizes(coded, weight), min_category_count, label)
            matrix[:, j] = _numbered(coded, _level_of(categories[j]))
        else:
            matrix[:, j] = as_numbers(column, label, table.text_remedy(j))
    return FrameSchema(table.shape[1], table.names, categories, orders), matrix


def columns_to_be_numbers(ordered: Iterable[Any], table: Table) -> set[Any]:
    """The numbers of columns that are given by their names or numbers."""
    names = dict(zip(table.names or (), range(table.shape[1]), strict=False))
    return {names.get(item, item) for item in ordered}


def _places(column: Coded, order: Sequence[str], label: str) -> np.ndarray:
    """The place of each row's value in an order, NaN where it is missing; a number is a place already."""
    position: dict[Value, int] = {name: i for i, level in enumerate(order) for name in (level, i)}
    for value in column.values:
        if value not in position:
            raise ValueError(f"{label} holds {value!r:.60}, which has no place in the order {listed(order)}")
    if column.order and list(column.order) != list(order):
        raise ValueError(f"{label} has the order {listed(column.order)}, but in training it was {listed(order)}")
    return decode([position[value] for value in column.values], column.codes)


def to_matrix(X: Any, schema: FrameSchema, *, owner: str = "this model") -> np.ndarray:
    """Return X as a real matrix, its columns in the order of the schema.

    Parameters
    ----------
    X : array, list of rows, pandas or polars DataFrame, pyarrow Table, or records (dicts from names to values)
        Columns are matched by name, in any order, if both X and the schema have names, else by position. What a record
        lacks is missing there.
    schema : FrameSchema
    owner : str
        Whose schema it is, for the errors.

    Returns
    -------
    array of shape (m, n_features), float32 or float64
        NaN is a missing value. A category is the index of its level, or -1 if training has not seen it.
        A float array without categories is returned as it is, not copied; a view of a DataFrame may be
        read-only.
    """
    if not is_records(X):
        table = open_table(X)
        source = _match_columns(table, schema, owner)
    else:
        records = X if type(X) in (list, tuple) else [X]
        reader = schema.record_reader
        matrix = None if reader is None else reader.matrix(records)
        if matrix is not None:
            return _with_places(matrix, schema)
        table = records_table(records, schema.feature_names, owner)
        source = list(range(schema.n_features))
    if table.numbers is not None and not schema.categories:
        matrix = table.numbers()
        if source != list(range(table.shape[1])):
            matrix = matrix[:, source]
        return _with_places(_real(matrix), schema)
    matrix = np.empty((table.shape[0], schema.n_features), order="F")
    remedy = f"{owner} was trained on numbers there: convert it, with NaN for missing values"
    for feature, j in enumerate(source):
        label = table.label(j)
        column = table.read(j, label)
        if feature in schema.categories:
            coded, level_of = as_coded(column, label), schema.level_of[feature]
            matrix[:, feature] = _numbered(coded, level_of)
            if coded.values and level_of:
                _tell_unseen(coded, level_of, label, owner, each_row=is_records(X))
        elif feature in schema.orders and isinstance(column, Coded) and column.values:
            matrix[:, feature] = _places(column, schema.orders[feature], label)
        else:
            matrix[:, feature] = as_numbers(column, label, remedy)
    return _with_places(matrix, schema)


def _with_places(matrix: np.ndarray, schema: FrameSchema) -> np.ndarray:
    """A matrix whose numbers in columns of ordered categories are places of levels, or missing."""
    for feature, order in schema.orders.items():
        column = matrix[:, feature]
        wrong = column[~(np.isnan(column) | np.isin(column, np.arange(len(order))))]
        if len(wrong):
            name = feature if schema.feature_names is None else repr(schema.feature_names[feature])
            raise ValueError(
                f"Column {name} holds {wrong[0]:g}, which is no place in the order {listed(order)}; give the text of a "
                f"level, or its place, from 0 to {len(order) - 1}"
            )
    return matrix


def _real(matrix: np.ndarray) -> np.ndarray:
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def _numbered(column: Coded, level_of: dict[Value, int]) -> np.ndarray:
    """The number of each row's level, -1 for one that training has not seen."""
    return decode([level_of.get(value, -1) for value in column.values], column.codes)


def _tell_unseen(column: Coded, level_of: Mapping[Value, int], label: str, owner: str, each_row: bool) -> None:
    """Refuse values that can never be those of training, in a column of no others, or by each row; warn where many are
    given and none is known."""
    known, example = kind_of(level_of), next(iter(level_of))
    never = [value for value in column.values if known != MIXED and isinstance(value, str) != (known == TEXT)]
    if never and (each_row or len(never) == len(column.values)):
        raise ValueError(
            f"{label} holds {kind_of(never)}, such as {never[0]!r}, but {owner} was trained on {known} there, such as "
            f"{example!r}; convert it"
        )
    if any(value in level_of for value in column.values):
        return
    found = kind_of(column.values)
    if np.count_nonzero(column.codes >= 0) >= MANY_UNSEEN:
        warnings.warn(
            f"{label} holds no value that {owner} was trained on: it holds {found}, and training had {known}, such as "
            f"{example!r}",
            stacklevel=5,
        )


def kind_of(values: Iterable[Value]) -> str:
    """What the values of a category are, in words."""
    types = {type(value) for value in values}
    if str in types:
        return TEXT if types == {str} else MIXED
    return "true and false" if types == {bool} else "numbers"


def level_sizes(column: Coded, weight: np.ndarray | None) -> dict[Value, tuple[int, float]]:
    """The rows and the weight of every value of a column; values that are seen only with a weight of 0 are none."""
    seen = column.codes >= 0
    if weight is not None:
        seen &= weight > 0
    codes, n = column.codes[seen], len(column.values)
    count = np.bincount(codes, minlength=n)
    mass = count if weight is None else np.bincount(codes, weight[seen], minlength=n)
    each = zip(column.values, count.tolist(), mass.tolist(), strict=True)
    return {value: (rows, float(weight)) for value, rows, weight in each if rows}


def levels_of(sizes: Mapping[Value, tuple[int, float]], min_count: float, label: str) -> list[list[Value]]:
    """The levels of a category, by the sizes of its values."""
    for infinity in (math.inf, -math.inf):
        if infinity in sizes:
            raise ValueError(f"{label} is a category, and {infinity} cannot be a level of one")
    for value in sizes:
        if type(value) is int and value not in INTEGERS:
            raise ValueError(f"{label} is a category, and {value!r:.60} is an integer beyond 64 bits; make it text")
    levels = sorted(sizes, key=lambda value: (isinstance(value, str), value))
    # Rows too, not their weight alone: weights that sum to 1 would make every level rare.
    rare = [value for value in levels if max(sizes[value]) < min_count]
    if len(rare) < 2:
        return [[value] for value in levels]
    return [*([value] for value in levels if max(sizes[value]) >= min_count), rare]


def declared_categories(categorical_features: Any, table: Table) -> set[int]:
    """Return the indices of the columns that the user calls categories."""
    if categorical_features is None:
        return set()
    if isinstance(categorical_features, str) or not isinstance(categorical_features, Iterable):
        raise ValueError(
            'categorical_features must be "auto", None, a list of column names, a list of indices '
            f"or a boolean mask, not {categorical_features!r}"
        )
    items = list(categorical_features)
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        if len(items) != table.shape[1]:
            raise ValueError(f"categorical_features is a mask of {len(items)} columns, but X has {table.shape[1]}")
        return {j for j, item in enumerate(items) if item}
    return {column_number(item, table.names, table.shape[1], "categorical_features") for item in items}


def column_number(item: Any, names: Sequence[str] | None, n_columns: int, parameter: str) -> int:
    """The number of a column that a parameter names, or numbers."""
    if isinstance(item, str) and names is not None and item in names:
        return list(names).index(item)
    if isinstance(item, int | np.integer) and 0 <= item < n_columns and not isinstance(item, bool):
        return int(item)
    raise ValueError(
        f"{parameter} has {item!r}, which is no column of X; "
        f"X has {n_columns} columns, {'without names' if names is None else listed(names)}"
    )


def _match_columns(table: Table, schema: FrameSchema, owner: str) -> list[int]:
    """Return, for each feature of the schema, the index of its column in the table."""
    if schema.feature_names is None or table.names is None:
        n = table.shape[1]
        if n != schema.n_features:
            raise ValueError(f"X has {n} features, but {owner} is expecting {schema.n_features} features as input")
        return list(range(n))
    index = {name: j for j, name in enumerate(table.names)}
    missing = [name for name in schema.feature_names if name not in index]
    if missing:
        raise ValueError(f"X lacks columns that {owner} was trained on: {listed(missing)}")
    extra = sorted(set(index) - set(schema.feature_names), key=index.__getitem__)
    if extra:
        raise ValueError(f"X has columns that {owner} was not trained on: {listed(extra)}; leave them out")
    return [index[name] for name in schema.feature_names]
