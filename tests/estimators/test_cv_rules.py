"""The estimators with a search, with trees: what they choose, and by what."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressorCV

FEW = {"thresholds": 10, "max_leaves": 6, "cv": 3, "reg_lambda": 3, "max_rounds": 200, "n_jobs": 1}
SCORERS = ["accuracy", "neg_log_loss", "roc_auc"]


def rows(m, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, 4)), rng


def xor(m, seed=0, noise=0.0):
    X, rng = rows(m, seed)
    return X, ((X[:, 0] > 0) ^ (X[:, 1] > 0) ^ (rng.random(m) < noise)).astype(int)


def additive(m, seed=0):
    X, rng = rows(m, seed)
    return X, (X[:, 0] + np.where(X[:, 1] > 0.5, 1.0, 0.0) + 0.5 * X[:, 2] + rng.normal(size=m) > 0).astype(int)


# --- stumps or rules -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_trees_are_chosen_for_what_stumps_cannot_say():
    X, y = xor(500, noise=0.1)
    model = QuadBoostClassifierCV(n_trees="auto", **FEW).fit(X, y)
    assert model.best_params_["n_trees"] == 100
    other, known = xor(1_000, seed=1)
    assert model.score(other, known) > 0.9
    assert model.ensemble_.n_rules > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_stumps_can_win_where_features_add_up(seed):
    X, y = additive(400, seed)
    model = QuadBoostClassifierCV(n_trees="auto", thresholds=20).fit(X, y)
    assert model.best_params_["n_trees"] == 0
    assert model.ensemble_.n_rules == 0


@pytest.mark.slow
def test_trees_do_not_hurt_where_features_add_up():
    """Whatever is chosen: on other rows within two per cent of stumps alone."""
    losses = []
    for seed in range(6):
        (X, y), (other, known) = additive(400, seed), additive(4_000, 100 + seed)
        models = [QuadBoostClassifierCV(n_trees=n, thresholds=20).fit(X, y) for n in ("auto", 0)]
        losses.append([log_loss(known, model.predict_proba(other)) for model in models])
    with_trees, without = np.mean(losses, axis=0)
    assert with_trees < 1.02 * without  # 1.003 when this was written


@pytest.mark.slow
def test_results_say_what_had_trees():
    X, y = xor(300)
    model = QuadBoostClassifierCV(n_trees="auto", **FEW).fit(X, y)
    results = pd.DataFrame(model.cv_results_)
    assert set(results.param_n_trees) == {0, 100}
    assert set(results.param_penalty[results.param_n_trees == 100]) == {"l1", "l2"}
    assert set(results.param_penalty[results.param_n_trees == 0]) == {"l1"}
    assert model.best_score_ == results.mean_test_score.min() == results.mean_test_score[model.best_index_]
    assert results.param_n_trees[model.best_index_] == model.best_params_["n_trees"]
    assert results.rank_test_score[model.best_index_] == 1


def test_a_number_of_trees_is_for_all_candidates():
    X, y = xor(300)
    model = QuadBoostClassifierCV("l2", n_trees=7, **FEW).fit(X, y)
    assert set(model.cv_results_["param_n_trees"]) == {7}
    assert set(model.cv_results_["param_penalty"]) == {"l2"}
    assert model.best_estimator_.ensemble_.trees.n_trees == 7


def test_the_choice_fitted_by_itself_is_the_same_model():
    X, y = xor(300)
    model = QuadBoostClassifierCV(["l2", "l1"], n_trees=5, random_state=3, **FEW).fit(X, y)
    plain = {name: FEW[name] for name in ("thresholds", "max_leaves", "n_jobs")}
    known = QuadBoostClassifier(**plain | model.best_params_, random_state=3).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), known.decision_function(X))


@pytest.mark.slow
def test_random_state_seeds_the_trees_of_the_folds():
    X, y = xor(200, noise=0.2)

    def scores(seed):
        model = QuadBoostClassifierCV("l2", n_trees="auto", random_state=seed, **FEW).fit(X, y)
        return model.cv_results_["mean_test_score"], model.cv_results_["param_n_trees"] > 0

    (one, rules), (same, _), (other, _) = scores(1), scores(1), scores(2)
    np.testing.assert_array_equal(one, same)
    assert (one != other)[rules].all()
    np.testing.assert_array_equal(one[~rules], other[~rules])


# --- by what, and on which rows ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["error", *(pytest.param(scorer, marks=pytest.mark.slow) for scorer in SCORERS)])
def test_other_scores_choose_trees_for_xor_too(scoring):
    X, y = xor(300, noise=0.05)
    model = QuadBoostClassifierCV(n_trees="auto", scoring=scoring, **FEW | {"reg_lambda": 2, "rounds": 3}).fit(X, y)
    assert model.best_params_["n_trees"] == 100
    best = {"error": (0.0, 0.2), "accuracy": (0.8, 1.0), "neg_log_loss": (-0.5, 0.0), "roc_auc": (0.85, 1.0)}[scoring]
    assert best[0] <= model.best_score_ <= best[1]


def test_a_scorer_sees_estimators_with_rules():
    X, y = xor(300)
    seen = []

    def scorer(estimator, Z, labels):
        seen.append(estimator.ensemble_.n_rules)
        return estimator.score(Z, labels)

    QuadBoostClassifierCV("l2", n_trees=5, scoring=scorer, **FEW).fit(X, y)
    assert min(seen) > 0


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"thresholds_per_fold": True}, {"one_standard_error": True}], ids=str)
def test_options_of_the_search_hold_with_trees(options):
    X, y = xor(300, noise=0.1)
    model = QuadBoostClassifierCV(n_trees="auto", **FEW, **options).fit(X, y)
    assert model.best_params_["n_trees"] == 100
    if "one_standard_error" in options:
        results = model.cv_results_
        best = np.nanargmin(results["mean_test_score"])
        assert model.best_score_ <= results["mean_test_score"][best] + results["standard_error"][best]


@pytest.mark.slow
def test_a_group_is_never_divided():
    """Groups have one label each: trees know those of a group that they have seen, and nothing of others."""
    rng = np.random.default_rng(0)
    group = np.arange(300) // 10
    X = np.column_stack([rng.normal(size=30)[group], rng.normal(size=30)[group]]) + 1e-3 * rng.normal(size=(300, 2))
    y = rng.integers(0, 2, size=30)[group]
    order = rng.permutation(300)
    X, y, group = X[order], y[order], group[order]
    divided = QuadBoostClassifierCV("l2", n_trees=20, **FEW).fit(X, y)
    whole = QuadBoostClassifierCV("l2", n_trees=20, **FEW).fit(X, y, groups=group)
    assert whole.best_score_ > divided.best_score_ + 0.2


@pytest.mark.thinned(1)
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("classes", {}),
        ("classes", {"loss": "logistic"}),
        ("labels", {"mode": "forward"}),
        ("labels", {"class_weight": "balanced", "penalty": ["l2", "linf"]}),
        ("target", {}),
        ("targets", {"standardize": True}),
        ("counts", {"loss": "poisson"}),
        pytest.param("target", {"loss": "quantile", "quantile": 0.9}, marks=pytest.mark.slow),
        ("target", {"loss": "huber"}),
    ],
    ids=str,
)
def test_every_kind_of_target_and_loss(kind, options):
    X, rng = rows(240)
    product = np.sign(X[:, 0] * X[:, 1]) + 0.3 * rng.normal(size=240)
    y = {
        "labels": product > 0,
        "classes": np.digitize(product, [-0.5, 0.5]),
        "target": product,
        "targets": np.column_stack([product, X[:, 2] - product]),
        "counts": np.rint(np.exp(product)),
    }[kind]
    search = QuadBoostClassifierCV if kind in ("labels", "classes") else QuadBoostRegressorCV
    model = search(**{"penalty": "l2", "n_trees": 6, **FEW, "reg_lambda": 2, "alpha_max": 2, "tol": 1e-2} | options)
    weight = rng.integers(1, 3, size=240)
    model.fit(X, y, weight)
    assert model.ensemble_.n_rules > 0
    assert len(model.predict(X)) == 240
    for other in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, y, weight)):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))


@pytest.mark.slow
def test_what_was_chosen_of_both_is_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    X, y = xor(200)
    model = QuadBoostClassifierCV("l2", n_trees="auto", **FEW).fit(X, y)
    assert model.best_params_["n_trees"] == 100
    tried, found = model.cv_results_, model.plot().lines[0].get_xydata()
    known = tried["param_n_trees"] == 100
    np.testing.assert_array_equal(np.sort(found[:, 0]), np.sort(tried["param_reg_lambda"][known]))
    np.testing.assert_array_equal(np.sort(found[:, 1]), np.sort(tried["mean_test_score"][known]))
    assert model.plot("l2").lines[1].get_xdata()[0] == model.best_params_["reg_lambda"]


@pytest.mark.parametrize(("given", "said"), [(-1, "n_trees=-1"), (1.5, "n_trees=1.5"), ("many", "n_trees='many'")])
def test_other_numbers_of_trees_are_refused(given, said):
    X, y = xor(50)
    with pytest.raises(ValueError, match=said):
        QuadBoostClassifierCV(n_trees=given).fit(X, y)
