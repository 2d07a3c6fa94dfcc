"""Output that would be lost is no success, and output that nobody wants is no error."""

import subprocess

import pytest
from command_line import command, environment

pytest.importorskip("pyarrow")


def in_shell(line, name, *arguments, cwd):
    """Run a command by a line of shell, where it is "$@"."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}", "bash", *command(name, *arguments)],
        cwd=cwd, env=environment(), capture_output=True, text=True, timeout=600,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("more", [["people.csv"], ["--describe"]])
def test_predictions_that_would_be_lost_are_refused(model, more, tmp_path):
    done = in_shell('"$@" >&-', "predict", "model.h5", *more, cwd=tmp_path)
    message = "quadboost-predict: the standard output is closed; write to a file, or leave it open\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.slow
def test_predictions_in_a_file_need_no_standard_output(model, tmp_path):
    done = in_shell('"$@" >&-', "predict", "model.h5", "people.csv", "-o", "o.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "o.csv").exists()


@pytest.mark.slow
def test_figures_that_would_be_lost_are_refused(tmp_path):
    arguments = ["--example", "iris", "-o", "m.h5", "--cv", 0]
    done = in_shell('"$@" >&-', "train", *arguments, "--json", "-", cwd=tmp_path)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("more", [["people.csv"], ["--describe"]])
def test_a_reader_that_has_had_enough_is_no_error(model, more, tmp_path):
    done = in_shell('"$@" | head -n 1', "predict", "model.h5", *more, cwd=tmp_path)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    assert in_shell('"$@" | true', "predict", "model.h5", *more, cwd=tmp_path).stderr == ""
