"""Time training beside other libraries, on the same data in the same run, with the risk that the time buys.

    python scripts/benchmark_training.py [--quick] [--peers NAMES] [--shape SHAPE] [--docs DIR]
    python scripts/benchmark_training.py --data FILE --target COLUMN

Needs the extra `benchmarks`; peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_peers import BOOSTERS, N_BINS, OURS, choose, memory_of_fit
from benchmark_sizes import SIZES, Job
from benchmarking import SHAPES, WIDE, Line, Report, Target, Timed, generate, in_child, make_parser, read_data

from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.boosting.penalties import NoPenalty
from quadboost.boosting.rounds import run_rounds
from quadboost.boosting.schedule import Schedule
from quadboost.moments.moments import DEFAULT_CACHE_BYTES, column_moments
from quadboost.voters.thresholds import candidate_voters

PEERS = {name: peer.packages for name, peer in BOOSTERS.items() if name != OURS}
PEERS |= {"adaboost": ("sklearn",), "celer": ("celer",), "lasso": ("sklearn",)}
TITLES = {name: peer.title for name, peer in BOOSTERS.items()}
TITLES |= {"adaboost": "AdaBoost", "celer": "celer", "lasso": "Lasso", "lasso-gram": "Lasso, Gram matrix precomputed"}

RISK_ROWS = 20_000  # rows, of the training rows and of others, on which the risk is taken
L1_THRESHOLDS = 31
L1_TOL = 1e-8  # where the gap is below L1_GAP
L1_GAP = 1e-6  # of the objective
L1_SOLVE_EVERY = 300  # rounds
WIDE_PEERS = ("lightgbm", "xgboost")
SPARE_BYTES = 100e6


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, metavar="FILE", help="a CSV or Parquet table instead of data made")
    parser.add_argument("--target", metavar="COLUMN", help="of the table: what to predict")
    options = parser.parse_args()
    if (options.data is None) != (options.target is None):
        parser.error("--data and --target go together")
    warnings.simplefilter("ignore")  # of peers, on names of columns and the like
    peers, skipped = choose(options.peers, PEERS)
    packages = [package for name in peers for package in PEERS[name]]
    report = Report("training", "Training: time beside other libraries", options, packages)
    d = WIDE if options.shape == "wide" else options.features
    job = Job(SIZES[options.size], report, peers, d, options.shape, options.threads)
    describe(job, options, skipped)
    warm_up(job)
    if options.data is not None:
        compare_table(job, read_data(options.data, options.target))
    else:
        compare(job)
        show_phases(job)
        compare_l1(job)
        compare_all_thresholds(job)
        compare_wide(job)
        measure_memory(job)
        compare_shapes(job)
    report.finish()


def describe(job: Job, options: argparse.Namespace, skipped: list[str]) -> None:
    data = f"the table {options.data.name}" if options.data else f"made: {SHAPES[job.shape][0]}; d = {job.d}"
    sentences = [
        f"Data: {data}; the target has variance 1.",
        f"All boost stumps for the squared loss, learning step 1 (QuadBoost: no penalty), at most {N_BINS} bins a "
        f"feature and {job.threads} thread(s), from the same float64 matrix in memory to a model.",
        "One round of EBM takes a step for every feature, so it does as many rounds less.",
        "All contenders run in turn, several times; a time is the best of them, cpu is that of all cores. "
        f"Risk is the mean squared error, on (at most) {RISK_ROWS:,} of the training rows and as many others.",
        *([f"Left out: {'; '.join(skipped)}."] if skipped else []),
    ]
    job.report.section("What is compared", "\n".join(f"- {sentence}" for sentence in sentences))


def warm_up(job: Job) -> None:
    """Imports, and first uses that compile or start threads."""
    X, y = generate(200, job.d)
    for name in job.contenders:
        BOOSTERS[name].fit(X, y, 3, job.threads)


# --- rounds and rows ----------------------------------------------------------------------------------------


def compare(job: Job) -> None:
    """All contenders over rounds and rows."""
    size = job.size
    rows = job.rows
    results: dict[int, dict[tuple[str, int], Timed]] = {}
    for m, seconds in zip(rows, size.row_seconds, strict=False):
        X, y = job.data(m, RISK_ROWS)
        results[m] = race(job, X, y, m, size.rounds if m == rows[0] else None, seconds)
    usual = size.peer_rounds
    lines = {TITLES[name]: Line(rows, [results[m][name, usual].best for m in rows]) for name in job.contenders}
    job.report.plot("rows", f"Time against rows, {usual:,} rounds", "rows", "seconds", lines)
    for m, rounds, least in size.wanted:
        if m not in results:
            continue
        ours = results[m][OURS, rounds].best
        for peer in ("lightgbm", "xgboost"):
            known = peer in job.peers
            ratio = seconds_for(results[m], peer, rounds) / ours if known else None
            work = f"{rounds:,} rounds, m = {m:,}, beside {TITLES[peer]}"
            job.report.targets.append(Target.ratio(work, least, ratio))


def compare_table(job: Job, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    n_others = min(RISK_ROWS, len(y) // 5)
    race(job, X, y, len(y) - n_others, None, job.size.row_seconds[-1])


def race(
    job: Job, X: np.ndarray, y: np.ndarray, m: int, peer_rounds: tuple[int, ...] | None, seconds: float
) -> dict[tuple[str, int], Timed]:
    """All contenders on the first m rows; the other rows are for the risk."""
    report, rounds = job.report, job.size.rounds
    if peer_rounds is None:
        peer_rounds = tuple(n for n in rounds if n <= job.size.peer_rounds)
    report.section(f"m = {m:,}, d = {X.shape[1]:,}")
    X_train, y_train = X[:m], y[:m]

    def risks(key: tuple[str, int], model: Any) -> tuple[float, float]:
        score = BOOSTERS[key[0]].scorer(model, job.threads)
        seen = slice(0, min(m, RISK_ROWS))
        return float(np.mean((y[seen] - score(X[seen])) ** 2)), float(np.mean((y[m:] - score(X[m:])) ** 2))

    runs = {
        (name, n): partial(BOOSTERS[name].fit, X_train, y_train, n, job.threads)
        for name in job.contenders
        for n in (rounds if name == OURS else peer_rounds)
    }
    timed = job.time(runs, seconds, note=risks)
    table = []
    for (name, n), result in timed.items():
        slower = result.best / timed[OURS, n].best
        risk, other_risk = result.notes
        table.append((TITLES[name], n, result.best, min(result.cpu), slower, risk, other_risk, len(result.wall)))
        report.record("rounds", contender=name, m=m, d=X.shape[1], rounds=n, risk=risk, other_risk=other_risk,
                      wall=result.wall, cpu=result.cpu)  # fmt: skip
    columns = ["", "rounds", "seconds", "cpu", "times ours", "risk, training", "risk, others", "runs"]
    report.table(columns, [(*row[:5], f"{row[5]:.5f}", f"{row[6]:.5f}", row[7]) for row in table])
    show_lines(job, timed, m, peer_rounds)
    return timed


def straight(timed: Mapping[tuple[str, int], Timed], name: str, most: int) -> tuple[float, float, float]:
    """Seconds a round and for none by a straight line through up to `most` rounds, and how far off it is at worst."""
    n, seconds = np.array([(n, result.best) for (who, n), result in timed.items() if who == name and n <= most]).T
    if len(n) == 1:
        return float(seconds[0] / n[0]), 0.0, np.nan
    slope, constant = np.polyfit(n, seconds, 1, w=1 / seconds)
    return float(slope), float(constant), float(np.abs((slope * n + constant) / seconds - 1).max())


def seconds_for(timed: Mapping[tuple[str, int], Timed], name: str, rounds: int) -> float:
    """Measured where it was, else by a straight line."""
    if (name, rounds) in timed:
        return timed[name, rounds].best
    slope, constant, _ = straight(timed, name, rounds)
    return slope * rounds + constant


def show_lines(job: Job, timed: Mapping[tuple[str, int], Timed], m: int, peer_rounds: tuple[int, ...]) -> None:
    """That peers are linear in the rounds, and what that means for rounds that they did not do."""
    most, usual = job.size.rounds[-1], job.size.peer_rounds
    rows = []
    for name in job.contenders:
        slope, constant, off = straight(timed, name, usual)
        measured = timed[name, most].best if (name, most) in timed else None
        rows.append((TITLES[name], 1e6 * slope, f"{100 * off:.1f} %", slope * most + constant, measured,
                     seconds_for(timed, name, most) / timed[OURS, most].best))  # fmt: skip
        job.report.record("line", contender=name, m=m, seconds_a_round=slope, seconds_for_none=constant, worst=off)
    job.report.text(f"A straight line through the times of up to {usual:,} rounds, and what it says of {most:,}:")
    columns = ["", "microseconds a round", "off by at most", f"{most:,} rounds, seconds by the line", "measured"]
    job.report.table([*columns, "times ours"], rows)
    lines = {}
    for name in job.contenders:
        rounds = list(job.size.rounds)
        known = sum((name, n) in timed for n in rounds)
        lines[TITLES[name]] = Line(rounds, [seconds_for(timed, name, n) for n in rounds], known)
    caption = f"Time against rounds, m = {m:,}; dotted: by the line"
    job.report.plot(f"rounds-{m}", caption, "rounds", "seconds", lines)


# --- phases of ours -----------------------------------------------------------------------------------------


def phases(X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> dict[str, float]:
    """A fit by the package's own functions, each timed apart."""
    times = [time.perf_counter()]

    def lap() -> None:
        times.append(time.perf_counter())

    stumps = candidate_voters(X, thresholds=N_BINS, n_threads=threads)
    lap()
    codes = stumps.code(X, threads)
    lap()
    moments = column_moments(stumps, codes, y, n_threads=threads)
    lap()
    for _ in range(2):
        boosted = run_rounds(
            moments, NoPenalty(), Schedule(max_rounds=rounds, tol=0), mode="corrective", fit_intercept=True
        )
        lap()
    thresholds, coding, margins, first, second = np.diff(times)
    return {
        "thresholds": thresholds,
        "coding": coding,
        "margins": margins,
        "columns": max(0.0, first - second),
        "rounds": second,
        "a round": second / boosted.n_rounds,
        "n_columns": len(np.unique(boosted.history["voter"])),
    }


