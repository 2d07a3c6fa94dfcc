"""Weights, missing values, categories, order of rows and threads: what must not change a bit does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from comparing import assert_same_model, score
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mixed_table import CATEGORIES, mixed_table, targets
from reference import LEVEL, MISSING, voter_matrix

import quadboost.common.threads
import quadboost.fitting.training
import quadboost.model.ensemble
import quadboost.moments.gram
from quadboost import QuadBoostClassifier, QuadBoostRegressor, boost, moments_from_matrix

NAN = np.nan
LETTERS = ["a", "b", "c", "d", None]
PENALTIES = [
    {"penalty": "l1"},
    {"penalty": "l1", "reg_lambda": 0.01, "reweight_every": 3},
    {"penalty": None, "mode": "forward"},
    {"penalty": "l2", "fit_intercept": False},
    {"penalty": "linf", "spacing": "uniform", "thresholds": 3},
]


REAL = st.floats(-100, 100).map(lambda y: y if abs(y) > 1e-100 else 0.0)  # a smaller range is refused


@st.composite
def frames(draw, elements):
    """A number with ties and missing values, a category with rare levels, and targets."""
    m = draw(st.integers(3, 14))
    number = draw(arrays(float, m, elements=st.sampled_from([0.0, 1.0, 1.5, 2.25, 7.0, NAN])))
    other = draw(arrays(float, m, elements=st.integers(0, 3).map(float)))
    letter = draw(st.lists(st.sampled_from(LETTERS), min_size=m, max_size=m))
    frame = pd.DataFrame({"x": number, "z": other, "c": pd.Series(letter, dtype="str")})
    y = draw(arrays(float, m, elements=elements))
    count = draw(arrays(int, m, elements=st.sampled_from([0, 1, 1, 2, 3, 10])))
    assume(count.sum() > 0)
    assume(frame["c"][count > 0].notna().any())  # before pandas 3 nothing else says that it is text
    return frame, y, count


options = st.sampled_from(PENALTIES).flatmap(
    lambda penalty: st.sampled_from([{"max_rounds": 25, "min_category_count": n, **penalty} for n in (1, 2, 5)])
)


@given(frames(st.sampled_from([-1.0, 1.0])), options)
def test_an_integer_weight_is_a_repetition_for_a_classifier(data, options):
    frame, y, count = data
    assume(len(np.unique(y[count > 0])) == 2)
    rows = np.repeat(np.arange(len(y)), count)
    weighted = QuadBoostClassifier(**options).fit(frame, y, sample_weight=count)
    assert_same_model(weighted, QuadBoostClassifier(**options).fit(frame.iloc[rows], y[rows]))


@given(frames(REAL), options)
def test_an_integer_weight_is_a_repetition_for_a_regressor(data, options):
    frame, y, count = data
    rows = np.repeat(np.arange(len(y)), count)
    weighted = QuadBoostRegressor(**options).fit(frame, y, sample_weight=count)
    assert_same_model(weighted, QuadBoostRegressor(**options).fit(frame.iloc[rows], y[rows]))


@given(frames(REAL), options, st.data())
def test_a_weight_of_zero_is_no_row(data, options, draw):
    frame, y, count = data
    real = draw.draw(arrays(float, len(y), elements=st.floats(0.01, 10)))
    weight, kept = np.where(count > 0, real, 0.0), count > 0
    for estimator, target in ((QuadBoostRegressor, y), (QuadBoostClassifier, np.sign(y))):
        if estimator is QuadBoostClassifier and len(np.unique(target[kept])) < 2:
            continue
        weighted = estimator(**options).fit(frame, target, sample_weight=weight)
        assert_same_model(weighted, estimator(**options).fit(frame[kept], target[kept], sample_weight=weight[kept]))


M = 400
X = mixed_table(M)
Y = targets(X)
REAL = Y + np.random.default_rng(2).normal(size=M)
REAL_WEIGHT = np.random.default_rng(3).uniform(0.1, 3, size=M)
OPTIONS = {"categorical_features": [4], "max_rounds": 60, "thresholds": 20}


@pytest.mark.parametrize(
    "special",
    [{}, {"standardize": True}, {"thresholds": "all"}, {"thresholds": 5, "spacing": "uniform"}],
    ids=["plain", "standardize", "all", "uniform"],
)
def test_an_integer_weight_is_a_repetition_in_a_larger_table(special):
    count = np.random.default_rng(1).integers(0, 4, size=M)
    rows = np.repeat(np.arange(M), count)
    weighted = QuadBoostRegressor(**{**OPTIONS, **special}).fit(X, REAL, sample_weight=count)
    assert_same_model(weighted, QuadBoostRegressor(**{**OPTIONS, **special}).fit(X[rows], REAL[rows]))


@pytest.mark.parametrize(
    "class_weight", ["balanced", {1: 2.0, -1: 3.0}, {1: 0.3, -1: 0.7}], ids=["balanced", "whole", "real"]
)
def test_an_integer_weight_is_a_repetition_beside_class_weights(class_weight):
    count = np.random.default_rng(1).integers(0, 4, size=M)
    rows, labels = np.repeat(np.arange(M), count), Y.astype(int)
    weighted, repeated = (QuadBoostClassifier(**OPTIONS, class_weight=class_weight) for _ in range(2))
    assert_same_model(weighted.fit(X, labels, sample_weight=count), repeated.fit(X[rows], labels[rows]))


def test_integer_weights_are_repetitions_for_validation_rows_too():
    count = np.random.default_rng(1).integers(0, 4, size=M)
    train, held_out = np.arange(250), np.arange(250, M)
    rows, rows_val = np.repeat(train, count[train]), np.repeat(held_out, count[held_out])
    weighted = QuadBoostRegressor(**OPTIONS, penalty=None).fit(
        X[train], REAL[train], count[train], X[held_out], REAL[held_out], sample_weight_val=count[held_out]
    )
    repeated = QuadBoostRegressor(**OPTIONS, penalty=None).fit(X[rows], REAL[rows], None, X[rows_val], REAL[rows_val])
    assert_same_model(weighted, repeated)


@pytest.mark.parametrize("make", [np.asarray, list, pd.Series, lambda w: w.astype(np.float32), lambda w: w.astype(int)])
def test_weights_in_any_container(make):
    count = 1.0 + np.arange(M) % 3
    known = QuadBoostClassifier(**OPTIONS).fit(X, Y, sample_weight=count)
    assert_same_model(QuadBoostClassifier(**OPTIONS).fit(X, Y, sample_weight=make(count)), known)


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: np.column_stack(list(columns.values()))]
)
def test_rows_of_weight_zero_are_left_out_of_any_table(make):
    table = make({"a": X[:, 0], "b": X[:, 1], "z": X[:, 7]})
    weight = np.arange(M) % 3.0
    known = QuadBoostClassifier(max_rounds=20).fit(X[weight > 0][:, [0, 1, 7]], Y[weight > 0], weight[weight > 0])
    assert_same_model(QuadBoostClassifier(max_rounds=20).fit(table, Y, sample_weight=weight), known)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6, 1e12])
def test_the_scale_of_the_weights_does_not_matter(scale):
    options = {**OPTIONS, "reg_lambda": 0.01}
    known = QuadBoostRegressor(**options).fit(X, REAL, sample_weight=REAL_WEIGHT)
    model = QuadBoostRegressor(**options).fit(X, REAL, sample_weight=scale * REAL_WEIGHT)
    np.testing.assert_array_equal(model.ensemble_.threshold, known.ensemble_.threshold)
    np.testing.assert_allclose(model.predict(X), known.predict(X), rtol=0, atol=1e-9)


def test_equal_weights_are_no_weights():
    options = {**OPTIONS, "thresholds": "all", "reg_lambda": 0.01}
    known = QuadBoostRegressor(**options).fit(X, REAL)
    for weight in (1.0, 0.25, np.full(M, 3.7)):
        model = QuadBoostRegressor(**options).fit(X, REAL, sample_weight=weight)
        np.testing.assert_allclose(model.predict(X), known.predict(X), rtol=0, atol=1e-10)


# --- order of rows, threads ---------------------------------------------------------------------------------

FITS = {
    "classifier": (QuadBoostClassifier, {}, Y, None),
    "several classes": (QuadBoostClassifier, {}, np.digitize(REAL, [-1, 1]), None),
    "balanced": (QuadBoostClassifier, {"class_weight": "balanced"}, Y, None),
    "balanced and weighted": (QuadBoostClassifier, {"class_weight": "balanced"}, Y, REAL_WEIGHT),
    "regressor": (QuadBoostRegressor, {}, REAL, None),
    "weighted regressor": (QuadBoostRegressor, {}, REAL, REAL_WEIGHT),
    "standardized": (QuadBoostRegressor, {"standardize": True}, np.column_stack([REAL, 5 * Y + X[:, 0]]), REAL_WEIGHT),
    "all thresholds": (QuadBoostRegressor, {"thresholds": "all", "reweight_every": 10}, REAL, REAL_WEIGHT),
    "evenly spaced": (QuadBoostRegressor, {"spacing": "uniform", "penalty": "l2"}, REAL, REAL_WEIGHT),
}
each_fit = pytest.mark.parametrize(("estimator", "options", "y", "weight"), FITS.values(), ids=FITS.keys())


@pytest.mark.thinned(2)
@each_fit
def test_the_order_of_rows_changes_no_bit(estimator, options, y, weight):
    known = estimator(**{**OPTIONS, **options}).fit(X, y, sample_weight=weight)
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(M)
        permuted = None if weight is None else weight[order]
        model = estimator(**{**OPTIONS, **options}).fit(X[order], y[order], sample_weight=permuted)
        assert_same_model(model, known)
        np.testing.assert_array_equal(model.reg_lambda_, known.reg_lambda_)


@pytest.fixture
def threads_for_everything(monkeypatch):
    monkeypatch.setattr(quadboost.common.threads, "STEPS_FOR_THREADS", 0)
    monkeypatch.setattr(quadboost.model.ensemble, "CELLS_FOR_THREADS", 0)


@pytest.mark.thinned
@pytest.mark.parametrize("n_jobs", [2, 4, None])
@each_fit
def test_threads_change_no_bit(estimator, options, y, weight, n_jobs, threads_for_everything):
    known, model = (estimator(**{**OPTIONS, **options}, n_jobs=n).fit(X, y, sample_weight=weight) for n in (1, n_jobs))
    assert_same_model(model, known)
    np.testing.assert_array_equal(score(model, X), score(known, X))


FINGERPRINT = """
import hashlib, numpy as np
from quadboost import boost
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters
from quadboost.common.threads import resolve_threads
n_threads = resolve_threads({n_jobs})
rng = np.random.default_rng(0)
X = rng.normal(size=(30_000, 12))
X[rng.random(X.shape) < 0.1] = np.nan
y, weight = np.nan_to_num(X).sum(axis=1) + rng.normal(size=30_000), rng.uniform(0.1, 2, size=30_000)
stumps = candidate_voters(X, weight, n_threads=n_threads)
moments = column_moments(stumps, stumps.code(X, n_threads), y, weight, n_threads=n_threads)
found = boost(moments, "l1", reg_lambda=0.001, max_rounds=100, fit_intercept=True)
parts = *stumps.cuts, found.weight, found.edge, found.history["risk"]
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


