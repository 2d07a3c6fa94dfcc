"""A model of two classes as a scorecard: points that a person can add up."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..common.checks import at_least, file_name, finite, positive
from ..common.packages import needed
from ..model.whole_file import whole_file
from .additive import BOOLEAN, Additive, Steps, Term, Tree, additive

SHEET = (1_048_576, 16_384, 32_767)
TOO_LARGE = "an .xlsx file has at most {:,} rows, {:,} columns, and {:,} characters in a cell; write .csv".format(
    *SHEET
)
MOST_DIGITS = 15
NO_XML = re.compile("[\0-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
FORMULA = ("=", "+", "-", "@", "\t")  # a spreadsheet would run what begins so


class Row(NamedTuple):
    """One line of a card: where the condition holds, the points are added."""

    term: str
    condition: str
    points: float


@dataclass(frozen=True)
class Scorecard:
    """Points for each condition.

    Attributes
    ----------
    rows : list of Row
        The first, "base", is added for everyone; of every other term, exactly one row applies.
    meaning : list of (str, value)
        What the points stand for.
    examples : list of lists
        A header, then rows: values, points, probability, and the score in hexadecimal.
    """

    rows: list[Row]
    meaning: list[tuple[str, Any]]
    examples: list[list[Any]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .csv or an .xlsx file, by the ending; it appears whole or not at all."""
        name = file_name(path)
        if not name.lower().endswith((".csv", ".xlsx")):
            raise ValueError(f"{name!r} ends in neither .csv nor .xlsx")
        content = self.to_xlsx() if name.lower().endswith(".xlsx") else self.to_csv().encode("utf-8-sig")
        with whole_file(name) as file:
            file.write(content)

    def to_csv(self) -> str:
        """Three tables, with empty lines between them."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        for number, table in enumerate(self._tables().values()):
            if number:
                writer.writerow([])
            writer.writerows([[harmless(value) for value in row] for row in table])
        return text.getvalue()

    def to_xlsx(self) -> bytes:
        """Three sheets."""
        book = needed("openpyxl", "an .xlsx file needs", "'quadboost[scorecard]', or write .csv").Workbook()
        book.remove(book.active)
        for title, table in self._tables().items():
            sheet = book.create_sheet(title)
            written = [[writable(value) for value in row] for row in table]
            lengths = (len(value) for row in written for value in row if isinstance(value, str))
            size = (len(written), max(map(len, written)), max(lengths, default=0))
            if any(length > most for length, most in zip(size, SHEET, strict=True)):
                raise ValueError(TOO_LARGE)
            for i, row in enumerate(written, start=1):
                for j, value in enumerate(row, start=1):
                    cell = sheet.cell(i, j, value)
                    if isinstance(value, str):
                        cell.data_type = "s"  # never a formula
        file = io.BytesIO()
        book.save(file)
        return file.getvalue()

    def _tables(self) -> dict[str, Sequence[Sequence[Any]]]:
        card = [Row._fields, *self.rows]
        return {"scorecard": card, "meaning": self.meaning, "examples": self.examples}


def to_scorecard(
    model: Any, *, points: float = 600, odds: float = 50, pdo: float = 20, digits: int | None = 0
) -> Scorecard:
    """Write a model of two classes as a scorecard.

    Parameters
    ----------
    model : Ensemble, or a fitted estimator
        Its scores must be log-odds: `calibration="auto"`, which is the default, or `loss="logistic"`.
    points : float
        So many points stand for `odds`.
    odds : float
        Of the second class.
    pdo : float
        Points that double the odds. Negative: fewer points for the second class.
    digits : int or None
        To which the points of every row are rounded. None: they are not.
    """
    form = additive(model)
    _check_log_odds(form)
    finite("points", points)
    positive("odds", odds)
    if finite("pdo", pdo) == 0:
        raise ValueError("pdo=0 must not be 0; it is how many points double the odds")
    if digits is not None and at_least("digits", digits, -MOST_DIGITS) > MOST_DIGITS:
        raise ValueError(f"digits={digits!r:.60} must be at most {MOST_DIGITS}; None does not round")
    with np.errstate(over="ignore", invalid="ignore"):
        card = _Card(form, float(pdo) / math.log(2.0), float(points), float(odds), digits)
    if not math.isfinite(card.largest):
        raise ValueError(f"points={points}, odds={odds} and pdo={pdo} make points beyond all numbers; choose less")
    second = _shown(form.classes[1])
    meaning: list[tuple[str, Any]] = [
        ("what", "value"),
        ("class", second),
        ("points", points),
        ("are odds of", odds),
        ("the odds double with", pdo),
        ("probability", f"1 / (1 + exp(-(points - {card.offset!r}) / {card.factor!r}))"),
        ("rounding changes the points by at most", card.most_rounding),
    ]
    return Scorecard(card.rows(), meaning, card.examples(second))


def _check_log_odds(model: Additive) -> None:
    if len(model.classes) != 2:
        what = f"{len(model.classes)} classes" if model.classes else "no classes, but predicts numbers"
        raise ValueError(f"a scorecard needs log-odds of two classes, and this model has {what}; use another export")
    if model.link != "logit":
        raise ValueError(
            f"a scorecard needs log-odds of two classes, and the link of this model is {model.link!r}; "
            'train with loss="logistic", or with calibration="auto"'
        )


class _Card:
    def __init__(self, model: Additive, factor: float, points: float, odds: float, digits: int | None) -> None:
        self.model, self.factor, self.digits = model, factor, digits
        self.offset = points - factor * math.log(odds)
        least = [float((factor * _values(term)).min()) for term in model.terms]
        self.base = self._rounded(self.offset + factor * float(model.intercept[0]) + sum(least))
        self.terms = [self._in_points(term, low) for term, low in zip(model.terms, least, strict=True)]
        self.largest = abs(self.base) + sum(float(np.abs(_values(term)).max()) for term in self.terms)
        self.most_rounding = 0.0 if digits is None else (len(least) + 1) / 2 * 10.0**-digits

    def _rounded(self, points: Any) -> Any:
        if self.digits is None:
            return points
        rounded = np.round(points, self.digits) + 0.0  # never -0
        return rounded if isinstance(points, np.ndarray) else float(rounded)

    def _in_points(self, term: Term, least: float) -> Term:
        """The least of a term's points are 0; neighbours with the same points are one step."""
        values = self._rounded(self.factor * term.values - least)
        if isinstance(term, Tree):
            return replace(term, values=values)
        missing = self._rounded(self.factor * term.missing - least)
        if term.feature in self.model.levels:
            return replace(term, values=values, missing=missing)
        differs = values[1:, 0] != values[:-1, 0]
        return replace(term, cuts=term.cuts[differs], values=values[np.append(True, differs)], missing=missing)

    def rows(self) -> list[Row]:
        rows = [Row("base", "always", _number(self.base))]
        for term in self.terms:
            found = _rows_of_tree(self.model, term) if isinstance(term, Tree) else _rows_of_steps(self.model, term)
            rows += [Row(_shown(term.name), condition, _number(points)) for condition, points in found]
        return rows

    def examples(self, second: str) -> list[list[Any]]:
        examples = self.model.examples
        in_points = [
            self.base + sum(_value(term, row) for term in self.terms) for row in self.model.numbers(examples.rows)
        ]
        probabilities = self.model.ensemble.probabilities_of(examples.scores)[:, 1]
        table: list[list[Any]] = [[*map(_shown, self.model.names), "points", f"probability of {second}", "score"]]
        for row, total, probability, words in zip(
            examples.rows, in_points, probabilities.tolist(), examples.hexadecimal(), strict=True
        ):
            hexadecimal = words[0] if examples.scores[len(table) - 1, 0] >= 0 else f" {words[0]}"  # no formula
            table.append([*row, _number(float(self._rounded(total))), probability, hexadecimal])
        return table


