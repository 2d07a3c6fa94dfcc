"""Kernels; see _folds.pyx, which marks their arguments IN and OUT."""

import numpy as np

def add_all_but_fold(
    codes: np.ndarray,
    mass: np.ndarray | None,
    rows: np.ndarray,
    fold: np.ndarray,
    bin_start: np.ndarray,
    voter_start: np.ndarray,
    is_level: np.ndarray,
    factor: int,
    bins: np.ndarray,
    voters: np.ndarray,
    out: np.ndarray,
) -> None: ...
def follow_risk(
    voter: np.ndarray,
    total: np.ndarray,
    first: int,
    address: np.ndarray,
    less: np.ndarray,
    counts: bool,
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
