"""Models that version 0.1.0 fitted and saved predict what they predicted then, from now on.

Written by `python tests/model/test_golden.py`, once for a version: an older file is never written again.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import quadboost

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ["0.1.0"]


def rows() -> list[dict[str, object]]:
    """Ordinary ones, missing values and keys, a level never seen, values far off."""
    return [
        {"age": 40, "income": 32_000.0, "town": "Ulm"},
        {"age": 71, "income": 8_000.5, "town": "Bern"},
        {"age": None, "income": 55_000.0, "town": "Oslo"},
        {"income": -1e300, "town": None},
        {"age": 18, "income": float("inf"), "town": "Ulm"},
        {},
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_models_of_older_versions_predict_and_explain_as_they_did(version, kind):
    model = quadboost.load(DATA / f"{kind}-{version}.h5")
    known = json.loads((DATA / f"{kind}-{version}.json").read_text())
    # Additions alone: the same on every processor.
    assert [score.hex() for score in model.decision_function(rows()).tolist()] == known["scores"]
    assert model.predict(rows()).tolist() == pytest.approx(known["predictions"], rel=1e-12)
    np.testing.assert_allclose(model.explain(rows()).by_feature(), known["contributions"], rtol=1e-9, atol=1e-12)
    if kind == "classifier":
        np.testing.assert_allclose(model.predict_proba(rows()), known["probabilities"], rtol=1e-12)
        assert (model.loss, model.link, model.n_rules > 0, len(model.bin_mass) > 0) == ("logistic", "logit", True, True)


def write(version: str) -> None:
    import pandas as pd

    random = np.random.default_rng(0)
    m = 400
    age = np.where(random.random(m) < 0.1, np.nan, random.integers(18, 80, m))
    frame = pd.DataFrame(
        {"age": age, "income": random.normal(3e4, 1e4, m).round(), "town": random.choice(["Ulm", "Bern"], m)}
    )
    odds = (
        (frame["income"] > 3e4) * 2.0 - (frame["age"] > 50) * (frame["town"] == "Ulm") * 3.0 + random.logistic(size=m)
    )
    options = {"n_trees": 5, "max_leaves": 6, "random_state": 0}
    made = {
        "classifier": quadboost.QuadBoostClassifier(loss="logistic", **options).fit(frame, odds > 0),
        "regressor": quadboost.QuadBoostRegressor(loss="poisson", penalty="l1", **options).fit(frame, np.exp(odds / 3)),
    }
    for kind, model in made.items():
        if (DATA / f"{kind}-{version}.h5").exists():
            raise SystemExit(f"the models of {version} are there, and stay as they are")
        model.save(DATA / f"{kind}-{version}.h5")
        known = {
            "scores": [score.hex() for score in model.ensemble_.decision_function(rows()).tolist()],
            "predictions": model.predict(rows()).tolist(),
            "contributions": model.explain(rows()).by_feature().tolist(),
        }
        if kind == "classifier":
            known["probabilities"] = model.predict_proba(rows()).tolist()
        (DATA / f"{kind}-{version}.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    write(quadboost.__version__)
