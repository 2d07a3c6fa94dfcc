import datetime
import enum
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadboost.data.schema import FrameSchema, to_matrix

NAN = math.nan


def learn_and_convert(X, **options):
    schema = learn_schema(X, **options)
    return schema, to_matrix(X, schema)


def numbers_schema(n_features, names=None):
    return FrameSchema(n_features, names, {})


def levels(X, **options):
    """Levels of the only column, which is a category."""
    categories = learn_schema(X, **{"min_category_count": 1, **options}).categories
    assert list(categories) == [0]
    return categories[0]


def same(matrix, expected):
    np.testing.assert_array_equal(matrix, np.array(expected, dtype=np.float64))
    assert matrix.dtype in (np.float32, np.float64)
    return True


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


# --- levels -------------------------------------------------------------------------------------------------


def test_levels_are_sorted_numbers_by_value_and_text_by_code_point():
    assert levels([[10], [9], [-1.5]], categorical_features=[0]) == [[-1.5], [9], [10]]
    assert levels(pd.DataFrame({"x": ["b", "é", "B", "10", "9"]})) == [["10"], ["9"], ["B"], ["b"], ["é"]]
    assert levels([["a"], [2], ["10"], [1]], categorical_features=[0]) == [[1], [2], ["10"], ["a"]]


def test_rare_levels_share_the_last_one():
    X = pd.DataFrame({"x": ["c"] * 5 + ["z"] * 4 + ["a"] * 4 + ["m"] * 9})
    assert levels(X, min_category_count=5) == [["c"], ["m"], ["a", "z"]]
    schema = learn_schema(X)
    assert same(to_matrix(pd.DataFrame({"x": ["z", "a", "m", "c", "q"]}), schema), [[2], [2], [1], [0], [-1]])


def test_a_single_rare_level_stays_itself_in_its_place():
    X = pd.DataFrame({"x": ["c"] * 5 + ["a"] * 4 + ["m"] * 9})
    assert levels(X, min_category_count=5) == [["a"], ["c"], ["m"]]


def test_levels_that_are_all_rare_are_one():
    assert levels(pd.DataFrame({"x": ["b", "a", "c"]}), min_category_count=5) == [["a", "b", "c"]]


def test_integer_weights_are_repetitions():
    X = pd.DataFrame({"x": ["a", "b", "c", "d", "e"]})
    weight = np.array([4, 5, 0, 1, 6])
    repeated = X.iloc[np.repeat(np.arange(5), weight)]
    expected = [["b"], ["e"], ["a", "d"]]
    assert levels(repeated, min_category_count=5) == expected
    assert levels(X, min_category_count=5, sample_weight=weight) == expected


def test_small_weights_do_not_make_frequent_levels_rare():
    X = pd.DataFrame({"x": ["a"] * 5 + ["b"] * 6 + ["c", "d"]})
    assert levels(X, min_category_count=5, sample_weight=np.full(13, 1 / 13)) == [["a"], ["b"], ["c", "d"]]


@pytest.mark.parametrize(
    "X", [np.array([[1.0], [2.0]]), np.array([[1], [2]]), pd.DataFrame({"x": [True, 2]}, dtype=object)]
)
@pytest.mark.parametrize("trained", [np.array([[1], [2]]), np.array([[1.0], [2.0]]), [[True], [2]]])
def test_equal_ints_floats_and_bools_are_the_same_level(trained, X):
    schema = learn_schema(trained, categorical_features=[0], min_category_count=1)
    assert same(to_matrix(X, schema), [[0], [1]])


def test_a_category_of_bools_takes_0_and_1():
    schema = learn_schema(pd.DataFrame({"x": [True, False]}), min_category_count=1)
    assert same(to_matrix(np.array([[0.0], [1], [2], [NAN]]), schema), [[0], [1], [-1], [NAN]])


def test_text_and_numbers_do_not_match():
    schema = learn_schema(pd.DataFrame({"x": ["1", "2"]}), min_category_count=1)
    assert same(to_matrix(pd.DataFrame({"x": [1, 2]}), schema), [[-1], [-1]])
    assert same(to_matrix([["1"], [2]], schema), [[0], [-1]])


def test_ids_beyond_the_precision_of_floats_are_different_levels():
    ids = [[2**53], [2**53 + 1]]
    assert levels(np.array(ids), categorical_features=[0]) == ids
    assert levels([*ids, [None]], categorical_features=[0]) == ids


