"""Files of plain numbers that may come from a full disk, a killed process or a stranger: no byte is taken on trust.

Every such file begins with a userblock: what it is, its format, its size and a SHA-256. The rest is HDF5 of which all
but the numbers is known beforehand (`hdf5.py`): some datasets, whose sizes the userblock has, and JSON.
"""

import contextlib
import errno
import hashlib
import os
import stat
import struct
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .hdf5 import Dataset, structure
from .whole_file import whole_files

MAX_FILE_BYTES = 4 * 2**30
MAX_METADATA_BYTES = 64 * 2**20

USERBLOCK = 512
# Magic, format, bytes after the userblock, SHA-256 of all but these 32 bytes, version of quadboost: so in every format
# of every kind. Then sizes, of 8 bytes each.
_HEAD = struct.Struct("<16sQQ32s32s")
_DIGEST = slice(32, 64)

Arrays = Mapping[str, NDArray[Any]]


class CheckedFileError(ValueError):
    """A file that is not whole and valid, or content that no file can hold."""


class Format(NamedTuple):
    """One format of a kind of files.

    Attributes
    ----------
    sizes : tuple of str
        What the sizes in the userblock are; one is "bytes of metadata".
    most : int
        Datasets that there is room for.
    layout : callable
        From the sizes to the datasets in the order of the file: the widest numbers first, so all are aligned without
        gaps, and the metadata last.
    """

    sizes: tuple[str, ...]
    most: int
    layout: Callable[..., list[Dataset]]


