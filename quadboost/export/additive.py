"""A fitted model as every export reads it: levels as numbers, then terms that are added up, then a link.

Each row is first made numbers, NaN where a value is missing; a value of a categorical feature becomes the number of its
level, -1 if training has not seen it. Levels that have an order are numbered by it; a value that has no place in it,
which Python refuses, is missing to an export. Then the score is the intercept plus the terms, added from left to
right. Exports that add the same doubles in this order have the bits of `decision_function`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from ..data.schema import MIXED, TEXT, kind_of
from ..model.ensemble import Ensemble
from ..model.shape_functions import ShapeFunction

NUMBER, BOOLEAN, NUMBERS = "number", "boolean", "numbers"  # with TEXT and MIXED: what a feature holds
N_EXAMPLES = 24
UNSEEN = "never 'seen' \N{SNOWMAN}"


@dataclass(frozen=True)
class Tree:
    """A term that finds its value by questions.

    Nodes are in preorder: the left child of a node is the next one. A value goes right if it is above the threshold;
    at a node with `is_level`, if it equals it. A threshold of infinity asks
    whether it is missing.

    Attributes
    ----------
    name : str
    feature : int array of shape (n,)
        -1 for a leaf.
    threshold : float array of shape (n,)
    is_level : bool array of shape (n,)
    right : int array of shape (n,)
        The number of the right child.
    missing_right : bool array of shape (n,)
    values : array of shape (n, n_outputs)
        Of leaves.
    """

    name: str
    feature: np.ndarray
    threshold: np.ndarray
    is_level: np.ndarray
    right: np.ndarray
    missing_right: np.ndarray
    values: np.ndarray

    @property
    def features(self) -> list[int]:
        return np.unique(self.feature[self.feature >= 0]).tolist()

    @property
    def leaves(self) -> np.ndarray:
        return np.flatnonzero(self.feature < 0)

    @property
    def depth(self) -> int:
        """The most questions on the way to a leaf."""
        depth = np.zeros(len(self.feature), dtype=np.int64)
        for node in np.flatnonzero(self.feature >= 0).tolist():
            depth[[node + 1, self.right[node]]] = depth[node] + 1
        return int(depth.max())

    def as_tree(self) -> Tree:
        return self


@dataclass(frozen=True)
class Steps:
    """A term that is a step function of one feature.

    Attributes
    ----------
    name : str
    feature : int
    cuts : array of shape (k,)
        Ascending.
    values : array of shape (k + 1, n_outputs)
        Up to the first cut, above it up to the next, above the last.
    missing : array of shape (n_outputs,)
    """

    name: str
    feature: int
    cuts: np.ndarray
    values: np.ndarray
    missing: np.ndarray

    @property
    def features(self) -> list[int]:
        return [self.feature]

    def as_tree(self) -> Tree:
        """The same function by questions, each of which halves the steps.

        Missing values always go right, which costs no more questions; only there it is asked whether one is missing.
        """
        feature: list[int] = []
        threshold: list[float] = []
        right: list[int] = []
        source: list[int] = []  # of a leaf: the row of values

        def grow(low: int, high: int) -> None:
            """The questions between the values low and high; the last value is for missing ones."""
            node, middle = len(feature), (low + high) // 2
            is_leaf = low == high
            feature.append(-1 if is_leaf else self.feature)
            threshold.append(0.0 if is_leaf else cuts[middle])
            right.append(-1)
            source.append(low)
            if not is_leaf:
                grow(low, middle)
                right[node] = len(feature)
                grow(middle + 1, high)

        cuts = [*self.cuts.tolist(), np.inf]
        grow(0, len(cuts))
        values = np.vstack([self.values, self.missing])[source]
        is_level, missing_right = np.zeros(len(feature), bool), np.ones(len(feature), bool)
        return Tree(self.name, np.array(feature), np.array(threshold), is_level, np.array(right), missing_right, values)


Term = Steps | Tree


@dataclass(frozen=True)
class Examples:
    """Rows to test an export with, and their scores."""

    rows: list[list[Any]]
    scores: np.ndarray  # (m, n_outputs)

    def hexadecimal(self) -> list[list[str]]:
        return [[score.hex() for score in row] for row in self.scores.tolist()]


@dataclass(frozen=True)
class Additive:
    """A model to be exported.

    Attributes
    ----------
    ensemble : Ensemble
    names : tuple of str
        Of the features: x0, x1, ... where the model has none.
    holds : tuple of str
        What each feature holds: "number", or of a category "text", "numbers", "boolean", "text and numbers".
    levels : dict
        Categorical feature -> value -> number of its level. Values are text or floats.
    intercept : array of shape (n_outputs,)
    terms : list of Steps and Tree
        In the order in which they are added.
    """

    ensemble: Ensemble
    names: tuple[str, ...]
    holds: tuple[str, ...]
    levels: dict[int, dict[str | float, int]]
    intercept: np.ndarray
    terms: list[Term]

    @property
    def n_outputs(self) -> int:
        return self.ensemble.n_outputs

    @property
    def classes(self) -> list[Any]:
        """Empty for a regression."""
        return [] if self.ensemble.classes is None else self.ensemble.classes.tolist()

    @property
    def link(self) -> str:
        return self.ensemble.link

    @cached_property
    def size(self) -> float:
        """What no score is larger than, nor any sum on the way to it."""
        with np.errstate(over="ignore", invalid="ignore"):
            most = [np.abs(term.as_tree().values).max(axis=0) for term in self.terms]
            return float(np.max(np.sum([np.abs(self.intercept), *most], axis=0)))

    @property
    def used(self) -> list[int]:
        """The features that the terms look at."""
        return sorted({feature for term in self.terms for feature in term.features})

    @property
    def score_names(self) -> list[str]:
        """As `quadboost-predict` names its columns."""
        return self._by_output("score", self.classes or range(self.n_outputs))

    @property
    def target_names(self) -> list[str]:
        """Of the predictions of a regression."""
        return self._by_output("prediction", range(self.n_outputs))

    @property
    def intercept_names(self) -> list[str]:
        return self._by_output("intercept", self.classes or range(self.n_outputs))

    def _by_output(self, name: str, suffixes: Iterable[Any]) -> list[str]:
        return (
            [name] if self.ensemble.weight.ndim == 1 else [f"{name}_{suffix}" for suffix in suffixes][: self.n_outputs]
        )

    def unseen(self, feature: int) -> float:
        """The number of a level that training has not seen."""
        return np.nan if feature in self.ensemble.schema.orders else -1.0

    @cached_property
    def examples(self) -> Examples:
        """Rows around cuts and of known levels; all of the first is missing, all levels of the second never seen.

        Each feature is also missing in a row of its own, and never seen in another, beside values of other features.
        """
        rng, n = np.random.default_rng(0), len(self.names)
        known = [self._known(feature) for feature in range(n)]
        odd = [[None, *self._never_seen(feature)] for feature in range(n)]
        unseen = [never[-1] if len(never) > 1 else values[0] for never, values in zip(odd, known, strict=True)]
        rows = [[None] * n, unseen]
        for number in range(2, N_EXAMPLES):
            row = [values[rng.integers(len(values))] for values in known]
            for feature, values in enumerate(odd):
                turn = (number - 2 - len(values) * feature) % (N_EXAMPLES - 2)
                row[feature] = values[turn] if turn < len(values) else row[feature]
            rows.append(row)
        return self.scored(rows)

    @cached_property
    def text_examples(self) -> Examples:
        """The same for programs that have no number in a column of text: it is missing."""
        text = [holds == MIXED for holds in self.holds]
        return self.scored(
            [
                [None if is_text and isinstance(v, float) else v for v, is_text in zip(row, text, strict=True)]
                for row in self.examples.rows
            ]
        )

    def scored(self, rows: list[list[Any]]) -> Examples:
        """Rows of plain values, None where missing, and their scores."""
        return Examples(rows, self.ensemble.score_matrix(self.numbers(rows)).reshape(len(rows), self.n_outputs))

    def numbers(self, rows: list[list[Any]]) -> np.ndarray:
        """Rows as numbers; levels by their number."""
        return np.array([[self._number(feature, value) for feature, value in enumerate(row)] for row in rows])

    def _known(self, feature: int) -> list[Any]:
        """Values that a feature can have, those next to a cut on both sides of it."""
        if feature in self.levels:
            values = list(self.levels[feature])
            return ([bool(value) for value in values] if self.holds[feature] == BOOLEAN else values) or [None]
        cuts = [term.cuts for term in self.terms if isinstance(term, Steps) and term.feature == feature]
        cuts += [term.threshold[term.feature == feature] for term in self.terms if isinstance(term, Tree)]
        near = np.unique(np.concatenate([[0.0], *cuts]))
        near = np.concatenate([near, np.nextafter(near, np.inf)])
        return list(near[np.isfinite(near)].tolist())

    def _never_seen(self, feature: int) -> list[Any]:
        """Values of each kind that are no level."""
        if feature not in self.levels:
            return []
        levels, holds = self.levels[feature], self.holds[feature]
        if holds == BOOLEAN:
            return [value for value in (False, True) if value not in levels]
        number = next(n + 0.5 for n in count() if n + 0.5 not in levels)
        text = next(UNSEEN * n for n in count(1) if UNSEEN * n not in levels)
        return [number] * (holds != TEXT) + [text] * (holds != NUMBERS)

    def _number(self, feature: int, value: Any) -> float:
        if value is None:
            return np.nan
        return float(self.levels[feature].get(value, self.unseen(feature))) if feature in self.levels else value


def additive(model: Any) -> Additive:
    """What an export needs to know of an `Ensemble` or a fitted estimator."""
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"{model!r:.60} is no fitted QuadBoost model; give an Ensemble or a fitted estimator")
    names = ensemble.feature_names or tuple(f"x{feature}" for feature in range(ensemble.n_features))
    levels = {
        feature: {_plain(value, names[feature]): level for value, level in level_of.items()}
        for feature, level_of in ensemble.schema.level_of.items()
    }
    for feature, order in ensemble.schema.orders.items():  # text, which the score follows by its place
        levels[feature] = {level: position for position, level in enumerate(order)}
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        terms = [*_steps(ensemble, names), *_trees(ensemble)]
    form = Additive(
        ensemble=ensemble,
        names=names,
        holds=tuple(_holds(ensemble, feature) for feature in range(ensemble.n_features)),
        levels=levels,
        intercept=np.atleast_1d(np.asarray(ensemble.intercept, dtype=np.float64)),
        terms=terms,
    )
    if not np.isfinite(form.size):
        raise ValueError("the weights of this model add up to scores beyond all doubles; train on smaller targets")
    return form


def _holds(ensemble: Ensemble, feature: int) -> str:
    if feature not in ensemble.categories:
        return TEXT if feature in ensemble.schema.orders else NUMBER
    level_of = ensemble.schema.level_of[feature]
    kind = kind_of(level_of) if level_of else TEXT
    return kind if kind in (TEXT, MIXED) else BOOLEAN if kind == "true and false" else NUMBERS


def _plain(value: Any, name: str) -> str | float:
    """Text, or a number as the double that other programs will have."""
    if isinstance(value, str):
        return value
    if float(value) != value:
        raise ValueError(f"the level {value!r} of feature {name!r} is an integer that no double can be; make it text")
    return float(value)


def check_text(
    texts: Iterable[Any], target: str, *, nul: bool = False, remedy: str = "rename it before training"
) -> None:
    """Refuse text that the programs of a target cannot hold; some can hold a NUL."""
    for text in texts:
        if isinstance(text, str) and (("\0" in text and not nul) or not _is_unicode(text)):
            raise ValueError(f"{text!r} has a character that {target} cannot hold; {remedy}")


def check_labels(labels: Iterable[Any], target: str, most: int = 2**63 - 1) -> None:
    """Refuse whole numbers that the programs of a target cannot hold."""
    for label in labels:
        if isinstance(label, int) and not -most - 1 <= label <= most:
            raise ValueError(f"the label {label} is an integer beyond the numbers of {target}; make it text")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _steps(ensemble: Ensemble, names: Sequence[str]) -> list[Term]:
    """The step functions in the order of the features; of level numbers, where a feature is categorical."""
    steps: list[Term] = []
    for shape in ensemble.shape_functions():
        values = shape.values.reshape(len(shape.values), ensemble.n_outputs)
        cuts, values = (shape.thresholds, values) if shape.levels is None else _by_level(shape, values)
        differs = (values[1:] != values[:-1]).any(axis=1)
        values = values[np.append(True, differs)]
        missing = np.reshape(shape.missing, ensemble.n_outputs)
        steps.append(Steps(names[shape.feature], shape.feature, cuts[differs], values, missing))
    return steps


def _by_level(shape: ShapeFunction, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cuts between the numbers of levels, the first -1: unseen."""
    return np.arange(len(values) - 1) - 0.5, np.roll(values, 1, axis=0)


