"""The link from scores of the squared loss to log-odds."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from comparing import assert_same_model
from mixed_table import mixed_table
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from quadboost import QuadBoostClassifier
from quadboost.fitting import calibration
from quadboost.fitting.calibration import fit_link, left_out
from quadboost.fitting.problem import Rows

M = 240
X = mixed_table(M)
RNG = np.random.default_rng(3)
SIGNAL = X[:, 0] + (X[:, 1] > 1) - np.nan_to_num(X[:, 2]) + (X[:, 4] == 2)
TWO = np.where(RNG.random(M) < 1 / (1 + np.exp(-2 * SIGNAL)), "yes", "no")
THREE = np.digitize(SIGNAL + RNG.normal(size=M), [-0.7, 1.0])
REPEATS = RNG.integers(1, 4, size=M)
OPTIONS = {"categorical_features": [4], "thresholds": 12, "max_rounds": 300}
FITS = {
    "l1": {},
    "none": {"penalty": None, "max_rounds": 30},
    "l2": {"penalty": "l2"},
    "linf": {"penalty": "linf"},
    "forward": {"mode": "forward", "max_rounds": 60},
}
each_fit = pytest.mark.parametrize("options", FITS.values(), ids=FITS)
each_target = pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])


def fitted(y, weight=None, Z=X, **options):
    return QuadBoostClassifier(**{**OPTIONS, **options}).fit(Z, y, weight)


def asked(scores, rows):
    """Puts questions to three parts of the rows."""
    parts = np.array_split(np.arange(len(scores)), 3)
    return lambda question, add: reduce(add, [question(scores[part], rows.take(part)) for part in parts])


def rows_of(y, weight=None):
    return Rows(np.empty((len(y), 0)), y, weight, weight)


# --- the likeliest line --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, REPEATS.astype(float), RNG.random(M) + 0.1], ids=["plain", "whole", "real"])
def test_the_link_of_two_classes_is_the_likeliest(weight):
    """But for the cells of the histogram, and the doubt that each class is given."""
    scores = RNG.normal(size=(M, 1))
    y = np.where(RNG.random(M) < 1 / (1 + np.exp(-(0.5 + 3 * scores[:, 0]))), 1.0, -1.0)[:, None]
    a, b = fit_link(asked(scores, rows_of(y, weight)))

    def loss(line):
        return np.average(np.logaddexp(0, -y[:, 0] * (line[0] + line[1] * scores[:, 0])), weights=weight)

    best = minimize(loss, [0.0, 1.0])
    assert loss([a[0], b[0]]) == pytest.approx(best.fun, rel=5e-3)
    assert [a[0], b[0]] == pytest.approx(best.x, rel=0.2, abs=0.1)
    assert b[0] < best.x[1]  # doubt


def labels_by(odds, seed=0):
    return np.where(np.random.default_rng(seed).random(len(odds)) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)[:, None]


def test_where_log_odds_are_a_curve_labels_change_where_it_rises_through_zero():
    scores = np.random.default_rng(3).normal(size=(20_000, 1))
    rows = rows_of(labels_by(-0.3 + scores[:, 0] + 0.8 * scores[:, 0] ** 2))
    border = (-1 + np.sqrt(1 + 4 * 0.3 * 0.8)) / (2 * 0.8)
    a, b = fit_link(asked(scores, rows))
    assert -a[0] / b[0] == pytest.approx(border, abs=0.03)
    a, b = fit_link(asked(scores, rows), may_bend=False)
    assert abs(-a[0] / b[0] - border) > 0.1


def test_where_labels_would_cost_much_of_the_likelihood_the_line_is_the_likeliest():
    scores = np.random.default_rng(5).normal(size=(5_000, 1))
    rows = rows_of(labels_by(-0.3 + 0.5 * scores[:, 0] + 2 * scores[:, 0] ** 2))
    assert fit_link(asked(scores, rows)) == fit_link(asked(scores, rows), may_bend=False)


@pytest.mark.parametrize("bend", [0.0, 30.0])
def test_where_they_are_a_line_or_rise_through_zero_nowhere_the_line_is_the_likeliest(bend):
    scores = np.random.default_rng(4).normal(size=(3_000, 1))
    rows = rows_of(
        labels_by(0.3 + 2 * scores[:, 0] if not bend else 0.5 + 0.1 * scores[:, 0] + bend * scores[:, 0] ** 2)
    )
    assert fit_link(asked(scores, rows)) == fit_link(asked(scores, rows), may_bend=False)


def test_the_link_of_several_classes_is_the_likeliest():
    scores = RNG.normal(size=(M, 3))
    label = (3 * scores + [0.5, 0, -0.5] + RNG.gumbel(size=(M, 3))).argmax(axis=1)
    a, b = fit_link(asked(scores, rows_of(np.where(np.eye(3)[label] > 0, 1.0, -1.0))))

    def loss(line):
        odds = np.append(line[:2], 0.0) + line[2] * scores
        return np.mean(np.logaddexp.reduce(odds, axis=1) - odds[np.arange(M), label])

    best = minimize(loss, [0.0, 0.0, 1.0])
    assert loss([a[0] - a[2], a[1] - a[2], b[0]]) == pytest.approx(best.fun, rel=1e-2)
    assert b[0] == b[1] == b[2]
    assert abs(a.sum()) < 1e-12


@pytest.mark.parametrize("n_rare", [1, 3, 20])
def test_a_rare_class_of_several_counts_as_one_example_more_than_it_has(n_rare):
    rng = np.random.default_rng(6)
    scores, label = rng.normal(size=(M, 3)), np.arange(M) % 2
    scores[np.arange(M), label] += 1.0
    label[:n_rare] = 2
    a, b = fit_link(asked(scores, rows_of(np.where(np.eye(3)[label] > 0, 1.0, -1.0))))
    odds = a + b * scores
    chance = np.exp(odds - np.logaddexp.reduce(odds, axis=1)[:, None])
    assert n_rare < chance[:, 2].sum() < n_rare + 1


def test_a_class_without_a_row_is_unlikely_and_changes_little_else():
    rng = np.random.default_rng(5)
    first = rng.normal(size=M)
    scores = np.column_stack([first, -first, np.full(M, -1.0)])
    label = (scores[:, :2] + rng.gumbel(size=(M, 2))).argmax(axis=1)
    a, b = fit_link(asked(scores, rows_of(np.where(np.eye(3)[label] > 0, 1.0, -1.0))))
    odds = a + b * scores
    chance = np.exp(odds - np.logaddexp.reduce(odds, axis=1)[:, None])
    assert 0 < chance[:, 2].max() < 0.1
    known, slope = fit_link(asked(scores[:, :2], rows_of(np.where(np.eye(2)[label] > 0, 1.0, -1.0))))
    assert b[0] == pytest.approx(slope[0], rel=0.05)
    assert a[0] - a[1] == pytest.approx(known[0] - known[1], abs=0.05)


def test_scores_left_out_are_those_of_fits_without_the_row():
    """On average: they do not lean towards the labels any more. Least squares on a few columns."""
    H = np.column_stack([np.ones(60), RNG.normal(size=(60, 4))])
    y = np.where(H[:, 1] + RNG.normal(size=60) > 0, 1.0, -1.0)
    scores = H @ np.linalg.lstsq(H, y, rcond=None)[0]
    others = [np.arange(60) != i for i in range(60)]
    known = np.array([H[i] @ np.linalg.lstsq(H[o], y[o], rcond=None)[0] for i, o in enumerate(others)])
    found = left_out(scores[:, None], y[:, None], np.array([5 / 60]))[:, 0]
    lean, before = np.mean(y * (found - known)), np.mean(y * (scores - known))
    assert before > 0.05
    assert abs(lean) < 0.2 * before


# --- what a model does with it -------------------------------------------------------------------------------


@pytest.mark.thinned(4)
@each_fit
@each_target
def test_probabilities_are_strictly_between_0_and_1_and_the_label_is_the_likeliest(y, options):
    model = fitted(y, **options)
    probability = model.predict_proba(X)
    assert ((probability > 0) & (probability < 1)).all()
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))


@each_fit
def test_the_order_of_rows_by_score_is_kept(options):
    with_link, without = (
        fitted(TWO, **options, calibration=calibration).decision_function(X) for calibration in ("auto", None)
    )
    order = np.argsort(without, kind="stable")
    assert (np.diff(with_link[order]) >= -1e-12 * np.abs(with_link).max()).all()
    slope, first = np.polyfit(without, with_link, 1)
    assert slope > 0
    np.testing.assert_allclose(with_link, first + slope * without, atol=1e-9 * np.abs(with_link).max())


@each_fit
@pytest.mark.parametrize("n_classes", [2, 3])
def test_perfectly_separated_rows_have_finite_odds(n_classes, options):
    x = np.repeat(np.arange(30.0), 2)[:, None]
    y = (x[:, 0] * n_classes // 30).astype(int)
    model = QuadBoostClassifier(**{"max_rounds": 500, **options}).fit(x, y)
    probability = model.predict_proba(x)
    assert np.isfinite(model.decision_function(x)).all()
    assert np.isfinite(np.log(probability)).all()
    if n_classes == 2:
        assert (model.predict(x) == y).all()


@each_fit
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_that_cannot_be_told_apart_have_their_shares(n_classes, options):
    x = np.tile([0.0, 1.0], 60)[:, None]
    y = np.minimum(np.arange(120) // 2 % 4, n_classes - 1)  # the same for both values
    model = QuadBoostClassifier(**options).fit(x, y)
    share = np.bincount(y) / 120
    np.testing.assert_allclose(model.predict_proba(x), np.tile(share, (120, 1)), atol=0.03)


def test_a_class_that_cannot_be_told_apart_from_another_shares_its_probability():
    x = np.repeat([0.0, 1.0], 60)[:, None]
    y = np.where(x[:, 0] == 0, 0, 1 + np.arange(120) % 2)
    probability = QuadBoostClassifier().fit(x, y).predict_proba([[0.0], [1.0]])
    assert probability[0, 0] > 0.8
    assert probability[1, 1] == pytest.approx(probability[1, 2], rel=1e-6)
    assert probability[1, 1] > 0.4


# --- the same bits -------------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@each_fit
@each_target
def test_a_whole_weight_is_a_repetition_bit_for_bit(y, options):
    repeated = fitted(y.repeat(REPEATS), None, X.repeat(REPEATS, axis=0), **options)
    assert_same_model(fitted(y, REPEATS, **options), repeated)


def test_so_it_is_where_there_are_too_many_repetitions_for_folds_and_few_rows(monkeypatch):
    monkeypatch.setattr(calibration, "MOST_ROWS_FOR_FOLDS", M)
    repeated = fitted(TWO.repeat(REPEATS), None, X.repeat(REPEATS, axis=0), penalty="l2")
    assert_same_model(fitted(TWO, REPEATS, penalty="l2"), repeated)


@pytest.mark.thinned
@each_fit
@each_target
@pytest.mark.parametrize("weight", [None, RNG.random(M) + 0.1], ids=["plain", "weighted"])
def test_the_order_of_rows_does_not_change_a_bit(y, options, weight):
    order = np.random.default_rng(0).permutation(M)
    found = fitted(y[order], None if weight is None else weight[order], X[order], **options)
    assert_same_model(found, fitted(y, weight, **options))


@each_fit
def test_rows_of_no_weight_are_no_rows(options):
    kept = RNG.random(M) < 0.6
    assert_same_model(fitted(TWO, kept.astype(float), **options), fitted(TWO[kept], None, X[kept], **options))


# --- what it is for ------------------------------------------------------------------------------------------


def made_rows(m=1500, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, 6))
    return Z, (rng.random(m) < 1 / (1 + np.exp(-2 * Z[:, 0] - np.sin(2 * Z[:, 1])))).astype(int)


def test_folds_have_only_the_time_that_training_left(monkeypatch):
    """Where there is none, the training rows must do; nothing is cut short silently."""
    many = {"penalty": "l2", "reg_lambda": 1.0}
    without_limit = fitted(TWO, **many).ensemble_.slope
    seen = []
    original = calibration._scores_of_folds

    def watched(problem, measured, options, trained):
        seen.append(options.schedule.max_seconds)
        return original(problem, measured, options, trained)

    monkeypatch.setattr(calibration, "_scores_of_folds", watched)
    ample = fitted(TWO, max_seconds=1e4, **many)
    assert 0 < seen[-1] < 1e4
    assert ample.ensemble_.slope == without_limit
    assert np.isfinite(fitted(TWO, max_seconds=0.0, **many).predict_proba(X)).all()
    assert seen[-1] == 0.0


@pytest.mark.thinned(1)
@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
@pytest.mark.parametrize("load", [lambda: load_breast_cancer(return_X_y=True), made_rows], ids=["cancer", "made"])
def test_log_loss_on_other_rows_is_below_that_of_the_clipped_line(load, penalty):
    Z, y = load()
    Z, other_Z, y, other_y = train_test_split(Z, y, test_size=0.4, random_state=0, stratify=y)
    given = {"penalty": penalty, "thresholds": 20, "alpha_max": 0.05, "max_rounds": 2_000}
    with_link, clipped = (
        log_loss(other_y, QuadBoostClassifier(**given, calibration=calibration).fit(Z, y).predict_proba(other_Z))
        for calibration in ("auto", None)
    )
    assert with_link < clipped


def test_probabilities_on_other_rows_are_the_shares_of_the_classes():
    Z, y = made_rows()
    other_Z, other_y = made_rows(20_000, seed=1)
    chance = QuadBoostClassifier(thresholds=20).fit(Z, y).predict_proba(other_Z)[:, 1]
    for low in np.arange(0, 1, 0.2):
        inside = (chance >= low) & (chance < low + 0.2)
        assert other_y[inside].mean() == pytest.approx(chance[inside].mean(), abs=0.06)


# --- with trees ----------------------------------------------------------------------------------------------


def rows_of_a_product(m, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, 6))
    odds = 1.5 * np.sign(Z[:, 0] * Z[:, 1]) + Z[:, 2]
    return Z, (rng.random(m) < 1 / (1 + np.exp(-odds))).astype(int)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("options", [{}, {"penalty": "l1"}, {"mode": "forward"}], ids=str)
@pytest.mark.parametrize("m", [500, pytest.param(4_000, marks=pytest.mark.slow)])
def test_odds_of_rules_on_other_rows_need_no_other_slope(m, options):
    """Log-loss within a few per cent of that of the best slope in hindsight: neither too sure nor too shy."""
    Z, y = rows_of_a_product(m, 0)
    other_Z, other_y = rows_of_a_product(20_000, 1)
    model = QuadBoostClassifier(n_trees=60, thresholds=30, **options).fit(Z, y)
    odds, sign = model.decision_function(other_Z), 2.0 * other_y - 1.0

    def loss(line):
        return np.mean(np.logaddexp(0, -sign * (line[0] + line[1] * odds)))

    best = minimize(loss, [0.0, 1.0])
    assert loss([0.0, 1.0]) < 1.03 * best.fun
    assert 0.7 < best.x[1] < 1.4
    assert loss([0.0, 1.0]) == pytest.approx(log_loss(other_y, model.predict_proba(other_Z)), rel=1e-6)
    assert best.fun < 0.62  # of 0.693: it has learnt something


def test_several_classes_with_rules_are_not_overconfident():
    def made(m, seed):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(m, 5))
        signal = np.column_stack([Z[:, 0] * Z[:, 1], Z[:, 2], np.zeros(m)])
        return Z, (signal + rng.gumbel(size=(m, 3))).argmax(axis=1)

    (Z, y), (other_Z, other_y) = made(900, 0), made(10_000, 1)
    model = QuadBoostClassifier(n_trees=40, thresholds=30).fit(Z, y)
    odds = model.decision_function(other_Z)

    def loss(slope):
        return np.mean(np.logaddexp.reduce(slope * odds, axis=1) - slope * odds[np.arange(len(odds)), other_y])

    best = min(loss(slope) for slope in np.linspace(0.4, 2.0, 33))
    assert loss(1.0) < 1.03 * best
    assert best < 1.07  # of 1.099
