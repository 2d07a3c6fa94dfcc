"""Sums of rows that are kept: all that training needs to know of them, when the rows are gone.

Of some rows there are the sums per bin (`ColumnSums`) and the joint sums of every pair of columns, at fixed thresholds.
Those of other rows are added and subtracted: what is trained on the outcome has the bits of training on those rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from ..common.checks import file_name
from ..data.constraints import meetings_of, signs_of
from ..data.exact import Extent, Scales, worth_of
from ..data.examples import Examples
from ..data.schema import FrameSchema
from ..fitting.measured import Measured, Options
from ..fitting.problem import Problem, Reading, Rows
from ..model.ensemble import Ensemble
from ..moments.gram import COUNTS, SUMS, Gram
from ..moments.moments import SHARE_FOR_SORTING, Moments, bytes_for_columns
from ..moments.sums import ColumnSums
from ..moments.tables import JointSums, TableGram, add_joint, joint_dtype, others_of
from ..voters.columns import MISSING, THRESHOLD, Voters
from ..voters.thresholds import cuts_of_levels, voters_of
from .fit import Elsewhere, Parted, code_part, extent_of, likely, matrix_of, square_sums_of, sums_of, target_question
from .source import Part, Seen, Source
from .survey import Facts, survey
from .thresholds import voters_of_parts

ROOM = 1024  # times the weight of the first rows may be added to them, where targets or weights are not whole numbers
ROOM_FOR_VALUES = 4  # times the largest target, or weight, of the first rows a later one may be


@dataclass(frozen=True)
class KeptSums:
    """Sums of rows, to be added, subtracted, saved and trained on: `QuadBoostClassifier(calibration=None).fit(sums)`.

    They are not private: joint sums hold counts of single rows.

    Attributes
    ----------
    schema : FrameSchema
        The columns of the rows, and the levels of those that are categories.
    classes : array or None
        The labels; None: the targets are numbers.
    one_output : bool
    sums : ColumnSums
        With the voters, and the scales that targets were rounded to.
    joint : list of arrays
        For each column, the joint sums of its bins with those of itself and of all columns after it.
    squares : int64 array of shape (2,)
        Sums of the weights and of their squares, for weights that are not whole numbers.
    """

    schema: FrameSchema
    classes: np.ndarray | None
    one_output: bool
    sums: ColumnSums
    joint: list[np.ndarray]
    squares: np.ndarray

    @classmethod
    def of(
        cls, rows: Source[Part], *, like: KeptSums | Ensemble | None = None, regression: bool = False,
        thresholds: int = 63, spacing: str = "quantile", categorical_features: Any = "auto",
        min_category_count: int = 5, n_threads: int = 1,
    ) -> KeptSums:  # fmt: skip
        """Sum rows, at the thresholds of other sums, or at their own.

        Parameters
        ----------
        rows : Rows
            Or another source of rows in parts.
        like : KeptSums or Ensemble, optional
            Sums to which these are to be added: with the same columns, labels, thresholds and scales. Or a model, of
            which they have columns, labels, and the thresholds of its voters and rules. What follows is then known.
        regression : bool
            Whether targets are numbers.
        thresholds, spacing, categorical_features, min_category_count
            As those of the estimators.
        """
        is_classifier = not regression if like is None else like.classes is not None
        reading = Reading(categorical_features, min_category_count, "this file of sums", None, None)
        known = model_facts(like) if isinstance(like, Ensemble) else None if like is None else like.known
        facts = survey(rows, is_classifier, reading, None, False, known=known)
        if isinstance(like, Ensemble):
            voters, like = model_voters(like), None
        elif like is None:
            extent = rows.reduce(partial(extent_of, facts)) if facts.is_weighted else Extent.of(facts.n_rows, None)
            n_levels = {feature: len(levels) for feature, levels in facts.schema.categories.items()}
            matrices, n_features = Seen(rows, partial(matrix_of, facts)), facts.schema.n_features
            voters = voters_of_parts(matrices, extent, thresholds, spacing, n_features, n_levels)
        else:
            voters = like.sums.voters
        coded = rows.map(partial(code_part, facts, voters, n_threads))
        try:
            agreed = Scales.agreed(lambda question, add: coded.reduce(partial(target_question, question), add))
            scales = _scales_for(agreed, facts, like)
            sums = coded.reduce(partial(sums_of, voters, scales, n_threads), lambda one, other: one.combined(other, 1))
            weights = Extent.of(facts.n_rows, None) if not facts.is_weighted else scales.extent
            asked = tuple(range(voters.n_columns))
            joint = coded.reduce(JointSums(voters, weights, asked, (), n_threads), add_joint)
            squares = np.zeros(2, dtype=np.int64)
            if not scales.extent.is_whole:
                squares = coded.reduce(partial(square_sums_of, scales.extent), np.add)
        finally:
            coded.close()
        return cls(facts.schema, facts.classes, facts.one_output, sums, joint, squares)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load_sums` reads; whatever happens, it is written whole or not at all."""
        from .sums_file import write_sums

        write_sums(file_name(path), self)

    @property
    def known(self) -> Facts:
        """What other rows must agree with."""
        scale = np.ones(len(self.sums.sum_of_targets))
        extent = self.sums.scales.extent
        return Facts(self.schema, extent, False, self.classes, None, self.one_output, scale, 0, "this file of sums")

    def __add__(self, other: KeptSums) -> KeptSums:
        """Sums of the rows of both."""
        return self._combined(other, 1)

    def __sub__(self, other: KeptSums) -> KeptSums:
        """Sums without the rows of the other, which must have been added before."""
        return self._combined(other, -1)

    def _combined(self, other: KeptSums, sign: int) -> KeptSums:
        labels = [None if sums.classes is None else sums.classes.tolist() for sums in (self, other)]
        if self.schema != other.schema or labels[0] != labels[1]:
            raise ValueError("these are sums of other columns or labels; make both with the same voters")
        sums = self.sums.combined(other.sums, sign)
        counts = all(sums.joint[0].dtype == COUNTS for sums in (self, other))
        dtype: Any = COUNTS if counts and sums.n_rows < np.iinfo(np.int32).max // 4 else SUMS
        joint = [a.astype(dtype) + sign * b.astype(dtype) for a, b in zip(self.joint, other.joint, strict=True)]
        if sign < 0 and (sums.n_rows < 0 or sums.mass.min() < 0 or any(table.min() < 0 for table in joint)):
            raise ValueError(
                "what is subtracted is not a part of the rows; subtract only sums of rows that were added before"
            )
        return replace(self, sums=sums, joint=joint, squares=self.squares + sign * other.squares)

    def problem(self, reading: Reading, options: Options) -> tuple[Problem, Measured]:
        """What a fit begins with."""
        if not self.sums.n_rows:
            raise ValueError("there are no rows in these sums; nothing is left to learn from")
        sums = self._at_own_scales()
        extent, voters = sums.scales.extent, sums.voters
        if self.joint[0].dtype == COUNTS or (extent.is_whole and sums.total_weight == sums.n_rows):
            extent = Extent.of(sums.n_rows, None)
        examples = extent.total if extent.is_whole else worth_of(extent, self.squares)
        joint = [table.astype(joint_dtype(extent), copy=False) for table in self.joint]
        gram = TableGram(
            voters, _Joint(voters, joint), sums.voter_sum, extent, options.cache_bytes // SHARE_FOR_SORTING,
            options.n_threads, likely(sums),
        )  # fmt: skip
        columns = Gram(gram, bytes_for_columns(options.cache_bytes, voters.n_voters))
        moments, rows = Moments(sums, columns, options.n_threads), Elsewhere(sums.n_rows, len(sums.product), examples)
        measured = Parted(rows, voters, None, moments, options.n_threads)
        problem = Problem(
            Examples(None, np.empty(0), None, None),
            self.schema,
            cast("Rows", rows),
            self.one_output,
            np.ones(len(sums.product)),
            self.classes,
            None,
            signs_of(reading.monotonic_cst, self.schema, len(sums.product)),
            meetings_of(reading.interaction_cst, self.schema),
        )
        return problem, cast("Measured", measured)

    def _at_own_scales(self) -> ColumnSums:
        """The sums at the scales that their rows alone would have; where values are whole numbers nothing is lost."""
        scales = self.sums.scales
        if not (scales.extent.is_whole and scales.extent.are_repeats and not any(scales.origin)):
            return self.sums
        total = self.sums.total_weight
        extent = Extent(self.sums.n_rows, total, scales.extent.largest, True)
        try:
            return self.sums._at(Scales(extent, scales.origin, scales.largest))
        except ValueError:  # targets that are not whole
            return self.sums


