"""Trees grown by boosting: what they are made of, and that they are the same whatever the order of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table
from sklearn.tree import DecisionTreeRegressor
from some_trees import way_of

from quadboost.boosting.losses import make_loss
from quadboost.fitting.growth import SHRINKAGE, Growth, grow_trees
from quadboost.voters.thresholds import candidate_voters

M = 400
X = mixed_table(M)
RNG = np.random.default_rng(0)
SIGNAL = np.where(X[:, 0] > 0, 1.0, -1.0) * np.where(X[:, 1] > 1, 1.0, -1.0) + (X[:, 4] == 2) - np.isnan(X[:, 2])
Y = (SIGNAL + 0.3 * RNG.normal(size=M))[:, None]
REPEATS = RNG.integers(1, 4, size=M)
VOTERS = candidate_voters(X, thresholds=16, n_levels=N_LEVELS)
CODES = VOTERS.code(X)
GROWTH = Growth(n_trees=6, max_leaves=7)
TARGETS = {
    "squared": Y,
    "logistic": (Y > 0).astype(float),
    "softmax": np.eye(4)[np.digitize(Y[:, 0], [-1, 0, 1])],
    "poisson": np.rint(np.exp(Y / 2)),
    "huber": Y,
    "quantile": Y,
}
each_loss = pytest.mark.parametrize("name", TARGETS)


def loss_for(name, y, weight=None):
    mean = np.average(y, axis=0, weights=weight)
    return make_loss("logistic" if name == "softmax" else name, y, weight, mean, quantile=0.5, huber_width=0.7)


def grown(name="squared", codes=CODES, y=None, weight=None, growth=GROWTH, **given):
    y = TARGETS[name] if y is None else y
    return grow_trees(VOTERS, codes, y, weight, loss_for(name, TARGETS[name]), growth, repeats=weight, **given)


def assert_same(found, known):
    for name, values in known.trees.arrays().items():
        np.testing.assert_array_equal(getattr(found.trees, name), values, err_msg=name)
    np.testing.assert_array_equal(found.step, known.step)
    np.testing.assert_array_equal(found.constant, known.constant)
    assert found.r2 == known.r2


def leaf_of(trees, tree, rows=X):
    return np.array([way_of(trees, tree, row, N_LEVELS)[-1] for row in rows])


# --- the same bits -------------------------------------------------------------------------------------------


@pytest.mark.thinned(18)
@each_loss
@pytest.mark.parametrize("weight", [None, REPEATS.astype(float), RNG.random(M) + 0.1], ids=["plain", "whole", "real"])
@pytest.mark.parametrize("growth_rows", [40_000, 150])
def test_the_order_of_rows_does_not_change_a_bit(name, weight, growth_rows):
    order, growth = np.random.default_rng(1).permutation(M), replace(GROWTH, growth_rows=growth_rows)
    other = None if weight is None else weight[order]
    found = grown(name, CODES[order], TARGETS[name][order], other, growth)
    assert_same(found, grown(name, weight=weight, growth=growth))


@each_loss
@pytest.mark.parametrize("growth_rows", [40_000, 150])
def test_a_whole_weight_is_a_repetition_bit_for_bit(name, growth_rows):
    growth = replace(GROWTH, growth_rows=growth_rows)
    repeated = grown(name, CODES.repeat(REPEATS, axis=0), TARGETS[name].repeat(REPEATS, axis=0), growth=growth)
    assert_same(grown(name, weight=REPEATS.astype(float), growth=growth), repeated)


def test_weights_of_classes_beside_whole_ones_do_not_change_what_a_row_stands_for():
    growth, weight = replace(GROWTH, growth_rows=150), np.where(Y[:, 0] > 0, 0.7, 1.9)
    loss = loss_for("squared", Y)
    found = grow_trees(VOTERS, CODES, Y, weight * REPEATS, loss, growth, repeats=REPEATS.astype(float))
    repeated = (values.repeat(REPEATS, axis=0) for values in (CODES, Y, weight))
    known = grow_trees(VOTERS, *repeated, loss, growth)
    np.testing.assert_array_equal(found.trees.feature, known.trees.feature)
    np.testing.assert_array_equal(found.trees.threshold, known.trees.threshold)
    np.testing.assert_allclose(found.step, known.step, rtol=1e-9, atol=1e-12)


def test_a_seed_gives_the_same_trees_again_and_another_one_others():
    assert_same(grown(growth=replace(GROWTH, seed=3)), grown(growth=replace(GROWTH, seed=3)))
    trees, others = (grown(growth=replace(GROWTH, seed=seed)).trees for seed in (3, 4))
    assert trees.n_nodes != others.n_nodes or (trees.threshold != others.threshold).any()


def test_fewer_trees_are_the_first_of_more():
    few, many = grown(growth=replace(GROWTH, n_trees=2)), grown()
    np.testing.assert_array_equal(few.trees.threshold, many.trees.threshold[: few.trees.n_nodes])
    np.testing.assert_array_equal(few.step, many.step[: few.trees.n_nodes])


# --- what trees are ------------------------------------------------------------------------------------------


def test_no_trees_are_none():
    found = grown(growth=replace(GROWTH, n_trees=0))
    assert (found.trees.n_trees, found.step.shape, found.r2) == (0, (0, 1), 0.0)


@pytest.mark.parametrize("max_leaves", [2, 5, 31])
def test_a_tree_has_no_more_leaves_than_it_may(max_leaves):
    trees = grown(growth=replace(GROWTH, max_leaves=max_leaves)).trees
    assert trees.n_leaves.max() == max_leaves if max_leaves < 31 else trees.n_leaves.max() > 7


@pytest.mark.parametrize("max_conditions", [1, 2, 3])
def test_no_more_features_meet_in_a_rule_than_may(max_conditions):
    trees = grown(growth=replace(GROWTH, max_leaves=20, max_conditions=max_conditions)).trees
    met = [len({int(trees.feature[above]) for above, _ in path}) for path in trees.paths()]
    assert max(met) == max_conditions
    assert max(len(path) for path in trees.paths()) > max_conditions  # a feature may come again


def test_features_meet_within_groups_only():
    groups = np.zeros((2, 8), np.uint8)
    groups[0, [0, 1]] = groups[1, [1, 2, 4]] = 1
    trees = grown(growth=replace(GROWTH, max_leaves=20, groups=groups)).trees
    met = [{int(trees.feature[above]) for above, _ in path} for path in trees.paths()]
    assert all(features <= {0, 1} or features <= {1, 2, 4} for features in met)
    assert {0, 1} in met


@pytest.mark.parametrize(("m", "least"), [(120, 3), (400, 4)])
def test_no_leaf_has_fewer_rows_than_a_hundredth_between_3_and_20(m, least):
    """Of the half of the rows that the tree is grown on: among all rows it has these at least."""
    found = grown(codes=CODES[:m], y=Y[:m], growth=Growth(n_trees=5, max_leaves=60))
    sizes = [np.unique(leaf_of(found.trees, tree, X[:m]), return_counts=True)[1] for tree in range(5)]
    assert min(counts.min() for counts in sizes) >= least
    assert np.median(np.concatenate(sizes)) < 8 * least


def test_growth_looks_at_no_more_rows_than_it_may():
    """Whatever the targets of the other rows are, as long as no key changes: they are far above in a sample."""
    growth = replace(GROWTH, growth_rows=60, max_leaves=60)
    found = grown(growth=growth)
    assert found.trees.n_leaves.max() <= 60 // 3
    assert grown(growth=replace(growth, growth_rows=M)).trees.n_leaves.max() > 20


@pytest.mark.parametrize("growth_rows", [40_000, 500])
def test_a_table_of_few_different_rows_is_grown_on_all_of_them(growth_rows):
    """What trees explain is then known as well as elsewhere; XOR of two columns, each 0 or 1."""
    Z = np.random.default_rng(1).integers(0, 2, size=(1_000, 2)).astype(float)
    y = np.where(Z[:, :1] != Z[:, 1:], 1.0, -1.0)
    voters = candidate_voters(Z)
    growth = Growth(n_trees=30, growth_rows=growth_rows)
    found = grow_trees(voters, voters.code(Z), y, None, loss_for("squared", y), growth)
    assert found.trees.n_leaves.tolist() == [4] * 30
    assert found.r2 > 0.9


def test_one_row_to_grow_on_gives_no_trees():
    found = grown(growth=replace(GROWTH, growth_rows=1))
    assert (found.trees.n_trees, found.r2) == (0, 0.0)


def test_a_constant_target_gives_no_trees():
    assert grown(y=np.full((M, 1), 3.25)).trees.n_trees == 0


def test_a_tree_on_all_rows_is_that_of_scikit_learn():
    """The first tree, grown on its half of the rows; the gain of every split is the best there is."""
    from quadboost.data.sampling import mixed, row_keys

    Z = np.random.default_rng(5).normal(size=(M, 4))
    y = (np.sin(2 * Z[:, :1]) * Z[:, 1:2] + Z[:, 2:3] > 0).astype(float) + 0.1 * Z[:, 3:]
    voters = candidate_voters(Z, thresholds="all")
    codes = voters.code(Z)
    trees = grow_trees(voters, codes, y, None, loss_for("squared", y), Growth(n_trees=1, max_leaves=12)).trees
    in_bag = mixed(row_keys(codes, y, 0), 0) >> np.uint64(63) == 1
    known = DecisionTreeRegressor(max_leaf_nodes=12, min_samples_leaf=4).fit(Z[in_bag], y[in_bag])
    leaf = leaf_of(trees, 0, Z[in_bag])
    mean = np.array([y[in_bag][leaf == number].mean() for number in leaf])
    assert np.mean((y[in_bag, 0] - mean) ** 2) == pytest.approx(
        np.mean((y[in_bag, 0] - known.predict(Z[in_bag])) ** 2), rel=1e-9
    )
    assert sorted(trees.feature[trees.feature >= 0]) == sorted(known.tree_.feature[known.tree_.feature >= 0])


# --- missing values and levels -------------------------------------------------------------------------------


def first_split(x, y, **given):
    """Of a tree of two leaves; a column of noise is beside it."""
    Z = np.column_stack([x, np.random.default_rng(0).normal(size=len(x))])
    voters = candidate_voters(Z, thresholds=9, **given)
    growth = Growth(n_trees=1, max_leaves=2)
    trees = grow_trees(voters, voters.code(Z), y[:, None], None, loss_for("squared", y[:, None]), growth).trees
    return trees.feature[0], trees.threshold[0], trees.missing_right[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_missing_values_go_to_the_side_that_suits_them(sign):
    x = np.where(np.arange(400) % 4 == 0, np.nan, np.linspace(-1, 1, 400))
    feature, threshold, missing_right = first_split(x, sign * np.where(np.isnan(x) | (x > 0), 1.0, -1.0))
    assert (feature, missing_right) == (0, 1)
    assert abs(threshold) < 0.05
    feature, threshold, missing_right = first_split(x, sign * np.where(x > 0, 1.0, -1.0))
    assert (feature, missing_right) == (0, 0)
    assert abs(threshold) < 0.05


@pytest.mark.parametrize("level", [0.0, 2.0])
def test_one_level_is_split_from_the_others(level):
    x = np.tile(np.arange(4.0), 60)
    assert first_split(x, np.where(x == level, 1.0, -1.0), n_levels={0: 4}) == (0, level, 0)
    y, x = np.where(x == level, 1.0, -1.0), np.where(x == level, np.nan, x)
    assert first_split(x, y, n_levels={0: 4})[::2] == (0, 1)  # a level nobody has, or another, and all that is missing


# --- steps ---------------------------------------------------------------------------------------------------


def test_steps_are_the_shrunken_means_of_what_is_left():
    found = grown()
    scores = np.full(M, found.constant[0])
    assert found.constant[0] == pytest.approx(Y.mean())
    for tree in range(found.trees.n_trees):
        leaf = leaf_of(found.trees, tree)
        for number in np.unique(leaf):
            known = SHRINKAGE * (Y[:, 0] - scores)[leaf == number].mean()
            assert found.step[number, 0] == pytest.approx(known, rel=1e-9, abs=1e-12)
        scores += found.step[leaf, 0]
    assert not found.step[~found.trees.is_leaf].any()


def test_without_an_intercept_scores_begin_at_zero():
    assert grown(y=Y + 5, fit_intercept=False).constant.tolist() == [0.0]


@each_loss
def test_every_tree_lowers_the_loss(name):
    found, y = grown(name), TARGETS[name]
    loss, scores = loss_for(name, y), np.tile(found.constant, (M, 1))
    losses = [loss.values(scores, y).mean()]
    for tree in range(found.trees.n_trees):
        scores = scores + found.step[leaf_of(found.trees, tree)]
        losses.append(loss.values(scores, y).mean())
    assert found.trees.n_trees == 6
    assert (np.diff(losses) < 0).all()


def test_outputs_share_the_trees():
    y = np.column_stack([Y[:, 0], np.where(X[:, 7] != 0, 2.0, -2.0)])
    found = grow_trees(VOTERS, CODES, y, None, loss_for("squared", y), GROWTH)
    assert found.step.shape == (found.trees.n_nodes, 2)
    assert np.abs(found.step).max(axis=0).min() > 0.05  # both learn
    assert {0, 7} <= set(found.trees.feature.tolist())


def test_what_trees_explain_on_other_rows_is_near_to_what_they_do():
    def made(m, seed):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(m, 5))
        return Z, (np.where(Z[:, 0] > 0, 1.0, -1.0) * np.where(Z[:, 1] > 0, 1.0, -1.0) + rng.normal(size=m))[:, None]

    (Z, y), (others, known) = made(1_500, 0), made(4_000, 1)
    voters = candidate_voters(Z, thresholds=20)
    found = grow_trees(voters, voters.code(Z), y, None, loss_for("squared", y), Growth(n_trees=40, max_leaves=8))
    with_trees = voters.with_trees(found.trees)
    codes = with_trees.code_trees(voters.code(others))[:, 5:].astype(int)
    scores = np.full(len(others), found.constant[0])
    for tree in range(found.trees.n_trees):
        nodes = np.arange(found.trees.start[tree], found.trees.start[tree + 1])
        scores += found.step[nodes[found.trees.is_leaf[nodes]][codes[:, tree] - 1], 0]
    r2 = 1 - np.mean((known[:, 0] - scores) ** 2) / known.var()
    assert 0.3 < r2 < 0.5
    assert found.r2 == pytest.approx(r2, abs=0.08)


def test_the_scale_of_targets_does_not_matter_for_what_trees_explain():
    y = np.array(TARGETS["squared"])
    known = grow_trees(VOTERS, CODES, y, None, loss_for("squared", y), GROWTH).r2
    for scale in (2.0**-460, 2.0**-20, 2.0**400):
        found = grow_trees(VOTERS, CODES, scale * y, None, loss_for("squared", scale * y), GROWTH).r2
        assert found == pytest.approx(known, abs=0.1)  # other bits of targets divide rows into other halves


@each_loss
def test_noise_is_not_taken_for_something_explained(name):
    """Small leaves follow the rows that their steps are taken on, also those out of the bag."""
    y = TARGETS[name][np.random.default_rng(2).permutation(M)][:200]
    found = grow_trees(VOTERS, CODES[:200], y, None, loss_for(name, y), Growth(n_trees=60))
    assert found.trees.n_leaves.mean() > 15
    assert found.r2 < 0.15


def test_progress_is_told_for_every_tree():
    told = []
    grown(tell=lambda: told.append(1))
    assert len(told) == 6


def test_there_are_no_more_trees_when_the_time_is_over():
    assert grown(max_seconds=0.0).trees.n_trees == 1
    assert_same(grown(max_seconds=3600.0), grown())


def test_more_trees_than_could_be_kept_are_refused():
    with pytest.raises(ValueError, match=r"n_trees=10+ is more than can be kept; give at most 100000"):
        Growth(n_trees=10**400)