def show_phases(job: Job) -> None:
    """Where our time goes, and that a round does not depend on the rows."""
    report = job.report
    report.section(
        "Phases of QuadBoost",
        "Margins and Gram columns are counted from the coded rows; a column is made when its voter is first drawn. "
        "The rounds are run twice, and the second time find the columns that the first has made: theirs is the time of "
        "the second, and what the first took longer is that of the columns. Each figure is the best of several runs; "
        "the whole fit is the estimator's.",
    )
    names = ["thresholds", "coding", "margins", "columns", "rounds", "a round", "n_columns"]
    sets = {m: job.data(m) for m in job.rows}
    runs: dict[tuple[str, int, int], Callable[[], Any]] = {}
    found: dict[tuple[int, int], list[dict[str, float]]] = {}

    def take_apart(m: int, n: int) -> None:
        found.setdefault((m, n), []).append(phases(*sets[m], n, job.threads))

    rounds = sorted({job.size.peer_rounds, job.size.rounds[-1]})
    for n in rounds:
        for m, (X, y) in sets.items():
            runs["whole", m, n] = partial(BOOSTERS[OURS].fit, X, y, n, job.threads)
            runs["phases", m, n] = partial(take_apart, m, n)
    timed = job.time(runs, job.size.part_seconds)
    rows = []
    best = {key: {name: min(run[name] for run in all_runs) for name in names} for key, all_runs in found.items()}
    for (m, n), seconds in best.items():
        whole = timed["whole", m, n].best
        rows.append(
            (m, n, *(seconds[name] for name in names[:5]), whole, 1e6 * seconds["a round"], seconds["n_columns"])
        )
        report.record("phases", m=m, rounds=n, whole=timed["whole", m, n].wall, runs=found[m, n])
    columns = ["rows", "rounds", "thresholds", "coding", "counting: margins", "counting: columns", "rounds, seconds"]
    report.table([*columns, "whole fit", "a round, microseconds", "columns made"], rows)
    few, many, most = min(sets), max(sets), rounds[-1]
    ratio = best[many, most]["a round"] / best[few, most]["a round"]
    report.targets.append(Target.limit(f"a round at m = {many:,} beside one at m = {few:,}", 1.2, "times", ratio))


