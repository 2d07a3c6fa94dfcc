"""The command that predicts, as a user meets it."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import environment, features, finish, start, write_table

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor

pa = pytest.importorskip("pyarrow")

import pyarrow.csv  # noqa: E402
import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402


def test_predictions_do_not_depend_on_the_size_of_batches(model, table, run, monkeypatch):
    expected = run("predict", "model.h5", "people.csv", "--proba", "--keep", "id").ok()
    monkeypatch.setattr("quadboost.commands.tables.BLOCK_BYTES", 1000)
    monkeypatch.setattr("quadboost.commands.tables.BATCH_ROWS", 7)
    assert run("predict", "model.h5", "people.csv", "--proba", "--keep", "id").ok() == expected
    write_table(table, Path("t.parquet"))
    assert run("predict", "model.h5", "t.parquet", "--proba", "--keep", "id").ok() == expected


def test_columns_of_predictions(model, table, run):
    run("predict", "model.h5", "people.csv", "--proba", "--scores", "--keep", "id", "city", "-o", "o.csv").ok()
    with open("o.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "city", "prediction", "probability_high", "probability_low", "score"]
    assert [row[0] for row in rows] == table["id"].tolist()
    assert [row[1] for row in rows] == table["city"].fillna("NA").tolist()
    assert [row[2] for row in rows] == model.predict(features(table)).tolist()
    np.testing.assert_array_equal(np.array(rows)[:, 3:5].astype(float), model.predict_proba(features(table)))
    np.testing.assert_array_equal(np.array(rows)[:, 5].astype(float), model.decision_function(features(table)))


def test_parquet_predictions_keep_types(model, table, run, tmp_path):
    write_table(table, tmp_path / "t.parquet")
    run("predict", "model.h5", "t.parquet", "--proba", "--keep", "id", "code", "-o", "o.parquet").ok()
    written = pyarrow.parquet.read_table("o.parquet")
    text = str(pyarrow.parquet.read_schema("t.parquet").field("id").type)
    assert list(map(str, written.schema.types)) == [text, "int64", "string", "double", "double"]
    assert written["code"].to_pylist() == table["code"].tolist()
    assert written["prediction"].to_pylist() == model.predict(features(table)).tolist()


@pytest.mark.thinned(1)
@pytest.mark.parametrize("labels", [[3, 7], [False, True], [1.0, 2.0], ["a", "b", "c"], [1, 2, 3, 4]])
def test_labels_of_every_type(labels, run, tmp_path):
    rng = np.random.default_rng(0)
    position = rng.integers(0, len(labels), 200)
    frame = pd.DataFrame({"x": position + rng.normal(0, 0.01, 200), "y": [labels[p] for p in position]})
    write_table(frame, tmp_path / "t.parquet")
    assert run("train", "t.parquet", "--target", "y", "-o", "m.h5").ok().startswith("classification")
    run("predict", "m.h5", "t.parquet", "-o", "o.parquet", "--proba", "--scores").ok()
    written = pyarrow.parquet.read_table("o.parquet")
    assert written["prediction"].to_pylist() == frame["y"].tolist()
    assert written.column_names[1 : len(labels) + 1] == [f"probability_{label}" for label in labels]
    scores = ["score"] if len(labels) == 2 else [f"score_{label}" for label in labels]
    assert written.column_names[len(labels) + 1 :] == scores


def test_labels_that_are_whole_numbers_stay_whole(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,10\n2,20\n" * 20)
    run("train", "t.csv", "--target", "y", "-o", "m.h5").ok()
    assert run("predict", "m.h5", "t.csv").ok().split()[:3] == ["prediction", "10", "20"]


def test_a_model_without_names_takes_columns_by_position(run, tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = QuadBoostClassifier().fit(X, X[:, 0] > 0)
    model.save(tmp_path / "m.h5")
    for name in ("t.csv", "t.parquet"):
        write_table(pd.DataFrame(X, columns=["p", "q"]), tmp_path / name)
        out = run("predict", "m.h5", name).ok()
        assert [word == "true" for word in out.split()[1:]] == model.predict(X).tolist()
    write_table(pd.DataFrame(X[:, [0, 1, 1]], columns=["p", "q", "r"]), tmp_path / "t.csv")
    assert "t.csv has 3 columns" in run("predict", "m.h5", "t.csv").refused()


def test_a_regression_of_several_targets(run, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["p", "q"])
    QuadBoostRegressor().fit(X, X.to_numpy()).save(tmp_path / "m.h5")
    write_table(X, tmp_path / "t.csv")
    assert run("predict", "m.h5", "t.csv", "--scores").ok().split()[0] == "prediction_0,prediction_1,score_0,score_1"


@pytest.mark.slow
def test_what_a_column_holds_is_told_by_the_model_not_by_the_first_rows(run, tmp_path, monkeypatch):
    monkeypatch.setattr("quadboost.commands.tables.BLOCK_BYTES", 1000)
    lines = ["1,1,true,0"] * 1000 + ["1.5,x,false,1"] * 1000 + ["NA,,?,0"] * 10
    (tmp_path / "t.csv").write_text("\n".join(["number,text,flag,y", *lines]))
    run("train", "t.csv", "--target", "y", "-o", "m.h5").ok()
    model = quadboost.load("m.h5")
    assert model.categories == {1: [["1"], ["x"]], 2: [[False], [True]]}
    out = run("predict", "m.h5", "t.csv").ok()
    assert out.split()[1:] == ["0"] * 1000 + ["1"] * 1000 + ["0"] * 10


def test_a_table_without_rows_gives_a_table_without_rows(model, run, tmp_path):
    (tmp_path / "t.csv").write_text(Path("people.csv").read_text(encoding="utf-8-sig").splitlines()[0])
    assert run("predict", "model.h5", "t.csv", "--keep", "id").ok() == "id,prediction\n"
    run("predict", "model.h5", "t.csv", "-o", "o.parquet").ok()
    assert pyarrow.parquet.read_table("o.parquet").num_rows == 0


def test_threads_make_no_difference(model, run):
    outs = {run("predict", "model.h5", "people.csv", "--scores", "--threads", n).ok() for n in (1, 2, -1)}
    assert len(outs) == 1


@pytest.mark.slow
@pytest.mark.parametrize("output", ["o.csv", "o.parquet"])
def test_predict_imports_neither_scikit_learn_nor_scipy_nor_pandas(model, output, run_python):
    code = f"""
