"""Rows read in chunks: the same answers as from the whole, and chunks that change are refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from quadboost.parts.rows import Rows

Y = np.arange(1000)


def rows(size=130, **more):
    return Rows(lambda: ((np.c_[Y[i : i + size]], Y[i : i + size]) for i in range(0, len(Y), size)), **more)


def test_questions_are_put_to_every_chunk_and_what_is_made_is_made_once():
    made = []

    def make(part):
        made.append(len(part.y))
        return part.X[:, 0] * 2

    for size in (1, 130, 1000, 5000):
        source = rows(size)
        assert source.reduce(lambda part: int(part.y.sum())) == Y.sum()
        made.clear()
        doubled = source.map(make)
        assert not made  # before anything is asked of it
        assert [doubled.reduce(lambda part: int(part.sum())) for _ in range(2)] == [2 * Y.sum()] * 2
        assert sum(made) == 1000
        assert np.array_equal(np.concatenate(doubled.map(lambda part: part + 1).gather()), 2 * Y + 1)
        doubled.close()
        assert np.array_equal(np.concatenate(doubled.gather()), 2 * Y)  # made again
        assert sum(made) == 2000


def test_a_pass_that_was_broken_off_leaves_nothing_behind():
    source = rows(memory=10**6)
    free = source._room.free
    made = source.map(lambda part: part.X)
    with pytest.raises(ZeroDivisionError):
        made.reduce(lambda part: 1 // int(part[0, 0] < 300))
    assert source._room.free == free
    assert np.array_equal(np.concatenate(made.gather())[:, 0], Y)


def test_without_space_what_is_made_is_made_anew_for_every_pass(tmp_path):
    source = rows(memory=1)
    source._room.directory = str(tmp_path / "none")
    made = source.map(lambda part: part.X)
    with pytest.warns(UserWarning, match=r"none cannot be written to .* TMPDIR .* read anew for every pass"):
        assert made.reduce(lambda part: int(part.sum())) == Y.sum()
    assert made.reduce(lambda part: int(part.sum())) == Y.sum()  # and says so once
    assert np.array_equal(np.concatenate(made.gather())[:, 0], Y)


def test_chunks_without_rows_are_left_out():
    def chunks():
        yield np.empty((0, 1)), np.empty(0)
        yield np.ones((3, 1)), np.ones(3), np.arange(3.0)

    assert [len(part.y) for part in Rows(chunks).gather()] == [3]
    with pytest.raises(ValueError, match=r"^there are no rows to learn from$"):
        Rows(lambda: []).gather()


@pytest.mark.parametrize("later", [slice(0, 900), slice(0, 999), slice(0, 0)])
def test_chunks_that_change_between_passes_are_refused(later):
    values = Y
    source = Rows(lambda: ((np.c_[part], part) for part in np.array_split(values, 4)))
    assert source.reduce(lambda part: len(part.y)) == 1000
    values = Y[later]
    with pytest.raises(ValueError, match=r"every pass must read the same rows|no rows"):
        source.reduce(lambda part: len(part.y))


def test_what_is_no_chunk_is_refused():
    with pytest.raises(TypeError, match="chunks is a list, which can be read only once; give a function"):
        Rows([])
    with pytest.raises(TypeError, match=r"a chunk is a ndarray; give \(X, y\) or \(X, y, weight\)"):
        Rows(lambda: [Y]).gather()
    with pytest.raises(ValueError, match="a chunk has 1000 rows and 3 targets"):
        Rows(lambda: [(np.c_[Y], Y[:3])]).gather()
    with pytest.raises(ValueError, match="memory=0 must be"):
        Rows(lambda: [], memory=0)


def test_progress_has_rate_and_remaining_time(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    rows(500, n_rows=1000, verbose=1).reduce(lambda part: 0)
    first, last = capfd.readouterr().err.splitlines()
    assert first.startswith("row 500 of 1000, ")
    assert " s left, " in first
    assert last.startswith("row 1000 of 1000, 0 s left, ")
    assert last.endswith(" a second")
