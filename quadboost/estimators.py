"""scikit-learn estimators: input checked at the border, everything else done by `training`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from ._version import __version__
from .booster import Boosted, Schedule
from .checks import at_least, one_of, positive
from .ensemble import Ensemble
from .frames import FrameSchema, learn_schema, to_matrix
from .moments import DEFAULT_CACHE_BYTES
from .progress import news_of
from .threads import resolve_threads
from .training import Options, Rows, Trained, describe_run, train

SHARED_PARAMETERS = """penalty : {"l1", "l2", "linf", None}
        Of the weights; None is the paper's vanilla QuadBoost.
    reg_lambda : float or "auto"
        Strength of an l1 penalty, which adds 2 reg_lambda sum |a| to the risk, or of an l2 penalty, which adds
        reg_lambda sum a^2. "auto" depends on the penalty and the number of examples; see `reg_lambda_`.
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
    reweight_sweeps : int
        Re-weighting sweeps at a time.
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
        Called as callback(round, risk, validation_risk) every `callback_every` rounds; a true answer stops the fit.
    callback_every : int
    n_jobs : int, optional
        Threads; None: every core that this process may use. The result is the same bits for any number.
    random_state : int, optional
        For `validation_fraction`.
    verbose : int
        1: show progress."""

SHARED_ATTRIBUTES = """ensemble_ : Ensemble
        The model itself, usable without scikit-learn.
    intercept_ : float, or array of shape (n_outputs,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    n_rounds_ : int
        Rounds behind the ensemble. This and what follows: a list, one entry per output, where there are several.
    history_ : dict of arrays, one entry a round
        voter (and its feature and threshold), edge, weight, risk, objective, and validation_risk if there is any.
    dual_gap_ : float
        A bound on the distance of the objective from its minimum, in corrective mode; NaN where none is known.
    reg_lambda_ : float
    stop_reason_ : {"max_rounds", "converged", "patience", "max_seconds", "callback"}
    feature_importances_ : array of shape (d,)
        How much each feature moves the scores of the training rows: standard deviation, as a share of the sum."""


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
        matrix = self._matrix(X)
        return self.ensemble_._score(matrix, self.n_jobs)

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

    def _fit(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        validation: tuple[Any, np.ndarray, np.ndarray | None] | None,
        *,
        options: Options,
        strata: np.ndarray | None = None,
        classes: np.ndarray | None = None,
        one_output: bool = True,
        target_scale: np.ndarray | None = None,
    ) -> None:
        """Train on targets of shape (m, n_outputs), and set what a fit leaves behind."""
        start = time.monotonic()
        schema = learn_schema(
            X,
            categorical_features=self.categorical_features,
            min_category_count=self.min_category_count,
            sample_weight=weight,
        )
        scale = np.ones(y.shape[1]) if target_scale is None else target_scale
        rows = Rows(to_matrix(X, schema, owner=type(self).__name__), y / scale, weight)
        held_out = None
        if validation is not None:
            X_val, y_val, weight_val = validation
            held_out = Rows(to_matrix(X_val, schema, owner=type(self).__name__), y_val / scale, weight_val)
        elif self.validation_fraction is not None:
            rows, held_out = _split(rows, self.validation_fraction, strata, self.random_state)
        shape = (*rows.X.shape, y.shape[1])
        resume = getattr(self, "_progress", None) if self.warm_start else None
        if resume is not None and shape != self._progress_shape:
            raise ValueError(
                f"warm_start goes on from a fit of {self._progress_shape[:2]} values, but X now gives {shape[:2]}; "
                "give the same data, or set warm_start=False"
            )
        with news_of(self.verbose, self.callbacks or (), options.schedule.max_rounds, y.shape[1]) as callback:
            trained = train(
                rows,
                replace(options, schedule=replace(options.schedule, callback=callback)),
                validation=held_out,
                n_levels={f: len(levels) for f, levels in schema.categories.items()},
                resume=resume,
            )
        info = {
            "quadboost": __version__,
            "estimator": type(self).__name__,
            "parameters": {name: _plain(value) for name, value in self.get_params(deep=False).items()},
            "rows": len(rows.X),
            "validation_rows": 0 if held_out is None else len(held_out.X),
            "seconds": time.monotonic() - start,
            "reg_lambda": trained.reg_lambda,
            "outputs": [describe_run(result) for result in trained.boosted],
            "feature_importances": trained.importance.tolist(),
        }
        self.ensemble_ = _make_ensemble(trained, schema, classes, one_output, scale, info)
        self.intercept_ = self.ensemble_.intercept
        self.n_features_in_ = schema.n_features
        self.__dict__.pop("feature_names_in_", None)
        if schema.feature_names is not None:
            self.feature_names_in_ = np.array(schema.feature_names, dtype=object)
        self._target_scale = scale
        self._progress, self._progress_shape = [result.progress for result in trained.boosted], shape
        if not self.warm_start:
            del self._progress, self._progress_shape
        self._tell(trained, one_output)

    def _tell(self, trained: Trained, one_output: bool) -> None:
        """Set the attributes that tell how the fit went: lists, one entry per output, where there are several."""

        def each(values: list[Any]) -> Any:
            return values[0] if one_output else values

        boosted = trained.boosted
        self.n_rounds_ = each([result.n_rounds for result in boosted])
        self.history_ = each([_history(result, trained) for result in boosted])
        self.dual_gap_ = each([result.dual_gap for result in boosted])
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
        penalty="l1",
        *,
        reg_lambda="auto",
        alpha_max=0.1,
        mode="corrective",
        max_rounds=10_000,
        thresholds=255,
        spacing="quantile",
        fit_intercept=True,
        reweight_every=None,
        reweight_sweeps=1,
        validation_fraction=None,
        patience=50,
        tol=1e-7,
        cache_bytes=DEFAULT_CACHE_BYTES,
        categorical_features="auto",
        min_category_count=5,
        class_weight=None,
        warm_start=False,
        max_seconds=None,
        callbacks=None,
        callback_every=100,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set_parameters(locals())

    def fit(self, X, y, sample_weight=None, X_val=None, y_val=None, *, sample_weight_val=None):
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
        labels = _labels(y)
        X, labels, weight = _weighted(X, labels, sample_weight)
        classes, position = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"the labels hold only one class, {classes[0]!r}; a classifier needs at least two classes")
        class_weight = _class_weights(self.class_weight, classes, position, weight)
        validation = None
        if _both_or_neither(X_val, y_val):
            labels = _labels(y_val)
            X_val, labels, weight_val = _weighted(X_val, labels, sample_weight_val, "_val")
            position_val = _positions(labels, classes)
            validation = X_val, _targets(position_val, classes), _times(weight_val, class_weight, position_val)
        self._fit(
            X,
            _targets(position, classes),
            _times(weight, class_weight, position),
            validation,
            options=options,
            strata=position,
            classes=classes,
            one_output=len(classes) == 2,
        )
        self.classes_ = classes
        return self

    def decision_function(self, X):
        """The score of every row: shape (m,) for two classes, else (m, n_classes)."""
        return self._scores(X)

    def staged_decision_function(self, X):
        """Yield the score after each round."""
        yield from self._staged_scores(X)

    def predict(self, X):
        """The label of every row."""
        scores = self._scores(X)
        return self.ensemble_._label(scores)

    def predict_proba(self, X):
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
        penalty="l1",
        *,
        reg_lambda="auto",
        alpha_max=0.1,
        mode="corrective",
        max_rounds=10_000,
        thresholds=255,
        spacing="quantile",
        fit_intercept=True,
        reweight_every=None,
        reweight_sweeps=1,
        validation_fraction=None,
        patience=50,
        tol=1e-7,
        cache_bytes=DEFAULT_CACHE_BYTES,
        categorical_features="auto",
        min_category_count=5,
        standardize=False,
        warm_start=False,
        max_seconds=None,
        callbacks=None,
        callback_every=100,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set_parameters(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X, y, sample_weight=None, X_val=None, y_val=None, *, sample_weight_val=None):
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
        X, y, weight = _weighted(X, _real_targets(y), sample_weight)
        validation = None
        if _both_or_neither(X_val, y_val):
            X_val, y_val, weight_val = _weighted(X_val, _real_targets(y_val), sample_weight_val, "_val")
            if y_val.shape[1:] != y.shape[1:]:
                raise ValueError(f"y_val has shape {y_val.shape}; it must have as many outputs as y, {y.shape[1:]}")
            validation = X_val, y_val.reshape(len(y_val), -1), weight_val
        targets = y.reshape(len(y), -1)
        self._fit(
            X,
            targets,
            weight,
            validation,
            options=options,
            one_output=y.ndim == 1,
            target_scale=_spread(targets, weight) if self.standardize else None,
        )
        return self

    def predict(self, X):
        """The target of every row: shape (m,), or (m, n_outputs) where there are several."""
        return self._scores(X)

    def staged_predict(self, X):
        """Yield the prediction after each round."""
        yield from self._staged_scores(X)


def _make_ensemble(
    trained: Trained,
    schema: FrameSchema,
    classes: np.ndarray | None,
    one_output: bool,
    scale: np.ndarray,
    info: dict[str, Any],
) -> Ensemble:
    weight = np.column_stack([result.weight for result in trained.boosted]) * scale
    intercept = np.array([result.intercept for result in trained.boosted]) * scale
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


def _split(rows: Rows, fraction: float, strata: np.ndarray | None, random_state: Any) -> tuple[Rows, Rows]:
    if strata is not None and np.bincount(strata).min() < 2:
        strata = None  # a class of one row cannot be in both parts
    train_rows, held_out = train_test_split(
        np.arange(len(rows.X)), test_size=fraction, stratify=strata, random_state=random_state
    )
    return rows.take(np.sort(train_rows)), rows.take(np.sort(held_out))


def _labels(y: Any) -> np.ndarray:
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    labels = column_or_1d(np.asarray(y) if hasattr(y, '__array__') else y, warn=True)
    if labels.dtype.kind == "O" and any(value is None or value != value for value in labels):
        raise ValueError("y holds missing labels; leave those rows out")
    check_array(labels, ensure_2d=False, dtype=None, ensure_min_samples=0)
    check_classification_targets(labels)
    return labels


def _real_targets(y: Any) -> np.ndarray:
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    return check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", allow_nd=False)


def _weighted(X: Any, y: np.ndarray, weight: Any, suffix: str = "") -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows of positive weight: a weight of zero is the same as no row."""
    if not hasattr(X, "shape"):
        X = np.asarray(X, dtype=None if hasattr(X, "__array__") else object)
    n_rows = X.shape[0] if X.shape else 0
    if n_rows == 0:
        raise ValueError(f"X{suffix} has 0 rows (shape={X.shape}) while a minimum of 1 is required")
    if n_rows != len(y):
        raise ValueError(f"X{suffix} has {n_rows} rows and y{suffix} has {len(y)}; give one target for every row")
    if weight is None:
        return X, y, None
    weight = np.asarray(weight)
    if weight.ndim == 0:
        weight = np.full(n_rows, weight)
    weight = check_array(weight, ensure_2d=False, dtype=np.float64, input_name=f"sample_weight{suffix}")
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight{suffix} has shape {weight.shape}; it must hold one number for each of {n_rows} rows")
    if weight.min() < 0:
        raise ValueError(f"sample_weight{suffix} holds {weight.min()}; weights must not be negative")
    if not weight.any():
        raise ValueError(f"sample_weight{suffix} is zero for every row; at least one must be positive")
    if (weight == 1.0).all():
        return X, y, None
    kept = weight > 0
    return (X, y, weight) if kept.all() else (_take_rows(X, kept), y[kept], weight[kept])


def _take_rows(X: Any, kept: np.ndarray) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[kept]
    if hasattr(X, "column_names") or hasattr(X, "get_columns"):  # pyarrow tables and polars frames
        return X.filter(kept)
    return X if hasattr(X, "toarray") else np.asarray(X)[kept]  # sparse: to be refused


def _both_or_neither(X_val: Any, y_val: Any) -> bool:
    if (X_val is None) != (y_val is None):
        given, absent = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"{given} was given without {absent}; a validation set needs both")
    return X_val is not None


