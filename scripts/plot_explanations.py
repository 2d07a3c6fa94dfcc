"""Draw the pictures of explanations that README.md and docs/explaining.md show: python scripts/plot_explanations.py

The picture of a report is taken by Chromium, and left out where there is none.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from explained_table import loans

from quadboost import QuadBoostClassifierCV, report

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

    figure, ax = plt.subplots(figsize=(4.6, 3.0), layout="constrained")
    model.plot_shape("income", ax=ax)
    figure.savefig(directory / "shape.png", dpi=100)

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        report(model, X[14_000:], y[14_000:], path=page)
        photograph(page, directory / "report.png")


def photograph(page: Path, picture: Path) -> None:
    """The top of a page, as Chromium shows it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print(f"{picture.name} is left out: there is no Chromium")
        return
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,760"]
    command = [chromium, *words, f"--screenshot={picture.resolve()}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=DOCS, help="directory of the pictures")
    main(parser.parse_args().output)
