"""The estimators do what scikit-learn's do, and what their attributes say is true."""

from __future__ import annotations

import inspect
import io
import json
import pickle
import tracemalloc

import joblib
import numpy as np
import pandas as pd
import pytest
from comparing import assert_same_model, score
from mixed_table import mixed_table, targets
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.moments.gram import Columns

M = 300
X = mixed_table(M)
Y = targets(X)
REAL = Y + np.random.default_rng(2).normal(size=M)
OPTIONS = {"categorical_features": [4], "max_rounds": 60, "thresholds": 20}
EACH = [QuadBoostClassifier, QuadBoostRegressor]
each = pytest.mark.parametrize("estimator", EACH)


def fitted(estimator, **options):
    y = Y if estimator is QuadBoostClassifier else REAL
    return estimator(**{**OPTIONS, **options}).fit(X, y)


def staged(model, Z):
    return list(model.staged_decision_function(Z) if hasattr(model, "classes_") else model.staged_predict(Z))


# --- scikit-learn -------------------------------------------------------------------------------------------


@parametrize_with_checks([QuadBoostClassifier(), QuadBoostRegressor()])
def test_scikit_learn_has_nothing_to_complain_about(estimator, check):
    check(estimator)


def test_constructor_is_as_documented():
    shared = {
        "penalty": "auto",
        "n_trees": 0,
        "max_leaves": 31,
        "max_conditions": None,
        "growth_rows": 200_000,
        "reg_lambda": "auto",
        "alpha_max": "auto",
        "mode": "corrective",
        "max_rounds": 100_000,
        "thresholds": "auto",
        "spacing": "quantile",
        "fit_intercept": True,
        "reweight_every": "auto",
        "reweight_sweeps": 1,
        "validation_fraction": None,
        "patience": 50,
        "tol": 1e-4,
        "max_voters": None,
        "n_jobs": None,
        "random_state": None,
        "verbose": 0,
    }
    for estimator in EACH:
        parameters = inspect.signature(estimator).parameters
        assert {name: parameters[name].default for name in shared} == shared
        positional = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == ["penalty"]
        for name in parameters:
            assert f"\n    {name} :" in estimator.__doc__ or f", {name}" in estimator.__doc__, name


@pytest.mark.slow
def test_pipeline_grid_search_and_cross_validation():
    data, label = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), QuadBoostClassifier(max_rounds=100))
    grid = {"quadboostclassifier__penalty": ["l1", "l2"], "quadboostclassifier__reg_lambda": [0.01, 0.1]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(data, label)
    assert search.best_score_ > 0.9
    assert cross_val_score(search.best_estimator_, data, label, cv=3).mean() > 0.9
    scores = cross_val_score(QuadBoostRegressor(), *load_diabetes(return_X_y=True), cv=3)
    assert scores.mean() > 0.35


@each
def test_a_clone_has_the_parameters_and_nothing_of_the_fit(estimator):
    model = fitted(estimator, callbacks=[print], warm_start=True)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert vars(copy).keys() == model.get_params().keys()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("way", ["pickle", "joblib", "joblib compressed"])
@each
def test_a_stored_model_predicts_the_same_and_can_go_on(estimator, way, tmp_path):
    model = fitted(estimator, warm_start=True)
    model.predict(X)  # what is kept for scoring must not be in the way
    if way == "pickle":
        copy = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model", compress=3 if "compressed" in way else 0)
        copy = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_array_equal(staged(copy, X), staged(model, X))
    y = Y if estimator is QuadBoostClassifier else REAL
    for one in (model, copy):
        one.set_params(max_rounds=90).fit(X, y)
    assert_same_model(copy, model)


def test_fit_changes_neither_its_data_nor_its_parameters():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 2], "c": np.where(X[:, 1] > 1, "yes", "no")})
    before, y, weight = frame.copy(), Y.copy(), np.arange(M) % 4.0
    frozen = [values.copy() for values in (y, weight)]
    for values in (y, weight):
        values.flags.writeable = False
    model = QuadBoostClassifier(max_rounds=20, validation_fraction=0.2, random_state=0)
    parameters = model.get_params()
    model.fit(frame, y, sample_weight=weight).predict(frame)
    pd.testing.assert_frame_equal(frame, before)
    for values, known in zip((y, weight), frozen, strict=True):
        np.testing.assert_array_equal(values, known)
    assert model.get_params() == parameters


