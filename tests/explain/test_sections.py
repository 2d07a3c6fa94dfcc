"""Sections say what the model knows, and what it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from explained import NASTY, fitted, several_outputs

import quadboost
from quadboost import Ensemble
from quadboost.explain.report import report_html
from quadboost.explain.sections import (
    constraints_section,
    data_section,
    digest,
    form_data,
    importance_section,
    model_section,
    rules_section,
    shapes_section,
    training_section,
)
from quadboost.voters.trees import Trees

GOLDEN_1 = Path(__file__).parents[1] / "data" / "model-v1.h5"


def test_the_digest_is_that_of_the_file(tmp_path):
    import hashlib

    model, _, _ = fitted()
    model.save(tmp_path / "model.h5")
    assert digest(model.ensemble_) == hashlib.sha256((tmp_path / "model.h5").read_bytes()).hexdigest()
    assert digest(model.ensemble_) in model_section(model.ensemble_)
    assert digest(Ensemble([], [], [], 0.0, n_features=1, info={"a": object()})).startswith("not known: ")


def test_columns_are_told_with_what_is_missing():
    model, X, _ = fitted()
    text = data_section(model.ensemble_, model.ensemble_.matrix_of(X))
    assert text.count("<svg") == 4
    assert f"{100 * (1 - X['x'].notna().sum() / len(X)):.1f} %" in text
    assert "category, 4 levels" in text
    assert data_section(model.ensemble_, np.empty((0, 4))) == "<p>There are no rows.</p>"


def test_infinite_values_are_told():
    model = Ensemble([0], [1.0], [1.0], 0.0, n_features=1)
    assert "inf (-inf to inf)" in data_section(model, np.array([[np.inf], [-np.inf], [np.inf]]))


@pytest.mark.parametrize("values", [[1.7e18] * 3, [1e16, 1e16 + 2, 1e16 + 4], [0.0, 5e-324, 1e-323], [0.0, 1.7e308]])
def test_columns_of_constants_neighbours_and_all_sizes_are_drawn(values):
    model = Ensemble([0], [1.0], [1.0], 0.0, n_features=1)
    assert "<svg" in data_section(model, np.array(values)[:, None])


def test_training_tells_what_info_holds_whatever_it_is():
    model, _, _ = fitted()
    assert "QuadBoostClassifier" in training_section(model.ensemble_)
    strange = model.ensemble_.replace(
        info={NASTY: NASTY, "deep": {"a": [1, {"b": None}], "c": 1e-9}, "x": "y" * 10_000}
    )
    text = training_section(strange)
    assert "<script" not in text
    assert len(text) < 3000
    assert training_section(model.ensemble_.replace(info={})) == "<p>The model does not say how it was trained.</p>"


def test_without_counts_sections_give_what_they_can():
    model = quadboost.load(GOLDEN_1)
    assert "no counts of its training rows" in importance_section(model, np.empty((0, 4)))
    text = shapes_section(model)
    assert "without their mean" in text
    assert "There are no bands" in text
    assert text.count("<svg") == 4


def test_constraints_are_those_asked_for_and_those_that_hold():
    model = Ensemble([0, 0, 1], [0.0, 1.0, 0.0], [1.0, 2.0, -1.0], 0.0, n_features=2, feature_names=["up", "down"])
    text = constraints_section(model)
    assert "None were asked for" in text
    assert "never falls as these grow: up." in text
    assert "never rises as these grow: down." in text
    asked = model.replace(info={"parameters": {"monotonic_cst": "{'up': 1}"}})
    assert "Asked for: the score never falls as these grow: up." in constraints_section(asked)
    given = {"monotonic_cst": [0, -1], "interaction_cst": "[['up'], ['down']]"}
    text = constraints_section(model.replace(info={"parameters": given}))
    assert "Asked for: the score never rises as these grow: down." in text
    assert "Asked for: rules may only join features within up, down." in text
    odd = constraints_section(model.replace(info={"parameters": {"monotonic_cst": "{" * 5000}}))
    assert "Asked for: monotone in {{" in odd


def test_rules_are_listed_with_their_support():
    trees = Trees(np.array([0, 5]), np.array([0, -1, 1, -1, -1]), np.array([0.5, 0, 2.0, 0, 0]), np.zeros(5, np.uint8))
    model = Ensemble([], [], [], 0.0, n_features=2, feature_names=[NASTY, "b"], trees=trees,
                     node_weight=[0.0, 0.0, 0.0, 0.0, 1.5], node_mass=[8.0, 4.0, 4.0, 2.0, 2.0])  # fmt: skip
    text = rules_section(model)
    assert "+3" in text
    assert "25.0 %" in text
    assert "<b>and</b> b &gt; 2" in text
    assert "<script" not in text
    assert "no rules" in rules_section(several_outputs())


def test_of_several_scores_the_strongest_is_drawn():
    assert shapes_section(several_outputs()).count("<svg") == 2


@pytest.mark.slow
def test_very_many_features_are_cut_off_with_a_word():
    n = 1000
    model = Ensemble(
        np.arange(n), np.zeros(n), np.linspace(1, 2, n), 0.0, n_features=n, bin_mass=np.tile([1.0, 1.0, 0.0], n)
    )
    assert shapes_section(model).count("<svg") == 100
    assert "900 less important features are not drawn" in shapes_section(model)
    assert "800 more features are not listed" in data_section(model, np.zeros((3, n)))
    assert importance_section(model, np.zeros((3, n))).count("<rect") == 40


def test_a_constant_has_a_report_too():
    model = Ensemble([], [], [], 1.0, n_features=2)
    assert "No feature matters" in importance_section(model, np.zeros((1, 2)))
    page = report_html(model, np.zeros((1, 2)), [1.0])
    assert "There is nothing to try" in page
    assert "<form" not in page
    assert shapes_section(model).count("<svg") == 0


def test_fields_hold_text_that_is_the_same_number():
    model, X, _ = fitted()
    data = form_data(model.ensemble_, model.ensemble_.matrix_of(X), [[0.0]] * 4, [0.0])
    assert len(data["rows"]) == 6
    first = data["rows"][0]
    assert float(first[1]) == X["tail"][0]
    assert first[2] == sorted(X["city"].unique()).index(X["city"][0])
