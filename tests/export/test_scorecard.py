"""Scorecards: points that add up to the log-odds, in files that do no harm."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from export_models import fitted, hard_rows

from quadboost import Ensemble, QuadBoostClassifier
from quadboost.export import to_scorecard
from quadboost.export.additive import additive
from quadboost.export.scorecard import Row, harmless, writable

NUMBER = r"(-?[\d.e+-]+)"


def holds(condition, value):
    """Whether a condition of one feature holds, as a person would read it; None: it is for all others."""
    missing = value is None or value != value
    if condition in ("missing", "any other", "any number"):
        return missing if condition == "missing" else None if not missing else False
    if missing:
        return False
    if condition.startswith("is "):
        names = {True: "true", False: "false"}
        shown = names.get(value) if isinstance(value, bool) else json.dumps(value, ensure_ascii=False)
        shown = f"{value:.17g}" if isinstance(value, float) else shown
        return any(shown == one for one in condition.removeprefix("is ").split(" or "))
    above, up_to = (re.search(f"{word} {NUMBER}", condition) for word in ("above", "up to"))
    return (above is None or value > float(above[1])) and (up_to is None or value <= float(up_to[1]))


def points_of(card, row):
    """The sum of the points of a row, by the conditions alone; exactly one of each term holds."""
    total = card.rows[0].points
    for term in dict.fromkeys(one.term for one in card.rows[1:]):
        of_term = [one for one in card.rows if one.term == term]
        found = [one for one in of_term if holds(one.condition, row[term])] or [
            one for one in of_term if holds(one.condition, row[term]) is None
        ]
        assert len(found) == 1, (term, row[term])
        total += found[0].points
    return total


def rows_of(frame):
    return [
        {k: v.item() if isinstance(v, np.generic) else v for k, v in row.items()} for row in frame.to_dict("records")
    ]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", ["logit-2", "logistic-2"])
@pytest.mark.parametrize(("digits", "atol"), [(0, 3.5), (2, 0.035), (None, 1e-9)])
def test_points_are_those_of_the_log_odds(kind, digits, atol):
    model, frame = fitted(kind), hard_rows(100)
    card = to_scorecard(model, points=600, odds=50, pdo=20, digits=digits)
    found = np.array([points_of(card, row) for row in rows_of(frame)])
    expected = 600 + 20 / math.log(2) * (model.decision_function(frame) - math.log(50))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    if digits == 0:
        assert all(isinstance(row.points, int) and row.points >= 0 for row in card.rows[1:])


def test_odds_double_with_pdo_points_and_a_negative_pdo_turns_the_card():
    model, frame = fitted("logit-2"), hard_rows(20)
    for pdo in (20, -20):
        card = to_scorecard(model, points=0, odds=1, pdo=pdo, digits=None)
        found = np.array([points_of(card, row) for row in rows_of(frame)])
        np.testing.assert_allclose(2.0 ** (found / pdo), np.exp(model.decision_function(frame)), rtol=1e-9)


def test_examples_have_the_points_of_the_card():
    model = fitted("logit-2")
    card = to_scorecard(model)
    header, *rows = card.examples
    names = list(model.feature_names)
    assert header == [*names, "points", "probability of no", "score"]
    for row in rows:
        assert points_of(card, dict(zip(names, row, strict=False))) == row[-3]
    found = [float.fromhex(row[-1]) for row in rows]
    assert found == additive(model).examples.scores[:, 0].tolist()


def test_neighbours_with_the_same_points_are_one_row():
    fine, coarse = (to_scorecard(fitted("logit-2"), digits=digits).rows for digits in (None, -2))
    assert len(coarse) < len(fine)


def test_trees_have_a_row_for_each_leaf():
    model = fitted("trees-2")
    trees = [term for term in additive(model).terms if term.name.startswith("tree")]
    card = to_scorecard(model, digits=None)
    for tree in trees:
        rows = [row for row in card.rows if row.term == tree.name]
        assert len(rows) == len(tree.leaves)
        assert min(row.points for row in rows) == pytest.approx(0, abs=1e-9)
    factor, examples = 20 / math.log(2), additive(model).examples
    expected = 600 + factor * (examples.scores[:, 0] - math.log(50))
    np.testing.assert_allclose([row[-3] for row in card.examples[1:]], expected, rtol=0, atol=1e-9)
    first = next(row.condition for row in card.rows if row.term == trees[1].name)
    assert re.search(r"\((or|not) missing\)", first)


def test_csv_has_three_tables_and_no_formulas():
    names = ["=cmd()", *fitted("logit-2").feature_names[1:]]
    model = fitted("logit-2").replace(feature_names=names)
    text = to_scorecard(model).to_csv()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows.count([]) == 2
    assert rows[0] == ["term", "condition", "points"]
    assert "'=cmd()" in {row[0] for row in rows if row}
    assert not any(cell.startswith(("=", "@", "+")) for row in rows for cell in row)


def test_files_are_written_by_their_ending(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    names = ["=cmd()", *fitted("logit-2").feature_names[1:]]
    card = to_scorecard(fitted("logit-2").replace(feature_names=names))
    card.save(tmp_path / "card.csv")
    assert (tmp_path / "card.csv").read_bytes().decode("utf-8-sig") == card.to_csv()
    card.save(tmp_path / "card.xlsx")
    book = openpyxl.load_workbook(tmp_path / "card.xlsx")
    assert book.sheetnames == ["scorecard", "meaning", "examples"]
    cells = [[cell.value for cell in row] for row in book["scorecard"]]
    assert cells == [list(Row._fields), *map(list, card.rows)]
    assert "f" not in {cell.data_type for sheet in book for row in sheet for cell in row}
    with pytest.raises(ValueError, match=r"ends in neither \.csv nor \.xlsx"):
        card.save(tmp_path / "card.txt")


def test_without_openpyxl_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install 'quadboost\[scorecard\]'"):
        to_scorecard(fitted("logit-2")).to_xlsx()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("clipped-2", "the link of this model is 'clipped'; train with loss=\"logistic\", or with calibration"),
        ("logit-3", "this model has 3 classes; use another export"),
        ("identity", "this model has no classes, but predicts numbers; use another export"),
    ],
)
def test_models_without_log_odds_of_two_classes_are_refused(kind, why):
    with pytest.raises(ValueError, match=f"a scorecard needs log-odds of two classes, and {why}"):
        to_scorecard(fitted(kind))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"odds": 0}, "odds=0 must be a positive finite number"),
        ({"odds": "50"}, "odds='50' must be a positive finite number"),
        ({"pdo": 0}, "pdo=0 must not be 0"),
        ({"pdo": None}, "pdo=None must be a finite number"),
        ({"pdo": 1e308}, "make points beyond all numbers; choose less"),
        ({"pdo": 1e305, "digits": 15}, "make points beyond all numbers; choose less"),
        ({"points": math.nan}, "points=nan must be a finite number"),
        ({"points": 10**400}, "points=1000.* must be a finite number"),
        ({"digits": 400}, "digits=400 must be at most 15; None does not round"),
        ({"digits": -400}, "digits=-400 must be a whole number of at least -15"),
        ({"digits": 1.5}, "digits=1.5 must be a whole number"),
    ],
)
def test_wrong_scales_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        to_scorecard(fitted("logit-2"), **given)


ODD = ["a\x01b", "\x02=1+1", "\r=1", "\ufffe", "\ud800", "tab\t", "two\nlines", "plain"]


def test_control_characters_in_names_levels_and_classes_are_spelt_out_in_files(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    categories, n = {0: [[level] for level in ODD]}, len(ODD)
    model = Ensemble([0] * n, range(n), np.arange(n) + 1.0, 0.0, kind=[1] * n, n_features=1, categories=categories)
    model = model.replace(feature_names=["x\x03"], classes=["\x04", "\x05"], link="logit")
    card = to_scorecard(model)
    card.save(tmp_path / "card.xlsx")
    card.save(tmp_path / "card.csv")
    book = openpyxl.load_workbook(tmp_path / "card.xlsx")
    sheets = [["" if cell.value is None else str(cell.value) for cell in row] for sheet in book for row in sheet]
    text = (tmp_path / "card.csv").read_bytes().decode("utf-8-sig")
    lines = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    assert ["x\\x03", 'is "a\\u0001b"', "58"] in sheets
    assert "probability of \\x05" in {cell for row in sheets for cell in row}
    shown, given = {row[0] for row in sheets}, {row[0] for row in card.examples[1:] if row[0]}
    assert given & {"a\x01b", "\x02=1+1", "\r=1", "\ufffe", "\ud800"}
    assert {writable(level) for level in given} <= shown
    assert {row[0].removeprefix("'") for row in lines} >= shown - {""}


def test_a_sheet_that_would_be_cut_off_is_refused():
    pytest.importorskip("openpyxl")
    card = to_scorecard(fitted("logit-2"))
    for wrong in ({"rows": [Row("x", "a" * 32_768, 1)]}, {"examples": [[1] * 16_385]}):
        with pytest.raises(ValueError, match=r"32,767 characters in a cell; write \.csv"):
            replace(card, **wrong).to_xlsx()


@pytest.mark.parametrize(
    ("value", "cell"),
    [("=1+1", "'=1+1"), ("a\0b", "a\\x00b"), ("\0=1", "\\x00=1"), ("plain ü", "plain ü"), (-1.5, -1.5)],
)
def test_a_cell_is_no_formula_and_can_be_written_by_every_python(value, cell):
    assert harmless(value) == cell


def test_of_an_order_every_level_has_a_row():
    size = pd.Categorical(["s", "m", "l"] * 40, categories=["s", "m", "l"], ordered=True)
    rng = np.random.default_rng(0)
    model = QuadBoostClassifier(monotonic_cst={"size": 1}).fit(
        pd.DataFrame({"size": size}), size.codes + rng.normal(size=120) > 1
    )
    rows = [row for row in to_scorecard(model).rows if row.term == "size"]
    assert [row.condition for row in rows] == ['is "s"', 'is "m"', 'is "l"', "missing"]


def test_rules_of_an_order_name_their_levels():
    rng, sizes = np.random.default_rng(0), ["s", "m", "l", "xl"]
    frame = pd.DataFrame(
        {"size": pd.Categorical(rng.choice(sizes, 500), categories=sizes, ordered=True), "z": rng.normal(size=500)}
    )
    label = (frame["size"].cat.codes > 1) & (frame["z"] > 0)
    model = QuadBoostClassifier(n_trees=5, monotonic_cst={"size": 1}).fit(frame, label)
    rows = [row for row in to_scorecard(model).rows if row.term.startswith("tree") and "size" in row.condition]
    assert any('size is "l" or "xl" (' in row.condition for row in rows)
    assert all(re.search(r'size is "(s|m|l|xl)"[^(]*[(](or|not) missing[)]', row.condition) for row in rows)
