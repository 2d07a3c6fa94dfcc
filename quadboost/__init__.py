"""QuadBoost: additive models of decision stumps, boosted with the quadratic loss."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .booster import Boosted, boost
    from .ensemble import Ensemble, load
    from .estimators import QuadBoostClassifier, QuadBoostRegressor
    from .estimators_cv import QuadBoostClassifierCV, QuadBoostRegressorCV
    from .memory import estimate_memory
    from .model_file import ModelFileError
    from .moments import Moments, moments_from_matrix
    from .path import RegularizationPath, regularization_path

# Names are imported when they are first used: a service that loads a model does not pay for training.
_HOME = {
    "Boosted": "booster",
    "boost": "booster",
    "Ensemble": "ensemble",
    "load": "ensemble",
    "estimate_memory": "memory",
    "ModelFileError": "model_file",
    "Moments": "moments",
    "moments_from_matrix": "moments",
    "QuadBoostClassifier": "estimators",
    "QuadBoostRegressor": "estimators",
    "QuadBoostClassifierCV": "estimators_cv",
    "QuadBoostRegressorCV": "estimators_cv",
    "RegularizationPath": "path",
    "regularization_path": "path",
}

__all__ = [
    "Boosted",
    "Ensemble",
    "ModelFileError",
    "Moments",
    "QuadBoostClassifier",
    "QuadBoostClassifierCV",
    "QuadBoostRegressor",
    "QuadBoostRegressorCV",
    "RegularizationPath",
    "__version__",
    "boost",
    "estimate_memory",
    "load",
    "moments_from_matrix",
    "regularization_path",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'quadboost' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
