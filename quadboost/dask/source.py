"""Parts of a table that Dask holds: on the workers of a cluster, or in this process.

Every task is a pure function of a part and a question. Nothing is scattered, no task changes what another one reads,
and nothing lives on a worker that Dask could not make again. So a worker that dies costs a recomputation, and no more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from operator import add
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

from ..parts.source import Coded, Part

P = TypeVar("P")
A = TypeVar("A")

FAN_IN = 8  # answers that one task adds up
LEAST, MOST = 250_000, 16_000_000  # rows of a part of codes, where parts are joined


@dataclass(frozen=True)
class DaskSource(Generic[P]):
    """Parts as delayed objects; None stands for a part without rows, which is never asked.

    Attributes
    ----------
    parts : list of Delayed
    client : distributed.Client, optional
        None: what Dask would use, the current client or its scheduler in this process.
    room : int
        Bytes of codes that may come to this process.
    n_threads : int
        Threads for a question: workers put several at once.
    """

    parts: list[Any]
    client: Any = None
    room: int = 1 << 26
    n_threads: int = 1

    def reduce(self, question: Callable[[P], A], add: Callable[[A, A], A] = add) -> A:
        """Ask every part where it is, and add up the answers in a tree; only their sum comes to this process."""
        add_up = _delayed(_AddUp(add))
        answers = self._each(question)
        while len(answers) > 1:
            answers = [add_up(answers[i : i + FAN_IN]) for i in range(0, len(answers), FAN_IN)]
        (answer,) = self._compute(answers)
        if answer is None:
            raise ValueError("X has 0 rows in all its partitions while a minimum of 1 is required")
        return answer

    def map(self, make: Callable[[P], Any]) -> DaskSource[Any]:
        """What is made stays on the workers; small parts of codes are joined, as every part costs an answer a pass."""
        made = replace(self, parts=self._keep(self._each(make)))
        sizes = made._compute([_delayed(_n_rows)(part) for part in made.parts])
        if None in sizes:
            return made
        join, groups = _delayed(_joined), _groups(sizes, self._n_workers())
        return replace(self, parts=self._keep([join([made.parts[i] for i in group]) for group in groups]))

    def gather(self) -> list[P]:
        return [part for part in self._compute(self.parts) if part is not None]

    def close(self) -> None:
        self.parts.clear()  # the workers let go of what nobody refers to

    def _each(self, question: Callable[[P], Any]) -> list[Any]:
        # As a task of its own the question travels once, and from worker to worker.
        ask, asked = _delayed(_ask), _delayed(question)
        return [ask(asked, part) for part in self.parts]

    def _compute(self, tasks: Sequence[Any]) -> Sequence[Any]:
        return import_dask("dask").compute(*tasks, scheduler=self.client)

    def _keep(self, tasks: Sequence[Any]) -> list[Any]:
        return list(import_dask("dask").persist(*tasks, scheduler=self.client))

    def _n_workers(self) -> int:
        client = self.client if self.client is not None else current_client()
        return (os.cpu_count() or 1) if client is None else max(1, sum(client.nthreads().values()))


def import_dask(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs Dask ({error}); install it with pip install 'quadboost[dask]'") from error


def current_client() -> Any:
    """The client that Dask would use, if there is any."""
    try:
        return import_module("distributed").default_client()
    except (ImportError, ValueError):
        return None


def check_client(client: Any) -> None:
    """Refuse a client that cannot be asked."""
    if client is None:
        return
    if not hasattr(client, "scheduler_info"):
        raise TypeError(f"client={client!r:.60} is no client; give a distributed.Client, or None for the current one")
    if client.status != "running":
        raise ValueError(
            f"the client is {client.status}; give one that runs, such as client=distributed.Client(address)"
        )
    if client.asynchronous:
        raise ValueError("the client is asynchronous, and fit waits for answers; give distributed.Client(address)")


def _delayed(what: Any) -> Any:
    return import_dask("dask").delayed(what, pure=False, traverse=False)


def _ask(question: Callable[[Any], A], part: Any) -> A | None:
    """An error tells which part it comes from."""
    try:
        return None if part is None else question(part)
    except (TypeError, ValueError) as error:
        if not isinstance(part, Part) or part.name in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{part.name}: {error}") from error


@dataclass(frozen=True)
class _AddUp:
    add: Callable[[Any, Any], Any]

    def __call__(self, answers: Iterable[Any]) -> Any:
        total = None
        for answer in answers:
            if answer is not None:
                total = answer if total is None else self.add(total, answer)
        return total


def _n_rows(part: Any) -> int | None:
    """How many rows there are, if this is a part of codes."""
    if part is None:
        return 0
    return len(part.codes) if isinstance(part, Coded) else None


def _groups(sizes: Sequence[int], n_threads: int) -> list[list[int]]:
    """Which neighbours to join: to even parts, one for every thread, but none too small or too large."""
    total = sum(sizes)
    wanted = min(max(LEAST, -(-total // n_threads)), MOST)  # rows of a part
    before = np.cumsum([0, *sizes])
    group = np.minimum((before[:-1] + before[1:]) // (2 * wanted), max(0, (total - 1) // wanted))
    return [np.flatnonzero(group == number).tolist() for number in np.unique(group)]


def _joined(parts: Sequence[Coded | None]) -> Coded | None:
    """Neighbours as one part."""
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    arrays: list[Any] = [
        None if values[0] is None else np.concatenate(values)  # weights are there in all parts, or in none
        for values in zip(*(part[:4] for part in found), strict=True)
    ]
    codes, labels, weight, repeats = arrays
    return Coded(codes, labels, weight, repeats, found[0].n_classes)
