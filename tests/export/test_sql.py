"""SQL: the same bits in DuckDB, SQLite and PostgreSQL."""

import numpy as np
import pandas as pd
import pytest
from databases import Duckdb, Postgres, Sqlite
from export_models import FEW, KINDS, NASTY, fitted, hard_rows, same_bits, shared_thresholds

from quadboost.export.sql import self_test, to_sql


@pytest.fixture(scope="module")
def postgres():
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["duckdb", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def database(request):
    if request.param == "postgres":
        yield request.getfixturevalue("postgres")
        return
    opened = Duckdb() if request.param == "duckdb" else Sqlite()
    yield opened
    opened.close()


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits(kind, database):
    model, frame = fitted(kind), hard_rows().assign(id=range(300))
    database.put(frame, "t")
    sql = to_sql(model, "t", database.dialect, keep=["id"])
    found = database.ask(sql).sort_values("id")
    rows = frame.drop(columns="id")
    scores = [name for name in found if name.startswith("score")]
    same_bits(found[scores].to_numpy(), model.decision_function(rows))
    if model.classes is None:
        expected = model.predict(rows).reshape(len(rows), -1)
        np.testing.assert_allclose(found[[n for n in found if n.startswith("prediction")]].to_numpy(), expected, rtol=1e-15)
    else:
        assert found["prediction"].tolist() == model.predict(rows).tolist()
        p = found[[name for name in found if name.startswith("probability")]].to_numpy()
        np.testing.assert_allclose(p, model.predict_proba(rows), rtol=0, atol=1e-15)
    assert len(database.ask(self_test(sql))) == 0
