"""The fitted model of a problem: from weights of candidate voters to an `Ensemble`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..boosting.result import Boosted
from ..model.ensemble import Ensemble
from ..voters.columns import Voters
from .problem import Problem


def make_ensemble(
    problem: Problem, voters: Voters, boosted: Sequence[Boosted], info: Mapping[str, Any] | None = None
) -> Ensemble:
    """Of the voters with a weight, one run per output, in the units of the targets."""
    weight = np.column_stack([result.weight for result in boosted]) * problem.target_scale
    intercept = np.array([result.intercept for result in boosted]) * problem.target_scale
    active = np.flatnonzero(weight.any(axis=1))
    feature, kind, threshold = voters.describe(active)
    return Ensemble(
        feature,
        threshold,
        weight[active, 0] if problem.one_output else weight[active],
        intercept[0] if problem.one_output else intercept,
        kind=kind,
        n_features=problem.schema.n_features,
        classes=problem.classes,
        feature_names=problem.schema.feature_names,
        categories=problem.schema.categories,
        info=info,
    )
