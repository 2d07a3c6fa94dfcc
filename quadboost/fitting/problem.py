"""Turns what the user gave into rows and targets; every fit begins here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..boosting.limits import Limits, limited
from ..boosting.penalties import L1, L2, Penalty
from ..boosting.result import Boosted
from ..common.checks import InfiniteValue, check_no_infinity
from ..data.constraints import ANY_MEET, Meetings, check_numbers, constrained_columns, meetings_of, signs_of
from ..data.exact import effective_count
from ..data.examples import (
    Examples,
    check_size,
    class_weights,
    examples_of,
    labels_of,
    one_vs_rest,
    positions_of,
    real_targets,
    spread_of,
    times,
)
from ..data.schema import FrameSchema, read_table, to_matrix
from ..model.ensemble import Ensemble
from ..moments.moments import Moments
from ..moments.sums import ColumnSums, Sums
from ..voters.binned import Binned
from ..voters.columns import Voters
from ..voters.thresholds import candidate_voters
from ..voters.trees import Trees
from .limits import limits_of


@dataclass(frozen=True)
class Rows:
    """Examples: a real matrix (missing values are NaN, categories level numbers), targets and weights."""

    X: np.ndarray | Binned
    y: np.ndarray  # (m, n_outputs)
    weight: np.ndarray | None = None
    repeats: np.ndarray | None = None  # the part of the weight that says how many examples a row stands for

    def take(self, rows: np.ndarray) -> Rows:
        def part(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[rows]

        return Rows(self.X[rows], self.y[rows], part(self.weight), part(self.repeats))

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_outputs(self) -> int:
        return self.y.shape[1]

    @property
    def n_examples(self) -> float:
        return float(len(self.y)) if self.repeats is None else effective_count(self.repeats)

    def code(self, voters: Voters, n_threads: int) -> np.ndarray:
        """The bin of every value, and the leaf of every tree."""
        if not isinstance(self.X, Binned):
            return voters.code(self.X, n_threads)
        codes = self.X.coded_by(voters)
        return voters.code_trees(codes, n_threads) if voters.trees else codes

    def matrix(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Values of some rows, by which models score them."""
        some = self.X[rows]
        return some.values() if isinstance(some, Binned) else some


@dataclass(frozen=True)
class Reading:
    """How a table is read."""

    categorical_features: Any = "auto"
    min_category_count: int = 5
    owner: str = "this model"  # for the errors
    monotonic_cst: Any = None
    interaction_cst: Any = None


