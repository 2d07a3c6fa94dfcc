"""What a fit must know of all rows before it codes them: columns and their levels, classes, weights, ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..data.constraints import check_numbers, constrained_columns, meetings_of, signs_of
from ..data.exact import Extent, exact_means
from ..data.examples import (
    check_range,
    checked_weights,
    class_weights,
    finite_targets,
    labels_of,
    positions_of,
    those_that_count,
    times,
)
from ..data.schema import (
    FrameSchema,
    columns_to_be_numbers,
    declared_categories,
    is_order,
    is_order_of_numbers,
    level_sizes,
    levels_of,
    to_matrix,
)
from ..data.tables import Coded as CodedColumn
from ..data.tables import Value, as_coded, is_category, listed, open_table
from ..fitting.problem import Reading
from .source import Part, Source

NO_ROWS = Extent.of(0, None)


class Column(NamedTuple):
    """What is known of a column: whether it is text, or another type that makes it a category; its values' sizes."""

    is_numbers: bool  # by its type
    is_category: bool
    sizes: dict[Value, tuple[int, float]]  # rows and weight of each value of a category
    order: tuple[str, ...] = ()  # of an ordered category that is taken for numbers

    def joined(self, other: Column, label: str) -> Column:
        if (self.is_category and other.is_numbers) or (self.is_numbers and other.is_category):
            raise ValueError(f"{label} holds numbers in one part and text in another; convert it to one of them")
        if self.order != other.order:
            raise ValueError(f"{label} is an ordered category, and parts have other orders; give all the same")
        sizes = dict(self.sizes)
        for value, (rows, mass) in other.sizes.items():
            known = sizes.get(value, (0, 0.0))
            sizes[value] = (known[0] + rows, known[1] + mass)
        is_numbers = self.is_numbers or other.is_numbers
        return Column(is_numbers, self.is_category or other.is_category, sizes, self.order)


@dataclass(frozen=True)
class Survey:
    """What some parts say; those of several add up. An empty part says nothing."""

    n_rows: int = 0
    n_kept: int = 0  # rows that count
    extent: Extent = NO_ROWS  # of the weights as given
    are_ones: bool = True  # whether every weight that counts is 1
    names: tuple[str, ...] | None = None
    columns: tuple[Column, ...] = ()
    n_outputs: int = 0  # 0: one, in one dimension
    classes: np.ndarray | None = None
    low: np.ndarray | float = np.inf
    high: np.ndarray | float = -np.inf
    is_weighted: bool = False
    part: str = ""  # the name of one of the parts

    def __add__(self, other: Survey) -> Survey:
        if not self.columns or not other.columns:
            full = self if self.columns else other
            n_rows, n_kept = self.n_rows + other.n_rows, self.n_kept + other.n_kept
            return replace(full, n_rows=n_rows, n_kept=n_kept, extent=self.extent + other.extent)
        if self.names != other.names or len(self.columns) != len(other.columns):
            raise ValueError(
                f"{other.part} has other columns than {self.part}: {_named(other)}, not {_named(self)}; "
                "give all the same"
            )
        if self.is_weighted != other.is_weighted:
            raise ValueError(f"only one of {self.part} and {other.part} has weights; give them for all parts or none")
        if self.n_outputs != other.n_outputs:
            raise ValueError(
                f"{self.part} has {self.n_outputs or 1} targets, and {other.part} {other.n_outputs or 1}; "
                "give all as many"
            )
        labels = [some.classes for some in (self, other) if some.classes is not None]
        if len(labels) == 2 and (labels[0].dtype.kind in "OUST") != (labels[1].dtype.kind in "OUST"):
            raise ValueError(f"the labels of one of {self.part} and {other.part} are text, and not of the other")
        label = [f"Column {name!r}" for name in self.names or range(len(self.columns))]
        each = zip(self.columns, other.columns, label, strict=True)
        return Survey(
            self.n_rows + other.n_rows,
            self.n_kept + other.n_kept,
            self.extent + other.extent,
            self.are_ones and other.are_ones,
            self.names,
            tuple(one.joined(two, name) for one, two, name in each),
            self.n_outputs,
            np.unique(np.concatenate(labels)) if labels else None,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.is_weighted,
            self.part,
        )


def _named(survey: Survey) -> str:
    return listed(survey.names) if survey.names else f"{len(survey.columns)} without names"


class Chosen(NamedTuple):
    """The rows of a part that count, and which they are (None: all)."""

    weight: np.ndarray | None
    kept: np.ndarray | None

    def of(self, values: Any) -> Any:
        return values if self.kept is None else values[self.kept]


def chosen(part: Part, n_rows: int, extent: Extent | None) -> Chosen:
    """Weights of all parts together say which rows count; without their extent all of them do."""
    if part.weight is None:
        return Chosen(None, None)
    weight = checked_weights(part.weight, n_rows)
    return Chosen(weight, None) if extent is None else Chosen(*those_that_count(weight, extent))


