from importlib import metadata
from importlib.resources import files

import pytest

import quadboost
from quadboost import _core
from quadboost._version import __version__


@pytest.fixture
def distribution():
    try:
        return metadata.distribution("quadboost")
    except metadata.PackageNotFoundError:
        pytest.skip("built in place, not installed")


def test_version_is_the_same_everywhere(distribution):
    assert quadboost.__version__ == __version__ == distribution.version


@pytest.mark.parametrize("name", ["py.typed", "_core.pyi"])
def test_type_information_is_shipped(name):
    assert files("quadboost").joinpath(name).is_file()


def test_only_the_package_is_installed(distribution):
    names = {path.name for path in distribution.files}
    if "RECORD" not in names or any(name.startswith("__editable__") for name in names):
        pytest.skip("not installed from a wheel")
    inside = [path for path in distribution.files if path.parts[0] == "quadboost"]
    outside = {path.parts[0] for path in distribution.files} - {"quadboost", ".."}
    assert outside == {f"quadboost-{__version__}.dist-info"}
    assert {path.suffix for path in inside} <= {".py", ".pyc", ".pyi", ".so", ".pyd", ".typed", ".css", ".js"}


def test_commands_can_be_loaded(distribution):
    commands = [entry for entry in distribution.entry_points if entry.group == "console_scripts"]
    assert {entry.name for entry in commands} == {
        "quadboost-train",
        "quadboost-predict",
        "quadboost-export",
        "quadboost-report",
        "quadboost-sums",
    }
    assert all(callable(entry.load()) for entry in commands)


def test_import_is_light(run_python):
    heavy = run_python("import sys, quadboost; print({'sklearn', 'scipy', 'pandas'} & set(sys.modules))")
    assert heavy.strip() == "set()"


def test_core_says_whether_it_uses_openmp():
    assert isinstance(_core.openmp_enabled(), bool)
