"""Boosting rounds, re-weighting sweeps and stopping: moments in, weights out.

Knows nothing of what a voter is, nor which penalty it has. The rounds run in `_core.Rounds`, which comes
back here for a Gram column, for a sweep, and now and then for news and a chance to be interrupted.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace

import numpy as np

from .. import _core
from ..common.checks import at_least, not_negative, one_of
from ..common.progress import Callback
from ..moments.moments import Moments
from .penalties import Penalty, make_penalty
from .reweight import reweighted

REFRESH_EVERY = 10_000  # rounds, after which edges are computed anew: rounding would pile up
VOTERS_AT_A_TIME = 30_000_000  # voters rated between two chances to interrupt
LEAST_PATIENCE = 50  # rounds between two looks at the validation risks, at least: a look has its price
LEAST_TOL = 1e-15  # below this a decrease is rounding
LEAST_ETA = 1e-12  # a voter whose centred second moment is smaller, relatively, is constant
EDGE, WEIGHT, TOTAL, RISK, OBJECTIVE, VALIDATION_RISK = range(6)  # columns of the kernel's log

MODES = ("corrective", "forward")
SOLVE = "solve"  # in place of a number of sweeps
FINAL_REASONS = ("converged", "patience")  # more rounds would change nothing


@dataclass
class Sweep:
    """Weights that a re-weighting sweep gave after a round."""

    round: int
    voter: np.ndarray
    total: np.ndarray


@dataclass
class Trace:
    """Every weight that a run gave, in order: the ensemble after any round can be had from it."""

    voter: np.ndarray  # of each round
    total: np.ndarray  # the weight it then had
    sweeps: list[Sweep]
    first_intercept: float
    centre: dict[int, float]  # by how much the intercept falls when a voter's weight rises by 1
    first_weight: np.ndarray | None = None  # None: zeros

    def updates(self, round: int) -> tuple[np.ndarray, np.ndarray]:
        """Voters whose weight changed in a round (counted from 1), in order, and their new weights."""
        first = bisect_left(self.sweeps, round, key=lambda sweep: sweep.round)
        swept = self.sweeps[first : bisect_right(self.sweeps, round, key=lambda sweep: sweep.round)]
        return (
            np.concatenate([self.voter[round - 1 : round], *(sweep.voter for sweep in swept)]),
            np.concatenate([self.total[round - 1 : round], *(sweep.total for sweep in swept)]),
        )

    def all_updates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Voters whose weight changed, in order, their new weights, and how many changes each round ends with."""
        voters, totals, first = [], [], 0
        end = np.arange(1, len(self.voter) + 1)
        for sweep in self.sweeps:
            voters += [self.voter[first : sweep.round], sweep.voter]
            totals += [self.total[first : sweep.round], sweep.total]
            end[sweep.round - 1 :] += len(sweep.voter)
            first = sweep.round
        return np.concatenate([*voters, self.voter[first:]]), np.concatenate([*totals, self.total[first:]]), end

    def centres(self, n_voters: int) -> np.ndarray:
        """`centre` of every voter; zero for those that were never drawn."""
        centre = np.zeros(n_voters)
        centre[list(self.centre)] = list(self.centre.values())
        return centre

    def weights_at(self, round: int, n_voters: int) -> np.ndarray:
        """The weight of every voter after a round."""
        weight = np.zeros(n_voters) if self.first_weight is None else self.first_weight.copy()
        first = 0
        for sweep in [*self.sweeps, Sweep(round, self.voter[:0], self.total[:0])]:
            last = min(round, sweep.round)
            weight[self.voter[first:last]] = self.total[first:last]  # of several the last counts
            if sweep.round <= round:
                weight[sweep.voter] = sweep.total
            first = last
        return weight


