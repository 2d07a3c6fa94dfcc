"""Models of every kind to export, and tables that try them: missing values, levels never seen, quotes, neighbours."""

from functools import cache

import numpy as np
import pandas as pd

from quadboost import Ensemble, QuadBoostClassifier, QuadBoostRegressor
from quadboost.voters.trees import Trees

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


def with_trees(model):
    """The model and twelve trees at random: the first without weights, the sixth a long chain. Many nodes have none."""
    rng, matrix = np.random.default_rng(3), model.matrix_of(table())
    nodes, start = [], [0]
    for tree in range(12):
        grow(nodes, rng, matrix, model.categories, *((30, True) if tree == 5 else (5, False)))
        start.append(len(nodes))
    feature, threshold, missing_right = map(np.array, zip(*nodes, strict=True))
    weight = np.round(rng.normal(size=(len(nodes), *model.weight.shape[1:]))) / 7
    weight[: start[1]] = weight[start[:-1]] = 0.0
    return model.replace(trees=Trees(np.array(start), feature, threshold, missing_right), node_weight=weight)


def grow(nodes, rng, matrix, categories, depth, chain):
    """Add a tree at random, or a chain, to a list of (feature, threshold, missing_right)."""
    if depth == 0 or (not chain and depth < 4 and rng.random() < 0.3):
        nodes.append((-1, 0.0, 0))
        return
    feature = int(rng.integers(matrix.shape[1]))
    known = matrix[~np.isnan(matrix[:, feature]), feature]
    nodes.append((feature, rng.choice(known), int(rng.integers(2))))
    grow(nodes, rng, matrix, categories, 0 if chain and depth % 2 else depth - 1, chain)
    grow(nodes, rng, matrix, categories, 0 if chain and not depth % 2 else depth - 1, chain)


@cache
def fitted(kind):
    """A fitted model, and its loss and link, by a short name."""
    frame = table()
    y = targets(frame)
    if kind.startswith("trees"):
        return with_trees(fitted(kind.replace("trees", "logit")))
    if kind == "grown":
        grown = QuadBoostRegressor(
            n_trees=8, max_leaves=8, categorical_features=["who", "member", "code"], random_state=0
        )
        return grown.fit(frame, y).ensemble_
    options = {"categorical_features": ["who", "member", "code"], "max_rounds": 200, "thresholds": 20}
    classify = {
        "grown": {"n_trees": 8, "max_leaves": 8},
        "logit": {},
        "clipped": {"calibration": None},
        "logistic": {"loss": "logistic"},
    }
    regress = {
        "identity": {},
        "monotone": {"monotonic_cst": {"plain": 1}},
        "huber": {"loss": "huber"},
        "quantile": {"loss": "quantile"},
        "poisson": {"loss": "poisson"},
    }
    if kind in regress:
        y = np.floor(np.exp(y / 2)) if kind == "poisson" else y
        return QuadBoostRegressor(**options, **regress[kind]).fit(frame, y).ensemble_
    if kind == "targets":
        return QuadBoostRegressor(**options).fit(frame, np.column_stack([y, -y * y])).ensemble_
    link, n_classes = kind.split("-")
    edges = np.quantile(y, np.linspace(0, 1, int(n_classes) + 1)[1:-1])
    labels = np.array(LABELS.get(int(n_classes), list(range(int(n_classes)))))[np.searchsorted(edges, y)]
    return QuadBoostClassifier(**options, **classify[link]).fit(frame, labels).ensemble_


KINDS = ["logit-2", "clipped-2", "logistic-2", "identity", "monotone", "huber", "quantile", "poisson", "targets"]
KINDS += ["logit-3", "clipped-3", "logistic-3", "logit-5", "trees-2", "trees-3", "grown", "grown-3"]


def same_bits(found, expected):
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    np.testing.assert_array_equal(found.view(np.int64), expected.reshape(found.shape).view(np.int64))


def check(model, frame, scores, predictions, probabilities=None):
    """The same bits of scores, the same labels, probabilities to 1e-15."""
    same_bits(scores, model.decision_function(frame))
    if model.classes is None:
        expected = model.predict(frame)
        np.testing.assert_allclose(np.reshape(predictions, expected.shape), expected, rtol=1e-15)
    else:
        assert list(predictions) == model.predict(frame).tolist()
        np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=0, atol=1e-15)


