"""The two commands, as a user meets them."""

import csv
import fcntl
import io
import json
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.commands.main import EXAMPLES, predict_main, predict_parser, train_main, train_parser
from quadboost.commands.train import LEFT_OUT

pa = pytest.importorskip("pyarrow")

import pyarrow.csv  # noqa: E402
import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402

MAINS = {"quadboost-train": train_main, "quadboost-predict": predict_main}


class Done:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def ok(self):
        assert (self.status, self.err) == (0, "")
        return self.out

    def refused(self):
        """The one line of the error, without the name of the command."""
        assert self.status == 2, self.out + self.err
        assert self.err.count("\n") == 1, self.err
        command, _, message = self.err.strip().partition(": ")
        assert command in MAINS
        return message


@pytest.fixture
def run(capfd, monkeypatch, tmp_path):
    """Run a command in this process, in the directory of the test."""
    monkeypatch.chdir(tmp_path)

    def run(name, *arguments):
        old = signal.getsignal(signal.SIGTERM)
        try:
            with pytest.raises(SystemExit) as end:
                MAINS[f"quadboost-{name}"]([str(argument) for argument in arguments])
        finally:
            signal.signal(signal.SIGTERM, old)
        return Done(end.value.code, *capfd.readouterr())

    return run


def command(name, *arguments):
    code = f"from quadboost.commands.main import {name}_main; {name}_main()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(Path(quadboost.__file__).parents[1]), **more}


def start(name, *arguments, cwd, **more):
    """Start a command as a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen(command(name, *arguments), cwd=cwd, env=environment(), text=True, **pipes)


def finish(process, timeout=60):
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
        pyarrow.parquet.write_table(pa.Table.from_pandas(frame), path)
    elif path.name.endswith((".feather", ".arrow")):
        pyarrow.feather.write_feather(pa.Table.from_pandas(frame), path)
    else:
        separator = "\t" if ".tsv" in path.name else ","
        frame.to_csv(path, index=False, sep=separator, na_rep="NA", lineterminator="\r\n", encoding="utf-8-sig")


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A directory with a table and the model of it, made once."""
    directory = tmp_path_factory.mktemp("trained")
    write_table(people(), directory / "people.csv")
    train = start("train", "people.csv", "--target", "label", "--drop", "income", "id", "-o", "model.h5", cwd=directory)
    finish(train).ok()
    return directory


@pytest.fixture
def table(trained, tmp_path):
    shutil.copy(trained / "people.csv", tmp_path)
    return people()


@pytest.fixture
def model(trained, table, tmp_path):
    shutil.copy(trained / "model.h5", tmp_path)
    return quadboost.load(tmp_path / "model.h5")


@pytest.fixture
def long_table(model, tmp_path):
    with (tmp_path / "people.csv").open("a") as file:
        file.writelines(f"{i},40,Zürich,true,1,,80,low\r\n" for i in range(300_000))


def read_csv(source):
    """Not by pandas, which does not read every digit in all of its versions."""
    return pyarrow.csv.read_csv(io.BytesIO(source.encode()) if "\n" in str(source) else source).to_pandas()


def features(frame):
    return frame[["âge, years", "city", "member", "code", "empty"]]


# --- training and prediction ----------------------------------------------------------------------------------


def test_a_table_is_learnt_and_predicted_by_the_commands_as_processes(table, tmp_path):
    train = start(
        "train", "people.csv", "--target", "label", "--drop", "income", "id", "-o", "model.h5", "--json", "j.json",
        cwd=tmp_path,
    )  # fmt: skip
    out = finish(train).ok()
    lines = dict(line.split(maxsplit=1) for line in out.splitlines()[4:])
    assert list(lines) == ["rows", "features", "classes", "rounds", "voters", "risk", "error", "time", "model"]
    assert out.startswith("classification of 'label': the target holds text\n")
    assert (lines["rows"], lines["classes"], lines["model"]) == ("400", "2: 'high', 'low'", "model.h5")
    predict = start("predict", "model.h5", "people.csv", "--output", "labels.csv", cwd=tmp_path)
    assert finish(predict).ok() == ""
    labels = read_csv(tmp_path / "labels.csv")["prediction"]
    error = (labels != table["label"]).mean()
    assert error < 0.15
    assert json.loads((tmp_path / "j.json").read_text())["error"] == pytest.approx(error)
    assert float(lines["error"].split()[1]) == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "t.parquet", "t.feather", "t.arrow"])
def test_every_kind_of_file_gives_the_model_that_python_gives(name, tmp_path, run):
    frame = people()
    write_table(frame, tmp_path / name)
    run("train", name, "--target", "label", "--drop", "income", "id", "--cv", 0, "-o", "model.h5").ok()
    expected = QuadBoostClassifier().fit(features(frame), frame["label"]).ensemble_
    model = quadboost.load("model.h5")
    assert model.feature_names == expected.feature_names
    assert model.categories == expected.categories
    for array in ("feature", "kind", "threshold", "weight", "classes"):
        np.testing.assert_array_equal(getattr(model, array), getattr(expected, array))
    out = run("predict", "model.h5", name, "--scores").ok()
    assert read_csv(out)["score"].tolist() == model.decision_function(features(frame)).tolist()


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


