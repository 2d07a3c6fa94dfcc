"""What is no table, or holds what is neither text nor a number."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from reading import learn_schema, numbers_schema

from quadboost.data.schema import to_matrix

# --- what is refused ----------------------------------------------------------------------------------------

DAY = datetime.date(2020, 2, 1)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"x": pd.to_datetime([None, "2020-02-01"])}),
        pd.DataFrame({"x": pd.to_datetime(["2020-02-01"]).tz_localize("UTC")}),
        pd.DataFrame({"x": [None, DAY]}),
        pd.DataFrame({"x": pd.Series(pd.to_datetime(["2020-02-01"]), dtype="category")}),
        pd.DataFrame({"x": pd.Series([DAY], dtype=pd.ArrowDtype(pa.date32()))}),
        pl.DataFrame({"x": [None, DAY]}),
        pl.DataFrame({"x": [datetime.datetime(2020, 2, 1)]}),
        pa.table({"x": [None, DAY]}),
        pa.table({"x": [datetime.datetime(2020, 2, 1)]}),
        np.array([["NaT"], ["2020-02-01"]], dtype="datetime64[D]"),
        np.array([["2020-02-01"]], dtype="datetime64[ns]"),
        np.array([[np.datetime64("2020-02-01", "ns")]], dtype=object),
    ],
)
@pytest.mark.parametrize("declared", [None, [0]])
def test_dates_are_refused(X, declared):
    message = r"Column ('x'|0) holds a date or time, .*2020\W+0?2\W+0?1.*: convert it to numbers"
    with pytest.raises(TypeError, match=message):
        learn_schema(X, categorical_features=declared)
    with pytest.raises(TypeError, match=message):
        to_matrix(X, numbers_schema(1))


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"x": pd.to_timedelta([3], unit="D")}),
        pl.DataFrame({"x": [datetime.timedelta(days=3)]}),
        pa.table({"x": [datetime.timedelta(days=3)]}),
        np.array([[3]], dtype="timedelta64[D]"),
        [[datetime.timedelta(days=3)]],
    ],
)
def test_durations_are_refused(X):
    with pytest.raises(TypeError, match=r"Column ('x'|0) holds a date or time, .*3"):
        learn_schema(X)


@pytest.mark.parametrize("X", [np.array([[1 + 2j]]), pd.DataFrame({"x": [1 + 2j]}), [[None, 1 + 2j]]])
def test_complex_numbers_are_refused(X):
    with pytest.raises(ValueError, match=r"Column ('x'|0|1) holds .*1\+2j.*: Complex data not supported"):
        learn_schema(X)


@pytest.mark.parametrize(
    ("X", "value"),
    [
        (np.array([[{"foo": 1}]], dtype=object), r"\{'foo': 1\}"),
        (np.array([[1.5], [b"abc"]], dtype=object), "b'abc'"),
        (np.array([[b"abc"]]), "b'abc'"),
        (pd.DataFrame({"x": [[1, 2], [3]]}), r"\[1, 2\]"),
        (pd.DataFrame({"x": [(1, 2)]}), r"\(1, 2\)"),
        (pd.DataFrame({"x": pd.cut([1, 2, 3], [0, 5])}), "Interval"),
        (pl.DataFrame({"x": [[1, 2], [3]]}), r"\[1, 2\]"),
        (pa.table({"x": [[1, 2], [3]]}), r"\[1, 2\]"),
        (pa.table({"x": [{"foo": 1}]}), r"\{'foo': 1\}"),
    ],
)
@pytest.mark.parametrize("declared", ["auto", [0]])
def test_values_that_are_neither_text_nor_numbers_are_refused(X, value, declared):
    message = rf"Column ('x'|0) holds {value}.*: the X argument must be all strings and numbers"
    with pytest.raises(TypeError, match=message):
        learn_schema(X, categorical_features=declared)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"x": ["old"]}),
        pd.DataFrame({"x": pd.Series(["old"], dtype="category")}),
        pd.DataFrame({"x": [3, "old"]}),
        pl.DataFrame({"x": ["old"]}),
        pa.table({"x": ["old"]}),
    ],
)
def test_text_where_numbers_were_trained_is_refused(X):
    with pytest.raises(ValueError, match="Column 'x' holds text, such as 'old'; Est was trained on numbers there"):
        to_matrix(X, numbers_schema(1, ("x",)), owner="Est")


class Sparse:
    shape, dtype = (10, 1_000_000), np.dtype(np.float32)

    def toarray(self):
        raise AssertionError("X must not be made dense where there is no memory for it")


def test_sparse_input_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("quadboost.data.tables.free_memory", lambda: 10 * 1_000_000 * 8 - 1)
    with pytest.raises(ValueError, match=r"of shape \(10, 1000000\) it takes 0.1 GiB, where 0.1 are free; give fewer"):
        learn_schema(Sparse())


@pytest.mark.parametrize("make", [iter, lambda rows: (row for row in rows), lambda rows: map(list, rows)])
def test_what_can_be_read_only_once_is_refused(make):
    with pytest.raises(TypeError, match=r"X is a \w+, which can be read only once; use list\(X\)"):
        learn_schema(make([[1], [2]]))


def test_a_lazy_table_is_refused():
    with pytest.raises(TypeError, match=r"X is a lazy LazyFrame; use X.collect\(\)"):
        learn_schema(pl.LazyFrame({"x": [1]}))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"Expected 2D array, got 1D array instead \(ndarray\). Reshape your data"),
        (pd.Series([1, 2]), r"got 1D array instead \(Series\)"),
        ([1, 2], r"got 1D array instead \(list\)"),
        (3.0, "X is 3.0, and no table; give an array, a list of rows or a frame"),
        (None, "X is None, and no table"),
        ("table.csv", "X is 'table.csv', and no table"),
        ({1, 2}, "X is {1, 2}, and no table"),
        (np.ones((2, 3, 4)), r"got 3D array instead \(shape=\(2, 3, 4\)\); give rows and columns, such as X.reshape"),
        ([[10**400], [1]], "Column 0 holds an integer beyond the largest float, 10000"),
        (np.ones((2, 2, 2)), r"got 3D array instead \(shape=\(2, 2, 2\)\)"),
        ([[1, 2], [3]], "X is not a table: .*inhomogeneous"),
        (np.ones((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required."),
        (np.ones((5, 0)), r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1 is required."),
        (pd.DataFrame({"a": []}), r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pl.DataFrame({"a": []}), r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pa.table({"a": []}), r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=[1, 2]), r"0 feature\(s\) \(shape=\(2, 0\)\)"),
    ],
)
def test_what_is_no_table_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        learn_schema(X)
    with pytest.raises(ValueError, match=message):
        to_matrix(X, numbers_schema(1))
