"""Cuts indexed by buckets: every cut in its own, and no search longer than it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadboost.voters.bins import MOST_BUCKETS, bin_index, starts

LARGEST = np.finfo(float).max
SHAPES = {
    "none": [],
    "one": [3.0],
    "even": np.arange(255.0),
    "normal": np.sort(np.random.default_rng(0).normal(size=255)),
    "heavy tail": np.sort(np.exp(np.random.default_rng(0).normal(size=255) * 20)),
    "both tails": np.sort(np.sinh(np.random.default_rng(0).normal(size=1_000) * 20)),
    "neighbours": 1.0 + np.arange(300) * 2.0**-52,
    "widest": [-LARGEST, 0.0, LARGEST],
    "smallest": [0.0, 5e-324, 1e-323],
}


def place_of(index, f, value):
    """The bucket of a value by the rule, and so how many cuts are before it."""
    rule = index.rule[f]
    if rule["shift"] >= 0:
        key, low = (int(np.float64(x).view(np.int64)) for x in (value + 0.0, rule["low"]))
        key, low = (k ^ 0x7FFF_FFFF_FFFF_FFFF if k < 0 else k for k in (key, low))
        bucket = min((key - low) >> int(rule["shift"]), int(rule["last_bucket"]))
    else:
        with np.errstate(over="ignore"):
            bucket = int(min(max((value - rule["low"]) * rule["scale"], 0.0), rule["last_bucket"]))
    return int(index.place[rule["first_place"] + bucket])


@pytest.mark.parametrize("cuts", SHAPES.values(), ids=SHAPES.keys())
def test_every_cut_is_found_from_its_bucket_in_the_steps_allowed(cuts):
    cuts = np.asarray(cuts, dtype=float)
    index = bin_index([cuts])
    reach = 1 << int(index.rule["n_steps"][0])
    for i, cut in enumerate(cuts.tolist()):
        assert place_of(index, 0, cut) <= i < place_of(index, 0, cut) + reach
    np.testing.assert_array_equal(index.cuts[: len(cuts)], cuts)
    assert np.isposinf(index.cuts[len(cuts) :]).all()
    assert len(index.cuts) - len(cuts) >= reach


@given(
    st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30, unique=True), max_size=4),
)
def test_features_stand_one_after_another(features):
    features = [np.sort(np.unique(np.array(values, dtype=float) + 0.0)) for values in features]
    index = bin_index(features)
    assert len(index.rule) == len(features)
    for f, cuts in enumerate(features):
        first = index.rule["first_cut"][f]
        np.testing.assert_array_equal(index.cuts[first : first + len(cuts)], cuts)
        last = index.rule["first_place"][f] + int(index.rule["last_bucket"][f])
        assert index.place[last + 1] == len(cuts) + 1, "after the last bucket: the code of a missing value"
        assert (np.diff(index.place[index.rule["first_place"][f] : last + 1]) >= 0).all()


def test_even_cuts_are_found_at_once_and_heavy_tails_in_a_few_steps():
    steps = {name: int(bin_index([np.asarray(cuts, dtype=float)]).rule["n_steps"][0]) for name, cuts in SHAPES.items()}
    assert steps["even"] == 1
    assert steps["normal"] <= 3
    assert steps["heavy tail"] <= 3
    assert steps["both tails"] <= 5  # halving all thousand takes ten


def test_buckets_are_limited():
    index = bin_index([np.arange(600_000.0)])
    assert index.rule["last_bucket"][0] < MOST_BUCKETS


def test_where_arrays_begin_when_put_one_after_another():
    np.testing.assert_array_equal(starts([3, 0, 2]), [0, 3, 3, 5])
    np.testing.assert_array_equal(starts([]), [0])
