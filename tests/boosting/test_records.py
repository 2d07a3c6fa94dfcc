"""A trace gives the weights after any round, as a replay of every change does."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.boosting.records import Sweep, Trace

N_VOTERS = 8


def random_trace(seed):
    """Rounds that draw voters again, with none, one or several sweeps after a round, also after the last."""
    rng = np.random.default_rng(seed)
    n_rounds = int(rng.integers(0, 30))
    after = np.sort(rng.integers(1, n_rounds + 1, size=rng.integers(0, 8))) if n_rounds else []

    def sweep(round):
        voter = np.sort(rng.choice(N_VOTERS, size=rng.integers(0, N_VOTERS), replace=False))
        return Sweep(int(round), voter, rng.normal(size=len(voter)))

    return Trace(
        voter=rng.integers(0, N_VOTERS, size=n_rounds),
        weight=rng.normal(size=n_rounds),
        sweeps=[sweep(round) for round in after],
        first_intercept=0.5,
        centre=rng.normal(size=N_VOTERS),
    )


def changes_of(trace, round):
    """Every change of a round, in order."""
    yield trace.voter[round - 1], trace.weight[round - 1]
    for sweep in trace.sweeps:
        if sweep.round == round:
            yield from zip(sweep.voter, sweep.weight, strict=True)


def replayed(trace):
    """The weights before the first round and after each."""
    weight = np.zeros(N_VOTERS)
    stages = [weight.copy()]
    for round in range(1, len(trace.voter) + 1):
        for voter, total in changes_of(trace, round):
            weight[voter] = total
        stages.append(weight.copy())
    return stages


@pytest.mark.parametrize("seed", range(40))
def test_weights_after_every_round_are_those_of_a_replay(seed):
    trace = random_trace(seed)
    for round, weight in enumerate(replayed(trace)):
        np.testing.assert_array_equal(trace.weights_at(round, N_VOTERS), weight)


@pytest.mark.parametrize("seed", range(40))
def test_all_changes_are_those_of_every_round(seed):
    trace = random_trace(seed)
    voter, total, end = trace.updates()
    first = 0
    for round, last in enumerate(end.tolist(), start=1):
        found = list(zip(voter[first:last], total[first:last], strict=True))
        assert found == list(changes_of(trace, round))
        first = last
    assert first == len(voter) == len(total)


@pytest.mark.parametrize("seed", range(40))
def test_changes_of_a_round_lead_from_one_stage_to_the_next(seed):
    trace = random_trace(seed)
    stages = replayed(trace)
    found = list(trace.changes(N_VOTERS))
    assert len(found) == len(trace.voter)
    for (voter, delta, fall), before, after in zip(found, stages[:-1], stages[1:], strict=True):
        assert len(set(voter.tolist())) == len(voter)
        change = np.zeros(N_VOTERS)
        change[voter] = delta
        np.testing.assert_array_equal(change, after - before)
        assert fall == pytest.approx(trace.centre @ change, abs=1e-15)
