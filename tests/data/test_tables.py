"""Tables of every kind and type give the same columns."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import NAN, learn_and_convert, learn_schema, levels, numbers_schema, same

from quadboost.data.schema import FrameSchema, to_matrix

# --- arrays and lists ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("view", [lambda a: a, lambda a: a.T, lambda a: a[::2, ::-1], lambda a: a[1:, 1:]])
def test_a_float_array_is_returned_as_it_is(dtype, view):
    X = view(np.arange(16, dtype=dtype).reshape(4, 4))
    schema, matrix = learn_and_convert(X)
    assert matrix is X
    assert schema == FrameSchema(X.shape[1], None, {})


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "i4", "f2", "g", ">f8", ">f4", ">i4"])
def test_other_real_arrays_become_native_float64(dtype):
    X = np.array([[0, 1], [1, 0]]).astype(dtype)
    matrix = to_matrix(X, numbers_schema(2))
    assert same(matrix, [[0, 1], [1, 0]])
    assert matrix.dtype == np.float64


def test_infinity_is_a_number_and_kept():
    assert same(to_matrix([[math.inf, -math.inf]], numbers_schema(2)), [[math.inf, -math.inf]])


@pytest.mark.parametrize("dtype", [np.int64, np.float32, object])
def test_masked_values_are_missing(dtype):
    X = np.ma.MaskedArray(np.array([[1, 2], [3, 4]], dtype=dtype), mask=[[False, True], [False, False]])
    assert same(learn_and_convert(X)[1], [[1, NAN], [3, 4]])


@pytest.mark.parametrize(
    "X",
    [
        [[1, None], [2.5, 3]],
        ((1, NAN), (2.5, 3.0)),
        [np.array([1, NAN]), np.array([2.5, 3])],
        np.array([[1, None], [2.5, np.int8(3)]], dtype=object),
        np.array([[True, pd.NA], [Decimal("2.5"), 3]], dtype=object),
        np.array([[np.True_, pd.NaT], [Fraction(5, 2), np.float32(3)]], dtype=object),
        np.array([[1.0, None], [2.5, 3.0]], dtype=object),
    ],
)
def test_lists_and_object_arrays_of_numbers_are_numbers(X):
    schema, matrix = learn_and_convert(X)
    assert same(matrix, [[1, NAN], [2.5, 3]])
    assert schema.categories == {}


def test_a_list_may_hold_text_beside_numbers_when_it_is_declared():
    X = [[1.5, "b"], [2, "a"], [None, None], [4, "b"]]
    schema, matrix = learn_and_convert(X, categorical_features=[1], min_category_count=1)
    assert schema.categories == {1: [["a"], ["b"]]}
    assert same(matrix, [[1.5, 1], [2, 0], [NAN, NAN], [4, 1]])


@pytest.mark.parametrize("dtype", [str, object, np.dtypes.StringDType()])
def test_arrays_of_text_are_categories_when_declared(dtype):
    X = np.array([["b", "x"], ["a", "x"], ["c", "y"]], dtype=dtype)
    schema, matrix = learn_and_convert(X, categorical_features=[0, 1], min_category_count=1)
    assert schema.categories == {0: [["a"], ["b"], ["c"]], 1: [["x"], ["y"]]}
    assert same(matrix, [[1, 0], [0, 0], [2, 1]])


def test_numbers_of_an_array_are_categories_when_declared():
    X = np.array([[3.0, 1], [NAN, 2], [1, 3], [3, 4]])
    schema, matrix = learn_and_convert(X, categorical_features=[0], min_category_count=1)
    assert schema.categories == {0: [[1.0], [3.0]]}
    assert same(matrix, [[1, 1], [NAN, 2], [0, 3], [1, 4]])


# --- the types of tables ------------------------------------------------------------------------------------

NUMBER_COLUMNS = {
    "pandas float32": pd.Series([1, NAN, 3], dtype="float32"),
    "pandas float64": pd.Series([1, NAN, 3]),
    "pandas Int64": pd.Series([1, None, 3], dtype="Int64"),
    "pandas Float64": pd.Series([1, None, 3], dtype="Float64"),
    "pandas sparse": pd.Series([1, NAN, 3], dtype=pd.SparseDtype("float64")),
    "pandas object": pd.Series([1, None, 3.0], dtype=object),
    "pandas object NA": pd.Series([np.int64(1), pd.NA, Decimal(3)], dtype=object),
    "pandas arrow int": pd.Series([1, None, 3], dtype=pd.ArrowDtype(pa.int32())),
    "pandas arrow double": pd.Series([1, None, 3], dtype=pd.ArrowDtype(pa.float64())),
    "pandas arrow decimal": pd.Series([Decimal(1), None, Decimal(3)], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "polars Int64": pl.Series([1, None, 3]),
    "polars Float32": pl.Series([1, None, 3], dtype=pl.Float32),
    "polars Float64": pl.Series([1.0, NAN, 3.0]),
    "polars Decimal": pl.Series([Decimal(1), None, Decimal(3)]),
    "polars Object": pl.Series([1, None, Decimal(3)], dtype=pl.Object),
    "arrow int8": pa.array([1, None, 3], pa.int8()),
    "arrow halffloat": pa.array(np.array([1, NAN, 3], dtype=np.float16)),
    "arrow float": pa.array([1, None, 3], pa.float32()),
    "arrow double": pa.array([1, NAN, 3]),
    "arrow decimal128": pa.array([Decimal(1), None, Decimal(3)]),
    "arrow decimal256": pa.array([Decimal(1), None, Decimal(3)], pa.decimal256(40, 2)),
    "arrow chunks": pa.chunked_array([[1, None], [3]]),
}

if hasattr(pl, "Int128"):
    NUMBER_COLUMNS["polars Int128"] = pl.Series([1, None, 3], dtype=pl.Int128)

WHOLE_COLUMNS = {
    "pandas int64": pd.Series([1, 0, 3]),
    "pandas uint8": pd.Series([1, 0, 3], dtype="uint8"),
    "pandas UInt8": pd.Series([1, 0, 3], dtype="UInt8"),
    "pandas object bool and int": pd.Series([True, False, 3], dtype=object),
    "polars UInt8": pl.Series([1, 0, 3], dtype=pl.UInt8),
    "arrow uint64": pa.array([1, 0, 3], pa.uint64()),
}

TEXT_COLUMNS = {
    "pandas str": pd.Series(["b", None, "a", "b"], dtype="str"),
    "pandas string": pd.Series(["b", None, "a", "b"], dtype="string"),
    "pandas object": pd.Series(["b", None, "a", "b"], dtype=object),
    "pandas object nan": pd.Series(["b", NAN, "a", np.str_("b")], dtype=object),
    "pandas category": pd.Series(["b", None, "a", "b"], dtype="category"),
    "pandas ordered": pd.Series(pd.Categorical(["b", None, "a", "b"], categories=["z", "b", "a"], ordered=True)),
    "pandas arrow string": pd.Series(["b", None, "a", "b"], dtype=pd.ArrowDtype(pa.string())),
    "pandas arrow dictionary": pd.Series(
        ["b", None, "a", "b"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    ),
    "polars String": pl.Series(["b", None, "a", "b"]),
    "polars Categorical": pl.Series(["b", None, "a", "b"], dtype=pl.Categorical),
    "polars Enum": pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["z", "b", "a"])),
    "polars Object": pl.Series(["b", None, "a", "b"], dtype=pl.Object),
    "arrow string": pa.array(["b", None, "a", "b"]),
    "arrow large_string": pa.array(["b", None, "a", "b"], pa.large_string()),
    "arrow dictionary": pa.DictionaryArray.from_arrays(pa.array([1, None, 2, 1], pa.uint8()), ["z", "b", "a"]),
    "arrow dictionary with repeats": pa.DictionaryArray.from_arrays([0, 1, 3, 2], ["b", None, "b", "a"]),
    "arrow chunks": pa.chunked_array(
        [pa.array(["b", None]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    ),
}

BOOL_COLUMNS = {
    "pandas bool": pd.Series([True, False, True]),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "pandas object": pd.Series([True, None, False], dtype=object),
    "pandas arrow bool": pd.Series([True, None, False], dtype=pd.ArrowDtype(pa.bool_())),
    "polars Boolean": pl.Series([True, None, False]),
    "arrow bool": pa.array([True, None, False]),
}


def table(columns):
    first = next(iter(columns.values()))
    if isinstance(first, pd.Series):
        return pd.DataFrame(columns)
    if isinstance(first, pl.Series):
        return pl.DataFrame(columns)
    return pa.table(columns)


def parametrized(columns):
    return pytest.mark.parametrize("column", columns.values(), ids=columns.keys())


@parametrized(NUMBER_COLUMNS)
def test_columns_of_numbers_are_numbers(column):
    schema, matrix = learn_and_convert(table({"x": column}))
    assert schema == FrameSchema(1, ("x",), {})
    assert same(matrix, [[1], [NAN], [3]])


@parametrized(WHOLE_COLUMNS)
def test_columns_of_numbers_without_missing_values_are_numbers(column):
    schema, matrix = learn_and_convert(table({"x": column}))
    assert schema == FrameSchema(1, ("x",), {})
    assert same(matrix, [[1], [0], [3]])


@parametrized(NUMBER_COLUMNS)
def test_columns_of_numbers_are_categories_when_declared(column):
    schema, matrix = learn_and_convert(table({"x": column}), categorical_features=["x"], min_category_count=1)
    assert schema.categories == {0: [[1], [3]]}
    assert same(matrix, [[0], [NAN], [1]])


@parametrized(WHOLE_COLUMNS)
def test_columns_of_numbers_without_missing_values_are_categories_when_declared(column):
    schema, matrix = learn_and_convert(table({"x": column}), categorical_features=["x"], min_category_count=1)
    assert schema.categories == {0: [[0], [1], [3]]}
    assert same(matrix, [[1], [0], [2]])


@parametrized(TEXT_COLUMNS)
def test_columns_of_text_are_categories(column):
    schema, matrix = learn_and_convert(table({"x": column}), min_category_count=1)
    assert schema == FrameSchema(1, ("x",), {0: [["a"], ["b"]]})
    assert {type(value) for group in schema.categories[0] for value in group} == {str}
    assert same(matrix, [[1], [NAN], [0], [1]])


@parametrized(TEXT_COLUMNS)
def test_columns_of_text_that_are_not_declared_are_refused(column):
    with pytest.raises(ValueError, match=r"Column 'x' holds text, such as '[ab]'; .* categorical_features=\['x'\]"):
        learn_schema(table({"x": column}), categorical_features=None)


@parametrized(BOOL_COLUMNS)
def test_columns_of_bools_are_categories(column):
    schema, matrix = learn_and_convert(table({"x": column}), min_category_count=1)
    assert schema == FrameSchema(1, ("x",), {0: [[False], [True]]})
    assert {type(value) for group in schema.categories[0] for value in group} == {bool}
    assert matrix[0, 0] == 1


@parametrized(BOOL_COLUMNS)
def test_columns_of_bools_are_0_and_1_when_not_declared(column):
    schema, matrix = learn_and_convert(table({"x": column}), categorical_features=())
    assert schema.categories == {}
    assert set(matrix[~np.isnan(matrix)]) == {0, 1}
    assert matrix[0, 0] == 1


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([20, 10, 20], dtype="category"),
        pa.array([20, 10, 20]).dictionary_encode(),
    ],
)
def test_a_categorical_type_over_numbers_is_a_category_unless_others_are_declared(column):
    X = table({"x": column})
    assert levels(X) == [[10], [20]]
    assert same(learn_and_convert(X, categorical_features=None)[1], [[20], [10], [20]])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([None, None], dtype=object),
        pl.Series([None, None]),
        pa.nulls(2),
    ],
)
def test_a_column_without_type_or_value_is_missing_numbers(column):
    schema, matrix = learn_and_convert(table({"x": column}))
    assert schema.categories == {}
    assert same(matrix, [[NAN], [NAN]])


def test_a_text_column_without_value_is_a_category_without_level():
    schema = learn_schema(pd.DataFrame({"x": pd.Series([None, None], dtype="string")}))
    assert schema.categories == {0: []}
    assert same(to_matrix(pd.DataFrame({"x": ["a", None]}), schema), [[-1], [NAN]])


def test_a_slice_of_an_arrow_table_is_read_from_where_it_starts():
    X = pa.table({"x": [1, None, 3, 4], "c": ["a", "b", None, "c"], "f": [True, False, None, True]})
    schema, matrix = learn_and_convert(X.slice(1, 3), min_category_count=1)
    assert schema.categories == {1: [["b"], ["c"]], 2: [[False], [True]]}
    assert same(matrix, [[NAN, 0, 0], [3, NAN, NAN], [4, 1, 1]])


def test_record_batches_are_tables():
    batch = pa.RecordBatch.from_pydict({"x": [1.5, None], "c": ["b", "a"]})
    schema, matrix = learn_and_convert(batch, min_category_count=1)
    assert schema == FrameSchema(2, ("x", "c"), {1: [["a"], ["b"]]})
    assert same(matrix, [[1.5, 1], [NAN, 0]])


rows = st.lists(
    st.tuples(
        st.none() | st.floats(allow_nan=False),
        st.none() | st.sampled_from(["", "a", "b", "é", "\U0001f600", "10", "9", "NA"]),
        st.none() | st.booleans(),
    ),
    min_size=1,
)


@given(rows)
def test_the_same_data_gives_the_same_schema_and_matrix_whatever_brings_it(rows):
    number, text, flag = (list(column) for column in zip(*rows, strict=True))
    frames = [
        pd.DataFrame({"n": pd.Series(number, dtype="float64"), "t": pd.Series(text, dtype="str"), "f": flag}),
        pd.DataFrame(
            {
                "n": pd.Series(number, dtype="Float64"),
                "t": pd.Series(text, dtype="category"),
                "f": pd.Series(flag, dtype="boolean"),
            }
        ),
        pl.DataFrame({"n": number, "t": text, "f": flag}, schema={"n": pl.Float64, "t": pl.String, "f": pl.Boolean}),
        pa.table(
            {
                "n": pa.array(number, pa.float64()),
                "t": pa.array(text, pa.string()),
                "f": pa.array(flag, pa.bool_()),
            }
        ),
        [list(row) for row in rows],
    ]
    found = [learn_and_convert(X, categorical_features=[1, 2], min_category_count=2) for X in frames]
    for schema, matrix in found:
        assert schema.categories == found[0][0].categories
        np.testing.assert_array_equal(matrix, found[0][1])


# --- what pandas gives is not copied in vain ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pandas_frame_of_one_float_type_is_not_copied(dtype):
    X = pd.DataFrame(np.arange(6, dtype=dtype).reshape(3, 2), columns=["a", "b"])
    matrix = to_matrix(X, numbers_schema(2, ("a", "b")))
    assert np.shares_memory(matrix, X.to_numpy())
    assert matrix.dtype == dtype


def test_a_table_of_several_types_becomes_contiguous_columns():
    matrix = to_matrix(pd.DataFrame({"a": [1, 2], "b": [0.5, NAN]}), numbers_schema(2))
    assert same(matrix, [[1, 0.5], [2, NAN]])
    assert matrix.flags.f_contiguous


# --- imports ------------------------------------------------------------------------------------------------


ARROW_TABLE = """
import io, pyarrow, pyarrow.csv
X = pyarrow.csv.read_csv(io.BytesIO(b"a,b,c,d,e\\nu,1,1.5,true,1.5\\n,,,,\\n"))
X = X.set_column(4, "e", X.column(4).cast(pyarrow.decimal128(20, 2)))
X = X.append_column("f", X.column(0).dictionary_encode())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "categorical"),
    [
        ("X = np.array([[1.5]])", None),
        ("X = [['a', None]]", [0]),
        ("import polars; X = polars.DataFrame({'a': ['u', None], 'b': [1, None]})", "auto"),
        (ARROW_TABLE, "auto"),
    ],
    ids=["numpy", "list", "polars", "arrow"],
)
def test_no_library_is_imported_but_that_of_the_table(run_python, make, categorical):
    output = run_python(
        f"""
import sys
import numpy as np
from quadboost.data.schema import read_table, to_matrix
{make}
schema, matrix = read_table(X, categorical_features={categorical!r})
to_matrix(X, schema)
print(sorted({{"pandas", "scipy", "sklearn"}} & set(sys.modules)))
"""
    )
    assert output.strip() == "[]"
