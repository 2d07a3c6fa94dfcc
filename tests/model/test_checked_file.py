"""The container of model and sums files; that damage and forgery are found is tested in test_file.py."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from quadboost.model.checked_file import CheckedFileError, Format, Kind
from quadboost.model.hdf5 import Dataset


def layout(n_numbers, n_metadata):
    return [Dataset("numbers", "<i8", (n_numbers,)), Dataset("metadata", "|u1", (n_metadata,))]


KIND = Kind(
    b"QuadBoost tests\n", "a test", {1: Format(("numbers", "bytes of metadata"), 8, layout)}, "number", CheckedFileError
)


def test_another_kind_of_file_has_the_same_defences(tmp_path):
    numbers = np.array([-(2**62), 0, 2**63 - 1])
    data = KIND.pack((3, 2), {"numbers": numbers}, b"{}", "1", 1)
    path = str(tmp_path / "t")
    KIND.write(path, data, {"numbers": numbers})
    arrays, metadata, file_format = KIND.unpack(KIND.read(path))
    assert np.array_equal(arrays["numbers"], numbers)
    assert (metadata, file_format) == (b"{}", 1)
    with h5py.File(path) as file:
        assert np.array_equal(file["numbers"][()], numbers)
    with pytest.raises(CheckedFileError, match="it is not a test that quadboost wrote"):
        KIND.unpack(b"x" * 1000)
    with pytest.raises(CheckedFileError, match="it is damaged"):
        KIND.unpack(data[:-1] + b" ")
    with pytest.raises(CheckedFileError, match="there is no number"):
        KIND.unpack(KIND.pack((0, 2), {"numbers": numbers[:0]}, b"{}", "1", 1))