def _trees(ensemble: Ensemble) -> list[Term]:
    """The trees that add anything, without questions that make no difference."""
    trees, values = ensemble.trees, ensemble.leaf_values()
    found: list[Term] = []
    categorical = np.isin(trees.feature, list(ensemble.categories))
    for number, (first, last) in enumerate(zip(trees.start[:-1].tolist(), trees.start[1:].tolist(), strict=True)):
        nodes = slice(first, last)
        tree = Tree(
            f"tree {number}",
            trees.feature[nodes].astype(np.int64),
            trees.threshold[nodes],
            categorical[nodes],
            np.where(trees.feature[nodes] >= 0, trees.right[nodes] - first, -1),
            trees.missing_right[nodes].astype(bool),
            values[nodes],
        )
        if tree.values[tree.leaves].any():
            found.append(without_idle_nodes(tree))
    return found


def without_idle_nodes(tree: Tree) -> Tree:
    """The same function; a node below which all leaves are equal becomes one of them. There is always one question."""
    n = len(tree.feature)
    leaf_of = np.where(tree.feature < 0, np.arange(n), -1)  # the leaf that stands for all below a node, if one does
    for node in range(n - 1, 0, -1):
        left, right = leaf_of[node + 1] if node + 1 < n else -1, leaf_of[tree.right[node]]
        if tree.feature[node] >= 0 and min(left, right) >= 0 and (tree.values[left] == tree.values[right]).all():
            leaf_of[node] = left
    kept, to_do = [], [0]
    while to_do:
        node = to_do.pop()
        kept.append(node)
        if leaf_of[node] < 0:
            to_do += [tree.right[node], node + 1]
    source = np.array([leaf_of[node] if leaf_of[node] >= 0 else node for node in kept])
    position_of = {node: position for position, node in enumerate(kept)}
    right_of = [position_of[tree.right[node]] if leaf_of[node] < 0 else -1 for node in kept]
    return Tree(
        tree.name,
        tree.feature[source],
        tree.threshold[source],
        tree.is_level[source],
        np.array(right_of),
        tree.missing_right[source],
        tree.values[source],
    )
