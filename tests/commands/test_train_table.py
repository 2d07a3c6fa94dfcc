"""How a table is read for training."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import features, finish, people, read_csv, start, write_table

import quadboost

pytest.importorskip("pyarrow")


@pytest.mark.thinned(3)
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
    out = run("train", "t.csv", "--target", "y", "-o", "m.h5", "--max-rounds", 3, "--cv", 0, "--json", "j", *more).ok()
    assert out.startswith(f"{task} of 'y': ")
    assert json.loads(Path("j").read_text())["task"] == task
    assert (quadboost.load("m.h5").classes is None) == (task == "regression")


@pytest.mark.slow
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
    run(
        "train",
        "t.csv",
        "--target",
        "y",
        "--weight",
        "w",
        "--validation",
        "v.csv",
        "-o",
        "m.h5",
        "--json",
        "j",
        "--no-calibration",
    ).ok()
    model, summary = quadboost.load("m.h5"), json.loads(Path("j").read_text())
    for name, part in [("", frame.dropna()), ("validation_", frame.tail(30).dropna())]:
        assert summary[f"{name}rows"] == len(part)
        squares = (np.where(part["y"], 1, -1) - model.decision_function(part[["x"]])) ** 2
        assert summary[f"{name}risk"] == pytest.approx(np.average(squares, weights=part["w"]))
        assert summary[f"{name}risk"] == pytest.approx(model.info["outputs"][0][f"{name}risk"])
        wrong = model.predict(part[["x"]]) != part["y"].to_numpy(bool)
        assert summary[f"{name}error"] == pytest.approx(np.average(wrong, weights=part["w"]))


@pytest.mark.slow
def test_features_are_those_asked_for_in_the_order_of_the_table(table, run):
    run("train", "people.csv", "--target", "label", "--features", "member", "âge, years", "-o", "m.h5").ok()
    assert quadboost.load("m.h5").feature_names == ("âge, years", "member")


@pytest.mark.slow
def test_declared_categories_are_so_besides_text_and_bool(table, run):
    run(
        "train", "people.csv", "--target", "label", "--drop", "income", "id", "--categorical", "code", "-o", "m.h5"
    ).ok()
    model = quadboost.load("m.h5")
    assert [model.feature_names[j] for j in sorted(model.categories)] == ["city", "member", "code"]
    assert [value for level in model.categories[3] for value in level] == [0, 1, 2]
    out = run("predict", "m.h5", "people.csv").ok()
    assert out.split()[1:] == model.predict(features(table)).tolist()


@pytest.mark.thinned(1)
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
    assert message.replace("'-inf'", "-inf").startswith("Column 'a b' holds -inf in row 3")
    assert "or --drop 'a b'" in message


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_target_of_names_is_a_mistake_unless_told_otherwise(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,name\n" + "".join(f"{i},name {i}\n" for i in range(300)))
    arguments = ["t.csv", "--target", "name", "-o", "m.h5", "--max-rounds", 1]
    assert "the target 'name' holds 300 different texts" in run("train", *arguments).refused()
    done = run("train", *arguments[:-2], "--task", "classification", "--reg-lambda", 1.0, "--no-calibration")
    if done.err:  # newer versions of scikit-learn have something to say
        assert done.warned().startswith("The number of unique classes is greater than 50%")
    assert len(quadboost.load("m.h5").classes) == 300


def test_a_target_that_is_always_the_same_is_refused(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,7\n2,7\n")
    assert "the target 'y' is 7 in every row" in run("train", "t.csv", "--target", "y", "-o", "m.h5").refused()


def test_labels_that_only_the_validation_table_has_are_refused(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n3,a\n4,b\n")
    (tmp_path / "v.csv").write_text("x,y\n1,c\n")
    message = run("train", "t.csv", "--target", "y", "--validation", "v.csv", "-o", "m.h5").refused()
    assert message == "the validation rows have the label 'c', which no training row has"


def labels_of(run, tmp_path, labels, *more):
    """The labels that a model has learnt from a text file, and those that it predicts as they are written."""
    lines = [f"{i % len(labels)},{labels[i % len(labels)]}\n" for i in range(60)]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(lines))
    out = run("train", "t.csv", "--target", "y", "-o", "m.h5", "--cv", 0, "--reg-lambda", 0, *more).ok()
    assert out.startswith("classification")
    predicted = run("predict", "m.h5", "t.csv").ok().split()[1:]
    assert predicted == [labels[i % len(labels)] for i in range(60)]
    return quadboost.load("m.h5").classes.tolist()


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["01234", "01235"], ["01234", "01235"]),
        (["1", "01"], ["01", "1"]),
        (["-1", "+1"], ["+1", "-1"]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["1", "2.0", "1e1"], ["1", "1e1", "2.0"]),
        (["1000000000000000001", "1000000000000000002"], [10**18 + 1, 10**18 + 2]),
        (["18446744073709551615", "0"], ["0", "18446744073709551615"]),
        (["18446744073709551616", "18446744073709551617"], ["18446744073709551616", "18446744073709551617"]),
        (["3", "-7"], [-7, 3]),
        (["true", "false"], [False, True]),
    ],
)  # fmt: skip
def test_labels_stay_as_they_are_written(labels, classes, run, tmp_path):
    assert labels_of(run, tmp_path, labels) == classes
    if classes != [False, True]:
        assert labels_of(run, tmp_path, labels, "--task", "classification") == classes


def test_labels_are_text_on_demand(run, tmp_path):
    assert labels_of(run, tmp_path, ["7", "8"], "--text", "y") == ["7", "8"]


def test_a_target_of_numbers_written_in_many_ways_is_a_regression(run, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i}.50\n" for i in range(60)))
    assert run("train", "t.csv", "--target", "y", "-o", "m.h5", "--cv", 0).ok().startswith("regression")
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i:05}\n" for i in range(60)))
    out = run("train", "t.csv", "--target", "y", "-o", "m.h5", "--cv", 0, "--task", "regression").ok()
    assert out.startswith("regression")


def test_the_label_na_can_be_kept(run, tmp_path):
    (tmp_path / "t.csv").write_text("c,y\n" + "NA,NA\nEU,EU\n,EU\n" * 20)
    arguments = ["t.csv", "--target", "y", "-o", "m.h5", "--cv", 0]
    assert "'EU' in every row" in run("train", *arguments).refused()
    run("train", *arguments, "--missing-text", "-q").ok()
    model = quadboost.load("m.h5")
    assert model.classes.tolist() == ["EU", "NA"]
    assert model.categories == {0: [["EU"], ["NA"]]}
    # The model remembers the words for missing values: NA is a category when it predicts, too.
    assert run("predict", "m.h5", "t.csv").ok().split()[1:] == ["NA", "EU", "EU"] * 20
    assert run("predict", "m.h5", "t.csv", "--scores").ok() != run(
        "predict", "m.h5", "t.csv", "--scores", "--missing-text", "NA"
    ).ok()  # fmt: skip


def test_a_column_is_text_on_demand(run, tmp_path):
    (tmp_path / "t.csv").write_text("code,y\n" + "01,a\n1,b\n" * 20)
    run("train", "t.csv", "--target", "y", "-o", "m.h5", "--text", "code", "--cv", 0).ok()
    assert quadboost.load("m.h5").categories == {0: [["01"], ["1"]]}
    assert run("predict", "m.h5", "t.csv").ok().split()[1:] == ["a", "b"] * 20


def test_large_whole_categories_stay_different(run, tmp_path):
    one, other = 10**18 + 1, 10**18 + 2
    (tmp_path / "t.csv").write_text("code,y\n" + f"{one},a\n{other},b\n,b\n" * 20)
    run("train", "t.csv", "--target", "y", "-o", "m.h5", "--categorical", "code", "--cv", 0).ok()
    assert quadboost.load("m.h5").categories == {0: [[one], [other]]}
    assert run("predict", "m.h5", "t.csv").ok().split()[1:] == ["a", "b", "b"] * 20


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--text", "w", "--weight", "w"], "--text names 'w', which is neither a feature nor the target"),
        (["--text", "no"], "t.parquet has no column 'no'; it has 'x', 'w', 'y'"),
        (["--text", "x"], "--text names 'x', but columns of t.parquet have types; convert it there"),
    ],
)
def test_text_is_for_columns_of_text_files(more, message, run, tmp_path):
    write_table(pd.DataFrame({"x": [1, 2], "w": [1, 1], "y": [0, 1]}), tmp_path / "t.parquet")
    assert run("train", "t.parquet", "--target", "y", "-o", "m.h5", *more).refused() == message


@pytest.mark.parametrize("more", [[], ["--delimiter", ";"]])
def test_european_tables_can_be_read(more, run, tmp_path):
    lines = [f"{i % 4},{i % 2}5;{'süß' if i % 4 > 1 else 'herb'}" for i in range(60)]
    (tmp_path / "t.csv").write_bytes("\n".join(["größe;art", *lines, ""]).encode("latin-1"))
    arguments = ["--decimal", ",", "--encoding", "latin-1", *more]
    run("train", "t.csv", "--target", "art", "-o", "m.h5", "--cv", 0, *arguments).ok()
    model = quadboost.load("m.h5")
    assert (model.feature_names, model.categories) == (("größe",), {})
    out = run("predict", "m.h5", "t.csv", "--keep", "größe", *arguments).ok()
    assert out.splitlines()[:4] == ["größe,prediction", '"0,05",herb', '"1,15",herb', '"2,05",süß']


@pytest.mark.slow
def test_a_model_can_be_trained_from_the_standard_input(table, tmp_path):
    for stdin, more in [("people.csv", []), ("empty", ["--validation", "people.csv"])]:
        (tmp_path / "empty").write_text("")
        with open(tmp_path / stdin) as file:
            arguments = ["-", "--target", "label", "--drop", "income", "id", "-o", "m.h5", "--cv", 0, *more]
            done = finish(start("train", *arguments, cwd=tmp_path, stdin=file))
        if stdin == "empty":
            assert done.refused() == "cannot read standard input: it is empty; its first line must name the columns"
        else:
            assert done.ok()


@pytest.mark.slow
def test_a_table_can_come_from_the_standard_input(model, run, tmp_path):
    with open(tmp_path / "people.csv") as file:
        done = finish(start("predict", "model.h5", "-", cwd=tmp_path, stdin=file))
    assert done.ok() == run("predict", "model.h5", "people.csv").ok()
    closed = start("predict", "model.h5", "-", cwd=tmp_path, preexec_fn=lambda: os.close(0))
    assert finish(closed).refused().startswith("the standard input is closed")
