"""What is kept comes back as it was, in memory or from a file that has no name."""

from __future__ import annotations

import os
import resource
import tempfile

import numpy as np
import pytest

from quadboost.parts.keeping import Room, Shelf
from quadboost.parts.source import Coded

VALUES = [Coded(np.full((5, 3), i, np.uint8), np.arange(5.0)[:, None], None, np.arange(5)) for i in range(7)]


@pytest.mark.parametrize("memory", [0, 1000, 10**6])
@pytest.mark.parametrize("share", [0.0, 1 / 7])
def test_values_come_back_bit_for_bit(memory, share, tmp_path):
    room = Room(memory, str(tmp_path))
    shelf = Shelf(room)
    for value in VALUES:
        shelf.add(value, share)
    for _ in range(2):
        for found, value in zip(shelf, VALUES, strict=True):
            assert isinstance(found, Coded)
            assert found.weight is None
            for array, other in ((found.codes, value.codes), (found.y, value.y), (found.repeats, value.repeats)):
                assert array.dtype == other.dtype
                assert np.array_equal(array, other)
    assert os.listdir(tmp_path) == []  # also while it is used
    assert (room.free == memory) == (memory < 10**6)  # all is in memory, or nothing
    shelf.close()
    assert room.free == memory


def test_a_share_tells_at_once_that_not_all_will_fit(tmp_path):
    room = Room(1000, str(tmp_path))
    shelf = Shelf(room)
    shelf.add(VALUES[0], 0.1)
    assert room.free == 1000
    shelf.close()


def test_no_space_is_one_sentence_that_names_the_directory():
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    shelf = Shelf(Room(0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(ValueError, match=f"^no space is left in {tempfile.gettempdir()}, .* TMPDIR .*more memory$"):
            shelf.add(np.zeros(100_000), 0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    shelf.close()
    with pytest.raises(ValueError, match=r"^/no/such/place cannot be written to .* TMPDIR"):
        Shelf(Room(0, "/no/such/place")).add(1, 0.0)
