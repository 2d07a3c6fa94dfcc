"""The benchmark of choosing runs, at a size that shows nothing but that, and reports what it promises."""

import json
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.slow
def test_the_benchmark_reports_every_part(run_python, tmp_path):
    arguments = ["benchmark_selection.py", "--tiny", "--threads", "1", "--docs", str(tmp_path)]
    printed = run_python(
        f"import runpy, sys; sys.path.insert(0, {str(SCRIPTS)!r}); sys.argv = {arguments!r}; "
        f"runpy.run_path({str(SCRIPTS / arguments[0])!r}, run_name='__main__')"
    )
    assert printed.strip() == (tmp_path / "benchmarks-selection.md").read_text().strip()
    facts = json.loads((tmp_path / "benchmarks-selection.json").read_text())
    assert {"grid", "path"} <= {record["part"] for record in facts["records"]}
    assert len(facts["targets"]) == 3
