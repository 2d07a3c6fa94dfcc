"""The fitted model: scores are the plain sum over its voters, whatever way they are computed."""

from __future__ import annotations

import pickle
from copy import deepcopy
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference import LEVEL, MISSING, THRESHOLD, voter_matrix

import quadboost.model.ensemble
from quadboost import Ensemble, load

NAN = np.nan
CUTS = [-1.0, 0.0, 0.5, 2.0]
VALUES = [-2.0, *CUTS, np.nextafter(0.5, 1), np.nextafter(0.5, 0), 1e300, NAN]
# Feature 1: three levels, the last of two pooled values. Features 0 and 2 are real.
CATEGORIES = {1: [["a"], ["b"], ["c", "d"]]}
LETTERS = ["a", "b", "c", "d", "never seen", None]


@st.composite
def ensembles(draw, n_outputs=None):
    """Voters of all kinds on two real features and a categorical one; one output (1-d) or several."""
    real = st.tuples(st.sampled_from([0, 2]), st.just(THRESHOLD), st.sampled_from(CUTS))
    level = st.tuples(st.just(1), st.just(LEVEL), st.sampled_from([0.0, 1.0, 2.0]))
    missing = st.tuples(st.sampled_from([0, 1, 2]), st.just(MISSING), st.just(0.0))
    voters = draw(st.lists(real | level | missing, max_size=12, unique=True))
    feature, kind, threshold = zip(*voters, strict=True) if voters else ((), (), ())
    shape = (len(voters),) if n_outputs is None else (len(voters), n_outputs)
    weight = draw(arrays(float, shape, elements=st.floats(-2, 2)))
    intercept = draw(arrays(float, () if n_outputs is None else n_outputs, elements=st.floats(-2, 2)))
    arguments = {"n_features": 3, "categories": CATEGORIES}
    if draw(st.booleans()):  # the order of voters does not matter
        order = list(range(len(voters)))[::-1]
        feature, kind, threshold = ([part[i] for i in order] for part in (feature, kind, threshold))
        weight = weight[::-1]
    return Ensemble(feature, threshold, weight, intercept, kind=kind, **arguments)


tables = st.lists(
    st.tuples(st.sampled_from(VALUES), st.sampled_from(LETTERS), st.sampled_from(VALUES)), min_size=1, max_size=20
)


def plain_sum(ensemble, X):
    H = voter_matrix(X, ensemble.feature, ensemble.kind, ensemble.threshold, ensemble.categories)
    return ensemble.intercept + H @ ensemble.weight


@given(st.one_of(ensembles(), ensembles(1), ensembles(3)), tables)
def test_the_score_is_the_intercept_plus_the_sum_of_weighted_votes(ensemble, rows):
    X = np.array(rows, dtype=object)
    known = plain_sum(ensemble, X)
    frame = pd.DataFrame({"x": X[:, 0].astype(float), "c": X[:, 1], "z": X[:, 2].astype(float)})
    for table in (X, frame):
        np.testing.assert_allclose(ensemble.decision_function(table), known, rtol=0, atol=1e-13)


@given(st.one_of(ensembles(), ensembles(3)), tables)
def test_shape_functions_add_up_to_the_score(ensemble, rows):
    total = np.zeros((len(rows), *np.shape(ensemble.intercept))) + ensemble.intercept
    for shape in ensemble.shape_functions():
        assert (shape.levels is None) == (shape.feature != 1)
        for i, row in enumerate(rows):
            x = row[shape.feature]
            if x is None or x != x:
                total[i] += shape.missing
            elif shape.levels is None:
                total[i] += shape.values[np.sum(x > shape.thresholds)]
            else:
                total[i] += shape.values[next((n for n, group in enumerate(shape.levels) if x in group), -1)]
    known = ensemble.decision_function(np.array(rows, dtype=object))
    np.testing.assert_allclose(total, known, rtol=0, atol=1e-13)


