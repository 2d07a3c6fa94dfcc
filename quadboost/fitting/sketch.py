"""The directions in which the Gram matrix of many alike voters is large: a preconditioner for conjugate gradients.

Trees that were boosted one after the other are alike, so that a few hundred directions have nearly all of the trace of
their Gram matrix G, and conjugate gradients spend most iterations on those. Random combinations O of voters, times the
matrix of a sample of rows, find them (Nystroem's approximation: with Y = G O and C = O' Y, G is nearly Y C^-1 Y'). The
result of the iterations does not depend on it, only how soon they end: about three times.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from ..data.sampling import mixed
from ..kernels.sums import matrix_products

REST = 2.0  # what the matrix is taken for in all other directions, times its diagonal: measured, anything near will do
ROUNDING = 1e-10  # of the largest diagonal element


class Sketch:
    """A Gram matrix, nearly, by what it makes of some random combinations of voters."""

    def __init__(self, gram_times: Callable[[np.ndarray], np.ndarray], n_voters: int, n_directions: int) -> None:
        bits = mixed(np.arange(n_voters * n_directions, dtype=np.uint64), 0) >> np.uint64(63)
        signs = 2.0 * bits.astype(np.float64).reshape(n_directions, n_voters) - 1.0
        self.image = gram_times(signs)  # (n_directions, K)
        self.core = _products(signs, self.image)

    def of(self, voters: np.ndarray) -> Sketch:
        """Of some voters alone: their part of the matrix."""
        part = copy(self)
        part.image = np.ascontiguousarray(self.image[:, voters])
        return part

    def preconditioner(self, diagonal: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Nearly the inverse of the Gram matrix and a ridge, given its diagonal, times rows of shape (n, K)."""
        inverse = 1.0 / (REST * diagonal)
        scaled = self.image * inverse
        half = _inverse_of_factor((self.core + self.core.T) / 2.0 + _square(scaled, self.image))  # Woodbury's identity

        def apply(left: np.ndarray) -> np.ndarray:
            parts = np.einsum("ij,kj->ki", half, _products(scaled, left))
            return left * inverse - np.array([np.einsum("ik,i->k", scaled, row) for row in parts @ half])

        return apply


def _products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Products of each row of y with each of x, always summed in the same order."""
    out = np.empty((len(y), len(x)))
    for row, found in zip(y, out, strict=True):
        matrix_products(x.T, row, found, 1)
    return out


def _square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same where these products are symmetric: half of them are made."""
    out = np.empty((len(y), len(x)))
    for i, row in enumerate(y):
        matrix_products(x[i:].T, row, out[i, i:], 1)
        out[i:, i] = out[i, i:]
    return out


def _inverse_of_factor(matrix: np.ndarray) -> np.ndarray:
    """The inverse of Cholesky's factor; directions that others determine up to rounding are left out."""
    n, left, inverse = len(matrix), matrix.copy(), np.eye(len(matrix))
    least = ROUNDING * float(matrix.diagonal().max(initial=0.0))
    for i in range(n):
        pivot = left[i, i]
        if not pivot > least:
            inverse[i], left[i:, i] = 0.0, 0.0
            continue
        share = left[i + 1 :, i] / pivot
        left[i + 1 :] -= share[:, None] * left[i]
        inverse[i + 1 :] -= share[:, None] * inverse[i]
        inverse[i] /= np.sqrt(pivot)
    return inverse
