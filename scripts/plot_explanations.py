"""Draw the pictures of explanations that README.md and docs/explaining.md show: python scripts/plot_explanations.py"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from explained_table import loans

from quadboost import QuadBoostClassifierCV

DOCS = Path(__file__).parents[1] / "docs"


def main(directory: Path) -> None:
    X, y = loans()
    model = QuadBoostClassifierCV(loss="logistic").fit(X[:14_000], y[:14_000])

    figure, axes = plt.subplots(2, 2, figsize=(9.6, 6.4), layout="constrained")
    for ax, feature in zip(axes.flat, ("income", "savings", "years in job", "job"), strict=True):
        model.plot_shape(feature, ax=ax)
    figure.savefig(directory / "shapes.png", dpi=110)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.2), layout="constrained", width_ratios=[1.15, 1])
    model.explain(X[14_000:]).plot(3, ax=left)
    model.plot_importances(ax=right)
    figure.savefig(directory / "waterfall.png", dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=DOCS, help="directory of the pictures")
    main(parser.parse_args().output)
