"""What each term of a model, a feature or a rule, contributes to the score of each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..common.checks import at_least, one_of
from ..common.memory import free_memory
from ..common.packages import needed
from ..model.ensemble import Ensemble
from ..model.patterns import patterns_of
from ..model.rules import Rule, trees_mean
from .coding import Coding
from .scales import contributions_to_predictions
from .shapley import RuleValues
from .words import feature_name, shortened, value_text

TRAINING, BACKGROUND, INTERCEPT = "the training rows", "the background", "the intercept"
RULE_LETTERS = 160  # of a rule in a sentence


@dataclass(frozen=True)
class Terms:
    """The terms of a model, and their means over a reference.

    Attributes
    ----------
    coding : Coding
        The shape functions.
    reference : str
        What contributions are compared with.
    background : matrix, or None
        Its rows, where they were given.
    masses : list of arrays
        Of its rows in each bin of the shape functions.
    """

    ensemble: Ensemble
    coding: Coding
    reference: str
    background: np.ndarray | None
    masses: list[np.ndarray]

    @classmethod
    def of(cls, ensemble: Ensemble, background: np.ndarray | None = None) -> Terms:
        coding = Coding.of(ensemble)
        if background is not None:
            return cls(ensemble, coding, BACKGROUND, background, coding.masses_of(background))
        masses = coding.masses()
        if masses is None or (ensemble.n_rules and not len(ensemble.node_mass)):
            return cls(ensemble, coding, INTERCEPT, None, [])
        return cls(ensemble, coding, TRAINING, None, masses)

    @cached_property
    def rules(self) -> list[Rule]:
        """The most important first."""
        return list(self.ensemble.rules())

    @cached_property
    def weight(self) -> np.ndarray:
        """Of the rules, (n_rules, n_outputs)."""
        n_outputs = self.ensemble.n_outputs
        return np.array([np.atleast_1d(rule.weight) for rule in self.rules]).reshape(len(self.rules), n_outputs)

    @cached_property
    def means(self) -> np.ndarray:
        """Of shape functions, then of rules, shape (n_terms, n_outputs)."""
        if self.reference == INTERCEPT:
            return np.zeros((len(self.coding.tables) + len(self.rules), self.ensemble.n_outputs))
        support = np.array([rule.support for rule in self.rules])
        if self.background is not None:
            support = _supports(self.rules, self.background)
        return np.concatenate([self._means_of_shapes, (2.0 * support - 1.0)[:, None] * self.weight])

    @cached_property
    def _means_of_shapes(self) -> np.ndarray:
        if self.reference == INTERCEPT:
            return np.zeros((len(self.coding.tables), self.ensemble.n_outputs))
        found = [mass @ table / mass.sum() for mass, table in zip(self.masses, self.coding.tables, strict=True)]
        return np.array(found).reshape(len(found), self.ensemble.n_outputs)

    @cached_property
    def shared(self) -> RuleValues | None:
        """How rules are shared out between features; None where the reference has not been counted for that."""
        if self.background is not None:
            return RuleValues.against(self.ensemble, self.background)
        return RuleValues.against_training(self.ensemble)

    @property
    def names(self) -> tuple[str, ...]:
        features = [feature_name(self.ensemble, feature) for feature in self.coding.features.tolist()]
        return (*features, *(rule_words(rule) for rule in self.rules))

    @cached_property
    def base(self) -> np.ndarray:
        """The mean score of the reference."""
        model = self.ensemble
        base = np.atleast_1d(np.asarray(model.intercept, dtype=np.float64)) + self._means_of_shapes.sum(axis=0)
        if self.reference == INTERCEPT or not model.trees:
            return base
        if self.background is not None:
            return model.score_matrix(self.background).mean(axis=0).reshape(model.n_outputs)
        return base + trees_mean(model).sum(axis=0)

    def values(self, matrix: np.ndarray) -> np.ndarray:
        """What each term adds beyond its mean, shape (m, n_terms, n_outputs)."""
        n_shapes = len(self.coding.tables)
        values = _empty(len(matrix), n_shapes + len(self.rules), self.ensemble.n_outputs)
        self._write_shapes(matrix, values[:, :n_shapes])
        for rows, holds in _holding(self.rules, matrix):
            for j, (is_held, weight) in enumerate(zip(holds, self.weight, strict=True), n_shapes):
                both = np.stack([-weight, weight]) - self.means[j]
                values[rows, j] = both[is_held.astype(np.intp)]
        return values

    def _write_shapes(self, matrix: np.ndarray, values: np.ndarray) -> None:
        codes = self.coding.code(matrix)
        for j, (table, mean) in enumerate(zip(self.coding.tables, self._means_of_shapes, strict=True)):
            values[:, j] = (table - mean)[codes[:, j]]

    def by_feature(self, matrix: np.ndarray) -> np.ndarray:
        """Shapley values, shape (m, n_features, n_outputs)."""
        if self.reference == INTERCEPT or self.shared is None:
            what = "the patterns of its rules in" if self.reference != INTERCEPT else "counts of"
            raise ValueError(
                f"this model does not have {what} its training rows, which Shapley values are taken against; give some "
                "rows: explain(X, background=X_train)"
            )
        shapes = np.empty((len(matrix), len(self.coding.tables), self.ensemble.n_outputs))
        self._write_shapes(matrix, shapes)
        found = np.zeros((len(matrix), self.ensemble.n_features, self.ensemble.n_outputs))
        found[:, self.coding.features] = shapes
        self.shared.add_to(found, matrix)
        return found


def rule_words(rule: Rule) -> str:
    return " and ".join(condition.words for condition in rule.conditions)


def _holding(rules: list[Rule], matrix: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Whether each rule holds in each row, shape (n_rules, rows), some rows at a time."""
    full = np.array([(1 << len(rule.conditions)) - 1 for rule in rules], dtype=np.int64)
    for rows, patterns in patterns_of(rules, matrix):
        yield rows, patterns == full[:, None]


