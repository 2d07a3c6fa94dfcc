"""The fitted model in an HDF5 file, both ways; docs/model-file.md describes the file.

A file may come from a full disk, a killed process or a stranger. `read_model` takes no byte on trust: it
returns a model of which every value has been checked, or raises `ModelFileError`.
"""

import contextlib
import errno
import hashlib
import os
import stat
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from .hdf5 import Dataset, structure
from .record import METADATA_KEYS, ModelFileError, ModelRecord, from_parts, to_parts
from .whole_file import whole_files

__all__ = ["ModelFileError", "ModelRecord", "read_model", "write_model"]

FORMAT = 2  # that is written; those before are read too
MAX_FILE_BYTES = 4 * 2**30
MAX_METADATA_BYTES = 64 * 2**20

_MAGIC = b"QuadBoost model\n"
_USERBLOCK = 512
# Magic, format, bytes after the userblock, SHA-256 of all but these 32 bytes, version of quadboost: so in
# every format. Then sizes, of 8 bytes each: the numbers of voters, of outputs and of bytes of metadata, and in format 2
# of bins with a mass and with an error, of trees, of nodes and of nodes with a mass.
_HEAD = struct.Struct("<16sQQ32s32s")
_DIGEST = slice(32, 64)
_N_SIZES = {1: 3, 2: 9}
_MOST_DATASETS = {1: 8, 2: 32}


def write_model(
    path: str | os.PathLike[str], record: ModelRecord, beside: Mapping[str, bytes] = MappingProxyType({})
) -> str:
    """Write a model. Whatever happens meanwhile, `path` holds the old file or the new one, whole.

    Parameters
    ----------
    path : str or path-like
        A file that exists is replaced and its permissions are kept; a symbolic link is followed.
    record : ModelRecord
    beside : dict from path to content, optional
        Files to be written too: all of them appear, or none.

    Returns
    -------
    str
        SHA-256 of the file in hexadecimal, as `sha256sum` prints it.

    Raises
    ------
    ModelFileError
        If the record is not one that `read_model` would accept.
    OSError
        If the file cannot be written.
    """
    path = os.fsdecode(path)
    try:
        arrays, metadata = to_parts(record)
        data = _pack(arrays, metadata, __version__)
        from_parts(*_unpack(data))  # what could not be read is not written
        _replace(path, data, arrays, beside)
    except ModelFileError as error:
        raise ModelFileError(f"cannot save the model to {path}: {error}") from None
    return hashlib.sha256(data).hexdigest()


def digest_of(record: ModelRecord) -> str:
    """SHA-256 of the file that `write_model` would write, in hexadecimal."""
    return hashlib.sha256(_pack(*to_parts(record), __version__)).hexdigest()


def read_model(path: str | os.PathLike[str], expected_sha256: str | None = None) -> ModelRecord:
    """Read a model that `write_model` wrote.

    Parameters
    ----------
    path : str or path-like
    expected_sha256 : str, optional
        SHA-256 of the file in hexadecimal, as `sha256sum` prints it; any other file is refused. Without it
        damage is found, but not forgery: anybody can make a valid model file.

    Raises
    ------
    ModelFileError
        If the file is not a whole and valid model, or not the expected one.
    OSError
        If there is no such file, or it may not be read.
    """
    path = os.fsdecode(path)
    try:
        data = _read(path)
        if expected_sha256 is not None:
            _check_expected(data, expected_sha256)
        return from_parts(*_unpack(data))
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {path}: {error}") from None


