"""The script behind docs/defaults.md runs, at a size that shows nothing but that."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "scripts")
    script = importlib.import_module("measure_defaults")
    monkeypatch.setattr(script, "SQRT_M_TIMES_L1", (0.4, 1.0, 3.0))
    short = {mode: (0.3, *values[-2:]) for mode, values in script.M_BY_K_TIMES_L2.items()}
    monkeypatch.setattr(script, "M_BY_K_TIMES_L2", short)
    monkeypatch.setattr(script, "VARIANTS", {name: values[:2] for name, values in script.VARIANTS.items()})
    monkeypatch.setattr(script, "ESTIMATORS", {"QuadBoost": script.ESTIMATORS["QuadBoost"]})
    monkeypatch.setattr(script, "LINF", (0.3, 1.0, 3.0))
    monkeypatch.setattr(script, "ROUNDS", (10, 30))
    return script


@pytest.fixture
def records(script):
    tables = [next(script.made_tables([40])), *(table for table in script.shipped_tables() if table.name == "iris")]
    return pd.DataFrame([record for table in tables for record in script.measure(table, 0)])


def test_every_part_is_reported(script, records):
    frame = pd.DataFrame({"kind": pd.Series(["a", "b", None] * 20, dtype="category"), "x": np.arange(60.0)})
    table = script.Table("text", "given", lambda seed: (frame, (frame.x % 4 > 1).to_numpy().astype(object)), 40)
    records = pd.concat([records, pd.DataFrame(script.measure(table, 0))])
    found = dict(script.report(records))
    assert len(found) == 21
    for title, part in found.items():
        assert part.notna().all(axis=None), title
        assert script.as_markdown(part).count("\n") == len(part) + 1


def test_a_form_in_the_units_of_the_grid_gives_the_grid_back(script, records):
    def unit(m, K):
        return m**-0.5

    curves = script.Curves.of(records, "l1", unit)
    found = curves.along(unit, script.SQRT_M_TIMES_L1)
    np.testing.assert_allclose(found.risk, curves.figures.risk, rtol=1e-9)
    np.testing.assert_allclose(found.error, curves.figures.error, rtol=1e-9)


def test_figures_of_a_page_are_replaced(script, tmp_path):
    page = tmp_path / "page.md"
    assert script.below(page, "new") == "new"
    page.write_text("# Text\n\n## Figures\n\nold\n")
    assert script.below(page, "new\n") == "# Text\n\n## Figures\n\nnew\n"
