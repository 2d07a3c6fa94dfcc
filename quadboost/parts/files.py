"""Files of tables as rows in chunks: pyarrow datasets, and Parquet, Feather and CSV files by their names.

Only the columns that are asked for are read, a bounded number of rows at a time. Files must agree on their columns, and
stay as they are from the first pass to the last.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq

from ..data.tables import listed
from .rows import Rows, memory_limit, rows_of_chunk

NUMBER, TEXT, BOOL = "numbers", "text", "true and false"
BYTES_OF_TEXT = 40  # a value, about
ENDS_BYTES = 1 << 12  # of a file's beginning and of its end, which a Parquet file's footer is in
FORMATS = {".parquet": "parquet", ".feather": "feather", ".arrow": "feather", ".csv": "csv"}

Table: TypeAlias = Any  # pyarrow has no types


def rows_of(
    data: Any, target: Any, weight: str | None = None, *, columns: Sequence[str] | None = None,
    drop: Sequence[str] = (), memory: int | None = None, verbose: int = 0,
) -> Rows:  # fmt: skip
    """Rows of a dataset, or of files by their names; see `Rows.of_files`."""
    dataset = data if isinstance(data, ds.Dataset) else open_files(data)
    targets = [target] if isinstance(target, str) else list(target)
    others = targets if weight is None else [*targets, weight]
    names = dataset.schema.names
    for name in [*others, *(columns or ()), *drop]:
        if name not in names:
            raise ValueError(f"there is no column {name!r}, only {listed(names)}")
    features = [name for name in columns or names if name not in others and name not in drop]
    if not features:
        raise ValueError("no column is left to learn from")
    wanted = [*features, *others]
    pieces = _pieces_of(dataset)
    schema = agreed_schema({_path(piece): piece.physical_schema for piece in pieces}, wanted, dataset.schema)
    memory = memory_limit(memory)
    n_rows = rows_of_chunk(memory, row_bytes(schema), f"{len(wanted)} columns")
    unchanged = Unchanged(getattr(dataset, "files", []), getattr(dataset, "filesystem", None))

    def chunks() -> Iterator[tuple[Any, ...]]:
        unchanged.check()
        batches = chain.from_iterable(_batches(dataset, piece, schema, n_rows) for piece in pieces)
        for table in joined(batches, schema, n_rows):
            y = [to_numpy(table.column(name)) for name in targets]
            own = [] if weight is None else [to_numpy(table.column(weight))]
            yield table.select(features), y[0] if isinstance(target, str) else np.column_stack(y), *own
            del table, y, own
        unchanged.check()

    n_all = dataset.count_rows() if all(isinstance(piece, ds.ParquetFileFragment) for piece in pieces) else None
    return Rows(chunks, memory=memory, n_rows=n_all, verbose=verbose)


def open_files(data: Any) -> Any:
    """A dataset of files: a name, a directory, a pattern such as days/*.parquet, or a list of names."""
    paths = [os.fsdecode(data)] if isinstance(data, str | os.PathLike) else [os.fsdecode(path) for path in data]
    found = [path for given in paths for path in files_of(given)]
    kinds = {FORMATS.get(os.path.splitext(path)[1].lower(), path) for path in found}
    if len(kinds) > 1 or not kinds <= set(FORMATS.values()):
        raise ValueError(f"{found[0]}: files must all be Parquet, Feather or CSV, and end in {', '.join(FORMATS)}")
    try:
        return ds.dataset(found, format=kinds.pop())
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"cannot read {listed(paths, 3)}: {error}") from error


def files_of(path: str) -> list[str]:
    """The file itself, those of a directory that are Parquet, at any depth, or those that a pattern stands for."""
    if os.path.isdir(path):
        found = sorted(glob.glob(os.path.join(glob.escape(path), "**", "*.parquet"), recursive=True))
        if not found:
            raise ValueError(f"{path} is a directory without any .parquet file; give a table file")
        return found
    if not os.path.exists(path) and glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))
        if not found:
            raise ValueError(f"{path}: no file has such a name")
        return found
    return [path]


# --- columns ------------------------------------------------------------------------------------------------


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
    types = {path: own.field(name).type for path, own in schemas.items() if name in own.names}
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
    return sum(8 if kind_of_type(field.type, field.name, "") != TEXT else BYTES_OF_TEXT for field in schema)


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
    chunks = (column.cast(pa.uint8()) if is_bool else column).chunks
    dtype = np.dtype(bool if is_bool else column.type.to_pandas_dtype())
    # Not by to_numpy, which imports pandas where it is installed.
    return np.concatenate([np.empty(0, dtype), *(_stored(chunk, dtype) for chunk in chunks)])


def _stored(chunk: Any, dtype: np.dtype) -> np.ndarray:
    return np.frombuffer(chunk.buffers()[1], dtype=dtype)[chunk.offset : chunk.offset + len(chunk)]


# --- batches ------------------------------------------------------------------------------------------------


def _pieces_of(dataset: Any) -> list[Any]:
    try:
        pieces = list(dataset.get_fragments())
    except ValueError:
        raise ValueError(
            "a dataset with a filter or a projection cannot be read in parts; give the rows by "
            "quadboost.Rows(lambda: ...), from its to_batches()"
        ) from None
    if not pieces:
        raise ValueError("the dataset has no files")
    return pieces


def _path(piece: Any) -> str:
    return getattr(piece, "path", "the table")


def _batches(dataset: Any, piece: Any, schema: Any, n_rows: int) -> Iterator[Any]:
    try:
        if not isinstance(piece, ds.ParquetFileFragment):
            options = {"batch_size": n_rows, "batch_readahead": 1, "fragment_readahead": 1}
            yield from piece.to_batches(dataset.schema, columns=schema.names, **options)
            return
        # A dataset would decode whole row groups, however large they are.
        told = ds.get_partition_keys(piece.partition_expression)
        names = [name for name in schema.names if name not in told]
        with pq.ParquetFile(piece.path, filesystem=dataset.filesystem, buffer_size=1 << 20, pre_buffer=False) as file:
            groups = [group.id for group in piece.row_groups]
            for batch in file.iter_batches(n_rows, row_groups=groups, columns=names):
                for name, value in told.items():
                    if name in schema.names:
                        batch = batch.append_column(name, pa.repeat(pa.scalar(value), batch.num_rows))
                yield batch
    except (pa.ArrowException, OSError, EOFError) as error:
        raise ValueError(f"cannot read {_path(piece)}: {error}") from error


def joined(batches: Iterable[Any], schema: Any, n_rows: int) -> Iterator[Table]:
    """Tables of about so many rows, of batches that may be small."""
    waiting, n_waiting = [], 0
    for batch in batches:
        waiting.append(_as(batch, schema))
        n_waiting += batch.num_rows
        del batch
        if n_waiting > n_rows // 2:
            table, waiting, n_waiting = pa.concat_tables(waiting), [], 0
            yield table
            del table
    if n_waiting:
        yield pa.concat_tables(waiting)


def _as(batch: Any, schema: Any) -> Table:
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    table = table.select(schema.names)
    return table if table.schema.types == schema.types else table.cast(schema, safe=False)


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
        return [(own.size, own.mtime_ns, self._ends(own)) for own in self._filesystem.get_file_info(self._paths)]

    def _ends(self, file: Any) -> bytes:
        if not file.is_file:
            return b""
        with self._filesystem.open_input_file(file.path) as opened:
            head = opened.read(ENDS_BYTES)
            opened.seek(max(0, file.size - ENDS_BYTES))
            return hashlib.sha256(head + opened.read(ENDS_BYTES)).digest()
