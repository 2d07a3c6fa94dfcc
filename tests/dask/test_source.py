"""Parts that Dask holds: asked where they are, kept there, and made again when a worker dies."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import clusters  # noqa: E402

from quadboost.dask.collections import parts_of  # noqa: E402
from quadboost.dask.source import LEAST, MOST, DaskSource, _groups, _joined, check_client  # noqa: E402
from quadboost.parts.source import Coded, Part  # noqa: E402


@pytest.fixture
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def client():
    with clusters.two_processes() as client:
        yield client


def table(n_rows=1000, chunks=70):
    numbers = np.random.default_rng(0).integers(0, 200, (n_rows, 4))
    return numbers, parts_of(da.from_array(numbers, chunks=(chunks, -1)), da.from_array(numbers[:, 0], chunks), None)


def source_of(*parts, client=None):
    return DaskSource([dask.delayed(part, traverse=False) for part in parts], client)


@pytest.mark.parametrize("chunks", [1000, 300, 11])  # no tree, one task, several levels
def test_answers_of_all_parts_are_added_up(in_this_process, chunks):
    numbers, source = table(chunks=chunks)
    assert source.reduce(clusters.column_sums).tolist() == numbers.sum(axis=0).tolist()
    codes = source.map(clusters.code)
    source.close()
    assert codes.reduce(clusters.code_sums).tolist() == numbers.sum(axis=0).tolist()


def test_parts_without_rows_are_not_asked(in_this_process):
    some = Part(np.ones((2, 1)), np.zeros(2))
    assert source_of(None, some, None).reduce(clusters.column_sums).tolist() == [2.0]
    assert len(source_of(None, some).map(clusters.code).gather()) == 1
    with pytest.raises(ValueError, match="X has 0 rows in all its partitions"):
        source_of(None, None).reduce(clusters.column_sums)


def test_an_error_tells_the_partition(in_this_process):
    parts = Part(np.ones((2, 1)), np.zeros(2)), Part(np.ones((2, 1)), np.array(["a", "b"]), None, "partition 1")
    with pytest.raises(ValueError, match=r"^partition 1: could not convert string"):
        source_of(*parts).map(clusters.code)


def test_small_parts_of_codes_are_joined_to_one_for_every_thread():
    assert _groups([10] * 100, 8) == [list(range(100))]
    groups = _groups([100_000] * 100, 2)
    assert groups == [list(range(50)), list(range(50, 100))]
    assert len(_groups([1_000_000] * 100, 2)) == -(-100_000_000 // MOST)
    assert len(_groups([LEAST] * 10, 100)) == 10
    uneven = np.random.default_rng(0).integers(0, 400_000, 200).tolist()
    groups = _groups(uneven, 4)
    assert [part for group in groups for part in group] == list(range(200))  # neighbours, in order
    sizes = [sum(uneven[part] for part in group) for group in groups]
    assert max(sizes) < sum(uneven) / 4 + max(uneven)
    assert _groups([0, 0], 2) == [[0, 1]]


def test_joined_parts_have_the_rows_of_all():
    codes = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(3, 2))
    weighted = Coded(codes, np.array([0, 2, 1], np.uint8), np.array([2.0, 3.0, 4.0]), None, 3)
    joined = _joined([weighted, None, weighted])
    assert joined.codes.tolist() == codes.tolist() * 2
    assert joined.labels.tolist() == [0, 2, 1] * 2
    assert joined.weight.tolist() == [2, 3, 4] * 2
    assert (joined.repeats, joined.n_classes) == (None, 3)
    assert _joined([None]) is None


def test_what_is_no_client_is_refused():
    with pytest.raises(TypeError, match=r"client='tcp://somewhere' is no client; give a distributed.Client"):
        check_client("tcp://somewhere")


@pytest.mark.slow
def test_a_client_that_cannot_be_asked_is_refused():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        closed = Client(cluster)
        closed.close()
        with pytest.raises(ValueError, match="the client is closed; give one that runs"):
            check_client(closed)


@pytest.mark.slow
def test_parts_are_asked_and_kept_on_the_workers(client):
    import os

    numbers, source = table()
    codes = source.map(clusters.code)
    source.close()
    for found in (codes, DaskSource(codes.parts, client)):
        n_rows, processes = found.reduce(clusters.rows_and_processes, clusters.both)
        assert n_rows == len(numbers)
        assert os.getpid() not in processes
    codes.close()


@pytest.mark.slow
def test_a_worker_that_dies_costs_nothing_but_time(client, tmp_path):
    numbers, source = table()
    source = clusters.KillingSource(source.parts, client, folder=tmp_path)
    wanted = numbers.sum(axis=0).tolist()
    assert source.reduce(clusters.column_sums).tolist() == wanted
    codes = source.map(clusters.code)
    source.close()  # the rows themselves are let go, and are made again for the codes that are lost
    assert codes.reduce(clusters.code_sums).tolist() == wanted
    assert {path.name for path in tmp_path.iterdir()} == {"column_sums", "code", "code_sums"}
