"""What the columns of a table hold: numbers, text, or true and false.

A text file holds text alone, and a column of it is judged by all of its values. Columns of other files have a
type, which is taken at its word.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..parts.arrow import BOOL as BOOL
from ..parts.arrow import NUMBER as NUMBER
from ..parts.arrow import TEXT as TEXT
from ..parts.arrow import kind_of_type
from .text_format import TextFormat

WHOLE = "whole numbers"

MEANT_AS_NUMBERS = 0.9  # share of numbers from which on a column of text is one of numbers with mistakes

_NUMBER = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan))$"
_ALMOST_NUMBER = r"^[+-]?([$€£]?[0-9]+([,'][0-9]+)*(\.[0-9]*)?%?|(?i:inf(inity)?))$"
_WHOLE = "^(0|-?[1-9][0-9]{0,18})$"  # as it would be written again
_CODE = "^[+-]?(0[0-9]+|[0-9]{19,})$"  # digits that would be lost in a number
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


_BOOLS = to_arrow(np.array(["true", "false"]))
_NO_TEXT = pa.nulls(1, pa.string())[0]


def recognise(
    column: Column, name: str, *, text: TextFormat | None, category: bool = False, remedy: str
) -> tuple[str, Column]:
    """Find what a column holds, and return that and the column made so.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str
    text : TextFormat, optional
        How the file is written, if it is a text file.
    category : bool
        The user calls it a category, so any text will do. Digits that would be lost in a number are text.
    remedy : str
        What to do about a column that cannot be used, for the errors.
    """
    if text is None:
        return kind_of_type(column.type, name, remedy), column
    told = Told(name, text, category, remedy)
    numbers = told.look(column)
    if not told.is_sure:
        told.look_closer(column)
    kind = told.kind()
    if kind == NUMBER:
        return kind, numbers
    return kind, convert(column, kind, name, text=text, expected="")


class Told:
    """What a column of a text file holds. All of its values decide, and it may be shown some at a time.

    A second, closer look is needed where the first one was not enough.
    """

    def __init__(self, name: str, text: TextFormat, category: bool, remedy: str) -> None:
        self.name, self.text, self.category, self.remedy = name, text, category, remedy
        self.are_numbers, self.have_codes = True, False
        self.has_whole, self.has_others = False, not category
        self.are_bools, self.are_dates = True, True
        self.n_values = self.n_like_numbers = 0
        self.first = ""
        self.wrong: tuple[Column, int] | None = None  # some values, of which one is no number, and their first row

    @property
    def are_whole(self) -> bool:
        return self.has_whole and not self.has_others

    @property
    def is_sure(self) -> bool:
        return self.are_whole or (self.are_numbers and not self.have_codes)

    def look(self, column: Column) -> Column | None:
        """See some values; return them as numbers, if that is what they are."""
        if not self.has_others and _trimmed(column, self.text).null_count < len(column):
            is_whole = whole_numbers(column, self.text) is not None
            self.has_whole, self.has_others = self.has_whole or is_whole, not is_whole
        numbers = _numbers(column, self.text) if self.are_numbers else None
        self.are_numbers = numbers is not None
        self.have_codes = self.have_codes or (self.category and has_codes(column, self.text))
        return numbers

    def look_closer(self, column: Column, first_row: int = 0) -> None:
        trimmed = _trimmed(column, self.text)
        values = trimmed.drop_null()
        if not len(values):
            return
        self.are_bools &= pc.all(pc.is_in(pc.utf8_lower(values), value_set=_BOOLS)).as_py()
        if self.category:
            return
        self.first = self.first or values[0].as_py()
        self.are_dates = self.are_dates and pc.all(pc.match_substring_regex(values, _DATE)).as_py()
        like_numbers = pc.match_substring_regex(_dotted(values, self.text), f"{_NUMBER}|{_ALMOST_NUMBER}")
        self.n_values += len(values)
        self.n_like_numbers += pc.sum(like_numbers).as_py()
        if self.wrong is None and _numbers(column, self.text) is None:
            self.wrong = trimmed, first_row

    def kind(self) -> str:
        """What they are, when all have been seen; columns that are rather a mistake are refused."""
        if self.are_whole:
            return WHOLE
        if self.is_sure:
            return NUMBER
        if self.are_bools:
            return BOOL
        if self.n_values and self.n_like_numbers >= MEANT_AS_NUMBERS * self.n_values:
            assert self.wrong is not None
            trimmed, first_row = self.wrong
            wrong = _culprit(trimmed, _is_number(trimmed, self.text), self.name, first_row)
            raise ValueError(f"{wrong}, though it seems to be a column of numbers; {self.remedy}")
        if self.n_values and self.are_dates:
            raise ValueError(f"Column {self.name!r} holds dates or times, such as {self.first!r}; {self.remedy}")
        return TEXT


def convert(
    column: Column, kind: str, name: str, *, text: TextFormat | None, expected: str, first_row: int = 0
) -> Column:
    """Return a column as one of a known kind; `expected` says in the errors why it must be."""
    if text is None:
        return _checked(column, kind, name, expected, first_row)
    if kind == TEXT:
        return _text(column, text)
    if kind == WHOLE and (whole := whole_numbers(column, text)) is not None:
        return whole
    converted = _bools(column, text) if kind == BOOL else _numbers(column, text)
    if converted is None:
        trimmed = _trimmed(column, text)
        is_bool = pc.match_substring_regex(trimmed, "^(?i:true|false|0|1)$")
        is_right = is_bool if kind == BOOL else _is_number(trimmed, text)
        raise ValueError(f"{_culprit(trimmed, is_right, name, first_row)}, {expected}")
    return converted


def whole_numbers(column: Column, text: TextFormat) -> Column | None:
    """A column of a text file as integers, or None if it has other values, or some that would be written otherwise."""
    trimmed = _trimmed(column, text)
    if not pc.all(pc.match_substring_regex(trimmed, _WHOLE)).as_py():
        return None
    try:
        return trimmed.cast(pa.int64())
    except pa.ArrowInvalid:  # beyond 64 bits
        return None


def has_codes(column: Column, text: TextFormat) -> bool:
    """Whether a column of a text file has digits that would be lost in a number, such as 01234."""
    return bool(pc.any(pc.match_substring_regex(_trimmed(column, text), _CODE)).as_py())


def refuse_infinity(column: Column, name: str, remedy: str, first_row: int = 0) -> None:
    """Infinity is no number, in no column of any table."""
    if pa.types.is_floating(column.type) and len(infinite := pc.indices_nonzero(pc.is_inf(column))):
        row = infinite[0].as_py()
        raise ValueError(f"Column {name!r} holds {column[row]} in row {first_row + row + 1}; {remedy}")


def is_category(column: Column) -> bool:
    """Whether a column's type alone makes it a category."""
    return pa.types.is_dictionary(column.type) or kind_of_type(column.type, "", "") != NUMBER


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
    return BOOL if types == {bool} else WHOLE if types == {int} else NUMBER


