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
    found: dict[str, Path] = {}
    for directory in directories:
        known = read_manifest(directory / "manifest.json")
        for path in sorted(directory.glob("*.csv.gz")):
            name = path.name.removesuffix(".csv.gz")
            if wanted is not None and name not in wanted:
                continue
            if name in found:
                raise SystemExit(f"{path}: {found[name]} is a table of the same name")
            found[name] = path
            try:
                table = read_given(path, name, known.get(name, {}))
            except (ValueError, OSError) as error:  # pandas, too, raises these of a file that is no table
                raise SystemExit(f"{path}: {error}") from error
            yield table


def read_manifest(path: Path) -> dict[str, Any]:
    """What is known of tables, by their names; nothing if there is no such file."""
    try:
        known = json.loads(path.read_text()) if path.exists() else {}
    except ValueError as error:
        raise SystemExit(f"{path}: {error}") from error
    if not isinstance(known, dict) or not all(isinstance(entry, dict) for entry in known.values()):
        raise SystemExit(f"{path}: it must have an object for each table")
    return known


def read_given(path: Path, name: str, entry: dict[str, Any]) -> Table:
    frame = pd.read_csv(path, dtype={LABEL: str})
    if LABEL not in frame:
        raise ValueError(f"there is no column {LABEL!r}")
    label = frame.pop(LABEL)
    if label.isna().any() or frame.empty:
        raise ValueError("a label is missing" if label.isna().any() else "there are no rows, or no features")
    text = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    X = frame.astype(dict.fromkeys(text, "category"))
    if "regression" in entry.get("task", ""):
        return Table(name, X, label.astype(float).to_numpy(), is_regression=True)
    positive = entry.get("positive")
    y = label.to_numpy() if positive is None else label.isin(positive).to_numpy()
    counts = np.unique(y, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < 2:
        raise ValueError("at least two classes of two rows each are needed")
    return Table(name, X, y)


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
