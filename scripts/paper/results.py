"""Results on disk: one JSON file for each dataset and split, whole or not at all, so that a run can go on."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .protocol import Setting, Trial

SETTINGS = "settings.json"


@dataclass(frozen=True)
class Outcome:
    """A trial as it is kept."""

    dataset: str
    split: int
    algorithm: str
    setting: Setting
    cv_risk: float | None
    errors: np.ndarray  # of bool, one for each test row
    select_seconds: float
    fit_seconds: float

    @property
    def risk(self) -> float:
        return float(self.errors.mean())

    @property
    def seconds(self) -> float:
        return self.select_seconds + self.fit_seconds


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there in full, or not at all, whenever the process is killed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


class Store:
    """The results of one run, in one directory."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.directory = output / "results"

    def open(self, settings: dict[str, Any], resume: bool) -> None:
        """Make the directory, or go on with one whose results were made with the same settings."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.output / SETTINGS
        if not path.exists():
            write_whole(path, json.dumps(settings, indent=1))
            return
        if not resume:
            raise SystemExit(f"{self.output} holds results; add --resume to go on, or choose another directory")
        old = json.loads(path.read_text())
        for name in sorted({*old, *settings}):
            if old.get(name) != settings.get(name):
                raise SystemExit(
                    f"{self.output} was made with {name} {old.get(name)!r}, not {settings.get(name)!r}; "
                    "go on with the same, or choose another directory"
                )

    def path(self, dataset: str, split: int) -> Path:
        return self.directory / f"{dataset}-{split}.json"

    def read(self, dataset: str, split: int) -> dict[str, Any]:
        path = self.path(dataset, split)
        return json.loads(path.read_text()) if path.exists() else {}

    def write(self, dataset: str, split: int, trials: dict[str, Any]) -> None:
        write_whole(self.path(dataset, split), json.dumps(trials, indent=1))

    def outcomes(self, datasets: list[str], splits: int, algorithms: list[str]) -> list[Outcome]:
        found = []
        for dataset in datasets:
            for split in range(splits):
                trials = self.read(dataset, split)
                found += [_outcome(dataset, split, a, trials[a]) for a in algorithms if a in trials]
        return found


def record(trial: Trial) -> dict[str, Any]:
    return {
        "setting": trial.setting,
        "cv_risk": None if np.isnan(trial.cv_risk) else trial.cv_risk,
        "n_test": len(trial.test_errors),
        "errors": np.packbits(trial.test_errors).tobytes().hex(),
        "select_seconds": trial.select_seconds,
        "fit_seconds": trial.fit_seconds,
    }


def _outcome(dataset: str, split: int, algorithm: str, kept: dict[str, Any]) -> Outcome:
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(kept["errors"]), dtype=np.uint8), count=kept["n_test"])
    return Outcome(
        dataset,
        split,
        algorithm,
        kept["setting"],
        kept["cv_risk"],
        bits.astype(bool),
        kept["select_seconds"],
        kept["fit_seconds"],
    )
