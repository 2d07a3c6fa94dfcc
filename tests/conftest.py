import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent

# `python -m pytest` puts the working directory on sys.path. A checkout that was not built in place must
# not hide the installed package there.
if not any((CHECKOUT / "quadboost" / f"_core{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != CHECKOUT]


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
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
