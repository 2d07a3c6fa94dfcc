"""Losses, each the owner of its maths.

Rounds minimise the quadratic risk. For a loss whose second derivative is at most c, the quadratic function with that
curvature lies above it and touches it at the scores G. To minimise it is our problem, with other targets:
z = G + pull / c, where the pull is minus the derivative at G. Only the targets change; the Gram matrix stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..common.checks import one_of, positive
from ..common.names import LOSSES
from ..data.exact import Ask, exact_quantiles

SHARPEST = 0.02  # width of the smooth part of the last pinball loss, as a share of the first
SHARPER = 0.3  # from one width to the next
RAREST = 1e-6  # share of a class that a first constant allows for: rows may lack a class, and have no finite log-odds
ROBUST = 1.345 * 1.4826  # times the median deviation: of normal residuals nine in ten are then within the width


class Loss:
    """What a fit asks of a loss, of scores and targets of shape (m, n_outputs)."""

    name = "squared"
    link = "identity"

    @property
    def curvature(self) -> float:
        """A bound on the second derivative, or where there is none what to try first."""
        return 1.0

    def values(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss of every row."""
        return 0.5 * ((y - scores) ** 2).sum(axis=1)

    def pull(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Minus the derivative by every score."""
        return y - scores

    def bend(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The second derivative by every score, or a bound on it, where the pull is known."""
        return np.full(pull.shape, self.curvature)

    def within(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The pull, or where no score has such a one, one near it."""
        return pull

    def conjugate(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The largest -pull score - loss over all scores, of every row, where some score has such a pull."""
        return (pull * (0.5 * pull - y)).sum(axis=1)

    def constant(self, mean: np.ndarray) -> np.ndarray:
        """The best scores that are the same for all rows, or near them, from the mean of the targets."""
        return mean

    def sharper(self) -> Loss | None:
        """The next of a sequence of ever better approximations, where the loss itself is not smooth."""
        return None

    def sharpest(self) -> Loss:
        """The last of them."""
        better = self.sharper()
        return self if better is None else better.sharpest()


@dataclass(frozen=True)
class Logistic(Loss):
    """Minus the log-likelihood of labels 0 and 1; of several classes, a column each, with softmax."""

    n_outputs: int = 1
    name = "logistic"

    @property
    def link(self) -> str:  # type: ignore[override]
        return "logit" if self.n_outputs == 1 else "softmax"

    @property
    def curvature(self) -> float:
        return 0.25 if self.n_outputs == 1 else 0.5

    def values(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.n_outputs == 1:
            score = scores[:, 0]
            return np.maximum(score, 0.0) - y[:, 0] * score + np.log1p(np.exp(-np.abs(score)))
        largest = scores.max(axis=1)
        return largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1)) - (y * scores).sum(axis=1)

    def pull(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.n_outputs == 1:
            small = np.exp(-np.abs(scores))
            return y - np.where(scores > 0, 1.0, small) / (1.0 + small)
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        return y - share / share.sum(axis=1, keepdims=True)

    def bend(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        chance = np.clip(y - pull, RAREST, 1.0 - RAREST)
        return chance * (1.0 - chance)

    def within(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        chance = np.clip(y - pull, 0.0, 1.0)
        if self.n_outputs > 1:
            chance = np.maximum(chance, np.finfo(float).tiny)
            chance /= chance.sum(axis=1, keepdims=True)
        return y - chance

    def conjugate(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        chance = y - pull  # minus their entropy
        return _times_log(np.hstack([chance, 1.0 - chance]) if self.n_outputs == 1 else chance).sum(axis=1)

    def constant(self, mean: np.ndarray) -> np.ndarray:
        mean = np.clip(mean, RAREST, 1.0 - RAREST)
        if self.n_outputs == 1:
            return np.log(mean) - np.log1p(-mean)
        logs = np.log(mean)
        return logs - logs.mean()


@dataclass(frozen=True)
class Huber(Loss):
    """Quadratic up to a width, and linear beyond: a row far off does not count for more than its direction."""

    width: float
    median: tuple[float, ...]  # of each target
    name = "huber"

    def values(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        off = np.abs(y - scores)
        return np.where(off <= self.width, 0.5 * off * off, self.width * (off - 0.5 * self.width)).sum(axis=1)

    def pull(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.within(y - scores, y)

    def within(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.clip(pull, -self.width, self.width)

    def constant(self, mean: np.ndarray) -> np.ndarray:
        return np.array(self.median)  # rows far off can move the mean by more than passes ever bring it back


@dataclass(frozen=True)
class Poisson(Loss):
    """Minus the log-likelihood of counts whose rate is exp(score), but for what does not depend on the score."""

    rate: float  # mean of the targets: the curvature where the scores are constant
    name = "poisson"
    link = "log"

    @property
    def curvature(self) -> float:
        return self.rate

    def values(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # a step too long is taken back
            return (np.exp(scores) - y * scores).sum(axis=1)

    def pull(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y - np.exp(scores)

    def bend(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y - pull

    def within(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.minimum(pull, y)

    def conjugate(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        rate = y - pull
        return (_times_log(rate) - rate).sum(axis=1)

    def constant(self, mean: np.ndarray) -> np.ndarray:
        return np.log(mean)


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss, whose minimum is a quantile. Its corner is rounded; `sharper` rounds it less."""

    quantile: float
    width: float
    least_width: float
    first: tuple[float, ...]  # the quantile of each target
    name = "quantile"

    @property
    def curvature(self) -> float:
        return 0.5 / self.width

    def values(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        off = y - scores
        straight = np.where(off > 0, self.quantile * off, (self.quantile - 1.0) * off)
        near = np.maximum(self.width - np.abs(off), 0.0)
        return (straight + near * near * self.curvature / 2.0).sum(axis=1)

    def pull(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.within(self.curvature * (y - scores) + self.quantile - 0.5, y)

    def within(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.clip(pull, self.quantile - 1.0, self.quantile)

    def conjugate(self, pull: np.ndarray, y: np.ndarray) -> np.ndarray:
        inside = pull - self.quantile + 0.5
        return (self.width * (inside * inside - 0.25) - pull * y).sum(axis=1)

    def constant(self, mean: np.ndarray) -> np.ndarray:
        return np.array(self.first)

    def sharper(self) -> Quantile | None:
        width = SHARPER * self.width
        return replace(self, width=max(width, self.least_width)) if self.width > self.least_width else None


def make_loss(
    name: str, y: np.ndarray, weight: np.ndarray | None, mean: np.ndarray, *, quantile: float = 0.5,
    huber_width: float | str = "auto",
) -> Loss:  # fmt: skip
    """The loss of that name for targets of shape (m, n_outputs), whose means are given."""
    return loss_for(name, lambda question, add: question(y, weight), mean, quantile, huber_width)


def loss_for(name: str, ask: Ask, mean: np.ndarray, quantile: float = 0.5, huber_width: float | str = "auto") -> Loss:
    """The same, given someone who puts a question, a function of targets and weights, to every part of the rows."""
    one_of("loss", name, LOSSES)
    if name == "logistic":
        return Logistic(len(mean))
    if name == "huber":
        median = exact_quantiles(ask, 0.5)
        is_auto = isinstance(huber_width, str)
        width = ROBUST * _deviation(ask, median) if is_auto else positive("huber_width", huber_width)
        return Huber(width, tuple(median.tolist()))
    if name == "poisson":
        return Poisson(float(mean.max()))
    if name == "quantile":
        width = _deviation(ask, exact_quantiles(ask, 0.5))
        return Quantile(quantile, width, SHARPEST * width, tuple(exact_quantiles(ask, quantile).tolist()))
    return Loss()


def _times_log(share: np.ndarray) -> np.ndarray:
    """Each number times its logarithm; 0 of zero, and of what rounding has left below."""
    return share * np.log(share, out=np.zeros_like(share), where=share > 0)


def _deviation(ask: Ask, median: np.ndarray) -> float:
    """How far targets are from their medians: the median, or where that is zero the largest; 1 where all are equal."""

    def ask_of_distances(question: Callable[..., Any], add: Callable[[Any, Any], Any]) -> Any:
        return ask(partial(_of_distances, median, question), add)

    usual = exact_quantiles(ask_of_distances, 0.5)
    return float(usual.max() or ask_of_distances(_largest, np.maximum).max() or 1.0)


def _of_distances(median: np.ndarray, question: Callable[..., Any], y: np.ndarray, weight: np.ndarray | None) -> Any:
    return question(np.abs(y - median), weight)


def _largest(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return values.max(axis=0, initial=0.0)
