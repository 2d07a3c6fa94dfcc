"""Random trees, and the way of a row through them, step by step."""

from collections.abc import Mapping, Sequence

import numpy as np

from quadboost.voters.trees import Trees


def random_trees(
    rng: np.random.Generator,
    n_leaves: Sequence[int],
    thresholds: Sequence[np.ndarray],
    n_levels: Mapping[int, int] | None = None,
) -> Trees:
    """A tree with each of these numbers of leaves, on features that have these thresholds, or levels.

    Nothing says that a row can reach every leaf.
    """
    nodes: list[tuple[int, float, int]] = []
    start = [0]

    def grow(n: int) -> None:
        if n == 1:
            nodes.append((-1, 0.0, 0))
            return
        feature = int(rng.integers(len(thresholds)))
        if n_levels and feature in n_levels:
            threshold = float(rng.integers(n_levels[feature]))
        else:
            threshold = float(rng.choice(thresholds[feature]))
        nodes.append((feature, threshold, int(rng.integers(2))))
        n_left = int(rng.integers(1, n))
        grow(n_left)
        grow(n - n_left)

    for n in n_leaves:
        grow(n)
        start.append(len(nodes))
    feature, threshold, missing_right = zip(*nodes, strict=True) if nodes else ((), (), ())
    return Trees(
        np.array(start, np.int64),
        np.array(feature, np.int32),
        np.array(threshold, np.float64),
        np.array(missing_right, np.uint8),
    )


def chain(n_leaves: int, thresholds: Sequence[float]) -> Trees:
    """One tree, as deep as can be: every left child is a leaf. All nodes ask for feature 0."""
    feature = np.array([*[0, -1] * (n_leaves - 1), -1], np.int32)
    threshold = np.zeros(len(feature))
    threshold[:-1:2] = thresholds
    return Trees(np.array([0, len(feature)]), feature, threshold, np.zeros(len(feature), np.uint8))


def after(trees: Trees, node: int) -> int:
    """One past the last node at or below a node: where as many leaves were passed as there are ways left."""
    open_ways = 1
    while open_ways:
        open_ways += 1 if trees.feature[node] >= 0 else -1
        node += 1
    return node


def way_of(
    trees: Trees, tree: int, row: np.ndarray, categorical: Sequence[int] | Mapping[int, object] = ()
) -> list[int]:
    """The nodes that a row passes through, from the root to a leaf; NaN is missing, levels are numbers."""
    node = int(trees.start[tree])
    way = [node]
    while trees.feature[node] >= 0:
        value, threshold = float(row[trees.feature[node]]), float(trees.threshold[node])
        if value != value:
            right = bool(trees.missing_right[node])
        elif int(trees.feature[node]) in categorical:
            right = value == threshold
        else:
            right = value > threshold
        node = after(trees, node + 1) if right else node + 1
        way.append(node)
    return way
