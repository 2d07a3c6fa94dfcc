import gzip
import os

import pytest

pa = pytest.importorskip("pyarrow")

import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402

from quadboost.commands import tables  # noqa: E402
from quadboost.commands.text_format import TextFormat  # noqa: E402


def open_table(path, **how):
    return tables.open_table(path, TextFormat(**how))


def read_text(tmp_path, content, name="table.csv", columns=None, **how):
    path = tmp_path / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    file = open_table(str(path), **how)
    assert file.text is not None
    return file.read(columns or file.names).to_pydict()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,x\n2,y\n"),
        ("t.CSV", "a,b\n1,x\n2,y\n"),
        ("no_last_end.csv", "a,b\n1,x\n2,y"),
        ("crlf.csv", "a,b\r\n1,x\r\n2,y\r\n"),
        ("cr.csv", "a,b\r1,x\r2,y\r"),
        ("mark.csv", "\ufeffa,b\n1,x\n2,y\n"),
        ("blank_lines.csv", "\n\na,b\n\n1,x\n\n2,y\n\n"),
        ("quoted.csv", '"a","b"\n"1","x"\n2,"y"\n'),
        ("semicolons.csv", "a;b\n1;x\n2;y\n"),
        ("tabs.txt", "a\tb\n1\tx\n2\ty\n"),
        ("commas.txt", "a,b\n1,x\n2,y\n"),
        ("t.tsv", "a\tb\n1\tx\n2\ty\n"),
        ("t.csv.gz", "a,b\n1,x\n2,y\n"),
        ("t.tsv.gz", "a\tb\n1\tx\n2\ty\n"),
    ],
)
def test_text_files_are_read_alike(tmp_path, name, content):
    assert read_text(tmp_path, content, name) == {"a": ["1", "2"], "b": ["x", "y"]}


def test_fields_come_as_they_are(tmp_path):
    content = 'n,"a ""name"", ï"\n007,"x, y"\nNA,"two\nlines"\n 1 ,"say ""hi"""\n,\n'
    assert read_text(tmp_path, content) == {
        "n": ["007", "NA", " 1 ", ""],
        'a "name", ï': ["x, y", "two\nlines", 'say "hi"', ""],
    }


def test_a_tsv_may_have_commas_in_its_names(tmp_path):
    assert read_text(tmp_path, "a,b,c\td\n1\t2\n", "t.tsv") == {"a,b,c": ["1"], "d": ["2"]}


def test_empty_lines_are_values_of_a_single_column(tmp_path):
    assert read_text(tmp_path, "a\n1\n\n2\n") == {"a": ["1", "", "2"]}


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "a,b\r\n\r\n"])
def test_a_header_alone_is_a_table_without_rows(tmp_path, content):
    assert read_text(tmp_path, content) == {"a": [], "b": []}


