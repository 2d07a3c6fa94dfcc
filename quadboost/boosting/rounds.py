"""One run of boosting rounds: moments in, weights out.

Knows nothing of what a voter is, nor which penalty it has. The rounds run in `_core.Rounds`, which comes
back here for a Gram column, for re-weighting, and now and then to report and for a chance to be interrupted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..common.checks import one_of
from ..moments.gram import Columns
from ..moments.moments import Moments
from .penalties import Penalty, for_each
from .records import EDGE, OBJECTIVE, RISK, TOTAL, VALIDATION_RISK, WEIGHT, Progress, Sweep, Trace
from .result import Boosted
from .reweight import MOST_TOGETHER, reweighted
from .schedule import AUTO, LOOK_EVERY, MAY_CHANGE, REFRESH_EVERY, SOLVE, Schedule

VOTERS_AT_A_TIME = 30_000_000  # voters rated between two chances to interrupt
LEAST_PATIENCE = 50  # rounds between two looks at the validation risks, at least: a look has its price
LEAST_ETA = 1e-12  # a voter whose centred second moment is smaller, relatively, is constant
SAME_SLOPE = 1e-6  # slopes that differ by less, relative to the size of the target, differ by rounding

MODES = ("corrective", "forward")
FINAL_REASONS = ("converged", "patience")  # more rounds would change nothing


def run_rounds(
    moments: Moments, penalty: Penalty, schedule: Schedule, *, mode: str, fit_intercept: bool,
    validation: Moments | None = None, output: int = 0, resume: Progress | None = None,
) -> Boosted:  # fmt: skip
    """`boost` with its arguments in the package's own types."""
    with open_run(
        moments, penalty, mode=mode, fit_intercept=fit_intercept, validation=validation, output=output
    ) as run:
        run.go(schedule, resume)
        return run.result()


@contextmanager
def open_run(
    moments: Moments, penalty: Penalty, *, mode: str, fit_intercept: bool, validation: Moments | None = None,
    output: int = 0,
) -> Iterator[Run]:  # fmt: skip
    """A run that has not begun; it keeps the Gram columns of its moments until it is closed."""
    one_of("mode", mode, MODES)
    if not 0 <= output < moments.n_outputs:
        raise ValueError(f"output={output!r} is not one of the {moments.n_outputs} targets, counted from 0")
    if validation is not None and validation.product_sum.shape != moments.product_sum.shape:
        raise ValueError(
            f"the validation moments are of {validation.n_voters} voters and {validation.n_outputs} outputs, those for "
            f"training of {moments.n_voters} and {moments.n_outputs}; make both with the same voters and targets"
        )
    with ExitStack() as stack:
        columns = [stack.enter_context(rows.gram.lease()) for rows in (moments, validation) if rows is not None]
        yield Run(moments, validation, columns, penalty, mode, fit_intercept, output)


class _Rows:
    """One set of rows as the kernels see it: slopes that follow the weights."""

    def __init__(self, moments: Moments, columns: Columns, output: int, centre: np.ndarray, intercept: float) -> None:
        total = moments.total_weight
        self.columns = columns
        self.mean = moments.voter_sum / total
        self.eta = moments.voter_square / total
        target_mean = moments.target_sum[output] / total
        intercept -= float(moments.origin[output])  # like the sums, from there on
        self.first_edge = moments.product_sum[:, output] / total - intercept * self.mean
        square = moments.target_square[output] / total
        self.first_risk = max(0.0, square - intercept * (2.0 * target_mean - intercept))
        self.first_residual_mean = target_mean - intercept
        self.slope = self.first_edge.copy()
        self.kernel = _core.Slopes(
            self.slope, self.mean, self.eta, centre, columns.store, total, self.first_risk, self.first_residual_mean
        )

    def set_weights(self, weight: np.ndarray) -> None:
        """Compute risk and edges anew; the edges are slopes where there is no ridge."""
        self.restore(self.first_edge, (self.first_risk, self.first_residual_mean))
        voters = np.flatnonzero(weight)
        self.move(voters, weight[voters])

    def move(self, voters: np.ndarray, delta: np.ndarray) -> None:
        """Change the weights of some voters."""
        done = 0
        while done < len(voters):
            self.columns.fetch(int(voters[done]))
            done = self.kernel.move(voters, delta, done)

    def restore(self, slope: np.ndarray, risk: tuple[float, float]) -> None:
        self.slope[:] = slope
        self.kernel.risk, self.kernel.residual_mean = risk


class Mark(NamedTuple):
    """Where a run stood, to go back to: its weights that are not zero, and how much it had done."""

    voter: np.ndarray
    weight: np.ndarray
    n_rounds: int
    n_sweeps: int


