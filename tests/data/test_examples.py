"""Labels, targets and weights that users give: what is refused, and what they become."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quadboost.data.exact import MOST_ROWS
from quadboost.data.examples import (
    class_weights,
    examples_of,
    has_validation,
    labels_of,
    one_vs_rest,
    positions_of,
    real_targets,
    spread_of,
    times,
)

X = np.arange(8.0).reshape(4, 2)
Y = np.array([1.0, 2.0, 3.0, 4.0])

# --- weights ------------------------------------------------------------------------------------------------


def test_rows_of_weight_zero_are_left_out():
    given = examples_of(X, Y, [0.0, 2.0, 0.0, 3.0])
    np.testing.assert_array_equal(given.y, [2.0, 4.0])
    np.testing.assert_array_equal(given.weight, [2.0, 3.0])
    np.testing.assert_array_equal(given.part(X), X[[1, 3]])
    np.testing.assert_array_equal(given.all_weights(), [0.0, 2.0, 0.0, 3.0])


@pytest.mark.parametrize("weight", [None, 1, 1.0, np.ones(4), [1, 1, 1, 1]])
def test_weights_of_one_are_no_weights(weight):
    given = examples_of(X, Y, weight)
    assert given.weight is None
    assert given.kept is None
    assert given.part(X) is X


def test_some_rows_of_weight_one_and_others_of_none():
    given = examples_of(X, Y, [1, 0, 1, 1])
    assert given.weight is None
    np.testing.assert_array_equal(given.all_weights(), [1, 0, 1, 1])


def test_one_weight_is_that_of_every_row():
    np.testing.assert_array_equal(examples_of(X, Y, 2.5).weight, np.full(4, 2.5))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2, 3], r"sample_weight_val has shape \(3,\); it must hold one number for each of 4 rows"),
        (np.ones((4, 1)), r"sample_weight_val has shape \(4, 1\)"),
        ([1, -0.5, 1, 1], "sample_weight_val holds -0.5; weights must not be negative"),
        (np.zeros(4), "sample_weight_val is zero for every row"),
        ([1e200, 1, 1, 1], "sample_weight_val holds 1e.200; weights must be below 1e.150"),
        ([1e-200, 1, 1, 0], "sample_weight_val holds 1e-200; weights above 0 must be above 1e-150"),
        ([1, np.nan, 1, 1], "sample_weight_val contains NaN"),
        ([1, np.inf, 1, 1], "sample_weight_val contains infinity"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        examples_of(X, Y, weight, suffix="_val")


# --- rows ---------------------------------------------------------------------------------------------------


def test_2_to_the_31_rows_or_more_are_refused():
    many = np.broadcast_to(np.float32(1.0), (MOST_ROWS, 1))
    targets = np.broadcast_to(np.float32(1.0), MOST_ROWS)
    with pytest.raises(ValueError, match="X has 2147483648 rows; at most 2147483647 can be learnt from at once"):
        examples_of(many, targets, None)


@pytest.mark.parametrize(
    ("given", "y", "message"),
    [
        (X, Y[:3], "X has 4 rows and y has 3; give one target for every row"),
        (X[:0], Y[:0], "X has 0 rows"),
        ([[1, 2], [3]], Y[:2], "X is a list of rows of different lengths"),
    ],
)
def test_what_does_not_fit_together_is_refused(given, y, message):
    with pytest.raises(ValueError, match=message):
        examples_of(given, y, None)


def test_a_validation_set_is_both_rows_and_targets_or_neither():
    assert not has_validation(None, None, None)
    assert has_validation(X, Y, None)
    for given, absent in (((X, None, None), "y_val"), ((None, Y, None), "X_val")):
        with pytest.raises(ValueError, match=f"without {absent}"):
            has_validation(*given)
    with pytest.raises(ValueError, match="sample_weight_val was given without X_val and y_val"):
        has_validation(None, None, Y)


# --- labels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y", [["b", "a", "b"], np.array(["b", "a", "b"], dtype=object), pd.Series(["b", "a", "b"], dtype="category")]
)
def test_labels_may_be_text_of_any_type(y):
    assert labels_of(y).tolist() == ["b", "a", "b"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "fit requires y to be passed, but the target y is None"),
        (np.array(["a", None], dtype=object), "y holds missing labels; leave those rows out"),
        (np.array(["a", np.nan], dtype=object), "y holds missing labels"),
        (pd.Series(["a", pd.NA], dtype="string"), "y holds missing labels"),
        (np.array(["a", 1], dtype=object), r"y holds labels of different types \(int, str\)"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), r"make them text, with y.astype\(str\)"),
        (np.array([0.5, 1.5, 0.2]), "continuous"),
        (np.array([1.0, np.nan]), "NaN"),
    ],
)
def test_what_is_no_label_is_refused(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        labels_of(y)


DAYS = pd.date_range("2020", periods=3)


@pytest.mark.parametrize(
    "dates",
    [
        DAYS.to_numpy(),
        pd.Series(DAYS),
        pd.Series(DAYS.tz_localize("UTC")),
        pd.Series(DAYS.to_period()),
        DAYS - DAYS[0],
        (DAYS - DAYS[0]).to_pytimedelta().tolist(),
        DAYS.to_pydatetime().tolist(),
        [day.date() for day in DAYS],
        [day.time() for day in DAYS],
        pl.Series(DAYS.to_list()),
        pa.array(DAYS.to_pydatetime()),
        np.column_stack([DAYS.to_numpy(), DAYS.to_numpy()]),
    ],
)
def test_dates_are_no_targets_and_no_weights(dates):
    with pytest.raises(TypeError, match=r"y holds a date or time, .*: convert it to numbers, such as days"):
        real_targets(dates)
    with pytest.raises(TypeError, match="sample_weight holds a date or time"):
        examples_of(np.ones((3, 1)), np.ones(3), dates)
    if np.ndim(dates) == 1:
        with pytest.raises(TypeError, match=r"y holds a date or time, .*: make them text, with y.astype\(str\)"):
            labels_of(dates)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan, 2.0], r"Input y contains NaN. The first is in row 1; leave such rows out"),
        (np.array([[1.0, 2.0], [3.0, None]], object), r"Input y contains NaN. The first is in row 1"),
        ([1.0, 2.0, -np.inf], r"Input y contains infinity or a value too large .* The first is in row 2"),
        (["a", "b"], "y holds text, such as 'a'; give numbers; a classifier takes labels"),
        ([10**400, 1], "y holds a number beyond the largest float; rescale it"),
        ([1e-200, 2e-200], "y has a range of 1e-200; rescale it to one above 1e-150"),
        (np.array([[1.0, 1e-160], [2.0, 3e-160]]), "y has a range of 2e-160; rescale it"),
        (None, "fit requires y to be passed"),
    ],
)
def test_what_is_no_target_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        real_targets(y)


def test_small_targets_that_can_be_learnt_are_taken():
    assert real_targets([1e-149, 2e-149]).tolist() == [1e-149, 2e-149]
    assert real_targets([1e-200, 1e-200]).tolist() == [1e-200, 1e-200]  # constant


def test_labels_beyond_64_bits_are_refused():
    with pytest.raises(ValueError, match=r"y holds the label 1000.*, an integer beyond 64 bits; make the labels text"):
        labels_of([10**400, 1])


def test_generators_of_targets_are_refused():
    for read in (real_targets, labels_of):
        with pytest.raises(TypeError, match=r"y_val is a generator, which can be read only once; use list\(y_val\)"):
            read((value for value in [1, 2]), "y_val")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("balanced", "sample_weight is 'balanced', not numbers; for balanced classes give class_weight='balanced'"),
        (["a", "b", "c"], "sample_weight holds text, such as 'a'; give numbers"),
        ([1, np.nan, 1], r"Input sample_weight contains NaN. The first is in row 1"),
        ([1, 10**400, 1], "sample_weight holds a number beyond the largest float"),
    ],
)
def test_what_is_no_weight_is_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        examples_of(np.ones((3, 1)), np.ones(3), weight)


def test_weights_that_cannot_count_are_none():
    found = examples_of(np.ones((4, 1)), np.arange(4.0), [1e-140, 1e126, 1e100, 2e126])
    assert found.kept.tolist() == [False, True, False, True]
    assert found.y.tolist() == [1.0, 3.0]
    assert examples_of(np.ones((2, 1)), np.ones(2), [1e-12, 1.0]).kept is None
    assert examples_of(np.ones((2, 1)), np.ones(2), [1.0, 2.0**50]).kept is None


def test_two_classes_have_one_target_and_more_have_one_each():
    position = np.array([0, 1, 1])
    np.testing.assert_array_equal(one_vs_rest(position, 2), [[-1], [1], [1]])
    np.testing.assert_array_equal(one_vs_rest(position, 3), [[1, -1, -1], [-1, 1, -1], [-1, 1, -1]])


def test_labels_are_found_among_the_classes():
    classes = np.array(["a", "c"])
    np.testing.assert_array_equal(positions_of(np.array(["c", "a", "c"]), classes), [1, 0, 1])
    for unknown in ("b", "d"):
        with pytest.raises(ValueError, match=f"y_val holds the label .*{unknown}.*, which is none of those trained on"):
            positions_of(np.array(["a", unknown]), classes)


# --- weights of classes -------------------------------------------------------------------------------------

CLASSES, POSITION = np.array(["a", "b"]), np.array([0, 0, 0, 1])


def test_balanced_classes_weigh_the_same_together():
    weight = np.array([1.0, 2.0, 3.0, 4.0])
    for weights in (None, weight):
        found = times(weights, class_weights("balanced", CLASSES, np.bincount(POSITION, weights)), POSITION)
        assert found[:3].sum() == pytest.approx(found[3:].sum())
        assert found.sum() == pytest.approx(4.0 if weights is None else weight.sum())


def test_a_class_that_is_not_named_weighs_one():
    np.testing.assert_array_equal(class_weights({"b": 2.5}, CLASSES, np.bincount(POSITION)), [1.0, 2.5])
    assert class_weights(None, CLASSES, np.bincount(POSITION)) is None
    assert times(None, None, POSITION) is None


def test_a_weight_of_a_class_times_a_repetition_is_exact():
    third = class_weights({"a": 1 / 3}, CLASSES, np.bincount(POSITION))[0]
    assert third == pytest.approx(1 / 3, rel=1e-9)
    for n in range(1, 2_000):
        assert sum([third] * n) == third * n


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("heavy", "class_weight='heavy' is not known"),
        ([1, 2], r"give 'balanced', or a dict from class to weight"),
        ({"z": 1.0}, "class_weight names 'z', which is not a class"),
        ({"a": 0.0}, "class_weight=0.0 must be"),
    ],
)
def test_weights_of_classes_that_mean_nothing_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        class_weights(given, CLASSES, np.bincount(POSITION))


# --- targets ------------------------------------------------------------------------------------------------


def test_targets_too_large_to_square_are_refused():
    with pytest.raises(ValueError, match=r"y holds -1e.200; rescale it to below 1e.150"):
        real_targets([1.0, -1e200])
    with pytest.raises(ValueError, match="the target y is None"):
        real_targets(None)


def test_the_spread_is_the_standard_deviation_and_one_of_a_constant():
    rng = np.random.default_rng(0)
    y, weight = np.column_stack([rng.normal(3, 2, size=50), np.full(50, 7.1)]), rng.integers(1, 5, size=50)
    np.testing.assert_allclose(spread_of(y, None), [y[:, 0].std(), 1.0])
    repeated = np.repeat(y, weight, axis=0)
    np.testing.assert_allclose(spread_of(y, weight.astype(float)), [repeated[:, 0].std(), 1.0])
