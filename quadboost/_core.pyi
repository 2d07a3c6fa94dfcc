"""Kernels; see _core.pyx, which marks their arguments IN and OUT."""

import numpy as np

from .kernels.store import Store

def openmp_enabled() -> bool: ...
def dot(x: np.ndarray, y: np.ndarray) -> float: ...
def solve(gram: np.ndarray, x: np.ndarray, least: float, tol: float) -> None: ...
def multiply(gram: np.ndarray, x: np.ndarray, out: np.ndarray) -> None: ...
def gram_of(
    store: Store, voter: np.ndarray, centre: np.ndarray, total_weight: float, out: np.ndarray, first: int
) -> int: ...
def steepest(edge: np.ndarray, ridge: np.ndarray, shrink: np.ndarray, low: np.ndarray, high: np.ndarray) -> float: ...
def conjugate(
    edge: np.ndarray, scale: float, ridge: np.ndarray, shrink: np.ndarray, low: np.ndarray, high: np.ndarray
) -> float: ...

class Slopes:
    risk: float
    residual_mean: float
    def __init__(
        self, slope: np.ndarray, mean: np.ndarray, eta: np.ndarray, centre: np.ndarray, store: Store,
        total_weight: float, risk: float, residual_mean: float,
    ) -> None: ...  # fmt: skip
    def move(self, voter: np.ndarray, delta: np.ndarray, first: int) -> int: ...

class Rounds:
    LOG_FULL: int
    NEEDS_COLUMN: int
    CONVERGED: int
    PAUSED: int
    objective: float
    def __init__(
        self, train: Slopes, validation: Slopes | None, weight: np.ndarray, anchor: np.ndarray, eta: np.ndarray,
        n_threads: int,
    ) -> None: ...  # fmt: skip
    def set_penalty(
        self, curve: np.ndarray, inverse: np.ndarray, ridge: np.ndarray, shrink: np.ndarray, low: np.ndarray,
        high: np.ndarray, lower: np.ndarray, upper: np.ndarray, least: np.ndarray, most: np.ndarray, shrinks: bool,
    ) -> None: ...  # fmt: skip
    def run(self, voter: np.ndarray, log: np.ndarray, first: int, last: int, floor: float) -> tuple[int, int, int]: ...
    def sweep(self, first: int, voter: np.ndarray, total: np.ndarray, n_logged: int) -> tuple[int, int]: ...
    def rerate(self) -> None: ...

def follow_risk(
    voter: np.ndarray, total: np.ndarray, first: int, store: Store, total_weight: float, first_edge: np.ndarray,
    mean: np.ndarray, eta: np.ndarray, centre: np.ndarray, place: np.ndarray, drawn: np.ndarray, weight: np.ndarray,
    state: np.ndarray, risk: np.ndarray,
) -> int: ...  # fmt: skip
