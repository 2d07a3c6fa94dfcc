"""Tables of what rules about two features add."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost import Ensemble, QuadBoostRegressor
from quadboost.explain.pairs import pair_of, pairs_of
from quadboost.voters.trees import Trees

TREES = Trees(np.array([0, 5]), np.array([0, -1, 1, -1, -1]), np.array([0.5, 0, 1.0, 0, 0]), np.zeros(5, np.uint8))
MODEL = Ensemble(
    [], [], [], 0.0, n_features=3, feature_names=["a", "b", "c"], categories={1: [["p"], ["q"]]}, trees=TREES,
    node_weight=[0.0, 0.0, 0.0, 0.0, 1.5], node_mass=[8.0, 4.0, 4.0, 2.0, 2.0],
)  # fmt: skip


def test_cells_are_what_the_rules_add():
    pair = pair_of(MODEL, 0, 1)
    assert pair.names == ("a", "b")
    assert pair.labels == (["≤ 0.5", "> 0.5", "missing"], ["q", "any other", "missing"])
    assert pair.values.tolist() == [[-0.75] * 3, [2.25, -0.75, -0.75], [-0.75] * 3]
    assert (pair.n_rules, pairs_of(MODEL)) == (1, [(0, 1)])
    np.testing.assert_array_equal(pair_of(MODEL, 1, 0).values, pair.values.T)


def test_a_pair_without_rules_is_refused():
    with pytest.raises(ValueError, match="no rule asks for just 'a' and 'c'; draw 'a' and 'b'"):
        pair_of(MODEL, 0, 2)
    with pytest.raises(ValueError, match="there is no pair to draw"):
        pair_of(Ensemble([], [], [], 0.0, n_features=2), 0, 1)


def test_a_product_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    model = QuadBoostRegressor(n_trees=20, max_leaves=6).fit(X, np.sign(X[:, 0] * X[:, 2]))
    assert pairs_of(model.ensemble_)[0] == (0, 2)
    values = pair_of(model.ensemble_, 0, 2).values[:-1, :-1]
    assert values[0, 0] > 0 > values[0, -1]
