"""Which candidate voters the features of a table have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mixed_table import N_LEVELS, mixed_table
from reference import LEVEL, MISSING, all_stumps

from quadboost import QuadBoostRegressor
from quadboost.voters.thresholds import auto_thresholds, candidate_voters

NAN = np.nan
LARGEST = np.finfo(float).max


def column(*values):
    return np.array(values, dtype=float)[:, None]


def cuts_of(X, **options):
    return candidate_voters(X, **options).cuts[0]


# --- which voters there are ---------------------------------------------------------------------------------


def test_voters_are_ordered_by_feature_then_threshold_or_level_then_missing():
    X = mixed_table(60)
    stumps = candidate_voters(X, thresholds="all", n_levels=N_LEVELS)
    feature, kind, threshold = stumps.describe(np.arange(stumps.n_voters))
    level_voters = [(4, LEVEL, float(level)) for level in range(4)] + [(4, MISSING, 0.0)]
    found = list(zip(feature.tolist(), kind.tolist(), threshold.tolist(), strict=True))
    before, after = (zip(*all_stumps(X[:, part]), strict=True) for part in (slice(4), slice(5, 8)))
    assert found == [*before, *level_voters, *((f + 5, k, t) for f, k, t in after)]


@pytest.mark.parametrize("thresholds", [1, 10, "all"])
@pytest.mark.parametrize("spacing", ["quantile", "uniform"])
def test_a_column_that_never_changes_has_no_voter(thresholds, spacing):
    X = np.column_stack([np.full(5, 3.0), np.full(5, NAN), np.full(5, -0.0)])
    X[0, 2] = 0.0  # the same number
    assert candidate_voters(X, thresholds=thresholds, spacing=spacing).n_voters == 0


@pytest.mark.parametrize("n_levels", [None, 1])
def test_a_constant_with_missing_values_has_the_missing_voter_alone(n_levels):
    X = column(0, NAN, 0, 0)
    stumps = candidate_voters(X, n_levels=None if n_levels is None else {0: n_levels})
    assert [part.tolist() for part in stumps.describe(np.arange(stumps.n_voters))] == [[0], [MISSING], [0.0]]


# --- thresholds ---------------------------------------------------------------------------------------------


def test_a_column_of_zeros_does_not_waste_thresholds_on_them():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(9_000), rng.normal(size=1_000)])
    cuts = cuts_of(values[:, None], thresholds=63)
    assert len(cuts) == 63
    bins = np.bincount(np.searchsorted(cuts, values))
    assert np.sort(bins)[-2] < 2 * 1_000 / 62  # all but the zeros are spread evenly


def test_as_many_thresholds_as_there_are_midpoints_are_all_of_them():
    X = column(3, 1, 1, 2, 10, 2)
    np.testing.assert_array_equal(cuts_of(X, thresholds=3), [1.5, 2.5, 6.5])
    assert len(cuts_of(X, thresholds=2)) == 2


def test_fewer_rows_than_thresholds():
    np.testing.assert_array_equal(cuts_of(column(1, 2), thresholds=255), [1.5])
    assert len(cuts_of(column(1), thresholds=255)) == 0


@given(
    values=arrays(float, st.integers(1, 40), elements=st.sampled_from([*map(float, range(12)), NAN])),
    data=st.data(),
    k=st.integers(1, 6) | st.just("all"),
    spacing=st.sampled_from(["quantile", "uniform"]),
)
def test_an_integer_weight_is_a_repetition_for_the_thresholds(values, data, k, spacing):
    count = data.draw(arrays(int, len(values), elements=st.sampled_from([1, 2, 3, 50, 1_000])))
    weighted = candidate_voters(values[:, None], count.astype(float), thresholds=k, spacing=spacing)
    repeated = candidate_voters(np.repeat(values, count)[:, None], thresholds=k, spacing=spacing)
    np.testing.assert_array_equal(weighted.cuts[0], repeated.cuts[0])
    np.testing.assert_array_equal(weighted.has_missing, repeated.has_missing)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("k", [5, 20])
def test_an_integer_weight_is_a_repetition_for_the_quantiles_of_many_values(seed, k):
    rng = np.random.default_rng(seed)
    values, count = rng.normal(size=250), rng.integers(1, 4, size=250)
    weighted = cuts_of(values[:, None], weight=count.astype(float), thresholds=k)
    np.testing.assert_array_equal(weighted, cuts_of(np.repeat(values, count)[:, None], thresholds=k))


@given(
    values=arrays(float, 30, elements=st.integers(0, 20).map(float)),
    weight=arrays(float, 30, elements=st.floats(0.01, 10)),
    order=st.permutations(range(30)),
    k=st.integers(1, 12),
)
def test_the_order_of_rows_does_not_change_a_threshold(values, weight, order, k):
    found = cuts_of(values[order, None], weight=weight[order], thresholds=k)
    np.testing.assert_array_equal(found, cuts_of(values[:, None], weight=weight, thresholds=k))


def test_weights_move_the_quantiles():
    values = np.arange(100.0)
    weight = np.where(values < 10, 100.0, 1.0)
    assert np.sum(cuts_of(values[:, None], thresholds=9) < 10) == 1
    assert np.sum(cuts_of(values[:, None], weight=weight, thresholds=9) < 10) >= 8


@given(
    low=st.floats(allow_nan=False, allow_infinity=False, width=32),
    steps=st.integers(1, 3),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@example(low=-1.0, steps=1, dtype=np.float64)
def test_a_threshold_between_adjacent_floats_separates_them(low, steps, dtype):
    low = high = dtype(low)
    assume(low < 1e38)
    for _ in range(steps):
        high = np.nextafter(high, dtype(np.inf))
    X = np.array([[low], [high]], dtype=dtype)
    stumps = candidate_voters(X)
    assert len(stumps.cuts[0]) == 1
    assert low <= stumps.cuts[0][0] < high
    np.testing.assert_array_equal(stumps.code(X)[:, 0], [0, 1])


@pytest.mark.parametrize("spacing", ["quantile", "uniform"])
def test_thresholds_of_the_widest_range_are_finite_and_within_it(spacing):
    X = column(-LARGEST, -1.0, 0.0, 1.0, LARGEST)
    stumps = candidate_voters(X, thresholds=3, spacing=spacing)
    cuts = stumps.cuts[0]
    assert len(cuts) == 3
    assert np.all(np.isfinite(cuts) & (np.diff(cuts, prepend=-LARGEST) > 0))
    np.testing.assert_array_equal(stumps.code(X)[:, 0], np.searchsorted(cuts, X[:, 0]))


@pytest.mark.parametrize("options", [{}, {"thresholds": 5}, {"thresholds": "all"}, {"spacing": "uniform"}])
def test_thresholds_of_float32_are_those_of_the_same_numbers_in_float64(options):
    X = mixed_table(500).astype(np.float32)
    single, double = (candidate_voters(Z, **options) for Z in (X, X.astype(np.float64)))
    for found, known in zip(single.cuts, double.cuts, strict=True):
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, known)
    np.testing.assert_array_equal(single.code(X), double.code(X.astype(np.float64)))


@pytest.mark.parametrize("n_threads", [2, 4])
def test_threads_choose_the_same_voters(n_threads):
    X = mixed_table(300)
    known, found = (candidate_voters(X, n_levels=N_LEVELS, n_threads=n) for n in (1, n_threads))
    for cuts, other in zip(found.cuts, known.cuts, strict=True):
        np.testing.assert_array_equal(cuts, other)
    np.testing.assert_array_equal(found.has_missing, known.has_missing)


@pytest.mark.parametrize(
    "values",
    [(1e16, 1e16 + 2, 1e16 + 4), (0.0, 5e-324, 1e-323), (-5e-324, 0.0, 5e-324), (1.7e18, 1.7e18 + 256, 1.7e18 + 512)],
)
def test_no_threshold_stands_twice_where_there_are_few_doubles(values):
    (cuts,) = candidate_voters(column(*values), spacing="uniform").cuts
    assert (np.diff(cuts) > 0).all()
    assert [np.searchsorted(cuts, value) for value in values] == sorted({*np.searchsorted(cuts, values).tolist()})
    QuadBoostRegressor(spacing="uniform", penalty=None).fit(column(*values), [1.0, 3.0, 2.0])


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"thresholds": "all"}, {"spacing": "uniform"}])
def test_an_infinite_value_is_refused_by_feature_and_value(infinity, dtype, options):
    X = np.array([[0, 1], [1, infinity], [NAN, NAN]], dtype=dtype)
    with pytest.raises(ValueError, match=f"feature 1 holds {infinity}; replace infinity"):
        candidate_voters(X, **options)


@pytest.mark.parametrize("thresholds", [0, -1, 1.5, True, None, "none", "255"])
def test_thresholds_that_mean_nothing_are_refused(thresholds):
    with pytest.raises(ValueError, match=f"thresholds={thresholds!r}"):
        candidate_voters(column(1, 2), thresholds=thresholds)


def test_an_unknown_spacing_is_refused():
    with pytest.raises(ValueError, match="spacing='log' is not known; use 'quantile' or 'uniform'"):
        candidate_voters(column(1, 2), spacing="log")


@pytest.mark.parametrize("dtype", [np.int64, np.float16, ">f8"])
def test_values_that_a_kernel_would_misread_are_refused(dtype):
    X = np.array([[1], [2]], dtype=dtype)
    with pytest.raises(ValueError, match="give rows and columns of float32 or float64"):
        candidate_voters(X)
    with pytest.raises(ValueError, match="give rows and columns of float32 or float64"):
        candidate_voters(X.astype(float)).code(X)


# --- how many by default --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_features", "known"), [(0, 255), (1, 255), (392, 255), (393, 254), (500, 200), (3_225, 31), (10**6, 15)]
)
def test_wide_tables_have_fewer_thresholds_by_default_but_not_too_few(n_features, known):
    assert auto_thresholds(n_features) == known


def test_auto_is_the_number_that_it_says():
    X = np.random.default_rng(0).normal(size=(300, 500))
    found, known = candidate_voters(X), candidate_voters(X, thresholds=200)
    assert found.n_voters == known.n_voters == 100_000
    assert found.fingerprint == known.fingerprint
    assert candidate_voters(X[:, :20]).fingerprint == candidate_voters(X[:, :20], thresholds=255).fingerprint
