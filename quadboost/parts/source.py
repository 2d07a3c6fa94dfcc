"""Rows in parts, wherever they are, and what a fit may ask of them.

A source has two verbs. `reduce` puts a question to every part and adds up the answers; `map` makes another source, of
something made of every part, and keeps it. Questions and what is made are pure functions of a part: a source may run
them anywhere, in any order, and again where an answer was lost. Answers are integers, or what else adds up to the same
in any order, so that a fit has the same bits for any division into parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from ..data.examples import one_vs_rest

P = TypeVar("P")
P_co = TypeVar("P_co", covariant=True)
A = TypeVar("A")


class Part(NamedTuple):
    """Some rows as the user has them: a table, and for each of its rows a target and perhaps a weight."""

    X: Any
    y: Any
    weight: Any = None
    name: str = "a part"  # for the errors


class Coded(NamedTuple):
    """Some rows as a fit needs them.

    Attributes
    ----------
    codes : array of shape (m, d)
        Of the columns.
    labels : array of shape (m,) or (m, n_outputs)
        The number of each row's class, in few bytes; or targets.
    weight, repeats : arrays of shape (m,), or None
        Weights, and the part of them that says how many examples a row stands for.
    n_classes : int
        0 where there are targets.
    """

    codes: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None = None
    repeats: np.ndarray | None = None
    n_classes: int = 0

    @property
    def y(self) -> np.ndarray:
        """Targets, shape (m, n_outputs)."""
        return one_vs_rest(self.labels, self.n_classes) if self.n_classes else self.labels


class Source(Protocol[P_co]):
    """Rows in parts.

    Attributes
    ----------
    room : int
        Bytes of codes that may be brought to this process where it is quicker to have them here.
    n_threads : int or None
        Threads for a question; None: as many as the fit has.
    """

    @property
    def room(self) -> int: ...

    @property
    def n_threads(self) -> int | None: ...

    def reduce(self, question: Callable[[P_co], A], add: Callable[[A, A], A] = add) -> A:
        """Ask every part, and add up the answers, in any order."""

    def map(self, make: Callable[[P_co], Any]) -> Source[Any]:
        """A source of what is made of every part; it is kept, or made again when it is needed."""

    def gather(self) -> list[Any]:
        """All parts, in their order, in this process."""

    def close(self) -> None:
        """Let go of what was kept."""


def is_source(X: Any) -> bool:
    """Whether X is a source; no table has its verbs."""
    return all(hasattr(type(X), verb) for verb in ("reduce", "map", "gather"))


@dataclass(frozen=True)
class InMemory(Generic[P]):
    """Parts that this process has."""

    parts: Sequence[P]
    room: int = 1 << 62
    n_threads: int | None = None

    def reduce(self, question: Callable[[P], A], add: Callable[[A, A], A] = add) -> A:
        return reduce(add, map(question, self.parts))

    def map(self, make: Callable[[P], Any]) -> InMemory[Any]:
        return InMemory([make(part) for part in self.parts], self.room, self.n_threads)

    def gather(self) -> list[P]:
        return list(self.parts)

    def close(self) -> None:
        """Nothing is kept elsewhere."""


@dataclass(frozen=True)
class Seen(Generic[P]):
    """A source of what is made of every part of another, anew for every question."""

    source: Source[Any]
    make: Callable[[Any], P]

    @property
    def room(self) -> int:
        return self.source.room

    @property
    def n_threads(self) -> int | None:
        return self.source.n_threads

    def reduce(self, question: Callable[[P], A], add: Callable[[A, A], A] = add) -> A:
        return self.source.reduce(_After(question, self.make), add)

    def map(self, make: Callable[[P], Any]) -> Source[Any]:
        return self.source.map(_After(make, self.make))

    def gather(self) -> list[P]:
        return [self.make(part) for part in self.source.gather()]

    def close(self) -> None:
        """What the source keeps is its own."""


@dataclass(frozen=True)
class _After:
    """A function of what another returns; it can be sent to other processes if both can."""

    second: Callable[[Any], Any]
    first: Callable[[Any], Any]

    def __call__(self, part: Any) -> Any:
        return self.second(self.first(part))
