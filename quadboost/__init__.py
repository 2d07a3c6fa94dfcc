"""QuadBoost: additive models of decision stumps, boosted with the quadratic loss."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .boosting.boost import boost
    from .boosting.result import Boosted
    from .choosing.hashed import HashedFolds
    from .choosing.path import RegularizationPath, regularization_path
    from .estimators.cv import QuadBoostClassifierCV, QuadBoostRegressorCV
    from .estimators.plain import QuadBoostClassifier, QuadBoostRegressor
    from .explain.report import report
    from .explain.terms import Explanation
    from .fitting.memory import estimate_memory
    from .model.ensemble import Ensemble, load
    from .model.file import ModelFileError
    from .moments.moments import Moments, moments_from_matrix
    from .parts.rows import Rows

# Names are imported when they are first used: a service that loads a model does not pay for training.
_HOME = {
    "Boosted": "boosting.result",
    "boost": "boosting.boost",
    "Ensemble": "model.ensemble",
    "load": "model.ensemble",
    "estimate_memory": "fitting.memory",
    "ModelFileError": "model.file",
    "Moments": "moments.moments",
    "moments_from_matrix": "moments.moments",
    "QuadBoostClassifier": "estimators.plain",
    "QuadBoostRegressor": "estimators.plain",
    "QuadBoostClassifierCV": "estimators.cv",
    "QuadBoostRegressorCV": "estimators.cv",
    "Rows": "parts.rows",
    "HashedFolds": "choosing.hashed",
    "RegularizationPath": "choosing.path",
    "regularization_path": "choosing.path",
    "Explanation": "explain.terms",
    "report": "explain.report",
}

__all__ = [
    "Boosted",
    "Ensemble",
    "Explanation",
    "HashedFolds",
    "ModelFileError",
    "Moments",
    "QuadBoostClassifier",
    "QuadBoostClassifierCV",
    "QuadBoostRegressor",
    "QuadBoostRegressorCV",
    "RegularizationPath",
    "Rows",
    "__version__",
    "boost",
    "estimate_memory",
    "load",
    "moments_from_matrix",
    "regularization_path",
    "report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'quadboost' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
