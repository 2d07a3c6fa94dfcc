"""Kernels; see counts.pyx, which marks their arguments IN and OUT."""

import numpy as np

def bin_sums(codes: np.ndarray, value: np.ndarray, bin_start: np.ndarray, out: np.ndarray, n_threads: int) -> None: ...
def sort_rows(
    codes: np.ndarray,
    f: int,
    count: np.ndarray,
    own: np.ndarray,
    bin_end: np.ndarray,
    order: np.ndarray,
    n_threads: int,
) -> None: ...
def matrix_products(H: np.ndarray, value: np.ndarray, out: np.ndarray, n_threads: int) -> None: ...
