"""The sample of rows in parts is that of all rows at once."""

from __future__ import annotations

import pickle
from operator import attrgetter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quadboost.data.sampling import sample
from quadboost.parts.sampling import OfTargets, are_whole, sample_of_parts
from quadboost.parts.source import Coded, InMemory
from quadboost.voters.thresholds import candidate_voters


class Observed(InMemory):
    """Sends questions and answers through pickle, as if to others, and notes the bytes of answers."""

    def __init__(self, parts):
        super().__init__(parts)
        object.__setattr__(self, "sizes", [])

    def reduce(self, question, add=lambda one, other: one + other):
        answers = [pickle.dumps(pickle.loads(pickle.dumps(question))(part)) for part in self.parts]
        self.sizes.append(max(map(len, answers)))
        return InMemory([*map(pickle.loads, answers)]).reduce(lambda answer: answer, add)


def problem(seed, m, n_values, repeats):
    """Codes, targets, weights and repeats of rows; the fewer values, the more of them are equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (m, 3)).astype(float)
    y = np.column_stack([np.sign(X[:, 0] - X[:, 1] + 0.5), rng.choice([-1.0, 1.0], m)])
    repeats = {"none": None, "whole": rng.integers(1, 6, m).astype(float), "real": rng.choice([0.3, 1.7], m)}[repeats]
    weight = None if repeats is None else repeats * np.where(y[:, 0] > 0, 2.0, 1.0)
    return candidate_voters(X).code(X), y, weight, repeats


def in_parts(arrays, n_parts, seed):
    at = np.sort(np.random.default_rng(seed).integers(0, len(arrays[0]) + 1, n_parts - 1))
    split = [[None] * n_parts if array is None else np.split(array, at) for array in arrays]
    parts = [*map(Coded, *split)]
    return Observed([part if len(part.y) else Coded(part.codes, part.y) for part in parts])


def sampled(source, m, most):
    targets = attrgetter("y")
    keyed = OfTargets(targets, source.reduce(are_whole, bool.__and__), seed=3)
    return sample_of_parts(source, keyed, m, most, targets)


def rows_of(found):
    """The rows of a sample by their keys, and how many copies of each."""
    keys, first, number = np.unique(found.keys, return_index=True, return_inverse=True)
    worth = np.zeros(len(found.y)) if found.weight is None else found.weight / found.copies
    return keys, found.codes[first], found.y[first], worth[first], np.bincount(number, found.copies)


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 3_000),
    n_values=st.sampled_from([2, 5, 1_000]),
    n_parts=st.integers(1, 7),
    most=st.sampled_from([1, 20, 500, 50_000]),
    repeats=st.sampled_from(["none", "whole", "real"]),
)
def test_the_sample_of_parts_is_that_of_all_rows(seed, m, n_values, n_parts, most, repeats):
    codes, y, weight, repeats = problem(seed, m, n_values, repeats)
    known = sample(codes, y, weight, repeats, most, 3)
    found = sampled(in_parts((codes, y, weight, repeats), n_parts, seed), m, most)
    assert found.copies.sum() == known.copies.sum() <= most
    for array, other in zip(rows_of(found), rows_of(known), strict=True):
        np.testing.assert_array_equal(array, other)


def test_the_sample_takes_three_passes_of_small_answers():
    m, most = 200_000, 500
    codes, y, *_ = problem(0, m, 1_000, "none")
    source = in_parts((codes, y), 3, 0)
    assert len(sampled(source, m, most).y) == most
    assert len(source.sizes) == 4  # are weights whole; count; keys; the rows
    assert max(source.sizes) < 150_000  # a hundredth of all keys and rows