class Run:
    """One run of rounds. It can go on under another penalty, from the weights that it has."""

    def __init__(
        self, moments: Moments, validation: Moments | None, columns: list[Columns], penalty: Penalty,
        mode: str, fit_intercept: bool, output: int,
    ) -> None:  # fmt: skip
        n_voters, total = moments.n_voters, moments.total_weight
        self.moments, self.validation_moments = moments, validation
        self.penalty = penalty
        self.schedule = Schedule()
        self.mode = mode
        self.fit_intercept = fit_intercept
        self.output = output
        self.centre = moments.voter_sum / total if fit_intercept else np.zeros(n_voters)
        self.first_intercept = 0.0
        if fit_intercept:
            self.first_intercept = float(moments.origin[output] + moments.target_sum[output] / total)
        self.rows = [_Rows(moments, columns[0], output, self.centre, self.first_intercept)]
        if validation is not None:
            self.rows.append(_Rows(validation, columns[1], output, self.centre, self.first_intercept))
        self.train = self.rows[0]
        self.validation = None if validation is None else self.rows[1]
        self.eta = self.train.eta - self.centre * self.centre
        self.weight = np.zeros(n_voters)
        self.anchor = self.weight if self.corrective else np.zeros(n_voters)  # the weight that an update replaces
        self.kernel = _core.Rounds(
            self.train.kernel, None if self.validation is None else self.validation.kernel,
            self.weight, self.anchor, self.eta, moments.n_threads,
        )  # fmt: skip
        self._set_penalty(penalty)
        self.n_rounds = 0
        self.voter = np.empty(0, dtype=np.int64)
        self.log = np.empty((0, 6))
        self.sweeps: list[Sweep] = []
        self.stop_reason = ""
        self.n_told = 0  # rounds of which the callback knows
        self.n_seen = self.best_round = 0  # on the validation rows
        self.best_risk = np.inf if self.validation is None else self.validation.first_risk
        self.has_warned = False

    @property
    def corrective(self) -> bool:
        return self.mode == "corrective"

    @property
    def has_gap(self) -> bool:
        """Whether there is a bound on what is left to gain."""
        return self.corrective and self.penalty.has_gap

    @property
    def solves(self) -> bool:
        """Whether all weights are solved for at once where that pays."""
        return self.has_gap and self.schedule.reweight_every == AUTO

    @property
    def edge(self) -> np.ndarray:
        """Of every voter on the training rows."""
        return self.train.slope + self.penalty.ridge * self.anchor

    @property
    def risk(self) -> float:
        return max(0.0, self.train.kernel.risk)

    @property
    def n_active(self) -> int:
        return int(np.count_nonzero(self.weight))

    def change(self, penalty: Penalty) -> None:
        """Go on under another penalty."""
        self.train.slope += (self.penalty.ridge - penalty.ridge) * self.anchor
        self._set_penalty(penalty)
        self.stop_reason = ""

    def _set_penalty(self, penalty: Penalty) -> None:
        self.penalty = penalty
        is_candidate = self.eta > LEAST_ETA * self.train.eta
        curve = self.eta + penalty.ridge
        inverse = np.divide(1.0, curve, out=np.zeros(len(curve)), where=is_candidate)
        ridge, shrink, _, _ = penalty.rule(len(curve))
        cap, (lower, upper) = for_each(penalty.cap, len(curve)), penalty.bounds(len(curve))
        least, most = np.empty((2, len(curve) if penalty.differs else 0))
        shrinks = penalty.differs and bool(shrink.any())
        if shrinks:
            shrink = np.ascontiguousarray(shrink)
        self.kernel.set_penalty(curve, inverse, ridge, shrink, -cap, cap, lower, upper, least, most, shrinks)
        self.kernel.objective = self.train.kernel.risk + penalty.value(self.weight)

    def mark(self) -> Mark:
        voter = np.flatnonzero(self.weight)
        return Mark(voter, self.weight[voter], self.n_rounds, len(self.sweeps))

    def back_to(self, mark: Mark) -> None:
        """Undo what was done after the mark."""
        self.weight[:] = 0.0
        self.weight[mark.voter] = mark.weight
        self.n_rounds, self.stop_reason = mark.n_rounds, ""
        del self.sweeps[mark.n_sweeps :]
        self._compute_slopes()
        self._set_penalty(self.penalty)

    def restore(self, progress: Progress) -> None:
        """Go on from where another run stood, if that was a run with the same arguments on the same rows."""
        if not isinstance(progress, Progress):
            raise TypeError(f"resume is the progress of an earlier run, such as boosted.progress, not {progress!r:.60}")
        for name, value in self._settings().items():
            if value != progress.settings[name]:
                raise ValueError(_cannot_go_on(name, progress.settings[name], value))
        if len(progress.voter) > self.schedule.max_rounds:
            raise ValueError(_cannot_go_on("max_rounds", len(progress.voter), self.schedule.max_rounds))
        self.weight[:] = progress.weight
        self._compute_slopes()
        same = SAME_SLOPE * np.sqrt(self.train.first_risk * self.train.eta)
        for name, rows, slope in zip(("moments", "validation"), self.rows, progress.slopes, strict=False):
            if (np.abs(rows.slope - slope) > same).any():
                raise ValueError(_cannot_go_on(name, self, self))
        self.voter, self.log, self.sweeps = progress.voter.copy(), progress.log.copy(), list(progress.sweeps)
        self.n_rounds = self.n_told = len(self.voter)
        self.kernel.objective = progress.objective
        self.stop_reason = progress.stop_reason
        for rows, slope, risk in zip(self.rows, progress.slopes, progress.risks, strict=True):
            rows.restore(slope, risk)
        if self.validation is not None:
            self._watch(self.n_rounds + 1)

    def _settings(self) -> dict[str, Any]:
        """What must be the same when a run goes on."""
        names = {field.name for field in fields(self.schedule)} - set(MAY_CHANGE)
        schedule = {name: getattr(self.schedule, name) for name in sorted(names)}
        if not self.schedule.sweeps_every:
            del schedule["reweight_sweeps"]
        if self.validation is None:
            del schedule["patience"]
        return {
            "moments": self.moments.fingerprint,
            "validation": None if self.validation_moments is None else self.validation_moments.fingerprint,
            "penalty": repr(self.penalty),
            "mode": self.mode,
            "fit_intercept": bool(self.fit_intercept),
            "output": self.output,
            **schedule,
        }

    def go(self, schedule: Schedule, resume: Progress | None = None) -> None:
        """Rounds until something says stop."""
        self.schedule = schedule
        if resume is not None:
            self.restore(resume)
        if self.stop_reason not in FINAL_REASONS:  # after the last round there is nothing to do a second time
            self.stop_reason = "max_rounds" if self.n_rounds >= schedule.max_rounds else ""
        deadline = np.inf if schedule.max_seconds is None else time.monotonic() + schedule.max_seconds
        floor = schedule.least_decrease(self.has_gap) * self.train.first_risk
        at_a_time = max(1, VOTERS_AT_A_TIME // max(1, len(self.weight)))
        if self.validation is not None:  # rounds after the last that counts would be wasted
            at_a_time = min(at_a_time, max(schedule.patience, LEAST_PATIENCE))
        while not self.stop_reason:
            until = min(schedule.next_pause(self.n_rounds, self.has_gap), self.n_rounds + at_a_time)
            if not self._rounds(until, floor, deadline):
                self.stop_reason = "converged"
            if schedule.sweeps_every and self.n_rounds == until and until % schedule.sweeps_every == 0:
                self._reweight()
            if self.n_rounds == until and until % REFRESH_EVERY == 0:
                self._refresh()
            if self.n_rounds == until and until % LOOK_EVERY == 0:
                self._look()
            self._report()
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
        why = _core.Rounds.PAUSED
        while why in (_core.Rounds.NEEDS_COLUMN, _core.Rounds.PAUSED):
            self.n_rounds, why, voter = self.kernel.run(self.voter, self.log, self.n_rounds, until, floor)
            if why in (_core.Rounds.NEEDS_COLUMN, _core.Rounds.PAUSED) and time.monotonic() > deadline:
                return True
            if why == _core.Rounds.NEEDS_COLUMN:
                self._fetch(voter)
        return why != _core.Rounds.CONVERGED

    def _fetch(self, voter: int) -> None:
        for rows in self.rows:
            rows.columns.fetch(voter)

    def _compute_slopes(self) -> None:
        """Risks and slopes, anew."""
        for rows in self.rows:
            rows.set_weights(self.weight)
        self.train.slope -= self.penalty.ridge * self.anchor

    def _refresh(self) -> None:
        drifted = self.train.kernel.risk
        self._compute_slopes()
        self.kernel.objective += self.train.kernel.risk - drifted
        self.kernel.rerate()

    def _look(self) -> None:
        """Stop where little is left to gain, if a gap tells; else see whether it is time to solve for all weights."""
        if self._is_optimal():
            self.stop_reason = "converged"
            return
        n_since = self.n_rounds - (self.sweeps[-1].round if self.sweeps else 0)
        some_leave = bool(np.any(self.penalty.shrink))
        if self.solves and self.schedule.is_time_to_solve(n_since, self.n_active, some_leave):
            self._reweight()
            if self._is_optimal():
                self.stop_reason = "converged"

    def _is_optimal(self) -> bool:
        if not self.has_gap or self.stop_reason:
            return False
        return self.penalty.gap(self.weight, self.edge, self.risk) <= self.schedule.tol * self.train.first_risk

    def _reweight(self) -> None:
        """Re-weight the voters of the ensemble (section 3.1 of the paper)."""
        if self.schedule.sweeps_every is None or isinstance(self.schedule.reweight_sweeps, str):
            self.sweeps.append(self._solve())
        else:
            self.sweeps += [self._sweep() for _ in range(self.schedule.reweight_sweeps)]
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
        n_active = np.count_nonzero(self.weight)
        if n_active > MOST_TOGETHER and not self.has_warned and not self.solves:
            self.has_warned = True
            warnings.warn(
                f"reweight_sweeps={SOLVE!r} does nothing for {n_active} voters; it is for at most {MOST_TOGETHER}, "
                "use sweeps or a stronger penalty",
                stacklevel=2,
            )
        edge = self.edge
        weight = reweighted(
            self.moments, self.train.columns, self.penalty, self.weight, edge, fit_intercept=self.fit_intercept
        )
        moved = np.flatnonzero(weight != self.weight)
        self.train.slope[:] = edge  # moves are of edges; ridge times the new weights is subtracted below
        for rows in self.rows:
            rows.move(moved, (weight - self.weight)[moved])
        self.weight[:] = weight
        self.train.slope -= self.penalty.ridge * self.anchor
        self.kernel.rerate()
        return Sweep(self.n_rounds, moved, weight[moved])

    def _report(self) -> None:
        """Stop early on validation risk, or when the callback asks."""
        schedule = self.schedule
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

    def result(self) -> Boosted:
        progress, trace = self._progress(), self.trace()
        log, best, edge, objective = progress.log, self.n_rounds, self.edge, self.kernel.objective
        history = {
            "voter": progress.voter,
            "edge": log[:, EDGE],
            "weight": log[:, WEIGHT],
            "risk": log[:, RISK],
            "objective": log[:, OBJECTIVE],
        }
        if self.validation is not None:
            history["validation_risk"] = log[:, VALIDATION_RISK]
            best = self.best_round
            self.weight[:] = trace.weights_at(best, len(self.weight))
            self.train.set_weights(self.weight)
            edge = self.train.slope
            objective = log[best - 1, OBJECTIVE] if best else self.train.first_risk
        risk = self.risk
        return Boosted(
            weight=self.weight.copy(),
            intercept=trace.intercept_at(self.weight),
            edge=edge,
            risk=risk,
            objective=float(objective),
            first_risk=self.train.first_risk,
            dual_gap=self.penalty.gap(self.weight, edge, risk) if self.corrective else np.nan,
            violation=self.penalty.violation(self.weight, edge) if self.corrective else np.nan,
            n_rounds=best,
            history=history,
            stop_reason=self.stop_reason,
            trace=trace,
            progress=progress,
        )

    def _progress(self) -> Progress:
        return Progress(
            weight=self.weight.copy(),
            voter=self.voter[: self.n_rounds].copy(),
            log=self.log[: self.n_rounds].copy(),
            sweeps=[sweep for sweep in self.sweeps if sweep.round <= self.n_rounds],
            objective=self.kernel.objective,
            slopes=[rows.slope.copy() for rows in self.rows],
            risks=[(rows.kernel.risk, rows.kernel.residual_mean) for rows in self.rows],
            stop_reason=self.stop_reason,
            settings=self._settings(),
        )

    def trace(self) -> Trace:
        """Every weight so far."""
        sweeps = [sweep for sweep in self.sweeps if sweep.round <= self.n_rounds]
        voter, total = self.voter[: self.n_rounds].copy(), self.log[: self.n_rounds, TOTAL].copy()
        return Trace(voter, total, sweeps, self.first_intercept, self.centre)


def _cannot_go_on(name: str, before: Any, now: Any) -> str:
    """Why a run cannot go on from where another stood."""
    if name == "moments":
        what = "was on other rows, weights or targets"
    elif name == "validation":
        had, has = before is not None, now is not None
        what = f"had {'a' if had else 'no'} validation set, and this has {'one' if has else 'none'}"
        what = "had another validation set" if had and has else what
    elif name == "max_rounds":
        what = f"had {before} rounds already, and max_rounds={now}"
    else:
        what = f"had {name}={before}, and it is now {now}"
    return f"cannot go on from the earlier run, which {what}; start anew (warm_start=False, or no resume)"
