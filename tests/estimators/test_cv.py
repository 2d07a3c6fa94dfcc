"""The estimators that choose for themselves choose as a search over plain estimators would."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from mixed_table import mixed_table, targets
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import make_scorer, max_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import quadboost
from quadboost import (
    QuadBoostClassifier,
    QuadBoostClassifierCV,
    QuadBoostRegressor,
    QuadBoostRegressorCV,
)

M = 240
X = mixed_table(M)
LABELS = np.where(targets(X) > 0, "yes", "no")
REAL = targets(X) + np.random.default_rng(2).normal(size=M)
WEIGHT = np.random.default_rng(3).random(M) + 0.1
PLAIN = {QuadBoostClassifierCV: QuadBoostClassifier, QuadBoostRegressorCV: QuadBoostRegressor}
each = pytest.mark.parametrize("search", PLAIN)
OPTIONS = {"thresholds": 12, "categorical_features": [4], "min_category_count": 1}
GRID = {"reg_lambda": [0.3, 0.05, 0.01], "rounds": [1, 4, 20, 60]}


def y_of(search):
    return LABELS if search is QuadBoostClassifierCV else REAL


def fitted(search, weight=None, groups=None, **changes):
    return search(**{**OPTIONS, **GRID, **changes}).fit(X, y_of(search), weight, groups)


@pytest.mark.thinned(8)
@parametrize_with_checks([QuadBoostClassifierCV(max_rounds=20, reg_lambda=2, cv=2)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([QuadBoostRegressorCV(max_rounds=20, reg_lambda=3, cv=3)])
def test_checks_of_scikit_learn_of_a_regressor(estimator, check):
    check(estimator)


# --- against scikit-learn's own search ----------------------------------------------------------------------


def naive(search, scoring):
    """scikit-learn's search over plain estimators: each fold is fitted from its rows, thresholds and all."""
    plain = PLAIN[search](**OPTIONS)
    grid = {"reg_lambda": GRID["reg_lambda"], "max_rounds": GRID["rounds"]}
    splitter = StratifiedKFold(4) if search is QuadBoostClassifierCV else KFold(4)
    found = GridSearchCV(plain, grid, scoring=scoring, cv=splitter, refit=False).fit(X, y_of(search)).cv_results_
    order = np.lexsort([found["param_max_rounds"].astype(int), -found["param_reg_lambda"].astype(float)])
    return found["mean_test_score"][order]


def give_up_no_run(monkeypatch):
    for name in ("HOPELESS", "LOST"):
        monkeypatch.setattr(f"quadboost.choosing.search.{name}", np.inf)


