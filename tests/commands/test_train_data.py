from argparse import Namespace

import numpy as np
import pytest

from quadboost.commands.train_data import Examples, choose_features, choose_task


def examples(y, weight=None):
    y = np.asarray(y)
    return Examples(np.arange(len(y), dtype=float)[:, None], ("x",), y, weight)


def test_a_split_has_every_row_once_with_its_own_target_and_weight():
    whole = examples(np.arange(100) % 7, np.arange(100.0) + 1)
    kept, held_out = whole.split(0.3, 0, stratify=True)
    assert (len(kept.y), len(held_out.y)) == (70, 30)
    rows = np.concatenate([kept.X[:, 0], held_out.X[:, 0]]).astype(int)
    assert sorted(rows) == list(range(100))
    for part in (kept, held_out):
        np.testing.assert_array_equal(part.y, part.X[:, 0] % 7)
        np.testing.assert_array_equal(part.weight, part.X[:, 0] + 1)


def test_classes_are_in_both_parts_alike():
    kept, held_out = examples(["a"] * 96 + ["b"] * 4).split(0.25, 0, stratify=True)
    assert (list(kept.y).count("b"), list(held_out.y).count("b")) == (3, 1)


@pytest.mark.parametrize(("y", "fraction"), [(["a"] * 9 + ["b"], 0.2), (list("aabbccddee"), 0.2)])
def test_classes_that_cannot_be_in_both_parts_alike_are_split_at_random(y, fraction):
    kept, held_out = examples(y).split(fraction, 0, stratify=True)
    assert (len(kept.y), len(held_out.y)) == (8, 2)


def test_blocks_are_the_rows_in_order(monkeypatch):
    monkeypatch.setattr("quadboost.commands.train_data.ROWS_AT_A_TIME", 3)
    whole = examples(np.arange(10))
    blocks = list(whole.blocks())
    assert [len(X) for X, _, _ in blocks] == [3, 3, 3, 1]
    np.testing.assert_array_equal(np.concatenate([X for X, _, _ in blocks]), whole.X)
    np.testing.assert_array_equal(np.concatenate([y for _, y, _ in blocks]), whole.y)


@pytest.mark.parametrize(
    ("y", "wanted", "task"),
    [
        (["a", "b"], None, "classification"),
        ([True, False], None, "classification"),
        ([True, False], "regression", "regression"),
        (np.arange(20), None, "classification"),
        (np.arange(20.0), None, "classification"),
        (np.arange(21), None, "regression"),
        (np.arange(21), "classification", "classification"),
        ([0.5, 1.0], None, "regression"),
        ([1, 2], "regression", "regression"),
    ],
)
def test_the_task_fits_the_target(y, wanted, task):
    assert choose_task(np.asarray(y), wanted, "y")[0] == task


@pytest.mark.parametrize(
    ("y", "wanted", "message"),
    [
        ([7, 7], None, "the target 'y' is 7 in every row"),
        (["a", "a"], None, "the target 'y' is 'a' in every row"),
        (["a", "b"], "regression", "holds text, such as 'a'; a regression needs numbers"),
        ([0.5, 1.0], "classification", r"holds 0\.5; labels are text or whole numbers"),
        ([str(i) for i in range(201)], None, "holds 201 different texts, such as '0'; if they are labels"),
    ],
)
def test_a_target_that_fits_no_task_is_refused(y, wanted, message):
    with pytest.raises(ValueError, match=message):
        choose_task(np.asarray(y), wanted, "y")


def test_features_are_what_is_left():
    names = ["a", "b", "c", "y"]
    assert choose_features(names, ["y"], Namespace(features=None, drop=None)) == ["a", "b", "c"]
    assert choose_features(names, ["y"], Namespace(features=None, drop=["b", "y"])) == ["a", "c"]
    assert choose_features(names, ["y"], Namespace(features=["c", "a"], drop=None)) == ["a", "c"]
