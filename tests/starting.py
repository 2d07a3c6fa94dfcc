"""Runs that begin at given weights, not at zeros."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from quadboost.boosting.rounds import Mark, open_run


@contextmanager
def run_from(weight, moments, penalty, *, fit_intercept):
    """A corrective run that stands at these weights, as if it had not had a round; its trace knows rounds alone."""
    with open_run(moments, penalty, mode="corrective", fit_intercept=fit_intercept) as run:
        voter = np.flatnonzero(weight)
        run.back_to(Mark(voter, weight[voter], 0, 0))
        yield run
