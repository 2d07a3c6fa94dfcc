"""Files of sums: damage and forgery are found."""

from __future__ import annotations

import numpy as np
import pytest
from some_sums import DAYS, labels, sums_of

from quadboost.parts import sums_file
from quadboost.parts.sums_file import SumsFileError, load_sums


@pytest.fixture(scope="module")
def kept():
    return sums_of(DAYS[0], labels, False)


def test_any_wrong_byte_is_found(kept, tmp_path):
    path = tmp_path / "day.sums"
    kept.save(path)
    data = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(data), 100).tolist():
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(SumsFileError, match=r"^cannot load .*day\.sums: it "):
            load_sums(path)
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(SumsFileError, match="it is not a file of sums that quadboost wrote"):
        load_sums(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mass", "bins of feature 0|below zero"),
        ("joint_counts", "joint sums of features"),
        ("cuts", "do not ascend|levels of feature"),
        ("n_cuts", "do not go with the features"),
        ("is_level", "not ones that|levels of feature"),
    ],
)
def test_sums_that_no_rows_have_are_refused_also_when_signed(kept, name, message):
    arrays, metadata, file_format = sums_file._KIND.unpack(sums_file._pack(kept)[0])
    wrong = arrays[name].copy()
    wrong[0] += 7
    with pytest.raises((SumsFileError, ValueError), match=message):
        sums_file._from_arrays({**arrays, name: wrong}, metadata, file_format)
