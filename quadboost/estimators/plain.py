"""scikit-learn estimators: input checked at the border, everything else done by `training`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from .._version import __version__
from ..boosting.booster import Boosted, Progress, Schedule
from ..common.checks import at_least, positive
from ..common.progress import Callback, news_of
from ..common.threads import resolve_threads
from ..data.examples import (
    Examples,
    class_weights,
    examples_of,
    has_validation,
    labels_of,
    one_vs_rest,
    positions_of,
    real_targets,
    spread_of,
    times,
)
from ..data.frames import FrameSchema, learn_schema, to_matrix
from ..data.rows import Rows
from ..fitting.training import Options, Trained, describe_run, train
from ..model.ensemble import Ensemble
from ..moments.moments import DEFAULT_CACHE_BYTES, Moments
from ..voters.stumps import Stumps

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

SHARED_PARAMETERS = """penalty : {"l1", "l2", "linf", None}
        Of the weights; None is the paper's vanilla QuadBoost.
    reg_lambda : float, "auto" or "theory"
        Strength of an l1 penalty, which adds 2 reg_lambda sum |a| to the risk, or of an l2 penalty, which adds
        reg_lambda sum a^2. "auto" is 0.4 std(y) / sqrt(m) for l1 and, with K voters,
        0.3 K / m for l2 (in forward mode 1600 sqrt(K) / m); what it came to is in `reg_lambda_`.
        "theory", for labels only, is the one of the risk bound: larger than what predicts best.
    alpha_max : float
        Largest weight under the linf penalty.
    mode : {"corrective", "forward"}
        A voter drawn again is re-weighted, or (the paper's plain loop) a second copy of it is added.
    max_rounds : int
        Most boosting rounds, for each output.
    thresholds : int or "all"
        Most thresholds of a feature; "all": every midpoint of distinct values.
    spacing : {"quantile", "uniform"}
        Thresholds with equal mass between them, or evenly spaced.
    fit_intercept : bool
        An unpenalised constant, always at its optimum. The paper has none.
    reweight_every : int, optional
        Re-weight the voters of the ensemble after every so many rounds.
    reweight_sweeps : int or "solve"
        Re-weighting sweeps at a time; "solve": all weights of the ensemble are solved for at once, which reaches the
        optimum in far fewer rounds, and pays where no more than a few hundred voters have a weight.
    validation_fraction : float, optional
        Share of the rows to set aside for early stopping, where no validation set is given to `fit`.
    patience : int
        Stop after so many rounds without a lower validation risk.
    tol : float
        Stop when no voter's weight would move by more than this, in units of the target's standard deviation.
    cache_bytes : int
        Memory for Gram columns; more is faster, the result is the same.
    categorical_features : "auto", None, or a list of columns
        Features of which each level is a voter. "auto": text, bool and categorical columns of a frame.
    min_category_count : int
        Levels of less weight than this are pooled.
    warm_start : bool
        Go on from the last fit, which must have been on the same data.
    max_seconds : float, optional
        Stop the rounds after this time.
    callbacks : list of callables, optional
        Called as callback(round, risk, validation_risk) every `callback_every` rounds; a true answer stops them.
        Several outputs are learnt one after another, and each is asked for.
    callback_every : int
    n_jobs : int, optional
        Threads; None: every core that this process may use. The result is the same bits for any number.
    random_state : int, optional
        For `validation_fraction`.
    verbose : int
        1: show progress, by a bar; 2: by a line every few seconds."""

SHARED_ATTRIBUTES = """ensemble_ : Ensemble
        The model itself, usable without scikit-learn.
    intercept_ : float, or array of shape (n_outputs,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    n_rounds_ : int
        Rounds behind the ensemble. This and what follows: a list, one entry per output, where there are several.
    history_ : dict of arrays, one entry a round, also of rounds after the best one
        voter (and its feature and threshold), edge, weight, risk, objective, and validation_risk if there is any.
    dual_gap_ : float
        A bound on the distance of the objective from its minimum, in corrective mode; NaN where none is known.
    violation_ : float
        The largest violation of the conditions of optimality, in corrective mode.
    reg_lambda_ : float
    stop_reason_ : {"max_rounds", "converged", "patience", "max_seconds", "callback"}
    feature_importances_ : array of shape (d,)
        How much each feature moves the scores of the training rows: standard deviation, as a share of the sum."""


# Parameters that may differ from those of the fit that a warm start goes on from.
MAY_CHANGE = ("max_rounds", "max_seconds", "callbacks", "callback_every", "cache_bytes", "n_jobs", "verbose")


UNTOLD = ("callbacks", "callback_every", "verbose")  # parameters that say nothing of a model


class _Prepared(NamedTuple):
    """What a fit begins with, where it was made before."""

    schema: FrameSchema
    rows: Rows
    stumps: Stumps
    moments: Moments


class _Warm(NamedTuple):
    """Where a fit stood."""

    shape: tuple[int, ...]
    parameters: dict[str, Any]
    held_out: np.ndarray | None
    progress: list[Progress]


class _QuadBoost(BaseEstimator):
    """What classifier and regressor share."""

    def _set_parameters(self, parameters: Mapping[str, Any]) -> None:
        for name in self._get_param_names():
            setattr(self, name, parameters[name])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to an HDF5 file, to be read by `quadboost.load`."""
        check_is_fitted(self)
        self.ensemble_.save(path)

    def _matrix(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return to_matrix(X, self.ensemble_._schema, owner=type(self).__name__)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.ensemble_._scores(X, self.n_jobs, type(self).__name__)

    def _staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        matrix = self._matrix(X)
        codes = self._stumps.code(matrix)
        scores = np.tile([trace.first_intercept for trace in self._traces] * self._target_scale, (len(matrix), 1))
        weight = [dict[int, float]() for _ in self._traces]
        n_rounds = np.atleast_1d(self.n_rounds_)
        for round in range(1, int(n_rounds.max()) + 1):
            for output in np.flatnonzero(n_rounds >= round).tolist():
                trace = self._traces[output]
                for voter, total in zip(*(values.tolist() for values in trace.updates(round)), strict=True):
                    feature, votes = self._stumps.votes(voter)
                    delta = (total - weight[output].get(voter, 0.0)) * self._target_scale[output]
                    weight[output][voter] = total
                    scores[:, output] += delta * (votes[codes[:, feature]] - trace.centre[voter])
            yield scores.copy() if self.ensemble_.weight.ndim == 2 else scores[:, 0].copy()

    def _options(self) -> Options:
        """The parameters, checked."""
        given = self.get_params(deep=False)
        fraction = self.validation_fraction
        if fraction is not None and positive("validation_fraction", fraction) >= 1:
            raise ValueError(f"validation_fraction={fraction!r} must lie between 0 and 1")
        at_least("min_category_count", self.min_category_count, 1)
        names = Schedule.__dataclass_fields__.keys() - {"callback"}
        schedule = Schedule(**{name: given[name] for name in names})
        names = Options.__dataclass_fields__.keys() - {"schedule", "n_threads"}
        n_threads = resolve_threads(self.n_jobs)
        return Options(**{name: given[name] for name in names}, schedule=schedule, n_threads=n_threads)

    def _schema(self, given: Examples) -> FrameSchema:
        return learn_schema(
            given.X,
            categorical_features=self.categorical_features,
            min_category_count=self.min_category_count,
            sample_weight=given.all_weights(),
        )

    def _fit(
        self,
        given: Examples,
        validation: Examples | None,
        *,
        options: Options,
        strata: np.ndarray | None = None,
        classes: np.ndarray | None = None,
        one_output: bool = True,
        target_scale: np.ndarray,
        prepared: _Prepared | None = None,
    ) -> None:
        """Train on targets of shape (m, n_outputs), and set what a fit leaves behind."""
        start = time.monotonic()
        schema = self._schema(given) if prepared is None else prepared.schema
        rows = given.rows(schema, type(self).__name__, target_scale) if prepared is None else prepared.rows
        held_out = None
        warm = self._warm_start(rows)
        split = None if warm is None else warm.held_out
        if validation is not None:
            held_out = validation.rows(schema, type(self).__name__, target_scale)
        elif self.validation_fraction is not None:
            split = _split(len(rows.X), self.validation_fraction, strata, self.random_state) if split is None else split
            rows, held_out = rows.take(~split), rows.take(split)
        n_outputs = rows.y.shape[1]
        with news_of(self.verbose, self.callbacks or (), options.schedule.max_rounds, n_outputs) as callback:
            trained = train(
                rows,
                replace(options, schedule=replace(options.schedule, callback=callback)),
                validation=held_out,
                n_levels={f: len(levels) for f, levels in schema.categories.items()},
                resume=None if warm is None else warm.progress,
                known=None if prepared is None else (prepared.stumps, prepared.moments),
            )
        info = {
            "quadboost": __version__,
            "estimator": type(self).__name__,
            "parameters": {
                name: _plain(value) for name, value in self.get_params(deep=False).items() if name not in UNTOLD
            },
            "rows": len(rows.X),
            "validation_rows": 0 if held_out is None else len(held_out.X),
            "seconds": time.monotonic() - start,
            "reg_lambda": trained.reg_lambda,
            "outputs": [describe_run(result) for result in trained.boosted],
            "feature_importances": trained.importance.tolist(),
        }
        self.ensemble_ = _make_ensemble(trained, schema, classes, one_output, target_scale, info)
        self.intercept_ = self.ensemble_.intercept
        self.n_features_in_ = schema.n_features
        self.__dict__.pop("feature_names_in_", None)
        if schema.feature_names is not None:
            self.feature_names_in_ = np.array(schema.feature_names, dtype=object)
        self._target_scale = target_scale
        self._warm = None
        if self.warm_start:
            progress = [result.progress for result in trained.boosted]
            self._warm = _Warm(given.y.shape, self._lasting_parameters(), split, progress)
        self._tell(trained, one_output)

    def _lasting_parameters(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name not in MAY_CHANGE}

    def _warm_start(self, rows: Rows) -> _Warm | None:
        """Where the last fit stood, if this one is to go on from there."""
        warm: _Warm | None = getattr(self, "_warm", None) if self.warm_start else None
        if warm is None:
            return None
        if warm.shape != rows.y.shape:
            raise ValueError(
                f"warm_start goes on from a fit to targets of shape {warm.shape}, but y now has {rows.y.shape}; "
                "give the same data, or set warm_start=False"
            )
        done = max(len(progress.voter) for progress in warm.progress)
        if done > self.max_rounds:
            raise ValueError(
                f"warm_start goes on from a fit of {done} rounds, but max_rounds={self.max_rounds}; "
                "give more, or set warm_start=False"
            )
        for name, value in self._lasting_parameters().items():
            if value is not warm.parameters[name] and value != warm.parameters[name]:
                raise ValueError(
                    f"warm_start goes on from a fit with {name}={warm.parameters[name]!r}, but it is now {value!r}; "
                    "set it back, or set warm_start=False"
                )
        return warm

    def _tell(self, trained: Trained, one_output: bool) -> None:
        """Set the attributes that tell how the fit went: lists, one entry per output, where there are several."""

        def each(values: list[Any]) -> Any:
            return values[0] if one_output else values

        boosted = trained.boosted
        self.n_rounds_ = each([result.n_rounds for result in boosted])
        self.history_ = each([_history(result, trained) for result in boosted])
        self.dual_gap_ = each([result.dual_gap for result in boosted])
        self.violation_ = each([result.violation for result in boosted])
        self.reg_lambda_ = each(trained.reg_lambda)
        self.stop_reason_ = each([result.stop_reason for result in boosted])
        self.feature_importances_ = trained.importance
        self._stumps = trained.stumps
        self._traces = [result.trace for result in boosted]


class QuadBoostClassifier(ClassifierMixin, _QuadBoost):
    __doc__ = f"""Ensembles of stumps for labels: two classes by one score, more by one score each.

    Parameters
    ----------
    {SHARED_PARAMETERS}
    class_weight : dict, "balanced" or None
        Weight of each class, times the weight of its rows.

    Attributes
    ----------
    classes_ : array
    {SHARED_ATTRIBUTES}
    """

    def __init__(
        self,
        penalty: str | None = "l1",
        *,
        reg_lambda: float | str = "auto",
        alpha_max: float = 0.1,
        mode: str = "corrective",
        max_rounds: int = 10_000,
        thresholds: int | str = 255,
        spacing: str = "quantile",
        fit_intercept: bool = True,
        reweight_every: int | None = None,
        reweight_sweeps: int | str = 1,
        validation_fraction: float | None = None,
        patience: int = 50,
        tol: float = 1e-7,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        categorical_features: Any = "auto",
        min_category_count: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        callbacks: Sequence[Callback] | None = None,
        callback_every: int = 100,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight_val: Any = None,
    ) -> Self:
        """Learn an ensemble.

        Parameters
        ----------
        X : array, list of rows, pandas or polars frame, or pyarrow table, of shape (m, d)
            Missing values are NaN, None or NA.
        y : array of shape (m,)
            Labels.
        sample_weight : array of shape (m,), optional
        X_val, y_val, sample_weight_val : optional
            Rows on which to choose the number of rounds.
        """
        options = self._options()
        given = examples_of(X, labels_of(y), sample_weight)
        classes, position = np.unique(given.y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"the labels hold only one class, {classes.tolist()[0]!r}; a classifier needs at least two classes"
            )
        class_weight = class_weights(self.class_weight, classes, position, given.weight)

        def with_targets(given: Examples, position: np.ndarray) -> Examples:
            weight = times(given.weight, class_weight, position)
            return given._replace(y=one_vs_rest(position, classes), weight=weight)

        validation = None
        if has_validation(X_val, y_val, sample_weight_val):
            validation = examples_of(X_val, labels_of(y_val), sample_weight_val, "_val")
            validation = with_targets(validation, positions_of(validation.y, classes))
        self._fit(
            with_targets(given, position),
            validation,
            options=options,
            strata=position,
            classes=classes,
            one_output=len(classes) == 2,
            target_scale=np.ones(1 if len(classes) == 2 else len(classes)),
        )
        self.classes_ = classes
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of every row: shape (m,) for two classes, else (m, n_classes)."""
        return self._scores(X)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the score after each round."""
        yield from self._staged_scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row."""
        scores = self._scores(X)
        return self.ensemble_._label(scores)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class: (1 + score) / 2 within [0, 1]; more than two classes: shares of 1 + score."""
        scores = self._scores(X)
        return self.ensemble_._probability(scores)


class QuadBoostRegressor(RegressorMixin, _QuadBoost):
    __doc__ = f"""Ensembles of stumps for real targets, one or several.

    The target is not rescaled unless `standardize` says so: `reg_lambda` under l1, `alpha_max` and the risks in
    `history_` are then in the target's own units (an l1 penalty on a target ten times as large needs to be ten
    times as strong, an l2 penalty does not).

    Parameters
    ----------
    {SHARED_PARAMETERS}
    standardize : bool
        Divide each target by its standard deviation for the fit, so that penalties mean the same for every target.

    Attributes
    ----------
    {SHARED_ATTRIBUTES}
    """

    def __init__(
        self,
        penalty: str | None = "l1",
        *,
        reg_lambda: float | str = "auto",
        alpha_max: float = 0.1,
        mode: str = "corrective",
        max_rounds: int = 10_000,
        thresholds: int | str = 255,
        spacing: str = "quantile",
        fit_intercept: bool = True,
        reweight_every: int | None = None,
        reweight_sweeps: int | str = 1,
        validation_fraction: float | None = None,
        patience: int = 50,
        tol: float = 1e-7,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        categorical_features: Any = "auto",
        min_category_count: int = 5,
        standardize: bool = False,
        warm_start: bool = False,
        max_seconds: float | None = None,
        callbacks: Sequence[Callback] | None = None,
        callback_every: int = 100,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight_val: Any = None,
    ) -> Self:
        """Learn an ensemble.

        Parameters
        ----------
        X : array, list of rows, pandas or polars frame, or pyarrow table, of shape (m, d)
            Missing values are NaN, None or NA.
        y : array of shape (m,) or (m, n_outputs)
        sample_weight : array of shape (m,), optional
        X_val, y_val, sample_weight_val : optional
            Rows on which to choose the number of rounds.
        """
        options = self._options()
        if self.reg_lambda == "theory":
            raise ValueError("reg_lambda='theory' is for labels; for a regression give a number, or 'auto'")
        given = examples_of(X, real_targets(y), sample_weight)
        one_output = given.y.ndim == 1
        given = given._replace(y=given.y.reshape(len(given.y), -1))
        validation = None
        if has_validation(X_val, y_val, sample_weight_val):
            validation = examples_of(X_val, real_targets(y_val), sample_weight_val, "_val")
            validation = validation._replace(y=validation.y.reshape(len(validation.y), -1))
            if validation.y.shape[1] != given.y.shape[1]:
                raise ValueError(
                    f"y_val has {validation.y.shape[1]} outputs and y has {given.y.shape[1]}; give as many"
                )
        self._fit(
            given,
            validation,
            options=options,
            one_output=one_output,
            target_scale=spread_of(given.y, given.weight) if self.standardize else np.ones(given.y.shape[1]),
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The target of every row: shape (m,), or (m, n_outputs) where there are several."""
        return self._scores(X)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the prediction after each round."""
        yield from self._staged_scores(X)


def _make_ensemble(
    trained: Trained,
    schema: FrameSchema,
    classes: np.ndarray | None,
    one_output: bool,
    target_scale: np.ndarray,
    info: dict[str, Any],
) -> Ensemble:
    weight = np.column_stack([result.weight for result in trained.boosted]) * target_scale
    intercept = np.array([result.intercept for result in trained.boosted]) * target_scale
    voters = np.flatnonzero(weight.any(axis=1))
    feature, kind, threshold = trained.stumps.describe(voters)
    return Ensemble(
        feature,
        threshold,
        weight[voters, 0] if one_output else weight[voters],
        intercept[0] if one_output else intercept,
        kind=kind,
        n_features=schema.n_features,
        classes=classes,
        feature_names=schema.feature_names,
        categories=schema.categories,
        info=info,
    )


def _history(result: Boosted, trained: Trained) -> dict[str, np.ndarray]:
    """One entry a round; the voter also by its feature and threshold."""
    feature, _, threshold = trained.stumps.describe(result.history["voter"])
    return {"voter": result.history["voter"], "feature": feature, "threshold": threshold} | result.history


def _split(m: int, fraction: float, strata: np.ndarray | None, random_state: Any) -> np.ndarray:
    """Which rows to set aside."""
    if strata is not None:
        counts, n_held_out = np.bincount(strata), int(np.ceil(m * fraction))
        if counts.min() < 2 or len(counts) > min(n_held_out, m - n_held_out):
            strata = None  # not every class can be in both parts
    held_out = np.zeros(m, dtype=bool)
    held_out[train_test_split(np.arange(m), test_size=fraction, stratify=strata, random_state=random_state)[1]] = True
    return held_out


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
