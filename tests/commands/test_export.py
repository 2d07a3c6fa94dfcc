"""The command that exports, as a user meets it."""

import sqlite3
import subprocess

import numpy as np
import pytest
from command_line import features

from quadboost.export.sql import self_test

pytest.importorskip("pyarrow")  # for the table that the model is trained on


@pytest.mark.oracle("onnx")
def test_every_target_is_written(model, run, tmp_path):
    run("export", "model.h5", "--to", "sql", "--table", "people", "--keep", "id", "-o", "model.sql").ok()
    run("export", "model.h5", "--to", "onnx", "--contributions", "-o", "model.onnx").ok()
    run("export", "model.h5", "--to", "c", "--name", "risk", "-o", "risk.c").ok()
    run("export", "model.h5", "--to", "js", "-o", "model.js").ok()
    run("export", "model.h5", "--to", "scorecard", "--points", "500", "-o", "card.xlsx").ok()
    run("export", "model.h5", "--to", "scorecard", "--digits", "2", "--pdo", "-30", "-o", "card.csv").ok()
    assert "risk_score(" in (tmp_path / "risk.c").read_text()
    assert "are odds of,50" in (tmp_path / "card.csv").read_text()


def test_the_query_runs_in_a_database(model, table, run, tmp_path):
    run("export", "model.h5", "--to", "sql", "--table", "t", "--dialect", "sqlite", "--keep", "id", "-o", "q.sql").ok()
    connection = sqlite3.connect(":memory:")
    rows = features(table).assign(id=table["id"])
    names = ", ".join(f'"{name}"' for name in rows)
    connection.execute(f"CREATE TABLE t ({names})")
    plain = rows.astype(object).where(rows.notna(), None).values.tolist()
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * rows.shape[1])})", plain)
    query = (tmp_path / "q.sql").read_text()
    found = connection.execute(query).fetchall()
    assert [row[0] for row in found] == table["id"].tolist()
    np.testing.assert_array_equal([row[1] for row in found], model.decision_function(features(table)))
    assert connection.execute(self_test(query)).fetchall() == []
    connection.close()


def test_the_self_test_of_a_query_is_found_as_its_first_lines_say(model, run, tmp_path):
    run("export", "model.h5", "--to", "sql", "--table", "t", "-o", "q.sql").ok()
    text = (tmp_path / "q.sql").read_text()
    line = next(line for line in text.split("\n") if "sed" in line).removeprefix("--").replace("THIS_FILE", "q.sql")
    found = subprocess.run(line.split("|")[0], shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert found.stdout.rstrip("\n") == self_test(text)


def test_text_goes_to_the_standard_output(model, run, tmp_path):
    run("export", "model.h5", "--to", "js", "-o", "model.js").ok()
    assert run("export", "model.h5", "--to", "js", "-o", "-").ok() == (tmp_path / "model.js").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "sql", "-o", "q.sql"], "--to sql needs --table, the name of the table to score"),
        (["--to", "c", "--table", "t", "-o", "m.c"], "--table is an option of --to sql, not of --to c"),
        (["--to", "onnx", "-o", "-"], "--to onnx writes no text; give the name of a file with --output"),
        (
            ["--to", "c", "--name", "a-b", "-o", "m.c"],
            "the name is 'a-b', which C cannot have",
        ),
        (["--to", "scorecard", "-o", "card.txt"], "'card.txt' ends in neither .csv nor .xlsx"),
        (
            ["--to", "js", "-o", "model.h5"],
            "model.h5 would be overwritten while it is needed",
        ),
        (["--to", "pmml", "-o", "m.xml"], "argument --to: invalid choice: 'pmml'"),
        (["--to", "c", "-o", ""], "'' is not the name of a file"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, model, run, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    assert message in run("export", "model.h5", *arguments).refused()
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_file_with_another_digest_is_refused(model, run):
    for digest, message in (("0" * 64, "its SHA-256 is"), ("abc", "the SHA-256 that it should have is 'abc', not 64")):
        assert message in run("export", "model.h5", "--to", "js", "--sha256", digest, "-o", "m.js").refused()