def n_rows_of(part: Part) -> int:
    shape = getattr(part.X, "shape", None)
    return int(shape[0]) if shape else len(part.X)


@dataclass(frozen=True)
class Ask:
    """The question that a survey answers; the extent of all weights, where there are any, comes of a first survey."""

    is_classifier: bool
    categorical_features: Any
    monotonic_cst: Any = None
    extent: Extent | None = None

    def __call__(self, part: Part) -> Survey:
        n_rows = n_rows_of(part)
        if n_rows == 0:
            return Survey()
        if part.y is None:
            raise ValueError(f"{part.name} has no targets; give them for every part")
        if len(part.y) != n_rows:
            raise ValueError(f"{part.name} has {n_rows} rows and {len(part.y)} targets; give one target for every row")
        counted = chosen(part, n_rows, self.extent)
        survey = Survey(
            n_rows,
            n_rows if counted.kept is None else int(counted.kept.sum()),
            Extent.of(n_rows, counted.weight if self.extent is None else checked_weights(part.weight, n_rows)),
            counted.weight is None or bool((counted.weight == 1.0).all()),
            is_weighted=part.weight is not None,
            part=part.name,
        )
        return self._columns(part, counted, self._targets(part, counted, survey))

    def _targets(self, part: Part, counted: Chosen, survey: Survey) -> Survey:
        if self.is_classifier:
            return replace(survey, classes=np.unique(counted.of(labels_of(part.y))))
        y = counted.of(finite_targets(part.y))
        n_outputs = 0 if y.ndim == 1 else y.shape[1]
        y = _in_columns(y)
        low, high = y.min(axis=0, initial=np.inf), y.max(axis=0, initial=-np.inf)
        return replace(survey, n_outputs=n_outputs, low=low, high=high)

    def _columns(self, part: Part, counted: Chosen, survey: Survey) -> Survey:
        check_numbers(part.X, monotonic_cst=self.monotonic_cst, interaction_cst=None)
        table = open_table(part.X)
        auto = isinstance(self.categorical_features, str) and self.categorical_features == "auto"
        declared = set() if auto else declared_categories(self.categorical_features, table)
        weight = None
        if counted.weight is not None:
            weight = np.zeros(survey.n_rows)
            weight[slice(None) if counted.kept is None else counted.kept] = counted.weight
        columns = []
        to_be_numbers = columns_to_be_numbers(constrained_columns(self.monotonic_cst), table)
        for j in range(table.shape[1]):
            if table.numbers is not None and j not in declared:
                columns.append(Column(True, False, {}))
                continue
            label = table.label(j)
            column = table.read(j, label)
            if j in to_be_numbers and isinstance(column, CodedColumn) and is_order(column.order):
                columns.append(Column(True, False, {}, column.order))
                continue
            if j in to_be_numbers and isinstance(column, CodedColumn) and is_order_of_numbers(column.order):
                columns.append(Column(True, False, {}))
                continue
            category = j in declared or (auto and table.typed and is_category(column))
            is_numbers = j not in declared and not isinstance(column, CodedColumn)
            sizes = level_sizes(as_coded(column, label), weight) if category else {}
            columns.append(Column(is_numbers, category, sizes))
        return replace(survey, names=table.names, columns=tuple(columns))


def _in_columns(y: np.ndarray) -> np.ndarray:
    """A column for each target, also where no row counts."""
    return y[:, None] if y.ndim == 1 else y


@dataclass(frozen=True)
class Facts:
    """What coding needs to know of all rows.

    Attributes
    ----------
    schema : FrameSchema
    extent : Extent
        Of the weights, as given.
    is_weighted : bool
        Whether any weight that counts is not 1.
    classes, class_weight : arrays or None
    one_output : bool
    target_scale : array of shape (n_outputs,)
    n_rows : int
        Those that count.
    owner : str
        Who reads the tables, for the errors.
    """

    schema: FrameSchema
    extent: Extent
    is_weighted: bool
    classes: np.ndarray | None
    class_weight: np.ndarray | None
    one_output: bool
    target_scale: np.ndarray
    n_rows: int
    owner: str

    @property
    def n_outputs(self) -> int:
        return len(self.target_scale)

    def rows(self, part: Part) -> tuple[Chosen, np.ndarray, np.ndarray | None]:
        """The rows of a part that count, their labels' numbers or targets, and their weights."""
        counted = chosen(part, n_rows_of(part), self.extent)
        if self.classes is None:
            y = counted.of(finite_targets(part.y))
            return counted, _in_columns(y) / self.target_scale, counted.weight if self.is_weighted else None
        position = positions_of(counted.of(labels_of(part.y)), self.classes, "y")
        weight = times(counted.weight if self.is_weighted else None, self.class_weight, position)
        small = next(t for t in (np.uint8, np.uint16, np.uint32) if len(self.classes) <= np.iinfo(t).max)
        return counted, position.astype(small), weight

    def counted(self, part: Part) -> tuple[Chosen, np.ndarray | None]:
        """The rows of a part that count, and their weights; labels are looked at where these depend on them."""
        if self.class_weight is not None:
            counted, _, weight = self.rows(part)
            return counted, weight
        counted = chosen(part, n_rows_of(part), self.extent)
        return counted, counted.weight if self.is_weighted else None

    def matrix(self, part: Part, counted: Chosen) -> np.ndarray:
        return counted.of(to_matrix(part.X, self.schema, owner=self.owner))


