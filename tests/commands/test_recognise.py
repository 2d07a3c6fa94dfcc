import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from quadboost.commands.recognise import (  # noqa: E402
    BOOL,
    NUMBER,
    TEXT,
    WHOLE,
    Told,
    convert,
    is_category,
    kind_of_levels,
    recognise,
    to_arrow,
    whole_numbers,
)
from quadboost.commands.text_format import MISSING, TextFormat  # noqa: E402

FORMAT = TextFormat()


def texts(*values):
    return pa.chunked_array([pa.array(values, pa.string())])


def found(*values, **more):
    kind, column = recognise(texts(*values), "it", text=FORMAT, remedy="drop it", **more)
    return kind, column.to_pylist()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2"], [1.0, 2.0]),
        (["1", "-2.5", "+3", ".5", "4.", "1e3", "-2E-2"], [1.0, -2.5, 3.0, 0.5, 4.0, 1000.0, -0.02]),
        (["1", "", "NA", "NaN", "null", "?", "None", " "], [1.0] + [None] * 7),
        ([" 1", "2 ", ""], [1.0, 2.0, None]),
        (["", "", ""], [None] * 3),
        (["0", "1"], [0.0, 1.0]),
    ],
)
def test_numbers_are_recognised(values, expected):
    assert found(*values) == (NUMBER, expected)


def test_not_a_number_is_missing():
    _, column = found("1", "nan")
    assert column[0] == 1.0
    assert column[1] is None or np.isnan(column[1])


@pytest.mark.parametrize(
    ("values", "expected"),
    [(["true", "false"], [True, False]), (["TRUE", "False", "", "NA"], [True, False, None, None])],
)
def test_true_and_false_are_recognised(values, expected):
    assert found(*values) == (BOOL, expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["yes", "no"], ["yes", "no"]),
        ([" padded ", "NA", ""], [" padded ", None, None]),
        (["1", "two"], ["1", "two"]),
        (["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"]),
        (["+", "-"], ["+", "-"]),
        (["2020-01-01", "unknown"], ["2020-01-01", "unknown"]),
        (["0x10", "0x11"], ["0x10", "0x11"]),
    ],
)
def test_values_of_other_kinds_are_text(values, expected):
    assert found(*values) == (TEXT, expected)


@pytest.mark.parametrize("word", ["", *MISSING])
def test_every_word_for_missing_is_known_in_every_kind_of_column(word):
    for other, kind in [("1", NUMBER), ("true", BOOL), ("word", TEXT)]:
        assert found(other, word)[0] == kind
        assert found(other, word)[1][1] is None or np.isnan(found(other, word)[1][1])


@pytest.mark.parametrize("wrong", ["n.a.", "1,5", "12%", "$3", "one"])
def test_text_among_numbers_is_refused_with_its_row(wrong):
    values = [*map(str, range(30)), wrong]
    with pytest.raises(ValueError, match=r"Column 'it' holds .* in row 31.*numbers; drop it") as caught:
        found(*values)
    assert repr(wrong) in str(caught.value)
    assert found(*values, category=True)[0] == TEXT


def test_numbers_written_in_another_way_are_refused():
    with pytest.raises(ValueError, match="holds '1,5' in row 1, though it seems to be a column of numbers"):
        found("1,5", "2,25")


@pytest.mark.parametrize(
    "date",
    ["2020-01-31", "2020/1/31", "31.12.2020", "1/31/20", "2020-01-31 12:30", "2020-01-31T12:30:00.5+01:00", "12:30:05"],
)
def test_dates_are_refused_unless_they_are_declared_categories(date):
    with pytest.raises(ValueError, match=r"Column 'it' holds dates or times, such as .*; drop it"):
        found(date, "")
    assert found(date, "", category=True) == (TEXT, [date, None])


@pytest.mark.parametrize("type_", [pa.date32(), pa.timestamp("us"), pa.duration("s"), pa.time32("s")])
def test_columns_of_a_date_type_are_refused(type_):
    with pytest.raises(ValueError, match=r"Column 'it' holds dates or times of type .*; drop it"):
        recognise(pa.chunked_array([pa.array([1], type_)]), "it", text=None, remedy="drop it")


@pytest.mark.parametrize("values", [[[1]], [{"a": 1}], [b"bytes"]])
def test_columns_of_a_type_that_is_no_feature_are_refused(values):
    with pytest.raises(ValueError, match="Column 'it' holds values of type"):
        recognise(pa.chunked_array([values]), "it", text=None, remedy="drop it")


