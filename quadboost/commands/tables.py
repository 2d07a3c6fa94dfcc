"""Table files, read through pyarrow: names of the columns first, then rows in batches."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..data.tables import listed

BATCH_CELLS = 1 << 19
BATCH_ROWS = 65_536  # at most
BLOCK_BYTES = 1 << 20

Table: TypeAlias = Any  # pyarrow has no types


class TableFile:
    """A table in a file.

    Attributes
    ----------
    path : str
    schema : pyarrow.Schema
        Names and types of the columns.
    from_text : bool
        The file holds text alone, and what its columns are must be recognised.
    """

    from_text = False

    def __init__(self, path: str) -> None:
        self.path = path
        with _errors_of(path):
            self.schema: Any = self._read_schema()
        repeated = [name for name, n in Counter(self.names).items() if n > 1]
        if repeated:
            raise ValueError(f"{path} has more than one column named {repeated[0]!r}; names must differ")

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def require(self, columns: Iterable[str]) -> None:
        """Refuse columns that the table does not have."""
        names = set(self.names)
        missing = [name for name in dict.fromkeys(columns) if name not in names]
        if missing:
            raise ValueError(f"{self.path} has no column {listed(missing)}; it has {listed(self.names)}")

    def batches(self, columns: Sequence[str]) -> Iterator[Table]:
        """The rows, some thousands at a time; `columns` in the given order."""
        with _errors_of(self.path):
            for batch in self._batches(list(columns)):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).select(list(columns))

    def read(self, columns: Sequence[str]) -> Table:
        """All rows at once."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.concat_tables([pa.Table.from_batches([], schema), *self.batches(columns)])

    def _read_schema(self) -> Any:
        raise NotImplementedError

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        raise NotImplementedError


class TextFile(TableFile):
    """CSV or TSV, perhaps compressed. All values are read as text: no type is guessed from the first rows."""

    from_text = True

    def _read_schema(self) -> Any:
        opened = gzip.open if self.path.lower().endswith(".gz") else open
        with opened(self.path, "rt", encoding="utf-8-sig", newline="") as file:
            head = io.StringIO(file.read(BLOCK_BYTES).lstrip("\r\n"), newline="")
        first_line = re.split("[\r\n]", head.getvalue(), maxsplit=1)[0]
        if not first_line:
            raise ValueError("it is empty; its first line must name the columns")
        self.delimiter = "\t" if ".tsv" in self.path.lower() else _delimiter(first_line)
        names = next(csv.reader(head, delimiter=self.delimiter))
        rest = head.read()
        self.has_rows = bool(rest if len(names) == 1 else rest.strip("\r\n"))
        return pa.schema([(name, pa.string()) for name in names])

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        if not self.has_rows:  # pyarrow takes a header without an end of line for an empty file
            return
        yield from pyarrow.csv.open_csv(
            self.path,
            read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,  # in a single column they are values
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=columns,
                column_types={name: pa.string() for name in columns},
                strings_can_be_null=False,
            ),
        )


class ParquetFile(TableFile):
    def _read_schema(self) -> Any:
        self.file = pyarrow.parquet.ParquetFile(self.path, buffer_size=1 << 16, pre_buffer=False)
        return self.file.schema_arrow

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        yield from self.file.iter_batches(_batch_rows(columns), columns=columns, use_threads=False)


class ArrowFile(TableFile):
    """An Arrow IPC file, which Feather files are."""

    def _read_schema(self) -> Any:
        self.file = pa.OSFile(self.path)
        return pa.ipc.open_file(self.file).schema

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        wanted = [self.schema.get_field_index(name) for name in columns]
        reader = pa.ipc.open_file(self.file, options=pa.ipc.IpcReadOptions(included_fields=wanted))
        n_rows = _batch_rows(columns)
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            yield from (batch.slice(start, n_rows) for start in range(0, batch.num_rows, n_rows))


_READERS: dict[str, type[TableFile]] = {
    ".csv": TextFile,
    ".tsv": TextFile,
    ".txt": TextFile,
    ".csv.gz": TextFile,
    ".tsv.gz": TextFile,
    ".txt.gz": TextFile,
    ".parquet": ParquetFile,
    ".feather": ArrowFile,
    ".arrow": ArrowFile,
}


def open_table(path: str) -> TableFile:
    """Open a table file; its suffix says what kind it is."""
    for ending, reader in _READERS.items():
        if path.lower().endswith(ending):
            os.stat(path)
            return reader(path)
    raise ValueError(f"{path}: the name does not tell what it holds; tables end in {', '.join(_READERS)}")


def _batch_rows(columns: Sequence[str]) -> int:
    return min(BATCH_ROWS, BATCH_CELLS // max(1, len(columns)) + 1)


def _delimiter(line: str) -> str:
    """The delimiter that splits the first line into most columns."""
    return max(",;\t", key=lambda delimiter: len(next(csv.reader([line], delimiter=delimiter))))


@contextmanager
def _errors_of(path: str) -> Iterator[None]:
    """Turn reading errors into messages that name the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; convert it, for instance with iconv") from None
    except (pa.ArrowException, OSError, EOFError, csv.Error, ValueError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        if "UTF8" in str(error):
            raise ValueError(f"{path} is not UTF-8 text; convert it, for instance with iconv") from None
        raise ValueError(f"cannot read {path}: {error}") from error
