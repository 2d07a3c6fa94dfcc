"""The protocol of the paper: splits, normalisation, voters, and hyper-parameters by cross-validation.

What the paper leaves open, and what is done here: attributes are normalised as tanh((x - mean) / deviation);
a missing value is the mean of its column; categories are numbers in alphabetical order; stumps are evenly spaced
between the least and the largest training value; folds are stratified; of settings with the same
cross-validation error the first in the order of the grid is taken, which begins with the strongest
regularisation and the fewest rounds.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.model_selection import StratifiedKFold

from quadboost.voters.columns import Voters
from quadboost.voters.thresholds import candidate_voters

from .data import Dataset

MOST_TRAINING_ROWS = 500
STUMPS_PER_ATTRIBUTE = 10
N_FOLDS = 5
ROUNDING = 1e-9  # a score this near to 0 is 0, and sign(0) = -1

Setting = dict[str, Any]  # hyper-parameters


@dataclass(frozen=True)
class Sample:
    """Normalised rows, their labels, and the voters' outputs on them: as bins of the stumps and as a matrix."""

    X: np.ndarray
    y: np.ndarray  # -1 or +1
    stumps: Voters
    codes: np.ndarray
    votes: np.ndarray  # (m, K), -1 or +1

    def take(self, rows: np.ndarray) -> Sample:
        return Sample(self.X[rows], self.y[rows], self.stumps, self.codes[rows], self.votes[rows])


Classifiers = Callable[[Sample], np.ndarray]  # from rows to +-1: one row of predictions for each setting


class Algorithm(Protocol):
    """What the protocol asks of a learning algorithm."""

    @property
    def settings(self) -> list[Setting]:
        """The grid, the strongest regularisation first."""

    def fit(self, sample: Sample, settings: list[Setting]) -> Classifiers:
        """Train with each of the settings; those that are stages of one run cost one run."""


@dataclass(frozen=True)
class Split:
    """A dataset cut in two, and the folds of the training rows."""

    train: Sample
    test: Sample
    folds: list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Trial:
    """What an algorithm did on a split. Seconds are those of the processor."""

    setting: Setting
    cv_risk: float
    test_errors: np.ndarray  # of bool
    select_seconds: float  # cross-validation over the grid
    fit_seconds: float  # the final fit alone


def n_training_rows(n_rows: int) -> int:
    return min(MOST_TRAINING_ROWS, (n_rows + 1) // 2)


def make_split(dataset: Dataset, number: int, seed: int) -> Split:
    """Split number 0, 1, ... of a dataset."""
    random = np.random.default_rng([seed, number, zlib.crc32(dataset.name.encode())])
    rows = random.permutation(len(dataset.y))
    n_train = n_training_rows(len(rows))
    train_rows, test_rows = rows[:n_train], rows[n_train:]
    X = normalise(dataset.X, train_rows)
    stumps = candidate_voters(X[train_rows], thresholds=STUMPS_PER_ATTRIBUTE, spacing="uniform")
    train, test = (_sample(X[part], dataset.y[part], stumps) for part in (train_rows, test_rows))
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=int(random.integers(2**31)))
    return Split(train, test, list(folds.split(train.X, train.y)))


def normalise(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """tanh((x - mean) / deviation), both of the training rows; missing values become the mean."""
    present = ~np.isnan(X[train])
    count = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present, X[train], 0.0).sum(axis=0) / count
    filled = np.where(np.isnan(X), mean, X)
    deviation = filled[train].std(axis=0)
    return np.tanh((filled - mean) / np.where(deviation > 0, deviation, 1.0))


def _sample(X: np.ndarray, y: np.ndarray, stumps: Voters) -> Sample:
    codes = stumps.code(X)
    votes = np.empty((len(X), stumps.n_voters))
    for voter in range(stumps.n_voters):
        feature, outputs = stumps.votes(voter)
        votes[:, voter] = outputs[codes[:, feature]]
    return Sample(X, y, stumps, codes, votes)


def sign(score: np.ndarray) -> np.ndarray:
    return np.where(score > ROUNDING, 1, -1)


def cross_validation_risks(algorithm: Algorithm, sample: Sample, folds: Sequence[Any]) -> np.ndarray:
    """The share of the rows that each setting gets wrong when it has not seen their fold."""
    errors = np.zeros(len(algorithm.settings))
    for train, validation in folds:
        classify = algorithm.fit(sample.take(train), algorithm.settings)
        held_out = sample.take(validation)
        errors += (classify(held_out) != held_out.y).sum(axis=1)
    return errors / len(sample.y)


def run_trial(algorithm: Algorithm, split: Split) -> Trial:
    """Choose the setting by cross-validation, train with it on all training rows, and test."""
    start = time.process_time()
    best, cv_risk = 0, np.nan
    if len(algorithm.settings) > 1:
        risks = cross_validation_risks(algorithm, split.train, split.folds)
        best = int(np.argmin(risks))  # the first of equal ones
        cv_risk = float(risks[best])
    chosen = time.process_time()
    classify = algorithm.fit(split.train, [algorithm.settings[best]])
    end = time.process_time()
    errors = classify(split.test)[0] != split.test.y
    return Trial(algorithm.settings[best], cv_risk, errors, chosen - start, end - chosen)
