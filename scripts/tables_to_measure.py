"""Tables of many kinds to measure by: given ones, those that come with scikit-learn, and made ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

MANY_ROWS = 20_000  # with more there is less chance: two splits will do
GROUPS = ("given", "shipped", "made, m <= 5,000", "made, m = 30,000", "wide")


@dataclass(frozen=True)
class Table:
    name: str
    group: str
    load: Callable[[int], tuple[Any, np.ndarray]]  # from a seed to X and y: labels as objects, or real numbers
    n_train: int


def given_tables(directory: Path) -> Iterator[Table]:
    manifest = json.loads((directory / "manifest.json").read_text())
    for name, entry in manifest.items():
        load = partial(read_given, directory / entry["file"], entry["positive"])
        yield Table(name, "given", load, entry["rows"] * 2 // 3)


def read_given(path: Path, positive: list[str], seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.read_csv(path, dtype={"label": str})
    X = frame.drop(columns="label")
    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    return X.astype(dict.fromkeys(text, "category")), frame["label"].isin(positive).to_numpy().astype(object)


def shipped_tables() -> Iterator[Table]:
    for name in ("breast_cancer", "diabetes", "digits", "iris"):
        m = len(getattr(datasets, f"load_{name}")().target)
        yield Table(name, "shipped", partial(load_shipped, name), m * 2 // 3)


def load_shipped(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return X, standardized(y) if name == "diabetes" else y.astype(object)


def made_tables(sizes: Iterable[int]) -> Iterator[Table]:
    for m in sizes:
        for make in (steps, faint_waves, friedman, spheres, clusters):
            load = partial(make, m * 3 // 2)
            yield Table(f"{make.__name__} {m}", GROUPS[2] if m < MANY_ROWS else GROUPS[3], load, m)


def wide_tables(shapes: Iterable[tuple[int, int]]) -> Iterator[Table]:
    for m, d in shapes:
        for make in (three_of_many, faint_of_many):
            yield Table(f"{make.__name__} {m} {d}", GROUPS[4], partial(make, m * 3 // 2, d), m)


def three_of_many(m: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three features tell the label, the others are noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(m, d))
    return X, (X[:, :3].sum(axis=1) + random.normal(0, 1.3, m) > 0).astype(object)


def faint_of_many(m: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A third of the features tell a little each: half of the variance in all."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(m, d))
    told = standardized(np.sign(X[:, : d // 3]) @ random.normal(size=d // 3))
    return X, standardized(told + random.normal(size=m))


def steps(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Few voters and noise: 8 features with one step each, 22 without; log-odds."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(m, 30))
    height = random.uniform(0.6, 2.0, 8) * random.choice([-1, 1], 8)
    odds = np.where(X[:, :8] > random.normal(0, 0.7, 8), 1, -1) @ height
    return X, (random.random(m) < 1 / (1 + np.exp(-odds))).astype(object)


def faint_waves(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A tenth of the variance is a smooth function of 20 features, of which half are correlated with the others."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(m, 20))
    X[:, 10:] = 0.7 * (X[:, :10] + X[:, 10:])
    wave = np.sin(X * random.uniform(0.5, 2.0, 20) + random.uniform(0, 6, 20)).sum(axis=1)
    return X, standardized(standardized(wave) + 3 * random.normal(size=m))


def friedman(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Smooth, little noise, one interaction."""
    X, y = datasets.make_friedman1(m, n_features=10, noise=1.0, random_state=seed)
    return X, standardized(y)


def spheres(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels without noise, inside and outside a sphere."""
    X, y = datasets.make_hastie_10_2(m, random_state=seed)
    return X, (y > 0).astype(object)


def clusters(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian clusters: correlated features, interactions, noise."""
    X, y = datasets.make_classification(
        m, 20, n_informative=8, n_redundant=4, n_clusters_per_class=3, flip_y=0.05, random_state=seed
    )
    return X, y.astype(object)


def standardized(y: np.ndarray) -> np.ndarray:
    return (y - y.mean()) / y.std()
