"""What quadboost-train learns from: the columns of a table as features, target and weights."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from ..data.tables import listed

CLASSIFICATION, REGRESSION = "classification", "regression"
MOST_WHOLE_LABELS = 20  # with more different whole numbers a target is a quantity
MOST_TEXT_LABELS = 200  # with more a target of text is rather a mistake
ROWS_AT_A_TIME = 65_536
TASKS = {"logistic": CLASSIFICATION, "huber": REGRESSION, "poisson": REGRESSION, "quantile": REGRESSION}  # of losses


@dataclass(frozen=True)
class Examples:
    """Rows to learn from."""

    X: Any  # an array, or a pyarrow table; or `Rows`, which have targets and weights themselves
    names: tuple[str, ...]
    y: np.ndarray
    weight: np.ndarray | None = None
    categorical: Any = "auto"  # as the estimators want it
    n_left_out: int = 0  # rows without a target
    n_streamed: int = 0  # rows of X, if it is `Rows`

    @property
    def n_rows(self) -> int:
        return self.n_streamed or len(self.y)

    def without_targets(self) -> Examples:
        """Streamed rows when their targets have been looked at: of labels one of each is kept."""
        return replace(self, y=np.unique(self.y) if self.y.dtype.kind != "f" else self.y[:0].copy())

    def counts(self) -> np.ndarray:
        """Which rows have a weight; of streamed ones that takes a pass, if there are weights."""
        if not self.n_streamed:
            return np.ones(len(self.y), dtype=bool) if self.weight is None else self.weight > 0
        found = []
        for part in self.X.parts():
            if part.weight is None:
                return np.ones(self.n_streamed, dtype=bool)
            found.append(part.weight > 0)
        return np.concatenate(found)

    def where(self, wanted: np.ndarray) -> Examples:
        """The rows that are wanted."""
        if not self.n_streamed:
            return self.take(np.flatnonzero(wanted))
        from ..parts.rows import Rows
        from .recognise import to_arrow

        def chunks() -> Iterator[tuple[Any, ...]]:
            first = 0
            for part in self.X.parts():
                rows = wanted[first : first + len(part.y)]
                first += len(part.y)
                weight = None if part.weight is None else part.weight[rows]
                yield part.X.filter(to_arrow(rows)), part.y[rows], weight

        n_rows = int(np.count_nonzero(wanted))
        return replace(self, X=Rows(chunks, memory=self.X.memory, n_rows=n_rows), n_streamed=n_rows)

    def take(self, rows: np.ndarray) -> Examples:
        if isinstance(self.X, np.ndarray):
            X = self.X[rows]
        else:
            from .recognise import to_arrow

            X = self.X.take(to_arrow(rows))
        return replace(self, X=X, y=self.y[rows], weight=None if self.weight is None else self.weight[rows])

    def blocks(self) -> Iterator[tuple[Any, np.ndarray, np.ndarray | None]]:
        """Features, targets and weights, some thousands of rows at a time."""
        if self.n_streamed:
            for part in self.X.parts():
                yield part.X, part.y, part.weight
            return
        for start in range(0, len(self.y), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            X = self.X[rows] if isinstance(self.X, np.ndarray) else self.X.slice(start, ROWS_AT_A_TIME)
            yield X, self.y[rows], None if self.weight is None else self.weight[rows]

    def split(self, fraction: float, seed: int, *, stratify: bool) -> tuple[Examples, Examples]:
        """Set a share of the rows aside, with the classes as in the whole where that can be."""
        strata = None
        if stratify:
            counts = np.unique(self.y, return_counts=True)[1]
            if counts.min() >= 2 and min(fraction, 1 - fraction) * len(self.y) >= len(counts):
                strata = self.y
        parts = train_test_split(np.arange(len(self.y)), test_size=fraction, stratify=strata, random_state=seed)
        kept, held_out = (self.take(np.sort(rows)) for rows in parts)
        return kept, held_out


def choose_features(names: Sequence[str], others: Sequence[str], arguments: Namespace) -> list[str]:
    """The features that --features and --drop leave, in the order of the table; `others` are no features."""
    named = arguments.features or arguments.drop or []
    unknown = [name for name in named if name not in names]
    if unknown:
        raise ValueError(f"there is no column {listed(unknown)}, only {listed(names)}")
    for name in others:
        if name in (arguments.features or ()):
            raise ValueError(f"--features names {name!r}, which is the target or the weight")
    wanted = set(arguments.features or names) - set(arguments.drop or ()) - set(others)
    if not wanted:
        raise ValueError("no column is left to learn from")
    return [name for name in names if name in wanted]


def shipped_examples(arguments: Namespace) -> Examples:
    """A dataset that scikit-learn ships."""
    data = getattr(datasets, f"load_{arguments.example}")()
    names = [str(name) for name in data.feature_names]
    chosen = choose_features(names, [], arguments)
    y = np.asarray(data.target_names)[data.target] if "target_names" in data else data.target
    return Examples(data.data[:, [names.index(name) for name in chosen]], tuple(chosen), y)


def task_of(loss: str, wanted: str | None) -> str | None:
    """The task that a loss is for; the squared one is for both."""
    task = TASKS.get(loss, wanted)
    if wanted not in (None, task):
        raise ValueError(f"--loss {loss} is for {task}, and --task says {wanted}; leave one of them out")
    return task


def choose_task(y: np.ndarray, wanted: str | None, target: str) -> tuple[str, str]:
    """Classification or regression, and why."""
    values = np.unique(y)
    example = values[0].item()
    if len(values) == 1:
        raise ValueError(f"the target {target!r} is {example!r} in every row; there is nothing to learn")
    is_text, is_bool = y.dtype.kind in "UO", y.dtype.kind == "b"
    fractions = values[:0] if is_text or is_bool else _fractions(values)
    if wanted == REGRESSION and is_text:
        raise ValueError(f"the target {target!r} holds text, such as {example!r}; a regression needs numbers")
    if wanted == CLASSIFICATION and len(fractions):
        raise ValueError(f"the target {target!r} holds {fractions[0]}; labels are text or whole numbers")
    if wanted is None and is_text and len(values) > MOST_TEXT_LABELS:
        raise ValueError(
            f"the target {target!r} holds {len(values)} different texts, such as {example!r}; "
            "if they are labels, say so by --task classification"
        )
    if wanted is not None:
        return wanted, "as asked for"
    if is_text or is_bool:
        return CLASSIFICATION, "the target holds text" if is_text else "the target holds true and false"
    if are_labels(values, wanted):
        return CLASSIFICATION, f"the target holds {len(values)} different whole numbers; else --task {REGRESSION}"
    return REGRESSION, f"the target holds {len(values)} different numbers"


def are_labels(numbers: np.ndarray, wanted: str | None) -> bool:
    """Whether the numbers of a target are labels: whole, and few or said to be labels."""
    if wanted == REGRESSION or len(_fractions(numbers)):
        return False
    return wanted == CLASSIFICATION or len(np.unique(numbers)) <= MOST_WHOLE_LABELS


def _fractions(numbers: np.ndarray) -> np.ndarray:
    return numbers[numbers != np.rint(numbers)] if numbers.dtype.kind == "f" else numbers[:0]
