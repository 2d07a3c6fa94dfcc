"""Rows that are read in chunks, as often as a fit asks for them: tables that do not fit into memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import reduce
from operator import add
from typing import Any, Generic, TypeVar, cast

from ..common.checks import at_least
from ..common.memory import free_memory
from ..common.progress import steps_of
from .keeping import NoSpace, Room, Shelf
from .source import Part, Source, is_source

P = TypeVar("P")
A = TypeVar("A")

SHARE_OF_FREE = 0.5  # of the memory that is free, where no limit is given
UNKNOWN_MEMORY = 2 << 30  # where it is not known how much is free
SHARE_KEPT = 0.25  # of the memory, for what is made of all rows
SHARE_OF_CHUNK = 0.0625  # for a chunk as it was read; while the next one is read there are two, and a matrix of each
MOST_ROWS, LEAST_ROWS = 1 << 20, 1 << 10  # of a chunk


def memory_limit(memory: int | None) -> int:
    """A limit in bytes: as given, or a share of what is free."""
    if memory is not None:
        return at_least("memory", memory, 1)
    free = free_memory()
    return UNKNOWN_MEMORY if free is None else int(SHARE_OF_FREE * free)


def rows_of_chunk(memory: int, row_bytes: float, what: str) -> int:
    """How many rows to read at a time."""
    n_rows = int(SHARE_OF_CHUNK * memory / max(1.0, row_bytes))
    if n_rows < LEAST_ROWS:
        least = int(LEAST_ROWS * row_bytes / SHARE_OF_CHUNK)
        raise ValueError(
            f"a memory of {memory} bytes is too small to read {what}, whose rows have {row_bytes:.0f} bytes; "
            f"give at least {least} bytes, or leave columns out"
        )
    return min(MOST_ROWS, n_rows)


def as_source(X: Any, y: Any, sample_weight: Any, verbose: int) -> Source[Part] | None:
    """What a fit was given as rows in parts, or None if it is a table in memory."""
    if is_source(X):
        if y is not None or sample_weight is not None:
            raise ValueError("rows in parts have their targets and weights with them; leave y and sample_weight out")
        return cast("Source[Part]", X)
    if not type(X).__module__.startswith("pyarrow._dataset"):
        return None
    names = [y] if isinstance(y, str) else y
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not names:
        raise TypeError(f"y={y!r:.60} must name the column of the dataset to predict, or be a list of such names")
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise TypeError(f"sample_weight={sample_weight!r:.60} must name a column of the dataset")
    return Rows.of_files(X, y, sample_weight, verbose=verbose)


class Streamed(Generic[P]):
    """Parts that are read one after the other, as often as they are asked for."""

    def __init__(self, room: Room, verbose: int) -> None:
        self._room, self._verbose = room, verbose
        self.n_threads: int | None = None

    @property
    def room(self) -> int:
        """Bytes of codes that a fit may bring into memory where that is quicker."""
        return self._room.free // 2  # they are copied on the way

    def parts(self) -> Generator[P, None, None]:
        """The parts, read anew."""
        raise NotImplementedError

    def size(self, number: int) -> int:
        """How many rows a part has that was read before."""
        raise NotImplementedError

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if that is known."""
        raise NotImplementedError

    def reduce(self, question: Callable[[P], A], add: Callable[[A, A], A] = add) -> A:
        """The sum of the answers of all parts to a question."""
        with closing(self._told()) as parts:
            return reduce(add, map(question, parts))

    def map(self, make: Callable[[P], Any]) -> Source[Any]:
        """What is made of each part, as another source."""
        return Made(self, make)

    def gather(self) -> list[P]:
        """All parts, in memory."""
        return list(self.parts())

    def close(self) -> None:
        """Nothing is kept of these parts themselves."""

    def _told(self) -> Generator[P, None, None]:
        """The parts, with progress."""
        with closing(self.parts()) as parts, steps_of(self._verbose, self.n_rows, "row") as tell:
            for number, part in enumerate(parts):
                yield part
                del part  # while the next one is read
                tell(self.size(number))


class Made(Streamed[Any]):
    """What is made of parts. It is made when it is first asked for, and then kept; without space, it is made anew."""

    def __init__(self, source: Streamed[Any], make: Callable[[Any], Any]) -> None:
        super().__init__(source._room, source._verbose)
        self._source, self._make = source, make
        self._shelf: Shelf | None = None
        self._has_space = True

    def size(self, number: int) -> int:
        return self._source.size(number)

    @property
    def n_rows(self) -> int | None:
        return self._source.n_rows

    def parts(self) -> Generator[Any, None, None]:
        if self._shelf is not None:
            yield from self._shelf
            return
        shelf = Shelf(self._room)
        try:
            for number, part in enumerate(self._source.parts()):
                made = self._make(part)
                del part
                if self._has_space:
                    self._keep(shelf, made, self.size(number) / self.n_rows if self.n_rows else 0.0)
                yield made
                del made
        except BaseException:  # also when the reader stops early
            shelf.close()
            raise
        self._shelf = shelf if self._has_space else None

    def _keep(self, shelf: Shelf, made: Any, share: float) -> None:
        try:
            shelf.add(made, share)
        except NoSpace as error:
            self._has_space = False
            shelf.close()
            warnings.warn(
                f"{error}. Until then all rows are read anew for every pass, which takes longer", stacklevel=2
            )

    def close(self) -> None:
        if self._shelf is not None:
            self._shelf.close()
            self._shelf = None


