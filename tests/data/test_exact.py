"""Sums over rows that are the same bits in any order, with weights or with repetitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quadboost.data.exact import fixed_point, rounded_weights

# Below 1e-200 the fixed point itself would be too small for a double.
elements = st.floats(-1e6, 1e6).map(lambda value: value if abs(value) > 1e-200 else 0.0)
values = arrays(float, st.shared(st.integers(1, 30), key="m"), elements=elements)
counts = arrays(int, st.shared(st.integers(1, 30), key="m"), elements=st.sampled_from([1, 2, 3, 7, 100, 4095]))
weights = arrays(float, st.shared(st.integers(1, 30), key="m"), elements=st.floats(1e-6, 1e6))


def exact_sum(value, weight=None):
    integers, scale = fixed_point(value, weight)
    assert integers.dtype == np.int64
    return Fraction(int(integers.sum())) * Fraction(scale)


@given(arrays(float, st.integers(1, 50), elements=st.integers(-(2**31), 2**31).map(float)))
def test_integers_are_exact(value):
    integers, scale = fixed_point(value)
    np.testing.assert_array_equal(integers * scale, value)


@given(
    value=arrays(float, 20, elements=st.integers(-9, 9).map(float)),
    weight=arrays(float, 20, elements=st.integers(1, 99).map(float)),
)
def test_integers_with_integer_weights_are_exact(value, weight):
    integers, scale = fixed_point(value, weight)
    np.testing.assert_array_equal(integers * scale, value * weight)


@given(values, weights | st.none(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(value, weight, random):
    order = list(range(len(value)))
    random.shuffle(order)
    integers, scale = fixed_point(value, weight)
    permuted, same_scale = fixed_point(value[order], None if weight is None else weight[order])
    assert scale == same_scale
    np.testing.assert_array_equal(permuted, integers[order])


@given(values, counts)
@settings(max_examples=300)
def test_an_integer_weight_is_a_repetition(value, count):
    assert exact_sum(value, count.astype(float)) == exact_sum(np.repeat(value, count))


@given(values, weights | st.none())
def test_twice_any_partial_sum_fits_in_64_bits(value, weight):
    integers, _ = fixed_point(np.abs(value), weight)
    assert 2 * sum(integers.tolist()) < 2**63


@given(values, weights)
def test_what_is_lost_is_tiny_whatever_the_weights(value, weight):
    integers, scale = fixed_point(value, weight)
    largest = np.abs(value).max() * weight.max()
    np.testing.assert_allclose(integers * scale, value * weight, rtol=0, atol=largest * 2.0**-40)


def test_what_is_lost_of_a_million_rows_is_tiny():
    value = np.random.default_rng(0).normal(size=1_000_000)
    integers, scale = fixed_point(value)
    assert np.abs(integers * scale - value).max() <= 2.0**-40 * np.abs(value).max()


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-30, 1e30, 1e290])
def test_the_scale_of_the_values_does_not_matter(size):
    value = np.array([1.0, -0.25, 0.5]) * size
    integers, scale = fixed_point(value)
    np.testing.assert_allclose(integers * scale, value, rtol=1e-15)


@given(weights, st.randoms(use_true_random=False))
def test_sums_of_rounded_weights_are_exact_in_any_order(weight, random):
    rounded = rounded_weights(weight)
    np.testing.assert_allclose(rounded, weight, rtol=0, atol=2.0**-45 * weight.sum())
    order = list(range(len(weight)))
    random.shuffle(order)
    exact = 2 * sum(map(Fraction, rounded.tolist()))
    assert Fraction(2 * sum(rounded[order].tolist())) == exact
    np.testing.assert_array_equal(rounded_weights(weight[order]), rounded[order])


@given(counts)
def test_whole_weights_are_not_rounded(count):
    np.testing.assert_array_equal(rounded_weights(count.astype(float)), count)
