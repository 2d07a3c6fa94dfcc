"""Measure rules against stumps and LightGBM: error, log-loss and CPU time over many tables (docs/rules.md).

    python scripts/measure_rules.py --data DIR... --splits 5 --models stumps,rules,auto,lightgbm
    python scripts/measure_rules.py --data DIR... --tables magic,electricity --path   # voters against error, under l1
    python scripts/measure_rules.py --data DIR... --tables magic,electricity --speed  # prediction, beside LightGBM
    python scripts/measure_rules.py --large 1000000                                   # a made table with interactions
    python scripts/measure_rules.py --additive --models stumps,auto,lightgbm          # small made tables without any
    python scripts/measure_rules.py --made --splits 3                                 # made tables of many kinds

Each DIR holds gzipped CSV files with a column `label`; where its manifest.json names the positive labels of a table, it
has two classes. 70 % of the rows are for training, stratified; settings as they come, one thread. Of CPU times the best
over the splits counts: what else runs on the machine can only add to them. Needs pandas and LightGBM (the extra
`benchmarks`).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy.tables import given_tables
from lightgbm import LGBMClassifier
from sklearn.datasets import (
    make_circles,
    make_classification,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
)
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
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="directories with tables")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", default="lightgbm,stumps,rules", help=f"some of {', '.join(MODELS)}")
    parser.add_argument("--tables", help="some of the tables, by name")
    parser.add_argument("--path", action="store_true", help="follow rules under l1 from few to many")
    parser.add_argument("--speed", action="store_true", help="rows a second, and one row")
    parser.add_argument("--additive", action="store_true", help="made tables of 400 rows, where stumps say all")
    parser.add_argument("--made", action="store_true", help="made tables of many kinds, 500 to 12,000 rows")
    parser.add_argument("--large", type=int, help="rows of a made table, 30 features")
    arguments = parser.parse_args()
    if arguments.large:
        large(arguments.large, arguments.seed)
        return
    names = arguments.models.split(",")
    warnings.simplefilter("ignore")
    records = []
    wanted = arguments.tables and arguments.tables.split(",")
    made = additive(arguments.seed) if arguments.additive else of_many_kinds(arguments.seed) if arguments.made else None
    for table, X, y in made or ((each.name, each.X, each.y) for each in given_tables(arguments.data, wanted)):
        splitter = StratifiedShuffleSplit(arguments.splits, test_size=0.3, random_state=arguments.seed)
        if arguments.path:
            follow(table, X, y, splitter)
            continue
        if arguments.speed:
            predict(table, X, y, next(splitter.split(X, y)))
            continue
        for train, test in splitter.split(X, y):
            for name in names:
                records.append({"table": table, "model": name, **measure(MODELS[name](), X, y, train, test)})
        models = pd.DataFrame([record for record in records if record["table"] == table]).groupby("model")
        mean, least = models.mean(numeric_only=True), models["CPU s"].min()
        for name in names:
            figures = f"{mean['error'][name]:.4f} | {mean['log-loss'][name]:.4f} | {least[name]:.3f}"
            print(f"| {table} | {name} | {figures} |", flush=True)
    if records:
        show(pd.DataFrame(records), names)


def predict(table: str, X: pd.DataFrame, y: np.ndarray, split: tuple[np.ndarray, np.ndarray]) -> None:
    """Scores of many rows and of one, by the default model with trees and by LightGBM's, by arrays of numbers."""
    train, test = split
    values = X.to_numpy(dtype=float)[np.resize(test, 100_000)]
    ours = MODELS["rules"]().fit(X.iloc[train].to_numpy(dtype=float), y[train]).ensemble_
    theirs = MODELS["lightgbm"]().fit(X.iloc[train].to_numpy(dtype=float), y[train]).booster_
    one, several = values[:1].copy(), list[Callable[[], Any]]()
    several += [lambda: ours.decision_function(values, n_jobs=1), lambda: theirs.predict(values, num_threads=1)]
    several += [lambda: ours.decision_function(one), lambda: theirs.predict(one, num_threads=1)]
    best = np.full(4, np.inf)
    for _ in range(10):
        for number, call in enumerate(several):
            times = 1 if number < 2 else 300
            start = time.process_time()
            for _ in range(times):
                call()
            best[number] = min(best[number], (time.process_time() - start) / times)
    rows, single = best[1] / best[0], best[3] / best[2]
    print(f"{table}: {len(values) / best[0]:.3g} rows a second, {rows:.1f} times LightGBM's", flush=True)
    print(f"{table}: one row in {best[2] * 1e6:.1f} microseconds, {single:.1f} times quicker than LightGBM", flush=True)


