"""What users bring, made one real matrix: the same way at fit and at predict.

Numpy arrays, lists of rows, pandas and polars DataFrames and pyarrow Tables are recognised by what they can
do, so that only numpy is imported here. A column of any of them is read in one of two forms: an array of
numbers, or ``_Coded``, its distinct values and for each row the index of its own. All the rest is common.
"""

from __future__ import annotations

import datetime
import math
import numbers
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Value: TypeAlias = str | bool | int | float


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
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    categories: dict[int, list[list[Value]]]

    @cached_property
    def level_of(self) -> dict[int, dict[Value, int]]:
        """Feature index -> value -> index of its level."""
        return {
            feature: {value: level for level, group in enumerate(levels) for value in group}
            for feature, levels in self.categories.items()
        }


def learn_schema(
    X: Any,
    *,
    categorical_features: Any = "auto",
    min_category_count: float = 5,
    sample_weight: Any = None,
) -> FrameSchema:
    """Learn the names of the columns, which of them are categories, and their levels.

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

    Returns
    -------
    FrameSchema
        Levels are sorted, numbers before text, so that neither the order of rows nor that of a categorical
        type matters.
    """
    table = _table(X)
    auto = isinstance(categorical_features, str) and categorical_features == "auto"
    declared = set() if auto else _declared(categorical_features, table)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    categories = {}
    for j in range(table.shape[1]):
        if table.numbers is not None and j not in declared:
            continue
        label = table.label(j)
        column = table.read(j, label)
        if j in declared or (auto and table.typed and _is_category(column)):
            categories[j] = _levels(_as_coded(column, label), weight, min_category_count, label)
        else:
            _as_numbers(column, label, table.text_remedy(j))
    return FrameSchema(table.shape[1], table.names, categories)


def to_matrix(X: Any, schema: FrameSchema, *, allow_extra: bool = False, owner: str = "this model") -> np.ndarray:
    """Return X as a real matrix, its columns in the order of the schema.

    Parameters
    ----------
    X : array, list of rows, pandas or polars DataFrame, or pyarrow Table
        Columns are matched by name, in any order, if both X and the schema have names, else by position.
    schema : FrameSchema
    allow_extra : bool
        Ignore named columns that the schema does not have, instead of refusing them.
    owner : str
        Whose schema it is, for the errors.

    Returns
    -------
    array of shape (m, n_features), float32 or float64
        NaN is a missing value. A category is the index of its level, or -1 if training has not seen it.
        A float array without categories is returned as it is, not copied; a view of a DataFrame may be
        read-only.
    """
    table = _table(X)
    source = _match_columns(table, schema, allow_extra, owner)
    if table.numbers is not None and not schema.categories:
        matrix = table.numbers()
        if source != list(range(table.shape[1])):
            matrix = matrix[:, source]
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    matrix = np.empty((table.shape[0], schema.n_features), order="F")
    remedy = f"{owner} was trained on numbers there: convert it, with NaN for missing values"
    for feature, j in enumerate(source):
        label = table.label(j)
        column = table.read(j, label)
        if feature in schema.categories:
            coded = _as_coded(column, label)
            level_of = schema.level_of[feature]
            matrix[:, feature] = _decode([level_of.get(value, -1) for value in coded.values], coded.codes)
        else:
            matrix[:, feature] = _as_numbers(column, label, remedy)
    return matrix


# --- columns ------------------------------------------------------------------------------------------------


class _Coded(NamedTuple):
    codes: np.ndarray  # for each row the index of its value, -1 if it is missing
    values: list[Value]  # distinct
    is_category: bool  # the column's own type says so


_Column: TypeAlias = np.ndarray | _Coded


def _coded(codes: np.ndarray, values: Iterable[Any], label: str, is_category: bool = False) -> _Coded:
    """Make the values plain Python ones that are there, each once, whatever the library gave."""
    used = np.bincount(codes[codes >= 0]).tolist()
    index: dict[Value, int] = {}
    new_codes = []
    for value, n in zip(values, used, strict=False):  # values after the last that is used have no count
        plain = _plain(value, label) if n else None
        new_codes.append(-1 if plain is None else index.setdefault(plain, len(index)))
    return _Coded(np.array([*new_codes, -1], dtype=np.intp)[codes], list(index), is_category)


def _code_list(rows: list[Any], label: str, is_category: bool = False) -> _Coded:
    try:
        index = {value: i for i, value in enumerate(dict.fromkeys(rows))}
    except TypeError:  # unhashable, so none of ours: say which
        for value in rows:
            _plain(value, label)
        raise
    codes = np.fromiter(map(index.__getitem__, rows), dtype=np.intp, count=len(rows))
    return _coded(codes, index, label, is_category)


