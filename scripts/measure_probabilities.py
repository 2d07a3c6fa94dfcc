"""Measure how good probabilities are, and what they cost (docs/probabilities.md).

    python scripts/measure_probabilities.py --data DIR --tables DIR [--rows M ...] [--splits N]

The first DIR holds gzipped CSV files and a manifest.json, as for measure_defaults.py: five stratified folds, each model
as it comes. The second holds magic.csv.gz, electricity.csv.gz and letter.csv.gz, with a column `label`: splits of 70 to
30. Made tables of M training rows and 30 features come last. Probabilities of exactly 0 and 1 count as 1e-15; all
models have one thread, and CPU time is the least of two fits of made tables. Needs pandas and LightGBM (the extra
`benchmarks`).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from tables_to_measure import given_tables

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV

OURS = partial(QuadBoostClassifier, n_jobs=1)
LOGISTIC = partial(OURS, loss="logistic")
STUMPS = partial(LGBMClassifier, max_depth=1, num_leaves=2, n_jobs=1, verbose=-1)
MANY_STUMPS = partial(STUMPS, n_estimators=1_000)
MODELS: dict[str, Any] = {
    "default": OURS,
    "calibration=None": partial(OURS, calibration=None),
    'loss="logistic"': LOGISTIC,
    "LightGBM, stumps": STUMPS,
    "LightGBM, stumps, 1,000 trees": MANY_STUMPS,
}
SEARCHES: dict[str, Any] = {
    "default": OURS,
    "calibration=None": MODELS["calibration=None"],
    'loss="logistic"': LOGISTIC,
    'loss="logistic", cross-validated': partial(QuadBoostClassifierCV, loss="logistic", n_jobs=1),
    "LightGBM, stumps, 1,000 trees": MANY_STUMPS,
}
LARGE = {name: MODELS[name] for name in ("default", 'loss="logistic"', "LightGBM, stumps, 1,000 trees")}
# The default, helped by the labels of the test rows.
LINE = "default, with the best line of its scores"
RISING = "default, with the best rising function of its scores"
STRENGTH = "default, with the best strength of the penalty"
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the strength, that are tried
N_TEST = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="directory with small tables and their manifest.json")
    parser.add_argument("--tables", type=Path, help="directory with magic, electricity and letter")
    parser.add_argument(
        "--rows", type=int, nargs="*", default=[100_000, 1_000_000], help="training rows of made tables"
    )
    parser.add_argument("--splits", type=int, default=3, help="of magic and electricity")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of LightGBM, about the names of columns
    if arguments.data is not None:
        show("small tables", small_tables(arguments.data))
    if arguments.tables is not None:
        for name in ("magic", "electricity"):
            show(name, large_table(arguments.tables / f"{name}.csv.gz", SEARCHES, arguments.splits))
        show("letter", large_table(arguments.tables / "letter.csv.gz", LARGE, 1))
    for m in arguments.rows:
        show(f"{m:,} x 30", made_table(m))


def small_tables(directory: Path) -> pd.DataFrame:
    """Means over the folds, and then over the tables."""
    records = []
    for table in given_tables(directory):
        X, y = table.load(0)
        y, scores = y.astype(int), np.empty(len(y))
        chance = np.empty((len(MULTIPLES), len(y), 2))
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
            for name, make in MODELS.items():
                record, model = measured(make, X.iloc[train], y[train], X.iloc[test], y[test])
                records.append({"model": name, "table": table.name, **record})
                if name == "default":
                    scores[test] = model.decision_function(X.iloc[test])
                    for number, multiple in enumerate(MULTIPLES):
                        other = OURS(reg_lambda=multiple * model.reg_lambda_).fit(X.iloc[train], y[train])
                        chance[number, test] = other.predict_proba(X.iloc[test])
        line = LogisticRegression(C=1e6).fit(scores[:, None], y).predict_proba(scores[:, None])
        rising = IsotonicRegression().fit(scores, y).predict(scores)
        best = min((figures(each, y) for each in chance), key=lambda found: found["log-loss"])
        records.append({"model": LINE, "table": table.name, **figures(line, y)})
        records.append({"model": RISING, "table": table.name, **figures(np.column_stack([1 - rising, rising]), y)})
        records.append({"model": STRENGTH, "table": table.name, **best})
    return pd.DataFrame(records).groupby(["model", "table"], sort=False).mean().groupby("model", sort=False).mean()


def large_table(path: Path, models: Mapping[str, Any], n_splits: int) -> pd.DataFrame:
    """Means over splits."""
    frame = pd.read_csv(path, dtype={"label": str})
    y = np.unique(frame.pop("label"), return_inverse=True)[1]
    X, records = frame.to_numpy(float), []
    for split in range(n_splits):
        train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=split)
        for name, make in models.items():
            records.append({"model": name, **measured(make, X[train], y[train], X[test], y[test])[0]})
    return pd.DataFrame(records).groupby("model", sort=False).mean()


def made_table(m: int) -> pd.DataFrame:
    """A smooth additive function of half of the features; the least time of two fits."""
    random = np.random.default_rng(0)
    X = random.normal(size=(m + N_TEST, 30))
    odds = np.sin(2 * X[:, :10]).sum(axis=1) + X[:, 10:15].sum(axis=1)
    y = (random.random(len(X)) < 1 / (1 + np.exp(-odds))).astype(int)
    records = []
    for _ in range(2):
        for name, make in LARGE.items():
            records.append({"model": name, **measured(make, X[:m], y[:m], X[m:], y[m:])[0]})
    return pd.DataFrame(records).groupby("model", sort=False).min()


def measured(make: Any, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> tuple[dict[str, float], Any]:
    model, start = make(), time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    return {**figures(model.predict_proba(X_test), y_test), "CPU s of a fit": seconds}, model


def figures(chance: np.ndarray, y: np.ndarray) -> dict[str, float]:
    of_true_class = np.clip(chance[np.arange(len(y)), y], 1e-15, None)
    off = chance - np.eye(chance.shape[1])[y]
    return {
        "log-loss": float(-np.log(of_true_class).mean()),
        "Brier score": float((off**2).sum(axis=1).mean() / 2),
        "error": float(np.mean(chance.argmax(axis=1) != y)),
    }


def show(title: str, means: pd.DataFrame) -> None:
    print(f"### {title}\n\n| model | {' | '.join(means.columns)} |\n{'| --- ' * (means.shape[1] + 1)}|")
    for name, row in means.iterrows():
        print(f"| {name} | {' | '.join('-' if np.isnan(value) else f'{value:.4f}' for value in row)} |")
    print(flush=True)


if __name__ == "__main__":
    main()
