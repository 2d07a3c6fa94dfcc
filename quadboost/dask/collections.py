"""Dask collections as parts: the partitions of X, y and the weights, put together one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..parts.source import Part
from .source import DaskSource, import_dask


def is_collection(X: Any) -> bool:
    """Whether X is a collection of Dask; nothing is imported to find out."""
    return hasattr(type(X), "__dask_graph__")


def parts_of(X: Any, y: Any, weight: Any, client: Any = None) -> DaskSource[Part]:
    """One part for every partition of X; what is read stays on the workers.

    Passes over the rows as they are would otherwise read them again each time. Collections that the user has persisted
    are left as they are.
    """
    by_name = {"X": X, "y": y} | ({} if weight is None else {"sample_weight": weight})
    for name, collection in by_name.items():
        _check_kind(collection, name)
    if _is_array(X) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    aligned = [X, *(_aligned(collection, X, name) for name, collection in by_name.items() if name != "X")]
    dask = import_dask("dask")
    blocks = [_blocks(collection.persist(scheduler=client)) for collection in aligned]
    make = dask.delayed(_PartMaker(_Columns.of(X)), pure=False, traverse=False)
    return DaskSource([make(number, *of_part) for number, of_part in enumerate(zip(*blocks, strict=True))], client)


def _is_array(collection: Any) -> bool:
    return hasattr(type(collection), "map_blocks")


def _is_frame(collection: Any) -> bool:
    return hasattr(type(collection), "known_divisions")


def _check_kind(collection: Any, name: str) -> None:
    if collection is None:
        raise ValueError(f"fit requires {name} to be passed, but {name} is None")
    if not is_collection(collection):
        remedy = "use the plain estimator" if name == "X" else f"make it one, such as dask.array.from_array({name})"
        raise TypeError(f"{name} is a {type(collection).__name__}, not a Dask collection; {remedy}")
    if not _is_array(collection) and not _is_frame(collection):
        raise TypeError(f"{name} is a Dask {type(collection).__name__}; give a Dask DataFrame, Series or Array")
    n_dimensions = getattr(collection, "ndim", 2)
    if name == "X" and n_dimensions != 2:
        raise ValueError(f"X has {n_dimensions} dimension(s); give a Dask DataFrame, or an Array of rows and columns")
    if name == "X" and np.isnan(len(collection.columns) if _is_frame(collection) else collection.shape[1]):
        raise ValueError("X is an Array with an unknown number of columns; use X.compute_chunk_sizes()")


def _aligned(other: Any, X: Any, name: str) -> Any:
    """With the partitions of X; whether every one has as many rows is seen where it is read."""
    if _is_array(other) and other.ndim > 1 and other.numblocks[1] > 1:
        other = other.rechunk({1: -1})
    if _is_array(X) and _is_array(other) and not (np.isnan(X.shape[0]) or np.isnan(other.shape[0])):
        if X.shape[0] != other.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and {name} has {other.shape[0]}; give one for every row")
        return other.rechunk({0: X.chunks[0]})
    if _is_frame(X) and _is_frame(other) and X.known_divisions and other.known_divisions:
        if X.divisions == other.divisions:
            return other
        ends, wanted = ((collection.divisions[0], collection.divisions[-1]) for collection in (other, X))
        if ends != wanted:
            raise ValueError(
                f"{name} has an index from {ends[0]!r} to {ends[1]!r}, and X from {wanted[0]!r} to {wanted[1]!r}; "
                "give both the same index"
            )
        return other.repartition(divisions=X.divisions)
    if _n_parts(X) != _n_parts(other):
        raise ValueError(
            f"X has {_n_parts(X)} partitions and {name} has {_n_parts(other)}, and which rows belong together is not "
            f"known; make both of one collection, or use X.repartition and {name}.repartition with the same divisions"
        )
    return other


def _n_parts(collection: Any) -> int:
    return int(collection.numblocks[0] if _is_array(collection) else collection.npartitions)


def _blocks(collection: Any) -> list[Any]:
    """Partitions as delayed objects."""
    return list(np.ravel(np.asarray(collection.to_delayed(optimize_graph=False), dtype=object)))


class _Columns(NamedTuple):
    """What a collection says of its columns."""

    names: list[Any] | None  # None: an array
    kinds: list[str]

    @classmethod
    def of(cls, X: Any) -> _Columns:
        if hasattr(X, "columns"):
            return cls(list(X.columns), [_kind(dtype) for dtype in X.dtypes])
        return cls(None, [_kind(X.dtype)] * X.shape[1])

    def check(self, X: Any, part: str) -> None:
        """Refuse a partition that is not as its collection says."""
        found = _Columns.of(X)
        if found.names != self.names or len(found.kinds) != len(self.kinds):
            raise ValueError(f"{part} has {found.words}, where X says {self.words}; give all the same columns")
        for j, (kind, wanted) in enumerate(zip(found.kinds, self.kinds, strict=True)):
            if kind != wanted:
                name = j if self.names is None else repr(self.names[j])
                raise ValueError(f"{part} holds {kind} in column {name}, where X says {wanted}; convert it")

    @property
    def words(self) -> str:
        return f"{len(self.kinds)} columns" if self.names is None else f"the columns {self.names}"


def _kind(dtype: Any) -> str:
    """What a column holds, in words; whole and real numbers are of one kind."""
    if dtype.kind == "b":
        return "true and false"
    is_category = type(dtype).__name__ == "CategoricalDtype"
    return "numbers" if dtype.kind in "iuf" and not is_category else "text or categories"


class _PartMaker(NamedTuple):
    """Puts the partitions of one number together, once they are there."""

    columns: _Columns

    def __call__(self, number: int, X: Any, y: Any, weight: Any = None) -> Part | None:
        name_of_part = f"partition {number}"
        self.columns.check(X, f"{name_of_part} of X")
        for name, other in (("y", y), ("sample_weight", weight)):
            if other is not None and len(other) != X.shape[0]:
                raise ValueError(
                    f"{name_of_part} has {X.shape[0]} rows of X and {len(other)} of {name}; give one for every row"
                )
        return Part(X, y, weight, name_of_part) if X.shape[0] else None
