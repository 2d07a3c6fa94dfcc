"""Fits to Dask collections, with the bits of one machine."""

from .estimators import (
    DaskQuadBoostClassifier,
    DaskQuadBoostClassifierCV,
    DaskQuadBoostRegressor,
    DaskQuadBoostRegressorCV,
)

__all__ = [
    "DaskQuadBoostClassifier",
    "DaskQuadBoostClassifierCV",
    "DaskQuadBoostRegressor",
    "DaskQuadBoostRegressorCV",
]
