"""A soak ends well where nothing changes, and says what has changed."""

import importlib
import warnings
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def soak(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("soak")


@pytest.fixture
def problem(soak):
    return next(problem for problem in map(soak.Problem.of, range(100), [60] * 100) if problem.model.loss == "squared")


def run(soak, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["soak.py", "--threads", "2", "--problems", "2", "--rows", "50", *arguments])
    with warnings.catch_warnings():
        soak.main()


@pytest.mark.slow
def test_the_same_bits_and_flat_memory_are_told(soak, monkeypatch, capsys):
    run(soak, monkeypatch, "--minutes", "0.02")
    told = capsys.readouterr().out
    assert "fits of 2 problems" in told
    assert "the same 2 digests" in told


@pytest.mark.slow
def test_memory_that_grows_is_an_error(soak, monkeypatch):
    monkeypatch.setattr(soak, "memory", iter(range(0, 10**12, 10**8)).__next__)
    with pytest.raises(SystemExit, match=r"memory has grown by \d+00 MB; at most 50 MB are allowed"):
        run(soak, monkeypatch, "--minutes", "0.0001")


def test_other_bits_are_an_error(soak, problem, tmp_path):
    soaked = soak.Soak([problem], tmp_path)
    soaked.once(0)
    soaked.once(1)
    assert (len(soaked.known), soaked.n_fits) == (1, 2)
    soaked.known[0] = "of another fit"
    with pytest.raises(AssertionError, match="problem 0: other bits than in the first fit"):
        soaked.once(0)