def _plain(value: Any, label: str) -> Value | None:
    """Return the value as a str, bool, int or float, or None if it is missing."""
    if type(value) in (str, float, int, bool):  # nearly always: the rest is slower
        return None if value != value else value
    if isinstance(value, np.datetime64 | np.timedelta64):  # before item, which may make ints of them
        if np.isnat(value):
            return None
        raise TypeError(_DATE.format(label, value))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | int):
        return value
    if isinstance(value, numbers.Real | Decimal):
        return None if value != value else float(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # the missing values of pandas
        return None
    if isinstance(value, complex | np.complexfloating):
        raise ValueError(f"{label} holds {value!r}: Complex data not supported")
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        raise TypeError(_DATE.format(label, value))
    raise TypeError(f"{label} holds {value!r}: the X argument must be all strings and numbers; convert it")


_DATE = "{} holds a date or time, {!r}: convert it to numbers, such as days"


def _decode(values: Sequence[float], codes: np.ndarray) -> np.ndarray:
    return np.asarray(np.array([*values, math.nan])[codes])  # the code -1 finds the last, NaN


def _as_numbers(column: _Column, label: str, remedy: str) -> np.ndarray:
    if not isinstance(column, _Coded):
        return column
    for value in column.values:
        if isinstance(value, str):
            raise ValueError(f"{label} holds text, such as {value!r}; {remedy}")
    return _decode([float(value) for value in column.values], column.codes)


def _as_coded(column: _Column, label: str) -> _Coded:
    if isinstance(column, _Coded):
        return column
    values, codes = np.unique(column, return_inverse=True)
    return _coded(codes, values.tolist(), label)


def _is_category(column: _Column) -> bool:
    if not isinstance(column, _Coded):
        return False
    return column.is_category or {str, bool} >= {type(value) for value in column.values} > set()


def _levels(column: _Coded, weight: np.ndarray | None, min_count: float, label: str) -> list[list[Value]]:
    seen = column.codes >= 0
    if weight is not None:
        seen &= weight > 0
    codes = column.codes[seen]
    size = np.bincount(codes, minlength=len(column.values))
    if weight is not None:
        # Rows too, not their weight alone: weights that sum to 1 would make every level rare.
        size = np.maximum(size, np.bincount(codes, weight[seen], minlength=len(column.values)))
    size_of = {value: n for value, n in zip(column.values, size.tolist(), strict=True) if n > 0}
    for infinity in (math.inf, -math.inf):
        if infinity in size_of:
            raise ValueError(f"{label} is a category, and {infinity} cannot be a level of one")
    levels = sorted(size_of, key=lambda value: (isinstance(value, str), value))
    rare = [value for value in levels if size_of[value] < min_count]
    if len(rare) < 2:
        return [[value] for value in levels]
    return [*([value] for value in levels if size_of[value] >= min_count), rare]


# --- tables -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    shape: tuple[int, ...]
    names: tuple[str, ...] | None
    read: Callable[[int, str], _Column]  # the column of that index; the label is for its errors
    numbers: Callable[[], np.ndarray] | None = None  # the whole at once, if it is of one type of numbers
    typed: bool = True  # each column has a type of its own
    text_hint: str = ""

    def label(self, j: int) -> str:
        return f"Column {self._name(j)}"

    def text_remedy(self, j: int) -> str:
        return f"convert it to numbers or declare it in categorical_features=[{self._name(j)}]{self.text_hint}"

    def _name(self, j: int) -> str:
        return str(j) if self.names is None else repr(self.names[j])


def _table(X: Any) -> _Table:
    kind = type(X)  # not X itself, where pandas has an attribute for each column
    if hasattr(kind, "toarray"):
        raise TypeError("Sparse input is not supported; use X.toarray()")
    if hasattr(kind, "collect") or hasattr(kind, "npartitions"):
        raise TypeError(f"X is a lazy {kind.__name__}; use X.collect() or X.compute()")
    if hasattr(kind, "iloc") and hasattr(kind, "columns"):
        table = _pandas_table(X)
    elif hasattr(kind, "get_columns"):
        table = _polars_table(X)
    elif hasattr(kind, "column_names"):
        table = _arrow_table(X)
    else:
        table = _array_table(X)
    for n, what in zip(table.shape, ("sample", "feature"), strict=True):
        if n == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={table.shape}) while a minimum of 1 is required.")
    return table


def _array_table(X: Any) -> _Table:
    array = _array(X)
    if array.ndim > 2:
        raise ValueError(f"Expected 2D array, got {array.ndim}D array instead (shape={array.shape}).")
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {'1D' if array.ndim else 'scalar'} array instead ({type(X).__name__}). "
            "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
            "or array.reshape(1, -1) if it contains a single sample."
        )
    if array.dtype.kind in "biuf":
        return _Table(array.shape, None, lambda j, _: array[:, j], numbers=lambda: array, typed=False)

    def read(j: int, label: str) -> _Column:
        # tolist makes ints of datetime64[ns]
        rows = list(array[:, j]) if array.dtype.kind in "mM" else array[:, j].tolist()
        if {float, type(None)} >= set(map(type, rows)):
            return np.array(rows, dtype=np.float64)  # as _code_list would, but many distinct values are slow there
        return _code_list(rows, label)

    hint = ", or pass a DataFrame"
    if array.dtype.kind in "UT":
        hint += "; an array of strings cannot tell numbers from text, one of dtype=object can"
    return _Table(array.shape, None, read, typed=False, text_hint=hint)


