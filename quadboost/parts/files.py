"""Files of tables as rows in chunks: pyarrow datasets, and Parquet, Feather and CSV files by their names.

Only the columns that are asked for are read, a bounded number of rows at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ..data.tables import listed
from .arrow import Unchanged, agreed_schema, files_of, joined, row_bytes, to_numpy
from .rows import Rows, memory_limit, rows_of_chunk

FORMATS = {".parquet": "parquet", ".feather": "feather", ".arrow": "feather", ".csv": "csv"}


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
            weights = [] if weight is None else [to_numpy(table.column(weight))]
            yield table.select(features), y[0] if isinstance(target, str) else np.column_stack(y), *weights
            del table, y, weights
        unchanged.check()

    n_all = dataset.count_rows() if all(isinstance(piece, ds.ParquetFileFragment) for piece in pieces) else None
    return Rows(chunks, memory=memory, n_rows=n_all, verbose=verbose)


def open_files(data: Any) -> Any:
    """A dataset of files: a name, a directory, a pattern such as days/*.parquet, or a list of names."""
    paths = [os.fsdecode(data)] if isinstance(data, str | os.PathLike) else [os.fsdecode(path) for path in data]
    found = [path for pattern in paths for path in files_of(pattern)]
    kinds = {FORMATS.get(os.path.splitext(path)[1].lower(), path) for path in found}
    if len(kinds) > 1 or not kinds <= set(FORMATS.values()):
        raise ValueError(f"{found[0]}: files must all be Parquet, Feather or CSV, and end in {', '.join(FORMATS)}")
    kind: Any = kinds.pop()
    if kind == "csv":  # an empty field is a missing value in a column of text, too
        kind = ds.CsvFileFormat(convert_options=pcsv.ConvertOptions(strings_can_be_null=True))
    try:
        return ds.dataset(found, format=kind)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"cannot read {listed(paths, 3)}: {error}") from error


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
