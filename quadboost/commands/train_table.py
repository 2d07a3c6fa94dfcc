"""The tables that quadboost-train reads, as examples."""

from __future__ import annotations

from argparse import Namespace
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .recognise import NUMBER, convert, is_category, recognise, to_arrow, whole_numbers
from .tables import TableFile, open_table
from .train_data import CLASSIFICATION, Examples, choose_features


def table_examples(arguments: Namespace, validation_table: str | None) -> tuple[Examples, Examples | None]:
    """The examples of the table, and of the validation table if there is one."""
    file = open_table(arguments.table)
    reader = _Reader(file, arguments)
    examples = reader.read(file)
    return examples, None if validation_table is None else reader.read(open_table(validation_table))


class _Reader:
    """Reads tables alike: the first one tells what each column holds."""

    def __init__(self, file: TableFile, arguments: Namespace) -> None:
        self.target, self.weight, self.task = arguments.target, arguments.weight, arguments.task
        self.others = [self.target] if self.weight is None else [self.target, self.weight]
        self.declared = arguments.categorical
        file.require([*self.others, *self.declared])
        self.features = choose_features(file.names, self.others, arguments)
        for name in self.declared:
            if name not in self.features:
                raise ValueError(f"--categorical names {name!r}, which is not among the features")
        self.kinds: dict[str, str] = {}

    def read(self, file: TableFile) -> Examples:
        names = [*self.features, *self.others]
        file.require(names)
        table = file.read(names)
        targets = self._targets(table.column(self.target), file.from_text)
        known = np.array([value is not None and value == value for value in targets], dtype=bool)
        if not known.any():
            raise ValueError(f"{file.path} has no row with a target in its column {self.target!r}")
        weight = None if self.weight is None else self._weights(table.column(self.weight), file.from_text)
        unread = dict(zip(table.column_names, table.columns, strict=True))
        del table  # each column of text can go when it is converted
        columns = [self._feature(name, unread.pop(name), file.from_text) for name in self.features]
        X = pa.Table.from_arrays(columns, names=self.features)
        y = np.array([value for value, is_known in zip(targets, known, strict=True) if is_known])
        if len(y) < len(known):
            X = X.filter(to_arrow(known))
            weight = None if weight is None else weight[known]
        return Examples(X, tuple(self.features), y, weight, self._categorical(X), len(known) - len(y))

    def _feature(self, name: str, column: Any, from_text: bool) -> Any:
        remedy = f"convert it to numbers, or --drop {quote(name)}"
        if from_text:
            remedy += f", or take it as a category by --categorical {quote(name)}"
        column = self._convert(name, column, from_text, category=name in self.declared, remedy=remedy)
        if pa.types.is_floating(column.type) and len(infinite := pc.indices_nonzero(pc.is_inf(column))):
            row = infinite[0].as_py()
            raise ValueError(
                f"Column {name!r} holds {column[row]} in row {row + 1}; leave it empty, or --drop {quote(name)}"
            )
        return column

    def _targets(self, column: Any, from_text: bool) -> list[Any]:
        whole = whole_numbers(column) if from_text and self.target not in self.kinds else None
        if whole is not None:  # as labels they are no floats
            self.kinds[self.target], column = NUMBER, whole
        else:
            remedy = "convert it to numbers, or take it as labels by --task classification"
            is_labels = self.task == CLASSIFICATION
            column = self._convert(self.target, column, from_text, category=is_labels, remedy=remedy)
        if str(column.type).startswith("decimal"):
            column = column.cast(pa.float64())
        return list(column.to_pylist())

    def _weights(self, column: Any, from_text: bool) -> np.ndarray:
        expected = "but weights are numbers that are not negative"
        column = convert(column, NUMBER, self.weight, from_text=from_text, expected=expected)
        weight = np.array(column.to_pylist(), dtype=np.float64)
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if len(wrong):
            found = "no value" if np.isnan(weight[wrong[0]]) else f"{weight[wrong[0]]:g}"
            raise ValueError(f"Column {self.weight!r} holds {found} in row {wrong[0] + 1}, {expected}")
        return weight

    def _convert(self, name: str, column: Any, from_text: bool, *, category: bool, remedy: str) -> Any:
        if name in self.kinds:
            expected = f"but the training table has {self.kinds[name]} there"
            return convert(column, self.kinds[name], name, from_text=from_text, expected=expected)
        self.kinds[name], column = recognise(column, name, from_text=from_text, category=category, remedy=remedy)
        return column

    def _categorical(self, X: Any) -> Any:
        if not self.declared:
            return "auto"
        return [name for name in self.features if name in self.declared or is_category(X.column(name))]
