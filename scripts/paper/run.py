"""All trials, each dataset and split in a process of its own; what is done is kept."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from . import data
from .algorithms import all_algorithms
from .protocol import Algorithm, make_split, run_trial
from .results import Store, record

BAR_WIDTH = 30


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    data: Path
    output: Path
    datasets: list[str]
    splits: int
    seed: int
    adaboost_rounds: int
    peers: list[str]

    @property
    def algorithms(self) -> dict[str, Algorithm]:
        return all_algorithms(self.adaboost_rounds, self.peers)

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """The first split of all datasets comes first, large datasets before small ones."""
        size = {name: data.load(self.data, name).X.size for name in self.datasets}
        names = sorted(self.datasets, key=lambda name: -size[name])
        return [(name, split) for split in range(self.splits) for name in names]

    def is_done(self, dataset: str, split: int) -> bool:
        return set(self.algorithms) <= set(Store(self.output).read(dataset, split))


def run_all(plan: Plan, jobs: int) -> None:
    """Run what has no result yet."""
    tasks = plan.tasks
    missing = [task for task in tasks if not plan.is_done(*task)]
    progress = Progress(len(tasks), len(tasks) - len(missing))
    run = Parallel(jobs, return_as="generator_unordered", batch_size=1)
    for dataset, split in run(delayed(run_task)(plan, os.getpid(), *task) for task in missing):
        progress.step(f"{dataset}, split {split}")
    progress.close()


def run_task(plan: Plan, runner: int, dataset: str, split: int) -> tuple[str, int]:
    """Run the algorithms that have no result yet, and keep each result as soon as it is there."""
    is_worker = os.getpid() != runner
    if is_worker:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the runner, which ends this process
    store = Store(plan.output)
    trials = store.read(dataset, split)
    rows = make_split(data.load(plan.data, dataset), split, plan.seed)
    for name, algorithm in plan.algorithms.items():
        if is_worker and os.getppid() != runner:
            os._exit(1)  # the runner was killed, and the next one may be writing the same file
        if name not in trials:
            with threadpool_limits(1):  # times are to be those of one core, for all alike
                trials[name] = record(run_trial(algorithm, rows))
            store.write(dataset, split, trials)
    return dataset, split


class Progress:
    """A bar on a terminal, lines elsewhere."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done, self.first = total, done, done
        self.start = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.show(f"{done} done before" if done else "")

    def step(self, what: str) -> None:
        self.done += 1
        left = (time.monotonic() - self.start) / (self.done - self.first) * (self.total - self.done)
        self.show(f"about {left / 60:.0f} min left; done: {what}")

    def show(self, news: str) -> None:
        filled = BAR_WIDTH * self.done // max(1, self.total)
        line = f"[{'#' * filled:{BAR_WIDTH}}] {self.done} of {self.total}  {news}"
        print(f"\r{line:<100}" if self.terminal else line, end="" if self.terminal else "\n", file=sys.stderr)
        sys.stderr.flush()

    def close(self) -> None:
        if self.terminal:
            print(file=sys.stderr)
