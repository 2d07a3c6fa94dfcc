"""Classifier and regressor: a problem of what the user gave, checked at the border; the fit is that of `base`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier

from ..common.progress import Callback
from ..data.examples import has_validation
from ..fitting.measured import Measured, Options
from ..fitting.problem import Problem
from ..moments.moments import DEFAULT_CACHE_BYTES
from ..parts.fit import closed, problem_of_parts
from ..parts.rows import as_source
from ..parts.source import Part, Source
from ..parts.sums import KeptSums
from .base import QuadBoost
from .docstrings import SHARED_ATTRIBUTES, SHARED_PARAMETERS, TREE_PARAMETERS

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on


class _Plain(QuadBoost):
    """What both share: a problem of what the user gave, and a fit to it."""

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, validation: tuple[Any, Any, Any], eval_metric: Any) -> Self:
        start, options = time.monotonic(), self._options()
        options.schedule.warn_if_idle(stacklevel=4)
        if self.reg_lambda == "theory" and not is_classifier(self):
            raise ValueError("reg_lambda='theory' is for labels; for a regression give a number, or 'auto'")
        problem, measured = self._problem(X, y, sample_weight, options)
        held_out = None
        if has_validation(*validation):
            held_out = problem.more_rows(*validation, "_val", self._reading)
        trained = self._fit(problem, held_out, options, start, measured, eval_metric)
        closed(measured)
        self._warn_if_short(trained)
        return self

    def _problem(
        self, X: Any, y: Any, sample_weight: Any, options: Options, needs_rows: bool = False
    ) -> tuple[Problem, Measured | None]:
        """The problem, and its moments where rows were summed on the way to it."""
        if isinstance(X, KeptSums):
            return self._of_sums(X, options)
        of_classes = is_classifier(self)
        name = "class_weight" if of_classes else "standardize"
        more = {name: getattr(self, name)}
        source = as_source(X, y, sample_weight, self.verbose)
        if source is not None:
            return self._of_parts(source, options, needs_rows, **more)
        make: Any = Problem.of_labels if of_classes else Problem.of_targets
        return make(X, y, sample_weight, self._reading, **more), None

    def _of_parts(
        self, source: Source[Part], options: Options, needs_rows: bool, **more: Any
    ) -> tuple[Problem, Measured | None]:
        """The problem of rows in parts, and their moments unless a fit needs the rows themselves."""
        parameters = self.get_params(deep=False)
        for name, is_refused, remedy in (
            ("reg_lambda", options.reg_lambda == "theory", "use 'auto' or a number"),
            ("validation_fraction", parameters.get("validation_fraction") is not None, "give X_val and y_val to fit"),
            ("thresholds_per_fold", parameters.get("thresholds_per_fold", False), "set it to False"),
        ):
            if is_refused:
                raise ValueError(f"{name}={parameters[name]!r} needs all values in memory; with rows in parts {remedy}")
        needs_rows |= parameters.get("warm_start", False)
        return problem_of_parts(source, is_classifier(self), self._reading, options, needs_rows=needs_rows, **more)

    def _of_sums(self, sums: KeptSums, options: Options) -> tuple[Problem, Measured | None]:
        """The problem of sums of rows that are gone; what needs the rows is refused."""
        if (sums.classes is not None) != is_classifier(self):
            found = "targets" if is_classifier(self) else "labels"
            raise ValueError(f"these are sums of {found}; use the other estimator")
        parameters = self.get_params(deep=False)
        plain = {"calibration": None, "loss": "squared", "n_trees": 0, "class_weight": None, "standardize": False}
        plain |= {"validation_fraction": None, "warm_start": False}
        for name, needed in plain.items():
            if name in parameters and parameters[name] != needed:
                raise ValueError(
                    f"{name}={parameters[name]!r} needs the rows, and there are only sums; set {name}={needed!r}"
                )
        if options.reg_lambda == "theory":
            raise ValueError("reg_lambda='theory' needs the rows, and there are only sums; use 'auto' or a number")
        return sums.problem(self._reading, options)


class QuadBoostClassifier(ClassifierMixin, _Plain):
    __doc__ = f"""Ensembles of stumps for labels: two classes by one score, more by one score each.

    Parameters
    ----------
    {SHARED_PARAMETERS}
    {TREE_PARAMETERS}
    class_weight : dict, "balanced" or None
        Weight of each class, times the weight of its rows.
    loss : {{"squared", "logistic"}}
        "squared" is the paper's quadratic risk of labels -1 and +1. "logistic" is minus the log-likelihood, of several
        classes the multinomial one: better probabilities, for a few times the time.
    calibration : {{"auto", None}}
        Of the squared loss. "auto": scores become log-odds, by the likeliest line, and probabilities follow from them.
        None is the paper: the sign of the score, and probabilities by a clipped line.

    Attributes
    ----------
    classes_ : array
    {SHARED_ATTRIBUTES}
    """

    def __init__(
        self, penalty: str | None = "auto", *, n_trees: int = 0, max_leaves: int = 31,
        max_conditions: int | None = None, interaction_cst: Any = None, growth_rows: int = 200_000,
        reg_lambda: float | str = "auto", alpha_max: float | str = "auto", mode: str = "corrective",
        max_rounds: int = 100_000, thresholds: int | str = "auto", spacing: str = "quantile",
        fit_intercept: bool = True, reweight_every: int | str | None = "auto", reweight_sweeps: int | str = 1,
        validation_fraction: float | None = None, patience: int = 50, tol: float = 1e-4,
        cache_bytes: int = DEFAULT_CACHE_BYTES, categorical_features: Any = "auto", min_category_count: int = 5,
        class_weight: Any = None, monotonic_cst: Any = None, loss: str = "squared", calibration: str | None = "auto",
        max_voters: int | None = None, warm_start: bool = False, max_seconds: float | None = None,
        callbacks: Sequence[Callback] | None = None, callback_every: int = 100, n_jobs: int | None = None,
        random_state: Any = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self._set_parameters(locals())

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, X_val: Any = None, y_val: Any = None, *,
        sample_weight_val: Any = None, eval_metric: Any = None,
    ) -> Self:  # fmt: skip
        """Learn an ensemble.

        Parameters
        ----------
        X : array, list of rows, pandas or polars frame, pyarrow table or sparse matrix, of shape (m, d)
            Missing values are NaN, None or NA. For tables that do not fit into memory:
            `quadboost.Rows`, which have targets and weights too, or a pyarrow dataset; the model is the same.
        y : array of shape (m,)
            Labels. Of a dataset: the name of their column.
        sample_weight : array of shape (m,), optional
            Of a dataset: the name of their column.
        X_val, y_val, sample_weight_val : optional
            Rows on which to choose the number of rounds, or of passes.
        eval_metric : {"error", "log_loss", "roc_auc"} or callable(y, predictions), optional
            What to choose by there, in place of the loss. A function is given labels and probabilities (of the second
            of two classes, else of every class), and returns a number of which less is better.
        """
        return self._fit_rows(X, y, sample_weight, (X_val, y_val, sample_weight_val), eval_metric)

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of every row: shape (m,) for two classes, else (m, n_classes); log-odds where there is a link."""
        return self._scores(X)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the score after each round."""
        yield from self._staged_scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row."""
        scores = self._scores(X)
        return self.ensemble_.labels_of(scores)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class, by the link of the model: see `calibration` and `loss`."""
        scores = self._scores(X)
        return self.ensemble_.probabilities_of(scores)


class QuadBoostRegressor(RegressorMixin, _Plain):
    __doc__ = f"""Ensembles of stumps for real targets, one or several.

    The target is not rescaled unless `standardize` says so: `reg_lambda` under l1, `alpha_max` and the risks in
    `history_` are then in the target's own units (an l1 penalty on a target ten times as large needs to be ten
    times as strong, an l2 penalty does not).

    Parameters
    ----------
    {SHARED_PARAMETERS}
    {TREE_PARAMETERS}
    loss : {{"squared", "huber", "poisson", "quantile"}}
        "huber": rows far off count less. "poisson": for counts; the prediction is the rate, exp(score). "quantile": the
        prediction is a quantile of the target, such as its median.
    quantile : float
        Which one, between 0 and 1.
    huber_width : float or "auto"
        Residuals up to this are squared, in the units of the target (with `standardize`, of its standard deviation);
        "auto": 2 times the median deviation of the target from its median.
    standardize : bool
        Divide each target by its standard deviation for the fit, so that penalties mean the same for every target.

    Attributes
    ----------
    {SHARED_ATTRIBUTES}
    """

    def __init__(
        self, penalty: str | None = "auto", *, n_trees: int = 0, max_leaves: int = 31,
        max_conditions: int | None = None, interaction_cst: Any = None, growth_rows: int = 200_000,
        reg_lambda: float | str = "auto", alpha_max: float | str = "auto", mode: str = "corrective",
        max_rounds: int = 100_000, thresholds: int | str = "auto", spacing: str = "quantile",
        fit_intercept: bool = True, reweight_every: int | str | None = "auto", reweight_sweeps: int | str = 1,
        validation_fraction: float | None = None, patience: int = 50, tol: float = 1e-4,
        cache_bytes: int = DEFAULT_CACHE_BYTES, categorical_features: Any = "auto", min_category_count: int = 5,
        monotonic_cst: Any = None, loss: str = "squared", quantile: float = 0.5, huber_width: float | str = "auto",
        standardize: bool = False, max_voters: int | None = None, warm_start: bool = False,
        max_seconds: float | None = None, callbacks: Sequence[Callback] | None = None, callback_every: int = 100,
        n_jobs: int | None = None, random_state: Any = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self._set_parameters(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, X_val: Any = None, y_val: Any = None, *,
        sample_weight_val: Any = None, eval_metric: Any = None,
    ) -> Self:  # fmt: skip
        """Learn an ensemble.

        Parameters
        ----------
        X : array, list of rows, pandas or polars frame, pyarrow table or sparse matrix, of shape (m, d)
            Missing values are NaN, None or NA. For tables that do not fit into memory:
            `quadboost.Rows`, which have targets and weights too, or a pyarrow dataset; the model is the same.
        y : array of shape (m,) or (m, n_outputs)
            Of a dataset: the name of their column, or a list of names.
        sample_weight : array of shape (m,), optional
            Of a dataset: the name of their column.
        X_val, y_val, sample_weight_val : optional
            Rows on which to choose the number of rounds, or of passes.
        eval_metric : {"rmse", "mae", "r2"} or callable(y, predictions), optional
            What to choose by there, in place of the loss; of what a function returns less is better.
        """
        return self._fit_rows(X, y, sample_weight, (X_val, y_val, sample_weight_val), eval_metric)

    def predict(self, X: Any) -> np.ndarray:
        """The target of every row: shape (m,), or (m, n_outputs) where there are several."""
        scores = self._scores(X)
        return self.ensemble_.predictions_of(scores)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the prediction after each round."""
        for scores in self._staged_scores(X):
            yield self.ensemble_.predictions_of(scores)
