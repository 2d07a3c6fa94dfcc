"""Products of voters and rows in parts have the bits of those in memory."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.data.exact import Scales
from quadboost.fitting.ridge import CodedProducts
from quadboost.moments.sums import ColumnSums
from quadboost.parts.each_row import EachRow
from quadboost.parts.products import PartedProducts
from quadboost.parts.source import Coded, InMemory
from quadboost.voters.thresholds import candidate_voters

M = 4_500
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, 4))
X[::3] = X[0]  # equal rows
Y = X[:, :2] ** 2 + RNG.normal(size=(M, 2))
VOTERS = candidate_voters(X, thresholds=50)
CODES = VOTERS.code(X)
WEIGHTS = {"none": None, "whole": RNG.integers(1, 5, M).astype(float), "real": RNG.exponential(size=M)}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_products_of_parts_are_those_of_all_rows(weight, fit_intercept):
    sums = ColumnSums.of(VOTERS, CODES, Y, weight, Scales.agree([(Y, weight)]))
    cuts = [slice(0, 10), slice(10, 10), slice(10, 3_000), slice(3_000, M)]
    parts = [Coded(CODES[i], Y[i], None if weight is None else weight[i]) for i in cuts]
    known = CodedProducts(CODES, weight, sums, fit_intercept, 1)
    found = PartedProducts(InMemory(parts), sums, fit_intercept, 1)
    some = RNG.normal(size=(2, VOTERS.n_voters))
    np.testing.assert_array_equal(found.gram_times(some), known.gram_times(some))
    for one, other in zip(
        found.edges(EachRow(lambda part: part.y) - found.scores(some)), known.edges(Y - known.scores(some)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert known.sketch is not None
    np.testing.assert_array_equal(found.sketch.image, known.sketch.image)
