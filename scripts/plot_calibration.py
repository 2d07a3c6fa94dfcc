"""Draw how far probabilities can be trusted: predicted against observed, three ways (docs/calibration.svg).

    python scripts/plot_calibration.py [--output FILE]

Made data: 20 features, 20,000 rows to learn from and 20,000 to judge by. Needs matplotlib (the extra `plots`).
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from quadboost import QuadBoostClassifier

MODELS = {
    "clipped line (calibration=None)": {"calibration": None},
    "squared loss, calibrated (default)": {},
    "logistic loss": {"loss": "logistic"},
}
CELLS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="docs/calibration.svg", help="picture to write (default: %(default)s)")
    arguments = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "quadboost"
    from matplotlib import pyplot

    X, y = make_classification(
        40_000, 20, n_informative=8, n_redundant=4, n_clusters_per_class=3, flip_y=0.05, random_state=0
    )
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    _, ax = pyplot.subplots(figsize=(5, 5), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for (name, parameters), style in zip(MODELS.items(), ("s:", "o-", "^--"), strict=True):
        chance = QuadBoostClassifier(**parameters).fit(X, y).predict_proba(X_test)[:, 1]
        predicted, observed = reliability(chance, y_test)
        loss = log_loss(y_test, chance)
        sure = np.mean((chance == 0) | (chance == 1))
        print(f"{name}: log-loss {loss:.4f}, {sure:.1%} of the rows exactly 0 or 1")
        ax.plot(predicted, observed, style, markersize=4, label=f"{name}: log-loss {loss:.3f}")
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("share of positive rows")
    ax.legend(loc="lower right", fontsize="small")
    pyplot.savefig(arguments.output, metadata={"Date": None})
    print(f"written: {arguments.output}")


def reliability(chance: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean prediction and share of positive rows, in cells of equally many rows."""
    order = np.argsort(chance, kind="stable")
    cells = np.array_split(order, CELLS)
    return np.array([chance[cell].mean() for cell in cells]), np.array([y[cell].mean() for cell in cells])


if __name__ == "__main__":
    main()
