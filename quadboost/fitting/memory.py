"""What a fit will need, told before it is begun.

All of it follows from the shape of the data, but for the number of different voters that the rounds draw, each of
which costs a Gram column. That is learnt from short fits to some of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..common.checks import at_least
from ..common.threads import threads_for
from ..data.frames import FrameSchema, learn_schema, to_matrix
from ..data.rows import Rows
from ..moments.gram import COUNTS_LIMIT, TABLE_PAYS
from ..moments.moments import SHARE_FOR_SORTING, bytes_for_columns
from ..voters.stumps import FEATURES_TOGETHER, Stumps, candidate_stumps
from .training import Options, train

MOST_CLASSES = 20  # numbers of more different values are targets

BYTES_OF_LEVEL = 300  # measured
BYTES_TO_SORT = 30

# Of a trial.
MOST_ROWS = 20_000
MOST_CELLS = 1_000_000  # rows times features; but it has LEAST_ROWS
LEAST_ROWS = 5_000
SHORT = 2_000  # rounds; of a fit that has fewer, more rows can be tried, for on more rows it draws fewer features
MOST_TIMES = 5
MOST_RATED = 100_000_000  # voters, in all of its rounds; but it has LEAST_ROUNDS
LEAST_ROUNDS = 1_000
COLUMN_BYTES = 1 << 27

# Measured: bounds for what a trial lets expect.
STEEPEST = 0.3  # drawn voters grow or fall at most by this power of the number of rows
RARER: dict[str | None, float] = {"l1": 0.65, "l2": 1.0, "linf": 0.8, None: 0.8}  # and so with each doubling of rounds


def estimate_memory(
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    n_outputs: int = 1,
    regression: bool | None = None,
    **parameters: Any,
) -> int:
    """Bytes that a fit will need at its peak, beside X, y and the weights that it is given.

    With `y` this is meant to be within a quarter of what the fit takes, from a few megabytes on: below, much depends on
    what the process has done before. It can be off by more for a few hundred rounds or less on several
    hundred thousand rows, where what features are drawn turns on small differences.

    Without `y` nobody can know how many voters and features the rounds will draw, and each of them costs memory. The
    answer is then the geometric mean of that for labels which depend on two features and that for labels which depend
    on all of them alike, with some noise. There is little between the two where the rounds are many and there is no l1
    penalty. Under l1 a fit to either can be a third away. A fit that draws only a few of the features, because there
    is no noise or there are few rounds beside very many rows, can take several times less.

    Parameters
    ----------
    X : array, frame or table
        All of it, as for the fit. Only a sample is learnt from: a small part of the time of a long fit, but about as
        much as a short one takes. Validation rows that `fit` is given besides are not counted.
    y : array, optional
        Labels or targets.
    sample_weight : array, optional
        As for the fit; what matters is whether there are weights.
    n_outputs : int
        Where y is not given: the number of targets, or that of classes if there are more than two.
    regression : bool, optional
        Whether y is for `QuadBoostRegressor`. None: if it has several columns, or more than 20 different numbers.
    **parameters
        Of the estimator, such as penalty, max_rounds or thresholds. Those that are not given have their defaults.
    """
    from ..estimators.plain import QuadBoostClassifier, QuadBoostRegressor

    at_least("n_outputs", n_outputs, 1)
    X = X if hasattr(X, "shape") else np.asarray(X)
    y, classes, regression = _checked(X, y, sample_weight, regression)
    estimator = (QuadBoostRegressor if regression else QuadBoostClassifier)(**parameters)
    options, held_out = estimator._options(), estimator.validation_fraction
    schema = learn_schema(
        X, categorical_features=estimator.categorical_features, min_category_count=estimator.min_category_count
    )
    n_levels = {f: len(levels) for f, levels in schema.categories.items()}
    m, d = X.shape
    times = min(MOST_TIMES, max(1, SHORT // options.schedule.max_rounds))
    step = max(1, m // max(LEAST_ROWS, times * min(MOST_ROWS, MOST_CELLS // d)))
    matrix = to_matrix(_every(X, step), schema)
    stumps = candidate_stumps(matrix, thresholds=options.thresholds, spacing=options.spacing, n_levels=n_levels)
    if y is None:
        targets = [_made_up(matrix, n_outputs, n_features, regression) for n_features in (2, d)]
    else:
        targets = [_targets(y[::step], classes)]
    few = _every(X, max(1, m // 10))
    fit = _Fit(
        m=m,
        n_cuts=_all_cuts(stumps, len(matrix), m, options.thresholds),
        n_missing=int(stumps.has_missing.sum()),
        n_outputs=targets[0].shape[1],
        value_bytes=matrix.dtype.itemsize,
        is_copied=not np.may_share_memory(to_matrix(few, schema), to_matrix(few, schema)),
        is_weighted=sample_weight is not None or getattr(estimator, "class_weight", None) is not None,
        has_labels=not regression,
        held_out=held_out,
        level_bytes=_level_bytes(schema, m),
        options=options,
    )
    peaks = [fit.peak(_drawn_on_all(Rows(matrix, own), m, options, n_levels, held_out, stumps)) for own in targets]
    return int(np.exp(np.mean(np.log(peaks))))


def _checked(
    X: Any, y: Any, sample_weight: Any, regression: bool | None
) -> tuple[np.ndarray | None, np.ndarray | None, bool]:
    """y, the classes if it has labels, and whether it is for a regression; what a fit refuses is refused."""
    from ..data.examples import examples_of, labels_of, real_targets

    if y is None:
        examples_of(X, np.zeros(X.shape[0] if X.shape else 0), sample_weight)
        return None, None, bool(regression)
    y = np.atleast_1d(np.asarray(y))
    if regression is None:
        regression = y.ndim == 2 or (y.dtype.kind in "iuf" and len(np.unique(y)) > MOST_CLASSES)
    y = real_targets(y) if regression else labels_of(y)
    classes = None if regression else np.unique(y)
    if classes is not None and len(classes) == 1:
        raise ValueError(f"the labels hold only one class, {classes.tolist()[0]!r}; give rows of at least two")
    examples_of(X, y, sample_weight)
    return y, classes, bool(regression)


def _drawn_on_all(
    rows: Rows, m: int, options: Options, n_levels: dict[int, int], held_out: float | None, stumps: Stumps
) -> _Drawn:
    """What a fit to m rows draws, by a trial on some of them, and by a second on fewer where m is much larger."""

    def trial(step: int) -> _Drawn:
        return _try(Rows(rows.X[::step], rows.y[::step]), options, n_levels, held_out, stumps.n_voters)

    n, d = rows.X.shape
    drawn = trial(1)
    if 2 * n > m:
        return drawn
    fewer = 4 if n > 2 * LEAST_ROWS else 2
    less = trial(fewer)

    def on_all(more: float, less: float, steepest: float) -> float:
        power = np.log(more / less) / np.log(fewer)
        return more * (m / n) ** float(np.clip(power, -steepest, steepest))

    return drawn._replace(
        n_voters=on_all(drawn.n_voters, less.n_voters, STEEPEST),
        n_features=min(float(d), on_all(drawn.n_features, less.n_features, 1.0)),
    )


def _level_bytes(schema: FrameSchema, m: int) -> float:
    """To learn the levels of categories: rows in the order of their levels, and each value as an object."""
    n_values = sum(len(group) for levels in schema.categories.values() for group in levels)
    return BYTES_OF_LEVEL * n_values + BYTES_TO_SORT * m * bool(schema.categories)


def _every(X: Any, step: int) -> Any:
    """Some of the rows, evenly spread."""
    if hasattr(type(X), "column_names"):  # a pyarrow table
        return X.take(np.arange(0, X.shape[0], step))
    return X[::step]


def _targets(y: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    if classes is None:
        return y.reshape(len(y), -1).astype(float)
    wanted = classes if len(classes) > 2 else classes[-1:]
    return np.where(y.reshape(-1, 1) == wanted, 1.0, -1.0)


def _made_up(matrix: np.ndarray, n_outputs: int, n_features: int, regression: bool) -> np.ndarray:
    """Targets or labels to which so many features contribute alike, and half as much noise."""
    rng = np.random.default_rng(0)
    values = np.nan_to_num(matrix)  # a category contributes by the number of its level, which is as good as any
    spread = values.std(axis=0)
    values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    chosen = [rng.permutation(values.shape[1])[:n_features] for _ in range(n_outputs)]
    score = np.column_stack([values[:, own].sum(axis=1) for own in chosen])
    score += 0.5 * score.std(axis=0) * rng.normal(size=score.shape)
    return score if regression else np.where(score > 0, 1.0, -1.0)


class _Drawn(NamedTuple):
    n_voters: float  # different ones
    n_features: float
    n_rounds: int  # for all outputs together


def _try(rows: Rows, options: Options, n_levels: dict[int, int], held_out: float | None, n_voters: int) -> _Drawn:
    """What a fit to these rows draws; where it would be long, as its first rounds let expect."""
    most_rounds = options.schedule.max_rounds
    n_rounds = min(most_rounds, max(LEAST_ROUNDS, MOST_RATED // max(1, n_voters * rows.y.shape[1])))
    shorter = replace(
        options,
        n_threads=1,
        cache_bytes=min(options.cache_bytes, COLUMN_BYTES),
        schedule=replace(options.schedule, max_rounds=n_rounds),
    )
    validation = None
    if held_out is not None:
        chosen = np.asarray(np.random.default_rng(0).random(len(rows.X)) < held_out)
        rows, validation = rows.take(~chosen), rows.take(chosen)
    trained = train(rows, shorter, validation=validation, n_levels=n_levels)
    voters = [result.trace.voter for result in trained.boosted]

    def different(share: int) -> np.ndarray:
        return np.unique(np.concatenate([own[: len(own) // share] for own in voters]))

    drawn = different(1)
    growth = 0.0
    if n_rounds < most_rounds and any(len(own) == n_rounds for own in voters):
        n_drawn = [max(1, len(different(share))) for share in (1, 2, 4)]
        last, before = (min(np.log(2.0), np.log(n_drawn[i] / n_drawn[i + 1])) for i in (0, 1))
        rarer = min(RARER[options.penalty], last / before) if before > 0 else 1.0
        n_doublings = np.log2(most_rounds / n_rounds)
        growth = last * sum(rarer ** (k + 1) * min(1.0, n_doublings - k) for k in range(int(np.ceil(n_doublings))))
    return _Drawn(
        n_voters=max(1, len(drawn)) * np.exp(growth),
        n_features=max(1, len(np.unique(trained.stumps.describe(drawn)[0]))),
        n_rounds=sum(most_rounds if len(own) == n_rounds else len(own) for own in voters),
    )


def _all_cuts(stumps: Stumps, n: int, m: int, thresholds: int | str) -> np.ndarray:
    """Cuts of every feature on m rows, seen those on n of them: where most values differ, so will the others."""
    grown = np.where((stumps.n_cuts > n // 2) & (stumps.is_level == 0), stumps.n_cuts * (m / n), stumps.n_cuts)
    return np.asarray(grown if thresholds == "all" else np.minimum(grown, np.maximum(int(thresholds), stumps.n_cuts)))


@dataclass(frozen=True)
class _Fit:
    """The sizes of what is in memory together, stage by stage."""

    m: int
    n_cuts: np.ndarray
    n_missing: int  # features with missing values
    n_outputs: int
    value_bytes: int
    is_copied: bool  # X is not used as it is
    is_weighted: bool
    has_labels: bool
    held_out: float | None
    level_bytes: float
    options: Options

    def peak(self, drawn: _Drawn) -> float:
        m, d = self.m, len(self.n_cuts)
        most_cuts = self.n_cuts.max(initial=0)
        codes = d * (1 if most_cuts < 1 << 8 else 2 if most_cuts < 1 << 16 else 4)
        n_threads = threads_for(m * d, self.options.n_threads)
        n_threads = min(n_threads, -(-d // FEATURES_TOGETHER))
        # Bytes a row.
        given = 16 * self.n_outputs + 8 * self.has_labels + 16 * self.is_weighted
        own = 8 * d * self.is_copied
        reading = own + 24 * self.is_copied
        if self.held_out is not None:
            parts = self.value_bytes * d + 8 * self.n_outputs
            reading, own = own + parts, parts
        choosing = n_threads * (min(FEATURES_TOGETHER, d) * self.value_bytes + 8 + 32 * self.is_weighted)
        summing = codes + 40 + 8 * self.n_outputs
        rounds = m * (own + codes) + self._rounds(drawn)
        return self.level_bytes + m * given + max(m * reading, m * (own + choosing), m * (own + summing), rounds)

    def _rounds(self, drawn: _Drawn) -> float:
        shares = [1.0] if self.held_out is None else [1.0 - self.held_out, self.held_out]
        size = 8 if self.is_weighted or self.m >= COUNTS_LIMIT else 4
        n_voters = float(self.n_cuts.sum()) + self.n_missing
        column = size * n_voters
        limit = self.options.cache_bytes // len(shares)
        for_rows = limit // SHARE_FOR_SORTING
        columns = len(shares) * max(2 * column, min(bytes_for_columns(limit, n_voters), drawn.n_voters * column))
        log = (
            60 * self.options.schedule.max_rounds
            + 65 * drawn.n_rounds
            + n_voters * len(shares) * (140 + 40 * self.n_outputs)
        )
        rows = sum(self._sorted(drawn.n_features, share * self.m, for_rows, size, column) for share in shares)
        return columns + log + rows

    def _sorted(self, n_features: float, m: float, limit: int, size: int, column: float) -> float:
        """Rows of the features that were drawn, sorted or counted."""
        d, bins = len(self.n_cuts), self.n_cuts + 2
        table = float(bins.max() * bins.sum())
        tabulates = TABLE_PAYS * table < m * d and table * size * d <= limit
        each = table * size if tabulates else 4 * m
        n_kept = min(n_features, max(1, limit // (each + column)))
        if tabulates:
            each = size * float(bins.sum()) ** 2 / d
        return n_kept * (each + column * self.n_missing / d) + 4 * m * tabulates
