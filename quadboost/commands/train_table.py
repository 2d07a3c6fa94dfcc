"""The tables that quadboost-train reads, as examples."""

from __future__ import annotations

from argparse import Namespace
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa

from .recognise import (
    NUMBER,
    TEXT,
    WHOLE,
    convert,
    has_codes,
    is_category,
    recognise,
    refuse_infinity,
    to_arrow,
    whole_numbers,
)
from .tables import TableFile, open_table
from .text_format import TextFormat
from .train_data import CLASSIFICATION, REGRESSION, Examples, are_labels, choose_features


def table_examples(arguments: Namespace, validation_table: str | None) -> tuple[Examples, Examples | None]:
    """The examples of the table, and of the validation table if there is one."""
    text = TextFormat.of(arguments)
    file = open_table(arguments.table, text)
    reader = _Reader(file, arguments)
    examples = reader.read(file)
    return examples, None if validation_table is None else reader.read(open_table(validation_table, text))


class _Reader:
    """Reads tables alike: the first one tells what each column holds."""

    def __init__(self, file: TableFile, arguments: Namespace) -> None:
        self.target, self.weight, self.task = arguments.target, arguments.weight, arguments.task
        self.others = [self.target] if self.weight is None else [self.target, self.weight]
        self.declared, self.as_text = arguments.categorical, arguments.text
        file.require([*self.others, *self.declared, *self.as_text])
        self.features = choose_features(file.names, self.others, arguments)
        for name in self.declared:
            if name not in self.features:
                raise ValueError(f"--categorical names {name!r}, which is not among the features")
        for name in self.as_text:
            if name not in self.features and name != self.target:
                raise ValueError(f"--text names {name!r}, which is neither a feature nor the target")
            if file.text is None:
                raise ValueError(f"--text names {name!r}, but columns of {file.path} have types; convert it there")
        self.kinds: dict[str, str] = dict.fromkeys(self.as_text, TEXT)

    def read(self, file: TableFile) -> Examples:
        names = [*self.features, *self.others]
        file.require(names)
        table = file.read(names)
        targets = self._targets(table.column(self.target), file.text)
        known = np.array([value is not None and value == value for value in targets], dtype=bool)
        if not known.any():
            raise ValueError(f"{file.path} has no row with a target in its column {self.target!r}")
        weight = None if self.weight is None else self._weights(table.column(self.weight), file.text)
        unread = dict(zip(table.column_names, table.columns, strict=True))
        del table  # each column of text can go when it is converted
        columns = [self._feature(name, unread.pop(name), file.text) for name in self.features]
        X = pa.Table.from_arrays(columns, names=self.features)
        y = np.array([value for value, is_known in zip(targets, known, strict=True) if is_known])
        if len(y) < len(known):
            X = X.filter(to_arrow(known))
            weight = None if weight is None else weight[known]
        return Examples(X, tuple(self.features), y, weight, self._categorical(X), len(known) - len(y))

    def _feature(self, name: str, column: Any, text: TextFormat | None) -> Any:
        remedy = f"convert it to numbers, or --drop {quote(name)}"
        if text is not None:
            remedy += f", or take it as a category by --categorical {quote(name)}"
        if name not in self.kinds:
            category = name in self.declared
            self.kinds[name], column = recognise(column, name, text=text, category=category, remedy=remedy)
        else:
            column = self._as_before(name, column, text)
        refuse_infinity(column, name, f"leave it empty, or --drop {quote(name)}")
        return column

    def _targets(self, column: Any, text: TextFormat | None) -> list[Any]:
        if self.target not in self.kinds:
            self.kinds[self.target] = self._kind_of_target(column, text)
        column = self._as_before(self.target, column, text)
        if str(column.type).startswith("decimal"):
            column = column.cast(pa.float64())
        return list(column.to_pylist())

    def _kind_of_target(self, column: Any, text: TextFormat | None) -> str:
        """Labels stay as they are written: whole numbers if those are written the same again, else text."""
        if text is not None and self.task != REGRESSION and whole_numbers(column, text) is not None:
            return WHOLE
        remedy = "convert it to numbers, or take it as labels by --task classification"
        category = self.task == CLASSIFICATION
        kind, found = recognise(column, self.target, text=text, category=category, remedy=remedy)
        if kind != NUMBER or text is None or self.task == REGRESSION:
            return kind
        values = np.array([value for value in found.to_pylist() if value is not None])
        return TEXT if has_codes(column, text) or are_labels(values, self.task) else NUMBER

    def _weights(self, column: Any, text: TextFormat | None) -> np.ndarray:
        expected = "but weights are numbers that are not negative"
        column = convert(column, NUMBER, self.weight, text=text, expected=expected)
        weight = np.array(column.to_pylist(), dtype=np.float64)
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if len(wrong):
            found = "no value" if np.isnan(weight[wrong[0]]) else f"{weight[wrong[0]]:g}"
            raise ValueError(f"Column {self.weight!r} holds {found} in row {wrong[0] + 1}, {expected}")
        return weight

    def _as_before(self, name: str, column: Any, text: TextFormat | None) -> Any:
        expected = f"but the training table has {self.kinds[name]} there"
        return convert(column, self.kinds[name], name, text=text, expected=expected)

    def _categorical(self, X: Any) -> Any:
        if not self.declared:
            return "auto"
        return [name for name in self.features if name in self.declared or is_category(X.column(name))]
