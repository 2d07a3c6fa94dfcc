"""ONNX: the same bits in onnxruntime."""

import numpy as np
import pandas as pd
import pytest
from export_models import (
    FAR,
    KINDS,
    by_hand,
    check,
    far_out,
    fitted,
    hard_rows,
    many_classes,
    mixed,
    ordered,
    same_bits,
    tiny,
    without_voters,
)
from monotone_models import check_monotone, random_model

from quadboost import Ensemble
from quadboost.export.additive import UNSEEN
from quadboost.export.onnx import self_test, session_input, to_onnx

pytestmark = pytest.mark.oracle("onnx", "onnxruntime")


def session_of(made):
    import onnx
    import onnxruntime

    onnx.checker.check_model(made, full_check=True)
    assert self_test(made) == 0
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 2  # warnings are printed: a test below reads them
    return onnxruntime.InferenceSession(made.SerializeToString(), options)


def run(model, frame, missing_text="?", **options):
    session = session_of(to_onnx(model, missing_text=missing_text, **options))
    names = [one.name for one in session.get_outputs()]
    rows = [[None if v is None or v != v else v for v in row] for row in frame.itertuples(index=False)]
    return dict(zip(names, session.run(names, session_input(session, rows, missing_text)), strict=True))


def check_found(model, frame, capfd):
    """Outputs, and their shapes; the terms add up; onnxruntime has nothing to say."""
    found = run(model, frame, contributions=True)
    expected = model.decision_function(frame)
    assert found["scores"].shape == expected.shape
    predictions = found["prediction"] if model.classes is None else found["label"].tolist()
    check(model, frame, found["scores"], predictions, found.get("probabilities"))
    terms = found["contributions"].reshape(len(frame), -1, model.n_outputs)
    same_bits(found["intercept"], np.atleast_1d(model.intercept))
    total = np.tile(found["intercept"], (len(frame), 1))
    for term in range(terms.shape[1]):
        total += terms[:, term]
    same_bits(total, expected.reshape(total.shape))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits(kind, capfd):
    check_found(fitted(kind), hard_rows(), capfd)


@pytest.mark.parametrize("kind", FAR)
def test_predictions_of_scores_far_out(kind, capfd):
    check_found(*far_out(kind), capfd)


@pytest.mark.parametrize(
    "made", [by_hand, tiny, without_voters, ordered, lambda: many_classes(100), lambda: many_classes(9)]
)
def test_odd_models(made, capfd):
    check_found(*made(), capfd)


def test_a_column_of_text_and_numbers_is_text(capfd):
    model, frame = mixed()
    check_found(model, frame[[value is None or isinstance(value, str) for value in frame["m"]]], capfd)


def numbers_as_levels():
    """Levels that are numbers, in a matrix, some of them neighbours."""
    near = [0.1, float(np.nextafter(0.1, 1)), float(np.nextafter(0.1, 0)), 7, -3]
    model = Ensemble(
        [0, 0, 0, 1],
        [0, 1, 3, 0.5],
        [0.3, 0.1, 0.7, 0.2],
        0.1,
        kind=[1, 1, 1, 0],
        n_features=2,
        categories={0: [[value] for value in near]},
    )
    values = np.array([*near, 7.5, np.nan, np.inf, -np.inf, np.nextafter(near[1], 1)])
    return model, pd.DataFrame({"x0": values, "x1": np.arange(len(values)) / 10})


def test_levels_that_are_numbers_are_columns_of_a_matrix(capfd):
    model, frame = numbers_as_levels()
    assert [one.name for one in to_onnx(model).graph.input] == ["X"]
    check_found(model, frame, capfd)


@pytest.mark.parametrize("made", [by_hand, numbers_as_levels, lambda: far_out("logit-2"), lambda: far_out("softmax-3")])
def test_float32_takes_the_same_steps(made):
    model, frame = made()
    with np.errstate(over="ignore"):
        single = frame.astype(np.float32)
    found = run(model, single, dtype="float32")
    assert found["scores"].dtype == np.float32
    exact = model.decision_function(single.to_numpy())
    size = np.abs(model.weight).sum() + 1
    np.testing.assert_allclose(found["scores"], exact, rtol=0, atol=size * 2.0**-23)
    if model.classes is not None:
        assert found["probabilities"].sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("change", [lambda values: np.nextafter(values, 9.0), lambda values: values * np.nan])