@dataclass
class Progress:
    """Where a run stands: enough to go on from there, bit for bit, with the same moments."""

    weight: np.ndarray
    voter: np.ndarray
    log: np.ndarray
    sweeps: list[Sweep]
    objective: float
    edges: list[np.ndarray]  # on the training rows (slopes), then on the validation rows if any
    risks: list[tuple[float, float]]  # risk and mean residual of each
    stop_reason: str


@dataclass(frozen=True)
class Schedule:
    """When to sweep, to report and to stop."""

    max_rounds: int = 10_000
    tol: float = 1e-7
    reweight_every: int | None = None
    reweight_sweeps: int | str = 1  # or SOLVE
    patience: int = 50
    max_seconds: float | None = None
    callback: Callback | None = None
    callback_every: int = 100

    def __post_init__(self) -> None:
        for name in ("max_rounds", "patience", "callback_every"):
            at_least(name, getattr(self, name), 1)
        if isinstance(self.reweight_sweeps, str):
            if self.reweight_sweeps != SOLVE:
                raise ValueError(
                    f"reweight_sweeps={self.reweight_sweeps!r} is not known; give a whole number, or {SOLVE!r}"
                )
        else:
            at_least("reweight_sweeps", self.reweight_sweeps, 1)
        if self.reweight_every is not None:
            at_least("reweight_every", self.reweight_every, 1)
        not_negative("tol", self.tol)
        if self.max_seconds is not None:
            not_negative("max_seconds", self.max_seconds)

    def share(self, seconds_gone: float, n_left: int) -> Schedule:
        """The schedule of the next of several runs that share the time."""
        if self.max_seconds is None:
            return self
        return replace(self, max_seconds=max(0.0, self.max_seconds - seconds_gone) / n_left)

    def next_pause(self, round: int) -> int:
        """The next round after which something is to be done."""
        steps = [REFRESH_EVERY, self.reweight_every, self.callback_every if self.callback else None]
        return min([self.max_rounds, *(round + step - round % step for step in steps if step)])


@dataclass
class Boosted:
    """The outcome of `boost`.

    Attributes
    ----------
    weight : array of shape (K,)
        Weight of every voter, at the best round where there is a validation set.
    intercept : float
    edge : array of shape (K,)
        Edge of every voter with these weights.
    risk, objective : float
    dual_gap : float
        A bound on the distance of the objective from its minimum; NaN where none is known.
    violation : float
        The largest distance of an edge from what the conditions of optimality want it to be; NaN in forward mode.
    n_rounds : int
        Rounds behind `weight`.
    history : dict of arrays, one entry a round
        voter, edge, weight, risk, objective and, with a validation set, validation_risk.
    stop_reason : str
        "max_rounds", "converged", "patience", "max_seconds" or "callback".
    trace : Trace
        The weights round by round.
    progress : Progress
        Lets a later call go on from here.
    """

    weight: np.ndarray
    intercept: float
    edge: np.ndarray
    risk: float
    objective: float
    dual_gap: float
    violation: float
    n_rounds: int
    history: dict[str, np.ndarray]
    stop_reason: str
    trace: Trace = field(repr=False)
    progress: Progress = field(repr=False)