@dataclass(frozen=True)
class Problem:
    """Rows to learn from, and what their columns and targets are.

    Attributes
    ----------
    examples : Examples
        As the user gave them: labels or targets, weights without those of classes.
    schema : FrameSchema
    rows : Rows
        The rows that count, as training sees them: targets of shape (m, n_outputs), divided by their scale.
    one_output : bool
        Whether there is one score; else there are several, if only in a column each.
    target_scale : array of shape (n_outputs,)
    classes, class_weight : arrays or None
        Of labels.
    signs : array of shape (d, n_outputs) or None
        In which direction scores may move as a feature rises; 0: in both.
    meetings : Meetings
        Which features may meet in a rule.
    """

    examples: Examples
    schema: FrameSchema
    rows: Rows
    one_output: bool
    target_scale: np.ndarray
    classes: np.ndarray | None = None
    class_weight: np.ndarray | None = None
    signs: np.ndarray | None = None
    meetings: Meetings = ANY_MEET

    @classmethod
    def of_labels(cls, X: Any, y: Any, sample_weight: Any, reading: Reading, class_weight: Any = None) -> Problem:
        """Two classes have one score, more have one each, against the rest."""
        check_size(X)
        examples = examples_of(X, labels_of(y), sample_weight)
        classes, position = np.unique(examples.y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"the labels hold only one class, {classes.tolist()[0]!r}; a classifier needs at least two classes"
            )
        mass = np.bincount(position, weights=examples.weight, minlength=len(classes))
        of_class = class_weights(class_weight, classes, mass)
        targets = one_vs_rest(position, len(classes))
        schema, matrix = _read(examples, reading)
        rows = Rows(matrix, targets, times(examples.weight, of_class, position), examples.weight)
        signs = signs_of(reading.monotonic_cst, schema, targets.shape[1])
        meetings, scale = meetings_of(reading.interaction_cst, schema), np.ones(targets.shape[1])
        return cls(examples, schema, rows, len(classes) == 2, scale, classes, of_class, signs, meetings)

    @classmethod
    def of_targets(cls, X: Any, y: Any, sample_weight: Any, reading: Reading, standardize: bool = False) -> Problem:
        check_size(X)
        examples = examples_of(X, real_targets(y), sample_weight)
        targets = examples.y.reshape(len(examples.y), -1)
        scale = spread_of(targets, examples.weight) if standardize else np.ones(targets.shape[1])
        schema, matrix = _read(examples, reading)
        rows = Rows(matrix, targets / scale, examples.weight, examples.weight)
        signs = signs_of(reading.monotonic_cst, schema, targets.shape[1])
        meetings = meetings_of(reading.interaction_cst, schema)
        return cls(examples, schema, rows, examples.y.ndim == 1, scale, signs=signs, meetings=meetings)

    def more_rows(self, X: Any, y: Any, sample_weight: Any, suffix: str, reading: Reading) -> Rows:
        """Further rows of the same kind, such as those for validation; `suffix` is for the errors."""
        check_size(X, suffix)
        if self.classes is None:
            examples = examples_of(X, real_targets(y, f"y{suffix}"), sample_weight, suffix)
            targets, weight = examples.y.reshape(len(examples.y), -1), examples.weight
            n_outputs = self.rows.n_outputs
            if targets.shape[1] != n_outputs:
                raise ValueError(f"y{suffix} has {targets.shape[1]} outputs and y has {n_outputs}; give as many")
            targets = targets / self.target_scale
        else:
            examples = examples_of(X, labels_of(y, f"y{suffix}"), sample_weight, suffix)
            position = positions_of(examples.y, self.classes)
            targets = one_vs_rest(position, len(self.classes))
            weight = times(examples.weight, self.class_weight, position)
        matrix = to_matrix(examples.X, self.schema, owner=reading.owner)
        check_no_infinity(matrix, self.schema.feature_names)
        return Rows(examples.part(matrix), targets, weight, examples.weight)

    @property
    def n_levels(self) -> dict[int, int]:
        """How many levels each categorical feature has."""
        return {feature: len(levels) for feature, levels in self.schema.categories.items()}

    def voters(self, rows: Rows, thresholds: int | str, spacing: str, n_threads: int) -> Voters:
        """The candidate voters by some of the rows."""
        if isinstance(rows.X, Binned):
            return rows.X.voters
        names = self.schema.feature_names
        try:
            return candidate_voters(
                rows.X, rows.weight, thresholds=thresholds, spacing=spacing, n_levels=self.n_levels, n_threads=n_threads
            )
        except InfiniteValue as wrong:
            name = None if names is None else names[wrong.feature]
            raise InfiniteValue(wrong.feature, wrong.value, name) from None

    def targets(self, rows: Rows, loss: str) -> np.ndarray:
        """Targets as a loss wants them: labels are -1 and +1 to the squared one, and 0 and 1 to others."""
        return rows.y if self.classes is None or loss == "squared" else (rows.y + 1.0) / 2.0

    def limits(self, voters: Voters, moments: Moments, output: int, penalty: str | None = None) -> Limits | None:
        """What is asked of the weights of voters for one of the scores, under the penalty of that name."""
        return limits_of(voters, moments, None if self.signs is None else self.signs[:, output], penalty=penalty)

    def limited(self, penalty: Penalty, voters: Voters, moments: Moments, output: int = 0) -> Penalty:
        """A penalty on the weights of voters for one of the scores, within what is asked of them."""
        name = "l1" if isinstance(penalty, L1) else "l2" if isinstance(penalty, L2) else None
        return limited(penalty, self.limits(voters, moments, output, name))

    def ensemble(
        self, voters: Voters, boosted: Sequence[Boosted], info: Mapping[str, Any] | None = None, *,
        loss: str = "squared", link: str | None = None, calibration: tuple[np.ndarray, np.ndarray] | None = None,
        sums: Sums | None = None,
    ) -> Ensemble:  # fmt: skip
        """The model: voters with a weight, one run per output, in the units of the targets.

        A calibration, intercept and slope of the log-odds, is folded into weights and intercepts. Sums over the
        training rows tell how many there are in each bin.
        """
        weight = np.column_stack([result.weight for result in boosted]) * self.target_scale
        intercept = np.array([result.intercept for result in boosted]) * self.target_scale
        slope = np.ones(len(intercept))
        if calibration is not None:
            link, (first, slope) = "logit" if self.one_output else "softmax", calibration
            weight, intercept = weight * slope, first + slope * intercept
        active = np.flatnonzero(weight[: voters.first_rule].any(axis=1))
        feature, kind, threshold = voters.describe(active)
        trees, node_weight, nodes = _used_trees(voters, weight)
        return Ensemble(
            feature,
            threshold,
            weight[active, 0] if self.one_output else weight[active],
            intercept[0] if self.one_output else intercept,
            kind=kind,
            n_features=self.schema.n_features,
            classes=self.classes,
            feature_names=self.schema.feature_names,
            categories=self.schema.categories,
            info={**(info or {}), **self.schema.in_info},
            loss=loss,
            link=link,
            slope=slope[0] if self.one_output else slope,
            bin_mass=None if sums is None else bin_mass_of(sums, active),
            trees=trees,
            node_weight=node_weight[:, 0] if self.one_output else node_weight,
            node_mass=None if sums is None else node_mass_of(sums)[nodes],
        )