def _values(term: Term) -> np.ndarray:
    return term.values[term.leaves] if isinstance(term, Tree) else np.vstack([term.values, term.missing])


def _value(term: Term, numbers: np.ndarray) -> float:
    """What a term is worth for one row."""
    tree, node = term.as_tree(), 0
    while tree.feature[node] >= 0:
        x, threshold = numbers[tree.feature[node]], tree.threshold[node]
        if np.isnan(x):
            right = tree.missing_right[node]
        else:
            right = x == threshold if tree.is_level[node] else x > threshold
        node = tree.right[node] if right else node + 1
    return float(tree.values[node, 0])


def _rows_of_steps(model: Additive, steps: Steps) -> list[tuple[str, float]]:
    values = steps.values[:, 0].tolist()
    if steps.feature in model.levels:
        found = _rows_of_levels(model, steps)
    else:
        ends = [-np.inf, *steps.cuts.tolist(), np.inf]
        found = [(_between(*ends[i : i + 2]) or "any number", value) for i, value in enumerate(values)]
    return [*found, ("missing", float(steps.missing[0]))]


def _rows_of_levels(model: Additive, steps: Steps) -> list[tuple[str, float]]:
    """A row for each level that is not worth as much as one never seen."""
    n_levels = 1 + max(model.levels[steps.feature].values(), default=-1)
    points = steps.values[np.searchsorted(steps.cuts, np.arange(-1, n_levels)), 0].tolist()
    unseen, *known = enumerate(points, start=-1)
    if np.isnan(model.unseen(steps.feature)):  # of an order there is no other value
        return [(f"is {_names(model, steps.feature, n)}", points) for n, points in known]
    rows = [(f"is {_names(model, steps.feature, n)}", points) for n, points in known if points != unseen[1]]
    return [*rows, ("any other", unseen[1])]


