"""The methods, each as it comes but for what is written here; nothing was chosen by looking at test rows.

All get one thread, the same frame and the same labels. Categories are left to libraries that know them; for the others
they are numbered (random forest) or become indicators (linear models).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from quadboost import QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor, QuadBoostRegressorCV

MANY_ROWS = 10_000  # of a table, from which on EBM and CatBoost are held short, and there are fewer splits
MANY_CLASSES = 10
HELD_OUT = 0.2  # of the training rows, for early stopping
PATIENCE = 50  # rounds


@dataclass(frozen=True)
class Problem:
    """What a method may know before it sees a row."""

    n_rows: int
    n_classes: int  # 0 for a regression

    @property
    def is_regression(self) -> bool:
        return self.n_classes == 0

    @property
    def is_large(self) -> bool:
        return self.n_rows > MANY_ROWS


@dataclass(frozen=True)
class Method:
    title: str
    packages: tuple[str, ...]
    make: Callable[[Problem], Any]
    terms: Callable[[Any], int]  # numbers that its scores are made of: voters and rules, leaves, bins, coefficients
    settings: str  # for the page
    for_regression: bool = True

    @property
    def is_ours(self) -> bool:
        return self.packages == ("quadboost",)


# --- ours ---------------------------------------------------------------------------------------------------


def ours(problem: Problem, **parameters: Any) -> Any:
    return (QuadBoostRegressor if problem.is_regression else QuadBoostClassifier)(n_jobs=1, **parameters)


def ours_cv(problem: Problem) -> Any:
    return (QuadBoostRegressorCV if problem.is_regression else QuadBoostClassifierCV)(n_trees="auto", n_jobs=1)


def our_terms(model: Any) -> int:
    return len(model.ensemble_.feature) + model.ensemble_.n_rules


# --- others -------------------------------------------------------------------------------------------------


def lightgbm(problem: Problem, **parameters: Any) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    return (LGBMRegressor if problem.is_regression else LGBMClassifier)(n_jobs=1, verbose=-1, **parameters)


class EarlyStopping:
    """LightGBM with at most 5,000 trees, stopped by rows that are held out of training."""

    def __init__(self, problem: Problem) -> None:
        self.model, self.problem = lightgbm(problem, n_estimators=5_000), problem

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> EarlyStopping:
        from lightgbm import early_stopping

        labels = None if self.problem.is_regression or np.bincount(y).min() < 2 else y
        X, X_out, y, y_out = train_test_split(X, y, test_size=HELD_OUT, stratify=labels, random_state=0)
        self.model.fit(X, y, eval_set=[(X_out, y_out)], callbacks=[early_stopping(PATIENCE, verbose=False)])
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(X)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(X)


def lightgbm_terms(model: Any) -> int:
    model = getattr(model, "model", model)
    text = model.booster_.model_to_string(num_iteration=model.best_iteration_ or None)
    return sum(int(line.partition("=")[2]) for line in text.splitlines() if line.startswith("num_leaves="))


def xgboost(problem: Problem) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    return (XGBRegressor if problem.is_regression else XGBClassifier)(n_jobs=1, enable_categorical=True)


def xgboost_terms(model: Any) -> int:
    return sum(tree.count("leaf=") for tree in model.get_booster().get_dump())


class CatBoost:
    """Categories as text, which is all that it takes."""

    def __init__(self, problem: Problem) -> None:
        import catboost

        kind = catboost.CatBoostRegressor if problem.is_regression else catboost.CatBoostClassifier
        short = {"iterations": 200} if problem.is_large and problem.n_classes > MANY_CLASSES else {}
        self.model = kind(thread_count=1, verbose=False, allow_writing_files=False, **short)

    def _frame(self, X: pd.DataFrame) -> pd.DataFrame:
        names = X.select_dtypes("category").columns
        return X.assign(**{name: X[name].astype(object).fillna("missing").astype(str) for name in names})

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> CatBoost:
        self.model.fit(self._frame(X), y, cat_features=list(X.select_dtypes("category").columns))
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(self._frame(X))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(self._frame(X))


def catboost_terms(model: Any) -> int:
    return int(np.sum(model.model.get_tree_leaf_counts()))


def histogram(problem: Problem) -> Any:
    return HistGradientBoostingRegressor() if problem.is_regression else HistGradientBoostingClassifier()


def histogram_terms(model: Any) -> int:
    return sum(tree.get_n_leaf_nodes() for trees in model._predictors for tree in trees)


class EBM:
    """It would look at every number of a column as text, so it is told what is a category."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.model = problem, None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> EBM:
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        kind = ExplainableBoostingRegressor if self.problem.is_regression else ExplainableBoostingClassifier
        types = ["nominal" if isinstance(dtype, pd.CategoricalDtype) else "continuous" for dtype in X.dtypes]
        is_long = self.problem.is_large and self.problem.n_classes > MANY_CLASSES
        short = {"outer_bags": 1, "max_rounds": 100} if is_long else {"outer_bags": 2, "max_rounds": 1_000}
        self.model = kind(feature_types=types, n_jobs=1, random_state=0, **short).fit(X, y)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict(X)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(X)


