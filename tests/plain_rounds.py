"""The rounds as plain numpy on the explicit matrix of voters: no bins, no counts, no tables, no threads, no blocks.

All sums over rows are sums of whole numbers here, and the rest are the same operations on doubles in the same order: so
the optimised path must give the same bits.
"""

from __future__ import annotations

import numpy as np


def plain_rounds(H, y, penalty, *, mode, fit_intercept, max_rounds):
    """Weights, and per round: the voter, its edge, its weight, the risk and the objective. y holds -1 and +1."""
    m, n_voters = H.shape
    gram = H.T @ H  # whole numbers: exact in any order
    mean, eta = H.sum(axis=0) / m, (H * H).sum(axis=0) / m
    centre = mean if fit_intercept else np.zeros(n_voters)
    target_mean = y.sum() / m
    intercept = target_mean if fit_intercept else 0.0
    slope = H.T @ y / m - intercept * mean  # edges less ridge times the weight that an update replaces
    risk = objective = max(0.0, (y * y).sum() / m - intercept * (2.0 * target_mean - intercept))
    residual_mean = target_mean - intercept
    variance = eta - centre * centre
    ridge, shrink, _, _ = penalty.rule(n_voters)
    (lower, upper), cap = penalty.bounds(n_voters), penalty.cap + np.zeros(n_voters)
    curvature = variance + ridge
    inverse = np.where(variance > 1e-12 * eta, 1.0 / curvature, 0.0)
    weight = np.zeros(n_voters)
    history = []
    for _ in range(max_rounds):
        anchor = weight if mode == "corrective" else np.zeros(n_voters)
        edge = slope + ridge * anchor
        rest = weight - anchor  # of the sum of all copies, which is within bounds

        def weigh(z):
            lowered, raised = z - shrink, z + shrink
            return (np.where(lowered > 0, lowered, 0.0) + np.where(raised < 0, raised, 0.0)) * inverse

        given = np.clip(np.clip(weigh(edge + variance * anchor), -cap, cap), lower - rest, upper - rest)
        least, most = np.maximum(lower - weight, -cap - anchor), np.minimum(upper - weight, cap - anchor)
        if not penalty.differs and (shrink == 0).all() and (cap == np.inf).all():
            decrease = slope * slope * inverse
        elif penalty.differs and (shrink == 0).all():
            d = np.clip(slope * inverse, least, most)
            decrease = d * (2 * slope - curvature * d)
        else:
            rated = weigh(slope + curvature * anchor)
            low, high = (anchor + least, anchor + most) if penalty.differs else (-cap, cap)
            rated = np.clip(rated, low, high)
            d = rated - anchor
            decrease = d * (2 * slope - curvature * d)
            decrease = decrease - 2 * shrink * (np.abs(rated) - np.abs(anchor))
        j = int(np.argmax(decrease))  # of equal ones the first
        delta = given[j] - anchor[j]
        objective -= decrease[j]
        risk -= delta * (2 * (edge[j] - centre[j] * residual_mean)
                         - delta * (eta[j] - centre[j] * (2 * mean[j] - centre[j])))  # fmt: skip
        history.append((j, edge[j], given[j], risk, objective))
        residual_mean -= delta * (mean[j] - centre[j])
        before = anchor[j]
        weight[j] = np.clip(rest[j] + given[j], lower[j], upper[j])
        slope[j] -= ridge[j] * (anchor[j] - before)
        slope = slope - (delta * (1.0 / m) * gram[:, j] - delta * centre[j] * mean)
    return weight, np.array(history)
