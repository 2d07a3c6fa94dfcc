"""Shape functions as people read them: counts of the training rows behind each value, names, bands."""

import numpy as np
import pandas as pd
import pytest

from quadboost import QuadBoostRegressor, QuadBoostRegressorCV

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"size": RNG.normal(size=400).round(1), "town": RNG.choice(["Bern", "Oslo", "Ulm"], 400)})
FRAME.loc[::9, "size"] = np.nan
TARGET = FRAME["size"].fillna(3.0) + (FRAME["town"] == "Ulm") + 0.1 * RNG.normal(size=400)


def test_masses_are_the_training_rows_behind_each_value():
    size, town = QuadBoostRegressor().fit(FRAME, TARGET).shape_functions()
    assert (size.name, town.name) == ("size", "town")
    known = FRAME["size"].dropna().to_numpy()
    place = np.searchsorted(size.thresholds, known)
    np.testing.assert_array_equal(size.mass, np.bincount(place, minlength=len(size.values)))
    assert size.missing_mass == FRAME["size"].isna().sum()
    assert town.levels == [["Bern"], ["Oslo"], ["Ulm"]]
    np.testing.assert_array_equal(town.mass, [*FRAME["town"].value_counts().sort_index(), 0])


def test_bands_come_with_cross_validation_and_have_the_shape_of_the_values():
    plain, searched = QuadBoostRegressor().fit(FRAME, TARGET), QuadBoostRegressorCV(cv=3).fit(FRAME, TARGET)
    with pytest.raises(ValueError, match="has no bands; fit it with cross-validation"):
        plain.shape_functions(bands=True)
    for shape in searched.shape_functions(bands=True):
        assert shape.error.shape == shape.values.shape
        assert (shape.error >= 0).all()
        assert shape.error.max() > 0
    assert all(shape.error is None for shape in searched.shape_functions())