def _targets(position: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """-1 and +1: one column for two classes, else one column per class against the rest."""
    wanted = np.array([1]) if len(classes) == 2 else np.arange(len(classes))
    return np.where(position[:, None] == wanted, 1.0, -1.0)


def _positions(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    position = np.searchsorted(classes, labels)
    known = classes[np.minimum(position, len(classes) - 1)] == labels
    if not known.all():
        raise ValueError(f"y_val holds the label {labels[~known][0]!r}, which y does not have")
    return position


def _class_weights(given: Any, classes: np.ndarray, position: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
    """The weight of each class, or None where all weigh the same."""
    if given is None:
        return None
    if isinstance(given, str):
        one_of("class_weight", given, ("balanced",))
        mass = np.bincount(position, weights=weight, minlength=len(classes))
        return mass.sum() / (len(classes) * mass)
    unknown = set(given) - set(classes.tolist())
    if unknown:
        raise ValueError(f"class_weight names {unknown.pop()!r}, which is not a class; the classes are {classes.tolist()}")
    return np.array([positive("class_weight", given.get(label, 1.0)) for label in classes.tolist()])


def _times(weight: np.ndarray | None, class_weight: np.ndarray | None, position: np.ndarray) -> np.ndarray | None:
    if class_weight is None:
        return weight
    return class_weight[position] if weight is None else weight * class_weight[position]


def _spread(targets: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    mean = np.average(targets, axis=0, weights=weight)
    spread = np.sqrt(np.average((targets - mean) ** 2, axis=0, weights=weight))
    return np.where(spread > 0, spread, 1.0)


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
