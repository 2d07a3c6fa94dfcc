"""Time prediction beside other libraries: batches, single rows, loading and a cold start.

    python scripts/benchmark_prediction.py [--quick] [--peers NAMES] [--shape SHAPE] [--docs DIR]

Needs the extra `benchmarks`; peers that are not installed are left out.
"""

from __future__ import annotations

import gc
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmark_peers import BOOSTERS, COLD_START_HEAD, N_BINS, OURS, Contender, ONNXRuntime, choose
from benchmarking import (
    SHAPES,
    WIDE,
    Line,
    Report,
    Target,
    Timed,
    generate,
    interleaved,
    make_parser,
    run_python,
    tell,
)
from threadpoolctl import threadpool_limits

from quadboost import Ensemble

CONTENDERS: dict[str, Contender] = {**BOOSTERS, "onnxruntime": ONNXRuntime()}
PEERS = {name: peer.packages for name, peer in CONTENDERS.items() if name != OURS}
SUM = "numpy X.sum(axis=1)"
BARE = "import numpy, h5py"
BATCH_TIMES_AS_FAST = {"catboost": 4, "xgboost": 15, "lightgbm": 40}
ROW_TIMES_AS_FAST = {"lightgbm": 6, "xgboost": 40}
RISK_ROWS = 20_000
QUICK = 1.0  # seconds
N_BLOCKS = 5  # of calls with single rows
LEAST_CALLS = 200  # in a block


@dataclass(frozen=True)
class Size:
    """How much to do. Times are for repetitions: what is to be done once is done."""

    train_rows: int
    rounds: tuple[int, ...]
    usual_rounds: int
    rows: int
    other_rows: int  # of peers that nothing is to be reached beside
    slow_rows: int  # of peers with more than the usual rounds
    seconds: float  # for each part
    passes: int  # at most
    calls: int  # of single rows, in a block
    voters: int  # of the large model
    widths: tuple[int, ...]


SIZES = {
    "full": Size(5_000, (100, 1_000, 10_000), 1_000, 1_000_000, 100_000, 20_000, 100, 10, 2_000, 100_000, (3, 30, 300)),
    "quick": Size(5_000, (100, 1_000), 100, 100_000, 100_000, 20_000, 3, 5, 300, 10_000, (3, 30, 300)),
    "tiny": Size(300, (3, 10), 3, 1_000, 500, 300, 0, 1, 5, 100, (3,)),
}


@dataclass(frozen=True)
class Job:
    """What all parts of the benchmark need to know."""

    size: Size
    report: Report
    names: list[str]  # ours first
    d: int
    shape: str
    threads: int
    models: dict[tuple[str, int], Any]  # of each contender and number of rounds

    def title(self, name: str) -> str:
        return CONTENDERS[name].title if name in CONTENDERS else name

    def time(self, runs: Mapping[Any, Callable[[], Any]], threads: int | None = None, **more: Any) -> dict[Any, Timed]:
        return interleaved(
            runs, seconds=self.size.seconds, threads=threads or self.threads, at_most=self.size.passes, **more
        )


def main() -> None:
    options = make_parser(__doc__).parse_args()
    warnings.simplefilter("ignore")  # of peers, on names of columns and the like
    peers, skipped = choose(options.peers, PEERS)
    packages = dict.fromkeys(package for name in peers for package in PEERS[name])
    report = Report("prediction", "Prediction: time beside other libraries", options, packages)
    d = WIDE if options.shape == "wide" else options.features
    job = Job(SIZES[options.size], report, [OURS, *peers], d, options.shape, options.threads, {})
    sentences = [
        f"Data: made, {SHAPES[job.shape][0]}; d = {d}, float64, in C order.",
        f"Models are stumps for the squared loss, at most {N_BINS} thresholds a feature, trained on "
        f"{job.size.train_rows:,} rows. ONNX Runtime has LightGBM's model, in single precision; EBM's prediction is on "
        "one thread whatever is asked.",
        "All contenders run in turn, several times; a time is the best of them.",
        *([f"Left out: {'; '.join(skipped)}."] if skipped else []),
    ]
    report.section("What is compared", "\n".join(f"- {sentence}" for sentence in sentences))
    train(job)
    score_batches(job)
    score_rows(job)
    score_records(job)
    with tempfile.TemporaryDirectory() as folder:
        load_models(job, Path(folder))
        load_large(job, Path(folder))
    score_other_inputs(job)
    report.finish()


