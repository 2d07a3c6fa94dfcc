"""Checks X, y and weights once, and turns labels into the targets of the rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from ..common.checks import one_of, positive
from .exact import LARGEST_TARGET, MOST_ROWS, Extent, exact_mean
from .tables import DATE_REMEDY, check_is_table, check_no_dates

LARGEST_WEIGHT = 1e150
CLASS_WEIGHT_BITS = 30  # so that a class's weight times a whole number is exact


def labels_of(y: Any, name: str = "y") -> np.ndarray:
    _check_given(y, name)
    labels = column_or_1d(np.asarray(y) if hasattr(y, "__array__") else y, warn=True)
    labels = np.ascontiguousarray(labels)  # they are read several times, and may be a column of a wide table
    check_no_dates(labels, name, f"make them text, with {name}.astype(str)")
    if labels.dtype.kind == "O" and any(_is_missing(value) for value in labels.tolist()):
        raise ValueError(f"{name} holds missing labels; leave those rows out")
    if labels.dtype.kind == "O":
        labels = _of_one_type(labels, name)
    if labels.dtype == np.longdouble != np.float64:
        raise ValueError(f"{name} holds labels of type {labels.dtype}; make them text, with y.astype(str)")
    if labels.dtype.kind == "f":
        _check_finite(labels, name)
    check_array(labels, ensure_2d=False, dtype=None, ensure_min_samples=0)
    check_classification_targets(labels)
    return labels


def _of_one_type(labels: np.ndarray, name: str) -> np.ndarray:
    """Labels that are Python objects, as an array of their type."""
    kinds = {type(value) for value in labels.tolist()}
    if len(kinds) > 1 and not kinds <= {int, float}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"{name} holds labels of different types ({names}); make them all text, or all numbers")
    if not kinds & {bool, int, float}:
        return labels
    typed = np.array(labels.tolist())
    if typed.dtype == object:
        large = max(labels.tolist(), key=abs)
        raise ValueError(f"{name} holds the label {large!r:.60}, an integer beyond 64 bits; make the labels text")
    return typed


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither
        return True


def real_targets(y: Any, name: str = "y") -> np.ndarray:
    _check_given(y, name)
    targets = finite_targets(y, name)
    check_range(np.ptp(targets, axis=0), name)
    return targets


def finite_targets(y: Any, name: str = "y") -> np.ndarray:
    targets = _real(y, name, "numbers; a classifier takes labels")
    if np.abs(targets).max() > LARGEST_TARGET:
        largest = targets.flat[np.abs(targets).argmax()]
        raise ValueError(f"{name} holds {largest}; rescale it to below {LARGEST_TARGET:g}")
    return targets


def check_range(ranges: np.ndarray, name: str = "y") -> None:
    """Refuse targets whose squares would vanish."""
    if np.any((ranges > 0) & (ranges < 1 / LARGEST_TARGET)):
        smallest = np.min(ranges, where=ranges > 0, initial=np.inf)
        raise ValueError(f"{name} has a range of {smallest:.3g}; rescale it to one above {1 / LARGEST_TARGET:g}")


def _check_given(y: Any, name: str) -> None:
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None")
    if isinstance(y, Iterator):
        raise TypeError(f"{name} is a {type(y).__name__}, which can be read only once; use list({name})")


def _real(unchecked: Any, name: str, wanted: str) -> np.ndarray:
    """Finite doubles, of one or two dimensions; `wanted` says in the errors what they should have been."""
    check_no_dates(np.asarray(unchecked, dtype=None if hasattr(unchecked, "dtype") else object), name, DATE_REMEDY)
    try:
        values = check_array(unchecked, ensure_2d=False, dtype=np.float64, input_name=name, ensure_all_finite=False)
    except OverflowError:
        raise ValueError(f"{name} holds a number beyond the largest float; rescale it") from None
    except (TypeError, ValueError) as error:
        text = _first_text(unchecked)
        if text is None:
            raise
        raise ValueError(f"{name} holds text, such as {text!r:.60}; give {wanted}") from error
    _check_finite(values, name)
    return values


def _first_text(values: Any) -> str | None:
    return next((value for value in np.asarray(values, dtype=object).ravel().tolist() if isinstance(value, str)), None)


def _check_finite(values: np.ndarray, name: str) -> None:
    """In scikit-learn's words, and where."""
    if not np.isfinite(values).all():
        row = int(np.nonzero(~np.isfinite(values))[0][0])
        what = "NaN" if np.isnan(values[row]).any() else "infinity or a value too large for dtype('float64')"
        raise ValueError(f"Input {name} contains {what}. The first is in row {row}; leave such rows out.")


