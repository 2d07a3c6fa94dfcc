"""Contributions on the scale of predictions: probabilities, or targets of a log link.

Scores are sums of contributions, predictions are not: how far a term moves a probability depends on where the other
terms have brought it. What can be said exactly is how the prediction changes along the straight line from the base to
the score, where all terms grow together (the value of Aumann and Shapley). For one score this multiplies every
contribution by the same number, the mean slope of the link on the way: proportions and signs stay, and all adds up.
"""

from __future__ import annotations

import numpy as np

from ..model.ensemble import Ensemble
from ..model.links import LINKS

N_POINTS = 96  # of the integral over the softmax, which has no closed form
NARROW = 1e-6  # a way of scores so short that the slope is taken in its middle


def contributions_to_predictions(
    ensemble: Ensemble, base: float | np.ndarray, values: np.ndarray
) -> tuple[float | np.ndarray, np.ndarray]:
    """The base and the contributions, on the scale of predictions; of two classes, of the second one's probability.

    The base is the prediction of the base score, not the mean prediction.
    """
    if ensemble.link == "softmax":
        return _softmax(np.asarray(base), values)
    if ensemble.classes is not None and ensemble.n_outputs > 1:
        raise ValueError(
            f"the link {ensemble.link!r} of several classes has no contributions on the scale of predictions; use "
            "scale='score'"
        )

    def predict(scores: np.ndarray) -> np.ndarray:
        found = LINKS[ensemble.link].predictions(scores.ravel())
        return (found if ensemble.classes is None else found[:, 1]).reshape(scores.shape)

    start, end = np.asarray(base, dtype=np.float64), base + values.sum(axis=1)
    way = end - start
    is_narrow = np.abs(way) < NARROW
    low, high = np.where(is_narrow, start - NARROW, start), np.where(is_narrow, start + NARROW, end)
    slope = (predict(high) - predict(low)) / (high - low)
    new_base = predict(start)
    return (float(new_base) if new_base.ndim == 0 else new_base), values * slope[:, None]


def _softmax(base: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the derivative of each probability on the way, by Gauss's rule; rounding is spread over the terms."""
    point, share = np.polynomial.legendre.leggauss(N_POINTS)
    predict = LINKS["softmax"].predictions
    way = values.sum(axis=1)
    found = np.zeros_like(values)
    for at, weight in zip((point + 1.0) / 2.0, share / 2.0, strict=True):
        p = predict(base + at * way)
        mean = np.einsum("mk,mtk->mt", p, values)
        found += weight * p[:, None, :] * (values - mean[:, :, None])
    return predict(base[None])[0], found
