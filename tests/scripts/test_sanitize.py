"""The script builds with a sanitizer and counts its reports; its random fits give the same bits in every thread."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sanitize(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("sanitize")


def test_reports_are_counted_by_their_place(sanitize):
    text = "==\nWARNING: ThreadSanitizer: data race (pid=1)\n  x\nSUMMARY: ThreadSanitizer: data race a.c:3 in f\n"
    assert sanitize.REPORT["thread"].findall(2 * text) == ["data race a.c:3 in f"] * 2
    told = "a.c:3:7: runtime error: shift exponent 64 is too large for 64-bit type 'long int'\n"
    assert sanitize.REPORT["undefined"].findall(told) == ["shift exponent 64 is too large for 64-bit type 'long int'"]


def test_all_tests_run_but_those_that_a_sanitizer_cannot_bear(sanitize):
    assert sanitize.left_out(ROOT, "undefined") == []
    found = sanitize.left_out(ROOT, "thread")
    assert "tests/data/test_tables.py" in found
    assert "tests/boosting/test_boost.py" not in found


@pytest.mark.slow
def test_random_fits_from_threads_give_the_same_bits(run_python):
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); "
        "import sanitize; print(sanitize.fit_in_threads(12, 0, 3))"
    )
    assert run_python(code) == "12 problems, the same bits in every thread\n"


def test_every_test_that_the_page_names_is_there():
    page = (ROOT / "docs" / "reliability.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)`", page)
    assert len(named) > 30
    assert all((ROOT / name).exists() for name in named)


def test_other_arguments_are_refused():
    line = [sys.executable, str(ROOT / "scripts" / "sanitize.py"), "--sanitizer", "address"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.returncode, "invalid choice: 'address'" in done.stderr) == (2, True)