def test_a_value_on_a_threshold_is_below_it():
    ensemble = Ensemble([0], [0.5], [1.0], 0.0, n_features=1)
    X = np.array([[0.5], [np.nextafter(0.5, 1)], [np.float32(0.5)], [-np.inf], [np.inf], [NAN]])
    np.testing.assert_array_equal(ensemble.decision_function(X), [-1, 1, -1, -1, 1, 0])


def test_float32_rows_are_compared_in_double_precision():
    x = np.float32(0.1)  # a little above 0.1
    ensemble = Ensemble([0], [0.1], [1.0], 0.0, n_features=1)
    np.testing.assert_array_equal(ensemble.decision_function(np.array([[x]], dtype=np.float32)), [1.0])


def test_a_feature_that_was_never_missing_abstains_where_it_is():
    ensemble = Ensemble([0, 1], [0.0, 0.0], [1.0, 10.0], 100.0, n_features=2)
    np.testing.assert_array_equal(ensemble.decision_function([[NAN, 1.0], [NAN, NAN]]), [110.0, 100.0])


def test_all_voters_of_a_category_are_against_a_level_never_seen():
    ensemble = Ensemble(
        [0, 0], [0, 1], [1.0, 10.0], 0.0, kind=[LEVEL, LEVEL], n_features=1, categories={0: [["a"], ["b"]]}
    )
    X = pd.DataFrame({"c": ["a", "b", "z", None]})
    np.testing.assert_array_equal(ensemble.decision_function(X), [-9.0, 9.0, -11.0, 0.0])


def test_an_ensemble_without_voters_says_its_intercept():
    ensemble = Ensemble([], [], [], 0.25, n_features=2)
    np.testing.assert_array_equal(ensemble.decision_function(np.zeros((3, 2))), 0.25)
    assert ensemble.shape_functions() == []


def big_ensemble(n_outputs):
    rng = np.random.default_rng(0)
    shape = 5_000 if n_outputs == 1 else (5_000, n_outputs)
    feature, threshold = rng.integers(0, 7, size=5_000), rng.normal(size=5_000)
    return Ensemble(
        feature, threshold, rng.normal(size=shape), np.zeros(shape[1:] if n_outputs > 1 else ()), n_features=7
    )


@pytest.mark.parametrize("n_outputs", [1, 4])
@pytest.mark.parametrize("n_jobs", [2, 4, -1])
def test_threads_give_the_same_scores_bit_for_bit(n_outputs, n_jobs, monkeypatch):
    monkeypatch.setattr(quadboost.model.ensemble, "CELLS_FOR_THREADS", 0)
    ensemble, X = big_ensemble(n_outputs), np.random.default_rng(1).normal(size=(3_333, 7))
    known = ensemble.decision_function(X, n_jobs=1)
    np.testing.assert_array_equal(ensemble.decision_function(X, n_jobs=n_jobs), known)
    np.testing.assert_array_equal(ensemble.decision_function(np.asfortranarray(X)), known)
    alone = np.concatenate([ensemble.decision_function(row[None]) for row in X[:50]])
    np.testing.assert_array_equal(alone, known[:50])


def test_scoring_does_not_grow_with_the_number_of_voters():
    # A table look-up per feature, however many voters stand behind it.
    assert len(big_ensemble(1).shape_functions()) == 7


# --- labels and probabilities -------------------------------------------------------------------------------


def constant(score, classes):
    """An ensemble of the given score everywhere."""
    return Ensemble([], [], np.empty((0, *np.shape(score))), score, n_features=1, classes=np.array(classes))


ROW = np.zeros((1, 1))
scores = st.floats(-3, 3) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-17, -1e-17, 1.0, -1.0, 1e300, -1e300])


@given(scores)
def test_two_classes_by_the_sign_of_the_score_and_zero_is_the_first(score):
    ensemble = constant(score, ["no", "yes"])
    assert ensemble.predict(ROW).tolist() == ["yes" if score > 0 else "no"]
    first, second = ensemble.predict_proba(ROW)[0]
    assert second == pytest.approx(min(max((1 + score) / 2, 0), 1), abs=1e-15)
    assert first + second == 1.0
    assert (second > first) == (score > 0)


