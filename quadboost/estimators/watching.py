"""Early stopping on rows that are not trained on: by the loss, or by a metric of the user's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import log_loss, mean_absolute_error, r2_score, roc_auc_score

from ..boosting.result import Boosted
from ..fitting.measured import Measured, Options, Trained
from ..fitting.passes import Passes
from ..fitting.problem import Problem, Rows
from ..model.ensemble import Ensemble

STAGES = 100  # numbers of rounds at which a metric is taken, evenly on a log scale

Model = Callable[[Sequence[Boosted]], Ensemble]  # from runs, one per output, to the model they would be
# From labels or targets, predictions and weights to a number of which less is better.
Metric = Callable[[Any, Any, Any], float]

FOR_LABELS: dict[str, Metric] = {
    "error": lambda y, chance, weight: float(np.average(chance.argmax(axis=1) != y, weights=weight)),
    "log_loss": lambda y, chance, weight: log_loss(y, chance, sample_weight=weight, labels=np.arange(chance.shape[1])),
    "roc_auc": lambda y, chance, weight: (
        -roc_auc_score(
            y,
            chance[:, 1] if chance.shape[1] == 2 else chance,
            sample_weight=weight,
            multi_class="ovr",
            labels=np.arange(chance.shape[1]),
        )
    ),
}
FOR_TARGETS: dict[str, Metric] = {
    "rmse": lambda y, found, weight: float(np.sqrt(np.average(np.mean((y - found) ** 2, axis=1), weights=weight))),
    "mae": lambda y, found, weight: mean_absolute_error(y, found, sample_weight=weight),
    "r2": lambda y, found, weight: -r2_score(y, found, sample_weight=weight),
}


@dataclass(frozen=True)
class Judge:
    """A metric on validation rows."""

    metric: Any  # its name, or a function
    problem: Problem
    rows: Rows

    def __post_init__(self) -> None:
        known = FOR_TARGETS if self.problem.classes is None else FOR_LABELS
        if not callable(self.metric) and (not isinstance(self.metric, str) or self.metric not in known):
            names = ", ".join(map(repr, known))
            raise ValueError(
                f"eval_metric={self.metric!r} is not known; use {names}, or a function of y and predictions"
            )

    def __call__(self, model: Ensemble) -> float:
        """Less is better."""
        scores = model.score_matrix(self.rows.matrix())
        classes, y = self.problem.classes, self.rows.y * self.problem.target_scale
        if classes is None:
            found = model.predictions_of(scores).reshape(y.shape)
        else:
            found = model.probabilities_of(scores)
            y = (y[:, 0] > 0).astype(np.intp) if y.shape[1] == 1 else y.argmax(axis=1)
        if not callable(self.metric):
            return self._known(y, found)
        y = y if classes is None else classes[y]
        if self.problem.one_output:
            y, found = (y[:, 0], found[:, 0]) if classes is None else (y, found[:, 1])
        try:
            value = self.metric(y, found)
        except Exception as error:
            raise ValueError(
                f"eval_metric raised {type(error).__name__}: {error}; it is called with y and predictions"
            ) from error
        return self._checked(value)

    def _known(self, y: np.ndarray, found: np.ndarray) -> float:
        """A metric of scikit-learn. It may have no value: rows of one class have no area under a curve."""
        known = FOR_TARGETS if self.problem.classes is None else FOR_LABELS
        with warnings.catch_warnings():
            warnings.simplefilter("error", UndefinedMetricWarning)
            try:
                return known[self.metric](y, found, self.rows.weight)
            except (UndefinedMetricWarning, ValueError) as error:
                raise ValueError(
                    f"eval_metric={self.metric!r} has no value on these validation rows, of which scikit-learn says: "
                    f"{' '.join(str(error).split())}; give others, or use another metric"
                ) from None

    def _checked(self, value: Any) -> float:
        try:
            number = np.nan if isinstance(value, str | bytes) else float(value)
        except (TypeError, ValueError):
            number = np.nan
        if np.isnan(number):
            raise ValueError(f"eval_metric returned {value!r:.60}; it must be a number, of which less is better")
        return number


class Watch:
    """Follows the passes of a fit: tells the callbacks, and stops early on the validation rows."""

    def __init__(
        self, problem: Problem, held_out: Measured | None, options: Options, callback: Any, judge: Judge | None,
        model: Model,
    ) -> None:  # fmt: skip
        self.callback, self.patience = callback, options.schedule.patience
        self.rows = None if held_out is None else held_out.coded(problem, options, suffix="_val")[0]
        self.judge, self.model = judge, model
        self.values: list[float] = []  # of the metric, or of the loss where there is none
        self.losses: list[float] = []
        self.rounds: list[np.ndarray] = []  # of each output, up to a pass
        self.n_passes = 0

    def __call__(self, passes: Passes) -> str:
        """Why to stop; empty: go on."""
        self.n_passes += 1
        stage, value = passes.stage, None
        self.rounds.append(passes.n_rounds.copy())
        if self.rows is not None:
            value = self.rows.stage(stage.weight, stage.intercept, passes.loss.sharpest(), []).loss
            self.losses.append(value)
            self.values.append(value if self.judge is None else self.judge(self.model(passes.boosted())))
        if self.callback is not None and self.callback(self.n_passes, stage.loss, value):
            return "callback"
        is_late = bool(self.values) and self.n_passes - 1 - int(np.argmin(self.values)) >= self.patience
        return "patience" if is_late else ""

    def best_of(self, trained: Trained) -> Trained:
        """The model after the best pass on the validation rows."""
        if not self.values or trained.stages is None:
            return trained
        best = int(np.argmin(self.values))
        weight, intercept = trained.stages[best]
        more = {"validation_loss": np.array(self.losses)}
        more |= {} if self.judge is None else {"validation_metric": np.array(self.values)}
        boosted = [
            replace(
                result, weight=weight[:, output].copy(), intercept=float(intercept[output]),
                risk=float(result.history["loss"][best]), objective=float(result.history["objective"][best]),
                n_rounds=int(self.rounds[best][output]), validation_risk=self.losses[best],
                history=result.history | more,
            )
            for output, result in enumerate(trained.boosted)
        ]  # fmt: skip
        if best < self.n_passes - 1:
            boosted = [_unproved(result) for result in boosted]
        return replace(trained, boosted=boosted, stages=trained.stages[: best + 1])


def best_stage(trained: Trained, judge: Judge, model: Model, patience: int) -> Trained:
    """The model after the best number of rounds by a metric, up to `patience` rounds after it.

    A fit by rounds keeps the weights of each, and some are looked at. Any other fit keeps its stages: all are.
    """
    if trained.stages is not None:
        return _best_of_stages(trained, judge, model)
    longest = max(len(result.trace.voter) for result in trained.boosted)
    best, values, rounds = 0, [], []
    for round in np.unique(np.geomspace(1, max(1, longest), STAGES).round().astype(int)).tolist():
        values.append(judge(model(_after(trained, round))))
        rounds.append(round)
        best = rounds[int(np.argmin(values))]
        if round - best >= patience:
            break
    more = {"validation_metric": np.array(values), "validation_metric_round": np.array(rounds)}
    boosted = [replace(result, history=result.history | more) for result in _after(trained, best)]
    return replace(trained, boosted=boosted)


def _best_of_stages(trained: Trained, judge: Judge, model: Model) -> Trained:
    assert trained.stages is not None
    models = [
        [
            replace(result, weight=weight[:, output].copy(), intercept=float(intercept[output]), n_rounds=number + 1)
            for output, result in enumerate(trained.boosted)
        ]
        for number, (weight, intercept) in enumerate(trained.stages)
    ]
    values = np.array([judge(model(runs)) for runs in models])
    best = int(np.argmin(values))
    boosted = [replace(result, history=result.history | {"validation_metric": values}) for result in models[best]]
    if best < len(models) - 1:
        boosted = [_unproved(result) for result in boosted]
    return replace(trained, boosted=boosted, stages=[trained.stages[best]])


def _unproved(result: Boosted) -> Boosted:
    """The result of an earlier stage: only of the last one a gap is known."""
    return replace(result, dual_gap=np.nan, violation=np.nan)


def _after(trained: Trained, round: int) -> list[Boosted]:
    """The runs as they were after so many rounds."""
    stages = []
    for result in trained.boosted:
        n_rounds = min(round, len(result.trace.voter))
        weight = result.trace.weights_at(n_rounds, trained.voters.n_voters)
        if n_rounds != result.n_rounds:
            risk, objective = (float(result.history[name][n_rounds - 1]) for name in ("risk", "objective"))
            result = _unproved(replace(result, risk=risk, objective=objective))
        stages.append(replace(result, weight=weight, intercept=result.trace.intercept_at(weight), n_rounds=n_rounds))
    return stages
