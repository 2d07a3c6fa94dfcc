"""Fits to files in pieces: the bits of the fit in memory, whatever the pieces; nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor, Rows
from quadboost.commands.main import train_main
from quadboost.parts import files

FEATURES = ["a", "b", "c", "d"]
BITS = ("feature", "kind", "threshold", "weight", "intercept", "bin_mass")


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.integers(0, 50, n)
    score = a + (b > 20) + rng.normal(size=n)
    return pa.table(
        {
            "a": a,
            "b": b,
            "c": pa.array(rng.choice(["x", "y", "z", None], n).tolist()),
            "d": pa.array(np.where(rng.random(n) < 0.1, np.nan, rng.exponential(size=n))),
            "label": pa.array(np.where(score > 0.5, "high", "low").tolist()),
            "three": np.digitize(score, [0, 1]),
            "real": score + 1000,
            "count": rng.integers(0, 4, n),
            "share": rng.random(n),
        }
    )


def same_bits(one, other):
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in BITS)


@pytest.mark.parametrize(
    "target",
    [pytest.param("label", id="label"), *(pytest.param(name, marks=pytest.mark.slow) for name in ("three", "real"))],
)
@pytest.mark.parametrize("weight", [None, *(pytest.param(name, marks=pytest.mark.slow) for name in ("count", "share"))])
def test_a_streamed_fit_has_the_bits_of_the_fit_in_memory(target, weight, tmp_path, monkeypatch):
    whole = table(3000)
    pq.write_table(whole, tmp_path / "t.parquet", row_group_size=700)
    model = (QuadBoostRegressor if target == "real" else QuadBoostClassifier)(max_rounds=300, tol=1e-2)
    weights = None if weight is None else np.array(whole[weight])
    expected = model.fit(whole.select(FEATURES), np.array(whole[target]), weights).ensemble_
    for n_rows in (150, 1100):
        monkeypatch.setattr(files, "rows_of_chunk", lambda *_, n=n_rows: n)
        rows = Rows.of_files(tmp_path / "t.parquet", target, weight, columns=FEATURES)
        rows._room.free = 3000  # so that codes are kept in a file
        same_bits(model.fit(rows).ensemble_, expected)
        assert rows._room.free == 3000
    dataset = ds.dataset(whole.select([*FEATURES, target, *([weight] if weight else [])]))
    same_bits(model.fit(dataset, target, weight).ensemble_, expected)


def test_what_names_no_column_of_a_dataset_is_refused():
    dataset = ds.dataset(table(10))
    with pytest.raises(TypeError, match="y=None must name the column of the dataset"):
        QuadBoostClassifier().fit(dataset)
    with pytest.raises(ValueError, match="rows in parts have their targets and weights with them"):
        QuadBoostClassifier().fit(Rows.of_files(dataset, "label"), [1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "p*.parquet"])
@pytest.mark.parametrize("target", ["label", "real"])
def test_the_command_streams_to_the_same_model(name, target, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    whole = table(30_000)
    pq.write_table(whole, "t.parquet")
    pyarrow.csv.write_csv(whole, "t.csv")
    for i in range(3):
        pq.write_table(whole.slice(10_000 * i, 10_000), f"p{i}.parquet")
    for memory, output in (("4GB", "a.h5"), ("5MB", "b.h5")):
        arguments = [name, "--target", target, "--weight", "count", "--features", *FEATURES, "--cv", "0"]
        with pytest.raises(SystemExit) as end:
            train_main([*arguments, "--memory", memory, "--output", output])
        assert end.value.code == 0
        assert ("read in pieces" in capsys.readouterr().out) == (memory == "5MB")
    same_bits(quadboost.load("a.h5"), quadboost.load("b.h5"))
    with pytest.raises(SystemExit):
        train_main([*arguments, "--memory", "100kB", "--output", "c.h5"])
    assert "too small to read" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("target", ["label", "real"])
def test_figures_of_rows_held_out_are_those_of_a_table_in_memory(target, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(20_000), "t.parquet")
    told = []
    for memory in ("4GB", "4MB"):
        with pytest.raises(SystemExit) as end:
            train_main(["t.parquet", "--target", target, "--weight", "count", "--memory", memory, "--output", "m.h5"])
        assert end.value.code == 0
        told.append([line for line in capsys.readouterr().out.splitlines() if "on rows held out: error" in line])
    assert told[0] == told[1] != []


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_an_interrupt_leaves_nothing_behind(seconds, tmp_path):
    pq.write_table(table(400_000), tmp_path / "t.parquet")
    (tmp_path / "tmp").mkdir()
    code = "from quadboost.commands.main import train_main; train_main()"
    long = ["--target", "real", "--loss", "quantile"]  # minutes, so that it is not at its end by then
    command = [sys.executable, "-c", code, "t.parquet", *long, "--memory", "20MB", "--output", "m.h5"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    while b"training on" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err.endswith(b"interrupted\n")
    assert os.listdir(tmp_path / "tmp") == []
    assert sorted(os.listdir(tmp_path)) == ["t.parquet", "tmp"]
