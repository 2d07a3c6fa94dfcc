"""Helpers for tests of the commands: a table, and ways to run a command."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import quadboost
from quadboost.commands.main import export_main, predict_main, report_main, train_main

MAINS = {
    "quadboost-train": train_main,
    "quadboost-predict": predict_main,
    "quadboost-report": report_main,
    "quadboost-export": export_main,
}


class Done:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def ok(self):
        """What was printed; tests often give too few rounds, and a warning of that is no matter."""
        others = [line for line in self.err.splitlines() if ": warning: --max-rounds" not in line]
        assert (self.status, others) == (0, []), self.err
        return self.out

    def warned(self):
        """The one line of a warning, without the name of the command."""
        assert (self.status, self.err.count("\n")) == (0, 1), self.err
        command, warning, message = self.err.strip().split(": ", 2)
        assert command in MAINS
        assert warning == "warning"
        return message

    def refused(self):
        """The one line of the error, without the name of the command."""
        assert self.status == 2, self.out + self.err
        assert self.err.count("\n") == 1, self.err
        command, _, message = self.err.strip().partition(": ")
        assert command in MAINS
        return message


def command(name, *arguments):
    code = f"from quadboost.commands.main import {name}_main; {name}_main()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(Path(quadboost.__file__).parents[1]), **more}


def start(name, *arguments, cwd, **more):
    """Start a command as a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen(command(name, *arguments), cwd=cwd, env=environment(), text=True, **pipes)


def finish(process, timeout=600):
    out, err = process.communicate(timeout=timeout)
    return Done(process.returncode, out, err)


def people(n=400, seed=0):
    """A table with a bit of everything."""
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n).round(2)
    city = rng.choice(["Zürich", "New York, NY", 'say "hi"', "two\nlines"], n)
    member = rng.random(n) < 0.5
    income = (2 * age + 20 * (city == "Zürich") + 10 * member + rng.normal(0, 3, n)).round(3)
    return pd.DataFrame(
        {
            "id": [f"{i:05}" for i in range(n)],
            "âge, years": np.where(rng.random(n) < 0.1, np.nan, age),
            "city": np.where(rng.random(n) < 0.05, None, city),
            "member": member,
            "code": rng.integers(0, 3, n),
            "empty": [None] * n,
            "income": income,
            "label": np.where(income > np.median(income), "high", "low"),
        }
    )


def write_table(frame, path):
    if path.name.endswith(".parquet"):
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pandas(frame), path)
    elif path.name.endswith((".feather", ".arrow")):
        import pyarrow.feather

        pyarrow.feather.write_feather(pyarrow.Table.from_pandas(frame), path)
    else:
        separator = "\t" if ".tsv" in path.name else ","
        frame.to_csv(path, index=False, sep=separator, na_rep="NA", lineterminator="\r\n", encoding="utf-8-sig")


def read_csv(source):
    """Not by pandas, which does not read every digit in all of its versions."""
    import pyarrow.csv

    return pyarrow.csv.read_csv(io.BytesIO(source.encode()) if "\n" in str(source) else source).to_pandas()


def features(frame):
    return frame[["âge, years", "city", "member", "code", "empty"]]
