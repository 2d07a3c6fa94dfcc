"""Every code block of README.md and docs/ runs: each page is one session, in a folder of its own.

A page may use the names and files that `world` prepares; others it must make itself. Not run here are the two set-up
lines of README.md, which .ci/run runs, and indented blocks: outputs, synopses of commands, and commands that measure.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostClassifierCV

ROOT = Path(__file__).resolve().parents[1]
PAGES = {page.stem: page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
FENCE = re.compile(r"^(<!-- [a-z ]+ -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDED = {
    "exporting": ("onnx", "skl2onnx", "openpyxl"),
    "explaining": ("shap",),
    "scale": ("dask.dataframe",),
}  # packages
QUICK = (
    "constraints",
    "design",
    "estimators",
    "model-file",
    "paper-data",
    "serving",
    "theory",
)  # the others take seconds


class Block(NamedTuple):
    language: str
    code: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(found[2], found[3], text.count("\n", 0, found.start(3)) + 1)
        for found in FENCE.finditer(text)
        if found[1] not in ("<!-- main job -->\n", "<!-- tests -->\n")
    ]


def people(n: int, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "age": random.integers(18, 80, n),
            "income": random.integers(8, 90, n) * 1000.0,
            "debt": random.integers(0, 40, n) * 500.0,
            "housing": random.choice(["owns", "rents"], n),
            "status": random.choice(["married", "single"], n),
        }
    )
    odds = frame["income"] / 20_000 - frame["debt"] / 5_000 + (frame["housing"] == "owns") - frame["age"] / 50
    return frame.assign(outcome=np.where(odds + random.logistic(size=n) > 0, "paid", "default"))


def world(page: str) -> dict[str, Any]:
    """The names and files that pages take as given."""
    frame = people(300)
    for name in ("people.csv", "table.csv", "unseen.csv", "other_people.csv"):
        frame.to_csv(name, index=False)
    for name in ("new.csv", "new_people.csv"):
        frame.drop(columns="outcome").to_csv(name, index=False)
    if page == "scale":
        table = frame.drop(columns="id").rename(columns={"outcome": "label"})
        Path("days").mkdir()
        for name, rows in (("mon", table[:150]), ("tue", table[150:]), ("withdrawn", table[140:160])):
            rows.to_parquet(f"{name}.parquet")
        for name in ("mon", "tue"):
            shutil.copy(f"{name}.parquet", "days")
    X, y = frame.drop(columns=["id", "outcome"]), frame["outcome"]
    names = {"X": X, "X_train": X, "X_test": X, "X_new": X, "y": y, "y_train": y, "y_test": y, "quadboost": quadboost}
    names |= {"pandas": pd, "QuadBoostClassifier": QuadBoostClassifier}
    if page == "explaining":
        names["model"] = QuadBoostClassifierCV(reg_lambda=[0.01, 0.02]).fit(X, y)
    else:
        columns = ["age", "status"] if page == "exporting" else list(X)
        names["model"] = QuadBoostClassifier(reg_lambda=0.01).fit(X[columns], y)
    names["model"].save("model.h5")
    names["digest"] = hashlib.sha256(Path("model.h5").read_bytes()).hexdigest()
    if page in ("design", "constraints", "estimators", "serving"):
        names |= numbers(page, X, y)
    return names


def numbers(page: str, X: pd.DataFrame, y: pd.Series) -> dict[str, Any]:
    """For the pages that speak of arrays."""
    H = X[["age", "income", "debt"]].to_numpy(float)
    sign = np.where(y == "paid", 1.0, -1.0)
    if page == "design":
        parts = np.array_split(np.arange(len(H)), 5)
        return {"X": H, "y": sign[:, None], "weight": np.ones(len(H)), "parts": parts}
    if page == "serving":
        model = QuadBoostClassifier(reg_lambda=0.01).fit(X[["age", "income", "debt"]], y)
        model.save("model.h5")
        return {"rows": list(H), "digest": hashlib.sha256(Path("model.h5").read_bytes()).hexdigest()}
    return {"H": H / H.std(axis=0), "cost": np.array([1.0, 2.0, 3.0]), "y": sign}


def run_shell(code: str) -> None:
    programs = Path(sys.executable).parent
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    package = str(Path(quadboost.__file__).parents[1])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        env={**os.environ, "PATH": path, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def run_c(code: str) -> None:
    """In a main function, after the program that the page has exported before."""
    compiler = shutil.which(os.environ.get("CC", "cc").split()[-1])
    if compiler is None:
        pytest.skip("there is no C compiler")
    Path("main.c").write_text(
        f'#include <math.h>\n#include <stdio.h>\n#include "risk.c"\nint main(void) {{\n{code}}}\n'
    )
    subprocess.run([compiler, "-std=c99", "main.c", "-lm", "-o", "main"], check=True)
    assert subprocess.run(["./main"], check=True, capture_output=True, text=True).stdout.strip() in ("paid", "default")


def run_js(code: str) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    subprocess.run(["node", "-e", code], check=True)


@pytest.mark.parametrize("page", [pytest.param(p, marks=() if p in QUICK else pytest.mark.slow) for p in PAGES])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of what shap imports
def test_every_code_block_runs(page, tmp_path, monkeypatch):
    found, text = blocks(PAGES[page]), PAGES[page].read_text()
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(FENCE.findall(text)), (
        "a block is written otherwise"
    )
    if not found:
        return
    for package in NEEDED.get(page, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("matplotlib").use("Agg")
    names = {} if page == "tutorial" else world(page)
    run = {"sh": run_shell, "c": run_c, "js": run_js, "json": json.loads}
    for block in found:
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.code, str(PAGES[page]), "exec"), names)
        else:
            run[block.language](block.code)
    if page == "model-file":
        ensemble = quadboost.load("model.h5")
        np.testing.assert_array_equal(names["read"]("model.h5")["weight"], ensemble.weight)


def test_links_between_pages_lead_somewhere():
    missing = [
        f"{page.name}: {target}"
        for page in PAGES.values()
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not missing
