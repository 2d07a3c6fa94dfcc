"""Importances from counts are those of the training rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from explained import fitted, several_outputs

import quadboost

GOLDEN_1 = Path(__file__).parents[1] / "data" / "model-v1.h5"


@pytest.mark.parametrize("kind", ["mean_abs", "std", "range"])
def test_counts_give_what_the_training_rows_give(kind):
    model, X, _ = fitted()
    counted, measured = model.importances(kind), model.importances(kind, X)
    assert [term.term for term in counted] == [term.term for term in measured]
    np.testing.assert_allclose(
        [term.importance for term in counted], [term.importance for term in measured], rtol=1e-10
    )
    assert [term.importance for term in counted] == sorted((term.importance for term in counted), reverse=True)


def test_importances_are_what_their_names_say():
    model, X, _ = fitted()
    values = model.explain(X).values
    of = dict(model.importances("mean_abs"))
    assert of["x"] == pytest.approx(np.abs(values[:, 0]).mean(), rel=1e-10)
    assert dict(model.importances("range"))["city"] == pytest.approx(np.ptp(values[:, 2]), rel=1e-10)


def test_outputs_are_added():
    model = several_outputs()
    values = np.array([[-0.5 - 1.0], [0.5 - 1.0], [0.5 + 1.0]])
    assert dict(model.importances("range"))["feature 0"] >= np.ptp(values)
    assert len(model.importances()) == 2


def test_without_counts_rows_are_needed():
    model = quadboost.load(GOLDEN_1)
    with pytest.raises(ValueError, match="no counts of its training rows, which kind='std' needs; give some rows"):
        model.importances("std")
    assert len(model.importances("range")) == 4
    rows = np.array([[1.0, "a", 0.0, 0.0], [None, None, 1.0, 1.0]], dtype=object)
    assert len(model.importances("std", rows)) == 4
    with pytest.raises(ValueError, match="kind='gain'"):
        model.importances("gain")
