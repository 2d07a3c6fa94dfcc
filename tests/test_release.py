"""What a release consists of: one version, files that are ours alone, and examples that run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

import quadboost
from quadboost import QuadBoostClassifier

ROOT = Path(__file__).resolve().parents[1]


def test_changelog_and_citation_know_the_version():
    version = quadboost.__version__
    date = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert date, f"CHANGELOG.md has no dated section for {version}"
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(version)}$", citation, re.M)
    assert f'date-released: "{date[1]}"' in citation


def test_code_is_our_own():
    package = Path(quadboost.__file__).parent
    found = [path for path in package.rglob("*") if path.is_file()]
    written = [path for path in found if path.suffix in (".py", ".pyi", ".pyx", ".h", ".css", ".js")]
    assert [path for path in written if re.search(r"copyright|licen[cs]ed", path.read_text(), re.I)] == []


@pytest.fixture(scope="module")
def tumours():
    data = load_breast_cancer(as_frame=True)
    return data.data, data.target.map({0: "malignant", 1: "benign"})


def test_the_example_service_scores_rows_and_refuses_wrong_ones(tumours, tmp_path, monkeypatch):
    testing = pytest.importorskip("fastapi.testclient", reason="fastapi and httpx are not installed")
    X, y = tumours
    model = QuadBoostClassifier(reg_lambda=0.02).fit(X, y)
    model.save(tmp_path / "model.h5")
    monkeypatch.setenv("MODEL", str(tmp_path / "model.h5"))
    monkeypatch.syspath_prepend(ROOT / "examples")
    sys.modules.pop("service", None)
    import service

    with testing.TestClient(service.app) as client:
        assert client.get("/model").json()["features"] == list(X)
        rows = X[:3].to_dict("records")
        del rows[0]["mean radius"]
        answers = client.post("/predict", json=rows).json()
        assert [answer["prediction"] for answer in answers] == model.predict(rows).tolist()
        chances = [list(answer["probabilities"].values()) for answer in answers]
        assert chances == model.predict_proba(rows).tolist()
        assert answers[0]["reasons"] == model.explain(rows).reasons(3)[0]
        wrong = client.post("/predict", json=[{"mean radios": 3}])
        assert wrong.status_code == 422
        assert "row 0 of X has 'mean radios', which this model was not trained on" in wrong.json()["detail"]


@pytest.mark.slow
def test_the_example_notebook_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(ROOT / "examples" / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not for the repository"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert (tmp_path / "report.html").exists()
