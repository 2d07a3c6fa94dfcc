"""Tables of predictions, written batch by batch: CSV, TSV or Parquet by the name of the file."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ..model.whole_file import whole_file
from .recognise import to_arrow
from .streams import STANDARD

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

Table: TypeAlias = Any  # pyarrow has no types


def check_ending(path: str) -> None:
    if path != STANDARD and not path.lower().endswith(ENDINGS):
        raise ValueError(f"{path}: the name does not tell what to write; it must end in {', '.join(ENDINGS)}, or be -")


@contextmanager
def table_writer(path: str, schema: Any) -> Iterator[Callable[[Table], None]]:
    """Yield a function that writes more rows. The file appears if the block ends without an error, else not at all."""
    name = path.lower()
    if not name.endswith(".parquet"):
        for field in schema:
            _as_text(pa.chunked_array([], field.type), field.name)  # refuse what CSV cannot hold before all the work
    with ExitStack() as stack:
        file: Any = sys.stdout.buffer if path == STANDARD else stack.enter_context(whole_file(path))
        if name.endswith(".parquet"):
            yield stack.enter_context(pyarrow.parquet.ParquetWriter(file, schema)).write_table
            return
        if name.endswith(".gz"):
            # Without name and time, so that the same predictions are the same bytes.
            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        delimiter = "\t" if name.endswith((".tsv", ".tsv.gz")) else ","
        _write_lines(file, [to_arrow(np.array([name], dtype=object)) for name in schema.names], delimiter)
        yield lambda table: _write_lines(file, map(_as_text, table.columns, table.column_names), delimiter)


def _write_lines(file: BinaryIO, columns: Iterable[Any], delimiter: str) -> None:
    """Write rows as CSV, with quotes where they are needed (pyarrow's own writer puts all text in quotes)."""
    fields = [_quoted(column, delimiter) for column in columns]
    lines = pc.binary_join_element_wise(*fields, _scalar(delimiter), null_handling="replace", null_replacement="")
    for chunk in getattr(lines, "chunks", [lines]):
        ended = pc.binary_join_element_wise(chunk, _scalar(""), _scalar("\n"))
        if len(ended):
            _, offsets, text = ended.buffers()
            first, last = np.frombuffer(offsets, np.int32)[[ended.offset, ended.offset + len(ended)]].tolist()
            file.write(memoryview(text)[first:last])


def _as_text(column: Any, name: str) -> Any:
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise ValueError(
            f"Column {name!r} of type {column.type} cannot be written as text; "
            "write a .parquet file, or leave it out of --keep"
        ) from None


def _quoted(column: Any, delimiter: str) -> Any:
    # Empty text too: it differs from a missing value, and a line must not be blank.
    special = pc.match_substring_regex(column, f'^$|["\r\n{delimiter}]')
    if not pc.any(special).as_py():
        return column
    doubled = pc.replace_substring(column, '"', '""')
    in_quotes = pc.binary_join_element_wise(_scalar('"'), doubled, _scalar('"'), _scalar(""))
    return pc.if_else(special, in_quotes, column)


def _scalar(text: str) -> Any:
    return to_arrow(np.array([text], dtype=object))[0]