@pytest.mark.thinned(1)
@pytest.mark.parametrize(
    ("search", "scoring", "known", "sign"),
    [
        (QuadBoostClassifierCV, "error", "accuracy", -1),
        pytest.param(QuadBoostClassifierCV, "accuracy", "accuracy", 1, marks=pytest.mark.slow),
        pytest.param(QuadBoostClassifierCV, "roc_auc", "roc_auc", 1, marks=pytest.mark.slow),
        (QuadBoostClassifierCV, "neg_log_loss", "neg_log_loss", 1),
        (QuadBoostRegressorCV, "risk", "neg_mean_squared_error", -1),
        (QuadBoostRegressorCV, "r2", "r2", 1),
        (QuadBoostRegressorCV, make_scorer(max_error), make_scorer(max_error), 1),
    ],
)
def test_scores_and_choice_are_those_of_a_search_over_plain_estimators(search, scoring, known, sign, monkeypatch):
    give_up_no_run(monkeypatch)
    found = fitted(search, cv=4, scoring=scoring, thresholds_per_fold=True)
    known_score = sign * naive(search, known) + (scoring == "error")
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], known_score, rtol=0, atol=1e-10)
    best = known_score.min() if sign < 0 else known_score.max()
    assert found.best_score_ == pytest.approx(best, abs=1e-10)
    assert found.best_index_ == np.argmax(np.abs(known_score - best) < 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [None, "linf", "l2"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_errors_agree_also_where_scores_are_zero_but_for_rounding(penalty, fit_intercept, monkeypatch):
    give_up_no_run(monkeypatch)
    changes = {"penalty": penalty, "fit_intercept": fit_intercept, "mode": "forward", "calibration": None}
    grid = {"alpha_max": [0.1], "reg_lambda": [1.0]}
    found = fitted(QuadBoostClassifierCV, cv=4, scoring="error", thresholds_per_fold=True, **grid, **changes)
    for rounds, error in zip(found.cv_results_["param_max_rounds"], found.cv_results_["mean_test_score"], strict=True):
        strength = {} if penalty is None else {"alpha_max": 0.1} if penalty == "linf" else {"reg_lambda": 1.0}
        plain = QuadBoostClassifier(**OPTIONS, **changes, **strength, max_rounds=int(rounds))
        assert error == pytest.approx(1 - cross_val_score(plain, X, LABELS, cv=4).mean(), abs=1e-12)


def test_thresholds_of_all_rows_hardly_matter(monkeypatch):
    give_up_no_run(monkeypatch)
    strict = fitted(QuadBoostRegressorCV, thresholds_per_fold=True).cv_results_["mean_test_score"]
    shared = fitted(QuadBoostRegressorCV).cv_results_["mean_test_score"]
    assert not np.array_equal(strict, shared)
    np.testing.assert_allclose(strict, shared, rtol=0.1)


# --- what a fit leaves behind -------------------------------------------------------------------------------


@pytest.mark.thinned(1)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["no weights", "weights"])
@each
def test_the_choice_is_fitted_to_all_rows(search, weight):
    found = fitted(search, weight, penalty=["l1", "l2", "linf", None], alpha_max=[0.02, 0.2])
    plain = PLAIN[search](**{**OPTIONS, **found.best_params_}).fit(X, y_of(search), weight)
    np.testing.assert_array_equal(found.predict(X), plain.predict(X))
    np.testing.assert_array_equal(found.ensemble_.weight, plain.ensemble_.weight)
    np.testing.assert_array_equal(found.best_estimator_.predict(X), plain.predict(X))
    for name in ("n_rounds_", "intercept_", "n_features_in_", "reg_lambda_", "stop_reason_", "dual_gap_"):
        np.testing.assert_equal(getattr(found, name), getattr(plain, name))
    assert vars(plain).keys() - vars(found).keys() <= plain.get_params().keys()


@each
def test_results_are_a_frame_and_tell_the_choice(search):
    found = fitted(search, cv=3, penalty=["l1", None, "linf"], alpha_max=[0.1])
    frame = pd.DataFrame(found.cv_results_)
    assert len(frame) == (3 + 1 + 1) * 4
    assert found.cv_results_["param_penalty"].tolist() == ["l1"] * 12 + [None] * 4 + ["linf"] * 4
    assert frame["param_reg_lambda"].isna().equals(frame["param_penalty"] != "l1")
    assert frame["param_alpha_max"].isna().equals(frame["param_penalty"] != "linf")
    splits = frame[[f"split{i}_test_score" for i in range(3)]].to_numpy()
    np.testing.assert_allclose(frame["mean_test_score"], splits.mean(axis=1))
    np.testing.assert_allclose(frame["std_test_score"], splits.std(axis=1))
    np.testing.assert_allclose(frame["standard_error"], splits.std(axis=1, ddof=1) / np.sqrt(3))
    chosen = frame.loc[found.best_index_]
    assert chosen["mean_test_score"] == found.best_score_ == frame["mean_test_score"].min()
    assert chosen["rank_test_score"] == 1
    assert found.best_params_["max_rounds"] == chosen["param_max_rounds"]
    assert found.best_params_["penalty"] == chosen["param_penalty"]


@pytest.mark.slow
def test_the_best_of_a_scorer_is_the_greatest():
    found = fitted(QuadBoostClassifierCV, scoring="roc_auc")
    assert found.best_score_ == found.cv_results_["mean_test_score"].max()
    assert found.cv_results_["rank_test_score"][found.best_index_] == 1


def test_one_standard_error_by_hand():
    plain = fitted(QuadBoostRegressorCV, reg_lambda=8, rounds=None, max_rounds=80)
    found = fitted(QuadBoostRegressorCV, reg_lambda=8, rounds=None, max_rounds=80, one_standard_error=True)
    frame = pd.DataFrame(plain.cv_results_)
    best = frame.loc[plain.best_index_]
    near = frame[frame["mean_test_score"] <= best["mean_test_score"] + best["standard_error"]]
    strongest = near[near["param_reg_lambda"] == near["param_reg_lambda"].max()]
    assert found.best_params_["reg_lambda"] == strongest["param_reg_lambda"].iloc[0]
    assert found.best_params_["max_rounds"] == strongest["param_max_rounds"].min()
    assert found.best_params_["reg_lambda"] > plain.best_params_["reg_lambda"]


@each
def test_a_model_tells_how_it_was_chosen_also_from_its_file(search, tmp_path):
    found = fitted(search, scoring="risk", cv=3)
    found.save(tmp_path / "model.h5")
    info = quadboost.load(tmp_path / "model.h5").info
    assert info["estimator"] == search.__name__
    known = {"scoring": "risk", "score": found.best_score_, "splits": 3, "candidates": 12}
    assert info["cross_validation"] == {**known, "chosen": found.best_params_}


@pytest.mark.thinned(1)
@each
def test_a_fit_forgets_the_one_before(search):
    frame = pd.DataFrame(X).add_prefix("x")
    model = search(max_rounds=20).fit(frame, y_of(search))
    assert model.feature_names_in_.tolist() == [f"x{i}" for i in range(8)]
    model.fit(X, y_of(search))
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.thinned(1)
@each
def test_a_search_can_be_cloned_pickled_and_put_in_a_pipeline(search):
    model = fitted(search)
    for copy in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, y_of(search))):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        np.testing.assert_array_equal(copy.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])
    make_pipeline(StandardScaler(), search(max_rounds=20)).fit(X[:, :2], y_of(search)).predict(X[:, :2])


