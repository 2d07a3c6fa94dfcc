import csv
import datetime
import gzip
import io
import sys

import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet  # noqa: E402

from quadboost.commands.write_table import check_ending, table_writer  # noqa: E402

ROWS = {
    "text": ["plain", 'with "quotes"', "a, comma", "a\nnew line", "", "é\t"],
    "a,name": [1.5, 1e-300, float("inf"), None, 0.1, -0.0],
    "whole": [1, 2, None, 4, 5, 6],
    "flag": [True, False, None, True, True, True],
}


def write(path, table, n_batches=2):
    with table_writer(str(path), table.schema) as write_rows:
        size = -(-table.num_rows // n_batches)
        for start in range(0, table.num_rows, size):
            write_rows(table.slice(start, size))


@pytest.mark.parametrize(
    ("name", "delimiter"), [("o.csv", ","), ("o.csv.gz", ","), ("o.tsv", "\t"), ("o.TSV.gz", "\t")]
)
def test_text_reads_back(tmp_path, name, delimiter):
    write(tmp_path / name, pa.table(ROWS))
    data = (tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    assert header == list(ROWS)
    assert [row[0] for row in rows] == ROWS["text"]
    assert [None if row[1] == "" else float(row[1]) for row in rows] == ROWS["a,name"]
    assert [row[2] for row in rows] == ["1", "2", "", "4", "5", "6"]
    assert [row[3] for row in rows] == ["true", "false", "", "true", "true", "true"]


def test_only_what_needs_quotes_has_them(tmp_path):
    write(tmp_path / "o.csv", pa.table({"a": ["x", "y z", "", "q,", None]}), n_batches=1)
    assert (tmp_path / "o.csv").read_bytes() == b'a\nx\ny z\n""\n"q,"\n\n'


def test_parquet_keeps_the_types(tmp_path):
    table = pa.table(ROWS).append_column("day", [[datetime.date(2020, 1, 1)] * 6])
    write(tmp_path / "o.parquet", table)
    assert pyarrow.parquet.read_table(tmp_path / "o.parquet").equals(table)


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.parquet"])
def test_a_table_without_rows_has_names(tmp_path, name):
    with table_writer(str(tmp_path / name), pa.table(ROWS).schema):
        pass
    if name.endswith(".parquet"):
        assert pyarrow.parquet.read_table(tmp_path / name).schema.names == list(ROWS)
    else:
        data = (tmp_path / name).read_bytes()
        assert (gzip.decompress(data) if name.endswith("gz") else data) == b'text,"a,name",whole,flag\n'


def test_other_types_are_written_as_text(tmp_path):
    table = pa.table(
        {
            "level": pa.array(["a", "b"]).dictionary_encode(),
            "day": [datetime.date(2020, 1, 1), None],
            "none": [None, None],
        }
    )
    write(tmp_path / "o.csv", table)
    assert (tmp_path / "o.csv").read_text() == "level,day,none\na,2020-01-01,\nb,,\n"


def test_what_text_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    with (
        pytest.raises(ValueError, match=r"Column 'list' of type list.* cannot be written as text"),
        table_writer(str(tmp_path / "o.csv"), pa.schema([("list", pa.list_(pa.int64()))])),
    ):
        raise AssertionError("not reached")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["o.csv", "o.tsv.gz", "o.parquet"])
def test_an_error_leaves_what_was_there(tmp_path, name):
    (tmp_path / name).write_text("old")
    table = pa.table(ROWS)
    with pytest.raises(KeyError), table_writer(str(tmp_path / name), table.schema) as write_rows:  # noqa: PT012
        write_rows(table)
        raise KeyError
    assert (tmp_path / name).read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["o.txt", "o", "csv", "o.feather", "o.parquet.gz"])
def test_other_endings_are_refused(name):
    with pytest.raises(ValueError, match=r"the name does not tell what to write; it must end in .csv"):
        check_ending(name)


@pytest.mark.parametrize("name", ["-", "o.csv", "O.CSV", "o.tsv.gz", "o.parquet"])
def test_what_has_a_known_ending_can_be_written(tmp_path, monkeypatch, capfdbinary, name):
    monkeypatch.chdir(tmp_path)
    check_ending(name)
    write(name, pa.table({"a": ["x", "y"]}))
    sys.stdout.flush()
    out = capfdbinary.readouterr().out
    written = [path.read_bytes() for path in tmp_path.iterdir()]
    (data,) = [out, *written] if name == "-" else written
    if name.endswith("parquet"):
        assert pyarrow.parquet.read_table(name).to_pydict() == {"a": ["x", "y"]}
    else:
        assert (gzip.decompress(data) if name.endswith("gz") else data) == b"a\nx\ny\n"