def test_regression(table, run):
    out = run("train", "people.csv", "--target", "income", "--drop", "id", "label", "-o", "m.h5", "--json", "j").ok()
    assert re.match(r"regression of 'income': the target holds \d+ different numbers\n", out)
    assert "(root mean square)" in out
    assert "classes" not in out
    model = quadboost.load("m.h5")
    residual = table["income"] - model.predict(features(table))
    summary = json.loads(Path("j").read_text())
    assert summary["risk"] == pytest.approx(np.mean(residual**2))
    assert summary["error"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert summary["classes"] is None
    run("predict", "m.h5", "people.csv", "-o", "o.csv").ok()
    assert read_csv("o.csv")["prediction"].tolist() == model.predict(features(table)).tolist()
    assert "no class probabilities" in run("predict", "m.h5", "people.csv", "--proba").refused()


@pytest.mark.parametrize(
    ("targets", "more", "task"),
    [
        (["a", "b"], [], "classification"),
        (["true", "false"], [], "classification"),
        (["0", "1"], [], "classification"),
        (["1.0", "2.0"], [], "classification"),
        (range(20), [], "classification"),
        (range(21), [], "regression"),
        (["0.5", "1"], [], "regression"),
        (["0", "1"], ["--task", "regression"], "regression"),
        (["true", "false"], ["--task", "regression"], "regression"),
        (range(30), ["--task", "classification"], "classification"),
    ],
)
def test_the_target_chooses_the_task_unless_told_otherwise(targets, more, task, run, tmp_path):
    rows = [f"{i % 7},{target}\n" for i, target in enumerate([*targets] * 10)]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(rows))
    out = run("train", "t.csv", "--target", "y", "-o", "m.h5", "--max-rounds", 3, "--json", "j", *more).ok()
    assert out.startswith(f"{task} of 'y': ")
    assert json.loads(Path("j").read_text())["task"] == task
    assert (quadboost.load("m.h5").classes is None) == (task == "regression")


