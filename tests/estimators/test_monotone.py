"""Scores that only rise, or only fall, with a feature: exactly, in every kind of fit, and after save and load."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from monotone_models import check_monotone as check_ladders
from monotone_models import random_model

import quadboost
from quadboost import (
    Ensemble,
    QuadBoostClassifier,
    QuadBoostClassifierCV,
    QuadBoostRegressor,
    QuadBoostRegressorCV,
    regularization_path,
)

M = 300
RISES, FALLS, FREE = 0, 1, 2
SIGNS = {RISES: 1, FALLS: -1}


def table(seed=0):
    """Targets that the constraints do not suit: both features rise and fall, and one has missing values."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(M, 4))
    y = np.sin(2.5 * X[:, RISES]) + np.cos(2 * X[:, FALLS]) + X[:, FREE] ** 2 + 0.4 * random.normal(size=M)
    X[random.random(M) < 0.1, RISES] = np.nan
    y[np.isnan(X[:, RISES])] -= 1.0
    return X, y


def shapes_of(ensemble):
    return {shape.feature: shape for shape in ensemble.shape_functions()}


def check_monotone(ensemble, tmp_path=None):
    """No step goes the wrong way, not by the last bit; nor does any score."""
    shapes = shapes_of(ensemble)
    for feature, sign in SIGNS.items():
        if feature in shapes:
            assert (sign * np.diff(shapes[feature].values, axis=0) >= 0).all()
    for feature, sign in SIGNS.items():
        X = np.tile(table()[0][:40], (50, 1, 1))
        X[:, :, feature] = np.linspace(-4, 4, 50)[:, None]
        scores = ensemble.decision_function(X.reshape(-1, X.shape[2])).reshape(50, 40, -1)
        assert (sign * np.diff(scores, axis=0) >= 0).all()
    if tmp_path is not None:
        ensemble.save(tmp_path / "model.h5")
        check_monotone(quadboost.load(tmp_path / "model.h5"))


FITS = [
    pytest.param({}, id="l1"),
    pytest.param({"penalty": "l2"}, id="l2"),
    pytest.param({"penalty": "linf", "max_rounds": 300}, id="linf"),
    pytest.param({"penalty": None, "max_rounds": 400}, id="none"),
    pytest.param({"penalty": "l1", "mode": "forward", "max_rounds": 200}, id="l1 forward"),
    pytest.param({"penalty": "l2", "reg_lambda": 1.0, "mode": "forward", "max_rounds": 200}, id="l2 forward"),
    pytest.param({"penalty": "linf", "mode": "forward", "max_rounds": 200}, id="linf forward"),
    pytest.param({"penalty": "l2", "reweight_every": 10, "max_rounds": 300}, id="sweeps"),
    pytest.param({"reweight_every": 10, "reweight_sweeps": "solve"}, id="solve"),
    pytest.param({"validation_fraction": 0.3, "random_state": 0}, id="early stopping"),
]


@pytest.mark.thinned(2)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "parameters", [*FITS, *(pytest.param({"loss": loss, "tol": 1e-2}, id=loss) for loss in ("huber", "quantile"))]
)
def test_regressions_are_monotone_exactly(parameters, tmp_path):
    X, y = table()
    free = QuadBoostRegressor(**parameters).fit(X, y)
    model = QuadBoostRegressor(**parameters, monotonic_cst=SIGNS).fit(X, y)
    check_monotone(model.ensemble_, tmp_path)
    assert (np.diff(shapes_of(free.ensemble_)[RISES].values) < 0).any(), "the constraint matters"
    assert shapes_of(model.ensemble_)[FREE].values.shape[0] > 3
    assert RISES in shapes_of(model.ensemble_)


@pytest.mark.thinned(4)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("parameters", [*FITS, pytest.param({"loss": "logistic"}, id="logistic")])
def test_classifiers_are_monotone_exactly(parameters, tmp_path):
    X, y = table()
    model = QuadBoostClassifier(**parameters, monotonic_cst=SIGNS).fit(X, y > 1)
    check_monotone(model.ensemble_, tmp_path)
    assert RISES in shapes_of(model.ensemble_)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(60))