import sys
from quadboost.commands.main import predict_main
try:
    predict_main(['model.h5', 'people.csv', '-o', {output!r}, '--proba', '--keep', 'id'])
except SystemExit as end:
    print(end.code, {{'sklearn', 'scipy', 'pandas'}} & set(sys.modules))
"""
    assert run_python(code) == "0 set()\n"


@pytest.mark.thinned(6)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: MODEL.h5"),
        (["model.h5"], "give a TABLE to predict, before the options, or --describe"),
        (["no.h5", "people.csv"], "no.h5: No such file or directory"),
        (["people.csv", "people.csv"], "cannot load people.csv: it is not a model"),
        (["damaged.h5", "people.csv"], "cannot load damaged.h5: it is damaged"),
        (["damaged.h5", "--describe"], "cannot load damaged.h5: it is damaged"),
        (["model.h5", "people.csv", "--sha256", "0" * 64], "cannot load model.h5: its SHA-256 is"),
        (["model.h5", "no.csv"], "no.csv: No such file or directory"),
        (["model.h5", "other.csv"], "other.csv has no column 'âge, years', 'member', 'code', 'empty'; it has 'x'"),
        (["model.h5", "text.csv"], "Column 'âge, years' holds 'old' in row 2, but the model was trained on numbers"),
        (["model.h5", "text.parquet"], "Column 'âge, years' holds text, such as 'old', but the model"),
        (["model.h5", "numbers.parquet"], "Column 'city' holds numbers, such as 1, but the model was trained on text"),
        (["model.h5", "dates.parquet"], "Column 'âge, years' holds dates or times of type"),
        (["model.h5", "ragged.csv"], "cannot read ragged.csv: CSV parse error: "),
        (["model.h5", "people.csv", "--keep", "w", "v"], "people.csv has no column 'w', 'v'; it has 'id',"),
        (["model.h5", "twice.csv", "--keep", "prediction"], "--keep 'prediction': the predictions have a column"),
        (["model.h5", "people.csv", "--output", "new.xls"], "new.xls: the name does not tell what to write"),
        (["model.h5", "people.csv", "--output", "people.csv"], "people.csv would be overwritten"),
        (["model.h5", "people.csv", "--output", "no/new.csv"], "No such file or directory"),
        (["model.h5", "people.csv", "--threads", "0"], "--threads 0 "),
        (["model.h5", "people.csv", "--prob"], "unrecognized arguments: --prob"),
    ],
)  # fmt: skip
def test_what_cannot_be_predicted_is_refused_in_one_line(arguments, message, model, table, run, tmp_path):
    (tmp_path / "other.csv").write_text("x,city\n1,2\n2,3\n")
    (tmp_path / "ragged.csv").write_text('"âge, years",city,member,code,empty\n1,a,true,1,\n1,a,true,1\n')
    (tmp_path / "text.csv").write_text('"âge, years",city,member,code,empty\n1,a,true,1,\nold,a,true,1,\n')
    write_table(table.head(5).assign(prediction=1), tmp_path / "twice.csv")
    for name, column, value in [
        ("text", "âge, years", "old"),
        ("numbers", "city", 1),
        ("dates", "âge, years", pd.Timestamp("2020")),
    ]:
        write_table(table.head(5).assign(**{column: value}), tmp_path / f"{name}.parquet")
    damaged = bytearray((tmp_path / "model.h5").read_bytes())
    damaged[-5] ^= 1
    (tmp_path / "damaged.h5").write_bytes(damaged)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    if "--describe" not in arguments and "--output" not in arguments and len(arguments) > 1:
        arguments = [*arguments, "--output", "new.csv"]
    assert message in run("predict", *arguments).refused()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_row_of_a_mistake_is_counted_from_the_beginning(run, tmp_path, monkeypatch):
    monkeypatch.setattr("quadboost.commands.tables.BLOCK_BYTES", 100)
    (tmp_path / "t.csv").write_text("x,y\n" + "1,a\n2,b\n" * 50)
    (tmp_path / "wrong.csv").write_text("x\n" + "1\n2\n" * 200 + "one\n")
    run("train", "t.csv", "--target", "y", "-o", "m.h5").ok()
    assert "holds 'one' in row 401, but" in run("predict", "m.h5", "wrong.csv", "-o", "o.csv").refused()
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather"])
def test_a_million_rows_are_predicted_in_little_memory(name, tmp_path):
    n = 1_000_000
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=n).round(4) for j in range(20)}
    columns["city"] = rng.choice(["Zürich", "New York", "Rome"], n)
    columns["flag"] = rng.random(n) < 0.5
    columns["label"] = np.where(columns["x0"] + (columns["city"] == "Rome") > 0, "yes", "no")
    frame = pd.DataFrame(columns)
    write_table(frame.head(5000), tmp_path / "few.csv")
    if name == "t.csv":
        pyarrow.csv.write_csv(pa.Table.from_pandas(frame), tmp_path / name)
    else:
        write_table(frame, tmp_path / name)
    finish(start("train", "few.csv", "--target", "label", "-o", "m.h5", "-q", cwd=tmp_path)).ok()
    # Not by getrusage, whose peak a new process takes over from the one that started it.
    code = """