@pytest.mark.parametrize(
    ("values", "kind", "category"),
    [
        (pa.array([1, 2]), NUMBER, False),
        (pa.array([1.5, None]), NUMBER, False),
        (pa.array([None, None]), NUMBER, False),
        (pa.array([1, 2], pa.decimal128(5)), NUMBER, False),
        (pa.array(["a", "1"]), TEXT, True),
        (pa.array(["a"], pa.large_string()), TEXT, True),
        (pa.array([True, None]), BOOL, True),
        (pa.array(["a"]).dictionary_encode(), TEXT, True),
        (pa.array([1, 1]).dictionary_encode(), NUMBER, True),
    ],
)
def test_types_are_taken_at_their_word(values, kind, category):
    column = pa.chunked_array([values])
    assert recognise(column, "it", text=None, remedy="")[0] == kind
    assert is_category(column) == category


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", ""], NUMBER, [1.0, None]),
        (["1", "x", "NA"], TEXT, ["1", "x", None]),
        (["2020-01-01"], TEXT, ["2020-01-01"]),
        (["true", "0", "FALSE", "?"], BOOL, [True, False, False, None]),
    ],
)
def test_text_becomes_what_is_wanted(values, kind, expected):
    assert convert(texts(*values), kind, "it", text=FORMAT, expected="").to_pylist() == expected


@pytest.mark.parametrize(("values", "kind"), [(["1", "", "-3", "x"], NUMBER), (["true", "", "0", "x"], BOOL)])
def test_text_that_is_not_what_is_wanted_is_named(values, kind):
    with pytest.raises(ValueError, match=r"^Column 'it' holds 'x' in row 104, but so it is$"):
        convert(texts(*values), kind, "it", text=FORMAT, expected="but so it is", first_row=100)


@pytest.mark.parametrize(("values", "kind"), [(["1"], NUMBER), (["1"], BOOL), ([1], TEXT), ([True], TEXT)])
def test_typed_text_and_numbers_are_not_taken_for_each_other(values, kind):
    with pytest.raises(ValueError, match=r"Column 'it' holds .*, such as '?(1|True)'?, but so it is"):
        convert(pa.chunked_array([values]), kind, "it", text=None, expected="but so it is")


@pytest.mark.parametrize("kind", [NUMBER, TEXT, BOOL])
@pytest.mark.parametrize("type_", [pa.string(), pa.float64(), pa.null()])
def test_a_column_without_values_is_all_missing_whatever_its_type(kind, type_):
    column = pa.chunked_array([pa.nulls(3, type_)])
    assert convert(column, kind, "it", text=None, expected="").to_pylist() == [None] * 3


def test_whole_numbers_stay_whole():
    assert whole_numbers(texts("1", "-2", " 3", ""), FORMAT).to_pylist() == [1, -2, 3, None]
    large = [2**63 - 1, 10**18 + 1, 10**18 + 2]
    assert whole_numbers(texts(*map(str, large)), FORMAT).to_pylist() == large


@pytest.mark.parametrize("value", ["2.0", "0x10", "01", "+1", "-0", "1e3", str(2**63), str(-(2**63) - 1)])
def test_what_would_be_written_otherwise_is_no_whole_number(value):
    assert whole_numbers(texts("1", value), FORMAT) is None


@pytest.mark.parametrize("value", ["007", "-01", str(2**64)])
def test_digits_that_a_number_would_lose_are_text_in_a_category(value):
    assert found("1", value, category=True) == (TEXT, ["1", value])
    assert found("1", value) == (NUMBER, [1.0, float(value)])
    assert found("1", "7", category=True) == (WHOLE, [1, 7])
    assert found("1", "7.5", category=True) == (NUMBER, [1.0, 7.5])


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e999"])
def test_infinity_is_no_number_in_a_text_file(value):
    with pytest.raises(ValueError, match=f"Column 'it' holds '{value}' in row 2, though it seems to be .* numbers"):
        found("1", value)
    assert found("1", value, category=True)[0] == TEXT
    for kind in (NUMBER, WHOLE):
        with pytest.raises(ValueError, match=f"Column 'it' holds '{value}' in row 2, but so it is"):
            convert(texts("1", value), kind, "it", text=FORMAT, expected="but so it is")