@each
def test_stages_are_those_of_the_chosen_model(search):
    model = fitted(search)
    staged = model.staged_decision_function(X) if search is QuadBoostClassifierCV else model.staged_predict(X)
    *_, last = staged
    score = model.decision_function(X) if search is QuadBoostClassifierCV else model.predict(X)
    np.testing.assert_allclose(last, score, atol=1e-12)


# --- rows, labels and groups --------------------------------------------------------------------------------


@pytest.mark.slow
def test_several_classes_share_the_choice():
    data = load_wine()
    few = {"reg_lambda": 6, "max_rounds": 100, "thresholds": 50}
    model = QuadBoostClassifierCV(**few, rounds=5, scoring="error").fit(data.data, data.target)
    assert model.best_score_ < 0.1
    assert model.decision_function(data.data).shape == (178, 3)
    assert len(set(model.n_rounds_)) == 1 or max(model.n_rounds_) <= model.best_params_["max_rounds"]
    risk = QuadBoostClassifierCV(**few).fit(data.data, data.target)
    assert risk.best_score_ < 0.2


@pytest.mark.slow
def test_several_targets_share_the_choice():
    y = np.column_stack([REAL, 5 + 100 * REAL, X[:, 0]])
    model = fitted(QuadBoostRegressorCV).fit(X, y)
    assert model.predict(X).shape == (M, 3)
    standard = fitted(QuadBoostRegressorCV, standardize=True).fit(X, y)
    assert standard.best_score_ < 1.5
    judged = fitted(QuadBoostRegressorCV, standardize=True, scoring="neg_mean_squared_error").fit(X, y)
    direct = QuadBoostRegressor(**OPTIONS, **judged.best_params_, standardize=True)
    assert judged.best_score_ == pytest.approx(
        cross_val_score(direct, X, y, cv=5, scoring="neg_mean_squared_error").mean(), rel=0.2
    )


@pytest.mark.slow
def test_frames_with_names_and_categories():
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(X[:, 1] > 1, "p", "q")), "c": X[:, 2]})
    tables = frame, polars.from_pandas(frame), pyarrow.Table.from_pandas(frame)
    for table, scoring in zip(tables, ("risk", "error", "accuracy"), strict=True):
        model = QuadBoostClassifierCV(**GRID, scoring=scoring).fit(table, LABELS)
        assert model.ensemble_.categories == {1: [["p"], ["q"]]}
        assert set(model.predict(table)) == {"yes", "no"}


@pytest.mark.slow
def test_whole_weights_are_repetitions_and_zero_is_no_row():
    repeats = np.random.default_rng(0).integers(0, 4, size=M)
    rows = np.repeat(np.arange(M), repeats)
    split = [(np.flatnonzero(np.arange(M) % 3 != k), np.flatnonzero(np.arange(M) % 3 == k)) for k in range(3)]
    repeated = [(np.flatnonzero(rows % 3 != k), np.flatnonzero(rows % 3 == k)) for k in range(3)]
    for scoring in ("risk", "error", "accuracy"):
        options = {**OPTIONS, **GRID, "scoring": scoring}
        one = QuadBoostClassifierCV(**options, cv=split).fit(X, LABELS, repeats)
        other = QuadBoostClassifierCV(**options, cv=repeated).fit(X[rows], LABELS[rows])
        for name in ("mean_test_score", "std_test_score"):
            np.testing.assert_allclose(one.cv_results_[name], other.cv_results_[name], atol=1e-12)
        assert one.best_params_ == other.best_params_
        np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.thinned(1)
