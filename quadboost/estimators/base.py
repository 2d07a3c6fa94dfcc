"""What all estimators share: parameters and their checks, one fit, and what it leaves behind."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._version import __version__
from ..boosting.result import Boosted
from ..boosting.schedule import Schedule
from ..choosing.plots import plot_strengths
from ..common.checks import at_least, functions, one_of, positive
from ..common.progress import news_of, steps_of
from ..common.threads import resolve_threads
from ..data.tables import has_names, listed
from ..fitting.calibration import calibrate, calibrate_at_once
from ..fitting.growth import Growth
from ..fitting.importance import importance_of
from ..fitting.losses import train_under_loss
from ..fitting.measured import Measured, Options, Trained, Warm
from ..fitting.problem import Problem, Reading, Rows
from ..fitting.training import train
from ..model.ensemble import Ensemble
from ..model.explained import Explained
from ..model.patterns import pattern_arrays
from ..model.shape_functions import ShapeFunction
from ..voters.binned import Binned
from .watching import Judge, Model, Watch, best_stage

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

# Parameters that may differ from those of the fit that a warm start goes on from.
MAY_CHANGE = ("max_rounds", "max_seconds", "callbacks", "callback_every", "cache_bytes", "n_jobs", "verbose")

UNTOLD = ("callbacks", "callback_every", "verbose")  # parameters that say nothing of a model


class _Warm(NamedTuple):
    """Where a fit stood."""

    voters: bytes  # their fingerprint
    shape: tuple[int, ...]  # of the targets
    parameters: dict[str, Any]
    held_out: np.ndarray | None
    outputs: list[Warm]
    stage: tuple[np.ndarray, np.ndarray] | None  # under another loss than the squared one: weights and intercepts


class QuadBoost(Explained, BaseEstimator):
    """What classifier and regressor share."""

    def _set_parameters(self, parameters: Mapping[str, Any]) -> None:
        for name in self._get_param_names():
            setattr(self, name, parameters[name])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    @classmethod
    def from_ensemble(cls, ensemble: Ensemble, **parameters: Any) -> Self:
        """A fitted estimator that predicts as a model does, such as one that was loaded from a file.

        What only a fit knows, such as `history_` and the stages, it does not have.

        Parameters
        ----------
        ensemble : Ensemble
        **parameters
            Of the estimator; those that are not given have their defaults, not those of the fit.
        """
        if not isinstance(ensemble, Ensemble):
            raise TypeError(
                f"from_ensemble takes an Ensemble, as quadboost.load(path) returns it, not {ensemble!r:.60}"
            )
        wanted, found = ("labels", "targets")[:: 1 if is_classifier(cls()) else -1]
        if (ensemble.classes is not None) != (wanted == "labels"):
            raise ValueError(f"this model predicts {found}, and {cls.__name__} {wanted}; use the other estimator")
        estimator = cls(**parameters)
        estimator._take_over(ensemble)
        importance = ensemble.feature_importances
        if importance is not None:
            estimator.feature_importances_ = importance
        return estimator

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to an HDF5 file, to be read by `quadboost.load`."""
        check_is_fitted(self)
        self.ensemble_.save(path)

    def _explained(self) -> Ensemble:
        check_is_fitted(self)
        return self.ensemble_

    def shape_functions(self, *, bands: bool = False) -> list[ShapeFunction]:
        """What each feature adds to the score; see `Ensemble.shape_functions`."""
        return self._explained().shape_functions(bands=bands)

    def _check_fitted(self, X: Any) -> None:
        """Refuse to predict before a fit; warn where X has no names and training had, as scikit-learn does."""
        check_is_fitted(self)
        if self.ensemble_.feature_names is not None and not (has_names(X) or isinstance(X, Binned)):
            warnings.warn(
                f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names",
                UserWarning,
                stacklevel=4,
            )

    def _matrix(self, X: Any) -> np.ndarray:
        self._check_fitted(X)
        return self.ensemble_.matrix_of(X, owner=type(self).__name__)

    def _scores(self, X: Any) -> np.ndarray:
        self._check_fitted(X)
        return self.ensemble_.scores_of(X, n_jobs=self.n_jobs, owner=type(self).__name__)

    def _staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        check_is_fitted(self)
        if not hasattr(self, "_traces"):
            raise AttributeError("a model from a file has no stages; they are known to the estimator that was fitted")
        matrix = self._matrix(X)
        codes = self._voters.code(matrix)
        for scores in self._stages_of(codes):
            scores = self._link[0] + self._link[1] * scores
            yield scores if self.ensemble_.weight.ndim == 2 else scores[:, 0]

    def _stages_of(self, codes: np.ndarray) -> Iterator[np.ndarray]:
        """Scores of coded rows after each round, or each pass, before calibration."""
        if self._stages is not None:
            for weight, intercept in self._stages:
                yield self._voters.scores(codes, weight, intercept) * self._target_scale
            return
        scores = np.tile([trace.first_intercept for trace in self._traces] * self._target_scale, (len(codes), 1))
        followed = [trace.changes(self._voters.n_voters) for trace in self._traces]
        for round in range(int(np.max(self.n_rounds_))):
            for output in np.flatnonzero(np.atleast_1d(self.n_rounds_) > round).tolist():
                voter, delta, fall = next(followed[output])
                scale = self._target_scale[output]
                if len(voter) == 1:
                    column, votes = self._voters.votes(int(voter[0]))
                    scores[:, output] += scale * (delta * votes - fall)[codes[:, column]]
                else:  # a sweep: many voters at once
                    scores[:, output] += scale * (self._voters.changes(codes, voter, delta) - fall)
            yield scores

    def _options(self) -> Options:
        """The parameters, checked."""
        parameters = self.get_params(deep=False)
        fraction = self.validation_fraction
        if fraction is not None and positive("validation_fraction", fraction) >= 1:
            raise ValueError(f"validation_fraction={fraction!r} must lie between 0 and 1")
        at_least("min_category_count", self.min_category_count, 1)
        functions("callbacks", self.callbacks)
        names = Schedule.__dataclass_fields__.keys() - {"callback"}
        schedule = Schedule(**{name: parameters[name] for name in names})
        one_of("calibration", parameters.get("calibration"), ("auto", None))
        self._check_loss()
        names = (Options.__dataclass_fields__.keys() - {"schedule", "n_threads", "penalty"}) & parameters.keys()
        n_threads, growth = resolve_threads(self.n_jobs), self._growth()
        penalty = parameters.get("penalty", "auto")
        if isinstance(penalty, str) and penalty == "auto":
            penalty = "l2" if growth.n_trees and parameters.get("max_voters") is None else "l1"
        return Options(
            **{name: parameters[name] for name in names},
            penalty=penalty,
            schedule=schedule,
            n_threads=n_threads,
            growth=growth,
        )

    def _growth(self) -> Growth:
        """How trees are grown, checked."""
        if self.n_trees and self.warm_start:
            raise ValueError("warm_start is for stumps, and n_trees grows others each time; set warm_start=False")
        seed, random_state = 0, self.random_state
        if isinstance(random_state, Integral):
            check_random_state(random_state)  # refuses what is no seed
            seed = int(random_state)
        elif random_state is not None and self.n_trees:
            seed = int(check_random_state(random_state).randint(2**31))
        return Growth(self.n_trees, self.max_leaves, self.max_conditions, self.growth_rows, seed)

    def _check_loss(self) -> None:
        """Refuse losses that are for other targets."""
        known = ("squared", "logistic") if is_classifier(self) else ("squared", "huber", "poisson", "quantile")
        one_of("loss", self.loss, known)
        if self.loss == "poisson" and self.standardize:
            raise ValueError("standardize=True is not for loss='poisson', whose counts have no scale; set it to False")

    @property
    def _reading(self) -> Reading:
        how = (self.categorical_features, self.min_category_count, type(self).__name__)
        return Reading(*how, self.monotonic_cst, self.interaction_cst)

    def _fit(
        self, problem: Problem, validation: Rows | None, options: Options, start: float,
        measured: Measured | None = None, eval_metric: Any = None,
    ) -> Trained:  # fmt: skip
        """Train, and set what a fit leaves behind.

        `start` is when the fit began, `measured` are the rows where they were summed before.
        """
        warm = self._warm_start(problem)
        rows, split = problem.rows, None if warm is None else warm.held_out
        if validation is None and self.validation_fraction is not None:
            if split is None:
                split = _split(problem, self.validation_fraction, self.random_state)
            rows, validation = rows.take(~split), rows.take(split)
        if validation is not None:
            options = replace(options, cache_bytes=max(1, options.cache_bytes // 2))
        measured, options = self._measure(problem, rows, options, measured)
        held_out = None
        if validation is not None:
            held_out = Measured.of(problem, validation, options, measured.voters)
        if warm is not None and warm.voters != measured.voters.fingerprint:
            raise ValueError("warm_start goes on from a fit to other rows; give the same data, or set warm_start=False")
        is_calibrated = getattr(self, "calibration", None) == "auto" and options.loss == "squared"

        is_judged = eval_metric is not None and options.loss != "squared"
        link = measured.coded(problem, options)[1].link if is_judged else None

        def model(runs: Sequence[Boosted]) -> Ensemble:
            """The model that runs would be."""
            calibration = calibrate_at_once(measured, options, runs) if is_calibrated else None
            return problem.ensemble(measured.voters, runs, loss=options.loss, link=link, calibration=calibration)

        judge = None
        if eval_metric is not None:
            if validation is None:
                raise ValueError("eval_metric is for validation rows; give X_val and y_val, or validation_fraction")
            judge = Judge(eval_metric, problem, validation)
        begin = time.monotonic()
        trained = self._train(problem, measured, held_out, options, warm, judge, model)
        gone = time.monotonic() - begin
        calibration = calibrate(problem, measured, options, trained, gone) if is_calibrated else None
        weight = np.column_stack([result.weight for result in trained.boosted])
        self.feature_importances_ = importance_of(trained.voters, measured.moments, weight)
        info = self._info(trained, rows, validation, start)
        found = problem.ensemble(
            trained.voters, trained.boosted, info, loss=options.loss, link=trained.link, calibration=calibration,
            sums=measured.moments.sums,
        )  # fmt: skip
        patterns = pattern_arrays(found, measured.rows.n_rows, measured.ask_values)
        self._take_over(found.replace(**patterns) if patterns else found)
        self._link = (0.0, 1.0) if calibration is None else calibration
        self._warm = None
        if self.warm_start:
            shape, parameters = (problem.rows.n_rows, problem.rows.n_outputs), self._lasting_parameters()
            stage = None if trained.stages is None else trained.stages[-1]
            self._warm = _Warm(trained.voters.fingerprint, shape, parameters, split, trained.warm, stage)
        self._target_scale = problem.target_scale
        self._tell(trained, problem.one_output)
        return trained

    def _measure(
        self, problem: Problem, rows: Rows, options: Options, measured: Measured | None
    ) -> tuple[Measured, Options]:
        """Sum the rows unless they are summed already, and grow trees if there are to be any.

        What follows has so much less of `max_seconds`.
        """
        start, n_trees = time.monotonic(), options.growth.n_trees
        if not n_trees:
            return Measured.of(problem, rows, options) if measured is None else measured, options
        with steps_of(self.verbose, n_trees, "tree") as tell:
            if measured is None:
                measured = Measured.of(problem, rows, options, tell=tell)
            else:
                measured = cast("Any", measured).with_trees(problem, options, tell)  # of rows in parts
        return measured, replace(options, schedule=options.schedule.share(time.monotonic() - start, 1))

    def _info(self, trained: Trained, rows: Rows, validation: Rows | None, start: float) -> dict[str, Any]:
        """What a model keeps of the fit that it came from."""
        parameters = self.get_params(deep=False).items()
        return {
            "quadboost": __version__,
            "estimator": type(self).__name__,
            "parameters": {name: _plain(value) for name, value in parameters if name not in UNTOLD},
            "rows": rows.n_rows,
            "validation_rows": 0 if validation is None else validation.n_rows,
            "seconds": time.monotonic() - start,
            "reg_lambda": trained.reg_lambda,
            "outputs": [result.figures() for result in trained.boosted],
            "feature_importances": self.feature_importances_.tolist(),
        }

    def _train(
        self, problem: Problem, measured: Measured, held_out: Measured | None, options: Options, warm: _Warm | None,
        judge: Judge | None, model: Model,
    ) -> Trained:  # fmt: skip
        schedule, n_outputs = options.schedule, measured.rows.n_outputs
        with (
            steps_of(self.verbose if options.follows_path else 0, None, "strength") as tell,
            news_of(self.verbose, self.callbacks or (), schedule.max_rounds, n_outputs) as callback,
        ):
            patience = schedule.patience if judge is None else schedule.max_rounds
            options = replace(options, schedule=replace(schedule, callback=callback, patience=patience))
            if options.loss == "squared":
                outputs = None if warm is None else warm.outputs
                trained = train(
                    problem, measured, options, validation=held_out, warm=outputs, tell=tell,
                    every_stage=judge is not None,
                )  # fmt: skip
                return trained if judge is None else best_stage(trained, judge, model, schedule.patience)
            options = replace(options, schedule=replace(options.schedule, patience=schedule.patience))
            watch = Watch(problem, held_out, options, callback, judge, model)
            trained = train_under_loss(
                problem, measured, options, watch=watch, tell=tell, start=None if warm is None else warm.stage,
                validation=held_out, every_stage=judge is not None,
            )  # fmt: skip
            if options.mode == "forward" and judge is not None:
                return best_stage(trained, judge, model, schedule.patience)
            return watch.best_of(trained)

    def _take_over(self, ensemble: Ensemble) -> None:
        """Set what every fitted estimator has."""
        self.ensemble_ = ensemble
        self.intercept_ = ensemble.intercept
        self.n_features_in_ = ensemble.n_features
        self.__dict__.pop("feature_names_in_", None)
        if ensemble.feature_names is not None:
            self.feature_names_in_ = np.array(ensemble.feature_names, dtype=object)
        if ensemble.classes is not None:
            self.classes_ = ensemble.classes

    def _lasting_parameters(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name not in MAY_CHANGE}

    def _warm_start(self, problem: Problem) -> _Warm | None:
        """Where the last fit stood, if this one is to go on from there."""
        warm: _Warm | None = getattr(self, "_warm", None) if self.warm_start else None
        if warm is None:
            return None
        columns, before = problem.schema, self.ensemble_
        if (columns.n_features, columns.feature_names) != (before.n_features, before.feature_names):
            raise ValueError(
                f"warm_start goes on from a fit to {_columns(before)}, but X now has {_columns(columns)}; "
                "give the same data, or set warm_start=False"
            )
        shape = (problem.rows.n_rows, problem.rows.n_outputs)
        if warm.shape != shape:
            raise ValueError(
                f"warm_start goes on from a fit to targets of shape {warm.shape}, but y now has {shape}; "
                "give the same data, or set warm_start=False"
            )
        done = max((len(output.progress.voter) for output in warm.outputs), default=0)
        if done > self.max_rounds:
            raise ValueError(
                f"warm_start goes on from a fit of {done} rounds, but max_rounds={self.max_rounds}; "
                "give more, or set warm_start=False"
            )
        for name, value in self._lasting_parameters().items():
            if value is not warm.parameters[name] and not np.array_equal(value, warm.parameters[name]):
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
        self.history_ = each(
            [
                _history(result, trained) | path.columns()
                for result, path in zip(boosted, trained.strengths, strict=True)
            ]
        )
        self.dual_gap_ = each([result.dual_gap for result in boosted])
        self.violation_ = each([result.violation for result in boosted])
        self.reg_lambda_ = each(trained.reg_lambda)
        self.stop_reason_ = each([result.stop_reason for result in boosted])
        self._voters = trained.voters
        self._traces = [result.trace for result in boosted]
        self._stages = trained.stages
        self._paths = [path for path in trained.strengths if path.points]

    def _warn_if_short(self, trained: Trained) -> None:
        """Say when the rounds were too few to prove that the optimum is near."""
        if self.loss != "squared":
            if trained.boosted[0].stop_reason == "max_rounds":
                warnings.warn(
                    f"the passes under loss={self.loss!r} ended before they came within tol={self.tol}; raise tol, or "
                    "give a stronger penalty",
                    ConvergenceWarning,
                    stacklevel=4,
                )
            return
        if not self.tol > 0 or "validation_risk" in trained.boosted[0].history:
            return
        if any(path.cut == "max_rounds" for path in trained.strengths):
            warnings.warn(
                f"max_rounds={self.max_rounds} was reached before reg_lambda='auto' had an answer; raise max_rounds, "
                "or give reg_lambda a number",
                ConvergenceWarning,
                stacklevel=4,
            )
            return
        short = [
            result
            for result in trained.boosted
            if result.stop_reason == "max_rounds" and result.dual_gap > self.tol * result.first_risk  # NaN is not
        ]
        if short:
            gap = max(result.dual_gap / result.first_risk for result in short)
            warnings.warn(
                f"max_rounds={self.max_rounds} was reached at a relative dual gap of {gap:.1e}, above tol={self.tol}; "
                "raise max_rounds, or tol if this is near enough",
                ConvergenceWarning,
                stacklevel=4,
            )

    def plot_path(self, ax: Any = None) -> Any:
        """Draw what the risk on other rows is expected to be, over the strengths from which one was chosen.

        Needs matplotlib, and a fit with an l1 penalty and `reg_lambda="auto"`.
        """
        check_is_fitted(self)
        paths = getattr(self, "_paths", [])
        if not paths:
            raise ValueError("there is no path to draw; fit with penalty='l1', mode='corrective' and reg_lambda='auto'")
        return plot_strengths(paths, ax)


def _history(result: Boosted, trained: Trained) -> dict[str, np.ndarray]:
    """One entry a round; the voter also by its feature and threshold."""
    if "voter" not in result.history:
        return dict(result.history)
    feature, _, threshold = trained.voters.describe(result.history["voter"])
    return {"voter": result.history["voter"], "feature": feature, "threshold": threshold} | result.history


def _split(problem: Problem, fraction: float, random_state: Any) -> np.ndarray:
    """Which rows to set aside; with the classes as in the whole where that can be."""
    m, strata = len(problem.rows.y), None
    if problem.classes is not None:
        counts, n_held_out = np.unique(problem.examples.y, return_counts=True)[1], int(np.ceil(m * fraction))
        if counts.min() >= 2 and len(counts) <= min(n_held_out, m - n_held_out):
            strata = problem.examples.y
    held_out = np.zeros(m, dtype=bool)
    held_out[train_test_split(np.arange(m), test_size=fraction, stratify=strata, random_state=random_state)[1]] = True
    return held_out


def _columns(known: Any) -> str:
    """The columns of a schema or ensemble, for an error."""
    return f"{known.n_features} columns" + ("" if known.feature_names is None else f", {listed(known.feature_names)}")


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
