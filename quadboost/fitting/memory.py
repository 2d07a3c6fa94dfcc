"""How much memory a fit will take, estimated at once from the shape of the data.

All of it follows from shapes, but for the number of different voters that the rounds draw, each of which costs a Gram
column. How that grows with rows, features and rounds was measured (`scripts/measure_memory.py`), for targets to which
every feature contributes and without noise: the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..boosting.penalties import AUTO_L1
from ..boosting.reweight import MOST_TOGETHER
from ..boosting.schedule import AUTO, SOLVE
from ..boosting.trace import ENOUGH_EXAMPLES, MOST_PROBES
from ..common.checks import at_least
from ..common.threads import threads_for
from ..data.examples import check_size, examples_of, labels_of, real_targets
from ..data.schema import FrameSchema, read_table
from ..data.tables import is_sparse
from ..model.patterns import MOST_ROWS_OF_RULES, MOST_RULES
from ..moments.gram import COUNTS_LIMIT, PIECE_BYTES, TABLE_PAYS
from ..moments.moments import SHARE_FOR_SORTING, bytes_for_columns
from ..voters.thresholds import FEATURES_TOGETHER, auto_thresholds
from .calibration import divides
from .growth import DIRECTIONS
from .measured import Options, many_at_once
from .passes import MOST_PASSES
from .ridge import directions_for

MOST_CLASSES = 20  # numbers of more different values are targets
SAMPLE = 2_000  # rows from which the distinct values of a column are guessed

BYTES_OF_LEVEL = 300  # measured
BYTES_TO_SORT = 30
BYTES_OF_RULE = 6_000
BYTES_OF_NODE = 200
VECTORS_OF_PROBE = 10  # at work together
MARGIN = 1.19  # above what is counted here

# Different voters that a run draws at most, measured. Under l1 labels settle on as many as rows and features ask for,
# and targets without noise take most that there are; without l1 rounds draw ever more, as a power of their number.
DRAWN_BY_LABELS = 3.4  # times rows ** 0.3 * features ** 0.7
DRAWN_OF_VOTERS = 0.8  # of all, under a strength that was chosen,
DRAWN_OF_ROWS = 0.55  # and of the number of rows: a path ends where a third are active, or one step later
SOLVED_OF_ROWS = 0.45  # of those, so many are active when they are solved for
DRAWN_BESIDE_LEVELS = 2.2  # times as many thresholds: the penalty that is chosen is weaker
DRAWN_BY_PASSES = 1.55  # times as many: each pass has other targets
DRAWN_IN_STEPS = 4.4  # times rows ** 0.3 * features ** 0.7, in forward mode under the strength of the formula
DRAWN_ALONG_PATH = 0.28  # times rounds * features ** 0.15, where their number ends a path
DRAWN_OF_RULES = 5.5  # times rows ** 0.55, with trees
FEWER = 0.3  # power of the strength by which a penalty on labels draws fewer
DRAWN: dict[str | None, tuple[float, float]] = {None: (26.0, 0.5), "l2": (5.2, 0.75), "linf": (3.9, 0.75)}
DRAWN_FORWARD = (8.0, 0.5)  # under l2: small steps on few voters
DRAWN_BY_OUTPUTS = 0.65  # power of their number: they have voters in common
ROUNDS_OF_PASSES = 8  # times max_rounds, by all passes
ROUNDS_UNTIL_PATIENCE = 800  # where the validation risk stops a run
ROWS_OF_SUMS = 256  # that a leaf has at least, else it is split by its rows
MOST_KEPT = {"squared": 0, "quantile": 70}  # passes, of each of which the weights are kept
KEPT = 25  # under other losses
FEW_ROUNDS = 1_000  # of a pass, below which a loss with a corner may take as many passes as it is allowed
ROUNDS_PER_VOTER = 12  # until a run has converged, where there is a gap that says so


def estimate_memory(
    X: Any, y: Any = None, *, sample_weight: Any = None, n_outputs: int = 1, regression: bool | None = None,
    **parameters: Any,
) -> int:  # fmt: skip
    """Bytes that a fit will need at its peak, beside X, y and the weights that it is given.

    Meant to be no less than what the fit takes. Where every feature matters, and targets have next to no noise, it is
    at most two and a half times that, from a few megabytes on. A fit of which few features matter, or whose targets
    are noisy, draws fewer voters, and takes less. Nor do shapes tell the size of targets: under l1 a `reg_lambda` that
    is a number counts as a weak one. A search (`...CV`) takes at most `cache_bytes` more than its largest fit, for the
    Gram columns of its folds.

    Parameters
    ----------
    X : array, frame or table
        As for the fit. Its shape and types matter, and how many different values columns have, which some of the rows
        tell. Validation rows that `fit` is given besides are not counted.
    y : array, optional
        Labels or targets; what matters is how many outputs they have.
    sample_weight : array, optional
        As for the fit; what matters is whether there are weights.
    n_outputs : int
        Where y is not given: the number of targets, or that of classes if there are more than two.
    regression : bool, optional
        Whether y is for `QuadBoostRegressor`. None: if it has several columns, or more than 20 different numbers.
    **parameters
        Of the estimator, such as penalty, max_rounds or thresholds. Those that are not given have their defaults.
    """
    from ..estimators import QuadBoostClassifier, QuadBoostRegressor

    at_least("n_outputs", n_outputs, 1)
    X = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    check_size(X)
    n_outputs, regression = _outputs(X, y, sample_weight, n_outputs, regression)
    plain = QuadBoostRegressor if regression else QuadBoostClassifier
    if unknown := parameters.keys() - plain().get_params().keys():
        raise TypeError(
            f"{plain.__name__} has no {min(unknown)}, and estimate_memory is for one fit of it: give the parameters of "
            "the largest. A search takes at most cache_bytes more, for the Gram columns of its folds"
        )
    estimator = plain(**parameters)
    options = estimator._options()
    few = _some_rows(X)
    schema, matrix = read_table(few, categorical_features=estimator.categorical_features, min_category_count=1)
    n_cuts = _most_cuts(matrix, schema, X.shape[0], options.thresholds, estimator.min_category_count)
    fit = _Fit(
        m=X.shape[0],
        n_cuts=n_cuts,
        n_levels=float(n_cuts[list(schema.categories)].sum()),
        n_missing=int(np.isnan(matrix).any(axis=0).sum()),
        n_outputs=n_outputs,
        value_bytes=matrix.dtype.itemsize,
        is_copied=not np.may_share_memory(read_table(few[:10])[1], few) if isinstance(few, np.ndarray) else True,
        is_weighted=sample_weight is not None or getattr(estimator, "class_weight", None) is not None,
        has_labels=not regression,
        held_out=estimator.validation_fraction,
        level_bytes=_level_bytes(schema, X.shape[0], len(matrix)),
        is_calibrated_by_folds=getattr(estimator, "calibration", None) == "auto"
        and not options.growth.n_trees
        and divides(options, X.shape[0]),
        has_rounds=_has_rounds(
            options, n_cuts, X.shape[0], estimator.validation_fraction, estimator.monotonic_cst is not None
        ),
        options=options,
    )
    return int(MARGIN * fit.peak())


def _has_rounds(options: Options, n_cuts: np.ndarray, m: int, held_out: float | None, has_signs: bool) -> bool:
    """Whether a fit is made by rounds; see `train` and `solves_at_once`, and `Measured.coded` for other losses."""
    at_once = options.penalty == "l2" and not (has_signs and options.loss != "squared")
    if not options.growth.n_trees:
        at_once &= many_at_once(options, n_cuts.sum(), m, len(n_cuts))
        return not at_once or (held_out is not None and options.loss == "squared")
    return options.mode == "corrective" and not at_once


def _outputs(X: Any, y: Any, sample_weight: Any, n_outputs: int, regression: bool | None) -> tuple[int, bool]:
    """How many outputs there are, and whether they are for a regression; what a fit refuses is refused."""
    if y is None:
        examples_of(X, np.zeros(X.shape[0] if X.shape else 0), sample_weight)
        return n_outputs, bool(regression)
    y = np.atleast_1d(np.asarray(y))
    if regression is None:
        regression = y.ndim == 2 or (y.dtype.kind in "iuf" and len(np.unique(y)) > MOST_CLASSES)
    y = real_targets(y) if regression else labels_of(y)
    examples_of(X, y, sample_weight)
    if regression:
        return (1 if y.ndim == 1 else y.shape[1]), True
    classes = np.unique(y)
    if len(classes) == 1:
        raise ValueError(f"the labels hold only one class, {classes.tolist()[0]!r}; give rows of at least two")
    return (1 if len(classes) == 2 else len(classes)), False


def _some_rows(X: Any) -> Any:
    """Some of the rows, evenly spread."""
    step = max(1, X.shape[0] // SAMPLE)
    if hasattr(type(X), "column_names"):  # a pyarrow table
        return X.take(np.arange(0, X.shape[0], step))
    return (X.tocsr() if is_sparse(X) else X)[::step]


def _most_cuts(
    matrix: np.ndarray, schema: FrameSchema, m: int, thresholds: int | str, min_category_count: float
) -> np.ndarray:
    """Cuts of every feature, at most: where most values of some rows differ, so may those of all."""
    if thresholds == AUTO:
        thresholds = auto_thresholds(matrix.shape[1])
    most = m if thresholds == "all" else int(thresholds)
    n_cuts = np.empty(matrix.shape[1])
    rare = min_category_count * len(matrix) / m  # of some rows; levels with fewer may be pooled
    for f, column in enumerate(matrix.T):
        n_seen = np.unique(column[~np.isnan(column)], return_counts=True)[1]
        n_once = np.count_nonzero(n_seen == 1)  # the more there are of these, the more values were not seen
        n_values = m if 2 * n_once > len(column) else len(n_seen) + 2 * n_once
        if f in schema.categories:
            n_kept = np.count_nonzero(2 * n_seen >= rare) + 1 if rare > 2 else n_values
            n_cuts[f] = min(m / min_category_count + 1, n_kept)
        else:
            n_cuts[f] = min(most, n_values)
    return n_cuts


def _level_bytes(schema: FrameSchema, m: int, n_seen: int) -> float:
    """To learn the levels of categories: rows in the order of their levels, and each value as an object."""
    sizes = [sum(map(len, levels)) for levels in schema.categories.values()]
    n_values = sum(size if 2 * size < n_seen else size * m / n_seen for size in sizes)  # many in some rows: more in all
    return BYTES_OF_LEVEL * n_values + BYTES_TO_SORT * m * bool(schema.categories)


@dataclass(frozen=True)
class _Fit:
    """The sizes of what is in memory together, stage by stage."""

    m: int
    n_cuts: np.ndarray
    n_levels: float  # cuts that are levels of categories
    n_missing: int  # features with missing values
    n_outputs: int
    value_bytes: int
    is_copied: bool  # X is not used as it is
    is_weighted: bool
    has_labels: bool
    held_out: float | None
    level_bytes: float
    is_calibrated_by_folds: bool
    has_rounds: bool
    options: Options

    def peak(self) -> float:
        m, d, n_trees = self.m, len(self.n_cuts), self.options.growth.n_trees
        most_cuts = self.n_cuts.max(initial=0)
        size = 1 if most_cuts < 1 << 8 else 2 if most_cuts < 1 << 16 else 4
        codes = (d + n_trees) * size
        n_threads = threads_for(m * d, self.options.n_threads)
        n_threads = min(n_threads, -(-d // FEATURES_TOGETHER))
        # Bytes a row.
        inputs = 16 * self.n_outputs + 8 * self.has_labels + 16 * self.is_weighted
        matrix = 8 * d * self.is_copied
        reading = matrix + 24 * self.is_copied
        if self.held_out is not None:
            parts = self.value_bytes * d + 8 * self.n_outputs
            reading, matrix = matrix + parts, matrix + parts
        choosing = n_threads * (min(FEATURES_TOGETHER, d) * self.value_bytes + 8 + 32 * self.is_weighted)
        summing = codes + 40 + 8 * self.n_outputs
        rounds = m * (matrix + codes) + (self._rounds() if self.has_rounds else self._at_once())
        if self.has_labels and self.n_outputs > 1:  # scores and probabilities of all classes, for the link
            rounds += 80 * m * self.n_outputs
        if self.is_calibrated_by_folds:  # rows of a fold, and rounds on them, beside those of all rows
            again = self._rounds() if self.has_rounds else self._at_once()
            rounds += m * (self.value_bytes * d + codes + 8 * d + inputs) + again
        rounds = max(rounds, m * (matrix + codes) + self._explaining())
        growing = m * (matrix + size * d) + self._growing(size) if n_trees else 0.0
        return (
            self.level_bytes
            + m * inputs
            + max(
                m * reading, m * (matrix + choosing), growing, m * (matrix + summing + size * d * bool(n_trees)), rounds
            )
        )

    @property
    def _n_rules(self) -> int:
        return self.options.growth.n_trees * (2 * self.options.growth.max_leaves - 2)

    def _explaining(self) -> float:
        """Rules in words, and how often their conditions hold together, where they are few."""
        of_trees = self._n_rules // 2  # one of two below each node tells a tree
        n_rules = min(of_trees, MOST_RULES) if self.has_rounds or of_trees <= MOST_RULES else 0
        return BYTES_OF_RULE * n_rules * (n_rules * self.m <= MOST_ROWS_OF_RULES or self.has_rounds)

    def _growing(self, size: int) -> float:
        """Rows that trees are grown on, what pulls them, and sums of all bins in every leaf."""
        growth, outputs = self.options.growth, self.n_outputs
        n = min(self.m, growth.growth_rows)
        targets = 1 + min(outputs, DIRECTIONS)
        of_rows = n * (size * len(self.n_cuts) + 40 + 16 * targets + 64 * outputs)
        n_large = min(
            growth.max_leaves, 2 + n // (2 * ROWS_OF_SUMS)
        )  # leaves with sums of all bins: of half of the rows
        sums = 8 * targets * n_large * float((self.n_cuts + 2).sum())
        keys = (40 if n == self.m else 80) * self.m
        return of_rows + sums + keys + self._n_rules * (30 + 16 * outputs)

    def _at_once(self) -> float:
        """All weights solved for together: a few vectors of weights and of scores; with passes, what each came to."""
        if self.options.mode == "forward":
            return 8.0 * self.m * self.n_outputs * 9
        n_voters = float(self.n_cuts.sum()) + self.n_missing + self._n_rules
        sketch = 8 * 7 * directions_for(self.m)  # the directions, how they are made, and what becomes of them
        solving = sketch + 8 * self.n_outputs * (16 + self._n_kept)
        is_tried = self.options.reg_lambda == AUTO and (self.n_outputs == 1 or not self._n_rules)
        n_vectors = self.n_outputs + np.clip(round(ENOUGH_EXAMPLES / self.m), 1, MOST_PROBES)
        trying = 8 * VECTORS_OF_PROBE * n_vectors * is_tried  # strengths, before the weights are solved for
        of_voters = n_voters * (120 + max(solving, trying)) + BYTES_OF_NODE * self._n_rules
        return of_voters + 8 * self.m * self.n_outputs * 9

    @property
    def _n_kept(self) -> int:
        """Passes, of each of which the weights are kept."""
        loss = self.options.loss
        is_short = loss == "quantile" and self.options.schedule.max_rounds < FEW_ROUNDS
        return MOST_PASSES if is_short else MOST_KEPT.get(loss, KEPT)

    @property
    def has_gap(self) -> bool:
        return self.options.penalty is not None and self.options.mode == "corrective"

    @property
    def _steps_to_optimum(self) -> bool:
        """Whether rounds under l1 come to an end in forward mode too."""
        return self.options.penalty == "l1" and self.options.mode == "forward" and self.options.reg_lambda == "auto"

    @property
    def _n_columns(self) -> int:
        return len(self.n_cuts) + self.options.growth.n_trees

    def _n_drawn(self, n_voters: float) -> float:
        """Different voters that the rounds of one output draw."""
        options, rounds = self.options, self.options.schedule.max_rounds
        has_passes, asked = options.loss != "squared", self.m**0.3 * len(self.n_cuts) ** 0.7
        if options.penalty == "l1" and options.mode == "corrective":
            more = 1.0 if options.loss in ("squared", "huber") else DRAWN_BY_PASSES
            drawn = self._n_drawn_by_labels(more * asked) if self.has_labels else n_voters
            if self.has_labels and self.n_levels:  # none stands for another, as a threshold does for those near it
                drawn = DRAWN_BESIDE_LEVELS * drawn + self.n_levels
            if options.follows_path:
                of_levels = (1.0 - DRAWN_OF_VOTERS) * self.n_levels
                drawn = min(drawn, DRAWN_OF_VOTERS * n_voters + of_levels, DRAWN_OF_ROWS * more * self.m)
                if not has_passes:
                    drawn = min(drawn, DRAWN_ALONG_PATH * rounds * self._n_columns**0.15)
        elif self._steps_to_optimum:
            drawn = DRAWN_IN_STEPS * asked
        else:
            is_slow = options.mode == "forward" and options.penalty == "l2"
            factor, power = DRAWN_FORWARD if is_slow else DRAWN["l2" if options.penalty == "l1" else options.penalty]
            drawn = factor * (rounds if self.held_out is None else min(rounds, ROUNDS_UNTIL_PATIENCE)) ** power
        return float(min(drawn, rounds * (ROUNDS_OF_PASSES if has_passes else 1), n_voters))

    def _n_drawn_by_labels(self, asked: float) -> float:
        options = self.options
        drawn = DRAWN_BY_LABELS * asked
        drawn = max(drawn, min(drawn + self._n_rules, DRAWN_OF_RULES * self.m**0.55 * bool(self._n_rules)))
        if not isinstance(options.reg_lambda, str):  # a weaker penalty than the formula's keeps more voters
            weaker = AUTO_L1 / self.m**0.5 / max(options.reg_lambda, np.finfo(float).tiny)
            drawn *= max(1.0, weaker) ** 0.5 * min(1.0, weaker) ** FEWER
            drawn = min(drawn, DRAWN["l2"][0] * options.schedule.max_rounds ** DRAWN["l2"][1])
        return drawn

    def _log(self, drawn: float) -> float:
        """What is kept of every round, and of those of a path while it is followed."""
        schedule = self.options.schedule
        until_converged = ROUNDS_PER_VOTER * drawn if self.has_gap or self._steps_to_optimum else np.inf
        last = np.inf if self.has_gap or self.held_out is None else ROUNDS_UNTIL_PATIENCE
        n_rounds = min(schedule.max_rounds, until_converged, last) * self.n_outputs
        of_path = min(schedule.max_rounds, until_converged) if self.options.follows_path else 0.0
        log = 130 * (n_rounds + of_path)
        if schedule.sweeps_every and schedule.reweight_sweeps != SOLVE:
            log += 16 * drawn * n_rounds / schedule.sweeps_every
        return log

    def _system(self, drawn: float) -> float:
        """The Gram matrix of voters that are solved for together: under l1 often again, without those that left."""
        schedule = self.options.schedule
        solves = schedule.reweight_sweeps == SOLVE if schedule.sweeps_every else schedule.reweight_every == AUTO
        if not (self.has_gap and solves):
            return 0.0
        if self.options.follows_path:
            drawn = min(drawn, SOLVED_OF_ROWS * self.m)
        return (18 if self.options.penalty == "l1" else 8) * min(drawn, MOST_TOGETHER) ** 2  # 8, and 5/4 of it anew

    def _rounds(self) -> float:
        shares = [1.0] if self.held_out is None else [1.0 - self.held_out, self.held_out]
        size = 8 if self.is_weighted or self.m >= COUNTS_LIMIT else 4
        n_voters = float(self.n_cuts.sum()) + self.n_missing + self._n_rules
        column, drawn_by_one = size * n_voters, self._n_drawn(n_voters)
        drawn = min(drawn_by_one * self.n_outputs**DRAWN_BY_OUTPUTS, n_voters)
        limit = self.options.cache_bytes // len(shares)
        most = bytes_for_columns(limit, n_voters)
        needed = max(2 * column, min(most, drawn * column))
        columns = len(shares) * min(needed * 9 / 8 + 8 * column, needed + PIECE_BYTES)
        if drawn_by_one > MOST_TOGETHER:  # the system is gone when the last columns are made
            columns = max(columns, len(shares) * min(most, MOST_TOGETHER * column) + self._system(drawn_by_one))
        else:
            columns += self._system(drawn_by_one)
        log = self._log(drawn_by_one) + n_voters * len(shares) * (300 + 40 * self.n_outputs)
        log += 8 * self._n_kept * n_voters * self.n_outputs
        n_features = min(self._n_columns, drawn)
        rows = sum(
            self._sorted(n_features, share * self.m, limit // SHARE_FOR_SORTING, size, column) for share in shares
        )
        return columns + log + rows

    def _sorted(self, n_features: float, m: float, limit: int, size: int, column: float) -> float:
        """Rows of the features that were drawn, sorted or counted."""
        growth = self.options.growth
        d, bins = self._n_columns, np.append(self.n_cuts, [growth.max_leaves] * growth.n_trees) + 2
        table = float(bins.max() * bins.sum())
        tabulates = TABLE_PAYS * table < m * d and table * size * d <= limit
        each = table * size if tabulates else 4 * m
        n_kept = min(n_features, max(1, limit // (each + column)))
        if tabulates:
            each = size * float(bins.sum()) ** 2 / d
        return n_kept * (each + column * self.n_missing / d) + 4 * m * tabulates
