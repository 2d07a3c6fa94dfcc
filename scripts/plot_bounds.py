"""Draw docs/bounds.png: bounds, training risk and test error against rounds and against lambda.

The rows are simulated, so that the test error is known to a tenth of a per cent.
"""

import argparse
import itertools
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from quadboost import QuadBoostClassifier
from quadboost.bounds import rademacher_complexity, risk_bound, scale_free_bound, theory_lambda

DELTA = 0.05
ROUNDS = [1, 2, 3, 4, 5, 7, 10, 20, 50, 100, 200, 500, 1000]
LAMBDAS = np.logspace(-4, -0.5, 15)
CURVES = {
    "Theorem 1 (p = 1)": {"color": "tab:red"},
    "scale-free bound": {"color": "tab:orange"},
    "training risk (quadratic)": {"color": "tab:blue", "linestyle": "--"},
    "test error": {"color": "black"},
}


def simulate(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Five of ten features vote on the label, with different weights; one label in twenty is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(m, 10))
    y = np.sign(np.sign(X[:, :5]) @ [1.0, 0.8, 0.6, 0.5, 0.4] + 0.5 * np.abs(X[:, 5]))
    return X, np.where(rng.random(m) < 0.05, -y, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "docs" / "bounds.png")
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    (X, y), (X_test, y_test) = simulate(options.rows, 0), simulate(200_000, 1)
    complexity = rademacher_complexity(X)
    print(complexity)

    def figures(model: QuadBoostClassifier) -> list[float]:
        """One for each of CURVES."""
        model.fit(X, y)
        theorem = risk_bound(model, X, y, delta=DELTA, complexity=complexity)
        scale_free = scale_free_bound(model, X, y, delta=DELTA, complexity=complexity)
        found = [theorem.total, scale_free.total, theorem.risk, float(np.mean(model.predict(X_test) != y_test))]
        print(f"rounds {model.n_rounds_:5d}  lambda {model.reg_lambda_:.1e}  " + "  ".join(f"{x:.3f}" for x in found))
        return found

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    draw(left, ROUNDS, [figures(QuadBoostClassifier(penalty=None, max_rounds=rounds)) for rounds in ROUNDS])
    left.set(xlabel="rounds, without penalty")
    left.text(ROUNDS[-1], 1.01, "vacuous", color="grey", ha="right")
    draw(right, LAMBDAS, [figures(QuadBoostClassifier(penalty="l1", reg_lambda=lam)) for lam in LAMBDAS])
    right.set(xlabel="lambda of the l1 penalty")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is loose is what the figure shows
        best_in_theory = theory_lambda("l1", complexity.value)
        for penalty, strength in itertools.product(("l1", "l2"), ("theory", "auto")):
            model = QuadBoostClassifier(penalty, reg_lambda=strength).fit(X, y)
            print(f"{penalty}, {strength}: test error {np.mean(model.predict(X_test) != y_test):.3f}")
    automatic = QuadBoostClassifier(penalty="l1").fit(X, y).reg_lambda_
    for value, name in [(best_in_theory, "theory"), (automatic, "auto")]:
        right.axvline(value, color="grey", linewidth=0.8, linestyle=":")
        right.text(value, 1.42, f" {name}", color="grey", va="top")
    left.legend(loc="upper left", frameon=False)
    figure.savefig(options.output, dpi=110, metadata={"Software": None})


def draw(axes: plt.Axes, x: list[int] | np.ndarray, rows: list[list[float]]) -> None:
    for values, (name, style) in zip(np.transpose(rows), CURVES.items(), strict=True):
        axes.plot(x, values, label=name, marker=".", markersize=3, linewidth=1.2, **style)
    axes.axhspan(1.0, 1.5, color="0.92", zorder=0)
    axes.set(xscale="log", ylim=(0.0, 1.5))


if __name__ == "__main__":
    main()
