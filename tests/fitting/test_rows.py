"""Rows as training sees them: some of them taken, and how many examples they are worth."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.fitting.problem import Rows

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)[:, None]
WEIGHT = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
REPEATS = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 4.0])


@pytest.mark.parametrize(
    "numbers",
    [np.array([4, 0, 4]), np.arange(6) % 2 == 0, slice(1, 3), np.array([], dtype=int)],
    ids=["numbers, one twice", "mask", "slice", "none"],
)
def test_some_rows_are_taken_with_all_that_is_theirs(numbers):
    taken = Rows(X, Y, WEIGHT, REPEATS).take(numbers)
    for found, known in zip((taken.X, taken.y, taken.weight, taken.repeats), (X, Y, WEIGHT, REPEATS), strict=True):
        np.testing.assert_array_equal(found, known[numbers])


def test_rows_without_weights_have_none_when_taken():
    taken = Rows(X, Y).take(np.array([1, 2]))
    assert taken.weight is None
    assert taken.repeats is None
    assert taken.n_examples == 2.0


def test_rows_are_worth_their_repetitions_not_the_weight_of_their_class():
    assert Rows(X, Y).n_examples == 6.0
    assert Rows(X, Y, WEIGHT).n_examples == 6.0
    assert Rows(X, Y, WEIGHT * REPEATS, REPEATS).n_examples == REPEATS.sum()
    assert Rows(X, Y, WEIGHT, WEIGHT).n_examples == pytest.approx(WEIGHT.sum() ** 2 / (WEIGHT**2).sum())


def test_repetitions_are_worth_the_rows_they_stand_for():
    repeated = Rows(X, Y).take(np.repeat(np.arange(6), REPEATS.astype(int)))
    assert Rows(X, Y, REPEATS, REPEATS).n_examples == repeated.n_examples