@pytest.mark.slow
def test_whatever_openmp_does_changes_no_bit(run_python):
    """More threads than cores, fewer than asked for, and as many as the environment says."""
    known = run_python(FINGERPRINT.format(n_jobs=1))
    for n_jobs, environment in [
        (8, {"OMP_WAIT_POLICY": "passive"}),
        (4, {"OMP_THREAD_LIMIT": "3", "OMP_DYNAMIC": "true"}),
        (None, {"OMP_NUM_THREADS": "2"}),
    ]:
        assert run_python(FINGERPRINT.format(n_jobs=n_jobs), **environment) == known


# --- missing values and categories --------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", [{"reg_lambda": 0.01}, {"penalty": "l2", "reg_lambda": 0.1, "mode": "forward"}])
def test_missing_values_and_categories_are_voters_of_an_explicit_matrix(penalty, fit_intercept):
    model = QuadBoostRegressor(**{**OPTIONS, **penalty}, fit_intercept=fit_intercept).fit(X, REAL)
    feature, kind, threshold = model._voters.describe(np.arange(model._voters.n_voters))
    assert set(feature[kind == MISSING]) == {2, 4, 5}
    assert set(feature[kind == LEVEL]) == {4}
    H = voter_matrix(X, feature, kind, threshold, CATEGORIES)
    known = boost(
        moments_from_matrix(H, REAL), **{"penalty": "l1", **penalty}, fit_intercept=fit_intercept, max_rounds=60
    )
    np.testing.assert_array_equal(model.history_["voter"], known.history["voter"])
    np.testing.assert_allclose(model.history_["risk"], known.history["risk"], rtol=1e-11)
    np.testing.assert_allclose(model.predict(X), known.intercept + H @ known.weight, rtol=0, atol=1e-11)
    assert {MISSING, LEVEL} <= set(model.ensemble_.kind)