class Rows(Streamed[Part]):
    """Rows that are read in chunks, for tables that do not fit into memory.

    `QuadBoostClassifier().fit(rows)` and the other estimators learn the same model from them, bit for bit, as from the
    whole table; they read the chunks several times.

    Parameters
    ----------
    chunks : callable
        Called without arguments for each pass over the rows, it returns an iterable of (X, y) or (X, y, weight): the
        same ones each time, in the same order. X is an array, or a pandas, polars or pyarrow table; y and weight have
        an entry for each of its rows.
    memory : int, optional
        Bytes to get by with, beside the chunks themselves; None: half of what is free. What does not fit is kept in a
        temporary file, in the directory that the environment variable TMPDIR names.
    n_rows : int, optional
        How many rows there are, if that is known: to tell how long it will take, and whether all will fit.
    verbose : int
        1: show progress of each pass, by a bar; 2: by a line every few seconds.

    Examples
    --------
    >>> def chunks():
    ...     for path in sorted(glob.glob("days/*.npz")):
    ...         with np.load(path) as day:
    ...             yield day["X"], day["y"]
    >>> QuadBoostRegressor().fit(Rows(chunks))
    """

    def __init__(
        self, chunks: Callable[[], Iterable[Any]], *, memory: int | None = None, n_rows: int | None = None,
        verbose: int = 0,
    ) -> None:  # fmt: skip
        if not callable(chunks):
            raise TypeError(
                f"chunks is a {type(chunks).__name__}, which can be read only once; give a function that returns the "
                "chunks anew each time"
            )
        self.chunks, self.memory = chunks, memory_limit(memory)
        super().__init__(Room(int(SHARE_KEPT * self.memory)), verbose)
        self._n_rows, self._sizes = n_rows, list[int]()
        self._is_known = False  # whether all chunks were read once

    @classmethod
    def of_files(
        cls, files: Any, target: Any, weight: str | None = None, *, columns: Sequence[str] | None = None,
        drop: Sequence[str] = (), memory: int | None = None, verbose: int = 0,
    ) -> Rows:  # fmt: skip
        """Rows of files, read in chunks of bounded memory; needs pyarrow.

        Parameters
        ----------
        files : str, path, list of them, or pyarrow.dataset.Dataset
            Parquet, Feather or CSV, by the ends of the names; also a directory of Parquet files, or a pattern such as
            "days/*.parquet". All must have the same columns. What the columns of CSV files hold, pyarrow tells from
            their first rows; fields that are empty, NA, NULL or NaN are missing values.
        target : str, or list of str for several targets
            Column to predict.
        weight : str, optional
            Column with the weights of the rows.
        columns : list of str, optional
            Columns to learn from; others are not read.
        drop : list of str
            Columns not to learn from.
        memory : int, optional
            As for `Rows`.
        verbose : int
            As for `Rows`.
        """
        from .files import rows_of

        return rows_of(files, target, weight, columns=columns, drop=drop, memory=memory, verbose=verbose)

    def size(self, number: int) -> int:
        return self._sizes[number]

    @property
    def n_rows(self) -> int | None:
        return sum(self._sizes) if self._is_known else self._n_rows

    def parts(self) -> Generator[Part, None, None]:
        """The chunks that have rows; as many each time."""
        number = 0
        if not self._is_known:
            self._sizes = []
        for chunk in self.chunks():
            part = _part(chunk)
            n_rows = len(part.y)
            if n_rows:
                self._check(number, n_rows)
                number += 1
                yield part
            del chunk, part
        if not number:
            raise ValueError("there are no rows to learn from")
        self._check(number, 0)
        self._is_known = True

    def _check(self, number: int, n_rows: int) -> None:
        """Refuse chunks that are not those of the first pass; note them if this is the first. 0 rows: the end."""
        if not self._is_known:
            self._sizes += [n_rows] if n_rows else []
        elif n_rows != (self._sizes[number] if number < len(self._sizes) else 0):
            raise ValueError(
                f"chunk {number} has {n_rows} rows, and another number when it was first read; "
                "every pass must read the same rows"
            )


def _part(chunk: Any) -> Part:
    if not isinstance(chunk, tuple) or len(chunk) not in (2, 3):
        what = f"{len(chunk)} things" if isinstance(chunk, tuple) else f"a {type(chunk).__name__}"
        raise TypeError(f"a chunk is {what}; give (X, y) or (X, y, weight)")
    part = Part(*chunk)
    n_rows = part.X.shape[0] if hasattr(part.X, "shape") else len(part.X)
    for name, values in (("targets", part.y), ("weights", part.weight)):
        if values is not None and len(values) != n_rows:
            raise ValueError(f"a chunk has {n_rows} rows and {len(values)} {name}; give one for each row")
    return part
