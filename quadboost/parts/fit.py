"""The passes that a fit makes over parts of rows; they end with what a fit in memory begins with.

| pass | asks each part for |
|---|---|
| survey | columns, levels, classes, weights (twice where there are weights) |
| thresholds | the values around which features are cut (`thresholds.py`) |
| codes | nothing: each part is coded, and the codes are kept |
| scales, sums | the ranges of targets, then whole-number sums per bin |
| joint sums | counts of pairs of bins, for a few columns at a time, as rounds draw their voters |
| sample | the rows to grow trees on (`sampling.py`); then each part is coded by the trees too, and summed again |
| products | sums per bin of scores, where all weights are solved for at once (`products.py`) |
| scores | a histogram, for the link of a classifier; under another loss, means and sums in every pass (`passes.py`) |

Where it is quicker, or where cross-validation needs the rows, their codes are brought here, and the fit goes on as in
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, cast

import numpy as np

from ..boosting.losses import Loss
from ..data.exact import Extent, Scales, square_sums, worth_of
from ..data.examples import Examples
from ..fitting.calibration import divides
from ..fitting.growth import Grown, grow_on
from ..fitting.measured import Measured, Options, solves_at_once, to_grow
from ..fitting.problem import Problem, Reading, Rows
from ..moments.gram import Gram
from ..moments.moments import SHARE_FOR_SORTING, Moments, bytes_for_columns
from ..moments.sums import ColumnSums
from ..moments.tables import JointSums, TableGram, add_joint, joint_dtype
from ..voters.binned import Binned
from ..voters.columns import Voters
from ..voters.trees import Trees
from .each_row import EachRow, Score, rows_of
from .passes import CodedParts, in_passes
from .products import PartedProducts, add_sums
from .sampling import OfTargets, are_whole, sample_of_parts
from .source import Coded, Part, Seen, Source
from .survey import Facts, constraints, n_rows_of, survey
from .thresholds import Matrix, voters_of_parts

FEW_TABLES, TABLE_BYTES = 8, 1 << 28  # joint sums of so many columns, and so many bytes of them, are always kept


@dataclass(frozen=True)
class Elsewhere:
    """Rows that are elsewhere."""

    n_rows: int
    n_outputs: int
    n_examples: float


@dataclass(frozen=True)
class Parted:
    """Rows that are summed, in parts: what `Measured` is to rows in memory."""

    rows: Elsewhere
    voters: Voters
    source: Source[Coded] | None  # none: there are sums alone
    moments: Moments
    n_threads: int
    grown: Grown | None = None

    @property
    def can_solve(self) -> bool:
        return self.source is not None

    @property
    def _parts(self) -> Source[Coded]:
        assert self.source is not None
        return self.source

    @property
    def _sums(self) -> ColumnSums:
        assert isinstance(self.moments.sums, ColumnSums)
        return self.moments.sums

    def scored(self, weight: np.ndarray, intercept: np.ndarray) -> Callable[..., Any]:
        """Someone who puts questions to the rows and their scores under these weights, and adds up the answers."""
        score = Score(self.voters, weight, intercept, self.n_threads)
        return lambda question, add: self._parts.reduce(partial(_ask_scored, score, question), add)

    def ask_values(self, question: Callable[..., Any]) -> Any:
        """Put a question about values of the rows, and their weights, and add up the answers."""
        extent = self._sums.scales.extent
        return self._parts.reduce(partial(_ask_values, question, self.voters.with_trees(Trees.none()), extent))

    def products(self, fit_intercept: bool) -> tuple[PartedProducts, EachRow]:
        """For solving all weights at once; and the targets."""
        return PartedProducts(self._parts, self._sums, fit_intercept, self.n_threads), EachRow(attrgetter("y"))

    def coded(self, problem: Problem, options: Options, suffix: str = "") -> tuple[CodedParts, Loss]:
        """Rows as passes need them, and the loss for them."""
        at_once = solves_at_once(cast("Measured", self), options) and problem.signs is None
        return in_passes(problem, self.voters, self._parts, self.moments, options, self.n_threads, at_once)

    def with_trees(self, problem: Problem, options: Options, tell: Callable[[], None] = lambda: None) -> Parted:
        """Grow trees on a sample of the rows, and code and sum all rows by these too."""
        to_loss, growth = to_grow(problem, options)
        rows, loss = in_passes(problem, self.voters, self._parts, self.moments, to_loss, self.n_threads)
        targets = partial(rows_of, rows.y)
        keyed = OfTargets(targets, self._parts.reduce(are_whole, bool.__and__), growth.seed)
        some = sample_of_parts(self._parts, keyed, self.rows.n_rows, growth.growth_rows, targets)
        grown = grow_on(
            some, rows.means(rows.y), self.voters, loss, growth, rows.fit_intercept, tell,
            options.schedule.share(0.0, 2).max_seconds,
        )  # fmt: skip
        voters = self.voters.with_trees(grown.trees)
        coded: Source[Coded] = self._parts.map(partial(code_trees, voters, self.n_threads))
        moments = moments_of(coded, voters, self._sums.scales, options, self.n_threads)
        self._parts.close()
        return replace(self, voters=voters, source=coded, moments=moments, grown=grown)


def _ask_values(question: Callable[..., Any], voters: Voters, extent: Extent, coded: Coded) -> Any:
    matrix = Binned(voters, coded.codes[:, : voters.n_features]).values()
    return question(matrix, None if coded.weight is None else extent.round(coded.weight))


def code_trees(voters: Voters, n_threads: int, coded: Coded) -> Coded:
    """Beside the codes of the features, those of the trees."""
    return coded._replace(codes=voters.code_trees(coded.codes, n_threads))


def _ask_scored(score: Score, question: Callable[..., Any], coded: Coded) -> Any:
    return question(score(coded), Rows(np.empty((0, 0)), coded.y, coded.weight, coded.repeats))


def problem_of_parts(
    source: Source[Part], is_classifier: bool, reading: Reading, options: Options, *, class_weight: Any = None,
    standardize: bool = False, needs_rows: bool = False,
) -> tuple[Problem, Measured | None]:  # fmt: skip
    """The problem that parts of rows pose, and their moments unless the rows are here now."""
    facts = survey(source, is_classifier, reading, class_weight, standardize)
    n_threads = source.n_threads or options.n_threads
    n_levels = {feature: len(levels) for feature, levels in facts.schema.categories.items()}
    extent = Extent.of(facts.n_rows, None)
    if facts.is_weighted or facts.class_weight is not None:
        extent = source.reduce(partial(extent_of, facts))
    matrices, n_features = Seen(source, partial(matrix_of, facts)), facts.schema.n_features
    voters = voters_of_parts(matrices, extent, options.thresholds, options.spacing, n_features, n_levels)
    coded: Source[Coded] = source.map(partial(code_part, facts, voters, n_threads))
    more = dict(constraints(facts, reading))
    n_trees = options.growth.n_trees
    needs_rows |= is_classifier and not n_trees and divides(options, facts.n_rows)
    needs_rows |= n_trees > 0 and options.mode == "forward"
    room = _room_for_rows(source.room, voters, extent, options)
    if needs_rows or _n_bytes(facts, voters.n_features + n_trees) <= room:
        return _gathered(coded, facts, voters, more), None
    if facts.classes is not None:
        scales = Scales.of_labels(extent, facts.n_outputs)
    else:
        scales = Scales.agreed(lambda question, add: coded.reduce(partial(target_question, question), add))
    moments = moments_of(coded, voters, scales, options, n_threads)
    rows = Elsewhere(facts.n_rows, facts.n_outputs, _n_examples(coded, facts))
    measured = Parted(rows, voters, coded, moments, n_threads)
    no_examples = Examples(None, np.empty(0), None, None)
    problem = _problem(no_examples, cast("Rows", rows), facts, more)
    return problem, cast("Measured", measured)


def _problem(examples: Examples, rows: Rows, facts: Facts, more: dict[str, Any]) -> Problem:
    scale, classes, class_weight = facts.target_scale, facts.classes, facts.class_weight
    return Problem(examples, facts.schema, rows, facts.one_output, scale, classes, class_weight, **more)


def extent_of(facts: Facts, part: Part) -> Extent:
    """Of the weights of the rows that count, by class."""
    if n_rows_of(part) == 0:
        return Extent.of(0, None)
    counted, weight = facts.counted(part)
    return Extent.of(n_rows_of(part) if counted.kept is None else int(counted.kept.sum()), weight)


def matrix_of(facts: Facts, part: Part) -> Matrix:
    if n_rows_of(part) == 0:
        return Matrix(np.empty((0, facts.schema.n_features)))
    counted, weight = facts.counted(part)
    return Matrix(facts.matrix(part, counted), weight)


def code_part(facts: Facts, voters: Voters, n_threads: int, part: Part) -> Coded:
    n_classes = 0 if facts.classes is None else len(facts.classes)
    if n_rows_of(part) == 0:
        codes = voters.code(np.empty((0, facts.schema.n_features)))
        labels = np.empty(0, np.uint8) if n_classes else np.empty((0, facts.n_outputs))
        return Coded(codes, labels, None, None, n_classes)
    counted, labels, weight = facts.rows(part)
    codes = voters.code(facts.matrix(part, counted), n_threads)
    return Coded(codes, labels, weight, counted.weight if facts.is_weighted else None, n_classes)


def _n_bytes(facts: Facts, n_columns: int) -> int:
    """What the rows take when they are here."""
    each = n_columns + 8 * facts.n_outputs + 16 * facts.is_weighted + 8 * (facts.class_weight is not None)
    return facts.n_rows * each


def _bytes_for_tables(voters: Voters, extent: Extent) -> int:
    """Memory that joint sums may take beyond any limit: a column that is not kept costs a pass each time."""
    cells = int((voters.n_cuts.max(initial=0) + 2) * voters.bin_start[-1])
    each = joint_dtype(extent).itemsize * max(cells, 1)
    return each * min(max(FEW_TABLES, TABLE_BYTES // each), voters.n_columns)


def _room_for_rows(room: int, voters: Voters, extent: Extent, options: Options) -> int:
    """Rows may take as much here as there is room, or as joint sums would take that exceed their own share."""
    n_bytes = _bytes_for_tables(voters, extent)
    return room if n_bytes <= options.cache_bytes // SHARE_FOR_SORTING else max(room, n_bytes)


def _gathered(coded: Source[Coded], facts: Facts, voters: Voters, more: dict[str, Any]) -> Problem:
    """The problem with its rows in this process."""
    parts = [part for part in coded.gather() if len(part.codes)]
    coded.close()
    codes = np.concatenate([part.codes for part in parts])

    def joined(name: str) -> np.ndarray | None:
        each = [getattr(part, name) for part in parts]
        return None if each[0] is None else np.concatenate(each)

    y, weight, repeats = np.concatenate([part.y for part in parts]), joined("weight"), joined("repeats")
    X = Binned(voters, codes)
    labels = y * facts.target_scale
    if facts.classes is not None:
        labels = facts.classes[np.concatenate([part.labels for part in parts])]
    elif facts.one_output:
        labels = labels[:, 0]
    return _problem(Examples(X, labels, repeats, None), Rows(X, y, weight, repeats), facts, more)


def moments_of(coded: Source[Coded], voters: Voters, scales: Scales, options: Options, n_threads: int) -> Moments:
    """The moments of all parts."""
    sums = coded.reduce(partial(sums_of, voters, scales, n_threads), add_sums)
    n_bytes = max(options.cache_bytes // SHARE_FOR_SORTING, _bytes_for_tables(voters, scales.extent))
    joint = _Joint(voters, scales.extent, coded, n_threads)
    gram = TableGram(voters, joint, sums.voter_sum, scales.extent, n_bytes, options.n_threads, likely(sums))
    columns = Gram(gram, bytes_for_columns(options.cache_bytes, voters.n_voters))
    return Moments(sums, columns, options.n_threads)


def _n_examples(coded: Source[Coded], facts: Facts) -> float:
    """How many examples the rows are worth."""
    if not facts.is_weighted:
        return float(facts.n_rows)
    extent = coded.reduce(extent_of_repeats)
    return extent.total if extent.is_whole else worth_of(extent, coded.reduce(partial(square_sums_of, extent), np.add))


def target_question(question: Callable[..., Any], coded: Coded) -> Any:
    return question(coded.y, coded.weight)


def sums_of(voters: Voters, scales: Scales, n_threads: int, coded: Coded) -> ColumnSums:
    return ColumnSums.of(voters, coded.codes, coded.y, coded.weight, scales, n_threads)


def extent_of_repeats(coded: Coded) -> Extent:
    return Extent.of(len(coded.codes), coded.repeats)


def square_sums_of(extent: Extent, coded: Coded) -> np.ndarray:
    return square_sums(extent, np.ones(len(coded.codes)) if coded.repeats is None else coded.repeats)


@dataclass(frozen=True)
class _Joint:
    """Joint sums of columns over all parts."""

    voters: Voters
    extent: Extent
    source: Source[Coded]
    n_threads: int

    def __call__(self, asked: Any, known: Any) -> list[np.ndarray]:
        question = JointSums(self.voters, self.extent, tuple(asked), tuple(known), self.n_threads)
        return self.source.reduce(question, add_joint)


def likely(sums: ColumnSums) -> list[int]:
    """The columns, those with the largest edges first."""
    mean = sums.voter_sum / sums.total_weight
    edge = np.abs(sums.product_sum / sums.total_weight - np.outer(mean, sums.target_sum / sums.total_weight))
    start = sums.voters.voter_start
    largest = [edge[start[f] : start[f + 1]].max(initial=0.0) for f in range(sums.voters.n_columns)]
    return [int(f) for f in np.argsort(largest, kind="stable")[::-1]]


def closed(measured: object) -> None:
    """Let go of the codes of parts."""
    if isinstance(measured, Parted) and measured.source is not None:
        measured.source.close()
