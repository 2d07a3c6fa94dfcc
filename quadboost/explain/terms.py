"""What each term of a model, a feature or a rule, contributes to the score of each row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from ..common.checks import one_of
from ..model.ensemble import Ensemble
from ..model.patterns import patterns_of
from .coding import Coding
from .scales import contributions_to_predictions
from .shapley import Patterns, add_rule_values, background_patterns, training_patterns
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
    rules : list of Rule
    means : array of shape (n_terms, n_outputs)
        Of shape functions, then of rules.
    reference : str
    patterns : list of Patterns, or None
        How often each pattern of each rule's conditions occurs in the reference; None where that is not known.
    """

    ensemble: Ensemble
    coding: Coding
    rules: list[Any]
    means: np.ndarray
    reference: str
    patterns: list[Patterns] | None

    @classmethod
    def of(cls, ensemble: Ensemble, background: np.ndarray | None = None) -> Terms:
        coding, rules = Coding.of(ensemble), list(ensemble.rules())
        weight = _weights(ensemble, rules)
        if background is not None:
            masses: list[np.ndarray] | None = coding.masses_of(background)
            patterns: list[Patterns] | None = background_patterns(rules, background)
        else:
            masses, patterns = coding.masses(), training_patterns(ensemble, rules)
        support = np.array([rule.support for rule in rules])
        if patterns is not None:
            each = zip(patterns, rules, strict=True)
            support = np.array([_support(own, len(rule.conditions)) for own, rule in each])
        reference = TRAINING if background is None else BACKGROUND
        if masses is None or np.isnan(support).any():
            means = np.zeros((len(coding.tables) + len(rules), ensemble.n_outputs))
            return cls(ensemble, coding, rules, means, INTERCEPT, None)
        of_shapes = [own @ table / own.sum() for own, table in zip(masses, coding.tables, strict=True)]
        of_rules = (2.0 * support - 1.0)[:, None] * weight
        means = np.vstack([np.empty((0, ensemble.n_outputs)), *of_shapes, of_rules])
        return cls(ensemble, coding, rules, means, reference, patterns)

    @property
    def weight(self) -> np.ndarray:
        """Of the rules, (n_rules, n_outputs)."""
        return _weights(self.ensemble, self.rules)

    @property
    def names(self) -> tuple[str, ...]:
        features = [feature_name(self.ensemble, feature) for feature in self.coding.features.tolist()]
        return (*features, *(rule_words(rule) for rule in self.rules))

    @property
    def base(self) -> np.ndarray:
        """The mean score of the reference."""
        return np.atleast_1d(np.asarray(self.ensemble.intercept, dtype=np.float64)) + self.means.sum(axis=0)

    def values(self, matrix: np.ndarray, with_rules: bool = True) -> np.ndarray:
        """What each term adds beyond its mean, shape (m, n_terms, n_outputs)."""
        codes, n_shapes = self.coding.code(matrix), len(self.coding.tables)
        rules = self.rules if with_rules else []
        values = np.empty((len(matrix), n_shapes + len(rules), self.ensemble.n_outputs))
        for j, table in enumerate(self.coding.tables):
            values[:, j] = (table - self.means[j])[codes[:, j]]
        weight = self.weight
        for rows, patterns in patterns_of(rules, matrix):
            for j, (rule, pattern) in enumerate(zip(rules, patterns, strict=True)):
                holds = pattern == (1 << len(rule.conditions)) - 1
                both = np.stack([-weight[j], weight[j]]) - self.means[n_shapes + j]
                values[rows, n_shapes + j] = both[holds.astype(np.intp)]
        return values

    def by_feature(self, matrix: np.ndarray) -> np.ndarray:
        """Shapley values, shape (m, n_features, n_outputs)."""
        if self.reference == INTERCEPT or self.patterns is None:
            what = "the patterns of its rules in" if self.reference != INTERCEPT else "counts of"
            raise ValueError(
                f"this model does not have {what} its training rows, which Shapley values are taken against; give some "
                "rows: explain(X, background=X_train)"
            )
        found = np.zeros((len(matrix), self.ensemble.n_features, self.ensemble.n_outputs))
        found[:, self.coding.features] = self.values(matrix, with_rules=False)
        if self.rules:
            add_rule_values(found, self.rules, self.weight, self.patterns, matrix)
        return found


def rule_words(rule: Any) -> str:
    return " and ".join(condition.words for condition in rule.conditions)


def _weights(ensemble: Ensemble, rules: list[Any]) -> np.ndarray:
    return np.array([np.atleast_1d(rule.weight) for rule in rules]).reshape(len(rules), ensemble.n_outputs)


def _support(patterns: Patterns, n_conditions: int) -> float:
    return float(patterns.share[patterns.pattern == (1 << n_conditions) - 1].sum())


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
        order = np.argsort(-rank, axis=1, kind="stable")[:, : max(n, 0)]

        def reason(i: int, j: int) -> str:
            verb = "raises" if values[i, j] > 0 else "lowers"
            return f"{self.text_of(i, j)} {verb} the {self.scale} by {abs(values[i, j]):.3g}"

        return [[reason(i, j) for j in own if rank[i, j] > 0] for i, own in enumerate(order.tolist())]

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
        if self.values.ndim == 2:
            return self.values
        if output is None and self.ensemble.classes is None and self.values.shape[2] > 1:
            raise ValueError(f"there are {self.values.shape[2]} targets; say which one: output=0")
        if output is None:
            return np.take_along_axis(self.values, self.total.argmax(axis=1)[:, None, None], axis=2)[:, :, 0]
        return self.values[:, :, output]

    def to_frame(self) -> Any:
        """A pandas frame: base, a column per term, and the score; of several outputs, under the label of each."""
        pandas = import_module("pandas")
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
        shap = import_module("shap")
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