def test_labels_that_are_whole_numbers_stay_whole(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,10\n2,20\n" * 20)
    run("train", "t.csv", "--target", "y", "-o", "m.h5").ok()
    assert run("predict", "m.h5", "t.csv").ok().split()[:3] == ["prediction", "10", "20"]


def test_rows_without_a_target_are_left_out(table, run, tmp_path):
    frame = people()
    frame.loc[:9, "label"] = None
    write_table(frame, tmp_path / "t.csv")
    write_table(frame.iloc[10:], tmp_path / "rest.csv")
    out = run("train", "t.csv", "--target", "label", "--drop", "income", "-o", "m.h5", "--json", "j").ok()
    assert "10 rows without a target are left out\n" in out
    summary = json.loads(Path("j").read_text())
    assert (summary["rows"], summary["rows_left_out"]) == (390, 10)
    run("train", "rest.csv", "--target", "label", "--drop", "income", "-o", "rest.h5").ok()
    assert quadboost.load("m.h5").weight.tolist() == quadboost.load("rest.h5").weight.tolist()


def test_a_validation_table_is_read_as_the_training_table(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,c,y\n" + "1,a,no\n2,7,yes\n3,7,yes\n4,a,no\n" * 20)
    (tmp_path / "v.csv").write_text("y,c,x\n" + "yes,7,2.5\nyes,7,3\n" * 5)  # its c alone would be numbers
    out = run("train", "t.csv", "--target", "y", "--validation", "v.csv", "-o", "m.h5", "--json", "j").ok()
    summary = json.loads(Path("j").read_text())
    assert (summary["validation_rows"], summary["validation_error"]) == (10, 0.0)
    assert summary["validation_risk"] < 0.1
    assert "rows      80, validation 10\n" in out
    assert re.search(r"error +training 0, validation 0\n", out)


def test_a_fraction_for_validation_is_the_same_for_the_same_seed(table, run):
    def train(*more):
        options = ["--drop", "id", "income", "--validation", 0.25, "-o", "m.h5", "--json", "j"]
        run("train", "people.csv", "--target", "label", *options, *more).ok()
        return json.loads(Path("j").read_text())

    first, again, other = train(), train("--seed", 0), train("--seed", 1)
    assert (first["rows"], first["validation_rows"]) == (300, 100)
    assert first["validation_risk"] == again["validation_risk"] != other["validation_risk"]


def test_weights_count_as_repetitions(table, run, tmp_path):
    frame = people()
    frame["w"] = np.arange(len(frame)) % 3
    write_table(frame, tmp_path / "t.csv")
    write_table(frame.loc[frame.index.repeat(frame["w"])].drop(columns="w"), tmp_path / "repeated.csv")
    options = ["--target", "income", "--drop", "id", "label", "-o", "m.h5", "--json", "j", "--thresholds", "all"]
    options += ["--cv", 0]
    summaries = []
    for arguments in (["t.csv", "--weight", "w"], ["repeated.csv"]):
        run("train", *arguments, *options).ok()
        summaries.append(json.loads(Path("j").read_text()))
        assert "w" not in quadboost.load("m.h5").feature_names
    assert summaries[0]["risk"] == pytest.approx(summaries[1]["risk"], rel=1e-6)
    assert summaries[0]["features"] == summaries[1]["features"]


def test_weights_are_those_of_the_rows_that_have_a_target_and_of_the_validation_table(run, tmp_path):
    frame = pd.DataFrame({"x": np.arange(60) % 4, "w": np.arange(60) % 5 + 1, "y": np.arange(60) % 4 > 1})
    frame["y"] = frame["y"] ^ (frame["w"] == 1)
    frame["y"] = frame["y"].astype(object).where(np.arange(60) % 7 > 0)
    write_table(frame, tmp_path / "t.csv")
    write_table(frame.tail(30), tmp_path / "v.csv")
    run("train", "t.csv", "--target", "y", "--weight", "w", "--validation", "v.csv", "-o", "m.h5", "--json", "j").ok()
    model, summary = quadboost.load("m.h5"), json.loads(Path("j").read_text())
    for name, part in [("", frame.dropna()), ("validation_", frame.tail(30).dropna())]:
        assert summary[f"{name}rows"] == len(part)
        squares = (np.where(part["y"], 1, -1) - model.decision_function(part[["x"]])) ** 2
        assert summary[f"{name}risk"] == pytest.approx(np.average(squares, weights=part["w"]))
        assert summary[f"{name}risk"] == pytest.approx(model.info["outputs"][0][f"{name}risk"])
        wrong = model.predict(part[["x"]]) != part["y"].to_numpy(bool)
        assert summary[f"{name}error"] == pytest.approx(np.average(wrong, weights=part["w"]))


def test_features_are_those_asked_for_in_the_order_of_the_table(table, run):
    run("train", "people.csv", "--target", "label", "--features", "member", "âge, years", "-o", "m.h5").ok()
    assert quadboost.load("m.h5").feature_names == ("âge, years", "member")


def test_declared_categories_are_so_besides_text_and_bool(table, run):
    run(
        "train", "people.csv", "--target", "label", "--drop", "income", "id", "--categorical", "code", "-o", "m.h5"
    ).ok()
    model = quadboost.load("m.h5")
    assert [model.feature_names[j] for j in sorted(model.categories)] == ["city", "member", "code"]
    assert [value for level in model.categories[3] for value in level] == [0, 1, 2]
    out = run("predict", "m.h5", "people.csv").ok()
    assert out.split()[1:] == model.predict(features(table)).tolist()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_need_no_file(name, run):
    out = run("train", "--example", name, "-o", "m.h5", "--max-rounds", 20, "--validation", 0.2).ok()
    assert out.startswith(f"{'regression' if name == 'diabetes' else 'classification'} of 'target'")
    assert len(quadboost.load("m.h5").feature_names) == quadboost.load("m.h5").n_features


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


# --- options --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [QuadBoostClassifier, QuadBoostRegressor])
def test_every_parameter_has_a_flag_or_is_left_out_on_purpose(estimator):
    known = {action.dest for action in train_parser()._actions} | {"categorical_features"}  # --categorical
    parameters = set(estimator().get_params())
    assert parameters - LEFT_OUT <= known
    assert not LEFT_OUT & known


def test_defaults_in_the_help_are_those_of_the_estimators():
    defaults = {**QuadBoostRegressor().get_params(), **QuadBoostClassifier().get_params()}
    for action in train_parser()._actions:
        default = defaults.get(action.dest)
        if action.dest in ("reg_lambda", "alpha_max"):
            assert "default: by cross-validation" in action.help
        elif default is not None and not isinstance(default, bool):
            assert re.search(rf"default: {default}\b", action.help), action.help


def test_flags_reach_the_estimator(run):
    flags = {
        "penalty": "linf", "reg_lambda": 0.25, "alpha_max": 0.5, "mode": "forward", "max_rounds": 7, "thresholds": 9,
        "spacing": "uniform", "reweight_every": 2, "reweight_sweeps": 3, "patience": 4, "tol": 0.001,
        "max_seconds": 60.0, "min_category_count": 6, "cache_bytes": 1000000,
    }  # fmt: skip
    arguments = [text for name, value in flags.items() for text in (f"--{name.replace('_', '-')}", value)]
    run("train", "--example", "iris", "-o", "m.h5", "--no-intercept", "--threads", 2, "--seed", 5, *arguments).ok()
    found = quadboost.load("m.h5").info["parameters"]
    assert found | flags == found
    assert (found["fit_intercept"], found["n_jobs"], found["random_state"]) == (False, 2, 5)
    assert not LEFT_OUT & set(found)


def test_flags_that_are_words(run):
    run("train", "--example", "iris", "-o", "m.h5", "--penalty", "none", "--thresholds", "all", "--max-rounds", 5).ok()
    assert quadboost.load("m.h5").info["parameters"]["penalty"] is None
    run("train", "--example", "iris", "-o", "m.h5", "--class-weight", "setosa=2", "virginica=0.5").ok()
    assert quadboost.load("m.h5").info["parameters"]["class_weight"] == "{'setosa': 2.0, 'virginica': 0.5}"
    run("train", "--example", "digits", "-o", "m.h5", "--class-weight", "0=2", "--max-rounds", 5).ok()
    assert quadboost.load("m.h5").info["parameters"]["class_weight"] == "{0: 2.0}"
    run("train", "--example", "iris", "-o", "m.h5", "--class-weight", "balanced").ok()
    assert quadboost.load("m.h5").info["parameters"]["class_weight"] == "balanced"
    run("train", "--example", "diabetes", "-o", "m.h5", "--standardize").ok()
    assert quadboost.load("m.h5").info["parameters"]["standardize"] is True


def test_json_has_what_the_summary_has(run):
    out = run("train", "--example", "wine", "-o", "m.h5", "--validation", 0.3, "--json", "j.json").ok()
    summary = json.loads(Path("j.json").read_text())
    model = quadboost.load("m.h5")
    lines = dict(line.split(maxsplit=1) for line in out.splitlines()[2:])
    assert lines["rows"] == f"{summary['rows']}, validation {summary['validation_rows']}"
    assert lines["features"] == f"13, {summary['features_used']} of them used"
    assert lines["classes"] == "3: " + ", ".join(map(repr, summary["classes"]))
    assert lines["rounds"] == f"{summary['rounds']} ({', '.join(summary['stop'])})"
    assert lines["voters"] == str(summary["voters"]) == str(len(model.feature))
    for name in ("risk", "error"):
        assert lines[name] == f"training {summary[name]:.6g}, validation {summary[f'validation_{name}']:.6g}"
    risks = [output["validation_risk"] for output in model.info["outputs"]]
    assert summary["validation_risk"] == pytest.approx(np.mean(risks))
    assert lines["model"] == summary["model"] == "m.h5"
    assert summary["seconds"] >= summary["fit_seconds"] > 0


def test_quiet_prints_nothing(run, monkeypatch):
    monkeypatch.setattr("quadboost.common.progress.SECONDS_BETWEEN_LINES", 0.0)
    assert run("train", "--example", "iris", "-o", "m.h5", "--quiet").ok() == ""


def test_a_bar_is_drawn_on_a_terminal_only(tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    train = start("train", "--example", "digits", "-o", "m.h5", "--max-rounds", 2000, cwd=tmp_path, stderr=theirs)
    os.close(theirs)
    drawn = b""
    try:
        while piece := os.read(ours, 10_000):
            drawn += piece
    except OSError:  # so a terminal ends
        pass
    finally:
        os.close(ours)
    out, _ = train.communicate(timeout=60)
    assert train.returncode == 0
    assert b"round" in drawn
    assert b"risk=" in drawn
    assert "round " not in out


def test_lines_are_printed_elsewhere(run, monkeypatch):
    monkeypatch.setattr("quadboost.common.progress.SECONDS_BETWEEN_LINES", 0.0)
    out = run("train", "--example", "iris", "-o", "m.h5", "--validation", 0.5, "--patience", 500).ok()
    assert re.search(r"^round 100: risk 0\.\d{6}, validation risk 0\.\d{6}$", out, re.MULTILINE)


@pytest.mark.parametrize(("name", "parser"), [("train", train_parser), ("predict", predict_parser)])
def test_help_is_complete_and_has_examples(name, parser, run):
    out = run(name, "--help").ok()
    assert "examples:" in out
    assert f"quadboost-{name} " in out
    for action in parser()._actions:
        assert action.help
        assert all(flag in out for flag in action.option_strings)


@pytest.mark.parametrize("name", ["train", "predict"])
def test_examples_of_the_help_are_valid(name, run):
    out = run(name, "--help").ok()
    examples = re.search(r"examples:\n(.*?)\n\n", out, re.DOTALL)[1].replace("\\\n", " ").splitlines()
    assert len(examples) > 3
    for line in examples:
        words = line.split("|")[0].split()
        assert words[0] == f"quadboost-{name}"
        {"train": train_parser, "predict": predict_parser}[name]().parse_args(words[1:])


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


def test_without_pyarrow_the_remedy_is_named(model, tmp_path):
    code = "import sys; sys.modules['pyarrow'] = None; from quadboost.commands.main import {0}_main; {0}_main()"

    def run(name, *arguments):
        line = [sys.executable, "-c", code.format(name), *arguments]
        done = subprocess.run(line, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
        return Done(done.returncode, done.stdout, done.stderr)

    remedy = "tables need pyarrow, which is not installed; pip install 'quadboost[tables]'"
    assert run("train", "people.csv", "--target", "label", "-o", "m.h5").refused() == remedy
    assert run("predict", "model.h5", "people.csv").refused() == remedy
    assert run("train", "--example", "iris", "-o", "m.h5").ok()
    assert run("predict", "m.h5", "--describe").ok()


# --- describe -------------------------------------------------------------------------------------------------


def test_describe_tells_what_a_model_is(model, run):
    out = run("predict", "model.h5", "--describe").ok()
    assert out.startswith(f"model.h5: classification, 2 classes, {len(model.feature)} voters on ")
    strongest = model.feature_names[int(np.argmax(model.info["feature_importances"]))]
    assert re.search(rf"strongest features .*\n +\d+\.\d% +\d+  {strongest}\n", out)
    for pattern in ("penalty +l1", "rows +400", "target +label", "error +0", "max_rounds +\\d+", "voters +"):
        assert re.search(rf"^  {pattern}", out, re.MULTILINE), pattern


def test_describe_believes_nothing(run, tmp_path):
    ensemble = quadboost.Ensemble(
        np.array([0, 1]), np.array([0.5, 1.5]), np.array([1.0, -3.0]), 0.0, n_features=2,
        feature_names=["plain", "\x1b[2Jclear"],
        info={"feature_importances": "none", "parameters": [1], "outputs": {"a": {"b": None}}, "\x07": "bell\x07\n"},
    )  # fmt: skip
    ensemble.save(tmp_path / "m.h5")
    out = run("predict", "m.h5", "--describe").ok()
    assert out.startswith("m.h5: regression, 2 voters on 2 of 2 features\n")
    assert all(line.isprintable() for line in out.splitlines())
    assert out.index("75.0%") < out.index("25.0%")


def test_describe_a_model_of_nothing(run, tmp_path):
    quadboost.Ensemble([], [], np.array([]), 1.5, n_features=3).save(tmp_path / "m.h5")
    assert run("predict", "m.h5", "--describe").ok().startswith("m.h5: regression, 0 voters on 0 of 3 features\n")


# --- errors ---------------------------------------------------------------------------------------------------

TRAIN = ["people.csv", "--target", "label", "-o", "new.h5"]
IRIS = ["--example", "iris", "-o", "new.h5"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: -o/--output"),
        (["-o", "new.h5"], "give a TABLE"),
        (["people.csv", "-o", "new.h5"], "--target is missing"),
        (["people.csv", *IRIS], "give a TABLE, before the options, or else --example"),
        ([*IRIS, "--target", "x"], "--target is for a TABLE"),
        (["no.csv", *TRAIN[1:]], "no.csv: No such file or directory"),
        (["model.h5", *TRAIN[1:]], "model.h5: the name does not tell what it holds"),
        ([*TRAIN, "--wrong"], "unrecognized arguments: --wrong"),
        ([*TRAIN, "--penalty", "l3"], "--penalty: invalid choice: 'l3'"),
        ([*TRAIN, "--max-rounds", "many"], "--max-rounds: invalid int value: 'many'"),
        ([*TRAIN, "--max-rounds", "0"], "--max-rounds 0 must be a whole number of at least 1"),
        ([*TRAIN, "--reg-lambda", "x"], "--reg-lambda: 'x' is neither a number nor auto"),
        ([*TRAIN, "--reg-lambda", "-1"], "--reg-lambda -1.0 must be"),
        ([*TRAIN, "--reg-lambda", "nan"], "--reg-lambda nan must be"),
        ([*TRAIN, "--thresholds", "1.5"], "'1.5' is neither a whole number nor all"),
        ([*TRAIN, "--threads", "0"], "--threads 0 "),
        ([*TRAIN, "--cache-bytes", "0"], "--cache-bytes 0 must be"),
        ([*TRAIN, "--validation", "1.5"], "--validation 1.5 must lie between 0 and 1"),
        ([*TRAIN, "--validation", "nan"], "--validation nan must lie between 0 and 1"),
        ([*TRAIN, "--validation", "no.csv"], "no.csv: No such file"),
        ([*TRAIN, "--validation", "other.csv"], "other.csv has no column 'id', 'âge, years'"),
        ([*IRIS, "--validation", "people.csv"], "--validation people.csv: with --example"),
        ([*TRAIN, "--target", "lable"], "people.csv has no column 'lable'; it has 'id',"),
        ([*TRAIN, "--weight", "w"], "has no column 'w'"),
        ([*TRAIN, "--weight", "label"], "--weight and --target name the same column"),
        ([*TRAIN, "--weight", "city"], "Column 'city' holds "),
        ([*TRAIN, "--weight", "âge, years"], "holds no value in row "),
        ([*TRAIN, "--drop", "w"], "no column 'w'"),
        ([*TRAIN, "--features", "w"], "no column 'w'"),
        ([*TRAIN, "--categorical", "w"], "no column 'w'"),
        ([*TRAIN, "--features", "label"], "--features names 'label', which is the target"),
        ([*TRAIN, "--drop", "id", "--categorical", "id"], "--categorical names 'id', which is not among the features"),
        ([*TRAIN, "--drop", "id", "--features", "city"], "not allowed with argument"),
        (["other.csv", "--target", "y", "-o", "new.h5", "--drop", "x"], "no column is left to learn from"),
        ([*TRAIN, "--target", "empty"], "no row with a target in its column 'empty'"),
        ([*TRAIN, "--task", "regression"], "holds text, such as 'high'; a regression needs numbers"),
        ([*TRAIN, "--target", "income", "--task", "classification"], "labels are text or whole numbers"),
        ([*TRAIN, "--standardize"], "--standardize is for regression"),
        ([*IRIS, "--class-weight", "rose=1"], "'rose=1' must be LABEL=WEIGHT with a label of 'setosa'"),
        ([*IRIS, "--class-weight", "setosa=x"], "'x' is not a number"),
        ([*IRIS, "--class-weight", "setosa=-1"], "--class-weight -1.0 must be a positive"),
        ([*IRIS, "--example", "diabetes", "--class-weight", "balanced"], "--class-weight is for classification"),
        (["--example", "roses", "-o", "new.h5"], "invalid choice: 'roses'"),
        ([*TRAIN, "-o", "no/new.h5"], "No such file or directory"),
        ([*TRAIN, "-o", "."], ".: Is a directory"),
        ([*TRAIN, "-o", "people.csv"], "people.csv would be overwritten while it is needed"),
        ([*TRAIN, "--json", "no/new.json"], "No such file or directory"),
        ([*TRAIN, "--json", "new.h5"], "--json and --output name the same file, new.h5"),
        ([*TRAIN, "--json", "people.csv"], "people.csv would be overwritten"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused_in_one_line(arguments, message, model, run, tmp_path):
    (tmp_path / "other.csv").write_text("x,y\n1,2\n2,3\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert message in run("train", *arguments).refused()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


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


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["2020-01-01", "2020-02-01"], "Column 'x' holds dates or times, such as '2020-01-01'; convert it"),
        (["1", "2", "3", "4", "5", "6", "7", "8", "9", "n.a.", "10"], "Column 'x' holds 'n.a.' in row 10"),
    ],
)  # fmt: skip
def test_columns_that_are_no_features_are_refused_with_the_remedy(column, message, run, tmp_path):
    rows = [f"{column[i % len(column)]},{i % 2}\n" for i in range(220)]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(rows))
    arguments = ["t.csv", "--target", "y", "-o", "m.h5"]
    assert message in run("train", *arguments).refused()
    run("train", *arguments, "--categorical", "x").ok()
    run("predict", "m.h5", "t.csv", "-o", "o.csv").ok()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_infinity_is_refused_by_name(name, run, tmp_path):
    write_table(pd.DataFrame({"a b": [1.0, None, -np.inf, np.inf], "y": [0, 1, 0, 1]}), tmp_path / name)
    message = run("train", name, "--target", "y", "-o", "m.h5").refused()
    assert message == "Column 'a b' holds -inf in row 3; leave it empty, or --drop 'a b'"


def test_typed_categories_of_text_and_of_numbers(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"c": pd.Categorical(rng.choice(["a", "b", "c"], 300)), "k": pd.Categorical(rng.choice([1, 2, 3], 300))}
    )
    frame["y"] = (frame["c"] == "a") | (frame["k"] == 2)
    for name in ("t.parquet", "t.feather"):
        write_table(frame, tmp_path / name)
        declared = ["--categorical", "k"] if name == "t.parquet" else []  # Parquet has no such type for numbers
        run("train", name, "--target", "y", "-o", "m.h5", *declared).ok()
        model = quadboost.load("m.h5")
        assert model.categories == {0: [["a"], ["b"], ["c"]], 1: [[1], [2], [3]]}
        out = run("predict", "m.h5", name, "--keep", "c", "k").ok()
        write_table(frame, tmp_path / "t.csv")
        assert run("predict", "m.h5", "t.csv", "--keep", "c", "k").ok() == out
        assert read_csv(out)["prediction"].tolist() == frame["y"].tolist()


def test_columns_of_dates_are_refused_with_the_remedy(run, tmp_path):
    frame = pd.DataFrame({"when it was": pd.date_range("2020", periods=20), "x": range(20), "y": [0, 1] * 10})
    write_table(frame, tmp_path / "t.parquet")
    arguments = ["t.parquet", "--target", "y", "-o", "m.h5"]
    message = run("train", *arguments).refused()
    assert re.match(r"Column 'when it was' holds dates or times of type timestamp.* --drop 'when it was'$", message)
    run("train", *arguments, "--drop", "when it was").ok()
    run("predict", "m.h5", "t.parquet", "--keep", "when it was", "-o", "o.csv").ok()
    assert Path("o.csv").read_text().startswith("when it was,prediction\n2020-01-01 00:00:00")


def test_a_target_of_names_is_a_mistake_unless_told_otherwise(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,name\n" + "".join(f"{i},name {i}\n" for i in range(300)))
    arguments = ["t.csv", "--target", "name", "-o", "m.h5", "--max-rounds", 1]
    assert "the target 'name' holds 300 different texts" in run("train", *arguments).refused()
    run("train", *arguments, "--task", "classification").ok()


def test_a_target_that_is_always_the_same_is_refused(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,7\n2,7\n")
    assert "the target 'y' is 7 in every row" in run("train", "t.csv", "--target", "y", "-o", "m.h5").refused()


def test_labels_that_only_the_validation_table_has_are_refused(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n3,a\n4,b\n")
    (tmp_path / "v.csv").write_text("x,y\n1,c\n")
    message = run("train", "t.csv", "--target", "y", "--validation", "v.csv", "-o", "m.h5").refused()
    assert message == "the validation rows have the label 'c', which no training row has"


# --- whole or not at all --------------------------------------------------------------------------------------


def limit_files(n_bytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    return limit


@pytest.mark.parametrize("output", ["o.csv", "o.csv.gz", "o.parquet"])
def test_a_disk_that_is_full_leaves_the_old_predictions(model, output, tmp_path):
    (tmp_path / output).write_text("old")
    before = sorted(tmp_path.iterdir())
    predict = start("predict", "model.h5", "people.csv", "--scores", "--keep", "id", "-o", output, cwd=tmp_path,
                    preexec_fn=limit_files(1000))  # fmt: skip
    assert finish(predict).refused() == f"{output}: File too large"
    assert (tmp_path / output).read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before


def test_a_disk_that_is_full_leaves_the_old_model(tmp_path):
    (tmp_path / "m.h5").write_text("old")
    train = start("train", "--example", "iris", "-o", "m.h5", cwd=tmp_path, preexec_fn=limit_files(100))
    assert "File too large" in finish(train).refused()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("m.h5", "old")]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_standard_output_that_is_full(model, tmp_path):
    with open("/dev/full", "w") as full:
        predict = start("predict", "model.h5", "people.csv", cwd=tmp_path, stdout=full)
        _, err = predict.communicate(timeout=60)
    assert (predict.returncode, err) == (2, "quadboost-predict: standard output: No space left on device\n")


def test_a_standard_output_that_is_closed(tmp_path):
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command("train", "--example", "iris", "-o", "m.h5")],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "m.h5").exists()


def test_a_reader_that_has_had_enough_is_no_error(long_table, tmp_path):
    with start("predict", "model.h5", "people.csv", cwd=tmp_path) as predict:
        assert predict.stdout.readline() == "prediction\n"
        predict.stdout.close()
        assert predict.stderr.read() == ""
        assert predict.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("number", "status", "message"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, None)]
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


def test_the_bounds_of_a_classifier_are_told_and_kept(run, tmp_path):
    out = run("train", "--example", "breast_cancer", "-o", "m.h5", "--max-rounds", 20, "--json", "j", "--bound").ok()
    assert "Theorem 1 (corrected, p = 1, quadratic loss)" in out
    bounds = json.loads((tmp_path / "j").read_text())["bounds"]
    assert quadboost.load(tmp_path / "m.h5").info["bounds"] == bounds
    for more in (["--example", "iris"], ["--example", "diabetes"]):
        result = run("train", *more, "-o", "n.h5", "--bound")
        assert "--bound is for two classes" in result.refused()
        assert not (tmp_path / "n.h5").exists()


def test_cross_validation_says_what_it_chose(run, tmp_path):
    out = run("train", "--example", "breast_cancer", "-o", "m.h5", "--max-rounds", 100, "--cv", 3).ok()
    found = re.search(r"3-fold cross-validation chose penalty=l1, max_rounds=(\d+), reg_lambda=(\S+), with a risk", out)
    info = quadboost.load(tmp_path / "m.h5").info
    assert int(found[1]) == info["parameters"]["max_rounds"]
    assert float(found[2]) == pytest.approx(info["parameters"]["reg_lambda"], rel=1e-5)
    for more, wrong in {
        ("--cv", 1): "--cv 1 must be",
        ("--cv", 5, "--reg-lambda", 0.1): "--reg-lambda does not go with --cv",
        ("--cv", 5, "--validation", 0.2): "--cv and --validation",
    }.items():
        assert wrong in run("train", "--example", "breast_cancer", "-o", "n.h5", *more).refused()


@pytest.mark.parametrize(
    ("options", "said", "chosen"),
    [
        ([], "no --reg-lambda given: chosen by 5-fold cross-validation (--cv 0: taken from the number of rows)", True),
        (["--penalty", "l2"], "no --reg-lambda given: chosen by 5-fold cross-validation", True),
        (["--penalty", "linf"], "no --alpha-max given: chosen by 5-fold cross-validation (--cv 0: 0.1)", True),
        (["--patience", 9], "no --reg-lambda given: taken from the number of rows, because --patience does not", False),
        (["--cv", 0], None, False),
        (["--reg-lambda", "auto"], None, False),
        (["--reg-lambda", 0.1], None, False),
        (["--penalty", "linf", "--alpha-max", 0.2], None, False),
        (["--penalty", "none"], None, False),
        (["--validation", 0.2], None, False),
    ],
)
def test_where_no_strength_is_given_it_is_cross_validated_and_the_output_says_so(run, options, said, chosen):
    out = run("train", "--example", "breast_cancer", "-o", "m.h5", "--max-rounds", 30, *options).ok()
    assert ("\nno --" in out) == (said is not None)
    assert said is None or f"\n{said}" in out
    assert ("5-fold cross-validation chose penalty=" in out) == chosen
    assert ("cross_validation" in quadboost.load("m.h5").info) == chosen


def test_without_cross_validation_the_model_is_that_of_the_plain_estimator(run):
    X, y = load_breast_cancer(return_X_y=True)
    expected = QuadBoostClassifier(max_rounds=30).fit(X, y).ensemble_
    for options in (["--cv", 0], ["--reg-lambda", "auto"]):
        run("train", "--example", "breast_cancer", "-o", "m.h5", "--max-rounds", 30, *options).ok()
        np.testing.assert_array_equal(np.abs(quadboost.load("m.h5").weight), np.abs(expected.weight))


def test_too_few_rows_are_not_cross_validated_and_the_output_says_so(run, tmp_path):
    for y, what in (
        ([1.5, 2.5, 7.5, 9.25], "rows"),
        (["a", "b", "a", "a", "a", "a", "b"], "rows of the smallest class"),
    ):
        write_table(pd.DataFrame({"x": np.arange(len(y)), "y": y}), tmp_path / "t.csv")
        assert f"because there are too few {what} for" in run("train", "t.csv", "--target", "y", "-o", "m.h5").ok()


def test_rows_of_weight_zero_are_none_for_cross_validation(run, tmp_path):
    y = np.tile(["a", "b"], 30)
    frame = pd.DataFrame({"x": np.arange(60), "y": y, "w": np.where((np.arange(60) < 8) | (y == "a"), 1.0, 0.0)})
    write_table(frame, tmp_path / "t.csv")
    out = run("train", "t.csv", "--target", "y", "--weight", "w", "-o", "m.h5").ok()
    assert "because there are too few rows of the smallest class for cross-validation" in out
    message = run("train", "t.csv", "--target", "y", "--weight", "w", "-o", "m.h5", "--cv", 5).refused()
    assert message == "--cv 5 is more than there are rows of the smallest class, 4; give fewer folds"


def test_the_summary_tells_what_cross_validation_chose(run, tmp_path):
    run("train", "--example", "diabetes", "-o", "m.h5", "--max-rounds", 30, "--json", "s.json").ok()
    found = json.loads((tmp_path / "s.json").read_text())["cross_validation"]
    assert (found["splits"], found["scoring"]) == (5, "risk")
    parameters = quadboost.load(tmp_path / "m.h5").info["parameters"]
    assert found["chosen"] == {name: parameters[name] for name in ("penalty", "max_rounds", "reg_lambda")}


def test_the_seed_chooses_the_folds(run):
    def risk(*options):
        out = run("train", "--example", "diabetes", "-o", "m.h5", "--max-rounds", 30, *options).ok()
        return re.search("with a risk of (.*)", out)[1]

    assert risk() == risk("--seed", 0) == risk("--cv", 5) != risk("--seed", 1)


def test_model_and_summary_appear_together_or_not_at_all(run, tmp_path):
    run("train", "--example", "iris", "-o", "m.h5", "--max-rounds", 3).ok()
    before = (tmp_path / "m.h5").read_bytes()
    run("train", "--example", "iris", "-o", "m.h5", "--max-rounds", 9, "--json", "/dev/full").refused()
    assert (tmp_path / "m.h5").read_bytes() == before


def test_the_ending_of_a_name_decides_and_not_what_stands_before(run, tmp_path):
    run("train", "--example", "iris", "-o", "m.h5", "--max-rounds", 3).ok()
    names = quadboost.load(tmp_path / "m.h5").feature_names
    (tmp_path / "t.csv").write_text(",".join(names) + "\n1,2,3,4\n")
    (tmp_path / "dir.tsv").mkdir()
    run("predict", "m.h5", "t.csv", "--proba", "-o", "dir.tsv/out.csv").ok()
    assert "\t" not in (tmp_path / "dir.tsv" / "out.csv").read_text()
