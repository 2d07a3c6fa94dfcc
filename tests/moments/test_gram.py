"""Columns of the Gram matrix equal H' W H, whatever was asked before and however little memory there is."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_table import N_LEVELS, mixed_table, outputs, targets

import quadboost.common.threads
import quadboost.moments.gram
from quadboost import QuadBoostClassifier, moments_from_matrix
from quadboost.common.threads import in_threads
from quadboost.data.exact import Scales
from quadboost.kernels.store import DifferenceMaker, Maker, Store
from quadboost.moments.gram import Columns, Gram, RestGram, SummedGram
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


@pytest.mark.thinned
@pytest.mark.parametrize("cache_bytes", [1, 20_000, 1 << 30])
@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_columns_of_unweighted_rows_are_exact(thresholds, cache_bytes):
    moments, H = problem(thresholds, cache_bytes=cache_bytes)
    assert moments.gram.column(0).dtype == np.int32
    order = np.random.default_rng(0).permutation(moments.n_voters)
    np.testing.assert_array_equal(columns(moments, order), H.T @ H)


@pytest.mark.slow
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


@pytest.mark.thinned(2)
@pytest.mark.parametrize("cache_bytes", [1, 1 << 30])
@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_columns_with_whole_weights_are_exact(thresholds, cache_bytes):
    weight = np.random.default_rng(1).integers(1, 9, size=400).astype(float)
    moments, H = problem(thresholds, weight, cache_bytes=cache_bytes)
    order = np.random.default_rng(0).permutation(moments.n_voters)
    np.testing.assert_array_equal(columns(moments, order), H.T @ (weight[:, None] * H))


@pytest.mark.thinned(1)
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


@pytest.mark.thinned
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


# --- columns that are kept ----------------------------------------------------------------------------------


class CountingSource:
    """Columns that tell their voter, and how often they were made."""

    n_voters = 100
    n_rows = 7
    dtype = np.dtype(np.float64)
    maker = Maker()

    def __init__(self):
        self.made = []

    def prepare(self, voter):
        pass

    def write(self, voter, out):
        self.made.append(voter)
        out[:] = float(voter)

    def clone(self, dtype=None):
        return CountingSource()


COLUMN_BYTES = CountingSource.n_voters * 8


@given(n_columns=st.integers(2, 12), asked=st.lists(st.integers(0, CountingSource.n_voters - 1), max_size=60))
def test_columns_keep_within_their_budget_and_their_addresses_are_true(n_columns, asked):
    kept = Columns(CountingSource(), n_columns * COLUMN_BYTES)
    for voter in asked:
        column = kept.column(voter)
        np.testing.assert_array_equal(column, voter)
        assert kept.store.address[voter] == column.ctypes.data
        held = np.flatnonzero(kept.store.address)
        assert len(held) <= n_columns
        for other in held:
            np.testing.assert_array_equal(kept.store.column(other), other)
        assert len(np.unique(kept.store.address[held])) == len(held)


def test_columns_that_fit_are_made_once():
    source = CountingSource()
    kept = Columns(source, 5 * COLUMN_BYTES)
    for voter in [3, 1, 4, 1, 5, 3, 4, 5, 1]:
        kept.column(voter)
    assert source.made == [3, 1, 4, 5]


def test_the_columns_that_kernels_used_longest_ago_make_room():
    source = CountingSource()
    kept = Columns(source, 3 * COLUMN_BYTES)
    user = Store(DifferenceMaker(kept.store, kept.store), source.n_voters, False)
    user.add_room(np.empty((5, source.n_voters)))
    for voter in [0, 1, 2, 0, 3]:
        kept.fetch(voter)
        assert user.find(voter)  # looks the column up, as rounds do
        user.drop(np.array([voter]))
    assert kept.store.address[1] == 0
    assert kept.store.address[0] != 0
    assert kept.store.address[3] != 0


def test_the_column_used_longest_ago_makes_room():
    kept = Columns(CountingSource(), 3 * COLUMN_BYTES)
    for voter in [0, 1, 2, 0, 3]:
        kept.column(voter)
    assert kept.store.address[1] == 0
    assert kept.store.address[0] != 0
    assert kept.store.address[3] != 0


def test_a_budget_below_one_column_still_gives_columns():
    kept = Columns(CountingSource(), 1)
    for voter in range(10):
        np.testing.assert_array_equal(kept.column(voter), voter)
    assert np.count_nonzero(kept.store.address) <= 2


def test_shared_columns_are_never_dropped():
    kept = Columns(CountingSource(), 3 * COLUMN_BYTES)
    assert [kept.share(voter) for voter in (5, 6, 7, 8, 6)] == [True, True, True, False, True]
    assert np.flatnonzero(kept.store.address).tolist() == [5, 6, 7]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_column_that_cannot_be_made_is_made_the_next_time(error, monkeypatch):
    source = CountingSource()
    kept = Columns(source, 3 * COLUMN_BYTES)

    def fail(*_):
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(source, "write", fail)
        with pytest.raises(error):
            kept.column(3)
    assert kept.store.address[3] == 0
    np.testing.assert_array_equal(kept.column(3), 3)


# --- columns that are lent ----------------------------------------------------------------------------------


def test_runs_at_the_same_time_have_columns_of_their_own():
    gram = Gram(CountingSource(), 5 * COLUMN_BYTES)
    with gram.lease() as first, gram.lease() as second:
        assert first is not second
        assert first.source is not second.source
        first.column(3)
        assert second.store.address[3] == 0
    with gram.lease() as again:
        assert again in (first, second)


def test_the_next_run_finds_the_columns_of_the_last():
    gram = Gram(CountingSource(), 5 * COLUMN_BYTES)
    for _ in range(3):
        with gram.lease() as columns:
            columns.column(3)
    assert gram.source.made == [3]
    gram.column(3)[:] = 0.0  # a copy
    np.testing.assert_array_equal(gram.column(3), 3)


def test_an_error_in_a_run_gives_its_columns_back():
    gram = Gram(CountingSource(), 5 * COLUMN_BYTES)
    with pytest.raises(ZeroDivisionError), gram.lease() as columns:
        raise ZeroDivisionError
    with gram.lease() as again:
        assert again is columns


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda gram: pickle.loads(pickle.dumps(gram))])
def test_a_copy_makes_its_columns_anew(copied):
    gram = problem(5)[0].gram
    known = gram.column(3)
    again = copied(gram)
    with again.lease() as columns:
        assert not columns.store.address.any()
    np.testing.assert_array_equal(again.column(3), known)


# --- sums and differences of sets of rows -------------------------------------------------------------------


class ManyRows(CountingSource):
    """Counts of so many rows that sums of a few such sources need more than 32 bits."""

    n_rows = 1 << 28

    def __init__(self, dtype=None):
        super().__init__()
        self.dtype = dtype or np.dtype(np.int32)

    def write(self, voter, out):
        out[:] = self.n_rows

    def clone(self, dtype=None):
        return ManyRows(dtype or self.dtype)


def test_counts_of_more_rows_than_32_bits_can_count_do_not_wrap():
    for n, dtype in ((1, np.int32), (2, np.float64), (64, np.float64)):
        summed = Gram(SummedGram([(1, ManyRows())] * n, 1), 1)
        found = summed.column(0)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, float(n << 28))
        again = pickle.loads(pickle.dumps(summed)).column(0)
        assert again.dtype == dtype
        np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("limit", [0, 300, 1 << 29], ids=["sums", "sums of counts", "counts"])
def test_counts_and_sums_of_parts_are_the_same_columns(limit, monkeypatch):
    known, H = problem(5)
    monkeypatch.setattr(quadboost.moments.gram, "COUNTS_LIMIT", limit)
    X = mixed_table(400)
    stumps = candidate_voters(X, thresholds=5, n_levels=N_LEVELS)
    parts = [column_moments(stumps, stumps.code(X[rows]), targets(X)[rows]) for rows in (slice(250), slice(250, 400))]
    both = parts[0] + parts[1]
    assert both.gram.source.dtype == (np.int32 if limit > 400 else np.float64)
    np.testing.assert_array_equal(columns(both), columns(known))
    np.testing.assert_array_equal(columns(both - parts[1]), H[:250].T @ H[:250])


def test_moments_that_are_doubled_past_what_counts_can_hold(monkeypatch):
    monkeypatch.setattr(quadboost.moments.gram, "COUNTS_LIMIT", 1_000)
    known = moments = problem(5)[0]
    for _ in range(6):
        moments = moments + moments
        factor = moments.total_weight / known.total_weight
        assert moments.gram.source.dtype == (np.int32 if moments.total_weight < 1_000 else np.float64)
        np.testing.assert_array_equal(columns(moments), factor * columns(known))
        np.testing.assert_array_equal(moments.product_sum, factor * known.product_sum)


@pytest.mark.parametrize("room", [1, 5, 1_000], ids=["no room", "some room", "room for all"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_columns_of_the_rest_are_those_of_its_rows(weighted, room):
    X = mixed_table(400)
    weight = np.random.default_rng(1).uniform(0.1, 2, size=400) if weighted else None
    stumps = candidate_voters(X, weight, thresholds=5, n_levels=N_LEVELS)
    scales = Scales.agree([(targets(X)[:, None], weight)])

    def gram_of(rows):
        weights = None if weight is None else weight[rows]
        return column_moments(stumps, stumps.code(X[rows]), targets(X)[rows], weights, scales=scales).gram

    whole, part, known = gram_of(slice(None)), gram_of(slice(100)), gram_of(slice(100, 400))
    column_bytes = stumps.n_voters * whole.source.dtype.itemsize
    shared = Columns(whole.source, room * column_bytes)
    shared.store.is_shared = True
    rest = Gram(RestGram(shared, part.columns(), column_bytes), 3 * column_bytes)
    assert rest.source.n_rows == 300
    for voter in np.random.default_rng(0).permutation(2 * stumps.n_voters) % stumps.n_voters:
        np.testing.assert_array_equal(rest.column(int(voter)), known.column(int(voter)))
    with rest.lease() as first, rest.lease() as second:  # the second from rows, not from columns of others
        np.testing.assert_array_equal(second.column(4), first.column(4))


@pytest.mark.parametrize("row_bytes", [1, 1 << 30], ids=["rows sorted again", "rows kept"])
def test_threads_make_shared_columns_beside_each_other(row_bytes, monkeypatch):
    monkeypatch.setattr(quadboost.moments.gram, "TABLE_PAYS", 1 << 40)  # from rows
    X = mixed_table(3_000)
    stumps = candidate_voters(X, thresholds="all", n_levels=N_LEVELS)
    whole, part = (column_moments(stumps, stumps.code(rows), targets(rows)).gram.source for rows in (X, X[:1_000]))
    whole.row_bytes = row_bytes
    H = outputs(stumps, X[1_000:])
    for seed in range(4):
        shared = Columns(whole.clone(), 1 << 30)
        shared.store.is_shared = True

        def fetch(number, shared=shared, seed=seed):
            rest = Gram(RestGram(shared, Columns(part.clone(), 1 << 30), 1 << 30), 1 << 30)
            voters = np.random.default_rng(seed + number // 2).permutation(stumps.n_voters)[:60]  # two have the same
            return voters, np.array([rest.column(voter) for voter in voters.tolist()])

        for voters, found in in_threads(fetch, range(6), 6):
            np.testing.assert_array_equal(found, H[:, voters].T @ H)


# --- the budget of a fit ------------------------------------------------------------------------------------

FITS = {
    "l1": {"reg_lambda": 0.01},
    "forward": {"penalty": "l2", "reg_lambda": 1.0, "mode": "forward"},
    "sweeps": {"reg_lambda": 0.01, "reweight_every": 7, "reweight_sweeps": 2},
    "validation": {"reg_lambda": 0.001, "reweight_every": 10, "validation_fraction": 0.3, "random_state": 0},
}


@pytest.mark.thinned(2)
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
