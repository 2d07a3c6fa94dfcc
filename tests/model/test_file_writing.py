"""Whatever happens while a model is written, a whole one is there."""

import errno
import os
import random
import signal
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from model_files import bits, example, large, many_outputs, start_python

from quadboost.model import checked_file
from quadboost.model.file import read_model, write_model
from quadboost.model.hdf5 import structure


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.h5"


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    old = os.umask(0o022)
    yield os.umask
    os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_permissions_of_any_new_file(path: Path, umask: Callable[[int], int]) -> None:
    umask(0o027)
    write_model(path, example())
    assert mode(path) == 0o640


@pytest.mark.parametrize("old_mode", [0o600, 0o664])
def test_a_replaced_file_keeps_its_permissions(old_mode: int, path: Path, umask: Callable[[int], int]) -> None:
    path.touch()
    path.chmod(old_mode)
    write_model(path, example())
    assert mode(path) == old_mode


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "v2.h5", tmp_path / "current.h5"
    link.symlink_to("there/v2.h5")
    for record in (example(), many_outputs()):  # first the target does not exist, then it does
        write_model(link, record)
        assert link.is_symlink()
        assert bits(read_model(target)) == bits(read_model(link)) == bits(record)
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["current.h5", "there", "v2.h5"]


def test_a_path_may_be_relative_or_text_or_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.h5", b"b.h5", Path("c.h5"), "x" * 255):
        write_model(name, example())  # type: ignore[arg-type]
        assert bits(read_model(name)) == bits(example())  # type: ignore[arg-type]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"'{tmp_path}/nowhere'"):
        write_model(tmp_path / "nowhere" / "model.h5", example())


def fail(error: BaseException) -> Callable[..., None]:
    def failing(*_: object, **__: object) -> None:
        raise error

    return failing


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_an_error_leaves_the_old_model_and_no_litter(
    step: str, error: BaseException, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(path, many_outputs())
    monkeypatch.setattr(os, step, fail(error))
    with pytest.raises(type(error)):
        write_model(path, example())
    assert bits(read_model(path)) == bits(many_outputs())
    assert os.listdir(path.parent) == [path.name]


def test_a_disk_that_does_not_keep_what_is_written_is_found_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(path, many_outputs())

    def losing(descriptor: int) -> None:
        os.ftruncate(descriptor, 100)

    monkeypatch.setattr(os, "fsync", losing)
    with pytest.raises(OSError, match="did not read back as it was written"):
        write_model(path, example())
    assert bits(read_model(path)) == bits(many_outputs())
    assert os.listdir(path.parent) == [path.name]


def test_all_is_on_the_disk_before_the_name_and_the_name_on_return(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace_file = os.fsync, os.replace

    def recording_fsync(descriptor: int) -> None:
        calls.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def recording_replace(old: str, new: str) -> None:
        calls.append("name")
        replace_file(old, new)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "replace", recording_replace)
    write_model(path, example())
    assert calls == ["file", "name", "directory"]


def test_a_file_system_that_cannot_sync_directories_will_do(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    write_model(path, example())
    assert bits(read_model(path)) == bits(example())


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_model_and_no_litter(path: Path) -> None:
    """The limit on the size of a file makes the kernel refuse to write on, as it does when a disk is full."""
    write_model(path, large(1.0))
    code = """
import resource, signal, sys
from model_files import large
from quadboost.model.file import write_model
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    write_model(sys.argv[1], large(2.0))
except OSError as error:
    print(error.strerror)
"""
    out, errors = start_python(path.parent, code, path).communicate(timeout=600)
    assert out.strip() == os.strerror(errno.EFBIG), errors
    assert bits(read_model(path)) == bits(large(1.0))
    assert os.listdir(path.parent) == [path.name]


def kill_writers(path: Path, n_kills: int) -> None:
    code = """
import itertools, sys
from model_files import large
from quadboost.model.file import write_model
records = large(1.0), large(2.0)
for k in itertools.count():
    write_model(sys.argv[1], records[k % 2])
    if k == 0:
        print("ready", flush=True)
"""
    whole = [bits(large(1.0)), bits(large(2.0))]
    rng = random.Random(0)
    for _ in range(n_kills):
        writer = start_python(path.parent, code, path)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        for _ in range(5):
            time.sleep(rng.uniform(0, 0.02))
            assert bits(read_model(path)) in whole  # also while it is being replaced
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        assert bits(read_model(path)) in whole


@pytest.mark.slow
def test_a_killed_writer_leaves_a_whole_model(path: Path) -> None:
    kill_writers(path, 5)


@pytest.mark.slow
def test_many_killed_writers_leave_a_whole_model(path: Path) -> None:
    kill_writers(path, 100)


def test_a_file_that_libhdf5_would_not_read_never_takes_the_place_of_the_old_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(path, example())
    before = path.read_bytes()

    def shifted(*arguments: Any) -> bytes:
        return structure(*arguments).replace(b"SNOD", b"SNOT")

    monkeypatch.setattr(checked_file, "structure", shifted)  # our own reader would not see it
    with pytest.raises(OSError, match="did not read back"):
        write_model(path, example())
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
