"""Kernels; see _core.pyx, which marks their arguments IN and OUT."""

import numpy as np

def openmp_enabled() -> bool: ...
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
def add_voter_sums(
    bins: np.ndarray, bin_start: np.ndarray, voter_start: np.ndarray, is_level: np.ndarray, out: np.ndarray
) -> None: ...
def solve(gram: np.ndarray, x: np.ndarray, least: float) -> None: ...
def matrix_products(H: np.ndarray, value: np.ndarray, out: np.ndarray, n_threads: int) -> None: ...
def copy_transposed(of_g: np.ndarray, first_f: int, first_g: int, of_f: np.ndarray, n_threads: int) -> None: ...
def run_down(table: np.ndarray, n_threads: int) -> None: ...

class RowCounter:
    def __init__(
        self,
        codes: np.ndarray,
        mass: np.ndarray | None,
        bin_start: np.ndarray,
        voter_start: np.ndarray,
        is_level: np.ndarray,
        n_threads: int,
        counts: bool,
    ) -> None: ...
    def add(self, rows: np.ndarray, factor: int, column: np.ndarray, n_threads: int) -> None: ...
    def add_bins(self, bins: np.ndarray, factor: int, column: np.ndarray) -> None: ...
    def tabulate(
        self, rows: np.ndarray, bin_end: np.ndarray, features: np.ndarray, table: np.ndarray, n_threads: int
    ) -> None: ...

class Edges:
    risk: float
    residual_mean: float
    def __init__(
        self,
        edge: np.ndarray,
        mean: np.ndarray,
        eta: np.ndarray,
        centre: np.ndarray,
        address: np.ndarray,
        stamp: np.ndarray,
        clock: np.ndarray,
        total_weight: float,
        counts: bool,
        risk: float,
        residual_mean: float,
    ) -> None: ...
    def move(self, j: int, delta: float) -> None: ...

class Rounds:
    LOG_FULL: int
    NEEDS_COLUMN: int
    CONVERGED: int
    objective: float
    def __init__(
        self,
        train: Edges,
        validation: Edges | None,
        weight: np.ndarray,
        anchor: np.ndarray,
        eta: np.ndarray,
        curvature: np.ndarray,
        inverse: np.ndarray,
        shrink: float,
        cap: float,
        objective: float,
        n_threads: int,
    ) -> None: ...
    def run(self, voter: np.ndarray, log: np.ndarray, first: int, last: int, floor: float) -> tuple[int, int, int]: ...
    def sweep(self, first: int, voter: np.ndarray, total: np.ndarray, n_logged: int) -> tuple[int, int]: ...
    def rerate(self) -> None: ...
