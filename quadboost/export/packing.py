"""The numbers of a model as one text of few characters, which JavaScript unpacks to the same bits.

Fields of any number of bits follow one another, the lowest bit first; two characters hold 13 bits. A double is its 52
bits after the point, and the place of its sign and exponent in a list of those that occur, which are few. A node of a
tree asks what some other node or step function has asked already, mostly: it is the place of its question in a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .additive import Steps, Term, Tree

# All of ASCII that can be seen, but for what strings and scripts take for something else.
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"<\\')
DIGIT_BITS = 13  # 91 * 91 is a little more than 2^13
POINT = 52  # bits of a double after the point

Field = tuple[int, int]  # value, and how many bits it has


class Packed(NamedTuple):
    """What JavaScript unpacks: `heads` are signs and exponents; `questions` 2 times a feature, and 1 for a level."""

    heads: list[int]
    questions: list[int]
    bits: str


def packed(terms: list[Term]) -> Packed:
    """The numbers of all terms: thresholds of the questions that no step function asks, then term by term."""
    steps = [term for term in terms if isinstance(term, Steps)]
    trees = [term for term in terms if isinstance(term, Tree)]
    asked = dict.fromkeys(question for tree in trees for question in _questions(tree))
    for step in steps:
        for cut in step.cuts.tolist():
            asked.pop((step.feature, False, cut), None)
    of_trees = list(asked)
    every = of_trees + [(step.feature, False, cut) for step in steps for cut in step.cuts.tolist()]
    number_of = {question: i for i, question in enumerate(every)}
    doubles = [np.array([threshold for _, _, threshold in of_trees]), *map(_step_doubles, steps)]
    doubles += [tree.values[tree.leaves].ravel() for tree in trees]
    words = np.concatenate(doubles).astype(np.float64).view(np.uint64)
    heads = np.unique(words >> np.uint64(POINT))
    width = width_of(len(heads))
    words = np.searchsorted(heads, words >> np.uint64(POINT)).astype(np.uint64) << np.uint64(POINT) | (
        words & np.uint64((1 << POINT) - 1)
    )
    n_alone = sum(map(len, doubles[: 1 + len(steps)]))
    fields = [(word, POINT + width) for word in words[:n_alone].tolist()]
    values = iter(words[n_alone:].tolist())
    for tree in trees:
        questions = iter(_questions(tree))
        for feature, right in zip(tree.feature.tolist(), tree.missing_right.tolist(), strict=True):
            if feature >= 0:
                fields += [(1, 1), (number_of[next(questions)], width_of(len(every))), (int(right), 1)]
            else:
                fields.append((0, 1))
                fields += [(next(values), POINT + width) for _ in range(tree.values.shape[1])]
    return Packed(heads.tolist(), [2 * feature + is_level for feature, is_level, _ in of_trees], text_of_fields(fields))


def _questions(tree: Tree) -> list[tuple[Any, Any, Any]]:
    """(feature, whether it is for a level, threshold or level) of the nodes that are no leaves."""
    asks = tree.feature >= 0
    return list(zip(*(values[asks].tolist() for values in (tree.feature, tree.is_level, tree.threshold)), strict=True))


def _step_doubles(step: Steps) -> np.ndarray:
    return np.concatenate([step.cuts, step.values.ravel(), step.missing])


def width_of(n: int) -> int:
    """Bits of a place in a list of n."""
    return max(n - 1, 0).bit_length()


def text_of_fields(fields: Iterable[Field]) -> str:
    """Two characters for each 13 bits."""
    each = np.array([*fields], dtype=np.uint64).reshape(-1, 2)
    bits = np.unpackbits(each[:, 0].astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    bits = bits[np.arange(64) < each[:, 1:]]
    bits = np.append(bits, np.zeros(-len(bits) % DIGIT_BITS, np.uint8)).reshape(-1, DIGIT_BITS)
    digits = np.packbits(bits, axis=1, bitorder="little").view("<u2")
    letters = np.frombuffer(ALPHABET.encode("ascii"), np.uint8)
    return letters[np.hstack([digits % len(letters), digits // len(letters)])].tobytes().decode("ascii")
