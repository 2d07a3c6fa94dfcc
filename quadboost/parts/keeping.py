"""What is made of parts of rows, kept: in memory if all of it fits, else in a temporary file.

The file has no name, so nothing is left of it however the process ends. It is read by plain reads, not mapped: what a
process has mapped counts as its memory.
"""

from __future__ import annotations

import errno
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class NoSpace(ValueError):
    """A temporary file cannot be written."""


class Room:
    """Memory for what sources keep, and where their temporary files are."""

    def __init__(self, memory: int, directory: str | None = None) -> None:
        self.free, self.directory = memory, directory


class Shelf:
    """Values that were put aside one after the other."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._values: list[Any] = []  # themselves, while there is no file; else where they are
        self._n_bytes = 0  # of memory
        self._file: _Spill | None = None

    def add(self, value: Any, share: float) -> None:
        """Put a value aside. `share` is about which part of all it is, 0 if that is not known."""
        pieces = _pieces(value)
        n_bytes = sum(len(piece) for piece in pieces)
        if self._file is None and max(n_bytes, share and n_bytes / share - self._n_bytes) > self._room.free:
            self._move()
        if self._file is None:
            self._room.free -= n_bytes
            self._n_bytes += n_bytes
            self._values.append(value)
        else:
            self._values.append(self._file.add(pieces))

    def _move(self) -> None:
        """Move what is in memory into a file: either all of it is there, or nothing."""
        self._file = _Spill(self._room.directory)
        for i, value in enumerate(self._values):
            self._values[i] = self._file.add(_pieces(value))
        self._give_back()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        for value in self._values:
            yield value if self._file is None else self._file.value(value)

    def close(self) -> None:
        self._values = []
        self._give_back()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _give_back(self) -> None:
        self._room.free += self._n_bytes
        self._n_bytes = 0


def _pieces(value: Any) -> list[memoryview]:
    """A value as bytes; arrays are not copied."""
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return [memoryview(head), *(array.raw() for array in arrays)]


class _Spill:
    """A temporary file of values. Nobody else can write to it, so what is unpickled is what was pickled."""

    def __init__(self, directory: str | None) -> None:
        self._directory = tempfile.gettempdir() if directory is None else directory
        self._end = 0
        with self._errors():
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115

    def add(self, pieces: Sequence[memoryview]) -> tuple[int, list[int]]:
        """Write the pieces, and return where they are: the first byte, and the size of each."""
        start, sizes = self._end, [len(piece) for piece in pieces]
        with self._errors():
            self._file.seek(start)
            for piece in pieces:
                while len(piece):
                    piece = piece[self._file.write(piece) :]
        self._end += sum(sizes)
        return start, sizes

    def value(self, kept_at: tuple[int, list[int]]) -> Any:
        start, sizes = kept_at
        self._file.seek(start)
        pieces = [np.empty(size, dtype=np.uint8).data for size in sizes]  # not filled with zeros first
        for rest in pieces:
            while len(rest):
                n_read = self._file.readinto(rest)  # type: ignore[attr-defined]  # a file without a buffer has it
                if not n_read:
                    raise OSError(errno.EIO, "a temporary file was cut short", self._directory)
                rest = rest[n_read:]
        return pickle.loads(pieces[0], buffers=pieces[1:])

    def close(self) -> None:
        self._file.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in NO_SPACE:
                reason = f"no space is left in {self._directory}"
            else:
                reason = f"{self._directory} cannot be written to ({error.strerror})"
            raise NoSpace(
                f"{reason}, where the codes of rows are kept that do not fit into memory; set the environment variable "
                "TMPDIR to a directory with more space, or give more memory"
            ) from error
