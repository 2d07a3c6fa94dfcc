"""The comparison of accuracies: its figures by hand, ranks, going on after a stop, and the page."""

import gzip
import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def part(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module


def test_ranks_share_ties_and_know_the_critical_difference(part):
    losses = np.array([[0.1, 0.2, 0.3], [0.1, 0.1, 0.3], [0.2, 0.1, 0.3], [0.1, 0.2, 0.3]])
    ranks = part("accuracy.ranks").Ranks.of(["a", "b", "c"], losses)
    assert ranks.names == ["a", "b", "c"]
    assert ranks.mean.tolist() == [1.375, 1.625, 3.0]
    assert ranks.critical == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 4)), rel=1e-3)  # q of Demsar's table 5
    assert ranks.groups() == [(0, 2)]


def test_figures_are_those_of_scikit_learn(part):
    random = np.random.default_rng(0)
    for k in (2, 4):
        chance, y = random.dirichlet(np.ones(k), 50), random.integers(0, k, 50)
        found = part("accuracy.fit").figures_of(chance, y)
        assert found["log-loss"] == pytest.approx(log_loss(y, chance))
        assert found["AUC"] == pytest.approx(roc_auc_score(y, chance[:, 1] if k == 2 else chance, multi_class="ovr"))
        assert found["error"] == np.mean(chance.argmax(axis=1) != y)
    assert part("accuracy.fit").figures_of(np.array([[0.9, 0.1]] * 2), np.array([0, 1]))["Brier"] == pytest.approx(0.41)


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_and_writes_a_page(part, monkeypatch, tmp_path, capsys):
    main = part("benchmark_accuracy").main
    results, docs = tmp_path / "fits.jsonl", tmp_path / "docs"
    words = ["--quick", "--peers", "quadboost,quadboost-rules,linear,forest", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", ["", *words, "--results", str(results), "--docs", str(docs)])
    main()
    first = results.read_text()
    fits = [json.loads(line) for line in first.splitlines()]
    assert len(fits) == 3 * 4
    assert all("failed" not in fit and fit["terms"] > 0 for fit in fits)
    results.write_text(first[: len(first) * 2 // 3])  # a run that was killed, in the middle of a line
    main()
    again = [json.loads(line) for line in results.read_text().splitlines() if line.endswith("}")]
    figures = {(fit["table"], fit["method"]): fit.get("error", fit.get("r2")) for fit in fits}
    assert {(fit["table"], fit["method"]): fit.get("error", fit.get("r2")) for fit in again} == figures
    page = (docs / "accuracy.md").read_text()
    assert "## Where others are better" in page
    assert "![Mean rank by error over 2 tables](accuracy-error.svg)" in page
    assert (docs / "accuracy-error.svg").exists()
    assert str(tmp_path) not in page
    assert "Logistic regression stands for ridge regression here." in page
    assert "fits to do, 0 in" in capsys.readouterr().err


def test_fits_of_another_seed_are_other_fits(part, tmp_path):
    script = part("benchmark_accuracy")
    fit = {"table": "iris", "split": 0, "method": "linear", "version": script.version_of("linear")}
    results = tmp_path / "fits.jsonl"
    results.write_text("".join(json.dumps(fit | more) + "\n" for more in ({}, {"seed": 2})))
    done = script.read_results(results)
    assert [script.key_of("iris", 0, "linear", seed) in done for seed in (0, 1, 2)] == [True, False, True]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--data nowhere", "--data nowhere: there is no NAME.csv.gz in it"),
        ("--splits 0", "--splits 0: at least 1 is needed"),
        ("--workers 0", "--workers 0: at least 1 is needed"),
        ("--seed -1", "--seed -1: at least 0 is needed"),
        ("--tables iris,irises", "--tables irises: there is no such table"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(part, monkeypatch, capsys, words, said):
    monkeypatch.setattr(sys, "argv", ["", *words.split()])
    with pytest.raises(SystemExit) as stopped:
        part("benchmark_accuracy").main()
    assert said in f"{stopped.value.code} {capsys.readouterr().err}"


@pytest.mark.parametrize(
    ("table", "manifest", "said"),
    [
        ("a,b\n1,2\n", "", "there is no column 'label'"),
        ("a,label\n1,x\n2,y,7\n", "", "Expected 2 fields in line 3, saw 3"),
        ("", "", "No columns to parse from file"),
        ("a,label\n", "", "there are no rows, or no features"),
        ("a,label\n1,x\n2,x\n3,y\n", "", "at least two classes of two rows each are needed"),
        ("a,label\n1,x\n2,\n3,y\n", "", "a label is missing"),
        ("a,label\n1,x\n2,y\n", '{"bad": {"task": "regression"}}', "could not convert string to float"),
        ("a,label\n1,x\n2,y\n", "{", "manifest.json: Expecting property name"),
        ("a,label\n1,x\n2,y\n", '["bad"]', "manifest.json: it must have an object for each table"),
    ],
)
def test_a_table_that_is_none_is_named(part, tmp_path, table, manifest, said):
    with gzip.open(tmp_path / "bad.csv.gz", "wt") as file:
        file.write(table)
    if manifest:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(SystemExit, match=re.escape(said)) as stopped:
        list(part("accuracy.tables").all_tables([tmp_path], ["bad"]))
    assert str(tmp_path) in str(stopped.value)


def test_tables_of_one_name_in_two_directories_are_refused(part, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / "same.csv.gz", "wt") as file:
            file.write("a,label\n1,x\n2,x\n3,y\n4,y\n")
    with pytest.raises(SystemExit, match=r"two.same\.csv\.gz: .*one.same\.csv\.gz is a table of the same name"):
        list(part("accuracy.tables").all_tables([tmp_path / "one", tmp_path / "two"], None))


@pytest.mark.slow
def test_methods_that_all_fail_are_told(part, monkeypatch, tmp_path):
    script = part("benchmark_accuracy")
    failed = {"table": "iris (scikit-learn)", "split": 0, "method": "linear", "version": "1", "failed": "it cannot"}
    monkeypatch.setattr(script, "measure", lambda *cell: failed)
    words = ["--tables", "iris", "--splits", "1", "--peers", "linear", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", ["", *words, "--results", str(tmp_path / "fits.jsonl")])
    with pytest.raises(SystemExit, match="there is no fit to show; it cannot"):
        script.main()
