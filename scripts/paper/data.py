"""The datasets: a directory of CSV files with a manifest (docs/paper-data.md), and how to get them from OpenML."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import published

MANIFEST = "manifest.json"
LABEL = "label"


@dataclass(frozen=True)
class Dataset:
    """Examples with two classes; missing values are NaN, and what the coding had to decide is kept beside."""

    name: str
    X: np.ndarray
    y: np.ndarray  # -1 or +1
    n_labels: int  # before they were made two
    n_categorical: int  # attributes
    n_missing: int  # values


def read_manifest(directory: Path) -> dict[str, dict[str, Any]]:
    """What is known of each dataset of the paper that is there."""
    path = directory / MANIFEST
    if not path.is_file():
        raise SystemExit(f"{path} is not there; --data is a directory as docs/paper-data.md describes it")
    return {name: entry for name, entry in json.loads(path.read_text()).items() if name in published.table1()}


def load(directory: Path, name: str) -> Dataset:
    """Read a dataset, of which no more rows are used than the paper had."""
    entry = read_manifest(directory)[name]
    content = (directory / entry["file"]).read_bytes()
    if "sha256" in entry and hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise SystemExit(f"{entry['file']} is not the file that {MANIFEST} describes: its SHA-256 differs")
    text = gzip.decompress(content) if entry["file"].endswith(".gz") else content
    header, *rows = csv.reader(io.StringIO(text.decode()))
    if header[-1] != LABEL or any(len(row) != len(header) for row in rows):
        raise SystemExit(f"{entry['file']}: every row needs {len(header)} values, the last of them the {LABEL}")
    rows = rows[: published.table1()[name].rows]
    *attributes, labels = zip(*rows, strict=True)
    columns = [code(values) for values in attributes]
    X = np.column_stack([column for column, _ in columns])
    return Dataset(
        name=name,
        X=X,
        y=signs(name, labels, entry["positive"], entry["negative"]),
        n_labels=len(set(labels)),
        n_categorical=sum(categorical for _, categorical in columns),
        n_missing=int(np.isnan(X).sum()),
    )


def code(values: Sequence[str]) -> tuple[np.ndarray, bool]:
    """Numbers as they are; if any value is none, every value's place in alphabetical order. Empty is missing."""
    try:
        return np.array([float(value) if value else np.nan for value in values]), False
    except ValueError:
        number_of = {level: float(i) for i, level in enumerate(sorted(set(values) - {""}))}
        return np.array([number_of.get(value, np.nan) for value in values]), True


def signs(name: str, labels: Sequence[str], positive: Iterable[str], negative: Iterable[str]) -> np.ndarray:
    sign = {**dict.fromkeys(positive, 1.0), **dict.fromkeys(negative, -1.0)}
    unknown = sorted(set(labels) - set(sign))
    if unknown:
        raise SystemExit(f"{name}: the label {unknown[0]!r} is neither positive nor negative in {MANIFEST}")
    return np.array([sign[label] for label in labels])


# --- OpenML -------------------------------------------------------------------------------------------------


def download(directory: Path, names: Sequence[str]) -> None:
    """Get datasets that are not there yet from OpenML, as files and a manifest of the same format."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / MANIFEST
    manifest = json.loads(path.read_text()) if path.exists() else {}
    with open(Path(__file__).with_name("openml.csv"), newline="") as file:
        sources = {line["dataset"]: line for line in csv.DictReader(file)}
    for name in names or sources:
        if name in manifest:
            continue
        print(f"downloading {name}", flush=True)
        manifest[name] = _download(directory, name, sources[name])
        path.write_text(json.dumps(manifest, indent=1))


def _download(directory: Path, name: str, source: dict[str, str]) -> dict[str, Any]:
    from sklearn.datasets import fetch_openml

    frame, label = fetch_openml(
        data_id=int(source["data_id"]),
        target_column=source["target"] or "default-target",
        as_frame=True,
        parser="liac-arff",
        return_X_y=True,
    )
    frame = frame.drop(columns=_split(source["drop"])).assign(**{LABEL: label.astype(str)})
    labels, positive = set(frame[LABEL]), _split(source["positive"])
    negative = _split(source["negative"]) or sorted(labels - set(positive))
    if not set(positive) <= labels:
        raise SystemExit(f"{name}: OpenML has the labels {sorted(labels)}, {positive} were expected")
    frame = frame[frame[LABEL].isin([*positive, *negative])]
    if source["rows"] == "distinct":
        frame = frame.drop_duplicates()
    if len(frame) < published.table1()[name].rows:
        raise SystemExit(f"{name}: OpenML has {len(frame)} rows, the paper had {published.table1()[name].rows}")
    text = frame.to_csv(index=False).encode()
    content = gzip.compress(text, mtime=0)
    file = f"{name}.csv.gz"
    (directory / file).write_bytes(content)
    return {
        "title": name,
        "rows": len(frame),
        "features": frame.shape[1] - 1,
        "positive": positive,
        "negative": negative,
        "source": [f"OpenML data_id {source['data_id']}"],
        "file": file,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _split(text: str) -> list[str]:
    return text.split(";") if text else []