# --- l1 to the optimum --------------------------------------------------------------------------------------


def l1_runs(job: Job, X: np.ndarray, y: np.ndarray, H: np.ndarray) -> dict[tuple[str, float], Callable[[], Any]]:
    """What is timed, by contender and lambda."""
    ours = {
        lam: partial(
            QuadBoostRegressor("l1", reg_lambda=lam, thresholds=L1_THRESHOLDS, fit_intercept=False, tol=L1_TOL,
                               reweight_every=L1_SOLVE_EVERY, reweight_sweeps="solve", max_rounds=10_000_000,
                               n_jobs=job.threads).fit, X, y,
        )
        for lam in job.size.lambdas
    }  # fmt: skip
    runs: dict[tuple[str, float], Callable[[], Any]] = {}
    for lam, run in ours.items():
        runs[OURS, lam] = run
        # Theirs is half our objective, and they stop by the gap over mean(y^2).
        tol = L1_GAP * run().history_["objective"][-1] / 2 / np.mean(y * y)
        if "celer" in job.peers:
            runs["celer", lam] = partial(fit_celer, H, y, lam, tol)
        if "lasso" in job.peers:
            runs["lasso-gram", lam] = partial(fit_lasso, H, y, lam, tol, True)
            if lam >= job.size.plain_lasso:
                runs["lasso", lam] = partial(fit_lasso, H, y, lam, tol, False)
    return runs


