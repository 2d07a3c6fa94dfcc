"""The best ensemble under each strength of a penalty, from the strongest to the weakest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..boosting.booster import Boosted, Schedule, run_rounds
from ..boosting.penalties import Penalty
from ..boosting.reweight import reweighted
from ..common.checks import at_least, one_of, positive
from ..common.progress import steps_of
from ..common.threads import resolve_threads, threads_for
from ..data.examples import examples_of, labels_of, one_vs_rest, real_targets
from ..data.frames import FrameSchema, learn_schema
from ..model.ensemble import Ensemble
from ..moments.moments import DEFAULT_CACHE_BYTES, Moments, stump_moments
from ..voters.stumps import Stumps, candidate_stumps
from .search import REACH, Candidate, check_strengths, risk_of_constants, strengths_of

ROUNDS_AT_A_TIME = 300  # between two times that all weights are solved for
PATH_REACH = REACH | {"l1": 1e-3}  # as other libraries: further down nearly all voters are active
LEAST_TOL = 1e-10  # of the rounds: they must find every voter that matters for the gap


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
            info={"parameters": {"penalty": self.penalty, name: float(self.strength[number])}},
        )

    def plot(self, feature: int | str | None = None, ax: Any = None) -> Any:
        """Draw the weights along the path or, given a feature, its shape function under several strengths.

        Needs matplotlib.
        """
        from .plots import plot_shapes, plot_weights

        return plot_weights(self, ax) if feature is None else plot_shapes(self, feature, ax)


def regularization_path(
    X: Any,
    y: Any,
    penalty: str = "l1",
    *,
    strengths: int | Sequence[float] = 100,
    tol: float = 1e-6,
    max_rounds: int = 100_000,
    sample_weight: Any = None,
    thresholds: int | str = 255,
    spacing: str = "quantile",
    fit_intercept: bool = True,
    categorical_features: Any = "auto",
    min_category_count: int = 5,
    cache_bytes: int = DEFAULT_CACHE_BYTES,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> RegularizationPath:
    """Find the best ensemble under each of many strengths of a penalty; each starts from the one before.

    Parameters
    ----------
    X : array, list of rows, pandas or polars frame, or pyarrow table, of shape (m, d)
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
    thresholds, spacing, fit_intercept, categorical_features, min_category_count, cache_bytes, n_jobs, verbose
        As in `QuadBoostRegressor`.
    """
    one_of("penalty", penalty, ("l1", "l2", "linf"))
    check_strengths("strengths", strengths)
    positive("tol", tol)
    at_least("max_rounds", max_rounds, 1)
    at_least("min_category_count", min_category_count, 1)
    targets, classes = _targets(y)
    given = examples_of(X, targets, sample_weight)
    schema = learn_schema(
        given.X,
        categorical_features=categorical_features,
        min_category_count=min_category_count,
        sample_weight=given.all_weights(),
    )
    rows = given.rows(schema, "regularization_path")
    n_threads = threads_for(rows.X.size, resolve_threads(n_jobs))
    stumps = candidate_stumps(
        rows.X, rows.weight, thresholds=thresholds, spacing=spacing, n_threads=n_threads,
        n_levels={f: len(levels) for f, levels in schema.categories.items()},
    )  # fmt: skip
    codes = stumps.code(rows.X, n_threads)
    moments = stump_moments(stumps, codes, rows.y, rows.weight, cache_bytes=cache_bytes, n_threads=n_threads)
    values = strengths_of(penalty, strengths, moments, fit_intercept, PATH_REACH)
    points, best = [], None
    with steps_of(verbose, len(values), "strength") as tell:
        for value in values.tolist():
            best = optimum(
                moments, Candidate(penalty, value).make(), fit_intercept=fit_intercept, tol=tol, max_rounds=max_rounds,
                start=best,
            )  # fmt: skip
            points.append(_Point.of(best))
            tell()
    return _path_of(points, penalty, values, stumps, classes, schema)


class _Point(NamedTuple):
    """What is kept of one strength."""

    voter: np.ndarray
    weight: np.ndarray
    intercept: float
    risk: float
    objective: float
    dual_gap: float

    @classmethod
    def of(cls, best: Boosted) -> _Point:
        voter = np.flatnonzero(best.weight)
        return cls(voter, best.weight[voter], best.intercept, best.risk, best.objective, best.dual_gap)


def _path_of(
    points: Sequence[_Point],
    penalty: str,
    strength: np.ndarray,
    stumps: Stumps,
    classes: np.ndarray | None,
    schema: FrameSchema,
) -> RegularizationPath:
    """The points side by side, over the voters that any of them has."""
    voters = np.unique(np.concatenate([point.voter for point in points]))
    weight = np.zeros((len(points), len(voters)))
    for row, point in zip(weight, points, strict=True):
        row[np.searchsorted(voters, point.voter)] = point.weight
    feature, kind, threshold = stumps.describe(voters)
    intercept, risk, objective, dual_gap = np.array([point[2:] for point in points]).T
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
        classes=classes,
        schema=schema,
    )


def optimum(
    moments: Moments,
    penalty: Penalty,
    *,
    fit_intercept: bool,
    tol: float,
    max_rounds: int,
    start: Boosted | None = None,
) -> Boosted:
    """Weights whose dual gap is at most tol times the risk without voters: rounds find voters, then all are solved for.

    Parameters
    ----------
    start : Boosted, optional
        The outcome for the same moments and another strength.
    """
    constant = moments.origin + moments.target_sum / moments.total_weight
    enough = tol * float(risk_of_constants(moments, constant if fit_intercept else np.zeros(1))[0])
    schedule = Schedule(max_rounds=min(ROUNDS_AT_A_TIME, max_rounds), tol=LEAST_TOL)
    weight = None
    if start is not None:
        weight = reweighted(moments, penalty, start.weight, start.edge, fit_intercept=fit_intercept)
    n_rounds = 0
    while True:
        best = run_rounds(
            moments, penalty, schedule, mode="corrective", fit_intercept=fit_intercept, start_weight=weight
        )
        n_rounds += best.n_rounds
        if best.dual_gap <= enough or best.n_rounds == 0 or n_rounds >= max_rounds:
            return best
        weight = reweighted(moments, penalty, best.weight, best.edge, fit_intercept=fit_intercept)


def _targets(y: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets of shape (m, 1), and the classes where y holds labels."""
    if np.asarray(y).dtype.kind not in "OSUb":
        targets = real_targets(y)
        if targets.ndim != 1:
            raise ValueError(f"y has shape {targets.shape}; a path is for one target")
        return targets[:, None], None
    classes, position = np.unique(labels_of(y), return_inverse=True)
    if len(classes) != 2:
        raise ValueError(f"y holds {len(classes)} classes; a path is for two, or for numbers")
    return one_vs_rest(position, classes), classes
