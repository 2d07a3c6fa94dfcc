"""Fits to rows in parts: the model that all rows at once give, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import assert_same_model
from parts_of_tables import in_parts, table, targets, weights

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor
from quadboost.parts import fit as module
from quadboost.parts.fit import Parted, problem_of_parts
from quadboost.parts.source import InMemory, Part

M = 600
X = table(M)
Y, WEIGHTS = targets(X), weights(M)
FITS = {
    "l1": (QuadBoostClassifier, {}, "labels"),
    "classes": (QuadBoostClassifier, {"thresholds": 30}, "classes"),
    "balanced": (QuadBoostClassifier, {"class_weight": "balanced", "penalty": "linf"}, "labels"),
    "l2": (QuadBoostClassifier, {"penalty": "l2", "max_rounds": 200}, "labels"),
    "forward": (QuadBoostRegressor, {"mode": "forward", "max_rounds": 50}, "far"),
    "far": (QuadBoostRegressor, {"monotonic_cst": {"real": 1}}, "far"),
    "two targets": (QuadBoostRegressor, {"standardize": True, "spacing": "uniform", "thresholds": 9}, "two"),
    "logistic": (QuadBoostClassifier, {"loss": "logistic", "thresholds": 9}, "labels"),
    "multinomial": (QuadBoostClassifier, {"loss": "logistic", "penalty": "l2", "thresholds": 5}, "classes"),
    "poisson": (QuadBoostRegressor, {"loss": "poisson", "thresholds": 9}, "counts"),
    "huber": (QuadBoostRegressor, {"loss": "huber", "thresholds": 9}, "far"),
    "quantile": (QuadBoostRegressor, {"loss": "quantile", "quantile": 0.8, "thresholds": 3, "tol": 0.1}, "two"),
    "many at once": (QuadBoostRegressor, {"penalty": "l2", "thresholds": 600}, "two"),
    "trees": (QuadBoostClassifier, {"n_trees": 4, "random_state": 3}, "labels"),
    "trees on a sample": (
        QuadBoostClassifier,
        {"n_trees": 4, "growth_rows": 150, "class_weight": "balanced"},
        "labels",
    ),
    "trees of classes": (QuadBoostClassifier, {"n_trees": 3, "max_leaves": 5, "growth_rows": 99}, "classes"),
    "trees under l1": (QuadBoostRegressor, {"n_trees": 3, "max_leaves": 4, "penalty": "l1"}, "two"),
    "few voters": (QuadBoostClassifier, {"n_trees": 3, "max_leaves": 4, "max_voters": 4}, "classes"),
    "few voters, logistic": (QuadBoostClassifier, {"loss": "logistic", "thresholds": 9, "max_voters": 3}, "labels"),
    "trees, logistic": (QuadBoostClassifier, {"n_trees": 3, "max_leaves": 4, "loss": "logistic", "tol": 0.1}, "labels"),
    "trees, huber": (QuadBoostRegressor, {"n_trees": 3, "max_leaves": 4, "loss": "huber", "tol": 0.1}, "far"),
    "trees as grown": (QuadBoostRegressor, {"n_trees": 3, "max_leaves": 4, "mode": "forward"}, "far"),
    "search": (QuadBoostClassifierCV, {"thresholds": 9, "reg_lambda": 3}, "labels"),
    "search by a score": (
        QuadBoostClassifierCV,
        {"thresholds": 9, "reg_lambda": 3, "scoring": "roc_auc", "rounds": [3, 30]},
        "labels",
    ),
}


@pytest.mark.thinned
@pytest.mark.parametrize("room", [0, 1 << 60], ids=["elsewhere", "gathered"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize(("kind", "options", "target"), FITS.values(), ids=FITS)
def test_parts_give_the_model_of_all_rows(kind, options, target, weight, room):
    y = Y[target]
    known = kind(**options).fit(X, y, weight)
    assert_same_model(known, kind(**options).fit(in_parts(X, y, weight, room=room)))


def test_validation_rows_are_those_of_a_fit_in_memory():
    y, kept = Y["far"], np.arange(M) < 400
    known = QuadBoostRegressor().fit(X[kept], y[kept], X_val=X[~kept], y_val=y[~kept])
    found = QuadBoostRegressor().fit(in_parts(X[kept], y[kept]), X_val=X[~kept], y_val=y[~kept])
    assert_same_model(known, found)
    np.testing.assert_array_equal(found.history_["validation_risk"], known.history_["validation_risk"])


@pytest.mark.parametrize(
    "model",
    [
        QuadBoostClassifier(validation_fraction=0.2),
        QuadBoostClassifier(reg_lambda="theory"),
        QuadBoostClassifierCV(thresholds_per_fold=True),
    ],
)
def test_what_needs_all_values_in_memory_is_refused(model):
    with pytest.raises(ValueError, match="with rows in parts"):
        model.fit(in_parts(X, Y["labels"]))


@pytest.mark.parametrize(("room", "is_elsewhere"), [(0, True), (1 << 30, False)])
def test_rows_are_brought_here_only_where_there_is_room(room, is_elsewhere):
    model = QuadBoostClassifier()
    source = in_parts(X, Y["labels"], room=room)
    measured = problem_of_parts(source, True, model._reading, model._options())[1]
    assert isinstance(measured, Parted) == is_elsewhere


@pytest.mark.parametrize(("n_bytes", "is_elsewhere"), [(1, True), (1 << 40, False)])
def test_without_memory_for_joint_sums_what_takes_less_is_brought_here(n_bytes, is_elsewhere, monkeypatch):
    monkeypatch.setattr(module, "_bytes_for_tables", lambda *_: n_bytes)
    known, model = (QuadBoostClassifier(cache_bytes=size) for size in (1 << 30, 1))
    source = in_parts(X, Y["labels"], room=0)
    measured = problem_of_parts(source, True, model._reading, model._options())[1]
    assert isinstance(measured, Parted) == is_elsewhere
    assert_same_model(known.fit(X, Y["labels"]), model.fit(in_parts(X, Y["labels"], room=0)))


REFUSED = {
    "other columns": (lambda: Part(X[["real"]], Y["labels"], name="part 1"), "part 1 has other columns than part 0"),
    "other types": (lambda: Part(X.assign(real="a"), Y["labels"]), "Column 'real' holds numbers in one part and text"),
    "no target": (lambda: Part(X, None, name="part 1"), "part 1 has no targets; give them for every part"),
    "few targets": (lambda: Part(X, Y["labels"][1:], name="part 1"), "part 1 has 600 rows and 599 targets"),
    "weights": (lambda: Part(X, Y["labels"], np.ones(M), "part 1"), "only one of part 0 and part 1 has weights"),
    "labels": (lambda: Part(X, Y["classes"], name="part 1"), "the labels of one of part 0 and part 1 are text"),
}


@pytest.mark.parametrize(("part", "says"), REFUSED.values(), ids=REFUSED)
def test_parts_that_do_not_fit_together_are_refused(part, says):
    with pytest.raises(ValueError, match=says):
        QuadBoostClassifier().fit(InMemory([Part(X, Y["labels"], name="part 0"), part()]))


@pytest.mark.parametrize("target", ["labels", "far", "two"])
def test_a_part_may_have_no_row_that_counts(target):
    weight = np.where(np.arange(M) < M // 3, 0.0, 1.0)
    kind = QuadBoostClassifier if target == "labels" else QuadBoostRegressor
    at = [M // 4, M // 2]
    pieces = zip(np.split(X.index, at), np.split(np.asarray(Y[target]), at), np.split(weight, at), strict=True)
    parts = InMemory([Part(X.loc[rows], y, w) for rows, y, w in pieces])
    assert_same_model(kind(thresholds=9).fit(parts), kind(thresholds=9).fit(X, Y[target], weight))


def test_no_rows_at_all_are_refused():
    with pytest.raises(ValueError, match="no rows in any part"):
        QuadBoostClassifier().fit(InMemory([Part(X[:0], Y["labels"][:0])]))
    with pytest.raises(ValueError, match="zero for every row"):
        QuadBoostClassifier().fit(InMemory([Part(X, Y["labels"], np.zeros(M))]))
    with pytest.raises(ValueError, match="only one class, 'a'"):
        QuadBoostClassifier().fit(InMemory([Part(X, np.full(M, "a"))]))
