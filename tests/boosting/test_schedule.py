"""When rounds pause, how runs share the time, and schedules that mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.boosting import schedule
from quadboost.boosting.schedule import LOOK_EVERY, REFRESH_EVERY, Schedule


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
    monkeypatch.setattr(schedule, "LOOK_EVERY", 30)
    plan = Schedule(max_rounds=101, **options)
    for round in range(101):
        for has_gap, looks in ((True, [30]), (False, [])):
            every = [40, *looks, *steps]
            known = next(t for t in range(round + 1, 102) if t == 101 or any(t % step == 0 for step in every))
            assert plan.next_pause(round, has_gap) == known


def test_slopes_are_made_anew_now_and_then():
    rounds = {Schedule(max_rounds=10**9).next_pause(REFRESH_EVERY * n - 1, True) for n in (1, 2, 3)}
    assert rounds == {REFRESH_EVERY, 2 * REFRESH_EVERY, 3 * REFRESH_EVERY}


def test_the_gap_is_looked_at_now_and_then_where_there_is_one():
    assert Schedule().next_pause(0, True) == LOOK_EVERY
    assert Schedule().next_pause(LOOK_EVERY + 1, True) == 2 * LOOK_EVERY
    assert Schedule().next_pause(0, False) == REFRESH_EVERY


def test_a_number_of_rounds_between_sweeps_is_told_from_auto_and_never():
    assert Schedule(reweight_every=7).sweeps_every == 7
    assert Schedule().reweight_every == "auto"
    assert Schedule().sweeps_every is None
    assert Schedule(reweight_every=None).sweeps_every is None


def test_solving_waits_for_half_as_many_rounds_as_there_are_voters():
    schedule = Schedule()
    assert not schedule.is_time_to_solve(LOOK_EVERY - 1, 3, True)
    assert schedule.is_time_to_solve(LOOK_EVERY, 3, True)
    assert not schedule.is_time_to_solve(149, 300, True)
    assert schedule.is_time_to_solve(150, 300, True)
    assert not schedule.is_time_to_solve(299, 300, False)
    assert schedule.is_time_to_solve(300, 300, False)


def test_where_no_gap_tells_when_to_stop_a_small_decrease_does():
    assert Schedule(tol=1e-4).least_decrease(False) == pytest.approx(1e-14)
    assert Schedule(tol=1e-4).least_decrease(True) == pytest.approx(1e-20)
    assert Schedule(tol=0.0).least_decrease(False) == Schedule(tol=0.0).least_decrease(True) > 0


def test_runs_share_the_time_that_is_left():
    schedule = Schedule(max_seconds=10.0, patience=7)
    assert schedule.share(0.0, 4).max_seconds == 2.5
    assert schedule.share(4.0, 3).max_seconds == 2.0
    assert schedule.share(9.0, 1).max_seconds == 1.0
    assert schedule.share(11.0, 2).max_seconds == 0.0
    assert schedule.share(1.0, 2).patience == 7
    endless = Schedule()
    assert endless.share(100.0, 2) is endless


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rounds": 0}, "max_rounds=0 must be"),
        ({"max_rounds": 2.5}, "max_rounds=2.5 must be"),
        ({"max_rounds": True}, "max_rounds=True must be"),
        ({"patience": 0}, "patience=0 must be"),
        ({"callback_every": -1}, "callback_every=-1 must be"),
        ({"reweight_every": 0}, "reweight_every=0 must be"),
        ({"reweight_every": "often"}, "reweight_every='often' is not known; give a whole number, 'auto' or None"),
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
