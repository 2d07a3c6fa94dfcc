"""Numbers as text: the bits come back, in characters that a script can hold, and questions are told once."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quadboost.export.additive import Steps, Tree
from quadboost.export.packing import ALPHABET, packed, text_of_fields


def reader(text):
    """The next n bits of a text, the slow way."""
    word = 0
    for i in range(0, len(text), 2):
        word |= (ALPHABET.index(text[i]) + 91 * ALPHABET.index(text[i + 1])) << 13 * (i // 2)

    def take(n):
        nonlocal word
        found, word = word & ((1 << n) - 1), word >> n
        return found

    return take


@given(st.lists(st.integers(0, 64).flatmap(lambda n: st.tuples(st.integers(0, 2**n - 1), st.just(n)))))
def test_fields_of_any_width_come_back(fields):
    text = text_of_fields(fields)
    assert [(take(n), n) for take in [reader(text)] for _, n in fields] == fields
    assert len(text) <= sum(n for _, n in fields) / 6.5 + 2


def test_no_character_means_anything_in_a_string_or_a_page():
    assert len(ALPHABET) == 91
    assert ALPHABET.isascii()
    assert not set(ALPHABET) & set('"<\\ \n')


def tree(feature, threshold, is_level, values):
    n = len(feature)
    return Tree(
        "tree", np.array(feature), np.array(threshold), np.array(is_level), np.full(n, -1), np.arange(n) % 2 == 0,
        np.array(values, dtype=float)[:, None],
    )  # fmt: skip


def test_questions_of_step_functions_are_not_told_again_and_doubles_keep_their_bits():
    cuts, values = np.array([-0.0, 5e-324, 0.1]), np.array([[-1e308], [1 / 3], [np.pi], [-7.0]])
    steps = Steps("x", 3, cuts, values, np.array([2.5]))
    trees = [
        tree([3, -1, 4, -1, -1], [0.1, 0, 2.0, 0, 0], [False, False, True, False, False], [0, 0.7, 0, -0.2, 1e-9]),
        tree([4, -1, -1], [2.0, 0, 0], [True, False, False], [0, 1.0, 2.0]),
    ]
    found = packed([steps, *trees])
    assert found.questions == [2 * 4 + 1]  # the level; the cut at 0.1 is one of the steps
    take, width = reader(found.bits), (len(found.heads) - 1).bit_length()

    def double():
        low, head = take(52), found.heads[take(width)]
        return struct.unpack("<d", struct.pack("<Q", low | head << 52))[0].hex()

    told = [double() for _ in range(1 + 3 + 4 + 1)]
    assert told == [float(value).hex() for value in (2.0, *cuts, *values.ravel(), 2.5)]
    nodes = []
    for _ in range(8):
        nodes.append((take(2), take(1)) if take(1) else double())
    leaves = [value.hex() for value in (0.7, -0.2, 1e-9, 1.0, 2.0)]
    assert nodes == [(3, 1), leaves[0], (0, 1), *leaves[1:3], (0, 1), *leaves[3:]]
    assert take(64) == 0
