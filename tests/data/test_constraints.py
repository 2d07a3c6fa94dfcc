"""Constraints on features as users give them, and what is refused."""

from __future__ import annotations

import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from quadboost.data.constraints import Meetings, check_numbers, meetings_of, signs_of
from quadboost.data.schema import FrameSchema

SCHEMA = FrameSchema(3, ("income", "debt", "town"), {2: [["a"], ["b"]]})
NAMELESS = FrameSchema(3, None, {2: [["a"], ["b"]]})


@pytest.mark.parametrize(
    "given",
    [
        {"income": 1, "debt": -1},
        {0: 1, 1: -1},
        {"income": 1, 1: -1, "town": 0},
        [1, -1, 0],
        np.array([1, -1, 0], dtype=np.int8),
        np.array([1.0, -1.0, 0.0]),
    ],
    ids=repr,
)
def test_signs_are_given_by_name_by_number_or_in_a_row(given):
    np.testing.assert_array_equal(signs_of(given, SCHEMA, 1), [[1], [-1], [0]])


def test_a_sign_is_for_all_scores_and_a_list_has_one_for_each():
    signs = signs_of({"income": 1, "debt": [-1, 0, 1]}, SCHEMA, 3)
    np.testing.assert_array_equal(signs, [[1, 1, 1], [-1, 0, 1], [0, 0, 0]])


@pytest.mark.parametrize("given", [None, {}, {"income": 0}, [0, 0, 0]], ids=repr)
def test_where_nothing_is_constrained_there_are_no_signs(given):
    assert signs_of(given, SCHEMA, 1) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"incme": 1}, "monotonic_cst has 'incme', which is no column of X; X has 3 columns, 'income', 'debt', 'town'"),
        ({3: 1}, "monotonic_cst has 3, which is no column of X"),
        ({"income": 2}, "monotonic_cst of column 'income' is 2; it may be -1 (falling), 0 (free) or 1 (rising)"),
        ({"income": True}, "monotonic_cst of column 'income' is True; it may be -1"),
        ({"income": "up"}, "monotonic_cst of column 'income' is 'up'; it may be -1"),
        ({"income": "u" * 999}, f"monotonic_cst of column 'income' is '{'u' * 59}; it may be -1"),
        ({"income": np.nan}, "monotonic_cst of column 'income' is nan; it may be -1"),
        ({"income": [1, -1]}, "monotonic_cst of column 'income' has shape (2,); give one sign, or one for each"),
        ({"town": 1}, "monotonic_cst=1 is for a column of numbers, and column 'town' is a category; if its levels"),
        ({"income": 1, 0: 1}, "has a column by its name and by its number; give it once"),
        ([1, 0], "monotonic_cst has 2 signs, but X has 3 columns; give one each"),
        ("income", "monotonic_cst='income' must be a dict from columns to -1, 0 or 1, or a list"),
        ({1, -1, 0}, "must be a dict from columns to -1, 0 or 1, or a list"),
        (1, "monotonic_cst=1 must be a dict"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_means_nothing_is_refused(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        signs_of(given, SCHEMA, 1)


def test_columns_without_names_go_by_their_numbers():
    np.testing.assert_array_equal(signs_of({1: -1}, NAMELESS, 1), [[0], [-1], [0]])
    with pytest.raises(ValueError, match="'income', which is no column of X; X has 3 columns, without names"):
        signs_of({"income": 1}, NAMELESS, 1)
    with pytest.raises(ValueError, match="column 2 is a category"):
        signs_of({2: 1}, NAMELESS, 1)


@pytest.mark.parametrize(
    ("given", "is_refused"),
    [
        ({"monotonic_cst": {0: 1}}, "monotonic_cst has 0, which may be the position of a column or one of X's own"),
        ({"interaction_cst": [[11, 10]]}, "interaction_cst has 11, which may be the position"),
        ({"monotonic_cst": [1, 0, 0]}, None),
        ({"interaction_cst": "pairwise"}, None),
    ],
    ids=repr,
)
def test_numbers_are_refused_where_columns_are_called_by_other_numbers(given, is_refused):
    given = {"monotonic_cst": None, "interaction_cst": None, **given}
    frame = pd.DataFrame(np.zeros((2, 3)), columns=[10, 11, 0])
    with nullcontext() if is_refused is None else pytest.raises(ValueError, match=is_refused):
        check_numbers(frame, **given)
    for other in (frame.set_axis(range(3), axis=1), frame.set_axis(list("abc"), axis=1), frame.to_numpy()):
        check_numbers(other, **given)


def test_features_that_may_meet_are_given_as_scikit_learn_has_it():
    assert meetings_of(None, SCHEMA) == Meetings(None, None)
    assert meetings_of("pairwise", SCHEMA) == Meetings(None, 2)
    assert meetings_of("no_interactions", SCHEMA) == Meetings(None, 1)
    groups = meetings_of([{"income", 1}, ("debt",)], SCHEMA).groups
    np.testing.assert_array_equal(groups, [[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    assert groups.dtype == np.uint8
    np.testing.assert_array_equal(meetings_of([[0, 1, 2]], NAMELESS).groups, [[1, 1, 1]])
    np.testing.assert_array_equal(meetings_of([], NAMELESS).groups, [[1, 1, 1]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("triples", "interaction_cst='triples' is not known; use 'pairwise' or 'no_interactions'"),
        (3, "interaction_cst=3 must be 'pairwise', 'no_interactions' or a list of groups of columns"),
        ({"income": 1}, "must be 'pairwise', 'no_interactions' or a list of groups"),
        (["income", "debt"], "interaction_cst has 'income', which is no group; give a list of columns"),
        ([[0, 7]], "interaction_cst has 7, which is no column of X"),
        (b"pairwise", "interaction_cst=b'pairwise' must be 'pairwise'"),
    ],
    ids=repr,
)
def test_meetings_that_mean_nothing_are_refused(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        meetings_of(given, SCHEMA)