@each
def test_a_splitter_does_not_see_rows_of_weight_zero(search):
    weight = np.random.default_rng(0).integers(0, 3, size=M).astype(float)
    weight[: M // 3] = 0.0  # the whole of a fold, were they seen
    kept, groups = weight > 0, np.arange(M) // 8
    for more in ({"cv": 3}, {"cv": KFold(4)}, {"cv": 3, "groups": groups}):
        one = fitted(search, weight, **more)
        arguments = {**more, "groups": groups[kept]} if "groups" in more else more
        cv, own_groups = arguments["cv"], arguments.get("groups")
        other = search(**{**OPTIONS, **GRID, "cv": cv}).fit(
            X[kept], y_of(search)[kept], weight[kept], groups=own_groups
        )
        np.testing.assert_array_equal(one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])


@pytest.mark.slow
def test_groups_are_never_divided():
    groups = np.arange(M) // 8
    for search, splitter in ((QuadBoostClassifierCV, StratifiedGroupKFold), (QuadBoostRegressorCV, GroupKFold)):
        by_number = fitted(search, groups=groups, cv=4)
        by_splitter = fitted(search, groups=groups, cv=splitter(4))
        by_hand = fitted(search, cv=list(splitter(4).split(X, y_of(search), groups)))
        for found in (by_number, by_splitter):
            np.testing.assert_array_equal(found.cv_results_["mean_test_score"], by_hand.cv_results_["mean_test_score"])


@pytest.mark.slow
def test_groups_reach_a_nested_search():
    groups = np.arange(M) // 8
    with config_context(enable_metadata_routing=True):
        model = QuadBoostClassifierCV(**OPTIONS, **GRID, cv=GroupKFold(3)).set_fit_request(groups=True)
        score = cross_val_score(model, X, LABELS, cv=GroupKFold(4), params={"groups": groups})
    assert np.isfinite(score).all()


def test_splits_may_be_repeated_or_given_as_masks():
    repeated = fitted(QuadBoostClassifierCV, cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0))
    assert "split5_test_score" in repeated.cv_results_
    mask = np.arange(M) % 2 == 0
    one = fitted(QuadBoostClassifierCV, cv=[(mask, ~mask)])
    other = fitted(QuadBoostClassifierCV, cv=[(np.flatnonzero(mask), np.flatnonzero(~mask))])
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    assert np.isnan(one.cv_results_["standard_error"]).all()


@pytest.mark.slow
def test_the_weight_of_a_class_is_that_of_its_rows():
    for changes in ({"scoring": "risk"}, {"scoring": "error", "calibration": None}):  # a link counts examples
        by_class = fitted(QuadBoostClassifierCV, **changes, class_weight={"yes": 3.0})
        by_row = fitted(QuadBoostClassifierCV, np.where(LABELS == "yes", 3.0, 1.0), **changes)
        found, known = (model.cv_results_["mean_test_score"] for model in (by_class, by_row))
        np.testing.assert_allclose(found, known, atol=1e-12)


def test_a_class_may_be_absent_from_the_training_rows():
    order = np.argsort(LABELS, kind="stable")
    model = QuadBoostClassifierCV(**OPTIONS, **GRID, cv=KFold(2), scoring="error").fit(X[order], LABELS[order])
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


@pytest.mark.thinned(1)
@each
def test_a_nested_search_knows_nothing_of_the_rows_held_out(search):
    y = y_of(search)
    train, held_out = np.arange(0, M, 2), np.arange(1, M, 2)
    changed = y.copy()
    changed[held_out] = np.roll(y[held_out], 7)
    outer = [(train, held_out), (held_out, train)]
    model = search(**{**OPTIONS, **GRID, "cv": 3})
    one = cross_val_predict(model, X, y, cv=outer)
    other = cross_val_predict(model, X, changed, cv=outer)
    np.testing.assert_array_equal(one[held_out], other[held_out])
    assert not np.array_equal(one[train], other[train])


@pytest.mark.slow
def test_where_there_is_nothing_to_learn_no_candidate_seems_to_learn():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(M, 20))
    y = rng.normal(size=M)
    model = QuadBoostRegressorCV(max_rounds=200, thresholds_per_fold=True).fit(noise, y)
    assert model.best_score_ > 0.95 * y.var()


@pytest.mark.thinned(1)
@each
def test_features_that_say_nothing_leave_the_constant(search):
    model = search(penalty=["l1", "l2", "linf", None], max_rounds=20).fit(np.ones((M, 2)), y_of(search))
    assert len(model.ensemble_.feature) == 0
    if search is QuadBoostRegressorCV:
        np.testing.assert_allclose(model.predict(np.ones((1, 2))), REAL.mean())
    else:
        assert model.predict(np.zeros((1, 2))).tolist() == [max("yes", "no", key=LABELS.tolist().count)]
