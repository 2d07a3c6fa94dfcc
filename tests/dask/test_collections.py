"""Dask collections as parts: partitions of X, y and weights that belong together, or a sentence that says why not."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from quadboost.dask.collections import is_collection, parts_of  # noqa: E402

N_ROWS = 40


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def frame():
    numbers = np.arange(N_ROWS, dtype=float)
    return pd.DataFrame({"a": numbers, "b": numbers % 3, "c": (numbers % 2).astype(int).astype(str), "y": -numbers})


def rows_of(source):
    """Of each part: X as a list, y and weights."""
    parts = source.gather()
    for part in parts:
        assert len(part.X) == len(part.y)
    return [np.asarray(part.X)[:, 0].tolist() for part in parts], [np.asarray(part.y).tolist() for part in parts]


def test_partitions_of_a_frame_are_parts(frame):
    rows = dd.from_pandas(frame, npartitions=3)
    parts = parts_of(rows[["a", "c"]], rows["y"], rows["b"]).gather()
    assert len(parts) == rows.npartitions
    assert pd.concat([part.X for part in parts]).equals(rows[["a", "c"]].compute())
    assert np.concatenate([part.y for part in parts]).tolist() == frame["y"].tolist()
    assert np.concatenate([part.weight for part in parts]).tolist() == frame["b"].tolist()


def test_frames_with_other_divisions_are_aligned_by_their_index(frame):
    X, y = dd.from_pandas(frame[["a"]], npartitions=4), dd.from_pandas(frame["y"], npartitions=3)
    rows, targets = rows_of(parts_of(X, y, None))
    assert len(rows) == X.npartitions
    assert targets == [[-value for value in part] for part in rows]


def test_frames_without_an_index_in_common_are_refused(frame):
    other = frame["y"].set_axis(frame.index + 1000)
    with pytest.raises(ValueError, match="y has an index from 1000 to 1039, and X from 0 to 39; give both the same"):
        parts_of(dd.from_pandas(frame[["a"]], npartitions=4), dd.from_pandas(other, npartitions=3), None)


def test_blocks_of_an_array_are_parts_also_where_its_columns_are_divided(frame):
    X, y = da.from_array(frame[["a", "b"]].to_numpy(), (7, 1)), da.from_array(frame["y"].to_numpy(), 9)
    source = parts_of(X, y, da.ones(N_ROWS, chunks=N_ROWS))
    rows, targets = rows_of(source)
    assert [len(part) for part in rows] == [7, 7, 7, 7, 7, 5]
    assert targets == [[-value for value in part] for part in rows]
    assert all(part.X.shape[1] == 2 and part.weight.sum() == len(part.y) for part in source.gather())


def test_arrays_whose_sizes_are_not_known_are_parts_if_they_have_as_many_blocks(frame):
    X, y = da.from_array(frame[["a", "b"]].to_numpy(), (7, 1)), da.from_array(frame["y"].to_numpy(), 7)
    few = X[:, 0] > 10  # the first block is empty
    rows, targets = rows_of(parts_of(X[few], y[few], None))
    assert [len(part) for part in rows] == [3, 7, 7, 7, 5]
    assert targets == [[-value for value in part] for part in rows]
    with pytest.raises(ValueError, match="X has 6 partitions and y has 5, and which rows belong together is not known"):
        parts_of(X[few], y.rechunk(9), None)


def test_a_frame_and_an_array_go_together(frame):
    rows = dd.from_pandas(frame, npartitions=3)
    found, targets = rows_of(parts_of(rows[["a"]], rows["y"].to_dask_array(), None))
    assert targets == [[-value for value in part] for part in found]


def test_a_different_number_of_rows_is_refused(frame):
    X = da.from_array(frame[["a"]].to_numpy(), 10)
    with pytest.raises(ValueError, match="X has 40 rows and sample_weight has 39; give one for every row"):
        parts_of(X, X[:, 0], X[1:, 0])
    y = da.from_array(frame["y"].to_numpy(), 10)
    source = parts_of(X, y[~((y < -12) & (y > -15))], None)  # sizes are not known before
    with pytest.raises(ValueError, match="partition 1 has 10 rows of X and 8 of y; give one for every row"):
        source.gather()


def spoilt(frame, change):
    """A collection whose second partition is not as it says."""
    rows = dd.from_pandas(frame, npartitions=3)
    second = rows.divisions[1]
    return rows.map_partitions(
        lambda block: change(block) if block.index[0] == second else block, meta=rows._meta, enforce_metadata=False
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda block: block.rename(columns={"b": "z"}), r"the columns \['a', 'z', 'c', 'y'\], where X says"),
        (lambda block: block[["a", "b", "c"]], "where X says the columns"),
        (lambda block: block.assign(c=1.5), "numbers in column 'c', where X says text or categories; convert it"),
        (lambda block: block.assign(a="x"), "text or categories in column 'a', where X says numbers; convert it"),
    ],
)
def test_a_partition_with_other_columns_is_named(frame, change, message):
    source = parts_of(spoilt(frame, change), dd.from_pandas(frame["y"], npartitions=3), None)
    with pytest.raises(ValueError, match=f"^partition 1 of X .*{message}"):
        source.gather()


def test_whole_and_real_numbers_are_of_one_kind(frame):
    X = spoilt(frame, lambda block: block.assign(a=block["a"].astype(int)))
    assert len(parts_of(X, X["y"], None).gather()) == 3


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((3, 2)), da.ones(3), "X is a ndarray, not a Dask collection; use the plain estimator"),
        (da.ones((3, 2)), np.ones(3), "y is a ndarray, not a Dask collection; make it one, such as dask.array.from_ar"),
        (da.ones((3, 2)), None, "fit requires y to be passed, but y is None"),
        (dask.delayed(1), da.ones(3), "X is a Dask DelayedLeaf; give a Dask DataFrame, Series or Array"),
        (da.ones(3), da.ones(3), r"X has 1 dimension\(s\); give a Dask DataFrame, or an Array of rows and columns"),
    ],
)
def test_what_cannot_be_parts_is_refused(X, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        parts_of(X, y, None)


def test_ordinary_data_are_no_collections(frame):
    assert not any(map(is_collection, (frame, frame["a"], frame.to_numpy(), [[1]], None)))
    assert is_collection(dd.from_pandas(frame, npartitions=2))
