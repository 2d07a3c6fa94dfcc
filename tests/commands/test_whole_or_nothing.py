"""A command that is stopped, or whose disk is full, leaves nothing half done."""

import os
import resource
import signal
import subprocess
import time

import pytest
from command_line import command, environment, finish, start

pytest.importorskip("pyarrow")


def limit_files(n_bytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    return limit


@pytest.mark.slow
@pytest.mark.parametrize("output", ["o.csv", "o.csv.gz", "o.parquet"])
def test_a_disk_that_is_full_leaves_the_old_predictions(model, output, tmp_path):
    (tmp_path / output).write_text("old")
    before = sorted(tmp_path.iterdir())
    predict = start("predict", "model.h5", "people.csv", "--scores", "--keep", "id", "-o", output, cwd=tmp_path,
                    preexec_fn=limit_files(1000))  # fmt: skip
    assert finish(predict).refused() == f"{output}: File too large"
    assert (tmp_path / output).read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_a_disk_that_is_full_leaves_the_old_model(tmp_path):
    (tmp_path / "m.h5").write_text("old")
    train = start("train", "--example", "iris", "-o", "m.h5", "--cv", 0, cwd=tmp_path, preexec_fn=limit_files(100))
    assert "File too large" in finish(train).refused()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("m.h5", "old")]


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_standard_output_that_is_full(model, tmp_path):
    with open("/dev/full", "w") as full:
        predict = start("predict", "model.h5", "people.csv", cwd=tmp_path, stdout=full)
        _, err = predict.communicate(timeout=600)
    assert (predict.returncode, err) == (2, "quadboost-predict: standard output: No space left on device\n")


@pytest.mark.slow
def test_a_standard_output_that_is_closed(tmp_path):
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command("train", "--example", "iris", "-o", "m.h5", "--cv", 0)],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "m.h5").exists()


@pytest.mark.slow
def test_a_reader_that_has_had_enough_is_no_error(long_table, tmp_path):
    with start("predict", "model.h5", "people.csv", cwd=tmp_path) as predict:
        assert predict.stdout.readline() == "prediction\n"
        predict.stdout.close()
        assert predict.stderr.read() == ""
        assert predict.wait(timeout=600) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "message"),
    [(signal.SIGINT, 130, "interrupted"), pytest.param(signal.SIGTERM, 143, None, marks=pytest.mark.slow)],
)
def test_an_interrupted_training_leaves_nothing(number, status, message, tmp_path):
    options = ["--penalty", "none", "--tol", 0, "--max-rounds", 10**9, "--mode", "forward", "--json", "j.json"]
    train = start("train", "--example", "digits", "-o", "m.h5", *options, cwd=tmp_path)
    assert "classification" in train.stdout.readline()
    assert "training on 1797 rows" in train.stdout.readline()
    time.sleep(0.3)
    train.send_signal(number)
    done = finish(train)
    assert (done.status, done.err) == (status, f"quadboost-train: {message}\n" if message else "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("output", ["o.csv", "o.parquet"])
def test_an_interrupted_prediction_leaves_nothing(long_table, output, number, status, tmp_path):
    before = sorted(tmp_path.iterdir())
    predict = start("predict", "model.h5", "people.csv", "--keep", "id", "-o", output, cwd=tmp_path)
    while not list(tmp_path.glob(".quadboost-*")):  # until it writes
        assert predict.poll() is None
        time.sleep(0.01)
    predict.send_signal(number)
    done = finish(predict)
    assert done.status == status
    assert done.err == ("quadboost-predict: interrupted\n" if status == 130 else "")
    assert sorted(tmp_path.iterdir()) == before


def test_model_and_summary_appear_together_or_not_at_all(run, tmp_path):
    run("train", "--example", "iris", "-o", "m.h5", "--max-rounds", 3).ok()
    before = (tmp_path / "m.h5").read_bytes()
    run("train", "--example", "iris", "-o", "m.h5", "--max-rounds", 9, "--json", "/dev/full").refused()
    assert (tmp_path / "m.h5").read_bytes() == before
