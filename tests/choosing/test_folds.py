"""The moments of a fold are those of its rows alone, though they are made from those of all rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mixed_table import outputs
from moments_of_parts import SUMS, assert_same_bits, assert_same_sums
from sklearn.model_selection import KFold
from some_folds import EVERY_CANDIDATE, FIVE, LABELS, READING, REAL, REPEATS, WEIGHT, X, folds_of, options

from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.choosing import folds as folds_module
from quadboost.choosing.folds import Folds, Split
from quadboost.fitting.problem import Problem, Reading
from quadboost.moments.gram import RestGram
from quadboost.moments.moments import column_moments

TWO = np.column_stack([LABELS, 3 * LABELS])
each_cache = pytest.mark.parametrize("cache_bytes", [1, 20_000, 1 << 26])


def alone(folds, numbers, **options):
    """Moments of some rows, made from these alone; weights are rounded once for all splits."""
    rows = folds.problem.rows
    weight = None if folds.weight is None else folds.weight[numbers]
    return column_moments(folds.voters, folds.codes[numbers], rows.y[numbers], weight, **options)


@pytest.mark.thinned
@each_cache
@pytest.mark.parametrize("weight", [None, REPEATS], ids=["no weights", "repeats"])
@pytest.mark.parametrize("y", [LABELS, TWO], ids=["labels", "two outputs"])
def test_moments_of_a_fold_are_those_of_its_rows_alone_bit_for_bit(y, weight, cache_bytes):
    folds = folds_of(y, weight, cache_bytes=cache_bytes)
    for number, (train, held_out) in enumerate(folds.splits):
        fold = folds.make(number)
        assert isinstance(fold.train.gram.source, RestGram), "made from what others have"
        assert_same_bits(fold.train, alone(folds, train))
        assert_same_bits(fold.held_out, alone(folds, held_out))
        np.testing.assert_array_equal(fold.rows, held_out)


@pytest.mark.thinned
@each_cache
@pytest.mark.parametrize("weight", [None, REPEATS, WEIGHT], ids=["no weights", "repeats", "weights"])
@pytest.mark.parametrize("y", [REAL, REAL + 1e6], ids=["near zero", "far from zero"])
def test_so_are_those_of_real_targets(y, weight, cache_bytes):
    folds = folds_of(y, weight, cache_bytes=cache_bytes)
    for number in (0, 3):
        fold, split = folds.make(number), folds.splits[number]
        assert_same_bits(fold.train, alone(folds, split.train))
        assert_same_bits(fold.held_out, alone(folds, split.held_out))


@pytest.mark.parametrize(
    ("weight", "copies", "dtype"),
    [
        pytest.param(None, 1, np.int32, id="counts"),
        pytest.param(None, 40, np.int32, id="more counts"),
        pytest.param(WEIGHT, 1, np.float64, id="weights"),
    ],
)
def test_columns_and_rounds_of_a_fold_are_those_of_its_rows_alone(weight, copies, dtype):
    table, y = np.tile(X, (copies, 1)), np.tile(LABELS, copies)
    splits = [Split(*split) for split in KFold(5).split(table)]
    folds = Folds(Problem.of_targets(table, y, weight, READING), splits, options())
    fold, schedule = folds.make(2), folds.options.schedule
    known = alone(folds, splits[2].train)
    assert fold.train.gram.source.dtype == dtype
    for voter in range(folds.voters.n_voters):
        np.testing.assert_array_equal(fold.train.gram.column(voter), known.gram.column(voter))
    for candidate in EVERY_CANDIDATE:
        found, other = (
            run_rounds(moments, candidate.make(), schedule, mode="corrective", fit_intercept=True)
            for moments in (fold.train, known)
        )
        np.testing.assert_array_equal(found.weight, other.weight)


@pytest.mark.parametrize(
    "split",
    [
        Split(np.r_[:100], np.r_[150:240]),
        Split(np.r_[:240], np.r_[:50]),
        Split(np.r_[:100, :100, 150], np.r_[100:200]),
    ],
    ids=["rows left out", "rows in both", "rows twice"],
)
def test_splits_that_do_not_share_out_the_rows_have_moments_of_their_own(split):
    folds = folds_of(LABELS, splits=[split])
    fold = folds.make(0)
    assert not isinstance(fold.train.gram.source, RestGram)
    assert_same_bits(fold.train, alone(folds, split.train))
    assert_same_bits(fold.held_out, alone(folds, split.held_out))


def test_the_folds_add_up_to_all_rows():
    folds = folds_of(LABELS, REPEATS)
    for number in range(5):
        fold = folds.make(number)
        assert_same_sums(fold.train + fold.held_out, folds.all_rows)
        assert fold.train.total_weight < folds.all_rows.total_weight
    assert folds.all_rows.total_weight == REPEATS.sum()
    assert {len(getattr(fold.train, name)) for name in SUMS[1:]} == {folds.voters.n_voters, 1}


@pytest.mark.thinned(1)
@each_cache
def test_threads_that_make_and_use_folds_at_the_same_time_change_nothing(cache_bytes, monkeypatch):
    monkeypatch.setattr(folds_module, "VOTERS_FOR_THREADS", 0)
    schedule = Schedule(max_rounds=40)

    def weights(folds, number):
        fold = folds.make(number)
        return [
            run_rounds(fold.train, candidate.make(), schedule, mode="corrective", fit_intercept=True).weight
            for candidate in EVERY_CANDIDATE
        ]

    one = folds_of(REAL, WEIGHT)
    known = [weights(one, number) for number in range(5)]
    several = folds_of(REAL, WEIGHT, n_threads=4, cache_bytes=cache_bytes)
    assert several.n_workers == 4
    with ThreadPoolExecutor(5) as threads:
        found = list(threads.map(lambda number: weights(several, number), range(5)))
    np.testing.assert_array_equal(found, known)


def test_thresholds_of_a_fold_can_be_kept_from_the_rows_held_out():
    other = X.copy()
    other[FIVE[0].held_out] = np.where(np.isnan(X[FIVE[0].held_out]), np.nan, -7.0)
    kept = []
    for values in (X, other):
        problem = Problem.of_targets(values, LABELS, None, Reading(categorical_features=None))
        folds = Folds(problem, FIVE, options(), thresholds_per_fold=True)
        kept.append(folds.make(0).voters.cuts)
    for fold, changed in zip(*kept, strict=True):
        np.testing.assert_array_equal(fold, changed)


def test_folds_with_thresholds_of_their_own_have_moments_of_their_own_voters():
    folds = folds_of(REAL, WEIGHT, per_fold=True)
    fold, (train, held_out) = folds.make(1), FIVE[1]
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(fold.voters.cuts, folds.voters.cuts, strict=True))
    for moments, rows in ((fold.train, train), (fold.held_out, held_out)):
        codes = fold.voters.code(X[rows])
        assert_same_bits(moments, column_moments(fold.voters, codes, REAL[rows], folds.weight[rows]))


def test_the_voters_of_the_reference_are_those_of_the_folds():
    folds = folds_of()
    H = outputs(folds.voters, X)
    for voter in range(folds.voters.n_voters):
        feature, votes = folds.voters.votes(voter)
        np.testing.assert_array_equal(votes[folds.codes[:, feature]], H[:, voter])


def test_a_column_that_cannot_be_made_is_made_the_next_time(monkeypatch):
    folds = folds_of(cache_bytes=1)
    train = folds.make(0).train
    known = alone(folds, FIVE[0].train)
    for voter in range(5):  # then there is no room where columns are shared
        train.gram.column(voter)

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(train.gram.source, "write", fail)
        with pytest.raises(MemoryError):
            train.gram.column(30)
    np.testing.assert_array_equal(train.gram.column(30), known.gram.column(30))
