"""Values in atoms: whatever the parts, the same."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quadboost.parts.atoms import Counts, Values, cuts_by_sample, cuts_within
from quadboost.voters.bins import bin_index

FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.lists(FINITE | st.integers(-9, 9).map(float), max_size=60)
CUTS = VALUES.map(lambda cuts: np.unique(np.array(cuts) + 0.0))


def answer_of(values, cuts=None):
    """As it comes from a part."""
    answer = Values(np.array(values, dtype=float))
    if cuts is not None:
        counted = Counts.none(len(cuts))
        counted.add_values(bin_index([cuts]), *answer)
        answer = counted
    return pickle.loads(pickle.dumps(answer))


def atoms_of(values, cuts=None):
    return answer_of(values, cuts).atoms


def assert_equal(found, known):
    for name in ("least", "largest", "mass"):
        np.testing.assert_array_equal(getattr(found, name), getattr(known, name))


@given(one=VALUES, other=VALUES, cuts=st.none() | CUTS)
def test_atoms_of_parts_are_those_of_all_values(one, other, cuts):
    known = atoms_of(one + other, cuts)
    assert_equal((answer_of(one, cuts) + answer_of(other, cuts)).atoms, known)
    assert known.mass.sum() == len(one + other)
    if cuts is not None:
        assert (np.searchsorted(cuts, known.least) == np.searchsorted(cuts, known.largest)).all()
        assert len(known.mass) <= len(cuts) + 1


@given(values=st.lists(FINITE | st.just(np.nan), max_size=600), cuts=CUTS)
def test_counts_are_those_of_a_naive_search(values, cuts):
    values, mass = np.array(values, dtype=float), np.arange(1, len(values) + 1)
    counts = Counts.none(len(cuts))
    counts.add_values(bin_index([cuts]), values, mass)
    atom = np.where(np.isnan(values), len(cuts) + 1, np.searchsorted(cuts, values))
    for number, (found, (least, largest)) in enumerate(zip(counts.mass, counts.ends, strict=True)):
        inside = values[(atom == number) & ~np.isnan(values)]
        assert found == mass[atom == number].sum()
        assert (least, largest) == (inside.min(initial=np.inf), inside.max(initial=-np.inf))


@given(values=VALUES, n_pieces=st.integers(1, 40))
def test_atoms_are_divided_into_single_values_in_a_few_passes(values, n_pieces):
    atoms, n_passes = atoms_of(values, np.empty(0)), 0
    while atoms.is_dense.any():
        low, high = ranges = atoms.ranges(atoms.is_dense)
        inside = [value for value in values if any((low <= value) & (value <= high))]
        atoms = atoms.opened(atoms.is_dense, atoms_of(inside, cuts_within(ranges, n_pieces)))
        n_passes += 1
    assert_equal(atoms, atoms_of(values))
    assert n_passes <= min(60, 64 / np.log2(max(n_pieces // 2, 2)) + 1)  # by the bits of a double


@given(sample=VALUES, n_cuts=st.integers(1, 40))
def test_values_that_are_heavy_in_a_sample_are_atoms_of_their_own(sample, n_cuts):
    atoms = atoms_of(sample)
    cuts, alone = cuts_by_sample(atoms, n_cuts)
    assert len(cuts) <= 2 * n_cuts
    found = atoms_of(sample, cuts)
    assert np.isin(alone, found.least[~found.is_dense]).all()
    assert np.isin(atoms.least[atoms.mass > 2 * len(sample) / n_cuts], alone).all()
