"""Names, categories and levels of the columns of a table, and tables read by them."""

from __future__ import annotations

import enum
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from reading import NAN, learn_and_convert, learn_schema, levels, numbers_schema, same

from quadboost.data.schema import FrameSchema, to_matrix

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
    assert same(to_matrix([["1"], [2]], schema), [[0], [-1]])
    assert same(to_matrix([[1], ["3"]], schema), [[-1], [-1]])
    assert same(to_matrix([[None], [None]], schema), [[NAN], [NAN]])


@pytest.mark.parametrize(
    ("trained", "given", "message"),
    [
        (
            ["1001", "x"],
            [1001, 1002],
            "holds numbers, such as 1001, but it was trained on text there, such as '1001'",
        ),
        (
            [True, False],
            ["True"],
            "holds text, such as 'True', but it was trained on true and false there, such as",
        ),
        ([1001, 7], ["1001"], "holds text, such as '1001', but it was trained on numbers there, such as 7"),
        (["a", "b"], [True, None], "holds true and false, such as True, but it was trained on text there"),
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda columns: pa.table(columns)])
def test_a_category_of_a_type_that_can_never_match_is_refused(trained, given, message, make):
    schema = learn_schema(make({"x": trained}), categorical_features=["x"], min_category_count=1)
    with pytest.raises(ValueError, match=f"Column 'x' {message}.*; convert it"):
        to_matrix(make({"x": given}), schema, owner="it")


def test_a_category_without_a_known_value_is_warned_of():
    schema = learn_schema(pd.DataFrame({"x": ["a", "b"]}), min_category_count=1)
    with pytest.warns(
        UserWarning, match="Column 'x' holds no value that this model was trained on: it holds text, and"
    ):
        assert same(to_matrix(pd.DataFrame({"x": ["c"] * 10}), schema), [[-1]] * 10)
    assert same(to_matrix(pd.DataFrame({"x": ["c"] * 9}), schema), [[-1]] * 9)  # few: perhaps by chance
    assert same(to_matrix(pd.DataFrame({"x": ["c"] * 20 + ["a"]}), schema), [[-1]] * 20 + [[0]])


def test_ids_beyond_the_precision_of_floats_are_different_levels():
    ids = [[2**53], [2**53 + 1]]
    assert levels(np.array(ids), categorical_features=[0]) == ids
    assert levels([*ids, [None]], categorical_features=[0]) == ids


@pytest.mark.parametrize(
    "make",
    [
        lambda ids: pd.DataFrame({"a": pd.array(ids, "Int64")}),
        lambda ids: pd.DataFrame({"a": pd.array(ids, pd.ArrowDtype(pa.int64()))}),
        lambda ids: pl.DataFrame({"a": ids}),
        lambda ids: pa.table({"a": ids}),
        lambda ids: pa.table({"a": pa.array(ids, pa.uint64())}),
    ],
)
def test_ids_stay_different_beside_a_missing_value(make):
    one, other = 10**18 + 1, 10**18 + 2
    X = make([one, None, other])
    assert levels(X, categorical_features=[0]) == [[one], [other]]
    same(learn_and_convert(X, categorical_features=[0], min_category_count=1)[1], [[0], [NAN], [1]])
    same(learn_and_convert(X)[1], [[1e18], [NAN], [1e18]])
    same(learn_and_convert(make([3, None, 4]))[1], [[3], [NAN], [4]])


def test_levels_are_plain_text_even_if_the_values_are_more():
    class Colour(str, enum.Enum):
        RED = "red"

    X = pd.DataFrame({"x": pd.Series([Colour.RED], dtype=object)})
    assert repr(levels(X)) == "[['red']]"


def test_an_infinite_level_is_refused():
    with pytest.raises(ValueError, match="Column 0 is a category, and -inf cannot be a level"):
        learn_schema([[1.0], [-math.inf]], categorical_features=[0])


def test_a_level_beyond_64_bits_is_refused():
    message = "Column 0 is a category, and 18446744073709551616 is an integer beyond 64 bits; make it text"
    with pytest.raises(ValueError, match=message):
        learn_schema(np.array([[2**64], [1]], dtype=object), categorical_features=[0])
    assert learn_schema(np.array([[2**64 - 1], [1]], dtype=object), categorical_features=[0]).categories


@pytest.mark.slow
def test_many_distinct_levels_work():
    m = 100_000
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
def test_extra_columns_are_refused(make):
    X = make({"z": ["text"], "a": [1.0], "y": [2.0]})
    schema = numbers_schema(1, ("a",))
    with pytest.raises(ValueError, match="X has columns that this model was not trained on: 'z', 'y'; leave them out"):
        to_matrix(X, schema)


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


def test_features_go_by_name_or_number():
    named = FrameSchema(3, ("u", "v", "w"), {})
    assert [named.number_of(feature) for feature in ("v", 2)] == [1, 2]
    for wrong, message in (("q", "'q' is not known; the features are"), (3, "must be a number from 0 to 2")):
        with pytest.raises(ValueError, match=message):
            named.number_of(wrong)
    with pytest.raises(ValueError, match="feature='u': these features have no names; give a number"):
        FrameSchema(3, None, {}).number_of("u")
