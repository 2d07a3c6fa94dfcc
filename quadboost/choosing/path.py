"""The best ensemble under each strength of a penalty, from the strongest to the weakest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..boosting.result import Boosted
from ..boosting.rounds import open_run
from ..boosting.schedule import Schedule
from ..common.checks import at_least, one_of, positive
from ..common.progress import steps_of
from ..common.threads import resolve_threads
from ..data.schema import FrameSchema
from ..fitting.losses import train_under_loss
from ..fitting.measured import Measured, Options
from ..fitting.problem import Problem, Reading
from ..model.ensemble import Ensemble
from ..moments.moments import DEFAULT_CACHE_BYTES
from ..voters.columns import Voters
from .losses import strengths_of_loss
from .search import REACH, Candidate, check_strengths

PATH_REACH = REACH | {"l1": 1e-3}  # as other libraries: further down nearly all voters are active


@dataclass(frozen=True)
class RegularizationPath:
    """The ensembles of a path; in every array the strongest penalty comes first.

    Attributes
    ----------
    penalty : {"l1", "l2", "linf"}
    strength : array of shape (n,)
        reg_lambda, or alpha_max under linf.
    weight : array of shape (n, n_voters)
        Weights of all voters that are active somewhere on the path.
    feature, kind, threshold : arrays of shape (n_voters,)
        These voters, as in an `Ensemble`.
    intercept : array of shape (n,)
    risk, objective, dual_gap : arrays of shape (n,)
        The gap is a bound on the distance of the objective from its minimum.
    n_active : int array of shape (n,)
        Voters whose weight is not zero.
    """

    penalty: str
    strength: np.ndarray
    weight: np.ndarray
    feature: np.ndarray
    kind: np.ndarray
    threshold: np.ndarray
    intercept: np.ndarray
    risk: np.ndarray
    objective: np.ndarray
    dual_gap: np.ndarray
    n_active: np.ndarray
    classes: np.ndarray | None
    schema: FrameSchema
    loss: str = "squared"

    def ensemble(self, number: int) -> Ensemble:
        """The ensemble under one of the strengths."""
        active = np.flatnonzero(self.weight[number])
        name = "alpha_max" if self.penalty == "linf" else "reg_lambda"
        return Ensemble(
            self.feature[active],
            self.threshold[active],
            self.weight[number, active],
            float(self.intercept[number]),
            kind=self.kind[active],
            n_features=self.schema.n_features,
            classes=self.classes,
            feature_names=self.schema.feature_names,
            categories=self.schema.categories,
            info={
                "parameters": {"penalty": self.penalty, name: float(self.strength[number])},
                **self.schema.in_info,
            },
            loss=self.loss,
            link={"logistic": "logit", "poisson": "log"}.get(self.loss),
        )

    def plot(self, feature: int | str | None = None, ax: Any = None) -> Any:
        """Draw the weights along the path or, given a feature, its shape function under several strengths.

        Needs matplotlib.
        """
        from .plots import plot_shapes, plot_weights

        return plot_weights(self, ax) if feature is None else plot_shapes(self, feature, ax)


def regularization_path(
    X: Any, y: Any, penalty: str = "l1", *, strengths: int | Sequence[float] = 100, tol: float = 1e-6,
    max_rounds: int = 100_000, sample_weight: Any = None, thresholds: int | str = "auto", spacing: str = "quantile",
    fit_intercept: bool = True, categorical_features: Any = "auto", min_category_count: int = 5,
    cache_bytes: int = DEFAULT_CACHE_BYTES, loss: str = "squared", quantile: float = 0.5,
    huber_width: float | str = "auto", monotonic_cst: Any = None, n_jobs: int | None = None, verbose: int = 0,
) -> RegularizationPath:  # fmt: skip
    """Find the best ensemble under each of many strengths of a penalty; each starts from the one before.

    The parameters that are not described here are those of `QuadBoostRegressor`.

    Parameters
    ----------
    X : array, list of rows, pandas or polars frame, pyarrow table or sparse matrix, of shape (m, d)
    y : array of shape (m,)
        Numbers are targets as they are (labels would be -1 and +1). Text and bool are labels of two classes.
    penalty : {"l1", "l2", "linf"}
    strengths : int or list of floats
        How many values of reg_lambda (under linf: of alpha_max) to take, evenly on a log scale below the largest
        useful one; or the values.
    tol : float
        Stop when the dual gap is at most this times the risk without any voter.
    max_rounds : int
        Most rounds for each strength.
    sample_weight : array of shape (m,), optional
    loss : {"squared", "logistic", "huber", "poisson", "quantile"}
        "logistic" is for labels of two classes. Under other losses than the squared one `risk` is the mean loss, and
        `objective` has the penalty added.
    """
    one_of("penalty", penalty, ("l1", "l2", "linf"))
    check_strengths("strengths", strengths)
    positive("tol", tol)
    at_least("max_rounds", max_rounds, 1)
    at_least("min_category_count", min_category_count, 1)
    reading = Reading(categorical_features, min_category_count, "regularization_path", monotonic_cst)
    problem = _problem(X, y, sample_weight, reading)
    options = Options(
        penalty=penalty, reg_lambda=1.0, alpha_max=1.0, mode="corrective", fit_intercept=fit_intercept,
        thresholds=thresholds, spacing=spacing, cache_bytes=cache_bytes, n_threads=resolve_threads(n_jobs),
        schedule=Schedule(max_rounds, tol), loss=loss, quantile=quantile, huber_width=huber_width,
    )  # fmt: skip
    if (loss == "logistic") != (problem.classes is not None) and loss != "squared":
        raise ValueError(f"loss={loss!r} does not suit y; 'logistic' is for labels, such as y > 0, others for numbers")
    measured = Measured.of(problem, problem.rows, options)
    values = strengths_of_loss(penalty, strengths, problem, measured, options, PATH_REACH)
    follow = _follow_rounds if loss == "squared" else _follow_passes
    active, figures = [], []
    with steps_of(verbose, len(values), "strength") as tell:
        for best in follow(problem, measured, options, [Candidate(penalty, value) for value in values.tolist()]):
            active.append({int(voter): best.weight[voter] for voter in np.flatnonzero(best.weight)})
            figures.append((best.intercept, best.risk, best.objective, best.dual_gap))
            tell()
    return _path_of(active, np.array(figures), penalty, values, measured.voters, problem, loss)


def _follow_rounds(
    problem: Problem, measured: Measured, options: Options, candidates: Sequence[Candidate]
) -> Iterator[Boosted]:
    """One run that goes on under each penalty in turn."""
    limits = problem.limits(measured.voters, measured.moments, 0)
    with open_run(
        measured.moments, candidates[0].make(limits), mode="corrective", fit_intercept=options.fit_intercept
    ) as run:
        for candidate in candidates:
            run.change(candidate.make(limits))
            run.go(replace(options.schedule, max_rounds=run.n_rounds + options.schedule.max_rounds))
            yield run.result()


def _follow_passes(
    problem: Problem, measured: Measured, options: Options, candidates: Sequence[Candidate]
) -> Iterator[Boosted]:
    """The same under another loss."""
    start = None
    for candidate in candidates:
        (best,) = train_under_loss(problem, measured, replace(options, **candidate.parameters), start=start).boosted
        start = best.weight[:, None], np.array([best.intercept])
        yield best


def _path_of(
    active: Sequence[dict[int, float]],
    figures: np.ndarray,
    penalty: str,
    strength: np.ndarray,
    candidates: Voters,
    problem: Problem,
    loss: str,
) -> RegularizationPath:
    """Collect the points of the path, over the voters that are active in any of them."""
    voters = np.array(sorted(set().union(*active)), dtype=np.int64)
    weight = np.array([[weights.get(voter, 0.0) for voter in voters.tolist()] for weights in active])
    feature, kind, threshold = candidates.describe(voters)
    intercept, risk, objective, dual_gap = figures.T
    return RegularizationPath(
        penalty=penalty,
        strength=strength,
        weight=weight,
        feature=feature,
        kind=kind,
        threshold=threshold,
        intercept=intercept,
        risk=risk,
        objective=objective,
        dual_gap=dual_gap,
        n_active=np.count_nonzero(weight, axis=1),
        classes=problem.classes,
        schema=problem.schema,
        loss=loss,
    )


def _problem(X: Any, y: Any, sample_weight: Any, reading: Reading) -> Problem:
    """Numbers are targets as they are, text and bool are labels of two classes."""
    if np.asarray(y).dtype.kind in "OSUb":
        problem = Problem.of_labels(X, y, sample_weight, reading)
        if problem.classes is not None and len(problem.classes) > 2:
            raise ValueError(f"y holds {len(problem.classes)} classes; a path is for two, or for numbers")
        return problem
    problem = Problem.of_targets(X, y, sample_weight, reading)
    if not problem.one_output:
        raise ValueError(f"y has shape {problem.examples.y.shape}; a path is for one target")
    return problem
