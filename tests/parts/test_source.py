"""Rows in parts: questions, and what is made of parts."""

from __future__ import annotations

import pickle
from functools import partial
from operator import mul

import numpy as np
import pytest

from quadboost.parts.source import Coded, InMemory, Seen, is_source

NUMBERS = InMemory([1, 2, 3])


def test_questions_go_to_every_part_and_answers_add_up():
    assert NUMBERS.reduce(partial(mul, 2)) == 12
    assert NUMBERS.reduce(str, lambda one, other: one + other) == "123"


def test_what_is_made_of_parts_is_a_source_too():
    assert NUMBERS.map(str).gather() == ["1", "2", "3"]
    seen = Seen(NUMBERS, partial(mul, 10))
    assert seen.reduce(partial(mul, 2)) == 120
    assert seen.map(str).gather() == ["10", "20", "30"]
    assert seen.gather() == [10, 20, 30]


def test_composed_questions_can_be_sent_to_other_processes():
    asked = []

    class Sent(InMemory):
        def reduce(self, question, add=None):
            asked.append(pickle.loads(pickle.dumps(question)))

    Seen(Sent([]), partial(mul, 10)).reduce(partial(mul, 2))
    assert asked[0](3) == 60


def test_labels_are_targets_of_each_class_against_the_rest():
    codes = np.zeros((3, 1), np.uint8)
    assert Coded(codes, np.array([0, 1, 0]), n_classes=2).y.tolist() == [[-1], [1], [-1]]
    assert Coded(codes, np.array([0, 2, 1]), n_classes=3).y.tolist() == [[1, -1, -1], [-1, -1, 1], [-1, 1, -1]]
    assert Coded(codes, np.array([[0.5], [2.0], [1.0]])).y.tolist() == [[0.5], [2.0], [1.0]]


@pytest.mark.parametrize("table", [np.zeros((2, 2)), [[1, 2]], {"a": [1]}, None])
def test_tables_are_no_sources(table):
    assert not is_source(table)
    assert is_source(NUMBERS)
