"""Tables of Arrow from one or several files: what their columns hold, and that the files belong together."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.fs

NUMBER, TEXT, BOOL = "numbers", "text", "true and false"
BYTES_OF_TEXT = 40  # a value, about
ENDS_BYTES = 1 << 12  # of a file's beginning and of its end, which a Parquet file's footer is in

Table: TypeAlias = Any  # pyarrow has no types


def kind_of_type(type_: Any, name: str, remedy: str) -> str:
    """What a column holds by its type."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if str(type_) in ("string", "large_string", "string_view"):
        return TEXT
    if pa.types.is_boolean(type_):
        return BOOL
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or str(type_).startswith(("decimal", "null")):
        return NUMBER
    what = "dates or times" if pa.types.is_temporal(type_) else "values"
    raise ValueError(f"Column {name!r} holds {what} of type {type_}; {remedy}")


def agreed_schema(schemas: dict[str, Any], wanted: Sequence[str], known: Any = None) -> Any:
    """The schema of some columns of several files: types that can hold the values of all.

    `known` has columns besides those in the files, such as those that the names of directories tell.
    """
    first, one = next(iter(schemas.items()))
    for path, other in schemas.items():
        missing = [name for name in wanted if name not in other.names and (known is None or name in one.names)]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}, which {first} has; make the files alike")
        more = [name for name in other.names if name not in one.names]
        if more:
            raise ValueError(f"{path} has the column {more[0]!r}, which {first} does not have; make the files alike")
    return pa.schema([(name, _agreed_type(name, schemas, known)) for name in wanted])


def _agreed_type(name: str, schemas: dict[str, Any], known: Any) -> Any:
    types = {path: schema.field(name).type for path, schema in schemas.items() if name in schema.names}
    types = {path: type_ for path, type_ in types.items() if not pa.types.is_null(type_)}
    if not types:
        return pa.float64() if known is None or pa.types.is_null(known.field(name).type) else known.field(name).type
    remedy = "convert it to numbers, or leave the column out"
    kinds = {path: kind_of_type(type_, name, remedy) for path, type_ in types.items()}
    (first, kind), *_ = kinds.items()
    for path, other in kinds.items():
        if other != kind:
            raise ValueError(f"Column {name!r} holds {other} in {path}, but {kind} in {first}; make the files alike")
    if len(set(types.values())) == 1:
        return types[first]
    return {NUMBER: pa.float64(), TEXT: pa.string(), BOOL: pa.bool_()}[kind]


def row_bytes(schema: Any) -> float:
    """Bytes that a row takes, about."""
    return sum(BYTES_OF_TEXT if "string" in str(field.type) else 8 for field in schema)


def to_numpy(column: Table) -> np.ndarray:
    """Numbers as such, missing ones as NaN; labels of other kinds as they are, missing ones as None."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if str(column.type).startswith(("decimal", "null")) or (
        kind_of_type(column.type, "", "") == NUMBER and column.null_count
    ):
        column = column.cast(pa.float64()).fill_null(float("nan"))
    if column.null_count or kind_of_type(column.type, "", "") == TEXT:
        return np.array(column.to_pylist())
    is_bool = pa.types.is_boolean(column.type)
    column = column.cast(pa.uint8()) if is_bool else column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    dtype = np.dtype(bool if is_bool else column.type.to_pandas_dtype())
    # Not by to_numpy, which imports pandas where it is installed.
    return np.concatenate([np.empty(0, dtype), *(_stored(chunk, dtype) for chunk in chunks)])


def _stored(chunk: Any, dtype: np.dtype) -> np.ndarray:
    return np.frombuffer(chunk.buffers()[1], dtype=dtype)[chunk.offset : chunk.offset + len(chunk)]


def joined(batches: Iterable[Any], schema: Any, n_rows: int) -> Iterator[Table]:
    """Tables of about so many rows, of batches that may be small."""
    waiting, n_waiting = [], 0
    for batch in batches:
        waiting.append(as_schema(batch, schema))
        n_waiting += batch.num_rows
        del batch
        if n_waiting > n_rows // 2:
            table, waiting, n_waiting = pa.concat_tables(waiting), [], 0
            yield table
            del table
    if n_waiting:
        yield pa.concat_tables(waiting)


def as_schema(batch: Any, schema: Any) -> Table:
    """A table with the columns and types of a schema."""
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    table = table.select(schema.names)
    return table if table.schema.types == schema.types else table.cast(schema, safe=False)


def files_of(path: str) -> list[str]:
    """The file itself, those of a directory that are Parquet, at any depth, or those that a pattern stands for."""
    if os.path.isdir(path):
        found = sorted(glob.glob(os.path.join(glob.escape(path), "**", "*.parquet"), recursive=True))
        if not found:
            raise ValueError(
                f"{path} is a directory without any .parquet file; give a table file, or a pattern in quotes, such as "
                f"'{os.path.join(path, '*.csv')}'"
            )
        return found
    if not os.path.exists(path) and glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise ValueError(f"{path}: no file has such a name")
        return found
    return [path]


class Unchanged:
    """Files as they were when they were first looked at."""

    def __init__(self, paths: Sequence[str], filesystem: Any = None) -> None:
        self._paths = list(paths)
        self._filesystem = pyarrow.fs.LocalFileSystem() if filesystem is None else filesystem
        self._before = self._look()

    def check(self) -> None:
        """Refuse files that have changed."""
        for path, before, now in zip(self._paths, self._before, self._look(), strict=True):
            if before != now:
                raise ValueError(
                    f"{path} has changed while it was learnt from, so its rows are not those that were read before; "
                    "begin again when nobody writes to it"
                )

    def _look(self) -> list[tuple[Any, ...]]:
        """Size, time of the last change, and a digest of the beginning and the end of each file."""
        return [(file.size, file.mtime_ns, self._ends(file)) for file in self._filesystem.get_file_info(self._paths)]

    def _ends(self, file: Any) -> bytes:
        if not file.is_file:
            return b""
        with self._filesystem.open_input_file(file.path) as opened:
            head = opened.read(ENDS_BYTES)
            opened.seek(max(0, file.size - ENDS_BYTES))
            return hashlib.sha256(head + opened.read(ENDS_BYTES)).digest()