def _rows_of_tree(model: Additive, tree: Tree) -> list[tuple[str, float]]:
    rows, to_do = [], [(0, _Path(model, {}))]
    while to_do:
        node, path = to_do.pop()
        if tree.feature[node] < 0:
            rows.append((path.text(), float(tree.values[node, 0])))
            continue
        to_do += [(int(tree.right[node]), path.after(tree, node, True)), (node + 1, path.after(tree, node, False))]
    return rows


class _Asked(NamedTuple):
    """What is known of one feature on the way to a leaf."""

    above: float = -np.inf
    up_to: float = np.inf
    level: int | None = None
    other_than: tuple[int, ...] = ()
    or_missing: bool = True


class _Path(NamedTuple):
    model: Additive
    asked: dict[int, _Asked]

    def after(self, tree: Tree, node: int, right: bool) -> _Path:
        feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
        known = self.asked.get(feature, _Asked())
        known = known._replace(or_missing=known.or_missing and bool(tree.missing_right[node]) == right)
        if tree.is_level[node]:
            level = int(threshold)
            known = known._replace(level=level) if right else known._replace(other_than=(*known.other_than, level))
        elif right:
            known = known._replace(above=max(known.above, threshold))
        else:
            known = known._replace(up_to=min(known.up_to, threshold))
        return _Path(self.model, {**self.asked, feature: known})

    def text(self) -> str:
        return " and ".join(self._condition(feature, known) for feature, known in self.asked.items())

    def _condition(self, feature: int, known: _Asked) -> str:
        if feature not in self.model.levels:
            what = _between(known.above, known.up_to)
        elif known.level is not None:
            what = f"is {_names(self.model, feature, known.level)}"
        elif known.other_than:
            what = "is not " + " or ".join(_names(self.model, feature, level) for level in known.other_than)
        else:  # of an order, those between two places
            places = range(len(self.model.levels[feature]))
            within = [_names(self.model, feature, level) for level in places if known.above < level <= known.up_to]
            what = "is " + (" or ".join(within) or "no level")
        return f"{_shown(self.model.names[feature])} {what} ({'or' if known.or_missing else 'not'} missing)"


def _between(above: float, up_to: float) -> str:
    parts = [f"above {above!r}"] * (above > -np.inf) + [f"up to {up_to!r}"] * (up_to < np.inf)
    return " ".join(parts)


def _names(model: Additive, feature: int, level: int) -> str:
    """The values of a level."""
    values = [value for value, number in model.levels[feature].items() if number == level]
    if model.holds[feature] == BOOLEAN:
        return " or ".join("true" if value else "false" for value in values)
    return " or ".join(_quoted(value) for value in values)


def _quoted(value: str | float) -> str:
    return json.dumps(value, ensure_ascii=not value.isprintable()) if isinstance(value, str) else f"{value:.17g}"


def _shown(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]


def _number(points: float) -> float:
    """Whole points without a decimal point."""
    return int(points) if float(points).is_integer() else points


def writable(value: Any) -> Any:
    """A cell without characters that no sheet can hold: they are spelt out."""
    return NO_XML.sub(lambda found: ascii(found[0])[1:-1], value) if isinstance(value, str) else value


def harmless(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula."""
    value = writable(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
