"""Arrays of all rows, made of a part row by row."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from quadboost.parts.each_row import EachRow, asked, rows_of
from quadboost.parts.source import Coded

CODES = np.arange(12, dtype=np.uint8).reshape(6, 2)
PART = Coded(CODES, CODES[:, 0])


def first_codes(part):
    return part.codes[:, :1].astype(float)


def test_arrays_of_parts_are_made_row_by_row_and_each_once():
    made = []

    def seen(values):
        made.append(len(values))
        return values + 1.0

    one = EachRow(seen, (EachRow(first_codes),))
    found = (2.0 * one - one / np.array([4.0])) * one
    np.testing.assert_array_equal(rows_of(found, PART), 1.75 * (CODES[:, :1] + 1.0) ** 2)
    assert made == [6]
    with pytest.raises(TypeError):
        np.add.reduce(one)


def test_what_travels_still_makes_shared_arrays_once():
    one = EachRow(first_codes)
    again = pickle.loads(pickle.dumps(one + one))
    assert again.inputs[0] is again.inputs[1]


def test_questions_see_columns():
    flat = EachRow(lambda part: part.codes[:, 0])
    assert asked(flat, lambda values, weight: values.shape, PART) == (6, 1)
