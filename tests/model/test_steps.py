"""From voters to step functions."""

import numpy as np
import pytest

from quadboost import Ensemble
from quadboost.model.steps import around_levels, cut_out, shapes_of
from quadboost.voters.columns import MISSING


def test_values_are_the_sums_of_what_the_voters_say():
    threshold, weight = np.array([2.0, -1.0, 0.0]), np.array([[1.0], [10.0], [100.0]])
    kind = np.array([0, 0, MISSING], dtype=np.uint8)
    ((feature, cuts, values),) = shapes_of(np.full(3, 7, np.int32), kind, threshold, weight, {})
    assert (feature, cuts.tolist()) == (7, [-1.0, 2.0])
    assert values[:, 0].tolist() == [-111.0, -91.0, -89.0, 100.0]  # below, between, above, missing


def test_a_level_without_a_voter_is_worth_as_much_as_one_never_seen():
    cuts, row = around_levels(np.array([1.0, 2.0, 5.0]))
    level = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert row[np.searchsorted(cuts, level)].tolist() == [0, 0, 1, 2, 0, 0, 3, 0]


def test_values_are_cut_out_one_by_one():
    cuts, level = cut_out({3.0: 0, 4.0: 1, 0.0: 2})
    for value, expected in ((3.0, 0), (4.0, 1), (0.0, 2), (-0.0, 2), (3.5, -1), (np.nextafter(4, 9), -1), (-1e300, -1)):
        assert level[np.searchsorted(cuts, value)] == expected


@pytest.mark.parametrize("n_features", [1, 3])
def test_without_voters_there_are_no_shapes(n_features):
    assert Ensemble([], [], [], 1.0, n_features=n_features)._shapes == []
