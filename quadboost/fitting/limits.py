"""What constraints on features, and the length of rules, ask of the weights of voters."""

from __future__ import annotations

import math

import numpy as np

from ..boosting.limits import Limits
from ..moments.moments import Moments
from ..voters.columns import Voters
from ..voters.rules import sides

LEAST_VARIANCE = 1e-12  # of what a voter says: less is rounding


def limits_of(
    voters: Voters, moments: Moments, signs: np.ndarray | None = None, *, penalty: str | None = None
) -> Limits | None:
    """Limits on the weights of voters for one score; None where nothing is asked of them.

    Parameters
    ----------
    voters : Voters
    moments : Moments
        Of these voters.
    signs : array of shape (d,), optional
        The score may only rise with a feature (+1), only fall (-1), or both (0).
    penalty : str, optional
        The name of one that tells rules from stumps: see `penalty_factor`.
    """
    lower, upper, factor = None, None, penalty_factor(voters, moments, penalty)
    if signs is not None and signs.any():
        must_rise, must_fall = _directions(voters, signs)
        lower, upper = np.where(must_rise, 0.0, -np.inf), np.where(must_fall, 0.0, np.inf)
    return None if lower is factor is None else Limits(factor, lower, upper)


def penalty_factor(voters: Voters, moments: Moments, penalty: str | None) -> np.ndarray | None:
    """By how much the penalty of each voter differs; None without trees.

    The weight of a rule of n conditions counts sqrt(n) times, and under l2 every weight as if what its voter says had
    the variance 1: else rules of few rows, which may say much, would be held back. No stump has less of a variance, in
    this, than any rule: of rows that weigh nearly nothing, little is known. Every feature has the same share in what is
    expected of stumps, whether it has two values or a thousand: a weight alone would be held back where hundreds of a
    feature share a change of the score. All stumps together have the same share as all rules, divided by the number of
    outputs, which share the trees: measured.
    """
    if not voters.trees or penalty not in ("l1", "l2"):
        return None
    square, n_conditions = np.ones(voters.n_voters), voters.trees.n_conditions[~voters.trees.is_root]
    square[voters.first_rule :] = n_conditions
    if penalty == "l2":
        n_stumps = np.diff(voters.voter_start[: voters.n_features + 1])
        share = math.fsum(1.0 / n_conditions) / (np.count_nonzero(n_stumps) * moments.n_outputs)  # of each feature
        square[: voters.first_rule] = (n_stumps / share).repeat(n_stumps)
        variance = moments.centred(fit_intercept=True)[1]
        square *= np.maximum(variance, max(variance[voters.first_rule :].min(initial=1.0), LEAST_VARIANCE))
    return np.sqrt(square)


def _directions(voters: Voters, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which weights must not be negative, and which not positive.

    A score of stumps is monotone in a feature exactly if the weights of its thresholds have one sign; "is missing" is
    free. A rule rises with a feature if it asks for values above a threshold, and falls if for those below: its weight
    has the sign that suits all its features, and is zero where there is none.
    """
    must_rise, must_fall = np.zeros((2, voters.n_voters), dtype=bool)
    for feature in np.flatnonzero(signs).tolist():
        first = voters.voter_start[feature]
        above = slice(first, first + voters.n_cuts[feature])
        (must_rise if signs[feature] > 0 else must_fall)[above] = True
    if voters.trees:
        features = np.flatnonzero(signs)
        is_rule, sign = ~voters.trees.is_root, signs[features]
        lies_below, lies_above = sides(voters.trees, features)
        with_it, against = np.where(sign > 0, lies_above, lies_below), np.where(sign > 0, lies_below, lies_above)
        must_rise[voters.first_rule :] = with_it[is_rule].any(axis=1)
        must_fall[voters.first_rule :] = against[is_rule].any(axis=1)
    return must_rise, must_fall
