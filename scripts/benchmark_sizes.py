"""How much the benchmark of training does, and what all of its parts need to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmark_peers import BOOSTERS, OURS
from benchmarking import WIDE, Report, Timed, generate, interleaved


@dataclass(frozen=True)
class Size:
    """How much to do. Times are for repetitions: what is to be done once is done."""

    rows: tuple[int, ...]
    row_seconds: tuple[float, ...]
    rounds: tuple[int, ...]
    peer_rounds: int  # with more than the fewest rows: the most that peers do
    wanted: tuple[tuple[int, int, float], ...]  # rows, rounds, and how many times as fast as LightGBM and XGBoost
    l1_rows: int
    lambdas: tuple[float, ...]
    plain_lasso: float  # the least lambda for which Lasso does without a Gram matrix
    all_rows: int
    all_rounds: int
    ada_rounds: tuple[int, ...]
    wide: tuple[int, int]  # rows and features
    wide_rounds: int
    shape_rows: int
    shape_rounds: int
    part_seconds: float  # for each of the smaller parts
    total_seconds: float  # after which nothing is repeated

    @property
    def memory_rounds(self) -> int:
        return 10  # of peers, whose memory does not grow with the rounds


SIZES = {
    "full": Size(
        rows=(10_000, 100_000, 1_000_000),
        row_seconds=(100, 70, 500),
        rounds=(100, 300, 1_000, 3_000, 10_000),
        peer_rounds=1_000,
        wanted=((1_000_000, 10_000, 100), (1_000_000, 1_000, 20), (100_000, 1_000, 10), (10_000, 1_000, 3)),
        l1_rows=10_000,
        lambdas=(0.03, 0.01, 0.003, 0.001),
        plain_lasso=0.03,
        all_rows=100_000,
        all_rounds=300,
        ada_rounds=(5, 10, 20),
        wide=(20_000, WIDE),
        wide_rounds=1_000,
        shape_rows=100_000,
        shape_rounds=1_000,
        part_seconds=80,
        total_seconds=1_000,
    ),
    "quick": Size(
        rows=(5_000, 20_000),
        row_seconds=(1, 1),
        rounds=(30, 100, 300),
        peer_rounds=100,
        wanted=((20_000, 300, 3), (5_000, 300, 3)),
        l1_rows=2_000,
        lambdas=(0.03, 0.01),
        plain_lasso=0.03,
        all_rows=5_000,
        all_rounds=100,
        ada_rounds=(5, 10),
        wide=(3_000, 100),
        wide_rounds=100,
        shape_rows=5_000,
        shape_rounds=100,
        part_seconds=1,
        total_seconds=20,
    ),
    "tiny": Size(
        rows=(500, 1_000),
        row_seconds=(0, 0),
        rounds=(3, 10, 30),
        peer_rounds=10,
        wanted=((500, 10, 3),),
        l1_rows=300,
        lambdas=(0.1,),
        plain_lasso=0.03,
        all_rows=300,
        all_rounds=10,
        ada_rounds=(2, 3),
        wide=(300, 50),
        wide_rounds=10,
        shape_rows=300,
        shape_rounds=10,
        part_seconds=0,
        total_seconds=0,
    ),
}


@dataclass(frozen=True)
class Job:
    """What all parts of the benchmark need to know."""

    size: Size
    report: Report
    peers: list[str]
    d: int
    shape: str
    threads: int

    @property
    def rows(self) -> list[int]:
        """No more values than with 30 features."""
        return sorted({min(m, 30 * self.size.rows[-1] // self.d) for m in self.size.rows})

    @property
    def contenders(self) -> list[str]:
        """Ours, and the peers that boost stumps round by round."""
        return [OURS, *(name for name in self.peers if name in BOOSTERS)]

    def data(self, m: int, n_others: int = 0) -> tuple[np.ndarray, np.ndarray]:
        return generate(m + n_others, self.d, self.shape)

    def time(self, runs: Mapping[Any, Callable[[], Any]], seconds: float, **more: Any) -> dict[Any, Timed]:
        left = self.size.total_seconds - self.report.seconds
        return interleaved(runs, seconds=min(seconds, left), threads=self.threads, **more)
