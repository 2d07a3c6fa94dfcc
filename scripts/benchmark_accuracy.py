"""Compare the accuracy of QuadBoost with other libraries over many tables (docs/accuracy.md).

    python scripts/benchmark_accuracy.py --data DIR... --docs docs

Each DIR holds gzipped CSV files with a column `label`; its manifest.json may name the positive labels of a table, or
say that its task is a regression. Tables that scikit-learn ships come on top. 70 % of the rows are for training,
stratified; what each method is set to is written in accuracy/methods.py.

Every fit is a line of the results file: a run that was stopped goes on where it was, and one with other methods, splits
or seeds adds to it. A line knows the version of its package, but not whether the code has changed since. To measure
some methods again, first delete their lines:

    sed -i '/"method": "quadboost/d' accuracy.jsonl

Needs the extra `benchmarks`; what is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accuracy.fit import measure, version_of
from accuracy.methods import MANY_ROWS, METHODS
from accuracy.page import write_page
from accuracy.tables import SHIPPED, all_tables
from benchmark_peers import choose
from benchmarking import tell
from joblib import Parallel, delayed

Key = tuple[str, int, str, str, int]  # table, split, method, version of its package, seed of the splits


def main() -> None:
    options = parse()
    names, left_out = choose(options.peers, {name: method.packages for name, method in METHODS.items()})
    wanted = None if options.tables is None else options.tables.split(",")
    sizes = {table.name: (len(table.X), table.is_regression) for table in all_tables(options.data, wanted)}
    for name in wanted or []:
        if not {name, f"{name} (scikit-learn)"} & set(sizes):
            raise SystemExit(f"--tables {name}: there is no such table in scikit-learn or the directories of --data")
    done = read_results(options.results)
    work = [cell for cell in cells(sizes, names, options) if key_of(*cell, options.seed) not in done]
    tell(f"{len(work)} fits to do, {len(done)} in {options.results}")
    sources = tuple(options.data)
    parallel = Parallel(
        n_jobs=options.workers, return_as="generator_unordered", batch_size=1, initializer=leave_interrupts
    )
    runs = parallel(delayed(measure)(sources, *cell, options.seed) for cell in work)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with open(options.results, "a") as file:
        file.write("\n" if done else "")  # a run that was killed may have left half a line
        for record in bar(runs, len(work)):
            file.write(json.dumps(record) + "\n")
            file.flush()
            done[key_of(record["table"], record["split"], record["method"], options.seed)] = record
    records = [done[key] for cell in cells(sizes, names, options) if (key := key_of(*cell, options.seed)) in done]
    if all("failed" in record for record in records):
        raise SystemExit("; ".join(["there is no fit to show", *dict.fromkeys(record["failed"] for record in records)]))
    text = write_page(records, left_out, options)
    print(text)


def leave_interrupts() -> None:
    """Ctrl-C is for this process alone, which then ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", default=[], metavar="DIR", help="directories with tables")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--large-splits", type=int, default=1, help=f"of tables above {MANY_ROWS:,} rows")
    parser.add_argument("--seed", type=int, default=0, help="of the splits")
    parser.add_argument("--peers", metavar="NAMES", help=f"only these methods, some of {', '.join(METHODS)}")
    parser.add_argument("--tables", metavar="NAMES", help="only these tables")
    parser.add_argument("--workers", type=int, default=2, help="processes; each fit has one thread")
    parser.add_argument("--results", type=Path, default=Path("accuracy.jsonl"), help="file of all fits")
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="write accuracy.md there, with pictures and a CSV file"
    )
    parser.add_argument("--quick", action="store_true", help="to see that it works: three small tables, one split")
    options = parser.parse_args()
    for name, least in (("splits", 1), ("large_splits", 1), ("workers", 1), ("seed", 0)):
        if (value := getattr(options, name)) < least:
            parser.error(f"--{name.replace('_', '-')} {value}: at least {least} is needed")
    for directory in options.data:
        if not any(directory.glob("*.csv.gz")):
            parser.error(f"--data {directory}: there is no NAME.csv.gz in it")
    if options.quick:
        options.tables, options.splits = options.tables or ",".join(SHIPPED[i] for i in (0, 2, 4)), 1
    return options


def cells(
    sizes: dict[str, tuple[int, bool]], names: Sequence[str], options: argparse.Namespace
) -> list[tuple[str, int, str]]:
    """Table, split and method of every fit; the largest tables first, so that none is left alone at the end."""
    found = []
    for table, (n_rows, is_regression) in sorted(sizes.items(), key=lambda item: -item[1][0]):
        for split in range(options.large_splits if n_rows > MANY_ROWS else options.splits):
            found += [(table, split, name) for name in names if METHODS[name].for_regression or not is_regression]
    return found


def key_of(table: str, split: int, method: str, seed: int) -> Key:
    return table, split, method, version_of(method), seed


def read_results(path: Path) -> dict[Key, dict[str, Any]]:
    """The fits that are done; a line that was cut off when a run was killed is no fit."""
    found: dict[Key, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if "failed" not in record:
            key = record["table"], record["split"], record["method"], record["version"], record.get("seed", 0)
            found[key] = record
    return found


def bar(runs: Iterator[dict[str, Any]], n: int) -> Iterator[dict[str, Any]]:
    try:
        from tqdm import tqdm
    except ImportError:
        for i, record in enumerate(runs, 1):
            tell(f"{i} of {n}: {record['table']}, {record['method']}")
            yield record
    else:
        yield from tqdm(runs, total=n, unit="fit")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        tell("stopped; the same command goes on from here")
        raise SystemExit(130) from None
