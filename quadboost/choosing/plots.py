"""Pictures of what was chosen and why, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.packages import needed

if TYPE_CHECKING:
    from ..boosting.strength import Strengths
    from .path import RegularizationPath

SHAPES = 8  # strengths whose shape functions are drawn
POINTS = 200  # numbers of rounds along an axis


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return needed("matplotlib.pyplot", "plots need", "'quadboost[plots]'").subplots()[1]


def plot_weights(path: RegularizationPath, ax: Any = None) -> Any:
    """Every voter's weight along a path."""
    ax = _axes(ax)
    ax.plot(path.strength, path.weight, linewidth=0.8)
    _strength_axis(ax.set_xlabel, ax.set_xscale, path.penalty)
    if path.penalty != "linf":
        ax.invert_xaxis()  # the weakest at the right, for every penalty
    ax.set_ylabel("weight")
    return ax


def plot_shapes(path: RegularizationPath, feature: int | str, ax: Any = None) -> Any:
    """What one feature adds to the score, under several strengths."""
    number = path.schema.number_of(feature)
    ax = _axes(ax)
    for i in np.unique(np.linspace(0, len(path.strength) - 1, SHAPES).round().astype(int)).tolist():
        shape = next((shape for shape in path.ensemble(i).shape_functions() if shape.feature == number), None)
        if shape is None:
            continue
        label = f"{path.strength[i]:.2g}"
        if shape.levels is None:
            cuts = shape.thresholds
            room = 0.05 * (cuts[-1] - cuts[0]) if len(cuts) > 1 else 1.0
            ends = np.concatenate([cuts[:1] - room, cuts, cuts[-1:] + room])  # from below the first to above the last
            ends = ends if len(cuts) else np.array([0.0, 1.0])  # only "is missing" has a weight: the same everywhere
            ax.step(ends, np.append(shape.values, shape.values[-1]), where="post", label=label)
        else:
            ax.plot([_level_name(level) for level in shape.levels], shape.values[:-1], "o-", label=label)
    ax.set_xlabel(str(feature))
    ax.set_ylabel("added to the score")
    ax.legend(title="alpha_max" if path.penalty == "linf" else "reg_lambda")
    return ax


def plot_strengths(paths: Sequence[Strengths], ax: Any = None) -> Any:
    """The estimate by which a strength was chosen, for each output, and the choice."""
    ax = _axes(ax)
    for path in paths:
        columns = path.columns()
        (line,) = ax.plot(columns["path_lambda"], columns["path_gcv"], "o-", markersize=3)
        ax.axvline(path.chosen, color=line.get_color(), linestyle=":")
    _strength_axis(ax.set_xlabel, ax.set_xscale, "l1")
    ax.invert_xaxis()
    ax.set_ylabel("risk by generalised cross-validation")
    return ax


def plot_surface(results: dict[str, Any], penalty: str | None, best: dict[str, Any], ax: Any = None) -> Any:
    """The mean score over the number of rounds and, where the penalty has one, its strength; the choice is marked.

    Fits with trees have no rounds to choose: their score is drawn over the strength. If a penalty was tried with and
    without trees, what is drawn is what was chosen of the two.
    """
    ax = _axes(ax)
    is_shown = results["param_penalty"] == penalty
    n_trees = results.get("param_n_trees", np.zeros(len(is_shown)))
    is_alike = is_shown & (n_trees == best.get("n_trees", 0))
    is_shown = is_alike if is_alike.any() else is_shown
    rounds, score = results["param_max_rounds"][is_shown], results["mean_test_score"][is_shown]
    chosen = best["penalty"] == penalty
    if n_trees[is_shown].any() and penalty is not None:
        return _plot_line(ax, results, is_shown, penalty, best if chosen else {})
    ax.set_xscale("log")
    ax.set_xlabel("rounds")
    if penalty is None:
        ax.plot(rounds, score)
        ax.set_ylabel("mean score")
        if chosen:
            ax.axvline(best["max_rounds"], color="red")
        return ax
    name = "alpha_max" if penalty == "linf" else "reg_lambda"
    strength = results[f"param_{name}"][is_shown]
    levels = np.unique(strength)
    axis = np.unique(np.geomspace(rounds.min(), rounds.max(), POINTS).round().astype(int))
    grid = np.empty((len(levels), len(axis)))
    for row, level in zip(grid, levels, strict=True):
        at = strength == level
        row[:] = score[at][np.maximum(np.searchsorted(rounds[at], axis, side="right") - 1, 0)]
    mesh = ax.pcolormesh(axis, levels, grid, shading="nearest")
    ax.figure.colorbar(mesh, ax=ax, label="mean score")
    _strength_axis(ax.set_ylabel, ax.set_yscale, penalty)
    if chosen:
        ax.plot(best["max_rounds"], best[name], "r+", markersize=12)
    return ax


def _plot_line(ax: Any, results: dict[str, Any], is_shown: np.ndarray, penalty: str, best: dict[str, Any]) -> Any:
    """The mean score over the strength alone."""
    name = "alpha_max" if penalty == "linf" else "reg_lambda"
    order = np.argsort(results[f"param_{name}"][is_shown])
    ax.plot(results[f"param_{name}"][is_shown][order], results["mean_test_score"][is_shown][order], "o-", markersize=3)
    _strength_axis(ax.set_xlabel, ax.set_xscale, penalty)
    ax.set_ylabel("mean score")
    if name in best:
        ax.axvline(best[name], color="red")
    return ax


def _strength_axis(set_label: Any, set_scale: Any, penalty: str) -> None:
    set_label("alpha_max" if penalty == "linf" else "reg_lambda")
    set_scale("log")


def _level_name(level: list[Any]) -> str:
    return ", ".join(str(value) for value in level)
