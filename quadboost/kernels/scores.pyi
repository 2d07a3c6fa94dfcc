"""The kernel of prediction; see _scores.pyx."""

import numpy as np

from ..voters.bins import BinIndex

class StepFunctions:
    n_outputs: int
    n_features: int
    def __init__(
        self, feature: np.ndarray, bins: BinIndex, value: np.ndarray, value_start: np.ndarray, intercept: np.ndarray
    ) -> None: ...
    def score(self, X: np.ndarray, n_threads: int) -> np.ndarray: ...
