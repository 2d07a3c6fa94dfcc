"""Bins of nearly equal mass, and what they depend on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quadboost.voters.quantiles import borders_met, quantile_borders


@given(
    mass=st.lists(st.sampled_from([1, 1, 1, 2, 3, 7, 40]), min_size=2, max_size=60),
    data=st.data(),
)
def test_borders_that_meet_no_value_within_an_atom_do_not_depend_on_it(mass, data):
    """Taken together, values change no border unless one was met within."""
    before = np.append(0, np.cumsum(mass))
    inner = st.sets(st.sampled_from(before[1:-1].tolist())) if len(before) > 2 else st.just(set())
    atoms = np.array(sorted({0, *data.draw(inner), before[-1]}))
    is_dense = np.diff(np.searchsorted(before, atoms)) > 1
    if len(atoms) < 3:
        return
    n_bins = data.draw(st.integers(1, len(atoms) - 2))
    if (np.diff(atoms)[is_dense] > before[-1] / n_bins).any():
        return
    if np.isin(borders_met(atoms, is_dense, n_bins), atoms).all():
        np.testing.assert_array_equal(quantile_borders(atoms, n_bins), quantile_borders(before, n_bins))


def test_no_bin_of_several_values_is_heavier_than_it_must_be():
    """By trying all ways to divide a few values."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        mass = rng.integers(1, 6, 8)
        before = np.append(0, np.cumsum(mass))
        if (mass > before[-1] / 3).any():
            continue  # a value that has its own bin
        found = np.diff(np.concatenate([[0], quantile_borders(before, 3), before[-1:]])).max()
        known = min(
            max(before[i], before[j] - before[i], before[-1] - before[j]) for j in range(2, 8) for i in range(1, j)
        )
        assert found == known
