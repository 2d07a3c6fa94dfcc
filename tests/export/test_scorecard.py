"""Scorecards: points that add up to the log-odds, in files that do no harm."""

import csv
import io
import json
import math
import re

import numpy as np
import pytest
from export_models import fitted, hard_rows

from quadboost.export import to_scorecard
from quadboost.export.additive import additive
from quadboost.export.scorecard import Row, harmless

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
        own = [one for one in card.rows if one.term == term]
        found = [one for one in own if holds(one.condition, row[term])] or [
            one for one in own if holds(one.condition, row[term]) is None
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
    assert re.search(" or missing| and not missing", first)


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


@pytest.mark.parametrize("kind", ["clipped-2", "logit-3", "identity"])
def test_models_without_log_odds_of_two_classes_are_refused(kind):
    with pytest.raises(ValueError, match="a scorecard needs log-odds of two classes"):
        to_scorecard(fitted(kind))


@pytest.mark.parametrize("wrong", [{"odds": 0}, {"pdo": 0}, {"points": math.nan}])
def test_wrong_scales_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
        to_scorecard(fitted("logit-2"), **wrong)


@pytest.mark.parametrize(
    ("value", "cell"), [("=1+1", "'=1+1"), ("a\0b", "a\ufffdb"), ("\0=1", "\ufffd=1"), ("plain", "plain"), (-1.5, -1.5)]
)
def test_a_cell_is_no_formula_and_can_be_written_by_every_python(value, cell):
    assert harmless(value) == cell