def test_models_of_any_kind_are_monotone_exactly(seed, tmp_path):
    """Around every threshold, of batches and of single rows, in memory and from a file."""
    model, signs, frame = random_model(seed)
    model.save(tmp_path / "model.h5")
    loaded = quadboost.load(tmp_path / "model.h5")
    moves = [
        check_ladders(either, signs, frame, score)
        for either in (model, loaded)
        for score in (
            None,
            lambda rows, either=either: [either.decision_function(row) for row in rows.to_dict("records")],
        )
    ]
    assert len(set(moves)) == 1


@pytest.mark.slow
def test_counts_and_scaled_targets_are_monotone_exactly(tmp_path):
    X, y = table()
    counts = np.random.default_rng(0).poisson(np.exp(y / 2))
    check_monotone(QuadBoostRegressor(loss="poisson", monotonic_cst=SIGNS).fit(X, counts).ensemble_, tmp_path)
    scaled = QuadBoostRegressor(standardize=True, monotonic_cst=SIGNS).fit(X, 1e3 * y + 7)
    check_monotone(scaled.ensemble_, tmp_path)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_of_several_classes_each_score_is_monotone(loss, tmp_path):
    X, y = table()
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    model = QuadBoostClassifier(loss=loss, monotonic_cst=SIGNS).fit(X, labels)
    assert model.ensemble_.n_outputs == 3
    check_monotone(model.ensemble_, tmp_path)


def test_several_scores_may_have_signs_of_their_own():
    X, y = table()
    model = QuadBoostRegressor(monotonic_cst={RISES: [1, -1], FALLS: [0, -1]}).fit(X, np.column_stack([y, y]))
    shapes = shapes_of(model.ensemble_)
    assert (np.diff(shapes[RISES].values[:, 0]) >= 0).all()
    assert (np.diff(shapes[RISES].values[:, 1]) <= 0).all()
    assert (np.diff(shapes[FALLS].values[:, 1]) <= 0).all()
    assert (np.diff(shapes[FALLS].values[:, 0]) > 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, {"loss": "logistic"}, {"mode": "forward"}], ids=str)
def test_searches_are_monotone_exactly(parameters, tmp_path):
    X, y = table()
    model = QuadBoostClassifierCV(
        ["l1", "l2"], reg_lambda=3, cv=2, max_rounds=100, monotonic_cst=SIGNS, **parameters
    ).fit(X, y > 1)
    check_monotone(model.ensemble_, tmp_path)


def test_a_search_scores_candidates_within_the_constraints():
    """The choice is scored as a fit to the other folds within the same constraints is."""
    X, y = table()
    search = QuadBoostRegressorCV(reg_lambda=[0.05], cv=3, rounds=[50], monotonic_cst=SIGNS, reweight_every=None).fit(
        X, y
    )
    free = QuadBoostRegressorCV(reg_lambda=[0.05], cv=3, rounds=[50], reweight_every=None).fit(X, y)
    check_monotone(search.ensemble_)
    assert search.best_score_ > 1.1 * free.best_score_, "the constraints cost something here, and the score says so"


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("penalty", "strengths"), [("l1", 4), ("l1", [0.1, 0.01]), ("l2", 4), ("linf", [0.01, 0.05])], ids=str
)
def test_paths_are_monotone_exactly(penalty, strengths):
    X, y = table()
    path = regularization_path(X, y, penalty, strengths=strengths, tol=1e-3, monotonic_cst=SIGNS)
    for number in range(len(path.strength)):
        check_monotone(path.ensemble(number))
    assert (path.dual_gap <= 1e-3 * y.var()).all()
    assert (path.dual_gap >= 0).all()
    assert strengths != 4 or penalty != "l1" or path.n_active[0] == 0 < path.n_active[1]


def test_the_missing_voter_is_free():
    X, y = table()
    shape = shapes_of(QuadBoostRegressor(monotonic_cst=SIGNS).fit(X, y).ensemble_)[RISES]
    assert shape.missing < shape.values.min()


def test_the_fit_is_certified():
    X, y = table()
    model = QuadBoostRegressor(reg_lambda=0.02, tol=1e-8, monotonic_cst=SIGNS).fit(X, y)
    assert model.stop_reason_ == "converged"
    assert 0 <= model.dual_gap_ <= 1e-8 * y.var()
    assert model.violation_ < 1e-4


