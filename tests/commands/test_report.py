"""quadboost-report writes a page about a model and a table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import write_table

from quadboost import QuadBoostClassifier, QuadBoostRegressor

pa = pytest.importorskip("pyarrow")


def test_a_report_is_written_and_says_on_how_many_rows(model, table, run):
    out = run("report", "model.h5", "people.csv", "--target", "label", "-o", "r.html", "--title", "People").ok()
    assert out == "r.html: report on 400 rows\n"
    page = Path("r.html").read_text("utf-8")
    assert "<h1>People</h1>" in page
    assert "area under the ROC curve" in page
    assert "400 rows that were not trained on" in page


def test_rows_without_a_target_are_left_out(model, table, run):
    table.loc[:9, "label"] = None
    write_table(table, Path("gaps.parquet"))
    out = run("report", "model.h5", "gaps.parquet", "--target", "label", "-o", "r.html").ok()
    assert out == "r.html: report on 390 rows, 10 without a target left out\n"
    assert run("report", "model.h5", "gaps.parquet", "--target", "label", "-o", "q.html", "--quiet").ok() == ""
    assert Path("q.html").read_bytes() == Path("r.html").read_bytes()


@pytest.mark.slow
def test_labels_are_those_of_the_model(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    for name, y in (
        ("whole", (X[:, 0] > 0).astype(int)),
        ("bool", X[:, 0] > 0),
        ("float", np.where(X[:, 0] > 0, 1.0, 2.0)),
    ):
        QuadBoostClassifier().fit(X, y).save(f"{name}.h5")
        lines = [f"{a!r},{b!r},{label}" for (a, b), label in zip(X.tolist(), y.tolist(), strict=True)]
        Path("t.csv").write_text("\n".join(["a,b,y", *lines]))
        error = run("report", f"{name}.h5", "t.csv", "--target", "y", "-o", "r.html").refused()
        assert "has 3 columns, but the model, which knows no names of columns" in error
        QuadBoostClassifier().fit(pd.DataFrame(X, columns=["a", "b"]), y).save(f"{name}.h5")
        run("report", f"{name}.h5", "t.csv", "--target", "y", "-o", f"{name}.html").ok()
        assert "<h2>Quality</h2>" in Path(f"{name}.html").read_text("utf-8")


def test_a_regression_has_a_report(model, table, run):
    QuadBoostRegressor().fit(table[["code"]], table["income"]).save("income.h5")
    run("report", "income.h5", "people.csv", "--target", "income", "-o", "r.html").ok()
    assert "mean absolute error" in Path("r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "nothing", "-o", "r.html"], "'nothing'"),
        (["--target", "city", "-o", "r.html"], "y holds the label"),
        (["--target", "label", "-o", "-"], "a report is a file; give --output report.html"),
        (["--target", "label", "-o", "people.csv"], "would be overwritten"),
        (["-o", "r.html"], "--target"),
        (["--target", "label", "-o", "r.html", "--sha256", "0" * 64], "SHA-256"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(model, table, run, arguments, message):
    assert message in run("report", "model.h5", "people.csv", *arguments).refused()
    assert not Path("r.html").exists()
