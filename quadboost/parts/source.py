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

P = TypeVar("P")
P_co = TypeVar("P_co", covariant=True)
A = TypeVar("A")


class Part(NamedTuple):
    """Some rows as the user has them: a table, and for each of its rows a target and perhaps a weight."""

    X: Any
    y: Any
    weight: np.ndarray | None = None


class Coded(NamedTuple):
    """Some rows as a fit needs them: codes of the columns, targets (m, n_outputs), weights, and what part of the
    weight says how many examples a row stands for."""

    codes: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    repeats: np.ndarray | None = None


class Source(Protocol[P_co]):
    """Rows in parts."""

    def reduce(self, question: Callable[[P_co], A], add: Callable[[A, A], A] = add) -> A:
        """Ask every part, and add up the answers, in any order."""

    def map(self, make: Callable[[P_co], Any]) -> Source[Any]:
        """A source of what is made of every part; it is kept, or made again when it is needed."""

    def gather(self) -> list[Any]:
        """All parts, in their order, in this process."""

    def close(self) -> None:
        """Let go of what was kept."""


@dataclass(frozen=True)
class InMemory(Generic[P]):
    """Parts that this process has."""

    parts: Sequence[P]

    def reduce(self, question: Callable[[P], A], add: Callable[[A, A], A] = add) -> A:
        return reduce(add, map(question, self.parts))

    def map(self, make: Callable[[P], Any]) -> InMemory[Any]:
        return InMemory([make(part) for part in self.parts])

    def gather(self) -> list[P]:
        return list(self.parts)

    def close(self) -> None:
        """Nothing is kept elsewhere."""
