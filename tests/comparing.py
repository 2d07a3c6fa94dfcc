"""Two fitted estimators compared: every bit of what was learnt."""

import numpy as np


def score(model, Z):
    return model.decision_function(Z) if hasattr(model, "decision_function") else model.predict(Z)


def assert_same_model(found, known):
    """Every bit of what was learnt."""
    for name in ("feature", "kind", "threshold", "weight"):
        np.testing.assert_array_equal(getattr(found.ensemble_, name), getattr(known.ensemble_, name), err_msg=name)
    for name, values in known.ensemble_.trees.arrays().items():
        np.testing.assert_array_equal(getattr(found.ensemble_.trees, name), values, err_msg=name)
    np.testing.assert_array_equal(found.ensemble_.node_weight, known.ensemble_.node_weight)
    for name in ("node_mass", "pattern_node", "pattern", "pattern_mass"):
        np.testing.assert_array_equal(getattr(found.ensemble_, name), getattr(known.ensemble_, name), err_msg=name)
    np.testing.assert_array_equal(found.intercept_, known.intercept_)
    np.testing.assert_array_equal(found.reg_lambda_, known.reg_lambda_)
    assert found.ensemble_.categories == known.ensemble_.categories
    histories = zip(np.atleast_1d(found.history_), np.atleast_1d(known.history_), strict=True)
    for history, other in histories:
        assert history.keys() == other.keys()
        for name, values in other.items():
            np.testing.assert_array_equal(history[name], values, err_msg=name)
    np.testing.assert_array_equal(found.feature_importances_, known.feature_importances_)
