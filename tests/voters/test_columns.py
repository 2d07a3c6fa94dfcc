"""Columns of codes, and what their voters say."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mixed_table import N_LEVELS, mixed_table, outputs
from reference import LEVEL, MISSING

from quadboost.voters import columns
from quadboost.voters.columns import Intervals, Voters, checked_values
from quadboost.voters.thresholds import candidate_voters

NAN = np.nan
LARGEST = np.finfo(float).max


def column(*values):
    return np.array(values, dtype=float)[:, None]


def cuts_of(X, **options):
    return candidate_voters(X, **options).cuts[0]


def stumps_with(*cuts):
    """Voters of real features with the given cuts."""
    zeros = np.zeros(len(cuts), dtype=np.uint8)
    return Voters([np.asarray(values, dtype=float) for values in cuts], is_level=zeros, has_missing=zeros)


@pytest.mark.parametrize("voter", range(12))
def test_votes_by_bin_are_the_voters_outputs(voter):
    X = mixed_table(40)
    stumps = candidate_voters(X, thresholds=2, n_levels=N_LEVELS)
    assert stumps.n_voters > voter
    feature, votes = stumps.votes(voter)
    np.testing.assert_array_equal(votes[stumps.code(X)[:, feature]], outputs(stumps, X)[:, voter])


# --- codes --------------------------------------------------------------------------------------------------


def known_codes(stumps, X):
    """The number of cuts below each value, and one more than all for a missing one."""
    columns = zip(stumps.cuts, np.asarray(X, dtype=np.float64).T, strict=True)
    return np.column_stack([np.where(np.isnan(x), len(cuts) + 1, np.searchsorted(cuts, x)) for cuts, x in columns])


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(
    cuts=st.lists(st.lists(numbers | st.integers(-3, 3).map(float), max_size=40, unique=True), min_size=1, max_size=3),
    data=st.data(),
)
@example(cuts=[[-LARGEST, 0.0, LARGEST]], data=None)
@example(cuts=[[0.0, 5e-324, 1e-323]], data=None)
@example(cuts=[[-1.0, 0.0, 1e300]], data=None)
def test_a_code_is_the_number_of_cuts_below_the_value(cuts, data):
    cuts = [np.sort(values) for values in cuts]
    edges = np.concatenate([*cuts, [0.0, -np.inf, np.inf, NAN]])
    with np.errstate(over="ignore"):
        edges = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    more = [] if data is None else data.draw(st.lists(st.floats(), max_size=20))
    X = np.repeat(np.append(edges, more)[:, None], len(cuts), axis=1)
    stumps = stumps_with(*cuts)
    np.testing.assert_array_equal(stumps.code(X), known_codes(stumps, X))


def test_codes_of_many_cuts_in_clusters():
    rng = np.random.default_rng(0)
    cuts = np.unique(np.concatenate([rng.normal(size=500) * 1e-9, rng.normal(size=500), rng.normal(size=20) * 1e9]))
    X = np.concatenate([cuts, rng.normal(size=1_000) * 1e-9, rng.normal(size=1_000)])[:, None]
    stumps = stumps_with(cuts)
    np.testing.assert_array_equal(stumps.code(X), known_codes(stumps, X))


LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "part of a wider table": lambda X: np.hstack([X, X, X])[:, X.shape[1] : 2 * X.shape[1]],
    "read-only": lambda X: np.frombuffer(X.tobytes(), dtype=X.dtype).reshape(X.shape),
    "not aligned": lambda X: np.frombuffer(b"\0" + X.tobytes(), dtype=X.dtype, offset=1).reshape(X.shape),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_any_layout_of_x_gives_the_same_codes(layout, dtype):
    X = mixed_table(2_000).astype(dtype)
    stumps = candidate_voters(X, n_levels=N_LEVELS)
    known = stumps.code(X)
    Z = layout(X)
    np.testing.assert_array_equal(candidate_voters(Z, n_levels=N_LEVELS).cuts[0], stumps.cuts[0])
    for n_threads in (1, 4):
        np.testing.assert_array_equal(stumps.code(Z, n_threads), known)


def test_kernels_are_given_aligned_values():
    X = np.asfortranarray(np.eye(3))
    assert checked_values(X) is X
    found = checked_values(LAYOUTS["not aligned"](X))
    assert found.flags.aligned
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda X: X[::2, ::-1]])
def test_no_layout_is_copied(layout):
    X = layout(np.random.default_rng(0).normal(size=(40_000, 20)))
    stumps = candidate_voters(X, thresholds=10)
    tracemalloc.start()
    codes = stumps.code(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < codes.nbytes + X.nbytes / 10


def wide_column(n_distinct, missing):
    values = np.arange(n_distinct, dtype=float)
    return np.append(values, NAN)[:, None] if missing else values[:, None]


@pytest.mark.parametrize(
    ("thresholds", "n_distinct", "missing", "dtype"),
    [
        (254, 10_000, False, np.uint8),
        (254, 10_000, True, np.uint8),
        (255, 10_000, False, np.uint8),
        (255, 10_000, True, np.uint8),
        (255, 256, False, np.uint8),
        (255, 256, True, np.uint8),
        (255, 255, True, np.uint8),
        (256, 10_000, False, np.uint16),
        ("all", 256, False, np.uint8),
        ("all", 255, True, np.uint8),
        ("all", 256, True, np.uint16),
        ("all", 1 << 16, False, np.uint16),
        ("all", (1 << 16) - 1, True, np.uint16),
        ("all", 1 << 16, True, np.uint32),
        ("all", (1 << 16) + 1, False, np.uint32),
    ],
)
def test_codes_take_one_byte_up_to_255_thresholds_and_no_more_than_they_need(thresholds, n_distinct, missing, dtype):
    X = wide_column(n_distinct, missing)
    stumps = candidate_voters(X, thresholds=thresholds)
    codes = stumps.code(X)
    assert codes.dtype == dtype
    np.testing.assert_array_equal(codes, known_codes(stumps, X))


def test_values_missing_for_the_first_time_have_a_code_however_many_thresholds_there_are():
    X = wide_column(256, missing=False)
    stumps = candidate_voters(X, thresholds=255)
    later = column(NAN, -5, 1e9)
    np.testing.assert_array_equal(stumps.code(later)[:, 0], [256, 0, 255])
    # A missing value of a narrower feature needs no wider codes.
    two = candidate_voters(np.column_stack([X, np.arange(256) % 3]), thresholds=255)
    assert two.code(np.array([[5.0, NAN]])).dtype == np.uint8


def test_evenly_spaced_thresholds_and_missing_values_share_codes_correctly():
    X = wide_column(10_000, missing=True)
    stumps = candidate_voters(X, thresholds=255, spacing="uniform")
    np.testing.assert_array_equal(stumps.code(X), known_codes(stumps, X))


# --- what voters are ----------------------------------------------------------------------------------------


def voters_of(n_cuts, is_level, has_missing):
    cuts = [np.arange(n) + 0.5 for n in n_cuts]
    return Voters(cuts, np.array(is_level, dtype=np.uint8), np.array(has_missing, dtype=np.uint8))


some_voters = st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.booleans()), min_size=1, max_size=5).map(
    lambda columns: voters_of(*zip(*columns, strict=True))
)


@given(some_voters)
def test_voters_and_bins_are_numbered_column_by_column(voters):
    voter = bin_number = 0
    for f, n_cuts in enumerate(voters.n_cuts.tolist()):
        assert (voters.voter_start[f], voters.bin_start[f]) == (voter, bin_number)
        for position in range(n_cuts + voters.has_missing[f]):
            assert [int(found) for found in voters.locate(voter)] == [f, position]
            voter += 1
        bin_number += n_cuts + 2
    assert (voters.n_voters, voters.bin_start[-1]) == (voter, bin_number)


@given(some_voters)
def test_what_a_voter_says_in_each_bin(voters):
    feature, kind, threshold = voters.describe(np.arange(voters.n_voters))
    for voter in range(voters.n_voters):
        f, votes = voters.votes(voter)
        n_cuts = int(voters.n_cuts[f])
        assert f == feature[voter]
        bins, missing = np.arange(n_cuts + 2), n_cuts + 1
        if kind[voter] == MISSING:
            known = np.where(bins == missing, 1, -1)
        elif kind[voter] == LEVEL:
            known = np.where(bins == threshold[voter] + 1, 1, np.where(bins == missing, 0, -1))
        else:
            values = np.arange(n_cuts + 1)  # bin b holds the values up to cut b
            known = np.append(np.where(values > threshold[voter], 1, -1), 0)
        np.testing.assert_array_equal(votes, known)


@given(some_voters, st.integers(0, 2**32 - 1))
def test_the_steps_of_a_column_are_the_sums_of_its_voters(voters, seed):
    weight = np.random.default_rng(seed).integers(-8, 8, size=(voters.n_voters, 2)) / 4
    values, start = voters.step_values(weight, np.arange(voters.n_columns))
    for f, n_cuts in enumerate(voters.n_cuts.tolist()):
        known = np.zeros((n_cuts + 2, 2))
        for voter in range(voters.voter_start[f], voters.voter_start[f + 1]):
            known += np.outer(voters.votes(voter)[1], weight[voter])
        np.testing.assert_array_equal(values[start[f] : start[f + 1]], known)
        np.testing.assert_array_equal(voters.step_values(weight, np.array([f]))[0], known)


@given(some_voters, st.integers(0, 2**32 - 1))
def test_changes_of_weights_change_scores_by_what_their_voters_say(voters, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, voters.n_cuts + 2, size=(20, voters.n_columns)).astype(np.uint8)
    some = rng.choice(voters.n_voters, size=rng.integers(0, voters.n_voters + 1), replace=False)
    delta = rng.integers(-8, 8, size=len(some)) / 4
    known = np.zeros(20)
    for voter, by in zip(some.tolist(), delta, strict=True):
        column, votes = voters.votes(voter)
        known += by * votes[codes[:, column]]
    np.testing.assert_array_equal(voters.changes(codes, some, delta), known)


def test_a_level_alone_is_where_its_own_bin_is():
    found = Intervals.of(np.array([3]), np.array([1]), np.array([1]))
    np.testing.assert_array_equal(found.low, [0, 1, 2, 3])
    np.testing.assert_array_equal(found.high, [1, 2, 3, 4])
    np.testing.assert_array_equal(found.whole, [3, 3, 3, 4])


@given(some_voters, some_voters)
def test_the_fingerprint_tells_voters_apart(one, other):
    def is_same(a, b):
        return (a.is_level.tolist(), a.has_missing.tolist(), [cuts.tolist() for cuts in a.cuts]) == (
            b.is_level.tolist(), b.has_missing.tolist(), [cuts.tolist() for cuts in b.cuts])  # fmt: skip

    assert (one.fingerprint == other.fingerprint) == is_same(one, other)
    again = pickle.loads(pickle.dumps(one))
    assert again.fingerprint == one.fingerprint
    moved = Voters([cuts + 0.25 for cuts in one.cuts], one.is_level, one.has_missing)
    assert (moved.fingerprint == one.fingerprint) == (one.n_cuts.sum() == 0)


def test_more_bins_than_have_numbers_are_refused(monkeypatch):
    monkeypatch.setattr(columns, "MOST_BINS", 10)
    assert voters_of([3, 2], [0, 0], [0, 0]).bin_start[-1] == 9
    with pytest.raises(ValueError, match="there are 10 bins, and at most 10; give fewer thresholds"):
        voters_of([3, 3], [0, 0], [0, 0])
