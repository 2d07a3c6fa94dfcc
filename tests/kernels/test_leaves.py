"""Sums at leaves, steps without a row and falls of squares, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.data.exact import Extent
from quadboost.kernels.leaves import largest_of, leaf_sums, square_falls, steps_of_others


def rows(seed=0, m=200, k=2, n_nodes=7):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_nodes, m).astype(np.uint32), rng.normal(size=(m, k)), rng.random((m, k)) + 0.1


@pytest.mark.parametrize("scale", [1.0, 1e-300, 5e-324, 1e150])
@pytest.mark.parametrize("weights", ["none", "whole", "any"])
def test_sums_at_leaves_are_those_of_fixed_point_numbers(scale, weights):
    node, value, _ = rows()
    value = np.rint(value * 5) * scale if scale == 5e-324 else value * scale
    rng = np.random.default_rng(1)
    weight = {"none": None, "whole": rng.integers(0, 5, len(node)) * 1.0, "any": rng.random(len(node))}[weights]
    extent, largest = Extent.of(len(node), weight), np.zeros(2)
    largest_of(value, largest)
    assert np.array_equal(largest, np.abs(value).max(axis=0))
    bits = np.array([extent.value_bits(top) for top in largest.tolist()])
    found, want = np.zeros((7, 2), np.int64), np.zeros((7, 2), np.int64)
    leaf_sums(node, value, bits, *extent.factor_and_count(weight), found)
    for column in range(2):
        np.add.at(want[:, column], node, extent.fixed_point(value[:, column], weight, largest[column]))
    assert np.array_equal(found, want)


@pytest.mark.parametrize("x", [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 2.0**51 + 0.5, 2.0**52 + 1, -(2.0**53)])
def test_halves_are_rounded_to_even_numbers(x):
    found, none = np.zeros((1, 1), np.int64), np.empty(0)
    leaf_sums(np.zeros(1, np.uint32), np.array([[x]]), np.zeros(1, np.int64), none, none.astype(np.int64), found)
    assert found[0, 0] == round(x)


def test_a_row_has_no_part_in_its_step():
    node, pull, bend = rows(m=12)
    node[0] = 6
    node[1:] %= 6  # row 0 is alone: without it there is no step
    weight = np.random.default_rng(2).random(12) + 0.5
    sums = [np.zeros((7, 2)), np.zeros((7, 2))]
    for values, total in zip((pull, bend), sums, strict=True):
        np.add.at(total, node, weight[:, None] * values)
    step = np.empty_like(pull)
    steps_of_others(node, pull, bend, *sums, weight, 1e-9, 0.1, step)
    for row in range(12):
        others = (node == node[row]) & (np.arange(12) != row)
        top, bottom = ((weight[others, None] * values[others]).sum(axis=0) for values in (pull, bend))
        assert step[row] == pytest.approx(0.1 * top / bottom if others.any() else np.zeros(2), abs=1e-12)
    assert not step[0].any()


def test_squares_fall_by_their_difference():
    _, before, after = rows()
    fall = np.empty((len(before), 3))
    square_falls(before, after, fall[:, 1])
    assert fall[:, 1] == pytest.approx((before**2 - after**2).sum(axis=1))
