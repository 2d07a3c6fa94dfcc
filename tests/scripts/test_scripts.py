"""The scripts run, at a size that shows nothing but that, and report what they promise."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from quadboost.boosting.penalties import L1
from quadboost.voters.thresholds import candidate_voters

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
PEERS = {"lightgbm": "lightgbm", "celer": "celer", "adaboost": "sklearn", "lasso": "sklearn"}


@pytest.fixture
def run_script(run_python, tmp_path):
    def run(name, *arguments):
        path = str(SCRIPTS / name)
        code = (
            f"import runpy, sys; sys.path.insert(0, {str(SCRIPTS)!r}); sys.argv = {[path, *arguments]!r}; "
            f"runpy.run_path({path!r}, run_name='__main__')"
        )
        return run_python(code)

    return run


@pytest.fixture
def training(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("benchmark_training")


@pytest.fixture
def prediction(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("benchmark_prediction")


def facts_of(folder, name):
    facts = json.loads((folder / f"benchmarks-{name}.json").read_text())
    assert {"command", "machine", "versions", "targets", "records"} <= facts.keys()
    assert all(target["work"] and target["reached"] in (True, False, None) for target in facts["targets"])
    return facts


@pytest.mark.slow
def test_training_benchmark_reports_every_part(run_script, tmp_path):
    arguments = ["--tiny", "--threads", "1", "--peers", ",".join(PEERS), "--docs", str(tmp_path)]
    printed = run_script("benchmark_training.py", *arguments)
    assert printed.strip() == (tmp_path / "benchmarks-training.md").read_text().strip()
    assert str(tmp_path) not in printed
    facts = facts_of(tmp_path, "training")
    parts = {record["part"] for record in facts["records"]}
    assert {"rounds", "line", "phases", "l1", "all", "wide", "memory", "shape missing"} <= parts
    found = {record.get("contender") for record in facts["records"]}
    for peer, package in PEERS.items():
        assert (peer in found) or (importlib.util.find_spec(package) is None and f"{peer} ({package} not" in printed)
    assert len(facts["targets"]) == 9


@pytest.mark.slow
def test_training_benchmark_takes_a_table(run_script, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "target"])
    frame["text"] = rng.choice(["u", "v"], 300)
    frame.to_csv(tmp_path / "table.csv", index=False)
    table = ["--data", str(tmp_path / "table.csv"), "--target", "target"]
    printed = run_script("benchmark_training.py", "--tiny", "--threads", "1", "--peers", "lightgbm", *table)
    assert "m = 240, d = 3" in printed
    assert "LightGBM" in printed


@pytest.mark.slow
def test_prediction_benchmark_reports_every_part(run_script, tmp_path):
    arguments = ["--tiny", "--threads", "1", "--peers", "lightgbm,histgradientboosting", "--docs", str(tmp_path)]
    printed = run_script("benchmark_prediction.py", *arguments)
    assert printed.strip() == (tmp_path / "benchmarks-prediction.md").read_text().strip()
    facts = facts_of(tmp_path, "prediction")
    assert {record["part"] for record in facts["records"]} == {"batch", "row", "load", "load large", "input"}
    calls = [record["calls"] for record in facts["records"] if record["part"] == "row"]
    assert min(calls) == max(calls) == 5  # as many as the size asks for: none is lost to what comes before the first
    risks = {line.split("|")[-2].strip() for line in printed.splitlines() if line.startswith("| QuadBoost | 10 | 1 |")}
    assert len(risks) == 1
    assert float(risks.pop()) < 1


@pytest.mark.slow
def test_unknown_peers_are_refused(run_script):
    with pytest.raises(AssertionError, match="'gbm' is not known"):
        run_script("benchmark_training.py", "--tiny", "--peers", "gbm")


def test_gap_of_scores_is_the_gap_of_moments(training):
    X, y = training.generate(200, 4)
    stumps = candidate_voters(X, thresholds=7)
    H = training.stump_matrix(stumps, stumps.code(X))
    weight = np.random.default_rng(0).normal(size=H.shape[1]) / 50
    residual = y - H @ weight
    objective, gap = training.certificate(H, y, H @ weight, np.abs(weight).sum(), 0.01)
    risk = np.mean(residual**2)
    assert objective == pytest.approx(risk + 0.02 * np.abs(weight).sum())
    assert gap * objective == pytest.approx(L1(0.01).gap(weight, H.T @ residual / len(y), risk))


def test_line_through_times_stands_for_more_rounds(training):
    timed = {("peer", n): training.Timed(wall=[0.5 + 0.01 * n, 2 + 0.01 * n]) for n in (10, 30, 100)}
    slope, constant, off = training.straight(timed, "peer", 100)
    assert (slope, constant, off) == pytest.approx((0.01, 0.5, 0.0), abs=1e-12)
    assert training.seconds_for(timed, "peer", 1_000) == pytest.approx(10.5)
    assert training.seconds_for(timed, "peer", 30) == pytest.approx(0.8)


@pytest.mark.parametrize("shape", ["correlated", "skewed", "discrete", "duplicates", "few", "missing", "wide"])
def test_made_data_are_what_they_are_called(training, shape):
    X, y = training.generate(2_000, 20, shape)
    again, _ = training.generate(2_000, 20, shape)
    np.testing.assert_array_equal(X, again)
    assert (y.mean(), y.std()) == pytest.approx((0, 1), abs=1e-12)
    distinct = np.mean([len(np.unique(column[~np.isnan(column)])) for column in X.T])
    assert np.isnan(X).mean() == pytest.approx(0.2 if shape == "missing" else 0, abs=0.01)
    most = {"few": 3, "discrete": 40, "duplicates": 300}.get(shape, 2_000)
    assert most / 4 < distinct <= most


def test_made_features_are_correlated(training):
    X, _ = training.generate(2_000, 20)
    assert np.abs(np.corrcoef(X.T)[np.triu_indices(20, 1)]).mean() > 0.1


@pytest.mark.slow
def test_latency_is_of_many_calls_however_little_time_there_is(prediction, monkeypatch):
    monkeypatch.setattr(prediction, "LEAST_CALLS", 50)
    monkeypatch.setattr(prediction, "N_BLOCKS", 1)
    rows = [np.zeros((1, 3))] * 80
    calls = 0

    def call(row):
        nonlocal calls
        calls += 1
        if calls == 10:
            time.sleep(0.02)

    found = prediction.latencies({"one": call}, rows, 0.0)["one"]
    assert found.calls == 50
    assert calls == 51  # and one to warm up
    assert found.median < 1_000 < found.late
    assert prediction.latencies({"one": call}, rows, 60.0)["one"].calls == 80


@pytest.mark.slow
def test_the_fuzzer_of_model_files_counts_every_file(run_script):
    printed = run_script("fuzz_model_files.py", "--files", "300", "--files-per-process", "200")
    assert "| what was changed | refused | the same model | another valid model |" in printed
    (total,) = [line for line in printed.splitlines() if line.startswith("| together |")]
    assert sum(map(int, total.strip("| ").split(" | ")[1:])) == 300
    assert "300 files in" in printed
    assert "seeds 0 to 1" in printed


@pytest.mark.slow
def test_the_fuzzer_of_model_files_tells_its_counts_when_it_is_stopped():
    line = [sys.executable, str(SCRIPTS / "fuzz_model_files.py"), "--files-per-process", "50"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as fuzzer:
        assert fuzzer.stderr.readline().startswith("50 files, ")
        fuzzer.terminate()
        printed = fuzzer.communicate(timeout=600)[0]
    assert fuzzer.returncode == 0
    (total,) = [line for line in printed.splitlines() if line.startswith("| together |")]
    n_read = sum(int(count.replace(",", "")) for count in total.strip("| ").split(" | ")[1:])
    assert f"{n_read} files in" in printed
    assert 50 <= n_read < 1_000_000


def test_the_fuzzer_of_model_files_ends_at_an_error(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(SCRIPTS)
    fuzzer = importlib.import_module("fuzz_model_files")
    (tmp_path / "fuzz_model_file.py").write_text("raise MemoryError('too much')")
    monkeypatch.setattr(fuzzer, "TESTS", tmp_path)
    with pytest.raises(SystemExit, match=r"MemoryError: too much\s+seed 7 ended with status 1: "):
        fuzzer.run(str(tmp_path), 7, 3)


@pytest.mark.slow
def test_constraints_are_measured_beside_their_absence(run_script, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    frame.assign(y=frame["a"] + rng.normal(size=200)).to_csv(tmp_path / "table.csv", index=False)
    printed = run_script(
        "measure_constraints.py", str(tmp_path / "table.csv"), "--target", "y", "--monotone", "a=1", "b=-1"
    )
    rows = [line.split("|")[1:-1] for line in printed.splitlines()[2:]]
    assert [row[0].strip() for row in rows][:3] == ["QuadBoost, l1", "QuadBoost, l2", "QuadBoost, linf"]
    assert all(-1 < float(figure) < 1 for row in rows for figure in row[1:3])


@pytest.mark.slow
@pytest.mark.oracle("duckdb")
def test_the_recipe_for_sql_finds_the_weights_of_the_rows_in_memory(run_script):
    assert run_script("scale_with_sql.py").endswith(" voters; the same bits as in memory\n")