def test_constraints_that_hold_anyway_cost_nothing():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(2000, 3))
    y = np.where(X[:, 0] > 0, 1.0, 0.0) - 2 * np.where(X[:, 1] > 0.3, 1.0, 0.0) + 0.01 * random.normal(size=2000)
    free = QuadBoostRegressor(reg_lambda=0.01, tol=1e-10).fit(X, y)
    model = QuadBoostRegressor(reg_lambda=0.01, tol=1e-10, monotonic_cst=[1, -1, 0]).fit(X, y)
    np.testing.assert_allclose(model.predict(X), free.predict(X), atol=1e-4)


@pytest.mark.parametrize("signs", [{}, {"a": 0}, [0, 0]], ids=str)
def test_without_a_sign_no_bit_changes(signs):
    X, y = table()
    frame = pd.DataFrame(X[:, [0, 2]], columns=["a", "b"])
    free = QuadBoostRegressor().fit(frame, y)
    model = QuadBoostRegressor(monotonic_cst=signs).fit(frame, y)
    np.testing.assert_array_equal(model.ensemble_.weight, free.ensemble_.weight)


def test_columns_of_a_frame_go_by_their_names():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = QuadBoostRegressor(monotonic_cst={"a": 1, "b": -1}).fit(frame, y)
    check_monotone(model.ensemble_.replace(feature_names=None))
    assert model.ensemble_.info["parameters"]["monotonic_cst"] == "{'a': 1, 'b': -1}"


GRADES = ["none", "low", "mid", "high", "top"]


def graded() -> tuple[pd.DataFrame, np.ndarray]:
    """Targets that fall from low to mid, some grades missing, and one that no row has."""
    rng = np.random.default_rng(0)
    grade, x = rng.choice([0, 1, 2, 4], 600), rng.normal(size=600)
    y = np.array([0.0, 1.0, 0.7, 2.0, 3.0])[grade] + x + 0.3 * rng.normal(size=600)
    codes = np.where(rng.random(600) < 0.05, -1, grade)
    return pd.DataFrame({"x": x, "grade": pd.Categorical.from_codes(codes, GRADES, ordered=True)}), y


@pytest.mark.parametrize("options", [{}, {"n_trees": 6, "max_leaves": 6}], ids=["stumps", "rules"])
def test_ordered_categories_are_numbers_in_the_order_of_their_levels(options, tmp_path):
    frame, y = graded()
    model = QuadBoostRegressor(monotonic_cst={"grade": 1}, **options).fit(frame, y)
    by_codes = frame.assign(grade=frame["grade"].cat.codes.where(frame["grade"].notna()))
    other = QuadBoostRegressor(monotonic_cst={"grade": 1}, **options).fit(by_codes, y)
    np.testing.assert_array_equal(model.predict(frame), other.predict(by_codes))

    rows = pd.DataFrame({"x": 0.3, "grade": pd.Categorical(GRADES, GRADES, ordered=True)})
    found = model.predict(rows)
    assert (np.diff(found) >= 0).all()
    assert found[0] < found[-1]
    model.save(tmp_path / "model.h5")
    loaded = quadboost.load(tmp_path / "model.h5")
    np.testing.assert_array_equal(loaded.predict(rows), found)
    np.testing.assert_array_equal(loaded.predict(rows.assign(grade=GRADES)), found)  # text has the order of training
    np.testing.assert_array_equal(loaded.predict(rows.assign(grade=range(5))), found)  # and so has a place
    assert any("grade = none" in reason for reason in loaded.explain(rows[:1]).reasons(99)[0])
    for rule in loaded.rules():
        assert not any(
            "grade > 1.5" in condition.words or "grade <= 1.5" in condition.words for condition in rule.conditions
        )


def test_libraries_agree_on_ordered_categories():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame, y = graded()
    values = [None if value != value else value for value in frame["grade"].astype(object)]
    in_polars = polars.DataFrame(
        {"x": frame["x"].to_numpy(), "grade": polars.Series(values, dtype=polars.Enum(GRADES))}
    )
    known = QuadBoostRegressor(monotonic_cst={"grade": 1}).fit(frame, y).predict(frame)
    for table in (in_polars, pyarrow.Table.from_pandas(frame)):
        found = QuadBoostRegressor(monotonic_cst=[0, 1]).fit(table, y).predict(table)
        np.testing.assert_array_equal(found, known)
    search = QuadBoostRegressorCV(monotonic_cst={"grade": 1}, cv=3).fit(frame, y)
    assert search.ensemble_.schema.orders == {1: GRADES}
    path = regularization_path(frame, y, monotonic_cst={"grade": 1}, strengths=3)
    assert path.ensemble(2).schema.orders == {1: GRADES}


