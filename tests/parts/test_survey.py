"""What a fit asks of parts before it codes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from parts_of_tables import in_parts, table, targets, weights

from quadboost.fitting.problem import Problem, Reading
from quadboost.parts.source import InMemory, Part
from quadboost.parts.survey import survey

M = 400
X = table(M)
Y, WEIGHTS = targets(X), weights(M)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_columns_levels_and_classes_are_those_of_all_rows(weight):
    reading = Reading(min_category_count=15)
    known = Problem.of_labels(X, Y["labels"], weight, reading, "balanced")
    found = survey(in_parts(X, Y["labels"], weight), True, reading, "balanced")
    assert found.schema == known.schema
    assert found.classes.tolist() == known.classes.tolist()
    np.testing.assert_array_equal(found.class_weight, known.class_weight)
    assert found.n_rows == known.rows.n_rows


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_targets_are_standardised_as_those_of_all_rows(weight):
    known = Problem.of_targets(X, Y["two"], weight, Reading(), standardize=True)
    found = survey(in_parts(X, Y["two"], weight), False, Reading(), standardize=True)
    np.testing.assert_array_equal(found.target_scale, known.target_scale)


def test_a_column_that_is_all_missing_in_a_part_is_what_it_is_elsewhere():
    rows = X["text"].notna().to_numpy()
    source = InMemory([Part(X[~rows], Y["labels"][~rows]), Part(X[rows], Y["labels"][rows])])
    assert survey(source, True, Reading()).schema == Problem.of_labels(X, Y["labels"], None, Reading()).schema


def test_weights_too_small_to_count_are_none_for_all_parts():
    weight = np.where(np.arange(M) < 5, 1e-100, 1.0)
    found = survey(in_parts(X, Y["labels"], weight), True, Reading())
    assert found.n_rows == M - 5
    assert not found.is_weighted


def test_ordered_categories_are_numbers_where_the_score_must_be_monotone():
    frame = X.assign(text=pd.Categorical(X["text"], ["rare", "zz", "y", "x"], ordered=True))
    reading = Reading(monotonic_cst={"text": 1})
    found = survey(in_parts(frame, Y["labels"]), True, reading)
    assert found.schema == Problem.of_labels(frame, Y["labels"], None, reading).schema
    assert found.schema.orders == {2: ["rare", "zz", "y", "x"]}