def additive(seed: int) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Tables whose log-odds are sums of functions of one feature each."""
    for number in range(10):
        random = np.random.default_rng([seed, number])
        X = random.normal(size=(400, 6))
        odds = 1.5 * X[:, 0] + np.sin(2.0 * X[:, 1]) + 1.5 * (X[:, 2] > 0.5) - np.abs(X[:, 3])
        yield f"additive {number}", pd.DataFrame(X).rename(columns=str), random.random(400) < 1 / (1 + np.exp(-odds))


def of_many_kinds(seed: int) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Clusters, shells, checkerboards, parity, pairs of categories, sparse counts: what rules may meet."""
    kinds: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
        "clusters 500 x 10": partial(make_classification, 500, 10, n_informative=5, random_state=seed),
        "clusters 2,000 x 20": partial(make_classification, 2_000, 20, random_state=seed),
        "clusters 6,000 x 20": partial(make_classification, 6_000, 20, n_informative=10, random_state=seed),
        "five classes": partial(make_classification, 4_000, 20, n_informative=10, n_classes=5, random_state=seed),
        "sphere 2,000 x 10": partial(make_hastie_10_2, 2_000, random_state=seed),
        "sphere 12,000 x 10": partial(make_hastie_10_2, 12_000, random_state=seed),
        "shells 2,500 x 10": partial(
            make_gaussian_quantiles, n_samples=2_500, n_features=10, n_classes=2, random_state=seed
        ),
        "moons": partial(make_moons, 2_000, noise=0.3, random_state=seed),
        "circles": partial(make_circles, 2_000, noise=0.15, factor=0.6, random_state=seed),
        **{name: partial(kind, np.random.default_rng(seed)) for name, kind in OWN_KINDS.items()},
    }
    for name, make in kinds.items():
        X, y = make()
        yield name, (X if isinstance(X, pd.DataFrame) else pd.DataFrame(X).rename(columns=str)), y


