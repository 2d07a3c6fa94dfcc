"""What X may be: sparse matrices, arrays where a frame was trained on, and infinity."""

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import scipy.sparse
from comparing import assert_same_model
from sklearn.compose import make_column_transformer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor, estimate_memory

RNG = np.random.default_rng(0)
M = 120
DENSE = np.where(RNG.random((M, 5)) < 0.3, RNG.integers(1, 9, size=(M, 5)), 0)
Y = DENSE[:, 0] - 2.0 * (DENSE[:, 1] > 3) + RNG.normal(size=M)
LABELS = Y > 0
FRAME = pd.DataFrame({"town": RNG.choice(["Aarau", "Bern", "Chur"], M), "age": RNG.integers(18, 80, M)})
KINDS = [
    getattr(scipy.sparse, f"{kind}_{sort}") for kind in ("csr", "csc", "coo", "dok") for sort in ("matrix", "array")
]


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sparse_matrix_is_the_same_as_the_dense_one(kind, dtype):
    dense = DENSE.astype(dtype)
    known, found = (QuadBoostRegressor(reg_lambda=0.01).fit(X, Y) for X in (dense, kind(dense)))
    assert_same_model(found, known)
    np.testing.assert_array_equal(found.predict(kind(dense)), known.predict(dense))
    np.testing.assert_array_equal(found.ensemble_.predict(kind(dense)), known.predict(dense))


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_a_sparse_matrix_may_be_categories_and_hold_missing_values(kind):
    dense = DENSE.astype(float)
    dense[3, 0] = np.nan
    options = {"reg_lambda": 0.01, "categorical_features": [1, 2]}
    known, found = (QuadBoostClassifier(**options).fit(X, LABELS, np.arange(M) % 3) for X in (dense, kind(dense)))
    assert_same_model(found, known)
    assert estimate_memory(kind(dense), LABELS, **options) >= estimate_memory(dense, LABELS, **options)


@pytest.mark.thinned(1)
@pytest.mark.parametrize(
    "model", [QuadBoostClassifier(), QuadBoostClassifierCV(reg_lambda=3, cv=2)], ids=["plain", "search"]
)
def test_one_hot_columns_in_a_pipeline(model, tmp_path):
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town", "age"]), sparse_threshold=1.0), model
    )
    pipeline.fit(FRAME, FRAME["town"] == "Bern")
    assert scipy.sparse.issparse(pipeline[0].transform(FRAME))
    assert pipeline.score(FRAME, FRAME["town"] == "Bern") == 1.0
    pipeline[1].save(tmp_path / "m.h5")
    found = quadboost.load(tmp_path / "m.h5").predict(pipeline[0].transform(FRAME))
    np.testing.assert_array_equal(found, pipeline.predict(FRAME))
    assert cross_val_score(pipeline, FRAME, FRAME["town"] == "Bern", cv=2).mean() > 0.9


def test_a_sparse_matrix_too_large_for_the_memory_is_refused_with_its_size():
    wide = scipy.sparse.csr_matrix((200_000, 2_000_000))
    told = (
        r"X is sparse, and as a dense array of shape \(200000, 2000000\) it takes 2,980.2 GiB, where .* are free; give"
    )
    with pytest.raises(ValueError, match=told):
        QuadBoostRegressor().fit(wide, np.arange(200_000))
    with pytest.raises(ValueError, match="X is sparse, and as a dense array"):
        QuadBoostRegressor().fit(DENSE, Y).ensemble_.predict(wide)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "staged_decision_function"])
@pytest.mark.parametrize(
    "nameless", [lambda X: X.to_numpy(), lambda X: X.to_numpy().tolist(), lambda X: X.set_axis([0], axis=1)]
)
def test_an_array_where_a_frame_was_trained_on_is_warned_of(method, nameless):
    model = QuadBoostClassifier().fit(FRAME[["age"]], LABELS)
    told = "^X does not have valid feature names, but QuadBoostClassifier was fitted with feature names$"
    with pytest.warns(UserWarning, match=told) as caught:
        found = [*getattr(model, method)(nameless(FRAME[["age"]]))]
    assert len(caught) == 1
    known = getattr(model, method)(FRAME[["age"]])
    np.testing.assert_array_equal(found, [*known])


@pytest.mark.parametrize("make", [lambda X: X, polars.from_pandas, pyarrow.Table.from_pandas])
def test_a_frame_of_any_kind_has_names(make):
    model = QuadBoostClassifier().fit(make(FRAME), LABELS)
    assert len(model.predict(make(FRAME))) == M
    assert len(model.predict(FRAME)) == M  # warnings are errors here


def test_the_model_itself_takes_arrays_without_a_word():
    model = QuadBoostClassifier().fit(FRAME[["age"]], LABELS)
    np.testing.assert_array_equal(model.ensemble_.predict(FRAME[["age"]].to_numpy()), model.predict(FRAME[["age"]]))


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_is_beyond_all_thresholds_and_no_number_to_train_on(infinity):
    X = np.random.default_rng(0).normal(size=(301, 5))
    y, wrong = X[:, 0] > 0, X.copy()
    wrong[300, 1] = infinity
    model = QuadBoostClassifier().fit(X, y)
    np.testing.assert_array_equal(
        model.decision_function(wrong), model.decision_function(np.clip(wrong, -1e300, 1e300))
    )
    refused = f"feature 1 holds {infinity}; replace infinity by a finite number, or by NaN"
    for given in ({"X": wrong, "y": y}, {"X": X, "y": y, "X_val": wrong, "y_val": y}):
        with pytest.raises(ValueError, match=refused):
            QuadBoostClassifier().fit(**given)
