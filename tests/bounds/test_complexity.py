"""The Rademacher complexity of stumps: suprema are exact, and the estimate is as sure as it says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from mixed_table import N_LEVELS, mixed_table, outputs

from quadboost.bounds.complexity import Complexity, rademacher_complexity
from quadboost.kernels.sums import scan_signs
from quadboost.voters.thresholds import candidate_voters

CATEGORIES = sorted(N_LEVELS)


def all_voters(X, categories=()):
    """One sign of every stump on the rows of X, found without any cleverness."""
    voters = [np.ones(len(X))]
    for f, column in enumerate(X.T):
        present = ~np.isnan(column)
        values = np.unique(column[present])
        if f in categories:
            for chosen in product([False, True], repeat=len(values)):
                voters.append(np.where(np.isin(column, values[list(chosen)]), 1.0, -1.0) * present)
        else:
            for threshold in [-np.inf, *values]:
                voters.append(np.where(column > threshold, 1.0, -1.0) * present)
        voters.append(np.where(present, -1.0, 1.0))
    return np.array(voters)


def drawn_signs(m, draws, seed):
    """The signs that the estimate draws: the bits of random words, 64 draws a word."""
    words = np.random.default_rng(seed).integers(0, 1 << 64, size=(-(-draws // 64), m), dtype=np.uint64)
    bits = (words[:, None, :] >> np.arange(64, dtype=np.uint64)[:, None]) & np.uint64(1)
    return 2.0 * bits.reshape(-1, m)[:draws] - 1.0


def mean_supremum(voters, signs):
    return np.abs(signs @ voters.T).max(axis=1).mean() / signs.shape[1]


@pytest.mark.parametrize("draws", [1, 64, 100])
@pytest.mark.parametrize("m", [1, 2, 7, 60])
def test_suprema_are_those_of_a_search_over_all_voters(m, draws):
    X = mixed_table(m)
    found = rademacher_complexity(X, draws=draws, random_state=3, categorical_features=CATEGORIES)
    truth = mean_supremum(all_voters(X, CATEGORIES), drawn_signs(m, draws, 3))
    assert found.value == pytest.approx(truth, rel=1e-12)
    assert (found.n_examples, found.n_draws) == (m, draws)


def test_expected_supremum_over_all_signs_is_in_the_interval():
    X = mixed_table(12)
    every_sign = np.array(list(product([-1.0, 1.0], repeat=12)))
    truth = mean_supremum(all_voters(X, CATEGORIES), every_sign)
    for seed in range(20):
        found = rademacher_complexity(X, draws=2000, random_state=seed, categorical_features=CATEGORIES)
        low, high = found.interval()
        assert low < truth < high
        assert abs(found.value - truth) < 5 * found.standard_error
    assert truth < found.massart


@pytest.mark.parametrize("thresholds", [1, 5, "all"])
@pytest.mark.parametrize("spacing", ["quantile", "uniform"])
def test_of_given_stumps_only_those_count(thresholds, spacing):
    X = mixed_table(200)
    stumps = candidate_voters(X, thresholds=thresholds, spacing=spacing, n_levels=N_LEVELS)
    fewer = X[:50]  # so that some thresholds lie outside, and some levels may be absent
    found = rademacher_complexity(fewer, draws=100, thresholds=stumps)
    voters = np.vstack([np.ones(len(fewer)), outputs(stumps, fewer).T])
    assert found.value == pytest.approx(mean_supremum(voters, drawn_signs(len(fewer), 100, 0)), rel=1e-12)
    assert found.value <= rademacher_complexity(fewer, draws=100, categorical_features=CATEGORIES).value


def test_thresholds_can_be_given_as_arrays():
    X = np.random.default_rng(0).normal(size=(40, 2))
    found = rademacher_complexity(X, draws=70, thresholds=[[0.5, 0.0, 0.5], []])
    voters = np.array([np.ones(40), np.where(X[:, 0] > 0, 1, -1), np.where(X[:, 0] > 0.5, 1, -1)])
    assert found.value == pytest.approx(mean_supremum(voters, drawn_signs(40, 70, 0)), rel=1e-12)
    assert found.massart == pytest.approx(np.sqrt(2 * np.log(6) / 40))
    with pytest.raises(ValueError, match="thresholds are given for 1 features"):
        rademacher_complexity(X, thresholds=[[0.5]])


@pytest.mark.slow
def test_sums_of_many_rows_are_exact():
    m = 100_000
    X = np.random.default_rng(0).normal(size=(m, 1))
    signs = drawn_signs(m, 64, 0).astype(np.int32)[:, np.argsort(X[:, 0])]
    sums = np.cumsum(signs, axis=1)
    truth = np.abs(sums[:, -1:] - 2 * sums).max(axis=1).mean() / m
    assert rademacher_complexity(X, draws=64).value == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("word", [0, (1 << 64) - 1], ids=["all minus", "all plus"])
def test_the_largest_sums_do_not_overflow(word):
    m = 100_000
    words = np.full((1, m), word, dtype=np.uint64)
    total = np.zeros((1, 64), dtype=np.int32)
    low, high = total.copy(), total.copy()
    scan_signs(np.arange(m, dtype=np.int32), np.ones(m, dtype=np.uint8), words, total, low, high)
    assert {*total.ravel(), *low.ravel(), *high.ravel()} == {0, m if word else -m}


def test_the_number_of_threads_changes_nothing():
    X = mixed_table(5000)
    found = [rademacher_complexity(X, draws=300, n_jobs=n) for n in (1, 2, 3)]
    assert found[0] == found[1] == found[2]


def test_gaussian_features_have_the_known_complexity():
    found = rademacher_complexity(np.random.default_rng(0).normal(size=(500, 10)), draws=2000)
    assert found.value == pytest.approx(0.124, abs=0.002)
    assert found.massart == pytest.approx(0.192, abs=0.0005)


def test_monotone_transformations_change_nothing():
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert rademacher_complexity(X, draws=100) == rademacher_complexity(np.exp(X), draws=100)


def test_text_columns_of_a_frame_count_with_every_set_of_values():
    X = mixed_table(60)[:, [0, 4]]
    names = np.array(["a", "b", "c", "d"])
    level = [None if np.isnan(v) else names[int(v)] for v in X[:, 1]]
    frame = pd.DataFrame({"number": X[:, 0], "name": level})
    assert rademacher_complexity(frame, draws=64) == rademacher_complexity(X, draws=64, categorical_features=[1])


def test_the_interval_holds_as_often_as_it_says():
    X = np.random.default_rng(0).normal(size=(8, 1))
    truth = mean_supremum(all_voters(X), np.array(list(product([-1.0, 1.0], repeat=8))))
    found = [rademacher_complexity(X, draws=5, random_state=seed) for seed in range(400)]
    inside = [low <= truth <= high for low, high in (f.interval(0.9) for f in found)]
    assert np.mean(inside) >= 0.9
    assert np.mean([truth <= f.upper(0.1) for f in found]) >= 0.9
    assert np.mean([truth <= f.value for f in found]) < 0.9  # the mean alone would not do


def test_massart_limits_the_interval():
    assert Complexity(0.19, 0.01, 0.2, n_examples=100, n_draws=1).upper(0.01) == 0.2


def test_text_says_how_sure_the_estimate_is():
    text = str(Complexity(0.124, 0.001, 0.192, n_examples=500, n_draws=1000))
    assert text == ("Rademacher complexity 0.1240 (95 % between 0.1202 and 0.1278, 1000 draws; Massart 0.1920)")


@pytest.mark.parametrize("draws", [0, 1.5])
def test_draws_that_mean_nothing_are_refused(draws):
    with pytest.raises(ValueError, match=f"draws={draws}"):
        rademacher_complexity(np.zeros((3, 1)), draws=draws)


@pytest.mark.slow
def test_many_rows_have_a_small_complexity():
    X = np.random.default_rng(0).normal(size=(100_000, 30))
    found = rademacher_complexity(X, draws=100)
    assert 0.005 < found.value < found.massart < 0.02
