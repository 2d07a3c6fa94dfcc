"""Gram columns from joint sums of bins: those that rows in memory have, bit for bit."""

from __future__ import annotations

import pickle
from functools import reduce

import numpy as np
import pytest
from mixed_table import mixed_table

from quadboost.data.exact import Scales
from quadboost.moments.gram import Gram
from quadboost.moments.moments import column_moments
from quadboost.moments.tables import JointSums, TableGram, add_joint
from quadboost.parts.source import Coded
from quadboost.voters.thresholds import candidate_voters

M = 500
RNG = np.random.default_rng(0)
X = mixed_table(M)
Y = np.sign(RNG.normal(size=(M, 1)))
VOTERS = candidate_voters(X, thresholds=20, n_levels={4: 4})
CODES = VOTERS.code(X)
WEIGHTS = {"none": None, "whole": RNG.integers(1, 4, M).astype(float), "real": RNG.random(M)}


class Asked:
    """Joint sums of three parts, and which columns were asked for."""

    def __init__(self, weight):
        self.scales, self.questions = Scales.agree([(Y, weight)]), []
        rows = np.array_split(RNG.permutation(M), 3)
        self.parts = [Coded(CODES[some], Y[some], None if weight is None else weight[some]) for some in rows]

    def __call__(self, asked, known):
        self.questions.append(list(asked))
        question = JointSums(VOTERS, self.scales.extent, tuple(asked), tuple(known))
        return reduce(add_joint, map(question, self.parts))


def gram_of(asked, moments, table_bytes=1 << 24):
    likely = list(range(VOTERS.n_columns))
    return Gram(TableGram(VOTERS, asked, moments.voter_sum, asked.scales.extent, table_bytes, 1, likely), 1 << 24)


@pytest.mark.parametrize("table_bytes", [1 << 24, 1], ids=["all tables", "one table"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_columns_are_those_of_rows_in_memory(weight, table_bytes):
    moments = column_moments(VOTERS, CODES, Y, weight)
    gram = gram_of(Asked(weight), moments, table_bytes)
    for voter in RNG.permutation(VOTERS.n_voters).tolist():
        found, known = gram.column(voter), moments.gram.column(voter)
        assert found.dtype == known.dtype
        assert np.array_equal(found, known)


def test_questions_ask_for_twice_as_many_columns_each_time_and_for_none_twice():
    asked = Asked(None)
    gram = gram_of(asked, column_moments(VOTERS, CODES, Y))
    for voter in range(VOTERS.n_voters):
        gram.column(voter)
    assert [len(question) for question in asked.questions] == [1, 2, 4, 1]
    assert sorted(f for question in asked.questions for f in question) == list(range(VOTERS.n_columns))


def test_what_is_known_takes_nothing_of_the_size_of_the_next_answer(monkeypatch):
    largest = int(np.diff(VOTERS.bin_start).max() * VOTERS.bin_start[-1]) * 4
    monkeypatch.setattr("quadboost.moments.tables.MOST_BYTES", largest)
    asked = Asked(None)
    gram = gram_of(asked, column_moments(VOTERS, CODES, Y))
    for voter in range(VOTERS.n_voters):
        gram.column(voter)
    assert min(len(question) for question in asked.questions[1:-1]) >= 2


def test_counts_travel_in_as_few_bytes_as_they_need():
    rows = np.zeros((300, 2), np.uint8)
    question = JointSums(
        candidate_voters(np.zeros((1, 2))), Scales.agree([(np.ones((300, 1)), None)]).extent, (0, 1), ()
    )
    for times, width in [(0, 1), (1, 2), (300, 4)]:
        tables = question(Coded(np.repeat(rows, times, axis=0), np.empty((0, 1))))
        sent: list = []
        head = pickle.dumps(tables, protocol=5, buffer_callback=sent.append)
        assert sum(part.raw().nbytes for part in sent) == width * sum(table.size for table in tables)
        assert [table.dtype for table in pickle.loads(head, buffers=sent)] == [np.int32] * 2
        for found, known in zip(pickle.loads(head, buffers=sent), tables, strict=True):
            np.testing.assert_array_equal(found, known)
