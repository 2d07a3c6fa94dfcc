"""Random models within random signs, and rows on which a step the wrong way would show."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

import quadboost

GRADES = ["none", "low", "mid", "high", "top"]
M = 160


def table(rng):
    """Features that the targets rise and fall with: ordered, discrete, of grades, with missing values, of levels."""
    x = rng.normal(size=(M, 3))
    x[:, 1] = np.round(x[:, 1])
    grade, level = rng.integers(0, 5, M), rng.integers(0, 3, M)
    y = np.sin(3 * x[:, 0]) * (1 + level) + np.cos(2 * x[:, 1]) + x[:, 2] * x[:, 0] + (grade - 2.0) ** 2 * x[:, 2]
    y += 0.3 * rng.normal(size=M)
    x[rng.random(M) < 0.1, 0] = np.nan
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    codes = np.where(rng.random(M) < 0.05, -1, grade)
    frame["grade"] = pd.Categorical.from_codes(codes, GRADES, ordered=True)
    frame["level"] = np.array(["u", "v", "w"], dtype=object)[level]
    return frame, y


def parameters(rng):
    """Of a fit, such as users may give them together."""
    found = {"max_rounds": int(rng.choice([20, 200, 1000])), "tol": float(rng.choice([1e-2, 1e-5]))}
    found["penalty"] = rng.choice(["l1", "l2", "linf", None])
    found["mode"] = str(rng.choice(["corrective", "corrective", "forward"]))
    found["fit_intercept"] = bool(rng.random() < 0.8)
    if rng.random() < 0.4:
        found |= {"n_trees": int(rng.integers(1, 9)), "max_leaves": int(rng.integers(2, 12))}
    if rng.random() < 0.3:
        found |= {"reweight_every": int(rng.integers(1, 30)), "reweight_sweeps": rng.choice([1, 3, "solve"])}
        if found["reweight_sweeps"] != "solve":
            found["reweight_sweeps"] = int(found["reweight_sweeps"])
    if rng.random() < 0.3:
        found |= {"validation_fraction": 0.3, "patience": 5}
    if found["mode"] == "forward" and found["penalty"] == "l2":
        found["reg_lambda"] = 0.5
    return found


def labels_of(rng, y, kind):
    if kind == "two classes":
        return np.where(y > np.median(y), "yes", "no")
    if kind == "three classes":
        return np.digitize(y, np.quantile(y, [0.3, 0.6]))
    if kind == "two targets":
        return np.column_stack([y, -y + rng.normal(size=M)])
    return rng.poisson(np.exp(np.clip(y / 3, -2, 2))) if kind == "counts" else y


def random_model(seed):
    """A model, the sign of each feature for each of its scores, and a table to score."""
    rng = np.random.default_rng(seed)
    frame, y = table(rng)
    kind = str(rng.choice(["one target", "two classes", "three classes", "two targets", "counts"]))
    y, n_scores = labels_of(rng, y, kind), {"three classes": 3, "two targets": 2}.get(kind, 1)
    names = [name for name in ("a", "b", "c", "grade") if rng.random() < 0.7] or ["a"]
    signs = {name: rng.choice([-1, 1], n_scores if rng.random() < 0.3 else None) for name in names}
    given = {name: sign.tolist() if np.ndim(sign) else int(sign) for name, sign in signs.items()}
    options = parameters(rng) | {"monotonic_cst": given}
    forward_stumps = options["mode"] == "forward" and "n_trees" not in options
    losses = {"one target": ["squared", "huber", "quantile"], "counts": ["poisson"]}
    loss = str(rng.choice(losses.get(kind, ["squared", "logistic"] if "class" in kind else ["squared"])))
    options["loss"] = "squared" if forward_stumps else loss
    is_class = "class" in kind
    estimator = quadboost.QuadBoostClassifier if is_class else quadboost.QuadBoostRegressor
    weight = rng.choice([0.5, 1.0, 3.0], M) if rng.random() < 0.3 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rng.random() < 0.15:
            estimator = quadboost.QuadBoostClassifierCV if is_class else quadboost.QuadBoostRegressorCV
            for name in ("validation_fraction", "patience", "max_rounds"):
                options.pop(name, None)
            options |= {"reg_lambda": 2, "cv": 2, "rounds": [10, 60]}
            options["penalty"] = options["penalty"] or "l1"
        model = estimator(**options).fit(frame, y, sample_weight=weight).ensemble_
    return model, {name: np.broadcast_to(sign, n_scores) for name, sign in signs.items()}, frame


def values_of(model, name):
    """Values of a feature in their order, on either side of all that the model asks for."""
    number = model.feature_names.index(name)
    if name == "grade":
        return GRADES
    cuts = [model.threshold[(model.feature == number) & (model.kind == 0)]]
    if model.trees:
        cuts.append(model.trees.threshold[model.trees.feature == number])
    cuts = np.unique(np.concatenate([*cuts, [0.0]]))
    near = [np.nextafter(cuts, -np.inf), cuts, np.nextafter(cuts, np.inf), (cuts[1:] + cuts[:-1]) / 2]
    return np.unique(np.concatenate([*near, [-1e300, 1e300]])).tolist()


def ladders(model, signs, frame, n_rows=12):
    """For each feature with a sign: rows that differ in it alone, upwards, several times; and how many in a ladder."""
    start = frame.astype({"grade": object}).sample(n_rows, random_state=0)
    for name, sign in signs.items():
        values = values_of(model, name)
        rows = start.loc[start.index.repeat(len(values))].reset_index(drop=True)
        yield name, sign, rows.assign(**{name: pd.Series(values * n_rows)}), len(values)


def check_monotone(model, signs, frame, score=None):
    """No score takes a step the wrong way, not by the last bit; some take one."""
    moves = 0
    for name, sign, rows, n_values in ladders(model, signs, frame):
        scores = model.decision_function(rows) if score is None else score(rows)
        steps = np.diff(np.asarray(scores, dtype=np.float64).reshape(-1, n_values, len(sign)), axis=1)
        assert (steps * sign >= 0).all(), (name, sign)
        moves += np.count_nonzero(steps)
    return moves