def ebm_terms(model: Any) -> int:
    return sum(int(np.count_nonzero(scores)) for scores in model.model.term_scores_)


def linear(problem: Problem) -> Any:
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        (numbers, make_column_selector(dtype_exclude="category")),
    )
    return make_pipeline(columns, Ridge() if problem.is_regression else LogisticRegression(max_iter=2_000))


def linear_terms(model: Any) -> int:
    return int(np.count_nonzero(model[-1].coef_))


def forest(problem: Problem) -> Any:
    columns = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_include="category"),
        ),
        remainder="passthrough",
    )
    kind = RandomForestRegressor if problem.is_regression else RandomForestClassifier
    return make_pipeline(columns, kind(n_jobs=1, random_state=0))


def forest_terms(model: Any) -> int:
    return sum(tree.get_n_leaves() for tree in model[-1].estimators_)


QUADBOOST, LIGHTGBM, SKLEARN = ("quadboost",), ("lightgbm",), ("sklearn",)
METHODS: dict[str, Method] = {
    "quadboost": Method("QuadBoost", QUADBOOST, ours, our_terms, "defaults: stumps, l1"),
    "quadboost-logistic": Method(
        "QuadBoost, logistic", QUADBOOST, partial(ours, loss="logistic"), our_terms, '`loss="logistic"`', False
    ),
    "quadboost-rules": Method("QuadBoost, rules", QUADBOOST, partial(ours, n_trees=100), our_terms, "`n_trees=100`"),
    "quadboost-rules-logistic": Method(
        "QuadBoost, rules, logistic",
        QUADBOOST,
        partial(ours, n_trees=100, loss="logistic"),
        our_terms,
        '`n_trees=100, loss="logistic"`',
        False,
    ),
    "quadboost-cv": Method("QuadBoost, CV", QUADBOOST, ours_cv, our_terms, 'the CV estimators, `n_trees="auto"`'),
    "lightgbm": Method("LightGBM", LIGHTGBM, lightgbm, lightgbm_terms, "defaults: 100 rounds, 31 leaves"),
    "lightgbm-stopped": Method(
        "LightGBM, early stopping",
        LIGHTGBM,
        EarlyStopping,
        lightgbm_terms,
        f"at most 5,000 rounds, patience {PATIENCE}, {HELD_OUT:.0%} of the training rows held out",
    ),
    "xgboost": Method("XGBoost", ("xgboost",), xgboost, xgboost_terms, "defaults, `enable_categorical=True`"),
    "catboost": Method(
        "CatBoost",
        ("catboost",),
        CatBoost,
        catboost_terms,
        f"defaults; 200 iterations instead of 1,000 above {MANY_ROWS:,} rows and {MANY_CLASSES} classes",
    ),
    "histgradientboosting": Method("HistGradientBoosting", SKLEARN, histogram, histogram_terms, "defaults"),
    "ebm": Method(
        "EBM",
        ("interpret",),
        EBM,
        ebm_terms,
        f"defaults, but 2 outer bags instead of 14 and at most 1,000 rounds; above {MANY_ROWS:,} rows and "
        f"{MANY_CLASSES} classes 1 and 100",
    ),
    "linear": Method(
        "logistic regression",
        SKLEARN,
        linear,
        linear_terms,
        "defaults, standardised, indicators of categories; ridge regression where the target is a number",
    ),
    "forest": Method("random forest", SKLEARN, forest, forest_terms, "defaults: 100 trees"),
}
