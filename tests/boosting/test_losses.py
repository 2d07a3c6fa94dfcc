"""Losses: derivatives, curvatures and constants are those of the values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from quadboost.boosting.losses import LOSSES, Huber, Logistic, Loss, Poisson, Quantile, make_loss

RNG = np.random.default_rng(0)
M = 40
SCORES = RNG.normal(size=(M, 3)) * 2.0
REAL = RNG.normal(size=(M, 3)) * 3.0
LABELS = (RNG.random((M, 1)) < 0.4).astype(float)
CLASSES = np.eye(3)[RNG.integers(3, size=M)]
COUNTS = RNG.poisson(2.0, size=(M, 3)).astype(float)
EACH = {
    "squared": (Loss(), REAL),
    "logistic": (Logistic(1), LABELS),
    "multinomial": (Logistic(3), CLASSES),
    "huber": (Huber(1.3, (0.0, 0.0, 0.0)), REAL),
    "poisson": (Poisson(2.0), COUNTS),
    "quantile": (Quantile(0.8, 1.5, 0.03, (0.0, 0.0, 0.0)), REAL),
}
each = pytest.mark.parametrize(("loss", "y"), EACH.values(), ids=EACH)


def slopes(loss, scores, y, h=1e-5):
    """Central differences of the values by every score."""
    found = np.empty_like(scores)
    for k in range(scores.shape[1]):
        step = h * np.eye(scores.shape[1])[k]
        found[:, k] = (loss.values(scores + step, y) - loss.values(scores - step, y)) / (2 * h)
    return found


def pinball(scores, y, quantile):
    off = y - scores
    return np.maximum(quantile * off, (quantile - 1.0) * off).sum(axis=1)


@each
def test_the_pull_is_minus_the_derivative_of_the_values(loss, y):
    scores = SCORES[:, : y.shape[1]]
    np.testing.assert_allclose(loss.pull(scores, y), -slopes(loss, scores, y), atol=2e-5)


@each
def test_the_quadratic_function_lies_above_the_loss_and_touches_it(loss, y):
    """Poisson has no bound for all scores: only below the logarithm of its rate."""
    scores = SCORES[:, : y.shape[1]]
    steps = RNG.normal(size=(30, *scores.shape)) * 4.0
    if loss.name == "poisson":
        scores, steps = np.minimum(scores, np.log(2.0)), np.minimum(steps, 0.0)
    value, pull = loss.values(scores, y), loss.pull(scores, y)
    for step in steps:
        above = value - (pull * step).sum(axis=1) + loss.curvature / 2 * (step * step).sum(axis=1)
        assert (loss.values(scores + step, y) <= above + 1e-9).all()


@each
def test_no_smaller_curvature_would_do(loss, y):
    """A bound that is too large only costs passes, so nothing else would show it."""
    scores = np.zeros((1, y.shape[1]))
    labels, step = np.zeros((1, y.shape[1])), np.zeros((1, y.shape[1]))
    step[0, 0] = 1e-3
    if loss.name == "logistic" and y.shape[1] == 3:  # the largest is on the line between two classes
        labels[0, 0], scores[0, 2], step[0, 1] = 1.0, -50.0, -1e-3
    if loss.name == "poisson":
        scores[:] = np.log(2.0)
    pull = loss.pull(scores, labels)
    change = loss.values(scores + step, labels) - loss.values(scores, labels) + (pull * step).sum(axis=1)
    assert 2 * change[0] / (step * step).sum() == pytest.approx(loss.curvature, rel=1e-2)


@each
def test_the_conjugate_is_reached_at_the_scores_of_a_pull_and_nowhere_exceeded(loss, y):
    scores = SCORES[:, : y.shape[1]]
    pull = loss.pull(scores, y)
    np.testing.assert_allclose(loss.within(pull, y), pull, atol=1e-12)
    np.testing.assert_allclose(loss.conjugate(pull, y), -(pull * scores).sum(axis=1) - loss.values(scores, y))
    for part in (0.3, 1.0):
        some = part * pull
        for _ in range(20):
            others = 3 * SCORES[RNG.permutation(M), : y.shape[1]]
            assert (-(some * others).sum(axis=1) - loss.values(others, y) <= loss.conjugate(some, y) + 1e-9).all()


@each
def test_a_pull_that_no_score_has_is_brought_to_one_near_it(loss, y):
    for far in (-40.0, 40.0):
        pull = loss.within(loss.pull(SCORES[:, : y.shape[1]], y) + far, y)
        assert np.isfinite(loss.conjugate(pull, y)).all()
        if loss.name in ("huber", "quantile") or y.shape[1] == 1:
            np.testing.assert_allclose(pull, loss.pull(np.full(y.shape, -far), y), atol=1e-9)


@pytest.mark.parametrize("weight", [None, RNG.random(M) + 0.1], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", ["squared", "logistic", "multinomial", "poisson"])
def test_the_constant_is_the_best_one(name, weight):
    loss, y = EACH[name]
    mean = np.average(y, axis=0, weights=weight)
    found = loss.constant(mean)

    def risk(constant):
        return np.average(loss.values(np.tile(constant, (M, 1)), y), weights=weight)

    best = minimize(risk, np.zeros(y.shape[1]), method="BFGS", options={"gtol": 1e-9})
    assert risk(found) <= best.fun + 1e-10
    if name == "multinomial":
        assert abs(found.sum()) < 1e-12


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_the_constant_of_the_pinball_loss_is_the_quantile_of_each_target(quantile):
    loss = make_loss("quantile", REAL, None, REAL.mean(axis=0), quantile=quantile)
    found = loss.constant(REAL.mean(axis=0))
    for k in range(3):
        risks = [pinball(value, REAL[:, [k]], quantile).mean() for value in REAL[:, k]]
        assert pinball(found[k], REAL[:, [k]], quantile).mean() == pytest.approx(min(risks), abs=1e-14)


@pytest.mark.parametrize("far", [1e3, -1e3, 1e300, -1e300])
def test_far_scores_of_labels_do_not_overflow(far):
    """A warning is an error here."""
    for y in (0.0, 1.0):
        scores, label = np.array([[far]]), np.array([[y]])
        expected = max(far, 0.0) - y * far
        assert Logistic(1).values(scores, label)[0] == expected
        assert Logistic(1).pull(scores, label)[0, 0] == y - (far > 0)
    scores = np.array([[far, 0.0, -far]])
    for k in range(3):
        label = np.eye(3)[[k]]
        assert Logistic(3).values(scores, label)[0] == abs(far) - scores[0, k]
        assert np.isfinite(Logistic(3).pull(scores, label)).all()
        assert Logistic(3).pull(scores, label).sum() == 0.0


def test_a_rate_beyond_all_numbers_is_an_infinite_loss_without_a_warning():
    assert Poisson(1.0).values(np.array([[1e3]]), np.array([[2.0]]))[0] == np.inf
    assert Poisson(1.0).values(np.array([[-1e3]]), np.array([[2.0]]))[0] == 2e3
    assert Poisson(1.0).pull(np.array([[-1e3]]), np.array([[2.0]]))[0, 0] == 2.0


@pytest.mark.parametrize("name", ["huber", "quantile"])
def test_far_scores_of_targets_count_for_their_direction_alone(name):
    loss = make_loss(name, REAL, None, REAL.mean(axis=0), quantile=0.75, huber_width=1.5)
    most = {"huber": (1.5, -1.5), "quantile": (0.75, -0.25)}[name]
    assert (loss.pull(np.full((M, 3), -1e3), REAL) == most[0]).all()
    assert (loss.pull(np.full((M, 3), 1e3), REAL) == most[1]).all()


def test_two_classes_are_softmax_of_two_scores_of_which_one_is_zero():
    both = np.column_stack([np.zeros(M), SCORES[:, 0]])
    y = np.column_stack([1 - LABELS, LABELS])
    np.testing.assert_allclose(Logistic(2).values(both, y), Logistic(1).values(SCORES[:, :1], LABELS), rtol=1e-12)


# --- the pinball loss, rounded -------------------------------------------------------------------------------


def all_sharper(loss):
    while loss is not None:
        yield loss
        loss = loss.sharper()


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_rounded_pinball_loss_comes_down_to_the_pinball_loss(quantile):
    first = make_loss("quantile", REAL[:, :1], None, np.zeros(1), quantile=quantile)
    y = np.zeros((2001, 1))
    scores = np.linspace(-3, 3, 2001)[:, None] * first.width
    exact = pinball(scores, y, quantile)
    above = [loss.values(scores, y) - exact for loss in all_sharper(first)]
    assert len(above) >= 4
    assert all((values >= 0).all() for values in above)
    assert all((after <= before).all() and after.max() < before.max() for before, after in pairwise(above))
    assert above[-1].max() == pytest.approx(0.02 * first.width / 4)
    *_, last = all_sharper(first)
    assert first.sharpest() == last


def test_other_losses_need_no_sequence():
    for name in set(LOSSES) - {"quantile"}:
        loss = make_loss(name, COUNTS, None, COUNTS.mean(axis=0))
        assert loss.sharper() is None
        assert loss.sharpest() is loss


# --- figures of the targets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES[1:])
def test_whole_weights_are_repeated_rows(name):
    rng = np.random.default_rng(1)
    y = np.round(np.abs(rng.normal(size=(31, 2))) * 10)
    times = rng.integers(1, 5, size=31)
    mean = np.average(y, axis=0, weights=times)
    for quantile in (0.05, 0.25, 0.5, 0.9):
        weighted = make_loss(name, y, times.astype(float), mean, quantile=quantile)
        order = rng.permutation(times.sum())
        assert weighted == make_loss(name, y.repeat(times, axis=0)[order], None, mean, quantile=quantile)


def test_the_width_follows_from_the_median_deviation_and_scales_with_the_target():
    y = np.array([[1.0], [2.0], [4.0], [9.0], [100.0]])
    width = make_loss("huber", y, None, y.mean(axis=0)).width
    assert width == pytest.approx(1.345 * 1.4826 * 3.0)  # deviations from 4: 0 2 3 5 96
    assert make_loss("huber", 10 * y, None, y.mean(axis=0)).width == pytest.approx(10 * width)
    assert make_loss("huber", y, None, y.mean(axis=0), huber_width=0.5).width == 0.5


def test_targets_of_which_most_or_all_are_equal_have_a_width():
    most = np.array([[5.0]] * 9 + [[7.0]])
    assert make_loss("quantile", most, None, np.ones(1)).width == 2.0
    assert make_loss("quantile", np.full((4, 1), 5.0), None, np.ones(1)).width == 1.0


@pytest.mark.parametrize("width", [0, -1.0, np.nan, np.inf])
def test_a_width_that_means_nothing_is_refused(width):
    with pytest.raises(ValueError, match=f"huber_width={width!r} must be a positive finite number"):
        make_loss("huber", REAL, None, np.zeros(3), huber_width=width)


def test_a_loss_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="loss='hinge' is not known; use 'squared', 'logistic', 'huber'"):
        make_loss("hinge", REAL, None, np.zeros(3))