def survey(
    source: Source[Part], is_classifier: bool, reading: Reading, class_weight: Any = None, standardize: bool = False,
    known: Facts | None = None,
) -> Facts:  # fmt: skip
    """Ask all parts for what coding needs to know of them; `known` is what they must agree with, if there is such."""
    ask = Ask(is_classifier, reading.categorical_features, reading.monotonic_cst)
    found = source.reduce(ask)
    extent = found.extent
    if found.is_weighted:  # which rows count is known when all weights are
        if not extent.total > 0:
            raise ValueError("sample_weight is zero for every row; at least one weight must be positive")
        found = source.reduce(replace(ask, extent=extent))
    if not found.columns:
        raise ValueError("there are no rows in any part; give at least one")
    if known is not None:
        return replace(known, extent=extent, is_weighted=not found.are_ones, n_rows=found.n_kept)
    facts = Facts(
        _schema_of(found, reading),
        extent,
        not found.are_ones,
        found.classes,
        None,
        len(found.classes) == 2 if found.classes is not None else found.n_outputs == 0,
        np.ones(_n_outputs(found)),
        found.n_kept,
        reading.owner,
    )
    if found.classes is None:
        check_range(np.asarray(found.high) - np.asarray(found.low))
        return replace(facts, target_scale=_spread(source, facts)) if standardize else facts
    if len(found.classes) < 2:
        raise ValueError(
            f"the labels hold only one class, {found.classes.tolist()[0]!r}; a classifier needs at least two classes"
        )
    if class_weight is None:
        return facts
    mass = source.reduce(_ClassMass(facts)) * extent.weight_unit
    return replace(facts, class_weight=class_weights(class_weight, found.classes, mass))


def _n_outputs(found: Survey) -> int:
    if found.classes is None:
        return max(1, found.n_outputs)
    return 1 if len(found.classes) <= 2 else len(found.classes)


def _schema_of(found: Survey, reading: Reading) -> FrameSchema:
    categories = {}
    for j, column in enumerate(found.columns):
        label = f"Column {j if found.names is None else repr(found.names[j])}"
        if column.is_category:
            categories[j] = levels_of(column.sizes, reading.min_category_count, label)
    orders = {j: list(column.order) for j, column in enumerate(found.columns) if column.order}
    return FrameSchema(len(found.columns), found.names, categories, orders)


@dataclass(frozen=True)
class _ClassMass:
    """The weight of the rows of each class, in units of the extent."""

    facts: Facts

    def __call__(self, part: Part) -> np.ndarray:
        assert self.facts.classes is not None
        found = np.zeros(len(self.facts.classes), dtype=np.int64)
        if n_rows_of(part):
            counted, position, _ = self.facts.rows(part)
            np.add.at(found, position, self.facts.extent.whole_weights(counted.weight, len(position)))
        return found


def _spread(source: Source[Part], facts: Facts) -> np.ndarray:
    """The standard deviation of each target; 1 for a constant one."""

    def means(origin: np.ndarray | None) -> np.ndarray:
        return exact_means(lambda question, add: source.reduce(_OfTargets(facts, origin, question), add))

    centre = means(None)
    variance = means(centre)
    return np.where(variance > 1e-24 * centre**2, np.sqrt(variance), 1.0)


@dataclass(frozen=True)
class _OfTargets:
    """A question about targets, or about their squared distances from an origin."""

    facts: Facts
    origin: np.ndarray | None
    question: Any

    def __call__(self, part: Part) -> Any:
        y, weight = np.empty((0, self.facts.n_outputs)), None
        if n_rows_of(part):
            _, y, weight = self.facts.rows(part)
        return self.question(y if self.origin is None else (y - self.origin) ** 2, weight)


def constraints(facts: Facts, reading: Reading) -> Mapping[str, Any]:
    """What is asked of the weights and rules of a model."""
    return {
        "signs": signs_of(reading.monotonic_cst, facts.schema, facts.n_outputs),
        "meetings": meetings_of(reading.interaction_cst, facts.schema),
    }
