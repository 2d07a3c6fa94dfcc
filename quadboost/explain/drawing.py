"""What a picture of a model shows, before it is drawn: curves with ends, axes, ticks and units."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..model.ensemble import Ensemble
from ..model.shape_functions import ShapeFunction
from .words import level_text

CROWDED = 0.1  # share of the range that the middle half of the thresholds takes, below which an axis is not linear
MARGIN = 0.07  # of the axis beyond the first and the last threshold
LEAST_WIDTH = 1e-300  # of an axis with ticks; what is narrower has too few digits for them
MOST_LEVELS = 14  # of a feature that are drawn


class Scale(NamedTuple):
    """How values are placed along an axis: "linear", "log" (of positive values) or "asinh" (log on both sides of 0)."""

    name: str
    width: float = 1.0  # asinh: where it goes over from linear to log

    def place(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if self.name == "log":
                return np.log10(x)
            return np.arcsinh(x / self.width) if self.name == "asinh" else np.asarray(x) * 1.0

    def value(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            if self.name == "log":
                return 10.0**x
            return np.sinh(x) * self.width if self.name == "asinh" else np.asarray(x) * 1.0


def scale_of(cuts: np.ndarray) -> Scale:
    """The scale on which thresholds are spread out well enough to be read."""
    if len(cuts) < 4:
        return Scale("linear")
    low, high = np.quantile(cuts, [0.25, 0.75])
    spread = cuts[-1] / 2 - cuts[0] / 2  # halves: the range may be beyond the largest number
    if spread == 0 or (high / 2 - low / 2) / spread > CROWDED:
        return Scale("linear")
    if cuts[0] > 0:
        return Scale("log")
    sizes = np.abs(cuts[cuts != 0])
    width = float(np.quantile(sizes, 0.1))
    return Scale("asinh", width) if width > 0 else Scale("linear")


class Curve(NamedTuple):
    """A shape function of one output, with ends: values[i] holds from edges[i] to edges[i + 1]."""

    scale: Scale
    edges: np.ndarray
    values: np.ndarray
    error: np.ndarray | None
    mass: np.ndarray | None


class Level(NamedTuple):
    """One bar of a feature with categories, or of what lies beside a curve: missing, never seen."""

    name: str
    value: float
    error: float | None
    share: float | None  # of the training weight
    is_special: bool = False


class Picture(NamedTuple):
    """What a feature adds to the score, less its mean over the training rows where that is known."""

    curve: Curve | None
    levels: list[Level]  # of categories, and special ones; the largest first
    n_left_out: int


def picture_of(ensemble: Ensemble, shape: ShapeFunction, output: int = 0) -> Picture:
    """The picture of a shape function of one output."""
    k = ensemble.n_outputs
    values, missing = shape.values.reshape(-1, k)[:, output], float(np.reshape(shape.missing, k)[output])
    error = None if shape.error is None else shape.error.reshape(-1, k)[:, output]
    missing_error = None if shape.missing_error is None else float(np.reshape(shape.missing_error, k)[output])
    total = None
    if shape.mass is not None and shape.missing_mass is not None:
        total = float(shape.mass.sum() + shape.missing_mass)
        mean = (shape.mass @ values + shape.missing_mass * missing) / total
        values, missing = values - mean, missing - mean
    special = []
    if shape.missing_mass or total is None:
        share = None if total is None or shape.missing_mass is None else shape.missing_mass / total
        special.append(Level("missing", missing, missing_error if shape.missing_mass else None, share, True))
    if shape.levels is None:
        edges = _ends(shape.thresholds, scale_of(shape.thresholds))
        return Picture(Curve(scale_of(shape.thresholds), edges, values, error, shape.mass), special, 0)
    levels = []
    for n, level in enumerate(shape.levels):
        share = None if shape.mass is None or total is None else float(shape.mass[n]) / total
        levels.append(Level(level_text(level), float(values[n]), None if error is None else float(error[n]), share))
    special.append(Level("never seen", float(values[-1]), None, None, True))
    kept = sorted(levels, key=lambda level: -(level.share or 0.0))[: MOST_LEVELS - len(special)]
    kept.sort(key=lambda level: -level.value)
    return Picture(None, [*kept, *special], len(levels) - len(kept))


def _ends(cuts: np.ndarray, scale: Scale) -> np.ndarray:
    """The cuts, with an end on either side for what lies beyond them."""
    if not len(cuts):
        return np.array([-1.0, 1.0])
    places = scale.place(cuts)
    width = places[-1] - places[0]
    if not np.isfinite(width):
        width = 0.0
    beyond = width * MARGIN if width > 0 else max(abs(float(places[0])) * 0.5, 1.0)
    ends = scale.value(np.array([places[0] - beyond, places[-1] + beyond]))
    least, most = np.finfo(np.float64).min / 4, np.finfo(np.float64).max / 4
    ends = np.clip(ends, least, most)
    return np.concatenate([[min(ends[0], cuts[0])], cuts, [max(ends[1], cuts[-1])]])


def counts_along(places: np.ndarray, mass: np.ndarray, n: int) -> np.ndarray:
    """The mass of bins in n equal parts of an axis, if each bin's mass is spread evenly."""
    running = np.concatenate([[0.0], np.cumsum(mass)])
    at = np.linspace(places[0], places[-1], n + 1)
    return np.diff(np.interp(at, places, running)) if places[-1] > places[0] else np.zeros(n)


