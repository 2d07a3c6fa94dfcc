"""The docstrings of the estimators."""

import re

import pytest

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV
from quadboost.estimators.docstrings import SHARED_ATTRIBUTES


@pytest.mark.parametrize("estimator", [QuadBoostClassifier, QuadBoostRegressor])
def test_every_parameter_is_described_once(estimator):
    found = re.findall(r"^    (\w+) : ", estimator.__doc__.split("Attributes\n")[0], re.MULTILINE)
    assert sorted(found) == sorted(estimator().get_params())


@pytest.mark.parametrize("estimator", [QuadBoostClassifier, QuadBoostRegressor])
def test_every_attribute_that_is_described_is_set_by_a_fit(estimator):
    names = re.findall(r"^(?:    )?(\w+_) : ", SHARED_ATTRIBUTES, re.MULTILINE)
    model = estimator().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert [name for name in names if not hasattr(model, name)] == ["feature_names_in_"]  # an array has none


@pytest.mark.parametrize(
    ("search", "plain"), [(QuadBoostClassifierCV, QuadBoostClassifier), (QuadBoostRegressorCV, QuadBoostRegressor)]
)
def test_searches_describe_the_parameters_that_the_others_do_not_have(search, plain):
    added = search().get_params().keys() - plain().get_params().keys()
    assert [name for name in added if f" {name} : " not in search.__doc__] == []