def _checked(column: Column, kind: str, name: str, expected: str, first_row: int) -> Column:
    """A column that has a type of its own, if that goes with the kind."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string() if kind == TEXT else pa.float64())
    found = kind_of_type(column.type, name, expected)
    if (found == TEXT) != (kind == TEXT):
        example = column.drop_null()[0].as_py()
        raise ValueError(f"Column {name!r} holds {found}, such as {example!r}, {expected}")
    refuse_infinity(column, name, "leave it empty", first_row)
    return column


@lru_cache
def _has_number(missing: tuple[str, ...]) -> bool:
    """Whether one of the words that are missing values can be read as a number, such as -999."""
    numbers = [_cast_to_numbers(to_arrow(np.array([word], dtype=object))) for word in missing]
    return any(number is not None and not pc.is_nan(number)[0].as_py() for number in numbers)


@lru_cache
def _words(missing: tuple[str, ...]) -> Column:
    return to_arrow(np.array(["", *missing], dtype=object))


def _trimmed(column: Column, text: TextFormat) -> Column:
    """Text without spaces around it, and missing values as such."""
    trimmed = pc.ascii_trim_whitespace(column)
    return pc.if_else(pc.is_in(trimmed, value_set=_words(text.missing)), _NO_TEXT, trimmed)


def _text(column: Column, text: TextFormat) -> Column:
    """Text as it is, and missing values as such."""
    is_missing = pc.is_in(pc.ascii_trim_whitespace(column), value_set=_words(text.missing))
    return pc.if_else(is_missing, _NO_TEXT, column)


def _dotted(column: Column, text: TextFormat) -> Column:
    """Numbers with a point for the decimals, and a comma where there was a point."""
    if text.decimal == ".":
        return column
    for old, new in ((".", "\0"), (text.decimal, "."), ("\0", ",")):
        column = pc.replace_substring(column, old, new)
    return column


def _numbers(column: Column, text: TextFormat) -> Column | None:
    """A column as finite numbers, or None if it has other values."""
    numbers = None
    if not _has_number(text.missing):
        numbers = _cast_to_numbers(_dotted(column, text))  # the quick way, if nothing is missing
    if numbers is None:
        numbers = _cast_to_numbers(_dotted(_trimmed(column, text), text))
    return None if numbers is None or pc.any(pc.is_inf(numbers)).as_py() else numbers


def _cast_to_numbers(column: Column) -> Column | None:
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _is_number(trimmed: Column, text: TextFormat) -> Column:
    """Whether each value is written as a number, and one that a double can hold."""
    dotted = _dotted(trimmed, text)
    matches = pc.match_substring_regex(dotted, _NUMBER)
    numbers = pc.if_else(matches, dotted, _NO_TEXT).cast(pa.float64())
    return pc.and_(matches, pc.fill_null(pc.invert(pc.is_inf(numbers)), True))


def _bools(column: Column, text: TextFormat) -> Column | None:
    try:
        return _trimmed(column, text).cast(pa.bool_())
    except pa.ArrowInvalid:
        return None


def _culprit(trimmed: Column, is_right: Column, name: str, first_row: int = 0) -> str:
    """The first value that is not as it should be, as the beginning of a sentence."""
    wrong = pc.indices_nonzero(pc.invert(is_right))
    if len(wrong) == 0:
        return f"Column {name!r} holds a value that cannot be read"
    row = wrong[0].as_py()
    return f"Column {name!r} holds {trimmed[row].as_py()!r} in row {first_row + row + 1}"
