"""Time the choice of penalties and rounds beside one fit and beside other libraries, in the same run.

    python scripts/benchmark_selection.py [--quick] [--peers NAMES] [--docs DIR] [--data DIR]

Needs the extra `benchmarks`; peers that are not installed are left out. DIR holds the datasets of the paper.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_peers import BOOSTERS, choose
from benchmarking import Report, Target, Timed, figure, generate, interleaved, make_parser
from paper.data import load
from paper.voting import GRIDS, L1_TOL, TOL

from quadboost import QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV, regularization_path

PEERS = {"lightgbm": ("lightgbm",), "celer": ("celer",)}
DATASETS = ("pima", "ionosphere")
FOLDS = 5
GAP = 1e-6  # of the risk without voters
PATH_THRESHOLDS = 31


@dataclass(frozen=True)
class Size:
    rows: int
    rounds: int
    strengths: int
    path_rows: int
    path_strengths: int
    celer_seconds: float  # the path of celer is cut where it takes longer
    seconds: float  # for repetitions of each part


SIZES = {
    "full": Size(100_000, 1_000, 10, 10_000, 100, 600, 60),
    "quick": Size(20_000, 300, 10, 3_000, 30, 20, 5),
    "tiny": Size(500, 20, 3, 300, 5, 5, 0),
}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, metavar="DIR", help="the datasets of the paper")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of peers, on names of columns and convergence
    peers, skipped = choose(options.peers, PEERS)
    report = Report("selection", "Choosing: a grid and a path beside one fit", options, peers)
    size = SIZES[options.size]
    if skipped:
        report.section("Left out", "; ".join(skipped))
    compare_grid(report, size, options, "lightgbm" in peers)
    if options.data is not None:
        time_paper(report, options)
    compare_path(report, size, options, "celer" in peers)  # last: celer takes ten minutes
    report.finish()


# --- a grid -------------------------------------------------------------------------------------------------


def compare_grid(report: Report, size: Size, options: Any, with_lightgbm: bool) -> None:
    X, y = generate(size.rows, options.features, options.shape)
    rounds = np.unique(np.geomspace(1, size.rounds, 10).round().astype(int)).tolist()
    search = QuadBoostRegressorCV(
        "l2", reg_lambda=size.strengths, rounds=rounds, cv=FOLDS, max_rounds=size.rounds, n_jobs=options.threads
    )
    plain = QuadBoostRegressor("l2", max_rounds=size.rounds, n_jobs=options.threads)
    train = np.arange(size.rows) % FOLDS != 0
    runs: dict[str, Callable[[], Any]] = {
        "one fit": lambda: plain.fit(X, y),
        "the grid, and a fit of the choice": lambda: search.fit(X, y),
    }
    if with_lightgbm:
        fit = partial(BOOSTERS["lightgbm"].fit, X[train], y[train], size.rounds, options.threads)
        runs["LightGBM, one fold and strength"] = fit
    for run in runs.values():  # first uses start threads
        run()
    timed = interleaved(runs, seconds=size.seconds, threads=options.threads, at_most=20)
    report.section(
        f"{FOLDS} folds, {size.strengths} strengths of l2, {len(rounds)} numbers of rounds up to {size.rounds:,}",
        f"m = {size.rows:,}, d = {options.features}. LightGBM at depth 1 is timed for one fold and one strength, all "
        f"numbers of rounds taken from one fit; the grid is {FOLDS * size.strengths} times that, and one fit more, "
        "without what scoring the rows held out would take.",
    )
    show(report, "grid", timed)
    ours = timed["the grid, and a fit of the choice"].best
    work = "the grid beside one fit"
    report.targets.append(Target.limit(work, 7, "times the time", ours / timed["one fit"].best))
    peer = timed["LightGBM, one fold and strength"].best * (FOLDS * size.strengths + 1) if with_lightgbm else None
    report.targets.append(Target.ratio("the grid beside LightGBM", 50, None if peer is None else peer / ours))
    if peer is not None:
        report.text(f"LightGBM, the whole grid: {figure(peer)} seconds by that, {figure(peer / ours)} times ours.")


def show(report: Report, part: str, timed: dict[str, Timed]) -> None:
    report.table(["", "seconds", "cpu", "runs"], [(k, t.best, min(t.cpu), len(t.wall)) for k, t in timed.items()])
    for name, result in timed.items():
        report.record(part, run=name, wall=result.wall, cpu=result.cpu)


# --- a path -------------------------------------------------------------------------------------------------


def compare_path(report: Report, size: Size, options: Any, with_celer: bool) -> None:
    X, y = generate(size.path_rows, options.features, options.shape)
    ours = partial(
        regularization_path,
        X,
        y,
        strengths=size.path_strengths,
        thresholds=PATH_THRESHOLDS,
        fit_intercept=False,
        tol=GAP,
        n_jobs=options.threads,
    )
    ours()
    timed = interleaved({"ours, from X and y": ours}, seconds=size.seconds, threads=options.threads)
    path = ours()
    report.section(
        f"A path of {size.path_strengths} strengths of l1 to a gap of {GAP:g}",
        f"m = {size.path_rows:,}, {len(path.feature)} stumps of {options.features * PATH_THRESHOLDS} on it, "
        f"{path.n_active[-1]} at its end; the gap is relative to the mean of the squared target. celer is given the "
        "matrix of the stumps' outputs; it goes along the path until its time is up.",
    )
    show(report, "path", timed)
    ratio = None
    if with_celer:
        ratio = race_with_celer(report, size, X, y, path.strength, timed["ours, from X and y"].best)
    report.targets.append(Target.ratio("the path beside celer", 30, ratio))


def race_with_celer(
    report: Report, size: Size, X: np.ndarray, y: np.ndarray, strengths: np.ndarray, ours: float
) -> float:
    """How many times as long celer takes, as far as it comes."""
    from celer import celer_path

    H = stump_outputs(X)
    celer_path(H[:50], y[:50], "lasso", alphas=strengths[:2])  # compiles
    start, weight, rows, done = time.perf_counter(), None, [], 0
    while done < len(strengths) and time.perf_counter() - start < size.celer_seconds:
        weight = celer_path(H, y, "lasso", alphas=strengths[done : done + 1], coef_init=weight, tol=GAP, max_iter=100)[
            1
        ][:, 0]
        done += 1
        if done % 10 == 0 or done == len(strengths):
            rows.append((done, float(strengths[done - 1]), np.count_nonzero(weight), time.perf_counter() - start))
    seconds = time.perf_counter() - start
    report.table(["strengths done by celer", "lambda", "active voters", "seconds"], rows)
    report.record("celer", strengths=done, seconds=seconds)
    beyond = "" if done == len(strengths) else ", and it is not at the end"
    report.text(f"celer: {figure(seconds)} seconds for {done} strengths, {figure(seconds / ours)} times ours{beyond}.")
    return seconds / ours


def stump_outputs(X: np.ndarray) -> np.ndarray:
    """-1 and +1 for every row and stump."""
    from quadboost.voters.thresholds import candidate_voters

    stumps = candidate_voters(X, thresholds=PATH_THRESHOLDS)
    outputs = [np.where(X[:, [f]] > cuts, 1.0, -1.0) for f, cuts in enumerate(stumps.cuts)]
    return np.asfortranarray(np.hstack(outputs))


# --- the paper's grids --------------------------------------------------------------------------------------


def time_paper(report: Report, options: Any) -> None:
    report.section("The grids of the paper", "All four variants, 5 folds, 10 evenly spaced thresholds, no intercept.")
    rows = []
    for name in DATASETS:
        data = load(options.data, name)
        total = 0.0
        for penalty in GRIDS:
            search, key = paper_search(penalty, options.threads), f"{name}, {penalty}"
            timed = interleaved({key: partial(search.fit, data.X, data.y)}, seconds=0, threads=options.threads)[key]
            total += timed.best
            rows.append((name, str(penalty), timed.best, min(timed.cpu), f"{search.best_score_:.4f}"))
            report.record("paper", dataset=name, penalty=penalty, wall=timed.wall, error=search.best_score_)
        report.targets.append(Target.limit(f"the grids of the paper, {name}", 5, "seconds", total))
    report.table(["dataset", "penalty", "seconds", "cpu", "error, cross-validated"], rows)


def paper_search(penalty: str | None, threads: int) -> QuadBoostClassifierCV:
    settings = GRIDS[penalty]

    def values(name: str) -> list[float]:
        return sorted({setting[name] for setting in settings if name in setting})

    strengths = {name: values(name) for name in ("reg_lambda", "alpha_max") if values(name)}
    return QuadBoostClassifierCV(
        penalty,
        **strengths,
        rounds=values("max_rounds"),
        scoring="error",
        mode="corrective" if penalty == "l1" else "forward",
        thresholds=10,
        spacing="uniform",
        fit_intercept=False,
        calibration=None,  # the sign of the score, as in the paper
        tol=L1_TOL["corrective"] if penalty == "l1" else TOL,
        n_jobs=threads,
    )


if __name__ == "__main__":
    main()
