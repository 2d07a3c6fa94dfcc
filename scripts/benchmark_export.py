"""Time exported models: C, ONNX beside onnxmltools' export of LightGBM, SQL, JavaScript (docs/exporting.md).

    python scripts/benchmark_export.py [--rows N]

Processor time of one thread, the best of several runs; every export's scores are compared with decision_function first.
Needs the extra `benchmarks`, a C compiler, and node for JavaScript; what is not there is left out.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from quadboost import Ensemble, QuadBoostClassifier
from quadboost.export import to_c, to_javascript, to_onnx, to_sql

RUNS = 15
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    size_t n = strtoull(argv[1], NULL, 10);
    double *rows = malloc(sizeof(double) * n * m_FEATURES), *scores = malloc(sizeof(double) * n);
    double best = 1e9;
    FILE *file = fopen(argv[2], "rb");
    if (argc < 4 || fread(rows, sizeof(double), n * m_FEATURES, file) != n * m_FEATURES)
        return 1;
    fclose(file);
    for (int run = 0; run < 7; run++) {
        clock_t start = clock();
        for (size_t row = 0; row < n; row++)
            m_score(rows + row * m_FEATURES, NULL, scores + row);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        best = seconds < best ? seconds : best;
    }
    file = fopen(argv[3], "wb");
    fwrite(scores, sizeof(double), n, file);
    fclose(file);
    printf("%.9f\n", best);
    return 0;
}
"""
NODE = r"""
const fs = require("fs"), model = require("./model.js"), n = Number(process.argv[2]), d = model.features.length;
const bytes = fs.readFileSync(process.argv[3]);
const values = new Float64Array(bytes.buffer, bytes.byteOffset, n * d);
const rows = Array.from({ length: n }, (_, i) => Array.from(values.subarray(i * d, i * d + d)));
let best = 1e9, scores;
for (let run = 0; run < 7; run++) {
  const start = process.cpuUsage();
  scores = Float64Array.from(rows, (row) => model.score(row)[0]);
  const used = process.cpuUsage(start);
  best = Math.min(best, (used.user + used.system) / 1e6);
}
fs.writeFileSync(process.argv[4], Buffer.from(scores.buffer));
console.log(best);
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="rows to score (default: 100000)")
    rows = parser.parse_args().rows
    warnings.simplefilter("ignore")
    print("| export | model | million rows a second | microseconds a row |\n| --- | --- | --- | --- |")
    for name, model, seconds, n in chain(fourteen_columns(rows), thirty_columns(rows)):
        print(f"| {name} | {model} | {n / seconds / 1e6:.3g} | {seconds / n * 1e6:.3g} |", flush=True)


def fourteen_columns(n: int) -> Iterator[tuple[str, str, float, int]]:
    """A model of 14 columns, as it is trained by default, and LightGBM of 100 trees of 31 leaves on the same rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(max(n, 20_000), 14))
    y = (np.sin(2 * X).sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)  # onnxmltools knows no bool
    model = QuadBoostClassifier().fit(X[:20_000], y[:20_000]).ensemble_
    X, expected = X[:n], model.decision_function(X[:n])
    steps = sum(len(shape.values) for shape in model.shape_functions())
    words = f"14 columns, {steps} steps"
    for name, run in (("C (`cc -O2`)", run_c), ("JavaScript (node)", run_node)):
        if (timed := run(model, X, expected)) is not None:
            yield name, words, timed, n
    ours = session(to_onnx(model).SerializeToString())
    check(ours.run(["scores"], {"X": X})[0], expected)
    theirs, trees = lightgbm(X, y[:n])
    single = X.astype(np.float32)
    best = interleaved([lambda: ours.run(None, {"X": X}), lambda: theirs.run(None, {"X": single})])
    yield "ONNX, float64 (onnxruntime)", words, best[0], n
    yield f"LightGBM by onnxmltools, float32: {best[1] / best[0]:.1f} times the time", trees, best[1], n
    few = range(min(n, 500))
    best = interleaved(
        [
            lambda: [ours.run(None, {"X": X[row : row + 1]}) for row in few],
            lambda: [theirs.run(None, {"X": single[row : row + 1]}) for row in few],
        ]
    )
    yield "ONNX, float64, a row at a time", words, best[0], len(few)
    yield f"LightGBM, a row at a time: {best[1] / best[0]:.1f} times the time", trees, best[1], len(few)