def test_levels_are_plain_text_even_if_the_values_are_more():
    class Colour(str, enum.Enum):
        RED = "red"

    X = pd.DataFrame({"x": pd.Series([Colour.RED], dtype=object)})
    assert repr(levels(X)) == "[['red']]"


def test_an_infinite_level_is_refused():
    with pytest.raises(ValueError, match="Column 0 is a category, and -inf cannot be a level"):
        learn_schema([[1.0], [-math.inf]], categorical_features=[0])


def test_many_distinct_levels_work():
    m = 200_000
    X = pd.DataFrame({"x": [f"id{i:06}" for i in range(m)]})
    schema, matrix = learn_and_convert(X, min_category_count=1)
    np.testing.assert_array_equal(matrix[:, 0], np.arange(m))
    assert same(to_matrix(X.iloc[[7]], schema), [[7]])


def test_a_schema_survives_pickling():
    X = pd.DataFrame({"x": ["a", "b"]})
    schema, matrix = learn_and_convert(X, min_category_count=1)
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema
    assert same(to_matrix(X, again), matrix)


# --- which columns are categories ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "declared",
    [
        ["c"],
        ("c",),
        {"c"},
        np.array(["c"]),
        pd.Index(["c"]),
        [1],
        np.array([1]),
        [False, True],
        np.array([False, True]),
    ],
)
def test_categories_are_declared_by_name_index_or_mask(declared):
    X = pd.DataFrame({"x": [1, 2], "c": [3, 4]})
    schema = learn_schema(X, categorical_features=declared, min_category_count=1)
    assert schema.categories == {1: [[3], [4]]}


@pytest.mark.parametrize("declared", [None, (), [], [False, False]])
def test_no_column_need_be_a_category(declared):
    assert learn_schema([[1, 2]], categorical_features=declared).categories == {}


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            ["colour"],
            r"categorical_features has 'colour', which is no column of X; X has 2 columns, 'x', 'c'",
        ),
        ([2], "categorical_features has 2, .* 2 columns"),
        ([-1], "categorical_features has -1"),
        ([1.0], "categorical_features has 1.0"),
        ([True, "c"], "categorical_features has True"),
        ([True], "mask of 1 columns, but X has 2"),
        ("c", "must be \"auto\", None, .*, not 'c'"),
        (1, "a list of indices or a boolean mask, not 1"),
    ],
)
def test_declaring_what_is_not_there_is_refused(declared, message):
    with pytest.raises(ValueError, match=message):
        learn_schema(pd.DataFrame({"x": [1, 2], "c": [3, 4]}), categorical_features=declared)


def test_declaring_names_of_an_array_is_refused():
    with pytest.raises(ValueError, match=r"categorical_features has 'c', .* X has 2 columns, without names"):
        learn_schema(np.ones((3, 2)), categorical_features=["c"])


def test_text_beside_numbers_is_neither_unless_declared():
    X = pd.DataFrame({"x": [1, "a", None]})
    with pytest.raises(ValueError, match=r"Column 'x' holds text, such as 'a'; .*categorical_features=\['x'\]"):
        learn_schema(X)
    assert levels(X, categorical_features=["x"]) == [[1], ["a"]]


@pytest.mark.parametrize("X", [[[1, "red"]], np.array([[1, "red"]], dtype=object)])
def test_text_in_an_array_is_refused_unless_declared(X):
    with pytest.raises(ValueError, match=r"Column 1 holds text, such as 'red'; .*\[1\], or pass a DataFrame$"):
        learn_schema(X)


def test_an_array_of_strings_says_that_its_numbers_are_text():
    X = np.array([["1.5", "red"]])
    with pytest.raises(ValueError, match=r"Column 0 holds text, such as '1.5'; .*dtype=object can"):
        learn_schema(X, categorical_features=[1])


# --- names --------------------------------------------------------------------------------------------------

MAKERS = pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])


@MAKERS
@pytest.mark.parametrize("text", [False, True])
def test_columns_are_matched_by_name_in_any_order(make, text):
    extra = {"c": ["u", "v"]} if text else {}
    schema = learn_schema(make({"a": [1.0, 2.0], "b": [3.0, 4.0], **extra}), min_category_count=1)
    matrix = to_matrix(make({**extra, "b": [5.0, 6.0], "a": [7.0, 8.0]}), schema)
    assert same(matrix, [[7, 5, 0], [8, 6, 1]] if text else [[7, 5], [8, 6]])


@MAKERS
def test_missing_columns_are_all_named(make):
    with pytest.raises(ValueError, match=r"X lacks columns that Est was trained on: 'b', 'd'$"):
        to_matrix(make({"a": [1.0], "c": [2.0]}), numbers_schema(4, ("a", "b", "c", "d")), owner="Est")


