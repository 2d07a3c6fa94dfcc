"""Shapley values of rules, against their definition and against shap."""

from __future__ import annotations

import numpy as np
import pytest
from explained import shapley

from quadboost import Ensemble, QuadBoostClassifier, QuadBoostRegressor
from quadboost.explain.shapley import Patterns, RuleValues, check_length
from quadboost.model.patterns import count_patterns
from quadboost.model.rules import Condition, Rule
from quadboost.voters.trees import Trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
X[RNG.random(X.shape) < 0.05] = np.nan
ALL = np.nan_to_num(X)
Y = (ALL[:, 0] > 0) * (ALL[:, 1] > 0) * (ALL[:, 2] < 0.5) + ALL[:, 3] * ALL[:, 4] + 0.1 * RNG.normal(size=120)


@pytest.fixture(scope="module")
def model():
    return QuadBoostRegressor(n_trees=12, max_leaves=8).fit(X, Y)


def test_the_model_has_rules_of_several_lengths(model):
    assert {2, 3, 4} <= {len(rule.conditions) for rule in model.ensemble_.rules()}


def test_values_of_rules_are_shapley_values_by_definition(model):
    found = model.explain(X[:3], background=X[:40]).by_feature()
    for i in range(3):
        np.testing.assert_allclose(found[i], shapley(model.predict, X[i], X[:40]), rtol=0, atol=1e-12)


@pytest.mark.oracle("shap")
def test_values_of_rules_are_those_of_the_exact_explainer_of_shap(model):
    import shap

    rows = np.nan_to_num(X)
    known = shap.explainers.Exact(model.predict, shap.maskers.Independent(rows, max_samples=len(rows)))(rows[:6])
    found = model.explain(rows[:6], background=rows)
    np.testing.assert_allclose(found.by_feature(), known.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.base, known.base_values[0], rtol=0, atol=1e-12)


def test_terms_and_features_add_up_to_the_same_score(model):
    found = model.explain(X, background=X)
    np.testing.assert_allclose(found.total, model.predict(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.base + found.by_feature().sum(axis=1), model.predict(X), rtol=0, atol=1e-12)
    assert len(found.terms) == len(model.ensemble_.shape_functions()) + model.ensemble_.n_rules


def test_counts_in_the_model_give_the_base_of_the_training_rows(model):
    found = model.explain(X[:9])
    assert found.reference == "the training rows"
    assert found.base == pytest.approx(model.predict(X).mean(), abs=1e-12)
    np.testing.assert_allclose(found.values, model.explain(X[:9], background=X).values, rtol=0, atol=1e-12)


def test_reasons_name_rules_that_hold_and_that_do_not():
    trees = Trees(np.array([0, 5]), np.array([0, -1, 1, -1, -1]), np.array([0.5, 0, 2.0, 0, 0]), np.zeros(5, np.uint8))
    weight = np.array([0.0, 0.0, 0.0, 0.0, 1.5])
    made = Ensemble([], [], [], 0.0, n_features=2, feature_names=["a", "b"], trees=trees, node_weight=weight,
                    node_mass=[8.0, 4.0, 4.0, 2.0, 2.0])  # fmt: skip
    found = made.explain(np.array([[1.0, 3.0], [0.0, 3.0]]))
    assert found.terms == ("a > 0.5 and b > 2",)
    assert found.values.tolist() == [[2.25], [-0.75]]
    assert found.reasons() == [
        ["a > 0.5 and b > 2 raises the score by 2.25"],
        ["not (a > 0.5 and b > 2) lowers the score by 0.75"],
    ]


def test_several_outputs_and_categories():
    frame_rows = np.column_stack([X[:, 0], RNG.choice(["p", "q", "r"], len(X)).astype(object), X[:, 2]])
    label = np.where(Y > 0.4, "high", np.where((frame_rows[:, 1] == "p") & (ALL[:, 2] > 0), "p", "low"))
    made = QuadBoostClassifier(n_trees=6, max_leaves=6, categorical_features=[1]).fit(frame_rows, label)
    found = made.explain(frame_rows[:7], background=frame_rows)
    assert found.by_feature().shape == (7, 3, 3)
    np.testing.assert_allclose(
        found.base + found.by_feature().sum(axis=1), made.decision_function(frame_rows[:7]), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("n", [1, 4, 12, 13])
def test_tables_and_the_long_way_have_the_same_result(n):
    """Of a rule, of another whose conditions are the first of it, and of one that shares some, with two outputs."""
    conditions = tuple(Condition(j, f"f{j}", low=-1.0) for j in range(n))
    rules = [
        Rule(some, np.array([1.0, -0.5]), 0.5, 1.0, 0, 1.0)
        for some in (conditions, conditions[: n // 2], conditions[1:3])
    ]
    rules = [rule for rule in rules if rule.conditions]
    rows = RNG.normal(size=(200, n))
    patterns = [Patterns(pattern, mass / 200) for pattern, mass in count_patterns(rules, rows)]
    found = np.zeros((200, n, 2))
    RuleValues(rules, patterns).add_to(found, rows)
    known = np.zeros((200, n))
    for rule, table in zip(rules, patterns, strict=True):
        here = sum(condition.holds(rows[:, condition.feature]).astype(np.int64) << i
                   for i, condition in enumerate(rule.conditions))  # fmt: skip
        features = [condition.feature for condition in rule.conditions]
        known[:, features] += table.values(here, len(features))
    np.testing.assert_allclose(found, known[:, :, None] * [1.0, -0.5], rtol=0, atol=1e-14)
    inside = np.mean(rules[0].holds(rows))
    np.testing.assert_allclose(patterns[0].values(np.zeros(1, np.int64), n).sum(), -2 * inside, atol=1e-12)


def test_the_values_of_patterns_are_those_of_the_formula():
    only = Patterns(np.array([3]), np.array([1.0]))
    assert only.values(np.array([0, 1, 3]), 2).tolist() == [[-1, -1], [0, -2], [0, 0]]
    assert only.table(2).tolist() == [[-1, -1], [0, -2], [-2, 0], [0, 0]]


def test_contributions_of_more_terms_than_memory_holds_are_refused(model, monkeypatch):
    monkeypatch.setattr("quadboost.explain.terms.free_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"terms add to 120 rows takes .* GB.*by_feature\(\)"):
        _ = model.explain(X).values
    assert model.explain(X).by_feature().shape == (120, 6)


def test_rules_that_are_too_long_are_refused():
    rule = Rule(tuple(Condition(j, f"f{j}", low=-1.0) for j in range(63)), 1.0, 0.5, 1.0, 0, 1.0)
    with pytest.raises(ValueError, match="a rule asks for 63 features"):
        check_length([rule])


def test_importances_of_rules_are_those_of_the_training_rows(model):
    for kind in ("mean_abs", "std", "range"):
        counted, measured = dict(model.importances(kind)), dict(model.importances(kind, X))
        assert counted.keys() == measured.keys()
        for term in counted:
            assert counted[term] == pytest.approx(measured[term], rel=1e-8, abs=1e-12)
    by_feature = model.importances(X=X, by="feature")
    assert {reason.term for reason in by_feature} <= {f"feature {j}" for j in range(6)}
    with pytest.raises(ValueError, match="of a model with rules need rows"):
        model.importances(by="feature")
