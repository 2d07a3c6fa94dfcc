"""Run the experiments of the paper: both of its tables, beside the published ones.

    python scripts/reproduce_paper.py --data DIR --output DIR [--splits N] [--datasets NAME ...] [--resume]

DIR of --data holds CSV files and a manifest (docs/paper-data.md); --download fills it from OpenML. The output is
report.md with its plots, trials.csv, table1.csv and table2.csv. A run that was stopped, by Ctrl-C or otherwise, goes
on with --resume. Needs scipy, and for the plots and the peers the extra `benchmarks`.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from paper import data
from paper.algorithms import PEERS
from paper.csv_files import write_csv
from paper.figures import Figures
from paper.report import About, write_report
from paper.results import Store
from paper.run import Plan, run_all

import quadboost

PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm", "interpret-core")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--datasets", nargs="+", default=[], metavar="NAME", help="default: all that are there")
    parser.add_argument("--splits", type=int, default=10, metavar="N", help="random splits (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="of the splits and folds (default: 0)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    parser.add_argument("--resume", action="store_true", help="keep the results in --output and go on")
    parser.add_argument("--download", action="store_true", help="first get missing datasets from OpenML")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the report to this file too")
    parser.add_argument(
        "--adaboost-rounds", type=int, default=10_000, metavar="T",
        help="the most rounds of AdaBoost (default: 10000; the paper: 1000000)",
    )  # fmt: skip
    parser.add_argument(
        "--peers", nargs="*", default=list(PEERS), choices=list(PEERS), help="other libraries (default: all)"
    )
    options = parser.parse_args(arguments)
    if options.splits < 2:
        parser.error(f"--splits {options.splits}: a standard deviation needs at least 2")
    if options.adaboost_rounds < 100:
        parser.error(f"--adaboost-rounds {options.adaboost_rounds}: at least 100 are needed")
    if options.jobs == 0:
        parser.error("--jobs 0: give a number of processes, or -1 for one per core")
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: a seed is a whole number that is not negative")
    for peer in options.peers:
        if find_spec(PEERS[peer][1]) is None:
            parser.error(f"{peer} is not installed; pip install 'quadboost[benchmarks]', or name other --peers")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.download:
        data.download(options.data, options.datasets)
    known = data.read_manifest(options.data)
    for name in options.datasets:
        if name not in known:
            raise SystemExit(f"--datasets {name}: those of the paper that are here are {', '.join(known)}")
    plan = Plan(
        data=options.data.resolve(),
        output=options.output.resolve(),
        datasets=options.datasets or list(known),
        splits=options.splits,
        seed=options.seed,
        adaboost_rounds=options.adaboost_rounds,
        peers=options.peers,
    )
    store = Store(plan.output)
    settings = {"seed": plan.seed, "adaboost_rounds": plan.adaboost_rounds, "versions": versions()}
    store.open(settings, options.resume)
    try:
        run_all(plan, options.jobs)
    except KeyboardInterrupt:
        print("\nstopped; the same command with --resume goes on", file=sys.stderr)
        raise SystemExit(130) from None
    outcomes = store.outcomes(plan.datasets, plan.splits, list(plan.algorithms))
    figures = Figures(outcomes)
    write_csv(plan.output, figures, outcomes)
    about = About(command(options), versions(), settings, [data.load(plan.data, name) for name in plan.datasets])
    for path in [plan.output / "report.md", *([options.docs] if options.docs else [])]:
        write_report(path, figures, about, draw_plots(path.with_suffix(""), figures))
        print(path)


def draw_plots(directory: Path, figures: Figures) -> dict[str, str]:
    if find_spec("matplotlib") is None:
        print("matplotlib is not installed: there are no plots", file=sys.stderr)
        return {}
    from paper.plots import draw

    return draw(directory, figures)


def versions() -> dict[str, str]:
    found = {"quadboost": quadboost.__version__, "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def command(options: argparse.Namespace) -> str:
    """The command that makes this report, with words in place of this machine's directories."""
    words = ["python scripts/reproduce_paper.py --data DATA --output OUTPUT"]
    if options.datasets:
        words.append(f"--datasets {shlex.join(options.datasets)}")
    words.append(f"--splits {options.splits} --seed {options.seed} --adaboost-rounds {options.adaboost_rounds}")
    if options.peers != list(PEERS):
        words.append(f"--peers {shlex.join(options.peers)}")
    return " ".join(words).rstrip()


if __name__ == "__main__":
    main()
