"""Today's peers on the normalised attributes, with the tuning they usually get."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from .protocol import Classifiers, Sample, Setting, sign
from .voting import grid


def _tree_shape(setting: Setting) -> tuple[tuple[str, Any], ...]:
    return tuple(item for item in setting.items() if item[0] != "n_estimators")


@dataclass(frozen=True)
class LightGBM:
    settings = grid(
        num_leaves=[4, 16], min_child_samples=[20, 5], learning_rate=[0.05], n_estimators=[25, 50, 100, 200, 400]
    )

    def fit(self, sample: Sample, settings: list[Setting]) -> Classifiers:
        from lightgbm import LGBMClassifier

        models = []
        for shape, group in groupby(settings, _tree_shape):
            rounds = [setting["n_estimators"] for setting in group]
            model = LGBMClassifier(n_estimators=max(rounds), **dict(shape), n_jobs=1, random_state=0, verbose=-1)
            models.append((model.fit(sample.X, sample.y), rounds))

        def classify(rows: Sample) -> np.ndarray:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                return sign(
                    np.array(
                        [
                            model.predict(rows.X, raw_score=True, num_iteration=t)
                            for model, rounds in models
                            for t in rounds
                        ]
                    )
                )

        return classify


@dataclass(frozen=True)
class SklearnAdaBoost:
    """AdaBoost of scikit-learn, whose trees choose their own thresholds."""

    settings = grid(max_depth=[1, 3], learning_rate=[0.1, 1.0], n_estimators=[25, 50, 100])

    def fit(self, sample: Sample, settings: list[Setting]) -> Classifiers:
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        models = []
        for shape, group in groupby(settings, _tree_shape):
            rounds = [setting["n_estimators"] for setting in group]
            depth, rate = (value for _, value in shape)
            model = AdaBoostClassifier(
                DecisionTreeClassifier(max_depth=depth),
                n_estimators=max(rounds),
                learning_rate=rate,
                random_state=0,
            )
            models.append((model.fit(sample.X, sample.y), rounds))

        def classify(rows: Sample) -> np.ndarray:
            scores = []
            for model, rounds in models:
                stages = list(model.staged_decision_function(rows.X))
                scores += [stages[min(t, len(stages)) - 1] for t in rounds]
            return sign(np.array(scores))

        return classify


@dataclass(frozen=True)
class EBM:
    """Explainable boosting machine of InterpretML, as it comes but for fewer pairs, bags and rounds, to save time."""

    settings = grid()

    def fit(self, sample: Sample, settings: list[Setting]) -> Classifiers:
        from interpret.glassbox import ExplainableBoostingClassifier

        model = ExplainableBoostingClassifier(interactions=10, outer_bags=4, max_rounds=2_000, n_jobs=1, random_state=0)
        model.fit(sample.X, sample.y)
        return lambda rows: sign(np.atleast_2d(model.decision_function(rows.X)))
