"""Columns of Arrow tables as numpy arrays and as kinds; see test_files.py for files that are not alike."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from quadboost.parts.arrow import agreed_schema, to_numpy


def test_dates_are_refused():
    with pytest.raises(ValueError, match="Column 'day' holds dates or times of type date32"):
        agreed_schema({"t": pa.schema([("day", pa.date32())])}, ["day"])


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([1, 2], pa.int8(), np.array([1, 2], np.int8)),
        ([1, None], pa.int64(), np.array([1.0, np.nan])),
        ([0.5, None], pa.float32(), np.array([0.5, np.nan])),
        ([True, False], pa.bool_(), np.array([True, False])),
        (["b", "a"], pa.string(), np.array(["b", "a"])),
        (["b", "a", "b"], pa.dictionary(pa.int8(), pa.string()), np.array(["b", "a", "b"])),
        (["b", None], pa.string(), np.array(["b", None])),
        ([None, None], pa.null(), np.array([np.nan, np.nan])),
    ],
)
def test_a_column_is_an_array_of_its_type(values, type_, expected):
    array = pa.array([values[0], *values], type_).slice(1)  # with an offset
    found = to_numpy(pa.chunked_array([array, array[:0], array]))
    assert found.dtype == expected.dtype == to_numpy(array).dtype
    assert np.array_equal(found, np.concatenate([expected, expected]), equal_nan=expected.dtype.kind == "f")
