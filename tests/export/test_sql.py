"""SQL: the same bits in DuckDB, SQLite and PostgreSQL."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from databases import Duckdb, Postgres, Sqlite
from export_models import (
    FAR,
    KINDS,
    NASTY,
    by_hand,
    check,
    far_out,
    fitted,
    hard_rows,
    many_classes,
    mixed,
    ordered,
    same_bits,
    without_voters,
)
from monotone_models import check_monotone, random_model

from quadboost import Ensemble, QuadBoostRegressor
from quadboost.export.sql import DIALECTS, self_test, to_sql


@pytest.fixture(scope="module")
def postgres():
    server = Postgres()
    yield server
    server.close()


SLOW = [pytest.param("duckdb", marks=pytest.mark.oracle("duckdb")), pytest.param("postgres", marks=pytest.mark.slow)]


@pytest.fixture(params=["sqlite", *SLOW])
def database(request):
    if request.param == "postgres":
        yield request.getfixturevalue("postgres")
        return
    opened = Duckdb() if request.param == "duckdb" else Sqlite()
    yield opened
    opened.close()


def ask(database, model, frame, **options):
    """Put a table, score it, and run the self-test; the rows in their order."""
    database.put(frame.assign(row=range(len(frame))), "t")
    sql = to_sql(model, "t", database.dialect, keep=["row"], **options)
    assert len(database.ask(self_test(sql))) == 0
    return database.ask(sql).sort_values("row")


def columns(found, name):
    return found[[column for column in found if column.startswith(name)]].to_numpy()


def check_found(model, frame, found):
    predictions = columns(found, "prediction") if model.classes is None else found["prediction"].tolist()
    check(model, frame, columns(found, "score"), predictions, columns(found, "probability"))


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits(kind, database):
    model, frame = fitted(kind), hard_rows()
    check_found(model, frame, ask(database, model, frame))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", FAR)
def test_predictions_of_scores_far_out(kind, database):
    model, frame = far_out(kind)
    check_found(model, frame, ask(database, model, frame))


def test_thresholds_that_are_neighbours(database):
    model, frame = by_hand()
    check_found(model, frame, ask(database, model, frame))


@pytest.mark.parametrize("made", [without_voters, ordered])
def test_odd_models(made, database):
    model, frame = made()
    check_found(model, frame, ask(database, model, frame))


def test_a_model_of_no_feature_and_no_column_kept(database):
    model, frame = without_voters()
    database.put(frame, "t")
    check_found(model, frame, database.ask(to_sql(model, "t", database.dialect)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_feature_without_a_name_is_for_sqlite_alone(dialect):
    model = by_hand()[0].replace(feature_names=["a", "", "b"])
    if dialect == "sqlite":
        assert 't.""' in to_sql(model, "t", dialect)
        return
    with pytest.raises(ValueError, match=f"a feature has no name, and {dialect} has no such column"):
        to_sql(model, "t", dialect)


@pytest.mark.parametrize("kind", ["logit-2", "targets", "trees-3"])
def test_contributions_add_up(kind, database):
    model, frame = fitted(kind), hard_rows()
    found = ask(database, model, frame, contributions=True)
    names = [name for name in found if name.startswith("score")]
    for name, intercept in zip(names, np.atleast_1d(model.intercept), strict=True):
        suffix = name.removeprefix("score")
        total = found[f"intercept{suffix}"].to_numpy()
        assert (total == intercept).all()
        terms = [n for n in found if n.startswith("contribution_") and n.endswith(suffix)]
        assert len(terms) >= 6
        for term in terms:
            total = total + found[term].to_numpy()
        same_bits(total, found[name])


@pytest.mark.slow
def test_more_terms_than_an_expression_can_have(database):
    n = 900 if database.dialect == "postgres" else 1200  # its rows cannot hold more
    rng = np.random.default_rng(0)
    model = Ensemble(range(n), rng.normal(size=n), rng.normal(size=n), 0.1, n_features=n)
    frame = pd.DataFrame(rng.normal(size=(5, n)), columns=[f"x{j}" for j in range(n)])
    check_found(model, frame, ask(database, model, frame))


@pytest.mark.parametrize("dialect", SLOW)
def test_not_a_number_is_missing(dialect, request):
    database = Duckdb() if dialect == "duckdb" else request.getfixturevalue("postgres")
    model, _ = by_hand()
    database.put(pd.DataFrame({"x2": [1]}), "t")
    odd = "(SELECT CAST('NaN' AS float8) AS x0, CAST(NULL AS float8) AS x1, x2 FROM t)"
    found = database.ask(to_sql(model, "t", dialect).replace('"t"', odd))
    same_bits(found["score"], model.decision_function(np.array([[np.nan, np.nan, 1.0]])))


def test_sqlite_tells_text_from_numbers():
    database, (model, frame) = Sqlite(), mixed()
    found = ask(database, model, frame)
    check_found(model, frame, found)


@pytest.mark.parametrize("dialect", SLOW)
def test_elsewhere_a_column_of_text_and_numbers_is_text(dialect, request):
    database = Duckdb() if dialect == "duckdb" else request.getfixturevalue("postgres")
    model, frame = mixed()
    frame = frame[[value is None or isinstance(value, str) for value in frame["m"]]].reset_index(drop=True)
    check_found(model, frame, ask(database, model, frame))


BLIND = """CREATE COLLATION IF NOT EXISTS blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false);"""


def test_text_is_compared_by_its_bytes_whatever_the_column_and_the_database_say(database):
    categories = {0: [["x"], ["é"], ["ß"]]}
    model = Ensemble([0] * 3, range(3), [0.1, 0.2, 0.7], 0.3, kind=[1] * 3, n_features=1, categories=categories)
    frame = pd.DataFrame({"x0": ["x", "X", "é", "e", "É", "ß", "ss", "e\u0301", "x ", None], "row": range(10)})
    if database.dialect == "duckdb":
        database.connection.execute("SET default_collation = 'nocase.noaccent'")
    if database.dialect == "postgres":
        database.psql(BLIND)
    blind = {"sqlite": "TEXT COLLATE NOCASE", "duckdb": "VARCHAR COLLATE NOACCENT", "postgres": "text COLLATE blind"}
    database.put(frame, "t", types={"x0": blind[database.dialect]})
    sql = to_sql(model, "t", database.dialect, keep=["row"])
    assert len(database.ask(self_test(sql))) == 0
    same_bits(database.ask(sql).sort_values("row")["score"], model.decision_function(frame[["x0"]]))


def test_sqlite_does_not_make_numbers_of_text():
    database, (model, _) = Sqlite(), by_hand()
    database.put(pd.DataFrame({"x0": ["12x"], "x1": [""], "x2": [1.0]}), "t")
    found = database.ask(to_sql(model, "t", "sqlite"))
    same_bits(found["score"], model.decision_function(np.array([[np.nan, np.nan, 1.0]])))


def test_a_column_that_is_not_there_is_an_error(database):
    model, frame = by_hand()
    database.put(frame[["x0", "x1"]], "t")
    with pytest.raises(Exception, match="x2"):
        database.ask(to_sql(model, "t", database.dialect))


def test_names_and_text_do_no_harm(database):
    model, frame = fitted("logit-2"), hard_rows()
    database.put(frame, "t")
    frame = frame.rename(columns={NASTY: NASTY, "plain": "x'; drop table t; --"})
    model = model.replace(feature_names=frame.columns)
    database.put(frame.assign(row=range(len(frame))), NASTY)
    found = database.ask(to_sql(model, NASTY, database.dialect, keep=["row", NASTY]))
    same_bits(found.sort_values("row")["score"], model.decision_function(frame))
    assert NASTY in found
    assert len(database.ask("SELECT * FROM t")) == len(frame)


def test_a_name_cannot_be_taken_for_the_self_test():
    model = by_hand()[0].replace(feature_names=["a\n--test: ; drop table t; --", "b", "c"])
    with pytest.raises(ValueError, match="a name has a line that begins with '--test: '"):
        to_sql(model, "t")


def test_a_feature_that_is_only_asked_whether_it_is_missing(database):
    model = Ensemble([0], [0.0], [0.5], 0.1, kind=[2], n_features=1, feature_names=["x"])
    frame = pd.DataFrame({"x": [1e300, np.nan, -np.inf]})
    check_found(model, frame, ask(database, model, frame))


def test_a_schema_may_stand_before_the_table(database):
    model, frame = by_hand()
    database.put(frame, "t")
    schema = {"duckdb": "main", "sqlite": "main", "postgres": "public"}[database.dialect]
    assert len(database.ask(to_sql(model, (schema, "t"), database.dialect))) == len(frame)


def test_self_test_tells_a_changed_value(database):
    text = self_test(to_sql(by_hand()[0], "t", database.dialect))
    literal = DIALECTS[database.dialect].double
    assert text.count(literal(-0.3)) > 0
    found = database.ask(text.replace(literal(-0.3), literal(-0.4)))
    assert len(found) > 0
    assert {"hexadecimal", "expected_0", "found_0"} <= {*found}


def test_the_self_test_is_in_comments_that_no_text_can_end():
    text = to_sql(fitted("logit-2"), "t", "postgres")
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("--test: "))
    assert all(line.startswith("--test: ") for line in lines[first:-1])
    assert not {"\r", "\x0b", "\x0c", "\x85", "\u2028"} & {*text}


@pytest.mark.parametrize(
    "value", [0.1, 1 / 3, -2.5, 5e-324, 1.7976931348623157e308, 2.0**60, 123456789.123456789, -1e-300, 0.0, 2.0**-1060]
)
def test_sqlite_reads_doubles_exactly(value):
    with closing(sqlite3.connect(":memory:")) as connection:
        found = connection.execute(f"SELECT {DIALECTS['sqlite'].double(value)}").fetchone()[0]
    assert found.hex() == value.hex()


@pytest.mark.parametrize("name", ["quadboost_0", "QUADBOOST_1", "quadboost__0", "t", "T"])
def test_a_table_may_have_any_name(name, database):
    model, frame = by_hand()
    database.put(frame.assign(row=range(len(frame))), name)
    found = database.ask(to_sql(model, name, database.dialect, keep=["row"])).sort_values("row")
    same_bits(found["score"], model.decision_function(frame))


def test_names_that_the_database_takes_for_one_become_two(database):
    """Of classes and contributions, in a table made of the query."""
    long, labels = 60 * "é", ["a", "A", "a_2"]
    names = [f"{long}1", "tree 0", "x"] if database.dialect != "postgres" else ["y", "tree 0", "x"]
    model = Ensemble(range(3), np.zeros(3), np.ones((3, 3)), np.zeros(3), n_features=3, classes=labels)
    model = model.replace(feature_names=names, classes=[f"{long}{label}" for label in labels])
    database.put(pd.DataFrame([[1.0, 2.0, 3.0]], columns=names), "t")
    sql = to_sql(model, "t", database.dialect, contributions=True)
    found = database.ask(f"SELECT * FROM ({sql}) AS made")
    assert len({DIALECTS[database.dialect].same(name) for name in found}) == 3 + 1 + 3 + 3 + 9 == found.shape[1]


def test_features_that_a_database_takes_for_one_are_refused():
    model = by_hand()[0]
    for dialect, names, why in (
        ("sqlite", ["a", "A", "b"], "case does not count"),
        ("duckdb", ["a", "b", "B"], "case does not count"),
        ("postgres", [63 * "a", 64 * "a", "b"], "only 63 bytes of a name count"),
    ):
        with pytest.raises(ValueError, match=f"are one column to {dialect}: {why}"):
            to_sql(model.replace(feature_names=names), "t", dialect)
    assert to_sql(model.replace(feature_names=["a", "A", "b"]), "t", "postgres")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_as_many_columns_as_the_database_can_have(dialect, request):
    """One more is refused by us, and would be by the database."""
    most = DIALECTS[dialect].most_columns
    database = Sqlite() if dialect == "sqlite" else request.getfixturevalue("postgres")
    assert len(database.ask(f"SELECT {', '.join(['1'] * most)}")) == 1
    with pytest.raises(Exception, match=r"too many columns|at most 1664"):
        database.ask(f"SELECT {', '.join(['1'] * (most + 1))}")
    n = most // 2
    model = Ensemble(range(n), np.zeros(n), np.ones(n), 0.0, n_features=n)
    assert to_sql(model, "t", dialect)
    with pytest.raises(ValueError, match=f"{dialect} has selects of at most {most:,} columns.*leave out contributions"):
        to_sql(model, "t", dialect, contributions=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dialect": "mysql"}, "dialect='mysql' is not known; use 'duckdb', 'postgres' or 'sqlite'"),
        ({"dialect": ["sqlite"]}, "is not known"),
        ({"keep": ["score"]}, "keep has 'score', which the query returns already"),
        ({"keep": ["SCORE"]}, "keep has 'SCORE', which the query returns already"),
        ({"keep": ["id", "ID"]}, "keep has 'id', 'ID', which are one column to duckdb; name it once"),
        ({"keep": ["id", "id"]}, "keep has 'id', 'id', which are one column to duckdb; name it once"),
        ({"keep": "id"}, r"keep='id' must be a list of names, if only of one: \['id'\]"),
        ({"keep": None}, "keep=None must be a list of names"),
        ({"keep": [b"id"]}, "a name in keep=b'id' must be text that is not empty"),
        ({"table": "a\0b"}, "has a character that SQL cannot hold; no table or column has such a name"),
        ({"table": ""}, "table='' must be text that is not empty"),
        ({"table": ()}, r"table=\(\) has no name"),
        ({"table": ("main", "")}, "a name in table='' must be text that is not empty"),
        ({"table": None}, r"table=None must be the name of a table, or a sequence such as \(schema, table\)"),
        ({"table": b"t"}, "table=b't' must be the name of a table"),
        ({"contributions": "no"}, "contributions='no' is not known; use False or True"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        to_sql(fitted("logit-2"), **{"table": "t", **given})


@pytest.mark.parametrize("wrong", ["abc", "", None, b"--test: SELECT 1"])
def test_what_has_no_self_test_is_told(wrong):
    with pytest.raises(ValueError, match=r"has no self-test; give all of what to_sql returned|sql=.* must be text"):
        self_test(wrong)


def test_long_levels_of_characters_that_are_spelt_out(database):
    frame = pd.DataFrame({"k": ["\n" * 700, "b"] * 50})
    model = QuadBoostRegressor().fit(frame, [0.0, 1.0] * 50).ensemble_
    check_found(model, frame, ask(database, model, frame))


def test_probabilities_of_many_classes(database):
    model, frame = many_classes(26)
    check_found(model, frame, ask(database, model, frame))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_monotone_scores_stay_so(seed):
    model, signs, frame = random_model(seed)

    def score(rows):
        with closing(Sqlite()) as database:
            return columns(ask(database, model, rows), "score")

    check_monotone(model, signs, frame, score)