@given(st.lists(scores, min_size=3, max_size=5))
def test_more_classes_by_the_largest_score_and_the_first_of_equals(values):
    ensemble = constant(np.array(values), np.arange(len(values)) * 10)
    label = ensemble.predict(ROW)[0]
    assert label == 10 * int(np.argmax(values))
    probability = ensemble.predict_proba(ROW)[0]
    assert probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all((probability >= 0) & (probability <= 1))
    assert 10 * int(np.argmax(probability)) == label


@pytest.mark.parametrize("classes", [["a", "b"], [0, 1], [-1.5, 1.5], [False, True]])
def test_labels_come_back_in_their_own_type(classes):
    label = constant(1.0, classes).predict(ROW)
    assert label.dtype == np.array(classes).dtype
    assert label[0] == classes[1]


def test_a_regression_predicts_its_score_and_has_no_probabilities():
    ensemble = Ensemble([0], [0.0], [1.0], 5.0, n_features=1)
    np.testing.assert_array_equal(ensemble.predict([[1.0], [-1.0]]), [6.0, 4.0])
    with pytest.raises(ValueError, match="no class probabilities; use predict"):
        ensemble.predict_proba([[1.0]])


# --- what is refused ----------------------------------------------------------------------------------------


# The kernels trust the ensemble: what is wrong in it would read memory that is not its own.
@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"feature": [2]}, "feature"),
        ({"feature": [-1]}, "feature"),
        ({"threshold": [0.0, 1.0]}, "threshold"),
        ({"threshold": [NAN]}, "threshold"),
        ({"weight": [1.0, 2.0]}, "weight"),
        ({"kind": [0, 0]}, "kind"),
        ({"kind": [3]}, "kind"),
        ({"kind": [LEVEL]}, "level"),  # feature 0 has none
        ({"kind": [LEVEL], "threshold": [2.0], "categories": {0: [["a"], ["b"]]}}, "level"),
        ({"classes": np.array(["a"])}, "classes"),
        ({"classes": np.array(["a", "b", "c"])}, "classes"),
        ({"feature_names": ("a",)}, "feature_names"),
    ],
)
def test_arrays_that_do_not_make_an_ensemble_are_refused(arguments, wrong):
    good = {"feature": [0], "threshold": [0.0], "weight": [1.0], "intercept": 0.0, "n_features": 2}
    with pytest.raises(ValueError, match=wrong):
        Ensemble(**{**good, **arguments})


def test_rows_of_another_width_are_refused():
    with pytest.raises(ValueError, match="X has 3 features, but this model is expecting 2 features"):
        Ensemble([0], [0.0], [1.0], 0.0, n_features=2).predict(np.zeros((5, 3)))


@pytest.mark.slow
def test_an_ensemble_needs_numpy_alone(run_python):
    loaded = run_python(
        "import sys, quadboost\n"
        "ensemble = quadboost.Ensemble([0], [0.0], [1.0], 0.5, n_features=1, classes=[0, 1])\n"
        "print(ensemble.predict([[1.0], [-1.0]]), ensemble)\n"
        "print({'sklearn', 'scipy', 'pandas', 'h5py', 'joblib'} & set(sys.modules))"
    )
    assert loaded.splitlines() == ["[1 0] <Ensemble: 1 voters on 1 features, 2 classes>", "set()"]


def test_stumps_score_without_modules_that_take_as_long_to_import_as_a_model_to_load(run_python):
    loaded = run_python(
        "import sys, numpy\n"
        "known = set(sys.modules)\n"
        "import quadboost\n"
        "quadboost.Ensemble([0], [0.0], [1.0], 0.5, n_features=1).predict(numpy.zeros((1, 1)))\n"
        "print({'numpy.ma', 'decimal'} & (set(sys.modules) - known))"
    )
    assert loaded.strip() == "set()"


