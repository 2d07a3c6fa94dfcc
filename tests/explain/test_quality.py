"""Figures of quality are those of scikit-learn and of their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from quadboost.explain.quality import calibration, label_numbers, log_loss, r2, roc, wilson

RNG = np.random.default_rng(0)
HIT = RNG.random(500) < 0.3
SCORE = np.round(RNG.normal(size=500) + HIT, 1)  # many ties


def test_areas_are_those_of_scikit_learn_with_ties():
    found = roc(SCORE, HIT)
    assert found.area == pytest.approx(metrics.roc_auc_score(HIT, SCORE), abs=1e-12)
    assert found.average_precision == pytest.approx(metrics.average_precision_score(HIT, SCORE), abs=1e-12)
    assert (found.false_rate[-1], found.true_rate[-1]) == (1.0, 1.0)


@pytest.mark.parametrize("hit", [np.zeros(5, bool), np.ones(5, bool), np.zeros(0, bool)])
def test_one_class_alone_has_no_curve(hit):
    assert roc(np.zeros(len(hit)), hit) is None


def test_calibration_groups_rows_and_keeps_equal_probabilities_together():
    p = np.repeat([0.1, 0.2, 0.9], [50, 30, 20])
    hit = np.concatenate([np.arange(50) < 5, np.arange(30) < 6, np.arange(20) < 18])
    found = calibration(p, hit, 10)
    np.testing.assert_allclose(found.probability, [0.1, 0.2, 0.9])
    np.testing.assert_allclose(found.share, [0.1, 0.2, 0.9])
    assert found.n_rows.tolist() == [50, 30, 20]
    assert (found.low < found.share).all()
    assert (found.share < found.high).all()
    assert len(calibration(np.empty(0), np.empty(0, bool)).share) == 0
    assert calibration(RNG.random(1000), RNG.random(1000) < 0.5, 10).n_rows.tolist() == [100] * 10


def test_intervals_are_wilsons():
    low, high = wilson(np.array([0.0, 0.5, 1.0]), np.array([10.0, 10.0, 10.0]))
    np.testing.assert_allclose(low, [0.0, 0.2366, 0.7225], atol=2e-4)
    np.testing.assert_allclose(high, [0.2775, 0.7634, 1.0], atol=2e-4)


def test_losses_are_those_of_scikit_learn():
    p = RNG.dirichlet([1, 1, 1], 50)
    label = RNG.integers(0, 3, 50)
    assert log_loss(p, label) == pytest.approx(metrics.log_loss(label, p, labels=[0, 1, 2]), rel=1e-9)
    y, f = RNG.normal(size=20), RNG.normal(size=20)
    assert r2(y, f) == pytest.approx(metrics.r2_score(y, f))
    assert np.isnan(r2(np.ones(3), np.zeros(3)))


def test_labels_are_those_of_the_model():
    classes = np.array(["a", "b", "c"])
    assert label_numbers(["c", "a"], classes, 2).tolist() == [2, 0]
    with pytest.raises(ValueError, match="y holds the label 'd', which is not one of the classes"):
        label_numbers(["d"], classes, 1)
    with pytest.raises(ValueError, match=r"y has the shape \(2, 1\); give one label for each row"):
        label_numbers([["a"], ["b"]], classes, 2)
    with pytest.raises(ValueError, match="there are 3 rows and 2 labels; give a label for each row"):
        label_numbers(["c", "a"], classes, 3)