def ticks(low: float, high: float, scale: Scale, most: int = 6) -> list[float]:
    """Round values between low and high, not more than `most`."""
    if scale.name == "linear":
        return _round_values(low, high, most)
    sizes = [abs(low), abs(high), scale.width if scale.name == "asinh" else abs(low)]
    smallest = max(min(size for size in sizes if size > 0), 1e-300)
    decades = range(math.floor(math.log10(smallest)), math.ceil(math.log10(max(sizes))) + 1)
    found = {sign * 10.0**n for n in decades for sign in ((1,) if scale.name == "log" else (-1, 1))}
    if scale.name == "asinh":
        found.add(0.0)
    inside = sorted(value for value in found if low <= value <= high)
    if len(inside) < 2:
        return _round_values(low, high, most)
    return _thinned(inside, scale, most)


def _thinned(values: list[float], scale: Scale, most: int) -> list[float]:
    """As many as have room beside each other; zero first, then the largest."""
    places = scale.place(np.array(values))
    room = (places[-1] - places[0]) / most
    kept: list[int] = []
    for i in sorted(range(len(values)), key=lambda i: (values[i] != 0, -abs(values[i]))):
        if all(abs(places[i] - places[j]) >= room for j in kept):
            kept.append(i)
    return [values[i] for i in sorted(kept)]


def _round_values(low: float, high: float, most: int) -> list[float]:
    if not LEAST_WIDTH < high - low < math.inf:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    sizes = [power * n for n in (0.5, 1, 2, 5, 10)]
    at = next(i for i, size in enumerate(sizes) if size >= rough * 0.999)
    found = _multiples(low, high, sizes[at])
    return found if len(found) > 2 or at == 0 else _multiples(low, high, sizes[at - 1])


def _multiples(low: float, high: float, step: float) -> list[float]:
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def short_number(value: float) -> str:
    """A number for a tick: 12k, 1.5M, 0.02."""
    size = abs(value)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= size < unit * 1000 and not (letter == "k" and size < 1e4 and value % 100):
            return f"{value / unit:.3g}{letter}"
    return f"{value:.4g}"


def score_unit(ensemble: Ensemble, output: int = 0) -> str:
    """What the score of an output is, for the label of an axis."""
    of = ""
    if ensemble.classes is not None:
        label = ensemble.classes[1] if ensemble.n_outputs == 1 else ensemble.classes[output]
        of = f" of {str(label)[:40]}"
    elif ensemble.n_outputs > 1:
        of = f" of target {output}"
    if ensemble.link == "softmax":
        return f"score{of}, in logs"
    unit = {"logit": "log-odds", "log": "log of the target", "clipped": "score"}
    return unit.get(ensemble.link, "units of the target") + of
