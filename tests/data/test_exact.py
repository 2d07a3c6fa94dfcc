"""Sums over rows that are the same bits in any order, with weights or with repetitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quadboost.data.exact import MOST_ROWS, Extent, Scales, effective_count, exact_mean, exact_quantiles

# Below 1e-200 the fixed point itself would be too small for a double.
elements = st.floats(-1e6, 1e6).map(lambda value: value if abs(value) > 1e-200 else 0.0)
values = arrays(float, st.shared(st.integers(1, 30), key="m"), elements=elements)
counts = arrays(int, st.shared(st.integers(1, 30), key="m"), elements=st.sampled_from([1, 2, 3, 7, 100, 4095]))
weights = arrays(float, st.shared(st.integers(1, 30), key="m"), elements=st.floats(1e-6, 1e6))


def fixed_point(value, weight=None):
    """Integers, and what 1 stands for."""
    extent, largest = Extent.of(len(value), weight), float(np.abs(value).max())
    return extent.fixed_point(value, weight, largest), extent.unit(largest)


def rounded_weights(weight):
    return Extent.of(len(weight), weight).round(weight)


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
def test_an_integer_weight_is_a_repetition(value, count):
    assert exact_sum(value, count.astype(float)) == exact_sum(np.repeat(value, count))


@given(values, weights | st.none())
def test_twice_any_partial_sum_fits_in_64_bits(value, weight):
    integers, _ = fixed_point(np.abs(value), weight)
    assert 2 * sum(integers.tolist()) < 2**63


whole_weights = arrays(float, st.shared(st.integers(1, 30), key="m"), elements=st.integers(1, 2**34).map(float))


@given(values, weights | whole_weights)
def test_what_is_lost_is_tiny_whatever_the_weights(value, weight):
    integers, scale = fixed_point(value, weight)
    extent, largest = Extent.of(len(weight), weight), Fraction(float(np.abs(value).max()))
    # Weights that count rows have 53 bits for each row, or 61 less those of their sum; others have as many in all.
    least = max(Fraction(1, 2**53), Fraction(extent.total) / 2**60)
    for integer, x, w in zip(integers.tolist(), value.tolist(), weight.tolist(), strict=True):
        lost = abs(integer * Fraction(scale) - Fraction(x) * Fraction(w))  # exactly: rounding would be larger
        assert lost <= (least * Fraction(w) if extent.are_repeats else Fraction(extent.largest) / 2**40) * largest


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


# --- what the parts of a table agree on ---------------------------------------------------------------------


def parts_of(y, weight, cuts):
    """Rows in parts that begin at the given ones; some may be empty."""
    ends = zip([0, *sorted(cuts)], [*sorted(cuts), len(y)], strict=True)
    return [(y[a:b], None if weight is None else weight[a:b]) for a, b in ends]


@given(values, weights)
def test_the_scales_of_labels_are_known_beforehand(y, weight):
    labels = np.where(y[:, None] > [0.0, 1.0], 1.0, -1.0)
    for each in (None, weight):
        assert Scales.of_labels(Extent.of(len(y), each), 2) == Scales.agree([(labels, each)])


@given(
    y=arrays(float, (20, 2), elements=elements),
    weight=st.none()
    | arrays(float, 20, elements=st.integers(1, 99).map(float))
    | arrays(float, 20, elements=st.floats(1e-6, 1e6)),
    cuts=st.lists(st.integers(0, 20), max_size=5),
    shift=st.sampled_from([0.0, 1e9]),
)
def test_parts_agree_on_the_scales_of_the_whole(y, weight, cuts, shift):
    y = y + shift
    whole, parts = Scales.agree([(y, weight)]), Scales.agree(parts_of(y, weight, cuts))
    assert parts.origin == whole.origin
    assert parts.largest == whole.largest
    assert parts.extent.is_whole == whole.extent.is_whole
    np.testing.assert_array_equal(parts.units, whole.units)
    np.testing.assert_array_equal(parts.square_units, whole.square_units)
    if weight is not None:  # the sum of weights may differ in its last bit, but no weight may
        np.testing.assert_array_equal(parts.extent.round(weight), whole.extent.round(weight))


def test_the_extent_of_parts_adds_up():
    weight = np.array([1.0, 5.0, 2.0])
    parts = Extent.of(2, None) + Extent.of(3, weight) + Extent.of(0, weight[:0])
    assert parts == Extent(5, 10.0, 5.0, True)
    assert not (parts + Extent.of(1, np.array([0.5]))).is_whole


def test_an_origin_is_only_for_targets_far_from_zero():
    labels = np.array([[-1.0], [1.0], [1.0]])
    assert Scales.agree([(labels, None)]).origin == (0.0,)
    far = Scales.agree([(np.column_stack([labels, labels + 1e6]), None)])
    assert far.origin[0] == 0.0
    assert far.origin[1] == pytest.approx(1e6 + 1 / 3)
    assert far.largest[1] < 2.0


def test_the_mean_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    value, weight = rng.normal(size=1_000) * 10.0 ** rng.integers(-8, 8, size=1_000), rng.uniform(size=1_000)
    order = rng.permutation(1_000)
    for weights in (None, weight):
        mean = exact_mean(value, weights)
        assert mean == exact_mean(value[order], None if weights is None else weights[order])
        assert mean == pytest.approx(np.average(value, weights=weights), rel=1e-9)


# --- weights as repetitions, however large ------------------------------------------------------------------


def test_a_whole_weight_is_a_repetition_above_2_to_the_24():
    value = np.random.default_rng(0).normal(size=5)
    count = np.array([2**24 + 1, 3, 2**24 - 1, 1, 12_345_677])
    exact = sum(Fraction(float(v)) * int(n) for v, n in zip(value, count, strict=True))
    weighted = exact_sum(value, count.astype(float))
    # 45 million rows, without their memory: ten groups of equal rows that agreed on their scales.
    extent = Extent.of(int(count.sum()), None)
    largest = float(np.abs(value).max())
    integers = extent.fixed_point(value, None, largest)
    repeated = sum(int(i) * int(n) for i, n in zip(integers, count, strict=True)) * Fraction(extent.unit(largest))
    assert weighted == repeated
    assert float(weighted) == pytest.approx(float(exact), rel=1e-9)
    np.testing.assert_array_equal(rounded_weights(count.astype(float)), count)


@pytest.mark.parametrize("total", [2**24, 2**31, 2**32, 2**40])
def test_the_effective_count_does_not_jump(total):
    """A total weight that passes a limit counts as many examples as before."""
    below, above = (effective_count(np.array([total / 2, total / 2 + step])) for step in (-1.0, 1.0))
    assert (below, above) == (total - 1.0, total + 1.0)


def test_the_effective_count_of_uneven_weights():
    assert effective_count(np.full(7, 0.3)) == pytest.approx(7.0)
    assert effective_count(np.array([0.5, 1e-9, 1e-9])) == pytest.approx(1.0)
    assert effective_count(np.array([1.0, 2.0, 4.0])) == 7.0  # repetitions
    weight = np.random.default_rng(0).uniform(size=1_000)
    assert effective_count(weight[::-1]) == effective_count(weight)
    assert effective_count(weight * 2.0**30) == effective_count(weight)


def test_sums_are_right_where_weights_are_more_rows_than_a_table_can_have():
    weight = np.array([2.0**40, 2.0**41, 3.0])
    assert not Extent.of(3, weight).are_repeats
    assert Extent.of(3, np.array([MOST_ROWS - 3.0, 1.0, 1.0])).are_repeats
    value = np.array([1.0, -1.0, 1.0])
    assert float(exact_sum(value, weight)) == pytest.approx(3 - 2.0**40, rel=1e-12)


@pytest.mark.parametrize("share", [1e-9, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("kind", ["none", "whole", "real"])
def test_quantiles_of_parts_are_those_of_sorted_values(kind, share):
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.normal(size=90), rng.integers(-2, 3, 90), np.zeros(90), 1e300 * rng.normal(size=90)])
    weight = {"none": None, "whole": rng.integers(1, 5, 90).astype(float), "real": rng.exponential(size=90)}[kind]
    found = exact_quantiles(
        lambda question, add: add(
            question(y[:7], None if weight is None else weight[:7]),
            question(y[7:], None if weight is None else weight[7:]),
        ),
        share,
    )
    for values, quantile in zip(y.T, found, strict=True):
        order = np.argsort(values)
        mass = np.cumsum(np.ones(90) if weight is None else weight[order])
        assert quantile == values[order[np.searchsorted(mass, share * mass[-1])]]
