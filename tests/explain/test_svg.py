"""Pictures in SVG are well-formed, stay within their frame, and escape what they are given."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from explained import NASTY, several_outputs

from quadboost import Ensemble
from quadboost.explain.drawing import Scale, picture_of
from quadboost.explain.svg import (
    Frame,
    bars_svg,
    histogram_svg,
    scatter_svg,
    shape_svg,
    spark_svg,
    square_svg,
    steps,
    text_of,
)


def parsed(picture: str) -> ElementTree.Element:
    root = ElementTree.fromstring(picture)
    _, _, width, _ = map(float, root.get("viewBox").split())
    for text in root.iter("text"):
        x = float(text.get("x"))
        assert -1 <= x <= width + 1, "text begins within the picture"
        wide = 5.6 * len(text.text or "")
        left = x - {"end": wide, "mid": wide / 2}.get(text.get("class").split()[0], 0)
        assert left + wide <= width + 8 or "small" in text.get("class"), (text.text, left, width)
    numbers = [float(number) for d in (p.get("d") for p in root.iter("path")) for number in re.findall(r"-?[\d.]+", d)]
    assert all(np.isfinite(numbers))
    return root


def test_the_last_tick_of_any_axis_is_not_cut_off():
    for scale, low, high in ((Scale("log"), 0.01, 1e6), (Scale("linear"), 0.0, 1e6), (Scale("asinh", 1.0), -1e5, 1e5)):
        frame = Frame(40, 10, 300, 100, (low, high), (0.0, 1.0), scale)
        root = ElementTree.fromstring(f'<svg viewBox="0 0 310 140">{frame.axes()}</svg>')
        ends = [
            float(element.get("x")) + 2.8 * len(element.text)
            for element in root.iter("text")
            if element.get("class") == "mid"
        ]
        assert len(ends) >= 3
        assert max(ends) <= 310


def test_a_curve_is_drawn_with_its_band_and_counts():
    model = Ensemble(
        [0, 0, 0], [1.0, 3.0, 0.0], [0.5, 0.25, 0.1], 0.0, kind=[0, 0, 2], n_features=1, bin_mass=[1.0, 2.0, 1.0, 1.0],
        bin_error=[0.1, 0.0, 0.2, 0.3],
    )  # fmt: skip
    root = parsed(shape_svg(picture_of(model, model.shape_functions(bands=True)[0]), "x"))
    kinds = {element.get("class") for element in root.iter("path")}
    assert {"curve", "band", "count", "special", "zero"} <= kinds
    curve = next(element.get("d") for element in root.iter("path") if element.get("class") == "curve")
    assert (curve.count("h"), curve.count("v")) == (3, 2)


def test_levels_are_bars_and_special_ones_hollow():
    model = several_outputs()
    root = parsed(shape_svg(picture_of(model, model.shape_functions()[1], 0), "x"))
    kinds = [element.get("class") for element in root.iter("rect")]
    assert len(kinds) == 5
    assert sum("hollow" in kind for kind in kinds) == 2


def test_nothing_that_is_given_is_markup():
    picture = bars_svg([NASTY, "\ud800\0", "x" * 10_000], [1.0, 2.0, 0.0], NASTY)
    assert "<script" not in picture
    assert "<img" not in picture
    assert len(picture) < 15_000 + 10_000
    assert text_of("\ud800<") == "?&lt;"
    ElementTree.fromstring(bars_svg([NASTY], [1.0], NASTY))


@pytest.mark.parametrize("values", [[], [1.0], [5.0, 5.0], [-1e300, 1e300], list(range(50))])
def test_any_numbers_can_be_drawn(values):
    ends = np.array(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        parsed(scatter_svg(ends, ends, "s", "x", "y"))
        parsed(histogram_svg([("a", "up", ends), ("b", "down", ends)], "h", "x", 0.0))
    parsed(spark_svg(np.abs(ends[:5]), "d"))
    share = np.linspace(0, 1, len(ends))
    parsed(square_svg(share, share, "r", "x", "y", diagonal="up", note="area", intervals=(share, share)))


def test_steps_end_where_they_should_however_many_are_left_out():
    """Moves are rounded, and their sum is not: the last point is that of the data."""
    rng = np.random.default_rng(0)
    edges, values = np.sort(rng.uniform(size=1001)), np.cumsum(rng.normal(size=1000)) / 100
    frame = Frame(0, 0, 340, 190, (0.0, 1.0), (float(values.min()), float(values.max())))
    drawn = steps(frame, edges, values)
    x, y = (
        float(number) + sum(map(float, re.findall(rf"{move}([-\d.]+)", drawn)))
        for number, move in zip(re.match(r"([-\d.]+) ([-\d.]+)", drawn).groups(), "hv", strict=True)
    )
    assert abs(x - frame.x(edges)[-1]) <= 0.06
    assert abs(y - frame.y(values)[-1]) <= 2.0
    assert drawn.count("v") < 1000
