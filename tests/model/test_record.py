"""What a model may be: the same for a file that is read and for a model that is saved."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_files import MODELS, assert_valid, bits, calibrated, example, forged, parts_of_format_1, with_metadata
from some_trees import random_trees

from quadboost import Ensemble
from quadboost.data.schema import INTEGERS
from quadboost.model.file import ModelFileError, read_model, write_model
from quadboost.model.record import ModelRecord, from_parts, to_parts


def there_and_back(record: ModelRecord) -> ModelRecord:
    return from_parts(*to_parts(record), 2)


@pytest.mark.parametrize("make", MODELS)
def test_a_model_survives_to_the_last_bit(make: Callable[[], ModelRecord]) -> None:
    assert bits(there_and_back(make())) == bits(make())
    assert_valid(there_and_back(make()))


def test_the_examples_hold_the_numbers_that_are_easily_lost() -> None:
    record = there_and_back(example())
    assert np.signbit(record.threshold[0])
    assert np.signbit(record.weight[3])
    assert 0 < record.weight[4] < np.finfo(float).tiny
    assert record.threshold[5] == 5e-324


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([0, 2**64 - 1], np.uint64),
        np.array([-128, 127], np.int8),
        np.array([1, 2], np.uint16),
        np.array([-0.5, 1e-300]),
        np.array([0.1, 0.2], np.float32),
        np.array([0.1, 0.2], np.float16),
        np.array(["", "\U0001f600 é\nb"]),
        np.array(["a", "b"], object),
        np.array(["a\0", "a"], object),
    ],
    ids=lambda labels: labels.dtype.name,
)
def test_labels_keep_their_dtype_and_values(labels: np.ndarray) -> None:
    found = there_and_back(replace(example(), classes=labels)).classes
    assert found is not None
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()


def test_labels_of_text_are_as_wide_as_they_need_be() -> None:
    found = there_and_back(replace(example(), classes=np.array(["a", "bcd"], "U100"))).classes
    assert found is not None
    assert found.dtype == "U3"


def test_labels_of_the_other_byte_order_become_native() -> None:
    found = there_and_back(replace(example(), classes=np.array([1, 2], ">i4"))).classes
    assert found is not None
    assert found.dtype == np.int32
    assert found.dtype.isnative


def test_what_numpy_and_python_add_to_plain_values_is_left_out() -> None:
    record = replace(
        example(),
        feature=np.array([2, 0, 1, 1, 0, 3]),
        weight=np.arange(6, dtype=np.float32),
        n_features=np.int64(4),
        categories={np.int64(1): [[np.str_("a")], [np.int64(3), np.bool_(True), np.float64(0.5)]]},
        info={"grid": (1, 2), "array": np.arange(3), 5: np.float32(0.5)},
    )
    found = there_and_back(record)
    assert found.feature.dtype == np.int32
    assert found.weight.dtype == np.float64
    assert found.categories == {1: [["a"], [3, True, 0.5]]}
    assert found.info == {"grid": [1, 2], "array": [0, 1, 2], "5": 0.5}


names = st.text(st.characters(codec="utf-8"))
scalars = st.text() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def nodes(draw: st.DrawFn, n_features: int, categories: dict[int, Any], n_outputs: int) -> dict[str, Any]:
    """Trees, their weights, and perhaps their masses; on features with a level at least."""
    n_levels = {feature: len(levels) for feature, levels in categories.items()}
    n_leaves = draw(st.lists(st.integers(1, 5), max_size=4 if all(n_levels.values()) else 0))
    thresholds = [np.array(draw(st.lists(finite, min_size=1, max_size=3))) for _ in range(n_features)]
    trees = random_trees(np.random.default_rng(draw(st.integers(0, 99))), n_leaves, thresholds, n_levels)
    shape = (trees.n_nodes,) if n_outputs == 0 else (trees.n_nodes, n_outputs)
    size = trees.n_nodes * max(n_outputs, 1)
    weight = np.array(draw(st.lists(finite, min_size=size, max_size=size)), np.float64).reshape(shape)
    weight[trees.start[:-1]] = 0.0
    mass = np.where(trees.is_root, 2.0, 0.5) if draw(st.booleans()) else np.empty(0)
    return {"trees": trees, "node_weight": weight, "node_mass": mass}


@st.composite
def records(draw: st.DrawFn) -> ModelRecord:
    n_features = draw(st.integers(1, 5))
    values = scalars.filter(lambda value: type(value) is not int or value in INTEGERS)
    levels = st.lists(values, unique=True, max_size=4).map(lambda values: [[value] for value in values])
    categories = draw(st.dictionaries(st.integers(0, n_features - 1), levels))
    voters = []
    for feature in draw(st.lists(st.integers(0, n_features - 1), max_size=8)):
        if draw(st.booleans()):
            voters.append((feature, 2, 0.0))
        elif feature not in categories:
            voters.append((feature, 0, draw(finite)))
        elif categories[feature]:
            voters.append((feature, 1, float(draw(st.integers(0, len(categories[feature]) - 1)))))
    voters = list(dict.fromkeys(voters))
    n_outputs = draw(st.integers(0, 4))  # 0: one, and weight is 1-d
    shape = (len(voters),) if n_outputs == 0 else (len(voters), n_outputs)
    size = len(voters) * max(n_outputs, 1)
    link = draw(st.sampled_from(["identity", "log"]))
    return ModelRecord(
        feature=np.array([voter[0] for voter in voters], np.int32),
        kind=np.array([voter[1] for voter in voters], np.uint8),
        threshold=np.array([voter[2] for voter in voters], np.float64),
        weight=np.array(draw(st.lists(finite, min_size=size, max_size=size)), np.float64).reshape(shape),
        intercept=draw(finite) if n_outputs == 0 else np.array([draw(finite) for _ in range(n_outputs)]),
        n_features=n_features,
        feature_names=draw(
            st.none() | st.lists(names, min_size=n_features, max_size=n_features, unique=True).map(tuple)
        ),
        categories=categories,
        loss=draw(st.sampled_from(["squared", "huber", "quantile", *(["poisson"] if link == "log" else [])])),
        link=link,
        slope=1.0 if n_outputs == 0 else np.ones(n_outputs),
        bin_error=np.empty(0) if n_outputs == 0 else np.empty((0, n_outputs)),
        **draw(nodes(n_features, categories, n_outputs)),
        info=draw(st.dictionaries(names, st.recursive(scalars | st.none(), st.lists, max_leaves=8))),
    )


@given(records())
def test_any_model_survives_to_the_last_bit(record: ModelRecord) -> None:
    assert bits(there_and_back(record)) == bits(record)
    assert_valid(record)


def put(name: str, place: Any, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """The change that puts a value into an array or into the metadata."""

    def change(arrays: dict[str, Any], metadata: dict[str, Any]) -> None:
        (arrays if name in arrays else metadata)[name][place] = value

    return change


def metadata(**changes: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, metadata: metadata.update(changes)


def labels(dtype: Any, *values: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return metadata(classes={"dtype": dtype, "values": list(values)})


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth > 1 else []


WRONG = {
    "feature too large": (put("feature", 3, 4), "voter 3 looks at feature 4, but there are 4 features"),
    "feature negative": (put("feature", 0, -1), "voter 0 looks at feature -1, but there are 4 features"),
    "feature smallest": (put("feature", 0, -(2**31)), "voter 0 looks at feature -2147483648"),
    "kind": (put("kind", 1, 3), "voter 1 is of kind 3, but the kinds are 0, 1 and 2"),
    "kind 255": (put("kind", 1, 255), "voter 1 is of kind 255"),
    "threshold nan": (put("threshold", 1, np.nan), "threshold 1 is nan, not a finite number"),
    "threshold inf": (put("threshold", 5, np.inf), "threshold 5 is inf, not a finite number"),
    "weight inf": (put("weight", (2, 0), -np.inf), "weight 2, 0 is -inf, not a finite number"),
    "intercept nan": (put("intercept", 0, np.nan), "intercept 0 is nan, not a finite number"),
    "level too large": (
        put("threshold", 2, 2.0),
        "voter 2 stands for level 2.0, which its feature does not have",
    ),
    "level negative": (put("threshold", 2, -1.0), "voter 2 stands for level -1.0"),
    "level between two": (put("threshold", 2, 0.5), "voter 2 stands for level 0.5"),
    "level of a number": (put("feature", 2, 3), "voter 2 stands for a level, but feature 3 has none"),
    "threshold on a category": (put("kind", 2, 0), "voter 2 has a threshold, but feature 1 is categorical"),
    "missing with a threshold": (
        put("threshold", 4, 1.0),
        "voter 4 is of kind 2 (missing) and has the threshold 1.0, not 0",
    ),
    "same level twice": (put("threshold", 2, 0.0), "voter 2 stands there twice"),
    "zero and minus zero": (
        lambda arrays, _: (put("feature", 5, 2)(arrays, _), put("threshold", 5, 0.0)(arrays, _)),
        "voter 0 stands there twice",
    ),
    "n_features negative": (metadata(n_features=-1), "n_features is -1, not a whole number below 2**31"),
    "n_features too large": (metadata(n_features=2**31), "n_features is 2147483648"),
    "n_features a float": (metadata(n_features=4.0), "n_features is 4.0"),
    "n_features a bool": (metadata(n_features=True), "n_features is True"),
    "one_output": (metadata(one_output=1), "one_output is 1, and there are 1 outputs"),
    "labels of one class": (labels("int64", 1), "the classes [1] do not go with 1 outputs"),
    "labels of three classes": (labels("int64", 1, 2, 3), "the classes [1, 2, 3] do not go with 1 outputs"),
    "labels equal": (labels("str", "a", "a"), "the classes ['a', 'a'] are not distinct"),
    "labels equal but for NUL": (labels("str", "a", "a\0"), "are not distinct"),
    "labels equal as float16": (labels("float16", 1.0, 1.0 + 1e-9), "are not distinct"),
    "labels too large": (labels("int8", 1, 128), "the classes [1, 128] do not fit int8"),
    "labels negative": (labels("uint8", 1, -1), "do not fit uint8"),
    "labels too large for float": (labels("float32", 1.0, 1e300), "do not fit float32"),
    "labels infinite": (labels("float64", 1.0, np.inf), "the class inf is not a finite float"),
    "labels nan": (labels("float64", 1.0, np.nan), "the class nan is not a finite float"),
    "labels of two types": (labels("object", "a", 1), "the class 1 is not a finite str"),
    "labels bool for int": (labels("int64", 0, True), "the class True is not a finite int"),
    "labels a list": (metadata(classes=[1, 2]), "classes is [1, 2], not a dtype and values"),
    "labels of an unknown dtype": (
        labels("O", "a", "b"),
        "classes have the dtype 'O', not one of bool, int8",
    ),
    "labels of a complicated dtype": (labels(["i4"], 1, 2), "classes have the dtype ['i4']"),
    "labels not in a list": (
        metadata(classes={"dtype": "str", "values": "ab"}),
        "the classes 'ab' do not go with",
    ),
    "names too few": (metadata(feature_names=["a"]), "there are 1 feature_names for 4 features"),
    "names equal": (metadata(feature_names=["a", "b", "a", "c"]), "the feature_names are not distinct"),
    "names not text": (
        metadata(feature_names=["a", 1, "b", "c"]),
        "feature_names is ['a', 1, 'b', 'c'], not a list",
    ),
    "names one text": (metadata(feature_names="abcd"), "feature_names is 'abcd', not a list of strings"),
    "categories a list": (metadata(categories=[]), "categories is [], not a dict"),
    "categories of no feature": (metadata(categories={"4": []}), "categories has the feature '4'"),
    "categories of -1": (metadata(categories={"-1": []}), "categories has the feature '-1'"),
    "categories of 01": (metadata(categories={"01": []}), "categories has the feature '01'"),
    "categories of a digit that int takes": (metadata(categories={"²": []}), "categories has the feature"),
    "categories of a long number": (metadata(categories={"1" * 9999: []}), "categories has the feature '111"),
    "levels not lists": (metadata(categories={"1": ["a", "b"]}), "the levels of feature 1 are not lists"),
    "level of no category": (
        metadata(categories={"1": [["a"], []]}),
        "feature 1 are not lists of one category",
    ),
    "category null": (metadata(categories={"1": [["a"], [None]]}), "a category of feature 1 is None"),
    "category nan": (metadata(categories={"1": [["a"], [np.nan]]}), "a category of feature 1 is nan"),
    "category a list": (metadata(categories={"1": [["a"], [["b"]]]}), "a category of feature 1 is ['b']"),
    "category twice": (
        metadata(categories={"1": [["a"], ["b", "a"]]}),
        "feature 1 has the same category twice",
    ),
    "category 1 and true": (
        metadata(categories={"1": [[1], [True]]}),
        "feature 1 has the same category twice",
    ),
    "loss unknown": (metadata(loss="hinge"), "the loss is 'hinge', not one of squared, logistic, huber"),
    "loss null": (metadata(loss=None), "the loss is None, not one of squared"),
    "loss a list": (metadata(loss=["squared"]), "the loss is ['squared'], not one of squared"),
    "loss long": (metadata(loss="x" * 9999), "the loss is 'xxx"),
    "link unknown": (metadata(link="probit"), "the link is 'probit', not one of identity, log, clipped"),
    "link null": (metadata(link=None), "the link is None, not one of identity"),
    "link a number": (metadata(link=1), "the link is 1, not one of identity"),
    "link of several classes": (metadata(link="softmax"), "the link 'softmax' is not one of a model of 2 classes"),
    "link of targets": (metadata(link="log"), "the link 'log' is not one of a model of 2 classes"),
    "link of labels": (metadata(classes=None), "the link 'clipped' is not one of a model of targets"),
    "loss with another link": (metadata(loss="logistic"), "the link 'clipped' does not go with the loss 'logistic'"),
    "slope of a link without": (put("slope", 0, 2.0), "the slope of the link 'clipped' is 2.0; it can only be 1"),
    "slope nan": (put("slope", 0, np.nan), "the slope is nan, not a finite number above 0"),
    "slope inf": (put("slope", 0, np.inf), "the slope is inf, not a finite number above 0"),
    "slope zero": (put("slope", 0, -0.0), "the slope is -0.0, not a finite number above 0"),
    "slope negative": (put("slope", 0, -1.0), "the slope is -1.0, not a finite number above 0"),
    "masses of other bins": (lambda arrays, _: arrays.update(bin_mass=np.ones(12)), "the shape functions have 13 bins"),
    "mass nan": (lambda arrays, _: arrays.update(bin_mass=np.append(np.ones(12), np.nan)), "bin_mass 12 is nan"),
    "mass negative": (
        lambda arrays, _: arrays.update(bin_mass=np.append(-1.0, np.ones(12))),
        "bin_mass 0 is -1.0, less",
    ),
    "masses zero": (lambda arrays, _: arrays.update(bin_mass=np.zeros(13)), "bin_mass adds up to 0.0 for shape"),
    "masses large": (lambda arrays, _: arrays.update(bin_mass=np.full(13, 1e308)), "bin_mass adds up to inf for shape"),
    "errors without masses": (lambda arrays, _: arrays.update(bin_error=np.ones((13, 1))), "but no masses; give both"),
    "info a list": (metadata(info=[]), "info is [], not a dict"),
    "info nan": (metadata(info={"a": {"b": [1, np.nan]}}), "info['a']['b'][1] is nan, not a finite number"),
    "info inf": (metadata(info={"a": -np.inf}), "info['a'] is -inf, not a finite number"),
    "no output": (
        lambda arrays, _: arrays.update(weight=np.zeros((6, 0)), intercept=np.zeros(0), slope=np.zeros(0)),
        "there is no output",
    ),
    "info deep": (metadata(info={"a": nested(33)}), "is nested more than 32 deep"),
    "metadata with another key": (
        metadata(more=1),
        "the metadata does not have just the keys categories, classes",
    ),
    "metadata without a key": (
        lambda _, metadata: metadata.pop("info"),
        "the metadata does not have just the keys",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_in_a_file_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.h5"
    path.write_bytes(forged(example(), change))
    with pytest.raises(ModelFileError, match=re.escape(message)) as caught:
        read_model(path)
    assert str(caught.value).startswith(f"cannot load {path}: ")
    assert len(str(caught.value)) < 500


def good_text() -> bytes:
    return to_parts(example())[1]


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "empty": (b"", "not JSON as quadboost writes it: Expecting value"),
        "cut short": (good_text()[:-1], "not JSON"),
        "two documents": (good_text() + b"{}", "Extra data"),
        "not UTF-8": (good_text().replace(b'"l1"', b'"\xff"'), "codec can't decode"),
        "UTF-16": (good_text().decode().encode("utf-16"), "not JSON"),
        "a number": (b"1", "does not have just the keys"),
        "a key twice": (b'{"info":{},' + good_text()[1:], "an object has a key twice"),
        "a key twice inside": (good_text().replace(b'"nested"', b'"risk"'), "an object has a key twice"),
        "deep": (good_text().replace(b'"l1"', b"[" * 100_000), "not JSON as quadboost writes it"),
        "deep objects": (good_text().replace(b'"l1"', b'{"a":' * 100_000), "not JSON as quadboost writes it"),
        "number of many digits": (good_text().replace(b'"l1"', b"1" * 100_000), "integer string conversion"),
        "number beyond float": (good_text().replace(b'"l1"', b"1e999"), r"info\['penalty'\] is inf"),
    }.values(),
)
def test_metadata_that_is_not_plain_json_is_refused(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.h5"
    path.write_bytes(with_metadata(example(), text))
    with pytest.raises(ModelFileError, match=message):
        read_model(path)


def test_metadata_of_another_json_writer_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    path.write_bytes(with_metadata(example(), json.dumps(json.loads(good_text()), indent=4, sort_keys=True).encode()))
    assert bits(replace(read_model(path), info={})) == bits(replace(example(), info={}))


@pytest.mark.parametrize(
    ("changes", "message"),
    {
        "feature": (
            {"feature": np.array([2, 0, 1, 1, 0, 4])},
            "voter 5 looks at feature 4, but there are 4 features",
        ),
        "feature wide": (
            {"feature": np.array([2, 0, 1, 1, 0, 2**32])},
            "feature 5 is 4294967296, which int32 does",
        ),
        "feature float": ({"feature": np.zeros(6)}, "feature is 1-d of float64, not 1-d of int32"),
        "feature 2-d": ({"feature": np.zeros((6, 1), np.int32)}, "feature is 2-d of int32, not 1-d of int32"),
        "kind": ({"kind": np.full(6, 256)}, "kind 0 is 256, which uint8 does not hold"),
        "threshold text": (
            {"threshold": np.array(list("abcdef"))},
            "threshold is 1-d of <U1, not 1-d of float64",
        ),
        "threshold short": (
            {"threshold": np.zeros(5)},
            "threshold has 5 values, but weight has the shape (6,)",
        ),
        "weight nan": ({"weight": np.full(6, np.nan)}, "weight 0, 0 is nan, not a finite number"),
        "weight 3-d": ({"weight": np.zeros((6, 1, 1))}, "weight is 3-d of float64, not 2-d of float64"),
        "intercept": ({"intercept": np.zeros(2)}, "intercept has 2 values, but weight has the shape (6,)"),
        "slope": ({"slope": np.ones(2)}, "slope has 2 values, but weight has the shape (6,)"),
        "slope 2-d": ({"slope": np.ones((1, 1))}, "slope is 2-d of float64, not 1-d of float64"),
        "slope text": ({"slope": "1"}, "slope is 1-d of <U1, not 1-d of float64"),
        "slope nan": ({"link": "logit", "slope": np.nan}, "the slope is nan, not a finite number above 0"),
        "masses": ({"bin_mass": np.ones(3)}, "bin_mass has 3 values, but the shape functions have 13 bins"),
        "errors": ({"bin_mass": np.ones(13), "bin_error": np.ones((13, 2))}, "bin_error has the shape (13, 2)"),
        "masses 2-d": ({"bin_mass": np.ones((13, 1))}, "bin_mass is 2-d of float64, not 1-d of float64"),
        "link": ({"link": "softmax"}, "the link 'softmax' is not one of a model of 2 classes"),
        "link object": ({"link": object()}, "is a object"),
        "loss": ({"loss": "hinge"}, "the loss is 'hinge', not one of squared"),
        "no outputs": ({"weight": np.zeros((6, 0)), "intercept": np.zeros(0)}, "there is no output"),
        "labels bytes": (
            {"classes": np.array([b"a", b"b"])},
            "classes have the dtype 'bytes8', not one of bool, int8",
        ),
        "labels dates": (
            {"classes": np.array(["2020", "2021"], "M8[D]")},
            "classes have the dtype 'datetime64[D]'",
        ),
        "labels complex": ({"classes": np.array([1j, 2j])}, "classes have the dtype 'complex128'"),
        "labels of records": ({"classes": np.array([(1,), (2,)], "i4,")}, "not one of bool, int8"),
        "labels mixed": ({"classes": np.array(["a", 1], object)}, "the class 1 is not a finite str"),
        "names": ({"feature_names": ("a", "b")}, "there are 2 feature_names for 4 features"),
        "category": ({"categories": {1: [["a"], [None]]}}, "a category of feature 1 is None"),
        "info object": ({"info": {"model": object()}}, "is a object"),
        "info nan": ({"info": {"risk": [0.5, float("nan")]}}, "info['risk'][1] is nan, not a finite number"),
        "info keys": ({"info": {1: "a", "1": "b"}}, "an object has a key twice"),
        "info tuple keys": ({"info": {(1, 2): "a"}}, "keys must be str"),
    }.values(),
)
def test_a_wrong_model_is_not_saved(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    with pytest.raises(ModelFileError, match=re.escape(message)) as caught:
        write_model(path, replace(example(), **changes))
    assert str(caught.value).startswith(f"cannot save the model to {path}: ")
    assert not list(tmp_path.iterdir())


def test_an_info_that_holds_itself_is_not_saved(tmp_path: Path) -> None:
    info: dict[str, Any] = {}
    info["self"] = info
    with pytest.raises(ModelFileError, match="Circular reference"):
        write_model(tmp_path / "model.h5", replace(example(), info=info))


def test_voters_of_equal_hashes_are_compared_themselves() -> None:
    # Two thresholds and features whose hashes agree, found by solving for the bits of the second threshold.
    first, second = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
    inverse = np.uint64(pow(int(first), -1, 2**64))
    with np.errstate(over="ignore"):
        for feature in range(1, 1000):
            code = (np.array([1.5]).view(np.uint64) * first) ^ (np.uint64(4 * feature) * second)
            threshold = (code * inverse).view(np.float64)[0]  # goes with feature 0
            if np.isfinite(threshold):
                break
    record = ModelRecord(
        np.array([0, feature]),
        np.array([threshold, 1.5]),
        np.ones(2),
        0.0,
        np.zeros(2, np.uint8),
        n_features=1000,
        link="identity",
    )
    assert bits(there_and_back(record)) == bits(replace(record, feature=record.feature.astype(np.int32)))


def test_a_small_file_that_speaks_of_many_features_costs_little() -> None:
    record = replace(example(), n_features=2**31 - 1, feature_names=None)
    assert there_and_back(record).n_features == 2**31 - 1


@pytest.mark.parametrize("make", MODELS)
def test_a_record_is_the_arguments_of_an_ensemble(make: Callable[[], ModelRecord]) -> None:
    ensemble = Ensemble(**make().arguments())
    assert bits(ModelRecord.of(ensemble)) == bits(make())


def test_a_record_without_a_link_has_the_one_of_an_ensemble_without() -> None:
    found = there_and_back(replace(example(), link=None))
    assert bits(found) == bits(example())
    assert there_and_back(replace(example(), link=None, classes=None)).link == "identity"
    several = replace(example(), weight=np.ones((6, 2)), intercept=np.zeros(2), classes=None, link=None)
    assert there_and_back(several).slope.tolist() == [1.0, 1.0]


def test_format_1_has_the_squared_loss_and_no_link_of_its_own() -> None:
    assert bits(from_parts(*parts_of_format_1(example()), 1)) == bits(example())
    targets = from_parts(*parts_of_format_1(replace(example(), classes=None, link="log")), 1)
    assert (targets.loss, targets.link, targets.slope) == ("squared", "identity", 1.0)


def test_each_format_has_its_own_keys() -> None:
    arrays, text = to_parts(calibrated())
    old_arrays, old_text = parts_of_format_1(calibrated())
    with pytest.raises(
        ModelFileError, match="does not have just the keys categories, classes, feature_names, info, n_"
    ):
        from_parts(old_arrays, text, 1)
    with pytest.raises(ModelFileError, match=r"does not have just the keys .*link, loss"):
        from_parts(arrays, old_text, 2)
