"""The tables that users bring, column by column.

Numpy arrays, lists of rows, sparse matrices, pandas and polars DataFrames and pyarrow Tables are recognised by what
they can do, so that only numpy is imported here. A column of any of them is read in one of two forms: an array of
numbers, or `Coded`, its distinct values and for each row the index of its own.
"""

from __future__ import annotations

import datetime
import math
import numbers
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..common.memory import free_memory

Value: TypeAlias = str | bool | int | float


class Coded(NamedTuple):
    codes: np.ndarray  # for each row the index of its value, -1 if it is missing
    values: list[Value]  # distinct
    is_category: bool  # the column's own type says so
    order: tuple[Any, ...] = ()  # all levels of its type, ascending, where that says so


Column: TypeAlias = np.ndarray | Coded


def _coded(codes: np.ndarray, values: Iterable[Any], label: str, is_category: bool = False) -> Coded:
    """Coded values as plain Python ones: each once, and only those that occur, whatever the library gave."""
    used = np.bincount(codes[codes >= 0]).tolist()
    index: dict[Value, int] = {}
    new_codes = []
    for value, n in zip(values, used, strict=False):  # values after the last that is used have no count
        plain = _plain(value, label) if n else None
        new_codes.append(-1 if plain is None else index.setdefault(plain, len(index)))
    return Coded(np.array([*new_codes, -1], dtype=np.intp)[codes], list(index), is_category)


def code_list(rows: list[Any], label: str, is_category: bool = False) -> Coded:
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
    if isinstance(value, complex | np.complexfloating):
        raise ValueError(f"{label} holds {value!r}: Complex data not supported")
    if isinstance(value, numbers.Number):  # also a Decimal, which is no Real
        return None if value != value else float(value)  # type: ignore[arg-type]
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # the missing values of pandas
        return None
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        raise TypeError(_DATE.format(label, value))
    raise TypeError(f"{label} holds {value!r}: the X argument must be all strings and numbers; convert it")


DATE_REMEDY = "convert it to numbers, such as days"
_DATE = "{} holds a date or time, {!r}: " + DATE_REMEDY


def check_no_dates(values: np.ndarray, label: str, remedy: str) -> None:
    """Refuse dates and times, as in a column."""
    if values.dtype.kind == "O":
        dates = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
        found = [value for value in values.ravel().tolist() if isinstance(value, dates) or _is_period(value)]
    else:
        found = list(values.ravel()[:1]) if values.dtype.kind in "mM" else []
    if found:
        raise TypeError(f"{label} holds a date or time, {found[0]!r}: {remedy}")


def _is_period(value: Any) -> bool:
    return type(value).__name__ == "Period"  # of pandas


def decode(values: Sequence[float], codes: np.ndarray) -> np.ndarray:
    return np.asarray(np.array([*values, math.nan])[codes])  # the code -1 finds the last, NaN


def as_numbers(column: Column, label: str, remedy: str) -> np.ndarray:
    if not isinstance(column, Coded):
        return column
    for value in column.values:
        if isinstance(value, str):
            raise ValueError(f"{label} holds text, such as {value!r}; {remedy}")
    try:
        return decode([float(value) for value in column.values], column.codes)
    except OverflowError:
        large = max((value for value in column.values if isinstance(value, int)), key=abs)
        raise ValueError(f"{label} holds an integer beyond the largest float, {large!r:.60}; rescale it") from None


def as_coded(column: Column, label: str) -> Coded:
    if isinstance(column, Coded):
        return column
    values, codes = np.unique(column, return_inverse=True)
    return _coded(codes, values.tolist(), label)


def is_category(column: Column) -> bool:
    if not isinstance(column, Coded):
        return False
    return column.is_category or {str, bool} >= {type(value) for value in column.values} > set()


@dataclass(frozen=True)
class Table:
    shape: tuple[int, ...]
    names: tuple[str, ...] | None
    read: Callable[[int, str], Column]  # the column of that index; the label is for its errors
    numbers: Callable[[], np.ndarray] | None = None  # the whole at once, if it is of one type of numbers
    typed: bool = True  # each column has a type of its own
    text_hint: str = ""

    def label(self, j: int) -> str:
        return f"Column {self._name(j)}"

    def text_remedy(self, j: int) -> str:
        return f"convert it to numbers or declare it in categorical_features=[{self._name(j)}]{self.text_hint}"

    def _name(self, j: int) -> str:
        return str(j) if self.names is None else repr(self.names[j])


