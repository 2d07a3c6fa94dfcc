"""The arguments of the commands, and their help."""

import re

import pytest

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor
from quadboost.commands.arguments import predict_parser, train_parser
from quadboost.commands.train import LEFT_OUT

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("estimator", [QuadBoostClassifier, QuadBoostRegressor])
def test_every_parameter_has_a_flag_or_is_left_out_on_purpose(estimator):
    known = {action.dest for action in train_parser()._actions} | {"categorical_features"}  # --categorical
    parameters = set(estimator().get_params())
    assert parameters - LEFT_OUT <= known
    assert not LEFT_OUT & known


def test_defaults_in_the_help_are_those_of_the_estimators():
    defaults = {**QuadBoostRegressor().get_params(), **QuadBoostClassifier().get_params()}
    for action in train_parser()._actions:
        default = defaults.get(action.dest)
        if action.dest in ("reg_lambda", "alpha_max"):
            assert "default: by cross-validation" in action.help
        elif default is not None and not isinstance(default, bool) and action.dest != "calibration":
            assert re.search(rf"default: {default}\b", action.help), action.help


def test_flags_reach_the_estimator(run):
    flags = {
        "penalty": "linf", "reg_lambda": 0.25, "alpha_max": 0.5, "mode": "forward", "max_rounds": 7, "thresholds": 9,
        "spacing": "uniform", "reweight_every": 2, "reweight_sweeps": 3, "patience": 4, "tol": 0.001,
        "max_seconds": 60.0, "min_category_count": 6, "cache_bytes": 1000000,
    }  # fmt: skip
    arguments = [text for name, value in flags.items() for text in (f"--{name.replace('_', '-')}", value)]
    run("train", "--example", "iris", "-o", "m.h5", "--no-intercept", "--threads", 2, "--seed", 5, *arguments).ok()
    found = quadboost.load("m.h5").info["parameters"]
    assert found | flags == found
    assert (found["fit_intercept"], found["n_jobs"], found["random_state"]) == (False, 2, 5)
    assert not LEFT_OUT & set(found)


@pytest.mark.slow
def test_flags_that_are_words(run):
    run("train", "--example", "iris", "-o", "m.h5", "--penalty", "none", "--thresholds", "all", "--max-rounds", 5).ok()
    assert quadboost.load("m.h5").info["parameters"]["penalty"] is None
    run("train", "--example", "iris", "-o", "m.h5", "--class-weight", "setosa=2", "virginica=0.5").ok()
    assert quadboost.load("m.h5").info["parameters"]["class_weight"] == "{'setosa': 2.0, 'virginica': 0.5}"
    run("train", "--example", "digits", "-o", "m.h5", "--class-weight", "0=2", "--max-rounds", 5).ok()
    assert quadboost.load("m.h5").info["parameters"]["class_weight"] == "{0: 2.0}"
    run("train", "--example", "iris", "-o", "m.h5", "--class-weight", "balanced").ok()
    assert quadboost.load("m.h5").info["parameters"]["class_weight"] == "balanced"
    run("train", "--example", "diabetes", "-o", "m.h5", "--standardize").ok()
    assert quadboost.load("m.h5").info["parameters"]["standardize"] is True


@pytest.mark.parametrize(("name", "parser"), [("train", train_parser), ("predict", predict_parser)])
def test_help_is_complete_and_has_examples(name, parser, run):
    out = run(name, "--help").ok()
    assert "examples:" in out
    assert f"quadboost-{name} " in out
    for action in parser()._actions:
        assert action.help
        assert all(flag in out for flag in action.option_strings)


@pytest.mark.parametrize("name", ["train", "predict"])
def test_examples_of_the_help_are_valid(name, run):
    out = run(name, "--help").ok()
    examples = re.search(r"examples:\n(.*?)\n\n", out, re.DOTALL)[1].replace("\\\n", " ").splitlines()
    assert len(examples) > 3
    for line in examples:
        words = re.split("[|<]", line)[0].split()
        assert words[0] == f"quadboost-{name}"
        {"train": train_parser, "predict": predict_parser}[name]().parse_args(words[1:])
