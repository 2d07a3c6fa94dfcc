"""Parts that this process has."""

from __future__ import annotations

from quadboost.parts.source import InMemory


def test_answers_of_all_parts_are_added_and_what_is_made_of_them_keeps_their_order():
    source = InMemory([[1, 2], [3], [4, 5, 6]])
    assert source.reduce(sum) == 21
    assert source.reduce(len, max) == 3
    assert source.map(len).gather() == [2, 1, 3]
