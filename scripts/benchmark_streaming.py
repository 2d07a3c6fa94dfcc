"""Learn from a Parquet file in bounded memory: CPU and peak resident memory, against the fit in memory and others.

    python scripts/benchmark_streaming.py --directory /tmp [--rows 5000000 20000000] [--trees 100] [--json FILE]

Makes a file of each size (N x 30, seeded) unless it is there, and runs every contender in a process of its own:

streamed    QuadBoostClassifier().fit(Rows.of_files(path, "y", memory=...)), for every size
in memory   the same on the table, for the smallest size; the two models must have the same bits
LightGBM    `Sequence` over row groups of the file, 1,000 rounds of stumps
XGBoost     `ExtMemQuantileDMatrix` over chunks of the file, 1,000 rounds of stumps

With --trees the first two learn rules from so many trees, not stumps alone. The last two are run for the smallest size.
Their CPU for 1,000 rounds is extrapolated from two runs of fewer rounds, and that is said. CPU is user and system time
of the process; memory is its largest resident set.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

N_FEATURES, GROUP_ROWS = 30, 250_000
ROUNDS, FEWER, FEW = 1_000, 60, 20
MEMORY = 1_000_000_000  # for rows, codes and sums; the interpreter and libraries, and COLUMNS, come on top
COLUMNS = 1 << 29  # for Gram columns and joint sums


def make_file(path: Path, n_rows: int) -> None:
    """Features of several distributions, some of them with missing values, and labels by a few of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{j}" for j in range(N_FEATURES)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("y", pa.int8())])
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        with pq.ParquetWriter(file, schema) as writer:
            for number, start in enumerate(range(0, n_rows, GROUP_ROWS)):
                writer.write_table(_chunk(np.random.default_rng([1, number]), min(GROUP_ROWS, n_rows - start), schema))
        os.replace(file.name, path)


def _chunk(rng: np.random.Generator, n: int, schema: Any) -> Any:
    import pyarrow as pa

    X = rng.normal(size=(N_FEATURES, n))
    X[10:20] = np.exp(X[10:20])
    X[20:25] = np.rint(3 * X[20:25])
    X[25:, rng.random(n) < 0.05] = np.nan
    score = np.sin(2 * X[0]) + X[1] - 0.5 * np.log(X[10]) + (X[20] > 2) + 0.3 * np.nan_to_num(X[25])
    y = (score + rng.logistic(size=n) > 0).astype(np.int8)
    return pa.Table.from_arrays([*map(pa.array, X), pa.array(y)], schema=schema)


# --- contenders, each in a process of its own ----------------------------------------------------------------


def streamed(path: str, n_trees: int) -> str:
    from quadboost import QuadBoostClassifier, Rows

    rows = Rows.of_files(path, "y", memory=MEMORY)
    return _digest(QuadBoostClassifier(cache_bytes=COLUMNS, n_trees=n_trees).fit(rows))


def in_memory(path: str, n_trees: int) -> str:
    import pyarrow.parquet as pq

    from quadboost import QuadBoostClassifier

    table = pq.read_table(path)
    model = QuadBoostClassifier(cache_bytes=COLUMNS, n_trees=n_trees)
    return _digest(model.fit(table.drop(["y"]), table["y"].to_numpy()))