def train(job: Job) -> None:
    X, y = generate(job.size.train_rows, job.d, job.shape)
    for name in job.names:
        for rounds in job.size.rounds:
            tell(f"  {rounds:,} rounds: {name}")
            with threadpool_limits(1):  # on so few rows, threads would rather wait for each other
                job.models[name, rounds] = CONTENDERS[name].fit(X, y, rounds, 1)


# --- batches ------------------------------------------------------------------------------------------------


def score_batches(job: Job) -> None:
    report, size = job.report, job.size
    X, y = generate(max(size.rows, RISK_ROWS), job.d, job.shape, seed=1)
    X, y = X[: size.rows], y[: size.rows]
    report.section(
        f"Batches of {size.rows:,} rows",
        f"Some peers score fewer rows, as the table says, or they would take too long: {size.other_rows:,} where "
        f"nothing is to be reached, {size.slow_rows:,} with more than {size.usual_rounds:,} rounds. Who takes less "
        f"than {QUICK:g} s has more runs. `{SUM}`, on one thread, is about what it takes to read the matrix. CPU is "
        "the time of all cores: it does not count what else the machine does. Risk is the mean squared error: the "
        "models are alike.",
    )
    threads_tried = sorted({1, job.threads})
    results: dict[tuple[str, int, int], tuple[Timed, int]] = {}
    for threads in threads_tried:
        batches: dict[tuple[str, int], np.ndarray] = {(SUM, 0): X}
        runs: dict[tuple[str, int], Callable[[], Any]] = {(SUM, 0): partial(X.sum, axis=1)}
        for (name, rounds), model in job.models.items():
            batch = X[: batch_rows(size, name, rounds)]
            score = CONTENDERS[name].scorer(model, threads)
            score(X[:1])  # what is made at the first use
            batches[name, rounds], runs[name, rounds] = batch, partial(score, batch)
        timed = job.time(runs, threads, note=partial(risk_of, y))
        quick = {key: run for key, run in runs.items() if timed[key].best < QUICK}
        for key, more in job.time(quick, threads).items():
            timed[key].wall += more.wall
            timed[key].cpu += more.cpu
        results |= {(*key, threads): (result, len(batches[key])) for key, result in timed.items()}
    best_sum = min((results.pop((SUM, 0, threads))[0] for threads in threads_tried), key=lambda timed: timed.best)
    results = {(SUM, 0, 1): (best_sum, len(X)), **results}
    nanoseconds = {key: 1e9 * result.best / n for key, (result, n) in results.items()}
    table = []
    for key, (result, n) in results.items():
        name, rounds, threads = key
        ours = nanoseconds.get((OURS, rounds, threads), np.nan)
        table.append((job.title(name), rounds if rounds else "", threads, n, 1e3 * result.best, nanoseconds[key],
                      1e9 * min(result.cpu) / n, 1e3 / nanoseconds[key], nanoseconds[key] / ours,
                      nanoseconds[key] / nanoseconds[SUM, 0, 1],
                      "" if result.notes is None or name == SUM else f"{result.notes:.4f}"))  # fmt: skip
        report.record("batch", contender=name, rounds=rounds, threads=threads, rows=n, wall=result.wall,
                      cpu=result.cpu)  # fmt: skip
    columns = ["", "rounds", "threads", "rows", "milliseconds", "ns a row", "CPU ns a row", "million rows a second"]
    report.table([*columns, "times ours", "times the sum", "risk"], table)
    lines = {
        job.title(name): Line(size.rounds, [nanoseconds[name, n, threads_tried[-1]] for n in size.rounds])
        for name in job.names
    }
    caption = f"Time for a row of a batch against rounds, {threads_tried[-1]} thread(s)"
    report.plot("batch", caption, "rounds", "nanoseconds a row", lines)
    batch_targets(job, nanoseconds, threads_tried[-1])


def batch_rows(size: Size, name: str, rounds: int) -> int:
    if name == OURS:
        return size.rows
    if rounds > size.usual_rounds:
        return size.slow_rows
    return size.rows if name in BATCH_TIMES_AS_FAST else size.other_rows


def risk_of(y: np.ndarray, key: tuple[str, int], scores: np.ndarray) -> float:
    return float(np.mean((y[: len(scores)] - scores) ** 2))