def compare_l1(job: Job) -> None:
    """QuadBoost from X, the others from the explicit matrix of stumps, to the same gap."""
    report, size = job.report, job.size
    X, y = job.data(size.l1_rows)
    stumps = candidate_voters(X, thresholds=L1_THRESHOLDS)
    H = stump_matrix(stumps, stumps.code(X))
    report.section(
        f"l1 to the optimum: m = {len(y):,}, {H.shape[1]:,} stumps",
        f"Until the duality gap is below {L1_GAP:g} of the objective, no intercept. The others get the explicit matrix "
        "of stumps, and the time to make it is not counted; ours begins with X, and solves for all weights at once "
        f"after every {L1_SOLVE_EVERY} rounds. Objective and gap are computed "
        "from the scores in the same way for all, as a share of the objective; its own gap is what a solver says "
        "(celer has a sharper one). scikit-learn's Lasso also has the Gram matrix precomputed (counted); "
        f"without it, it is slow, and done only for a lambda of at least {size.plain_lasso:g}.",
    )
    runs = l1_runs(job, X, y, H)

    def certify(key: tuple[str, float], model: Any) -> tuple[float, float, float]:
        if key[0] == OURS:
            scores, norm, own_gap = model.predict(X), np.abs(model.ensemble_.weight).sum(), model.dual_gap_
        else:
            scores, norm, own_gap = H @ model.coef_, np.abs(model.coef_).sum(), 2 * float(model.dual_gap_)
        objective, gap = certificate(H, y, scores, norm, key[1])
        return objective, gap, own_gap / objective

    timed = job.time(runs, 2.5 * size.part_seconds, note=certify)
    rows = []
    least = {lam: min(result.notes[0] for (_, other), result in timed.items() if other == lam) for lam in size.lambdas}
    for (name, lam), result in timed.items():
        objective, gap, own_gap = result.notes
        shares = [f"{share:.1e}" for share in (objective / least[lam] - 1, gap, own_gap)]
        slower = result.best / timed[OURS, lam].best
        rows.append((f"{lam:g}", TITLES[name], result.best, slower, f"{objective:.8f}", *shares, len(result.wall)))
        report.record("l1", contender=name, reg_lambda=lam, m=len(y), stumps=H.shape[1], objective=objective,
                      relative_gap=gap, own_relative_gap=own_gap, wall=result.wall, cpu=result.cpu)  # fmt: skip
    columns = ["lambda", "", "seconds", "times ours", "objective", "above the least", "gap", "gap, its own", "runs"]
    report.table(columns, rows)
    work = f"l1, m = {len(y):,}, {H.shape[1]:,} stumps, lambda {size.lambdas[0]:g} to {size.lambdas[-1]:g}"
    ratio = None
    if "celer" in job.peers:
        ratio = min(timed["celer", lam].best / timed[OURS, lam].best for lam in size.lambdas)
    report.targets.append(Target.ratio(f"{work}, beside celer, worst lambda", 30, ratio))
    worst = max(timed[OURS, lam].notes[1] for lam in size.lambdas)
    report.targets.append(Target.limit(f"{work}: duality gap", L1_GAP, "of the objective", worst))


