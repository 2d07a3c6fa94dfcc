"""The tables that quadboost-train reads, as examples."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.whole_file import check_output
from ..parts.arrow import Unchanged, joined, kind_of_type, row_bytes, to_numpy
from ..parts.rows import Rows, memory_limit, rows_of_chunk
from .recognise import (
    NUMBER,
    TEXT,
    WHOLE,
    Told,
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

COPIES = 3  # that a table has in memory during a fit: as it was read, as a matrix, and as codes and sorted values


def table_examples(arguments: Namespace, validation_table: str | None) -> tuple[Examples, Examples | None]:
    """The examples of the table, and of the validation table if there is one; streamed if they take much memory."""
    text = TextFormat.of(arguments)
    file = open_table(arguments.table, text)
    check_output(arguments.output, file.paths)
    reader = Reader(file, arguments)
    memory = memory_limit(arguments.memory)
    if COPIES * file.loaded_bytes([*reader.features, *reader.others]) > memory:
        examples = reader.stream(file, memory, arguments.verbose)
    else:
        examples = reader.read(file)
    return examples, None if validation_table is None else reader.read(open_table(validation_table, text))


class Reader:
    """Reads tables alike: the first one tells what each column holds."""

    def __init__(self, file: TableFile, arguments: Namespace) -> None:
        self.file = file
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
        """All rows at once."""
        names = [*self.features, *self.others]
        file.require(names)
        table = file.read(names)
        y, known = self._all_targets(table.column(self.target), file)
        self._tell_kinds([table].copy, file)
        unread = dict(zip(table.column_names, table.columns, strict=True))
        del table  # each column of text can go when it is converted
        X, weight = self._features(unread, known, file)
        return Examples(X, tuple(self.features), y, weight, self._categorical(X), len(known) - len(y))

    def stream(self, file: TableFile, memory: int, verbose: int) -> Examples:
        """The rows in chunks; of the target alone all rows are read now, to tell what it is."""
        names = [*self.features, *self.others]
        schema = pa.schema([file.schema.field(name) for name in names])
        n_rows = rows_of_chunk(memory, row_bytes(schema), f"{len(names)} columns of {file.path}")
        unchanged = Unchanged(file.paths)

        def tables() -> Iterator[Any]:
            unchanged.check()
            yield from joined(file.batches(names), schema, n_rows)
            unchanged.check()

        def chunks() -> Iterator[tuple[Any, Any, Any]]:
            for table in tables():
                y, known = self._targets(table.column(self.target), file)
                columns = dict(zip(table.column_names, table.columns, strict=True))
                del table
                X, weight = self._features(columns, known, file)
                yield X, y, weight
                del X, y, weight, columns

        y, known = self._all_targets(file.read([self.target]).column(self.target), file)
        self._tell_kinds(tables, file)
        rows = Rows(chunks, memory=memory, n_rows=file.n_rows, verbose=verbose)
        categorical = self._categorical(next(chunks(), (pa.table({}),))[0])
        return Examples(rows, tuple(self.features), y, None, categorical, len(known) - len(y), n_streamed=len(y))

    def _tell_kinds(self, tables: Callable[[], Iterable[Any]], file: TableFile) -> None:
        """Find out what the features hold of which that is not known."""
        unknown = [name for name in self.features if name not in self.kinds]
        if file.text is None:
            types = {name: file.schema.field(name).type for name in unknown}
            self.kinds |= {name: kind_of_type(type_, name, self._remedy(name, file)) for name, type_ in types.items()}
            return
        each = [Told(name, file.text, name in self.declared, self._remedy(name, file)) for name in unknown]
        for table in tables() if each else ():
            for told in each:
                told.look(table.column(told.name))
        first_row, unsure = 0, [told for told in each if not told.is_sure]
        for table in tables() if unsure else ():
            for told in unsure:
                told.look_closer(table.column(told.name), first_row)
            first_row += table.num_rows
        self.kinds |= {told.name: told.kind() for told in each}

    def _remedy(self, name: str, file: TableFile) -> str:
        more = "" if file.text is None else f", or take it as a category by --categorical {quote(name)}"
        return f"convert it to numbers, or --drop {quote(name)}{more}"

    def _features(self, columns: dict[str, Any], known: np.ndarray, file: TableFile) -> tuple[Any, np.ndarray | None]:
        """The features and weights of the rows whose target is known; `columns` is emptied on the way."""
        weight = None if self.weight is None else self._weights(columns.pop(self.weight), file.text)
        found = []
        for name in self.features:
            column = columns.pop(name)
            if file.text is not None or file is not self.file:
                column = self._as_before(name, column, file.text)
            refuse_infinity(column, name, f"leave it empty, or --drop {quote(name)}")
            found.append(column)
        X = pa.Table.from_arrays(found, names=self.features)
        if not known.all():
            X, weight = X.filter(to_arrow(known)), None if weight is None else weight[known]
        return X, weight

    def _all_targets(self, column: Any, file: TableFile) -> tuple[np.ndarray, np.ndarray]:
        y, known = self._targets(column, file)
        if not known.any():
            raise ValueError(f"{file.path} has no row with a target in its column {self.target!r}")
        return y, known

    def _targets(self, column: Any, file: TableFile) -> tuple[np.ndarray, np.ndarray]:
        """The targets that are known, and which these are."""
        if self.target not in self.kinds:
            self.kinds[self.target] = self._kind_of_target(column, file.text)
        column = self._as_before(self.target, column, file.text)
        if str(column.type).startswith("decimal"):
            column = column.cast(pa.float64())
        known = pc.invert(pc.is_null(column, nan_is_null=True))
        y, mask = to_numpy(column.filter(known)), to_numpy(known)
        if y.dtype.kind in "iu" and y.max(initial=0) <= np.iinfo(np.int64).max:
            y = y.astype(np.int64)
        return y.astype(np.float64) if y.dtype.kind == "f" else y, mask

    def _kind_of_target(self, column: Any, text: TextFormat | None) -> str:
        """Labels stay as they are written: whole numbers if those are written the same again, else text."""
        if text is not None and self.task != REGRESSION and whole_numbers(column, text) is not None:
            return WHOLE
        remedy = "convert it to numbers, or take it as labels by --task classification"
        category = self.task == CLASSIFICATION
        kind, found = recognise(column, self.target, text=text, category=category, remedy=remedy)
        if kind != NUMBER or text is None or self.task == REGRESSION:
            return kind
        values = to_numpy(found.drop_null())
        return TEXT if has_codes(column, text) or are_labels(values, self.task) else NUMBER

    def _weights(self, column: Any, text: TextFormat | None) -> np.ndarray:
        expected = "but weights are numbers that are not negative"
        column = convert(column, NUMBER, self.weight, text=text, expected=expected)
        weight = to_numpy(column).astype(np.float64)
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