@pytest.mark.parametrize("missing", [NAN, None, pd.NA, pd.NaT])
def test_every_way_to_say_missing_is_the_same(missing):
    table = X[:, [0, 5]]
    with_missing = table.astype(object)
    with_missing[np.isnan(table)] = missing
    known = QuadBoostClassifier(reg_lambda=0.01, max_rounds=20).fit(table, Y)
    assert MISSING in known.ensemble_.kind
    assert_same_model(QuadBoostClassifier(reg_lambda=0.01, max_rounds=20).fit(with_missing, Y), known)


def test_a_feature_that_was_never_missing_abstains_at_predict():
    model = QuadBoostClassifier(max_rounds=20).fit(X[:, :2], Y)
    shapes = {shape.feature: shape for shape in model.ensemble_.shape_functions()}
    assert shapes.keys() == {0, 1}
    assert model.decision_function([[NAN, NAN]])[0] == pytest.approx(model.intercept_, abs=1e-15)
    assert shapes[0].missing == 0.0


def test_a_column_without_a_value_has_no_voter_and_harms_nobody():
    with_nothing = np.column_stack([X[:, 0], np.full(M, NAN)])
    model = QuadBoostClassifier(max_rounds=20).fit(with_nothing, Y)
    assert set(model.ensemble_.feature) == {0}
    other = np.column_stack([X[:, 0], np.arange(M)])
    np.testing.assert_array_equal(model.predict(other), model.predict(with_nothing))
    frame = pd.DataFrame({"x": X[:, 0], "c": pd.Series([None] * M, dtype="str")})
    assert set(QuadBoostClassifier(max_rounds=20).fit(frame, Y).ensemble_.feature) == {0}


