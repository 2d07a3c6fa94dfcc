"""The sample of rows in parts is that of all rows at once, and so are the trees that are grown on it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadboost.boosting.losses import make_loss
from quadboost.data.exact import exact_mean
from quadboost.data.sampling import sample
from quadboost.fitting.growth import Growth, grow_on, grow_trees
from quadboost.parts import sampling as module
from quadboost.parts.sampling import sample_of_parts
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
    return X, y, weight, repeats


def in_parts(arrays, n_parts, seed):
    at = np.sort(np.random.default_rng(seed).integers(0, len(arrays[0]) + 1, n_parts - 1))
    split = [[None] * n_parts if own is None else np.split(own, at) for own in arrays]
    parts = [*map(Coded, *split)]
    return Observed([part if len(part.y) else Coded(part.codes, part.y) for part in parts])


def rows_of(found):
    """The rows of a sample by their keys, and how many copies of each."""
    keys, first, own = np.unique(found.keys, return_index=True, return_inverse=True)
    worth = np.zeros(len(found.y)) if found.weight is None else found.weight / found.copies
    return keys, found.codes[first], found.y[first], worth[first], np.bincount(own, found.copies)


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 3_000),
    n_values=st.sampled_from([2, 5, 1_000]),
    n_parts=st.integers(1, 7),
    most=st.sampled_from([1, 20, 500, 5_000]),
    repeats=st.sampled_from(["none", "whole", "real"]),
    atoms=st.sampled_from([1, 50, 1 << 20]),
)
def test_the_sample_of_parts_is_that_of_all_rows(seed, m, n_values, n_parts, most, repeats, atoms):
    X, y, weight, repeats = problem(seed, m, n_values, repeats)
    codes = candidate_voters(X).code(X)
    known = sample(codes, y, weight, repeats, most, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ATOMS", atoms)
        found = sample_of_parts(in_parts((codes, y, weight, repeats), n_parts, seed), most, 3)
    assert found.copies.sum() == known.copies.sum() <= max(most, 0)
    for own, other in zip(rows_of(found), rows_of(known), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("repeats", ["none", "whole", "real"])
def test_trees_grown_on_the_sample_of_parts_are_those_of_all_rows(repeats):
    X, y, weight, repeats = problem(0, 2_000, 30, repeats)
    voters, growth = candidate_voters(X), Growth(5, 8, growth_rows=700)
    codes, mean = voters.code(X), np.array([exact_mean(target, weight) for target in y.T])
    loss = make_loss("squared", y, weight, mean)
    known = grow_trees(voters, codes, y, weight, loss, growth, repeats=repeats)
    own = sample_of_parts(in_parts((codes, y, weight, repeats), 4, 0), growth.growth_rows, growth.seed)
    found = grow_on(own, mean, voters, loss, growth)
    for name, array in known.trees.arrays().items():
        np.testing.assert_array_equal(found.trees.arrays()[name], array)
    np.testing.assert_array_equal(found.step, known.step)
    assert found.r2 == known.r2


def test_the_sample_takes_few_passes_of_small_answers(monkeypatch):
    monkeypatch.setattr(module, "MOST_ATOMS", 1 << 12)
    X, y, *_ = problem(0, 60_000, 1_000, "none")
    source = in_parts((candidate_voters(X).code(X), y), 5, 0)
    sample_of_parts(source, 200, 0)
    assert len(source.sizes) == 4  # are weights whole; count, and count again; the rows
    assert max(source.sizes) < 1.1 * 3 * 8 * (1 << 12)
