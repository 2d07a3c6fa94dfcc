import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from hypothesis import settings

# Threads of OpenMP that wait in vain for a short loop take half of the time of the tests.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

CHECKOUT = Path(__file__).resolve().parent.parent

# `python -m pytest` puts the working directory on sys.path. A checkout that was not built in place must
# not hide the installed package there.
if not any((CHECKOUT / "quadboost" / f"_core{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != CHECKOUT]

# Examples of a test of random data. The thorough ones are for .ci/run, by `pytest --hypothesis-profile=thorough`.
settings.register_profile("quick", max_examples=10, deadline=None)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile("quick")


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow what asks an `oracle`, and most cases of a test that is `thinned`."""
    thinned: dict[str, list[pytest.Item]] = {}
    for item in items:
        for marker in item.iter_markers("oracle"):
            item.add_marker("slow")
            missing = [name for name in marker.args if importlib.util.find_spec(name) is None]
            item.add_marker(
                pytest.mark.skipif(missing != [], reason=f"needs {', '.join(missing)}: the extra 'oracles'")
            )
        if item.get_closest_marker("thinned") and not item.get_closest_marker("slow"):
            thinned.setdefault(item.nodeid.split("[")[0], []).append(item)
    for cases in thinned.values():
        wanted = cases[0].get_closest_marker("thinned").args
        kept = cases[:: -(-len(cases) // wanted[0])] if wanted else every_value_once(cases)
        for item in cases:
            if item not in kept:
                item.add_marker("slow")


def every_value_once(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Enough cases to have every value of every parameter."""
    values = {item: {(name, id(value)) for name, value in item.callspec.params.items()} for item in cases}
    kept: list[pytest.Item] = []
    seen: set[tuple[str, int]] = set()
    while not seen.issuperset(values[most := max(cases, key=lambda item: len(values[item] - seen))]):
        seen |= values[most]
        kept.append(most)
    return kept


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., str]:
    """Run code in a fresh interpreter, with the package that is being tested, and return what it prints."""

    def run(code: str, **environment: str) -> str:
        import quadboost

        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(quadboost.__file__).parents[1]), **environment},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
