"""Rows of which only the bins are left."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_table import mixed_table

from quadboost import QuadBoostClassifier
from quadboost.voters.binned import Binned
from quadboost.voters.thresholds import candidate_voters

X = mixed_table(300)
VOTERS = candidate_voters(X, thresholds=9, n_levels={4: 4})
BINNED = Binned(VOTERS, VOTERS.code(X))


def test_values_lie_in_the_bins_that_they_stand_for():
    assert np.array_equal(VOTERS.code(BINNED.values()), BINNED.codes)


def test_models_score_binned_rows_as_the_rows_themselves():
    model = QuadBoostClassifier(thresholds=9, categorical_features=[4]).fit(X, X[:, 0] > 0).ensemble_
    assert np.array_equal(model.score_matrix(BINNED.values()), model.decision_function(X))


def test_a_part_of_the_rows_has_their_codes():
    part = BINNED[np.array([3, 1])]
    assert part.shape == (2, X.shape[1])
    assert np.array_equal(part.codes, BINNED.codes[[3, 1]])


def test_other_voters_cannot_code_binned_rows():
    with pytest.raises(ValueError, match="known by their bins alone"):
        BINNED.coded_by(candidate_voters(X, thresholds=8, n_levels={4: 4}))
