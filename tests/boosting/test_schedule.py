"""When rounds pause, how runs share the time, and schedules that mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.boosting import schedule
from quadboost.boosting.schedule import REFRESH_EVERY, Schedule


def told(*_):
    return False


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, []),
        ({"reweight_every": 7}, [7]),
        ({"callback_every": 5}, []),
        ({"callback_every": 5, "callback": told}, [5]),
        ({"callback_every": 5, "callback": told, "reweight_every": 7}, [5, 7]),
        ({"reweight_every": 1}, [1]),
    ],
)
def test_the_next_pause_is_the_first_round_at_which_something_is_to_be_done(options, steps, monkeypatch):
    monkeypatch.setattr(schedule, "REFRESH_EVERY", 40)
    own = Schedule(max_rounds=101, **options)
    for round in range(101):
        known = next(t for t in range(round + 1, 102) if t == 101 or any(t % step == 0 for step in [40, *steps]))
        assert own.next_pause(round) == known


def test_slopes_are_made_anew_now_and_then():
    assert Schedule(max_rounds=10**9).next_pause(0) == REFRESH_EVERY
    assert Schedule(max_rounds=10**9).next_pause(REFRESH_EVERY) == 2 * REFRESH_EVERY


def test_runs_share_the_time_that_is_left():
    own = Schedule(max_seconds=10.0, patience=7)
    assert own.share(0.0, 4).max_seconds == 2.5
    assert own.share(4.0, 3).max_seconds == 2.0
    assert own.share(9.0, 1).max_seconds == 1.0
    assert own.share(11.0, 2).max_seconds == 0.0
    assert own.share(1.0, 2).patience == 7
    endless = Schedule()
    assert endless.share(100.0, 2) is endless


def test_solving_is_named():
    assert Schedule(reweight_sweeps="solve").solves
    assert not Schedule(reweight_sweeps=3).solves


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rounds": 0}, "max_rounds=0 must be"),
        ({"max_rounds": 2.5}, "max_rounds=2.5 must be"),
        ({"max_rounds": True}, "max_rounds=True must be"),
        ({"patience": 0}, "patience=0 must be"),
        ({"callback_every": -1}, "callback_every=-1 must be"),
        ({"reweight_every": 0}, "reweight_every=0 must be"),
        ({"reweight_sweeps": 0}, "reweight_sweeps=0 must be"),
        ({"reweight_sweeps": "all"}, "reweight_sweeps='all' is not known; give a whole number, or 'solve'"),
        ({"tol": -1e-9}, "tol=-1e-09 must be"),
        ({"tol": np.nan}, "tol=nan must be"),
        ({"max_seconds": -0.1}, "max_seconds=-0.1 must be"),
    ],
)
def test_schedules_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Schedule(**options)
