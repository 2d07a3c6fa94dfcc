"""The figures of the paper: its Table 1 (risks, seconds) and Table 2 (Poisson binomial tests)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ALGORITHMS = ("l1", "l2", "linf", "vanilla", "lpboost", "adaboost")
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """A dataset in Table 1. The rows are those of the original files; every risk is then a count of test rows."""

    rows: int
    test_rows: int
    risk: dict[str, float]

    def errors(self, algorithm: str) -> range:
        """How many errors on the test rows are rounded to the published risk."""
        low, high = self.risk[algorithm] - 0.0005, self.risk[algorithm] + 0.0005
        possible = [k for k in range(self.test_rows + 1) if low - 1e-9 <= k / self.test_rows <= high + 1e-9]
        return range(possible[0], possible[-1] + 1)


def _read(name: str) -> list[dict[str, str]]:
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file))


@cache
def table1() -> dict[str, Row]:
    return {
        line["dataset"]: Row(
            int(line["rows"]), int(line["test_rows"]), {name: float(line[name]) for name in ALGORITHMS}
        )
        for line in _read("published_risks.csv")
        if line["rows"]
    }


@cache
def seconds() -> dict[str, float]:
    (line,) = [line for line in _read("published_risks.csv") if line["dataset"] == "seconds"]
    return {name: float(line[name]) for name in ALGORITHMS}


@cache
def table2() -> dict[tuple[str, str], tuple[float, bool]]:
    """Of a pair: the probability that the first is better, and whether it has a star (sign test, 0.05)."""
    return {
        (line["algorithm"], other): (float(line[other].rstrip("*")), line[other].endswith("*"))
        for line in _read("published_tests.csv")
        for other in ALGORITHMS
    }
