"""What quadboost-predict --describe tells of a model."""

import re

import numpy as np
import pytest

import quadboost
from quadboost.voters.trees import Trees

pytest.importorskip("pyarrow")


def test_describe_tells_what_a_model_is(model, run):
    out = run("predict", "model.h5", "--describe").ok()
    assert out.startswith(f"model.h5: classification, 2 classes, {len(model.feature)} voters on ")
    strongest = model.feature_names[int(np.argmax(model.info["feature_importances"]))]
    assert re.search(rf"strongest features .*\n +\d+\.\d% +\d+  {strongest}\n", out)
    for pattern in ("penalty +l1", "rows +400", "target +label", "error +0", "max_rounds +\\d+", "voters +"):
        assert re.search(rf"^  {pattern}", out, re.MULTILINE), pattern


@pytest.mark.parametrize("importances", ["none", {"a": 1}, [10**400, 1], [[1], [2, 3]]])
def test_describe_believes_nothing(importances, run, tmp_path):
    ensemble = quadboost.Ensemble(
        np.array([0, 1]), np.array([0.5, 1.5]), np.array([1.0, -3.0]), 0.0, n_features=2,
        feature_names=["plain", "\x1b[2Jclear"],
        info={
            "feature_importances": importances, "parameters": [1], "outputs": {"a": {"b": None}}, "\x07": "bell\x07\n",
        },
    )  # fmt: skip
    ensemble.save(tmp_path / "m.h5")
    out = run("predict", "m.h5", "--describe").ok()
    assert out.startswith("m.h5: regression, 2 voters on 2 of 2 features\n")
    assert all(line.isprintable() for line in out.splitlines())
    assert out.index("75.0%") < out.index("25.0%")


def test_describe_a_model_of_nothing(run, tmp_path):
    quadboost.Ensemble([], [], np.array([]), 1.5, n_features=3).save(tmp_path / "m.h5")
    assert run("predict", "m.h5", "--describe").ok().startswith("m.h5: regression, 0 voters on 0 of 3 features\n")


def with_stumps(n, **more):
    """A rule on each side of a threshold, one for each tree: the later, the stronger."""
    trees = Trees(
        np.arange(0, 3 * n + 1, 3), np.tile([1, -1, -1], n), np.arange(3 * n) % 3 == 0, np.zeros(3 * n, np.uint8)
    )
    weight = np.outer(np.arange(1, n + 1), [0.0, 0.0, 0.5]).ravel()
    return quadboost.Ensemble([0], [0.5], [1.0], 0.0, n_features=3, trees=trees, node_weight=weight, **more)


@pytest.mark.parametrize("n", [2, 12])
def test_describe_tells_the_most_important_rules(n, run, tmp_path):
    with_stumps(n, node_mass=np.tile([8.0, 6.0, 2.0], n)).save(tmp_path / "m.h5")
    out = run("predict", "m.h5", "--describe").ok().splitlines()
    assert out[0] == f"m.h5: regression, 1 voters on 1 of 3 features, {n} rules of {n} trees on 1"
    first = out.index("most important rules (+weight where one holds, -weight elsewhere)") + 1
    shown = [f"  +{0.5 * k:g}  if feature 1 > 1  (25.0% of the rows)" for k in range(n, 0, -1)][:10]
    assert out[first : first + len(shown)] == shown
    assert out[first + len(shown)] == ("  ..." if n > 10 else "")


def test_rules_of_strange_names_do_nothing_to_a_terminal(run, tmp_path):
    with_stumps(1, feature_names=["a", "\x1b[2Jclear", "b"]).save(tmp_path / "m.h5")
    out = run("predict", "m.h5", "--describe").ok().splitlines()
    assert all(line.isprintable() for line in out)
    assert "  '+0.5  if \\x1b[2Jclear > 1'" in out


VOTER = ([0], [0.5])


@pytest.mark.parametrize(
    ("model", "lines"),
    [
        (
            quadboost.Ensemble(*VOTER, [1.0], 0.0, n_features=1),
            ["fitted to the squared loss; link identity: the prediction is the score"],
        ),
        (
            quadboost.Ensemble(*VOTER, [1.0], 0.0, n_features=1, loss="poisson", link="log"),
            ["fitted to the poisson loss; link log: the prediction is exp(score)"],
        ),
        (
            quadboost.Ensemble(*VOTER, [1.0], 0.0, n_features=1, classes=[0, 1]),
            [
                "fitted to the squared loss; link clipped: probabilities are (1 + score) / 2 within [0, 1]; "
                "of several classes, shares of max(0, 1 + score)"
            ],
        ),
        (
            quadboost.Ensemble(*VOTER, [1.0], 0.0, n_features=1, classes=[0, 1], link="logit", slope=2.5),
            [
                "fitted to the squared loss; link logit: the probability of the second class is 1 / (1 + exp(-score))",
                "calibrated: its weights were multiplied by 2.5",
            ],
        ),
        (
            quadboost.Ensemble(
                *VOTER, np.ones((1, 3)), np.zeros(3), n_features=1, classes=[0, 1, 2], link="softmax", slope=[1, 2, 3.5]
            ),
            [
                "fitted to the squared loss; link softmax: probabilities are the softmax of the scores",
                "calibrated: its weights were multiplied by 1, 2, 3.5",
            ],
        ),
    ],
    ids=lambda one: one.link if isinstance(one, quadboost.Ensemble) else "",
)
def test_describe_tells_loss_and_link(model, lines, run, tmp_path):
    model.save(tmp_path / "m.h5")
    out = run("predict", "m.h5", "--describe").ok().splitlines()
    assert out[1 : out.index("")] == lines
