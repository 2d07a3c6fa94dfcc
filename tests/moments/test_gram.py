"""Columns of the Gram matrix equal H' W H, whatever was asked before and however little memory there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed_table import N_LEVELS, mixed_table, outputs, targets

import quadboost.common.threads
import quadboost.moments.gram
from quadboost import QuadBoostClassifier, moments_from_matrix
from quadboost.moments.gram import GramStore
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

THRESHOLDS = [1, 5, 300, "all"]  # codes of one byte and of two


def problem(thresholds, weight=None, m=400, **options):
    """Moments of a mixed table, and the outputs of its voters."""
    X = mixed_table(m)
    stumps = candidate_voters(X, weight, thresholds=thresholds, n_levels=N_LEVELS)
    moments = column_moments(stumps, stumps.code(X), targets(X), weight, **options)
    return moments, outputs(stumps, X)


def columns(moments, order=None):
    voters = np.arange(moments.n_voters) if order is None else order
    found = np.empty((moments.n_voters, moments.n_voters))
    for voter in voters:
        found[voter] = moments.gram.column(int(voter))
    return found


@pytest.mark.parametrize("cache_bytes", [1, 20_000, 1 << 30])
@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_columns_of_unweighted_rows_are_exact(thresholds, cache_bytes):
    moments, H = problem(thresholds, cache_bytes=cache_bytes)
    assert moments.gram.column(0).dtype == np.int32
    order = np.random.default_rng(0).permutation(moments.n_voters)
    np.testing.assert_array_equal(columns(moments, order), H.T @ H)


def test_columns_with_codes_of_four_bytes_are_exact():
    values = np.random.default_rng(0).permutation(70_000).astype(float)
    X = np.column_stack([np.append(values, np.nan), np.arange(70_001) % 3])
    stumps = candidate_voters(X, thresholds="all")
    codes = stumps.code(X)
    assert codes.dtype == np.uint32
    moments = column_moments(stumps, codes, np.ones(len(X)))
    assert moments.n_voters == 70_000 + 2
    for voter in (35_000, 34_998, 69_999, 70_000, 70_001, 0):
        feature, votes = stumps.votes(voter)
        h = votes[codes[:, feature]]
        # The other voters of the first feature change sign one row after another.
        below = np.cumsum(h[np.argsort(X[:, 0])][:69_999])
        present = h[:-1].sum()
        known = [*(present - 2 * below), h[-1] - present, *(h @ np.sign(X[:, 1] - t) for t in (0.5, 1.5))]
        np.testing.assert_array_equal(moments.gram.column(voter), known)


@pytest.mark.parametrize("cache_bytes", [1, 1 << 30])
@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_columns_with_whole_weights_are_exact(thresholds, cache_bytes):
    weight = np.random.default_rng(1).integers(1, 9, size=400).astype(float)
    moments, H = problem(thresholds, weight, cache_bytes=cache_bytes)
    order = np.random.default_rng(0).permutation(moments.n_voters)
    np.testing.assert_array_equal(columns(moments, order), H.T @ (weight[:, None] * H))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_columns_with_real_weights_are_close_and_do_not_depend_on_what_was_asked_before(scale):
    weight = np.random.default_rng(1).uniform(0.1, 2, size=400) * scale
    moments, H = problem("all", weight)
    found = columns(moments)
    known = H.T @ (weight[:, None] * H)
    np.testing.assert_allclose(found, known, rtol=0, atol=1e-12 * weight.sum())
    np.testing.assert_array_equal(found, found.T)
    order = np.random.default_rng(0).permutation(moments.n_voters)
    for cache_bytes in (1, 1 << 30):
        np.testing.assert_array_equal(columns(problem("all", weight, cache_bytes=cache_bytes)[0], order), found)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("n_threads", [2, 4])
def test_threads_give_the_same_bits(n_threads, weighted, monkeypatch):
    monkeypatch.setattr(quadboost.common.threads, "STEPS_FOR_THREADS", 0)
    weight = np.random.default_rng(1).uniform(0.1, 2, size=400) if weighted else None
    single, several = (problem(20, weight, n_threads=n)[0] for n in (1, n_threads))
    np.testing.assert_array_equal(columns(several), columns(single))
    for name in ("voter_sum", "voter_square", "product_sum", "target_sum", "target_square"):
        np.testing.assert_array_equal(getattr(several, name), getattr(single, name))


def test_columns_of_a_matrix_are_its_products():
    rng = np.random.default_rng(0)
    H, y, weight = rng.normal(size=(50, 7)), rng.normal(size=50), rng.uniform(size=50)
    np.testing.assert_allclose(columns(moments_from_matrix(H, y)), H.T @ H, rtol=0, atol=1e-13)
    weighted = columns(moments_from_matrix(H, y, weight, n_threads=2))
    np.testing.assert_allclose(weighted, H.T @ (weight[:, None] * H), rtol=0, atol=1e-13)


# --- the cache ----------------------------------------------------------------------------------------------


class CountingSource:
    """Columns that tell their voter, and how often they were made."""

    n_voters = 100
    dtype = np.dtype(np.float64)

    def __init__(self):
        self.made = []

    def make(self, voter, before, after, out):
        self.made.append(voter)
        for neighbour in (before, after):
            assert neighbour is None or neighbour[1][0] == neighbour[0]  # its column is still there
        out[:] = float(voter)


COLUMN_BYTES = CountingSource.n_voters * 8


@given(n_columns=st.integers(2, 12), asked=st.lists(st.integers(0, CountingSource.n_voters - 1), max_size=60))
@settings(max_examples=50, deadline=None)
def test_the_cache_keeps_within_its_budget_and_its_addresses_are_true(n_columns, asked):
    cache = GramStore(CountingSource(), n_columns * COLUMN_BYTES)
    for voter in asked:
        column = cache.column(voter)
        np.testing.assert_array_equal(column, voter)
        assert cache.address[voter] == column.ctypes.data
        held = np.flatnonzero(cache.address)
        assert len(held) <= n_columns
        for other in held:
            assert cache.address[other] == cache.column(other).ctypes.data


def test_columns_that_fit_are_made_once():
    source = CountingSource()
    cache = GramStore(source, 5 * COLUMN_BYTES)
    for voter in [3, 1, 4, 1, 5, 3, 4, 5, 1]:
        cache.column(voter)
    assert source.made == [3, 1, 4, 5]


def test_the_column_used_longest_ago_makes_room():
    source = CountingSource()
    cache = GramStore(source, 3 * COLUMN_BYTES)
    for voter in [0, 1, 2, 0, 3]:
        cache.column(voter)
    assert cache.address[1] == 0
    assert cache.address[0] != 0
    assert cache.address[3] != 0


def test_a_budget_below_one_column_still_gives_columns():
    cache = GramStore(CountingSource(), 1)
    for voter in range(10):
        np.testing.assert_array_equal(cache.column(voter), voter)
    assert np.count_nonzero(cache.address) <= 2


FITS = {
    "l1": {"reg_lambda": 0.01},
    "forward": {"penalty": "l2", "reg_lambda": 1.0, "mode": "forward"},
    "sweeps": {"reg_lambda": 0.01, "reweight_every": 7, "reweight_sweeps": 2},
    "validation": {"reg_lambda": 0.001, "reweight_every": 10, "validation_fraction": 0.3, "random_state": 0},
}


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("options", FITS.values(), ids=FITS.keys())
def test_the_budget_changes_no_bit_of_a_fit(options, weighted):
    X = mixed_table(400)
    weight = np.random.default_rng(1).uniform(0.1, 2, size=400) if weighted else None
    known, *others = (
        QuadBoostClassifier(**options, max_rounds=300, categorical_features=[4], cache_bytes=cache_bytes).fit(
            X, targets(X), sample_weight=weight
        )
        for cache_bytes in (1 << 30, 1, 10_000)
    )
    assert len(known.history_["voter"]) > 10
    for other in others:
        for name, values in known.history_.items():
            np.testing.assert_array_equal(other.history_[name], values)
        np.testing.assert_array_equal(other.ensemble_.weight, known.ensemble_.weight)
        assert other.intercept_ == known.intercept_
