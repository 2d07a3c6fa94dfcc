"""The strength of an l1 penalty that is chosen along the path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mixed_table import CATEGORIES, mixed_table, targets
from oracles import lasso_solution

import quadboost.common.threads
from quadboost import QuadBoostClassifier, QuadBoostRegressor, boost, moments_from_matrix
from quadboost.boosting.penalties import L1
from quadboost.boosting.rounds import open_run
from quadboost.boosting.schedule import Schedule
from quadboost.boosting.strength import LEAST_SHARE, MOST_ACTIVE, Point, Strengths, strengths_by_gcv
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

M = 600
X = mixed_table(M)
REAL = targets(X) + np.random.default_rng(1).normal(size=M)
OPTIONS = {"thresholds": 20, "categorical_features": sorted(CATEGORIES)}


def moments_of(X, y, weight=None, thresholds=20):
    stumps = candidate_voters(X, weight, thresholds=thresholds)
    return column_moments(stumps, stumps.code(X), y, weight)


def followed(moments, n_examples, schedule=None, fit_intercept=True):
    """The strengths, and where the run then stands."""
    with open_run(moments, L1(0.0), mode="corrective", fit_intercept=fit_intercept) as run:
        strengths = strengths_by_gcv(run, n_examples, schedule or Schedule())
        return strengths, run.result()


def smooth_rows(m=500, d=4, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + noise * rng.normal(size=m)


# --- the path -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_each_point_is_near_the_optimum_under_its_strength(fit_intercept):
    """As near as fits from scratch are, within the gaps."""
    X, y = smooth_rows()
    moments = moments_of(X, y)
    strengths, _ = followed(moments, len(y), fit_intercept=fit_intercept)
    assert len(strengths.points) > 4
    first_risk = y.var() if fit_intercept else np.mean(y * y)
    with open_run(moments, L1(0.0), mode="corrective", fit_intercept=fit_intercept) as run:
        for point in strengths.points:
            penalty = L1(point.strength)
            run.change(penalty)
            run.go(Schedule(max_rounds=1_000_000, tol=2e-2))
            known = boost(moments, penalty, fit_intercept=fit_intercept, tol=1e-9)
            assert 0 <= run.result().objective - known.objective + 1e-12 <= 2e-2 * first_risk
            # The objectives differ by at most the gap, and so do the risks, twice over: both solve the same problem.
            assert point.risk == pytest.approx(known.risk, abs=5e-2 * first_risk)


def test_with_a_small_tol_points_are_those_of_fits_from_scratch(monkeypatch):
    for name in ("NEAR", "FAR"):
        monkeypatch.setattr(f"quadboost.boosting.strength.{name}", 1e-9)
    X, y = smooth_rows()
    moments = moments_of(X, y)
    strengths, _ = followed(moments, len(y), Schedule(tol=1e-9))
    for point in strengths.points:
        known = boost(moments, L1(point.strength), fit_intercept=True, tol=1e-9)
        assert point.risk == pytest.approx(known.risk, rel=1e-3)
        assert abs(point.n_active - np.count_nonzero(known.weight)) <= 2


def test_the_path_begins_with_no_voter_at_the_strongest_useful_penalty_and_falls():
    X, y = smooth_rows()
    strengths, _ = followed(moments_of(X, y), len(y))
    strength, risk, _, active = strengths.columns().values()
    assert active[0] == 0
    assert risk[0] == pytest.approx(y.var())
    assert np.all(np.diff(strength) < 0)
    assert np.all(np.diff(risk) < 0)
    moments = moments_from_matrix(np.where(X[:, :1] > 0, 1.0, -1.0), y)
    strengths, _ = followed(moments, len(y))
    assert strengths.points[0].strength == pytest.approx(np.abs(moments.centred(True)[0]).max(), rel=1e-12)


def test_the_estimate_is_the_risk_over_the_freedom_that_is_left():
    X, y = smooth_rows()
    moments = moments_of(X, y)
    strengths, _ = followed(moments, len(y))
    cost = 1 + 0.2 * moments.n_voters / (moments.n_voters + len(y))
    for point in strengths.points:
        freedom = 1 - cost * (point.n_active + 1) / len(y)
        assert point.gcv == pytest.approx(point.risk / freedom**2, rel=1e-12)


def test_the_run_then_stands_where_it_can_go_on():
    X, y = smooth_rows()
    moments = moments_of(X, y)
    strengths, state = followed(moments, len(y))
    nearest = min(strengths.points, key=lambda point: abs(np.log(point.strength / strengths.chosen)))
    assert state.risk == pytest.approx(nearest.risk, rel=1e-9)
    assert np.count_nonzero(state.weight) == nearest.n_active
    assert strengths.cut == ""
    np.testing.assert_array_equal(state.trace.weights_at(state.n_rounds, moments.n_voters), state.weight)


@pytest.mark.slow
def test_what_is_chosen_predicts_about_as_well_as_the_best_of_stronger_and_weaker():
    for seed in range(3):
        X, y = smooth_rows(2_000, noise=0.7, seed=seed)
        X_new, _ = smooth_rows(4_000, seed=seed + 100)
        truth = np.sin(2 * X_new[:, 0]) + 0.5 * X_new[:, 1]
        chosen = QuadBoostRegressor().fit(X, y)
        others = [QuadBoostRegressor(reg_lambda=chosen.reg_lambda_ * c).fit(X, y) for c in (0.1, 0.3, 3.0, 10.0)]
        risk, *rest = (np.mean((truth - model.predict(X_new)) ** 2) for model in (chosen, *others))
        assert risk < 1.3 * min(rest)


def test_a_path_for_which_there_is_no_time_ends_after_its_first_strength():
    X, y = smooth_rows()
    strengths, state = followed(moments_of(X, y), len(y), Schedule(max_seconds=0.0))
    assert 1 <= len(strengths.points) <= 2
    assert strengths.chosen > 0
    assert np.isfinite(state.weight).all()


def test_strengths_that_were_not_chosen_along_a_path_have_no_columns():
    assert Strengths(0.3).columns() == {}
    columns = Strengths(0.3, (Point(1.0, 2.0, 3.0, 4),)).columns()
    assert list(columns) == ["path_lambda", "path_risk", "path_gcv", "path_active"]
    assert [values.tolist() for values in columns.values()] == [[1.0], [2.0], [3.0], [4]]


# --- degrees of freedom ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.1, 0.03])
def test_active_voters_are_the_degrees_of_freedom(share):
    """sum_i cov(prediction_i, y_i) / variance of the noise, by simulation, is the mean number of active voters."""
    m, n_times = 60, 400
    X, _ = smooth_rows(m, 2, seed=1)
    signal = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(n_times, m))
    moments = moments_of(X, signal[:, None] + noise.T, thresholds=8)
    lam = share * np.abs(moments.centred(True)[0]).max()
    stumps = candidate_voters(X, thresholds=8)
    H = np.column_stack([np.where(X[:, f] > cut, 1.0, -1.0) for f in range(2) for cut in stumps.cuts[f]])
    freedom, active = np.empty(n_times), np.empty(n_times)
    for output in range(n_times):
        found = boost(moments, L1(lam), fit_intercept=True, tol=1e-7, output=output)
        prediction = found.intercept + H @ found.weight
        freedom[output] = noise[output] @ (prediction - signal)
        active[output] = np.count_nonzero(found.weight) + 1
    error = (freedom - active).std() / n_times**0.5
    assert abs(freedom.mean() - active.mean()) < 3.5 * error
    assert active.mean() > 2


# --- tables that are hard -------------------------------------------------------------------------------------


@pytest.mark.thinned(1)
@pytest.mark.parametrize("shape", [(300, 5), (1_000, 20), (100, 150)])
def test_of_noise_nothing_is_learnt_or_nearly(shape):
    gains = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=shape[0])
        model = QuadBoostRegressor().fit(rng.normal(size=shape), noise)
        gains.append(1 - model.history_["risk"][-1] / noise.var() if model.n_rounds_ else 0.0)
    assert np.median(gains) == 0.0
    assert np.mean(gains) < 0.1


@pytest.mark.parametrize("estimator", [QuadBoostRegressor, QuadBoostClassifier])
def test_fewer_rows_than_features(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300))
    signal = np.where(X[:, 7] > 0, 2.0, -2.0)
    y = signal + 0.5 * rng.normal(size=80) if estimator is QuadBoostRegressor else signal > 0
    model = estimator().fit(X, y)
    assert model.reg_lambda_ > 0
    assert np.argmax(model.feature_importances_) == 7
    assert model.history_["path_active"].max() <= 80


def test_the_path_ends_before_there_are_as_many_voters_as_examples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    strengths, _ = followed(moments_of(X, X.sum(axis=1)), 60)
    assert all(point.n_active <= MOST_ACTIVE * 60 for point in strengths.points[:-1])
    assert strengths.points[-1].strength > 0.5 * LEAST_SHARE * strengths.points[0].strength


def test_constant_features_change_nothing():
    X, y = smooth_rows()
    known = QuadBoostRegressor().fit(X, y)
    found = QuadBoostRegressor().fit(np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X))]), y)
    assert found.reg_lambda_ == pytest.approx(known.reg_lambda_, rel=1e-6)
    np.testing.assert_allclose(found.predict(np.column_stack([X, X[:, :2]])), known.predict(X), rtol=0, atol=1e-6)


def test_repeated_columns_do_no_harm():
    X, y = smooth_rows()
    known, found = QuadBoostRegressor().fit(X, y), QuadBoostRegressor().fit(np.hstack([X, X, -X]), y)
    assert found.reg_lambda_ == pytest.approx(known.reg_lambda_, rel=0.5)
    assert found.dual_gap_ <= 1e-4 * y.var()
    assert found.score(np.hstack([X, X, -X]), y) == pytest.approx(known.score(X, y), abs=0.05)


@pytest.mark.parametrize("y", [[0.0, 1.0], [3.0, 3.0], [1e100, -1e100], [1e-100, -1e-100]])
def test_two_rows(y):
    model = QuadBoostRegressor().fit([[0.0], [1.0]], y)
    assert np.abs(model.predict([[0.0], [1.0]])).max() <= np.abs(y).max()
    assert 0 <= model.reg_lambda_ < np.inf


def test_a_constant_target_has_nothing_to_learn():
    model = QuadBoostRegressor().fit(X, np.full(M, 2.5))
    np.testing.assert_array_equal(model.predict(X), 2.5)
    assert model.n_rounds_ == 0


def test_a_target_that_one_voter_explains_is_learnt():
    y = np.where(X[:, 0] > np.nanmedian(X[:, 0]), 1.0, -1.0)
    model = QuadBoostRegressor(**OPTIONS).fit(X, y)
    assert model.score(X, y) > 0.9


# --- what must not matter -------------------------------------------------------------------------------------


def path_of(model):
    return {name: values for name, values in model.history_.items() if name.startswith("path_")}


def assert_same_path(found, known):
    assert found.reg_lambda_ == known.reg_lambda_
    for name, values in path_of(known).items():
        np.testing.assert_array_equal(path_of(found)[name], values)


@pytest.mark.parametrize("estimator", [QuadBoostRegressor, QuadBoostClassifier])
def test_whole_weights_are_repeated_rows(estimator):
    y = np.round(REAL * 8) / 8 if estimator is QuadBoostRegressor else REAL > 0
    weight = 1 + np.arange(M) % 3
    again = np.repeat(np.arange(M), weight)
    known = estimator(**OPTIONS).fit(X[again], y[again])
    assert_same_path(estimator(**OPTIONS).fit(X, y, weight), known)


def test_permuted_rows_and_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(quadboost.common.threads, "STEPS_FOR_THREADS", 0)
    order = np.random.default_rng(5).permutation(M)
    known = QuadBoostRegressor(**OPTIONS, n_jobs=1).fit(X, REAL)
    for rows in (np.arange(M), order):
        for n_jobs in (1, 2):
            found = QuadBoostRegressor(**OPTIONS, n_jobs=n_jobs).fit(X[rows], REAL[rows])
            assert_same_path(found, known)
            np.testing.assert_array_equal(found.predict(X), known.predict(X))


@pytest.mark.parametrize("scale", [1000.0, 2.0**-30, 2.0**40])
def test_a_target_in_other_units_has_its_strength_in_these(scale):
    known, found = (QuadBoostRegressor(**OPTIONS).fit(X, REAL * c) for c in (1.0, scale))
    assert found.reg_lambda_ == pytest.approx(scale * known.reg_lambda_, rel=1e-9)
    np.testing.assert_array_equal(found.history_["path_active"], known.history_["path_active"])
    np.testing.assert_allclose(found.predict(X), scale * known.predict(X), rtol=0, atol=1e-6 * scale)


def test_a_shifted_target_has_the_same_strength():
    known, found = (QuadBoostRegressor(**OPTIONS).fit(X, REAL + c) for c in (0.0, 1000.0))
    assert found.reg_lambda_ == pytest.approx(known.reg_lambda_, rel=1e-6)


def test_a_small_cache_changes_no_bit():
    known = QuadBoostRegressor(**OPTIONS).fit(X, REAL)
    assert_same_path(QuadBoostRegressor(**OPTIONS, cache_bytes=1 << 12).fit(X, REAL), known)


def test_the_fit_is_the_lasso_under_the_strength_that_was_chosen():
    X, y = smooth_rows(200, 2)
    stumps = candidate_voters(X, thresholds=8)
    H = np.column_stack([np.where(X[:, f] > cut, 1.0, -1.0) for f in range(2) for cut in stumps.cuts[f]])
    model = QuadBoostRegressor(thresholds=8, tol=1e-9).fit(X, y)
    known = lasso_solution(H, y, model.reg_lambda_, None, True)
    objective = np.mean((y - model.predict(X)) ** 2) + 2 * model.reg_lambda_ * np.abs(model.ensemble_.weight).sum()
    assert objective == pytest.approx(known.objective, abs=1e-8)
    assert model.history_["objective"][-1] == pytest.approx(objective, abs=1e-10)


def test_a_smaller_tol_does_not_change_the_path():
    """The fit ends nearer to its optimum, at the same strength."""
    rough, fine = (QuadBoostRegressor(**OPTIONS, tol=tol).fit(X, REAL) for tol in (1e-4, 1e-8))
    assert_same_path(fine, rough)
    assert fine.dual_gap_ <= 1e-8 * REAL.var()
    assert rough.dual_gap_ <= 1e-4 * REAL.var()


def test_a_callback_hears_the_rounds_of_the_path_and_can_end_it():
    X, y = smooth_rows()
    moments, heard = moments_of(X, y), []
    schedule = replace(Schedule(), callback=lambda *news: heard.append(news), callback_every=1)
    known, _ = followed(moments, len(y))
    assert followed(moments, len(y), schedule)[0] == known
    assert [round for round, _, _ in heard] == list(range(1, len(heard) + 1))
    assert len(heard) > 30
    cut, state = followed(moments, len(y), replace(schedule, callback=lambda round, *_: round == 30))
    assert cut.cut == "callback"
    assert cut.points[:-1] == known.points[: len(cut.points) - 1]
    assert state.n_rounds <= 30


@pytest.mark.parametrize("most", [1, 10, 100])
def test_a_path_has_no_more_rounds_than_there_may_be(most):
    X, y = smooth_rows()
    strengths, state = followed(moments_of(X, y), len(y), Schedule(max_rounds=most))
    assert strengths.cut == "max_rounds"
    assert state.n_rounds <= most
    assert strengths.chosen >= followed(moments_of(X, y), len(y))[0].chosen
