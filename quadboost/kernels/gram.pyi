"""Kernels; see gram.pyx."""

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

def voter_sums(layout: Layout, bins: np.ndarray, out: np.ndarray) -> None: ...
def copy_transposed(of_g: np.ndarray, first_f: int, first_g: int, of_f: np.ndarray) -> None: ...

class Maker: ...

class DifferenceMaker(Maker):
    def __init__(self, all: Store, part: Store) -> None: ...

class ColumnMaker(Maker):
    def __init__(
        self,
        codes: np.ndarray,
        mass: np.ndarray | None,
        layout: Layout,
        voter_sum: np.ndarray,
        n_threads: int,
        counts_for_threads: int,
    ) -> None: ...
    def set_rows(
        self, f: int, start: np.ndarray, present: np.ndarray, order: np.ndarray | None, table: np.ndarray | None
    ) -> None: ...
    def drop_rows(self, f: int) -> None: ...
    def add(self, rows: np.ndarray, factor: int, column: np.ndarray) -> None: ...
    def tabulate(self, rows: np.ndarray, bin_end: np.ndarray, columns: np.ndarray, table: np.ndarray) -> None: ...

class Store:
    maker: Maker
    address: np.ndarray
    stamp: np.ndarray
    counts: bool
    n_free: int
    is_shared: bool
    work: int
    def __init__(self, maker: Maker, n_voters: int, counts: bool) -> None: ...
    def add_room(self, piece: np.ndarray) -> None: ...
    def drop(self, voters: np.ndarray) -> None: ...
    def make(self, voter: int) -> bool: ...
    def take(self, voter: int) -> np.ndarray: ...
    def column(self, voter: int) -> np.ndarray: ...
