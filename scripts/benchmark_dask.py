"""Fit on two Dask worker processes and on one machine: time, what travels, and what a larger cluster would take.

    python scripts/benchmark_dask.py [--quick] [--features N] [--docs DIR]

Both fits are of the same rows, in one run. Every pass over the parts is timed: the seconds of the clock, the CPU of the
workers, and the bytes of the answer. Needs the extra `dask`.
"""

from __future__ import annotations

import gc
import math
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from operator import add
from typing import Any

import numpy as np
from benchmarking import Report, Target, generate, in_child, make_parser, tell

from quadboost import QuadBoostClassifier
from quadboost.dask import DaskQuadBoostClassifier
from quadboost.dask.source import FAN_IN, DaskSource

SIZES = {"full": (10_000_000, 20), "quick": (1_000_000, 8), "tiny": (20_000, 4)}  # rows, and partitions
N_WORKERS = 2
MANY_ROWS, MANY_WORKERS = 1e9, 100
NETWORK = 1e9  # bytes a second between two workers, for the calculation
IDLE = 5  # seconds for which Dask is watched while it has nothing to do


@dataclass
class Pass:
    """One pass over all parts."""

    name: str
    seconds: float
    cpu: float  # of the workers
    n_bytes: int  # of the answer
    cpu_of_counting: float  # them, which no fit does


@dataclass(frozen=True)
class TimedSource(DaskSource[Any]):
    """Notes what every pass takes."""

    passes: list[Pass] = field(default_factory=list)

    def reduce(self, question: Callable[[Any], Any], add: Callable[[Any, Any], Any] = add) -> Any:
        return self._timed(question, lambda: DaskSource.reduce(self, question, add))

    def map(self, make: Callable[[Any], Any]) -> TimedSource:
        return self._timed(make, lambda: DaskSource.map(self, make))

    def gather(self) -> list[Any]:
        return self._timed(gather, lambda: DaskSource.gather(self))

    def _timed(self, question: Any, work: Callable[[], Any]) -> Any:
        cpu, start = cpu_of_workers(self.client), time.perf_counter()
        answer = work()
        seconds, cpu = time.perf_counter() - start, cpu_of_workers(self.client) - cpu
        counting = time.process_time()
        n_bytes = 0 if isinstance(answer, DaskSource) else len(pickle.dumps(answer, protocol=5))
        self.passes.append(Pass(name_of(question), seconds, cpu, n_bytes, time.process_time() - counting))
        return answer


def gather() -> None:
    """For its name."""


def name_of(question: Any) -> str:
    while isinstance(question, partial) or hasattr(question, "second"):  # asked of what another made of a part
        question = question.func if isinstance(question, partial) else question.second
    return getattr(question, "__name__", type(question).__name__).strip("_")


def timed_classifier(client: Any, passes: list[Pass]) -> Any:
    """An estimator whose passes are noted."""

    class Timed(DaskQuadBoostClassifier):
        def _source(self, X: Any, y: Any, sample_weight: Any) -> TimedSource:
            source = super()._source(X, y, sample_weight)
            return TimedSource(source.parts, source.client, source.room, passes=passes)

    return Timed(client=client)


def cpu_of_workers(client: Any) -> float:
    return float(sum(client.run(time.process_time).values()))


def cpu_of_all(client: Any) -> float:
    return cpu_of_workers(client) + time.process_time()


def part(number: int, n_rows: int, d: int) -> np.ndarray:
    """Rows, and their labels in the last column."""
    X, y = generate(n_rows, d, seed=number)
    return np.column_stack([X, y > 0])