# --- what X can be ------------------------------------------------------------------------------------------


def test_names_of_a_frame_are_kept_and_columns_found_by_name():
    frame = pd.DataFrame(X[:, [0, 2]], columns=["size", "age"])
    model = QuadBoostClassifier(max_rounds=20).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["size", "age"]
    assert model.ensemble_.feature_names == ("size", "age")
    np.testing.assert_array_equal(model.predict(frame[["age", "size"]]), model.predict(frame))
    np.testing.assert_array_equal(score(model, frame[["age", "size"]]), score(model, frame))
    with pytest.raises(ValueError, match="X lacks columns that QuadBoostClassifier was trained on: 'age'"):
        model.predict(frame.rename(columns={"age": "years"}))
    model.fit(X[:, :2], Y)
    assert not hasattr(model, "feature_names_in_")


DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", ">f8", ">i4", "O"]


@pytest.mark.thinned(7)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_real_dtype_gives_the_model_of_the_same_numbers(dtype):
    numbers = (np.arange(M * 3).reshape(M, 3) * 7919) % (2 if dtype == "?" else 50)
    model = QuadBoostClassifier(max_rounds=20).fit(numbers.astype(dtype), Y)
    known = QuadBoostClassifier(max_rounds=20).fit(numbers.astype(float), Y)
    assert_same_model(model, known)
    np.testing.assert_array_equal(score(model, numbers.astype(dtype)), score(known, numbers.astype(float)))


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda X: X[::-1, ::-1][::-1, ::-1], lambda X: np.repeat(X, 2, axis=0)[::2], list]
)
def test_every_layout_gives_the_same_model(layout):
    table = X[:, [0, 1, 2, 7]]
    known = QuadBoostClassifier(max_rounds=20).fit(table, Y)
    model = QuadBoostClassifier(max_rounds=20).fit(layout(table), Y)
    assert_same_model(model, known)
    np.testing.assert_array_equal(score(model, layout(table)), score(known, table))


@pytest.mark.thinned(1)
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_table_of_floats_is_not_copied(layout, dtype):
    table = layout(np.random.default_rng(0).normal(size=(40_000, 60)).astype(dtype))
    y = np.where(table[:, 0] > 0, 1, -1)
    model = QuadBoostClassifier(thresholds=15, max_rounds=20, n_jobs=1)
    tracemalloc.start()
    model.fit(table, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    model.decision_function(table)
    peak_of_scores = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    a_few_columns = 15 * 8 * len(table)  # half the table in single precision, a quarter in double
    assert peak < table.size + a_few_columns  # a byte for every value
    assert peak_of_scores < 3 * 8 * len(table)


# --- labels and class weights -------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        [0, 1],
        [-1, 1],
        [7, 3],
        [False, True],
        [0.0, 1.0],
        np.array(["a", "b"], dtype=object),
        pd.Categorical(["low", "high"]),
    ],
)
def test_any_two_labels(labels):
    given = np.asarray(labels)[(Y > 0).astype(int)]
    model = QuadBoostClassifier(**OPTIONS).fit(X, given)
    np.testing.assert_array_equal(model.classes_, np.unique(given))
    label = model.predict(X)
    assert label.dtype == np.unique(given).dtype
    np.testing.assert_array_equal(label, model.classes_[(model.decision_function(X) > 0).astype(int)])
    np.testing.assert_array_equal(label, model.classes_[model.predict_proba(X).argmax(axis=1)])
    sign = 1 if model.classes_[1] == given[Y > 0][0] else -1
    np.testing.assert_allclose(sign * model.decision_function(X), score(fitted(QuadBoostClassifier), X), atol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        list,
        pd.Series,
        lambda y: pd.Series(y).astype("string"),
        lambda y: pd.Series(y).astype("category"),
        lambda y: np.asarray(y)[::-1][::-1],
    ],
)
def test_labels_in_any_container(make):
    labels = np.where(Y > 0, "yes", "no")
    model = QuadBoostClassifier(**OPTIONS).fit(X, make(labels))
    np.testing.assert_array_equal(model.predict(X), QuadBoostClassifier(**OPTIONS).fit(X, labels).predict(X))


# "auto" counts examples by their own weights, not by those of their classes; so does calibration.
PENALISED = {**OPTIONS, "reg_lambda": 0.01, "calibration": None}


