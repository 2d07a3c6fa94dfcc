"""Dicts that cannot be changed."""

import copy
import json
import pickle

import pytest

from quadboost.common.read_only import ReadOnly

VALUES = {"a": 1, "b": {"c": [1, 2]}}


@pytest.mark.parametrize("made", [ReadOnly, lambda values: pickle.loads(pickle.dumps(ReadOnly(values))),
                                  lambda values: copy.deepcopy(ReadOnly(values))])  # fmt: skip
def test_no_way_leads_to_a_change(made):
    read_only = made(VALUES)
    changes = [
        lambda one: one.__setitem__("a", 2), lambda one: one.__delitem__("a"), lambda one: one.update(a=2),
        lambda one: one.pop("a"), lambda one: one.popitem(), lambda one: one.clear(),
        lambda one: one.setdefault("z", 1), lambda one: one.__ior__({"a": 2}),
    ]  # fmt: skip
    for one in (read_only, read_only["b"]):
        for change in changes:
            with pytest.raises(TypeError, match="this dict is read-only; change a copy"):
                change(one)
    assert read_only == VALUES


def test_a_read_only_dict_is_json_and_its_copy_may_change():
    values = ReadOnly(VALUES)
    assert json.loads(json.dumps(values)) == VALUES
    assert {**values, "a": 2} == values | {"a": 2} == VALUES | {"a": 2}
    changed = dict(values)
    changed["a"] = 2
    assert values["a"] == 1