def batch_targets(job: Job, nanoseconds: Mapping[tuple[str, int, int], float], threads: int) -> None:
    targets, usual, most = job.report.targets, job.size.usual_rounds, job.size.rounds[-1]
    ours = nanoseconds[OURS, usual, threads]
    batch = f"batch, {job.size.rows:,} rows"
    for name, least in BATCH_TIMES_AS_FAST.items():
        ratio = nanoseconds[name, usual, threads] / ours if name in job.names else None
        targets.append(Target.ratio(f"{batch}, {usual:,} rounds, beside {job.title(name)}", least, ratio))
    slower = nanoseconds[OURS, most, threads] / ours
    targets.append(Target.limit(f"{batch}, {most:,} rounds beside {usual:,}, ours", 1.5, "times", slower))
    ratio = ours / nanoseconds[SUM, 0, 1]
    targets.append(Target.limit(f"{batch}, ours beside X.sum(axis=1)", 3, "times", ratio))


# --- single rows --------------------------------------------------------------------------------------------


class Latency(NamedTuple):
    """Microseconds for a call: of the block of calls with the least median."""

    median: float
    late: float  # the 99th percentile
    calls: int


def latencies(calls: Mapping[str, Callable[[Any], Any]], rows: Sequence[Any], seconds: float) -> dict[str, Latency]:
    """Each in turn a block of calls, one for each row, again and again; a block ends early after `seconds`."""
    blocks: dict[str, list[Latency]] = {name: [] for name in calls}
    for _ in range(N_BLOCKS):
        for name, call in calls.items():
            tell(f"  rows: {name}")
            gc.collect()
            gc.disable()
            with threadpool_limits(1):
                times = 1e6 * time_calls(call, rows, seconds)
            gc.enable()
            blocks[name].append(Latency(float(np.median(times)), float(np.quantile(times, 0.99)), len(times)))
    return {name: min(seconds) for name, seconds in blocks.items()}


def time_calls(call: Callable[[Any], Any], rows: Sequence[Any], seconds: float) -> np.ndarray:
    """Seconds of each call; at least LEAST_CALLS of them, or a percentile would say nothing."""
    call(rows[0])
    times: list[float] = []
    deadline = time.perf_counter() + seconds
    for row in rows:
        start = time.perf_counter()
        call(row)
        end = time.perf_counter()
        times.append(end - start)
        if end > deadline and len(times) >= LEAST_CALLS:
            break
    return np.array(times)


def score_rows(job: Job) -> None:
    report, size = job.report, job.size
    X, y = generate(max(size.train_rows, size.calls), job.d, job.shape, seed=2)
    report.section(
        f"Single rows, {size.usual_rounds:,} rounds",
        f"A (1, {job.d}) array at a time, one thread: the leanest way (ours: `Ensemble.decision_function`; LightGBM: "
        "`Booster.predict`; XGBoost: `Booster.inplace_predict`), and `predict` of the scikit-learn estimator of a "
        f"classifier. Of {N_BLOCKS} blocks of calls, the one with the least median.",
    )
    lean = {name: CONTENDERS[name].scorer(job.models[name, size.usual_rounds], 1) for name in job.names}
    lean[OURS] = job.models[OURS, size.usual_rounds].decision_function
    labels = (y > 0).astype(int)[: size.train_rows]
    estimators = {}
    for name in job.names:
        if name in BOOSTERS:
            tell(f"  classifier: {name}")
            model = CONTENDERS[name].fit_estimator(X[: size.train_rows], labels, size.usual_rounds, 1)
            estimators[name] = model.predict
    table = []
    medians: dict[str, dict[str, float]] = {}
    for way, calls in (("lean", lean), ("estimator", estimators)):
        found = latencies(calls, [X[i : i + 1] for i in range(size.calls)], size.seconds / 20 / len(calls))
        medians[way] = {name: timing.median for name, timing in found.items()}
        for name, timing in found.items():
            table.append(
                (job.title(name), way, timing.median, timing.late, timing.median / found[OURS].median, timing.calls)
            )
            report.record(
                "row", contender=name, way=way, median_us=timing.median, p99_us=timing.late, calls=timing.calls
            )
    report.table(["", "way", "median, microseconds", "99th percentile", "times ours", "calls"], table)
    for name, least in ROW_TIMES_AS_FAST.items():
        ratio = medians["lean"][name] / medians["lean"][OURS] if name in job.names else None
        report.targets.append(Target.ratio(f"one row, beside {job.title(name)}", least, ratio))
    others = [median for name, median in medians["estimator"].items() if name != OURS]
    ratio = min(others) / medians["estimator"][OURS] if others else None
    report.targets.append(Target.ratio("one row, `QuadBoostClassifier.predict` beside the fastest estimator", 1, ratio))