def by_hand():
    """A model without names, whose thresholds are neighbours, tiny, huge and negative, and rows around them."""
    tiny, huge = 5e-324, 1.7e308
    cuts = np.array([-huge, -1.5, -tiny, 0.0, tiny, 0.1, np.nextafter(0.1, 1), 1e-7, 12345.678, huge])
    weight = np.random.default_rng(0).normal(size=3 * len(cuts))
    model = Ensemble(np.repeat(range(3), len(cuts)), np.tile(cuts, 3), weight, -0.3, n_features=3)
    values = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), [np.nan, np.inf, -np.inf]])
    X = np.column_stack([values, values[::-1], np.roll(values, 7)])
    return model, pd.DataFrame(X, columns=["x0", "x1", "x2"])


def tiny():
    """A model whose values are below all floats of 32 bits, and one below all normal doubles."""
    model = Ensemble([0, 0], [0.0, 1.0], [1e-300, 3e-320], -1e-299, n_features=1, feature_names=["x0"])
    return model, pd.DataFrame({"x0": [2.0, 0.5, -1.0, np.nan]})


FAR = ["logit-2", "clipped-2", "softmax-3", "clipped-3", "log-0"]


def far_out(kind):
    """A model whose scores are tiny, huge, or midway between two multiples of 2^-44, and rows that have them."""
    link, n_classes = kind.split("-")
    rng, n_outputs = np.random.default_rng(0), 3 if n_classes == "3" else 1
    steps = [rng.normal(size=(60, n_outputs)) * 10.0**exponent for exponent in (-17, -1, 1, 2, 3)]
    steps.append(rng.integers(-9, 9, size=(60, n_outputs)) * 2.0**-46)
    weight = np.vstack(steps)
    weight -= weight.mean(axis=0)
    model = Ensemble(
        np.zeros(len(weight), int),
        np.arange(len(weight)),
        weight if n_outputs > 1 else weight[:, 0],
        np.zeros(n_outputs) if n_outputs > 1 else 0.0,
        n_features=1,
        classes={"0": None, "2": [False, True], "3": [1.5, 2.5, 4.0]}[n_classes],
        feature_names=["x"],
        link=link,
        loss="poisson" if link == "log" else "squared",
    )
    return model, pd.DataFrame({"x": np.arange(len(weight) + 1) - 0.5})


def many_classes(n):
    """A model of which all classes but the first are so unlikely that a plain sum would lose them."""
    constant = np.append(0.0, np.full(n - 1, -36.75))
    model = Ensemble(
        [0], [0.0], np.zeros((1, n)), constant, n_features=1, classes=list(range(n)), link="softmax",
        feature_names=["x"],
    )  # fmt: skip
    return model, pd.DataFrame({"x": [1.0]})


def without_voters():
    nothing = np.empty(0)
    model = Ensemble(nothing, nothing, nothing, 0.25, n_features=2, classes=["a", "b"])
    return model, pd.DataFrame({"x0": [1.0], "x1": [np.nan]})


def mixed():
    """A model of a feature that holds text and numbers, and rows of either."""
    values = ["1", 1, "x", 2.5, None, "unseen", 77, True, "X"]
    frame = pd.DataFrame({"m": pd.Series(values, dtype=object)})
    categories = {0: [[1, 2.5], ["1"], ["x"]]}
    model = Ensemble([0] * 3, range(3), [0.1, 0.2, 0.7], 0.3, kind=[1] * 3, n_features=1, categories=categories)
    return model.replace(feature_names=["m"]), frame


def ordered():
    """A model of levels with an order. Python refuses other values; to an export they are missing."""
    rng, sizes = np.random.default_rng(0), ["s", "m", "l"]
    frame = pd.DataFrame({"size": pd.Categorical(rng.choice(sizes, 300), categories=sizes, ordered=True)})
    frame["z"] = rng.normal(size=300)
    frame.loc[::7, "size"] = None
    y = frame["size"].cat.codes + frame["z"] > 1
    model = QuadBoostClassifier(monotonic_cst={"size": 1}, n_trees=3, max_leaves=4).fit(frame, y).ensemble_
    return model, frame.astype({"size": object})