def _layout(n_voters: int, n_outputs: int, n_metadata: int, *n_more: int) -> list[Dataset]:
    """The datasets in the order of the file: the widest numbers first, so all are aligned without gaps."""
    reals, integers, bytes_ = [], [], []
    if n_more:
        n_masses, n_errors, n_trees, n_nodes, n_node_masses, n_patterns = n_more
        reals = [
            Dataset("slope", "<f8", (n_outputs,)),
            Dataset("bin_mass", "<f8", (n_masses,)),
            Dataset("bin_error", "<f8", (n_errors, n_outputs)),
            Dataset("node_threshold", "<f8", (n_nodes,)),
            Dataset("node_weight", "<f8", (n_nodes, n_outputs)),
            Dataset("node_mass", "<f8", (n_node_masses,)),
            Dataset("pattern_mass", "<f8", (n_patterns,)),
        ]
        integers = [
            Dataset("pattern_node", "<i4", (n_patterns,)),
            Dataset("pattern", "<i4", (n_patterns,)),
            Dataset("tree_size", "<i4", (n_trees,)),
            Dataset("node_feature", "<i4", (n_nodes,)),
        ]
        bytes_ = [Dataset("node_missing_right", "|u1", (n_nodes,))]
    return [
        Dataset("threshold", "<f8", (n_voters,)),
        Dataset("weight", "<f8", (n_voters, n_outputs)),
        Dataset("intercept", "<f8", (n_outputs,)),
        *reals,
        *integers,
        Dataset("feature", "<i4", (n_voters,)),
        *bytes_,
        Dataset("kind", "|u1", (n_voters,)),
        Dataset("metadata", "|u1", (n_metadata,)),
    ]


def _pack(arrays: Mapping[str, NDArray[Any]], metadata: bytes, version: str, file_format: int = FORMAT) -> bytes:
    sizes = (*arrays["weight"].shape, len(metadata))
    if file_format > 1:
        names = ("bin_mass", "bin_error", "tree_size", "node_feature", "node_mass", "pattern")
        sizes += tuple(len(arrays[name]) for name in names)
    layout = _layout(*sizes)
    numbers = [arrays[dataset.name].tobytes() for dataset in layout[:-1]]
    body = b"".join([structure(layout, _USERBLOCK, _MOST_DATASETS[file_format]), *numbers, metadata])
    head = _HEAD.pack(_MAGIC, file_format, len(body), b"", version.encode("ascii", "replace"))
    head += struct.pack(f"<{len(sizes)}Q", *sizes)
    return _signed(head.ljust(_USERBLOCK, b"\0") + body)


