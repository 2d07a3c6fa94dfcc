"""How many threads the kernels may use, decided once and passed in."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from numbers import Integral
from typing import Any, TypeVar

MOST_THREADS = 64  # where there are no more cores: thousands cannot be started, and would bring nothing
STEPS_FOR_THREADS = 1_000_000  # of a kernel, a millisecond or so

Item = TypeVar("Item")
Result = TypeVar("Result")

_is_forked = False


def _note_fork() -> None:
    global _is_forked
    _is_forked = True


if hasattr(os, "register_at_fork"):  # not on every platform
    os.register_at_fork(after_in_child=_note_fork)


def available_threads() -> int:
    """Cores this process may use: its affinity, its container's share and OMP_NUM_THREADS."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        count = os.cpu_count() or 1
    count = min(count, _container_share())
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if limit.isdigit() and int(limit) > 0:
        count = min(count, int(limit))
    return max(1, count)


def _container_share() -> int:
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError):  # no such control group, or "max": no limit
        return 1 << 30


def resolve_threads(n_jobs: Any) -> int:
    """None: every core available; a negative number counts back from that, as in joblib.

    At most as many as there are cores, or MOST_THREADS if that is more.
    One in a process that was forked: OpenMP's threads stay with the parent, and work for them would wait for ever.
    """
    if n_jobs is None:
        return 1 if _is_forked else available_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r:.60} must be a whole number of threads, or -1 for every core")
    n_jobs = 1 if _is_forked else int(n_jobs)
    if n_jobs > 0:
        return min(n_jobs, max(MOST_THREADS, os.cpu_count() or 1))
    return max(1, available_threads() + 1 + n_jobs)


def threads_for(steps: int, n_threads: int) -> int:
    """Use one thread for little work: starting others costs more than they save, above all on busy cores."""
    return n_threads if steps >= STEPS_FOR_THREADS else 1


def in_threads(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    n_threads: int,
    stop: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Apply the function to each item, in threads; it should spend its time outside the interpreter's lock.

    After an error or an interrupt, call `stop`, drop the items that have not begun, and wait for those that have.
    """
    if n_threads == 1:
        return [function(item) for item in items]
    pool = ThreadPoolExecutor(n_threads)
    try:
        futures = [pool.submit(function, item) for item in items]
        for future in as_completed(futures):
            future.result()  # an error is raised at once, whichever item it is of
        return [future.result() for future in futures]
    except BaseException:
        stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
