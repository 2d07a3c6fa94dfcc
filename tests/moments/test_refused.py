"""What `column_moments` and `Scales` refuse: kernels would go out of bounds, or sums be wrong without a word."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.data.exact import Scales
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

X = np.random.default_rng(0).normal(size=(200, 3))
Y = np.random.default_rng(1).normal(size=200)
VOTERS = candidate_voters(X, thresholds=5)
CODES = VOTERS.code(X)


@pytest.mark.parametrize(
    ("codes", "y", "weight", "message"),
    [
        (CODES[:, :2], Y, None, r"codes are uint8 of shape \(200, 2\); make them by voters.code"),
        (np.hstack([CODES, CODES]), Y, None, "shape"),
        (CODES.astype(float), Y, None, "codes are float64"),
        (np.full_like(CODES, 7), Y, None, "beyond the last bin"),
        (CODES, Y[:100], None, "there are 200 rows of codes and 100 targets"),
        (CODES, Y, np.ones(1), "for each"),
        (CODES, np.where(Y > 0, np.nan, Y), None, "not finite"),
        (CODES, np.where(Y > 0, 1e200, Y), None, "above 1e"),
        (CODES, Y, np.where(Y > 0, 0.0, 2.0), "positive and finite"),
        (CODES, Y, np.where(Y > 0, -1.0, 2.0), "positive and finite"),
    ],
)
def test_rows_that_mean_nothing_are_refused(codes, y, weight, message):
    with pytest.raises(ValueError, match=message):
        column_moments(VOTERS, codes, y, weight)


@pytest.mark.parametrize("other", [3 * Y, Y + 100, np.column_stack([Y, Y])], ids=["larger", "far", "two targets"])
def test_rows_that_did_not_agree_on_the_scales_are_refused(other):
    scales = Scales.agree([(Y[:, None], None)])
    with pytest.raises(ValueError, match="not among those that agreed on the scales"):
        column_moments(VOTERS, CODES, other, scales=scales)
    with pytest.raises(ValueError, match="not among those that agreed on the scales"):
        column_moments(VOTERS, np.vstack([CODES, CODES]), np.append(Y, Y), scales=scales)


def test_scales_are_agreed_on_by_at_least_one_part_and_targets_may_have_one_dimension():
    with pytest.raises(ValueError, match="no parts"):
        Scales.agree([])
    assert Scales.agree([(Y, None)]) == Scales.agree([(Y[:, None], None)]) == Scales.agree([(Y, None), (Y[:0], None)])
