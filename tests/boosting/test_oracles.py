"""Problems with known solutions: least squares, LASSO, ridge, bounds, stumps of gradient boosting."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import OPTIMUM, box_solution, lasso_solution
from reference import all_stumps, l1_duality_gap, training_rows, voter_matrix
from sklearn.datasets import load_breast_cancer

import quadboost
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

LAMBDAS = {None: 0.0, "l1": 0.02, "l2": 0.1, "linf": 0.1}


def penalty_options(penalty, lam):
    if penalty is None:
        return {"penalty": None}
    return {"penalty": penalty, "alpha_max" if penalty == "linf" else "reg_lambda": lam}


def real_valued_voters():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(80, 25)) * rng.uniform(0.3, 2, size=25)
    return H, H[:, :4] @ [1.0, -0.5, 0.3, 0.2] + rng.normal(size=80) + 0.7


def abstaining_voters():
    rng = np.random.default_rng(1)
    H = rng.choice([-1.0, 0.0, 1.0], size=(90, 20), p=[0.4, 0.2, 0.4])
    return H, np.where(H[:, 0] + H[:, 1] - H[:, 2] + rng.normal(size=90) > 0.5, 1.0, -1.0)


def breast_cancer_stumps():
    X, label = load_breast_cancer(return_X_y=True)
    cuts = np.quantile(X, [1 / 3, 2 / 3], axis=0)
    H = np.concatenate([np.where(cut < X, 1.0, -1.0) for cut in cuts], axis=1)
    return H, 2.0 * label - 1


PROBLEMS = [real_valued_voters, abstaining_voters, breast_cancer_stumps]


@pytest.mark.thinned
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("penalty", LAMBDAS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_corrective_rounds_converge_to_the_known_solution(problem, penalty, fit_intercept, weighted):
    H, y = problem()
    weight = np.random.default_rng(2).integers(1, 5, size=len(y)).astype(float) if weighted else None
    lam = LAMBDAS[penalty]
    known = OPTIMUM[penalty](H, y, lam, weight, fit_intercept)
    found = quadboost.boost(
        quadboost.moments_from_matrix(H, y, sample_weight=weight),
        **penalty_options(penalty, lam),
        max_rounds=200_000,
        tol=1e-12,
        fit_intercept=fit_intercept,
    )
    assert found.n_rounds < 200_000
    assert found.risk == pytest.approx(known.risk, abs=1e-10)
    assert found.objective == pytest.approx(known.objective, abs=1e-10)
    np.testing.assert_allclose(found.intercept + H @ found.weight, known.prediction, rtol=0, atol=1e-8)


def test_linf_weights_stay_within_their_bound_exactly():
    H, y = breast_cancer_stumps()
    moments = quadboost.moments_from_matrix(H, y)
    found = quadboost.boost(moments, "linf", alpha_max=0.1, tol=1e-12, max_rounds=100_000)
    at_bound = np.isclose(np.abs(box_solution(H, y, 0.1).weight), 0.1, rtol=1e-9)
    assert np.abs(found.weight).max() <= 0.1
    np.testing.assert_array_equal(np.abs(found.weight[at_bound]), 0.1)


def test_l1_weights_of_useless_voters_are_exactly_zero():
    H, y = real_valued_voters()
    known = lasso_solution(H, y, 0.2)
    found = quadboost.boost(quadboost.moments_from_matrix(H, y), "l1", reg_lambda=0.2, tol=1e-12)
    assert 0 < np.count_nonzero(known.weight) < H.shape[1]
    np.testing.assert_array_equal(found.weight != 0, known.weight != 0)


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_duality_gap_bounds_the_distance_to_the_lasso_optimum(problem, fit_intercept):
    H, y = problem()
    lam = LAMBDAS["l1"]
    moments = quadboost.moments_from_matrix(H, y)
    best = lasso_solution(H, y, lam, None, fit_intercept).objective
    for max_rounds in (1, 3, 10, 30, 100, 100_000):
        found = quadboost.boost(
            moments, "l1", reg_lambda=lam, max_rounds=max_rounds, tol=1e-12, fit_intercept=fit_intercept
        )
        assert found.dual_gap >= found.objective - best - 1e-14
        explicit = l1_duality_gap(H, y, found.weight, lam, None, fit_intercept)
        assert found.dual_gap == pytest.approx(explicit, abs=1e-12)
    assert found.dual_gap < 1e-9


def test_the_duality_gap_of_the_reference_is_zero_at_the_optimum_of_scikit_learn():
    for problem in PROBLEMS:
        H, y = problem()
        best = lasso_solution(H, y, 0.02, None, True)
        assert l1_duality_gap(H, y, best.weight, 0.02, None, True) == pytest.approx(0, abs=1e-12)
        nearby = best.weight + 0.01
        gap = l1_duality_gap(H, y, nearby, 0.02, None, True)
        residual = y - H @ nearby
        primal = residual.var() + 2 * 0.02 * np.abs(nearby).sum()
        assert gap >= primal - best.objective > 0


def integer_table(m=500, d=6, seed=0):
    """Small integers, so that every library sees the same bins; labels exact in 32 bits."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(m, d)).astype(float)
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] * (X[:, 2] > 4) + rng.normal(size=m)
    return X, np.round(y * 256) / 256