@MAKERS
def test_extra_columns_are_refused_or_ignored_on_demand(make):
    X = make({"z": ["text"], "a": [1.0], "y": [2.0]})
    schema = numbers_schema(1, ("a",))
    with pytest.raises(ValueError, match="X has columns that this model was not trained on: 'z', 'y'; leave them out"):
        to_matrix(X, schema)
    assert same(to_matrix(X, schema, allow_extra=True), [[1]])


def test_long_lists_of_names_are_cut():
    names = tuple(f"f{i}" for i in range(100))
    with pytest.raises(ValueError, match=r"'f19' and 80 more$"):
        to_matrix(pd.DataFrame({"a": [1.0]}), numbers_schema(100, names))


@pytest.mark.parametrize("X", [np.ones((2, 3)), pd.DataFrame(np.ones((2, 3))), [[1, 2, None]]])
def test_without_names_the_count_must_match(X):
    with pytest.raises(ValueError, match=r"^X has 3 features, but Est is expecting 4 features as input$"):
        to_matrix(X, numbers_schema(4, ("a", "b", "c", "d")), owner="Est")
    with pytest.raises(ValueError, match=r"^X has 3 features, but this model is expecting 2 features as input$"):
        to_matrix(X, numbers_schema(2))


def test_columns_are_matched_by_position_if_either_side_has_no_names():
    assert same(to_matrix([[1, 2]], numbers_schema(2, ("b", "a"))), [[1, 2]])
    assert same(to_matrix(pd.DataFrame({"b": [1], "a": [2]}), numbers_schema(2)), [[1, 2]])


@pytest.mark.parametrize("columns", [[0, 1], [1.5, None], [("a", 1), ("a", 2)], [3, 3]])
def test_names_that_are_not_strings_are_none(columns):
    X = pd.DataFrame([[1.0, "a"]])
    X.columns = columns
    schema, matrix = learn_and_convert(X, min_category_count=1)
    assert schema == FrameSchema(2, None, {1: [["a"]]})
    assert same(matrix, [[1, 0]])


def test_names_of_which_only_some_are_strings_are_refused():
    with pytest.raises(TypeError, match=r"only supported if all .* string names, but X also has 1; use X.columns"):
        learn_schema(pd.DataFrame({"a": [1], 1: [2]}))


@pytest.mark.parametrize(
    "X",
    [pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), pa.table([[1], [2], [3]], names=["a", "b", "a"])],
)
def test_repeated_names_are_refused(X):
    with pytest.raises(ValueError, match="X has more than one column named 'a'"):
        learn_schema(X)


def test_no_name_of_a_column_changes_what_a_table_is():
    names = ["toarray", "collect", "npartitions", "get_columns", "column_names", "iloc", "columns", "dtype"]
    schema, matrix = learn_and_convert(pd.DataFrame([range(len(names))], columns=names))
    assert schema.feature_names == tuple(names)
    assert same(matrix, [range(len(names))])


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
    def toarray(self):
        raise AssertionError("X must not be made dense without being asked")


def test_sparse_input_is_refused():
    with pytest.raises(TypeError, match=r"Sparse input is not supported; use X.toarray\(\)"):
        learn_schema(Sparse())


def test_a_lazy_table_is_refused():
    with pytest.raises(TypeError, match=r"X is a lazy LazyFrame; use X.collect\(\)"):
        learn_schema(pl.LazyFrame({"x": [1]}))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"Expected 2D array, got 1D array instead \(ndarray\). Reshape your data"),
        (pd.Series([1, 2]), r"got 1D array instead \(Series\)"),
        ([1, 2], r"got 1D array instead \(list\)"),
        (3.0, "got scalar array instead"),
        ({"a": [1]}, r"got scalar array instead \(dict\)"),
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


# --- imports ------------------------------------------------------------------------------------------------


ARROW_TABLE = """
import io, pyarrow, pyarrow.csv
X = pyarrow.csv.read_csv(io.BytesIO(b"a,b,c,d,e\\nu,1,1.5,true,1.5\\n,,,,\\n"))
X = X.set_column(4, "e", X.column(4).cast(pyarrow.decimal128(20, 2)))
X = X.append_column("f", X.column(0).dictionary_encode())
"""


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
to_matrix(X, learn_schema(X, categorical_features={categorical!r}))
print(sorted({{"pandas", "scipy", "sklearn"}} & set(sys.modules)))
"""
    )
    assert output.strip() == "[]"
