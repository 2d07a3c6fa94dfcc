"""Describes a model in words, from its file alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..model.ensemble import Ensemble
from ..model.links import LINKS
from ..model.rules import rules_of

STRONGEST = 10  # features and rules to name
MOST_CLASSES = 50  # to name


def describe(ensemble: Ensemble, path: str) -> str:
    """What a model is, its strongest features and rules, and how it was trained.

    `info` is not trusted: a file may hold anything there.
    """
    used, number, n_voters = np.unique(ensemble.feature, return_inverse=True, return_counts=True)
    classes = [] if ensemble.classes is None else ensemble.classes.tolist()
    task = f"classification, {len(classes)} classes" if classes else "regression"
    lines = [f"{path}: {task}, {len(number)} voters on {len(used)} of {ensemble.n_features} features"]
    if ensemble.trees:
        asked = np.unique(ensemble.trees.feature[~ensemble.trees.is_leaf])
        lines[0] += f", {ensemble.n_rules} rules of {ensemble.trees.n_trees} trees on {len(asked)}"
    lines.append(f"fitted to the {ensemble.loss} loss; link {ensemble.link}: {LINKS[ensemble.link].words}")
    slopes = np.ravel(ensemble.slope).tolist()
    if slopes != [1.0] * len(slopes):
        more = ", ..." if len(slopes) > MOST_CLASSES else ""
        by = ", ".join(f"{slope:.6g}" for slope in slopes[:MOST_CLASSES])
        lines.append(f"calibrated: its weights were multiplied by {by}{more}")
    if classes:
        lines += ["", "classes", *(f"  {_text(label)}" for label in classes[:MOST_CLASSES])]
        lines += ["  ..."] if len(classes) > MOST_CLASSES else []

    share = _importances(ensemble, used, number)
    lines += ["", "strongest features (share of importance, voters)"]
    for i in np.argsort(-share, kind="stable")[:STRONGEST].tolist():
        feature = int(used[i])
        name = f"feature {feature}" if ensemble.feature_names is None else _text(ensemble.feature_names[feature])
        lines.append(f"  {share[i]:6.1%} {n_voters[i]:6}  {name}")

    if ensemble.n_rules:
        lines += ["", "most important rules (+weight where one holds, -weight elsewhere)"]
        lines += [f"  {_text(str(rule))}" for rule in rules_of(ensemble, STRONGEST)]
        lines += ["  ..."] if ensemble.n_rules > STRONGEST else []

    training = {key: value for key, value in ensemble.info.items() if key != "feature_importances"}
    sections = {key: training.pop(key) for key, value in list(training.items()) if isinstance(value, dict)}
    for title, section in {"training": training, **sections}.items():
        lines += ["", _text(title), *(f"  {_text(key):22} {_text(value)}" for key, value in section.items())]
    return "\n".join(lines)


def _importances(ensemble: Ensemble, used: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Those that training has left, else the weights."""
    known = ensemble.feature_importances
    if known is not None:
        return known[used]
    weight = np.abs(ensemble.weight).reshape(len(number), ensemble.n_outputs).sum(axis=1)
    return np.bincount(number, weights=weight, minlength=len(used)) / max(weight.sum(), np.finfo(float).tiny)


def _text(value: Any) -> str:
    """A value on one line, without characters that could do something to a terminal."""
    if not isinstance(value, str):
        rounded = json.loads(json.dumps(value), parse_float=lambda digits: float(f"{float(digits):.6g}"))
        value = json.dumps(rounded, ensure_ascii=False)
    return value if value.isprintable() else ascii(value)
