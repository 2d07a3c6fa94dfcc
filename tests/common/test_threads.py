"""How many threads the kernels may use."""

from __future__ import annotations

import os
import threading

import pytest

from quadboost.common import threads
from quadboost.common.threads import available_threads, in_threads, resolve_threads


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(threads, "_container_share", lambda: 1 << 30)


@pytest.mark.parametrize(
    ("n_jobs", "known"), [(None, 8), (1, 1), (3, 3), (16, 16), (-1, 8), (-2, 7), (-8, 1), (-99, 1)]
)
def test_n_jobs_means_what_it_means_in_joblib(eight_cores, n_jobs, known):
    assert resolve_threads(n_jobs) == known


@pytest.mark.parametrize("n_jobs", [65, 100_000, 10**400])
@pytest.mark.parametrize(("n_cores", "known"), [(8, 64), (200, 200), (None, 64)])
def test_more_threads_than_make_sense_are_not_started(monkeypatch, n_jobs, n_cores, known):
    monkeypatch.setattr(os, "cpu_count", lambda: n_cores)
    assert resolve_threads(n_jobs) == min(n_jobs, known)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", True])
def test_n_jobs_that_means_nothing_is_refused_by_its_name(n_jobs):
    with pytest.raises(ValueError, match=f"n_jobs={n_jobs!r}"):
        resolve_threads(n_jobs)


@pytest.mark.parametrize(("limit", "known"), [("2", 2), ("99", 8), ("3,2", 3), ("", 8), ("nonsense", 8), ("0", 8)])
def test_omp_num_threads_is_a_limit(eight_cores, monkeypatch, limit, known):
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert available_threads() == known


def test_the_share_of_a_container_is_a_limit(eight_cores, monkeypatch):
    monkeypatch.setattr(threads, "_container_share", lambda: 2)
    assert available_threads() == 2


def test_a_platform_without_affinity_counts_its_cores(eight_cores, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_threads() == 1


def test_there_is_always_a_thread():
    assert available_threads() >= 1


AFTER_A_FORK = """
import os, signal
import numpy as np
from quadboost import Ensemble
from quadboost.common.threads import resolve_threads
model = Ensemble([0, 1], [0.0, 0.5], [1.0, 2.0], 0.0, n_features=2)
X = np.random.default_rng(0).normal(size=(300_000, 2))
known = model.decision_function(X, n_jobs=2)
child = os.fork()
if child == 0:
    signal.alarm(60)  # what waits for threads that are not there waits for ever
    same = np.array_equal(model.decision_function(X, n_jobs=2), known)
    os._exit(0 if same and resolve_threads(None) == 1 else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this platform")
def test_a_forked_process_does_not_wait_for_the_threads_of_its_parent(run_python):
    assert run_python(AFTER_A_FORK).split() == ["0"]


FIT = """
import numpy as np
from quadboost import QuadBoostRegressor
X = np.random.default_rng(0).integers(-500, 500, size=(300, 12)) / 64
y = np.sin(X[:, 0]) + X[:, 1] / 8
for options in ({}, {"reweight_every": 20, "reweight_sweeps": "solve"}, {"penalty": "l2"}):
    model = QuadBoostRegressor(**{"penalty": "l1", **options}, reg_lambda=0.001, max_rounds=200).fit(X, y)
    print(model.ensemble_.weight.tobytes().hex(), float(model.ensemble_.intercept).hex(), model.dual_gap_.hex())
"""


@pytest.mark.slow
def test_a_library_that_sums_in_another_order_changes_no_bit(run_python):
    known = run_python(FIT, OPENBLAS_NUM_THREADS="1")
    assert run_python(FIT, OPENBLAS_NUM_THREADS="2", OPENBLAS_CORETYPE="Prescott") == known


def test_an_error_stops_the_others_whichever_item_it_is_of():
    stop = threading.Event()

    def work(item):
        if item:
            raise ZeroDivisionError
        assert stop.wait(10)

    with pytest.raises(ZeroDivisionError):
        in_threads(work, [0, 1, 2], 2, stop.set)
    assert stop.is_set()