def stump_matrix(stumps: Any, codes: np.ndarray) -> np.ndarray:
    H = np.empty((len(codes), stumps.n_voters), order="F")
    for voter in range(stumps.n_voters):
        feature, votes = stumps.votes(voter)
        H[:, voter] = votes[codes[:, feature]]
    return H


def fit_celer(H: np.ndarray, y: np.ndarray, lam: float, tol: float) -> Any:
    from celer import Lasso

    return Lasso(lam, fit_intercept=False, tol=tol, max_iter=1_000).fit(H, y)


def fit_lasso(H: np.ndarray, y: np.ndarray, lam: float, tol: float, precompute: bool) -> Any:
    from sklearn.linear_model import Lasso

    return Lasso(lam, fit_intercept=False, tol=tol, precompute=precompute, max_iter=1_000_000).fit(H, y)


def certificate(H: np.ndarray, y: np.ndarray, F: np.ndarray, norm: float, lam: float) -> tuple[float, float]:
    """risk + 2 lam sum |a|, and the duality gap as a share of it."""
    residual = y - F
    risk, target = float(np.mean(residual**2)), float(np.mean(y * residual))
    limit = lam * len(y) / float(np.abs(H.T @ residual).max())
    scale = min(max(target / risk, -limit), limit)
    objective = risk + 2 * lam * norm
    return objective, (objective - 2 * scale * target + scale * scale * risk) / objective


# --- every threshold ----------------------------------------------------------------------------------------


def compare_all_thresholds(job: Job) -> None:
    report, size = job.report, job.size
    m, n_others = size.all_rows, min(size.all_rows, RISK_ROWS)
    X, y = job.data(m, n_others)
    X = np.nan_to_num(X)  # AdaBoost takes no missing values
    labels = y > 0
    report.section(
        f'Every threshold: m = {m:,}, thresholds="all"',
        "The sign of the target is to be predicted; error is the share of wrong signs on other rows. AdaBoost needs "
        "as long for every round, so a few will do.",
    )

    def ours(n: int) -> Any:
        model = QuadBoostClassifier(None, thresholds="all", max_rounds=n, tol=0, n_jobs=job.threads)
        return model.fit(X[:m], labels[:m])

    def ada(n: int) -> Any:
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        return AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=n).fit(X[:m], labels[:m])

    runs: dict[tuple[str, int], Callable[[], Any]] = {}
    for n in (*size.ada_rounds, size.all_rounds):
        runs[OURS, n] = partial(ours, n)
    if "adaboost" in job.peers:
        runs |= {("adaboost", n): partial(ada, n) for n in size.ada_rounds}
    timed = job.time(
        runs, size.part_seconds, note=lambda key, model: float(np.mean(model.predict(X[m:]) != labels[m:]))
    )
    rows = []
    for (name, n), result in timed.items():
        rows.append((TITLES[name], n, result.best, 1e3 * result.best / n, f"{result.notes:.4f}", len(result.wall)))
        report.record("all", contender=name, m=m, rounds=n, error=result.notes, wall=result.wall, cpu=result.cpu)
    report.table(["", "rounds", "seconds", "milliseconds a round", "error, others", "runs"], rows)
    ratio = None
    if "adaboost" in job.peers:
        n = size.ada_rounds[-1]
        ratio = timed["adaboost", n].best / n / (timed[OURS, size.all_rounds].best / size.all_rounds)
    work = f'thresholds="all", m = {m:,}, {size.all_rounds:,} rounds, per round beside AdaBoost'
    report.targets.append(Target.ratio(work, 20, ratio))


