"""Writes files completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO

from ..common.checks import file_name

Verify = Callable[[str], None]


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing; it replaces the old one when the block ends without an error; see `whole_files`."""
    with whole_files({path: None}) as (file,):
        yield file


@contextlib.contextmanager
def whole_files(verify: Mapping[str, Verify | None]) -> Iterator[list[BinaryIO]]:
    """Open several files at once, by their paths: all are replaced when the block ends without an error, or none is.

    All is on the disk by then. What is given to verify a file is called with the name of the new one before it replaces
    the old one, and may raise. A device or a pipe cannot be replaced and is written as it goes. A file without
    permission to write is not replaced. Errors of writing name the path.
    """
    outputs = [_Output(path) for path in verify]
    try:
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(output.open()) for output in outputs]
            yield opened
            for output, file in zip(outputs, opened, strict=True):
                with output.errors():
                    output.sync(file)
        for output, check in zip(outputs, verify.values(), strict=True):
            if check is not None and output.is_replaced:
                check(output.temporary)
        for output in outputs:
            with output.errors():
                output.replace()
    except BaseException:
        for output in outputs:
            output.undo()
        raise
    for output in outputs:
        with output.errors():
            output.finish()


class _Output:
    """A file to be replaced."""

    def __init__(self, path: str) -> None:
        self.path, self.real = path, os.path.realpath(path)
        self.directory = os.path.dirname(self.real)
        self.old = os.stat(self.real).st_mode if os.path.exists(self.real) else None
        self.is_replaced = self.old is None or stat.S_ISREG(self.old)
        name = os.path.join(self.directory, f".quadboost-{os.urandom(8).hex()}")
        self.temporary, self.backup = f"{name}.tmp", f"{name}-old.tmp"
        self.has_begun = False

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        with self.errors():
            if not self.is_replaced:
                with open(self.real, "wb") as file:
                    yield file
                return
            _check_writable(self.path, self.old)
            os.stat(self.directory)
            mode = 0o666 if self.old is None else 0o600  # not readable by anyone who could not read the original
            with open(self.temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                yield file

    def sync(self, file: BinaryIO) -> None:
        file.flush()
        if self.is_replaced:
            os.fsync(file.fileno())

    def replace(self) -> None:
        if not self.is_replaced:
            return
        if self.old is not None:
            os.chmod(self.temporary, stat.S_IMODE(self.old))
            with contextlib.suppress(OSError):  # not every file system can; then there is no way back
                os.link(self.real, self.backup)
        self.has_begun = True
        os.replace(self.temporary, self.real)

    def undo(self) -> None:
        """Leave what was there before, even if the new file had its name already."""
        with contextlib.suppress(OSError):
            if self.has_begun and self.old is not None:
                os.rename(self.backup, self.real)
            elif self.has_begun and not os.path.exists(self.temporary):
                os.unlink(self.real)
        self._clean_up()

    def finish(self) -> None:
        if self.is_replaced:
            self._clean_up()
            if os.name == "posix":
                _sync_directory(self.directory)

    def _clean_up(self) -> None:
        for name in (self.temporary, self.backup):
            with contextlib.suppress(OSError):
                os.unlink(name)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Errors of writing name the path that the user gave."""
        try:
            yield
        except OSError as error:
            if error.errno is None or isinstance(error, BrokenPipeError):
                raise
            if error.filename is None or ".quadboost-" in os.fsdecode(error.filename):
                raise OSError(error.errno, os.strerror(error.errno), self.path) from error
            raise


def check_output(path: str, inputs: Iterable[str]) -> None:
    """Check early that a file can be written and is not also an input."""
    directory = os.path.dirname(os.path.realpath(file_name(path)))
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISDIR(os.stat(directory).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    _check_writable(path, os.stat(path).st_mode if os.path.exists(path) else None)
    if not os.path.exists(path) and not os.access(directory, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    for other in inputs:
        if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise ValueError(f"{path} would be overwritten while it is needed; give the output another name")


def _check_writable(path: str, mode: int | None) -> None:
    """Refuse a file that is protected: the directory alone would allow to replace it, and root may write anything."""
    if mode is not None and not (os.access(path, os.W_OK) and mode & 0o222):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not every network file system can
            raise
    finally:
        os.close(descriptor)