# --- a model does not change ----------------------------------------------------------------------------------

ARRAYS = ("feature", "threshold", "weight", "kind", "classes", "intercept")


def three_classes():
    arrays = {
        "feature": np.array([0, 1], dtype=np.int32),
        "threshold": np.array([0.5, 1.0]),
        "weight": np.array([[1.0, 0.0, -1.0], [0.25, 0.5, 0.0]]),
        "intercept": np.array([0.0, 0.25, 0.5]),
        "kind": np.array([THRESHOLD, THRESHOLD], dtype=np.uint8),
        "classes": np.array(["a", "b", "c"]),
    }
    return Ensemble(**arrays, n_features=2, info={"rows": 3}), arrays


def through_a_file(ensemble):
    with TemporaryDirectory() as folder:
        ensemble.save(f"{folder}/model.h5")
        return load(f"{folder}/model.h5")


def pickled_beside_its_arrays(ensemble):
    buffers = []
    data = pickle.dumps(ensemble, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytearray(buffer) for buffer in buffers])


WAYS = {
    "new": lambda ensemble: ensemble,
    "pickled": lambda ensemble: pickle.loads(pickle.dumps(ensemble)),
    "pickled beside its arrays": pickled_beside_its_arrays,
    "copied": deepcopy,
    "replaced": lambda ensemble: ensemble.replace(info={}),
    "loaded": through_a_file,
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


@each_way
def test_arrays_cannot_be_written_to(way):
    ensemble = way(three_classes()[0])
    for name in ARRAYS:
        array = getattr(ensemble, name)
        assert not array.flags.writeable, name
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]


@each_way
def test_attributes_cannot_be_set(way):
    ensemble = way(three_classes()[0])
    for name in (*ARRAYS, "schema", "info", "n_features", "_steps", "anything"):
        with pytest.raises(AttributeError, match=rf"an Ensemble does not change, and {name} cannot be set"):
            setattr(ensemble, name, None)


@each_way
def test_dicts_cannot_be_written_to(way):
    ensemble = way(three_classes()[0])
    for values in (ensemble.info, ensemble.categories):
        with pytest.raises(TypeError, match="read-only"):
            values[0] = []


def test_the_arrays_of_the_caller_stay_his_own():
    ensemble, arrays = three_classes()
    X = np.array([[0.0, 2.0], [1.0, 0.0]])
    known = ensemble.decision_function(X)
    again, arrays = three_classes()
    for array in arrays.values():
        assert array.flags.writeable
        array[:] = array[::-1].copy()
    np.testing.assert_array_equal(again.decision_function(X), known)
    np.testing.assert_array_equal(again.predict(X), ensemble.predict(X))


@each_way
def test_a_copy_scores_as_the_model_does(way):
    ensemble, _ = three_classes()
    X = np.random.default_rng(0).normal(size=(50, 2))
    known = ensemble.decision_function(X)  # what is kept for scoring must not be in the way
    np.testing.assert_array_equal(way(ensemble).decision_function(X), known)


def test_replace_changes_what_is_named_and_nothing_else():
    ensemble, _ = three_classes()
    other = ensemble.replace(feature_names=["p", "q"], info={"new": 1})
    assert (other.feature_names, other.info) == (("p", "q"), {"new": 1})
    assert (ensemble.feature_names, ensemble.info) == (None, {"rows": 3})
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(other, name), getattr(ensemble, name))
    with pytest.raises(ValueError, match="1 feature_names for 2 features"):
        ensemble.replace(feature_names=["p"])
    with pytest.raises(TypeError, match="rounds"):
        ensemble.replace(rounds=3)


