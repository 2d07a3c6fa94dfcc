"""One fit of one method to one split of one table, and its figures on the rows held out."""

from __future__ import annotations

import importlib
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from .methods import METHODS, Problem
from .tables import Table, all_tables

TEST_SIZE = 0.3
LEAST_CHANCE = 1e-15  # a probability of 0 for what then happens counts as this


@lru_cache
def version_of(method: str) -> str:
    return importlib.import_module(METHODS[method].packages[0]).__version__


@lru_cache(maxsize=2)
def table_of(sources: tuple[Path, ...], name: str) -> Table:
    return next(all_tables(sources, [name]))


def measure(sources: tuple[Path, ...], name: str, split: int, method: str, seed: int) -> dict[str, Any]:
    """One fit, its figures on the rows held out, and its seconds of CPU."""
    warnings.simplefilter("ignore")
    record = {"table": name, "split": split, "method": method, "version": version_of(method), "seed": seed}
    table = table_of(sources, name)
    X, y, n_classes = table.X, table.y, 0
    if not table.is_regression:
        classes, y = np.unique(y, return_inverse=True)
        n_classes = len(classes)
    splitter = (ShuffleSplit if table.is_regression else StratifiedShuffleSplit)(
        split + 1, test_size=TEST_SIZE, random_state=seed
    )
    train, test = list(splitter.split(X, y))[split]
    problem = Problem(len(X), n_classes)
    try:
        with threadpool_limits(1):
            start = time.process_time()
            model = METHODS[method].make(problem)
            model.fit(X.iloc[train], y[train])
            fitted = time.process_time()
            found = (model.predict if problem.is_regression else model.predict_proba)(X.iloc[test])
            end = time.process_time()
    except Exception as error:  # of a library that cannot do it: the page says so
        return record | {"failed": f"{type(error).__name__}: {error}"[:200]}
    figures = regression_figures if problem.is_regression else figures_of
    return record | {
        "rows": len(X),
        "features": X.shape[1],
        "classes": n_classes,
        **figures(np.asarray(found, dtype=np.float64), y[test]),
        "fit seconds": fitted - start,
        "predict seconds": end - fitted,
        "test rows": len(test),
        "terms": int(METHODS[method].terms(model)),
    }


def regression_figures(prediction: np.ndarray, y: np.ndarray) -> dict[str, float]:
    return {"r2": float(1.0 - np.mean((y - prediction.ravel()) ** 2) / np.var(y))}


def figures_of(chance: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Error, log-loss, Brier score and AUC (of several classes the mean, each against the rest)."""
    one_hot = np.arange(chance.shape[1]) == y[:, None]
    of_true_class = np.clip(chance[np.arange(len(y)), y], LEAST_CHANCE, None)
    kinds = [1] if chance.shape[1] == 2 else [k for k in range(chance.shape[1]) if 0 < one_hot[:, k].sum() < len(y)]
    return {
        "error": float(np.mean(chance.argmax(axis=1) != y)),
        "log-loss": float(-np.log(of_true_class).mean()),
        "Brier": float(((chance - one_hot) ** 2).sum(axis=1).mean() / 2),
        "AUC": float(np.mean([roc_auc_score(one_hot[:, k], chance[:, k]) for k in kinds])),
    }
