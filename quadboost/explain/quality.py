"""How good a model is on rows that it has not seen: curves and figures, as numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Z95 = 1.959963984540054  # of the normal distribution: 95 % lie within


def label_numbers(y: Any, classes: np.ndarray, n_rows: int) -> np.ndarray:
    """The number of each row's class."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y has the shape {labels.shape}; give one label for each row")
    if len(labels) != n_rows:
        raise ValueError(f"there are {n_rows:,} rows and {len(labels):,} labels; give a label for each row")
    number = {label: n for n, label in enumerate(classes.tolist())}
    found = [number.get(label, -1) for label in labels.tolist()]
    if -1 in found:
        wrong = labels.tolist()[found.index(-1)]
        raise ValueError(f"y holds the label {wrong!r:.60}, which is not one of the classes {classes.tolist()!r:.200}")
    return np.array(found, dtype=np.intp)


class Roc(NamedTuple):
    """Of rows with a score above each threshold, from the highest down: false alarms, found, precision."""

    threshold: np.ndarray
    false_rate: np.ndarray
    true_rate: np.ndarray
    precision: np.ndarray
    area: float
    average_precision: float


def roc(scores: np.ndarray, is_second: np.ndarray) -> Roc | None:
    """None where there are rows of one class only: then nothing can be told apart."""
    n_second = int(is_second.sum())
    if n_second in (0, len(is_second)):
        return None
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # of rows with the same score
    found = np.cumsum(is_second[order])[last]
    false = last + 1 - found
    true_rate, false_rate = found / n_second, false / (len(is_second) - n_second)
    precision = found / (last + 1)
    area = float(np.trapezoid(np.append(0.0, true_rate), np.append(0.0, false_rate)))
    average = float((np.diff(np.append(0.0, true_rate)) * precision).sum())
    return Roc(scores[order][last], false_rate, true_rate, precision, area, average)


class Calibration(NamedTuple):
    """Rows in groups of like probability: the mean probability, the share of the class, and its 95 % interval."""

    probability: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_rows: np.ndarray


def calibration(probability: np.ndarray, is_second: np.ndarray, n_bins: int = 10) -> Calibration:
    """Groups of the same size, as far as rows of the same probability stay together. Intervals are Wilson's."""
    order = np.argsort(probability, kind="stable")
    p, hit = probability[order], is_second[order] * 1.0
    inner = np.linspace(0, 1, n_bins + 1)[1:-1] if len(p) else np.empty(0)
    edges = np.unique(np.searchsorted(p, np.quantile(p, inner))) if len(p) else np.empty(0, np.intp)
    groups = [group for group in np.split(np.arange(len(p)), edges) if len(group)]
    count = np.array([len(group) for group in groups], dtype=np.float64)
    share = np.array([hit[group].mean() for group in groups])
    low, high = wilson(share, count)
    return Calibration(np.array([p[group].mean() for group in groups]), share, low, high, count)


def wilson(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of a share, by Wilson: right also where the share is near 0 or 1."""
    z2 = Z95 * Z95
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z95 / (1 + z2 / count) * np.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def log_loss(probabilities: np.ndarray, label: np.ndarray) -> float:
    """Mean of -log of the probability of the true class, at most 1e-15 from 0 and 1; `label` is its number."""
    of_true_class = probabilities[np.arange(len(label)), label]
    return float(-np.log(np.clip(of_true_class, 1e-15, 1.0)).mean())


def r2(y: np.ndarray, predicted: np.ndarray) -> float:
    """Share of the variance that is explained; NaN where the targets are all the same."""
    spread = float(((y - y.mean()) ** 2).sum())
    return 1.0 - float(((y - predicted) ** 2).sum()) / spread if spread > 0 else float("nan")
