"""Rows as bins of shape functions."""

from __future__ import annotations

import numpy as np
from explained import several_outputs

from quadboost import Ensemble
from quadboost.explain.coding import Coding


def test_tables_and_bins_give_what_the_model_adds():
    model = several_outputs()
    coding = Coding.of(model)
    rows = np.array([[-1.0, 0.0, 9.0], [np.nan, -1.0, 9.0], [0.6, np.nan, 9.0], [-0.9, 2.0, 9.0]])
    codes = coding.code(rows)
    assert codes.tolist() == [[0, 1], [3, 0], [2, 4], [1, 3]]
    score = model.intercept + sum(table[codes[:, j]] for j, table in enumerate(coding.tables))
    np.testing.assert_allclose(score, model.score_matrix(rows), atol=1e-15)


def test_masses_are_in_the_order_of_the_bins():
    of_x, of_levels = Coding.of(several_outputs()).masses()
    assert of_x.tolist() == [2.0, 5.0, 3.0, 1.0]
    assert of_levels.tolist() == [0.0, 4.0, 3.0, 3.0, 1.0]  # never seen, the levels, missing
    counted = Coding.of(several_outputs()).masses_of(np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [np.nan, 1.0, 0.0]]))
    assert [masses.tolist() for masses in counted] == [[0, 2, 0, 1], [1, 0, 2, 0, 0]]
    assert Coding.of(Ensemble([0], [0.0], [1.0], 0.0, n_features=1)).masses() is None
