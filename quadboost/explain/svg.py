"""Small pictures in SVG. Colours are classes, so that a page can be light or dark; text is always escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .drawing import Curve, Level, Picture, Scale, counts_along, short_number, ticks
from .words import shortened

LETTER = 5.6  # width of a letter of an axis, in pixels
LINEAR = Scale("linear")


def text_of(value: object) -> str:
    """Anything as text of a page: nothing in it is markup, and every character can be written as UTF-8."""
    return html.escape(str(value).encode("utf-8", "replace").decode("utf-8"), quote=True)


SEEN, FAR = 0.4, 2.0  # pixels: a step that is lower, or is nearer to the last one, is not drawn


def _n(value: float) -> str:
    """A coordinate."""
    return f"{value:.1f}".removesuffix(".0") if np.isfinite(value) else "0"


class Frame(NamedTuple):
    """Where the data go in a picture: from (left, top) to (right, bottom)."""

    left: float
    top: float
    right: float
    bottom: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_scale: Scale = LINEAR

    def x(self, values: np.ndarray | float) -> np.ndarray:
        low, high = self.x_scale.place(np.array(self.x_range))
        width = high - low if high > low else 1.0
        share = (self.x_scale.place(np.asarray(values, dtype=np.float64)) - low) / width
        return self.left + (self.right - self.left) * np.clip(np.nan_to_num(share), -0.02, 1.02)

    def y(self, values: np.ndarray | float) -> np.ndarray:
        low, high = self.y_range
        height = high - low if high > low else 1.0
        share = (np.asarray(values, dtype=np.float64) - low) / height
        return self.bottom - (self.bottom - self.top) * np.clip(np.nan_to_num(share), -0.02, 1.02)

    def axes(self, x_label: str = "", y_label: str = "") -> str:
        parts = []
        for value in ticks(*self.x_range, self.x_scale, 6):
            at, label = float(self.x(value)), short_number(value)
            half = LETTER * len(label) / 2  # kept within the picture, whatever the axis
            middle = min(max(at, self.left - 20 + half), self.right + 6 - half)
            parts.append(line(at, self.bottom, at, self.bottom + 3, "axis"))
            parts.append(text(middle, self.bottom + 14, label, "mid"))
        for value in ticks(*self.y_range, LINEAR, 5):
            at = float(self.y(value))
            parts.append(line(self.left, at, self.right, at, "grid"))
            parts.append(text(self.left - 4, at + 3.5, short_number(value), "end"))
        parts.append(line(self.left, self.bottom, self.right, self.bottom, "axis"))
        if x_label:
            parts.append(text((self.left + self.right) / 2, self.bottom + 28, x_label, "mid"))
        if y_label:
            parts.append(text(self.left - 30, self.top - 8, y_label, "start"))
        return "".join(parts)


def svg(width: float, height: float, parts: Iterable[str], label: str) -> str:
    """A picture that grows with its column, with a name for those who cannot see it."""
    inner = "".join(parts)
    return (
        f'<svg viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" height="{_n(height)}" role="img" '
        f'aria-label="{text_of(label)}">{inner}</svg>'
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}"/>'


def text(x: float, y: float, content: str, kind: str = "start") -> str:
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}">{text_of(content)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    inside = f"<title>{text_of(title)}</title>" if title else ""
    box = f'x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(max(height, 0))}"'
    return f'<rect class="{kind}" {box}>{inside}</rect>' if inside else f'<rect class="{kind}" {box}/>'


def path(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray, kind: str, close: bool = False) -> str:
    return f'<path class="{kind}" d="M{moves(np.asarray(x), np.asarray(y))}{"z" if close else ""}"/>'


def moves(x: np.ndarray, y: np.ndarray) -> str:
    """From the first point to the next, and so on, in tenths of a pixel: as short as SVG can say it."""
    x, y = (np.round(10 * np.clip(np.nan_to_num(values), -1e6, 1e6)).astype(int) for values in (x, y))
    said = [f"{_tenths(a)} {_tenths(b)}" for a, b in zip(x[:1], y[:1], strict=True)] or ["0 0"]
    for across, down in zip(np.diff(x).tolist(), np.diff(y).tolist(), strict=True):
        if across and down:
            said.append(f"l{_tenths(across)}{'' if down < 0 else ' '}{_tenths(down)}")
        elif across or down:
            said.append(f"h{_tenths(across)}" if across else f"v{_tenths(down)}")
    return "".join(said)


def _tenths(value: int) -> str:
    return f"{value / 10:g}".replace("0.", ".", 1) if -10 < value < 10 else f"{value / 10:g}"


def steps(frame: Frame, edges: np.ndarray, values: np.ndarray) -> str:
    """A step function; steps too small to see are left out."""
    x, y = frame.x(edges), frame.y(values)
    drawn = [0]
    for i in range(1, len(y)):
        up, across = abs(y[i] - y[drawn[-1]]), abs(x[i] - x[drawn[-1]])
        if up > SEEN and up + across > FAR:
            drawn.append(i)
    return moves(np.append(np.repeat(x[drawn], 2)[1:], x[-1]), np.repeat(y[drawn], 2))


def bars(heights: np.ndarray, left: float, bottom: float, wide: float) -> str:
    """The outline of bars side by side."""
    edges = np.repeat(left + wide * np.arange(len(heights) + 1), 2)
    return path(edges, bottom - np.concatenate([[0.0], np.repeat(heights, 2), [0.0]]), "count", close=True)


def shape_svg(picture: Picture, label: str) -> str:
    """A shape function: a curve with its band and counts, or a bar for each level."""
    width, height, curve = 340, 190, picture.curve
    if curve is None:
        return _levels_svg(picture.levels, label, width)
    low, high = _limits(curve, picture.levels)
    frame = Frame(
        44, 12, width - 12, height - 52, (float(curve.edges[0]), float(curve.edges[-1])), (low, high), curve.scale
    )
    parts = [frame.axes()]
    if curve.error is not None:
        upper = steps(frame, curve.edges, curve.values + curve.error)
        lower = steps(frame, curve.edges[::-1], (curve.values - curve.error)[::-1])
        parts.append(f'<path class="band" d="M{upper}L{lower}z"/>')
    parts.append(line(frame.left, float(frame.y(0.0)), frame.right, float(frame.y(0.0)), "zero"))
    parts.append(f'<path class="curve" d="M{steps(frame, curve.edges, curve.values)}"/>')
    for level in picture.levels:
        at = float(frame.y(level.value))
        parts.append(line(frame.left, at, frame.right, at, "special"))
        parts.append(text(frame.right, at - 3, _with_share(level), "end small"))
    if curve.mass is not None:
        parts.append(_counts(curve, frame.left, frame.right, height - 4, 22))
    return svg(width, height, parts, label)


def _limits(curve: Curve, special: list[Level]) -> tuple[float, float]:
    """What the y axis spans: all steps that hold rows, with their bands; thin ones by their value alone."""
    values = [curve.values, np.array([0.0, *(level.value for level in special)])]
    if curve.error is not None:
        many = np.ones(len(curve.values), bool) if curve.mass is None else curve.mass > 0.002 * curve.mass.sum()
        values += [(curve.values + curve.error)[many], (curve.values - curve.error)[many]]
    whole = np.concatenate(values)
    low, high = float(whole.min()), float(whole.max())
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _counts(curve: Curve, left: float, right: float, bottom: float, height: float) -> str:
    """The training weight along the axis, by the root of the count."""
    n = 45
    places = curve.scale.place(curve.edges)
    share = np.sqrt(counts_along(places, np.asarray(curve.mass), n))
    tall = height * share / (share.max() or 1.0)
    wide = (right - left) / n
    return bars(tall, left, bottom, wide)


def _with_share(level: Level) -> str:
    return shortened(level.name, 24) + ("" if level.share is None else f" {100 * level.share:.1f} %")


def _levels_svg(levels: list[Level], label: str, width: float) -> str:
    row, top = 17, 6
    bottom = top + row * len(levels)
    ends = [0.0] + [level.value + sign * (level.error or 0.0) for level in levels for sign in (-1, 1)]
    low, high = min(ends), max(ends)
    room = 0.05 * (high - low) or 1.0
    frame = Frame(132, top, width - 46, bottom, (low - room, high + room), (0.0, 1.0))
    zero = float(frame.x(0.0))
    parts = []
    for value in ticks(*frame.x_range, LINEAR, 4):
        at = float(frame.x(value))
        parts += [line(at, top, at, bottom, "grid"), text(at, bottom + 13, short_number(value), "mid")]
    for i, level in enumerate(levels):
        y, at = top + row * i, float(frame.x(level.value))
        kind = ("up" if level.value > 0 else "down") + (" hollow" if level.is_special else "")
        parts.append(text(frame.left - 6, y + 12, shortened(level.name, 21), "end"))
        parts.append(rect(min(zero, at), y + 2.5, abs(at - zero), row - 5, kind, level.name))
        if level.error:
            a, b = frame.x(np.array([level.value - level.error, level.value + level.error]))
            parts.append(line(float(a), y + row / 2, float(b), y + row / 2, "error"))
        if level.share is not None:
            parts.append(text(width - 2, y + 12, f"{100 * level.share:.1f} %", "end small"))
    parts.append(line(zero, top, zero, bottom, "zero"))
    return svg(width, bottom + 18, parts, label)


def bars_svg(names: Sequence[str], values: Sequence[float], label: str) -> str:
    """Bars with their names at the left and their values at the right."""
    width, row, left = 700, 19, 190
    most = max([*values, 0.0]) or 1.0
    parts = []
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        y, wide = 4 + row * i, (width - left - 60) * value / most
        parts.append(text(left - 6, y + 13, shortened(name, 27), "end"))
        parts.append(rect(left, y + 2, wide, row - 4, "down", name))
        parts.append(text(left + wide + 5, y + 13, f"{value:.3g}", "start"))
    return svg(width, 8 + row * len(names), parts, label)


def square_svg(
    x: np.ndarray, y: np.ndarray, label: str, x_label: str, y_label: str, *, diagonal: str = "", note: str = "",
    intervals: tuple[np.ndarray, np.ndarray] | None = None,
) -> str:  # fmt: skip
    """A curve in the unit square; with intervals, its points too. Diagonal: "up" or none."""
    frame = Frame(44, 22, 294, 242, (0.0, 1.0), (0.0, 1.0))
    parts = [frame.axes(x_label, y_label)]
    if diagonal:
        parts.append(line(frame.left, frame.bottom, frame.right, frame.top, "special"))
    parts.append(path(frame.x(x), frame.y(y), "curve"))
    if intervals is not None:
        for a, b, low, high in zip(frame.x(x), frame.y(y), *map(frame.y, intervals), strict=True):
            parts.append(line(float(a), float(low), float(a), float(high), "error"))
            parts.append(f'<circle class="dot" cx="{_n(a)}" cy="{_n(b)}" r="3"/>')
    if note:
        parts.append(text(frame.right - 4, frame.bottom - 8, note, "end"))
    return svg(310, 276, parts, label)


def histogram_svg(groups: Sequence[tuple[str, str, np.ndarray]], label: str, x_label: str, border: float | None) -> str:
    """How often scores occur, in groups (name, class, values); rows of all groups are cut at the same places."""
    whole = np.concatenate([values for _, _, values in groups]) if groups else np.empty(0)
    low, high = np.quantile(whole, [0.002, 0.998]) if len(whole) else (0.0, 1.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, 41)
    counts = [np.histogram(np.clip(values, low, high), edges)[0] for _, _, values in groups]
    most = max([1, *(int(heights.max()) for heights in counts)])
    frame = Frame(44, 22, 294, 242, (float(low), float(high)), (0.0, 1.05 * most))
    parts = [frame.axes(x_label, "rows")]
    for (name, kind, _), heights in zip(groups, counts, strict=True):
        edge = np.concatenate([[0.0], heights, [0.0]])
        outline = path(np.repeat(frame.x(edges), 2), frame.y(np.repeat(edge, 2)[1:-1]), f"{kind} half", close=True)
        parts.append(outline.replace("/>", f"><title>{text_of(name)}</title></path>"))
    if border is not None and low <= border <= high:
        parts.append(line(float(frame.x(border)), frame.top, float(frame.x(border)), frame.bottom, "zero"))
    return svg(310, 276, parts, label)


def scatter_svg(
    x: np.ndarray, y: np.ndarray, label: str, x_label: str, y_label: str, *, line_at_zero: bool = False
) -> str:
    """Points, and the line of equality or of zero."""
    x_range, y_range = _padded(x), _padded(y)
    frame = Frame(54, 22, 294, 242, x_range, y_range)
    parts = [frame.axes(x_label, y_label)]
    if line_at_zero:
        parts.append(line(frame.left, float(frame.y(0.0)), frame.right, float(frame.y(0.0)), "special"))
    else:
        low, high = max(x_range[0], y_range[0]), min(x_range[1], y_range[1])
        if low < high:
            a, b = frame.x(np.array([low, high])), frame.y(np.array([low, high]))
            parts.append(line(float(a[0]), float(b[0]), float(a[1]), float(b[1]), "special"))
    dots = "".join(f"M{_n(a)} {_n(b)}h0" for a, b in zip(frame.x(x), frame.y(y), strict=True))
    parts.append(f'<path class="cloud" d="{dots}"/>')
    return svg(310, 276, parts, label)


def _padded(values: np.ndarray) -> tuple[float, float]:
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def spark_svg(counts: np.ndarray, label: str) -> str:
    """A tiny histogram."""
    tall = np.sqrt(counts) / (np.sqrt(counts).max(initial=0.0) or 1.0) * 20
    wide = 90 / max(len(counts), 1)
    return svg(90, 22, [bars(tall, 0, 22, wide)], label)
