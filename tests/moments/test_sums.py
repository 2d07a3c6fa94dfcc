"""Sums over rows: whole numbers that add up whatever their order, and never wrap."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from mixed_table import outputs
from moments_of_parts import TARGETS, WEIGHTS, PartedTable, assert_same_sums

from quadboost.boosting.penalties import auto_strength
from quadboost.data.exact import MOST_ROWS, Extent, Scales, effective_count
from quadboost.moments.moments import column_moments
from quadboost.moments.sums import ColumnSums, MatrixSums, fingerprint
from quadboost.voters.columns import Voters

each_target = pytest.mark.parametrize("target", TARGETS)
each_weight = pytest.mark.parametrize("weight", WEIGHTS)


def sums_of(table, rows=slice(None), scales=None):
    y = table.y.reshape(len(table.y), -1)
    weight = None if table.weight is None else table.weight[rows]
    codes = table.voters.code(table.X[rows])
    return ColumnSums.of(table.voters, codes, y[rows], weight, scales or table.scales())


def added(parts):
    return reduce(lambda one, other: one.combined(other, 1), parts)


# --- what they are ------------------------------------------------------------------------------------------


@pytest.mark.thinned(10)
@each_weight
@each_target
def test_sums_are_those_of_the_outputs_of_voters(target, weight):
    table = PartedTable.random(target, weight)
    found = sums_of(table)
    H, y = outputs(table.voters, table.X), table.y.reshape(len(table.y), -1) - found.origin
    w = np.ones(len(y)) if table.weight is None else table.weight
    close = {"rtol": 0, "atol": 1e-9 * w.sum() * max(1.0, float(np.abs(y).max()) ** 2)}
    np.testing.assert_allclose(found.total_weight, w.sum(), **close)
    np.testing.assert_allclose(found.voter_sum, w @ H, **close)
    np.testing.assert_allclose(found.voter_square, w @ H**2, **close)
    np.testing.assert_allclose(found.target_sum, w @ y, **close)
    np.testing.assert_allclose(found.target_square, w @ y**2, **close)
    np.testing.assert_allclose(found.product_sum, H.T @ (w[:, None] * y), **close)
    for column in range(table.voters.n_columns):
        codes = table.voters.code(table.X)[:, column]
        np.testing.assert_allclose(found.mass_of(column)[: codes.max() + 1], np.bincount(codes, w), **close)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n_parts", [100, pytest.param(1_000, marks=pytest.mark.slow)])
@each_weight
@each_target
def test_sums_of_very_many_parts_are_those_of_the_whole_in_any_order(target, weight, n_parts):
    table = PartedTable.random(target, weight, m=1_500, n_parts=n_parts, seed=2)
    scales = table.scales()
    whole = sums_of(table, scales=Scales.agree([(table.y.reshape(1_500, -1), table.weight)]))
    parts = [pickle.loads(pickle.dumps(sums_of(table, rows, scales))) for rows in table.parts]
    for order in (np.arange(n_parts), np.random.default_rng(0).permutation(n_parts)):
        found = added([parts[i] for i in order])
        assert_same_sums(found, whole)
        assert found.n_rows == whole.n_rows
        assert fingerprint(found) == fingerprint(whole)
    rest = reduce(lambda all_rows, part: all_rows.combined(part, -1), parts[1:60], sums_of(table, scales=scales))
    assert_same_sums(rest, added([parts[0], *parts[60:]]))


@pytest.mark.parametrize("weight", ["real", "tiny", "huge"])
def test_scales_agreed_on_in_any_order_of_parts_are_the_same_scales(weight):
    table = PartedTable.random("real", weight, m=2_500, n_parts=50)
    other = replace(table, parts=table.parts[::-1])
    a, b = sums_of(table, slice(1_000), table.scales()), sums_of(table, slice(1_000, 2_500), other.scales())
    assert_same_sums(a.combined(b, 1), sums_of(table))


def test_a_fingerprint_tells_other_sums():
    table = PartedTable.random("real", "real")
    known = fingerprint(sums_of(table))
    assert fingerprint(sums_of(table)) == known
    for change in ({"y": table.y + 1e-6}, {"weight": table.weight * 1.0001}, {"y": -table.y}):
        assert fingerprint(sums_of(replace(table, **change))) != known


def test_sums_of_other_voters_do_not_add_up():
    table = PartedTable.random("labels", "no weights")
    one = sums_of(table, table.parts[1])
    moved = Voters([cuts + 1e-9 for cuts in table.voters.cuts], table.voters.is_level, table.voters.has_missing)
    with pytest.raises(ValueError, match="moments of different voters; make both with the same voters"):
        one.combined(sums_of(replace(table, voters=moved), table.parts[2]), 1)


# --- very many rows -----------------------------------------------------------------------------------------


def test_2_to_the_31_rows_in_one_table_are_refused():
    table = PartedTable.random("labels", "no weights")
    codes = np.broadcast_to(np.uint8(0), (MOST_ROWS, table.voters.n_columns))
    y = np.broadcast_to(1.0, (MOST_ROWS, 1))
    with pytest.raises(ValueError, match="there are 2147483648 rows; at most 2147483647 can be summed at once: give"):
        ColumnSums.of(table.voters, codes, y, None, table.scales())
    with pytest.raises(ValueError, match="at most 2147483647 can be summed at once"):
        column_moments(table.voters, codes, y, scales=table.scales())


@pytest.mark.parametrize("target", ["labels", "two targets"])
def test_sums_of_more_than_2_to_the_32_rows_do_not_wrap(target):
    """Parts of a table with so many rows agreed on its scales."""
    table = PartedTable.random(target, "no weights")
    n_doubled = 30  # to 3 * 10**11 rows
    known = sums_of(table)
    n_rows = len(table.y) << n_doubled
    found = sums_of(table, scales=replace(known.scales, extent=Extent(n_rows, float(n_rows), 1.0, True)))
    for _ in range(n_doubled):
        found = found.combined(found, 1)
    assert found.n_rows == n_rows
    for name in ("total_weight", "voter_sum", "voter_square", "target_sum", "target_square", "product_sum"):
        doubled = np.float64(2.0**n_doubled) * getattr(known, name)
        np.testing.assert_array_equal(getattr(found, name), doubled, err_msg=name)


def test_labels_that_agreed_on_nothing_add_up_to_fewer_than_2_to_the_31_rows_and_no_further():
    table = PartedTable.random("labels", "no weights")
    known = found = sums_of(table)
    while found.n_rows < MOST_ROWS // 2:
        found = found.combined(found, 1)
        factor = float(found.n_rows // known.n_rows)
        np.testing.assert_array_equal(found.product_sum, factor * known.product_sum)
        np.testing.assert_array_equal(found.target_square, factor * known.target_square)
    with pytest.raises(ValueError, match=r"make them with the same scales, Scales.agree\(parts\)"):
        found.combined(found, 1)


# --- whole weights ------------------------------------------------------------------------------------------


@pytest.mark.thinned(6)
@pytest.mark.parametrize("total", [2**20, 2**24 - 2**10, 2**24 + 2**10, 2**26, 2**30])
@each_target
def test_a_whole_weight_is_a_repetition_also_above_2_to_the_24(target, total):
    """Rows in ten layers: repeated, each layer counts once; weighted, a row weighs as many layers as have it."""
    table = PartedTable.random(target, "no weights")
    m, rng = len(table.y), np.random.default_rng(4)
    n_times = rng.integers(1, 2 * total // m, size=m)
    n_times[0] += total - n_times.sum() if n_times.sum() < total else 0
    weighted = sums_of(replace(table, weight=n_times.astype(float)))
    # All rows n times are the sum of them once, twice, four times and so on, by the digits of n.
    y = table.y.reshape(m, -1)
    scales = Scales.agree([(y, n_times.astype(float))])
    layers = []
    for digit in range(int(n_times.max()).bit_length()):
        rows = np.flatnonzero(n_times >> digit & 1)
        doubled = sums_of(table, rows, scales)
        for _ in range(digit):
            doubled = doubled.combined(doubled, 1)
        layers.append(doubled)
    repeated = added(layers)
    assert_same_sums(repeated, weighted)
    assert weighted.total_weight == n_times.sum() == repeated.n_rows


def test_the_automatic_lambda_does_not_jump_at_2_to_the_24():
    around = 2**24 + np.arange(-50, 50)
    found = [auto_strength("l1", "corrective", effective_count(np.array([n - 7.0, 7.0])), 1.0, 10) for n in around]
    np.testing.assert_allclose(np.diff(found) / found[:-1], -0.5 / around[:-1], rtol=1e-3)


# --- voters given by their outputs --------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 1e6], ids=["near zero", "far from zero"])
def test_sums_of_outputs_add_and_subtract_whatever_their_origins(shift):
    rng = np.random.default_rng(0)
    H, y, weight = np.asfortranarray(rng.normal(size=(60, 4))), rng.normal(size=(60, 2)) + shift, rng.uniform(size=60)

    def sums(rows):
        return MatrixSums.of(np.asfortranarray(H[rows]), y[rows], weight[rows])

    whole, a, b = sums(slice(None)), sums(slice(20)), sums(slice(20, 60))
    both = a.combined(b, 1)
    back = both.combined(b, -1)
    for found, known in ((both, whole), (back, a), (whole.combined(a, -1), b)):
        shifted = known._counted_from(found.origin)
        for name in ("total_weight", "voter_sum", "voter_square", "target_sum", "target_square", "product_sum"):
            np.testing.assert_allclose(getattr(found, name), getattr(shifted, name), rtol=0, atol=1e-8, err_msg=name)
