"""All trials and both tables as CSV files, in full precision."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .algorithms import paper_columns
from .figures import Figures, compare
from .results import Outcome, write_whole


def write_csv(output: Path, figures: Figures, outcomes: Sequence[Outcome]) -> None:
    _write(
        output / "trials.csv",
        ["dataset", "split", "algorithm", "setting", "cv_risk", "test_risk", "fit_seconds", "seconds"],
        [
            [o.dataset, o.split, o.algorithm, json.dumps(o.setting), o.cv_risk, o.risk, o.fit_seconds, o.seconds]
            for o in outcomes
        ],
    )
    _write(
        output / "table1.csv",
        ["dataset", "algorithm", "mean", "deviation", "paper", "within_two_deviations"],
        [row for name in figures.algorithms for row in _risks(figures, name)],
    )
    _write(
        output / "table2.csv",
        ["first", "second", "better", "wins", "ties", "losses", "one_sided", "two_sided", "holm"],
        [
            [pair.this, pair.other, pair.better, *pair.counts, pair.one_sided, pair.two_sided, pair.holm]
            for pair in compare(figures, figures.algorithms)
        ],
    )


def _risks(figures: Figures, name: str) -> Iterable[Sequence[Any]]:
    names = {"lpboost": "lpboost", "adaboost": "adaboost"}
    for mode in ("forward", "corrective"):
        names |= {ours: column for column, ours in paper_columns(mode).items()}
    paper: Sequence[Any] = [""] * len(figures.datasets)
    near = paper
    if name in names:
        paper, near = figures.paper_risk(names[name]).tolist(), figures.is_near(name, names[name]).astype(int).tolist()
    return zip(
        figures.datasets,
        [name] * len(paper),
        figures.mean(name).tolist(),
        figures.deviation(name).tolist(),
        paper,
        near,
        strict=True,
    )


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_whole(path, text.getvalue())
