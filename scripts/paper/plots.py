"""Plots for the report, as SVG files; needs matplotlib."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from . import published
from .algorithms import PENALTIES, paper_columns
from .figures import N_DEVIATIONS, Figures
from .report import BASELINES, TITLES, title

CAPTIONS = {
    "risks.svg": "Mean test risk and two standard deviations over splits; crosses are the paper's figures.",
    "means.svg": "Mean test risk over all datasets.",
    "seconds.svg": "Mean seconds of cross-validation and final fit; crosses are the paper's figures.",
}


def draw(directory: Path, figures: Figures) -> dict[str, str]:
    """Write the plots and return their captions by file name."""
    directory.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "quadboost", "svg.fonttype": "none", "font.size": 9}):
        for name, figure in zip(CAPTIONS, (_risks(figures), _means(figures), _seconds(figures)), strict=True):
            figure.savefig(directory / name, bbox_inches="tight", metadata={"Date": None})
    return CAPTIONS


def _risks(figures: Figures) -> Figure:
    figure = Figure(figsize=(11, 0.22 * len(figures.datasets) + 1.5), layout="constrained")
    height = np.arange(len(figures.datasets))[::-1]
    panels = figure.subplots(1, len(PENALTIES), sharey=True)
    for axes, column in zip(panels, PENALTIES, strict=True):
        for shift, mode in ((0.15, "forward"), (-0.15, "corrective")):
            name = paper_columns(mode)[column]
            spread = N_DEVIATIONS * figures.deviation(name)
            axes.errorbar(figures.mean(name), height + shift, xerr=spread, fmt="o", ms=3, lw=1, label=mode)
        axes.plot(figures.paper_risk(column), height, "kx", ms=5, label="paper")
        axes.set(title=TITLES[column], xlabel="test risk", yticks=height, yticklabels=figures.datasets)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _means(figures: Figures) -> Figure:
    figure = Figure(figsize=(8, 0.25 * len(figures.algorithms) + 1))
    axes = figure.subplots()
    means = {title(name): figures.mean(name).mean() for name in figures.algorithms}
    axes.plot(list(means.values())[::-1], list(means)[::-1], "o")
    axes.set(xlabel="mean test risk")
    axes.grid(axis="y", lw=0.5)
    return figure


def _seconds(figures: Figures) -> Figure:
    columns = {name: column for column, name in {**paper_columns("forward"), **BASELINES}.items()}
    figure = Figure(figsize=(8, 0.25 * len(figures.algorithms) + 1))
    axes = figure.subplots()
    names = figures.algorithms[::-1]
    axes.barh([title(name) for name in names], [figures.seconds(name)[1] for name in names])
    known = [name for name in names if name in columns]
    axes.plot([published.seconds()[columns[name]] for name in known], [title(name) for name in known], "kx")
    axes.set(xlabel="seconds", xscale="log")
    return figure
