"""A table is read once, however much is done with it; and what is too large is refused at once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from mixed_table import mixed_table, targets

import quadboost.data.tables
from quadboost import (
    QuadBoostClassifier,
    QuadBoostClassifierCV,
    QuadBoostRegressor,
    QuadBoostRegressorCV,
    regularization_path,
)

M = 200
TABLE = mixed_table(M)
FRAME = pd.DataFrame({"x": TABLE[:, 0], "city": np.where(TABLE[:, 1] > 1, "p", "q"), "n": np.arange(M) % 7})
Y = targets(TABLE)
READERS = ("_pandas_column", "_polars_column", "_arrow_column")
SEARCH = {"reg_lambda": [0.1, 0.01], "rounds": [3, 9], "cv": 3}

FITS = {
    "classifier": lambda X: QuadBoostClassifier(max_rounds=20).fit(X, Y),
    "weighted": lambda X: QuadBoostRegressor(max_rounds=20).fit(X, Y, np.arange(M) % 3),
    "validation": lambda X: QuadBoostRegressor(max_rounds=20, validation_fraction=0.2, random_state=0).fit(X, Y),
    "theory": lambda X: QuadBoostClassifier(max_rounds=20, reg_lambda="theory").fit(X, Y),
    "rules": lambda X: QuadBoostRegressor(n_trees=3).fit(X, Y),
    "logistic": lambda X: QuadBoostClassifier(loss="logistic", reg_lambda=0.1).fit(X, Y),
    "search": lambda X: QuadBoostClassifierCV(**SEARCH).fit(X, Y),
    "search by error": lambda X: QuadBoostClassifierCV(**SEARCH, scoring="error").fit(X, Y),
    "search, own thresholds": lambda X: QuadBoostRegressorCV(**SEARCH, thresholds_per_fold=True).fit(X, Y),
    "path": lambda X: regularization_path(X, Y, strengths=[0.1, 0.01]),
}
each_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())


@pytest.fixture
def reads(monkeypatch):
    """How often each column was read."""
    counts = Counter()

    def spy_on(name):
        read = getattr(quadboost.data.tables, name)

        def spy(column, label):
            counts[label] += 1
            return read(column, label)

        monkeypatch.setattr(quadboost.data.tables, name, spy)

    for name in READERS:
        spy_on(name)
    return counts


@pytest.mark.thinned(9)
@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas], ids=["pd", "pl", "pa"])
@each_fit
@pytest.mark.filterwarnings("ignore:reg_lambda='theory'")
def test_a_fit_reads_every_column_once(fit, make, reads):
    fit(make(FRAME))
    assert sorted(reads.values()) == [1, 1, 1]


@each_fit
@pytest.mark.filterwarnings("ignore:reg_lambda='theory'")
def test_a_fit_reads_a_frame_of_numbers_once(fit):
    n_reads = 0

    class Frame(pd.DataFrame):
        def to_numpy(self, *arguments, **options):
            nonlocal n_reads
            n_reads += 1
            return super().to_numpy(*arguments, **options)

    fit(Frame(TABLE[:, :3], columns=["a", "b", "c"]))
    assert n_reads == 1


@pytest.mark.parametrize("estimator", [QuadBoostClassifier, QuadBoostRegressor, QuadBoostRegressorCV])
def test_more_rows_than_can_be_numbered_are_refused_at_once(estimator):
    table = np.broadcast_to(np.float32(1.0), (2**31, 2))  # takes no memory
    with pytest.raises(ValueError, match="X has 2147483648 rows; at most 2147483647 can be learnt from at once"):
        estimator().fit(table, Y)


def test_more_validation_rows_than_can_be_numbered_are_refused_at_once():
    table = np.broadcast_to(np.float32(1.0), (2**31, 3))
    with pytest.raises(ValueError, match="X_val has 2147483648 rows; at most 2147483647"):
        QuadBoostRegressor().fit(TABLE[:, :3], Y, X_val=table, y_val=Y)
