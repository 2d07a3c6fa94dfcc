"""Tables of all kinds of columns and targets, and their division into parts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from quadboost.parts.source import InMemory, Part


def table(m: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "real": rng.normal(size=m),
            "whole": rng.integers(0, 4, m),
            "text": rng.choice(np.array(["x", "y", "zz", "rare"], dtype=object), m, p=[0.5, 0.3, 0.17, 0.03]),
            "rounded": rng.normal(size=m).round(1).astype(np.float32),
            "flag": rng.random(m) < 0.3,
        }
    )
    X.loc[rng.random(m) < 0.1, "real"] = np.nan
    X.loc[rng.random(m) < 0.05, "text"] = None
    return X


def targets(X: pd.DataFrame, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed + 1)
    score = (X["real"].fillna(0.0) + (X["text"] == "x") + 0.5 * X["whole"] * X["flag"]).to_numpy()
    noisy = score + rng.normal(size=len(X))
    return {
        "labels": np.where(noisy > 1, "yes", "no"),
        "classes": np.digitize(noisy, [0.0, 1.5]),
        "far": noisy + 1000.0,
        "two": np.column_stack([noisy, score]),
        "counts": rng.poisson(np.exp(0.3 * score)).astype(float),
    }


def weights(m: int, seed: int = 0) -> dict[str, np.ndarray | None]:
    rng = np.random.default_rng(seed + 2)
    return {"none": None, "whole": rng.integers(0, 4, m).astype(float), "real": rng.random(m)}


def in_parts(X, y, weight=None, *, n_parts=4, room=0, seed=0) -> InMemory[Part]:
    """Parts of random sizes, one of them empty."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(y) + 1, n_parts - 2))
    rows = [*np.split(np.arange(len(y)), cuts), np.arange(0)]
    each = [
        Part(X.iloc[some], y[some], None if weight is None else weight[some], f"part {i}")
        for i, some in enumerate(rows)
    ]
    return InMemory(each, room)
