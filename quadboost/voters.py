"""The kinds of voters: what a stump asks of one feature.

A threshold voter says +1 where the value is above its threshold, else -1; a level voter says +1 where the
value is of its level, else -1; both abstain (0) where it is missing. A missing voter says +1 where the value
is missing, else -1.
"""

from __future__ import annotations

import numpy as np

THRESHOLD, LEVEL, MISSING = 0, 1, 2


def step_values(weight: np.ndarray, is_level: bool, missing_weight: np.ndarray | float = 0.0) -> np.ndarray:
    """What the voters of one feature add up to in each of its bins, the last being for missing values.

    Parameters
    ----------
    weight : array of shape (k, n_outputs)
        Of the voters at the feature's k cuts, in order: of its thresholds, or of its levels (bin l + 1 is level
        l, bin 0 a level never seen).
    is_level : bool
    missing_weight : array of shape (n_outputs,)
        Of the voter that asks whether the value is missing.
    """
    values = np.zeros((len(weight) + 2, weight.shape[1]))
    if is_level:
        values[1:-1] = 2.0 * weight
    else:
        values[1:-1] = 2.0 * np.cumsum(weight, axis=0)
    values[:-1] -= weight.sum(axis=0) + missing_weight
    values[-1] = missing_weight
    return values
