"""Table files, read through pyarrow: names of the columns first, then rows in batches.

Standard input is copied to a temporary file first: it can be read once, and a table is read twice.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, TextIO, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..data.tables import listed
from ..parts.arrow import agreed_schema, as_schema, files_of, row_bytes
from .streams import STANDARD
from .text_format import TextFormat

BATCH_CELLS = 1 << 19
BATCH_ROWS = 65_536  # at most
BLOCK_BYTES = 1 << 20  # no row of a text file may be longer, but for those of wide tables:
BLOCKS_OF_HEADER = 8  # they may be so many times as long as the first line
MOST_HEADER = 1 << 27  # characters
GROWTH = {".gz": 8, ".csv": 2, ".tsv": 2, ".txt": 2}  # of a file, when it is loaded: of text there are numbers too

Table: TypeAlias = Any  # pyarrow has no types


class TableFile:
    """A table in a file.

    Attributes
    ----------
    path : str
        As the user knows it.
    source : str
        The file itself.
    schema : pyarrow.Schema
        Names and types of the columns.
    text : TextFormat, optional
        How the file is written if it holds text alone, and what its columns are must be recognised.
    """

    def __init__(self, path: str, source: str, text: TextFormat | None = None) -> None:
        self.path, self.source, self.text = path, source, text
        with _errors_of(self):
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
        with _errors_of(self):
            for batch in self._batches(list(columns)):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).select(list(columns))

    def read(self, columns: Sequence[str]) -> Table:
        """All rows at once."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.concat_tables([pa.Table.from_batches([], schema), *self.batches(columns)])

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if the file says so."""
        return None

    def loaded_bytes(self, columns: Sequence[str]) -> float:
        """What these columns take in memory, about."""
        return os.path.getsize(self.source) * GROWTH.get(os.path.splitext(self.source)[1].lower(), 1)

    @property
    def paths(self) -> list[str]:
        """The files that are read."""
        return [self.source]

    def _read_schema(self) -> Any:
        raise NotImplementedError

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        raise NotImplementedError


class TableFiles(TableFile):
    """Files of one table: those of a directory, or all that a pattern stands for."""

    def __init__(self, path: str, files: Sequence[TableFile]) -> None:
        self.files = files
        super().__init__(path, path, files[0].text)

    def _read_schema(self) -> Any:
        schemas = {file.path: file.schema for file in self.files}
        return agreed_schema(schemas, self.files[0].names)

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        schema = pa.schema([self.schema.field(name) for name in columns])
        for file in self.files:
            for batch in file.batches(columns):
                yield from as_schema(batch, schema).to_batches()

    @property
    def paths(self) -> list[str]:
        return [path for file in self.files for path in file.paths]

    @property
    def n_rows(self) -> int | None:
        each = [file.n_rows for file in self.files]
        return sum(filter(None, each)) if None not in each else None

    def loaded_bytes(self, columns: Sequence[str]) -> float:
        return sum(file.loaded_bytes(columns) for file in self.files)


class TextFile(TableFile):
    """CSV or TSV, perhaps compressed. All values are read as text: no type is guessed from the first rows."""

    text: TextFormat

    def _read_schema(self) -> Any:
        opened = gzip.open if self.source.lower().endswith(".gz") else open
        encoding = "utf-8-sig" if self.text.is_utf8 else self.text.encoding
        with opened(self.source, "rt", encoding=encoding, newline="") as file:
            first = _first_line(file)
            self.delimiter = self.text.delimiter or self._told_delimiter(first)
            header = _Header(first, file)
            names = next(csv.reader(header, delimiter=self.delimiter))
            self.has_rows = _has_rows(file, len(names))
        self.block_bytes = max(BLOCK_BYTES, BLOCKS_OF_HEADER * header.n_characters)
        return pa.schema([(name, pa.string()) for name in names])

    def _told_delimiter(self, first_line: str) -> str:
        if self.source.lower().endswith((".tsv", ".tsv.gz")):
            return "\t"
        outside_quotes = re.sub('"[^"]*"', "", first_line)
        return max(",;\t", key=outside_quotes.count)

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        if not self.has_rows:  # pyarrow takes a header without an end of line for an empty file
            return
        yield from pyarrow.csv.open_csv(
            self.source,
            read_options=pyarrow.csv.ReadOptions(block_size=self.block_bytes, encoding=self.text.encoding),
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
        self.file = pyarrow.parquet.ParquetFile(self.source, buffer_size=1 << 16, pre_buffer=False)
        return self.file.schema_arrow

    @property
    def n_rows(self) -> int | None:
        return int(self.file.metadata.num_rows)

    def loaded_bytes(self, columns: Sequence[str]) -> float:
        return self.file.metadata.num_rows * row_bytes(pa.schema([self.schema.field(name) for name in columns]))

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        yield from self.file.iter_batches(_batch_rows(columns), columns=columns, use_threads=False)


class ArrowFile(TableFile):
    """An Arrow IPC file, which Feather files are."""

    def _read_schema(self) -> Any:
        self.file = pa.OSFile(self.source)
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


def open_table(path: str, text: TextFormat) -> TableFile:
    """Open a table file; its suffix says what kind it is. Standard input is CSV. `text` is for text files alone."""
    if path == STANDARD:
        return _StandardInput(text)
    found = files_of(path)
    if found != [path]:
        return TableFiles(path, [open_table(part, text) for part in found])
    for ending, reader in _READERS.items():
        if path.lower().endswith(ending):
            check_regular(path)
            return reader(path, path, text if issubclass(reader, TextFile) else None)
    raise ValueError(f"{path}: the name does not tell what it holds; tables end in {', '.join(_READERS)}")


def check_regular(path: str) -> None:
    """Refuse what is no file: a named pipe would block, and can be read once."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise ValueError(f"{path} is {what}; give a table file, or - for CSV from the standard input")


