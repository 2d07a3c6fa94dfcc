"""Kernels; see _folds.pyx, which marks their arguments IN and OUT."""

import numpy as np

class FoldCounter:
    def __init__(
        self,
        codes: np.ndarray,
        mass: np.ndarray | None,
        bin_start: np.ndarray,
        voter_start: np.ndarray,
        is_level: np.ndarray,
        fold: np.ndarray,
        n_folds: int,
        held_out_bytes: int,
    ) -> None: ...
    def write(self, rows: np.ndarray, factor: int, sign: int, known: np.ndarray, out: np.ndarray) -> None: ...

def follow_risk(
    voter: np.ndarray,
    total: np.ndarray,
    first: int,
    address: np.ndarray,
    itemsize: int,
    total_weight: float,
    first_edge: np.ndarray,
    mean: np.ndarray,
    eta: np.ndarray,
    centre: np.ndarray,
    place: np.ndarray,
    drawn: np.ndarray,
    weight: np.ndarray,
    state: np.ndarray,
    risk: np.ndarray,
) -> int: ...