from quadboost.commands.main import predict_main
try:
    predict_main()
except SystemExit as end:
    print(end.code, open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""
    line = [sys.executable, "-c", code, "m.h5", name, "--proba", "--keep", "x0", "city", "-o", "o.csv"]
    done = subprocess.run(line, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300)
    status, kilobytes = map(int, done.stdout.split())
    assert (status, done.stderr) == (0, "")
    assert kilobytes < 300 * 1024
    written = pyarrow.csv.read_csv(tmp_path / "o.csv")
    assert written.num_rows == n
    assert np.mean(written["prediction"].to_numpy() == columns["label"]) > 0.9


@pytest.mark.slow
def test_the_ending_of_a_name_decides_and_not_what_stands_before(run, tmp_path):
    run("train", "--example", "iris", "-o", "m.h5", "--max-rounds", 3).ok()
    names = quadboost.load(tmp_path / "m.h5").feature_names
    (tmp_path / "t.csv").write_text(",".join(names) + "\n1,2,3,4\n")
    (tmp_path / "dir.tsv").mkdir()
    run("predict", "m.h5", "t.csv", "--proba", "-o", "dir.tsv/out.csv").ok()
    assert "\t" not in (tmp_path / "dir.tsv" / "out.csv").read_text()


def test_probabilities_and_targets_are_those_of_python_for_every_link(run, tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, np.nan]})
    write_table(frame, tmp_path / "t.csv")
    voters = {"feature": [0, 0], "threshold": [0.5, 1.5], "n_features": 1, "feature_names": ["x"]}
    three = {"weight": [[0.3, 1.0, -2.0], [0.1, 0.7, 40.0]], "intercept": [0.1, 0.2, 0.3], "classes": [1, 2, 3]}
    two = {"weight": [1.7, -300.0], "intercept": 0.1, "classes": ["a", "b"]}
    for arguments in (
        two,
        {**two, "link": "logit", "slope": 3.0},
        {**two, "loss": "logistic", "link": "logit"},
        three,
        {**three, "link": "softmax", "slope": [1.0, 2.0, 3.0]},
        {"weight": [0.5, 0.25], "intercept": 0.1, "loss": "poisson", "link": "log"},
        {"weight": [[0.5, 1.0], [0.25, 2.0]], "intercept": [0.1, 0.2], "link": "log"},
    ):
        ensemble = quadboost.Ensemble(**voters, **arguments)
        ensemble.save("m.h5")
        proba = [] if ensemble.classes is None else ["--proba"]
        run("predict", "m.h5", "t.csv", *proba, "-o", "o.csv").ok()
        written = pd.read_csv("o.csv", float_precision="round_trip")
        labels = written.filter(like="prediction").to_numpy()
        np.testing.assert_array_equal(labels, ensemble.predict(frame).reshape(labels.shape))
        if proba:
            np.testing.assert_array_equal(written.filter(like="probability"), ensemble.predict_proba(frame))