def test_columns_come_in_the_order_asked_for(tmp_path):
    table = pa.table({"a": [1], "b": ["x"], "c": [None]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        assert open_table(str(tmp_path / name)).read(["b", "a"]).to_pydict() == {"b": ["x"], "a": [1]}
    assert list(read_text(tmp_path, "a,b,c\n1,2,3\n", columns=["c", "a"])) == ["c", "a"]


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow", "t.csv"])
def test_batches_are_small_and_together_the_table(tmp_path, monkeypatch, name):
    monkeypatch.setattr(tables, "BATCH_ROWS", 100)
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
    table = pa.table({"a": list(range(1000)), "a.b": [str(i) * 3 for i in range(1000)]})
    path = str(tmp_path / name)
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(table, path, row_group_size=300)
    elif name.endswith(".csv"):
        (tmp_path / name).write_text("a,a.b\n" + "".join(f"{i},{str(i) * 3}\n" for i in range(1000)))
    else:
        pyarrow.feather.write_feather(table, path)
    batches = list(open_table(path).batches(["a.b"]))
    assert len(batches) > 5
    assert max(batch.num_rows for batch in batches) < 300
    assert pa.concat_tables(batches).to_pydict() == {"a.b": table["a.b"].to_pylist()}


def test_a_wide_table_has_fewer_rows_in_a_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_CELLS", 1000)
    pyarrow.parquet.write_table(pa.table({f"x{i}": [0.0] * 100 for i in range(100)}), tmp_path / "t.parquet")
    file = open_table(str(tmp_path / "t.parquet"))
    assert max(batch.num_rows for batch in file.batches(file.names)) == 11


def test_missing_columns_are_all_named(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"t.csv has no column 'x', 'y'; it has 'a', 'b'"):
        open_table(str(tmp_path / "t.csv")).require(["a", "x", "y"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot read .*: it is empty"),
        (b"\n\n", "cannot read .*: it is empty"),
        (b"a,b,a\n1,2,3\n", "more than one column named 'a'"),
        (b"a,b\n1,2\n3\n", "Expected 2 columns, got 1"),
        (b"a,b\n1,2\n3,4,5\n", "Expected 2 columns, got 3"),
        ("a,b\n1,é\n".encode("latin-1"), "is not UTF-8 text"),
        ("a,é\n1,2\n".encode("latin-1"), "is not UTF-8 text"),
        ("a,b\n1,2\n".encode("utf-16"), "is not UTF-8 text"),
    ],
)
def test_text_that_is_no_table_is_refused_by_name(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_text(tmp_path, content)
    assert str(tmp_path / "table.csv") in str(caught.value)


def test_parts_of_files_are_refused(tmp_path):
    (tmp_path / "whole.csv").write_text("a,b\n" + "".join(f"{i},{i * i % 997}\n" for i in range(100_000)))
    table = pa.table({"a": list(range(10_000))})
    pyarrow.parquet.write_table(table, tmp_path / "whole.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "whole.feather")
    packed = gzip.compress((tmp_path / "whole.csv").read_bytes())
    for name, data in [
        ("part.csv.gz", packed[: len(packed) // 2]),
        ("late_part.csv.gz", packed[:-100]),
        ("not.csv.gz", b"a,b\n1,2\n"),
        ("part.parquet", (tmp_path / "whole.parquet").read_bytes()[:-1000]),
        ("part.feather", (tmp_path / "whole.feather").read_bytes()[:-1000]),
        ("text.parquet", b"a,b\n1,2\n"),
        ("text.feather", b"a,b\n1,2\n"),
        ("empty.parquet", b""),
        ("empty.arrow", b""),
    ]:
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(ValueError, match="cannot read ") as caught:
            open_table(str(path)).read(["a"])
        assert str(path) in str(caught.value)


def test_a_name_that_tells_nothing_is_refused(tmp_path):
    (tmp_path / "table.xlsx").write_bytes(b"")
    with pytest.raises(ValueError, match=r"table.xlsx: the name does not tell .* tables end in .csv"):
        open_table(str(tmp_path / "table.xlsx"))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        open_table(str(tmp_path / "no.csv"))
    assert caught.value.filename == str(tmp_path / "no.csv")


@pytest.mark.thinned(1)
@pytest.mark.parametrize(("name", "delimiter"), [("t.tsv", "\t"), ("t.csv", ","), ("t.csv", ";"), ("t.txt", "\t")])
@pytest.mark.parametrize("n_columns", [10_000, 200_000])
def test_wide_tables_are_read(tmp_path, name, delimiter, n_columns):
    names = [f'"a, long; name {i}"' for i in range(n_columns)]
    rows = [delimiter.join([str(row / 7)] * n_columns) for row in range(3)]
    (tmp_path / name).write_text("\n".join([delimiter.join(names), *rows]))
    file = open_table(str(tmp_path / name))
    assert len(file.names) == n_columns
    last = f"a, long; name {n_columns - 1}"
    assert file.read([last]).to_pydict() == {last: [str(row / 7) for row in range(3)]}


def test_rows_after_many_empty_lines_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1000)
    assert read_text(tmp_path, "a,b\n" + "\n" * 5000 + "1,2\n") == {"a": ["1"], "b": ["2"]}


def test_a_quote_within_a_name_begins_nothing(tmp_path):
    assert read_text(tmp_path, 'a"b,c\n1,2\n') == {'a"b': ["1"], "c": ["2"]}


def test_a_name_may_have_several_lines(tmp_path):
    assert read_text(tmp_path, '"a\nb\n,c",d\n1,2\n') == {"a\nb\n,c": ["1"], "d": ["2"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "a,b\n1," + "x" * 3_000_000 + "\n1,2\n",
            "a row has more than 1048576 bytes; shorten its fields, or write .*parquet",
        ),
        ("a,b\n" + "1,2\n" * 1_000_000 + "1," + "x" * 3_000_000, "a row has more than 1048576 bytes"),
        ("a" * 200_000 + ",b\n1,2\n", "the name of a column has more than 131072 characters, or its quotes do not"),
        ('"a,b\n' + "1,2\n" * 100_000, "the name of a column has more than 131072 characters, or its quotes do not"),
    ],
    ids=range(4),
)
def test_what_is_too_long_is_refused_by_the_limit(tmp_path, content, message):
    with pytest.raises(ValueError, match=f"cannot read .*table.csv: {message}"):
        read_text(tmp_path, content)


def test_a_first_line_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST_HEADER", 100)
    with pytest.raises(ValueError, match="its first line, which names the columns, has 100 characters or more"):
        read_text(tmp_path, "a," * 200 + "b\n1\n")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "UTF8"])
def test_text_can_have_another_encoding(tmp_path, encoding):
    found = read_text(tmp_path, "größe,art\n1,süß\n".encode(encoding), encoding=encoding)
    assert found == {"größe": ["1"], "art": ["süß"]}


def test_fields_can_have_another_delimiter(tmp_path):
    assert read_text(tmp_path, "a,b|c\n1,2|3\n", delimiter="|") == {"a,b": ["1,2"], "c": ["3"]}
    assert read_text(tmp_path, "a,b c\n1,2 3\n", "t.tsv", delimiter=" ") == {"a,b": ["1,2"], "c": ["3"]}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.csv.gz"])
def test_a_named_pipe_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=f"{name} is not a regular file; give a table file, or - for CSV"):
        open_table(str(tmp_path / name))


def test_a_directory_without_tables_is_refused(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(ValueError, match=r"t.csv is a directory without any .parquet file; give a table file"):
        open_table(str(tmp_path / "t.csv"))


def test_the_files_of_a_directory_and_of_a_pattern_are_one_table(tmp_path):
    (tmp_path / "a1.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "a2.csv").write_text("y,x\nc,3\n")
    pattern = open_table(str(tmp_path / "a*.csv"))
    assert pattern.read(["y", "x"]).to_pydict() == {"y": ["a", "b", "c"], "x": ["1", "2", "3"]}
    assert [os.path.basename(path) for path in pattern.paths] == ["a1.csv", "a2.csv"]
    for name, column in (("b", [1, 2]), ("a", [0.5])):
        pa.parquet.write_table(pa.table({"x": column}), tmp_path / f"{name}.parquet")
    directory = open_table(str(tmp_path))
    assert directory.read(["x"]).to_pydict() == {"x": [0.5, 1.0, 2.0]}
    assert directory.n_rows == 3
    pa.parquet.write_table(pa.table({"z": [1]}), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"c.parquet has no column 'x', which .*a.parquet has; make the files alike"):
        open_table(str(tmp_path))