def test_infinity_is_no_number_in_other_files():
    column = pa.chunked_array([[1.0, None, -np.inf]])
    with pytest.raises(ValueError, match="Column 'it' holds -inf in row 13; leave it empty"):
        convert(column, NUMBER, "it", text=None, expected="", first_row=10)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1,5", "-2", " ,25", "1e-3", "NA"], [1.5, -2.0, 0.25, 0.001, None]),
        (["3", "4"], [3.0, 4.0]),
    ],
)
def test_decimals_can_follow_a_comma(values, expected):
    comma = TextFormat(decimal=",")
    assert recognise(texts(*values), "it", text=comma, remedy="")[1].to_pylist() == expected
    assert convert(texts(*values), NUMBER, "it", text=comma, expected="").to_pylist() == expected


@pytest.mark.parametrize("wrong", ["1.5", "1.234,5"])
def test_a_point_is_no_part_of_a_number_whose_decimals_follow_a_comma(wrong):
    with pytest.raises(ValueError, match=f"holds '{wrong}' in row 2, though it seems to be a column of numbers"):
        recognise(texts("1,5", wrong), "it", text=TextFormat(decimal=","), remedy="")


def test_the_words_for_missing_values_can_be_others():
    dots = TextFormat(missing=("..",))
    kind, column = recognise(texts("NA", "..", " .. ", "", "b"), "it", text=dots, remedy="")
    assert (kind, column.to_pylist()) == (TEXT, ["NA", None, None, None, "b"])
    kind, column = recognise(texts("1", ".."), "it", text=dots, remedy="")
    assert (kind, column.to_pylist()) == (NUMBER, [1.0, None])


@pytest.mark.parametrize(
    ("levels", "kind"),
    [
        ([["a"], ["b", "c"]], TEXT),
        ([[False], [True]], BOOL),
        ([[1], [2.5]], NUMBER),
        ([[0], [True]], NUMBER),
        ([[1], [2]], WHOLE),
    ],
)
def test_levels_tell_what_a_column_held(levels, kind):
    assert kind_of_levels(levels, "it") == kind


def test_levels_of_text_and_numbers_are_refused():
    with pytest.raises(ValueError, match="Column 'it' held both text and numbers"):
        kind_of_levels([["a"], [1]], "it")


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.5, np.nan]),
        np.array([1, 2], np.int16),
        np.array([1, 2**63], np.uint64),
        np.array([0.5], np.float16),
        np.array([True, False]),
        np.array(["a", "", "é" * 100]),
        np.array(["a", "b"], dtype=object),
        np.arange(6.0).reshape(3, 2)[:, 1],
        np.array([], dtype="U3"),
        np.array([], dtype=bool),
    ],
)
def test_arrays_are_the_same_in_arrow(values):
    np.testing.assert_array_equal(np.array(to_arrow(values).to_pylist(), dtype=values.dtype), values)


@pytest.mark.slow
def test_nothing_here_imports_pandas(run_python):
    code = """
import sys, numpy as np, pyarrow as pa
from quadboost.commands.recognise import *
from quadboost.commands.text_format import TextFormat
column = pa.chunked_array([to_arrow(np.array(["1", "x", "", "2020-01-01"]))])
recognise(column, "it", text=TextFormat(), remedy="")
convert(column.slice(0, 1), "numbers", "it", text=TextFormat(), expected="")
print("pandas" in sys.modules)
"""
    assert run_python(code).strip() == "False"


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2", "x", "3"],
        ["1", "2", "", "NA"],
        ["true", "FALSE", "", "true"],
        ["1", "2", "01", "3"],
        ["2020-01-01", "", "2021-01-01", "x"],
        ["2020-01-01", "", "2021-01-01"],
        [*map(str, range(20)), "1,000", "7"],
        ["x", "true", "1", ""],
    ],
)
@pytest.mark.parametrize("category", [False, True])
def test_a_column_that_is_shown_piece_by_piece_is_what_it_is_as_a_whole(values, category):
    def outcome(n_pieces):
        told = Told("it", FORMAT, category, "drop it")
        pieces = [texts(*piece) for piece in np.array_split(np.array(values, dtype=object), n_pieces)]
        for piece in pieces:
            told.look(piece)
        first_row = 0
        for piece in pieces if not told.is_sure else ():
            told.look_closer(piece, first_row)
            first_row += len(piece)
        try:
            return told.kind()
        except ValueError as error:
            return str(error)

    assert outcome(1) == outcome(2) == outcome(len(values))


def test_a_number_may_be_a_word_for_missing_values():
    kind, column = recognise(texts("1", "-999", "2"), "it", text=TextFormat(missing=("-999",)), remedy="")
    assert (kind, column.to_pylist()) == (NUMBER, [1.0, None, 2.0])