def boost(
    moments: Moments,
    penalty: str | Penalty | None = None,
    *,
    reg_lambda: float | None = None,
    alpha_max: float = 0.1,
    mode: str = "corrective",
    max_rounds: int = 10_000,
    tol: float = 1e-7,
    fit_intercept: bool = False,
    reweight_every: int | None = None,
    reweight_sweeps: int | str = 1,
    validation: Moments | None = None,
    patience: int = 50,
    output: int = 0,
    max_seconds: float | None = None,
    callback: Callback | None = None,
    callback_every: int = 100,
    resume: Progress | None = None,
) -> Boosted:
    """Learn the weights of an ensemble from moments.

    Each round takes the voter whose update decreases the objective most; of equal ones the first.

    Parameters
    ----------
    moments : Moments
        Of the training rows.
    penalty : None, "l1", "l2", "linf" or a penalty object
    reg_lambda, alpha_max : float
        Strength of the penalty, where it is given by its name; l1 and l2 need a lambda.
    mode : {"corrective", "forward"}
        A voter drawn again is re-weighted, or a second copy of it is added.
    max_rounds : int
    tol : float
        Stop when no voter's update decreases the objective by more than tol**2 * mean(y**2) (y centred where
        there is an intercept): no voter would then move by more than tol times the size of y. For the optimum to ten
        digits of the risk give 1e-12.
    fit_intercept : bool
        An unpenalised constant, always at its optimum.
    reweight_every : int, optional
        Sweep over the voters of the ensemble after every so many rounds.
    reweight_sweeps : int or "solve"
        Sweeps at a time; "solve": all weights of the ensemble are solved for at once, which reaches the optimum in far
        fewer rounds, and pays where there are no more than a few hundred voters.
    validation : Moments, optional
        Same voters on other rows: the weights returned are those of the round with the least risk there.
    patience : int
        Rounds without a lower validation risk after which to stop.
    output : int
        Which target, where the moments have several.
    max_seconds : float, optional
    callback : callable, optional
        Called as callback(round, risk, validation_risk) every `callback_every` rounds; a true answer stops.
    resume : Progress, optional
        `Boosted.progress` of an earlier call with the same arguments and fewer rounds.
    """
    if reg_lambda is None and penalty in ("l1", "l2"):
        raise ValueError(f"penalty={penalty!r} needs a reg_lambda, such as 0.01")
    schedule = Schedule(
        max_rounds, tol, reweight_every, reweight_sweeps, patience, max_seconds, callback, callback_every
    )
    return run_rounds(
        moments,
        make_penalty(penalty, 0.0 if reg_lambda is None else reg_lambda, alpha_max),
        schedule,
        mode=mode,
        fit_intercept=fit_intercept,
        validation=validation,
        output=output,
        resume=resume,
    )


def run_rounds(
    moments: Moments,
    penalty: Penalty,
    schedule: Schedule,
    *,
    mode: str,
    fit_intercept: bool,
    validation: Moments | None = None,
    output: int = 0,
    resume: Progress | None = None,
    start_weight: np.ndarray | None = None,
) -> Boosted:
    """`boost` with its arguments in the package's own types; the rounds may start from any weights."""
    one_of("mode", mode, MODES)
    if not isinstance(moments, Moments):
        raise TypeError(f"boost takes Moments, not {type(moments).__name__}; make them by moments_from_matrix(H, y)")
    if not 0 <= output < moments.n_outputs:
        raise ValueError(f"output={output!r} is not one of the {moments.n_outputs} targets, counted from 0")
    if validation is not None and validation.product_sum.shape != moments.product_sum.shape:
        raise ValueError(
            f"the validation moments are of {validation.n_voters} voters and {validation.n_outputs} outputs, those for "
            f"training of {moments.n_voters} and {moments.n_outputs}; make both with the same voters and targets"
        )
    run = _Run(moments, penalty, mode, fit_intercept, validation, output)
    if start_weight is not None:
        run.start(start_weight)
    if resume is not None:
        run.restore(resume)
    run.go(schedule)
    return run.result()


class _Rows:
    """One set of rows as the kernels see it: edges that follow the weights."""

    def __init__(self, moments: Moments, output: int, centre: np.ndarray, intercept: float) -> None:
        total = moments.total_weight
        self.cache = moments.gram
        self.mean = moments.voter_sum / total
        self.eta = moments.voter_square / total
        target_mean = moments.target_sum[output] / total
        intercept -= float(moments.origin[output])  # like the sums, from there on
        self.first_edge = moments.product_sum[:, output] / total - intercept * self.mean
        square = moments.target_square[output] / total
        self.first_risk = max(0.0, square - intercept * (2.0 * target_mean - intercept))
        self.first_residual_mean = target_mean - intercept
        self.edge = self.first_edge.copy()
        self.kernel = _core.Edges(
            self.edge, self.mean, self.eta, centre, self.cache.address, self.cache.less, self.cache.less_dtype.itemsize,
            self.cache.stamp, self.cache.clock, total, self.cache.counts, self.first_risk, self.first_residual_mean,
        )  # fmt: skip

    def set_weights(self, weight: np.ndarray) -> None:
        """Compute edges and risk anew."""
        self.restore(self.first_edge, (self.first_risk, self.first_residual_mean))
        for voter in np.flatnonzero(weight).tolist():
            self.cache.fetch(voter)
            self.kernel.move(voter, weight[voter])

    def restore(self, edge: np.ndarray, risk: tuple[float, float]) -> None:
        self.edge[:] = edge
        self.kernel.risk, self.kernel.residual_mean = risk


