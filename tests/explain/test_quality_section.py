"""The section on quality, for every kind of model and set of rows."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest
from explained import fitted, several_outputs
from sklearn.metrics import confusion_matrix

from quadboost import QuadBoostRegressor
from quadboost.explain.quality_section import quality_section


def test_two_classes_have_curves_and_a_table_that_is_right():
    model, X, y = fitted()
    text, figures = quality_section(model.ensemble_, model.decision_function(X), y)
    assert text.count("<svg") == 4
    assert [name for _, name in figures] == ["area under the ROC curve", "accuracy", "log-loss"]
    known = confusion_matrix(y, model.predict(X))
    found = [
        [int(re.search(rf'id="{cell}">([\d,]+)<', text)[1].replace(",", "")) for cell in row]
        for row in (("tn", "fp"), ("fn", "tp"))
    ]
    assert found == known.tolist()


def test_the_border_moves_through_right_counts():
    model, X, y = fitted()
    text, _ = quality_section(model.ensemble_, model.decision_function(X), y)
    counts = json.loads(unescape(re.search(r'data-counts="([^"]*)"', text)[1]))
    p = model.predict_proba(X)[:, 1]
    for at, false, true in list(zip(counts["at"], counts["false"], counts["found"], strict=True))[5:-5:20]:
        above = p > at
        near = np.sum(np.abs(p - at) < 1e-6)  # borders are rounded to six digits
        assert abs(false - np.sum(above & (y == "no"))) <= near
        assert abs(true - np.sum(above & (y == "yes"))) <= near


def test_one_class_and_no_rows_say_so():
    model, X, y = fitted()
    is_yes = y == "yes"
    text, figures = quality_section(model.ensemble_, model.decision_function(X[is_yes]), y[is_yes])
    assert "All rows are yes: nothing can be said" in text
    assert "accuracy" in dict(map(reversed, figures))
    text, figures = quality_section(model.ensemble_, np.empty(0), [])
    assert (text, figures) == ("<p>There are no rows to judge by.</p>", [])


def test_several_classes_have_a_table():
    model = several_outputs()
    rows = np.array([[-2.0, "p", 0.0], [0.0, "q", 0.0], [2.0, "s", 0.0]] * 5, dtype=object)
    text, figures = quality_section(model, model.decision_function(rows), ["a", "b", "c"] * 5)
    assert text.count("called ") >= 3
    assert len(figures) == 2
    with pytest.raises(ValueError, match="there are 15 rows and 3 labels"):
        quality_section(model, model.decision_function(rows), ["a", "b", "c"])


def test_a_regression_has_residuals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    model = QuadBoostRegressor().fit(X, y)
    text, figures = quality_section(model.ensemble_, model.ensemble_.decision_function(X), y)
    assert text.count("<svg") == 3
    assert figures[0][1] == "r2"
    with pytest.raises(ValueError, match="y must hold a number for each row: could not convert"):
        quality_section(model.ensemble_, np.zeros(2), ["low", "high"])
    with pytest.raises(ValueError, match="y has 3 rows of 1 targets; give 2 rows of 1, as the model predicts them"):
        quality_section(model.ensemble_, np.zeros(2), [1.0, 2.0, 3.0])
    assert float(figures[0][0]) == pytest.approx(model.score(X, y), abs=1e-4)
    text, _ = quality_section(model.ensemble_, model.ensemble_.decision_function(X), np.ones(300))
    assert "not defined: all targets are the same" in text
    with pytest.raises(ValueError, match="y holds a target that is not finite"):
        quality_section(model.ensemble_, model.ensemble_.decision_function(X), np.full(300, np.nan))


def test_several_targets_are_shown_one_by_one():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    model = QuadBoostRegressor().fit(X, np.column_stack([X[:, 0]] * 6))
    text, _ = quality_section(model.ensemble_, model.ensemble_.decision_function(X), np.column_stack([X[:, 0]] * 6))
    assert text.count("<h3>Target") == 4
    assert "2 more targets are not shown" in text