def _supports(rules: list[Rule], matrix: np.ndarray) -> np.ndarray:
    return sum((is_held.sum(axis=1) for _, is_held in _holding(rules, matrix)), np.zeros(len(rules))) / len(matrix)


def _empty(m: int, n_terms: int, n_outputs: int) -> np.ndarray:
    """Room for contributions; what a term adds to all rows stands together."""
    size, free = 8 * m * n_terms * n_outputs, free_memory()
    if free is not None and size > free:
        raise MemoryError(
            f"what {n_terms:,} terms add to {m:,} rows takes {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; "
            "explain fewer rows at a time, or ask for by_feature()"
        )
    return np.empty((n_outputs, n_terms, m)).T


@dataclass(frozen=True)
class Explanation:
    """Contributions of the terms of a model to the scores of some rows.

    Attributes
    ----------
    terms : tuple of str
        The features with a shape function, by name, and the rules, the most important first.
    values : array of shape (m, n_terms), or (m, n_terms, n_outputs)
        What each term adds to the score of each row, beyond its mean over the reference.
    base : float, or array of shape (n_outputs,)
        The mean score of the reference: base + values.sum(axis=1) is the score, up to the rounding of the sum.
    reference : str
        What contributions are compared with: the training rows, a background that was given, or, where a model has no
        counts of its training rows, the intercept; then they are no Shapley values.
    scale : {"score", "prediction"}
    """

    base: float | np.ndarray
    ensemble: Ensemble = field(repr=False)
    matrix: np.ndarray = field(repr=False)
    parts: Terms = field(repr=False)
    scale: str = "score"
    index: Any = field(repr=False, default=None)
    on_scale: np.ndarray | None = field(repr=False, default=None)

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def reference(self) -> str:
        return self.parts.reference

    @cached_property
    def terms(self) -> tuple[str, ...]:
        return self.parts.names

    @cached_property
    def values(self) -> np.ndarray:
        return self._shaped(self.parts.values(self.matrix)) if self.on_scale is None else self.on_scale

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, :, 0] if self.ensemble.weight.ndim == 1 else values

    @property
    def total(self) -> np.ndarray:
        """The score of each row (on the scale of predictions: the prediction)."""
        return np.asarray(self.base + self.values.sum(axis=1))

    def by_feature(self) -> np.ndarray:
        """Exact interventional Shapley values, an array of shape (m, n_features), or (m, n_features, n_outputs).

        What a rule adds is split between the features that it asks for. Features that are not used have zeros.
        """
        found = self._shaped(self.parts.by_feature(self.matrix))
        if self.scale == "score":
            return found
        base = self.parts.base
        return contributions_to_predictions(
            self.ensemble, float(base[0]) if self.ensemble.weight.ndim == 1 else base, found
        )[1]

    def reasons(self, n: int = 3, *, direction: str = "both", output: int | None = None) -> list[list[str]]:
        """The terms that count most in each row, in words, the largest first.

        Parameters
        ----------
        n : int
            At most so many for each row; terms that add nothing are no reasons.
        direction : {"both", "up", "down"}
            Only those that raise the score, or only those that lower it, as for the refusal of a credit.
        output : int, optional
            Which of several scores; by default that of the class predicted for the row.
        """
        one_of("direction", direction, ("both", "up", "down"))
        values = self.of_output(output)
        rank = {"both": np.abs(values), "up": values, "down": -values}[direction]
        order = np.argsort(-rank, axis=1, kind="stable")[:, : at_least("n", n, 0)]

        def reason(i: int, j: int) -> str:
            verb = "raises" if values[i, j] > 0 else "lowers"
            return f"{self.text_of(i, j)} {verb} the {self.scale} by {abs(values[i, j]):.3g}"

        return [[reason(i, j) for j in terms if rank[i, j] > 0] for i, terms in enumerate(order.tolist())]

    def text_of(self, row: int, term: int) -> str:
        """A term as it stands in a row, such as "age = 22", or a rule, and whether it holds."""
        features = self.parts.coding.features
        if term < len(features):
            feature = int(features[term])
            value = value_text(self.ensemble, feature, float(self.matrix[row, feature]))
            return f"{shortened(self.terms[term])} = {shortened(value)}"
        rule, words = self.parts.rules[term - len(features)], shortened(self.terms[term], RULE_LETTERS)
        return words if rule.holds(self.matrix[row][None])[0] else f"not ({words})"

    def of_output(self, output: int | None = None) -> np.ndarray:
        """The values of one output, shape (m, n_terms); None: of the class predicted for each row."""
        n_outputs = 1 if self.values.ndim == 2 else self.values.shape[2]
        if output is not None and output not in range(n_outputs):
            raise ValueError(f"output={output!r:.60} is not known; there are {n_outputs}, counted from 0")
        if self.values.ndim == 2:
            return self.values
        if output is None and self.ensemble.classes is None and n_outputs > 1:
            raise ValueError(f"there are {n_outputs} targets; say which one: output=0")
        if output is None:
            return np.take_along_axis(self.values, self.total.argmax(axis=1)[:, None, None], axis=2)[:, :, 0]
        return self.values[:, :, output]

    def to_frame(self) -> Any:
        """A pandas frame: base, a column per term, and the score; of several outputs, under the label of each."""
        pandas = needed("pandas", "this needs", "pandas")
        base = np.broadcast_to(self.base, (len(self), *np.shape(self.base)))
        whole = np.concatenate([base[:, None], self.values, self.total[:, None]], axis=1)
        names = ["base", *self.terms, self.scale]
        if whole.ndim == 2:
            return pandas.DataFrame(whole, columns=names, index=self.index)
        labels = range(whole.shape[2]) if self.ensemble.classes is None else self.ensemble.classes.tolist()
        columns = pandas.MultiIndex.from_product([labels, names], names=["output", "term"])
        return pandas.DataFrame(whole.transpose(0, 2, 1).reshape(len(whole), -1), columns=columns, index=self.index)

    def to_shap(self) -> Any:
        """A `shap.Explanation` of the Shapley values by feature, for the plots of shap."""
        shap = needed("shap", "this needs", "shap")
        model, data = self.ensemble, self.matrix.astype(object)
        for feature in model.categories:
            data[:, feature] = [value_text(model, feature, value) for value in self.matrix[:, feature].tolist()]
        base = np.broadcast_to(self.base, (len(self), *np.shape(self.base)))
        names = [feature_name(model, feature) for feature in range(model.n_features)]
        labels = None if model.classes is None or model.weight.ndim == 1 else model.classes.tolist()
        return shap.Explanation(
            self.by_feature(),
            base_values=np.array(base),
            data=data if model.categories else self.matrix,
            feature_names=names,
            output_names=labels,
        )

    def plot(self, row: int = 0, *, output: int | None = None, n: int = 12, ax: Any = None) -> Any:
        """Draw how the score of one row comes about, the largest contributions first. Needs matplotlib."""
        from .plots import plot_waterfall

        return plot_waterfall(self, row, output=output, n=n, ax=ax)


def explain(
    ensemble: Ensemble, X: Any, *, background: Any = None, scale: str = "score", owner: str = "this model"
) -> Explanation:
    """Contributions of the terms of a model to the scores of the rows of X; see `Ensemble.explain`."""
    one_of("scale", scale, ("score", "prediction"))
    index = getattr(X, "index", None) if hasattr(X, "iloc") else None
    matrix = ensemble.matrix_of(X[None, :] if type(X) is np.ndarray and X.ndim == 1 else X, owner)
    parts = Terms.of(ensemble, None if background is None else ensemble.matrix_of(background, owner))
    base = parts.base
    found = Explanation(
        float(base[0]) if ensemble.weight.ndim == 1 else base, ensemble, matrix, parts, scale="score", index=index
    )
    return found if scale == "score" else on_scale_of_predictions(found)


def on_scale_of_predictions(explanation: Explanation) -> Explanation:
    """Contributions to the prediction: they add up to it, and have the signs of those to the score."""
    base, values = contributions_to_predictions(explanation.ensemble, explanation.base, explanation.values)
    return replace(explanation, base=base, on_scale=values, scale="prediction")
