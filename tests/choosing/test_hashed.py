"""Folds by what rows are: the same for any order, repetition and partition."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import assert_same_model
from mixed_table import mixed_table

from quadboost import HashedFolds, QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressorCV, Rows

M = 300
X = mixed_table(M)
Y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + np.random.default_rng(0).normal(size=M)
SEARCH = {"cv": HashedFolds(4), "reg_lambda": 3, "max_rounds": 50, "thresholds": 15, "n_jobs": 1}
WHOLE = np.random.default_rng(1).integers(1, 4, size=M)


def search(X, y, weight=None, **changes):
    return QuadBoostRegressorCV(**SEARCH | changes).fit(X, y, weight)


def scores(model):
    return model.cv_results_["mean_test_score"].tolist(), model.best_params_


def test_every_row_is_held_out_once_and_equal_rows_together():
    codes = np.random.default_rng(2).integers(0, 3, size=(200, 3)).astype(np.uint8)
    splits = HashedFolds(3).of(codes)
    held_out = np.concatenate([split.held_out for split in splits])
    assert sorted(held_out) == list(range(200))
    fold = np.empty(200, int)
    for number, split in enumerate(splits):
        assert set(split.train) == set(range(200)) - set(split.held_out)
        fold[split.held_out] = number
    for row in np.unique(codes, axis=0):
        assert len(set(fold[(codes == row).all(axis=1)])) == 1
    other = np.concatenate([split.held_out for split in HashedFolds(3, seed=1).of(codes)])
    assert other.tolist() != held_out.tolist()


@pytest.mark.parametrize("n_trees", [0, 5])
def test_a_search_is_the_same_for_any_order_and_for_weights_in_place_of_repetitions(n_trees):
    options = {"penalty": "l2", "n_trees": n_trees}
    first, order = search(X, Y, WHOLE, **options), np.random.default_rng(3).permutation(M)
    for other in (
        search(X[order], Y[order], WHOLE[order], **options),
        search(np.repeat(X, WHOLE, axis=0), np.repeat(Y, WHOLE), **options),
    ):
        assert scores(other) == scores(first)
        assert_same_model(other, first)


def test_a_search_over_parts_is_that_over_all_rows():
    parts = np.array_split(np.arange(M), 5)[::-1]
    first, other = search(X, Y), search(Rows(lambda: ((X[part], Y[part]) for part in parts)), None)
    assert scores(other) == scores(first)
    assert_same_model(other, first)


def test_what_cannot_be_divided_is_refused():
    with pytest.raises(ValueError, match=r"HashedFolds\(n_splits=4, seed=0\) leaves a fold without a row"):
        search(np.zeros((20, 1)), np.arange(20.0))
    with pytest.raises(ValueError, match="leaves a fold without a row"):
        search(X, Y, cv=HashedFolds(10**30))
    with pytest.raises(ValueError, match="must be below"):
        HashedFolds(seed=2**64)
    with pytest.raises(ValueError, match="may divide a group"):
        QuadBoostRegressorCV(**SEARCH).fit(X, Y, groups=np.arange(M) % 9)
    for n_splits in (1, 2.5):
        with pytest.raises((ValueError, TypeError), match="n_splits"):
            HashedFolds(n_splits)
    with pytest.raises(ValueError, match="HashedFolds is a class"):
        search(X, Y, cv=HashedFolds)


def test_labels_too():
    model = QuadBoostClassifierCV(cv=HashedFolds(), reg_lambda=2, max_rounds=30).fit(X, Y > 1)
    assert isinstance(model.best_estimator_, QuadBoostClassifier)
    assert {f"split{number}_test_score" for number in range(5)} <= set(model.cv_results_)


def test_any_whole_number_is_a_seed():
    codes = np.arange(200, dtype=np.uint8)[:, None]
    known, found = HashedFolds(3, seed=3).of(codes), HashedFolds(np.int32(3), seed=np.int32(3)).of(codes)
    for split, same in zip(known, found, strict=True):
        np.testing.assert_array_equal(split.held_out, same.held_out)
    assert len(HashedFolds(seed=2**64 - 1).of(codes)) == 5


def test_the_share_of_wrong_labels_is_the_same_for_any_order_of_weighted_rows():
    weight, order = np.random.default_rng(4).random(M) + 0.1, np.random.default_rng(3).permutation(M)
    options = SEARCH | {"scoring": "error", "rounds": 5}
    known = QuadBoostClassifierCV(**options).fit(X, Y > 1, weight)
    found = QuadBoostClassifierCV(**options).fit(X[order], Y[order] > 1, weight[order])
    assert scores(found) == scores(known)


def test_a_fold_may_lack_a_class_wherever_it_is_scored():
    labels = np.where(Y > 1, "a", "b")
    labels[5] = "c"
    model = QuadBoostClassifierCV(**SEARCH | {"scoring": "error", "rounds": 5}).fit(X, labels)
    for number in range(4):
        assert model.cv_results_[f"split{number}_test_score"].min() < 0.4
