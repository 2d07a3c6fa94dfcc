"""Rows as dicts: the same scores as from frames and arrays, and one clear sentence where a key or a value is wrong."""

from __future__ import annotations

from collections import ChainMap, Counter, OrderedDict, defaultdict
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.data.records import RecordReader

N = 120


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    age = np.where(random.random(N) < 0.1, np.nan, random.integers(18, 80, N))
    return pd.DataFrame(
        {"age": age, "income": random.random(N), "town": random.choice(["Ulm", "Bern"], N), "rank": np.arange(N) % 3}
    )


@pytest.fixture(scope="module", params=[0, 3], ids=["stumps", "rules"])
def fitted(request, frame):
    y = (frame["income"] > 0.5) ^ (frame["town"] == "Ulm") ^ (frame["rank"] == 1)
    model = QuadBoostClassifier(n_trees=request.param, categorical_features=["town", "rank"], reg_lambda=0.01)
    return model.fit(frame, y)


def as_records(frame):
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


@pytest.mark.parametrize("method", ["decision_function", "predict", "predict_proba"])
def test_records_score_as_the_frame_does(fitted, frame, method, tmp_path):
    fitted.save(tmp_path / "model.h5")
    for model in (fitted, quadboost.load(tmp_path / "model.h5")):
        expected = getattr(model, method)(frame)
        records = as_records(frame)
        np.testing.assert_array_equal(getattr(model, method)(records), expected)
        np.testing.assert_array_equal(getattr(model, method)(tuple(records[:1])), expected[:1])
        for kind in (dict, OrderedDict, MappingProxyType):
            np.testing.assert_array_equal(getattr(model, method)(kind(records[3])), expected[3:4])


def test_explanations_take_records(fitted, frame):
    found = fitted.explain(as_records(frame)[:2])
    np.testing.assert_array_equal(found.values, fitted.explain(frame[:2]).values)
    assert fitted.explain(as_records(frame)[0]).reasons(1) == found.reasons(1)[:1]


def test_a_feature_that_a_record_lacks_is_missing(fitted, frame):
    records = as_records(frame)[:4]
    del records[0]["age"], records[1]["town"]
    records[2] = {}
    expected = frame[:4].astype({"town": object})
    expected.loc[0, "age"], expected.loc[1, "town"] = np.nan, None
    expected.loc[2] = None
    np.testing.assert_array_equal(
        fitted.decision_function(records), fitted.decision_function(expected.astype({"age": float, "income": float}))
    )
    np.testing.assert_array_equal(fitted.decision_function({}), fitted.decision_function(records)[2:3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agge": 3}, "row 1 of X has 'agge', which QuadBoostClassifier was not trained on; leave it out"),
        ({"age": "40"}, "Column 'age' holds text, such as '40'; QuadBoostClassifier was trained on numbers there"),
        ({"age": [40]}, "Column 'age' holds \\[40\\]"),
        ({"age": 10**400}, "Column 'age' holds an integer beyond the largest float"),
    ],
)
def test_a_wrong_key_or_value_is_named(fitted, frame, change, message):
    records = as_records(frame)[:2]
    records[1] |= change
    with pytest.raises((ValueError, TypeError), match=message):
        fitted.predict(records)


@pytest.mark.parametrize("record", [defaultdict(float, agge=3.0), Counter(agge=3), ChainMap({"agge": 3.0})])
def test_a_mapping_that_makes_values_has_no_others_than_its_keys(record):
    X = pd.DataFrame({"age": np.arange(20.0)})
    model = QuadBoostRegressor(reg_lambda=0.01).fit(X, X["age"])
    with pytest.raises(ValueError, match="row 0 of X has 'agge', which QuadBoostRegressor was not trained on"):
        model.predict(record)
    assert list(record) == ["agge"]


def test_a_row_of_a_frame_among_dicts_is_read_by_its_names(fitted, frame):
    records = [as_records(frame)[0], frame.iloc[1][["town", "rank", "income", "age"]]]
    np.testing.assert_array_equal(fitted.decision_function(records), fitted.decision_function(frame[:2]))


def test_numbers_for_a_category_of_text_are_refused_and_unseen_levels_are_none_of_the_known(fitted, frame):
    record = as_records(frame)[0]
    with pytest.raises(ValueError, match=r"Column 'town' holds numbers, such as 3, .* was trained on text"):
        fitted.predict(record | {"town": 3})
    with pytest.raises(ValueError, match=r"Column 'town' holds numbers, such as 3, .* was trained on text"):
        fitted.predict([record | {"town": 3}, record | {"town": "Oslo"}, record])  # one record, whatever is beside it
    unseen = frame[:1].assign(town="Oslo")
    np.testing.assert_array_equal(fitted.decision_function(record | {"town": "Oslo"}), fitted.decision_function(unseen))


def test_mixed_rows_and_models_without_names_are_refused():
    X = np.arange(12.0).reshape(6, 2)
    model = QuadBoostRegressor(reg_lambda=0.1).fit(X, X[:, 0]).ensemble_
    with pytest.raises(ValueError, match="this model was trained without names of features"):
        model.predict([{"a": 1.0}])
    named = model.replace(feature_names=("a", "b"))
    with pytest.raises(ValueError, match=r"row 1 of X is 3\.0, and others are dicts"):
        named.predict([{"a": 1.0}, 3.0])
    for X, what in (([{"a": 1.0}], "list of dicts"), ({"a": [1.0]}, "dict")):
        with pytest.raises(ValueError, match=rf"X is a {what}; make a frame of it, such as pandas.DataFrame\(X\)"):
            QuadBoostRegressor().fit(X, [1.0])


def test_the_quick_reader_leaves_to_the_tables_what_it_does_not_know():
    reader = RecordReader(["a", "b"], {1: {"x": 0, "y": 1}})
    np.testing.assert_array_equal(reader.matrix([{"b": "y", "a": True}, {"a": None}]), [[1, 1], [np.nan, np.nan]])
    for record in ({"a": "1", "b": "x"}, {"a": 1, "b": 3}, {"a": 1, "b": []}, {"a": 1, "c": 2}, {"a": 10**400}, 3):
        assert reader.matrix([record]) is None
    unseen = {"a": 1, "b": "z"}
    assert reader.matrix([unseen]).tolist() == [[1, -1]]
    assert reader.matrix([unseen, unseen]) is None  # the tables count them
    assert RecordReader(["b"], {0: {3: 0}}).matrix([{"b": "z"}]) is None  # nor is text an unseen number
    assert RecordReader(["a"], {}).matrix([{"a": 2}]).tolist() == [[2.0]]


@pytest.mark.parametrize("rows", [[], ()])
def test_no_records_are_refused_in_words_of_rows(fitted, rows):
    with pytest.raises(ValueError, match=r"^X is empty; give at least one row$"):
        fitted.ensemble_.predict(rows)