def check_is_table(X: Any, name: str = "X") -> None:
    """Refuse what is no table, and tell how to make one of it."""
    kind = type(X)
    if hasattr(kind, "collect") or hasattr(kind, "npartitions"):
        raise TypeError(f"{name} is a lazy {kind.__name__}; use {name}.collect() or {name}.compute()")
    if isinstance(X, Iterator):
        raise TypeError(f"{name} is a {kind.__name__}, which can be read only once; use list({name})")
    if is_records(X):
        what = kind.__name__ if isinstance(X, Mapping) else f"{kind.__name__} of dicts"
        raise ValueError(f"{name} is a {what}; make a frame of it, such as pandas.DataFrame({name})")
    if X is None or isinstance(X, str | bytes | Set | numbers.Number):
        raise ValueError(f"{name} is {X!r:.60}, and no table; give an array, a list of rows or a frame")


def open_table(X: Any) -> Table:
    check_is_table(X)
    kind = type(X)  # not X itself, where pandas has an attribute for each column
    if hasattr(kind, "iloc") and hasattr(kind, "columns"):
        table = _pandas_table(X)
    elif hasattr(kind, "get_columns"):
        table = _polars_table(X)
    elif hasattr(kind, "column_names"):
        table = _arrow_table(X)
    elif is_sparse(X):
        table = _array_table(_dense(X))
    else:
        table = _array_table(X)
    for n, what in zip(table.shape, ("sample", "feature"), strict=True):
        if n == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={table.shape}) while a minimum of 1 is required.")
    return table


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of scipy."""
    return hasattr(type(X), "toarray")


def _dense(X: Any) -> np.ndarray:
    """A sparse matrix as an array, if there is memory for it."""
    needed, free = math.prod(X.shape) * max(8, X.dtype.itemsize), free_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"X is sparse, and as a dense array of shape {X.shape} it takes {needed / 2**30:,.1f} GiB, where "
            f"{free / 2**30:,.1f} are free; give fewer rows or columns, or categories in one column"
        )
    return np.asarray(X.toarray())


def is_records(X: Any) -> bool:
    """Whether X is a list of dicts, or one dict."""
    first = X[0] if type(X) in (list, tuple) and X else X
    return type(first) is dict or (
        isinstance(first, Mapping) and not is_sparse(first)
    )  # some sparse matrices are dicts


def has_names(X: Any) -> bool:
    """Whether X is a frame whose columns have names, or records."""
    if is_records(X):
        return True
    kind = type(X)
    columns = X.column_names if hasattr(kind, "column_names") else X.columns if hasattr(kind, "columns") else ()
    return any(isinstance(name, str) for name in columns)


def _array_table(X: Any) -> Table:
    array = _array(X)
    if array.ndim > 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead (shape={array.shape}); give rows and columns, such as "
            "X.reshape(len(X), -1)"
        )
    if type(X) in (list, tuple) and not X:
        raise ValueError("X is empty; give at least one row")
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got {'1D' if array.ndim else 'scalar'} array instead ({type(X).__name__}). "
            "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
            "or array.reshape(1, -1) if it contains a single sample."
        )
    if array.dtype.kind in "biuf":
        return Table(array.shape, None, lambda j, _: array[:, j], numbers=lambda: array, typed=False)

    def read(j: int, label: str) -> Column:
        # tolist makes ints of datetime64[ns]
        rows = list(array[:, j]) if array.dtype.kind in "mM" else array[:, j].tolist()
        if {float, type(None)} >= set(map(type, rows)):
            return np.array(rows, dtype=np.float64)  # as code_list would, but many distinct values are slow there
        return code_list(rows, label)

    hint = ", or pass a DataFrame"
    if array.dtype.kind in "UT":
        hint += "; an array of strings cannot tell numbers from text, one of dtype=object can"
    return Table(array.shape, None, read, typed=False, text_hint=hint)


def _array(X: Any) -> np.ndarray:
    if "numpy.ma" in sys.modules and isinstance(X, np.ma.MaskedArray):  # to import it takes as long as to load a model
        dtype = np.float64 if X.dtype.kind in "biuf" else object
        return np.where(np.ma.getmaskarray(X), np.nan, X.data.astype(dtype))
    try:
        array = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"X is not a table: {error}") from error
    if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
        return np.array(X, dtype=object)  # beside text, numpy has made text of numbers too
    return array


def _pandas_table(X: Any) -> Table:
    def read(j: int, label: str) -> Column:
        return _pandas_column(X.iloc[:, j], label)

    types = set(X.dtypes)
    one_type = len(types) == 1 and all(isinstance(t, np.dtype) and t.kind in "iuf" for t in types)
    return Table(X.shape, _string_names(X.columns), read, numbers=X.to_numpy if one_type else None)


def _pandas_column(series: Any, label: str) -> Column:
    dtype = series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return _arrow_column(series.array.__arrow_array__(), label)
    if dtype.kind in "iu" and series.hasnans and _are_large(series.min(), series.max()):
        return code_list(series.tolist(), label)
    if dtype.kind in "iuf":
        options = {} if isinstance(dtype, np.dtype) else {"dtype": np.float64, "na_value": np.nan}
        return np.asarray(series.to_numpy(**options))
    try:
        codes, values = series.factorize()
    except TypeError:  # unhashable
        return code_list(series.tolist(), label)
    coded = _coded(codes, values.tolist(), label, is_category=dtype != np.object_)
    return coded._replace(order=tuple(dtype.categories.tolist())) if getattr(dtype, "ordered", None) else coded


def _are_large(least: Any, most: Any) -> bool:
    """Whether integers would not stay different as floats, which they become beside missing values."""
    return least is not None and (int(least) < -(2**53) or int(most) > 2**53)


def _polars_table(X: Any) -> Table:
    return Table(X.shape, _string_names(X.columns), lambda j, label: _polars_column(X.to_series(j), label))


def _polars_column(series: Any, label: str) -> Column:
    dtype = series.dtype
    if dtype.is_integer() and series.null_count() and _are_large(series.min(), series.max()):
        return code_list(series.to_list(), label)
    if dtype.is_numeric():
        in_numpy = not dtype.is_decimal() and "128" not in str(dtype)
        return np.asarray((series if in_numpy else series.cast(float)).to_numpy())
    coded = code_list(series.to_list(), label, is_category=str(dtype) not in ("Null", "Object"))
    return coded._replace(order=tuple(dtype.categories.to_list())) if str(dtype).startswith("Enum") else coded


def _arrow_table(X: Any) -> Table:
    return Table(X.shape, _string_names(X.column_names), lambda j, label: _arrow_column(X.column(j), label))


def _arrow_column(column: Any, label: str) -> Column:
    kind = str(column.type)
    if kind.startswith(("decimal", "null")):
        column, kind = column.cast("float64"), "double"
    if kind.startswith(("int", "uint")) and column.null_count:
        stored = _arrow_stored(_one_chunk(column), kind)  # where a value is missing, any number
        if _are_large(stored.min(), stored.max()):
            return code_list(column.to_pylist(), label)
    if kind.startswith(("int", "uint", "halffloat", "float", "double")):
        return _arrow_numbers(_one_chunk(column), _ARROW_FLOATS.get(kind, kind), math.nan)
    try:
        coded = column if kind.startswith("dictionary") else column.dictionary_encode()
    except NotImplementedError:  # nested
        return code_list(column.to_pylist(), label)
    coded = _one_chunk(coded)
    codes = _arrow_numbers(coded.indices.cast("int64"), "int64", -1)
    levels = coded.dictionary.to_pylist()
    found = _coded(codes, levels, label, is_category=True)
    return found._replace(order=tuple(levels)) if getattr(column.type, "ordered", False) else found


def _one_chunk(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


_ARROW_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def _arrow_numbers(array: Any, dtype: str, missing: float) -> np.ndarray:
    """Do what array.to_numpy does, which imports pandas if it is installed."""
    numbers = _arrow_stored(array, dtype)
    if array.null_count == 0:
        return numbers
    return np.where(_arrow_numbers(array.is_null().cast("uint8"), "bool", 0), missing, numbers)


def _arrow_stored(array: Any, dtype: str) -> np.ndarray:
    return np.frombuffer(array.buffers()[1], dtype=dtype)[array.offset : array.offset + len(array)]


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


def listed(names: Sequence[Any], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
