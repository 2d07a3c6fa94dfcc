"""Measure what monotone constraints cost, in r2 and in time (docs/constraints.md).

    python scripts/measure_constraints.py TABLE.csv --target COLUMN --monotone COLUMN=SIGN ...

Several splits of the rows, seven tenths for training, one thread, seconds of the processor. Needs pandas; peers that
are not installed are left out (the extra `benchmarks` has LightGBM).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from quadboost import QuadBoostRegressor

N_SPLITS = 5
N_TIMES = 2  # of which the quicker counts
SETTINGS: dict[str, dict[str, Any]] = {
    "l1": {"penalty": "l1"},
    "l2": {"penalty": "l2"},
    "linf": {"penalty": "linf"},
    "l2, 100 trees": {"penalty": "l2", "n_trees": 100},
    "l1, 100 trees": {"penalty": "l1", "n_trees": 100},
    "forward, 100 trees": {"mode": "forward", "n_trees": 100},
    "no penalty, 20,000 rounds": {"penalty": None, "max_rounds": 20_000, "tol": 0.0},
    "l2 forward, 20,000 rounds": {"penalty": "l2", "mode": "forward", "max_rounds": 20_000, "tol": 0.0},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="CSV file")
    parser.add_argument("--target", required=True, metavar="COLUMN")
    parser.add_argument("--monotone", required=True, nargs="+", metavar="COLUMN=SIGN")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X = pd.read_csv(arguments.table)
    y = X.pop(arguments.target).to_numpy(dtype=float)
    signs = {name: int(sign) for name, _, sign in (item.rpartition("=") for item in arguments.monotone)}
    splits = [train_test_split(X, y, test_size=0.3, random_state=seed) for seed in range(N_SPLITS)]
    print("| | r2 free | r2 constrained | time, constrained over free |\n|---|---|---|---|")
    for name, free, constrained in _models(signs, list(X)):
        fits = np.array([[[_fit(free, split), _fit(constrained, split)] for split in splits] for _ in range(N_TIMES)])
        r2, seconds = fits[0, :, :, 0].mean(axis=0), fits[:, :, :, 1].min(axis=0).sum(axis=0)
        print(f"| {name} | {r2[0]:.4f} | {r2[1]:.4f} | {seconds[1] / seconds[0]:.2f} |", flush=True)


def _models(signs: dict[str, int], names: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Estimators without and with the constraints."""
    for name, arguments in SETTINGS.items():
        options = {**arguments, "n_jobs": 1, "standardize": True}
        yield f"QuadBoost, {name}", QuadBoostRegressor(**options), QuadBoostRegressor(**options, monotonic_cst=signs)
    in_order = [signs.get(name, 0) for name in names]
    free, constrained = (
        HistGradientBoostingRegressor(random_state=0, monotonic_cst=signs) for signs in (None, in_order)
    )
    yield "scikit-learn's HistGradientBoosting", free, constrained
    try:
        from lightgbm import LGBMRegressor
    except ImportError:
        return
    options = {"n_jobs": 1, "verbose": -1}
    stumps = {"max_depth": 1, "num_leaves": 2, "n_estimators": 1_000, **options}
    yield "LightGBM, 1,000 stumps", LGBMRegressor(**stumps), LGBMRegressor(**stumps, monotone_constraints=in_order)
    for method in ("basic", "advanced"):
        constrained = LGBMRegressor(**options, monotone_constraints=in_order, monotone_constraints_method=method)
        yield f"LightGBM, 100 trees, {method}", LGBMRegressor(**options), constrained


def _fit(model: Any, split: Any) -> tuple[float, float]:
    """r2 on the rows held out, and seconds of the processor."""
    X, X_test, y, y_test = split
    start = time.process_time()
    model.fit(X, y)
    return float(model.score(X_test, y_test)), time.process_time() - start


if __name__ == "__main__":
    main()
