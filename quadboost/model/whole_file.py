"""Writes a file completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: str, verify: Callable[[str], None] | None = None) -> Iterator[BinaryIO]:
    """Open a file for writing; it replaces the old one when the block ends without an error.

    All is on the disk by then. `verify` is called with the name of the new file before it replaces the old one, and
    may raise. A device or a pipe cannot be replaced and is written as it goes. Errors of writing name `path`.
    """
    real = os.path.realpath(path)
    try:
        old = os.stat(real).st_mode if os.path.exists(real) else None
        if old is not None and not stat.S_ISREG(old):
            with open(real, "wb") as file:
                yield file
            return
        os.stat(os.path.dirname(real))
        temporary = os.path.join(os.path.dirname(real), f".quadboost-{os.urandom(8).hex()}.tmp")
        mode = 0o666 if old is None else 0o600  # not readable by anyone who could not read the original
        try:
            with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if verify is not None:
                verify(temporary)
            if old is not None:
                os.chmod(temporary, stat.S_IMODE(old))
            os.replace(temporary, real)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if os.name == "posix":
            _sync_directory(os.path.dirname(real))
    except OSError as error:
        if error.errno is None or isinstance(error, BrokenPipeError):
            raise
        if error.filename is None or ".quadboost-" in os.fsdecode(error.filename):
            raise OSError(error.errno, os.strerror(error.errno), path) from error
        raise


def check_output(path: str, inputs: Iterable[str]) -> None:
    """Check early that a file can be written and is not also an input."""
    directory = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISDIR(os.stat(directory).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
    if not os.access(path if os.path.exists(path) else directory, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    for other in inputs:
        if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise ValueError(f"{path} would be overwritten while it is needed; give the output another name")


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not every network file system can
            raise
    finally:
        os.close(descriptor)
