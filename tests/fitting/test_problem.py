"""From what a user gives to rows and targets: the one way in for every fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from quadboost.fitting.problem import Problem, Reading

M = 60
FRAME = pd.DataFrame({"x": np.arange(M) / 4, "city": np.array(["p", "q", "r"])[np.arange(M) % 3]})
LABELS = np.array(["no", "yes"])[np.arange(M) % 2]
THREE = np.arange(M) % 3 * 10
REAL = np.sin(np.arange(M)) + 5
WEIGHT = np.arange(M) % 4
READING = Reading()


def test_two_classes_have_one_score():
    problem = Problem.of_labels(FRAME, LABELS, None, READING)
    assert problem.one_output
    assert problem.classes.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(problem.rows.y[:, 0], np.where(LABELS == "yes", 1, -1))
    assert problem.rows.weight is problem.rows.repeats is problem.class_weight is None


def test_more_classes_have_one_score_each_against_the_rest():
    problem = Problem.of_labels(FRAME, THREE, None, READING)
    assert not problem.one_output
    np.testing.assert_array_equal(problem.rows.y, np.where(THREE[:, None] == [0, 10, 20], 1, -1))


def test_one_class_is_too_few_also_where_another_has_no_weight():
    for labels, weight in ((np.full(M, "a"), None), (LABELS, LABELS == "no")):
        with pytest.raises(ValueError, match=r"hold only one class, '(a|no)'; a classifier needs at least two"):
            Problem.of_labels(FRAME, labels, weight, READING)


@pytest.mark.parametrize("one_output", [True, False])
def test_targets_are_divided_by_their_spread_where_that_is_wanted(one_output):
    y = REAL if one_output else np.column_stack([REAL, 8 * REAL])
    plain = Problem.of_targets(FRAME, y, None, READING)
    assert plain.one_output == one_output
    np.testing.assert_array_equal(plain.target_scale, 1.0)
    np.testing.assert_array_equal(plain.rows.y, y.reshape(M, -1))
    scaled = Problem.of_targets(FRAME, y, None, READING, standardize=True)
    np.testing.assert_allclose(scaled.target_scale, y.reshape(M, -1).std(axis=0))
    np.testing.assert_allclose(scaled.rows.y * scaled.target_scale, plain.rows.y)
    assert plain.classes is None


def test_a_single_column_of_targets_is_still_a_column():
    assert not Problem.of_targets(FRAME, REAL[:, None], None, READING).one_output


def test_rows_of_weight_zero_are_left_out_of_everything_but_what_was_given():
    frame = FRAME.copy()
    frame.loc[WEIGHT == 0, "city"] = "seen in rows of weight zero only"
    problem = Problem.of_labels(frame, LABELS, WEIGHT, READING)
    kept = WEIGHT > 0
    assert problem.examples.X is frame
    assert problem.schema.categories == {1: [["p"], ["q"], ["r"]]}
    np.testing.assert_array_equal(problem.rows.X[:, 0], frame["x"][kept])
    np.testing.assert_array_equal(problem.examples.y, LABELS[kept])
    np.testing.assert_array_equal(problem.rows.weight, WEIGHT[kept])
    np.testing.assert_array_equal(problem.examples.all_weights(), WEIGHT)


def test_weights_of_classes_count_but_are_no_repetitions():
    problem = Problem.of_labels(FRAME, LABELS, 1 + WEIGHT, READING, {"yes": 3.0})
    np.testing.assert_array_equal(problem.rows.repeats, 1 + WEIGHT)
    np.testing.assert_array_equal(problem.rows.weight, (1 + WEIGHT) * np.where(LABELS == "yes", 3, 1))
    assert problem.class_weight.tolist() == [1.0, 3.0]


def test_a_table_is_read_as_it_was_asked_for():
    names = Problem.of_labels(FRAME, LABELS, None, READING)
    assert (names.schema.feature_names, names.n_levels) == (("x", "city"), {1: 3})
    numbers = FRAME.assign(city=np.arange(M) % 3)
    assert Problem.of_labels(numbers, LABELS, None, READING).n_levels == {}
    assert Problem.of_labels(numbers, LABELS, None, Reading(["city"])).n_levels == {1: 3}
    pooled = Problem.of_labels(numbers, LABELS, None, Reading(["city"], min_category_count=M))
    assert pooled.schema.categories == {1: [[0, 1, 2]]}


def test_further_rows_are_read_as_the_first_were():
    problem = Problem.of_labels(FRAME, LABELS, None, READING, {"yes": 3.0})
    more = FRAME.assign(city=["r", "never seen"] * (M // 2))
    rows = problem.more_rows(more[["city", "x"]], LABELS[::-1], 1 + WEIGHT, "_val", READING)
    np.testing.assert_array_equal(rows.X, np.column_stack([FRAME["x"], np.tile([2.0, -1.0], M // 2)]))
    np.testing.assert_array_equal(rows.y[:, 0], np.where(LABELS[::-1] == "yes", 1, -1))
    np.testing.assert_array_equal(rows.weight, (1 + WEIGHT) * np.where(LABELS[::-1] == "yes", 3, 1))
    np.testing.assert_array_equal(rows.repeats, 1 + WEIGHT)


def test_further_targets_have_the_scale_of_the_first():
    problem = Problem.of_targets(FRAME, REAL, None, READING, standardize=True)
    rows = problem.more_rows(FRAME, 2 * REAL, None, "_val", READING)
    np.testing.assert_allclose(rows.y[:, 0], 2 * REAL / REAL.std())


def test_further_rows_of_another_kind_are_refused():
    labels = Problem.of_labels(FRAME, LABELS, None, READING)
    with pytest.raises(ValueError, match=r"y_val holds the label .*'maybe'\)?, which is none of those trained on"):
        labels.more_rows(FRAME, np.where(LABELS == "no", "no", "maybe"), None, "_val", READING)
    with pytest.raises(ValueError, match="X_val has 5 rows and y_val has 60"):
        labels.more_rows(FRAME.head(5), LABELS, None, "_val", READING)
    with pytest.raises(ValueError, match="lacks columns that Owner was trained on: 'city'"):
        labels.more_rows(FRAME[["x"]], LABELS, None, "_val", Reading(owner="Owner"))
    real = Problem.of_targets(FRAME, REAL, None, READING)
    with pytest.raises(ValueError, match="y_val has 2 outputs and y has 1; give as many"):
        real.more_rows(FRAME, np.column_stack([REAL, REAL]), None, "_val", READING)


def test_voters_are_those_of_the_rows_that_are_given():
    problem = Problem.of_targets(FRAME, REAL, None, READING)
    everyone = problem.voters(problem.rows, "all", "quantile", 1)
    few = problem.voters(problem.rows.take(np.arange(10)), "all", "quantile", 1)
    assert [len(cuts) for cuts in everyone.cuts] == [M - 1, 3]
    assert [len(cuts) for cuts in few.cuts] == [9, 3]  # levels are those of the whole table
    assert everyone.is_level.tolist() == [0, 1]
