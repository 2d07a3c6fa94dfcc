import os
import stat

import pytest

from quadboost.model.whole_file import check_output, whole_file, whole_files


def test_the_file_appears_at_the_end(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with whole_file(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_nothing(tmp_path, error):
    with pytest.raises(error), whole_file(str(tmp_path / "out")) as file:  # noqa: PT012
        file.write(b"half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_permissions_of_the_old_file_are_kept(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    with whole_file(str(path)) as file:
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_new_files_have_the_usual_permissions(tmp_path):
    with whole_file(str(tmp_path / "out")):
        pass
    (tmp_path / "usual").touch()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_is_followed(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    with whole_file(str(tmp_path / "link")) as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_a_device_is_not_replaced():
    with whole_file(os.devnull) as file:
        file.write(b"gone")
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_named():
    with pytest.raises(OSError, match="No space left") as caught, whole_file("/dev/full") as file:
        file.write(b"x" * 100_000)
    assert caught.value.filename == "/dev/full"


def test_a_directory_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, whole_file(str(tmp_path / "no" / "out")):
        pass
    assert caught.value.filename == str(tmp_path / "no")


def test_outputs_that_cannot_be_are_refused_before_any_work(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(IsADirectoryError):
        check_output(str(tmp_path), [])
    with pytest.raises(FileNotFoundError):
        check_output(str(tmp_path / "no" / "out"), [])
    with pytest.raises(NotADirectoryError):
        check_output(str(tmp_path / "file" / "out"), [])
    with pytest.raises(ValueError, match="would be overwritten while it is needed"):
        check_output(str(tmp_path / "link"), [str(tmp_path / "file")])
    check_output(str(tmp_path / "out"), [str(tmp_path / "file"), str(tmp_path / "no")])
    check_output(str(tmp_path / "file"), [str(tmp_path / "out")])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, OSError])
@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize("at", [0, 1])
def test_several_files_appear_or_none(tmp_path, monkeypatch, error, old, at):
    paths = [tmp_path / "first", tmp_path / "second"]
    for path in paths if old else []:
        path.write_text(old)
    replace, done = os.replace, []

    def failing(source, target):
        if len(done) == at:
            raise error
        done.append(target)
        replace(source, target)

    with pytest.raises(error), whole_files(dict.fromkeys(map(str, paths))) as files:  # noqa: PT012
        for file in files:
            file.write(b"new")
        monkeypatch.setattr(os, "replace", failing)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == (
        {"first": old, "second": old} if old else {}
    )


def test_several_files_appear_together(tmp_path):
    paths = [str(tmp_path / name) for name in ("first", "second")]
    with whole_files(dict.fromkeys(paths)) as files:
        for file, path in zip(files, paths, strict=True):
            file.write(path.encode())
        assert len(list(tmp_path.iterdir())) == 2
        assert not any(map(os.path.exists, paths))
    assert {str(path): path.read_text() for path in tmp_path.iterdir()} == {path: path for path in paths}


def test_a_protected_file_is_not_replaced(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError) as caught, whole_file(str(path)):
        pass
    assert caught.value.filename == str(path)
    with pytest.raises(PermissionError):
        check_output(str(path), [])
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