def _used_trees(voters: Voters, weight: np.ndarray) -> tuple[Trees, np.ndarray, np.ndarray]:
    """The trees with a node that has a weight, cut off below the last ones; their weights, and which nodes they are."""
    trees = voters.trees
    node_weight = np.zeros((trees.n_nodes, weight.shape[1]))
    node_weight[~trees.is_root] = weight[voters.first_rule :]
    used, kept = trees.used(np.any(node_weight, axis=1, keepdims=True)[:, 0])
    return used, node_weight[kept], np.flatnonzero(kept)


def node_mass_of(sums: Sums) -> np.ndarray:
    """Weight of the rows in each node of the trees."""
    assert isinstance(sums, ColumnSums)
    voters, trees = sums.voters, sums.voters.trees
    mass = np.full(trees.n_nodes, sums.total_weight)
    inside = (sums.voter_sum[voters.first_rule :] + sums.total_weight) / 2.0  # +1 inside, -1 elsewhere: exact
    mass[~trees.is_root] = inside
    return mass


def bin_mass_of(sums: Sums, active: np.ndarray) -> np.ndarray:
    """Weight of the rows in each bin of the shape functions of some voters, given by ascending numbers."""
    assert isinstance(sums, ColumnSums)
    columns, position = sums.voters.locate(active)
    found: list[np.ndarray] = [np.empty(0)]
    for column in np.unique(columns).tolist():
        active_here = position[columns == column]
        shape_bin = shape_bins(sums.voters, column, active_here[active_here < sums.voters.n_cuts[column]])
        found.append(np.bincount(shape_bin, sums.mass_of(column)))
    return np.concatenate(found)


def shape_bins(voters: Voters, column: int, cuts: np.ndarray) -> np.ndarray:
    """Which bin of the shape function each bin of a column belongs to, given the numbers of the active cuts.

    Bins between cuts that are not active are one bin of the shape function. Levels come first, each for itself, then
    one never seen; missing values are last.
    """
    n_cuts = int(voters.n_cuts[column])
    if voters.is_level[column] and n_cuts == 0:
        return np.array([0, 2])  # a single level is not told from one never seen
    if voters.is_level[column]:
        return np.concatenate([[n_cuts], np.arange(n_cuts), [n_cuts + 1]])
    return np.append(np.searchsorted(cuts, np.arange(n_cuts + 1)), len(cuts) + 1)


def _read(examples: Examples, reading: Reading) -> tuple[FrameSchema, np.ndarray]:
    check_numbers(examples.X, monotonic_cst=reading.monotonic_cst, interaction_cst=reading.interaction_cst)
    schema, matrix = read_table(
        examples.X,
        categorical_features=reading.categorical_features,
        min_category_count=reading.min_category_count,
        sample_weight=examples.all_weights(),
        ordered=constrained_columns(reading.monotonic_cst),
    )
    return schema, examples.part(matrix)
