"""How much each term moves the scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..common.checks import one_of
from ..model.ensemble import Ensemble
from .coding import Coding
from .terms import explain
from .words import feature_name

KINDS = ("mean_abs", "std", "range")


class Importance(NamedTuple):
    """A term and its importance, in units of the score; the sum over outputs where there are several."""

    term: str
    importance: float


def importances(ensemble: Ensemble, kind: str = "mean_abs", X: Any = None) -> list[Importance]:
    """The importance of each term, the largest first; see `Ensemble.importances`."""
    one_of("kind", kind, KINDS)
    if X is not None:
        explanation = explain(ensemble, X)
        values = explanation.values.reshape(*explanation.values.shape[:2], -1)
        found = [_measure(kind, values[:, j], np.ones(len(values))) for j in range(values.shape[1])]
        return _sorted(list(explanation.terms), found)
    coding = Coding.of(ensemble)
    masses = coding.masses()
    if masses is None and kind != "range":
        raise ValueError(
            f"this model has no counts of its training rows, which kind={kind!r} needs; give some rows, "
            "importances(X=...), or use kind='range'"
        )
    found = []
    for j, table in enumerate(coding.tables):
        mass = np.ones(len(table)) if masses is None else masses[j]
        found.append(_measure(kind, table, mass))
    return _sorted([feature_name(ensemble, feature) for feature in coding.features.tolist()], found)


def _measure(kind: str, values: np.ndarray, mass: np.ndarray) -> float:
    """Of values (n, n_outputs) with these weights."""
    if not len(values) or not mass.any():
        return 0.0
    if kind == "range":
        seen = values[mass > 0]
        return float((seen.max(axis=0) - seen.min(axis=0)).sum())
    off = values - mass @ values / mass.sum()
    mean = mass @ (np.abs(off) if kind == "mean_abs" else off * off) / mass.sum()
    return float((mean if kind == "mean_abs" else np.sqrt(mean)).sum())


def _sorted(terms: list[str], found: list[float]) -> list[Importance]:
    order = np.argsort(-np.array(found), kind="stable").tolist()
    return [Importance(terms[j], found[j]) for j in order]
