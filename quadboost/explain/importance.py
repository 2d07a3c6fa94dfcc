"""How much each term moves the scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..common.checks import one_of
from ..model.ensemble import Ensemble
from .terms import INTERCEPT, Terms
from .words import feature_name

KINDS = ("mean_abs", "std", "range")


class Importance(NamedTuple):
    """A term and its importance, in units of the score; the sum over outputs where there are several."""

    term: str
    importance: float


def importances(ensemble: Ensemble, kind: str = "mean_abs", X: Any = None, by: str = "term") -> list[Importance]:
    """The importance of each term, the largest first; see `Ensemble.importances`."""
    one_of("kind", kind, KINDS)
    one_of("by", by, ("term", "feature"))
    terms = Terms.of(ensemble)
    if by == "feature" and terms.rules:
        if X is None:
            raise ValueError(
                "importances by feature of a model with rules need rows: give importances(by='feature', X=X)"
            )
        return importances_by_feature(ensemble, ensemble.matrix_of(X), kind)
    if X is not None:
        values = terms.values(ensemble.matrix_of(X))
        found = [_measure(kind, values[:, j], np.ones(len(values))) for j in range(values.shape[1])]
        return _sorted(list(terms.names), found)
    masses = terms.coding.masses()
    if terms.reference == INTERCEPT and kind != "range":
        raise ValueError(
            f"this model has no counts of its training rows, which kind={kind!r} needs; give some rows, "
            "importances(X=...), or use kind='range'"
        )
    found = []
    for j, table in enumerate(terms.coding.tables):
        found.append(_measure(kind, table, np.ones(len(table)) if masses is None else masses[j]))
    for rule, weight in zip(terms.rules, terms.weight, strict=True):
        share = rule.support if rule.support == rule.support else 0.5
        found.append(_measure(kind, np.stack([-weight, weight]), np.array([1.0 - share, share])))
    return _sorted(list(terms.names), found)


def importances_by_feature(ensemble: Ensemble, matrix: np.ndarray, kind: str = "mean_abs") -> list[Importance]:
    """Of Shapley values against the same rows: what rules add, split between their features."""
    values = Terms.of(ensemble, matrix).by_feature(matrix)
    used = np.flatnonzero(values.any(axis=(0, 2))).tolist()
    found = [_measure(kind, values[:, feature], np.ones(len(values))) for feature in used]
    return _sorted([feature_name(ensemble, feature) for feature in used], found)


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