def _checkerboard(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = random.uniform(size=(4_000, 6))
    return X, (np.floor(4.0 * X[:, :2]).sum(axis=1) % 2 == 1) ^ (random.random(len(X)) < 0.05)


def _parity(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = random.normal(size=(4_000, 8))
    return X, (X[:, :3] > 0).sum(axis=1) % 2 == 1


def _categories(random: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    levels, number = random.integers(0, 12, size=(4_000, 5)), random.normal(size=4_000)
    one, two = random.normal(size=(2, 12, 12))
    odds = 1.5 * one[levels[:, 0], levels[:, 1]] + two[levels[:, 2], levels[:, 3]] + number
    table = pd.DataFrame(levels).rename(columns="c{}".format).astype(str).astype("category")
    return table.assign(number=number), random.random(4_000) < 1.0 / (1.0 + np.exp(-odds))


def _counts(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y, rate = random.random(6_000) < 0.4, random.random((2, 50)) ** 5
    is_there = random.random((6_000, 50)) < 0.12 + 0.3 * rate[y.astype(int)]
    return np.where(is_there, random.exponential(size=is_there.shape), 0.0), y


OWN_KINDS = {"checkerboard": _checkerboard, "parity": _parity, "categories": _categories, "counts": _counts}


def follow(table: str, X: pd.DataFrame, y: np.ndarray, splitter: StratifiedShuffleSplit) -> None:
    """Error as the l1 penalty becomes weaker, in multiples of the default, and with as many voters by `max_voters`."""
    print(f"\n| {table}: times the default strength | stumps | rules | error | `max_voters` |\n" + "| --- " * 5 + "|")
    found: dict[float, list[tuple[int, int, float, float]]] = {}
    for train, test in splitter.split(X, y):

        def fit(train: np.ndarray = train, test: np.ndarray = test, **options: Any) -> tuple[Any, float]:
            model = QuadBoostClassifier(n_trees=100, penalty="l1", n_jobs=1, **options).fit(X.iloc[train], y[train])
            return model, float(np.mean(model.predict(X.iloc[test]) != y[test]))

        first, first_error = fit()
        for times in (32.0, 16.0, 8.0, 4.0, 3.0, 2.0, 1.0):
            model, error = (first, first_error) if times == 1 else fit(reg_lambda=times * first.reg_lambda_)
            size = len(model.ensemble_.feature), model.ensemble_.n_rules
            found.setdefault(times, []).append((*size, error, fit(max_voters=sum(size))[1]))
    for times, fits in found.items():
        n_stumps, n_rules, error, of_few = np.mean(fits, axis=0)
        print(f"| {times:g} | {n_stumps:.0f} | {n_rules:.0f} | {error:.4f} | {of_few:.4f} |", flush=True)


def large(m: int, seed: int) -> None:
    """CPU time and error on a made table with interactions, beside LightGBM with 300 trees."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(m + 200_000, 30))
    odds = 2.0 * X[:, 0] * X[:, 1] + 2.0 * (X[:, 2] > 0) * X[:, 3] - 1.5 * (X[:, 4] > 0.5) * (X[:, 5] < 0) + X[:, 6]
    odds += np.sin(2.0 * X[:, 7]) + 0.5 * X[:, 8] * (X[:, 9] > 0) * (X[:, 10] > 0)
    y = random.random(len(X)) < 1.0 / (1.0 + np.exp(-odds))
    train, test = np.arange(m), np.arange(m, len(X))
    frame = pd.DataFrame(X).rename(columns=str)
    models = {
        "rules": MODELS["rules"],
        "rules, 200 trees of 63 leaves": partial(MODELS["rules"], n_trees=200, max_leaves=63),
        "lightgbm, 300 trees": partial(MODELS["lightgbm"], n_estimators=300),
    }
    print("| model | error | log-loss | CPU s of a fit |\n| --- | --- | --- | --- |")
    for name, make in models.items():
        figures = measure(make(), frame, y, train, test)
        print(f"| {name} | {figures['error']:.4f} | {figures['log-loss']:.4f} | {figures['CPU s']:.1f} |", flush=True)


def measure(model: Any, X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    start = time.process_time()
    model.fit(X.iloc[train], y[train])
    seconds = time.process_time() - start
    chance = model.predict_proba(X.iloc[test])
    label = np.searchsorted(model.classes_, y[test])
    of_true_class = np.clip(chance[np.arange(len(test)), label], 1e-15, None)
    error = float(np.mean(chance.argmax(axis=1) != label))
    return {"error": error, "log-loss": float(-np.log(of_true_class).mean()), "CPU s": seconds}


def show(records: pd.DataFrame, names: list[str]) -> None:
    by_table = records.groupby(["model", "table"]).mean()
    spread = (
        records.groupby(["model", "table"])["error"]
        .sem()
        .groupby("model")
        .apply(lambda errors: np.sqrt((errors**2).sum()) / len(errors))
    )
    means = by_table.groupby("model").mean()
    means["CPU s"] = records.groupby(["model", "table"])["CPU s"].min().groupby("model").mean()
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
