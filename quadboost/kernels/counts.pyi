"""Kernels; see counts.pyx, which marks their arguments IN and OUT."""

import numpy as np

class Layout:
    def __init__(
        self,
        bin_start: np.ndarray,
        voter_start: np.ndarray,
        n_nested: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        whole: np.ndarray,
    ) -> None: ...

def address_of(array: np.ndarray) -> int: ...
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
def voter_sums(layout: Layout, bins: np.ndarray, out: np.ndarray) -> None: ...
def matrix_products(H: np.ndarray, value: np.ndarray, out: np.ndarray, n_threads: int) -> None: ...
def copy_transposed(of_g: np.ndarray, first_f: int, first_g: int, of_f: np.ndarray) -> None: ...

class RowCounter:
    def __init__(
        self, codes: np.ndarray, mass: np.ndarray | None, layout: Layout, n_threads: int, counts: bool
    ) -> None: ...
    def add(self, rows: np.ndarray, factor: int, column: np.ndarray, n_threads: int) -> None: ...
    def add_running(self, running: np.ndarray, factor: int, column: np.ndarray) -> None: ...
    def tabulate(
        self, rows: np.ndarray, bin_end: np.ndarray, columns: np.ndarray, table: np.ndarray, n_threads: int
    ) -> None: ...
    def run_table(self, table: np.ndarray, n_threads: int) -> None: ...
