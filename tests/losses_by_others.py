"""Fits under other losses than the squared one: data, naive objectives, and minima found by other libraries.

The objective is mean(loss) + lam sum |a|, or + lam / 2 sum a^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from mixed_table import mixed_table
from reference import Floats
from scipy.optimize import Bounds, minimize
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression, PoissonRegressor, QuantileRegressor

M = 150
X = mixed_table(M)  # with missing values and categories
SIGNAL = X[:, 0] + (X[:, 1] > 1) - 0.7 * np.nan_to_num(X[:, 2]) + (X[:, 4] == 2) - np.isnan(X[:, 5])
_RNG = np.random.default_rng(5)
TARGETS = {
    "logistic": (_RNG.random(M) < 1 / (1 + np.exp(-SIGNAL))).astype(int),
    "multinomial": np.digitize(SIGNAL + _RNG.normal(size=M), [-1.0, 0.7]),
    "poisson": _RNG.poisson(np.exp(0.5 + 0.5 * SIGNAL)).astype(float),
    "huber": 2 * SIGNAL + _RNG.standard_t(1.5, size=M),
    "quantile": 2 * SIGNAL + _RNG.standard_t(2.5, size=M),
}
WEIGHT = _RNG.random(M) + 0.1
REPEATS = _RNG.integers(1, 4, size=M)
OPTIONS: dict[str, Any] = {"thresholds": 5, "categorical_features": [4]}
HUBER_WIDTH = 1.0


def voters_of(model: Any, Z: Floats) -> Floats:
    """Outputs (m, K) of all candidate voters of a fitted estimator."""
    voters = model._voters
    codes = voters.code(Z)
    columns = [voters.votes(j) for j in range(voters.n_voters)]
    return np.column_stack([values[codes[:, column]] for column, values in columns]).astype(float)


def mean_loss(name: str, F: Floats, y: Floats, weight: Floats | None = None, quantile: float = 0.5) -> float:
    if name == "logistic":
        rows = np.logaddexp(0.0, F) - y * F
    elif name == "multinomial":
        rows = logsumexp(F, axis=1) - F[np.arange(len(y)), y]
    elif name == "poisson":
        rows = np.exp(F) - y * F
    elif name == "huber":
        off = np.abs(y - F)
        rows = np.where(off <= HUBER_WIDTH, off * off / 2, HUBER_WIDTH * (off - HUBER_WIDTH / 2))
    else:
        rows = np.maximum(quantile * (y - F), (quantile - 1) * (y - F))
    return float(np.average(rows, weights=weight))


def penalty_of(penalty: str | None, weight: Floats, lam: float) -> float:
    if penalty == "l1":
        return lam * float(np.abs(weight).sum())
    return lam / 2 * float((weight**2).sum()) if penalty == "l2" else 0.0


def objective_of(name: str, model: Any, penalty: str | None, lam: float, weight: Floats | None = None) -> float:
    """Of a fitted estimator on the rows above, from what it predicts."""
    if name in ("logistic", "multinomial"):
        scores = model.decision_function(X)
    else:
        scores = np.log(model.predict(X)) if name == "poisson" else model.predict(X)
    loss = mean_loss(name, scores, TARGETS[name], weight, getattr(model, "quantile", 0.5))
    return loss + penalty_of(penalty, model.ensemble_.weight, lam)


def by_sklearn(
    name: str, penalty: str, H: Floats, lam: float, weight: Floats | None, fit_intercept: bool, quantile: float = 0.5
) -> float:
    """The least objective, by scikit-learn."""
    y = TARGETS[name]
    total = len(y) if weight is None else weight.sum()
    if name in ("logistic", "multinomial"):
        is_new = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)  # where `penalty` is deprecated
        l1: dict[str, Any] = {"l1_ratio": 1.0} if is_new else {"penalty": "l1"}
        solver = LogisticRegression(
            C=1 / (lam * total), fit_intercept=fit_intercept, tol=1e-10, max_iter=100_000,
            solver="saga" if penalty == "l1" else "lbfgs", **(l1 if penalty == "l1" else {}),
        )  # fmt: skip
        solver.fit(H, y, sample_weight=weight)
        scores, coef = solver.decision_function(H), solver.coef_
    elif name == "poisson":
        solver = PoissonRegressor(
            alpha=lam, fit_intercept=fit_intercept, tol=1e-12, max_iter=10_000, solver="newton-cholesky"
        )
        solver.fit(H, y, sample_weight=weight)
        scores, coef = np.log(solver.predict(H)), solver.coef_
    else:
        solver = QuantileRegressor(quantile=quantile, alpha=lam, fit_intercept=fit_intercept, solver="highs")
        solver.fit(H, y, sample_weight=weight)
        scores, coef = solver.predict(H), solver.coef_
    return mean_loss(name, scores, y, weight, quantile) + penalty_of(penalty, coef, lam)


def by_scipy(
    name: str, penalty: str | None, H: Floats, lam: float, weight: Floats | None, fit_intercept: bool
) -> float:
    """The least objective of one output, by scipy; `lam` of linf is the bound.

    Each weight is the difference of two numbers that are not negative, and |a| their sum.
    """
    y, K = TARGETS[name], H.shape[1]
    p = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()

    def pull(F: Floats) -> Floats:
        if name == "logistic":
            return y - 1 / (1 + np.exp(-F))
        return y - np.exp(F) if name == "poisson" else np.clip(y - F, -HUBER_WIDTH, HUBER_WIDTH)

    def value(found: Floats) -> tuple[float, Floats]:
        a = found[1 : K + 1] - found[K + 1 :]
        F = (found[0] if fit_intercept else 0.0) + H @ a
        slope = -p * pull(F)
        by_weight = H.T @ slope
        ridge = lam if penalty == "l2" else 0.0
        shrink = lam if penalty == "l1" else 0.0
        loss = mean_loss(name, F, y, weight) + ridge / 2 * a @ a + shrink * found[1:].sum()
        by_weight += ridge * a
        return loss, np.concatenate([[slope.sum() * fit_intercept], by_weight + shrink, -by_weight + shrink])

    most = lam if penalty == "linf" else np.inf
    bounds = Bounds(np.r_[-np.inf, np.zeros(2 * K)], np.r_[np.inf, np.full(2 * K, most)])
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 50}
    return float(minimize(value, np.zeros(2 * K + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun)