class _StandardInput(TextFile):
    def __init__(self, text: TextFormat) -> None:
        self.copy = tempfile.NamedTemporaryFile(prefix="quadboost-", suffix=".csv")  # noqa: SIM115  deleted with this
        if sys.stdin is None:
            raise ValueError("the standard input is closed; give a table file, or something to read there")
        shutil.copyfileobj(sys.stdin.buffer, self.copy)
        self.copy.flush()
        super().__init__("standard input", self.copy.name, text)


def _first_line(file: TextIO) -> str:
    while line := file.readline(MOST_HEADER):
        if len(line) == MOST_HEADER:
            raise ValueError(f"its first line, which names the columns, has {MOST_HEADER} characters or more")
        if line.strip("\r\n"):
            return line
    raise ValueError("it is empty; its first line must name the columns")


class _Header:
    """The lines of the names of the columns: the first one, and more where a name in quotes has several."""

    def __init__(self, first_line: str, file: TextIO) -> None:
        self.lines = chain([first_line], iter(lambda: file.readline(BLOCK_BYTES), ""))
        self.n_characters = 0

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.n_characters += len(line)
            yield line


def _has_rows(file: TextIO, n_columns: int) -> bool:
    """Whether something follows the header; in a single column an empty line is a row too."""
    while piece := file.read(BLOCK_BYTES):
        if n_columns == 1 or piece.strip("\r\n"):
            return True
    return False


def _batch_rows(columns: Sequence[str]) -> int:
    return min(BATCH_ROWS, BATCH_CELLS // max(1, len(columns)) + 1)


@contextmanager
def _errors_of(file: TableFile) -> Iterator[None]:
    """Turn reading errors into messages that name the file."""
    path = file.path
    encoding = "UTF-8" if file.text is None else file.text.encoding.upper()
    not_text = f"{path} is not {encoding} text; name its encoding by --encoding, such as latin-1, or convert it"
    try:
        yield
    except UnicodeError:
        raise ValueError(not_text) from None
    except (pa.ArrowException, OSError, EOFError, csv.Error, ValueError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        if "UTF8" in str(error):
            raise ValueError(not_text) from None
        raise ValueError(f"cannot read {path}: {_in_our_words(error, file)}") from error


def _in_our_words(error: Exception, file: TableFile) -> str:
    """What went wrong; limits are told as such."""
    if "field limit" in str(error):
        return f"the name of a column has more than {csv.field_size_limit()} characters, or its quotes do not end"
    if isinstance(file, TextFile) and "straddling" in str(error):
        return f"a row has more than {file.block_bytes} bytes; shorten its fields, or write the table as .parquet"
    return str(error)
