"""Counts of keys in atoms: whatever the parts, the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quadboost.parts.atoms import Atoms

KEYS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=60)


def atoms_of(keys):
    keys = np.array(sorted(keys), dtype=np.int64)
    return Atoms(keys, keys, np.ones(len(keys), np.int64))


@given(one=KEYS, other=KEYS, most=st.integers(2, 40))
def test_atoms_of_parts_are_those_of_all_keys(one, other, most):
    known = atoms_of(one + other).within(most)
    found = atoms_of(one).within(most).joined(atoms_of(other).within(most)).within(most)
    assert found.shift == known.shift
    for own, expected in zip(
        (found.least, found.largest, found.mass), (known.least, known.largest, known.mass), strict=True
    ):
        np.testing.assert_array_equal(own, expected)
    assert len(known.mass) <= most
    assert (known.largest[:-1] < known.least[1:]).all()


@given(keys=KEYS, most=st.integers(2, 40))
def test_an_atom_that_is_divided_leaves_the_others_as_they_are(keys, most):
    atoms = atoms_of(keys).within(most)
    while atoms.is_dense.any():
        low, high = atoms.ranges(atoms.is_dense)
        inside = [key for key in keys if any(low <= key) and any((low <= key) & (key <= high))]
        divided = atoms.opened(atoms.is_dense, atoms_of(inside).within(2, (low, high)))
        assert len(divided.mass) > len(atoms.mass)
        atoms = divided
    each, count = np.unique(np.array(keys, dtype=np.int64), return_counts=True)
    np.testing.assert_array_equal(atoms.least, each)
    np.testing.assert_array_equal(atoms.mass, count)
