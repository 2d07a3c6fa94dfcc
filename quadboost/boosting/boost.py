"""`boost`: the algorithm without scikit-learn, for any voters."""

from __future__ import annotations

from typing import Any

from ..common.progress import Callback
from ..moments.moments import Moments
from .limits import Limits, limited
from .penalties import Penalty, make_penalty
from .records import Progress
from .result import Boosted
from .rounds import run_rounds
from .schedule import Schedule


def boost(
    moments: Moments, penalty: str | Penalty | None = None, *, reg_lambda: float | None = None, alpha_max: float = 0.1,
    mode: str = "corrective", max_rounds: int = 100_000, tol: float = 1e-4, fit_intercept: bool = False,
    reweight_every: int | str | None = "auto", reweight_sweeps: int | str = 1, validation: Moments | None = None,
    patience: int = 50, output: int = 0, max_seconds: float | None = None, callback: Callback | None = None,
    callback_every: int = 100, resume: Progress | None = None, lower: Any = None, upper: Any = None,
    penalty_factor: Any = None,
) -> Boosted:  # fmt: skip
    """Learn the weights of an ensemble from moments.

    Each round takes the voter whose update decreases the objective most; of equal ones the first.

    Parameters
    ----------
    moments : Moments
        Of the training rows.
    penalty : None, "l1", "l2", "linf" or a penalty object
    reg_lambda : float, optional
        Strength of an l1 or l2 penalty that is given by its name.
    alpha_max : float
        Largest weight under linf.
    mode : {"corrective", "forward"}
        A voter drawn again is re-weighted, or a second copy of it is added.
    max_rounds : int
    tol : float
        Stop when the dual gap is at most tol * mean(y**2) (y centred where there is an intercept); one looks every 50
        rounds. Where there is no gap (no penalty, or forward mode): when no voter would move by more than tol / 1000
        times the size of y.
    fit_intercept : bool
        An unpenalised constant, always at its optimum.
    reweight_every : int, "auto" or None
        Sweep over the voters of the ensemble after every so many rounds. "auto": where there is a gap, solve for all
        their weights at once as often as that pays.
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
    callback_every : int
    resume : Progress, optional
        `Boosted.progress` of an earlier call with the same moments and arguments; only `max_rounds`, `max_seconds`
        and the callback may differ.
    lower, upper : float or array of shape (K,), optional
        Bounds on the weights, with zero between them. `lower=0` and no penalty is non-negative least squares. In
        forward mode the sum of all copies of a voter is within them.
    penalty_factor : float or array of shape (K,), optional
        The penalty is on these numbers times the weights.

    Returns
    -------
    Boosted
    """
    if not isinstance(moments, Moments):
        raise TypeError(f"boost takes Moments, not {type(moments).__name__}; make them by moments_from_matrix(H, y)")
    if reg_lambda is None and isinstance(penalty, str) and penalty in ("l1", "l2"):
        raise ValueError(f"penalty={penalty!r} needs a reg_lambda, such as 0.01")
    schedule = Schedule(
        max_rounds, tol, reweight_every, reweight_sweeps, patience, max_seconds, callback, callback_every
    )
    schedule.warn_if_idle(stacklevel=3)
    limits = Limits.of(moments.n_voters, factor=penalty_factor, lower=lower, upper=upper)
    return run_rounds(
        moments,
        limited(make_penalty(penalty, 0.0 if reg_lambda is None else reg_lambda, alpha_max), limits),
        schedule,
        mode=mode,
        fit_intercept=fit_intercept,
        validation=validation,
        output=output,
        resume=resume,
    )
