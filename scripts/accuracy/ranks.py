"""Mean ranks over tables, and by how much they must differ not to be chance (Friedman and Nemenyi; Demsar 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

LEVEL = 0.05


@dataclass(frozen=True)
class Ranks:
    names: list[str]  # the best first
    mean: np.ndarray
    n_tables: int
    chance: float  # that ranks differ as much where all are alike: Friedman's test
    critical: float  # difference of two mean ranks: Nemenyi's test

    @staticmethod
    def of(names: Sequence[str], losses: np.ndarray) -> Ranks:
        """Of `losses`, a row for each table and a column for each name; less is better."""
        ranks = rankdata(np.round(losses, 12), axis=1)
        n, k = losses.shape
        chance = friedmanchisquare(*losses.T).pvalue if k > 2 and n > 1 and np.ptp(ranks) > 0 else np.nan
        critical = studentized_range.ppf(1 - LEVEL, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n))
        order = np.argsort(ranks.mean(axis=0), kind="stable")
        return Ranks([names[i] for i in order], ranks.mean(axis=0)[order], n, float(chance), float(critical))

    def groups(self) -> list[tuple[int, int]]:
        """First and last of those that do not differ; the longest of each."""
        found: list[tuple[int, int]] = []
        for first in range(len(self.mean)):
            last = int(np.searchsorted(self.mean, self.mean[first] + self.critical, side="right")) - 1
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def draw_ranks(path: Path, ranks: Ranks, caption: str) -> None:
    """The critical-difference picture: a line of ranks, names below it, bars over those that do not differ."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    k, groups = len(ranks.names), ranks.groups()
    half = (k + 1) // 2
    low, high = 1, k
    with mpl.rc_context({"svg.hashsalt": "quadboost", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 1.1 + 0.12 * len(groups) + 0.22 * half))
        axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        bottom = -(0.9 + 0.35 * len(groups) + 0.7 * half)
        axes.set(xlim=(low - 0.5 * k, high + 0.5 * k), ylim=(bottom, 2.2))
        axes.axis("off")
        axes.plot([low, high], [0, 0], color="black", linewidth=1)
        for tick in range(low, high + 1):
            axes.plot([tick, tick], [0, 0.2], color="black", linewidth=1)
            axes.text(tick, 0.35, str(tick), ha="center", va="bottom")
        axes.plot([low, low + ranks.critical], [1.4, 1.4], color="black", linewidth=2)
        axes.text(low + ranks.critical + 0.1, 1.4, f"{caption}; critical difference {ranks.critical:.2f}", va="center")
        for n, (first, last) in enumerate(groups):
            y = -0.4 - 0.35 * n
            axes.plot(ranks.mean[[first, last]] + [-0.05, 0.05], [y, y], color="tab:red", linewidth=3)
        for i, (name, mean) in enumerate(zip(ranks.names, ranks.mean, strict=True)):
            on_left = i < half
            y = -(0.9 + 0.35 * len(groups) + 0.7 * (i if on_left else k - 1 - i))
            side = low - 0.3 if on_left else high + 0.3
            axes.plot([mean, mean, side], [0, y, y], color="gray", linewidth=0.8)
            words = f"{name} {mean:.2f}" if on_left else f"{mean:.2f} {name}"
            axes.text(side + (-0.1 if on_left else 0.1), y, words, ha="right" if on_left else "left", va="center")
        figure.savefig(path, metadata={"Date": None})
