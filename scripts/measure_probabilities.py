"""Measure how good probabilities are: log-loss, Brier score and error over many tables (docs/probabilities.md).

    python scripts/measure_probabilities.py --data DIR

DIR holds gzipped CSV files and a manifest.json, as for measure_defaults.py. Five folds, stratified, each model as it
comes; probabilities of exactly 0 and 1 count as 1e-15. Needs pandas and LightGBM (the extra `benchmarks`).
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from measure_defaults import given_tables
from sklearn.model_selection import StratifiedKFold

from quadboost import QuadBoostClassifier

STUMPS = partial(LGBMClassifier, max_depth=1, num_leaves=2, n_jobs=1, verbose=-1)
MODELS: dict[str, Any] = {
    "default": QuadBoostClassifier,
    "calibration=None": partial(QuadBoostClassifier, calibration=None),
    'loss="logistic"': partial(QuadBoostClassifier, loss="logistic"),
    "LightGBM, stumps": STUMPS,
    "LightGBM, stumps, 1,000 trees": partial(STUMPS, n_estimators=1_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path, help="directory with the tables and their manifest.json")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of LightGBM, about the names of columns
    records = []
    for table in given_tables(arguments.data):
        X, y = table.load(0)
        y = y.astype(bool)
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
            for name, make in MODELS.items():
                start = time.process_time()
                model = make().fit(X.iloc[train], y[train])
                seconds = time.process_time() - start
                chance = model.predict_proba(X.iloc[test])[:, 1]
                records.append({"model": name, "table": table.name, "CPU s": seconds, **figures(chance, y[test])})
    means = pd.DataFrame(records).groupby(["model", "table"], sort=False).mean().groupby("model", sort=False).mean()
    print("| model | log-loss | Brier score | error | CPU s of a fit |\n| --- | --- | --- | --- | --- |")
    for name, row in means.iterrows():
        print(f"| {name} | {row['log-loss']:.3f} | {row['Brier']:.4f} | {row['error']:.4f} | {row['CPU s']:.3f} |")


def figures(chance: np.ndarray, y: np.ndarray) -> dict[str, float]:
    own = np.clip(np.where(y, chance, 1.0 - chance), 1e-15, None)
    return {
        "log-loss": float(-np.log(own).mean()),
        "Brier": float(np.mean((chance - y) ** 2)),
        "error": float(np.mean((chance > 0.5) != y)),
    }


if __name__ == "__main__":
    main()
