"""Steps of the leaves of a tree that only rise, or only fall, with some features."""

from __future__ import annotations

import numpy as np

from ..voters.trees import Trees

LEAST_MASS = 1e-300  # of a leaf, so that a mean is one


def within_signs(
    tree: Trees, is_level: np.ndarray, step: np.ndarray, mass: np.ndarray, signs: np.ndarray
) -> np.ndarray:  # fmt: skip
    """The steps at the nodes of one tree, moved where leaves are in the wrong order.

    Parameters
    ----------
    tree : Trees
        One alone.
    step, mass : arrays of shape (n_nodes, n_outputs)
    signs : array of shape (d, n_outputs)
        The score may only rise with a feature (+1), only fall (-1), or both (0).
    """
    leaves, found = np.flatnonzero(tree.is_leaf), step.copy()
    features, below = _orders(tree, is_level, leaves)
    for output, sign in enumerate(signs[features].T):
        steps = step[leaves, output]
        rises = below[sign > 0].any(axis=0) | below[sign < 0].any(axis=0).T  # [i, j]: leaf i must not be above leaf j
        if (rises & (steps[:, None] > steps)).any():
            found[leaves, output] = _in_order(rises, steps, mass[leaves, output])
    return found


def _in_order(rises: np.ndarray, step: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """About the nearest steps in order: leaves in the wrong order are pooled, and have their mean.

    Leaf by leaf, from below: its pool takes in the highest pool that must not be above it and is, until there is none.
    What was in order before stays so: pools that are taken in only fall, and they are those at the top.
    """
    for _ in range(int(np.ceil(np.log2(len(step))))):
        rises = rises | ((rises.astype(np.float32) @ rises.astype(np.float32)) > 0)  # also by way of others
    found, mass, pool = step.copy(), np.maximum(mass, LEAST_MASS), np.arange(len(step))
    n_under = rises.sum(axis=0)
    for leaf in np.argsort(n_under, kind="stable")[np.count_nonzero(n_under == 0) :].tolist():
        above = rises[:, leaf] & (found > found[leaf])
        while np.any(above):
            is_pooled = (pool == leaf) | (pool == pool[np.where(above, found, -np.inf).argmax()])
            pool[is_pooled], found[is_pooled] = leaf, (mass[is_pooled] * step[is_pooled]).sum() / mass[is_pooled].sum()
            above = rises[:, is_pooled].any(axis=1) & (found > found[leaf])
    return np.maximum(found, np.where(rises, found[:, None], -np.inf).max(axis=0))  # the last bit, too


def _orders(tree: Trees, is_level: np.ndarray, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The features of a tree, and for each: from which leaf, to which, a row may go as it rises and no other changes.

    Leaves that have cells of every other feature in common lie behind one another in this one.
    """
    features, reach = _reach(tree, is_level)
    cells = reach[:, leaves].astype(np.float32)  # products of numbers are quicker than those of truths
    apart = (cells @ cells.transpose(0, 2, 1)) == 0
    values, n = reach[:, leaves, 1:], reach.shape[2]  # without missing values, which have no place in the order
    first = np.where(values.any(axis=2), values.argmax(axis=2), n)
    is_below = (first[:, :, None] < first[:, None]) & (first[:, None] < n) & (is_level[features, None, None] == 0)
    return features, is_below & apart & (apart.sum(axis=0) == 1)


def _reach(tree: Trees, is_level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The features of a tree, and which of their cells the rows of each node may be in: (n, n_nodes, n_cells).

    All that matters of a feature is on which side of each threshold it is. So its cells are: missing values, the values
    up to each threshold, and those above all; or, of categories, missing values, each level, and all others.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    features, asked, n_asked = np.unique(tree.feature[inner], return_inverse=True, return_counts=True)
    threshold, reach = tree.threshold[inner], np.zeros((len(features), tree.n_nodes, n_asked.max() + 2), dtype=bool)
    for number in range(len(features)):
        reach[number, :, : n_asked[number] + 2] = True
    in_order = np.lexsort((threshold, asked))
    cells = np.full((len(features), reach.shape[2]), np.inf)
    cell = 1 + np.arange(len(inner)) - np.repeat(np.cumsum(n_asked) - n_asked, n_asked)
    cells[asked[in_order], cell] = threshold[in_order]
    goes = cells[asked] > threshold[:, None]
    goes = np.where(is_level[features][asked, None] == 1, cells[asked] == threshold[:, None], goes)
    goes[:, 0] = tree.missing_right[inner] == 1
    ways = zip(inner.tolist(), asked.tolist(), tree.right[inner].tolist(), tree.end[inner].tolist(), strict=True)
    for (node, number, right, end), goes_on in zip(ways, goes, strict=True):
        reach[number, node + 1 : right] &= ~goes_on
        reach[number, right:end] &= goes_on
    return features, reach
