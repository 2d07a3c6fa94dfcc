"""Pictures of a model by matplotlib. Each function draws on given axes, or on new ones, and returns them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.checks import at_least
from ..common.packages import needed
from ..model.ensemble import Ensemble
from .drawing import Curve, Level, Picture, counts_along, picture_of, score_unit, short_number
from .importance import importances
from .pairs import pair_of
from .quality import calibration, label_numbers
from .terms import rule_words
from .words import feature_name, number_text, shortened

if TYPE_CHECKING:
    from .terms import Explanation

# Light against dark, so that they differ in grey too.
UP, DOWN, INK, BAND, FAINT = "#e08a3c", "#1f4e79", "#22303c", "#b9cbdd", "#8793a0"
LABEL = 34  # letters of a name on an axis
RULE_LABEL = 70  # letters of a rule
HEAT_INCHES = 9.0  # a heat map is not larger
INTERCEPT = "the intercept"
MOST_NUMBERS = 120  # of a heat map, beyond which cells are too small for them


def new_axes(ax: Any, size: tuple[float, float] = (6.4, 4.0)) -> Any:
    """The given axes, or new ones."""
    if ax is None:
        pyplot = needed("matplotlib.pyplot", "plots need", "'quadboost[plots]'")
        ax = pyplot.subplots(figsize=size, layout="constrained")[1]
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=INK, labelsize=9)
    return ax


def plot_shape(ensemble: Ensemble, feature: int | str, *, output: int | None = None, ax: Any = None) -> Any:
    """What a feature adds to the score: a step function from end to end, or a bar for each level."""
    number = ensemble.schema.number_of(feature)
    output = _output(ensemble, output)
    shape = next((shape for shape in _shapes(ensemble) if shape.feature == number), None)
    name = shortened(feature_name(ensemble, number), LABEL)
    if shape is None:
        ax = new_axes(ax)
        ax.axhline(0.0, color=DOWN, linewidth=1.8)
        ax.set(xticks=[], yticks=[0.0], ylim=(-1, 1), xlabel=name)
        ax.set_ylabel(f"added to the score\n({score_unit(ensemble, output)})", color=INK)
        words = "the model asks for it in rules alone" if _in_rules(ensemble, number) else "not used by this model"
        ax.set_title(f"{name}: {words}", loc="left", fontsize=11, color=INK)
        return ax
    picture = picture_of(ensemble, shape, output)
    if picture.curve is None:
        ax = new_axes(ax, (6.4, 0.9 + 0.27 * len(picture.levels)))
        _draw_levels(ax, picture)
        ax.set_xlabel(f"added to the score ({score_unit(ensemble, output)})", color=INK)
    else:
        ax = new_axes(ax)
        _draw_curve(ax, picture.curve, picture.levels)
        ax.set_xlabel(name, color=INK)
        ax.set_ylabel(f"added to the score\n({score_unit(ensemble, output)})", color=INK)
    ax.set_title(name, loc="left", fontsize=11, fontweight="bold", color=INK)
    return ax


def _draw_curve(ax: Any, curve: Curve, special: list[Level]) -> None:
    if curve.scale.name == "log":
        ax.set_xscale("log")
    elif curve.scale.name == "asinh":
        ax.set_xscale("asinh", linear_width=curve.scale.width)
    x, y = np.repeat(curve.edges, 2)[1:-1], np.repeat(curve.values, 2)
    ax.axhline(0.0, color=FAINT, linewidth=0.8)
    if curve.error is not None:
        half = np.repeat(curve.error, 2)
        ax.fill_between(x, y - half, y + half, color=BAND, linewidth=0, label="± 1 standard error")
    ax.plot(x, y, color=DOWN, linewidth=1.8, solid_joinstyle="miter", label="_shape")
    for level in special:
        ax.axhline(level.value, color=UP, linewidth=1.4, linestyle=(0, (4, 2)), label=_with_share(level))
    if curve.mass is not None:
        _draw_counts(ax, curve)
    ax.set_xlim(curve.edges[0], curve.edges[-1])
    if special or curve.error is not None:
        ax.legend(
            frameon=False, fontsize=8, labelcolor=INK, ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0),
            borderaxespad=0.2, handlelength=1.3, columnspacing=1.0, handletextpad=0.5,
        )  # fmt: skip
    ax.xaxis.set_major_formatter(lambda value, _: short_number(value))


def _draw_counts(ax: Any, curve: Curve) -> None:
    """The training weight, as a strip of bars at the bottom: in equal parts of the axis, by the root of the count."""
    places = curve.scale.place(curve.edges)
    share = counts_along(places, np.asarray(curve.mass), 50)
    edges = curve.scale.value(np.linspace(places[0], places[-1], 51))
    below = ax.twinx()
    below.bar(edges[:-1], np.sqrt(share), width=np.diff(edges), align="edge", color=FAINT, alpha=0.35, linewidth=0)
    below.set_ylim(0, 7 * np.sqrt(share).max(initial=1e-300))
    below.axis("off")
    low, high = ax.get_ylim()
    ax.set_ylim(low - 0.16 * (high - low), high)
    ax.set_zorder(below.get_zorder() + 1)
    ax.patch.set_visible(False)


def _draw_levels(ax: Any, picture: Picture) -> None:
    levels = picture.levels[::-1]
    at = np.arange(len(levels))
    for i, level in enumerate(levels):
        style = {"facecolor": "white", "hatch": "////"} if level.is_special else {}
        colour = UP if level.value > 0 else DOWN
        bar = {"color": colour} if not style else {"edgecolor": colour}
        ax.barh(
            i, level.value, height=0.68, xerr=level.error, error_kw={"ecolor": INK, "elinewidth": 1}, **bar, **style
        )
    ax.axvline(0.0, color=FAINT, linewidth=0.8)
    ax.set_yticks(at, [_with_share(level) for level in levels])
    ax.tick_params(axis="y", length=0)
    if picture.n_left_out:
        ax.annotate(
            f"{picture.n_left_out} rarer levels are not drawn", (1, 0), xycoords="axes fraction", ha="right",
            va="bottom", fontsize=8, color=FAINT,
        )  # fmt: skip


def _label(name: str) -> str:
    """Rules that begin alike often end otherwise: a long one loses its middle."""
    half = RULE_LABEL // 2
    return name if len(name) <= RULE_LABEL else f"{name[:half]}…{name[1 - half :]}"


def _width(names: Iterable[str]) -> float:
    """Of a picture, in inches: the bars have as much space beside the words of rules as beside names."""
    longest = max([0, *(len(_label(name)) for name in names)])
    return 6.4 + 0.075 * max(longest - LABEL // 2, 0)


def _with_share(level: Level) -> str:
    share = "" if level.share is None else f"  {100 * level.share:.1f} %"
    return f"{shortened(level.name, LABEL)}{share}"


def plot_importances(ensemble: Ensemble, kind: str = "mean_abs", X: Any = None, *, n: int = 20, ax: Any = None) -> Any:
    """The largest importances, as bars."""
    found = importances(ensemble, kind, X)[: at_least("n", n, 1)]
    ax = new_axes(ax, (_width(term.term for term in found), 0.9 + 0.27 * len(found)))
    bars = ax.barh(range(len(found)), [term.importance for term in found], height=0.68, color=DOWN)
    ax.bar_label(bars, [f"{term.importance:.3g}" for term in found], padding=4, fontsize=8, color=INK)
    ax.set_yticks(range(len(found)), [_label(term.term) for term in found])
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.margins(x=0.12)
    ax.tick_params(axis="y", length=0)
    what = {"mean_abs": "mean absolute contribution", "std": "standard deviation", "range": "range"}[kind]
    ax.set_xlabel(f"{what} ({score_unit(ensemble) if ensemble.n_outputs == 1 else 'score, all outputs'})", color=INK)
    return ax


def plot_waterfall(
    explanation: Explanation, row: int = 0, *, output: int | None = None, n: int = 12, ax: Any = None
) -> Any:
    """How the score of a row comes about: from the base, the largest contributions first."""
    ensemble = explanation.ensemble
    if row not in range(-len(explanation), len(explanation)):
        raise ValueError(f"row={row!r:.60} is not one of the {len(explanation)} rows that were explained")
    if output is None and explanation.values.ndim == 3 and ensemble.classes is not None:
        output = int(explanation.total[row].argmax())
    values = explanation.of_output(output)[row]
    at = output or 0
    base = float(np.ravel(explanation.base)[at])
    order = np.argsort(-np.abs(values), kind="stable")
    names = [explanation.text_of(row, j) for j in order[:n].tolist()]
    steps = values[order[:n]].tolist()
    if len(order) > n:
        names.append(f"{len(order) - n} others")
        steps.append(float(values[order[n:]].sum()))
    start = base + np.concatenate([[0.0], np.cumsum(steps)])
    ax = new_axes(ax, (_width(names), 1.2 + 0.27 * len(names)))
    for i, step in enumerate(steps):
        ax.barh(i, step, left=start[i], height=0.66, color=UP if step > 0 else DOWN)
        side = 1 if step >= 0 else -1
        ax.annotate(f"{step:+.3g}", (start[i + 1], i), (4 * side, 0), textcoords="offset points", fontsize=8, color=INK,
                    va="center", ha="left" if side > 0 else "right")  # fmt: skip
        ax.plot([start[i + 1]] * 2, [i - 0.33, min(i + 1.33, len(steps) - 0.67)], color=FAINT, linewidth=0.8)
    ax.axvline(base, color=FAINT, linewidth=0.8, linestyle=(0, (4, 2)))
    ax.set_yticks(range(len(names)), [_label(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.locator_params(axis="x", nbins=6)
    room = 0.16 * float(np.ptp(start)) or 1.0
    ax.set_xlim(start.min() - room, start.max() + room)
    ax.tick_params(axis="y", length=0)
    unit = score_unit(ensemble, at) if explanation.scale == "score" else "prediction"
    ax.set_xlabel(unit, color=INK)
    total, base_text = number_text(float(start[-1]), 4), number_text(base, 4)
    start_text = f"from the intercept {base_text}"
    if explanation.reference != INTERCEPT:
        start_text = f"where {explanation.reference} have {base_text}"
    ax.set_title(f"{explanation.scale} {total}, {start_text}", loc="left", fontsize=10, color=INK)
    return ax


def plot_rules(ensemble: Ensemble, *, output: int | None = None, n: int = 15, ax: Any = None) -> Any:
    """The most important rules: what each adds to the score where it holds, and how many training rows it holds for."""
    output = _output(ensemble, output)
    rules = list(ensemble.rules())[:n]
    if not rules:
        raise ValueError("this model has no rules; fit it with n_trees=100, or draw its shapes")
    ax = new_axes(ax, (8.0, 0.9 + 0.32 * len(rules)))
    weights = [float(np.atleast_1d(rule.weight)[output]) for rule in rules]
    ax.barh(
        range(len(rules)),
        [2 * weight for weight in weights],
        height=0.66,
        color=[UP if weight > 0 else DOWN for weight in weights],
    )
    names = [_label(rule_words(rule)) for rule in rules]
    shares = ["" if np.isnan(rule.support) else f"  {100 * rule.support:.1f} %" for rule in rules]
    ax.set_yticks(range(len(rules)), [name + share for name, share in zip(names, shares, strict=True)], fontsize=8)
    ax.set_ylim(len(rules) - 0.4, -0.6)
    ax.axvline(0.0, color=FAINT, linewidth=0.8)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"added where it holds ({score_unit(ensemble, output)})", color=INK)
    return ax


def plot_pair(
    ensemble: Ensemble, first: int | str, second: int | str, *, output: int | None = None, ax: Any = None
) -> Any:
    """What the rules about just two features add to the score, as a heat map; a small one has numbers in it."""
    output = _output(ensemble, output)
    pair = pair_of(ensemble, ensemble.schema.number_of(first), ensemble.schema.number_of(second), output)
    n_rows, n_columns = pair.values.shape
    ax = new_axes(ax, (min(2.2 + 0.62 * n_columns, HEAT_INCHES), min(1.4 + 0.42 * n_rows, HEAT_INCHES)))
    most = float(np.abs(pair.values).max()) or 1.0
    # From dark to light, so that what lowers the score differs in grey from what raises it.
    mesh = ax.imshow(pair.values, cmap="cividis", vmin=-most, vmax=most, aspect="auto")
    rows, columns = _some_ticks(n_rows), _some_ticks(n_columns)
    ax.set_xticks(columns, [shortened(pair.labels[1][j], 14) for j in columns], rotation=40, ha="right", fontsize=8)
    ax.set_yticks(rows, [shortened(pair.labels[0][i], 14) for i in rows], fontsize=8)
    if n_rows * n_columns <= MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(pair.values):
            ax.text(j, i, f"{value:.2g}", ha="center", va="center", fontsize=7, color="white" if value < 0 else INK)
    ax.figure.colorbar(mesh, ax=ax, label=f"added to the score ({score_unit(ensemble, output)})")
    ax.set_xlabel(shortened(pair.names[1], LABEL), color=INK)
    ax.set_ylabel(shortened(pair.names[0], LABEL), color=INK)
    return ax


def _some_ticks(n: int) -> list[int]:
    """Of n bins, those that have a label: all, or as many as can be read, with the last, which is of missing values."""
    return np.unique(np.linspace(0, n - 1, min(n, 20)).round().astype(int)).tolist()


def plot_calibration(ensemble: Ensemble, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None) -> Any:
    """How often the second of two classes is found among rows with like probabilities, with 95 % intervals."""
    if ensemble.classes is None or len(ensemble.classes) != 2:
        raise ValueError("a calibration plot is for two classes; this model has " + _kind(ensemble))
    probability = ensemble.predict_proba(X)[:, 1]
    is_second = label_numbers(y, ensemble.classes, len(probability)) == 1
    found = calibration(probability, is_second, at_least("n_bins", n_bins, 1))
    ax = new_axes(ax, (4.6, 4.4))
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (4, 2)))
    error = [np.maximum(found.share - found.low, 0), np.maximum(found.high - found.share, 0)]
    ax.errorbar(found.probability, found.share, yerr=error, color=DOWN, marker="o", markersize=4, linewidth=1.4,
                elinewidth=1.2)  # fmt: skip
    ax.set_aspect("equal")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    label = shortened(str(ensemble.classes[1]), LABEL)
    ax.set_xlabel(f"predicted probability of {label}", color=INK)
    ax.set_ylabel(f"share of {label}, with 95 % interval", color=INK)
    return ax


def _in_rules(ensemble: Ensemble, feature: int) -> bool:
    return bool((ensemble.trees.feature == feature).any())


def _kind(ensemble: Ensemble) -> str:
    return "targets" if ensemble.classes is None else f"{len(ensemble.classes)} classes"


def _shapes(ensemble: Ensemble) -> Any:
    return ensemble.shape_functions(bands=len(ensemble.bin_error) > 0)


def _output(ensemble: Ensemble, output: int | None) -> int:
    if ensemble.n_outputs == 1:
        return 0
    if output is None or not 0 <= output < ensemble.n_outputs:
        raise ValueError(
            f"output={output} must say which of the {ensemble.n_outputs} scores: from 0 to {ensemble.n_outputs - 1}"
        )
    return output
