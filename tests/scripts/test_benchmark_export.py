"""The benchmark of exports runs, at a size that shows nothing but that."""

from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.oracle("onnxmltools", "duckdb")
def test_the_benchmark_has_a_line_for_each_export(run_python):
    arguments = ["benchmark_export.py", "--rows", "300"]
    printed = run_python(
        f"import runpy, sys; sys.argv = {arguments!r}; "
        f"runpy.run_path({str(SCRIPTS / arguments[0])!r}, run_name='__main__')"
    )
    lines = printed.strip().split("\n")
    assert lines[0] == "| export | model | million rows a second | microseconds a row |"
    for name in ("ONNX, float64 (", "ONNX, float64, a row", "LightGBM by", "LightGBM, a row", "DuckDB", "SQLite"):
        assert sum(line.startswith(f"| {name}") for line in lines) == 1