def test_categories_without_an_order_or_with_another_are_refused():
    frame, y = graded()
    model = QuadBoostRegressor(monotonic_cst={"grade": 1}).fit(frame, y)
    with pytest.raises(ValueError, match="Column 'grade' holds 'best', which has no place in the order 'none', 'low'"):
        model.predict(frame.assign(grade="best"))
    turned = frame.assign(grade=frame["grade"].cat.reorder_categories(GRADES[::-1]))
    with pytest.raises(ValueError, match=r"has the order 'top', .* but in training it was 'none', "):
        model.predict(turned)
    text = frame.assign(grade=frame["grade"].astype(object))
    with pytest.raises(ValueError, match="column 'grade' is a category; if its levels have an order, let its type say"):
        QuadBoostRegressor(monotonic_cst={"grade": 1}).fit(text, y)
    free = QuadBoostRegressor(monotonic_cst={"x": 1, "grade": 0}).fit(frame, y)
    assert (list(free.ensemble_.categories), free.ensemble_.schema.orders) == ([1], {})  # a voter a level, as ever


def test_places_may_stand_beside_text_of_ordered_categories_and_levels_never_seen():
    frame, y = graded()
    frame = frame.assign(town=np.where(frame["x"] > 0, "a", "b"))
    model = QuadBoostRegressor(monotonic_cst={"grade": 1}, n_trees=3).fit(frame, y)
    rows = [{"x": 0.0, "grade": "top", "town": "never seen"}, {"x": 0.5, "grade": "low", "town": "b"}]
    known = model.predict(rows)
    for places in ([4.0, 1.0], [4, "low"], ["top", np.int64(1)]):  # of "top" and "low"
        given = [row | {"grade": place} for row, place in zip(rows, places, strict=True)]
        np.testing.assert_array_equal(model.predict(given), known)
        np.testing.assert_array_equal(model.predict(pd.DataFrame(given)), known)


def test_numbers_that_are_no_places_of_ordered_categories_are_refused():
    frame, y = graded()
    model = QuadBoostRegressor(monotonic_cst={"grade": 1}).fit(frame, y).ensemble_
    for place in (7.0, -1.0, 0.5):
        for rows in (
            np.array([[0.0, place]]),
            pd.DataFrame({"x": [0.0], "grade": place}),
            [{"x": 0.0, "grade": place}],
        ):
            with pytest.raises(
                ValueError, match=f"Column 'grade' holds {place:g}, which is no place in the order 'none'"
            ):
                model.predict(rows)
    known = model.predict(pd.DataFrame({"x": 0.0, "grade": ["low", None]}))
    np.testing.assert_array_equal(model.predict(np.array([[0.0, GRADES.index("low")], [0.0, np.nan]])), known)


def test_ordered_categories_of_numbers_are_these_numbers():
    frame, y = graded()
    numbers = 10.0 * frame["grade"].cat.codes
    ordered = pd.Categorical(numbers, sorted(set(numbers)), ordered=True)
    model = QuadBoostRegressor(monotonic_cst={"grade": 1}).fit(frame.assign(grade=ordered), y)
    known = QuadBoostRegressor(monotonic_cst={"grade": 1}).fit(frame.assign(grade=numbers), y)
    for rows in (frame.assign(grade=ordered), frame.assign(grade=numbers)):
        np.testing.assert_array_equal(model.predict(rows), known.predict(rows))
    turned = frame.assign(grade=ordered.reorder_categories(ordered.categories[::-1]))
    with pytest.raises(ValueError, match="with levels of text, or of numbers by their size; or give numbers"):
        QuadBoostRegressor(monotonic_cst={"grade": 1}).fit(turned, y)


@pytest.mark.parametrize(
    "orders", [[], {"1": "ab"}, {"1": ["a", "a"]}, {"1": [1]}, {"9": ["a"]}, {"x": ["a"]}, {"1": []}]
)
def test_orders_in_a_file_that_cannot_be_are_none(orders):
    model = Ensemble([0], [0.5], [1.0], 0.0, n_features=2, info={"orders": orders})
    assert model.schema.orders == {}