def mixed_frame():
    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo", "Lima", "Cork"], size=M, p=[0.5, 0.3, 0.195, 0.005])
    frame = pd.DataFrame({"city": city, "paid": rng.random(M) < 0.5, "age": rng.normal(size=M)})
    frame["plan"] = pd.Categorical(rng.choice(["x", "y"], size=M), categories=["z", "y", "x"])
    frame.loc[rng.random(M) < 0.1, "city"] = None
    y = np.where((frame["city"] == "Oslo") | (frame["paid"] & (frame["age"] > 0)), "in", "out")
    return frame, y


def test_categories_of_a_frame_are_found_and_of_each_level_a_voter():
    frame, y = mixed_frame()
    model = QuadBoostClassifier(max_rounds=50, reg_lambda=0.01, min_category_count=1).fit(frame, y)
    assert model.ensemble_.categories == {
        0: [["Cork"], ["Lima"], ["Oslo"], ["Rome"]],
        1: [[False], [True]],
        3: [["x"], ["y"]],
    }
    feature, kind, level = model._voters.describe(np.arange(model._voters.n_voters))
    levels = [(f, int(t)) for f, k, t in zip(feature, kind, level, strict=True) if k == LEVEL]
    assert levels == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (3, 0), (3, 1)]
    drawn = model.history_["feature"][0], model.history_["threshold"][0]
    assert drawn == (0, 2.0)  # Oslo