def test_scores_labels_and_probabilities_in_steps_are_those_at_once():
    ensemble, _ = three_classes()
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)))
    scores = ensemble.score_matrix(ensemble.matrix_of(X))
    np.testing.assert_array_equal(scores, ensemble.decision_function(X))
    np.testing.assert_array_equal(scores, ensemble.scores_of(X))
    np.testing.assert_array_equal(ensemble.labels_of(scores), ensemble.predict(X))
    np.testing.assert_array_equal(ensemble.probabilities_of(scores), ensemble.predict_proba(X))
    with pytest.raises(ValueError, match="my model is expecting 2 features"):
        ensemble.scores_of(np.zeros((3, 5)), owner="my model")


@pytest.mark.parametrize("known", [None, "none", [1, 2], [[1], 2, 3], {"a": 1}, [10**400, 0, 0], [True, False, True]])
def test_what_cannot_be_importances_is_none(known):
    assert (
        Ensemble([0], [0.5], np.ones(1), 0.0, n_features=3, info={"feature_importances": known}).feature_importances
        is None
    )


def test_importances_are_those_of_the_fit():
    assert Ensemble(
        [0], [0.5], np.ones(1), 0.0, n_features=3, info={"feature_importances": [1, 0.5, 0]}
    ).feature_importances.tolist() == [1, 0.5, 0]


def test_categories_of_any_size_are_no_error():
    model = Ensemble([0], [0], np.ones(1), 0.0, kind=[LEVEL], n_features=1, categories={0: [[10**400, 5], ["a"]]})
    X = np.array([[5.0], [6.0]])
    assert model.decision_function(X).tolist() == model.decision_function(X.astype(object)).tolist()


# --- links --------------------------------------------------------------------------------------------------


def linked(score, n_classes=0, **arguments):
    """An ensemble of the given score everywhere, of so many classes."""
    classes = np.arange(n_classes) * 10 if n_classes else None
    return Ensemble([], [], np.empty((0, *np.shape(score))), score, n_features=1, classes=classes, **arguments)


@pytest.mark.parametrize(
    ("n_classes", "score", "link"), [(0, 0.5, "identity"), (2, 0.5, "clipped"), (3, [0, 1, 2], "clipped")]
)
def test_a_model_without_a_link_is_as_it_always_was(n_classes, score, link):
    ensemble = linked(np.array(score, dtype=float) if n_classes == 3 else score, n_classes)
    assert (ensemble.loss, ensemble.link) == ("squared", link)
    np.testing.assert_array_equal(ensemble.slope, np.ones_like(ensemble.intercept))


def test_a_log_link_predicts_exp_of_the_score():
    ensemble = linked(0.75, loss="poisson", link="log")
    np.testing.assert_allclose(ensemble.predict(ROW), np.exp(0.75), rtol=1e-13)
    np.testing.assert_array_equal(ensemble.decision_function(ROW), 0.75)
    several = linked(np.array([0.0, 2.0]), loss="poisson", link="log")
    np.testing.assert_allclose(several.predict(ROW), [[1.0, np.exp(2.0)]], rtol=1e-13)


@given(scores)
def test_a_logit_agrees_with_the_label_and_the_sign_of_the_score(score):
    ensemble = linked(score, 2, link="logit", slope=3.0)
    assert ensemble.predict(ROW)[0] == (10 if score > 0 else 0)
    first, second = ensemble.predict_proba(ROW)[0]
    assert first + second == 1.0
    assert (second > first) == (score > 0)
    assert second == pytest.approx(1 / (1 + np.exp(-np.clip(score, -700, 700))), rel=1e-12)


def test_a_softmax_agrees_with_the_label():
    ensemble = linked(np.array([0.0, 3.0, 1.0]), 3, loss="logistic", link="softmax", slope=[1.0, 1.0, 2.0])
    assert ensemble.predict(ROW)[0] == 10
    share = np.exp([0.0, 3.0, 1.0])
    np.testing.assert_allclose(ensemble.predict_proba(ROW), [share / share.sum()], rtol=1e-12)


@pytest.mark.parametrize("link", ["clipped", "logit"])
def test_two_classes_by_a_matrix_of_weights_have_two_probabilities(link):
    ensemble = linked(np.array([0.5]), 2, link=link)
    assert ensemble.predict(ROW).tolist() == [10]
    np.testing.assert_array_equal(ensemble.predict_proba(ROW), linked(0.5, 2, link=link).predict_proba(ROW))


