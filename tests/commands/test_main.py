"""Both commands: options, help, and what they import."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import warnings

import pytest
from command_line import Done, environment, finish, read_csv, start

import quadboost

pytest.importorskip("pyarrow")


def test_a_table_is_learnt_and_predicted_by_the_commands_as_processes(trained, model, table, tmp_path):
    out = (trained / "printed.txt").read_text()
    lines = dict(line.split(maxsplit=1) for line in out.splitlines()[4:])
    assert list(lines) == [
        "rows",
        "features",
        "classes",
        "rounds",
        "voters",
        "risk",
        "error",
        "log-loss",
        "time",
        "model",
    ]
    assert out.startswith("classification of 'label': the target holds text\n")
    assert (lines["rows"], lines["classes"], lines["model"]) == ("400", "2: 'high', 'low'", "model.h5")
    predict = start("predict", "model.h5", "people.csv", "--output", "labels.csv", cwd=tmp_path)
    assert finish(predict).ok() == ""
    labels = read_csv(tmp_path / "labels.csv")["prediction"]
    error = (labels != table["label"]).mean()
    assert error < 0.15
    assert json.loads((trained / "figures.json").read_text())["error"] == pytest.approx(error)
    assert float(lines["error"].split()[1]) == pytest.approx(error, rel=1e-4)


@pytest.mark.slow
def test_quiet_prints_nothing(run, monkeypatch):
    monkeypatch.setattr("quadboost.common.progress.SECONDS_BETWEEN_LINES", 0.0)
    assert run("train", "--example", "iris", "-o", "m.h5", "--quiet").ok() == ""


@pytest.mark.slow
def test_a_bar_is_drawn_on_a_terminal_only(tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    train = start(
        "train", "--example", "iris", "-o", "m.h5", "--max-rounds", 2000, "--cv", 0, cwd=tmp_path, stderr=theirs
    )
    os.close(theirs)
    drawn = b""
    try:
        while piece := os.read(ours, 10_000):
            drawn += piece
    except OSError:  # so a terminal ends
        pass
    finally:
        os.close(ours)
    out, _ = train.communicate(timeout=600)
    assert train.returncode == 0
    assert b"round" in drawn
    assert b"risk=" in drawn
    assert "round " not in out


def test_lines_are_printed_elsewhere(run, monkeypatch):
    monkeypatch.setattr("quadboost.common.progress.SECONDS_BETWEEN_LINES", 0.0)
    out = run(
        "train", "--example", "iris", "-o", "m.h5", "--validation", 0.5, "--patience", 500, "--penalty", "none"
    ).ok()
    assert re.search(r"^round 100: risk 0\.\d{6}, validation risk 0\.\d{6}$", out, re.MULTILINE)


@pytest.mark.parametrize("name", ["train", "predict"])
def test_version(name, run):
    assert run(name, "--version").ok() == f"quadboost-{name} {quadboost.__version__}\n"


@pytest.mark.parametrize("flag", ["--help", "--version"])
@pytest.mark.parametrize("name", ["train", "predict"])
def test_help_and_version_import_nothing_heavy(name, flag, run_python):
    code = f"""
import sys
from quadboost.commands.main import {name}_main
try:
    {name}_main([{flag!r}])
except SystemExit:
    print({{'numpy', 'sklearn', 'pyarrow', 'pandas'}} & set(sys.modules))
"""
    assert run_python(code).endswith("\nset()\n")


@pytest.mark.slow
def test_without_pyarrow_the_remedy_is_named(model, tmp_path):
    code = "import sys; sys.modules['pyarrow'] = None; from quadboost.commands.main import {0}_main; {0}_main()"

    def run(name, *arguments):
        line = [sys.executable, "-c", code.format(name), *arguments]
        done = subprocess.run(line, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=600)
        return Done(done.returncode, done.stdout, done.stderr)

    remedy = "tables need pyarrow, which is not installed; pip install 'quadboost[tables]'"
    assert run("train", "people.csv", "--target", "label", "-o", "m.h5").refused() == remedy
    assert run("predict", "model.h5", "people.csv").refused() == remedy
    assert run("train", "--example", "iris", "-o", "m.h5", "--cv", "0").ok()
    assert run("predict", "m.h5", "--describe").ok()


def test_a_warning_is_told_once_as_a_line(run):
    arguments = ["--example", "iris", "-o", "m.h5", "--reg-lambda", "theory"]
    done = run("train", *arguments)  # of three classes, each with its own lambda
    lines = done.err.splitlines()
    assert done.status == 0
    assert len(lines) == len(set(lines)) > 0
    assert any(line.startswith("quadboost-train: warning: --reg-lambda 'theory' is ") for line in lines)
    assert all(line.startswith("quadboost-train: warning: ") for line in lines)
    assert run("train", *arguments, "--quiet").ok() == ""


def test_a_warning_of_another_package_is_not_told(run, monkeypatch):
    from quadboost.commands import train

    def warn(*_):
        warnings.warn_explicit("old", DeprecationWarning, "numpy/core.py", 1, module="numpy.core")
        for _ in range(3):
            warnings.warn("max_rounds=3 is little", stacklevel=1)
        raise ValueError("enough")

    monkeypatch.setattr(train, "_options", warn)
    done = run("train", "--example", "iris", "-o", "m.h5")
    assert done.status == 2
    assert done.err == "quadboost-train: enough\n"


@pytest.mark.slow
def test_figures_can_go_to_the_standard_output_alone(run):
    out = run("train", "--example", "iris", "-o", "m.h5", "--max-rounds", 5, "--json", "-").ok()
    assert json.loads(out)["model"] == "m.h5"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--example", "iris", "-o", "-"], "--output -: a model is written to a file; name one"),
        (["-", "--target", "y", "--validation", "-", "-o", "m.h5"], "the table and --validation are both -"),
        (["-", "--target", "y", "-o", "m.h5", "--delimiter", "xy"], "--delimiter 'xy' must be a single ASCII"),
        (["-", "--target", "y", "-o", "m.h5", "--encoding", "xy"], "--encoding 'xy' is not known"),
    ],
)
def test_what_cannot_come_from_or_go_to_a_stream_is_refused(arguments, message, run):
    assert message in run("train", *arguments).refused()
