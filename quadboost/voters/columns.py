"""Columns of codes, and the voters that ask about them.

A column is a small integer code per row, the bin that the row falls into; missing values have the last bin.
A voter is an interval of the bins of one column: it says +1 there and -1 in the other bins. Outside its interval it
abstains (0) where the value is missing.

| column | its bins | its voters |
|---|---|---|
| ordered | between thresholds | above a threshold: from the bin after it to the last value |
| levels | bin l + 1 is level l, bin 0 a level never seen | one level: its own bin |
| both | the last: missing | "is missing", where training rows had missing values: that bin |
| tree | bin l + 1 is leaf l, from left to right | every node but the root: its leaves (`trees.py`) |

The complement of a voter is the same voter with a negative weight, so no interval needs to have bin 0.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..kernels.bins import code_rows
from ..kernels.sums import score_codes
from ..kernels.voters import Layout, step_values
from .bins import bin_index, starts
from .trees import Trees, leaf_codes

THRESHOLD, LEVEL, MISSING = 0, 1, 2  # kinds of voters in a model that ask for one feature
RULE = 3  # a node of a tree
CELLS_AT_A_TIME = 20_000_000  # coded between two chances to interrupt
MOST_BINS = 1 << 31  # of all columns together: their numbers have 32 bits


def checked_values(X: np.ndarray) -> np.ndarray:
    """X, aligned, for a kernel, which takes it by its address; refuse what it would misread."""
    if X.ndim != 2 or X.dtype not in (np.float32, np.float64):
        raise ValueError(f"X is {X.dtype} of shape {X.shape}; give rows and columns of float32 or float64")
    return X if X.flags.aligned else X.copy()


class Intervals(NamedTuple):
    """Voters as bins: the last one before the interval, the last one in it, and the last one where they vote at all."""

    low: np.ndarray
    high: np.ndarray
    whole: np.ndarray

    @classmethod
    def of(cls, n_cuts: np.ndarray, is_level: np.ndarray, has_missing: np.ndarray) -> Intervals:
        """The voters of columns: one per cut, then "is missing". Bins are numbered over all columns."""
        n_voters = n_cuts + has_missing
        first, start = starts(n_voters), starts(n_cuts + 2)

        def each(of_column: np.ndarray) -> np.ndarray:
            return np.repeat(of_column.astype(np.int32), n_voters)

        low = np.arange(first[-1], dtype=np.int32) + each(start[:-1] - first[:-1])
        last_value = each(start[:-1] + n_cuts)
        high = np.where(each(is_level) == 1, low + 1, last_value)
        whole = last_value.copy()
        asks_missing = first[1:][has_missing == 1] - 1
        high[asks_missing], whole[asks_missing] = low[asks_missing] + 1, last_value[asks_missing] + 1
        return cls(low, high, whole)

    @classmethod
    def of_trees(cls, trees: Trees, first_bin: int) -> Intervals:
        """The nodes of trees, whose columns follow one another from a bin on."""
        is_voter, start = ~trees.is_root, starts(trees.n_leaves + 2)[:-1] + first_bin
        first_bins = start[trees.tree][is_voter] if trees else start
        first, last = (bound[is_voter] for bound in trees.leaf_range)
        whole = first_bins + trees.n_leaves[trees.tree][is_voter] if trees else first_bins
        return cls(*(bins.astype(np.int32) for bins in (first_bins + first, first_bins + last, whole)))

    def joined(self, other: Intervals) -> Intervals:
        return Intervals(*map(np.concatenate, zip(self, other, strict=True)))


@dataclass(frozen=True)
class Voters:
    """The candidate voters of every column, one column after the other: first the features, then the trees.

    Attributes
    ----------
    cuts : list of arrays
        Where the values of each feature are cut into bins, ascending. Levels are numbers from 0, cut between.
    is_level : uint8 array of shape (d,)
        Whether the feature holds levels.
    has_missing : uint8 array of shape (d,)
        Whether the feature has an "is missing" voter.
    trees : Trees
        Of which every node but the root is a voter.
    """

    cuts: list[np.ndarray]
    is_level: np.ndarray
    has_missing: np.ndarray
    trees: Trees = field(default_factory=Trees.none)

    def __post_init__(self) -> None:
        if self.bin_start[-1] >= MOST_BINS:
            raise ValueError(f"there are {self.bin_start[-1]} bins, and at most {MOST_BINS}; give fewer thresholds")

    def with_trees(self, trees: Trees) -> Voters:
        return replace(self, trees=trees)

    @property
    def n_features(self) -> int:
        return len(self.cuts)

    @property
    def n_columns(self) -> int:
        return self.n_features + self.trees.n_trees

    @property
    def n_voters(self) -> int:
        return int(self.voter_start[-1])

    @property
    def first_rule(self) -> int:
        """The number of the first voter that is a node of a tree."""
        return int(self.voter_start[self.n_features])

    @cached_property
    def n_cuts(self) -> np.ndarray:
        """Of each column, one less than it has bins for values; a tree has a bin for each leaf, and an empty one."""
        return np.concatenate([np.array([len(cuts) for cuts in self.cuts], dtype=np.int64), self.trees.n_leaves])

    @cached_property
    def bin_start(self) -> np.ndarray:
        """Where each column's bins begin: one more than its cuts, and one for missing values."""
        return starts(self.n_cuts + 2)

    @cached_property
    def voter_start(self) -> np.ndarray:
        n_voters = self.n_cuts[: self.n_features] + self.has_missing
        return starts(np.concatenate([n_voters, np.diff(self.trees.start) - 1]))

    @cached_property
    def intervals(self) -> Intervals:
        """The intervals of all voters; bins are numbered over all columns."""
        features = Intervals.of(self.n_cuts[: self.n_features], self.is_level, self.has_missing)
        return features.joined(Intervals.of_trees(self.trees, int(self.bin_start[self.n_features])))

    @cached_property
    def layout(self) -> Layout:
        """Where bins and voters are, for the kernels."""
        n_nested = self.n_cuts.copy()
        n_nested[: self.n_features][self.is_level == 1] = 0
        n_nested[self.n_features :] = 0
        return Layout(self.bin_start, self.voter_start, n_nested, *self.intervals)

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest that identifies these voters."""
        parts = [self.n_cuts, self.is_level, self.has_missing, *self.cuts, *self.trees.arrays().values()]
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).digest()

    def locate(self, voter: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """The columns of some voters, and their numbers among the voters of their column."""
        column = np.searchsorted(self.voter_start, voter, side="right") - 1
        return column, voter - self.voter_start[column]

    def describe(self, voter: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Feature, kind and threshold (of a level voter: the level's number) of the given voters.

        A rule asks for several features, and has -1; its threshold is the number of its node.
        """
        feature, position = self.locate(voter)
        is_rule = feature >= self.n_features
        known = np.where(is_rule, 0, feature)
        kind = np.where(np.append(self.is_level, 0)[known], LEVEL, THRESHOLD)
        kind[position == self.n_cuts[known]] = MISSING
        cut = np.concatenate([*self.cuts, np.zeros(1)])[np.where(is_rule, 0, starts(self.n_cuts)[known] + position)]
        threshold = np.select([kind == THRESHOLD, kind == LEVEL], [cut, position.astype(float)], 0.0)
        if is_rule.any():
            node = np.flatnonzero(~self.trees.is_root)[voter[is_rule] - self.first_rule]
            feature, kind[is_rule], threshold[is_rule] = np.where(is_rule, -1, feature), RULE, node
        return feature.astype(np.int32), kind.astype(np.uint8), threshold

    def votes(self, voter: int) -> tuple[int, np.ndarray]:
        """The voter's column, and its output (-1, 0 or +1) in each of the column's bins."""
        column = int(self.locate(voter)[0])
        low, high, whole = (bins[voter] - self.bin_start[column] for bins in self.intervals)
        votes = np.zeros(self.n_cuts[column] + 2, dtype=np.int32)
        votes[: whole + 1] = -1
        votes[low + 1 : high + 1] = 1
        return column, votes

    def step_values(self, weight: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What weighted voters add up to in the bins of some columns, which ascend; and where each column begins.

        Shapes (K, n_outputs), K being all voters, and (bins of these columns, n_outputs).
        """
        weight, start = np.ascontiguousarray(weight), starts(self.n_cuts[columns] + 2)
        values = np.zeros((start[-1], weight.shape[1]))
        step_values(self.layout, columns, start, weight, self._sums_at_values(weight, columns), values)
        return values, start

    def _sums_at_values(self, weight: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The weights of each column's voters but "is missing", added up: old models predict what they always have."""
        features = columns[columns < self.n_features]
        found = np.empty((len(columns), weight.shape[1]))
        first_and_n = zip(self.voter_start[features].tolist(), self.n_cuts[features].tolist(), strict=True)
        for number, (first, n) in enumerate(first_and_n):
            found[number] = weight[first : first + n].sum(axis=0)
        tree = self.trees.tree[~self.trees.is_root]
        for output, of_rules in enumerate(weight[self.first_rule :].T):
            sums = np.bincount(tree, of_rules, self.trees.n_trees)
            found[len(features) :, output] = sums[columns[len(features) :] - self.n_features]
        return found

    def scores(self, codes: np.ndarray, weight: np.ndarray, intercept: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Scores of coded rows, shape (m, n_outputs), given the weights (K, n_outputs) of all voters."""
        columns = self.columns_of(weight)
        values, start = self.step_values(weight, columns)
        scores = np.tile(intercept, (len(codes), 1))
        score_codes(codes, columns, start, values, scores, n_threads)
        return scores

    def columns_of(self, weight: np.ndarray) -> np.ndarray:
        """The columns that have a weight."""
        return np.unique(self.locate(np.flatnonzero(weight.any(axis=1)))[0])

    def changes(self, codes: np.ndarray, voter: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """By how much scores of coded rows change when the weights of some voters do."""
        weight = np.zeros((self.n_voters, 1))
        weight[voter, 0] = delta
        return self.scores(codes, weight, np.zeros(1))[:, 0]

    @cached_property
    def columns_with_voters(self) -> np.ndarray:
        return np.flatnonzero(np.diff(self.voter_start))

    def code(self, X: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """The bin of every value of X, as small integers, and the leaf of every tree."""
        codes = self._code_features(X, n_threads)
        return codes if not self.trees else self.code_trees(codes, n_threads)

    def code_trees(self, codes: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Codes of the features, and beside them those of the trees."""
        leaves = leaf_codes(self.trees, codes, self.cuts, self.is_level, n_threads)
        return np.concatenate([codes, leaves.astype(codes.dtype, copy=False)], axis=1)

    def _code_features(self, X: np.ndarray, n_threads: int) -> np.ndarray:
        X = checked_values(X)
        index = bin_index(self.cuts)
        most = int(self.n_cuts[: self.n_features].max(initial=0))  # the code of the largest value; missing has the next
        for dtype in (np.uint8, np.uint16, np.uint32):
            if most <= np.iinfo(dtype).max:
                codes = np.empty(X.shape, dtype=dtype)
                step = max(1, CELLS_AT_A_TIME // max(X.shape[1], 1))
                firsts = range(0, len(X), step)
                if all(code_rows(X, *index, codes, i, min(len(X), i + step), n_threads) for i in firsts):
                    return codes  # else a missing value has a code too large for its type
        raise ValueError(f"a feature has {most} thresholds; give fewer")