def test_a_warm_start_goes_on_within_the_same_constraints():
    X, y = table()
    once = QuadBoostRegressor(reg_lambda=0.001, max_rounds=80, tol=0, monotonic_cst=SIGNS).fit(X, y)
    twice = QuadBoostRegressor(reg_lambda=0.001, max_rounds=40, tol=0, monotonic_cst=dict(SIGNS), warm_start=True).fit(
        X, y
    )
    twice.set_params(max_rounds=80).fit(X, y)
    np.testing.assert_array_equal(twice.ensemble_.weight, once.ensemble_.weight)
    with pytest.raises(ValueError, match="warm_start goes on from a fit with monotonic_cst="):
        twice.set_params(monotonic_cst={RISES: -1}).fit(X, y)


RULES = {"n_trees": 10, "max_leaves": 10}


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "parameters",
    [{"penalty": "l1"}, {"penalty": "l2"}, {"penalty": "linf", "max_rounds": 500}, {"loss": "huber", "tol": 1e-2},
     {"penalty": "l1", "loss": "huber", "tol": 1e-2}, {"validation_fraction": 0.3, "random_state": 0},
     {"mode": "forward"}, {"mode": "forward", "loss": "huber", "validation_fraction": 0.3, "random_state": 0}],
    ids=str,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rules_are_monotone_exactly(parameters, tmp_path):
    X, y = table()
    free = QuadBoostRegressor(**RULES, **parameters).fit(X, y)
    model = QuadBoostRegressor(**RULES, **parameters, monotonic_cst=SIGNS).fit(X, y)
    assert model.ensemble_.n_rules > 5
    check_monotone(model.ensemble_, tmp_path)
    with pytest.raises(AssertionError):
        check_monotone(free.ensemble_)


@pytest.mark.slow
def test_classifiers_and_searches_with_rules_are_monotone_exactly(tmp_path):
    X, y = table()
    model = QuadBoostClassifier(**RULES, monotonic_cst=SIGNS).fit(X, y > 1)
    assert model.ensemble_.n_rules > 5
    check_monotone(model.ensemble_, tmp_path)
    search = QuadBoostRegressorCV(["l1", "l2"], **RULES, reg_lambda=[0.1, 0.03], cv=2, monotonic_cst=SIGNS).fit(X, y)
    check_monotone(search.ensemble_, tmp_path)


def test_trees_are_grown_to_the_signs():
    """No node is split whose rule may have no weight, because it asks for what must raise the score and lower it."""
    X, y = table()
    for signs in ({}, SIGNS):
        trees = QuadBoostRegressor(**RULES, penalty="l2", monotonic_cst=signs).fit(X, y).ensemble_.trees
        mixed = 0
        for node, path in enumerate(trees.paths()):
            sides = {SIGNS.get(int(trees.feature[asked]), 0) * (1 if right else -1) for asked, right in path}
            mixed += not trees.is_leaf[node] and sides >= {1, -1}
        assert (mixed == 0) == bool(signs)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("cst", ["pairwise", "no_interactions", [[0, 1], [2]], [[0, 2, 3], [1, 2]]], ids=str)
@pytest.mark.parametrize("estimator", [QuadBoostRegressor, QuadBoostRegressorCV])
def test_only_features_meet_that_may(estimator, cst):
    random = np.random.default_rng(0)
    X = random.normal(size=(M, 4))
    y = np.sign(X[:, 0] * X[:, 1] * X[:, 2]) + np.sign(X[:, 2] * X[:, 3]) + 0.1 * random.normal(size=M)
    search = {"penalty": "l2", "reg_lambda": [0.1], "cv": 2} if estimator is QuadBoostRegressorCV else {}
    trees = estimator(**RULES, **search, interaction_cst=cst).fit(X, y).ensemble_.trees
    met = {frozenset(int(trees.feature[node]) for node, _ in path) for path in trees.paths()}
    assert max(map(len, met)) == {"pairwise": 2, "no_interactions": 1}.get(str(cst), 3 if 3 in map(len, cst) else 2)
    if not isinstance(cst, str):
        rest = set(range(4)) - set().union(*cst)
        assert all(any(features <= set(group) for group in [*cst, rest]) for features in met)


def test_features_that_may_meet_go_by_their_names_and_unknown_ones_are_refused():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcd"))
    QuadBoostRegressor(**RULES, interaction_cst=[["a", "b"]]).fit(frame, y)
    with pytest.raises(ValueError, match="interaction_cst has 'e', which is no column of X"):
        QuadBoostRegressor(**RULES, interaction_cst=[["a", "e"]]).fit(frame, y)