def _unpack(data: bytes) -> tuple[dict[str, NDArray[Any]], bytes, int]:
    """The arrays, the metadata and the format, when every other byte of the file is known to be right."""
    _check_magic(data)
    _, file_format, n_body, digest, version = _HEAD.unpack_from(data)
    if len(data) != _USERBLOCK + n_body:
        raise ModelFileError(f"it has {len(data)} bytes, not {_USERBLOCK + n_body}: it was cut short or damaged")
    if len(data) > MAX_FILE_BYTES:
        raise ModelFileError(f"it has {len(data)} bytes, at most {MAX_FILE_BYTES} are read")
    if _digest(data) != digest:
        raise ModelFileError("it is damaged: its content is not what its SHA-256 was taken of")
    if file_format not in METADATA_KEYS:
        writer = version.rstrip(b"\0").decode("ascii", "replace")
        raise ModelFileError(
            f"it has format {file_format} and was written by quadboost {writer!r}; this version reads format "
            f"{FORMAT} and older ones: use that version, or a newer one"
        )
    sizes = struct.unpack_from(f"<{_N_SIZES[file_format]}Q", data, _HEAD.size)
    if sizes[2] > MAX_METADATA_BYTES:
        raise ModelFileError(f"it has {sizes[2]} bytes of metadata, at most {MAX_METADATA_BYTES} are read")
    if not sizes[1]:  # then any number of bins and nodes would take no bytes
        raise ModelFileError("there is no output")
    layout = _layout(*sizes)
    start = len(data) - sum(dataset.n_bytes for dataset in layout)
    if start < _USERBLOCK:
        raise ModelFileError(f"it is too short for {sizes} voters, outputs, bytes of metadata, bins, trees and nodes")
    end = _HEAD.size + 8 * len(sizes)
    if data[end:start] != bytes(_USERBLOCK - end) + structure(layout, _USERBLOCK, _MOST_DATASETS[file_format]):
        raise ModelFileError("its HDF5 structure is not the one that quadboost writes")
    arrays = {}
    for dataset in layout[:-1]:
        stored = np.frombuffer(data, dataset.dtype, dataset.n_bytes // int(dataset.dtype[2:]), start)
        arrays[dataset.name] = stored.astype(stored.dtype.newbyteorder("=")).reshape(dataset.shape)
        start += dataset.n_bytes
    return arrays, data[start:], file_format


def _digest(data: bytes) -> bytes:
    digest = hashlib.sha256(data[: _DIGEST.start])
    digest.update(memoryview(data)[_DIGEST.stop :])
    return digest.digest()


def _signed(data: bytes) -> bytes:
    return data[: _DIGEST.start] + _digest(data) + data[_DIGEST.stop :]


def _check_magic(head: bytes) -> None:
    if not head:
        raise ModelFileError("it is empty")
    if head.startswith(_MAGIC):
        if len(head) < _USERBLOCK:
            raise ModelFileError(f"it has only {len(head)} bytes: it was cut short")
    elif head.startswith(b"\x89HDF\r\n\x1a\n"):
        raise ModelFileError("it is an HDF5 file, but not a model that quadboost wrote")
    elif head[0] == 0x80:
        raise ModelFileError("it is a pickle, not a model that quadboost wrote; pickles are never loaded")
    else:
        raise ModelFileError("it is not a model that quadboost wrote")


def _check_expected(data: bytes, expected_sha256: str) -> None:
    expected = expected_sha256.strip().lower()
    if len(expected) != 64 or not set(expected) <= set("0123456789abcdef"):
        raise ModelFileError(f"expected_sha256 is {expected_sha256!r:.80}, not 64 hexadecimal digits")
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise ModelFileError(f"its SHA-256 is {found}, not {expected} as expected")


def _check_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise ModelFileError(f"it is {'a directory' if stat.S_ISDIR(mode) else 'not a regular file'}")


def _read(path: str) -> bytes:
    _check_regular(os.stat(path).st_mode)  # before opening: a named pipe would block
    with open(path, "rb") as file:
        _check_magic(file.read(_USERBLOCK))  # before reading the rest of something else
        size = os.fstat(file.fileno()).st_size
        if size > MAX_FILE_BYTES:
            raise ModelFileError(f"it has {size} bytes, at most {MAX_FILE_BYTES} are read")
        file.seek(0)
        return file.read(size)


def _replace(path: str, data: bytes, arrays: Mapping[str, NDArray[Any]], beside: Mapping[str, bytes]) -> None:
    """Make `data` the content of the file, on the disk on return; after an error it is as it was."""

    def verify(temporary: str) -> None:
        with open(temporary, "rb") as file:
            if file.read() != data or not _libhdf5_agrees(temporary, arrays):
                raise OSError(errno.EIO, "the model did not read back as it was written", path)

    with contextlib.suppress(FileNotFoundError):
        _check_regular(os.stat(path).st_mode)
    with whole_files({path: verify, **dict.fromkeys(beside)}) as files:
        for file, content in zip(files, (data, *beside.values()), strict=True):
            file.write(content)


def _libhdf5_agrees(path: str, arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Whether the reference library reads the same numbers: what we wrote is HDF5, for every other program too."""
    import h5py  # here, so that loading a model does not need it

    try:
        with h5py.File(path, "r", locking=False) as file:
            return file.keys() == {*arrays, "metadata"} and all(
                file[name][()].tobytes() == array.tobytes() for name, array in arrays.items()
            )
    except (RuntimeError, KeyError):  # how h5py says that a file makes no sense
        return False
