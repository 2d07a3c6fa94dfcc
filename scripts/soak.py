"""Fit, predict, save and load in one process from several threads for a long time; memory stays flat, bits the same.

    python scripts/soak.py --minutes 60

Each thread takes the next of some random problems, fits it, saves and loads the model, and compares every bit with
those of the first fit. Ends with status 1 at an error, another bit, or where memory has grown by more than 50 MB.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from random_problems import Problem, bits

import quadboost

MOST_GROWTH = 50e6  # bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--problems", type=int, default=100, help="different ones (default: 100)")
    parser.add_argument("--rows", type=int, default=3_000, help="most rows of a problem (default: 3000)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    problems = [Problem.of(seed, arguments.rows) for seed in range(arguments.problems)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.threads) as pool:
        soak = Soak(problems, Path(folder))
        list(pool.map(soak.once, range(len(problems))))  # every problem once: what comes after has been seen before
        known, before = dict(soak.known), memory()
        start, watch = time.monotonic(), []
        workers = [pool.submit(soak.go_on, start + 60 * arguments.minutes) for _ in range(arguments.threads)]
        while not all(worker.done() for worker in workers):
            time.sleep(min(5.0, 3 * arguments.minutes))
            watch.append(memory())
        for worker in workers:
            worker.result()
    minutes, grown = (time.monotonic() - start) / 60, max(watch) - before
    print(
        f"{soak.n_fits} fits of {len(problems)} problems in {minutes:.1f} minutes from {arguments.threads} threads, "
        f"each saved and loaded: the same {len(known)} digests; memory {before / 1e6:.0f} MB after the first fits, "
        f"at most {max(watch) / 1e6:.0f} MB later, {watch[-1] / 1e6:.0f} MB at the end"
    )
    if grown > MOST_GROWTH:
        sys.exit(f"memory has grown by {grown / 1e6:.0f} MB; at most {MOST_GROWTH / 1e6:.0f} MB are allowed")


class Soak:
    """What the threads share."""

    def __init__(self, problems: list[Problem], folder: Path) -> None:
        self.problems, self.folder = problems, folder
        self.known: dict[int, str] = {}  # digest of each problem's model
        self.numbers, self.lock, self.n_fits = itertools.count(), threading.Lock(), 0

    def once(self, number: int) -> None:
        """Fit, predict, save and load; compare with the first time."""
        problem = self.problems[number % len(self.problems)]
        model = problem.fitted()
        found, path = bits(model, problem.X), self.folder / f"{threading.get_ident()}.h5"
        model.save(path)
        loaded = quadboost.load(path)
        if not np.array_equal(loaded.predict(problem.X), model.predict(problem.X)):
            raise AssertionError(f"problem {number % len(self.problems)}: the stored model predicts otherwise")
        with self.lock:
            self.n_fits += 1
            if self.known.setdefault(number % len(self.problems), found) != found:
                raise AssertionError(f"problem {number % len(self.problems)}: other bits than in the first fit")

    def go_on(self, until: float) -> None:
        while time.monotonic() < until:
            self.once(next(self.numbers))


def memory() -> int:
    """Bytes that this process has in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