def thirty_columns(n: int) -> Iterator[tuple[str, str, float, int]]:
    """Databases, on a model of 30 features of 50 steps each."""
    rng = np.random.default_rng(1)
    cuts = np.sort(rng.normal(size=(30, 49)), axis=1)
    model = Ensemble(np.repeat(range(30), 49), cuts.ravel(), rng.normal(size=cuts.size), 0.1, n_features=30)
    X = rng.normal(size=(n, 30))
    expected, words = model.decision_function(X), "30 columns, 1,500 steps"
    yield "DuckDB (one thread)", words, run_duckdb(model, X, expected), n
    yield "SQLite", words, run_sqlite(model, X[: n // 10], expected[: n // 10]), n // 10


def run_c(model: Ensemble, X: np.ndarray, expected: np.ndarray) -> float | None:
    compiler = shutil.which("cc")
    return (
        None
        if compiler is None
        else in_folder(
            {"model.c": to_c(model, name="m") + DRIVER},
            [[compiler, "-std=c99", "-O2", "model.c", "-o", "model", "-lm"]],
            ["./model"],
            X,
            expected,
        )
    )


def run_node(model: Ensemble, X: np.ndarray, expected: np.ndarray) -> float | None:
    node = shutil.which("node")
    files = {"model.js": to_javascript(model), "run.js": NODE}
    return None if node is None else in_folder(files, [], [node, "run.js"], X, expected)


def in_folder(
    files: dict[str, str], first: list[list[str]], command: list[str], X: np.ndarray, expected: np.ndarray
) -> float:
    """Run a program that scores rows and prints its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        (Path(folder) / "rows").write_bytes(X.tobytes())
        for before in first:
            subprocess.run(before, cwd=folder, check=True)
        done = subprocess.run([*command, str(len(X)), "rows", "scores"], cwd=folder, check=True, stdout=subprocess.PIPE)
        check(np.frombuffer((Path(folder) / "scores").read_bytes()), expected)
        return float(done.stdout)


def run_duckdb(model: Ensemble, X: np.ndarray, expected: np.ndarray) -> float:
    import duckdb
    import pandas as pd

    connection = duckdb.connect(config={"threads": 1})
    connection.register("frame", pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]))
    connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    query = to_sql(model, "t", "duckdb")
    check(connection.execute(query).fetchnumpy()["score"], expected)
    return interleaved([lambda: connection.execute(query).fetchnumpy()])[0]


def run_sqlite(model: Ensemble, X: np.ndarray, expected: np.ndarray) -> float:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t ({', '.join(f'x{j} REAL' for j in range(X.shape[1]))})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * X.shape[1])})", X.tolist())
    query = to_sql(model, "t", "sqlite")
    check([row[0] for row in connection.execute(query)], expected)
    return interleaved([lambda: connection.execute(query).fetchall()])[0]


def session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # onnxmltools says a wrong shape of labels
    return onnxruntime.InferenceSession(model, options)


def lightgbm(X: np.ndarray, y: np.ndarray) -> tuple[Any, str]:
    from lightgbm import LGBMClassifier
    from onnxmltools import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    model = LGBMClassifier(n_estimators=100, num_leaves=31, n_jobs=1, verbose=-1).fit(X[:20_000], y[:20_000])
    made = convert_lightgbm(model, initial_types=[("X", FloatTensorType([None, X.shape[1]]))], zipmap=False)
    return session(made.SerializeToString()), "14 columns, 100 trees of 31 leaves"


def interleaved(works: list[Callable[[], Any]]) -> list[float]:
    """The least processor time of each, one after the other in turn."""
    best = [float("inf")] * len(works)
    for _ in range(RUNS):
        for number, work in enumerate(works):
            start = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - start)
    return best


def check(found: Any, expected: np.ndarray) -> None:
    if not np.array_equal(np.asarray(found, dtype=np.float64).view(np.int64), expected.view(np.int64)):
        raise AssertionError("the export has other scores than the model")


if __name__ == "__main__":
    main()
