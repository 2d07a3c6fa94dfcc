"""The strength of an l2 penalty by generalised cross-validation."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost import QuadBoostClassifier, QuadBoostRegressor, moments_from_matrix
from quadboost.boosting import trace
from quadboost.boosting.strength import between
from quadboost.boosting.trace import ridge_by_gcv

random = np.random.default_rng(0)
M, K = 300, 25
H = np.sign(random.normal(size=(M, K)) + random.normal(size=(M, 1)))
Y = H[:, :3] @ [0.5, -0.4, 0.3] + random.normal(size=M)


def chosen(y: np.ndarray, fit_intercept: bool = True):
    """By the Gram matrix itself."""
    voters = H - H.mean(axis=0) if fit_intercept else H
    gram = voters.T @ voters / M
    return ridge_by_gcv(lambda vectors: vectors @ gram, moments_from_matrix(H, y), fit_intercept, float(M)), gram


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_points_are_those_of_ridge_regression(fit_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST_PROBES", 2_000)
    monkeypatch.setattr(trace, "ENOUGH_EXAMPLES", 1e9)
    strengths, gram = chosen(Y, fit_intercept)
    y = Y - Y.mean() if fit_intercept else Y
    voters = H - H.mean(axis=0) if fit_intercept else H
    for point in strengths.points[::10]:
        inverse = np.linalg.inv(gram + point.strength * np.eye(K))
        weight = inverse @ voters.T @ y / M
        assert point.risk == pytest.approx(np.mean((y - voters @ weight) ** 2) / np.mean(y * y), rel=1e-6)
        assert point.n_active == pytest.approx(np.trace(gram @ inverse) + fit_intercept, rel=0.03, abs=0.02)
        assert point.gcv == pytest.approx(point.risk / (1.0 - point.n_active / M) ** 2)


def test_chooses_between_least_estimate_and_formula() -> None:
    strengths, _ = chosen(Y)
    best, formula = min(strengths.points, key=lambda point: point.gcv).strength, 0.3 * K / M
    assert formula < strengths.chosen < between(best, formula, M, K) * 1.2


def test_of_more_freedom_than_half_the_examples_no_estimate_is_trusted() -> None:
    m, n_voters = 60, 3_000
    matrix = np.sign(random.normal(size=(m, n_voters)))
    moments = moments_from_matrix(matrix, random.normal(size=m))
    gram = matrix - matrix.mean(axis=0)
    strengths = ridge_by_gcv(lambda vectors: vectors @ gram.T @ gram / m, moments, True, float(m))
    assert strengths.points[-1].n_active > 0.5 * m
    assert strengths.chosen >= 0.3 * n_voters / m


def test_noise_has_a_strong_penalty() -> None:
    X = random.normal(size=(2_000, 5))
    model = QuadBoostRegressor(penalty="l2", thresholds=20).fit(X, random.normal(size=2_000))
    assert np.std(model.predict(X)) < 0.1


@pytest.mark.parametrize("thresholds", [10, 700])  # the Gram matrix, or codes
def test_same_bits(thresholds: int) -> None:
    X = random.normal(size=(800, 4))
    y, weight = X[:, 0] + random.normal(size=800) > 0, random.integers(1, 4, size=800)
    order, repeated = random.permutation(800), np.repeat(np.arange(800), weight)

    def fitted(rows: np.ndarray, sample_weight: np.ndarray | None, n_jobs: int = 1) -> float:
        model = QuadBoostClassifier(penalty="l2", thresholds=thresholds, n_jobs=n_jobs, calibration=None)
        model.fit(X[rows], y[rows], sample_weight)
        assert model.stop_reason_ == "converged"
        assert len(model.history_["path_lambda"]) == len(trace.TRIED)
        return model.reg_lambda_

    first = fitted(np.arange(800), weight)
    assert fitted(order, weight[order], 2) == first
    assert fitted(repeated, None) == first
    assert first != pytest.approx(0.3 * thresholds * 4 / weight.sum(), rel=0.1)  # of the formula


@pytest.mark.parametrize("y", [np.zeros(30), np.arange(30.0)])
def test_targets_or_features_that_are_constant(y: np.ndarray) -> None:
    X = np.ones((30, 2)) if y.any() else np.arange(60.0).reshape(30, 2)
    model = QuadBoostRegressor(penalty="l2").fit(X, y)
    assert model.reg_lambda_ >= 0
    assert np.allclose(model.predict(X), y.mean())


def test_one_strength_for_all_classes() -> None:
    X = random.normal(size=(300, 3))
    model = QuadBoostClassifier(penalty="l2", thresholds=5).fit(X, (X[:, 0] > 0) + (X[:, 1] > 1) * 1)
    assert len(np.unique(model.reg_lambda_)) == 1
    assert len(np.atleast_1d(model.reg_lambda_)) == 3


def test_strength_does_not_jump_where_weights_are_large() -> None:
    X = random.normal(size=(400, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * random.normal(size=400)
    weights = np.floor(np.geomspace(5e6, 2e7, 8) / 400)
    chosen = [QuadBoostRegressor(penalty="l2").fit(X, y, np.full(400, weight)).reg_lambda_ for weight in weights]
    assert max(chosen) < 10 * min(chosen)