def test_class_weights_are_weights_of_the_rows():
    labels = np.where(Y + X[:, 0] > 1, "rare", "common")
    share = np.mean(labels == "rare")
    assert 0.05 < share < 0.4
    cost = {"rare": 3.0, "common": 1.0}
    by_class = QuadBoostClassifier(**PENALISED, class_weight=cost).fit(X, labels)
    by_row = QuadBoostClassifier(**PENALISED).fit(X, labels, sample_weight=np.where(labels == "rare", 3.0, 1.0))
    assert_same_model(by_class, by_row)
    default = QuadBoostClassifier(**PENALISED, class_weight={"rare": 3.0}).fit(X, labels)  # the others weigh 1
    assert_same_model(default, by_row)
    weight = np.where(labels == "rare", 1 / (2 * share), 1 / (2 * (1 - share)))
    balanced = QuadBoostClassifier(**PENALISED, class_weight="balanced").fit(X, labels)
    known = QuadBoostClassifier(**PENALISED).fit(X, labels, sample_weight=weight)
    np.testing.assert_allclose(score(balanced, X), score(known, X), rtol=0, atol=1e-8)
    # Balanced, neither class is more likely without further knowledge.
    constant = QuadBoostClassifier(**{**PENALISED, "reg_lambda": 10.0}, class_weight="balanced").fit(X, labels)
    assert constant.intercept_ == pytest.approx(0, abs=1e-9)  # class weights are rounded


def test_class_weights_count_beside_sample_weights_and_for_validation():
    labels, weight = Y.astype(int), 1.0 + np.arange(M) % 3
    rows, held_out = slice(0, 200), slice(200, M)
    model = QuadBoostClassifier(**PENALISED, class_weight={1: 2.0, -1: 1.0}).fit(
        X[rows], labels[rows], weight[rows], X[held_out], labels[held_out], sample_weight_val=weight[held_out]
    )
    total = weight * np.where(labels == 1, 2.0, 1.0)
    known = QuadBoostClassifier(**PENALISED).fit(
        X[rows], labels[rows], total[rows], X[held_out], labels[held_out], sample_weight_val=total[held_out]
    )
    assert_same_model(model, known)


# --- several outputs ----------------------------------------------------------------------------------------


def each_output(model, n_outputs):
    """Weights of each output for every voter that has one, by its name."""
    ensemble = model.ensemble_
    names = list(zip(ensemble.feature.tolist(), ensemble.kind.tolist(), ensemble.threshold.tolist(), strict=True))
    weight = ensemble.weight.reshape(len(names), n_outputs)
    return [{name: w for name, w in zip(names, column, strict=True) if w != 0} for column in weight.T.tolist()]