class Kind(NamedTuple):
    """A kind of files.

    Attributes
    ----------
    magic : bytes
        16 of them.
    what : str
        In words, such as "a model".
    formats : dict from number to Format
        The last one is written, all are read.
    needed : str
        Which size must not be 0: then others could be anything, and take no bytes.
    error : class
        Of the errors.
    """

    magic: bytes
    what: str
    formats: Mapping[int, Format]
    needed: str
    error: type[CheckedFileError]

    def pack(self, sizes: Sequence[int], arrays: Arrays, metadata: bytes, version: str, file_format: int) -> bytes:
        """The bytes of a file."""
        known = self.formats[file_format]
        layout = known.layout(*sizes)
        numbers = [arrays[dataset.name].tobytes() for dataset in layout[:-1]]
        body = b"".join([structure(layout, USERBLOCK, known.most), *numbers, metadata])
        head = _HEAD.pack(self.magic, file_format, len(body), b"", version.encode("ascii", "replace"))
        head += struct.pack(f"<{len(sizes)}Q", *sizes)
        return signed(head.ljust(USERBLOCK, b"\0") + body)

    def unpack(self, data: bytes) -> tuple[dict[str, NDArray[Any]], bytes, int]:
        """The arrays, the metadata and the format, when every other byte of the file is known to be right."""
        self._check_magic(data)
        _, file_format, n_body, digest, version = _HEAD.unpack_from(data)
        if len(data) != USERBLOCK + n_body:
            raise self.error(f"it has {len(data)} bytes, not {USERBLOCK + n_body}: it was cut short or damaged")
        if len(data) > MAX_FILE_BYTES:
            raise self.error(f"it has {len(data)} bytes, at most {MAX_FILE_BYTES} are read")
        if _digest(data) != digest:
            raise self.error("it is damaged: its content is not what its SHA-256 was taken of")
        if file_format not in self.formats:
            writer = version.rstrip(b"\0").decode("ascii", "replace")
            raise self.error(
                f"it has format {file_format} and was written by quadboost {writer!r}; this version reads format "
                f"{max(self.formats)} and older ones: use that version, or a newer one"
            )
        layout, start = self._layout(data, self.formats[file_format])
        arrays = {}
        for dataset in layout[:-1]:
            stored = np.frombuffer(data, dataset.dtype, dataset.n_bytes // int(dataset.dtype[2:]), start)
            arrays[dataset.name] = stored.astype(stored.dtype.newbyteorder("=")).reshape(dataset.shape)
            start += dataset.n_bytes
        return arrays, data[start:], file_format

    def _layout(self, data: bytes, known: Format) -> tuple[list[Dataset], int]:
        """The datasets, and where the first one is, when all before it is known to be right."""
        sizes = struct.unpack_from(f"<{len(known.sizes)}Q", data, _HEAD.size)
        if (n_bytes := sizes[known.sizes.index("bytes of metadata")]) > MAX_METADATA_BYTES:
            raise self.error(f"it has {n_bytes} bytes of metadata, at most {MAX_METADATA_BYTES} are read")
        if not sizes[known.sizes.index(f"{self.needed}s")]:
            raise self.error(f"there is no {self.needed}")
        layout = known.layout(*sizes)
        start = len(data) - sum(dataset.n_bytes for dataset in layout)
        if start < USERBLOCK:
            raise self.error(f"it is too short for {sizes} {', '.join(known.sizes)}")
        end = _HEAD.size + 8 * len(sizes)
        if data[end:start] != bytes(USERBLOCK - end) + structure(layout, USERBLOCK, known.most):
            raise self.error("its HDF5 structure is not the one that quadboost writes")
        return layout, start

    def _check_magic(self, head: bytes) -> None:
        if not head:
            raise self.error("it is empty")
        if head.startswith(self.magic):
            if len(head) < USERBLOCK:
                raise self.error(f"it has only {len(head)} bytes: it was cut short")
        elif head.startswith(b"\x89HDF\r\n\x1a\n"):
            raise self.error(f"it is an HDF5 file, but not {self.what} that quadboost wrote")
        elif head[0] == 0x80:
            raise self.error(f"it is a pickle, not {self.what} that quadboost wrote; pickles are never loaded")
        else:
            raise self.error(f"it is not {self.what} that quadboost wrote")

    def check_expected(self, data: bytes, expected_sha256: str) -> None:
        """Refuse a file with another digest."""
        expected = str(expected_sha256).strip().lower()
        if len(expected) != 64 or not set(expected) <= set("0123456789abcdef"):
            raise self.error(f"the SHA-256 that it should have is {expected_sha256!r:.80}, not 64 hexadecimal digits")
        found = hashlib.sha256(data).hexdigest()
        if found != expected:
            raise self.error(f"its SHA-256 is {found}, not {expected} as expected")

    def _check_regular(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise self.error(f"it is {'a directory' if stat.S_ISDIR(mode) else 'not a regular file'}")

    def read(self, path: str) -> bytes:
        self._check_regular(os.stat(path).st_mode)  # before opening: a named pipe would block
        with open(path, "rb") as file:
            self._check_magic(file.read(USERBLOCK))  # before reading the rest of something else
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE_BYTES:
                raise self.error(f"it has {size} bytes, at most {MAX_FILE_BYTES} are read")
            file.seek(0)
            return file.read(size)

    def write(self, path: str, data: bytes, arrays: Arrays, beside: Mapping[str, bytes] = MappingProxyType({})) -> None:
        """Make `data` the content of the file, on the disk on return; after an error it is as it was."""

        def verify(temporary: str) -> None:
            with open(temporary, "rb") as file:
                if file.read() != data or not _libhdf5_agrees(temporary, arrays):
                    raise OSError(errno.EIO, f"{self.what} did not read back as it was written", path)

        with contextlib.suppress(FileNotFoundError):
            self._check_regular(os.stat(path).st_mode)
        with whole_files({path: verify, **dict.fromkeys(beside)}) as files:
            for file, content in zip(files, (data, *beside.values()), strict=True):
                file.write(content)


def signed(data: bytes) -> bytes:
    """The file with its digest."""
    return data[: _DIGEST.start] + _digest(data) + data[_DIGEST.stop :]


def _digest(data: bytes) -> bytes:
    digest = hashlib.sha256(data[: _DIGEST.start])
    digest.update(memoryview(data)[_DIGEST.stop :])
    return digest.digest()


def _libhdf5_agrees(path: str, arrays: Arrays) -> bool:
    """Whether the reference library reads the same numbers: what we wrote is HDF5, for every other program too."""
    import h5py  # here, so that loading a model does not need it

    try:
        with h5py.File(path, "r", locking=False) as file:
            return file.keys() == {*arrays, "metadata"} and all(
                file[name][()].tobytes() == array.tobytes() for name, array in arrays.items()
            )
    except (RuntimeError, KeyError):  # how h5py says that a file makes no sense
        return False
