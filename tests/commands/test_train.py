"""The command that trains, as a user meets it."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import features, people, read_csv, write_table
from sklearn.datasets import load_breast_cancer

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.commands.arguments import EXAMPLES

pytest.importorskip("pyarrow")


@pytest.mark.thinned(3)
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


@pytest.mark.slow
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


def test_a_fraction_for_validation_is_the_same_for_the_same_seed(table, run):
    def train(*more):
        options = ["--drop", "id", "income", "--validation", 0.25, "-o", "m.h5", "--json", "j"]
        run("train", "people.csv", "--target", "label", *options, *more).ok()
        return json.loads(Path("j").read_text())

    first, again, other = train(), train("--seed", 0), train("--seed", 1)
    assert (first["rows"], first["validation_rows"]) == (300, 100)
    assert first["validation_risk"] == again["validation_risk"] != other["validation_risk"]


@pytest.mark.thinned(1)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_need_no_file(name, run):
    out = run("train", "--example", name, "-o", "m.h5", "--max-rounds", 20, "--validation", 0.2).ok()
    assert out.startswith(f"{'regression' if name == 'diabetes' else 'classification'} of 'target'")
    assert len(quadboost.load("m.h5").feature_names) == quadboost.load("m.h5").n_features


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
        ([*TRAIN, "--thresholds", "1.5"], "'1.5' is neither a whole number nor auto nor all"),
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
        ([*TRAIN, "--monotone", "id=1,id=-1"], "--monotone names 'id' twice; give it one sign"),
        ([*TRAIN, "--interactions", "code,cod"], "--interactions names 'cod', which is not among the features, 'id', "),
        ([*TRAIN, "--interactions", "all"], "--interactions names 'all', which is not among the features"),
        ([*TRAIN, "--monotone", "code"], "--monotone 'code' must be COLUMN=1 for a rising score, or COLUMN=-1 for"),
        ([*TRAIN, "--monotone", "code=2"], "--monotone 'code=2' must be COLUMN=1"),
        ([*TRAIN, "--monotone", "code=1,"], "--monotone '' must be COLUMN=1"),
        ([*TRAIN, "--monotone", "cod=1"], "--monotone names 'cod', which is not among the features, 'id', "),
        ([*TRAIN, "--monotone", "city=1"], "--monotone 1 is for a column of numbers, and column 'city' is a category"),
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


@pytest.mark.slow
def test_the_bounds_of_a_classifier_are_told_and_kept(run, tmp_path):
    out = run("train", "--example", "breast_cancer", "-o", "m.h5", "--max-rounds", 20, "--json", "j", "--bound").ok()
    assert "Theorem 1 (corrected, p = 1, quadratic loss)" in out
    bounds = json.loads((tmp_path / "j").read_text())["bounds"]
    assert quadboost.load(tmp_path / "m.h5").info["bounds"] == bounds
    for more in (["--example", "iris"], ["--example", "diabetes"]):
        result = run("train", *more, "-o", "n.h5", "--bound")
        assert "--bound is for two classes" in result.refused()
        assert not (tmp_path / "n.h5").exists()


@pytest.mark.slow
def test_cross_validation_says_what_it_chose(run, tmp_path):
    out = run("train", "--example", "breast_cancer", "-o", "m.h5", "--max-rounds", 100, "--cv", 3).ok()
    chosen = r"3-fold cross-validation chose penalty=l1, max_rounds=(\d+), reg_lambda=(\S+)"
    found = re.search(chosen + r"; on rows held out: error (\S+), log-loss (\S+)", out)
    info = quadboost.load(tmp_path / "m.h5").info
    assert int(found[1]) == info["parameters"]["max_rounds"]
    assert float(found[2]) == pytest.approx(info["parameters"]["reg_lambda"], rel=1e-5)
    for name, told in zip(("error", "log_loss"), found.group(3, 4), strict=True):
        assert float(told) == pytest.approx(info["cross_validation"][name], rel=1e-4)
    for more, wrong in {
        ("--cv", 1): "--cv 1 must be",
        ("--cv", 5, "--reg-lambda", 0.1): "--reg-lambda does not go with --cv",
        ("--cv", 5, "--validation", 0.2): "--cv and --validation",
    }.items():
        assert wrong in run("train", "--example", "breast_cancer", "-o", "n.h5", *more).refused()


@pytest.mark.parametrize("more", [["--max-voters", 5], ["--penalty", "none"], ["--max-seconds", 5], ["--cv", 0]])
def test_what_needs_cross_validation_is_refused_with_what_does_not_go_with_it(run, more):
    refused = run("train", "--example", "iris", "-o", "m.h5", "--n-trees", "auto", *more).refused()
    assert refused.startswith("--n-trees auto is chosen by cross-validation; give a number")


@pytest.mark.thinned(1)
@pytest.mark.parametrize(
    ("options", "said", "chosen"),
    [
        ([], "no --reg-lambda given: chosen by 5-fold cross-validation (--cv 0: taken from all training rows)", True),
        (["--penalty", "l2"], "no --reg-lambda given: chosen by 5-fold cross-validation", True),
        (["--penalty", "linf"], "no --alpha-max given: chosen by 5-fold cross-validation (--cv 0: 0.1)", True),
        (["--patience", 9], "no --reg-lambda given: taken from all training rows, because --patience does not", False),
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
        # Its classes are in another order, and scores of the other sign have other cells in the histogram of the link.
        np.testing.assert_allclose(np.abs(quadboost.load("m.h5").weight), np.abs(expected.weight), rtol=1e-6)


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
    assert found["chosen"] == {name: parameters[name] for name in ("penalty", "max_rounds", "n_trees", "reg_lambda")}


@pytest.mark.slow
def test_the_seed_chooses_the_folds(run):
    def risk(*options):
        out = run("train", "--example", "diabetes", "-o", "m.h5", "--max-rounds", 30, *options).ok()
        return re.search("on rows held out: (.*)", out)[1]

    assert risk() == risk("--seed", 0) == risk("--cv", 5) != risk("--seed", 1)


@pytest.mark.parametrize("given", [["âge, years=+1,code=-1"], ["âge, years=1", "code=-1,empty=0"]], ids=str)
def test_scores_are_monotone_in_features_by_their_names(given, table, run):
    run("train", *TRAIN, "--drop", "id", "income", "--reg-lambda", 0.001, "--monotone", *given).ok()
    model = quadboost.load("new.h5")
    shapes = {model.feature_names[shape.feature]: shape.values for shape in model.shape_functions()}
    assert (np.diff(shapes["âge, years"]) >= 0).all()
    assert (np.diff(shapes.get("code", np.zeros(2))) <= 0).all()


@pytest.mark.parametrize(
    ("target", "options", "model"),
    [
        ("label", ["--loss", "logistic"], QuadBoostClassifier(loss="logistic")),
        ("income", ["--loss", "huber", "--huber-width", 900], QuadBoostRegressor(loss="huber", huber_width=900.0)),
        ("id", ["--loss", "poisson"], QuadBoostRegressor(loss="poisson")),
        ("income", ["--loss", "quantile", "--quantile", 0.8], QuadBoostRegressor(loss="quantile", quantile=0.8)),
    ],
)
def test_under_every_loss_the_model_is_that_of_python(target, options, model, tmp_path, run):
    table = people()
    write_table(table, tmp_path / "people.csv")
    others = {"id", "label", "income"} - {target}
    few = ["--thresholds", 7, "--tol", 0.01, "--cv", 0]
    out = run("train", "people.csv", "--target", target, "--drop", *others, *options, *few, "-o", "m.h5").ok()
    assert "\nloss " in out
    X = features(table)
    expected = model.set_params(thresholds=7, tol=0.01).fit(X, table[target])
    found = quadboost.load("m.h5")
    assert (found.loss, found.link) == (expected.ensemble_.loss, expected.ensemble_.link)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("label", ["--loss", "poisson"], "a regression needs numbers"),
        ("income", ["--quantile", 0.9], "--quantile is for --loss quantile; give that too, or leave it out"),
        ("income", ["--huber-width", 9, "--loss", "quantile"], "--huber-width is for --loss huber"),
        ("income", ["--loss", "quantile", "--quantile", 2], "--quantile 2.0 must lie between 0 and 1"),
        ("income", ["--loss", "logistic", "--task", "regression"], "--loss logistic is for classification"),
        ("label", ["--eval-metric", "error"], "--eval-metric error is for validation rows; give --validation too"),
        (
            "label",
            ["--eval-metric", "mae", "--validation", 0.2],
            "is not for classification; use one of error, log_loss",
        ),
    ],
)
def test_a_loss_that_is_for_other_targets_is_refused(target, options, message, tmp_path, run):
    write_table(people(), tmp_path / "people.csv")
    others = {"id", "label", "income"} - {target}
    refused = run("train", "people.csv", "--target", target, "--drop", *others, *options, "-o", "m.h5").refused()
    assert message in refused
    assert not Path("m.h5").exists()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_validation_rows_can_choose_by_a_metric(loss, table, run):
    given = ["--drop", "id", "income", "--loss", loss, "--validation", "people.csv", "--eval-metric", "log_loss"]
    out = run("train", "people.csv", "--target", "label", *given, "-o", "m.h5").ok()
    X = features(table)
    model = QuadBoostClassifier(loss=loss).fit(X, table["label"], X_val=X, y_val=table["label"], eval_metric="log_loss")
    np.testing.assert_array_equal(quadboost.load("m.h5").decision_function(X), model.decision_function(X))
    if loss == "logistic":
        told = model.ensemble_.info["outputs"][0]
        assert f"loss      training {told['risk']:.6g}, validation {told['validation_risk']:.6g}" in out


def test_max_voters_leaves_few_stumps_and_rules(tmp_path, run):
    few = ("train", "--example", "breast_cancer", "--n-trees", 20, "--max-voters", 10, "-o", "model.h5")
    run(*few).ok()
    model = quadboost.load("model.h5")
    assert 0 < len(model.feature) + model.n_rules <= 10
    assert "--max-voters 10 is for --penalty 'l1'" in run(*few, "--penalty", "l2").err
