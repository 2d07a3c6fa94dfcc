"""Models of every kind to export, and tables that try them: missing values, levels never seen, quotes, neighbours."""

from functools import cache

import numpy as np
import pandas as pd

from quadboost import Ensemble, QuadBoostClassifier, QuadBoostRegressor

NASTY = 'a"; drop table t; --'
TEXTS = ["O'Brien", 'say "hi"', "Zürich ☃", "back\\slash", "two\nlines", "--", "*/ ??/ ', %s", "</script>", ""]
NAMES = ["plain", NASTY, "neighbours", "who", "member", "code", "mixed", "unused"]
LABELS = {2: ["no", "it's"], 3: ["a", "b'", "ç"]}


def table(n=300, seed=0, text=TEXTS):
    """Columns of all kinds. `neighbours` has only values that are next to each other as doubles."""
    rng = np.random.default_rng(seed)
    near = np.float64(0.1)
    values = [near]
    for _ in range(5):
        values.append(np.nextafter(values[-1], 1.0))
    frame = pd.DataFrame(
        {
            "plain": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            NASTY: np.round(rng.normal(size=n), 1),
            "neighbours": rng.choice(values, n),
            "who": np.where(rng.random(n) < 0.1, None, rng.choice(text, n)),
            "member": rng.random(n) < 0.5,
            "code": rng.choice([1, 2, 7], n),
            "unused": 3.0,
        }
    )
    return frame


def targets(frame, seed=1):
    rng = np.random.default_rng(seed)
    signal = frame["plain"].fillna(0.7) + 2 * (frame["neighbours"] > 0.1) + 0.5 * frame[NASTY]
    signal = signal + frame["who"].isin(TEXTS[:3]) - frame["member"] + (frame["code"] == 2)
    return (signal + rng.normal(size=len(frame)) / 2).to_numpy()


def hard_rows(n=300, seed=5):
    """Rows to score, with levels never seen, missing values and infinities."""
    frame = table(n, seed, text=[*TEXTS, "never", "'"])
    frame.loc[::17, "plain"] = np.inf
    frame.loc[3::17, "plain"] = -np.inf
    frame.loc[::11, "code"] = 3
    frame.loc[5::13, "neighbours"] = np.nan
    frame.loc[7::13, NASTY] = np.nan
    return frame


@cache
def fitted(kind):
    """A fitted model, and its loss and link, by a short name."""
    frame = table()
    y = targets(frame)
    options = {"categorical_features": ["who", "member", "code"], "max_rounds": 200, "thresholds": 20}
    classify = {"logit": {}, "clipped": {"calibration": None}, "logistic": {"loss": "logistic"}}
    regress = {"identity": {}, "huber": {"loss": "huber"}, "quantile": {"loss": "quantile"}, "poisson": {"loss": "poisson"}}
    if kind in regress:
        y = np.floor(np.exp(y / 2)) if kind == "poisson" else y
        return QuadBoostRegressor(**options, **regress[kind]).fit(frame, y).ensemble_
    if kind == "targets":
        return QuadBoostRegressor(**options).fit(frame, np.column_stack([y, -y * y])).ensemble_
    link, n_classes = kind.split("-")
    edges = np.quantile(y, np.linspace(0, 1, int(n_classes) + 1)[1:-1])
    labels = np.array(LABELS.get(int(n_classes), list(range(int(n_classes)))))[np.searchsorted(edges, y)]
    return QuadBoostClassifier(**options, **classify[link]).fit(frame, labels).ensemble_


KINDS = ["logit-2", "clipped-2", "logistic-2", "identity", "huber", "quantile", "poisson", "targets"]
KINDS += ["logit-3", "clipped-3", "logistic-3", "logit-5"]
FEW = ["logit-2", "clipped-3", "poisson", "targets"]  # one of each shape, for slow targets


def same_bits(found, expected):
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    np.testing.assert_array_equal(found.view(np.int64), expected.reshape(found.shape).view(np.int64))


def shared_thresholds(n_features=3):
    """An ensemble by hand, without names: thresholds that are neighbours, tiny, huge and negative."""
    tiny, huge = 5e-324, 1.7e308
    cuts = [-huge, -1.5, -tiny, 0.0, tiny, 0.1, np.nextafter(0.1, 1), 1e-7, 12345.678, huge]
    feature = np.repeat(np.arange(n_features), len(cuts))
    weight = np.random.default_rng(0).normal(size=len(feature))
    return Ensemble(feature, np.tile(cuts, n_features), weight, -0.3, n_features=n_features), np.array(cuts)