def test_several_classes_are_one_against_the_rest_each():
    labels = np.digitize(REAL, [-1, 0, 1])
    model = QuadBoostClassifier(**OPTIONS, calibration=None).fit(X, labels)
    scores = model.decision_function(X)
    assert scores.shape == (M, 4)
    for c, weights in enumerate(each_output(model, 4)):
        one = QuadBoostClassifier(**OPTIONS, calibration=None).fit(X, labels == c)
        assert each_output(one, 1)[0] == weights
        assert model.intercept_[c] == one.intercept_
        assert model.reg_lambda_[c] == one.reg_lambda_
        np.testing.assert_array_equal(model.history_[c]["risk"], one.history_["risk"])
        np.testing.assert_allclose(scores[:, c], one.decision_function(X), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    stages = staged(model, X)
    assert len(stages) == max(model.n_rounds_)
    np.testing.assert_allclose(stages[-1], scores, rtol=0, atol=1e-12)


def test_several_targets_are_each_by_itself():
    both = np.column_stack([REAL, 3 * Y - X[:, 0]])
    model = QuadBoostRegressor(**OPTIONS).fit(X, both)
    assert model.predict(X).shape == both.shape
    for output, weights in enumerate(each_output(model, 2)):
        one = QuadBoostRegressor(**OPTIONS).fit(X, both[:, output])
        assert each_output(one, 1)[0] == weights
        assert model.intercept_[output] == one.intercept_
    alone = QuadBoostRegressor(**OPTIONS).fit(X, both[:, :1])
    assert alone.predict(X).shape == (M, 1)
    np.testing.assert_array_equal(alone.predict(X)[:, 0], QuadBoostRegressor(**OPTIONS).fit(X, REAL).predict(X))


def test_ten_classes_share_their_gram_columns(monkeypatch):
    stores = []
    make = Columns.__init__

    def spy(self, *arguments):
        stores.append(self)
        make(self, *arguments)

    monkeypatch.setattr(Columns, "__init__", spy)
    data, label = load_digits(return_X_y=True)
    model = QuadBoostClassifier(reg_lambda=0.003, max_rounds=300).fit(data, label)
    assert sum(model.n_rounds_) > 2_000
    assert len(stores) == 1  # each class begins with the columns that those before it had made
    assert stores[0]._n_columns < stores[0]._most  # none had to make room
    made = np.flatnonzero(stores[0].store.address).tolist()
    drawn = [set(history["voter"].tolist()) for history in model.history_]
    assert set(made) <= set().union(*drawn)
    assert sum(map(len, drawn)) > 1.2 * len(made)  # or there would be nothing to share


@pytest.mark.thinned(1)
@pytest.mark.parametrize(("load", "least"), [(load_iris, 0.9), (load_wine, 0.93), (load_digits, 0.9)])
def test_known_classes_are_learnt_and_probabilities_are_normalised(load, least):
    data, label = load(return_X_y=True)
    odd = np.arange(len(label)) % 2 == 1
    model = QuadBoostClassifier(max_rounds=500).fit(data[odd], label[odd])
    probability = model.predict_proba(data[~odd])
    assert model.score(data[~odd], label[~odd]) > least
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.all(probability >= 0)
    np.testing.assert_array_equal(model.predict(data[~odd]), model.classes_[probability.argmax(axis=1)])


# --- targets of a regression --------------------------------------------------------------------------------


def test_lambda_is_in_the_units_of_the_target():
    plain, larger = (QuadBoostRegressor(**OPTIONS, reg_lambda=0.01 * unit).fit(X, unit * REAL) for unit in (1, 8))
    np.testing.assert_allclose(larger.predict(X), 8 * plain.predict(X), rtol=1e-12)
    automatic = QuadBoostRegressor(**OPTIONS).fit(X, REAL), QuadBoostRegressor(**OPTIONS).fit(X, 8 * REAL)
    assert automatic[1].reg_lambda_ == pytest.approx(8 * automatic[0].reg_lambda_)
    l2 = [QuadBoostRegressor(**OPTIONS, penalty="l2", reg_lambda=0.3).fit(X, unit * REAL).predict(X) for unit in (1, 8)]
    np.testing.assert_allclose(l2[1], 8 * l2[0], rtol=1e-12)


@pytest.mark.parametrize("penalty", [{"reg_lambda": 0.05}, {"penalty": "linf", "alpha_max": 0.02}])
def test_standardized_targets_make_penalties_mean_the_same_for_each(penalty):
    options = {**OPTIONS, **penalty, "standardize": True, "validation_fraction": 0.2, "random_state": 0}
    known = QuadBoostRegressor(**options).fit(X, REAL)
    both = QuadBoostRegressor(**options).fit(X, np.column_stack([REAL, 1000 * REAL + 7]))
    np.testing.assert_allclose(both.predict(X)[:, 0], known.predict(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.predict(X)[:, 1], 1000 * known.predict(X) + 7, rtol=0, atol=1e-9)
    np.testing.assert_allclose(staged(both, X)[-1], both.predict(X), rtol=0, atol=1e-9)
    by_hand = QuadBoostRegressor(**{**options, "standardize": False}).fit(X, REAL / REAL.std())
    np.testing.assert_allclose(known.predict(X), REAL.std() * by_hand.predict(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_a_large_mean_of_the_target_changes_the_intercept_alone(offset):
    known = fitted(QuadBoostRegressor)
    model = QuadBoostRegressor(**OPTIONS).fit(X, REAL + offset)
    noise = 1e-15 * offset  # the targets themselves are rounded that much
    np.testing.assert_allclose(model.predict(X) - offset, known.predict(X), rtol=0, atol=1e-9 + 10 * noise)
    np.testing.assert_allclose(model.history_["risk"], known.history_["risk"], rtol=1e-9 + 10 * noise)


@pytest.mark.parametrize("unit", [1e-100, 1e-12, 1e12, 1e100])
def test_the_unit_of_the_target_does_not_matter(unit):
    known = fitted(QuadBoostRegressor)
    np.testing.assert_allclose(
        QuadBoostRegressor(**OPTIONS).fit(X, REAL * unit).predict(X) / unit, known.predict(X), rtol=1e-9
    )


def test_a_constant_target_is_predicted():
    for options in ({}, {"standardize": True}, {"penalty": None}, {"validation_fraction": 0.3}):
        model = QuadBoostRegressor(**OPTIONS, **options).fit(X, np.full(M, 3.7))
        np.testing.assert_allclose(model.predict(X), 3.7, rtol=1e-15)


def test_a_table_without_a_voter_predicts_the_mean():
    constant = np.ones((M, 2))
    model = QuadBoostRegressor().fit(constant, REAL)
    np.testing.assert_allclose(model.predict(constant), REAL.mean())
    assert (model.n_rounds_, model.stop_reason_) == (0, "converged")
    assert staged(model, constant) == []
    np.testing.assert_array_equal(model.feature_importances_, 0)
    assert model.reg_lambda_ == 0.0


# --- what else a model tells --------------------------------------------------------------------------------


def test_importance_is_how_much_a_feature_moves_the_scores():
    model = fitted(QuadBoostClassifier)
    spread = np.zeros(X.shape[1])
    for shape in model.ensemble_.shape_functions():
        alone = np.full_like(X, np.nan)
        alone[:, shape.feature] = X[:, shape.feature]
        empty = [other.missing for other in model.ensemble_.shape_functions() if other.feature != shape.feature]
        spread[shape.feature] = np.std(model.decision_function(alone) - np.sum(empty))
    np.testing.assert_allclose(model.feature_importances_, spread / spread.sum(), rtol=0, atol=1e-12)
    assert model.feature_importances_.argmax() in (0, 2)
    np.testing.assert_array_equal(model.feature_importances_[[3, 6]], 0)  # never change


def test_importances_of_weighted_rows_and_several_outputs_add_up_to_one():
    weight = np.random.default_rng(0).uniform(size=M)
    model = QuadBoostClassifier(**OPTIONS).fit(X, np.digitize(REAL, [-1, 1]), sample_weight=weight)
    assert model.feature_importances_.shape == (X.shape[1],)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.slow
def test_what_is_kept_with_the_model_is_json():
    model = fitted(QuadBoostClassifier, random_state=np.random.RandomState(0), callbacks=[print])
    info = json.loads(json.dumps(model.ensemble_.info, allow_nan=False))
    assert info["rows"] == M
    assert info["parameters"]["max_rounds"] == 60
    assert info["outputs"][0]["rounds"] == model.n_rounds_


def test_a_step_before_in_a_pipeline_may_make_a_frame():
    names = FunctionTransformer(lambda Z: pd.DataFrame(Z, columns=list("abcdefgh")))
    pipeline = make_pipeline(names, QuadBoostClassifier(max_rounds=20)).fit(X, Y)
    assert pipeline[-1].feature_names_in_.tolist() == list("abcdefgh")
    buffer = io.BytesIO()
    joblib.dump(pipeline[-1], buffer)


def test_a_callback_stops_each_of_several_outputs_by_itself():
    labels = np.digitize(REAL, [-1, 1])
    model = QuadBoostClassifier(
        penalty="l2", max_rounds=50, callbacks=[lambda round, risk, _: round >= 20], callback_every=5
    ).fit(X, labels)
    assert model.n_rounds_ == [20, 20, 20]


@pytest.mark.parametrize("make", [lambda y: y.astype("datetime64[D]"), lambda y: y.astype(np.longdouble)])
def test_labels_that_no_file_could_hold_are_refused_before_the_fit(make):
    with pytest.raises((ValueError, TypeError), match=r"make them text, with y.astype\(str\)"):
        QuadBoostClassifier().fit(X, make((REAL > 0).astype(int)))


def test_labels_in_an_object_array():
    known = QuadBoostClassifier(**OPTIONS).fit(X, (REAL > 0).astype(int))
    assert_same_model(QuadBoostClassifier(**OPTIONS).fit(X, (REAL > 0).astype(int).astype(object)), known)
    with pytest.raises(ValueError, match=r"labels of different types \(int, str\)"):
        QuadBoostClassifier().fit(X, np.array([1, "a"] * (M // 2), dtype=object))
