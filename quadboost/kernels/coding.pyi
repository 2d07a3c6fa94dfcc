"""Kernels; see _coding.pyx, which marks their arguments IN and OUT."""

import numpy as np

def copy_columns(X: np.ndarray, first: int, out: np.ndarray) -> None: ...
def distinct_runs(values: np.ndarray, before: np.ndarray) -> int: ...
def quantile_cuts(before: np.ndarray, alone: np.ndarray, n_bins: int, latest: np.ndarray, out: np.ndarray) -> int: ...
def code_rows(
    X: np.ndarray,
    cuts: np.ndarray,
    place: np.ndarray,
    rule: np.ndarray,
    codes: np.ndarray,
    first: int,
    last: int,
    n_threads: int,
) -> bool: ...
