"""Models and estimators have the same explanations."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from explained import fitted

import quadboost
from quadboost import QuadBoostClassifier


def test_a_model_explains_as_the_estimator_does_also_from_a_file(tmp_path):
    model, X, _ = fitted()
    model.save(tmp_path / "model.h5")
    loaded = quadboost.load(tmp_path / "model.h5")
    known = model.explain(X[:9])
    for other in (model.ensemble_, loaded, QuadBoostClassifier.from_ensemble(loaded)):
        np.testing.assert_array_equal(other.explain(X[:9]).values, known.values)
        assert other.importances() == model.importances()
        assert [shape.mass.tolist() for shape in other.shape_functions()] == [
            shape.mass.tolist() for shape in model.shape_functions()
        ]


def test_who_was_not_fitted_explains_nothing():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        QuadBoostClassifier().explain([[1.0]])
    with pytest.raises(NotFittedError):
        QuadBoostClassifier().shape_functions()


@pytest.mark.slow
def test_explaining_needs_numpy_alone(run_python, tmp_path):
    model = fitted()[0]
    model.save(tmp_path / "model.h5")
    code = f"""
import sys
import numpy as np
import quadboost
model = quadboost.load({str(tmp_path / "model.h5")!r})
rows = np.array([[0.5, 2.0, "Rome", 1.0]], dtype=object)
found = model.explain(rows)
assert found.by_feature().shape == (1, 4) and len(found.reasons()[0]) == 3
model.importances()
assert not {{"sklearn", "scipy", "pandas", "h5py", "matplotlib"}} & set(sys.modules)
"""
    run_python(code)
    assert "quadboost" in sys.modules
