"""The tables: directories of gzipped CSV files with a manifest.json, and those that scikit-learn ships."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

LABEL = "label"
SHIPPED = ("iris", "wine", "breast_cancer", "digits", "diabetes")


@dataclass(frozen=True)
class Table:
    """A frame, text as categories, and the labels as they are written or, of a regression, numbers."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    is_regression: bool = False


def given_tables(directories: Sequence[Path], wanted: Sequence[str] | None = None) -> Iterator[Table]:
    """Every table of the directories: two classes where the manifest names the positive labels."""
    for directory in directories:
        manifest = directory / "manifest.json"
        known = json.loads(manifest.read_text()) if manifest.exists() else {}
        for path in sorted(directory.glob("*.csv.gz")):
            name = path.name.removesuffix(".csv.gz")
            if wanted is None or name in wanted:
                yield read_given(path, name, known.get(name, {}))


def read_given(path: Path, name: str, entry: dict[str, Any]) -> Table:
    frame = pd.read_csv(path, dtype={LABEL: str})
    label = frame.pop(LABEL)
    text = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    X = frame.astype(dict.fromkeys(text, "category"))
    if "regression" in entry.get("task", ""):
        return Table(name, X, label.astype(float).to_numpy(), is_regression=True)
    positive = entry.get("positive")
    return Table(name, X, label.to_numpy() if positive is None else label.isin(positive).to_numpy())


def shipped_tables(wanted: Sequence[str] | None = None) -> Iterator[Table]:
    """Those that scikit-learn brings with it."""
    for name in SHIPPED:
        its_name = f"{name} (scikit-learn)"
        if wanted is None or its_name in wanted or name in wanted:
            found = getattr(datasets, f"load_{name}")(as_frame=True)
            yield Table(its_name, found.data, found.target.to_numpy(), is_regression=name == "diabetes")


def all_tables(directories: Sequence[Path], wanted: Sequence[str] | None) -> Iterator[Table]:
    yield from given_tables(directories, wanted)
    yield from shipped_tables(wanted)
