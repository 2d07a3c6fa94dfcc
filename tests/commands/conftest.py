"""A table, its model, and a way to run the commands."""

import shutil
import signal

import pytest
from command_line import MAINS, Done, finish, people, start, write_table

import quadboost


@pytest.fixture
def run(capfd, monkeypatch, tmp_path):
    """Run a command in this process, in the directory of the test."""
    monkeypatch.chdir(tmp_path)

    def run(name, *arguments):
        old = signal.getsignal(signal.SIGTERM)
        try:
            with pytest.raises(SystemExit) as end:
                MAINS[f"quadboost-{name}"]([str(argument) for argument in arguments])
        finally:
            signal.signal(signal.SIGTERM, old)
        return Done(end.value.code, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A directory with a table, the model of it, its figures and what was printed, by a process, made once."""
    directory = tmp_path_factory.mktemp("trained")
    write_table(people(), directory / "people.csv")
    columns = ("--target", "label", "--drop", "income", "id")
    train = start("train", "people.csv", *columns, "-o", "model.h5", "--json", "figures.json", cwd=directory)
    (directory / "printed.txt").write_text(finish(train).ok())
    return directory


@pytest.fixture
def table(trained, tmp_path):
    shutil.copy(trained / "people.csv", tmp_path)
    return people()


@pytest.fixture
def model(trained, table, tmp_path):
    shutil.copy(trained / "model.h5", tmp_path)
    return quadboost.load(tmp_path / "model.h5")


@pytest.fixture
def long_table(model, tmp_path):
    with (tmp_path / "people.csv").open("a") as file:
        file.writelines(f"{i},40,Zürich,true,1,,80,low\r\n" for i in range(300_000))
