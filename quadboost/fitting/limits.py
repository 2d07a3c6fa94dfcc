"""What constraints on features ask of the weights of voters."""

from __future__ import annotations

import numpy as np

from ..boosting.limits import Limits
from ..voters.columns import Voters
from ..voters.rules import sides


def monotone_limits(voters: Voters, signs: np.ndarray) -> Limits | None:
    """Bounds on weights that make a score move with each feature in the direction of its sign: +1, -1, or 0 for any.

    A score of stumps is monotone in a feature exactly if the weights of its thresholds have one sign; "is missing" is
    free. A rule rises with a feature if it asks for values above a threshold, and falls if for those below: its weight
    has the sign that suits all its features, and is zero where there is none.
    """
    if not signs.any():
        return None
    must_rise, must_fall = np.zeros((2, voters.n_voters), dtype=bool)
    for feature in np.flatnonzero(signs).tolist():
        first = voters.voter_start[feature]
        above = slice(first, first + voters.n_cuts[feature])
        (must_rise if signs[feature] > 0 else must_fall)[above] = True
    if voters.trees:
        features = np.flatnonzero(signs)
        is_rule, sign = np.flatnonzero(~voters.trees.is_root), signs[features]
        lies_below, lies_above = sides(voters.trees, features)
        with_it = np.any(np.where(sign > 0, lies_above, lies_below), axis=1)
        against = np.any(np.where(sign > 0, lies_below, lies_above), axis=1)
        must_rise[voters.first_rule :], must_fall[voters.first_rule :] = with_it[is_rule], against[is_rule]
    return Limits(lower=np.where(must_rise, 0.0, -np.inf), upper=np.where(must_fall, 0.0, np.inf))
