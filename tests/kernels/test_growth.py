"""Growing a tree, against the same rule in plain Python with exact fractions, and against scikit-learn."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from quadboost.kernels.growth import grow


class Rows(NamedTuple):
    """Coded rows: the first code of a column of levels is a level never seen, the last of every column is missing."""

    codes: np.ndarray
    n_bins: np.ndarray
    is_level: np.ndarray
    mass: np.ndarray
    target: np.ndarray  # times mass

    @classmethod
    def random(cls, seed, m=150, n_bins=(6, 5, 3, 30, 2), levels=(1, 2), n_targets=1, dtype=np.uint8):
        rng = np.random.default_rng(seed)
        codes = np.column_stack([rng.integers(0, n, m) for n in n_bins])
        codes[:, 3] = np.minimum(codes[:, 3], 28)  # nothing is missing there
        is_level = np.isin(np.arange(len(n_bins)), levels)
        mass = rng.integers(1, 4, m)
        target = (rng.integers(-(10**6), 10**6, (m, n_targets)) + 400_000 * (codes[:, :1] > 2)) * mass[:, None]
        return cls(codes.astype(dtype), np.array(n_bins), is_level.astype(np.uint8), mass, target)

    def grown(self, rows, max_leaves=8, least_mass=5, most_columns=99, groups=None, signs=None, sides=True):
        """The inner nodes, as (column, bin, side of missing values, left, right) by number; and the rows by leaf."""
        most, d = 2 * max_leaves - 1, self.codes.shape[1]
        column, cut, side = np.full(most, -7, np.int32), np.zeros(most, np.int32), np.zeros(most, np.uint8)
        child, order = np.zeros((most, 2), np.int32), np.empty(len(self.codes), np.int32)
        in_bag, leaf = np.zeros(len(self.codes), np.int64), np.full(len(self.codes), 999, np.uint32)
        in_bag[rows] = 1
        group = np.ones((1, d), np.uint8) if groups is None else np.array(groups, np.uint8)
        bin_start, sign = np.append(0, np.cumsum(self.n_bins)), np.zeros(d, np.int8)
        sign[: len(signs or ())] = signs or ()
        n_nodes = grow(
            self.codes, bin_start, self.is_level, sign, sign if sides else 0 * sign, self.mass, self.target, in_bag,
            order, group, most_columns, least_mass, max_leaves, column, cut, side, child, leaf,
        )  # fmt: skip
        splits = {
            node: (int(column[node]), int(cut[node]), int(side[node]), *child[node].tolist())
            for node in range(n_nodes)
            if column[node] >= 0
        }
        assert (column[:n_nodes] >= -1).all()
        assert set(leaf.tolist()) <= set(range(n_nodes)) - set(splits)
        return splits, leaf, order[: len(rows)]

    def goes_right(self, rows, column, cut, side):
        code = self.codes[rows, column].astype(int)
        right = code == cut if self.is_level[column] else code > cut
        return np.where(code == self.n_bins[column] - 1, side == 1, right)

    def quality(self, rows):
        return sum(Fraction(int(total)) ** 2 for total in self.target[rows].sum(axis=0)) / int(self.mass[rows].sum())

    def candidates(self, rows, allowed):
        """Splits in the order in which they are tried; of equal ones the first is taken."""
        for column in allowed:
            n, code = int(self.n_bins[column]), self.codes[rows, column]
            for side in (0, 1) if (code == n - 1).any() else (0,):
                for bin in range(n - 2, 0, -1):
                    if (code == bin).any():
                        yield column, bin if self.is_level[column] else bin - 1, side

    def follows(self, right, left, sign):
        """Whether the mean does not change against a sign; asked where there is one target."""
        if not sign or self.target.shape[1] > 1:
            return True
        above, below = (Fraction(int(self.target[side].sum()), int(self.mass[side].sum())) for side in (right, left))
        return sign * (above - below) >= 0

    def best(self, rows, least_mass, allowed, signs):
        """The gain of the best split, and the split; None if there is none."""
        found, before = (Fraction(0), None), self.quality(rows)
        for split in self.candidates(rows, allowed):
            right = self.goes_right(rows, *split)
            enough = min(self.mass[rows[right]].sum(), self.mass[rows[~right]].sum()) >= least_mass
            if enough and self.follows(rows[right], rows[~right], signs[split[0]]):
                gain = self.quality(rows[right]) + self.quality(rows[~right]) - before
                if gain > found[0]:
                    found = gain, split
        return found

    def naive(self, rows, max_leaves=8, least_mass=5, most_columns=99, groups=None, signs=None, sides=True):
        """The same as `grown`, one rule at a time."""
        d = self.codes.shape[1]
        signs = [*(signs or ()), *[0] * d]
        sets = [set(range(d))] if groups is None else [set(np.flatnonzero(group).tolist()) for group in groups]

        def allowed(way, met):
            return [] if sides and len(met) > 1 else [
                f for f in range(d)
                if f in way or (len(way) < most_columns and any(way | {f} <= together for together in sets))
            ]  # fmt: skip

        leaves = [(0, rows, frozenset(), frozenset())]
        splits, n_nodes = {}, 1
        while len(leaves) < max_leaves:
            found = [self.best(rows, least_mass, allowed(way, met), signs) for _, rows, way, met in leaves]
            here = max(range(len(leaves)), key=lambda i: (found[i][0], -i))
            if found[here][1] is None:
                break
            node, members, way, met = leaves[here]
            split = found[here][1]
            sign = signs[split[0]]
            right = self.goes_right(members, *split)
            splits[node] = (*split, n_nodes, n_nodes + 1)
            leaves[here] = (n_nodes, members[~right], way | {split[0]}, met | {-sign} - {0})
            leaves.append((n_nodes + 1, members[right], way | {split[0]}, met | {sign} - {0}))
            n_nodes += 2
        return splits, leaves


CASES = {
    "plain": ({}, {}),
    "many rows": ({"m": 1500}, {}),
    "many rows and targets": ({"m": 1000, "n_targets": 2, "dtype": np.uint16}, {"max_leaves": 5}),
    "large leaves": ({}, {"least_mass": 40}),
    "many leaves": ({"m": 60}, {"max_leaves": 20, "least_mass": 1}),
    "one leaf": ({}, {"max_leaves": 1}),
    "several targets": ({"n_targets": 3}, {}),
    "wide codes": ({"dtype": np.uint16}, {}),
    "very wide codes": ({"dtype": np.uint32, "n_targets": 2}, {}),
    "one column in a rule": ({}, {"most_columns": 1, "max_leaves": 12}),
    "two columns in a rule": ({}, {"most_columns": 2, "max_leaves": 12}),
    "groups": ({}, {"groups": [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]], "max_leaves": 12}),
    "groups that overlap": ({}, {"groups": [[1, 1, 0, 0, 0], [0, 1, 1, 1, 0]], "max_leaves": 12}),
    "nothing may be asked for": ({}, {"groups": [[0, 0, 0, 0, 0]]}),
    "signs": ({}, {"signs": [1, 0, 0, -1], "max_leaves": 12}),
    "signs of steps": ({"m": 1500}, {"signs": [1, 0, 0, -1], "sides": False, "max_leaves": 12}),
    "signs against the targets": ({"m": 1500}, {"signs": [-1, 0, 0, 1], "max_leaves": 12}),
    "signs of several targets": ({"n_targets": 2}, {"signs": [1, 0, 0, 1], "max_leaves": 12}),
    "no leaf is large enough": ({}, {"least_mass": 10_000}),
}


@pytest.mark.thinned(6)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("data", "options"), CASES.values(), ids=CASES)
def test_the_best_split_of_all_leaves_comes_next(data, options, seed):
    rows = Rows.random(seed, **data)
    some = np.flatnonzero(np.random.default_rng(seed).random(len(rows.codes)) < 0.7)
    splits, leaf, order = rows.grown(some, **options)
    wanted, leaves = rows.naive(some, **options)
    assert splits == wanted
    for node, members, _, _ in leaves:
        np.testing.assert_array_equal(some[leaf[some] == node], members)
    assert sorted(order.tolist()) == some.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_another_order_or_one_by_one_grow_the_same_tree(seed):
    rows = Rows.random(seed)
    everyone = np.arange(len(rows.codes))
    known = rows.grown(everyone)[0]
    assert len(known) == 7
    assert rows.grown(np.random.default_rng(seed).permutation(everyone))[0] == known
    repeated = np.repeat(everyone, rows.mass)
    one_by_one = Rows(
        rows.codes[repeated], rows.n_bins, rows.is_level, np.ones(len(repeated), np.int64),
        np.ascontiguousarray((rows.target // rows.mass[:, None])[repeated]),
    )  # fmt: skip
    assert one_by_one.grown(np.arange(len(repeated)))[0] == known


def test_targets_that_are_all_the_same_need_no_split():
    rows = Rows.random(0)
    for target in (0, 12345):
        same = rows._replace(target=target * rows.mass[:, None])
        assert same.grown(np.arange(150))[0] == {}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("max_leaves", "least"), [(2, 1), (8, 10), (31, 5), (60, 1)])
def test_scikit_learn_grows_the_same_tree(seed, max_leaves, least):
    rng = np.random.default_rng(seed)
    m, n_bins = 400, np.array([12, 9, 40, 5])
    codes = np.column_stack([rng.integers(0, n - 1, m) for n in n_bins]).astype(np.uint8)
    target = rng.integers(-(10**6), 10**6, (m, 1)) + 10**5 * codes[:, :1].astype(np.int64) * codes[:, 1:2]
    rows = Rows(codes, n_bins, np.zeros(4, np.uint8), np.ones(m, np.int64), target)
    splits, leaf, _ = rows.grown(np.arange(m), max_leaves, least)
    other = DecisionTreeRegressor(max_leaf_nodes=max_leaves, min_samples_leaf=least, random_state=seed)
    other.fit(codes.astype(float), target[:, 0] / 1e6)
    pairs = set(zip(leaf.tolist(), other.apply(codes.astype(float)).tolist(), strict=True))
    assert len(pairs) == len(splits) + 1 == other.get_n_leaves()
