"""How often the conditions of rules hold together."""

from __future__ import annotations

import numpy as np
import pytest

import quadboost
from quadboost import QuadBoostRegressor
from quadboost.model import patterns as module
from quadboost.model.patterns import count_patterns, pattern_arrays, patterns_of
from quadboost.model.rules import Condition, Rule, rules_at, summands_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X[:, 0] * X[:, 1] + (X[:, 2] > 0)) + 0.1 * RNG.normal(size=300)


def rule_of(n: int) -> Rule:
    return Rule(tuple(Condition(j % 4, f"f{j}", low=-2.0 + j / 4) for j in range(n)), 1.0, 0.5, 1.0, 0, 1.0)


@pytest.mark.parametrize("n", [1, 3, 12, 13, 20])
@pytest.mark.parametrize("weight", [None, RNG.integers(1, 4, 300) / 2])
def test_patterns_are_counted_as_one_would(n, weight, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", 70)
    rule = rule_of(n)
    known: dict[int, float] = {}
    for i, row in enumerate(X):
        bits = [
            bool(condition.holds(row[condition.feature : condition.feature + 1])[0]) for condition in rule.conditions
        ]
        value = sum(1 << bit for bit, holds in enumerate(bits) if holds)
        known[value] = known.get(value, 0.0) + (1.0 if weight is None else weight[i])
    ((pattern, mass),) = count_patterns([rule], X, weight)
    assert dict(zip(pattern.tolist(), mass.tolist(), strict=True)) == known
    assert pattern.tolist() == sorted(known)


def test_rows_come_some_at_a_time_and_all(monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", 200)
    found = [(rows.start, rows.stop, patterns.shape) for rows, patterns in patterns_of([rule_of(2)], X)]
    assert found == [(0, 200, (1, 200)), (200, 300, (1, 100))]
    assert list(patterns_of([], X)) == []


def test_conditions_of_every_kind_hold_as_they_say():
    """Intervals, open ones with infinities, levels, several levels excluded, missing values, what is impossible."""
    values = np.array([-np.inf, -1.0, 0.0, 1.0, 2.0, np.nextafter(2.0, 3.0), 7.0, np.inf, np.nan])
    asked = [
        Condition(0, "x", low=0.0, high=2.0), Condition(0, "x", high=2.0, missing=True), Condition(0, "x", low=2.0),
        Condition(0, "x", level=2), Condition(0, "x", not_levels=(0, 2), missing=True),
        Condition(0, "x", not_levels=(1,)),
        Condition(0, "x", low=np.inf, high=-np.inf, missing=True), Condition(0, "x", low=-1.0, high=-1.0),
    ]  # fmt: skip
    rules = [Rule((condition,), 1.0, 0.5, 1.0, 0, 1.0) for condition in asked]
    ((_, found),) = patterns_of(rules, values[:, None])
    np.testing.assert_array_equal(found, [condition.holds(values) for condition in asked])


def test_a_fit_keeps_patterns_and_so_does_a_file(tmp_path):
    model = QuadBoostRegressor(n_trees=5, max_leaves=6).fit(X, Y)
    ensemble = model.ensemble_
    summands = min(summands_of(ensemble), key=lambda summands: len(summands.nodes))
    assert len(summands.nodes) < ensemble.n_rules
    assert set(ensemble.pattern_node.tolist()) == set(summands.nodes.tolist())
    for rule in rules_at(ensemble, summands):
        is_of_rule = ensemble.pattern_node == rule.node
        assert ensemble.pattern_mass[is_of_rule].sum() == len(X)
        full = (1 << len(rule.conditions)) - 1
        assert ensemble.pattern_mass[is_of_rule & (ensemble.pattern == full)].sum() == rule.n_rows
    model.save(tmp_path / "model.h5")
    loaded = quadboost.load(tmp_path / "model.h5")
    np.testing.assert_array_equal(loaded.pattern_mass, ensemble.pattern_mass)
    by_feature = loaded.explain(X[:9]).by_feature()
    np.testing.assert_allclose(by_feature, model.explain(X[:9], background=X).by_feature(), rtol=0, atol=1e-12)


def test_a_file_that_counted_all_rules_is_explained_as_well():
    """As files had it before sums of trees were told by fewer nodes."""
    ensemble = QuadBoostRegressor(n_trees=5, max_leaves=6).fit(X, Y).ensemble_
    rules = rules_at(ensemble, summands_of(ensemble)[0])
    tables = count_patterns(rules, X)
    older = ensemble.replace(
        pattern_node=np.repeat([rule.node for rule in rules], [len(pattern) for pattern, _ in tables]),
        pattern=np.concatenate([pattern for pattern, _ in tables]),
        pattern_mass=np.concatenate([mass for _, mass in tables]),
    )
    np.testing.assert_allclose(older.explain(X).by_feature(), ensemble.explain(X).by_feature(), rtol=0, atol=1e-12)


def test_other_weights_keep_the_patterns_and_other_trees_do_not():
    ensemble = QuadBoostRegressor(n_trees=3, max_leaves=4).fit(X, Y).ensemble_
    assert len(ensemble.replace(node_weight=2 * ensemble.node_weight).pattern) == len(ensemble.pattern) > 0
    assert len(ensemble.replace(trees=ensemble.trees).pattern) == 0


def test_masses_of_patterns_do_not_depend_on_the_order_of_rows():
    weight, order = np.random.default_rng(0).exponential(size=len(X)), np.arange(len(X))[::-1]
    fits = [QuadBoostRegressor(n_trees=3, max_leaves=4).fit(X[i], Y[i], weight[i]) for i in (slice(None), order)]
    np.testing.assert_array_equal(*(fit.ensemble_.pattern_mass for fit in fits))


def test_patterns_are_left_out_where_counting_takes_long(monkeypatch):
    ensemble = QuadBoostRegressor(n_trees=3, max_leaves=4).fit(X, Y).ensemble_
    monkeypatch.setattr(module, "MOST_ROWS_OF_RULES", 299)
    assert pattern_arrays(ensemble, len(X), lambda question: question(X, None)) == {}
    bare = ensemble.replace(pattern_node=None, pattern=None, pattern_mass=None)
    assert bare.explain(X[:2]).values.shape[0] == 2
    with pytest.raises(ValueError, match=r"does not have the patterns of its rules.*explain\(X, background=X_train\)"):
        bare.explain(X[:2]).by_feature()
