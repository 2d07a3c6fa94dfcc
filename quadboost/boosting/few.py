"""Which voters stay where an l1 penalty is to leave no more than so many.

A penalty so strong that few are left makes their weights much too small. So who stays is said along the path of another
one: it holds each voter back in inverse proportion to the weight that it has (the adaptive LASSO). Large weights hardly
suffer, and the small ones leave first. Those that stay are to be weighed by the penalty of before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..moments.moments import Moments
from .limits import narrowed
from .penalties import Penalty
from .rounds import open_run
from .schedule import Schedule

FIRST_STEP, LAST_STEP = 0.5, 0.95  # from a strength to the next: where too many enter, the root of it
LEAST_SHARE = 1e-6  # the weakest strength, as a share of the strongest
MOST_FACTOR = 1e6  # by which one voter may be held back more than another


def few(
    moments: Moments, penalty: Penalty, weight: np.ndarray, most: int, schedule: Schedule, *, fit_intercept: bool,
    output: int = 0,
) -> np.ndarray:  # fmt: skip
    """Which of the voters with a weight stay: no more than so many.

    Parameters
    ----------
    moments : Moments
    penalty : Penalty
        An l1 penalty, whatever its strength.
    weight : array of shape (K,)
        Weights under it.
    most : int
    schedule : Schedule
    fit_intercept : bool
    output : int
    """
    stays, size = weight != 0, np.abs(weight)
    if np.count_nonzero(stays) <= most:
        return stays
    least = size.max() / MOST_FACTOR
    adaptive = narrowed(penalty, stays, np.where(stays, size.max() / np.maximum(size, least), 1.0))
    schedule = replace(schedule, callback=None)
    with open_run(moments, adaptive, mode="corrective", fit_intercept=fit_intercept, output=output) as run:
        strength = largest = adaptive.largest(run.edge, run.eta)
        step, mark = FIRST_STEP, run.mark()
        while step < LAST_STEP and strength > LEAST_SHARE * largest:
            run.change(adaptive.at(step * strength))
            run.go(schedule)
            if run.n_active <= most:
                strength, mark = step * strength, run.mark()
                if run.stop_reason != "converged":
                    break
            else:
                run.back_to(mark)
                step **= 0.5
    stays = np.zeros(len(weight), dtype=bool)
    stays[mark.voter] = True
    return stays
