"""scikit-learn estimators."""

from .cv import QuadBoostClassifierCV, QuadBoostRegressorCV
from .plain import QuadBoostClassifier, QuadBoostRegressor

__all__ = ["QuadBoostClassifier", "QuadBoostClassifierCV", "QuadBoostRegressor", "QuadBoostRegressorCV"]
