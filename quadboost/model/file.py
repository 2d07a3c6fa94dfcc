"""The fitted model in an HDF5 file, both ways; docs/model-file.md describes the file.

A file may come from a full disk, a killed process or a stranger. `read_model` takes no byte on trust: it
returns a model of which every value has been checked, or raises `ModelFileError`.
"""

import hashlib
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from .._version import __version__
from ..common.checks import file_name
from .checked_file import Format, Kind
from .hdf5 import Dataset
from .record import ModelFileError, ModelRecord, from_parts, to_parts

__all__ = ["ModelFileError", "ModelRecord", "read_model", "write_model"]

FORMAT = 2  # that is written; those before are read too


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
    path = file_name(path)
    try:
        arrays, metadata = to_parts(record)
        data = _pack(arrays, metadata, __version__)
        from_parts(*_KIND.unpack(data))  # what could not be read is not written
        _KIND.write(path, data, arrays, beside)
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
    path = file_name(path)
    try:
        data = _KIND.read(path)
        if expected_sha256 is not None:
            _KIND.check_expected(data, expected_sha256)
        return from_parts(*_KIND.unpack(data))
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {path}: {error}") from None


def _layout(n_voters: int, n_outputs: int, n_metadata: int, *n_more: int) -> list[Dataset]:
    """The datasets in the order of the file."""
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


_SIZES = ("voters", "outputs", "bytes of metadata")
_MORE_SIZES = ("bins with a mass", "bins with an error", "trees", "nodes", "nodes with a mass", "patterns")
_FORMATS = {1: Format(_SIZES, 8, _layout), FORMAT: Format(_SIZES + _MORE_SIZES, 32, _layout)}
MAGIC = b"QuadBoost model\n"
_KIND = Kind(MAGIC, "a model", _FORMATS, "output", ModelFileError)


def _pack(arrays: Mapping[str, NDArray[Any]], metadata: bytes, version: str, file_format: int = FORMAT) -> bytes:
    sizes = (*arrays["weight"].shape, len(metadata))
    if file_format > 1:
        names = ("bin_mass", "bin_error", "tree_size", "node_feature", "node_mass", "pattern")
        sizes += tuple(len(arrays[name]) for name in names)
    return _KIND.pack(sizes, arrays, metadata, version, file_format)
