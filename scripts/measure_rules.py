"""Measure rules against stumps and LightGBM: error, log-loss and CPU time over many tables (docs/rules.md).

    python scripts/measure_rules.py --data DIR... --splits 5 --models stumps,rules,auto,lightgbm

Each DIR holds gzipped CSV files with a column `label`; where its manifest.json names the positive labels of a table, it
has two classes. 70 % of the rows are for training, stratified; settings as they come, one thread. Needs pandas and
LightGBM (the extra `benchmarks`).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.model_selection import StratifiedShuffleSplit

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV

MODELS: dict[str, Any] = {
    "lightgbm": partial(LGBMClassifier, n_jobs=1, verbose=-1),
    "stumps": partial(QuadBoostClassifier, n_jobs=1),
    "rules": partial(QuadBoostClassifier, n_trees=100, n_jobs=1),
    "few": partial(QuadBoostClassifier, n_trees=100, penalty="l1", n_jobs=1),
    "forward": partial(QuadBoostClassifier, n_trees=100, mode="forward", n_jobs=1),
    "logistic": partial(QuadBoostClassifier, n_trees=100, loss="logistic", n_jobs=1),
    "auto": partial(QuadBoostClassifierCV, n_trees="auto", n_jobs=1),
}
NEAR = 0.01  # of the better of stumps and LightGBM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path, nargs="+", help="directories with tables")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", default="lightgbm,stumps,rules", help=f"some of {', '.join(MODELS)}")
    parser.add_argument("--tables", help="some of the tables, by name")
    arguments = parser.parse_args()
    names = arguments.models.split(",")
    warnings.simplefilter("ignore")
    records = []
    for table, X, y in tables(arguments.data, arguments.tables):
        splitter = StratifiedShuffleSplit(arguments.splits, test_size=0.3, random_state=arguments.seed)
        for train, test in splitter.split(X, y):
            for name in names:
                records.append({"table": table, "model": name, **measure(MODELS[name](), X, y, train, test)})
        own = pd.DataFrame([record for record in records if record["table"] == table]).groupby("model")["error"].mean()
        print(table, " ".join(f"{name} {own[name]:.4f}" for name in names), flush=True)
    show(pd.DataFrame(records), names)


def tables(directories: list[Path], wanted: str | None) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    for directory in directories:
        manifest = json.loads((directory / "manifest.json").read_text())
        for path in sorted(directory.glob("*.csv.gz")):
            name = path.name.removesuffix(".csv.gz")
            if wanted is not None and name not in wanted.split(","):
                continue
            frame = pd.read_csv(path, dtype={"label": str})
            positive = manifest.get(name, {}).get("positive")
            y = frame.pop("label")
            y = y.to_numpy() if positive is None else y.isin(positive).to_numpy()
            text = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
            yield name, frame.astype(dict.fromkeys(text, "category")), y


def measure(model: Any, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    start = time.process_time()
    model.fit(X.iloc[train], y[train])
    seconds = time.process_time() - start
    chance = model.predict_proba(X.iloc[test])
    place = np.searchsorted(model.classes_, y[test])
    own = np.clip(chance[np.arange(len(test)), place], 1e-15, None)
    error = float(np.mean(chance.argmax(axis=1) != place))
    return {"error": error, "log-loss": float(-np.log(own).mean()), "CPU s": seconds}


def show(records: pd.DataFrame, names: list[str]) -> None:
    by_table = records.groupby(["model", "table"]).mean()
    spread = (
        records.groupby(["model", "table"])["error"]
        .sem()
        .groupby("model")
        .apply(lambda own: np.sqrt((own**2).sum()) / len(own))
    )
    means = by_table.groupby("model").mean()
    print("\n| model | error | +- | log-loss | CPU s of a fit |\n| --- | --- | --- | --- | --- |")
    for name in names:
        row = means.loc[name]
        print(f"| {name} | {row['error']:.4f} | {spread[name]:.4f} | {row['log-loss']:.4f} | {row['CPU s']:.2f} |")
    if {"lightgbm", "stumps"} <= set(names):
        best = np.minimum(by_table.loc["lightgbm"]["error"], by_table.loc["stumps"]["error"])
        for name in set(names) - {"lightgbm", "stumps"}:
            near = int((by_table.loc[name]["error"] <= best + NEAR).sum())
            print(f"{name}: within {NEAR} of the better of stumps and LightGBM on {near} of {len(best)} tables")


if __name__ == "__main__":
    main()
