"""Sums that are kept: what is trained on them has the bits of training on the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from some_sums import DAYS, labels, sums_of, three

from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.parts.sums_file import load_sums


@pytest.mark.parametrize("target", [labels, three])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("removed", [1, 2])  # half of the weight, or so little that units stay the same
def test_training_on_what_was_added_without_what_was_removed_has_the_bits_of_those_rows(
    target, weighted, removed, tmp_path
):
    first = sums_of(DAYS[0], target, weighted)
    others = [sums_of(day, target, weighted, first) for day in DAYS[1:]]
    for i, kept in enumerate([first, *others]):
        kept.save(tmp_path / f"{i}.sums")
    days = [load_sums(tmp_path / f"{i}.sums") for i in range(3)]
    kept, last = days[0] + days[1] + days[2] - days[removed], DAYS[3 - removed]
    X, score, weight = (pd.concat([DAYS[0][0], last[0]]), *(np.r_[DAYS[0][i], last[i]] for i in (1, 2)))
    model = QuadBoostClassifier(calibration=None, thresholds=63)
    expected = model.fit(X, target(score), weight if weighted else None).ensemble_
    found = QuadBoostClassifier(calibration=None, thresholds=63).fit(kept).ensemble_
    for name in ("feature", "kind", "threshold", "weight", "intercept", "bin_mass"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert found.feature_names == ("a", "b", "c")
    assert found.categories == expected.categories


def test_real_targets_have_the_bits_of_one_set_of_sums_of_all_rows():
    first = sums_of(DAYS[0], np.asarray, False)
    second = sums_of(DAYS[1], np.asarray, False, first)
    both = pd.concat([DAYS[0][0], DAYS[1][0]]), np.r_[DAYS[0][1], DAYS[1][1]], None
    whole = sums_of(both, np.asarray, False, first)
    found, expected = (QuadBoostRegressor().fit(kept).ensemble_ for kept in (first + second, whole))
    assert np.array_equal(found.weight, expected.weight)
    plain = QuadBoostRegressor().fit(both[0], both[1]).ensemble_
    np.testing.assert_allclose(found.scores_of(both[0]), plain.scores_of(both[0]), atol=1e-6)


def test_what_cannot_be_is_refused(tmp_path):
    first, second = sums_of(DAYS[0], labels, False), sums_of(DAYS[1], labels, False)
    with pytest.raises(ValueError, match="is not a part of the rows; subtract only"):
        first - second
    with pytest.raises(
        ValueError, match="calibration='auto' needs the rows, and there are only sums; set calibration=None"
    ):
        QuadBoostClassifier().fit(first)
    with pytest.raises(ValueError, match="use the other estimator"):
        QuadBoostRegressor().fit(first)
    with pytest.raises(ValueError, match="nothing is left to learn from"):
        QuadBoostClassifier(calibration=None).fit(first - first)


@pytest.mark.parametrize("target", [labels, three, np.asarray])
def test_a_model_gives_columns_labels_and_the_thresholds_that_it_uses(target, tmp_path):
    X, score, _ = DAYS[0]
    kind, options = QuadBoostClassifier, {"calibration": None, "reg_lambda": 0.01, "tol": 1e-10}
    if target is np.asarray:
        kind, options = QuadBoostRegressor, {"reg_lambda": 0.01, "tol": 1e-10}
    model = kind(**options).fit(X, target(score)).ensemble_
    first, second = (sums_of(day, target, False, model) for day in DAYS[:2])
    again = kind(**options).fit(first).ensemble_  # the voters that had no weight are not missed
    np.testing.assert_allclose(again.scores_of(X), model.scores_of(X), atol=1e-4)
    assert set(zip(again.feature, again.threshold, strict=True)) <= set(
        zip(model.feature, model.threshold, strict=True)
    )
    both = pd.concat([DAYS[0][0], DAYS[1][0]]), np.r_[DAYS[0][1], DAYS[1][1]], None
    if target is not np.asarray:  # whole numbers: at any scale the same
        whole = sums_of(both, target, False, model)
        assert np.array_equal((first + second).sums.product, whole.sums.product)
        for one, other in zip((first + second).joint, whole.joint, strict=True):
            assert np.array_equal(one, other)
    with pytest.raises(ValueError, match="'a'"):
        sums_of((X.drop(columns="a"), score, None), target, False, model)
