"""What every export reads of a model."""

import numpy as np
import pytest
from export_models import KINDS, by_hand, fitted, hard_rows, mixed, ordered, same_bits, table

from quadboost import Ensemble, QuadBoostClassifier
from quadboost.export.additive import N_EXAMPLES, UNSEEN, Steps, Tree, additive, check_labels, without_idle_nodes


def value_of(term, numbers):
    """By the words of the documentation."""
    if isinstance(term, Steps):
        x = numbers[term.feature]
        return term.missing if np.isnan(x) else term.values[np.sum(x > term.cuts)]
    node = 0
    while term.feature[node] >= 0:
        x, threshold = numbers[term.feature[node]], term.threshold[node]
        if np.isnan(x):
            right = term.missing_right[node]
        else:
            right = x == threshold if term.is_level[node] else x > threshold
        node = term.right[node] if right else node + 1
    return term.values[node]


def scores(form, matrix, as_trees=False):
    terms = [term.as_tree() if as_trees else term for term in form.terms]
    totals = np.tile(form.intercept, (len(matrix), 1))
    for row, numbers in enumerate(matrix):
        for term in terms:
            totals[row] += value_of(term, numbers)
    return totals


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_trees", [False, True])
def test_terms_added_in_order_are_the_scores(kind, as_trees):
    model, frame = fitted(kind), hard_rows(100)
    same_bits(scores(additive(model), model.matrix_of(frame), as_trees), model.decision_function(frame))


def test_thresholds_that_are_neighbours():
    model, frame = by_hand()
    same_bits(scores(additive(model), frame.to_numpy()), model.decision_function(frame))


def test_an_estimator_is_as_good_as_its_ensemble():
    model = QuadBoostClassifier(max_rounds=5).fit(table()[["plain"]], table()["member"])
    assert additive(model).ensemble is model.ensemble_
    with pytest.raises(TypeError, match="is no fitted QuadBoost model"):
        additive(QuadBoostClassifier())


def test_trees_that_add_nothing_are_left_out_and_idle_questions_too():
    model = fitted("trees-2")
    trees = [term for term in additive(model).terms if isinstance(term, Tree)]
    assert [tree.name for tree in trees] == [f"tree {number}" for number in range(1, 12)]
    assert sum(len(tree.feature) for tree in trees) < model.trees.n_nodes - model.trees.start[1]


def test_a_node_with_equal_leaves_becomes_one_of_them():
    feature, right = np.array([0, 1, -1, -1, -1]), np.array([4, 3, -1, -1, -1])
    none, values = np.zeros(5, bool), np.array([[0.0], [0.0], [0.5], [0.5], [0.25]])
    tree = without_idle_nodes(Tree("t", feature, np.arange(5.0), none, right, none, values))
    assert (tree.feature.tolist(), tree.right.tolist()) == ([0, -1, -1], [2, -1, -1])
    assert tree.values.ravel().tolist() == [0.0, 0.5, 0.25]


def test_depth_is_that_of_the_longest_way():
    assert max(term.depth for term in additive(fitted("trees-2")).terms if isinstance(term, Tree)) > 20
    cuts = np.arange(7.0)
    assert Steps("s", 0, cuts, np.zeros((8, 1)), np.zeros(1)).as_tree().depth == 4


def is_unseen(form, feature, value):
    return value is not None and feature in form.levels and value not in form.levels[feature]


@pytest.mark.parametrize("kind", ["logit-2", "trees-3", "targets", "mixed", "wide"])
def test_examples_have_every_kind_of_value_and_the_scores_of_the_model(kind):
    """Also where a model has more features than there are rows, and where odd levels are known ones."""
    model = {"mixed": lambda: mixed()[0], "wide": wide}.get(kind, lambda: fitted(kind))()
    form = additive(model)
    rows = form.examples.rows
    assert len(rows) == N_EXAMPLES
    assert rows[0] == [None] * len(form.names)
    for feature, values in enumerate(zip(*rows[2:], strict=True)):
        kinds = {type(value) for value in values}
        assert type(None) in kinds  # beside values of other features
        assert any(value is not None and not is_unseen(form, feature, value) for value in values)
        never = {type(value) for value in values if is_unseen(form, feature, value)}
        both = form.holds[feature] == "boolean" and len(form.levels[feature]) == 2
        expected = {"text": {str}, "numbers": {float}, "text and numbers": {str, float}, "boolean": {bool}}
        assert never == (set() if both else expected.get(form.holds[feature], set()))
    same_bits(form.examples.scores, model.score_matrix(form.numbers(rows)))
    assert not any(isinstance(v, float) for row in form.text_examples.rows for v in row) or kind != "mixed"
    words = [word for row in form.examples.hexadecimal() for word in row]
    assert [float.fromhex(word) for word in words] == form.examples.scores.ravel().tolist()


def wide():
    """Forty features; of the categories one has the usual unseen text as a level, one huge numbers, one only true."""
    categories = {0: [[UNSEEN], ["a"]], 1: [[0.5], [1.5], [2.0**60]], 2: [[True]]}
    kind = [1, 1, 1] + [0] * 37
    return Ensemble(range(40), [0] * 40, np.arange(40) + 1.0, 0.1, kind=kind, n_features=40, categories=categories)


def test_what_features_hold():
    form = additive(fitted("logit-2"))
    assert dict(zip(form.names, form.holds, strict=True))["member"] == "boolean"
    assert {"number", "text", "numbers", "boolean"} == {*form.holds}
    assert form.used == [0, 1, 2, 3, 4, 5]


def test_levels_that_are_no_doubles_are_refused():
    model = Ensemble([0], [0], [1.0], 0.0, kind=[1], n_features=1, categories={0: [[2**53 + 1]]})
    with pytest.raises(
        ValueError, match="the level 9007199254740993 of feature 'x0' is an integer that no double can be"
    ):
        additive(model)


@pytest.mark.slow
def test_exports_are_imported_without_what_few_need(run_python):
    heavy = "{'onnx', 'onnxruntime', 'openpyxl', 'skl2onnx', 'sklearn', 'pandas', 'scipy'}"
    assert run_python(f"import sys, quadboost.export; print({heavy} & set(sys.modules))").strip() == "set()"
    assert (
        run_python("import sys, quadboost; quadboost.load; print('quadboost.export' in sys.modules)").strip() == "False"
    )


def test_ordered_categories_are_text_to_exports_and_other_values_missing():
    model, frame = ordered()
    form = additive(model)
    assert form.holds == ("text", "number")
    rows = frame.where(frame.notna(), None).values.tolist()
    same_bits(form.scored(rows).scores[:, 0], model.decision_function(frame))
    same_bits(form.scored([["no place", 0.5]]).scores, form.scored([[None, 0.5]]).scores)


def test_labels_beyond_the_numbers_of_a_target_are_refused():
    check_labels([-(2**63), 2**63 - 1, 0.5, "a"], "C")
    with pytest.raises(ValueError, match="the label 9223372036854775808 is an integer beyond the numbers of C"):
        check_labels([2**63], "C")


def test_scores_that_could_be_beyond_all_doubles_are_refused():
    largest = Ensemble([0, 1], [0.0, 0.0], [8e307, 8e307], -1e307, n_features=2)
    assert additive(largest).size == 1.7e308
    for beyond in (largest.replace(intercept=-3e307), largest.replace(weight=[1.7e308, 1.7e308])):
        with pytest.raises(ValueError, match="scores beyond all doubles"):
            additive(beyond)
