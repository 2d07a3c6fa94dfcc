"""Files in chunks: the rows of the whole table, in their order, and files that do not belong together are refused."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from quadboost.parts import files
from quadboost.parts.rows import Rows


def table(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": rng.normal(size=n),
            "kind": pa.array(rng.choice(["x", "y", None], size=n).tolist()),
            "y": rng.integers(0, 2, n),
            "w": rng.integers(1, 4, n),
            "b": pa.array([None if i % 7 == 0 else i for i in range(n)], pa.int32()),
        }
    )


def gathered(rows):
    parts = rows.gather()
    return pa.concat_tables([part.X for part in parts]), np.concatenate([part.y for part in parts]), parts


@pytest.fixture
def small_chunks(monkeypatch):
    """As if rows were large: about forty in a chunk."""
    monkeypatch.setattr(files, "rows_of_chunk", lambda *_: 40)


def write(data, path, **more):
    if path.suffix == ".parquet":
        pq.write_table(data, path, **more)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(data, path)
    else:
        pyarrow.feather.write_feather(data, path)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv"])
def test_chunks_hold_the_rows_of_the_file_in_their_order(name, tmp_path, small_chunks):
    whole = table()
    write(whole, tmp_path / name, **({"row_group_size": 300} if name.endswith("parquet") else {}))
    rows = Rows.of_files(tmp_path / name, "y", "w", drop=["b"])
    X, y, parts = gathered(rows)
    assert X.column_names == ["a", "kind"]
    assert X.column("a").to_pylist() == whole.column("a").to_pylist()
    assert X.column("kind").to_pylist() == whole.column("kind").to_pylist()
    assert np.array_equal(y, whole.column("y").to_pylist())
    assert np.array_equal(np.concatenate([part.weight for part in parts]), whole.column("w").to_pylist())
    assert max(len(part.y) for part in parts) <= 80
    assert rows.reduce(lambda part: len(part.y)) == 1000


def test_a_directory_a_pattern_a_list_and_a_dataset_are_the_same_rows(tmp_path, small_chunks):
    for i in range(5):
        write(table(11 * i, i), tmp_path / f"day{i}.parquet")  # small ones are joined; the first is empty
    (tmp_path / "more").mkdir()
    write(table(100, 9), tmp_path / "more" / "z.parquet")
    paths = sorted(map(str, tmp_path.rglob("*.parquet")))
    expected = gathered(Rows.of_files(paths, "y"))
    assert len(expected[1]) == 210
    assert len(expected[2]) < 10
    for given in (tmp_path, f"{tmp_path}/**/*.parquet", ds.dataset(paths)):
        X, y, _ = gathered(Rows.of_files(given, "y"))
        assert X.equals(expected[0])
        assert np.array_equal(y, expected[1])


def test_columns_in_the_names_of_directories_are_columns(tmp_path):
    for year in (2020, 2021):
        (tmp_path / f"year={year}").mkdir()
        write(table(20), tmp_path / f"year={year}" / "part.parquet")
    X, y, _ = gathered(Rows.of_files(ds.dataset(tmp_path, partitioning="hive"), ["y", "b"], columns=["a", "year"]))
    assert X.column("year").to_pylist() == [2020] * 20 + [2021] * 20
    assert y.shape == (40, 2)


def test_numbers_of_different_types_are_numbers(tmp_path):
    write(pa.table({"a": [1, 2], "y": [0, 1]}), tmp_path / "1.parquet")
    write(pa.table({"y": [1, 0], "a": [0.5, None]}), tmp_path / "2.parquet")
    write(pa.table({"a": pa.nulls(1), "y": [1]}), tmp_path / "3.parquet")
    assert gathered(Rows.of_files(tmp_path, "y"))[0].column("a").to_pylist() == [1.0, 2.0, 0.5, None, None]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"a": [1.0]}, "2.parquet has no column 'y', which .*1.parquet has; make the files alike"),
        ({"y": [1]}, "2.parquet has no column 'a', which .*1.parquet has"),
        ({"a": [1.0], "y": [1], "c": [2]}, "2.parquet has the column 'c', which .*1.parquet does not have"),
        ({"a": ["x"], "y": [1]}, "Column 'a' holds text in .*2.parquet, but numbers in .*1.parquet; make the files"),
        ({"a": [1.0], "y": ["x"]}, "Column 'y' holds text in .*2.parquet, but numbers in"),
    ],
)
def test_files_that_are_not_alike_are_refused(second, message, tmp_path):
    write(pa.table({"a": [1.0], "y": [1]}), tmp_path / "1.parquet")
    write(pa.table(second), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=message):
        Rows.of_files(tmp_path, "y")


def test_a_file_that_changes_between_passes_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    write(table(), path)
    rows = Rows.of_files(path, "y")
    assert rows.reduce(lambda part: len(part.y)) == 1000
    before = os.stat(path)
    write(table(seed=1), path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ValueError, match=r"t\.parquet has changed while it was learnt from, .* begin again"):
        rows.reduce(lambda part: len(part.y))
    rows = Rows.of_files(path, "y")
    with pytest.raises(ValueError, match=r"t\.parquet has changed"):  # also in the middle of a pass
        rows.reduce(lambda part: path.unlink())


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"target": "z"}, "there is no column 'z', only 'a', 'kind'"),
        ({"target": "y", "columns": ["y"]}, "no column is left to learn from"),
        ({"target": "y", "memory": 10_000}, "a memory of 10000 bytes is too small .* give at least 1179648 bytes"),
        ({"target": "y", "files": "no*.parquet"}, "no file has such a name"),
        ({"target": "y", "files": "x.txt"}, "x.txt: files must all be Parquet, Feather or CSV"),
        ({"target": "y", "files": "empty"}, "empty is a directory without any .parquet file"),
        ({"target": "y", "files": "broken.parquet"}, "cannot read .*broken.parquet"),
    ],
)
def test_what_cannot_be_read_is_refused(wanted, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(table(), tmp_path / "t.parquet")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=message):
        Rows.of_files(**{"files": "t.parquet", **wanted})