class _Run:
    """The state of one run of rounds."""

    def __init__(
        self,
        moments: Moments,
        penalty: Penalty,
        mode: str,
        fit_intercept: bool,
        validation: Moments | None,
        output: int,
    ) -> None:
        n_voters, total = moments.n_voters, moments.total_weight
        self.moments = moments
        self.penalty = penalty
        self.corrective = mode == "corrective"
        self.fit_intercept = fit_intercept
        self.centre = moments.voter_sum / total if fit_intercept else np.zeros(n_voters)
        self.first_intercept = 0.0
        if fit_intercept:
            self.first_intercept = float(moments.origin[output] + moments.target_sum[output] / total)
        self.train = _Rows(moments, output, self.centre, self.first_intercept)
        self.validation = None if validation is None else _Rows(validation, output, self.centre, self.first_intercept)
        self.rows = [self.train] if self.validation is None else [self.train, self.validation]
        eta = self.train.eta - self.centre * self.centre
        is_candidate = eta > LEAST_ETA * self.train.eta
        inverse = np.divide(1.0, eta + penalty.ridge, out=np.zeros(n_voters), where=is_candidate)
        self.weight = np.zeros(n_voters)
        self.anchor = self.weight if self.corrective else np.zeros(n_voters)  # what an update replaces
        self.kernel = _core.Rounds(
            self.train.kernel, None if self.validation is None else self.validation.kernel, self.weight, self.anchor,
            eta, inverse, penalty.ridge, penalty.shrink, penalty.cap, self.train.first_risk, moments.n_threads,
        )  # fmt: skip
        self.n_rounds = 0
        self.voter = np.empty(0, dtype=np.int64)
        self.log = np.empty((0, 6))
        self.sweeps: list[Sweep] = []
        self.first_weight: np.ndarray | None = None
        self.first_objective = self.train.first_risk
        self.stop_reason = ""
        self.n_told = 0  # rounds of which the callback knows
        self.n_seen = self.best_round = 0  # on the validation rows
        self.best_risk = np.inf if self.validation is None else self.validation.first_risk

    def start(self, weight: np.ndarray) -> None:
        """Begin at these weights instead of zeros."""
        self.first_weight = weight.copy()
        self.weight[:] = weight
        self._compute_edges()
        self.first_objective = self.kernel.objective = self.train.kernel.risk + self.penalty.value(weight)
        if self.validation is not None:
            self.best_risk = self.validation.kernel.risk

    def _compute_edges(self) -> None:
        """Edges, anew."""
        for rows in self.rows:
            rows.set_weights(self.weight)
        self._make_slopes()

    def _make_slopes(self) -> None:
        """Edges of the training rows become slopes, which rounds rate."""
        self.train.edge -= self.penalty.ridge * self.anchor

    def _make_edges(self) -> None:
        """And edges again."""
        self.train.edge += self.penalty.ridge * self.anchor

    def go(self, schedule: Schedule) -> None:
        """Rounds until something says stop."""
        deadline = np.inf if schedule.max_seconds is None else time.monotonic() + schedule.max_seconds
        floor = max(schedule.tol, LEAST_TOL) ** 2 * self.train.first_risk
        at_a_time = max(1, VOTERS_AT_A_TIME // max(1, len(self.weight)))
        if self.validation is not None:  # rounds after the last that counts would be in vain
            at_a_time = min(at_a_time, max(schedule.patience, LEAST_PATIENCE))
        while not self.stop_reason:
            until = min(schedule.next_pause(self.n_rounds), self.n_rounds + at_a_time)
            if not self._rounds(until, floor, deadline):
                self.stop_reason = "converged"
            if schedule.reweight_every and self.n_rounds == until and until % schedule.reweight_every == 0:
                self._reweight(schedule.reweight_sweeps)
            if self.n_rounds == until and until % REFRESH_EVERY == 0:
                self._refresh()
            self._news(schedule)
            if not self.stop_reason and self.n_rounds >= schedule.max_rounds:
                self.stop_reason = "max_rounds"
            if not self.stop_reason and time.monotonic() > deadline:
                self.stop_reason = "max_seconds"

    def _rounds(self, until: int, floor: float, deadline: float) -> bool:
        """Rounds up to number `until`, or the deadline; false when nothing is left to gain before that."""
        if until > len(self.log):
            room = max(until, 2 * len(self.log))
            self.voter = np.concatenate([self.voter, np.empty(room - len(self.log), dtype=np.int64)])
            self.log = np.concatenate([self.log, np.full((room - len(self.log), 6), np.nan)])
        why = _core.Rounds.NEEDS_COLUMN
        while why == _core.Rounds.NEEDS_COLUMN:
            self.n_rounds, why, voter = self.kernel.run(self.voter, self.log, self.n_rounds, until, floor)
            if why == _core.Rounds.NEEDS_COLUMN:
                if time.monotonic() > deadline:
                    return True
                self._fetch(voter)
        return why != _core.Rounds.CONVERGED

    def _fetch(self, voter: int) -> None:
        for rows in self.rows:
            rows.cache.fetch(voter)

    def _reweight(self, sweeps: int | str) -> None:
        """Re-weight the voters of the ensemble (section 3.1 of the paper)."""
        if isinstance(sweeps, str):
            self.sweeps.append(self._solve())
        else:
            self.sweeps += [self._sweep() for _ in range(sweeps)]
        self.kernel.objective = self.train.kernel.risk + self.penalty.value(self.weight)
        self.log[self.n_rounds - 1, RISK] = self.train.kernel.risk
        self.log[self.n_rounds - 1, OBJECTIVE] = self.kernel.objective
        if self.validation is not None:
            self.log[self.n_rounds - 1, VALIDATION_RISK] = self.validation.kernel.risk

    def _sweep(self) -> Sweep:
        """Each voter in turn."""
        active = np.count_nonzero(self.weight)
        voter, total = np.empty(active, dtype=np.int64), np.empty(active)
        n_logged, here = self.kernel.sweep(0, voter, total, 0)
        while here < len(self.weight):
            self._fetch(here)
            n_logged, here = self.kernel.sweep(here, voter, total, n_logged)
        return Sweep(self.n_rounds, voter[:n_logged].copy(), total[:n_logged].copy())

    def _solve(self) -> Sweep:
        """All voters at once."""
        self._make_edges()
        weight = reweighted(self.moments, self.penalty, self.weight, self.train.edge, fit_intercept=self.fit_intercept)
        moved = np.flatnonzero(weight != self.weight)
        for voter in moved.tolist():
            self._fetch(voter)
            for rows in self.rows:
                rows.kernel.move(voter, weight[voter] - self.weight[voter])
        self.weight[:] = weight
        self._make_slopes()
        self.kernel.rerate()
        return Sweep(self.n_rounds, moved, weight[moved])

    def _refresh(self) -> None:
        drifted = self.train.kernel.risk
        self._compute_edges()
        self.kernel.objective += self.train.kernel.risk - drifted
        self.kernel.rerate()

    def _news(self, schedule: Schedule) -> None:
        """Stop for want of progress on the validation rows, or at the wish of the callback."""
        if self.validation is not None:
            self._watch(schedule.patience)
        is_time = self.n_rounds % schedule.callback_every == 0 or self.stop_reason
        if schedule.callback is not None and is_time and self.n_rounds > self.n_told:
            self.n_told = self.n_rounds
            risk, validation_risk = self.log[self.n_rounds - 1, [RISK, VALIDATION_RISK]]
            wants_stop = schedule.callback(
                self.n_rounds, float(risk), None if self.validation is None else float(validation_risk)
            )
            if wants_stop and not self.stop_reason:
                self.stop_reason = "callback"

    def _watch(self, patience: int) -> None:
        """Find the best round on the validation rows, and cut the run short `patience` rounds after it."""
        for risk in self.log[self.n_seen : self.n_rounds, VALIDATION_RISK].tolist():
            self.n_seen += 1
            if risk < self.best_risk:
                self.best_round, self.best_risk = self.n_seen, risk
            elif self.n_seen - self.best_round >= patience:
                self.n_rounds = self.n_seen
                self.stop_reason = "patience"
                break

    def restore(self, progress: Progress) -> None:
        self.weight[:] = progress.weight
        self.voter, self.log, self.sweeps = progress.voter.copy(), progress.log.copy(), list(progress.sweeps)
        self.n_rounds = self.n_told = len(self.voter)
        self.kernel.objective = progress.objective
        self.stop_reason = progress.stop_reason if progress.stop_reason in FINAL_REASONS else ""
        for rows, edge, risk in zip(self.rows, progress.edges, progress.risks, strict=True):
            rows.restore(edge, risk)
        if self.validation is not None:
            self._watch(self.n_rounds + 1)

    def result(self) -> Boosted:
        progress = Progress(
            weight=self.weight.copy(),
            voter=self.voter[: self.n_rounds].copy(),
            log=self.log[: self.n_rounds].copy(),
            sweeps=[sweep for sweep in self.sweeps if sweep.round <= self.n_rounds],
            objective=self.kernel.objective,
            edges=[rows.edge.copy() for rows in self.rows],
            risks=[(rows.kernel.risk, rows.kernel.residual_mean) for rows in self.rows],
            stop_reason=self.stop_reason,
        )
        log, best = progress.log, self.n_rounds
        drawn = np.unique(np.concatenate([progress.voter, *(sweep.voter for sweep in progress.sweeps)]))
        trace = Trace(
            voter=progress.voter,
            total=log[:, TOTAL].copy(),
            sweeps=progress.sweeps,
            first_intercept=self.first_intercept,
            centre=dict(zip(drawn.tolist(), self.centre[drawn].tolist(), strict=True)),
            first_weight=self.first_weight,
        )
        history = {
            "voter": progress.voter,
            "edge": log[:, EDGE],
            "weight": log[:, WEIGHT],
            "risk": log[:, RISK],
            "objective": log[:, OBJECTIVE],
        }
        objective = log[-1, OBJECTIVE] if best else self.first_objective
        self._make_edges()
        if self.validation is not None:
            history["validation_risk"] = log[:, VALIDATION_RISK]
            best = self.best_round
            self.weight[:] = trace.weights_at(best, len(self.weight))
            self.train.set_weights(self.weight)
            objective = log[best - 1, OBJECTIVE] if best else self.first_objective
        risk = max(0.0, self.train.kernel.risk)
        return Boosted(
            weight=self.weight,
            intercept=self.first_intercept - _core.dot(self.centre, self.weight),
            edge=self.train.edge,
            risk=risk,
            objective=float(objective),
            dual_gap=self.penalty.gap(self.weight, self.train.edge, risk) if self.corrective else np.nan,
            violation=self.penalty.violation(self.weight, self.train.edge) if self.corrective else np.nan,
            n_rounds=best,
            history=history,
            stop_reason=self.stop_reason,
            trace=trace,
            progress=progress,
        )
