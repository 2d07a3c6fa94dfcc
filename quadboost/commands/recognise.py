"""What the columns of a table hold: numbers, text, or true and false.

A text file holds text alone, and a column of it is judged by all of its values. Columns of other files have a
type, which is taken at its word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NUMBER, TEXT, BOOL = "numbers", "text", "true and false"

# In a text file these are missing values, also between spaces or in quotes.
MISSING = (
    "", "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "NaN", "nan", "-NaN", "-nan", "NaT", "null", "NULL",
    "None", "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip
MEANT_AS_NUMBERS = 0.9  # share of numbers from which on a column of text is one of numbers with mistakes

_NUMBER = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf(inity)?|nan))$"
_ALMOST_NUMBER = r"^[+-]?[$€£]?[0-9]+([,'][0-9]+)*(\.[0-9]*)?%?$"
_TIME = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?[AaPp][Mm])?"
_DATE = (
    r"^([0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2})"
    rf"([ T]+{_TIME} ?(Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}})?)?$|^{_TIME}$"
)

Column: TypeAlias = Any  # pyarrow has no types


def to_arrow(values: np.ndarray) -> Column:
    """An array of numbers, labels or booleans in Arrow; pyarrow.array would import pandas where it is installed."""
    if values.dtype.kind in "UOT":
        encoded = [value.encode() for value in values.tolist()]
        ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
        return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers).cast(pa.string())
    if values.dtype.kind == "b":
        return to_arrow(values.view(np.uint8)).cast(pa.bool_())
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


_MISSING = to_arrow(np.array(MISSING))
_BOOLS = to_arrow(np.array(["true", "false"]))
_NO_TEXT = pa.nulls(1, pa.string())[0]


def recognise(column: Column, name: str, *, from_text: bool, category: bool = False, remedy: str) -> tuple[str, Column]:
    """Find what a column holds, and return that and the column made so.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str
    from_text : bool
        The column is of a text file.
    category : bool
        The user calls it a category, so any text will do.
    remedy : str
        What to do about a column that cannot be used, for the errors.
    """
    if not from_text:
        return _kind_of_type(column.type, name, remedy), column
    numbers = _numbers(column)
    if numbers is not None:
        return NUMBER, numbers
    trimmed = _trimmed(column)
    values = trimmed.drop_null()
    if pc.all(pc.is_in(pc.utf8_lower(values), value_set=_BOOLS)).as_py():
        return BOOL, trimmed.cast(pa.bool_())
    if not category:
        share = pc.mean(pc.match_substring_regex(values, f"{_NUMBER}|{_ALMOST_NUMBER}")).as_py()
        if share >= MEANT_AS_NUMBERS:
            wrong = _culprit(trimmed, name, _NUMBER)
            raise ValueError(f"{wrong}, though it seems to be a column of numbers; {remedy}")
        if pc.all(pc.match_substring_regex(values, _DATE)).as_py():
            raise ValueError(f"Column {name!r} holds dates or times, such as {values[0].as_py()!r}; {remedy}")
    return TEXT, _text(column)


def convert(column: Column, kind: str, name: str, *, from_text: bool, expected: str, first_row: int = 0) -> Column:
    """Return a column as one of a known kind; `expected` says in the errors why it must be."""
    if from_text:
        if kind == TEXT:
            return _text(column)
        converted = _numbers(column) if kind == NUMBER else _bools(column)
        if converted is None:
            known = _NUMBER if kind == NUMBER else "^(?i:true|false|0|1)$"
            raise ValueError(f"{_culprit(_trimmed(column), name, known, first_row)}, {expected}")
        return converted
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string() if kind == TEXT else pa.float64())
    found = _kind_of_type(column.type, name, expected)
    if (found == TEXT) != (kind == TEXT):
        example = column.drop_null()[0].as_py()
        raise ValueError(f"Column {name!r} holds {found}, such as {example!r}, {expected}")
    return column


def whole_numbers(column: Column) -> Column | None:
    """A column of a text file as integers, or None if it has other values."""
    trimmed = _trimmed(column)
    if not pc.all(pc.match_substring_regex(trimmed, "^-?[0-9]{1,18}$")).as_py():
        return None
    return trimmed.cast(pa.int64())


def is_category(column: Column) -> bool:
    """Whether a column's type alone makes it a category."""
    return pa.types.is_dictionary(column.type) or _kind_of_type(column.type, "", "") != NUMBER


def kind_of_levels(levels: Sequence[Sequence[Any]], name: str) -> str:
    """What a categorical feature was when it was trained."""
    types = {type(value) for level in levels for value in level}
    if types <= {str}:
        return TEXT
    if str in types:
        raise ValueError(
            f"Column {name!r} held both text and numbers in training, which no column of a table can; "
            "predict from Python instead"
        )
    return BOOL if types == {bool} else NUMBER


def _kind_of_type(type_: Any, name: str, remedy: str) -> str:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if str(type_) in ("string", "large_string", "string_view"):
        return TEXT
    if pa.types.is_boolean(type_):
        return BOOL
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or str(type_).startswith(("decimal", "null")):
        return NUMBER
    what = "dates or times" if pa.types.is_temporal(type_) else "values"
    raise ValueError(f"Column {name!r} holds {what} of type {type_}; {remedy}")


def _trimmed(column: Column) -> Column:
    """Text without spaces around it, and missing values as such."""
    trimmed = pc.ascii_trim_whitespace(column)
    return pc.if_else(pc.is_in(trimmed, value_set=_MISSING), _NO_TEXT, trimmed)


def _text(column: Column) -> Column:
    """Text as it is, and missing values as such."""
    return pc.if_else(pc.is_in(pc.ascii_trim_whitespace(column), value_set=_MISSING), _NO_TEXT, column)


def _numbers(column: Column) -> Column | None:
    try:
        return column.cast(pa.float64())  # the quick way, if nothing is missing
    except pa.ArrowInvalid:
        pass
    try:
        return _trimmed(column).cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _bools(column: Column) -> Column | None:
    try:
        return _trimmed(column).cast(pa.bool_())
    except pa.ArrowInvalid:
        return None


def _culprit(trimmed: Column, name: str, known: str, first_row: int = 0) -> str:
    """The first value that is not as it should be, as the beginning of a sentence."""
    wrong = pc.indices_nonzero(pc.invert(pc.match_substring_regex(trimmed, known)))
    if len(wrong) == 0:
        return f"Column {name!r} holds a value that cannot be read"
    row = wrong[0].as_py()
    return f"Column {name!r} holds {trimmed[row].as_py()!r} in row {first_row + row + 1}"
