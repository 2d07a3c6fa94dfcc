"""What each term of a model contributes to the score of each row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from ..common.checks import one_of
from ..model.ensemble import Ensemble
from .coding import Coding
from .scales import contributions_to_predictions
from .words import feature_name, shortened, value_text

TRAINING, BACKGROUND, INTERCEPT = "the training rows", "the background", "the intercept"


@dataclass(frozen=True)
class Explanation:
    """Contributions of the terms of a model to the scores of some rows.

    Attributes
    ----------
    terms : tuple of str
        The features with a shape function, by name.
    values : array of shape (m, n_terms), or (m, n_terms, n_outputs)
        What each term adds to the score of each row, beyond its mean over the reference.
    base : float, or array of shape (n_outputs,)
        The mean score of the reference: base + values.sum(axis=1) is the score, up to the rounding of the sum.
    reference : str
        What contributions are compared with: the training rows, a background that was given, or, where a model has no
        counts of its training rows, the intercept; then they are no Shapley values.
    scale : {"score", "prediction"}
    """

    terms: tuple[str, ...]
    values: np.ndarray
    base: float | np.ndarray
    reference: str
    scale: str = "score"
    ensemble: Ensemble = field(repr=False, kw_only=True)
    matrix: np.ndarray = field(repr=False, kw_only=True)
    index: Any = field(repr=False, default=None, kw_only=True)
    features: tuple[int, ...] = field(repr=False, kw_only=True)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def total(self) -> np.ndarray:
        """The score of each row (on the scale of predictions: the prediction)."""
        return np.asarray(self.base + self.values.sum(axis=1))

    def by_feature(self) -> np.ndarray:
        """Exact interventional Shapley values, an array of shape (m, n_features), or (m, n_features, n_outputs).

        A feature that the model does not use has zeros.
        """
        if self.reference == INTERCEPT:
            raise ValueError(
                "this model has no counts of its training rows, which Shapley values are taken against; give some "
                "rows: explain(X, background=X_train)"
            )
        found = np.zeros((len(self.values), self.ensemble.n_features, *self.values.shape[2:]))
        found[:, list(self.features)] = self.values
        return found

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
        """A term as it stands in a row, such as "age = 22"."""
        feature = self.features[term]
        value = value_text(self.ensemble, feature, float(self.matrix[row, feature]))
        return f"{shortened(self.terms[term])} = {shortened(value)}"

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
        base = np.broadcast_to(self.base, (len(self.values), *np.shape(self.base)))
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
        base = np.broadcast_to(self.base, (len(self.values), *np.shape(self.base)))
        names = [feature_name(model, feature) for feature in range(model.n_features)]
        labels = None if model.classes is None or self.values.ndim == 2 else model.classes.tolist()
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
    coding = Coding.of(ensemble)
    reference, masses = TRAINING, coding.masses()
    if background is not None:
        reference, masses = BACKGROUND, coding.masses_of(ensemble.matrix_of(background, owner))
    elif masses is None:
        reference = INTERCEPT
    values, base = _contributions(ensemble, coding, matrix, masses)
    found = Explanation(
        tuple(feature_name(ensemble, feature) for feature in coding.features.tolist()),
        values[:, :, 0] if ensemble.weight.ndim == 1 else values,
        float(base[0]) if ensemble.weight.ndim == 1 else base,
        reference,
        ensemble=ensemble,
        matrix=matrix,
        index=index,
        features=tuple(coding.features.tolist()),
    )
    return found if scale == "score" else on_scale_of_predictions(found)


def on_scale_of_predictions(explanation: Explanation) -> Explanation:
    """Contributions to the prediction: they add up to it, and have the signs of those to the score."""
    base, values = contributions_to_predictions(explanation.ensemble, explanation.base, explanation.values)
    return replace(explanation, values=values, base=base, scale="prediction")


def _contributions(
    ensemble: Ensemble, coding: Coding, matrix: np.ndarray, masses: list[np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Values (m, n_terms, n_outputs), and the base (n_outputs,)."""
    codes = coding.code(matrix)
    values = np.empty((len(matrix), len(coding.tables), ensemble.n_outputs))
    base = np.array(np.atleast_1d(ensemble.intercept), dtype=np.float64)
    for j, table in enumerate(coding.tables):
        mean = np.zeros(ensemble.n_outputs) if masses is None else masses[j] @ table / masses[j].sum()
        values[:, j] = (table - mean)[codes[:, j]]
        base += mean
    return values, base