def _digest(model: Any) -> str:
    """Of all numbers of the model."""
    names = ("feature", "kind", "threshold", "weight", "intercept", "bin_mass", "node_weight", "node_mass")
    arrays = (np.asarray(getattr(model.ensemble_, name)) for name in names)
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def lightgbm(path: str, n_rounds: int) -> str:
    import lightgbm as lgb
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)

    class Groups(lgb.Sequence):  # type: ignore[misc]
        batch_size = GROUP_ROWS

        def __init__(self) -> None:
            self.number, self.rows = -1, np.empty(0)

        def __len__(self) -> int:
            return int(file.metadata.num_rows)

        def __getitem__(self, index: Any) -> np.ndarray:
            if isinstance(index, slice):  # of a batch: of one row group
                start = index.start % GROUP_ROWS
                return self._group(index.start // GROUP_ROWS)[start : start + index.stop - index.start]
            return self._group(int(index) // GROUP_ROWS)[int(index) % GROUP_ROWS]

        def _group(self, number: int) -> np.ndarray:
            if number != self.number:
                table = file.read_row_group(number, columns=[f"x{j}" for j in range(N_FEATURES)])
                self.number, self.rows = number, np.column_stack([column.to_numpy() for column in table.columns])
            return self.rows

    y = pq.read_table(path, columns=["y"])["y"].to_numpy()
    data = lgb.Dataset(Groups(), y, params={"max_bin": 255, "verbose": -1})
    lgb.train({"objective": "binary", "num_leaves": 2, "verbose": -1}, data, n_rounds)
    return ""


def xgboost(path: str, n_rounds: int) -> str:
    import pyarrow.parquet as pq
    import xgboost as xgb

    file = pq.ParquetFile(path)

    class Groups(xgb.DataIter):  # type: ignore[misc]
        def __init__(self, directory: str) -> None:
            self.number = 0
            super().__init__(cache_prefix=os.path.join(directory, "cache"))

        def next(self, input_data: Any) -> bool:
            if self.number == file.metadata.num_row_groups:
                return False
            table = file.read_row_group(self.number)
            columns = [table[f"x{j}"].to_numpy() for j in range(N_FEATURES)]
            input_data(data=np.column_stack(columns), label=table["y"].to_numpy())
            self.number += 1
            return True

        def reset(self) -> None:
            self.number = 0

    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as directory:
        data = xgb.ExtMemQuantileDMatrix(Groups(directory), max_bin=256)
        xgb.train({"objective": "binary:logistic", "max_depth": 1, "tree_method": "hist"}, data, n_rounds)
    return ""


CONTENDERS = {"streamed": streamed, "in memory": in_memory, "LightGBM": lightgbm, "XGBoost": xgboost}


def measured(name: str, path: Path, size: int = 0) -> dict[str, Any]:
    """Run a contender in a process of its own, with so many rounds or trees."""
    command = [sys.executable, __file__, "--child", name, "--directory", str(path), "--rows", str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"{name} {path.name} {size or ''}: {found['cpu']:.1f} s of CPU, {found['peak'] / 2**20:.0f} MiB", flush=True)
    return found


def extrapolated(name: str, path: Path) -> dict[str, Any]:
    """CPU of 1,000 rounds, from two runs of fewer."""
    few, fewer = measured(name, path, FEW), measured(name, path, FEWER)
    each = (fewer["cpu"] - few["cpu"]) / (FEWER - FEW)
    return {"cpu": few["cpu"] + (ROUNDS - FEW) * each, "peak": fewer["peak"], "extrapolated": True}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", default=tempfile.gettempdir())
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 20_000_000])
    parser.add_argument("--trees", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json")
    parser.add_argument("--child", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        digest = CONTENDERS[options.child](options.directory, options.rows[0])
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024, "digest": digest}))
        return
    found: dict[str, Any] = {}
    for n_rows in sorted(options.rows):
        path = Path(options.directory) / f"quadboost-{n_rows}x{N_FEATURES}.parquet"
        if not path.exists():
            make_file(path, n_rows)
        is_smallest = n_rows == min(options.rows)
        for name in options.only if is_smallest else [name for name in options.only if name == "streamed"]:
            is_other = name in ("LightGBM", "XGBoost")
            found[f"{name}, {n_rows} rows"] = (
                extrapolated(name, path) if is_other else measured(name, path, options.trees)
            )
    tell(found, min(options.rows), max(options.rows))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


def tell(found: dict[str, Any], least: int, most: int) -> None:
    """The ratios that are promised."""
    streamed = found.get(f"streamed, {least} rows")
    if streamed is None:
        return
    for name in ("in memory", "LightGBM", "XGBoost"):
        if other := found.get(f"{name}, {least} rows"):
            how = " (1,000 rounds, extrapolated)" if other.get("extrapolated") else ""
            print(f"CPU of {name}{how} / streamed: {other['cpu'] / streamed['cpu']:.2f}")
    if other := found.get(f"in memory, {least} rows"):
        print(f"same bits as in memory: {other['digest'] == streamed['digest']}")
    if (large := found.get(f"streamed, {most} rows")) and most > least:
        print(f"peak memory, {most} / {least} rows: {large['peak'] / streamed['peak']:.2f}")


if __name__ == "__main__":
    main()
