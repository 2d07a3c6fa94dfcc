"""All columns of the tables, by name."""

from __future__ import annotations

from collections.abc import Sequence

from .peers import EBM, LightGBM, SklearnAdaBoost
from .protocol import Algorithm
from .voting import AdaBoost, LPBoost, QuadBoost

PENALTIES = {"l1": "l1", "l2": "l2", "linf": "linf", "vanilla": None}
PEERS: dict[str, tuple[Algorithm, str]] = {  # and the package each needs
    "lightgbm": (LightGBM(), "lightgbm"),
    "ebm": (EBM(), "interpret"),
    "sklearn-adaboost": (SklearnAdaBoost(), "sklearn"),
}


def reading(penalty: str, mode: str, intercept: bool = False) -> str:
    """The name of QuadBoost with this penalty in this mode. Without a penalty both modes are the same."""
    return "-".join([penalty, *([mode] if penalty != "vanilla" else []), *(["intercept"] if intercept else [])])


def paper_columns(mode: str, intercept: bool = False) -> dict[str, str]:
    """The name here of each QuadBoost column of the paper."""
    return {penalty: reading(penalty, mode, intercept) for penalty in PENALTIES}


def all_algorithms(adaboost_rounds: int, peers: Sequence[str]) -> dict[str, Algorithm]:
    found: dict[str, Algorithm] = {}
    for intercept in (False, True):
        for mode in ("forward", "corrective"):
            for penalty, name in PENALTIES.items():
                found[reading(penalty, mode, intercept)] = QuadBoost(name, mode, intercept)
    return {
        **found,
        "lpboost": LPBoost(),
        "adaboost": AdaBoost(adaboost_rounds),
        **{name: PEERS[name][0] for name in peers},
    }
