"""Features and values as text."""

from __future__ import annotations

import numpy as np
from explained import several_outputs

from quadboost.explain.words import feature_name, level_text, number_text, shortened, value_text


def test_numbers_are_as_people_write_them():
    assert [number_text(value) for value in (3.0, 0.1, 1 / 3, 1e20, -2.5e-9, -1234567.8, np.inf)] == [
        "3", "0.1", "0.333333", "1e+20", "-2.5e-09", "-1234568", "inf",
    ]  # fmt: skip


def test_values_are_named_by_their_levels():
    model = several_outputs()
    found = [value_text(model, 1, value) for value in (0.0, 2.0, -1.0, np.nan)]
    assert found == ["p", "r, s", "a level never seen", "missing"]
    assert value_text(model, 0, 1.5) == "1.5"
    assert level_text(list("abcdef")) == "a, b, c and 3 more"


def test_features_without_names_have_numbers():
    model = several_outputs()
    assert feature_name(model, 2) == "feature 2"
    assert feature_name(model.replace(feature_names=["u", "v", "w"]), 2) == "w"


def test_long_text_is_cut():
    assert shortened("x" * 10_000, 20) == "x" * 19 + "…"
    assert shortened("short") == "short"
