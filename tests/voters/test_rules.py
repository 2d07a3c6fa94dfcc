"""What rules ask: the sides of features that lead to a node, by the way to it."""

from __future__ import annotations

import numpy as np

from quadboost.voters.rules import n_conditions, sides
from quadboost.voters.trees import Trees

#      0: f0 > 1 ?
#   1: f2 > 5 ?        6: f0 > 3 ?
#  2 leaf  3: f2 > 7 ?    7 leaf  8 leaf
#         4 leaf 5 leaf
TREE = Trees(
    start=np.array([0, 9]),
    feature=np.array([0, 2, -1, 2, -1, -1, 0, -1, -1], dtype=np.int32),
    threshold=np.array([1.0, 5, 0, 7, 0, 0, 3, 0, 0]),
    missing_right=np.zeros(9, dtype=np.uint8),
)


def test_sides_are_those_of_the_way_to_a_node():
    below, above = sides(TREE, np.array([0, 2]))
    for node, path in enumerate(TREE.paths()):
        for column, feature in enumerate((0, 2)):
            asked = [goes_right for parent, goes_right in path if TREE.feature[parent] == feature]
            assert below[node, column] == (False in asked)
            assert above[node, column] == (True in asked)


def test_several_thresholds_on_one_side_are_one_condition():
    assert n_conditions(TREE).tolist() == [0, 1, 2, 2, 3, 2, 1, 2, 1]


def test_several_trees_and_none():
    both = Trees.joined([TREE, TREE])
    np.testing.assert_array_equal(n_conditions(both), np.tile(n_conditions(TREE), 2))
    assert len(n_conditions(Trees.none())) == 0
