"""Kernels; see _complexity.pyx, which marks their arguments IN and OUT."""

import numpy as np

def scan_signs(
    rows: np.ndarray,
    may_cut: np.ndarray,
    words: np.ndarray,
    total: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> None: ...
