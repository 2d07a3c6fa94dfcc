"""An argument is taken, or refused by its name, with what would be right."""

from pathlib import Path

import numpy as np
import pytest

from quadboost.common.checks import at_least, file_name, finite, functions, not_negative, one_of, positive, text, texts

NO_NUMBERS = [True, np.True_, "1", None, 1j, [1]]
NOT_FINITE = [np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("value", [3, 4, np.int8(3), np.uint64(2**63)])
def test_whole_numbers_of_any_type_are_counts(value):
    found = at_least("n", value, 3)
    assert (found, type(found)) == (value, int)


@pytest.mark.parametrize("value", [2, -1, 3.0, np.float64(3), np.nan, *NO_NUMBERS])
def test_what_is_no_count_is_refused(value):
    with pytest.raises(ValueError, match=r"^n=.* must be a whole number of at least 3$"):
        at_least("n", value, 3)


@pytest.mark.parametrize("check", [positive, not_negative, finite])
@pytest.mark.parametrize("value", [1, 0.5, 5e-324, np.float32(2), np.int8(1)])
def test_numbers_of_any_type_are_numbers(check, value):
    found = check("x", value)
    assert (found, type(found)) == (float(value), float)


def test_zero_is_not_positive_and_not_negative():
    assert not_negative("x", 0) == 0.0
    with pytest.raises(ValueError, match=r"^x=0 must be a positive finite number$"):
        positive("x", 0)


@pytest.mark.parametrize(
    ("check", "wanted"),
    [
        (positive, "a positive finite number"),
        (not_negative, "a finite number that is not negative"),
    ],
)
@pytest.mark.parametrize("value", [-1, -5e-324, *NOT_FINITE, *NO_NUMBERS])
def test_what_is_no_such_number_is_refused(check, wanted, value):
    with pytest.raises(ValueError, match=rf"^x=.* must be {wanted}$"):
        check("x", value)


@pytest.mark.parametrize("value", ["l1", None, np.str_("l1")])
def test_a_known_word_is_taken(value):
    assert one_of("penalty", value, ("l1", None)) is value


@pytest.mark.parametrize("value", ["L1", "", 0, False, ["l1"], np.array(["l1", "l1"])])
def test_another_word_is_refused_and_all_known_ones_are_named(value):
    with pytest.raises(ValueError, match=r"^penalty=.* is not known; use 'l1', 'l2' or None$"):
        one_of("penalty", value, ("l1", "l2", None))


def test_a_number_is_not_taken_for_a_truth_value():
    with pytest.raises(ValueError, match=r"^flag=1 is not known; use True or False$"):
        one_of("flag", 1, (True, False))


def test_a_single_known_word_is_named_alone():
    with pytest.raises(ValueError, match=r"^class_weight='even' is not known; use 'balanced'$"):
        one_of("class_weight", "even", ("balanced",))


@pytest.mark.parametrize("check", [positive, not_negative, finite])
@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_a_number_beyond_the_largest_float_is_refused(check, value):
    with pytest.raises(ValueError, match=r"^x=-?10{58,59} must be a"):
        check("x", value)


def test_a_file_is_named_by_text_bytes_or_a_path():
    assert file_name("a") == file_name(b"a") == file_name(Path("a")) == "a"
    for wrong in (5, None, [], "", b"", "a\0b"):
        with pytest.raises(ValueError, match=r"is not the name of a file$"):
            file_name(wrong)


def test_functions_come_in_a_list():
    assert functions("f", None) == []
    assert functions("f", (print, len)) == [print, len]


@pytest.mark.parametrize("value", [print, 1, [1], "ab", [print, None]])
def test_what_is_no_list_of_functions_is_refused(value):
    with pytest.raises(ValueError, match=r"^f=.* must be a list of functions, if only of one: \[f\]$"):
        functions("f", value)


def test_names_are_text():
    assert text("x", "a") == "a"
    assert texts("x", ("a", "b")) == ["a", "b"]
    for wrong in ("", None, 3, b"a"):
        with pytest.raises(ValueError, match=r"^x=.* must be text that is not empty$"):
            text("x", wrong)
        with pytest.raises(ValueError, match=r"^a name in x=.* must be text that is not empty$"):
            texts("x", [wrong])
    with pytest.raises(ValueError, match=r"^x='ab' must be a list of names, if only of one: \['ab'\]$"):
        texts("x", "ab")
    for wrong in (None, 3, b"a"):
        with pytest.raises(ValueError, match=r"^x=.* must be a list of names$"):
            texts("x", wrong)


def test_any_number_but_those_without_end_is_finite():
    assert finite("x", -1) == -1.0
    for wrong in [*NOT_FINITE, *NO_NUMBERS]:
        with pytest.raises(ValueError, match=r"^x=.* must be a finite number$"):
            finite("x", wrong)
