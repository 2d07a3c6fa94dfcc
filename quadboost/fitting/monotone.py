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
    below = _orders(tree, is_level, leaves)
    for output, sign in enumerate(signs.T):
        rises = np.zeros((len(leaves), len(leaves)), dtype=bool)  # [i, j]: leaf i must not be above leaf j
        for feature, own in below.items():
            rises |= own if sign[feature] > 0 else own.T if sign[feature] < 0 else False
        if rises.any():
            found[leaves, output] = _in_order(rises, step[leaves, output], mass[leaves, output])
    return found


def _in_order(rises: np.ndarray, step: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """About the nearest steps in order: leaves in the wrong order are pooled, and have their mean.

    Leaf by leaf, from below: its pool takes in the highest pool that must not be above it and is, until there is none.
    What was in order before stays so: pools that are taken in only fall, and they are those at the top.
    """
    for _ in range(int(np.ceil(np.log2(len(step))))):
        rises = rises | _share(rises, rises)  # also by way of others
    found, mass, pool = step.copy(), np.maximum(mass, LEAST_MASS), np.arange(len(step))
    for leaf in np.argsort(rises.sum(axis=0), kind="stable").tolist():
        above = rises[:, leaf] & (found > found[leaf])
        while np.any(above):
            own = (pool == leaf) | (pool == pool[np.where(above, found, -np.inf).argmax()])
            pool[own], found[own] = leaf, (mass[own] * step[own]).sum() / mass[own].sum()
            above = rises[:, own].any(axis=1) & (found > found[leaf])
    return np.maximum(found, np.where(rises, found[:, None], -np.inf).max(axis=0))  # the last bit, too


def _orders(tree: Trees, is_level: np.ndarray, leaves: np.ndarray) -> dict[int, np.ndarray]:
    """For each feature: from which leaf, to which, a row may go as it rises and nothing else changes.

    Leaves that have cells of every other feature in common lie behind one another in this one.
    """
    feature, reach = _reach(tree, is_level)
    reach = reach[leaves]
    own = {number: reach[:, feature == number] for number in np.unique(feature).tolist()}
    apart = {number: ~_share(cells, cells.T) for number, cells in own.items()}
    only = sum(pairs.astype(int) for pairs in apart.values()) == 1
    below = {}
    for number, cells in own.items():
        if not is_level[number]:
            values = cells[:, :-1]  # without missing values, which have no place in the order
            first = np.where(values.any(axis=1), values.argmax(axis=1), values.shape[1])
            below[number] = apart[number] & only & (first[:, None] < first) & (first < values.shape[1])
    return below


def _reach(tree: Trees, is_level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells of features, and which of them the rows of each node may be in: (n_nodes, n_cells).

    All that matters of a feature is on which side of each threshold it is. So its cells are: the values up to each
    threshold, those above all, and missing values; of categories each level, all others, and missing values.
    """
    inner = np.flatnonzero(~tree.is_leaf)
    asked, threshold = tree.feature[inner], tree.threshold[inner]
    cuts = {number: np.unique(threshold[asked == number]) for number in np.unique(asked).tolist()}
    feature = np.concatenate([np.full(len(own) + 2, number) for number, own in cuts.items()])
    value = np.concatenate([[*own, -1.0 if is_level[number] else np.inf, np.nan] for number, own in cuts.items()])
    goes = np.where(is_level[feature] == 1, value == threshold[:, None], value > threshold[:, None])
    goes = np.where(np.isnan(value), tree.missing_right[inner, None] == 1, goes)
    others, reach = feature != asked[:, None], np.ones((tree.n_nodes, len(value)), dtype=bool)
    to_left, to_right = others | ~goes, others | goes
    for number, (node, right, end) in enumerate(zip(inner, tree.right[inner], tree.end[inner], strict=True)):
        reach[node + 1 : right] &= to_left[number]
        reach[right:end] &= to_right[number]
    return feature, reach


def _share(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The product of two boolean matrices; that of numbers is quicker."""
    return (x.astype(np.float32) @ y.astype(np.float32)) > 0