def model_facts(model: Ensemble) -> Facts:
    """What rows must agree with that are summed at the thresholds of a model."""
    scale = np.ones(model.n_outputs)
    none = Extent.of(0, None)
    return Facts(model.schema, none, False, model.classes, None, model.n_outputs == 1, scale, 0, "this model")


def model_voters(model: Ensemble) -> Voters:
    """Voters at all thresholds that a model has, of stumps and of rules."""
    is_inner = model.trees.feature >= 0
    feature = np.concatenate([model.feature[model.kind == THRESHOLD], model.trees.feature[is_inner]])
    threshold = np.concatenate([model.threshold[model.kind == THRESHOLD], model.trees.threshold[is_inner]])
    asks_missing = model.feature[model.kind == MISSING].tolist()
    chosen = []
    for f in range(model.n_features):
        levels = model.categories.get(f)
        cuts = np.unique(threshold[feature == f]) if levels is None else cuts_of_levels(len(levels))
        chosen.append((cuts, f in asks_missing))
    return voters_of(chosen, {f: len(levels) for f, levels in model.categories.items()})


def _scales_for(agreed: Scales, facts: Facts, like: KeptSums | None) -> Scales:
    """Scales that later rows can have too: those of the others, or some with room for more."""
    is_whole = agreed.extent.is_whole and (facts.classes is not None)
    if like is None:
        if is_whole:
            return agreed  # whole numbers are exact at any scale
        extent = agreed.extent
        extent = Extent(extent.n_rows, ROOM * extent.total, ROOM_FOR_VALUES * extent.largest, extent.is_whole)
        return Scales(extent, agreed.origin, tuple(ROOM_FOR_VALUES * top for top in agreed.largest))
    known = like.sums.scales
    if known.extent.is_whole != agreed.extent.is_whole:
        raise ValueError("only some of these rows have weights that are whole numbers; give all such weights, or none")
    if is_whole:
        return agreed
    return known


@dataclass(frozen=True)
class _Joint:
    """Joint sums that are here, as `Joint`."""

    voters: Voters
    joint: Sequence[np.ndarray]

    def __call__(self, asked: Sequence[int], known: Sequence[int]) -> list[np.ndarray]:
        found = []
        for number, f in enumerate(asked):
            others = others_of(self.voters, number, asked, known)
            found.append(np.concatenate([self._pair(f, g) for g in others.tolist()], axis=1))
        return found

    def _pair(self, f: int, g: int) -> np.ndarray:
        if g < f:
            return np.ascontiguousarray(self._pair(g, f).T)
        start = self.voters.bin_start
        return self.joint[f][:, start[g] - start[f] : start[g + 1] - start[f]]


def n_joint(voters: Voters) -> int:
    """How many joint sums there are."""
    bins = np.diff(voters.bin_start)
    return int(sum(bins[f] * bins[f:].sum() for f in range(voters.n_columns)))
