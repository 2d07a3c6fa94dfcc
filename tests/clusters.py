"""A cluster of two worker processes, questions for its parts, and a way to kill workers that answer them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from quadboost.dask.source import DaskSource
from quadboost.parts.source import Coded, Part


@contextmanager
def two_processes() -> Iterator[Any]:
    """A client of a cluster whose workers are started again when they die, however busy the machine is."""
    import dask
    from distributed import Client, LocalCluster

    names = ("comm.timeouts.connect", "comm.timeouts.tcp", "deploy.lost-worker-timeout")
    patient = {f"distributed.{name}": "600s" for name in names}
    with (
        dask.config.set(patient),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def column_sums(part: Part) -> np.ndarray:
    return np.asarray(part.X).sum(axis=0)


def rows_and_processes(part: Coded) -> tuple[int, frozenset[int]]:
    return part.codes.shape[0], frozenset([os.getpid()])


def both(one: tuple[int, frozenset[int]], other: tuple[int, frozenset[int]]) -> tuple[int, frozenset[int]]:
    return one[0] + other[0], one[1] | other[1]


def code(part: Part) -> Coded:
    return Coded(np.asarray(part.X).astype(np.uint8), np.asarray(part.y, dtype=float))


def code_sums(part: Coded) -> np.ndarray:
    return part.codes.sum(axis=0)


@dataclass(frozen=True)
class Killing:
    """A question whose first answer kills the worker that was about to give it."""

    question: Callable[[Any], Any]
    marker: Path  # a file: whether it has happened

    def __call__(self, part: Any) -> Any:
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return self.question(part)
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class KillingSource(DaskSource[Any]):
    """Kills a worker in the first pass of every kind of question."""

    folder: Path = Path()

    def _each(self, question: Callable[[Any], Any]) -> list[Any]:
        return super()._each(Killing(question, self.folder / name_of(question)))


def name_of(question: Any) -> str:
    """What kind of question it is; one of functions within functions, by all of them."""
    if isinstance(question, partial):
        inner = [name_of(part) for part in question.args if callable(part)]
        return "-".join([question.func.__name__, *inner])
    inner = [name_of(part) for part in vars(question).values() if callable(part)] if is_dataclass(question) else []
    return "-".join([getattr(question, "__name__", type(question).__name__), *inner])