def score_records(job: Job) -> None:
    """A dict of names and values, as a service gets it, beside the same row of an array."""
    names = [f"feature {j}" for j in range(job.d)]
    model = job.models[OURS, job.size.usual_rounds].replace(feature_names=names)
    X, _ = generate(job.size.calls, job.d, job.shape, seed=2)
    kinds = {
        "an array": lambda row: row[None],
        "a dict": lambda row: dict(zip(names, row.tolist(), strict=True)),
        "a dict that lacks a feature": lambda row: dict(zip(names[1:], row[1:].tolist(), strict=True)),
        "a dict with a feature that is None": lambda row: dict(zip(names, [None, *row[1:].tolist()], strict=True)),
    }
    rows = [{kind: make(row) for kind, make in kinds.items()} for row in X]
    calls = {kind: lambda row, kind=kind: model.predict(row[kind]) for kind in kinds}
    found = latencies(calls, rows, job.size.seconds / 80)
    job.report.section(
        "A row as a dict",
        f"`Ensemble.predict` of {{name: value}}, {job.d} features, beside that of the same row as an array.",
    )
    ratio = found["a dict"].median / found["an array"].median
    job.report.table(
        ["", "median, microseconds", "99th percentile", "calls"], [(name, *timing) for name, timing in found.items()]
    )
    job.report.targets.append(Target.limit("one row, a dict beside an array, ours", 3, "times", ratio))


# --- loading ------------------------------------------------------------------------------------------------


def load_models(job: Job, folder: Path) -> None:
    report, row = job.report, np.zeros((1, job.d))
    report.section(
        "Loading and cold start",
        "Load: from the file to something that can score, and with the first row scored. Cold start: a fresh "
        f"interpreter that imports, loads and scores one row, beside one that does `{BARE}`.",
    )
    files: dict[tuple[str, int], Path] = {}
    runs: dict[tuple[str, str, int], Callable[[], Any]] = {("cold", BARE, 0): partial(run_python, BARE)}
    for (name, rounds), model in job.models.items():
        if rounds < job.size.usual_rounds:
            continue
        contender = CONTENDERS[name]
        path = files[name, rounds] = folder / f"{name}-{rounds}{contender.suffix}"
        contender.save(model, path)
        runs["load", name, rounds] = partial(ready, contender, path)
        runs["first", name, rounds] = partial(first_score, contender, path, row)
        if rounds == job.size.usual_rounds:
            code = COLD_START_HEAD + contender.cold_start
            runs["cold", name, rounds] = partial(run_python, code, str(path), str(job.d))
    timed = job.time(runs)
    bare = timed["cold", BARE, 0].best
    table: list[tuple[Any, ...]] = [(f"`{BARE}`", "", "", "", 1e3 * bare, 1.0, "")]
    for (name, rounds), path in files.items():
        load, first = timed["load", name, rounds].best, timed["first", name, rounds].best
        cold = timed["cold", name, rounds].best if ("cold", name, rounds) in timed else np.nan
        table.append((job.title(name), rounds, 1e3 * load, 1e3 * first, 1e3 * cold, cold / bare,
                      path.stat().st_size / 1e3))  # fmt: skip
        report.record("load", contender=name, rounds=rounds, load_s=load, first_row_s=first, cold_start_s=cold,
                      bare_s=bare, bytes=path.stat().st_size)  # fmt: skip
    columns = ["", "rounds", "load, milliseconds", "load and first row", "cold start, milliseconds", "times bare"]
    report.table([*columns, "file, kB"], table)
    ratio = timed["cold", OURS, job.size.usual_rounds].best / bare
    report.targets.append(Target.limit(f"cold start beside `{BARE}`", 1.25, "times", ratio))


def ready(contender: Contender, path: Path) -> Callable[[np.ndarray], np.ndarray]:
    return contender.scorer(contender.load(path), 1)


def first_score(contender: Contender, path: Path, row: np.ndarray) -> np.ndarray:
    return ready(contender, path)(row)


