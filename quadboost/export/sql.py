"""A model as one SQL query that gives the same bits in DuckDB, PostgreSQL and SQLite.

The query is a chain of selects, by WITH. Each has the columns of the one before it and a few more: the features as
numbers (x0, x1, ...; NULL is missing), the terms if they are asked for (t0_0, ...), the scores (s0, ...), what the link
needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from ..common.checks import one_of, text, texts
from ..data.schema import MIXED, TEXT
from ..data.tables import listed
from .additive import BOOLEAN, Additive, Steps, Term, Tree, additive, check_labels, check_text

# Terms that are added in one select. DuckDB and SQLite refuse expressions deeper than 1,000; DuckDB takes long to plan
# long sums of long terms, and longer still many selects of many columns.
FEWEST, MOST = 10, 300
MOST_SELECTS = 12
DEEPEST = 15  # questions of a tree inside one another: SQLite can parse some 20
POSTGRES_BYTES = 63  # of a name; it cuts off the rest
TEST = "--test: "  # before each line of the self-test
HEAD = """-- Scores of a QuadBoost model, for {dialect}. Missing values are NULL or NaN.
-- The last lines are a self-test, a query that returns the rows whose score differs: none. To run it:
--   sed -n 's/^{test}//p' THIS_FILE | {program}
"""


def _duckdb_double(value: float) -> str:
    """Without an exponent it would be a DECIMAL."""
    return repr(value) if "e" in repr(value) else f"{value!r}e0"


def _postgres_double(value: float) -> str:
    """Any other literal would be a NUMERIC."""
    return f"'{value!r}'::float8"


def _sqlite_double(value: float) -> str:
    """An integer times or over powers of two: SQLite misreads some decimal numbers in the last bit."""
    numerator, denominator = abs(value).as_integer_ratio()
    zeros = max(0, numerator.bit_length() - 53)  # all 0, as a double has 53 bits
    factors = [f"*{1 << min(52, zeros - done)}.0" for done in range(0, zeros, 52)]
    halvings = denominator.bit_length() - 1
    factors += [f"/{1 << min(52, halvings - done)}.0" for done in range(0, halvings, 52)]
    return f"({'-' if value < 0 else ''}{numerator >> zeros}.0{''.join(factors)})"


@dataclass(frozen=True)
class Dialect:
    """What differs between databases."""

    name: str
    program: str
    double: Callable[[float], str]  # a literal
    real: str  # the type
    text: str
    character: str  # the function from a code point to text
    least: str
    greatest: str
    fence: str  # at the end of a select: its columns are computed once, not wherever they are used
    not_a_number: str  # a literal; empty where there is none
    binary: str  # comparison of text by its bytes, whatever the column and the database say
    most_columns: float  # of one select
    most_label: int = 2**63 - 1

    def same(self, name: str) -> str:
        """Equal for names that are one and the same to the database."""
        return self.cut(name) if self.name == "postgres" else name.encode().lower().decode()  # the case of ASCII alone

    def cut(self, name: str, end: str = "") -> str:
        """A name that is not too long, with an end."""
        most = POSTGRES_BYTES - len(end) if self.name == "postgres" else None
        return name.encode()[:most].decode(errors="ignore") + end

    def distinct(self, names: Iterable[str]) -> list[str]:
        """The names, where need be with a number at their end, so that no two are the same."""
        found: dict[str, str] = {}
        for name in names:
            ends = chain([""], (f"_{number}" for number in count(2)))
            free_name = next(free_name for end in ends if self.same(free_name := self.cut(name, end)) not in found)
            found[self.same(free_name)] = free_name
        return list(found.values())


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            *("duckdb", "duckdb", _duckdb_double, "DOUBLE", "VARCHAR", "chr", "least", "greatest"),
            *("", "'nan'::DOUBLE", ' COLLATE "C"', math.inf, 2**64 - 1),
        ),
        Dialect(
            *("postgres", "psql", _postgres_double, "float8", "text", "chr", "least", "greatest"),
            *("OFFSET 0", "'NaN'::float8", ' COLLATE "C"', 1664),
        ),
        Dialect(
            *("sqlite", "sqlite3", _sqlite_double, "REAL", "TEXT", "char", "min", "max"),
            *("LIMIT -1 OFFSET 0", "", " COLLATE BINARY", 2000),
        ),
    )
}


def to_sql(
    model: Any,
    table: str | Sequence[str],
    dialect: str = "duckdb",
    *,
    keep: Sequence[str] = (),
    contributions: bool = False,
) -> str:
    """Write a model as a query over a table.

    Parameters
    ----------
    model : Ensemble, or a fitted estimator
    table : str, or a sequence of str such as (schema, table)
    dialect : {"duckdb", "postgres", "sqlite"}
    keep : sequence of str
        Columns of the table that are returned as they are, before the others.
    contributions : bool
        Also return the intercept, and what each term adds to it to make the score.

    Returns
    -------
    str
        A SELECT, without a semicolon, and its self-test in comments; `self_test` takes that out. Its columns are those
        of keep, then score (of several outputs one each), prediction, and of a classification the probabilities.
    """
    one_of("dialect", dialect, tuple(DIALECTS))
    one_of("contributions", contributions, (False, True))
    path = _path_of(table)
    writer = _Writer(additive(model), DIALECTS[dialect], contributions)
    query = writer.query(path, texts("keep", keep))
    test = "\n".join(TEST + line for line in writer.test().split("\n"))
    head = HEAD.format(dialect=dialect, test=TEST, program=DIALECTS[dialect].program)
    return f"{head}{query}\n{test}\n"


def self_test(sql: str) -> str:
    """The query in what `to_sql` wrote that returns the example rows whose score differs."""
    lines = [line.removeprefix(TEST) for line in text("sql", sql).split("\n") if line.startswith(TEST)]
    if not lines:
        raise ValueError(f"{sql!r:.60} has no self-test; give all of what to_sql returned")
    return "\n".join(lines)


def _path_of(table: Any) -> list[str]:
    """The names that lead to a table."""
    if isinstance(table, bytes) or not isinstance(table, Iterable):
        raise ValueError(f"table={table!r:.60} must be the name of a table, or a sequence such as (schema, table)")
    names = [text("table", table)] if isinstance(table, str) else texts("table", table)
    if not names:
        raise ValueError(f"table={table!r} has no name; give that of the table to score")
    return names


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Writer:
    def __init__(self, model: Additive, dialect: Dialect, contributions: bool) -> None:
        self.model, self.dialect, self.contributions = model, dialect, contributions
        self.prefix = "quadboost_"
        for feature in model.used:
            check_text(model.levels.get(feature, ()), "SQL")
        check_text(model.classes, "SQL")
        check_labels(model.classes, dialect.program, dialect.most_label)
        self._check_names()

    def _check_names(self) -> None:
        names = [self.model.names[feature] for feature in self.model.used]
        check_text(names, "SQL")
        if "" in names and self.dialect.name != "sqlite":
            raise ValueError(
                f"a feature has no name, and {self.dialect.name} has no such column; name it before training"
            )
        first: dict[str, str] = {}
        for name in names:
            if (other := first.setdefault(self.dialect.same(name), name)) != name:
                why = "only 63 bytes of a name count" if self.dialect.name == "postgres" else "case does not count"
                raise ValueError(f"the features {other!r} and {name!r} are one column to {self.dialect.name}: {why}")

    def _check_columns(self, n: int) -> None:
        if n > self.dialect.most_columns:
            remedy = "leave out contributions, " if self.contributions else ""
            raise ValueError(
                f"{self.dialect.name} has selects of at most {self.dialect.most_columns:,} columns, and this query "
                f"needs more; keep fewer columns, {remedy}or use another dialect or export"
            )

    def _check_kept(self, keep: list[str], returned: list[str]) -> None:
        same = self.dialect.same
        ours, kept = {same(name) for name in returned}, [same(name) for name in keep]
        if taken := [name for name in keep if same(name) in ours]:
            raise ValueError(f"keep has {listed(taken)}, which the query returns already")
        if twice := [name for name in keep if kept.count(same(name)) > 1]:
            raise ValueError(f"keep has {listed(twice)}, which are one column to {self.dialect.name}; name it once")

    # ---- the two queries

    def query(self, table: list[str], keep: list[str]) -> str:
        check_text([*table, *keep], "SQL", remedy="no table or column has such a name")
        same = self.dialect.same
        results = self._results()
        self._check_kept(keep, [name for name, _ in results])
        # No name of ours may be that of the table: SQLite would take the one for the other.
        while any(same(name).startswith(same(self.prefix)) for name in table):
            self.prefix += "_"
        columns = {feature: f"t.{_identifier(self.model.names[feature])}" for feature in self.model.used}
        kept = {f"k{i}": f"t.{_identifier(name)}" for i, name in enumerate(keep)}
        source = f"{'.'.join(map(_identifier, table))} AS t"
        results = [*((name, f"k{i}") for i, name in enumerate(keep)), *results]
        self._check_columns(len(results))
        self._start(source, columns, kept)
        self._add_scores()
        self._add_link()
        columns_of = ",\n  ".join(f"{text} AS {_identifier(name)}" for name, text in results)
        text = self._text(f"SELECT\n  {columns_of}")
        if any(line.startswith(TEST) for line in text.split("\n")):
            raise ValueError(f"a name has a line that begins with {TEST!r}, as the self-test has; rename it")
        return text

    def test(self) -> str:
        """Names of the user are not in it: they could break out of a comment."""
        examples = self.model.examples if self.dialect.name == "sqlite" else self.model.text_examples
        used = self.model.used
        rows = []
        for number, (row, scores, words) in enumerate(
            zip(examples.rows, examples.scores.tolist(), examples.hexadecimal(), strict=True)
        ):
            cells = {"number": str(number)}
            cells |= {f"e{k}": self.dialect.double(score) for k, score in enumerate(scores)}
            cells |= {"hexadecimal": self.literal(" ".join(words))}
            cells |= {f"c{feature}": self._cell(feature, row[feature]) for feature in used}
            rows.append(f"SELECT {_listed(cells)}")
        kept = {
            name: f"t.{name}" for name in ("number", "hexadecimal", *(f"e{k}" for k in range(self.model.n_outputs)))
        }
        columns = {feature: f"t.c{feature}" for feature in used}
        self._start(f"({' UNION ALL '.join(rows)}) AS t", columns, kept)
        self._add_scores()
        outputs = range(self.model.n_outputs)
        wrong = " OR ".join(f"s{k} IS NULL OR s{k} <> e{k}" for k in outputs)
        found = ", ".join(f"e{k} AS expected_{k}, s{k} AS found_{k}" for k in outputs)
        return f"{self._text(f'SELECT number, hexadecimal, {found}')} WHERE {wrong}"

    def _cell(self, feature: int, value: Any) -> str:
        holds = self.model.holds[feature]
        if holds == BOOLEAN:
            return f"CAST({'NULL' if value is None else str(value).upper()} AS BOOLEAN)"
        if holds in (TEXT, MIXED) and not isinstance(value, float):
            return f"CAST({'NULL' if value is None else self.literal(value)} AS {self.dialect.text})"
        return f"CAST(NULL AS {self.dialect.real})" if value is None else self.dialect.double(value)

    # ---- scores

    def _start(self, source: str, columns: Mapping[int, str], kept: Mapping[str, str]) -> None:
        """The features as numbers."""
        numbers = {f"x{feature}": self._number(feature, column) for feature, column in columns.items()}
        start = _listed({**kept, **numbers}) or "1 AS no_column"  # "nothing" is a word of SQLite's
        self.selects, self.n_columns = [f"SELECT {start} FROM {source} {self.dialect.fence}"], len(kept) + len(numbers)

    def _add_scores(self) -> None:
        model, outputs = self.model, range(self.model.n_outputs)
        sums = [self.dialect.double(b) for b in model.intercept.tolist()]
        step = min(MOST, max(FEWEST, -(-len(model.terms) // MOST_SELECTS)))
        for first in range(0, len(model.terms), step):
            terms = {first + i: self._term(term) for i, term in enumerate(model.terms[first : first + step])}
            if self.contributions:
                self._add({f"t{t}_{k}": term[k] for t, term in terms.items() for k in outputs})
                terms = {t: [f"t{t}_{k}" for k in outputs] for t in terms}
            parts = {f"sum{first}_{k}": " + ".join([sums[k], *(term[k] for term in terms.values())]) for k in outputs}
            self._add(parts)
            sums = list(parts)
        self._add({f"s{k}": sums[k] for k in outputs})

    def _add(self, columns: Mapping[str, str]) -> None:
        """A select of all columns of the last one, and more."""
        self.n_columns += len(columns)
        self._check_columns(self.n_columns)
        last = f"{self.prefix}{len(self.selects) - 1}"
        self.selects.append(f"SELECT {last}.*, {_listed(columns)} FROM {last} {self.dialect.fence}")

    def _text(self, select: str) -> str:
        """The whole query, that ends in a select of the last one."""
        named = [f"{self.prefix}{number} AS (\n{text}\n)" for number, text in enumerate(self.selects)]
        return f"WITH {', '.join(named)}\n{select}\nFROM {self.prefix}{len(named) - 1}"

    def _number(self, feature: int, column: str) -> str:
        """A feature as a number; NULL is missing."""
        holds, levels = self.model.holds[feature], self.model.levels.get(feature)
        if holds in (TEXT, MIXED):
            return self._level(feature, column)
        real = self.dialect.real
        number = f"CAST({f'CAST({column} AS INTEGER)' if holds == BOOLEAN else column} AS {real})"
        if self.dialect.not_a_number:
            number = f"NULLIF({number}, {self.dialect.not_a_number})"
        else:  # SQLite would make 0 of any text
            number = f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN {number} END"
        if levels is None:
            return number
        known = " ".join(f"WHEN {self.dialect.double(float(value))} THEN {level}" for value, level in levels.items())
        return f"CASE WHEN {number} IS NULL THEN NULL ELSE CASE {number} {known} ELSE -1 END END"

    def _level(self, feature: int, column: str) -> str:
        """The number of a level of text. Only SQLite can have numbers beside text in a column."""
        of_text = {value: level for value, level in self.model.levels[feature].items() if isinstance(value, str)}
        text = f"CAST({column} AS {self.dialect.text}){self.dialect.binary}"
        known = " ".join(f"WHEN {self.literal(value)} THEN {level}" for value, level in of_text.items())
        unseen = "NULL" if math.isnan(self.model.unseen(feature)) else "-1"
        level = f"CASE {text} {known} ELSE {unseen} END" if known else unseen
        if self.model.holds[feature] == MIXED and self.dialect.name == "sqlite":
            numbers = {v: level for v, level in self.model.levels[feature].items() if not isinstance(v, str)}
            known = " ".join(f"WHEN {self.dialect.double(float(v))} THEN {level}" for v, level in numbers.items())
            number = f"CASE CAST({column} AS REAL) {known} ELSE -1 END"
            level = f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN {number} ELSE {level} END"
        return f"CASE WHEN {column} IS NULL THEN NULL ELSE {level} END"

    def _term(self, term: Term) -> list[str]:
        """What a term adds to each score."""
        outputs = range(self.model.n_outputs)
        if self.dialect.name == "postgres" and isinstance(term, Steps) and len(term.cuts):
            return [self._by_bucket(term, k) for k in outputs]
        tree = term.as_tree()
        flat = self.dialect.name == "sqlite" and tree.depth > DEEPEST
        return [self._by_leaves(tree, k) if flat else self._by_questions(tree, k) for k in outputs]

    def _by_bucket(self, steps: Steps, output: int) -> str:
        """PostgreSQL is faster with arrays than with questions. Its buckets begin at a value, ours after it."""
        values = ",".join(map(repr, steps.values[:, output].tolist()))
        cuts = ",".join(map(repr, np.nextafter(steps.cuts, np.inf).tolist()))
        bucket = f"width_bucket(x{steps.feature}, '{{{cuts}}}'::float8[])"
        missing = self.dialect.double(float(steps.missing[output]))
        return f"COALESCE(('{{{values}}}'::float8[])[1 + {bucket}], {missing})"

    def _by_questions(self, tree: Tree, output: int) -> str:
        text = [""] * len(tree.feature)
        for node in range(len(text) - 1, -1, -1):  # children come after their parents
            if tree.feature[node] < 0:
                text[node] = self.dialect.double(float(tree.values[node, output]))
                continue
            left, right = node + 1, int(tree.right[node])
            text[node] = f"CASE WHEN {self._goes_left(tree, node)} THEN {text[left]} ELSE {text[right]} END"
            text[left] = text[right] = ""
        return text[0]

    def _by_leaves(self, tree: Tree, output: int) -> str:
        """One case for each leaf, with all conditions on the way to it."""
        cases, to_do = [], [(0, ["1 = 1"])]
        while to_do:
            node, path = to_do.pop()
            if tree.feature[node] >= 0:
                left = self._goes_left(tree, node)
                to_do.append((node + 1, [*path, f"({left})"]))
                to_do.append((int(tree.right[node]), [*path, f"({left}) IS NOT TRUE"]))
            else:
                cases.append(f"WHEN {' AND '.join(path)} THEN {self.dialect.double(float(tree.values[node, output]))}")
        return f"CASE {' '.join(cases)} END"

    def _goes_left(self, tree: Tree, node: int) -> str:
        """A condition that is not true of values that go right; of missing ones it is unknown, unless that is asked."""
        column, threshold = f"x{tree.feature[node]}", float(tree.threshold[node])
        if math.isinf(threshold):
            return f"{column} IS NOT NULL"
        question = f"{column} {'<>' if tree.is_level[node] else '<='} {self.dialect.double(threshold)}"
        return question if tree.missing_right[node] else f"{question} OR {column} IS NULL"

    # ---- predictions

    def _add_link(self) -> None:
        """What the link needs besides the scores: label, and p0, ..., in proportion to the probabilities."""
        outputs, d = range(self.model.n_outputs), self.dialect
        if self.model.link == "log":
            self._add({f"p{k}": self._exp(self._rounded(f"s{k}")) for k in outputs})
        if not self.model.classes:
            return
        if len(outputs) == 1:
            self._add_two_classes()
            return
        if self.model.link == "softmax":
            self._add({f"r{k}": self._rounded(f"s{k}") for k in outputs})
            self._add({"largest": self._largest("r")})
            self._add({f"p{k}": self._exp(f"r{k} - largest") for k in outputs})
        else:
            self._add({f"p{k}": f"{d.greatest}({d.double(1.0)} + s{k}, {d.double(0.0)})" for k in outputs})
        self._add({"best": self._largest("s"), "total": _joined([f"p{k}" for k in outputs], " + ")})
        cases = " ".join(f"WHEN s{k} THEN {k}" for k in outputs)
        self._add({"label": f"CASE best {cases} END"})

    def _add_two_classes(self) -> None:
        d = self.dialect
        one = d.double(1.0)
        if self.model.link == "logit":
            self._add({"odds": self._exp(f"-({self._rounded_distance('s0')})")})
            self._add({"less": f"odds / ({one} + odds)"})
            second = f"CASE WHEN s0 > 0 THEN {one} - less ELSE less END"
            first = f"CASE WHEN s0 > 0 THEN less ELSE {one} - less END"
        else:
            second = f"{d.least}({d.greatest}(({one} + s0) / {d.double(2.0)}, {d.double(0.0)}), {one})"
            first = f"{one} - {second}"
        self._add({"p0": first, "p1": second, "label": "CASE WHEN s0 > 0 THEN 1 ELSE 0 END"})

    def _results(self) -> list[tuple[str, str]]:
        """The names of the columns that are returned, and where they are."""
        model, outputs = self.model, range(self.model.n_outputs)
        results = [(name, f"s{k}") for k, name in enumerate(model.score_names)]
        if not model.classes:
            letter = "s" if model.link == "identity" else "p"
            results += [(name, f"{letter}{k}") for k, name in enumerate(model.target_names)]
        else:
            cases = " ".join(f"WHEN {k} THEN {self.literal(label)}" for k, label in enumerate(model.classes))
            results.append(("prediction", f"CASE label {cases} END"))
            share = "p{0}"
            if model.n_outputs > 1:
                zero, one = self.dialect.double(0.0), self.dialect.double(1.0)
                share = f"CASE WHEN total > 0 THEN p{{0}} / total WHEN label = {{0}} THEN {one} ELSE {zero} END"
            results += [(f"probability_{label}", share.format(k)) for k, label in enumerate(model.classes)]
        if self.contributions:
            intercept = map(self.dialect.double, model.intercept.tolist())
            results += zip(model.intercept_names, intercept, strict=True)
            suffixes = [name.removeprefix("score") for name in model.score_names]
            for t, term in enumerate(model.terms):
                results += [(f"contribution_{term.name}{suffixes[k]}", f"t{t}_{k}") for k in outputs]
        names = self.dialect.distinct([name for name, _ in results])
        return list(zip(names, (column for _, column in results), strict=True))

    def _rounded_distance(self, score: str) -> str:
        """The distance from 0 as a multiple of 2^-44, which the last bit of 256 is: as model/links.py rounds."""
        d = self.dialect.double(256.0)
        return f"CASE WHEN abs({score}) < {d} THEN (abs({score}) + {d}) - {d} ELSE abs({score}) END"

    def _rounded(self, score: str) -> str:
        distance = self._rounded_distance(score)
        return f"CASE WHEN {score} < 0 THEN -({distance}) ELSE {distance} END"

    def _exp(self, score: str) -> str:
        d = self.dialect
        return f"exp({d.least}({d.greatest}({score}, {d.double(-708.0)}), {d.double(708.0)}))"

    def _largest(self, name: str) -> str:
        terms = [f"{name}{k}" for k in range(self.model.n_outputs)]
        while len(terms) > 1:  # a function of SQLite takes a limited number of arguments
            groups = [terms[i : i + 50] for i in range(0, len(terms), 50)]
            terms = [f"{self.dialect.greatest}({', '.join(group)})" if len(group) > 1 else group[0] for group in groups]
        return terms[0]

    def literal(self, value: Any) -> str:
        """Text, a number, true or false. Backslashes and control characters may mean something, and are spelt out."""
        if isinstance(value, bool):
            return str(value).upper()
        if not isinstance(value, str):
            return self.dialect.double(value) if isinstance(value, float) else str(value)
        parts, plain = [], ""
        for character in value:
            if (character.isprintable() and character != "\\") or character == " ":
                plain += "''" if character == "'" else character
                continue
            parts += [f"'{plain}'", f"{self.dialect.character}({ord(character)})"]
            plain = ""
        parts.append(f"'{plain}'")
        return _joined(parts, " || ")


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(name if name == text else f"{text} AS {name}" for name, text in columns.items())


def _joined(terms: Iterable[str], operator: str) -> str:
    """In pairs of pairs: a long chain would be too deep, and a sum less exact."""
    terms = list(terms)
    while len(terms) > 1:
        terms = [f"({operator.join(terms[i : i + 2])})" for i in range(0, len(terms), 2)]
    return terms[0]