# --- many features, memory, other shapes --------------------------------------------------------------------


def compare_wide(job: Job) -> None:
    report, n, (m, d) = job.report, job.size.wide_rounds, job.size.wide
    X, y = generate(m, d, job.shape)
    report.section(f"Many features: m = {m:,}, d = {d:,}, {n:,} rounds")
    timed = short_race(job, X, y, n, WIDE_PEERS, "wide", 1.5 * job.size.part_seconds)
    ratio = timed["lightgbm"].best / timed[OURS].best if "lightgbm" in timed else None
    report.targets.append(Target.ratio(f"m = {m:,}, d = {d:,}, {n:,} rounds, beside LightGBM", 1, ratio))


def short_race(
    job: Job, X: np.ndarray, y: np.ndarray, rounds: int, names: tuple[str, ...], part: str, seconds: float
) -> dict[str, Timed]:
    """One number of rounds, some peers, the risk on training rows."""

    def risk(name: str, model: Any) -> float:
        return float(np.mean((y[:RISK_ROWS] - BOOSTERS[name].scorer(model, job.threads)(X[:RISK_ROWS])) ** 2))

    chosen = [OURS, *(name for name in names if name in job.peers)]
    runs = {name: partial(BOOSTERS[name].fit, X, y, rounds, job.threads) for name in chosen}
    timed = job.time(runs, seconds, note=risk)
    rows = []
    for name, result in timed.items():
        slower = result.best / timed[OURS].best
        rows.append((TITLES[name], result.best, min(result.cpu), slower, f"{result.notes:.5f}", len(result.wall)))
        job.report.record(part, contender=name, m=len(y), d=X.shape[1], rounds=rounds, risk=result.notes,
                          wall=result.wall, cpu=result.cpu)  # fmt: skip
    job.report.table(["", "seconds", "cpu", "times ours", "risk, training", "runs"], rows)
    return timed


def measure_memory(job: Job) -> None:
    report, size = job.report, job.size
    cases = [
        # EBM works in processes of its own, which would not be counted.
        (job.rows[-1], job.d, size.rounds[-1], [name for name in job.contenders if name != "ebm"], SPARE_BYTES),
        (*size.wide, size.wide_rounds, [name for name in job.contenders if name in (OURS, *WIDE_PEERS)], 0.0),
    ]
    report.section(
        "Memory",
        f"Peak above the caller's matrix, each fit in a process of its own: QuadBoost with all rounds, since it keeps "
        f"a column for each voter drawn, the others with {size.memory_rounds}. Coded data are m d bytes; "
        f"cache_bytes is {DEFAULT_CACHE_BYTES / 1e6:,.0f} MB.",
    )
    rows = []
    for m, d, rounds, names, spare in cases:
        X, y = generate(m, d, job.shape)
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "X.npy"), X)
            np.save(Path(folder, "y.npy"), y)
            for name in names:
                n = rounds if name == OURS else size.memory_rounds
                peak = in_child(memory_of_fit, name, folder, n, job.threads)
                rows.append((m, d, TITLES[name], n, peak / 1e6, peak / X.nbytes))
                report.record("memory", contender=name, m=m, d=d, rounds=n, bytes=peak)
                if name == OURS:
                    allowed = (m * d + DEFAULT_CACHE_BYTES + spare) / 1e6
                    work = f"memory above the caller's X, m = {m:,}, d = {d:,}"
                    report.targets.append(Target.limit(work, allowed, "MB", peak / 1e6))
    report.table(["rows", "features", "", "rounds", "MB", "share of X"], rows)


def compare_shapes(job: Job) -> None:
    report, size = job.report, job.size
    for shape, (words, _) in SHAPES.items():
        if shape in (job.shape, "wide"):
            continue
        X, y = generate(size.shape_rows, job.d, shape)
        report.section(f"Another shape, {shape}: m = {len(y):,}, {size.shape_rounds:,} rounds", f"Data: {words}.")
        short_race(job, X, y, size.shape_rounds, WIDE_PEERS, f"shape {shape}", size.part_seconds / 5)


if __name__ == "__main__":
    main()
