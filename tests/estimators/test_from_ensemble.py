"""A model that was loaded from its file is a fitted estimator again."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from mixed_table import mixed_table, targets
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer
from sklearn.utils.validation import check_is_fitted

import quadboost
from quadboost import Ensemble, QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV

M = 200
X = pd.DataFrame(mixed_table(M)[:, [0, 1, 2, 7]], columns=["a", "b", "c", "d"])
X["text"] = np.where(X["b"] > 1, "p", "q")
SCORE = targets(mixed_table(M)) + np.random.default_rng(2).normal(size=M)
LABELS = np.where(SCORE > 0, "yes", "no")
THREE = np.digitize(SCORE, [-1, 1])
BOTH = np.column_stack([SCORE, X["a"]])

FITS = {
    "two classes": (QuadBoostClassifier, LABELS),
    "three classes": (QuadBoostClassifier, THREE),
    "a target": (QuadBoostRegressor, SCORE),
    "two targets": (QuadBoostRegressor, BOTH),
}
each_fit = pytest.mark.parametrize(("estimator", "y"), FITS.values(), ids=FITS.keys())


@pytest.fixture
def loaded(tmp_path):
    """Fit, save, load, and make an estimator of what was loaded: the one that was saved, and the new one."""

    def make(estimator, y, table=X, **options):
        saved = estimator(max_rounds=40, **options).fit(table, y)
        saved.save(tmp_path / "model.h5")
        return saved, estimator.from_ensemble(quadboost.load(tmp_path / "model.h5"))

    return make


@each_fit
def test_a_loaded_estimator_predicts_the_bits_of_the_saved_one(estimator, y, loaded):
    saved, model = loaded(estimator, y)
    check_is_fitted(model)
    names = ["predict", "decision_function", "predict_proba"] if is_classifier(model) else ["predict"]
    for name in names:
        found, known = getattr(model, name)(X), getattr(saved, name)(X)
        np.testing.assert_array_equal(found, known)
        assert found.dtype == known.dtype
    assert model.score(X, y) == saved.score(X, y)


@each_fit
def test_a_loaded_estimator_knows_its_columns_and_classes(estimator, y, loaded):
    saved, model = loaded(estimator, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d", "text"]
    assert model.n_features_in_ == 5
    np.testing.assert_array_equal(model.intercept_, saved.intercept_)
    np.testing.assert_array_equal(model.feature_importances_, saved.feature_importances_)
    assert hasattr(model, "classes_") == is_classifier(estimator())
    if is_classifier(model):
        np.testing.assert_array_equal(model.classes_, saved.classes_)
        assert model.classes_.dtype == saved.classes_.dtype


def test_without_names_it_has_none(loaded):
    _, model = loaded(QuadBoostClassifier, LABELS, X[["a", "b"]].to_numpy())
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


@pytest.mark.thinned(1)
@pytest.mark.parametrize(
    ("estimator", "y", "scorer"),
    [
        (QuadBoostClassifier, LABELS == "yes", "roc_auc"),
        (QuadBoostClassifier, LABELS, "neg_log_loss"),
        (QuadBoostClassifier, THREE, "roc_auc_ovr"),
        (QuadBoostRegressor, SCORE, "neg_mean_absolute_error"),
        (QuadBoostRegressor, BOTH, "r2"),
    ],
)
def test_scorers_and_importances_of_scikit_learn_take_it(estimator, y, scorer, loaded):
    saved, model = loaded(estimator, y)
    assert get_scorer(scorer)(model, X, y) == get_scorer(scorer)(saved, X, y)
    found, known = (
        permutation_importance(one, X, y, scoring=scorer, n_repeats=2, random_state=0) for one in (model, saved)
    )
    np.testing.assert_array_equal(found.importances, known.importances)
    assert found.importances_mean.max() > 0


def test_probabilities_of_a_loaded_estimator_can_be_calibrated(loaded):
    saved, model = loaded(QuadBoostClassifier, LABELS)
    found, known = (CalibratedClassifierCV(FrozenEstimator(one), cv=3).fit(X, LABELS) for one in (model, saved))
    np.testing.assert_array_equal(found.predict_proba(X), known.predict_proba(X))
    assert found.score(X, LABELS) > 0.7


@each_fit
def test_copies_predict_the_same_and_a_clone_is_not_fitted(estimator, y, loaded):
    _, model = loaded(estimator, y)
    for copy in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_a_loaded_estimator_can_be_saved_again(loaded, tmp_path):
    _, model = loaded(QuadBoostClassifier, LABELS)
    before = (tmp_path / "model.h5").read_bytes()
    model.save(tmp_path / "again.h5")
    assert (tmp_path / "again.h5").read_bytes() == before


def test_parameters_are_those_given_or_the_defaults(loaded):
    saved, model = loaded(QuadBoostClassifier, LABELS, penalty="l2")
    assert model.get_params() == QuadBoostClassifier().get_params()
    other = QuadBoostClassifier.from_ensemble(saved.ensemble_, n_jobs=1, max_rounds=7)
    assert (other.n_jobs, other.max_rounds) == (1, 7)
    with pytest.raises(TypeError, match="rounds"):
        QuadBoostClassifier.from_ensemble(saved.ensemble_, rounds=7)


@each_fit
def test_a_fit_begins_anew(estimator, y, loaded):
    saved, model = loaded(estimator, y)
    model.set_params(max_rounds=40, warm_start=True).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), saved.predict(X))
    assert model.n_rounds_ == saved.n_rounds_


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            QuadBoostRegressor,
            QuadBoostClassifier,
            "predicts targets, and QuadBoostClassifier labels; use the other estimator",
        ),
        (
            QuadBoostClassifier,
            QuadBoostRegressor,
            "predicts labels, and QuadBoostRegressor targets; use the other estimator",
        ),
    ],
)
def test_a_model_of_the_other_kind_is_refused(right, wrong, message):
    ensemble = right(max_rounds=5).fit(X, THREE).ensemble_
    with pytest.raises(ValueError, match=message):
        wrong.from_ensemble(ensemble)


@each_fit
def test_stages_are_known_to_the_fit_alone(estimator, y, loaded):
    _, model = loaded(estimator, y)
    staged = model.staged_decision_function if is_classifier(model) else model.staged_predict
    with pytest.raises(AttributeError, match="a model from a file has no stages"):
        next(iter(staged(X)))
    assert not hasattr(model, "history_")


@pytest.mark.parametrize(
    ("search", "plain", "y"),
    [(QuadBoostClassifierCV, QuadBoostClassifier, LABELS), (QuadBoostRegressorCV, QuadBoostRegressor, SCORE)],
)
def test_what_a_search_saved_is_a_plain_estimator_again(search, plain, y, tmp_path):
    found = search(reg_lambda=[0.05], rounds=[10], cv=3).fit(X, y)
    found.save(tmp_path / "model.h5")
    model = plain.from_ensemble(quadboost.load(tmp_path / "model.h5"))
    np.testing.assert_array_equal(model.predict(X), found.predict(X))


def test_importances_of_a_stranger_are_checked():
    ensemble = Ensemble([0], [0.5], np.ones(1), 0.0, n_features=2, info={"feature_importances": [[1], [2, 3]]})
    assert not hasattr(QuadBoostRegressor.from_ensemble(ensemble), "feature_importances_")


def test_an_estimator_predicts_by_the_link_of_its_model():
    X = np.array([[0.0], [1.0], [np.nan]])
    two = Ensemble([0], [0.5], [2.0], 0.25, n_features=1, classes=np.array(["a", "b"]), link="logit", slope=4.0)
    classifier = QuadBoostClassifier.from_ensemble(two)
    score = np.array([-1.75, 2.25, 0.25])
    np.testing.assert_array_equal(classifier.decision_function(X), score)
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], 1 / (1 + np.exp(-score)), rtol=1e-13)
    assert classifier.predict(X).tolist() == ["a", "b", "b"]
    counts = Ensemble([0], [0.5], [2.0], 0.25, n_features=1, loss="poisson", link="log")
    np.testing.assert_allclose(QuadBoostRegressor.from_ensemble(counts).predict(X), np.exp(score), rtol=1e-13)