def test_a_slope_is_a_number_for_one_output_and_an_array_for_several():
    assert linked(0.5, 2, link="logit", slope=np.array([2.0])).slope == 2.0
    assert isinstance(linked(0.5, 2, link="logit", slope=2).slope, float)
    several = linked(np.zeros(3), 3, link="softmax", slope=2)
    assert several.slope.tolist() == [2.0, 2.0, 2.0]
    assert not several.slope.flags.writeable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"link": "softmax"}, "the link 'softmax' is not one of a model of 2 classes"),
        ({"link": "log"}, "the link 'log' is not one of a model of 2 classes"),
        ({"loss": "logistic"}, "the link 'clipped' does not go with the loss 'logistic'"),
        ({"loss": "huber"}, "the link 'clipped' does not go with the loss 'huber'"),
        ({"link": "logit", "slope": 0}, "the slope is 0.0, not a finite number above 0"),
        ({"link": "logit", "slope": [1.0, 2.0]}, r"the slope has shape \(2,\); there are 1 outputs"),
        ({"link": "logit", "slope": [[1.0]]}, r"the slope has shape \(1, 1\); there are 1 outputs"),
        ({"link": "logit", "slope": "steep"}, "the slope is 'steep', not a number"),
        ({"link": "logit", "slope": None}, "the slope is nan, not a finite number above 0"),
        ({"slope": 2.0}, "the slope of the link 'clipped' is 2.0; it can only be 1"),
    ],
)
def test_a_link_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        linked(0.5, 2, **arguments)


@pytest.mark.parametrize("name", ["loss", "link", "slope"])
def test_a_link_does_not_change(name):
    with pytest.raises(AttributeError, match=f"{name} cannot be set"):
        setattr(linked(0.5, 2, link="logit"), name, "logit")


@pytest.mark.parametrize("copied", [deepcopy, lambda one: pickle.loads(pickle.dumps(one)), Ensemble.replace])
def test_a_copy_keeps_its_link(copied):
    same = copied(linked(0.5, 2, loss="logistic", link="logit", slope=2.5))
    assert (same.loss, same.link, same.slope) == ("logistic", "logit", 2.5)


def test_masses_and_errors_go_with_the_voters_and_are_forgotten_with_them():
    bins = {"bin_mass": [3.0, 2.0, 1.0, 0.0], "bin_error": [0.5, 0.25, 0.125, 0.0]}
    made = Ensemble([0, 0], [1.0, 2.0], [0.5, 0.25], 0.0, n_features=1, feature_names=["x"], **bins)
    named = made.replace(feature_names=["z"])
    assert (named.bin_mass.tolist(), named.bin_error.tolist()) == tuple(bins.values())
    heavier = made.replace(weight=[1.0, 2.0])
    assert (heavier.bin_mass.tolist(), heavier.bin_error.tolist()) == (bins["bin_mass"], [])
    other = made.replace(threshold=[1.0, 3.0])
    assert (other.bin_mass.tolist(), other.bin_error.tolist()) == ([], [])
    (shape,) = made.shape_functions(bands=True)
    assert (shape.name, shape.mass.tolist(), shape.missing_mass) == ("x", [3.0, 2.0, 1.0], 0.0)
    assert (shape.error.tolist(), shape.missing_error) == ([0.5, 0.25, 0.125], 0.0)
    assert not shape.mass.flags.writeable
    with pytest.raises(ValueError, match="this model has no bands; fit it with cross-validation"):
        heavier.shape_functions(bands=True)
    with pytest.raises(ValueError, match="bin_mass has 1 values, but the shape functions have 4 bins"):
        made.replace(bin_mass=[1.0])
    with pytest.raises(ValueError, match=r"bin_error \(4, 2\); give one mass per bin, and one error for each output"):
        made.replace(bin_error=np.ones((4, 2)))
