"""Other libraries' solutions of the problems that corrective rounds converge to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from reference import Floats, penalty_value, training_rows
from scipy.optimize import lsq_linear
from sklearn.linear_model import Lasso, Ridge


@dataclass
class Optimum:
    """Known solution of a penalised least squares problem."""

    weight: Floats
    intercept: float
    prediction: Floats
    risk: float
    objective: float


def _optimum(
    penalty: str | None,
    H: ArrayLike,
    y: ArrayLike,
    lam: float,
    weight: ArrayLike | None,
    fit_intercept: bool,
    a: Floats,
) -> Optimum:
    rows = training_rows(H, y, weight, fit_intercept)
    intercept = float(rows.y_mean - rows.voter_means @ a)
    risk = rows.risk(a)
    objective = risk + penalty_value(penalty, a, lam)
    return Optimum(a, intercept, intercept + rows.H @ a, risk, objective)


def lasso_solution(
    H: ArrayLike,
    y: ArrayLike,
    lam: float,
    weight: ArrayLike | None = None,
    fit_intercept: bool = False,
) -> Optimum:
    """scikit-learn's Lasso(alpha=lam), which minimises half our objective."""
    solver = Lasso(alpha=lam, fit_intercept=fit_intercept, tol=1e-15, max_iter=100_000)
    solver.fit(np.asfortranarray(H), y, sample_weight=weight)
    return _optimum("l1", H, y, lam, weight, fit_intercept, solver.coef_)


def ridge_solution(
    H: ArrayLike,
    y: ArrayLike,
    lam: float,
    weight: ArrayLike | None = None,
    fit_intercept: bool = False,
) -> Optimum:
    """scikit-learn's Ridge(alpha=m lam), which minimises m times our objective."""
    total = len(np.asarray(y)) if weight is None else float(np.sum(weight))
    solver = Ridge(alpha=total * lam, fit_intercept=fit_intercept, solver="svd")
    solver.fit(H, y, sample_weight=weight)
    return _optimum("l2", H, y, lam, weight, fit_intercept, solver.coef_)


def lstsq_solution(
    H: ArrayLike,
    y: ArrayLike,
    lam: float = 0.0,
    weight: ArrayLike | None = None,
    fit_intercept: bool = False,
) -> Optimum:
    """numpy's lstsq: one of the least squares solutions, all with the same predictions."""
    A, b = _weighted(H, y, weight, fit_intercept)
    a = np.asarray(np.linalg.lstsq(A, b, rcond=1e-12)[0], dtype=np.float64)
    return _optimum(None, H, y, lam, weight, fit_intercept, a)


def box_solution(
    H: ArrayLike,
    y: ArrayLike,
    lam: float,
    weight: ArrayLike | None = None,
    fit_intercept: bool = False,
) -> Optimum:
    """scipy's lsq_linear within +-alpha_max (``lam``)."""
    A, b = _weighted(H, y, weight, fit_intercept)
    found = lsq_linear(A, b, bounds=(-lam, lam), method="bvls", tol=1e-15, max_iter=10_000)
    return _optimum("linf", H, y, lam, weight, fit_intercept, found.x)


def _weighted(H: ArrayLike, y: ArrayLike, weight: ArrayLike | None, fit_intercept: bool) -> tuple[Floats, Floats]:
    """Matrix and labels whose plain sum of squares is the (centred) risk."""
    rows = training_rows(H, y, weight, fit_intercept)
    root = np.sqrt(rows.p)
    return (rows.H - rows.voter_means) * root[:, None], (rows.y - rows.y_mean) * root


OPTIMUM: dict[str | None, Callable[..., Optimum]] = {
    None: lstsq_solution,
    "l1": lasso_solution,
    "l2": ridge_solution,
    "linf": box_solution,
}