def fit_here(n_rows: int, n_parts: int, d: int) -> tuple[float, float, bytes]:
    """CPU, seconds and the model of a fit in memory."""
    rows = np.empty((n_rows, d + 1))
    for number in range(n_parts):
        rows[number * n_rows // n_parts : (number + 1) * n_rows // n_parts] = part(number, n_rows // n_parts, d)
    X, y = np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()
    del rows
    gc.collect()
    cpu, start = time.process_time(), time.perf_counter()
    model = QuadBoostClassifier().fit(X, y)
    return time.process_time() - cpu, time.perf_counter() - start, bits(model)


def bits(model: Any) -> bytes:
    """What must be the same."""
    ensemble = model.ensemble_
    return b"".join(np.asarray(v).tobytes() for v in (ensemble.feature, ensemble.threshold, ensemble.weight))


@dataclass
class Fitted:
    cpu_workers: float
    cpu_client: float
    cpu_idle: float  # of all processes in as many seconds without work: what waiting costs
    seconds: float
    model: bytes
    passes: list[Pass]


def fit_there(n_rows: int, n_parts: int, d: int) -> Fitted:
    """The same on two worker processes, which have the rows already."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(n_workers=N_WORKERS, **options) as cluster, Client(cluster) as client:
        workers, size = sorted(client.scheduler_info()["workers"]), n_rows // n_parts
        made = [client.submit(part, i, size, d, workers=workers[i % N_WORKERS]) for i in range(n_parts)]
        rows = da.concatenate([da.from_delayed(dask.delayed(one), (size, d + 1), np.float64) for one in made])
        X, y = client.persist([rows[:, :-1], rows[:, -1]])
        wait([X, y])
        client.run(gc.collect)
        client.run(import_module, "quadboost.dask")  # as the process of the other fit has
        idle = cpu_of_all(client)
        time.sleep(IDLE)
        idle = (cpu_of_all(client) - idle) / IDLE
        passes: list[Pass] = []
        model = timed_classifier(client, passes)
        cpu, start = (cpu_of_workers(client), time.process_time()), time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        cpu = cpu_of_workers(client) - cpu[0], time.process_time() - cpu[1]
        counting = sum(p.cpu_of_counting for p in passes)
        return Fitted(cpu[0], cpu[1] - counting, idle * seconds, seconds - counting, bits(model), passes)


def seconds_of_cluster(fitted: Fitted, n_rows: int) -> list[tuple[str, float]]:
    """A calculation: what the pieces that were measured would take with more rows on more workers of one thread.

    Work on rows is divided by the workers. Answers do not grow with the rows; they are sent and added up in a tree.
    What the client does by itself is the same.
    """
    rows = sum(p.cpu for p in fitted.passes) / n_rows * MANY_ROWS / MANY_WORKERS
    levels = math.ceil(math.log(MANY_WORKERS, FAN_IN))
    sent = sum(p.n_bytes for p in fitted.passes) * levels * (FAN_IN - 1) / NETWORK
    passes = 0.1 * len(fitted.passes)  # scheduling: a few hundred tasks each, below a millisecond a task
    return [
        ("work on rows, on every worker", rows),
        (f"answers sent and added up, in a tree of {levels} levels", sent),
        ("scheduling", passes),
        ("rounds, on the client", fitted.cpu_client),
    ]


def main() -> None:
    options = make_parser(__doc__).parse_args()
    n_rows, n_parts = SIZES[options.size]
    report = Report("dask", "Dask beside one machine", options, ["dask", "distributed"])
    tell("one machine")
    cpu, seconds, model = in_child(fit_here, n_rows, n_parts, options.features)
    tell("two workers")
    fitted = fit_there(n_rows, n_parts, options.features)
    write(report, n_rows, n_parts, (cpu, seconds), fitted)
    if fitted.model != model:
        raise SystemExit("the models differ")
    report.finish()


def write(report: Report, n_rows: int, n_parts: int, here: tuple[float, float], fitted: Fitted) -> None:
    all_cpu = fitted.cpu_workers + fitted.cpu_client
    sent = sum(p.n_bytes for p in fitted.passes)
    shape = f"{n_rows:,} x {report.options.features}"
    report.targets += [
        Target.limit(f"CPU of all processes, {shape}, against one machine", 2, "times", all_cpu / here[0]),
        Target.limit(f"time of the clock, {shape}, against one machine", 1.3, "times", fitted.seconds / here[1]),
        Target.limit(f"answers that come to the client, {shape}", 200, "MB", sent / 1e6),
        Target("the same model, to the last bit", "the same", "the same", True),
    ]
    report.section(
        "Two workers and one machine",
        f"{shape}, labels, default parameters; {n_parts} partitions that the workers hold. One machine: two threads.",
    )
    rows = [("one machine", *here), ("two workers", all_cpu, fitted.seconds)]
    report.table(["", "CPU, s", "clock, s"], rows)
    report.section(
        "Where the time goes", "Passes by what is asked. The client's own part is rounds, and adding up what is asked."
    )
    names = dict.fromkeys(p.name for p in fitted.passes)
    groups = [(name, [p for p in fitted.passes if p.name == name]) for name in names]
    lines = [
        (name, len(ps), sum(p.cpu for p in ps), sum(p.seconds for p in ps), sum(p.n_bytes for p in ps) / 1e6)
        for name, ps in groups
    ]
    client = fitted.seconds - sum(p.seconds for p in fitted.passes)
    lines.append(("the client", "", fitted.cpu_client, client, ""))
    report.table(["pass", "times", "CPU, s", "clock, s", "answers, MB"], lines)
    report.text(
        f"Of all that, {fitted.cpu_idle:.1f} s of CPU are what Dask's processes take in as much time without any work: "
        "they look after each other by the clock, so this grows with what else the machine has to do."
    )
    pieces = seconds_of_cluster(fitted, n_rows)
    report.section(
        f"{MANY_ROWS:,.0f} rows on {MANY_WORKERS} workers",
        f"A calculation from the pieces above, for workers of one thread and a network of {NETWORK / 1e9:g} GB/s.",
    )
    report.table(["piece", "s"], [*pieces, ("in all", sum(value for _, value in pieces))])
    report.record(
        "fits",
        rows=n_rows,
        cpu=all_cpu,
        cpu_idle=fitted.cpu_idle,
        seconds=fitted.seconds,
        cpu_here=here[0],
        seconds_here=here[1],
    )
    for p in fitted.passes:
        report.record("pass", name=p.name, seconds=p.seconds, cpu=p.cpu, bytes=p.n_bytes)


if __name__ == "__main__":
    main()
