"""A fit, without scikit-learn: from a real matrix and targets to stumps and their weights."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..boosting.booster import MODES, Boosted, Progress, Schedule, run_rounds
from ..boosting.penalties import auto_lambda, make_penalty
from ..common.checks import at_least, one_of
from ..common.threads import threads_for
from ..data.rows import Rows
from ..moments.moments import Moments, stump_moments
from ..voters.kinds import step_values
from ..voters.stumps import Stumps, candidate_stumps, check_thresholds


@dataclass(frozen=True)
class Options:
    """What a fit can be told; see `boost` and `candidate_stumps`."""

    penalty: str | None
    reg_lambda: float | str
    alpha_max: float
    mode: str
    fit_intercept: bool
    thresholds: int | str
    spacing: str
    cache_bytes: int
    n_threads: int
    schedule: Schedule

    def __post_init__(self) -> None:
        if isinstance(self.reg_lambda, str):
            one_of("reg_lambda", self.reg_lambda, ("auto", "theory"))
            if self.reg_lambda == "theory" and self.penalty not in ("l1", "l2"):
                raise ValueError(f"reg_lambda='theory' is for the penalties 'l1' and 'l2', not for {self.penalty!r}")
        make_penalty(self.penalty, 0.0 if isinstance(self.reg_lambda, str) else self.reg_lambda, self.alpha_max)
        one_of("mode", self.mode, MODES)
        one_of(
            "fit_intercept",
            bool(self.fit_intercept) if self.fit_intercept in (0, 1) else self.fit_intercept,
            (True, False),
        )
        check_thresholds(self.thresholds, self.spacing)
        at_least("cache_bytes", self.cache_bytes, 1)


@dataclass(frozen=True)
class Trained:
    """The outcome of a fit, one `Boosted` and one lambda per output."""

    stumps: Stumps
    boosted: list[Boosted]
    reg_lambda: list[float]
    importance: np.ndarray


def train(
    rows: Rows,
    options: Options,
    *,
    validation: Rows | None = None,
    n_levels: Mapping[int, int] | None = None,
    resume: list[Progress] | None = None,
    known: tuple[Stumps, Moments] | None = None,
) -> Trained:
    """Fit one ensemble per output; all outputs share the stumps and their Gram columns.

    `known` are the stumps and moments of the rows, where they were made before.
    """
    n_threads = threads_for(rows.X.size, options.n_threads)
    cache_bytes = options.cache_bytes if validation is None else options.cache_bytes // 2
    stumps = known[0] if known is not None else candidate_stumps(
        rows.X, rows.weight, thresholds=options.thresholds, spacing=options.spacing, n_levels=n_levels,
        n_threads=n_threads,
    )  # fmt: skip

    def moments_of(part: Rows) -> Moments:
        codes = stumps.code(part.X, n_threads)
        return stump_moments(stumps, codes, part.y, part.weight, cache_bytes=cache_bytes, n_threads=n_threads)

    moments = known[1] if known is not None else moments_of(rows)
    validation_moments = None if validation is None else moments_of(validation)
    reg_lambda, boosted = [], []
    start = time.monotonic()
    for output in range(moments.n_outputs):
        reg_lambda.append(_resolve_lambda(options, rows, moments, output, sorted(n_levels or {})))
        boosted.append(
            run_rounds(
                moments,
                make_penalty(options.penalty, reg_lambda[output], options.alpha_max),
                options.schedule.share(time.monotonic() - start, moments.n_outputs - output),
                mode=options.mode,
                fit_intercept=options.fit_intercept,
                validation=validation_moments,
                output=output,
                resume=None if resume is None else resume[output],
            )
        )
    weight = np.column_stack([result.weight for result in boosted])
    return Trained(stumps, boosted, reg_lambda, _importance(stumps, moments, weight))


def _resolve_lambda(options: Options, rows: Rows, moments: Moments, output: int, categorical: list[int]) -> float:
    if options.reg_lambda == "auto":
        target_scale = float(np.sqrt(moments.target_risk(options.fit_intercept)[output]))
        return auto_lambda(options.penalty, options.mode, rows.n_examples, target_scale, moments.n_voters)
    if options.reg_lambda == "theory":
        return _theory_lambda(options, rows, moments, output, categorical)
    return float(options.reg_lambda)


def _theory_lambda(options: Options, rows: Rows, moments: Moments, output: int, categorical: list[int]) -> float:
    """What the risk bound wants; under l2 that depends on the weights it leads to."""
    from ..bounds import rademacher_complexity, theory_lambda

    def weights_under(reg_lambda: float) -> np.ndarray:
        penalty = make_penalty(options.penalty, reg_lambda)
        schedule = replace(options.schedule, callback=None)
        return run_rounds(
            moments, penalty, schedule, mode=options.mode, fit_intercept=options.fit_intercept, output=output
        ).weight

    complexity = rademacher_complexity(rows.X, categorical_features=categorical, n_jobs=options.n_threads)
    return theory_lambda(options.penalty, complexity.value, weights_under)


def _importance(stumps: Stumps, moments: Moments, weight: np.ndarray) -> np.ndarray:
    """How much each feature moves the scores: the standard deviation of what it adds, as a share of their sum."""
    spread = np.zeros(stumps.n_features)
    active = np.flatnonzero(weight.any(axis=1))
    for feature in np.unique(np.searchsorted(stumps.voter_start, active, side="right") - 1).tolist():
        n_cuts = int(stumps.n_cuts[feature])
        own = weight[stumps.voter_start[feature] : stumps.voter_start[feature + 1]]
        values = step_values(own[:n_cuts], bool(stumps.is_level[feature]), own[n_cuts:].sum(axis=0))
        share = _mass_of_bins(stumps, moments, feature) / moments.total_weight
        share = share[:, None]
        variance = (share * values * values).sum(axis=0) - (share * values).sum(axis=0) ** 2
        spread[feature] = np.sqrt(np.maximum(variance, 0.0)).sum()
    return spread / spread.sum() if spread.any() else spread


def _mass_of_bins(stumps: Stumps, moments: Moments, feature: int) -> np.ndarray:
    """The weight of the rows in each bin of a feature, which the sums of its voters tell."""
    first, n_cuts = int(stumps.voter_start[feature]), int(stumps.n_cuts[feature])
    sums = moments.voter_sum[first : first + n_cuts]
    if n_cuts:
        present = moments.voter_square[first]
    else:  # there is an "is missing" voter alone
        present = (moments.total_weight - moments.voter_sum[first]) / 2
    missing = moments.total_weight - present
    if stumps.is_level[feature]:
        level = (present + sums) / 2
        return np.concatenate([[present - level.sum()], level, [missing]])
    below = np.concatenate([[0.0], (present - sums) / 2, [present]])
    return np.append(below[1:] - below[:-1], missing)


def describe_run(result: Boosted) -> dict[str, Any]:
    """The figures of one output that are worth keeping with a model."""
    figures: dict[str, Any] = {
        "rounds": result.n_rounds,
        "risk": result.risk,
        "objective": result.objective,
        "stop": result.stop_reason,
    }
    figures |= {name: value for name in ("dual_gap", "violation") if np.isfinite(value := getattr(result, name))}
    if "validation_risk" in result.history and result.n_rounds:
        figures["validation_risk"] = float(result.history["validation_risk"][result.n_rounds - 1])
    return figures