def test_self_test_tells_a_changed_value(change):
    made = to_onnx(by_hand()[0])
    first = next(node for node in made.graph.node if node.op_type == "TreeEnsemble")
    values = next(one.t.double_data for one in first.attribute if one.name == "leaf_weights")
    values[:] = change(np.array(values))
    assert self_test(made) > 0


def test_self_test_runs_from_a_file(tmp_path):
    (tmp_path / "model.onnx").write_bytes(to_onnx(fitted("logit-3"), missing_text="?").SerializeToString())
    assert self_test(tmp_path / "model.onnx") == 0


NAMES = ["scores", "label", "probabilities", "quadboost/0", "", "label_input", "prediction", "quadboost//1"]


@pytest.mark.parametrize("names", [NAMES, ["contributions", "quadboost/constant 0", "intercept", "prediction"]])
def test_features_may_have_the_names_of_outputs_and_of_nodes(names, capfd):
    n, levels = len(names), [["a"], ["b"]]
    categories = dict.fromkeys(range(0, n, 2), levels)
    kind = [int(feature in categories) for feature in range(n)]
    for classes, link in ((["u", "v"], "logit"), (None, "identity")):
        model = Ensemble(range(n), [0] * n, np.arange(n) + 1.0, 0.1, kind=kind, n_features=n, categories=categories)
        model = model.replace(feature_names=names, classes=classes, link=link)
        made = to_onnx(model, contributions=True)
        inputs, outputs = ([one.name for one in these] for these in (made.graph.input, made.graph.output))
        assert len({*inputs, *outputs}) == len(inputs) + len(outputs)
        for name, values in zip(names, inputs, strict=True):
            assert values == name or (values.startswith(name) and values.endswith("_input"))
        frame = pd.DataFrame([["a" if feature in categories else 1.0 for feature in range(n)]], columns=names)
        check_found(model, frame, capfd)


@pytest.mark.parametrize("missing_text", [UNSEEN, "?"])
def test_the_self_test_has_each_kind_of_value_whatever_stands_for_a_missing_one(missing_text):
    assert self_test(to_onnx(fitted("trees-2"), missing_text=missing_text)) == 0


def test_what_has_no_self_test_is_told(tmp_path):
    made = to_onnx(by_hand()[0])
    del made.metadata_props[:]
    with pytest.raises(ValueError, match="the model has no self-test"):
        self_test(made)
    with pytest.raises(ValueError, match="onnxruntime cannot load the model"):
        self_test(b"no model")
    with pytest.raises(FileNotFoundError):
        self_test("nowhere.onnx")
    for wrong in (None, 3, ["model.onnx"]):
        with pytest.raises(TypeError, match="is no ONNX model; give what to_onnx returned"):
            self_test(wrong)


def test_missing_text_must_be_no_level():
    with pytest.raises(ValueError, match="missing_text='' is a level; give text that is none"):
        to_onnx(fitted("logit-2"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dtype": "float16"}, "dtype='float16' is not known"),
        ({"dtype": np.float64}, "is not known; use 'float64' or 'float32'"),
        ({"missing_text": None}, "missing_text=None must be text"),
        ({"missing_text": "\ud800"}, "has a character that ONNX cannot hold"),
        ({"contributions": "no"}, "contributions='no' is not known; use False or True"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        to_onnx(fitted("logit-2"), **given)


def test_without_onnxruntime_the_remedy_is_told(monkeypatch):
    made = to_onnx(by_hand()[0])
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"needs onnxruntime, .* pip install 'quadboost\[onnx\]'"):
        self_test(made)


def test_without_onnx_the_remedy_is_told(run_python):
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import numpy as np, quadboost\nfrom quadboost.export import to_onnx\n"
        "model = quadboost.Ensemble([], [], [], 0.0, n_features=1)\n"
        "try:\n    to_onnx(model)\nexcept ImportError as error:\n    print(error)"
    )
    assert "pip install 'quadboost[onnx]'" in run_python(code)


@pytest.mark.parametrize("seed", range(12))
def test_monotone_scores_stay_so(seed):
    model, signs, frame = random_model(seed)
    check_monotone(model, signs, frame, lambda rows: run(model, rows)["scores"])