@pytest.mark.oracle("lightgbm")
def test_vanilla_rounds_are_the_stumps_of_lightgbm():
    import lightgbm

    X, y = integer_table()
    rounds = 40
    params = {
        "objective": "regression",
        "num_leaves": 2,
        "learning_rate": 1.0,
        "lambda_l2": 0.0,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "deterministic": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    trees = lightgbm.train(params, lightgbm.Dataset(X, y, params=params), rounds)
    splits = [tree["tree_structure"] for tree in trees.dump_model()["tree_info"]]

    stumps = candidate_voters(X, thresholds="all")
    moments = column_moments(stumps, stumps.code(X), y)
    found = quadboost.boost(moments, mode="forward", fit_intercept=True, max_rounds=rounds)
    score = np.full(len(y), y.mean())
    features, _, thresholds = stumps.describe(found.history["voter"])
    for t, split in enumerate(splits):
        feature, threshold = features[t], thresholds[t]
        assert feature == split["split_feature"]
        # LightGBM writes a cut just above a value in its own ways: compare the rows it sends left.
        np.testing.assert_array_equal(X[:, feature] <= threshold, X[:, feature] <= split["threshold"])
        h = np.where(X[:, feature] > threshold, 1.0, -1.0)
        score += found.history["weight"][t] * (h - h.mean())
        np.testing.assert_allclose(score, trees.predict(X, num_iteration=t + 1), rtol=0, atol=1e-6)
    assert found.risk == pytest.approx(np.mean((y - score) ** 2), abs=1e-10)


def test_l2_forward_is_l2boosting_with_a_small_step():
    X, y = integer_table()
    feature, kind, threshold = all_stumps(X)
    H = voter_matrix(X, feature, kind, threshold)
    lam, rounds = 3.0, 200
    residual, risks, voters = y.copy(), [], []
    for _ in range(rounds):
        fits = H.T @ residual / len(y)
        j = int(np.argmax(np.abs(fits)))
        residual -= fits[j] / (1 + lam) * H[:, j]
        risks.append(np.mean(residual**2))
        voters.append(j)
    found = quadboost.boost(
        quadboost.moments_from_matrix(H, y), "l2", reg_lambda=lam, mode="forward", max_rounds=rounds
    )
    np.testing.assert_array_equal(found.history["voter"], voters)
    np.testing.assert_allclose(found.history["risk"], risks, rtol=1e-10)
    np.testing.assert_allclose(H @ found.weight, y - residual, rtol=0, atol=1e-10)


def test_edges_and_risk_do_not_drift_over_many_rounds():
    H, y = breast_cancer_stumps()
    found = quadboost.boost(
        quadboost.moments_from_matrix(H, y),
        "l2",
        reg_lambda=50.0,
        mode="forward",
        max_rounds=109_999,
        tol=0.0,
        fit_intercept=True,
    )
    assert found.n_rounds == 109_999
    rows = training_rows(H, y, None, True)
    np.testing.assert_allclose(found.edge, rows.edges(found.weight), rtol=0, atol=1e-13)
    assert found.risk == pytest.approx(rows.risk(found.weight), abs=1e-13)
