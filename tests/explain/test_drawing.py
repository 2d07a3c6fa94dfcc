"""What pictures show, before they are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from explained import fitted, several_outputs

from quadboost import Ensemble
from quadboost.explain.drawing import Scale, counts_along, picture_of, scale_of, score_unit, short_number, ticks


def test_a_curve_has_its_first_and_last_plateau():
    model = Ensemble([0, 0], [1.0, 3.0], [0.5, 0.25], 0.0, n_features=1, bin_mass=[1.0, 2.0, 1.0, 0.0])
    (shape,) = model.shape_functions()
    curve = picture_of(model, shape).curve
    assert curve.edges[1:-1].tolist() == [1.0, 3.0]
    assert curve.edges[0] < 1.0
    assert curve.edges[-1] > 3.0
    mean = (-0.75 + 2 * 0.25 + 0.75) / 4
    np.testing.assert_allclose(curve.values, np.array([-0.75, 0.25, 0.75]) - mean)


def test_a_single_threshold_and_none_have_ends_too():
    for threshold in (0.0, 5.0, -1e300):
        model = Ensemble([0], [threshold], [1.0], 0.0, n_features=1)
        edges = picture_of(model, model.shape_functions()[0]).curve.edges
        assert edges[0] < threshold < edges[2]
        assert np.isfinite(edges).all()
    model = Ensemble([0], [0.0], [1.0], 0.0, kind=[2], n_features=1)
    picture = picture_of(model, model.shape_functions()[0])
    assert picture.curve.values.tolist() == [-1.0]
    assert [level.name for level in picture.levels] == ["missing"]


def test_levels_are_bars_with_missing_and_never_seen_apart():
    model = several_outputs()
    picture = picture_of(model, model.shape_functions()[1], output=1)
    assert picture.curve is None
    assert [level.name for level in picture.levels] == ["r, s", "p", "q", "missing", "never seen"]
    assert [level.is_special for level in picture.levels] == [False] * 3 + [True] * 2
    assert sum(level.share or 0.0 for level in picture.levels) == pytest.approx(1.0)
    assert picture.levels[0].value - picture.levels[2].value == pytest.approx(1.5)


def test_of_very_many_levels_the_most_frequent_are_drawn():
    n = 5000
    mass = np.arange(n + 2.0)
    model = Ensemble(
        [0], [0.0], [1.0], 0.0, kind=[1], n_features=1, categories={0: [[f"v{i}"] for i in range(n)]}, bin_mass=mass
    )
    picture = picture_of(model, model.shape_functions()[0])
    assert picture.n_left_out == n - 12
    assert {level.name for level in picture.levels if not level.is_special} == {f"v{i}" for i in range(n - 12, n)}


def test_heavy_tails_have_a_scale_on_which_they_can_be_read():
    assert scale_of(np.linspace(-3, 3, 50)).name == "linear"
    assert scale_of(np.geomspace(0.001, 1e6, 50)).name == "log"
    assert scale_of(np.append(-1.0, np.geomspace(0.001, 1e6, 50))).name == "asinh"
    assert scale_of(np.array([1.0, 2.0])).name == "linear"
    wide = np.array([-1.7e308, 0.0, 1.0, 2.0, 1.7e308])
    assert np.isfinite(scale_of(wide).place(wide)).all()
    for scale in (Scale("log"), Scale("asinh", 0.5), Scale("linear")):
        np.testing.assert_allclose(scale.value(scale.place(np.array([0.1, 3.0]))), [0.1, 3.0])


def test_ticks_are_round_few_and_within():
    assert ticks(0.0, 1.0, Scale("linear")) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(-0.31, 0.42, Scale("linear"), 4) == pytest.approx([-0.2, 0.0, 0.2, 0.4])
    assert ticks(0.5, 2e6, Scale("log"), 4)[-1] == 1e6
    for scale in (Scale("linear"), Scale("log"), Scale("asinh", 1.0)):
        for low, high in ((1e-9, 1e9), (3.0, 3.5), (100.0, 1e5), (2.0, 2.0)):
            found = ticks(low, high, scale)
            assert 1 <= len(found) <= 11
            room = 1e-9 * (high - low + 1)
            assert all(low - room <= tick <= high + room for tick in found), (scale, low, high, found)


def test_an_axis_of_tiny_numbers_has_a_tick():
    assert ticks(-1e-323, 1e-323, Scale("linear")) == [-1e-323]
    assert ticks(0.0, 5e-324, Scale("log")) == [0.0]


def test_numbers_are_short():
    assert [short_number(v) for v in (0.0, 0.25, 1500.0, 20000.0, 1.5e6, -3e9, 1e-7)] == [
        "0", "0.25", "1.5k", "20k", "1.5M", "-3G", "1e-07",
    ]  # fmt: skip


def test_counts_are_spread_over_their_bins():
    found = counts_along(np.array([0.0, 1.0, 4.0]), np.array([2.0, 6.0]), 4)
    np.testing.assert_allclose(found, [2, 2, 2, 2])
    assert counts_along(np.array([1.0, 1.0]), np.array([2.0]), 3).tolist() == [0, 0, 0]


def test_units_say_what_the_score_is():
    model, _, _ = fitted()
    assert score_unit(model.ensemble_) == "log-odds of yes"
    assert score_unit(several_outputs(), 2) == "score of c, in logs"
    assert score_unit(Ensemble([], [], [], 0.0, n_features=1)) == "units of the target"