def _array(X: Any) -> np.ndarray:
    if isinstance(X, np.ma.MaskedArray):
        dtype = np.float64 if X.dtype.kind in "biuf" else object
        return np.where(np.ma.getmaskarray(X), np.nan, X.data.astype(dtype))
    try:
        array = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"X is not a table: {error}") from error
    if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
        return np.array(X, dtype=object)  # beside text, numpy has made text of numbers too
    return array


def _pandas_table(X: Any) -> _Table:
    def read(j: int, label: str) -> _Column:
        return _pandas_column(X.iloc[:, j], label)

    types = set(X.dtypes)
    one_type = len(types) == 1 and all(isinstance(t, np.dtype) and t.kind in "iuf" for t in types)
    return _Table(X.shape, _string_names(X.columns), read, numbers=X.to_numpy if one_type else None)


def _pandas_column(series: Any, label: str) -> _Column:
    dtype = series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return _arrow_column(series.array.__arrow_array__(), label)
    if dtype.kind in "iuf":
        options = {} if isinstance(dtype, np.dtype) else {"dtype": np.float64, "na_value": np.nan}
        return np.asarray(series.to_numpy(**options))
    try:
        codes, values = series.factorize()
    except TypeError:  # unhashable
        return _code_list(series.tolist(), label)
    return _coded(codes, values.tolist(), label, is_category=dtype != np.object_)


def _polars_table(X: Any) -> _Table:
    return _Table(X.shape, _string_names(X.columns), lambda j, label: _polars_column(X.to_series(j), label))


def _polars_column(series: Any, label: str) -> _Column:
    dtype = series.dtype
    if dtype.is_numeric():
        in_numpy = not dtype.is_decimal() and "128" not in str(dtype)
        return np.asarray((series if in_numpy else series.cast(float)).to_numpy())
    return _code_list(series.to_list(), label, is_category=str(dtype) not in ("Null", "Object"))


def _arrow_table(X: Any) -> _Table:
    return _Table(X.shape, _string_names(X.column_names), lambda j, label: _arrow_column(X.column(j), label))


def _arrow_column(column: Any, label: str) -> _Column:
    kind = str(column.type)
    if kind.startswith(("decimal", "null")):
        column, kind = column.cast("float64"), "double"
    if kind.startswith(("int", "uint", "halffloat", "float", "double")):
        return _arrow_numbers(_one_chunk(column), _ARROW_FLOATS.get(kind, kind), math.nan)
    try:
        coded = column if kind.startswith("dictionary") else column.dictionary_encode()
    except NotImplementedError:  # nested
        return _code_list(column.to_pylist(), label)
    coded = _one_chunk(coded)
    codes = _arrow_numbers(coded.indices.cast("int64"), "int64", -1)
    return _coded(codes, coded.dictionary.to_pylist(), label, is_category=True)


def _one_chunk(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


_ARROW_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def _arrow_numbers(array: Any, dtype: str, missing: float) -> np.ndarray:
    """Do what array.to_numpy does, which imports pandas if it is installed."""
    numbers = np.frombuffer(array.buffers()[1], dtype=dtype)[array.offset : array.offset + len(array)]
    if array.null_count == 0:
        return numbers
    return np.where(_arrow_numbers(array.is_null().cast("uint8"), "bool", 0), missing, numbers)


# --- names --------------------------------------------------------------------------------------------------


def _string_names(columns: Iterable[Any]) -> tuple[str, ...] | None:
    """Return the names if all are strings, None if none is, as scikit-learn does."""
    names = list(columns)
    others = [name for name in names if not isinstance(name, str)]
    if others and len(others) < len(names):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but X also has "
            f"{listed(others)}; use X.columns = X.columns.astype(str)"
        )
    if others:
        return None
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise ValueError(f"X has more than one column named {listed(repeated)}; names must differ")
    return tuple(str(name) for name in names)


def _declared(categorical_features: Any, table: _Table) -> set[int]:
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
    return {_column_index(item, table) for item in items}


def _column_index(item: Any, table: _Table) -> int:
    if isinstance(item, str) and table.names is not None and item in table.names:
        return table.names.index(item)
    if isinstance(item, int | np.integer) and 0 <= item < table.shape[1] and not isinstance(item, bool):
        return int(item)
    raise ValueError(
        f"categorical_features has {item!r}, which is no column of X; "
        f"X has {table.shape[1]} columns, {'without names' if table.names is None else listed(table.names)}"
    )


def _match_columns(table: _Table, schema: FrameSchema, allow_extra: bool, owner: str) -> list[int]:
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
    if extra and not allow_extra:
        raise ValueError(f"X has columns that {owner} was not trained on: {listed(extra)}; leave them out")
    return [index[name] for name in schema.feature_names]


def listed(names: Sequence[Any], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
