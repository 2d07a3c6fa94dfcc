"""Cross-validation of fits with trees: its scores are those of fits to the training rows of each split."""

from __future__ import annotations

import numpy as np
import pytest
from some_folds import FIVE, LABELS, READING, REAL, WEIGHT, X, folds_of, options

from quadboost import QuadBoostRegressor
from quadboost.choosing.rules import candidates_with_trees, cross_validate_rules, with_trees
from quadboost.choosing.search import Candidate
from quadboost.fitting.growth import Growth
from quadboost.fitting.problem import Problem

N_TREES = 4
GROWTH = Growth(max_leaves=5, seed=7)
SQUARE = REAL * X[:, 0]
SPLITS = FIVE[:2]
PENALTIES = {
    "l2": [0.3, 0.03],
    "l1": [0.1, 0.02],
    "linf": [0.05, 0.1],
}


def candidates(penalty, strengths):
    return [Candidate(penalty, strength, N_TREES) for strength in strengths]


def score(penalty, strengths, y=SQUARE, weight=None, judge=None, **changes):
    folds = folds_of(y, weight, SPLITS, per_fold=True, growth=GROWTH, **changes)
    return cross_validate_rules(folds, candidates(penalty, strengths), judge).score


def held_out_risk(penalty, strength, split, y=SQUARE, weight=None, **changes):
    """Of a fit to the training rows of a split alone."""
    model = QuadBoostRegressor(
        penalty, n_trees=N_TREES, max_leaves=5, random_state=7, thresholds=12, categorical_features=[4],
        min_category_count=1, tol=1e-6,
        **{"alpha_max" if penalty == "linf" else "reg_lambda": strength} | changes,
    )  # fmt: skip
    model.fit(X[split.train], y[split.train], None if weight is None else weight[split.train])
    off = y[split.held_out] - model.predict(X[split.held_out])
    return np.average(off**2, weights=None if weight is None else weight[split.held_out])


@pytest.mark.thinned(2)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_a_score_is_the_risk_of_a_fit_to_the_training_rows(penalty, weight):
    found = score(penalty, PENALTIES[penalty], weight=weight)
    known = [
        [held_out_risk(penalty, strength, split, weight=weight) for split in SPLITS] for strength in PENALTIES[penalty]
    ]
    np.testing.assert_allclose(found, known, rtol=0.01)  # each goes on from the one before, to a gap of a thousandth


def test_the_score_of_several_targets_is_their_mean():
    y = np.column_stack([SQUARE, 2 * REAL])
    known = [[held_out_risk("l2", 0.3, split, y) for split in SPLITS]]
    np.testing.assert_allclose(score("l2", [0.3], y), known, rtol=0.01)


def test_weights_as_grown_are_scored_as_they_are():
    found = score("l2", [1.0], mode="forward")
    known = [[held_out_risk("l2", 1.0, split, mode="forward") for split in SPLITS]]
    np.testing.assert_allclose(found, known, rtol=1e-9)


@pytest.mark.thinned(1)
@pytest.mark.parametrize(("penalty", "strength"), [("l2", 0.2), ("l1", 0.05)])
def test_under_another_loss_the_score_is_that_loss(penalty, strength):
    counts = np.rint(np.exp(np.clip(SQUARE, -2, 2)))
    found = score(penalty, [strength], counts, loss="poisson")
    for split, scores in zip(SPLITS, found[0], strict=True):
        model = QuadBoostRegressor(
            penalty, n_trees=N_TREES, max_leaves=5, random_state=7, thresholds=12, categorical_features=[4],
            min_category_count=1, tol=1e-5, reg_lambda=strength, loss="poisson",
        ).fit(X[split.train], counts[split.train])  # fmt: skip
        rate, known = model.predict(X[split.held_out]), counts[split.held_out]
        assert scores == pytest.approx(np.mean(rate - known * np.log(rate)), rel=0.01)


def test_trees_do_not_see_the_targets_of_rows_held_out():
    """Other targets there, other scores, but the same models: a judge is given what was learnt."""
    learnt = {}

    def judge(fold, boosted):
        learnt.setdefault(tuple(fold.rows), []).append((fold.voters.trees.threshold, boosted[0].weight))
        return 0.0

    split = SPLITS[0]
    other = SQUARE.copy()
    other[split.held_out] = -5 * other[split.held_out] + 3
    for y in (SQUARE, other):
        score("l2", [0.3], y, judge=judge)
    (trees, weight), (same_trees, same_weight) = learnt[tuple(split.held_out)]
    np.testing.assert_array_equal(trees, same_trees)
    np.testing.assert_array_equal(weight, same_weight)
    (trees, _), (other_trees, _) = learnt[tuple(SPLITS[1].held_out)]
    assert trees.shape != other_trees.shape or (trees != other_trees).any()


def test_the_number_of_threads_does_not_change_a_bit():
    one, two = (
        cross_validate_rules(folds_of(SQUARE, growth=GROWTH, n_threads=n), candidates("l2", [0.3, 0.1])).score
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_much_weaker_strengths_than_the_best_are_not_tried():
    """Their scores are those of the last one that was."""
    noise = np.random.default_rng(0).normal(size=len(X))
    found = score("l2", np.geomspace(100, 1e-9, 20), noise)
    assert (found[-1] == found[-3]).all()
    assert np.isfinite(found).all()


def test_progress_is_told_for_every_candidate_and_split():
    told = []
    folds = folds_of(SQUARE, splits=SPLITS, growth=GROWTH)
    cross_validate_rules(folds, candidates("l2", [0.3, 0.1, 0.03]), tell=lambda: told.append(1))
    assert len(told) == 6


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_strengths_to_try_fall_or_for_caps_rise(penalty, loss):
    problem = Problem.of_targets(X, SQUARE, None, READING)
    given = options(growth=GROWTH, loss=loss)
    found = candidates_with_trees([penalty], {penalty: 5}, problem, given, N_TREES)
    values = np.array([candidate.strength for candidate in found])
    assert len(values) == 5
    assert (np.diff(values) < 0).all() or penalty == "linf"
    assert (values > 0).all()
    assert {candidate.n_trees for candidate in found} == {N_TREES}


def test_strengths_that_are_given_are_tried_as_they_are():
    problem = Problem.of_targets(X, LABELS, None, READING)
    found = candidates_with_trees(["l2", None], {"l2": [0.5, 0.7]}, problem, options(growth=GROWTH), 3)
    assert [(candidate.penalty, candidate.strength) for candidate in found[:2]] in (
        [("l2", 0.5), ("l2", 0.7)],
        [("l2", 0.7), ("l2", 0.5)],
    )
    assert found[2].penalty is None
    its_options = with_trees(options(growth=GROWTH), found[0])
    assert (its_options.penalty, its_options.reg_lambda, its_options.growth.n_trees) == ("l2", found[0].strength, 3)
    assert its_options.growth.seed == 7