class Examples(NamedTuple):
    """What the user gave: X, the targets and weights of rows with a positive weight, and which rows those are."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None  # None: all weigh 1
    kept: np.ndarray | None  # None: all

    def all_weights(self) -> np.ndarray | None:
        """The weight of every row of X, also of those that are left out."""
        if self.kept is None:
            return self.weight
        weight = np.zeros(len(self.kept))
        weight[self.kept] = 1.0 if self.weight is None else self.weight
        return weight

    def part(self, matrix: np.ndarray) -> np.ndarray:
        """The rows that are kept."""
        return matrix if self.kept is None else matrix[self.kept]


def check_size(X: Any, suffix: str = "") -> None:
    """Refuse what is no table, and more rows than row numbers can count, before anything is done with them."""
    check_is_table(X, f"X{suffix}")
    n_rows = X.shape[0] if getattr(X, "shape", ()) else 0
    if n_rows >= MOST_ROWS:
        raise ValueError(f"X{suffix} has {n_rows} rows; at most {MOST_ROWS - 1} can be learnt from at once")


def examples_of(X: Any, y: np.ndarray, weight: Any, suffix: str = "") -> Examples:
    """Check that X, y and weights fit together; a row of weight zero is the same as no row."""
    check_size(X, suffix)
    if not hasattr(X, "shape"):
        X = np.asarray(X, dtype=None if hasattr(X, "__array__") else object)
        if X.ndim == 1 and len({np.size(row) for row in X.tolist()}) > 1:
            raise ValueError(f"X{suffix} is a list of rows of different lengths, not a table; give each as many values")
    n_rows = X.shape[0] if X.shape else 0
    if n_rows == 0:
        raise ValueError(f"X{suffix} has 0 rows (shape={X.shape}) while a minimum of 1 is required")
    if n_rows != len(y):
        raise ValueError(f"X{suffix} has {n_rows} rows and y{suffix} has {len(y)}; give one target for every row")
    if weight is None:
        return Examples(X, y, None, None)
    weight = checked_weights(weight, n_rows, f"sample_weight{suffix}")
    if not weight.any():
        raise ValueError(f"sample_weight{suffix} is zero for every row; at least one weight must be positive")
    weight, kept = those_that_count(weight, Extent.of(n_rows, weight))
    y = y if kept is None else y[kept]
    return Examples(X, y, None if (weight == 1.0).all() else weight, kept)


def checked_weights(weight: Any, n_rows: int, name: str = "sample_weight") -> np.ndarray:
    """One finite number, not below zero, for every row."""
    if isinstance(weight, str):
        raise ValueError(f"{name} is {weight!r}, not numbers; for balanced classes give class_weight='balanced'")
    weight = np.asarray(weight)
    weight = _real(weight if weight.ndim else np.full(n_rows, weight), name, "numbers")
    if weight.shape != (n_rows,):
        raise ValueError(f"{name} has shape {weight.shape}; it must hold one number for each of {n_rows} rows")
    if weight.min() < 0:
        raise ValueError(f"{name} holds {weight.min()}; weights must not be negative")
    if weight.max() > LARGEST_WEIGHT:
        raise ValueError(f"{name} holds {weight.max()}; weights must be below {LARGEST_WEIGHT:g}")
    least = np.min(weight, where=weight > 0, initial=np.inf)
    if least < 1 / LARGEST_WEIGHT:
        raise ValueError(f"{name} holds {least}; weights above 0 must be above {1 / LARGEST_WEIGHT:g}")
    return weight


def those_that_count(weight: np.ndarray, extent: Extent) -> tuple[np.ndarray, np.ndarray | None]:
    """The positive weights, and a mask of their rows (None: all). One too small beside the others to count is zero."""
    kept = extent.round(weight) > 0
    return (weight, None) if kept.all() else (weight[kept], kept)


def has_validation(X_val: Any, y_val: Any, sample_weight_val: Any) -> bool:
    if (X_val is None) != (y_val is None):
        present, absent = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"{present} was given without {absent}; a validation set needs both")
    if X_val is None and sample_weight_val is not None:
        raise ValueError("sample_weight_val was given without X_val and y_val; a validation set needs both")
    return X_val is not None


def one_vs_rest(position: np.ndarray, n_classes: int) -> np.ndarray:
    """-1 and +1: one column for two classes, else one column per class against the rest."""
    wanted = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(position[:, None] == wanted, 1.0, -1.0)


def positions_of(labels: np.ndarray, classes: np.ndarray, name: str = "y_val") -> np.ndarray:
    position = np.searchsorted(classes, labels)
    known = classes[np.minimum(position, len(classes) - 1)] == labels
    if not known.all():
        raise ValueError(f"{name} holds the label {labels[~known].tolist()[0]!r}, which is none of those trained on")
    return position


def class_weights(class_weight: Any, classes: np.ndarray, mass: np.ndarray) -> np.ndarray | None:
    """The weight of each class, or None where all weigh the same; `mass` is the weight of its rows."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        one_of("class_weight", class_weight, ("balanced",))
        return _rounded(mass.sum() / (len(classes) * mass))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight={class_weight!r} is not known; give 'balanced', or a dict from class to weight")
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(
            f"class_weight names {unknown.pop()!r}, which is not a class; the classes are {classes.tolist()}"
        )
    return _rounded(np.array([positive("class_weight", class_weight.get(label, 1.0)) for label in classes.tolist()]))


def _rounded(class_weight: np.ndarray) -> np.ndarray:
    mantissa, exponent = np.frexp(class_weight)
    return np.ldexp(np.rint(np.ldexp(mantissa, CLASS_WEIGHT_BITS)), exponent - CLASS_WEIGHT_BITS)


def times(weight: np.ndarray | None, class_weight: np.ndarray | None, position: np.ndarray) -> np.ndarray | None:
    if class_weight is None:
        return weight
    return class_weight[position] if weight is None else weight * class_weight[position]


def spread_of(targets: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The standard deviation of each target; 1 for a constant one."""
    centre = np.array([exact_mean(target, weight) for target in targets.T])
    variance = np.array([exact_mean(deviation**2, weight) for deviation in (targets - centre).T])
    return np.where(variance > 1e-24 * centre**2, np.sqrt(variance), 1.0)