def test_rare_levels_are_one_voter_together():
    frame, y = mixed_frame()
    frame.loc[:1, "city"] = "Bonn"
    assert 0 < frame["city"].value_counts()["Cork"] < 5
    model = QuadBoostClassifier(max_rounds=50, min_category_count=5).fit(frame, y)
    assert model.ensemble_.categories[0] == [["Lima"], ["Oslo"], ["Rome"], ["Bonn", "Cork"]]
    one, other = (model.decision_function(frame.iloc[:5].assign(city=city)) for city in ("Bonn", "Cork"))
    np.testing.assert_array_equal(one, other)


def test_a_level_never_seen_is_none_of_the_others():
    frame, y = mixed_frame()
    model = QuadBoostClassifier(max_rounds=50).fit(frame, y)
    ensemble = model.ensemble_
    of_city = (ensemble.feature == 0) & (ensemble.kind == LEVEL)
    missing = (ensemble.feature == 0) & (ensemble.kind == MISSING)
    row = frame.iloc[[5]]
    without = ensemble.weight[missing].sum()
    difference = model.decision_function(row.assign(city="Atlantis")) - model.decision_function(row.assign(city=None))
    assert difference[0] == pytest.approx(-ensemble.weight[of_city].sum() - 2 * without, abs=1e-12)


def test_any_kind_of_frame_gives_the_same_model():
    frame, y = mixed_frame()
    frame["plan"] = frame["plan"].astype(str)
    known = QuadBoostClassifier(max_rounds=50).fit(frame, y)
    for table in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        model = QuadBoostClassifier(max_rounds=50).fit(table, y)
        assert_same_model(model, known)
        assert model.feature_names_in_.tolist() == ["city", "paid", "age", "plan"]
        np.testing.assert_array_equal(model.predict(frame), known.predict(table))


def test_numbers_may_be_declared_categories():
    table = np.column_stack([X[:, 1], X[:, 0]])
    y = np.where(X[:, 1] == 2, 1, 0)  # not a threshold
    model = QuadBoostClassifier(categorical_features=[0]).fit(table, y)
    assert model.ensemble_.categories == {0: [[0.0], [1.0], [2.0], [3.0]]}
    assert model.score(table, y) == 1.0
    assert (model.history_["feature"][0], model.history_["threshold"][0]) == (0, 2.0)


MILLION_LEVELS = """
import resource
import numpy as np, pandas as pd
from quadboost import QuadBoostClassifier
n = 1_000_000
x = np.random.default_rng(0).normal(size=n)
X = pd.DataFrame({"id": np.arange(n).astype(str), "x": x})
for least in (5, 1):
    model = QuadBoostClassifier(min_category_count=least, max_rounds=20).fit(X, x > 0)
    print(len(model.ensemble_.categories[0]))
    assert model.score(X.iloc[::1000], x[::1000] > 0) > 0.99
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_category_of_a_million_levels_works_within_memory(run_python):
    pytest.importorskip("resource")
    pooled, separate, kilobytes = run_python(MILLION_LEVELS).splitlines()
    assert (pooled, separate) == ("1", "1000000")
    assert int(kilobytes) < 4e6