def load_large(job: Job, folder: Path) -> None:
    """As many voters as stumps of LightGBM, which loads its text format."""
    report, n, row = job.report, job.size.voters, np.zeros((1, job.d))
    report.section(f"Loading {n:,} voters")
    X, y = generate(500, job.d, seed=3)
    path = folder / "large.h5"
    random_ensemble(X, -(-n // job.d)).save(path)
    files = {OURS: path}
    if "lightgbm" in job.names:
        files["lightgbm"] = folder / "large.txt"
        model = CONTENDERS["lightgbm"].fit(X, y, n, 1)
        CONTENDERS["lightgbm"].save(model, files["lightgbm"])
        report.text(f"LightGBM's model has {model.num_trees():,} stumps.")
    runs: dict[tuple[str, str], Callable[[], Any]] = {}
    for name, path in files.items():
        runs["load", name] = partial(ready, CONTENDERS[name], path)
        runs["first", name] = partial(first_score, CONTENDERS[name], path, row)
    timed = job.time(runs)
    table = []
    for name, path in files.items():
        load, first = timed["load", name].best, timed["first", name].best
        table.append(
            (job.title(name), 1e3 * load, 1e3 * first, load / timed["load", OURS].best, path.stat().st_size / 1e3)
        )
        report.record("load large", contender=name, voters=n, load_s=load, first_row_s=first, bytes=path.stat().st_size)
    report.table(["", "load, milliseconds", "load and first row", "times ours", "file, kB"], table)
    ratio = timed["load", "lightgbm"].best / timed["load", OURS].best if "lightgbm" in files else None
    report.targets.append(Target.ratio(f"load of {n:,} voters, beside LightGBM", 5, ratio))


def random_ensemble(X: np.ndarray, per_feature: int) -> Ensemble:
    """Thresholds spread as the values of X."""
    random = np.random.default_rng(0)
    share = random.random(per_feature)
    thresholds = [np.unique(np.quantile(column, share)) for column in np.nan_to_num(X).T]
    feature = np.repeat(np.arange(X.shape[1]), [len(values) for values in thresholds])
    weight = random.normal(size=len(feature))
    return Ensemble(feature, np.concatenate(thresholds), weight, 0.0, n_features=X.shape[1])


def of_levels(ensemble: Ensemble) -> Ensemble:
    """Every threshold a level of its own."""
    places = [np.flatnonzero(ensemble.feature == feature) for feature in range(ensemble.n_features)]
    level = np.concatenate([np.arange(len(voters)) for voters in places])
    categories = {f: [[value] for value in ensemble.threshold[voters].tolist()] for f, voters in enumerate(places)}
    return Ensemble(ensemble.feature, level, ensemble.weight, 0.0, kind=np.ones(len(level)),
                    n_features=ensemble.n_features, categories=categories)  # fmt: skip


# --- other inputs -------------------------------------------------------------------------------------------


def score_other_inputs(job: Job) -> None:
    """Ours alone: widths, thresholds, shapes, categories, orders and types."""
    report, size = job.report, job.size
    report.section(
        "Other inputs",
        f"Ours alone, {job.threads} thread(s); models are random. The sum is that of the same array, on one thread.",
    )
    cases = {f"d = {d}": (d, N_BINS, "correlated") for d in size.widths}
    cases |= {f"{k:,} thresholds a feature": (job.d, k, "correlated") for k in (3, 31, 4_000)}
    cases |= {shape: (job.d, N_BINS, shape) for shape in ("skewed", "duplicates", "missing")}
    cases["categories, in a matrix of numbers"] = (job.d, N_BINS, "discrete")
    table = []
    for label, (d, per_feature, shape) in cases.items():
        m = min(size.rows, 30 * size.rows // d)
        X, _ = generate(m, d, shape, seed=4)
        ensemble = random_ensemble(X[:10_000], per_feature)
        if shape == "discrete":
            ensemble = of_levels(ensemble)
        score = ensemble.decision_function
        score(X[:1])
        inputs = {"": X}
        if label == f"d = {job.d}":
            inputs |= {", Fortran order": np.asfortranarray(X), ", float32": X.astype(np.float32)}
            inputs |= {", every other row": np.repeat(X, 2, axis=0)[::2]}
        for words, values in inputs.items():
            runs = {
                "ours": partial(score, values, n_jobs=job.threads),
                SUM: partial(values.sum, axis=1),
            }
            timed = job.time(runs)
            ours, total = timed["ours"].best, timed[SUM].best
            table.append((label + words, m, 1e3 * ours, 1e9 * ours / values.size, ours / total))
            report.record("input", what=label + words, rows=m, d=d, ours=timed["ours"].wall, sum=timed[SUM].wall)
    report.table(["", "rows", "milliseconds", "ns a value", "times the sum"], table)


if __name__ == "__main__":
    main()
