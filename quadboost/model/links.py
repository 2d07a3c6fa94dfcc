"""Links: how predictions follow from scores.

A model is an additive score and the name of a link. Each link owns its maths. Whatever finite scores log, logit and
softmax are given, what they return is finite, raises no floating-point warning, and never falls where its own score
rises. The label that has the largest probability is the label of the scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

# The exp of numpy may be wrong in the last bit, and then fall where its argument rises. Two different multiples of STEP
# are too far apart for that. Rounding to them changes exp by less than one part in 10^13; from COARSE on every float64
# is a multiple.
STEP = 2.0**-44
COARSE = 256.0
MOST = 708.0  # exp of this and of its negative are normal numbers, so that the log of a probability is finite too
# A score above 0 that is too small to show in the probability still decides the label, and so must show.
ABOVE_HALF = float(np.nextafter(0.5, 1.0))
FARTHEST = 2.0**1021  # the difference of two such scores is finite


class Link(ABC):
    """How predictions follow from scores."""

    name: str
    words: str  # what it does, for people
    for_labels: bool

    @abstractmethod
    def predictions(self, scores: np.ndarray) -> np.ndarray:
        """From scores to targets of the same shape; or to the probability of every class, shape (m, n_classes)."""

    def suits(self, n_classes: int) -> bool:
        """Whether it can be the link of a model of so many classes; 0: of targets."""
        return (n_classes > 0) == self.for_labels


class Identity(Link):
    name, words, for_labels = "identity", "the prediction is the score", False

    def predictions(self, scores: np.ndarray) -> np.ndarray:
        return scores


class Log(Link):
    name, words, for_labels = "log", "the prediction is exp(score)", False

    def predictions(self, scores: np.ndarray) -> np.ndarray:
        return _exp(_rounded(scores))


class Clipped(Link):
    name, for_labels = "clipped", True
    words = "probabilities are (1 + score) / 2 within [0, 1]; of several classes, shares of max(0, 1 + score)"

    def predictions(self, scores: np.ndarray) -> np.ndarray:
        if scores.ndim == 1:
            second = np.clip((1.0 + scores) / 2.0, 0.0, 1.0)
            second[(scores > 0) & (second <= 0.5)] = ABOVE_HALF
            return np.column_stack([1.0 - second, second])
        share = np.maximum(1.0 + scores, 0.0)
        hopeless = ~share.any(axis=1)
        share[hopeless, scores[hopeless].argmax(axis=1)] = 1.0
        share /= _total(share)
        return _shows_the_largest(share, scores)


class Logit(Link):
    name, for_labels = "logit", True
    words = "the probability of the second class is 1 / (1 + exp(-score))"

    def predictions(self, scores: np.ndarray) -> np.ndarray:
        odds = _exp(-_rounded(np.abs(scores)))
        other = odds / (1.0 + odds)  # of the class that is not predicted: precise however small
        is_second = scores > 0
        other = np.where(is_second, np.minimum(other, 1.0 - ABOVE_HALF), other)
        second = np.where(is_second, 1.0 - other, other)
        return np.column_stack([np.where(is_second, other, 1.0 - other), second])

    def suits(self, n_classes: int) -> bool:
        return n_classes == 2


class Softmax(Link):
    name, for_labels = "softmax", True
    words = "probabilities are the softmax of the scores"

    def predictions(self, scores: np.ndarray) -> np.ndarray:
        near = _rounded(np.clip(np.ascontiguousarray(scores), -FARTHEST, FARTHEST))
        share = _exp(near - near.max(axis=1, keepdims=True))
        share /= _total(share)
        return _shows_the_largest(share, scores)

    def suits(self, n_classes: int) -> bool:
        return n_classes > 2


LINKS: dict[str, Link] = {link.name: link for link in (Identity(), Log(), Clipped(), Logit(), Softmax())}
WITH_SLOPE = ("logit", "softmax")  # links that can be folded into weights that were fitted without them
LOSSES: dict[str, tuple[str, ...]] = {  # and the links that each can have
    "squared": tuple(LINKS),
    "logistic": ("logit", "softmax"),
    "huber": ("identity", "log"),
    "poisson": ("log",),
    "quantile": ("identity", "log"),
}


def default_link(for_labels: bool) -> str:
    """What models had before links had names."""
    return "clipped" if for_labels else "identity"


def check_link(loss: Any, link: Any, slope: np.ndarray, n_classes: int) -> None:
    """Raise a ValueError unless a model of so many classes, 0 for targets, can have these; slope has shape (k,)."""
    for name, value, known in (("loss", loss, LOSSES), ("link", link, LINKS)):
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"the {name} is {value!r:.60}, not one of {', '.join(known)}")
    if not LINKS[link].suits(n_classes):
        what = f"a model of {n_classes} classes" if n_classes else "a model of targets"
        wanted = ", ".join(name for name, other in LINKS.items() if other.suits(n_classes))
        raise ValueError(f"the link {link!r} is not one of {what}, which can have: {wanted}")
    if link not in LOSSES[loss]:
        raise ValueError(
            f"the link {link!r} does not go with the loss {loss!r}, which can have: {', '.join(LOSSES[loss])}"
        )
    if wrong := [value for value in slope.tolist() if not 0.0 < value < np.inf]:
        raise ValueError(f"the slope is {wrong[0]}, not a finite number above 0")
    if link not in WITH_SLOPE and (slope != 1.0).any():
        raise ValueError(f"the slope of the link {link!r} is {slope[slope != 1.0].tolist()[0]}; it can only be 1")


def _rounded(scores: np.ndarray) -> np.ndarray:
    """Scores as multiples of STEP."""
    near = np.rint(np.clip(scores, -COARSE, COARSE) / STEP) * STEP
    return np.where(np.abs(scores) < COARSE, near, scores)


def _exp(scores: np.ndarray) -> np.ndarray:
    return np.exp(np.clip(scores, -MOST, MOST))


def _total(share: np.ndarray) -> np.ndarray:
    """The sum of each row, shape (m, 1), in pairs of pairs: small shares are not lost, however many there are."""
    while (n := share.shape[1]) > 1:
        paired = n // 2 * 2
        share = np.concatenate([share[:, :paired:2] + share[:, 1:paired:2], share[:, paired:]], axis=1)
    return share


def _shows_the_largest(share: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Scores that differ too little to show in the shares still decide the label, and so must show."""
    first, label = share.argmax(axis=1), scores.argmax(axis=1)
    tied = np.flatnonzero(first != label)
    share[tied, label[tied]] = np.nextafter(share[tied, first[tied]], 2.0)
    return share
