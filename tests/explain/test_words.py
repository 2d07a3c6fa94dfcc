"""Features and values as text."""

from __future__ import annotations

import numpy as np
import pytest
from explained import several_outputs

from quadboost.explain.words import feature_name, feature_number, level_text, number_text, shortened, value_text


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


def test_features_go_by_name_or_number():
    model = several_outputs()
    assert feature_name(model, 2) == "feature 2"
    named = model.replace(feature_names=["u", "v", "w"])
    assert (feature_name(named, 2), feature_number(named, "v"), feature_number(named, 2)) == ("w", 1, 2)
    for wrong, message in (("q", "'q' is not known; the features are"), (3, "must be a number from 0 to 2")):
        with pytest.raises(ValueError, match=message):
            feature_number(named, wrong)
    with pytest.raises(ValueError, match="these features have no names"):
        feature_number(model, "u")


def test_long_text_is_cut():
    assert shortened("x" * 10_000, 20) == "x" * 19 + "…"
    assert shortened("short") == "short"
