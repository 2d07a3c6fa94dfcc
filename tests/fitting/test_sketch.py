"""A preconditioner from random combinations of voters."""

from __future__ import annotations

import numpy as np
import pytest

from quadboost.fitting.sketch import Sketch

K = 60
RNG = np.random.default_rng(0)


def gram(rank):
    """Of voters that are alike: few directions have most of the trace."""
    basis = np.linalg.qr(RNG.normal(size=(K, K)))[0]
    return (basis[:, :rank] * np.geomspace(100.0, 1e-3, rank)) @ basis[:, :rank].T


def preconditioned(matrix, n_directions, ridge):
    """The matrix of the equations, and what the preconditioner makes of it."""
    sketch = Sketch(lambda weight: weight @ matrix, K, n_directions)
    apply = sketch.preconditioner(matrix.diagonal() + ridge)
    inverse = apply(np.eye(K))
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-9 * np.abs(inverse).max())
    return np.linalg.eigvals(inverse @ (matrix + ridge * np.eye(K))).real


@pytest.mark.parametrize("n_directions", [20, 40])
def test_large_directions_are_no_longer_large(n_directions):
    matrix, ridge = gram(K), 0.1
    diagonal = np.sqrt(matrix.diagonal() + ridge)
    before = np.linalg.cond((matrix + ridge * np.eye(K)) / np.outer(diagonal, diagonal))
    spread = preconditioned(matrix, n_directions, ridge)
    assert spread.min() > 0
    assert spread.max() / spread.min() < before / 2


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_directions_that_others_determine_do_no_harm(rank):
    spread = preconditioned(gram(rank), 20, 0.5)
    assert spread.min() > 0
    assert spread.max() < 1.5
