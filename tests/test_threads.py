"""How many threads the kernels may use."""

from __future__ import annotations

import os

import pytest

from quadboost import threads
from quadboost.threads import available_threads, resolve_threads


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
